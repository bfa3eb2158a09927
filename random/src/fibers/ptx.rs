//! Inline PTX, for which functions of `cuda.hpp` stand: a statement of exactly known text becomes a call with its operands.

use std::fmt;

/// The text of a statement, the constraints of its operands, and the function that does the same. Functions take operands in order, those that are written by reference.
const KNOWN: [(&str, &str, &str); 10] = [
    ("", "+r", "hidden"),
    ("", "+l", "hidden"),
    ("mov.u32 %0, %%laneid;", "=r", "laneid"),
    ("cvt.f32.f16 %0, %1;", "=f h", "cvt_f32_f16"),
    ("cvt.rn.f16.f32 %0, %1;", "=h f", "cvt_rn_f16_f32"),
    ("cvt.rn.bf16.f32 %0, %1;", "=h f", "cvt_rn_bf16_f32"),
    ("ex2.approx.ftz.f32 %0, %1;", "=f f", "ex2_approx_ftz_f32"),
    ("sqrt.approx.f32 %0, %1;", "=f f", "sqrt_approx_f32"),
    ("dp4a.s32.s32 %0, %1, %2, %3;", "=r r r r", "dp4a_s32"),
    ("dp4a.u32.u32 %0, %1, %2, %3;", "=r r r r", "dp4a_u32"),
];

/// A statement for which nothing stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no function stands for the inline PTX `{}`", self.0)
    }
}

/// The text with calls in place of inline PTX.
///
/// # Errors
/// The first statement that is not known.
pub fn called(text: &str) -> Result<String, Unknown> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = next(rest) {
        let (before, statement) = rest.split_at(at);
        out.push_str(before);
        let unknown = || Unknown(statement.lines().next().unwrap_or_default().to_owned());
        let read = Statement::read(statement).ok_or_else(unknown)?;
        let constraints: Vec<&str> = read.operands.iter().map(|(constraint, _)| *constraint).collect();
        let constraints = constraints.join(" ");
        let known = KNOWN.iter().find(|(text, wanted, _)| *text == read.text && *wanted == constraints);
        let (.., function) = known.ok_or_else(unknown)?;
        let operands: Vec<&str> = read.operands.iter().map(|(_, operand)| *operand).collect();
        out.push_str(&format!("ptx::{function}({})", operands.join(", ")));
        rest = read.rest;
    }
    out.push_str(rest);
    Ok(out)
}

/// Where the next statement begins: at the word `asm`.
fn next(text: &str) -> Option<usize> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices("asm")
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(part_of_word) && !text[at + "asm".len()..].starts_with(part_of_word))
}

/// `asm("text" : "constraint"(operand), .. : ..)`, and what stands behind it.
struct Statement<'t> {
    text: &'t str,
    operands: Vec<(&'t str, &'t str)>,
    rest: &'t str,
}

impl<'t> Statement<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let text = text.strip_prefix("asm")?.trim_start();
        let text = text.strip_prefix("volatile").map_or(text, str::trim_start);
        let (text, mut rest) = quoted(text.strip_prefix('(')?)?;
        let mut operands = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', ':', ',']);
            if let Some(rest) = rest.strip_prefix(')') {
                return Some(Self { text, operands, rest });
            }
            let (constraint, behind) = quoted(rest)?;
            // What is clobbered has no operand.
            if let Some(opened) = behind.strip_prefix('(') {
                let end = closing(opened)?;
                operands.push((constraint, &opened[..end]));
                rest = &opened[end + 1..];
            } else {
                rest = behind;
            }
        }
    }
}

/// A string, which has no quotation marks within, and what stands behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

/// Where the bracket closes that was opened before.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_become_calls() {
        let text = "    asm(\"\" : \"+r\"(x));\n    plasma(asm_ + 1);\n    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(half(f(x), g(x))));\n";
        let wanted = "    ptx::hidden(x);\n    plasma(asm_ + 1);\n    ptx::cvt_f32_f16(y, half(f(x), g(x)));\n";
        assert_eq!(called(text), Ok(wanted.to_owned()));
    }

    #[test]
    fn other_statements_are_refused() {
        for text in [
            "asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");",
            // The operands are others than the function's.
            "asm(\"cvt.f32.f16 %0, %1;\" : \"=r\"(y) : \"h\"(x));",
            "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y);",
        ] {
            let Unknown(quoted) = called(text).unwrap_err();
            assert_eq!(quoted, text);
        }
    }
}
