//! Names in emitted text.
//!
//! The author's names survive. They change only where the target's language has another meaning for them, or where Rust's shadowing
//! gives one name to several variables: then a number follows (`x`, `x_1`). A name depends on the equal names before it and on nothing
//! else, so that renaming one variable changes that variable alone.

use crate::hashing::{HashMap, HashSet};

/// The names that are taken in a scope.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// For each name that was wanted more than once, the number that its last claim got.
    last: HashMap<String, u32>,
}

impl Names {
    /// Takes a name without looking whether it is free.
    pub fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// Gives a name back.
    pub fn release(&mut self, name: &str) {
        self.taken.remove(name);
    }

    /// Takes the author's name, or where it is taken or `refused` the first of `name_1`, `name_2` and so on that is not.
    pub fn claim(&mut self, wanted: &str, refused: impl Fn(&str) -> bool) -> String {
        let mut name = identifier(wanted);
        if self.taken.contains(&name) || refused(&name) {
            let base = name;
            let last = self.last.entry(base.clone()).or_default();
            loop {
                *last += 1;
                name = format!("{base}_{last}");
                if !self.taken.contains(&name) && !refused(&name) {
                    break;
                }
            }
        }
        self.taken.insert(name.clone());
        name
    }
}

/// A Rust name as an identifier of C-like languages: ASCII, and without the leading underscores that they keep for themselves.
pub fn identifier(rust: &str) -> String {
    let plain = rust.strip_prefix("r#").unwrap_or(rust);
    let mut name = String::with_capacity(plain.len());
    for c in plain.trim_start_matches('_').chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            // Two underscores in a row are reserved in C++.
            if c != '_' || !name.ends_with('_') {
                name.push(c);
            }
        } else {
            name.push_str(&format!("u{:x}", u32::from(c)));
        }
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_numbered_and_others_left_alone() {
        let mut names = Names::default();
        let claim = |names: &mut Names, wanted| names.claim(wanted, |name| name == "var");
        assert_eq!(claim(&mut names, "x"), "x");
        assert_eq!(claim(&mut names, "x"), "x_1");
        assert_eq!(claim(&mut names, "var"), "var_1");
        assert_eq!(claim(&mut names, "x_1"), "x_1_1");
        assert_eq!(claim(&mut names, "y"), "y");
    }

    #[test]
    fn identifiers_are_plain() {
        assert_eq!(identifier("r#type"), "type");
        assert_eq!(identifier("_unused"), "unused");
        assert_eq!(identifier("__a__b"), "a_b");
        assert_eq!(identifier("größe"), "gruf6udfe");
        assert_eq!(identifier("_"), "v");
    }
}
