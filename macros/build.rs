//! A number for the macros' sources, which with the compiler's (`trefoil_codegen::artefact::SOURCES`) tells expansions that another state of them wrote (`src/remembered.rs`).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let mut files = BTreeSet::new();
    println!("cargo::rerun-if-changed=src");
    gather(Path::new("src"), &mut files)?;
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=TREFOIL_SOURCES={:016x}", hasher.finish());
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
