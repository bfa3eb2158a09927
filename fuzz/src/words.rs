//! Text as words and signs, with what brackets hold, for mutations that leave most of it Rust.
//!
//! It takes any text: what is no word, number or sign is a sign of its own.

use std::ops::Range;

/// Signs of more than one character, longest first.
const SIGNS: [&str; 25] = [
    "..=", "...", "<<=", ">>=", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "<<", ">>", "+=", "-=",
    "*=", "/=", "%=", "^=", "&=", "|=", "//",
];

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Name,
    Number,
    Text,
    Sign,
    Open,
    Close,
}

/// What the text of a word says it is.
pub fn kind(word: &str) -> Kind {
    match word.as_bytes().first() {
        Some(b'(' | b'[' | b'{') => Kind::Open,
        Some(b')' | b']' | b'}') => Kind::Close,
        Some(b'0'..=b'9') => Kind::Number,
        Some(b'"') => Kind::Text,
        Some(b'\'') if word.ends_with('\'') && word.len() > 2 => Kind::Text,
        _ if word.chars().next().is_some_and(is_of_word) || word.starts_with('\'') => Kind::Name,
        _ => Kind::Sign,
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The words of a text; comments are left out.
pub fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let length = length(rest, first);
        let (word, after) = rest.split_at(length);
        found.push(word);
        rest = after;
    }
    found
}

/// How long the word is that a text begins with.
fn length(text: &str, first: char) -> usize {
    let run = |text: &str, within: fn(char) -> bool| text.find(|c| !within(c)).unwrap_or(text.len());
    if first.is_ascii_digit() {
        let whole = run(text, is_of_word);
        // `1.5` is one word, `1..2` and `1.max(2)` are none.
        return match text[whole..].strip_prefix('.') {
            Some(after) if after.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + run(after, is_of_word),
            _ => whole,
        };
    }
    if is_of_word(first) {
        return run(text, is_of_word);
    }
    if first == '"' {
        let mut escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return end.map_or(text.len(), |(at, _)| at + 1);
    }
    if first == '\'' {
        let mut inside = text[1..].chars();
        return match (inside.next(), inside.next()) {
            (Some(one), Some('\'')) => 2 + one.len_utf8(),
            _ => 1 + run(&text[1..], is_of_word),
        };
    }
    SIGNS.iter().find(|sign| text.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len())
}

/// The range of the unit at a position: a word, or a bracket with all up to the one that closes it.
pub fn unit<T: AsRef<str>>(words: &[T], at: usize) -> Range<usize> {
    let mut depth = 0usize;
    for (position, word) in words.iter().enumerate().skip(at) {
        match kind(word.as_ref()) {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at..position + 1;
        }
    }
    at..words.len().min(at + 1)
}

/// Puts words together, with blanks where two would become one.
pub fn joined<T: AsRef<str>>(words: &[T]) -> String {
    let mut text = String::new();
    let mut before = Kind::Open;
    for word in words {
        let word = word.as_ref();
        let kind = kind(word);
        let is_word = |kind| matches!(kind, Kind::Name | Kind::Number | Kind::Text);
        if (is_word(before) && is_word(kind)) || (before == Kind::Sign && kind == Kind::Sign) {
            text.push(' ');
        }
        text.push_str(word);
        if matches!(word, ";" | "{" | "}") {
            text.push('\n');
        }
        before = kind;
    }
    text
}
