//! The reductions: what each is, for which elements, and by which kernels. Everything else follows from this list.

use super::super::support::expect_element;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::types::{ElementType, TensorType};

use ElementType::{BF16, Bool, F16, F32, F64, I32, I64, U32, U64};

/// What a kernel of [`trefoil_kernels::reduce`] is called: for elements, and for what these leave.
pub(super) type Kernels = (&'static str, &'static str);

/// What the elements of a result are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    /// What the input's are.
    Same,
    /// Indices or numbers of elements.
    U32,
}

/// From what on integers are combined, and how: modulo 2^64, of which every type's own bits are the lowest.
type Wraps = Option<(u64, fn(u64, u64) -> u64)>;

/// What a reduction is.
pub(super) struct Definition {
    /// Its name in the op table.
    pub(super) name: &'static str,
    /// The first line about it.
    pub(super) formula: &'static str,
    /// The kernels for each type of elements that it takes.
    pub(super) kernels: &'static [(ElementType, Kernels)],
    /// What it gives.
    pub(super) gives: Gives,
    /// What the kernel divides by, from the number of elements and the correction.
    pub(super) divisor: fn(&Dim, u32) -> Dim,
    /// Whether there is a result of no elements.
    pub(super) of_none: bool,
    /// How integers are combined, from what on, if that may wrap.
    pub(super) wraps: Wraps,
    /// Its value for elements in the order of their indices, and the correction.
    pub(super) reference: fn(&[f64], f64) -> f64,
}

fn one(_: &Dim, _: u32) -> Dim {
    Dim::from(1i64)
}

fn number(n: &Dim, correction: u32) -> Dim {
    (n.clone() - i64::from(correction)).maximum(&Dim::from(0i64))
}

/// The first of the best elements, by `better`; a NaN is the best.
fn place(x: &[f64], better: fn(&f64, &f64) -> bool) -> f64 {
    let mut best = 0;
    for (index, value) in x.iter().enumerate() {
        if !x[best].is_nan() && (value.is_nan() || better(value, &x[best])) {
            best = index;
        }
    }
    f64::from(u32::try_from(best).unwrap_or(u32::MAX))
}

/// The last of the best elements, as [`place`].
fn last_place(x: &[f64], better: fn(&f64, &f64) -> bool) -> f64 {
    let turned: Vec<f64> = x.iter().rev().copied().collect();
    length(x) - 1.0 - place(&turned, better)
}

/// The one that is left when `better` decides between neighbours; a NaN wins.
fn best(x: &[f64], better: fn(f64, f64) -> f64) -> f64 {
    let pick = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { better(a, b) };
    x.iter().copied().reduce(pick).unwrap_or(f64::NAN)
}

fn length(x: &[f64]) -> f64 {
    f64::from(u32::try_from(x.len()).unwrap_or(u32::MAX))
}

/// The sum, with what each addition rounds off added at the end: nearly rounded once, so that it can judge sums of doubles.
fn sum(x: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0f64, 0.0);
    for x in x {
        let next = sum + x;
        rest += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    // Of a sum that is not finite there is no rest.
    if rest.is_finite() { sum + rest } else { sum }
}

/// The product, with what each multiplication rounds off carried along.
fn product(x: &[f64]) -> f64 {
    let (mut product, mut rest) = (1.0f64, 0.0);
    for x in x {
        let next = product * x;
        rest = rest * x + product.mul_add(*x, -next);
        product = next;
    }
    if (product + rest).is_finite() { product + rest } else { product }
}

/// A square as the nearest double and what that leaves.
fn square(x: f64) -> [f64; 2] {
    [x * x, x.mul_add(x, -(x * x))]
}

fn mean(x: &[f64]) -> f64 {
    sum(x.iter().copied()) / length(x)
}

fn l2(x: &[f64]) -> f64 {
    sum(x.iter().flat_map(|x| square(*x))).sqrt()
}

fn logsumexp(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() && !x.iter().any(|x| x.is_nan()) {
        return largest;
    }
    largest + sum(x.iter().map(|x| (x - largest).exp())).ln()
}

fn variance(x: &[f64], correction: f64) -> f64 {
    let mean = mean(x);
    let squares = sum(x.iter().flat_map(|x| square(x - mean)));
    if length(x) > correction { squares / (length(x) - correction) } else { f64::NAN }
}

macro_rules! reductions {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident $method:ident($($correction:ident)?) $name:literal -> $gives:ident {
            kernels: [$($element:ident $reduce:literal $join:literal),*],
            divisor: $divisor:expr,
            of_none: $of_none:literal,
            $(wraps: $wraps:expr,)?
            reference: $reference:expr,
        }
    )*) => {
        /// What elements are reduced to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reduction {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Reduction {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(super) const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$variant => &Definition {
                        name: $name,
                        formula: const {
                            let lines = [$($doc),*];
                            lines[0].trim_ascii()
                        },
                        kernels: &[$(($element, ($reduce, $join))),*],
                        gives: Gives::$gives,
                        divisor: $divisor,
                        of_none: $of_none,
                        wraps: const {
                            let given: &[Wraps] = &[$(Some($wraps),)? None];
                            given[0]
                        },
                        reference: $reference,
                    },)*
                }
            }
        }

        #[trefoil_graph_macros::eager]
        impl Graph {
            $(
                $(#[doc = $doc])*
                ///
                /// Over `axes`, any set of them in any order, negative ones counted from the last. As in NumPy an empty list reduces no axis, so that each element is by itself.
                /// With `keep` the axes stay, with extent 1. Integers of 8 and 16 bits are widened to 32 bits for it, and what comes out is of their own type again.
                ///
                /// # Errors
                /// The element type is not one of those that it takes; the tensor has no such axis, or one is named twice; or there may be no elements and it has no value
                /// of none.
                pub fn $method(
                    &mut self,
                    x: Tensor,
                    axes: &[isize],
                    keep: bool,
                    $($correction: u32,)?
                ) -> Result<Tensor, GraphError> {
                    let correction = 0 $(+ $correction)?;
                    self.reduce(Reduction::$variant, x, axes, keep, correction)
                }
            )*
        }
    };
}

reductions! {
    /// The sum, Σ x; 0 of none. Integers wrap; halves are summed in `f32`. The order of additions is always the same.
    Sum sum() "sum" -> Same {
        kernels: [
            F32 "reduce_sum_f32" "join_sum_f32", F16 "reduce_sum_f16" "join_sum_f16",
            BF16 "reduce_sum_bf16" "join_sum_bf16",
            I32 "reduce_sum_words" "join_sum_words", U32 "reduce_sum_words" "join_sum_words",F64 "reduce_sum_f64" "join_sum_f64", I64 "reduce_sum_longs" "join_sum_longs",
            U64 "reduce_sum_longs" "join_sum_longs"
        ],
        divisor: one,
        of_none: true,
        wraps: (0, u64::wrapping_add),
        reference: |x, _| sum(x.iter().copied()),
    }
    /// The mean of floats, Σ x / n; NaN of none.
    Mean mean() "mean" -> Same {
        kernels: [
            F32 "reduce_sum_f32" "join_sum_f32", F16 "reduce_sum_f16" "join_sum_f16",
            BF16 "reduce_sum_bf16" "join_sum_bf16", F64 "reduce_sum_f64" "join_sum_f64"
        ],
        divisor: number,
        of_none: true,
        reference: |x, _| mean(x),
    }
    /// The product, Π x; 1 of none. Integers wrap; halves are multiplied in `f32`.
    Prod prod() "prod" -> Same {
        kernels: [
            F32 "reduce_product_f32" "join_product_f32", F16 "reduce_product_f16" "join_product_f16",
            BF16 "reduce_product_bf16" "join_product_bf16",
            I32 "reduce_product_words" "join_product_words", U32 "reduce_product_words" "join_product_words",F64 "reduce_product_f64" "join_product_f64", I64 "reduce_product_longs" "join_product_longs",
            U64 "reduce_product_longs" "join_product_longs"
        ],
        divisor: one,
        of_none: true,
        wraps: (1, u64::wrapping_mul),
        reference: |x, _| product(x),
    }
    /// The largest element, max x; NaN if there is one. Of bools, true is larger.
    Max max_over() "max" -> Same {
        kernels: [
            F32 "reduce_max_f32" "join_max_f32", F16 "reduce_max_f16" "join_max_f16",
            BF16 "reduce_max_bf16" "join_max_bf16",
            I32 "reduce_max_i32" "join_max_i32", U32 "reduce_max_u32" "join_max_u32",
            Bool "reduce_max_u32" "join_max_u32",F64 "reduce_max_f64" "join_max_f64",
            I64 "reduce_max_i64" "join_max_i64", U64 "reduce_max_u64" "join_max_u64"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| best(x, f64::max),
    }
    /// The smallest element, min x; NaN if there is one. Of bools, false is smaller.
    Min min_over() "min" -> Same {
        kernels: [
            F32 "reduce_min_f32" "join_min_f32", F16 "reduce_min_f16" "join_min_f16",
            BF16 "reduce_min_bf16" "join_min_bf16",
            I32 "reduce_min_i32" "join_min_i32", U32 "reduce_min_u32" "join_min_u32",
            Bool "reduce_min_u32" "join_min_u32",F64 "reduce_min_f64" "join_min_f64",
            I64 "reduce_min_i64" "join_min_i64", U64 "reduce_min_u64" "join_min_u64"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| best(x, f64::min),
    }
    /// Whether any of the bools is true, x ∨ ..; false of none.
    Any any() "any" -> Same {
        kernels: [Bool "reduce_max_u32" "join_max_u32"],
        divisor: one,
        of_none: true,
        reference: |x, _| x.iter().copied().fold(0.0, f64::max),
    }
    /// Whether all of the bools are true, x ∧ ..; true of none.
    All all() "all" -> Same {
        kernels: [Bool "reduce_product_words" "join_product_words"],
        divisor: one,
        of_none: true,
        reference: |x, _| product(x),
    }
    /// The sum of absolute values of floats, Σ |x|; 0 of none.
    L1 l1() "l1" -> Same {
        kernels: [
            F32 "reduce_l1_f32" "join_sum_f32", F16 "reduce_l1_f16" "join_sum_f16",
            BF16 "reduce_l1_bf16" "join_sum_bf16", F64 "reduce_l1_f64" "join_sum_f64"
        ],
        divisor: one,
        of_none: true,
        reference: |x, _| sum(x.iter().map(|x| x.abs())),
    }
    /// The Euclidean length of floats, √Σ x²; 0 of none.
    /// The sum of the squares is not scaled, and must be a number of what is computed in: `f32`, of `f64` that.
    L2 l2() "l2" -> Same {
        kernels: [
            F32 "reduce_l2_f32" "join_l2_f32", F16 "reduce_l2_f16" "join_l2_f16",
            BF16 "reduce_l2_bf16" "join_l2_bf16", F64 "reduce_l2_f64" "join_l2_f64"
        ],
        divisor: one,
        of_none: true,
        reference: |x, _| l2(x),
    }
    /// The logarithm of the sum of the exponentials of floats, ln Σ eˣ, without overflow; -∞ of none.
    LogSumExp logsumexp() "logsumexp" -> Same {
        kernels: [
            F32 "reduce_logsumexp_f32" "join_logsumexp_f32", F16 "reduce_logsumexp_f16" "join_logsumexp_f16",
            BF16 "reduce_logsumexp_bf16" "join_logsumexp_bf16",
            F64 "reduce_logsumexp_f64" "join_logsumexp_f64"
        ],
        divisor: one,
        of_none: true,
        reference: |x, _| logsumexp(x),
    }
    /// The variance of floats, Σ (x - mean)² / (n - correction); NaN where n is not greater than the correction. A correction of 1 estimates the variance of what
    /// the elements are a sample of. It is computed in one pass, without the cancellation that a mean far from 0 would bring.
    Var var(correction) "var" -> Same {
        kernels: [
            F32 "reduce_variance_f32" "join_variance_f32", F16 "reduce_variance_f16" "join_variance_f16",
            BF16 "reduce_variance_bf16" "join_variance_bf16", F64 "reduce_variance_f64" "join_variance_f64"
        ],
        divisor: number,
        of_none: true,
        reference: variance,
    }
    /// How many elements are not 0, or not false: Σ [x ≠ 0], as `u32`; 0 of none.
    CountNonzero count_nonzero() "count_nonzero" -> U32 {
        kernels: [
            F32 "reduce_count_f32" "join_sum_words", F16 "reduce_count_f16" "join_sum_words",
            BF16 "reduce_count_bf16" "join_sum_words",
            I32 "reduce_count_words" "join_sum_words", U32 "reduce_count_words" "join_sum_words",
            Bool "reduce_count_words" "join_sum_words", F64 "reduce_count_f64" "join_sum_words",
            I64 "reduce_count_longs" "join_sum_words", U64 "reduce_count_longs" "join_sum_words"
        ],
        divisor: one,
        of_none: true,
        reference: |x, _| length(x) - x.iter().map(|x| f64::from(u8::from(*x == 0.0))).sum::<f64>(),
    }
    /// Where the largest element is, min { i : x_i = max x }, as `u32`: the first NaN if there is one, else the first of several; of bools, true is larger. Of several axes the index counts the elements of the axes in
    /// ascending order, the last fastest.
    ArgMax argmax() "argmax" -> U32 {
        kernels: [
            F32 "reduce_argmax_f32" "join_places", F16 "reduce_argmax_f16" "join_places",
            BF16 "reduce_argmax_bf16" "join_places",
            I32 "reduce_argmax_i32" "join_places", U32 "reduce_argmax_u32" "join_places",
            Bool "reduce_argmax_u32" "join_places",
            F64 "reduce_argmax_f64" "join_long_places",
            I64 "reduce_argmax_i64" "join_long_places",
            U64 "reduce_argmax_u64" "join_long_places"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| place(x, f64::gt),
    }
    /// Where the smallest element is, min { i : x_i = min x }, as [`Graph::argmax`].
    ArgMin argmin() "argmin" -> U32 {
        kernels: [
            F32 "reduce_argmin_f32" "join_places", F16 "reduce_argmin_f16" "join_places",
            BF16 "reduce_argmin_bf16" "join_places",
            I32 "reduce_argmin_i32" "join_places", U32 "reduce_argmin_u32" "join_places",
            Bool "reduce_argmin_u32" "join_places",
            F64 "reduce_argmin_f64" "join_long_places",
            I64 "reduce_argmin_i64" "join_long_places",
            U64 "reduce_argmin_u64" "join_long_places"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| place(x, f64::lt),
    }
    /// Where the largest element is, max { i : x_i = max x }, as [`Graph::argmax`] but for ties: the last NaN if there is one, else the last of several.
    LastArgMax last_argmax() "last_argmax" -> U32 {
        kernels: [
            F32 "reduce_last_argmax_f32" "join_last_places", F16 "reduce_last_argmax_f16" "join_last_places",
            BF16 "reduce_last_argmax_bf16" "join_last_places",
            I32 "reduce_last_argmax_i32" "join_last_places", U32 "reduce_last_argmax_u32" "join_last_places",
            Bool "reduce_last_argmax_u32" "join_last_places",
            F64 "reduce_last_argmax_f64" "join_last_long_places",
            I64 "reduce_last_argmax_i64" "join_last_long_places",
            U64 "reduce_last_argmax_u64" "join_last_long_places"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| last_place(x, f64::gt),
    }
    /// Where the smallest element is, max { i : x_i = min x }, as [`Graph::last_argmax`].
    LastArgMin last_argmin() "last_argmin" -> U32 {
        kernels: [
            F32 "reduce_last_argmin_f32" "join_last_places", F16 "reduce_last_argmin_f16" "join_last_places",
            BF16 "reduce_last_argmin_bf16" "join_last_places",
            I32 "reduce_last_argmin_i32" "join_last_places", U32 "reduce_last_argmin_u32" "join_last_places",
            Bool "reduce_last_argmin_u32" "join_last_places",
            F64 "reduce_last_argmin_f64" "join_last_long_places",
            I64 "reduce_last_argmin_i64" "join_last_long_places",
            U64 "reduce_last_argmin_u64" "join_last_long_places"
        ],
        divisor: one,
        of_none: false,
        reference: |x, _| last_place(x, f64::lt),
    }
}

impl Reduction {
    /// What it computes.
    pub const fn formula(self) -> &'static str {
        self.definition().formula
    }

    /// Whether its result is an element, or a place or a number of elements: then it is exact.
    pub const fn chooses(self) -> bool {
        matches!(self.definition().gives, Gives::U32) || matches!(self, Self::Max | Self::Min | Self::Any | Self::All)
    }

    /// The element types that the methods of [`Graph`] take: those that [`Reduce`](super::Reduce) takes, and the narrower integers that are widened for it.
    pub fn takes(self) -> impl Iterator<Item = ElementType> {
        ElementType::ALL.into_iter().filter(move |element| self.has_kernels(element.widened()))
    }

    /// Whether there are kernels for elements of a type.
    fn has_kernels(self, element: ElementType) -> bool {
        self.definition().kernels.iter().any(|(known, _)| *known == element)
    }

    /// What it gives of elements of a type.
    pub(super) const fn gives(self, element: ElementType) -> ElementType {
        match self.definition().gives {
            Gives::Same => element,
            Gives::U32 => U32,
        }
    }

    /// The kernels for elements of a type.
    ///
    /// # Errors
    /// It takes no such elements; the message names the cast.
    pub(super) fn kernels(self, x: &TensorType) -> Result<Kernels, OpError> {
        let known = self.definition().kernels.iter().find(|(element, _)| *element == x.element);
        match known {
            Some((_, kernels)) => Ok(*kernels),
            // A single type, or the first of several, is what to cast to.
            None => Err(ElementType::ALL
                .into_iter()
                .filter(|element| self.has_kernels(*element))
                .find_map(|element| expect_element("x", x, element).err())
                .unwrap_or(OpError::ElementType { input: "x", given: x.element, expected: "another type".to_owned() })),
        }
    }
}
