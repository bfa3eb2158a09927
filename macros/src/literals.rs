//! Long literals as source text: what an artefact holds most of. The compiler reads a kernel's literals in one go, in a form that is hardly longer than what they
//! stand for; as tokens made one by one, each byte that is no letter would take four.

use trefoil_codegen::artefact::Code;

/// A variant's code.
pub fn of_code(code: &Code) -> String {
    let mut source = String::new();
    match code {
        Code::Text(text) => push_text(&mut source, text),
        Code::Spirv(words) => push_bytes(&mut source, words),
    }
    source
}

/// Adds a byte string. Everything but quotes, backslashes, carriage returns and what is not ASCII stands there as it is.
pub fn push_bytes(source: &mut String, bytes: &[u8]) {
    source.reserve(bytes.len() + bytes.len() / 4 + 3);
    source.push_str("b\"");
    for byte in bytes {
        match byte {
            b'"' => source.push_str("\\\""),
            b'\\' => source.push_str("\\\\"),
            b'\r' => source.push_str("\\r"),
            0x80.. => {
                source.push_str("\\x");
                for digit in [byte >> 4, byte & 15] {
                    source.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
                }
            }
            _ => source.push(char::from(*byte)),
        }
    }
    source.push('"');
}

/// Adds a string, likewise.
pub fn push_text(source: &mut String, text: &str) {
    source.reserve(text.len() + 2);
    source.push('"');
    for part in text.split_inclusive(|c: char| matches!(c, '"' | '\\' | '\r') || !c.is_ascii()) {
        match part.char_indices().next_back() {
            Some((at, c)) if matches!(c, '"' | '\\' | '\r') || !c.is_ascii() => {
                source.push_str(&part[..at]);
                source.extend(c.escape_default());
            }
            _ => source.push_str(part),
        }
    }
    source.push('"');
}

/// What stands between the quotes of a literal that [`push_text`] wrote.
pub fn inside(literal: &str) -> &str {
    literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(literal)
}

#[cfg(test)]
mod tests {
    use super::{inside, push_bytes, push_text};

    #[test]
    fn what_is_read_is_what_was_meant() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut source = String::new();
        push_bytes(&mut source, &bytes);
        assert_eq!(syn::parse_str::<syn::LitByteStr>(&source).unwrap().value(), bytes);
        let text = "a \"quote\", a \\ and\r\nlines, größer\u{202e}, {}";
        let mut source = String::new();
        push_text(&mut source, text);
        assert_eq!(syn::parse_str::<syn::LitStr>(&source).unwrap().value(), text);
        assert_eq!(format!("\"{}\"", inside(&source)), source);
    }
}
