//! Shares: how many elements of a buffer each workgroup has to itself, and so how many workgroups may run at once where that is relied on.
//!
//! Of some buffers the verifier proves that every workgroup touches a block of its own, each as long as the others and behind the one of the workgroup before (`verify::disjoint`): its
//! *share*. The CPU's threads access such a buffer plainly. But indices wrap: behind 2^32 elements the blocks come round to where the first of them are, and a
//! workgroup that has its block there touches what one of the first touches. So workgroups are apart as long as no more of them run at once, one behind the other in the grid, than have
//! 2^32 elements together. Of indices of 64 bits no more is relied on: what a kernel computed in words before it made indices of it wraps there too, and so many elements are
//! enough for all threads.
//!
//! How large a share is may depend on parameters and lengths, so that a launch finds it out from its parameter block: by [`ShareStep`]s, of which
//! an operation takes the last results. Numbers are whole ones and do not wrap, but where a step says so.
//!
//! Nothing here is of another module, so that a test builds it into a program without this crate.

/// Behind so many elements, indices of 32 bits begin again.
const ROUND: i128 = 1 << 32;

/// A step on the way to the number of elements of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareStep {
    /// A number.
    Number(i128),
    /// The 32 bits at a byte of the parameter block, without a sign.
    Word(u32),
    /// The 32 bits at a byte of the parameter block, with a sign.
    Signed(u32),
    /// The 64 bits at a byte of the parameter block, without a sign.
    Long(u32),
    /// The last result as an integer type of 32 or 64 bits holds it.
    Wrap {
        /// Whether the type has a sign.
        signed: bool,
        /// Whether it has 64 bits.
        wide: bool,
    },
    /// The sum of the last two results.
    Add,
    /// Their product.
    Multiply,
    /// Their quotient, toward zero; by 0 it is 0.
    Divide,
    /// What remains of their division; by 0 it is 0.
    Remainder,
    /// The bits that are set in both.
    And,
    /// The bits that are set in one of them.
    Or,
    /// The bits in which they differ.
    Xor,
    /// The first of them, with its bits moved up by as many places as the second says.
    ShiftLeft,
    /// The same down, where the sign stays.
    ShiftRight,
    /// The lesser of them.
    Min,
    /// The greater of them.
    Max,
}

/// How many workgroups may run at once, one behind the other in the grid, in a launch with that parameter block: one at least. Where no buffer is divided among workgroups, which is
/// said by no steps, all of them.
#[must_use]
pub fn at_once(share: &[ShareStep], params: &[u8]) -> u64 {
    if share.is_empty() {
        return u64::MAX;
    }
    // What cannot be computed may be any number.
    let elements = elements(share, params).unwrap_or(ROUND);
    // A workgroup that has none touches none.
    u64::try_from((ROUND / elements.max(1)).max(1)).unwrap_or(1)
}

/// The elements of a share; nothing where the steps are none that lead to a number, or the block is too short for them.
fn elements(share: &[ShareStep], params: &[u8]) -> Option<i128> {
    let word = |at: u32| Some(u32::from_le_bytes(*params.get(at as usize..)?.first_chunk::<4>()?));
    let mut results: Vec<i128> = Vec::new();
    for step in share {
        let result = match *step {
            ShareStep::Number(number) => number,
            ShareStep::Word(at) => word(at)?.into(),
            ShareStep::Signed(at) => word(at)?.cast_signed().into(),
            ShareStep::Long(at) => u64::from_le_bytes(*params.get(at as usize..)?.first_chunk::<8>()?).into(),
            ShareStep::Wrap { signed, wide } => {
                let (number, round) = (results.pop()?, if wide { 1i128 << 64 } else { ROUND });
                let wrapped = number.rem_euclid(round);
                if signed && wrapped >= round / 2 { wrapped - round } else { wrapped }
            }
            operation => {
                let (right, left) = (results.pop()?, results.pop()?);
                binary(operation, left, right)?
            }
        };
        results.push(result);
    }
    match results.as_slice() {
        [elements] => Some(*elements),
        _ => None,
    }
}

/// The result of a step that takes two; nothing of one that does not, or where 128 bits do not hold it.
fn binary(operation: ShareStep, left: i128, right: i128) -> Option<i128> {
    // Steps before it have taken the amount modulo the bits of the type.
    let amount = || u32::try_from(right).ok().filter(|amount| *amount < 64);
    match operation {
        ShareStep::Add => left.checked_add(right),
        ShareStep::Multiply => left.checked_mul(right),
        ShareStep::Divide | ShareStep::Remainder if right == 0 => Some(0),
        ShareStep::Divide => left.checked_div(right),
        ShareStep::Remainder => left.checked_rem(right),
        ShareStep::And => Some(left & right),
        ShareStep::Or => Some(left | right),
        ShareStep::Xor => Some(left ^ right),
        ShareStep::ShiftLeft => left.checked_mul(1i128 << amount()?),
        ShareStep::ShiftRight => Some(left >> amount()?),
        ShareStep::Min => Some(left.min(right)),
        ShareStep::Max => Some(left.max(right)),
        ShareStep::Number(_)
        | ShareStep::Word(_)
        | ShareStep::Signed(_)
        | ShareStep::Long(_)
        | ShareStep::Wrap { .. } => None,
    }
}
