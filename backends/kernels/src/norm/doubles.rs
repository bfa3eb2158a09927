//! What softmax needs of doubles, for which no target has it.

use trefoil_dsl::prelude::*;

/// 2^k for k from -1074 to 0.
#[device]
fn power_of_two(k: i32) -> f64 {
    // Of singles that are not subnormal: a sixteenth of the exponent, and what is left of it.
    let sixteenth = k / 16;
    let rest = bitcast::<f32>((127 + (k - 16 * sixteenth)) << 23);
    let root = bitcast::<f32>((127 + sixteenth) << 23) as f64;
    let square = root * root;
    let fourth = square * square;
    let eighth = fourth * fourth;
    eighth * eighth * rest as f64
}

/// The exponential of a number that is not above 0, within two units in the last place; a NaN stays.
#[device]
#[expect(clippy::approx_constant, reason = "what std names is no item of a kernel")]
pub fn exp_not_above_one(x: f64) -> f64 {
    // Below, it is less than half of the smallest number.
    let inside = if x < -746.0 { -746.0 } else { x };
    // The nearest integer: what is not above 0 is cut off toward it.
    let exponent = (inside * 1.4426950408889634 - 0.5) as i32;
    let k = exponent as f64;
    // ln 2 in two parts, of which the first has so few digits that k times it is exact.
    let r = (inside - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    // The series of the exponential, to what |r| < 0.35 leaves below a unit.
    let mut sum = 1.0f64;
    let mut factor = 13.0f64;
    while factor > 0.5 {
        sum = 1.0 + sum * r / factor;
        factor -= 1.0;
    }
    if is_nan(x) { x } else { sum * power_of_two(exponent) }
}

/// The logarithm of a number from 1 up that is finite in `f32`: that of `f32`, and a step of Newton's method, of the third order.
#[device]
pub fn log_from_one(x: f64) -> f64 {
    let near = ln(x as f32) as f64;
    let off = x * exp_not_above_one(-near) - 1.0;
    near + off * (1.0 - off * (0.5 - off / 3.0))
}

/// As [`super::rows::bounded_inverse_root`].
#[device]
pub fn bounded_inverse_root_f64(x: f64, bound: f64) -> f64 {
    let exact = 1.0 / sqrt(x);
    select(is_nan(x), x, select(exact > bound, bound, exact))
}
