//! The page of defects names tests that exist, and says of every defect what holds it off.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;

const PAGE: &str = include_str!("../docs/src/defects.md");

/// The tests that a text names, as `file::function` between backticks.
fn named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once(".rs::")).collect()
}

/// Whether a source has a test of that name, in itself or for device crates to include.
fn has(source: &str, test: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let begins = |prefix: &str| {
            line.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(test)).is_some_and(|rest| rest.starts_with('('))
        };
        let marked = || lines[..at].iter().rev().take(3).any(|before| *before == "#[test]");
        begins("fn ") && marked() || begins("pub fn ") && line.contains("subject: &Subject")
    })
}

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = named(PAGE);
    assert!(tests.len() > 60, "{}", tests.len());
    let missing: Vec<_> = tests
        .into_iter()
        .filter(|(file, test)| {
            let source = std::fs::read_to_string(root.join(format!("{file}.rs")));
            !source.is_ok_and(|source| has(&source, test))
        })
        .collect();
    assert!(missing.is_empty(), "the page names tests that do not exist: {missing:#?}");
}

#[test]
fn every_defect_has_a_test_or_a_reason() {
    let rows: Vec<&str> =
        PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what went wrong")).collect();
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, answer] = cells.as_slice() else { panic!("not two cells: {row}") };
        assert!(!named(answer).is_empty() || answer.trim().starts_with("It cannot exist: "), "{row}");
    }
}
