//! Atomics that order memory or have 64 bits, and fences: inline PTX, since CUDA C has neither without a header.
//!
//! The compiler moves no access across them (`volatile`, and memory as clobbered), as long as buffers that are written are not declared as
//! `__restrict__`, which [`super::module`] sees to. Addresses are generic, so that one form serves buffers and workgroup memory.

use crate::emit::EmitError;
use crate::emit::text::{AtomicCall, AtomicForm, Code, Printer};
use crate::ir::{AtomicFunction, Order, Scalar, Scope, Type};

use super::{Cuda, types};

type Result<T> = std::result::Result<T, EmitError>;

const fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Workgroup => "cta",
        Scope::Device => "gpu",
    }
}

const fn order_name(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcquireRelease => "acq_rel",
    }
}

/// A fence, which acquires and releases.
pub fn fence(scope: Scope) -> String {
    format!("asm volatile(\"fence.acq_rel.{};\" ::: \"memory\");", scope_name(scope))
}

/// The register's constraint and the types of PTX: with a sign, and as bits.
fn names(scalar: Scalar) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match scalar {
        Scalar::U32 | Scalar::Index => ("r", "u32", "b32"),
        Scalar::I32 => ("r", "s32", "b32"),
        Scalar::F32 => ("f", "f32", "b32"),
        Scalar::U64 => ("l", "u64", "b64"),
        Scalar::I64 => ("l", "s64", "b64"),
        _ => return None,
    })
}

/// An operation that orders memory; its function is in the prelude.
pub fn atomic(p: &mut Printer<'_, Cuda>, place: &Code, scalar: Scalar, call: AtomicCall) -> Result<AtomicForm> {
    let AtomicCall { function, ordering, scope, value, compare } = call;
    let Some((constraint, number, bits)) = names(scalar) else {
        return Err(p.error(format!("an atomic of {}", scalar.rust_name())));
    };
    let ty = types::type_name(p, &Type::Scalar(scalar))?;
    let (order, scope) = (order_name(ordering.order), scope_name(scope));
    let name = format!("atomic_{}{}_{scope}", function.name(), ordering.order.suffix());
    // Wrapping sums are the same with and without a sign; an exchange is of bits whatever they mean.
    let sum = match scalar {
        Scalar::F32 => number,
        scalar if scalar.is_wide() => "u64",
        _ => "u32",
    };
    let operation = match function {
        AtomicFunction::Load => format!("ld.{order}.{scope}.{number} %0, [%1];"),
        AtomicFunction::Store => format!("st.{order}.{scope}.{number} [%0], %1;"),
        AtomicFunction::CompareExchange => format!("atom.{order}.{scope}.cas.{bits} %0, [%1], %2, %3;"),
        AtomicFunction::Add | AtomicFunction::Subtract => format!("atom.{order}.{scope}.add.{sum} %0, [%1], %2;"),
        AtomicFunction::Min => format!("atom.{order}.{scope}.min.{number} %0, [%1], %2;"),
        AtomicFunction::Max => format!("atom.{order}.{scope}.max.{number} %0, [%1], %2;"),
        AtomicFunction::And => format!("atom.{order}.{scope}.and.{bits} %0, [%1], %2;"),
        AtomicFunction::Or => format!("atom.{order}.{scope}.or.{bits} %0, [%1], %2;"),
        AtomicFunction::Xor => format!("atom.{order}.{scope}.xor.{bits} %0, [%1], %2;"),
        AtomicFunction::Exchange => format!("atom.{order}.{scope}.exch.{bits} %0, [%1], %2;"),
    };
    let pointer = Code::atom(format!("&{}", place.text));
    if function == AtomicFunction::Store {
        p.prelude(&format!("{name} {ty}"), || {
            format!(
                "__device__ __forceinline__ void {name}({ty}* at, {ty} value) {{\n    \
                 asm volatile(\"{operation}\" :: \"l\"(at), \"{constraint}\"(value) : \"memory\");\n}}\n"
            )
        });
        let store = Code::call(&name, [pointer].into_iter().chain(value));
        return Ok(AtomicForm::Statement(store.text));
    }
    let unsigned = if scalar.is_wide() { "(unsigned long long)" } else { "uint" };
    let mut parameters = vec![format!("{ty}* at")];
    let mut operands = vec!["\"l\"(at)".to_owned()];
    if compare.is_some() {
        parameters.push(format!("{ty} expected"));
        operands.push(format!("\"{constraint}\"(expected)"));
    }
    if value.is_some() {
        parameters.push(format!("{ty} value"));
        let given = if function == AtomicFunction::Subtract {
            format!("{ty}(0u - {unsigned}(value))")
        } else {
            "value".to_owned()
        };
        operands.push(format!("\"{constraint}\"({given})"));
    }
    p.prelude(&format!("{name} {ty}"), || {
        format!(
            "__device__ __forceinline__ {ty} {name}({}) {{\n    {ty} old;\n    \
             asm volatile(\"{operation}\" : \"={constraint}\"(old) : {} : \"memory\");\n    return old;\n}}\n",
            parameters.join(", "),
            operands.join(", ")
        )
    });
    Ok(AtomicForm::Value(Code::call(&name, [pointer].into_iter().chain(compare).chain(value))))
}
