//! Operations on 64-bit scalars: loops over lanes, as in [`super::lanes`], of two words each.

use super::lanes::mask;
use super::program::Wide;
use crate::meaning;

/// The registers of a result, and of up to three operands.
type Results = [*mut u32; 2];
type Operands = [*const u32; 6];

/// The 64-bit number of a lane, from the registers of its words.
#[inline(always)]
unsafe fn read(from: Operands, operand: usize, lane: usize) -> u64 {
    // SAFETY: the caller's registers have that many lanes.
    unsafe {
        let low = from[2 * operand].add(lane).read();
        let high = from[2 * operand + 1].add(lane).read();
        u64::from(low) | u64::from(high) << 32
    }
}

#[inline(always)]
unsafe fn write(to: Results, lane: usize, value: u64) {
    // SAFETY: as in `read`.
    unsafe {
        to[0].add(lane).write(value as u32);
        to[1].add(lane).write((value >> 32) as u32);
    }
}

#[inline(always)]
unsafe fn one(to: Results, from: Operands, lanes: usize, f: impl Fn(u64) -> u64) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { write(to, lane, f(read(from, 0, lane))) };
    }
}

#[inline(always)]
unsafe fn two(to: Results, from: Operands, lanes: usize, f: impl Fn(u64, u64) -> u64) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { write(to, lane, f(read(from, 0, lane), read(from, 1, lane))) };
    }
}

/// By an amount of one word.
#[inline(always)]
unsafe fn shift(to: Results, from: Operands, lanes: usize, f: impl Fn(u64, u32) -> u64) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { write(to, lane, f(read(from, 0, lane), from[2].add(lane).read())) };
    }
}

/// To one word.
#[inline(always)]
unsafe fn narrow(to: Results, from: Operands, lanes: usize, f: impl Fn(u64) -> u32) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { to[0].add(lane).write(f(read(from, 0, lane))) };
    }
}

/// From one word.
#[inline(always)]
unsafe fn widen(to: Results, from: Operands, lanes: usize, f: impl Fn(u32) -> u64) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { write(to, lane, f(from[0].add(lane).read())) };
    }
}

#[inline(always)]
unsafe fn compare(to: Results, from: Operands, lanes: usize, f: impl Fn(u64, u64) -> bool) {
    for lane in 0..lanes {
        // SAFETY: as in `read`.
        unsafe { to[0].add(lane).write(mask(f(read(from, 0, lane), read(from, 1, lane)))) };
    }
}

#[inline(always)]
fn double(f: impl Fn(f64) -> f64) -> impl Fn(u64) -> u64 {
    move |x| f(f64::from_bits(x)).to_bits()
}

#[inline(always)]
fn doubles(f: impl Fn(f64, f64) -> f64) -> impl Fn(u64, u64) -> u64 {
    move |x, y| f(f64::from_bits(x), f64::from_bits(y)).to_bits()
}

#[inline(always)]
fn order(f: impl Fn(f64, f64) -> bool) -> impl Fn(u64, u64) -> bool {
    move |x, y| f(f64::from_bits(x), f64::from_bits(y))
}

#[inline(always)]
fn signed(f: impl Fn(i64, i64) -> i64) -> impl Fn(u64, u64) -> u64 {
    move |x, y| f(x.cast_signed(), y.cast_signed()).cast_unsigned()
}

/// Runs an operation.
///
/// # Safety
/// The registers that the operation has words for have at least that many lanes, and results are no operands.
#[inline(always)]
pub(super) unsafe fn run(fused: bool, operation: Wide, to: Results, from: Operands, n: usize) {
    // SAFETY: the caller vouches for the registers.
    unsafe {
        match operation {
            Wide::Not => one(to, from, n, |x| !x),
            Wide::NegateInteger => one(to, from, n, u64::wrapping_neg),
            Wide::NegateFloat => one(to, from, n, |x| x ^ 1 << 63),
            Wide::AbsInteger => one(to, from, n, |x| x.cast_signed().wrapping_abs().cast_unsigned()),
            Wide::AbsFloat => one(to, from, n, |x| x & !(1 << 63)),
            Wide::SignumInteger => one(to, from, n, |x| x.cast_signed().signum().cast_unsigned()),
            Wide::Floor => one(to, from, n, double(f64::floor)),
            Wide::Ceil => one(to, from, n, double(f64::ceil)),
            Wide::RoundTiesEven => one(to, from, n, double(f64::round_ties_even)),
            Wide::Trunc => one(to, from, n, double(f64::trunc)),
            Wide::Sqrt => one(to, from, n, double(f64::sqrt)),
            Wide::Exp => one(to, from, n, double(f64::exp)),
            Wide::Exp2 => one(to, from, n, double(f64::exp2)),
            Wide::ExpM1 => one(to, from, n, double(f64::exp_m1)),
            Wide::Ln => one(to, from, n, double(f64::ln)),
            Wide::Log2 => one(to, from, n, double(f64::log2)),
            Wide::Log10 => one(to, from, n, double(f64::log10)),
            Wide::Ln1p => one(to, from, n, double(f64::ln_1p)),
            Wide::Sinh => one(to, from, n, double(f64::sinh)),
            Wide::Cosh => one(to, from, n, double(f64::cosh)),
            Wide::Tanh => one(to, from, n, double(f64::tanh)),
            Wide::Asinh => one(to, from, n, double(meaning::asinh)),
            Wide::Acosh => one(to, from, n, double(meaning::acosh)),
            Wide::Atanh => one(to, from, n, double(meaning::atanh)),
            Wide::Powf => two(to, from, n, doubles(f64::powf)),
            Wide::Sin => one(to, from, n, double(f64::sin)),
            Wide::Cos => one(to, from, n, double(f64::cos)),
            Wide::Tan => one(to, from, n, double(f64::tan)),
            Wide::Asin => one(to, from, n, double(f64::asin)),
            Wide::Acos => one(to, from, n, double(f64::acos)),
            Wide::Atan => one(to, from, n, double(f64::atan)),
            Wide::Atan2 => two(to, from, n, doubles(f64::atan2)),
            Wide::Erf => one(to, from, n, double(meaning::erf)),
            Wide::IsNan => narrow(to, from, n, |x| mask(f64::from_bits(x).is_nan())),
            Wide::IsInfinite => narrow(to, from, n, |x| mask(f64::from_bits(x).is_infinite())),
            Wide::Add => two(to, from, n, u64::wrapping_add),
            Wide::Subtract => two(to, from, n, u64::wrapping_sub),
            Wide::Multiply => two(to, from, n, u64::wrapping_mul),
            Wide::DivideUnsigned => two(to, from, n, |x, y| x.checked_div(y).unwrap_or(0)),
            Wide::DivideSigned => two(to, from, n, signed(|x, y| if y == 0 { 0 } else { x.wrapping_div(y) })),
            Wide::RemainderUnsigned => two(to, from, n, |x, y| x.checked_rem(y).unwrap_or(0)),
            Wide::RemainderSigned => two(to, from, n, signed(|x, y| if y == 0 { 0 } else { x.wrapping_rem(y) })),
            Wide::MinUnsigned => two(to, from, n, u64::min),
            Wide::MinSigned => two(to, from, n, signed(i64::min)),
            Wide::MaxUnsigned => two(to, from, n, u64::max),
            Wide::MaxSigned => two(to, from, n, signed(i64::max)),
            Wide::And => two(to, from, n, |x, y| x & y),
            Wide::Or => two(to, from, n, |x, y| x | y),
            Wide::Xor => two(to, from, n, |x, y| x ^ y),
            Wide::ShiftLeft => shift(to, from, n, u64::wrapping_shl),
            Wide::ShiftRightUnsigned => shift(to, from, n, u64::wrapping_shr),
            Wide::ShiftRightSigned => shift(to, from, n, |x, by| x.cast_signed().wrapping_shr(by).cast_unsigned()),
            Wide::AddFloat => two(to, from, n, doubles(|x, y| x + y)),
            Wide::SubtractFloat => two(to, from, n, doubles(|x, y| x - y)),
            Wide::MultiplyFloat => two(to, from, n, doubles(|x, y| x * y)),
            Wide::DivideFloat => two(to, from, n, doubles(|x, y| x / y)),
            Wide::RemainderFloat => two(to, from, n, doubles(|x, y| x % y)),
            Wide::MinFloat => two(to, from, n, doubles(f64::min)),
            Wide::MaxFloat => two(to, from, n, doubles(f64::max)),
            Wide::MulAdd => {
                for lane in 0..n {
                    let [x, y, z] = [0, 1, 2].map(|operand| f64::from_bits(read(from, operand, lane)));
                    let sum = if fused { x.mul_add(y, z) } else { x * y + z };
                    write(to, lane, sum.to_bits());
                }
            }
            Wide::Equal => compare(to, from, n, |x, y| x == y),
            Wide::NotEqual => compare(to, from, n, |x, y| x != y),
            Wide::LessUnsigned => compare(to, from, n, |x, y| x < y),
            Wide::LessEqualUnsigned => compare(to, from, n, |x, y| x <= y),
            Wide::LessSigned => compare(to, from, n, |x, y| x.cast_signed() < y.cast_signed()),
            Wide::LessEqualSigned => compare(to, from, n, |x, y| x.cast_signed() <= y.cast_signed()),
            Wide::EqualFloat => compare(to, from, n, order(|x, y| x == y)),
            Wide::NotEqualFloat => compare(to, from, n, order(|x, y| x != y)),
            Wide::LessFloat => compare(to, from, n, order(|x, y| x < y)),
            Wide::LessEqualFloat => compare(to, from, n, order(|x, y| x <= y)),
            Wide::ExtendUnsigned => widen(to, from, n, u64::from),
            Wide::ExtendSigned => widen(to, from, n, |x| i64::from(x.cast_signed()).cast_unsigned()),
            Wide::SingleToDouble => widen(to, from, n, |x| f64::from(f32::from_bits(x)).to_bits()),
            Wide::UnsignedToDouble => widen(to, from, n, |x| f64::from(x).to_bits()),
            Wide::SignedToDouble => widen(to, from, n, |x| f64::from(x.cast_signed()).to_bits()),
            Wide::SingleToUnsigned => widen(to, from, n, |x| f32::from_bits(x) as u64),
            Wide::SingleToSigned => widen(to, from, n, |x| (f32::from_bits(x) as i64).cast_unsigned()),
            Wide::LongUnsignedToDouble => one(to, from, n, |x| (x as f64).to_bits()),
            Wide::LongSignedToDouble => one(to, from, n, |x| (x.cast_signed() as f64).to_bits()),
            Wide::DoubleToLongUnsigned => one(to, from, n, |x| f64::from_bits(x) as u64),
            Wide::DoubleToLongSigned => one(to, from, n, |x| (f64::from_bits(x) as i64).cast_unsigned()),
            Wide::DoubleToSingle => narrow(to, from, n, |x| (f64::from_bits(x) as f32).to_bits()),
            Wide::DoubleToUnsigned => narrow(to, from, n, |x| f64::from_bits(x) as u32),
            Wide::DoubleToSigned => narrow(to, from, n, |x| (f64::from_bits(x) as i32).cast_unsigned()),
            Wide::LongUnsignedToSingle => narrow(to, from, n, |x| (x as f32).to_bits()),
            Wide::LongSignedToSingle => narrow(to, from, n, |x| (x.cast_signed() as f32).to_bits()),
        }
    }
}
