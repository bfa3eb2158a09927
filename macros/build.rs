//! Writes the number of the macros' sources into the crate, which with the compiler's (`trefoil_codegen::artefact::SOURCES`) tells expansions that another state of them wrote (`src/remembered.rs`).

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=TREFOIL_SOURCES={:016x}", trefoil_codegen::sources::number(Path::new("src"))?);
    Ok(())
}
