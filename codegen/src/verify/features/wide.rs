//! What of 64-bit types needs their feature: arithmetic, and vectors of them. The rest is done on two words where a device lacks it.
//!
//! The words of a double are what it is where there are no doubles; elsewhere they are those of an integer of its bits.

use std::fmt;

use crate::ir::{BinaryOperator, Expression, ExpressionKind, Function, Handle, Module, Scalar, Type};
use crate::target::{Feature, Features};
use crate::verify::{is_split, splits};

/// The feature of a scalar's arithmetic.
const fn feature(scalar: Scalar) -> Option<Feature> {
    match scalar {
        Scalar::I64 | Scalar::U64 => Some(Feature::Int64),
        Scalar::F64 => Some(Feature::Float64),
        _ => None,
    }
}

/// What memory of that element type needs: the language's own vectors, which words cannot stand for.
pub(super) fn of_memory(module: &Module, ty: Handle<Type>) -> Option<Feature> {
    match &module.types[ty] {
        Type::Vector { scalar, .. } => feature(*scalar),
        Type::Array { element, .. } => of_memory(module, *element),
        Type::Struct(item) => module.structs[*item].fields.iter().find_map(|(_, field)| of_memory(module, *field)),
        Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => None,
    }
}

/// Whether doubles are taken apart into words.
pub(super) fn splits_doubles(module: &Module) -> bool {
    splits(module, |scalar| scalar == Scalar::F64)
}

/// What an expression needs where there are `features`, and how the author would call it.
pub(super) fn of_expression(
    module: &Module,
    function: &Function,
    handle: Handle<Expression>,
    features: Features,
) -> Option<(Features, String)> {
    let ty_of = |handle: Handle<Expression>| &module.types[function.expressions[handle].ty];
    let scalar_of = |handle: Handle<Expression>| ty_of(handle).scalar();
    let own = ty_of(handle);
    if let Type::Vector { scalar, lanes } = own
        && let Some(feature) = feature(*scalar)
    {
        return Some((Features::of(&[feature]), format!("`Vec{lanes}<{}>`", scalar.rust_name())));
    }
    let (scalar, what) = match &function.expressions[handle].kind {
        ExpressionKind::Unary { operator, value } => {
            let sign = if *operator == crate::ir::UnaryOperator::Negate { "-" } else { "!" };
            (scalar_of(*value)?, sign)
        }
        ExpressionKind::Binary { operator, left, .. } => {
            let scalar = scalar_of(*left)?;
            let equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
            if equality && scalar.is_integer() {
                return None;
            }
            (scalar, operator.sign())
        }
        ExpressionKind::Math { function, arguments } => {
            let scalar = scalar_of(*arguments.first()?)?;
            if scalar == Scalar::F64 && function.is_elementary_of_doubles() {
                // It is made of a double's bits where a target has none.
                return needs([scalar, Scalar::U64], format_args!("`{}` of f64", function.name()));
            }
            (scalar, function.name())
        }
        ExpressionKind::Convert(value) => {
            let (from, to) = (scalar_of(*value).unwrap_or(Scalar::U32), own.scalar()?);
            // Integers are cut off and extended word by word.
            if from == to || !(from.is_float() || to.is_float()) {
                return None;
            }
            return needs([from, to], format_args!("`as` from {} to {}", from.rust_name(), to.rust_name()));
        }
        ExpressionKind::Bitcast(value) => {
            let (from, to) = (scalar_of(*value)?, own.scalar()?);
            if is_split(ty_of(*value), own) {
                let by_integer = from == Scalar::F64 && features.has(Feature::Float64);
                return by_integer.then(|| (Features::of(&[Feature::Int64]), "the words of f64".to_owned()));
            }
            if from.is_float() == to.is_float() {
                return None;
            }
            return needs([from, to], format_args!("a bitcast from {} to {}", from.rust_name(), to.rust_name()));
        }
        _ => return None,
    };
    needs([scalar, scalar], format_args!("`{what}` of {}", scalar.rust_name()))
}

/// The features of both scalars, if there are any; most have none, and then nothing is written.
fn needs(scalars: [Scalar; 2], what: fmt::Arguments<'_>) -> Option<(Features, String)> {
    let features = scalars.into_iter().filter_map(feature);
    let features = features.fold(Features::NONE, |all, feature| all.union(Features::of(&[feature])));
    (features != Features::NONE).then(|| (features, what.to_string()))
}
