//! What stands outside function bodies: generics gone, bindings, parameters, workgroup memory and types that devices can hold.

use super::sizes;
use crate::diagnostic::Diagnostic;
use crate::ir::{BindingKind, Enum, Handle, Module, Scalar, Span, StatedSubgroup, Type};
use crate::layout;
use crate::target::{MOST_SUBGROUP, Target};

pub fn check(module: &Module) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let at = module.entry.span;
    if !module.generics.is_empty() {
        found.push(Diagnostic::new(
            at,
            format!("kernel `{}` still has generic parameters; make an instance of it first", module.name),
        ));
    }
    let axes: Option<Vec<u32>> = module.workgroup_size.iter().map(crate::ir::Size::literal).collect();
    match axes.as_deref() {
        Some([x, y, z]) if *x > 0 && *y > 0 && *z > 0 => {
            if x.checked_mul(*y).and_then(|xy| xy.checked_mul(*z)).is_none() {
                found.push(Diagnostic::new(at, "the workgroup's size does not fit 32 bits"));
            }
        }
        _ => found.push(Diagnostic::new(at, "the workgroup's size is three numbers, each at least 1")),
    }
    if let (Some(stated), Some([along, ..])) = (&module.subgroup, axes.as_deref()) {
        check_subgroup(module, stated, *along, &mut found);
    }
    if module.targets.is_empty() {
        found.push(Diagnostic::new(at, format!("kernel `{}` lists no target", module.name)));
    }
    if module.index.is_wide()
        && let Some(target) = module.targets.iter().find(|target| !target.has_wide_indices())
    {
        found.push(Diagnostic::new(at, no_wide_indices(*target)));
    }
    for (_, ty) in module.types.iter() {
        check_type(module, ty, &mut found);
    }
    if found.is_empty() {
        // What follows walks through types.
        found.extend(sizes::types(module));
    }
    if !found.is_empty() {
        return found;
    }
    for (_, item) in module.enums.iter() {
        check_enum(item, &mut found);
    }
    for binding in &module.bindings {
        check_binding(module, binding, &mut found);
    }
    for param in &module.params {
        if !layout::is_param(module, param.ty) {
            found.push(Diagnostic::new(
                param.span,
                format!(
                    "`{}` cannot be a parameter by value: those are numbers, bool, enums without fields, and vectors, arrays and structs of numbers",
                    param.name
                ),
            ));
        }
    }
    for (_, variable) in module.workgroup.iter() {
        let scalar = module.types[variable.element].scalar();
        if layout::of(module, variable.element).is_none() {
            found.push(Diagnostic::new(
                variable.span,
                format!("workgroup memory cannot hold the elements of `{}`", variable.name),
            ));
        }
        if let Err(message) = super::tiles::variable(module, variable) {
            found.push(Diagnostic::new(variable.span, message));
        }
        if variable.atomic && !holds_atomics(&module.types[variable.element]) {
            found.push(Diagnostic::new(
                variable.span,
                format!(
                    "the atomics of `{}` must hold i32, u32, i64, u64 or f32, not {}",
                    variable.name,
                    scalar.map_or("this type", Scalar::rust_name)
                ),
            ));
        }
    }
    found.extend(sizes::workgroup(module));
    found
}

/// Why a target makes nothing of a kernel with `index = 64`.
pub fn no_wide_indices(target: Target) -> String {
    let (name, able) = (target.name(), Target::ALL.into_iter().filter(|target| target.has_wide_indices()));
    let able: Vec<_> = able.map(Target::name).collect();
    format!(
        "{name} has no indices of 64 bits: list `targets({})`, or write `index = [32, 64]`, of which {name} gets the instance with 32",
        able.join(", ")
    )
}

fn check_subgroup(module: &Module, stated: &StatedSubgroup, along: u32, found: &mut Vec<Diagnostic>) {
    let mut fail = |message: String| found.push(Diagnostic::new(stated.span, message));
    let least = StatedSubgroup::LEAST;
    let Some(size) =
        stated.size.literal().filter(|size| size.is_power_of_two() && (least..=MOST_SUBGROUP).contains(size))
    else {
        let given = stated.size.literal().map_or_else(|| "this".to_owned(), |size| size.to_string());
        return fail(format!(
            "the size of a subgroup is a power of two from {least} to {MOST_SUBGROUP}, which {given} is not"
        ));
    };
    if !along.is_multiple_of(size) {
        fail(format!("the workgroup has {along} invocations along x, which are not whole subgroups of {size}"));
    }
    for target in &module.targets {
        if let Some(own) = target.subgroup_size().filter(|own| *own != size) {
            let others: Vec<_> = Target::ALL
                .into_iter()
                .filter(|target| target.subgroup_size().is_none_or(|own| own == size))
                .map(Target::name)
                .collect();
            fail(format!(
                "{} has subgroups of {own} and no others: state {own}, or list `targets({})`",
                target.name(),
                others.join(", ")
            ));
        }
    }
}

/// The most rows or columns of a matrix.
const MOST_SIDE: u32 = 64;

fn check_type(module: &Module, ty: &Type, found: &mut Vec<Diagnostic>) {
    let known = |handle: Handle<Type>| module.types.get(handle).is_some();
    let mut fail = |message: String| found.push(Diagnostic::new(Span::NONE, message));
    match ty {
        Type::Scalar(Scalar::Generic(_)) | Type::Vector { scalar: Scalar::Generic(_), .. } => {
            fail(format!("a type parameter of `{}` was not replaced by a type", module.name));
        }
        Type::Vector { lanes, .. } if !(2..=4).contains(lanes) => {
            fail(format!("a vector has 2, 3 or 4 lanes, not {lanes}"));
        }
        Type::Array { element, length } => {
            if !known(*element) || length.literal().is_none_or(|length| length == 0) {
                fail("an array has a known element type and at least one element".to_owned());
            }
        }
        Type::Struct(handle) => match module.structs.get(*handle) {
            None => fail("a struct type is missing".to_owned()),
            Some(item) => {
                if let Some((name, _)) = item.fields.iter().find(|(_, field)| !known(*field)) {
                    fail(format!("the type of the field `{name}` of `{}` is missing", item.name));
                }
                if item.fields.is_empty() {
                    fail(format!("the struct `{}` has no fields", item.name));
                }
            }
        },
        Type::Enum(handle) if module.enums.get(*handle).is_none() => {
            fail("an enum type is missing".to_owned());
        }
        Type::Matrix(matrix) => {
            let name = super::type_name(module, ty);
            if matrix.shape().into_iter().any(|side| !(1..=MOST_SIDE).contains(&side)) {
                fail(format!("a matrix has 1 to {MOST_SIDE} rows and columns, which `{name}` has not"));
            }
            if !matrix.role.scalars().contains(&matrix.scalar) {
                let holds: Vec<_> = matrix.role.scalars().iter().map(|scalar| scalar.rust_name()).collect();
                fail(format!("`{name}`: a `{}` holds {}", matrix.role.name(), holds.join(" or ")));
            }
        }
        Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) => {}
    }
}

fn check_enum(item: &Enum, found: &mut Vec<Diagnostic>) {
    for (index, (name, value)) in item.variants.iter().enumerate() {
        if let Some((other, _)) = item.variants[..index].iter().find(|(_, known)| known == value) {
            found.push(Diagnostic::new(
                Span::NONE,
                format!("`{0}::{other}` and `{0}::{name}` have the same discriminant {value}", item.name),
            ));
        }
    }
}

/// Whether there are atomics of a type.
const fn holds_atomics(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(scalar) if crate::ir::AtomicFunction::Load.takes(*scalar))
}

fn check_binding(module: &Module, binding: &crate::ir::Binding, found: &mut Vec<Diagnostic>) {
    let mut fail = |message: String| found.push(Diagnostic::new(binding.span, message));
    let Some(ty) = module.types.get(binding.element) else {
        return fail(format!("the element type of `{}` is missing", binding.name));
    };
    if layout::of(module, binding.element).is_none() || holds(module, ty, Scalar::Bool) {
        fail(format!("a buffer cannot hold the elements of `{}`: bool has no layout; use u32", binding.name));
    } else if binding.kind == BindingKind::Atomic && !holds_atomics(ty) {
        fail(format!("the atomics of `{}` must hold i32, u32, i64, u64 or f32", binding.name));
    } else if matches!(ty, Type::Struct(_) | Type::Array { .. })
        && let Some(narrow) = Scalar::ALL.into_iter().find(|scalar| scalar.is_narrow() && holds(module, ty, *scalar))
    {
        let narrow = narrow.rust_name();
        fail(format!(
            "the elements of `{}` have a field of type {narrow}; only slices of {narrow} and of vectors of {narrow} are possible so far",
            binding.name
        ));
    }
    if let Some(rank) = binding.view
        && !(1..=8).contains(&rank)
    {
        fail(format!("the view `{}` has {rank} axes; 1 to 8 are possible", binding.name));
    }
    if binding.packed == 0 {
        fail(format!("the binding `{}` packs no elements", binding.name));
    }
}

fn holds(module: &Module, ty: &Type, wanted: Scalar) -> bool {
    match ty {
        Type::Scalar(scalar) | Type::Vector { scalar, .. } => *scalar == wanted,
        Type::Array { element, .. } => holds(module, &module.types[*element], wanted),
        Type::Struct(item) => {
            module.structs[*item].fields.iter().any(|(_, field)| holds(module, &module.types[*field], wanted))
        }
        Type::Enum(_) => false,
        Type::Matrix(matrix) => matrix.scalar == wanted,
    }
}
