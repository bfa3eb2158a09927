//! What the compiler tells the author of a kernel with a mistake: each message on the author's token, in the author's words.
//!
//! A kernel with mistakes is a file in `cases`, with the messages that it gets beside it. After a change of messages, read the differences and run with `TRYBUILD=overwrite`.

#[test]
fn mistakes_are_reported_on_the_authors_tokens() {
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}

/// Names that mean nothing to an author.
const INTERNAL: &[&str] = &[
    "Handle",
    "Diagnostic",
    "ExpressionKind",
    "Scalar::",
    "Root::",
    "__trefoil",
    "codegen",
    "kernel_finish",
    "device_finish",
];

#[test]
fn messages_name_nothing_internal() -> std::io::Result<()> {
    let mut read = 0;
    for entry in std::fs::read_dir("cases")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "stderr") {
            continue;
        }
        read += 1;
        let text = std::fs::read_to_string(&path)?;
        for name in INTERNAL {
            assert!(!text.contains(name), "{} speaks of `{name}`:\n{text}", path.display());
        }
    }
    assert!(read >= 100, "only {read} messages");
    Ok(())
}
