//! What kernels became, kept for the next time that they are expanded: every check, test and rebuild of a crate expands all of its kernels, of which most have not changed.
//!
//! A text is known by all that decides it: the kernel's IR, the values of its instances, the path to the support crate, and the sources of the compiler and of this crate. Reading the author's function is not kept, since it
//! ties rustc's messages to the author's tokens, and neither are mistakes. Each kernel has one file, in the folder that Cargo gives this crate: the kernel's next form replaces it, and `cargo clean` removes them
//! all. A file that cannot be read or written, or was not written to its end, costs time and nothing else. `TREFOIL_FRESH=1` compiles every kernel again.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::PathBuf;

use proc_macro2::TokenStream;
use trefoil_codegen::artefact::SOURCES;
use trefoil_codegen::compile::digest;
use trefoil_codegen::front::Output;

use crate::kernel::file;

/// What a kernel's module holds, as source text.
pub struct Expansion {
    /// How many instances it has, and variants of these, CPU functions included.
    pub counts: [usize; 2],
    /// The items.
    pub source: String,
}

/// Where the text of a kernel is kept, and what it is known by.
pub struct Place {
    path: PathBuf,
    key: String,
}

impl Place {
    /// That of a kernel; none for one whose IR cannot be written, which is reported where it is compiled.
    pub fn of(output: &Output, support: &TokenStream) -> Option<Self> {
        let digest = u128::from_le_bytes(digest(&output.module, &output.instances).ok()?);
        let key = format!("{SOURCES} {} {digest:032x} {support}", env!("TREFOIL_SOURCES"));
        let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
        let name = &output.module.name;
        // Kernels of one name are told apart by their source files.
        let mut source_file = DefaultHasher::new();
        file().hash(&mut source_file);
        let path = format!("{package}-{name}-{:016x}", source_file.finish());
        Some(Self { path: PathBuf::from(concat!(env!("OUT_DIR"), "/expansions")).join(path), key })
    }

    /// What was kept of exactly this kernel.
    pub fn read(&self) -> Option<Expansion> {
        if std::env::var_os("TREFOIL_FRESH").is_some_and(|value| !value.is_empty() && value != "0") {
            return None;
        }
        let text = fs::read_to_string(&self.path).ok()?;
        let (head, source) = text.split_once('\n')?;
        let mut numbers = head.strip_prefix(&self.key)?.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (counts, length): (_, usize) = ([next()?, next()?], next()?);
        (source.len() == length).then(|| Expansion { counts, source: source.to_owned() })
    }

    /// Keeps it in the place of what was kept before.
    pub fn write(&self, expansion: &Expansion) {
        let Expansion { counts: [instances, variants], source } = expansion;
        let head = format!("{} {instances} {variants} {}\n", self.key, source.len());
        // Another compiler may read or write the same file: it finds the one or the other, or none.
        let beside = self.path.with_added_extension(std::process::id().to_string());
        let written = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| {
            // The text has megabytes: it is not copied behind its head.
            let mut file = fs::File::create(&beside)?;
            file.write_all(head.as_bytes())?;
            file.write_all(source.as_bytes())?;
            // A file system may write what takes another's place to the disk at once, to be proof against a loss of power, which costs nothing here but time.
            let _ = fs::remove_file(&self.path);
            fs::rename(&beside, &self.path)
        });
        if written.is_err() {
            // What is half written is in nobody's way.
            let _ = fs::remove_file(&beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Expansion, Place};
    use std::fs;

    fn place(test: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("trefoil-expansions-{}", std::process::id()));
        Place { path: folder.join(test), key: "sources digest path".to_owned() }
    }

    #[test]
    fn what_was_written_is_read() {
        let place = place("read");
        for source in ["", "const A: u32 = 1;\nconst B: u32 = 2;\n"] {
            place.write(&Expansion { counts: [2, 13], source: source.to_owned() });
            let read = place.read().unwrap();
            assert_eq!((read.counts, read.source.as_str()), ([2, 13], source));
        }
        assert!(Place { key: "sources another path".to_owned(), ..place }.read().is_none());
    }

    #[test]
    fn what_was_not_written_to_its_end_is_not_read() {
        let place = place("half");
        assert!(place.read().is_none());
        place.write(&Expansion { counts: [1, 7], source: "const A: u32 = 1;".to_owned() });
        let whole = fs::read_to_string(&place.path).unwrap();
        for end in 0..whole.len() {
            fs::write(&place.path, &whole[..end]).unwrap();
            assert!(place.read().is_none(), "{end} bytes of {}", whole.len());
        }
    }
}
