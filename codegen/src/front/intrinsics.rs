//! What the language knows by name: one table from a name to its meaning.

use crate::ir::{AtomicFunction, Builtin, Literal, MathFunction, MatrixRole, Order, Scalar, Scope, SubgroupFunction};

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

/// Whether the prelude has a constant of `f32` of that name.
fn is_constant(name: &str) -> bool {
    matches!(
        name,
        "PI" | "E"
            | "LN_2"
            | "LN_10"
            | "LOG2_E"
            | "LOG10_E"
            | "SQRT_2"
            | "FRAC_1_SQRT_2"
            | "FRAC_2_SQRT_PI"
            | "FRAC_PI_2"
            | "FRAC_1_PI"
            | "TAU"
    )
}

/// What a path to a constant of Rust's library means: `PI`, `std::f32::consts::PI`, `f64::consts::PI`.
pub(super) fn constant_of_path(path: &syn::Path) -> Option<(Scalar, Literal)> {
    let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
    let (name, before) = (names.next()?, names.next());
    if before.as_deref() == Some("consts") {
        let scalar = if names.next().as_deref() == Some("f64") { Scalar::F64 } else { Scalar::F32 };
        return library_constant(scalar, &name).map(|value| (scalar, value));
    }
    let ours = is_constant(&name) && (before.is_none() || is_ours(path));
    let value = library_constant(Scalar::F32, &name).filter(|_| ours)?;
    Some((Scalar::F32, value))
}

macro_rules! library_constants {
    ($($name:ident)*) => {
        /// The constant of that name in `std::f32::consts`, or `std::f64::consts`.
        fn library_constant(scalar: Scalar, name: &str) -> Option<Literal> {
            match name {
                $(stringify!($name) => Some(match scalar {
                    Scalar::F64 => Literal::F64(std::f64::consts::$name),
                    _ => Literal::F32(std::f32::consts::$name),
                }),)*
                _ => None,
            }
        }
    };
}

library_constants! {
    PI TAU E LN_2 LN_10 LOG2_E LOG2_10 LOG10_E LOG10_2 SQRT_2 FRAC_1_SQRT_2 FRAC_2_SQRT_PI FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_1_PI FRAC_2_PI
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
    function(name).is_some() || is_constant(name)
}
