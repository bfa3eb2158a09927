//! Operations on whole registers: loops over lanes, which the compiler turns into vectors of the widest kind that the caller has.
//!
//! Every function here is inlined into its caller, which is compiled once for each instruction set. Pointers are to the first lanes
//! of registers; targets and operands are different registers.

use super::math;
use super::program::{Comparison, One, Two};
use super::run::lines::Line;

/// Applies `f` to the words of a register.
#[inline(always)]
unsafe fn map(to: *mut u32, a: *const u32, lanes: usize, f: impl Fn(u32) -> u32) {
    for i in 0..lanes {
        // SAFETY: the caller's registers have that many lanes.
        unsafe { to.add(i).write(f(a.add(i).read())) };
    }
}

/// Applies `f` to the words of two registers.
#[inline(always)]
unsafe fn zip(to: *mut u32, a: *const u32, b: *const u32, lanes: usize, f: impl Fn(u32, u32) -> u32) {
    for i in 0..lanes {
        // SAFETY: as in `map`.
        unsafe { to.add(i).write(f(a.add(i).read(), b.add(i).read())) };
    }
}

#[inline(always)]
fn float(f: impl Fn(f32) -> f32) -> impl Fn(u32) -> u32 {
    move |x| f(f32::from_bits(x)).to_bits()
}

#[inline(always)]
fn floats(f: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |x, y| f(f32::from_bits(x), f32::from_bits(y)).to_bits()
}

/// A bool as a register holds it.
#[inline(always)]
pub(super) const fn mask(value: bool) -> u32 {
    if value { u32::MAX } else { 0 }
}

/// Gives the loop of a comparison whether it holds between two words: one loop for each, so that none asks within.
macro_rules! compared {
    ($comparison:expr, |$holds:ident| $body:expr) => {
        compared!(@ $comparison, $holds, $body,
            Equal |x, y| x == y;
            NotEqual |x, y| x != y;
            LessUnsigned |x, y| x < y;
            LessEqualUnsigned |x, y| x <= y;
            LessSigned |x, y| x.cast_signed() < y.cast_signed();
            LessEqualSigned |x, y| x.cast_signed() <= y.cast_signed();
            EqualFloat |x, y| f32::from_bits(x) == f32::from_bits(y);
            NotEqualFloat |x, y| f32::from_bits(x) != f32::from_bits(y);
            LessFloat |x, y| f32::from_bits(x) < f32::from_bits(y);
            LessEqualFloat |x, y| f32::from_bits(x) <= f32::from_bits(y);
        )
    };
    (@ $comparison:expr, $holds:ident, $body:expr, $($name:ident |$x:ident, $y:ident| $of:expr;)*) => {
        match $comparison {
            $(Comparison::$name => {
                let $holds = |$x: u32, $y: u32| $of;
                $body
            })*
        }
    };
}

/// Sine or cosine: quickly if all angles are moderate.
#[inline(always)]
unsafe fn angle(to: *mut u32, a: *const u32, lanes: usize, quick: impl Fn(f32) -> f32, any: impl Fn(f32) -> f32) {
    let mut moderate = true;
    for i in 0..lanes {
        // SAFETY: as in `map`.
        moderate &= f32::from_bits(unsafe { a.add(i).read() }).abs() <= math::MODERATE_ANGLE;
    }
    // SAFETY: as in `map`.
    unsafe { if moderate { map(to, a, lanes, float(quick)) } else { map(to, a, lanes, float(any)) } }
}

/// Runs an operation on one register.
///
/// # Safety
/// The pointers are to different registers of at least that many lanes.
#[inline(always)]
pub(super) unsafe fn one(operation: One, to: *mut u32, a: *const u32, n: usize) {
    let signum = |x: f32| x.signum();
    // SAFETY: the caller vouches for the registers.
    unsafe {
        match operation {
            One::Not => map(to, a, n, |x| !x),
            One::NegateFloat => map(to, a, n, |x| x ^ 0x8000_0000),
            One::NegateInteger => map(to, a, n, u32::wrapping_neg),
            One::AbsFloat => map(to, a, n, |x| x & 0x7fff_ffff),
            One::AbsInteger => map(to, a, n, |x| x.cast_signed().wrapping_abs().cast_unsigned()),
            One::SignumFloat => map(to, a, n, float(signum)),
            One::SignumInteger => map(to, a, n, |x| x.cast_signed().signum().cast_unsigned()),
            One::Floor => map(to, a, n, float(f32::floor)),
            One::Ceil => map(to, a, n, float(f32::ceil)),
            One::RoundTiesEven => map(to, a, n, float(f32::round_ties_even)),
            One::Trunc => map(to, a, n, float(f32::trunc)),
            One::Sqrt => map(to, a, n, float(f32::sqrt)),
            One::InverseSqrt => map(to, a, n, float(|x| 1.0 / x.sqrt())),
            One::Exp => map(to, a, n, float(math::exp)),
            One::Exp2 => map(to, a, n, float(math::exp2)),
            One::Ln => map(to, a, n, float(math::ln)),
            One::Log2 => map(to, a, n, float(math::log2)),
            One::Sin => angle(to, a, n, math::sin, f32::sin),
            One::Cos => angle(to, a, n, math::cos, f32::cos),
            One::Tan => map(to, a, n, float(f32::tan)),
            One::Tanh => map(to, a, n, float(math::tanh)),
            One::Atan => map(to, a, n, float(f32::atan)),
            One::Erf => map(to, a, n, float(math::erf)),
            One::IsNan => map(to, a, n, |x| mask(x & 0x7fff_ffff > 0x7f80_0000)),
            One::IsInfinite => map(to, a, n, |x| mask(x & 0x7fff_ffff == 0x7f80_0000)),
            One::CountOnes => map(to, a, n, u32::count_ones),
            One::LeadingZeros => map(to, a, n, u32::leading_zeros),
            One::TrailingZeros => map(to, a, n, u32::trailing_zeros),
            One::FloatToUnsigned => map(to, a, n, |x| f32::from_bits(x) as u32),
            One::FloatToSigned => map(to, a, n, |x| (f32::from_bits(x) as i32).cast_unsigned()),
            One::UnsignedToFloat => map(to, a, n, |x| (x as f32).to_bits()),
            One::SignedToFloat => map(to, a, n, |x| (x.cast_signed() as f32).to_bits()),
            One::HalfToFloat => map(to, a, n, |x| math::half_to_f32(x).to_bits()),
            One::FloatToHalf => map(to, a, n, |x| math::f32_to_half(f32::from_bits(x))),
            One::NearestHalf => map(to, a, n, |x| math::half_to_f32(math::f32_to_half(f32::from_bits(x))).to_bits()),
            One::NearestBrain => map(to, a, n, |x| math::f32_to_brain(f32::from_bits(x)) << 16),
            One::WrapI8 => map(to, a, n, |x| i32::from((x as u8).cast_signed()).cast_unsigned()),
            One::WrapU8 => map(to, a, n, |x| x & 0xff),
            One::WrapI16 => map(to, a, n, |x| i32::from((x as u16).cast_signed()).cast_unsigned()),
            One::WrapU16 => map(to, a, n, |x| x & 0xffff),
            One::Upper => map(to, a, n, |x| x >> 16),
            One::FromUpper => map(to, a, n, |x| x << 16),
            One::BoolToInteger => map(to, a, n, |x| x & 1),
            One::BoolToFloat => map(to, a, n, |x| x & 1.0f32.to_bits()),
            One::NotZero => map(to, a, n, |x| mask(x != 0)),
            One::NotZeroFloat => map(to, a, n, |x| mask(f32::from_bits(x) != 0.0)),
            One::LowHalf => map(to, a, n, |x| x & 0xffff),
            One::HighHalf => map(to, a, n, |x| x >> 16),
        }
    }
}

/// Runs an operation on two registers.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn two(operation: Two, to: *mut u32, a: *const u32, b: *const u32, n: usize) {
    let signed = |f: fn(i32, i32) -> i32| move |x: u32, y: u32| f(x.cast_signed(), y.cast_signed()).cast_unsigned();
    // SAFETY: the caller vouches for the registers.
    unsafe {
        match operation {
            Two::AddFloat => zip(to, a, b, n, floats(|x, y| x + y)),
            Two::SubtractFloat => zip(to, a, b, n, floats(|x, y| x - y)),
            Two::MultiplyFloat => zip(to, a, b, n, floats(|x, y| x * y)),
            Two::DivideFloat => zip(to, a, b, n, floats(|x, y| x / y)),
            Two::RemainderFloat => zip(to, a, b, n, floats(|x, y| x % y)),
            Two::MinFloat => zip(to, a, b, n, floats(f32::min)),
            Two::MaxFloat => zip(to, a, b, n, floats(f32::max)),
            // Of two zeros it is the first, as no order of theirs is promised.
            Two::MinFloatOrNan => zip(to, a, b, n, floats(|x, y| if x <= y || x.is_nan() { x } else { y })),
            Two::MaxFloatOrNan => zip(to, a, b, n, floats(|x, y| if x >= y || x.is_nan() { x } else { y })),
            Two::Copysign => zip(to, a, b, n, |x, y| (x & 0x7fff_ffff) | (y & 0x8000_0000)),
            Two::Powf => zip(to, a, b, n, floats(math::powf)),
            Two::Atan2 => zip(to, a, b, n, floats(f32::atan2)),
            Two::Add => zip(to, a, b, n, u32::wrapping_add),
            Two::Subtract => zip(to, a, b, n, u32::wrapping_sub),
            Two::Multiply => zip(to, a, b, n, u32::wrapping_mul),
            Two::DivideUnsigned => zip(to, a, b, n, math::divide_u32),
            Two::DivideSigned => zip(to, a, b, n, signed(math::divide_i32)),
            Two::RemainderUnsigned => zip(to, a, b, n, |x, y| {
                // x % 0 is 0, and x - x is too.
                let rest = x.wrapping_sub(math::divide_u32(x, y).wrapping_mul(y));
                if y == 0 { 0 } else { rest }
            }),
            Two::RemainderSigned => zip(to, a, b, n, |x, y| {
                let quotient = math::divide_i32(x.cast_signed(), y.cast_signed()).cast_unsigned();
                let rest = x.wrapping_sub(quotient.wrapping_mul(y));
                if y == 0 { 0 } else { rest }
            }),
            Two::MinUnsigned => zip(to, a, b, n, u32::min),
            Two::MinSigned => zip(to, a, b, n, signed(i32::min)),
            Two::MaxUnsigned => zip(to, a, b, n, u32::max),
            Two::MaxSigned => zip(to, a, b, n, signed(i32::max)),
            Two::And => zip(to, a, b, n, |x, y| x & y),
            Two::Or => zip(to, a, b, n, |x, y| x | y),
            Two::Xor => zip(to, a, b, n, |x, y| x ^ y),
            Two::ShiftLeft => zip(to, a, b, n, u32::wrapping_shl),
            Two::ShiftRightUnsigned => zip(to, a, b, n, u32::wrapping_shr),
            Two::ShiftRightSigned => zip(to, a, b, n, |x, y| x.cast_signed().wrapping_shr(y).cast_unsigned()),
            Two::Compare(comparison) => compared!(comparison, |holds| zip(to, a, b, n, |x, y| mask(holds(x, y)))),
            Two::Pair => zip(to, a, b, n, |x, y| (x & 0xffff) | (y << 16)),
        }
    }
}

/// `a * b + c`; in one rounding where `fused`.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn multiply_add(
    fused: bool,
    to: *mut u32,
    a: *const u32,
    b: *const u32,
    c: *const u32,
    lanes: usize,
) {
    for i in 0..lanes {
        // SAFETY: the caller vouches for the registers.
        unsafe {
            let (x, y, z) =
                (f32::from_bits(a.add(i).read()), f32::from_bits(b.add(i).read()), f32::from_bits(c.add(i).read()));
            let sum = if fused { x.mul_add(y, z) } else { x * y + z };
            to.add(i).write(sum.to_bits());
        }
    }
}

/// Takes lanes of `a` where `condition` is all ones, of `b` elsewhere.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn select(to: *mut u32, condition: *const u32, a: *const u32, b: *const u32, lanes: usize) {
    for i in 0..lanes {
        // SAFETY: the caller vouches for the registers.
        unsafe {
            let chosen = condition.add(i).read();
            to.add(i).write((a.add(i).read() & chosen) | (b.add(i).read() & !chosen));
        }
    }
}

/// Takes lanes of `accept` where a comparison of `a` with `b` holds, of `reject` elsewhere.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn choose(
    comparison: Comparison,
    to: *mut u32,
    [a, b, accept, reject]: [*const u32; 4],
    lanes: usize,
) {
    compared!(comparison, |holds| for i in 0..lanes {
        // SAFETY: the caller vouches for the registers.
        unsafe {
            let chosen = mask(holds(a.add(i).read(), b.add(i).read()));
            to.add(i).write((accept.add(i).read() & chosen) | (reject.add(i).read() & !chosen));
        }
    });
}

/// Whether some lanes of a mask are set, and whether all are.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn any_and_all(a: *const u32, lanes: usize) -> (bool, bool) {
    let (mut any, mut all) = (0, u32::MAX);
    for i in 0..lanes {
        // SAFETY: the caller vouches for the register.
        let word = unsafe { a.add(i).read() };
        any |= word;
        all &= word;
    }
    (any != 0, all == u32::MAX)
}

/// Whether each lane holds what a line has there.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn even(a: *const u32, line: Line, lanes: usize) -> bool {
    let mut differs = 0;
    for i in 0..lanes {
        // SAFETY: the caller vouches for the register.
        differs |= unsafe { a.add(i).read() } ^ line.at(i);
    }
    differs == 0
}

/// The largest number.
///
/// # Safety
/// As [`one`].
#[inline(always)]
pub(super) unsafe fn largest(a: *const u32, lanes: usize) -> u32 {
    // SAFETY: the caller vouches for the register.
    (0..lanes).fold(0, |most, i| most.max(unsafe { a.add(i).read() }))
}
