//! Where a kernel reports something, and what a report says: the host's half of `assert!` and `println!`.
//!
//! # The report buffer
//! A kernel that reports has one more binding than its author wrote, the last: words, of which the first counts those that were asked for behind the first two, and the second reports for
//! which there was no room. A report is [`HEAD`] words and its values: the number of its site from 1 on, the workgroup's position by axis (of a grid without axes its number, and two zeros), the
//! invocation's number in its workgroup, then each value, lane by lane, in one word or in two, the low one first. A report that was not written begins with 0.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::artefact::{List, ParamScalar, Text};
use crate::ir::{Format, Piece, Style};

/// Words of the buffer before the first report.
pub const BEGIN: usize = 2;
/// Words of a report before its values.
pub const HEAD: usize = 5;

/// An `assert!` or `println!` in a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The author's file, as rustc names it.
    pub file: Text,
    /// The line, from 1; 0 for code that nobody wrote.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Whether its report says that something does not hold that was asserted; otherwise it is a line to be printed.
    pub fails: bool,
    /// The message.
    pub text: List<Piece>,
    /// What the values are that the message names.
    pub values: List<SiteValue>,
}

/// What a reported value is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteValue {
    /// The scalar, as it is reported: narrow integers as 32 bits, halves as `f32`.
    pub scalar: ParamScalar,
    /// 1 for a scalar, 2 to 4 for a vector.
    pub lanes: u32,
    /// Of an enum the names of its values by their numbers; empty for anything else.
    pub names: List<(u32, Text)>,
}

impl SiteValue {
    /// Words that it takes in a report.
    pub const fn words(&self) -> usize {
        (self.lanes * self.scalar.bytes() / 4) as usize
    }
}

/// A report, as the device wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported<'a> {
    /// The position of its site among the kernel's.
    pub site: usize,
    /// The position of its workgroup in the grid; of a grid without axes, its number and two zeros.
    pub workgroup: [u32; 3],
    /// The invocation's number in its workgroup, x fastest.
    pub local: u32,
    /// Its values, for [`Site::message`].
    pub values: &'a [u32],
}

impl Site {
    /// Words of a report of it.
    pub fn words(&self) -> usize {
        HEAD + self.values.iter().map(SiteValue::words).sum::<usize>()
    }

    /// The message with these values in it, of which as many words are there as the site's values take: what is missing is shown as zero.
    pub fn message(&self, values: &[u32]) -> String {
        let mut message = String::new();
        for piece in &*self.text {
            match piece {
                Piece::Text(text) => message.push_str(text),
                Piece::Value(position, format) => {
                    let position = *position as usize;
                    let first = self.values.iter().take(position).map(SiteValue::words).sum();
                    if let Some(value) = self.values.get(position) {
                        value.show(values.get(first..).unwrap_or_default(), *format, &mut message);
                    }
                }
            }
        }
        message
    }
}

/// The reports in a buffer, from the given word on, and the word behind the last that is whole.
pub fn reports<'a>(sites: &[Site], words: &'a [u32], from: usize) -> (Vec<Reported<'a>>, usize) {
    let mut found = Vec::new();
    let asked = words.first().map_or(0, |asked| *asked as usize).saturating_add(BEGIN);
    let words = &words[..words.len().min(asked)];
    let mut at = from.max(BEGIN);
    while let Some(head) = words.get(at..at + HEAD)
        && let Some(site) = (head[0] as usize).checked_sub(1)
        && let Some(length) = sites.get(site).map(Site::words)
        && let Some(report) = words.get(at..at + length)
    {
        found.push(Reported { site, workgroup: [head[1], head[2], head[3]], local: head[4], values: &report[HEAD..] });
        at += length;
    }
    (found, at)
}

impl SiteValue {
    fn show(&self, words: &[u32], format: Format, out: &mut String) {
        let each = (self.scalar.bytes() / 4) as usize;
        let word = |position: usize| words.get(position).copied().unwrap_or(0);
        if let Some((_, name)) = self.names.iter().find(|(number, _)| *number == word(0)) {
            return pad(name, false, format, out);
        }
        if self.lanes > 1 {
            let _ = write!(out, "Vec{}(", self.lanes);
        }
        for lane in 0..self.lanes as usize {
            out.push_str(if lane == 0 { "" } else { ", " });
            let low = word(lane * each);
            let bits = if each == 2 { u64::from(word(lane * each + 1)) << 32 | u64::from(low) } else { low.into() };
            pad(&scalar(self.scalar, bits, format), self.scalar != ParamScalar::Bool, format, out);
        }
        if self.lanes > 1 {
            out.push(')');
        }
    }
}

/// A number or bool, before it is padded.
fn scalar(scalar: ParamScalar, bits: u64, format: Format) -> String {
    let low = bits as u32;
    match scalar {
        ParamScalar::Bool => (low != 0).to_string(),
        ParamScalar::F32 => float(f32::from_bits(low), format),
        ParamScalar::F64 => float(f64::from_bits(bits), format),
        ParamScalar::I32 => integer(low.cast_signed(), format),
        ParamScalar::I64 => integer(bits.cast_signed(), format),
        ParamScalar::U32 | ParamScalar::Index => integer(low, format),
        ParamScalar::U64 => integer(bits, format),
    }
}

fn float<F>(value: F, format: Format) -> String
where
    F: std::fmt::Display + std::fmt::Debug + std::fmt::LowerExp + std::fmt::UpperExp,
{
    match (format.style, format.precision) {
        (Style::Debug, None) => format!("{value:?}"),
        (Style::LowerExp, None) => format!("{value:e}"),
        (Style::UpperExp, None) => format!("{value:E}"),
        (Style::LowerExp, Some(digits)) => format!("{value:.*e}", digits as usize),
        (Style::UpperExp, Some(digits)) => format!("{value:.*E}", digits as usize),
        (_, Some(digits)) => format!("{value:.*}", digits as usize),
        // rustc refuses floats in other styles.
        (_, None) => value.to_string(),
    }
}

fn integer<I>(value: I, format: Format) -> String
where
    I: std::fmt::Display
        + std::fmt::LowerHex
        + std::fmt::UpperHex
        + std::fmt::Octal
        + std::fmt::Binary
        + std::fmt::LowerExp
        + std::fmt::UpperExp,
{
    match (format.style, format.alternate) {
        (Style::Display | Style::Debug, _) => value.to_string(),
        (Style::LowerHex, false) => format!("{value:x}"),
        (Style::LowerHex, true) => format!("{value:#x}"),
        (Style::UpperHex, false) => format!("{value:X}"),
        (Style::UpperHex, true) => format!("{value:#X}"),
        (Style::Octal, false) => format!("{value:o}"),
        (Style::Octal, true) => format!("{value:#o}"),
        (Style::Binary, false) => format!("{value:b}"),
        (Style::Binary, true) => format!("{value:#b}"),
        (Style::LowerExp, _) => format!("{value:e}"),
        (Style::UpperExp, _) => format!("{value:E}"),
    }
}

/// Numbers stand to the right of what they are padded with, and zeros behind sign and prefix; words stand to the left, as in Rust.
fn pad(text: &str, is_number: bool, format: Format, out: &mut String) {
    let missing = (format.width.unwrap_or(0) as usize).saturating_sub(text.chars().count());
    let is_finite = text.trim_start_matches('-').starts_with(|first: char| first.is_ascii_hexdigit());
    match (is_number, format.zeros && is_finite) {
        (true, true) => {
            let signs = usize::from(text.starts_with('-'));
            let prefixed = ["0x", "0o", "0b"].iter().any(|prefix| text[signs..].starts_with(prefix));
            let (before, digits) = text.split_at(signs + if prefixed { 2 } else { 0 });
            let _ = write!(out, "{before}{:0<missing$}{digits}", "");
        }
        (true, false) => {
            let _ = write!(out, "{:missing$}{text}", "");
        }
        (false, _) => {
            let _ = write!(out, "{text}{:missing$}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(scalar: ParamScalar, lanes: u32) -> SiteValue {
        SiteValue { scalar, lanes, names: List::Borrowed(&[]) }
    }

    fn shown(scalar: ParamScalar, words: &[u32], format: Format) -> String {
        let mut out = String::new();
        value(scalar, words.len() as u32 * 4 / scalar.bytes()).show(words, format, &mut out);
        out
    }

    #[test]
    fn values_are_shown_as_rust_shows_them() {
        let plain = Format::default();
        let style = |style| Format { style, ..plain };
        let x = -1.5f32;
        assert_eq!(shown(ParamScalar::F32, &[x.to_bits()], plain), format!("{x}"));
        assert_eq!(shown(ParamScalar::F32, &[2f32.to_bits()], style(Style::Debug)), format!("{:?}", 2f32));
        assert_eq!(shown(ParamScalar::F32, &[f32::NAN.to_bits()], plain), "NaN");
        let digits = Format { precision: Some(3), width: Some(9), zeros: true, ..plain };
        assert_eq!(shown(ParamScalar::F32, &[x.to_bits()], digits), format!("{x:09.3}"));
        assert_eq!(shown(ParamScalar::F32, &[x.to_bits()], style(Style::LowerExp)), format!("{x:e}"));
        assert_eq!(shown(ParamScalar::I32, &[u32::MAX], Format { width: Some(4), ..plain }), format!("{:4}", -1));
        let hex = Format { alternate: true, zeros: true, width: Some(10), ..style(Style::LowerHex) };
        assert_eq!(shown(ParamScalar::U32, &[0xbeef], hex), format!("{:#010x}", 0xbeef));
        assert_eq!(shown(ParamScalar::U64, &[1, 2], plain), (1u64 | 2 << 32).to_string());
        assert_eq!(shown(ParamScalar::I64, &[u32::MAX, u32::MAX], plain), "-1");
        let bits = 0.1f64.to_bits();
        assert_eq!(shown(ParamScalar::F64, &[bits as u32, (bits >> 32) as u32], plain), "0.1");
        assert_eq!(shown(ParamScalar::Bool, &[1], Format { width: Some(6), ..plain }), format!("{:6}", true));
        assert_eq!(shown(ParamScalar::I32, &[1, u32::MAX], plain), "Vec2(1, -1)");
    }

    #[test]
    fn reports_are_read_up_to_the_first_that_is_not_whole() {
        let site = |values: Vec<SiteValue>, text: Vec<Piece>| Site {
            file: "a.rs".into(),
            line: 3,
            column: 5,
            fails: true,
            text: text.into(),
            values: values.into(),
        };
        let sites = [
            site(vec![], vec![Piece::Text("none".into())]),
            site(
                vec![value(ParamScalar::U32, 2), value(ParamScalar::I32, 1)],
                vec![
                    Piece::Value(1, Format::default()),
                    Piece::Text(" of ".into()),
                    Piece::Value(0, Format::default()),
                ],
            ),
        ];
        let second = [2, 7, 0, 0, 31, 4, 5, u32::MAX];
        let words: Vec<u32> = [[18, 0].as_slice(), &second, &[1, 1, 2, 3, 0], &[0; 5]].concat();
        let (found, end) = reports(&sites, &words, 0);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].workgroup, found[0].local), ([7, 0, 0], 31));
        assert_eq!(sites[found[0].site].message(found[0].values), "-1 of Vec2(4, 5)");
        assert_eq!(found[1], Reported { site: 0, workgroup: [1, 2, 3], local: 0, values: &[] });
        assert_eq!(end, words.len() - 5);
        assert_eq!(reports(&sites, &words, end), (vec![], end));
        // What was asked for may be more than there is, and a buffer may hold anything.
        assert_eq!(reports(&sites, &[u32::MAX, 0, 2, 7], 2), (vec![], 2));
        assert_eq!(reports(&sites, &[u32::MAX, 0, 9, 7, 0, 0, 0], 2), (vec![], 2));
        assert_eq!(reports(&sites, &[], 0), (vec![], 2));
    }
}
