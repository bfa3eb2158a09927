//! A number for the sources of a crate, by which what it made in another process is known to be what it would make again.
//!
//! Build scripts use it: this crate's as a module of its own, others' as a function of their build dependency.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The number of all files below a folder, of their paths and of what is in them.
///
/// # Errors
/// A folder or a file cannot be read.
pub fn number(folder: &Path) -> io::Result<u64> {
    let mut files = BTreeSet::new();
    gather(folder, &mut files)?;
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(&file)?);
    }
    Ok(hasher.finish())
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
