//! What a float may be on a right device: an interval that holds both the real number that the operations ask for and everything that roundings can make of it.
//!
//! Sums, differences and products are a polynomial, which a driver may compute in any form: it contracts, adds up in another order, factors out, and leaves out what undoes itself; WGSL and Vulkan allow it, and
//! NVIDIA's compiler does all of it. So an interval remembers what it was made of (`Made`): the polynomial's exact range, the same polynomial of its operands' sizes, and its operations. A form of it with so many
//! roundings is off by no more than each of them makes of the largest value that any part can have, which is that of the sizes. A quotient and a root are wider by the three units that the
//! language allows GPUs. A number below the least normal one may be flushed, so that zero is then in the interval too. Results that are exact stay points: an integer may be made of them, or a decision.
//!
//! Ends are doubles, computed so that what a double itself rounds away lies inside. Of `f64` the unit is taken whole.

use trefoil_codegen::ir::Scalar;
use trefoil_codegen::ir::constant::single_of;

/// Why a kernel says nothing: a rounding decides what it does, or it leaves the range in which floats have a bound.
pub type Reject = &'static str;

/// The numbers from one to another, both included.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// What sums and products it is made of, if there are any.
    made: Option<Made>,
}

/// A polynomial of numbers that are no sums or products.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// The least that it is without roundings.
    low: f64,
    /// The largest.
    high: f64,
    /// The same of its operands' sizes: no part of any form of it is larger.
    size: f64,
    /// What every part of any form of it is a multiple of; 0 if that is not known, and infinite of zeros.
    quantum: f64,
    /// How many operations there are.
    roundings: u32,
}

impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low && self.high == other.high
    }
}

/// A float type: the digits of its significand, its least normal number and a bound that is well within its range.
struct Format {
    digits: i32,
    least: f64,
    bound: f64,
}

const fn format(scalar: Scalar) -> Format {
    match scalar {
        Scalar::F16 => Format { digits: 11, least: power_of(-14), bound: 32_768.0 },
        Scalar::BF16 => Format { digits: 8, least: power_of(-126), bound: power_of(100) },
        Scalar::F64 => Format { digits: 53, least: power_of(-1022), bound: power_of(900) },
        _ => Format { digits: 24, least: power_of(-126), bound: power_of(100) },
    }
}

const fn power_of(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The nearest number of a type, ties to even.
pub fn nearest(scalar: Scalar, value: f64) -> f64 {
    match scalar {
        Scalar::F16 => half::f16::from_f32(single_of(value)).to_f64(),
        Scalar::BF16 => half::bf16::from_f32(single_of(value)).to_f64(),
        Scalar::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// A real number between two doubles, which are equal if it is one.
type Real = (f64, f64);

fn around(value: f64, error: f64) -> Real {
    if error == 0.0 { (value, value) } else { (value.next_down(), value.next_up()) }
}

fn sum(a: f64, b: f64) -> Real {
    let sum = a + b;
    let part = sum - a;
    around(sum, (a - (sum - part)) + (b - part))
}

fn product(a: f64, b: f64) -> Real {
    let product = a * b;
    around(product, a.mul_add(b, -product))
}

fn quotient(a: f64, b: f64) -> Real {
    let quotient = a / b;
    around(quotient, quotient.mul_add(b, -a))
}

fn root(a: f64) -> Real {
    let root = a.sqrt();
    around(root, root.mul_add(root, -a))
}

/// The largest power of two of which a number is a multiple.
fn quantum(value: f64) -> f64 {
    if value == 0.0 {
        return f64::INFINITY;
    }
    let bits = value.to_bits();
    let exponent = ((bits >> 52) as i32 & 0x7ff) - 1023;
    let zeros = (bits | 1 << 52).trailing_zeros() as i32;
    let power = exponent - 52 + zeros;
    // Below this nothing is said: such numbers are flushed.
    if power < -1022 { 0.0 } else { power_of(power) }
}

/// The unit in the last place of a number of that size.
fn unit(scalar: Scalar, size: f64) -> f64 {
    let Format { digits, least, .. } = format(scalar);
    let exponent = ((size.abs().max(least).to_bits() >> 52) as i32 & 0x7ff) - 1023;
    power_of((exponent - digits + 1).max(-1022))
}

impl Interval {
    /// One number.
    pub const fn point(value: f64) -> Self {
        Self::between(value, value)
    }

    /// From the least to the largest.
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high, made: None }
    }

    /// What it was made of; of itself if it is no sum or product.
    fn made(self) -> Made {
        let quantum = self.exact().map_or(0.0, quantum);
        self.made.unwrap_or(Made { low: self.low, high: self.high, size: self.largest(), quantum, roundings: 0 })
    }

    /// Whatever form a target has computed a polynomial in.
    fn in_any_form(made: Made, scalar: Scalar) -> Result<Self, Reject> {
        let digits = format(scalar).digits;
        let whole = Self { low: made.low, high: made.high, made: Some(made) };
        // All parts of all forms are numbers of the type.
        if whole.exact().is_some() && made.size <= made.quantum * power_of(digits) {
            return whole.bounded(scalar);
        }
        // Half a unit is no more than this part of a number. Roundings of roundings are less than a thousandth; doubles themselves round here too, so that of them it is a whole unit.
        let part = power_of(if scalar == Scalar::F64 { 1 - digits } else { -digits });
        let by = f64::from(made.roundings) * part * made.size * 1.001;
        Self { low: (made.low - by).next_down(), high: (made.high + by).next_up(), made: Some(made) }.bounded(scalar)
    }

    /// From the lesser to the larger.
    pub fn hull(a: f64, b: f64) -> Self {
        Self::between(a.min(b), a.max(b))
    }

    /// The number, if it is one.
    pub fn exact(self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// From the least to the largest of several numbers.
    pub fn around(ends: &[f64]) -> Self {
        let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
        Self::between(least, ends.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    /// Wider by so many units in the last place, and by a number.
    pub fn widened(self, scalar: Scalar, units: f64, by: f64) -> Result<Self, Reject> {
        Self::between(self.low - by, self.high + by).rounded(scalar, units)
    }

    /// Whether a number is in it.
    pub fn holds(self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    fn largest(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn of(ends: &[Real]) -> Self {
        let low = ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
        let high = ends.iter().map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max);
        Self::between(low, high)
    }

    /// Wider by what roundings of a total of so many units make.
    fn rounded(self, scalar: Scalar, units: f64) -> Result<Self, Reject> {
        // The unit of a double cannot be halved within doubles.
        let units = if scalar == Scalar::F64 { units.ceil() } else { units };
        let by = |end: f64| units * unit(scalar, end);
        Self::between((self.low - by(self.low)).next_down(), (self.high + by(self.high)).next_up()).bounded(scalar)
    }

    /// With zero, if it may have been flushed; what is too large is no matter of roundings any more.
    pub fn bounded(self, scalar: Scalar) -> Result<Self, Reject> {
        let Format { least, bound, .. } = format(scalar);
        let largest = self.largest();
        if largest.is_nan() || largest > bound {
            return Err("a float is too large");
        }
        let mut flushed = self;
        if self.low < least && self.low > 0.0 {
            flushed.low = 0.0;
        }
        if self.high > -least && self.high < 0.0 {
            flushed.high = 0.0;
        }
        if flushed != self {
            flushed.made = None;
        }
        Ok(flushed)
    }

    /// `a + b`
    pub fn add(self, other: Self, scalar: Scalar) -> Result<Self, Reject> {
        let (a, b) = (self.made(), other.made());
        let whole = Self::of(&[sum(a.low, b.low), sum(a.high, b.high)]);
        let made = Made {
            low: whole.low,
            high: whole.high,
            size: a.size + b.size,
            quantum: a.quantum.min(b.quantum),
            roundings: a.roundings + b.roundings + 1,
        };
        Self::in_any_form(made, scalar)
    }

    /// `-a`
    pub const fn negate(self) -> Self {
        let made = match self.made {
            Some(made) => Some(Made { low: -made.high, high: -made.low, ..made }),
            None => None,
        };
        Self { low: -self.high, high: -self.low, made }
    }

    /// `a - b`
    pub fn subtract(self, other: Self, scalar: Scalar) -> Result<Self, Reject> {
        self.add(other.negate(), scalar)
    }

    fn corners(self, other: Self, of: fn(f64, f64) -> Real) -> Self {
        Self::of(&[
            of(self.low, other.low),
            of(self.low, other.high),
            of(self.high, other.low),
            of(self.high, other.high),
        ])
    }

    /// `a * b`
    pub fn multiply(self, other: Self, scalar: Scalar) -> Result<Self, Reject> {
        let (a, b) = (self.made(), other.made());
        let whole = Self::between(a.low, a.high).corners(Self::between(b.low, b.high), product);
        // Zero times anything is zero, of which everything is a multiple.
        let is_zero = whole.exact() == Some(0.0);
        let made = Made {
            low: whole.low,
            high: whole.high,
            size: if is_zero { 0.0 } else { a.size * b.size },
            quantum: if is_zero { f64::INFINITY } else { a.quantum * b.quantum },
            roundings: a.roundings + b.roundings + 1,
        };
        Self::in_any_form(made, scalar)
    }

    /// `a / b`
    pub fn divide(self, other: Self, scalar: Scalar) -> Result<Self, Reject> {
        if other.holds(0.0) {
            return Err("a float is divided by what may be zero");
        }
        // Beyond these a GPU's quotient has no bound.
        if other.largest() > 1e30 || other.low.abs().min(other.high.abs()) < 1e-30 {
            return Err("a divisor is out of range");
        }
        let exact = self.corners(other, quotient);
        exact.thrice(scalar)
    }

    /// Three units of what it is computed in, and then a rounding.
    fn thrice(self, scalar: Scalar) -> Result<Self, Reject> {
        if matches!(scalar, Scalar::F16 | Scalar::BF16) {
            return self.rounded(Scalar::F32, 3.5)?.rounded(scalar, 0.5);
        }
        self.rounded(scalar, 3.5)
    }

    /// `a % b`, if it is known how often b is in a.
    pub fn remainder(self, other: Self, scalar: Scalar) -> Result<Self, Reject> {
        let times = self.divide(other, Scalar::F32)?;
        if times.low.trunc() != times.high.trunc() || times.largest() > 4096.0 {
            return Err("a remainder is at its edge");
        }
        let whole = other.multiply(Self::point(times.low.trunc()), scalar)?;
        self.subtract(whole, scalar)
    }

    /// The square root.
    pub fn sqrt(self, scalar: Scalar) -> Result<Self, Reject> {
        if self.low < 0.0 || (self.low < 1e-30 && self.high > 0.0) {
            return Err("a root of what may be less than zero");
        }
        if self.exact() == Some(0.0) {
            return Ok(self);
        }
        Self::of(&[root(self.low), root(self.high)]).thrice(scalar)
    }

    /// By a function that never falls, which gives numbers of the type for such.
    pub fn rising(self, of: impl Fn(f64) -> f64) -> Self {
        Self::between(of(self.low), of(self.high))
    }

    /// `abs(a)`
    pub fn abs(self) -> Self {
        let low = if self.holds(0.0) { 0.0 } else { self.low.abs().min(self.high.abs()) };
        Self::between(low, self.largest())
    }

    /// The smaller.
    pub fn min(self, other: Self) -> Self {
        Self::between(self.low.min(other.low), self.high.min(other.high))
    }

    /// The larger.
    pub fn max(self, other: Self) -> Self {
        Self::between(self.low.max(other.low), self.high.max(other.high))
    }

    /// `x - trunc(x)`, which is what targets compute: beside other terms, the two may be added to these one by one.
    pub fn fract(self, scalar: Scalar) -> Result<Self, Reject> {
        let whole = self.low.trunc();
        if whole != self.high.trunc() {
            return Ok(Self::between(if self.low < 0.0 { -1.0 } else { 0.0 }, if self.high > 0.0 { 1.0 } else { 0.0 }));
        }
        let made = self.made();
        let (low, high) = (self.low - whole, self.high - whole);
        let rest = Made { low, high, size: made.size + whole.abs(), roundings: made.roundings + 1, ..made };
        // By itself it is exact.
        if self.made.is_none() { Ok(Self { low, high, made: Some(rest) }) } else { Self::in_any_form(rest, scalar) }
    }

    /// 1 or -1, by the sign; of zero either.
    pub fn signum(self) -> Self {
        Self::between(if self.low > 0.0 { 1.0 } else { -1.0 }, if self.high < 0.0 { -1.0 } else { 1.0 })
    }

    /// The size of one with the sign of another.
    pub fn copysign(self, sign: Self) -> Self {
        let size = self.abs();
        let sign = sign.signum();
        Self::between(
            if sign.low > 0.0 { size.low } else { -size.high },
            if sign.high < 0.0 { -size.low } else { size.high },
        )
    }

    /// The sum of products.
    pub fn dot(pairs: &[(Self, Self)], scalar: Scalar) -> Result<Self, Reject> {
        let mut total = Self::point(0.0);
        for (a, b) in pairs {
            total = total.add(a.multiply(*b, scalar)?, scalar)?;
        }
        Ok(total)
    }

    /// In another type, rounded to the nearest.
    pub fn convert(self, to: Scalar) -> Result<Self, Reject> {
        if let Some(value) = self.exact() {
            return Self::point(nearest(to, value)).bounded(to);
        }
        self.rounded(to, 0.5)
    }

    /// As an integer: toward zero, at the limits where it is larger.
    pub fn integer(self, to: Scalar) -> Result<i128, Reject> {
        let [least, most] = to.limits();
        let cut = |value: f64| (value as i128).clamp(least, most);
        let (low, high) = (cut(self.low), cut(self.high));
        if low == high { Ok(low) } else { Err("an integer depends on a rounding") }
    }
}
