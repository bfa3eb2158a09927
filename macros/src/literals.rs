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
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest.as_bytes()));
        source.push_str(plain);
        let mut chars = special.chars();
        let Some(first) = chars.next() else { break };
        source.extend(first.escape_default());
        rest = chars.as_str();
    }
    source.push('"');
}

/// How many bytes at the beginning stand in a literal as they are.
fn plain_length(bytes: &[u8]) -> usize {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\r' | 0x80..);
    // Nearly all pieces are plain, and one is looked at as a whole by few instructions.
    let plain = bytes.chunks(32).take_while(|piece| !piece.iter().fold(false, |found, byte| found | is_special(byte)));
    let begin = plain.map(<[u8]>::len).sum();
    bytes[begin..].iter().position(is_special).map_or(bytes.len(), |at| begin + at)
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
