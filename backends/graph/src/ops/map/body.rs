//! The body of casts in IR.

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{BinaryOperator, Handle, Local, Scalar};

use super::Value;
use super::term::number_like;
use crate::types::ElementType;

pub(super) fn cast(builder: &mut FunctionBuilder<'_>, to: ElementType, x: Handle<Local>) -> Value {
    let value = builder.local(x);
    // The value of a map of 16-bit floats is an `f32`; who stores it rounds it.
    let (from, into) = (builder.type_of(value).scalar(), to.computed());
    if from == Some(into) {
        return value;
    }
    if into == Scalar::Bool {
        let zero = number_like(builder, x, 0.0);
        return builder.binary(BinaryOperator::NotEqual, value, zero);
    }
    if from == Some(Scalar::Bool) && into.is_wide() {
        // By way of a word, which a device without 64-bit arithmetic extends too.
        let word = builder.convert(value, Scalar::U32);
        return builder.convert(word, into);
    }
    builder.convert(value, into)
}
