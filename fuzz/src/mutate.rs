//! Changes of kernels as text: words and what brackets hold are lost, doubled, swapped, exchanged, nested and taken from other kernels.
//!
//! The text stays Rust more often than bytes would, and so comes farther than the parser. Now and then libFuzzer changes bytes itself.

use std::ops::Range;

use crate::numbers::Numbers;
use crate::sources::{DICTIONARY, donors, names};
use crate::words::{Kind, joined, kind, unit, words};

/// Numbers at which something may end.
const NUMBERS: [&str; 28] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "31",
    "32",
    "33",
    "63",
    "64",
    "65",
    "127",
    "128",
    "255",
    "256",
    "1024",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
];

const FLOATS: [&str; 8] = ["0.0", "1.0", "-0.0", "1e38", "1e39", "1e400", "1e-45", "3.4028235e38"];

const SUFFIXES: [&str; 14] = ["", "", "", "u32", "i32", "usize", "f32", "f16", "u8", "i8", "i64", "u64", "f64", "bf16"];

/// What stands before and behind something that is nested in it.
const WRAPPERS: [(&str, &str); 22] = [
    ("(", ")"),
    ("-", ""),
    ("!", ""),
    ("&", ""),
    ("*", ""),
    ("{", "}"),
    ("[", ";1]"),
    ("[", "]"),
    ("1+(", ")"),
    ("1+", ""),
    ("", "+1"),
    ("", " as u32"),
    ("", ".min(1)"),
    ("min(1,", ")"),
    ("", "[0]"),
    ("if true{", "}else{1}"),
    ("if true{1}else ", ""),
    ("for i in 0..2{", "}"),
    ("loop{", "}"),
    ("match 0{_=>", "}"),
    ("Vec2::new(", ",1.0)"),
    ("|x|", ""),
];

/// Changes a text into another one of at most `most` bytes.
pub fn changed(text: &str, seed: u64, most: usize) -> String {
    let mut numbers = Numbers(seed);
    let mut all: Vec<String> = words(text).into_iter().map(str::to_owned).collect();
    for _ in 0..=numbers.below(4) * numbers.below(2) {
        change(&mut all, &mut numbers, most);
    }
    let mut text = joined(&all);
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Where a unit begins that is of that kind.
fn find(words: &[String], numbers: &mut Numbers, wanted: impl Fn(Kind) -> bool) -> Option<usize> {
    let start = numbers.below(words.len());
    (start..words.len()).chain(0..start).find(|at| wanted(kind(&words[*at])))
}

/// A run of some units that begins at any word.
fn run(words: &[String], numbers: &mut Numbers) -> Range<usize> {
    let start = numbers.below(words.len());
    let mut end = start;
    for _ in 0..=numbers.below(6) * numbers.below(2) {
        if end >= words.len() || (end > start && kind(&words[end]) == Kind::Close) {
            break;
        }
        end = unit(words, end).end;
    }
    start..end
}

/// The units from a position up to the next `;` or the end of the block: a statement, if it begins as one.
fn statement<T: AsRef<str>>(words: &[T], start: usize) -> Range<usize> {
    let mut end = start;
    while end < words.len() && kind(words[end].as_ref()) != Kind::Close {
        let next = unit(words, end);
        let (last, closed) = (words[end].as_ref() == ";", words[end].as_ref() == "{");
        end = next.end;
        if last || closed {
            break;
        }
    }
    start..end
}

/// Where statements and items begin.
fn boundaries<T: AsRef<str>>(words: &[T]) -> Vec<usize> {
    let begins = |at: &usize| *at == 0 || matches!(words[at - 1].as_ref(), ";" | "{" | "}");
    (0..words.len()).filter(begins).collect()
}

/// Statements or items of some file.
fn given(numbers: &mut Numbers) -> Vec<String> {
    let Some(donor) = numbers.pick(donors()) else { return Vec::new() };
    let starts = boundaries(donor);
    let Some(start) = numbers.pick(&starts) else { return Vec::new() };
    donor[statement(donor, *start)].iter().map(|word| (*word).to_owned()).collect()
}

fn number(numbers: &mut Numbers) -> String {
    let from: &[&str] = if numbers.below(4) == 0 { &FLOATS } else { &NUMBERS };
    let value = numbers.pick(from).copied().unwrap_or("0");
    format!("{value}{}", numbers.pick(&SUFFIXES).copied().unwrap_or(""))
}

/// One change.
fn change(all: &mut Vec<String>, numbers: &mut Numbers, most: usize) {
    if all.is_empty() {
        all.extend(given(numbers));
        return;
    }
    match numbers.below(16) {
        0 => {
            let run = run(all, numbers);
            all.drain(run);
        }
        1 => {
            let run = run(all, numbers);
            let copy = all[run.clone()].to_vec();
            all.splice(run.end..run.end, copy);
        }
        2 => swap(all, numbers),
        3 => {
            // Another word of the same text.
            if let Some(at) = find(all, numbers, |kind| kind != Kind::Open && kind != Kind::Close) {
                let own = kind(&all[at]);
                if let Some(other) = find(all, numbers, |kind| kind == own) {
                    all[at] = all[other].clone();
                }
            }
        }
        4 => {
            // A unit of another file.
            let Some(donor) = numbers.pick(donors()) else { return };
            let at = numbers.below(all.len());
            let own = kind(&all[at]);
            let start = numbers.below(donor.len());
            if let Some(other) = (start..donor.len()).chain(0..start).find(|other| kind(donor[*other]) == own) {
                let new: Vec<String> = donor[unit(donor, other)].iter().map(|word| (*word).to_owned()).collect();
                let old = unit(all, at);
                all.splice(old, new);
            }
        }
        5 | 6 => {
            if let Some(at) = find(all, numbers, |kind| kind == Kind::Number) {
                all[at] = number(numbers);
            }
        }
        7 => {
            if let Some(at) = find(all, numbers, |kind| kind == Kind::Name) {
                let own: Vec<&str> = DICTIONARY.split_ascii_whitespace().collect();
                let from = if numbers.below(2) == 0 { own.as_slice() } else { names() };
                all[at] = numbers.pick(from).copied().unwrap_or("x").to_owned();
            }
        }
        8 | 9 => {
            // A statement more, of this text or another.
            let starts = boundaries(all);
            let at = numbers.pick(&starts).copied().unwrap_or(0);
            let new = if numbers.below(2) == 0 {
                given(numbers)
            } else {
                let from = numbers.pick(&starts).copied().unwrap_or(0);
                all[statement(all, from)].to_vec()
            };
            all.splice(at..at, new);
        }
        10 => {
            let starts = boundaries(all);
            let at = numbers.pick(&starts).copied().unwrap_or(0);
            let gone = statement(all, at);
            all.drain(gone);
        }
        11 => nest(all, numbers, most),
        12 => {
            // Over and over.
            let run = run(all, numbers);
            let bytes: usize = all[run.clone()].iter().map(|word| word.len() + 1).sum();
            let times = (1 << numbers.below(11)).min(most / bytes.max(1));
            let copy: Vec<String> = std::iter::repeat_n(&all[run.clone()], times).flatten().cloned().collect();
            all.splice(run.end..run.end, copy);
        }
        13 => {
            // Every use of a name.
            let (Some(one), Some(other)) =
                (find(all, numbers, |kind| kind == Kind::Name), find(all, numbers, |kind| kind == Kind::Name))
            else {
                return;
            };
            let (old, mut new) = (all[one].clone(), all[other].clone());
            if numbers.below(2) == 0 {
                new = numbers.pick(names()).copied().unwrap_or("x").to_owned();
            }
            for word in all.iter_mut().filter(|word| **word == old) {
                word.clone_from(&new);
            }
        }
        14 => {
            let at = numbers.below(all.len());
            let new = if numbers.below(2) == 0 {
                numbers.pick(names()).copied().unwrap_or("x").to_owned()
            } else {
                number(numbers)
            };
            all.insert(at, new);
        }
        _ => {
            let mut bytes = joined(all).into_bytes();
            let size = bytes.len();
            bytes.resize(most.max(size), 0);
            let size = libfuzzer_sys::fuzzer_mutate(&mut bytes, size, most.max(size));
            bytes.truncate(size);
            let text = String::from_utf8_lossy(&bytes);
            *all = words(&text).into_iter().map(str::to_owned).collect();
        }
    }
}

/// Exchanges two units of a kind.
fn swap(all: &mut Vec<String>, numbers: &mut Numbers) {
    let one = numbers.below(all.len());
    let own = kind(&all[one]);
    let Some(other) = find(all, numbers, |kind| kind == own) else { return };
    let (first, second) = (unit(all, one.min(other)), unit(all, one.max(other)));
    if first.end > second.start {
        return;
    }
    let (left, right) = (all[first.clone()].to_vec(), all[second.clone()].to_vec());
    all.splice(second, left);
    all.splice(first, right);
}

/// Puts a unit into many of one thing, or of two.
fn nest(all: &mut Vec<String>, numbers: &mut Numbers, most: usize) {
    let inner = run(all, numbers);
    let pairs = [(); 2].map(|()| numbers.pick(&WRAPPERS).copied().unwrap_or(("", "")));
    let pairs = if numbers.below(2) == 0 { &pairs[..1] } else { &pairs[..] };
    let bytes: usize = pairs.iter().map(|(before, after)| before.len() + after.len() + 2).sum();
    let times = (1 << numbers.below(13)).min(most / bytes.max(1));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..times {
        for (open, close) in pairs {
            before.extend(words(open).into_iter().map(str::to_owned));
            after.extend(words(close).into_iter().rev().map(str::to_owned));
        }
    }
    after.reverse();
    all.splice(inner.end..inner.end, after);
    all.splice(inner.start..inner.start, before);
}

/// [`changed`] as libFuzzer calls it: in place, with the length of what it made.
pub fn in_place(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    let new = changed(&text, u64::from(seed), most);
    let bytes = new.as_bytes();
    let length = bytes.len().min(most).min(data.len());
    data[..length].copy_from_slice(&bytes[..length]);
    length
}
