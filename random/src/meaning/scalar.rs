//! What operators and functions mean for one lane: the table of the IR's essay, said once more in plain Rust.

use trefoil_codegen::ir::{BinaryOperator, MathFunction, Scalar};

use super::elementary::elementary;
use crate::interval::{Interval, Reject, nearest};
use crate::value::{Value, bits_of, cut, float, integer};

/// A mistake of the generator: a value of another type than its expression's.
const MISTYPED: Reject = "a value is of the wrong type";

pub(super) fn word(value: &Value) -> Result<u64, Reject> {
    match value {
        Value::Word(bits) => Ok(*bits),
        _ => Err(MISTYPED),
    }
}

pub(super) fn interval(value: &Value) -> Result<Interval, Reject> {
    match value {
        Value::Float(interval) => Ok(*interval),
        _ => Err(MISTYPED),
    }
}

fn of(scalar: Scalar, value: i128) -> Value {
    Value::Word(cut(scalar, value as u64))
}

/// `a operator b`, of two values of a scalar type; a shift's amount is a `u32`.
pub(super) fn binary(operator: BinaryOperator, scalar: Scalar, a: &Value, b: &Value) -> Result<Value, Reject> {
    use BinaryOperator as B;
    if scalar.is_float() {
        let (a, b) = (interval(a)?, interval(b)?);
        let less = |a: Interval, b: Interval| {
            if a.high < b.low {
                Ok(true)
            } else if a.low >= b.high {
                Ok(false)
            } else {
                Err("a decision depends on a rounding")
            }
        };
        let equal = || match (a.exact(), b.exact()) {
            (Some(a), Some(b)) => Ok(a == b),
            _ if a.high < b.low || b.high < a.low => Ok(false),
            _ => Err("an equality depends on a rounding"),
        };
        let bool = |value: bool| Ok(Value::Word(value.into()));
        return match operator {
            B::Add => a.add(b, scalar).map(Value::Float),
            B::Subtract => a.subtract(b, scalar).map(Value::Float),
            B::Multiply => a.multiply(b, scalar).map(Value::Float),
            B::Divide => a.divide(b, scalar).map(Value::Float),
            B::Remainder => a.remainder(b, scalar).map(Value::Float),
            B::Equal => bool(equal()?),
            B::NotEqual => bool(!equal()?),
            B::Less => bool(less(a, b)?),
            B::GreaterEqual => bool(!less(a, b)?),
            B::Greater => bool(less(b, a)?),
            B::LessEqual => bool(!less(b, a)?),
            _ => Err(MISTYPED),
        };
    }
    let (x, y) = (word(a)?, word(b)?);
    if matches!(operator, B::ShiftLeft | B::ShiftRight) {
        let amount = (y as u32) % scalar.bits();
        let value = integer(scalar, x);
        return Ok(of(scalar, if operator == B::ShiftLeft { value << amount } else { value >> amount }));
    }
    let (a, b) = (integer(scalar, x), integer(scalar, y));
    Ok(match operator {
        B::Add => of(scalar, a + b),
        B::Subtract => of(scalar, a - b),
        B::Multiply => of(scalar, a.wrapping_mul(b)),
        B::Divide => of(scalar, if b == 0 { 0 } else { a / b }),
        B::Remainder => of(scalar, if b == 0 { 0 } else { a % b }),
        B::And => Value::Word(x & y),
        B::Or => Value::Word(x | y),
        B::Xor => Value::Word(x ^ y),
        _ => Value::Word(
            match operator {
                B::Equal => a == b,
                B::NotEqual => a != b,
                B::Less => a < b,
                B::LessEqual => a <= b,
                B::Greater => a > b,
                _ => a >= b,
            }
            .into(),
        ),
    })
}

/// `-a`
pub(super) fn negate(scalar: Scalar, a: &Value) -> Result<Value, Reject> {
    if scalar.is_float() {
        return Ok(Value::Float(interval(a)?.negate()));
    }
    Ok(of(scalar, -integer(scalar, word(a)?)))
}

/// `a as to`
pub(super) fn convert(from: Scalar, to: Scalar, a: &Value) -> Result<Value, Reject> {
    match (from.is_float(), to.is_float()) {
        (true, true) => interval(a)?.convert(to).map(Value::Float),
        (true, false) => Ok(of(to, interval(a)?.integer(to)?)),
        (false, true) => {
            let value = integer(from, word(a)?);
            // Of 64 bits to 32, a detour by doubles would round twice.
            let nearest = if to == Scalar::F64 { value as f64 } else { f64::from(value as f32) };
            Ok(Value::Float(Interval::point(nearest)))
        }
        (false, false) => Ok(of(to, integer(from, word(a)?))),
    }
}

/// The same bits as another type.
pub(super) fn bitcast(from: Scalar, to: Scalar, a: &Value) -> Result<Value, Reject> {
    let bits = if from.is_float() {
        match interval(a)?.exact() {
            Some(value) if value != 0.0 => bits_of(from, value),
            _ => return Err("bits depend on a rounding"),
        }
    } else {
        word(a)?
    };
    if !to.is_float() {
        return Ok(Value::Word(cut(to, bits)));
    }
    let value = float(to, bits);
    if value.is_finite() && (value == 0.0 || bounded_away(to, value)) {
        Interval::point(value).bounded(to).map(Value::Float)
    } else {
        Err("bits of a float that has no bound")
    }
}

/// Whether a number is no denormal.
fn bounded_away(scalar: Scalar, value: f64) -> bool {
    Interval::point(value).bounded(scalar).is_ok_and(|interval| interval.exact().is_some())
}

/// A function of lanes of one scalar type.
pub(super) fn math(function: MathFunction, scalar: Scalar, given: &[Value]) -> Result<Value, Reject> {
    use MathFunction as M;
    if scalar.is_float() {
        let x = given.iter().map(interval).collect::<Result<Vec<_>, _>>()?;
        // What is computed here is finite.
        if matches!(function, M::IsNan | M::IsInfinite) {
            return Ok(Value::Word(0));
        }
        let even = |value: f64| value.round_ties_even();
        return Ok(Value::Float(match function {
            M::Abs => x[0].abs(),
            M::Min => x[0].min(x[1]),
            M::Max => x[0].max(x[1]),
            M::Clamp => x[0].max(x[1]).min(x[2]),
            M::Signum => x[0].signum(),
            M::Floor => x[0].rising(f64::floor),
            M::Ceil => x[0].rising(f64::ceil),
            M::Trunc => x[0].rising(f64::trunc),
            M::Round => x[0].rising(f64::round),
            M::RoundTiesEven => x[0].rising(even),
            M::Fract => x[0].fract(scalar)?,
            M::Copysign => x[0].copysign(x[1]),
            M::Sqrt => x[0].sqrt(scalar)?,
            M::InverseSqrt => Interval::point(1.0).divide(x[0].sqrt(scalar)?, scalar)?,
            M::MulAdd => x[0].multiply(x[1], scalar)?.add(x[2], scalar)?,
            M::Mix => {
                let rest = Interval::point(1.0).subtract(x[2], scalar)?;
                x[0].multiply(rest, scalar)?.add(x[1].multiply(x[2], scalar)?, scalar)?
            }
            M::Step => Interval::between(
                if x[0].high <= x[1].low { 1.0 } else { 0.0 },
                if x[0].low <= x[1].high { 1.0 } else { 0.0 },
            ),
            M::Smoothstep => {
                let (low, high, at) = (x[0], x[1], x[2]);
                let t = at.subtract(low, scalar)?.divide(high.subtract(low, scalar)?, scalar)?;
                let t = t.max(Interval::point(0.0)).min(Interval::point(1.0));
                let rest = Interval::point(3.0).subtract(Interval::point(2.0).multiply(t, scalar)?, scalar)?;
                t.multiply(t, scalar)?.multiply(rest, scalar)?
            }
            M::RemEuclid => {
                let rest = x[0].remainder(x[1], scalar)?;
                match (rest.low >= 0.0, rest.high < 0.0) {
                    (true, _) => rest,
                    (_, true) => rest.add(x[1].abs(), scalar)?,
                    _ => return Err("a remainder is at its edge"),
                }
            }
            _ => elementary(function, scalar, &x)?,
        }));
    }
    let words = given.iter().map(word).collect::<Result<Vec<_>, _>>()?;
    let number = |index: usize| integer(scalar, words[index]);
    let x = words[0] as u32;
    let bits = |value: u32| Ok(Value::Word(value.into()));
    let counts = |index: usize| {
        let offset = (words[index] as u32).min(32);
        (offset, (words[index + 1] as u32).min(32 - offset))
    };
    let mask = |count: u32| if count == 32 { u32::MAX } else { (1u32 << count) - 1 };
    match function {
        M::Abs => Ok(of(scalar, number(0).abs())),
        M::Min => Ok(of(scalar, number(0).min(number(1)))),
        M::Max => Ok(of(scalar, number(0).max(number(1)))),
        M::Clamp => Ok(of(scalar, number(0).max(number(1)).min(number(2)))),
        M::Signum => Ok(of(scalar, number(0).signum())),
        M::RemEuclid => Ok(of(scalar, if number(1) == 0 { 0 } else { number(0).rem_euclid(number(1)) })),
        M::CountOnes => bits(x.count_ones()),
        M::LeadingZeros => bits(x.leading_zeros()),
        M::TrailingZeros => bits(x.trailing_zeros()),
        M::ReverseBits => bits(x.reverse_bits()),
        M::RotateLeft => bits(x.rotate_left(words[1] as u32 % 32)),
        M::RotateRight => bits(x.rotate_right(words[1] as u32 % 32)),
        M::ExtractBits => {
            let (offset, count) = counts(1);
            if count == 0 {
                return bits(0);
            }
            let field = x.wrapping_shr(offset) & mask(count);
            let signed = (field << (32 - count)).cast_signed() >> (32 - count);
            bits(if scalar.is_signed() { signed.cast_unsigned() } else { field })
        }
        M::InsertBits => {
            let (offset, count) = counts(2);
            if count == 0 {
                return bits(x);
            }
            let field = mask(count) << offset;
            bits(x & !field | (words[1] as u32) << offset & field)
        }
        M::MulHigh => Ok(of(scalar, (number(0) * number(1)) >> 32)),
        M::Dot4I8 | M::Dot4U8 => {
            let byte = |word: u64, index: u32| (word >> (8 * index)) as u8;
            let signed = function == M::Dot4I8;
            let one = |index: u32| {
                let (a, b) = (byte(words[0], index), byte(words[1], index));
                if signed {
                    i64::from(a.cast_signed()) * i64::from(b.cast_signed())
                } else {
                    i64::from(a) * i64::from(b)
                }
            };
            let sum: i64 = (0..4).map(one).sum();
            bits((words[2] as u32).wrapping_add(sum as u32))
        }
        _ => Err(MISTYPED),
    }
}

/// A function that takes or gives a vector as a whole.
pub(super) fn whole(function: MathFunction, scalar: Scalar, given: &[Value]) -> Result<Value, Reject> {
    use MathFunction as M;
    let lanes = |index: usize| match &given[index] {
        Value::Parts(lanes) => Ok(lanes.as_slice()),
        _ => Err(MISTYPED),
    };
    let floats = |index: usize| lanes(index)?.iter().map(interval).collect::<Result<Vec<_>, Reject>>();
    let single = Scalar::F32;
    let packed = |limit: f64, least: f64, width: u32| {
        let mut all = 0u32;
        for (lane, value) in floats(0)?.into_iter().enumerate() {
            let clamped = value.max(Interval::point(least)).min(Interval::point(1.0));
            let scaled = clamped.multiply(Interval::point(limit), single)?.rising(|value| value.round_ties_even());
            let field = scaled.integer(Scalar::I32)? as u32 & (u32::MAX >> (32 - width));
            all |= field << (width * lane as u32);
        }
        Ok(Value::Word(all.into()))
    };
    let unpacked = |count: u32, limit: f64, signed: bool| {
        let (bits, width) = (word(&given[0])? as u32, 32 / count);
        let lane = |lane: u32| {
            let field = bits >> (lane * width) & (u32::MAX >> (32 - width));
            let value = if signed {
                f64::from((field << (32 - width)).cast_signed() >> (32 - width))
            } else {
                f64::from(field)
            };
            let exact = Interval::point(value).divide(Interval::point(limit), single)?;
            Ok(Value::Float(if signed { exact.max(Interval::point(-1.0)) } else { exact }))
        };
        Ok(Value::Parts((0..count).map(lane).collect::<Result<_, Reject>>()?))
    };
    let float = |value: Interval| Ok(Value::Float(value));
    let product = |a: &[Interval], b: &[Interval], scalar| {
        Interval::dot(&a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>(), scalar)
    };
    let length = |v: &[Interval]| product(v, v, single)?.max(Interval::point(0.0)).sqrt(single);
    match function {
        M::Dot => float(product(&floats(0)?, &floats(1)?, scalar)?),
        M::Length => float(length(&floats(0)?)?),
        M::Distance => {
            let differences = floats(0)?.into_iter().zip(floats(1)?).map(|(a, b)| a.subtract(b, single));
            float(length(&differences.collect::<Result<Vec<_>, _>>()?)?)
        }
        M::Normalize => {
            let v = floats(0)?;
            let by = Interval::point(1.0).divide(length(&v)?, single)?;
            // A unit more for where the root is that of the inverse.
            let lane = |x: Interval| x.multiply(by, single)?.widened(single, 4.0, 0.0).map(Value::Float);
            Ok(Value::Parts(v.into_iter().map(lane).collect::<Result<_, _>>()?))
        }
        M::Reflect => {
            let (v, n) = (floats(0)?, floats(1)?);
            let twice = Interval::point(2.0).multiply(product(&n, &v, single)?, single)?;
            let lane = |(v, n): (Interval, Interval)| v.subtract(n.multiply(twice, single)?, single).map(Value::Float);
            Ok(Value::Parts(v.into_iter().zip(n).map(lane).collect::<Result<_, _>>()?))
        }
        M::Cross => {
            let (a, b) = (floats(0)?, floats(1)?);
            let lane = |i: usize, j: usize| {
                a[i].multiply(b[j], single)?.subtract(a[j].multiply(b[i], single)?, single).map(Value::Float)
            };
            Ok(Value::Parts(vec![lane(1, 2)?, lane(2, 0)?, lane(0, 1)?]))
        }
        M::Pack4x8Snorm => packed(127.0, -1.0, 8),
        M::Pack4x8Unorm => packed(255.0, 0.0, 8),
        M::Pack2x16Snorm => packed(32767.0, -1.0, 16),
        M::Pack2x16Unorm => packed(65535.0, 0.0, 16),
        M::Pack2x16Float => {
            let mut all = 0;
            for (lane, value) in floats(0)?.into_iter().enumerate() {
                let value = value.exact().filter(|value| *value != 0.0).ok_or("bits depend on a rounding")?;
                let half = Interval::point(nearest(Scalar::F16, value)).bounded(Scalar::F16)?;
                let half = half.exact().filter(|half| *half != 0.0).ok_or("bits depend on a rounding")?;
                all |= bits_of(Scalar::F16, half) << (16 * lane);
            }
            Ok(Value::Word(all))
        }
        M::Pack4xI8 | M::Pack4xU8 => {
            let mut all = 0;
            for (lane, value) in lanes(0)?.iter().enumerate() {
                all |= (word(value)? & 0xff) << (8 * lane);
            }
            Ok(Value::Word(all))
        }
        M::Unpack4x8Snorm => unpacked(4, 127.0, true),
        M::Unpack4x8Unorm => unpacked(4, 255.0, false),
        M::Unpack2x16Snorm => unpacked(2, 32767.0, true),
        M::Unpack2x16Unorm => unpacked(2, 65535.0, false),
        M::Unpack2x16Float => {
            let bits = word(&given[0])?;
            let lane = |lane: u32| bitcast(Scalar::U16, Scalar::F16, &Value::Word(bits >> (16 * lane) & 0xffff));
            Ok(Value::Parts(vec![lane(0)?, lane(1)?]))
        }
        M::Unpack4xI8 | M::Unpack4xU8 => {
            let bits = word(&given[0])?;
            let lane = |lane: u32| {
                let byte = (bits >> (8 * lane)) as u8;
                let signed = i32::from(byte.cast_signed()).cast_unsigned();
                Value::Word(u64::from(if function == M::Unpack4xI8 { signed } else { byte.into() }))
            };
            Ok(Value::Parts((0..4).map(lane).collect()))
        }
        _ => Err(MISTYPED),
    }
}
