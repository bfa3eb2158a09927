//! The kernels of the library, the guide, the examples and the tests, as text.

use std::sync::OnceLock;

use crate::words::{Kind, kind, words};

/// Where each file is from (a line of `build.rs`), and its text.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The words of each file, from which mutations take.
pub fn donors() -> &'static [Vec<&'static str>] {
    static DONORS: OnceLock<Vec<Vec<&'static str>>> = OnceLock::new();
    DONORS.get_or_init(|| SOURCES.iter().map(|(_, text)| words(text)).collect())
}

/// Every name in the files, each once, and words of the language beside them.
pub fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let all = donors().iter().flatten().copied().filter(|word| kind(word) == Kind::Name);
        let mut names: Vec<_> = all.chain(DICTIONARY.split_ascii_whitespace()).collect();
        names.sort_unstable();
        names.dedup();
        names
    })
}

/// Words of the language that mutations put in more often than others.
pub const DICTIONARY: &str = include_str!("../dictionary.txt");
