//! The forms of arithmetic that CUDA has for functions that are more or less precise than usual.
//!
//! NVRTC contracts `a * b + c` to one rounding; the functions that name their rounding it leaves alone.

use crate::emit::text::Printer;
use crate::ir::{BinaryOperator as B, MathFunction as M, Precision, Scalar};

use super::Cuda;

/// The function that stands for an operator; none where the operator itself does.
pub fn binary(precision: Precision, operator: B, scalar: Option<Scalar>) -> Option<&'static str> {
    Some(match (precision, operator, scalar?) {
        (Precision::Strict, B::Add, Scalar::F32) => "__fadd_rn",
        (Precision::Strict, B::Subtract, Scalar::F32) => "__fsub_rn",
        (Precision::Strict, B::Multiply, Scalar::F32) => "__fmul_rn",
        (Precision::Strict, B::Divide, Scalar::F32) => "__fdiv_rn",
        (Precision::Strict, B::Add, Scalar::F64) => "__dadd_rn",
        (Precision::Strict, B::Subtract, Scalar::F64) => "__dsub_rn",
        (Precision::Strict, B::Multiply, Scalar::F64) => "__dmul_rn",
        (Precision::Strict, B::Divide, Scalar::F64) => "__ddiv_rn",
        (Precision::Fast, B::Divide, Scalar::F32) => "__fdividef",
        _ => return None,
    })
}

/// The function that stands for one of the mathematical library; none where the usual one does.
pub const fn math(precision: Precision, function: M, scalar: Scalar) -> Option<&'static str> {
    Some(match (precision, function, scalar) {
        (Precision::Strict, M::Sqrt, Scalar::F32) => "__fsqrt_rn",
        (Precision::Strict, M::Sqrt, Scalar::F64) => "__dsqrt_rn",
        (Precision::Fast, M::Exp, Scalar::F32) => FAST_EXP,
        (Precision::Fast, M::Ln, Scalar::F32) => "__logf",
        (Precision::Fast, M::Log2, Scalar::F32) => "__log2f",
        (Precision::Fast, M::Log10, Scalar::F32) => "__log10f",
        (Precision::Fast, M::Powf, Scalar::F32) => "__powf",
        (Precision::Fast, M::Sin, Scalar::F32) => "__sinf",
        (Precision::Fast, M::Cos, Scalar::F32) => "__cosf",
        (Precision::Fast, M::Tan, Scalar::F32) => "__tanf",
        (Precision::Fast, M::Sqrt, Scalar::F32) => FAST_SQRT,
        (_, M::Exp, Scalar::F32) => EXP,
        (_, M::Exp2, Scalar::F32) => EXP2,
        _ => return None,
    })
}

/// No header has these, as it has the others.
const FAST_SQRT: &str = "fast_sqrt";
/// As exact as `exp2f`, but that it gives 0 below the least normal number, which saves three instructions of four.
const EXP2: &str = "normal_exp2";
/// e^x within 2.5 units of the last place, where `expf` is within 1.8, with the same exception: five instructions instead of eight.
///
/// The power of 2 is x / ln 2, rounded down and a little less still, so that what it lacks, x - power ln 2 with ln 2 in two parts, is never negative: saturated it stays as it is, and what is not a number for an infinite x becomes 0 or 1, which
/// leaves 0 and infinity as they are. By how much less is such that the result for 0 is 1.
const EXP: &str = "normal_exp";
/// `__expf` with the same exception.
const FAST_EXP: &str = "fast_exp";

/// What a function needs to be printed before it is used.
pub fn prelude(p: &mut Printer<'_, Cuda>, name: &'static str) {
    if [EXP, FAST_EXP].contains(&name) {
        prelude(p, EXP2);
    }
    if [FAST_SQRT, EXP2, EXP, FAST_EXP].contains(&name) {
        p.prelude(name, || format!("__device__ __forceinline__ float {name}(float x) {{\n{}}}\n", body(name)));
    }
}

/// The body of a function of this file.
fn body(name: &str) -> String {
    match name {
        FAST_SQRT => instruction("sqrt.approx.f32"),
        EXP2 => instruction("ex2.approx.ftz.f32"),
        FAST_EXP => format!("    return {EXP2}(x * 1.44269502f);\n"),
        _ => format!(
            "    const float power = __fmaf_rd(x, 1.44269502f, -1.87031131e-6f);\n    \
             const float part = __saturatef(fmaf(power, -0.693147182f, x));\n    \
             const float rest = __saturatef(fmaf(power, 1.90465421e-9f, part));\n    \
             const float value = {EXP2}(power);\n    return fmaf(value, rest, value);\n"
        ),
    }
}

/// The body of a function that is one instruction.
fn instruction(name: &str) -> String {
    format!("    float y;\n    asm(\"{name} %0, %1;\" : \"=f\"(y) : \"f\"(x));\n    return y;\n")
}

/// What a function is called of vectors: names with two underscores are the compiler's.
pub fn overload(precision: Precision, name: &str) -> String {
    match name.strip_prefix("__") {
        Some(name) => format!("{}_{name}", precision.name()),
        None => name.to_owned(),
    }
}

/// Whether a name is one of those that are printed for vectors, or of a scalar product.
pub fn reserved(name: &str) -> bool {
    let scalars = [Scalar::F32, Scalar::F64];
    let mut apart =
        [Precision::Strict, Precision::Fast].into_iter().filter(|precision| name.contains(precision.name()));
    [EXP, EXP2].contains(&name)
        || apart.any(|precision| {
            let operators = [B::Add, B::Subtract, B::Multiply, B::Divide].into_iter();
            let binary = operators.flat_map(|operator| scalars.map(|scalar| binary(precision, operator, Some(scalar))));
            let math = M::ALL.iter().flat_map(|function| scalars.map(|scalar| math(precision, *function, scalar)));
            name == precision.suffixed("dot")
                || binary.chain(math).flatten().any(|known| overload(precision, known) == name)
        })
}
