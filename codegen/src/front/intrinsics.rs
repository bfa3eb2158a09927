//! What the language knows by name: one table from a name to its meaning.

use crate::ir::{AtomicFunction, Builtin, MathFunction, MatrixRole, Order, Scalar, Scope, SubgroupFunction};

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Intrinsic {
    /// `global_index()` and so on.
    Builtin(Builtin),
    /// `barrier()`
    Barrier,
    /// `device_fence()`, `workgroup_fence()`
    Fence(Scope),
    /// `copy_async(..)`, `async_commit()`, `async_wait(n)`
    Asynchronous,
    /// `workgroup_uniform_load(&tile[i])`
    UniformLoad,
    /// `workgroup_array::<T>(length)`, in a `let` only.
    WorkgroupArray,
    /// `workgroup_tile::<T, ROWS, COLUMNS>(stages)`, in a `let` only.
    WorkgroupTile,
    /// `copy_tile_async(..)`
    CopyTile,
    /// `multiply_tiles(..)`
    MultiplyTiles,
    /// `subgroup_add(x)` and so on.
    Subgroup(SubgroupFunction),
    /// `subgroup_broadcast_first(x)`
    BroadcastFirst,
    /// `subgroup_elect()`
    Elect,
    /// `exp(x)`, `x.exp()`
    Math(MathFunction),
    /// `select(condition, accept, reject)`
    Select,
    /// `bitcast::<u32>(x)`
    Bitcast,
    /// `multiply_add(a, b, c)`, of matrices.
    MultiplyAdd,
    /// `unroll(a..b)`, around the range of a `for` only.
    Unroll,
    /// `target::has(feature)`, in `if const` only.
    TargetHas,
}

const FUNCTIONS: &[(&str, Intrinsic)] = &[
    ("barrier", Intrinsic::Barrier),
    ("copy_async", Intrinsic::Asynchronous),
    ("async_commit", Intrinsic::Asynchronous),
    ("async_wait", Intrinsic::Asynchronous),
    ("workgroup_uniform_load", Intrinsic::UniformLoad),
    ("workgroup_array", Intrinsic::WorkgroupArray),
    ("workgroup_tile", Intrinsic::WorkgroupTile),
    ("copy_tile_async", Intrinsic::CopyTile),
    ("multiply_tiles", Intrinsic::MultiplyTiles),
    ("subgroup_broadcast_first", Intrinsic::BroadcastFirst),
    ("subgroup_elect", Intrinsic::Elect),
    ("select", Intrinsic::Select),
    ("bitcast", Intrinsic::Bitcast),
    ("multiply_add", Intrinsic::MultiplyAdd),
    ("unroll", Intrinsic::Unroll),
];

/// The function of that name.
pub(super) fn function(name: &str) -> Option<Intrinsic> {
    FUNCTIONS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, meaning)| *meaning)
        .or_else(|| Scope::FENCES.iter().find(|(_, known)| *known == name).map(|(scope, _)| Intrinsic::Fence(*scope)))
        .or_else(|| {
            Builtin::ALL.iter().find(|(_, known)| *known == name).map(|(builtin, _)| Intrinsic::Builtin(*builtin))
        })
        .or_else(|| {
            SubgroupFunction::ALL
                .iter()
                .find(|(_, known)| *known == name)
                .map(|(function, _)| Intrinsic::Subgroup(*function))
        })
        .or_else(|| MathFunction::from_name(name).map(Intrinsic::Math))
}

/// The function that a path means: by its last segment, if the path has no other or begins in this project's crates.
pub(super) fn function_of_path(path: &syn::Path) -> Option<Intrinsic> {
    let last = path.segments.last()?.ident.to_string();
    if path.segments.len() == 1 {
        return function(&last);
    }
    let before = path.segments.iter().rev().nth(1)?.ident.to_string();
    if before == "target" && last == "has" {
        return Some(Intrinsic::TargetHas);
    }
    if is_ours(path) { function(&last) } else { None }
}

/// Whether a path begins in this project's crates.
pub(super) fn is_ours(path: &syn::Path) -> bool {
    path.segments.first().is_some_and(|first| first.ident == "trefoil" || first.ident == "trefoil_dsl")
}

/// The atomic method of that name: what it does, and what it orders.
pub(super) fn atomic(name: &str) -> Option<(AtomicFunction, Order)> {
    let orders = |name: &str| {
        Order::ALL.into_iter().rev().find_map(|(order, suffix)| Some((name.strip_suffix(suffix)?.to_owned(), order)))
    };
    let (base, order) = orders(name)?;
    let (function, _) = AtomicFunction::ALL.into_iter().find(|(_, known)| *known == base)?;
    Some((function, order))
}

/// The `f32` constant of that name.
pub(super) fn constant(name: &str) -> Option<f32> {
    use std::f32::consts;
    Some(match name {
        "PI" => consts::PI,
        "E" => consts::E,
        "LN_2" => consts::LN_2,
        "LN_10" => consts::LN_10,
        "LOG2_E" => consts::LOG2_E,
        "LOG10_E" => consts::LOG10_E,
        "SQRT_2" => consts::SQRT_2,
        "FRAC_1_SQRT_2" => consts::FRAC_1_SQRT_2,
        "FRAC_2_SQRT_PI" => consts::FRAC_2_SQRT_PI,
        "FRAC_PI_2" => consts::FRAC_PI_2,
        "FRAC_1_PI" => consts::FRAC_1_PI,
        "TAU" => consts::TAU,
        _ => return None,
    })
}

/// What to write for what other languages of kernels call otherwise, such as `threadIdx.x`.
pub(super) fn builtin_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "threadIdx" | "gl_LocalInvocationID" | "local_invocation_id" => "it is `local_id()`",
        "blockIdx" | "gl_WorkGroupID" | "workgroup_id" => "it is `group_id()`",
        "gl_GlobalInvocationID" | "global_invocation_id" => "it is `global_id()`",
        "gl_LocalInvocationIndex" | "local_invocation_index" => "it is `local_index()`",
        "gridDim" | "gl_NumWorkGroups" | "num_workgroups" => "it is `group_counts()`",
        "blockDim" | "gl_WorkGroupSize" => {
            "the size of a workgroup is a #[device] const, written in `workgroup(..)` too"
        }
        _ => return None,
    })
}

/// Types of the language, by name; none of them may be a `#[device]` item's name.
pub(super) fn is_type(name: &str) -> bool {
    matches!(name, "Vec2" | "Vec3" | "Vec4" | "Atomic" | "View" | "WorkgroupArray" | "WorkgroupTile" | "Feature")
        || MatrixRole::ALL.iter().any(|(_, known)| *known == name)
        || Scalar::from_rust_name(name).is_some()
        || later(name)
}

/// Types of Rust that the language does not hold yet.
pub(super) fn later(name: &str) -> bool {
    matches!(name, "i128" | "isize" | "u128" | "char" | "str" | "String" | "Vec" | "Box" | "Option" | "Result" | "Self")
}

/// Whether a function or constant of that name belongs to the language, so that no `#[device]` item may have it.
pub(super) fn is_value(name: &str) -> bool {
    function(name).is_some() || constant(name).is_some()
}
