//! Parameters that are read by value.
//!
//! NVRTC and nvcc 13.0 take a local for a copy of the whole parameter block, and give its other parts what lies behind the parameter, where the kernel itself puts the block's first parameter as it is into the local's
//! first part: `S{params.n, 0u, 0.0f}` as well as `s.a = params.n` or `v.x = params.n`, through any number of names. Only a block that is `__grid_constant__` is read so, only at its very beginning, only in the
//! kernel, not in functions that get the block by reference, and not where a value came back from a function. Without `__grid_constant__` lists of parameters would be copied to be indexed. So a
//! kernel that could write such a thing reads that parameter through a function.

use crate::emit::text::{Code, Printer};
use crate::ir::{ExpressionKind, Module, Place, Projection, Root, StatementKind, Type, statements};

use super::Cuda;

/// Whether the kernel itself puts values together whose first part might be taken for the parameter block.
pub fn puts_together(module: &Module) -> bool {
    let entry = &module.entry;
    let mut found = false;
    entry.live(&entry.body, &mut |handle| {
        let expression = &entry.expressions[handle];
        found |= matches!(expression.kind, ExpressionKind::Compose(_))
            && matches!(module.types[expression.ty], Type::Struct(_));
    });
    statements(&entry.body, &mut |statement| {
        found |= matches!(&statement.kind, StatementKind::Store { place, .. } if is_first_part(module, place));
    });
    found
}

/// Whether it is the first part of a local, written by itself. Of an array's elements compilers see that they are parts.
fn is_first_part(module: &Module, place: &Place) -> bool {
    let Root::Local(local) = place.root else { return false };
    let ty = &module.types[module.entry.locals[local].ty];
    matches!(ty, Type::Struct(_) | Type::Vector { .. })
        && !place.path.is_empty()
        && place.path.iter().all(|projection| match projection {
            Projection::Member(member) => *member == 0,
            Projection::Index(index) | Projection::Vector { index, .. } => {
                matches!(&module.entry.expressions[*index].kind, ExpressionKind::Literal(literal) if literal.bits() == 0)
            }
        })
}

/// The value, come back from a function.
pub fn read(p: &mut Printer<'_, Cuda>, value: Code) -> Code {
    p.prelude("given", || {
        "// A parameter that may become the first part of a value: compilers take the value for a copy of all parameters where they see both.\n\
         template <typename T> __device__ __forceinline__ T given(T parameter) {\n    return parameter;\n}\n"
            .to_owned()
    });
    Code::call("given", [value])
}
