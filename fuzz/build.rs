//! Lists the files of kernels that seeds and words are taken from.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders and files beside this package. Items of one find each other.
const SOURCES: [&str; 5] =
    ["guide/src/rows", "examples/kernels/src", "backends/kernels", "tests/ui/cases", "codegen/tests/front/kernels.txt"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut files = Vec::new();
    for source in SOURCES {
        let path = root.join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        collect(source, &path, &mut files)?;
    }
    files.sort();
    let mut list = "&[".to_owned();
    for (source, file) in files {
        // Writing to a string does not fail.
        let _ = write!(list, "({source:?}, include_str!({file:?})),");
    }
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("sources.rs"), list)
}

fn collect(source: &'static str, path: &Path, into: &mut Vec<(&'static str, PathBuf)>) -> io::Result<()> {
    if !path.is_dir() {
        if path.extension().is_some_and(|extension| extension == "rs" || extension == "txt") {
            into.push((source, path.to_owned()));
        }
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(source, &entry?.path(), into)?;
    }
    Ok(())
}
