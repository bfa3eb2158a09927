//! A number for the compiler's sources, which tells expansions that another state of it wrote (`src/remembered.rs`).
//!
//! Outside the repository `trefoil-codegen` is another package of the same version, and Cargo gives each set of versions a folder of its own.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let mut files = BTreeSet::new();
    for folder in ["src", "../codegen/src"] {
        if Path::new(folder).exists() {
            println!("cargo::rerun-if-changed={folder}");
            gather(Path::new(folder), &mut files)?;
        }
    }
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
