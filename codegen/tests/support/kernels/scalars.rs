//! Element types beside `f32` and 32-bit integers: narrow ones, which are packed and wrapped, and wide ones.

use trefoil_codegen::ir::builder::{ModuleBuilder, element, vector};
use trefoil_codegen::ir::{
    BinaryOperator as B, Builtin, ExpressionKind, Literal, MathFunction as M, Module, Root, Scalar, Type,
};
use trefoil_codegen::target::{Feature, Features};

use super::{load, store};

/// Arithmetic of 64 bits, and parameters of it.
pub(super) fn longs() -> Module {
    let mut module = ModuleBuilder::new("longs", [64, 1, 1]);
    module.module().requires = Features::of(&[Feature::Int64, Feature::Float64]);
    let (long, unsigned) = (module.scalar(Scalar::I64), module.scalar(Scalar::U64));
    let double = module.scalar(Scalar::F64);
    let triple = module.vector(3, Scalar::F64);
    let list = module.array(double, 3);
    let x = module.shared("x", long);
    let y = module.mutable("y", unsigned);
    let z = module.mutable("z", triple);
    let by = module.param("by", long);
    let weights = module.param("weights", list);
    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let value = load(&mut body, x, i);
    let (a, b) = (body.param(by), body.literal(Literal::I64(i64::MIN)));
    let quotient = body.binary(B::Divide, value, a);
    let sum = body.binary(B::Add, quotient, b);
    let magnitude = body.math(M::Abs, vec![sum]);
    let amount = body.u32(70);
    let shifted = body.binary(B::ShiftRight, magnitude, amount);
    let kept = body.bind("kept", shifted);
    let kept_value = body.local(kept);
    let converted = body.convert(kept_value, Scalar::U64);
    store(&mut body, y, i, converted);
    let at = body.local(i);
    let base = body.param(weights);
    let weight = body.expression(ExpressionKind::Element { base, index: at }, Type::Scalar(Scalar::F64));
    let kept_value = body.local(kept);
    let float = body.convert(kept_value, Scalar::F64);
    let (infinity, tenth) = (body.literal(Literal::F64(f64::INFINITY)), body.literal(Literal::F64(0.1)));
    let least = body.math(M::Min, vec![float, infinity]);
    let product = body.math(M::MulAdd, vec![least, weight, tenth]);
    let three = body.splat(product, 3);
    let three = body.math(M::Sqrt, vec![three]);
    store(&mut body, z, i, three);
    body.finish_entry();
    module.build()
}

/// Bytes one by one and four at a time, signed halves of words, and floats that are the upper half of one.
pub(super) fn narrow() -> Module {
    let mut module = ModuleBuilder::new("narrow", [64, 1, 1]);
    let (byte, short, brain) = (module.scalar(Scalar::U8), module.scalar(Scalar::I16), module.scalar(Scalar::BF16));
    let quad = module.vector(4, Scalar::I8);
    let x = module.shared("x", byte);
    let y = module.mutable("y", byte);
    let s = module.mutable("s", short);
    let f = module.mutable("f", brain);
    let q = module.mutable("q", quad);
    let by = module.param("by", short);
    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let at = body.local(i);
    let four = body.load(vector(Root::Binding(x), at, 4));
    let (three, one) = (body.literal(Literal::U8(3)), body.literal(Literal::U8(1)));
    let three = body.splat(three, 4);
    let product = body.binary(B::Multiply, four, three);
    let at = body.local(i);
    body.store(vector(Root::Binding(y), at, 4), product);
    let value = load(&mut body, x, i);
    let sum = body.binary(B::Subtract, value, one);
    let at = body.local(i);
    body.store(element(Root::Binding(y), at), sum);
    let short = load(&mut body, s, i);
    let factor = body.param(by);
    let product = body.binary(B::Multiply, short, factor);
    let product = body.bind("product", product);
    let value = body.local(product);
    store(&mut body, s, i, value);
    let brain = load(&mut body, f, i);
    let other = load(&mut body, f, i);
    let square = body.binary(B::Multiply, brain, other);
    let cube = load(&mut body, f, i);
    let cube = body.binary(B::Multiply, square, cube);
    store(&mut body, f, i, cube);
    let value = body.local(product);
    let value = body.convert(value, Scalar::I8);
    let value = body.splat(value, 4);
    let negative = body.unary(trefoil_codegen::ir::UnaryOperator::Negate, value);
    store(&mut body, q, i, negative);
    body.finish_entry();
    module.build()
}
