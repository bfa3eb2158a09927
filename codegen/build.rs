//! A number for the compiler's sources, by which what it made in another process is known to be what it would make again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut files = BTreeSet::new();
    gather(Path::new("src"), &mut files)?;
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=TREFOIL_COMPILER={:016x}", hasher.finish());
    Ok(())
}

fn gather(folder: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}
