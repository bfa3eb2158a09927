//! How exact functions of elements are.

use std::fmt;

use super::functions::Function;
use super::halves::FAR_TURNED;
use crate::types::ElementType;

/// How far a result in `f32` or `f64` may be from the exact one, in units of its last place (ulp); `x` is the first argument. Results below 256 times the smallest
/// normal number may be anything up to it, since devices flush them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Everywhere.
    pub units: f64,
    /// For each of |x|.
    pub with_size: f64,
    /// For each of x².
    pub with_square: f64,
}

impl Accuracy {
    /// To so many bits formulas of 16-bit floats' own are exact, before the result is rounded to one.
    pub const BITS_OF_HALVES: u32 = 16;

    const fn units(units: f64) -> Self {
        Self { units, with_size: 0.0, with_square: 0.0 }
    }

    /// The bound at an argument.
    pub fn at(&self, x: f64) -> f64 {
        self.units + self.with_size * x.abs() + self.with_square * x * x
    }
}

/// `6 + 2 |x| ulp`, or `exact`.
impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at(1.0) == 0.0 {
            return f.write_str("exact");
        }
        write!(f, "{}", self.units)?;
        for (factor, of) in [(self.with_size, "|x|"), (self.with_square, "x²")] {
            if factor != 0.0 {
                write!(f, " + {factor} {of}")?;
            }
        }
        f.write_str(" ulp")
    }
}

impl Function {
    /// How exact it is on every device, for elements of a type. 16-bit floats are computed in `f32`, of which the units are, and rounded once more; integers are exact.
    pub fn accuracy(&self, element: ElementType) -> Accuracy {
        let single = self.accuracy_of_singles();
        if element.is_half() && single.units > 0.5 {
            let units = f64::from(1 << (f32::MANTISSA_DIGITS - 1 - Accuracy::BITS_OF_HALVES));
            Accuracy { units: single.units.max(units), ..single }
        } else {
            single
        }
    }

    /// The same for `f32`, and for `f64` where it takes that.
    fn accuracy_of_singles(&self) -> Accuracy {
        if self.is_test {
            return Accuracy::units(0.0);
        }
        match self.name {
            "neg" | "abs" | "sign" | "relu" | "round" | "floor" | "ceil" | "trunc" | "clamp" | "minimum"
            | "maximum" | "bit_not" | "bit_and" | "bit_or" | "bit_xor" | "shl" | "shr" => Accuracy::units(0.0),
            "add" | "sub" | "mul" | "sqr" => Accuracy::units(0.5),
            // A rounded square, times x^2 / 2: of the tail.
            "gelu" | "gelu_mul" => Accuracy { with_square: 1.0, ..Accuracy::units(8.0) },
            // The argument of the exponential is rounded, and drivers compute 2 to the power of a rounded multiple.
            "exp" | "sigmoid" | "silu" | "silu_mul" | "softplus" | "mish" => {
                Accuracy { with_size: 2.0, ..Accuracy::units(6.0) }
            }
            "gelu_tanh" => Accuracy { with_square: 2.0, ..Accuracy::units(8.0) },
            "pow" | "powf" => Accuracy::units(256.0),
            // Lavapipe's arc tangent is exact to 3e-6 alone.
            "atan" | "atan2" => Accuracy::units(400.0),
            _ => Accuracy::units(6.0),
        }
    }

    /// Whether arguments of a type lie where it says nothing about its accuracy.
    pub fn is_unsettled(&self, element: ElementType, arguments: &[f64]) -> bool {
        let [x, others @ ..] = arguments else { return false };
        match self.name {
            "sin" | "cos" | "tan" => x.is_finite() && x.abs() > farthest_angle(element),
            // The quotient's integer part does not fit a float.
            "rem" => x.is_finite() && others.first().is_some_and(|y| (x / y).abs() > 1e7),
            _ => false,
        }
    }
}

/// Up to where angles are reduced to half a turn or a quarter exactly; doubles and `f16` are everywhere.
fn farthest_angle(element: ElementType) -> f64 {
    match element {
        ElementType::F64 | ElementType::F16 => f64::INFINITY,
        ElementType::BF16 => FAR_TURNED,
        _ => 1e4,
    }
}
