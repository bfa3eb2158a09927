//! Modules ask that infinities, NaNs and the sign of zero are kept; a device that does not know how is given them without the request.

/// SPIR-V's header, in words.
const HEADER: usize = 5;
const OP_EXECUTION_MODE: u32 = 16;
const OP_CAPABILITY: u32 = 17;
const OP_FUNCTION: u32 = 54;
/// The mode, whose operand is a width, and the capability that goes with it.
const MODE: u32 = 4461;
const CAPABILITY: u32 = 4466;

/// Takes the request away for floats of 32 and of 64 bits where the device does not know it. All of it stands before the first function.
pub(crate) fn without_unknown_modes(words: &mut Vec<u32>, known: [bool; 2]) {
    if known == [true; 2] {
        return;
    }
    let is_unknown = |instruction: &[u32]| match *instruction {
        [first, _, MODE, width] if first & 0xffff == OP_EXECUTION_MODE => !known[usize::from(width == 64)],
        [first, CAPABILITY] if first & 0xffff == OP_CAPABILITY => known == [false; 2],
        _ => false,
    };
    let mut at = HEADER;
    while let Some(first) = words.get(at).copied().filter(|first| first & 0xffff != OP_FUNCTION) {
        // No instruction is empty, and none is longer than what is left: emitters wrote them.
        let end = (at + (first >> 16).max(1) as usize).min(words.len());
        if is_unknown(&words[at..end]) {
            words.drain(at..end);
        } else {
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both modes with their capability, and another of each kind.
    fn module() -> Vec<u32> {
        let mut words = vec![0x0723_0203, 0x0001_0500, 0, 9, 0];
        words.extend([2 << 16 | OP_CAPABILITY, 1, 2 << 16 | OP_CAPABILITY, CAPABILITY]);
        words.extend([6 << 16 | OP_EXECUTION_MODE, 4, 17, 64, 1, 1]);
        words.extend([4 << 16 | OP_EXECUTION_MODE, 4, MODE, 32, 4 << 16 | OP_EXECUTION_MODE, 4, MODE, 64]);
        words.extend([5 << 16 | OP_FUNCTION, 1, 2, 0, 3]);
        words
    }

    #[test]
    fn what_a_device_knows_is_left() {
        let given = |known| {
            let mut words = module();
            without_unknown_modes(&mut words, known);
            let has = |part: &[u32]| words.windows(part.len()).any(|window| window == part);
            ([CAPABILITY, 17].map(|word| has(&[word])), [32, 64].map(|width| has(&[MODE, width])), words.len())
        };
        assert_eq!(given([true, true]), ([true; 2], [true; 2], 28));
        assert_eq!(given([true, false]), ([true; 2], [true, false], 24));
        assert_eq!(given([false, true]), ([true; 2], [false, true], 24));
        assert_eq!(given([false, false]), ([false, true], [false; 2], 18));
    }
}
