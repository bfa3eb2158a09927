//! What texts of variants have in common, as source text once.
//!
//! The text for another dialect, or for parameters that travel another way, is the same but for a few lines. Both are put together from parts when the author's crate
//! is compiled, which is a copy, while everything that stands in a source is read, checked and kept several times over.

/// How much of two texts' literals is the same: so many bytes at their beginnings and at their ends. Nothing, if that is too little to be worth its while.
pub fn ends(one: &str, other: &str) -> Option<[usize; 2]> {
    let most = one.len().min(other.len());
    let equal = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
    // Whole lines: a line's end is no part of a character or of an escape.
    let begin = equal(&mut one.bytes().zip(other.bytes()));
    let begin = one.as_bytes()[..begin].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = equal(&mut one.bytes().rev().zip(other.bytes().rev()).take(most - begin));
    let end = one.as_bytes()[one.len() - end..].iter().position(|byte| *byte == b'\n').map_or(0, |at| end - at - 1);
    (4 * (begin + end) >= 3 * most).then_some([begin, end])
}

#[cfg(test)]
mod tests {
    use super::ends;

    #[test]
    fn texts_share_whole_lines() {
        let line = "a line like many others;\\\n";
        let long = line.repeat(8);
        let text = |middle: &str| format!("{long}{middle}{long}");
        for (one, other) in [("x\n", "y\n"), ("", "y\n"), ("xö\n", "xä\n"), ("x\ny\nx\n", "x\n"), ("", "")] {
            let (one, other) = (text(one), text(other));
            let [begin, end] = ends(&one, &other).unwrap();
            assert!(begin + end <= one.len().min(other.len()), "{one:?} {other:?}");
            // At the end, a line more than what differs may be left out.
            assert!(begin >= long.len() && begin + end + line.len() >= 2 * long.len(), "{one:?} {other:?}");
            assert_eq!(one[..begin], other[..begin]);
            assert_eq!(one[one.len() - end..], other[other.len() - end..]);
            for text in [&one[..begin], &one[..one.len() - end], &other[..other.len() - end]] {
                assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
            }
        }
        assert!(ends("one\n", "other\n").is_none());
        assert!(ends(&long, "another\n").is_none());
    }
}
