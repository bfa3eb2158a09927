//! How much a region computes: beside what it moves, that decides how much of it an invocation does.

use trefoil_codegen::ir::builder::ModuleBuilder;
use trefoil_codegen::ir::{BinaryOperator, Builtin, Expression, ExpressionKind, MathFunction, Module, Scalar, Type};

use super::Region;
use super::kernel::{Body, WORKGROUP, declare};
use super::plan::Plan;

/// About how many instructions of a GPU compute an element of the region.
pub(super) fn operations(region: &Region, plan: &Plan) -> u64 {
    let mut module = ModuleBuilder::new("operations", [WORKGROUP, 1, 1]);
    let names = declare(&mut module, plan);
    let mut builder = module.entry();
    let index = builder.builtin(Builtin::GlobalIndex);
    let i = builder.bind("i", index);
    Body { builder: &mut builder, plan, names: &names, maps: &region.maps }.elements(i, 1);
    builder.finish_entry();
    let module = module.build();
    module.entry.expressions.iter().map(|(_, expression)| instructions(&module, expression)).sum()
}

/// About how many instructions of a GPU an expression is without its operands.
fn instructions(module: &Module, expression: &Expression) -> u64 {
    // Indices of what is read are another matter: there are as few of them for four elements.
    let computes = match module.types[expression.ty] {
        Type::Scalar(scalar) => scalar != Scalar::Index,
        _ => false,
    };
    match &expression.kind {
        ExpressionKind::Binary { operator: BinaryOperator::Divide | BinaryOperator::Remainder, .. } => 8,
        ExpressionKind::Math { function, .. } => of_function(*function),
        ExpressionKind::Unary { .. }
        | ExpressionKind::Binary { .. }
        | ExpressionKind::Select { .. }
        | ExpressionKind::Convert(_) => u64::from(computes),
        _ => 0,
    }
}

fn of_function(function: MathFunction) -> u64 {
    use MathFunction as F;
    match function {
        F::Sqrt | F::InverseSqrt | F::Exp | F::Exp2 | F::RemEuclid => 8,
        F::Ln | F::Ln1p | F::Log2 | F::Log10 | F::ExpM1 | F::Powf | F::Cbrt | F::Hypot | F::Erf => 16,
        F::Sin | F::Cos | F::Tan | F::Asin | F::Acos | F::Atan | F::Atan2 => 16,
        F::Sinh | F::Cosh | F::Tanh | F::Asinh | F::Acosh | F::Atanh => 16,
        _ => 1,
    }
}
