//! Writes the number of the compiler's sources into the crate (`artefact::SOURCES`).

use std::io;
use std::path::Path;

#[path = "src/sources.rs"]
mod sources;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=TREFOIL_COMPILER={:016x}", sources::number(Path::new("src"))?);
    Ok(())
}
