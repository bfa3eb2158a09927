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
        (Precision::Fast, M::Exp, Scalar::F32) => "__expf",
        (Precision::Fast, M::Ln, Scalar::F32) => "__logf",
        (Precision::Fast, M::Log2, Scalar::F32) => "__log2f",
        (Precision::Fast, M::Log10, Scalar::F32) => "__log10f",
        (Precision::Fast, M::Powf, Scalar::F32) => "__powf",
        (Precision::Fast, M::Sin, Scalar::F32) => "__sinf",
        (Precision::Fast, M::Cos, Scalar::F32) => "__cosf",
        (Precision::Fast, M::Tan, Scalar::F32) => "__tanf",
        (Precision::Fast, M::Sqrt, Scalar::F32) => FAST_SQRT,
        (_, M::Exp2, Scalar::F32) => EXP2,
        _ => return None,
    })
}

/// No header has these, as it has the others.
const FAST_SQRT: &str = "fast_sqrt";
/// As exact as `exp2f`, but that it gives 0 below the least normal number, which saves three instructions of four.
const EXP2: &str = "normal_exp2";

/// What a function needs to be printed before it is used.
pub fn prelude(p: &mut Printer<'_, Cuda>, name: &'static str) {
    let instruction = match name {
        FAST_SQRT => "sqrt.approx.f32",
        EXP2 => "ex2.approx.ftz.f32",
        _ => return,
    };
    p.prelude(name, || {
        format!(
            "__device__ __forceinline__ float {name}(float x) {{\n    float y;\n    \
             asm(\"{instruction} %0, %1;\" : \"=f\"(y) : \"f\"(x));\n    return y;\n}}\n"
        )
    });
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
    name == EXP2
        || apart.any(|precision| {
            let operators = [B::Add, B::Subtract, B::Multiply, B::Divide].into_iter();
            let binary = operators.flat_map(|operator| scalars.map(|scalar| binary(precision, operator, Some(scalar))));
            let math = M::ALL.iter().flat_map(|function| scalars.map(|scalar| math(precision, *function, scalar)));
            name == precision.suffixed("dot")
                || binary.chain(math).flatten().any(|known| overload(precision, known) == name)
        })
}
