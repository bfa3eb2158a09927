//! Mathematical functions without branches, so that loops over them become vectors. They are those that kernels are lowered to
//! (`lower::library` in trefoil-codegen), to the same accuracy.

use trefoil_kernels::activation::Activation;

use crate::tile::PIECE;

/// Adding and subtracting this rounds to an integer, ties to even; the sum's low bits hold the integer.
const ROUND: f32 = 12_582_912.0;

/// Where a factor x stops that would be infinite as the other is 0, as kernels have it.
const FAR: f32 = trefoil_kernels::activation::FAR;

/// `x * y + z`, in one rounding if that is one instruction.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(x: f32, y: f32, z: f32) -> f32 {
    if FMA { x.mul_add(y, z) } else { x * y + z }
}

/// A polynomial, highest power first.
#[inline(always)]
fn polynomial<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = 0.0;
    let mut i = 0;
    while i < N {
        sum = if i == 0 { coefficients[0] } else { mul_add::<FMA>(x, sum, coefficients[i]) };
        i += 1;
    }
    sum
}

/// e to the power of x.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    // Beyond these everything is 0 or infinite; NaN stays NaN.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    // ln 2 in two parts, of which the first times k is exact.
    let r = mul_add::<FMA>(k, 2.121_944_4e-4, mul_add::<FMA>(k, -0.693_359_4, x));
    let p = polynomial::<FMA, 6>(r, [1.989_198e-4, 1.393_454_1e-3, 8.333_31e-3, 4.166_645_6e-2, 1.666_666_7e-1, 0.5]);
    let near = mul_add::<FMA>(r * r, p, r) + 1.0;
    // Times 2^k in two steps, since 2^k alone may be out of range.
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    let half = k >> 1;
    let power = |k: i32| f32::from_bits((k.wrapping_add(127) << 23).cast_unsigned());
    near * power(half) * power(k.wrapping_sub(half))
}

/// The error function.
#[inline(always)]
fn erf<const FMA: bool>(x: f32) -> f32 {
    let size = x.abs();
    let t = if size > 4.0 { 4.0 } else { size };
    let near = polynomial::<FMA, 7>(
        t * t,
        [8.269_511e-5, -8.118_998e-4, 5.198_96e-3, -2.685_857_6e-2, 1.128_368e-1, -3.761_263_3e-1, 1.283_791_7e-1],
    );
    let near = mul_add::<FMA>(t, near, t);
    let far = polynomial::<FMA, 8>(
        t,
        [
            -1.046_065_7e-6,
            3.438_850_6e-5,
            -4.988_25e-4,
            4.303_789e-3,
            -2.513_955e-2,
            1.078_556_6e-1,
            6.341_482e-1,
            1.289_028e-1,
        ],
    );
    let far = 1.0 - exp::<FMA>(-mul_add::<FMA>(t, far, t));
    // With the sign of x; NaN came through.
    let value = if t < 0.93 { near } else { far };
    f32::from_bits(value.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// The hyperbolic tangent.
#[inline(always)]
fn tanh<const FMA: bool>(x: f32) -> f32 {
    let size = x.abs();
    let t = if size > 10.0 { 10.0 } else { size };
    let p = polynomial::<FMA, 5>(t * t, [-6.096_714e-3, 2.099_718e-2, -5.385_091e-2, 1.333_277e-1, -3.333_333e-1]);
    let near = mul_add::<FMA>(t * (t * t), p, t);
    let far = 1.0 - 2.0 / (exp::<FMA>(2.0 * t) + 1.0);
    let value = if t < 0.625 { near } else { far };
    f32::from_bits(value.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// The larger of a number and [`FAR`]; NaN stays NaN.
#[inline(always)]
fn at_least_far(x: f32) -> f32 {
    if x < FAR { FAR } else { x }
}

/// Applies an activation to every number.
#[inline(always)]
pub(crate) fn activate<const FMA: bool>(values: &mut [f32], activation: Activation) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => values.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
        Activation::Gelu => values
            .iter_mut()
            .for_each(|x| *x = 0.5 * at_least_far(*x) * (1.0 + erf::<FMA>(*x * std::f32::consts::FRAC_1_SQRT_2))),
        Activation::Silu => values.iter_mut().for_each(|x| *x = at_least_far(*x) / (1.0 + exp::<FMA>(-*x))),
        Activation::Tanh => values.iter_mut().for_each(|x| *x = tanh::<FMA>(*x)),
        Activation::Sigmoid => values.iter_mut().for_each(|x| *x = 1.0 / (1.0 + exp::<FMA>(-*x))),
    }
}

/// The sum of what becomes of numbers, in as many partial sums as a vector has lanes, piece by piece.
#[inline(always)]
pub(crate) fn sum_of<const LANES: usize>(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut total = 0.0_f64;
    for piece in values.chunks(PIECE * LANES) {
        let (vectors, rest) = piece.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for vector in vectors {
            for lane in 0..LANES {
                sums[lane] += of(vector[lane]);
            }
        }
        total += f64::from(sums.into_iter().chain(rest.iter().map(|x| of(*x))).sum::<f32>());
    }
    total as f32
}

/// The sum of numbers.
#[inline(always)]
pub(crate) fn sum<const LANES: usize>(values: &[f32]) -> f32 {
    sum_of::<LANES>(values, |x| x)
}

/// The largest number; minus infinity if there is none.
#[inline(always)]
pub(crate) fn largest<const LANES: usize>(values: &[f32]) -> f32 {
    let (vectors, rest) = values.as_chunks::<LANES>();
    let mut most = [f32::NEG_INFINITY; LANES];
    for vector in vectors {
        for lane in 0..LANES {
            most[lane] = if vector[lane] > most[lane] { vector[lane] } else { most[lane] };
        }
    }
    most.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Puts exp(x - largest) in place of each number, and gives their sum.
#[inline(always)]
pub(crate) fn exponentials<const FMA: bool, const LANES: usize>(values: &mut [f32], largest: f32) -> f32 {
    values.iter_mut().for_each(|x| *x = exp::<FMA>(*x - largest));
    sum::<LANES>(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;
    use crate::isa::{Work, run};

    struct Activated<'a>(&'a mut [f32], Activation);

    impl Work for Activated<'_> {
        type Output = ();

        #[inline(always)]
        fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
            activate::<FMA>(self.0, self.1);
        }
    }

    /// The integral of the error function's derivative, by Simpson's rule.
    fn erf_by_integration(x: f64) -> f64 {
        let steps = 4000;
        let h = x / f64::from(steps);
        let f = |i: i32| (-(h * f64::from(i)).powi(2)).exp();
        let inner: f64 = (1..steps).map(|i| f(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (f(0) + inner + f(steps)) * h / 3.0 * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn activations_are_accurate() {
        type Exact = fn(f64) -> f64;
        let cases: [(Activation, Exact); 6] = [
            (Activation::Identity, |x| x),
            (Activation::Relu, |x| x.max(0.0)),
            (Activation::Gelu, |x| 0.5 * x * (1.0 + erf_by_integration(x * std::f64::consts::FRAC_1_SQRT_2))),
            (Activation::Silu, |x| x / (1.0 + (-x).exp())),
            (Activation::Tanh, f64::tanh),
            (Activation::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ];
        let inputs: Vec<f32> = (-1500..=1500).map(|i| i as f32 * 0.0061).collect();
        for (activation, exact) in cases {
            at_every_level(|| {
                let mut found = inputs.clone();
                run(Activated(&mut found, activation));
                for (x, found) in inputs.iter().zip(found) {
                    let wanted = exact(f64::from(*x));
                    let error = (f64::from(found) - wanted).abs();
                    assert!(error <= 3e-7 * wanted.abs().max(1.0), "{activation:?}({x}) is {found}, not {wanted}");
                }
            });
        }
    }

    struct Sum<'a>(&'a [f32]);

    impl Work for Sum<'_> {
        type Output = f32;

        #[inline(always)]
        fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) -> f32 {
            sum::<LANES>(self.0)
        }
    }

    #[test]
    fn sums_of_many_terms_are_accurate() {
        for count in [0, 1, 2_047, 8_193, 1_000_003] {
            let wanted = count as f64 * f64::from(0.1_f32);
            at_every_level(|| {
                let found = f64::from(run(Sum(&vec![0.1; count])));
                assert!((found - wanted).abs() <= 3e-5 * wanted, "{count}: {found}, not {wanted}");
            });
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_limits_are_reached() {
        for activation in [Activation::Gelu, Activation::Silu, Activation::Tanh, Activation::Sigmoid, Activation::Relu]
        {
            let mut values = vec![f32::NAN; 17];
            run(Activated(&mut values, activation));
            assert!(values.iter().all(|x| x.is_nan()), "{activation:?}");
        }
        for activation in [Activation::Gelu, Activation::Silu] {
            let mut values = vec![f32::NEG_INFINITY; 17];
            run(Activated(&mut values, activation));
            assert!(values.iter().all(|x| *x == 0.0), "{activation:?}");
        }
        let limits = [f32::NEG_INFINITY, -1.0e30, -110.0, -87.5, 0.0, 100.0, f32::INFINITY];
        assert_eq!(limits.map(exp::<false>)[..3], [0.0; 3]);
        assert!(exp::<false>(-87.5) > 0.0 && exp::<false>(0.0) == 1.0);
        assert_eq!(limits.map(exp::<false>)[5..], [f32::INFINITY; 2]);
        assert_eq!(limits.map(tanh::<false>), [-1.0, -1.0, -1.0, -1.0, 0.0, 1.0, 1.0]);
    }
}
