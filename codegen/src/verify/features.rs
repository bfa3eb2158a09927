//! Which features a kernel needs, and which make a difference to its code.
//!
//! `if const { target::has(..) }` makes a kernel's needs depend on what there is. A set of features is *viable* if it holds what
//! `requires(..)` names, and the code that is left with it needs nothing outside it. The required set itself must be viable:
//! an operation that wants more stands inside an `if const`, or its feature is required on the kernel.

mod wide;

use std::fmt::Display;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{
    BindingKind, Block, Builtin, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Module,
    Precision, Scalar, Span, StatementKind, TileOperation, Type, constant,
};
use crate::target::{Feature, Features, Target};

/// What was found out.
pub struct Found {
    /// In every viable set.
    pub required: Features,
    /// Makes a difference.
    pub relevant: Features,
}

pub fn find(module: &Module) -> Result<Found, Diagnostics> {
    let narrow = narrow(module);
    let required = required(module).closed(narrow);
    let mut found: Vec<Diagnostic> = Vec::new();
    for feature in required.iter() {
        let never = names_of(module, |target| feature.never(target));
        if !never.is_empty() {
            found.push(Diagnostic::new(
                module.entry.span,
                format!(
                    "`{}` requires `Feature::{}`, which {} never has: list `targets({})`",
                    module.name,
                    feature.variant_name(),
                    never.join(" and "),
                    able(feature),
                ),
            ));
        }
    }
    let mut needed = Features::NONE;
    each_need(module, required, &mut |feature, what, span| {
        needed = needed.union(Features::of(&[feature]));
        let lacking = names_of(module, |target| !feature.always(target));
        let never = names_of(module, |target| feature.never(target));
        let name = feature.variant_name();
        // One operation is told of once, and what the attribute asks for there.
        if required.has(feature) || found.iter().any(|known: &Diagnostic| known.span == span) {
            return;
        }
        if !never.is_empty() {
            found.push(Diagnostic::new(
                span,
                format!(
                    "{what} needs `Feature::{name}`, which {} never has: list `targets({})` alone, or put it into `if const {{ target::has(Feature::{name}) }}`",
                    never.join(" and "),
                    able(feature),
                ),
            ));
        } else if !lacking.is_empty() {
            // Where some targets always have it, leaving out the others helps too.
            let (which, instead) = if Target::ALL.into_iter().any(|target| feature.always(target)) {
                let have: Vec<&str> =
                    Target::ALL.into_iter().filter(|target| feature.always(*target)).map(Target::name).collect();
                (
                    format!("which not every device of {} has", lacking.join(" and ")),
                    format!("list `targets({})` alone, ", have.join(", ")),
                )
            } else {
                ("which not every device has".to_owned(), String::new())
            };
            found.push(Diagnostic::new(
                span,
                format!("{what} needs `Feature::{name}`, {which}: write `requires({name})` on the kernel, {instead}or put it into `if const {{ target::has(Feature::{name}) }}`"),
            ));
        }
    });
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let mut relevant = required.union(needed);
    for function in super::functions(module) {
        // Conditions alone hold `TargetHas`.
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::TargetHas(feature) = function.expressions[expression].kind {
                relevant = relevant.union(Features::of(&[feature]));
            }
        });
    }
    relevant = relevant.union(narrow);
    if relevant.has(Feature::Float64) && wide::splits_doubles(module) {
        relevant = relevant.union(Features::of(&[Feature::Int64]));
    }
    if multiplies_bytes(module) {
        relevant = relevant.union(Features::of(&[Feature::IntegerDot]));
    }
    relevant = relevant.closed(narrow);
    Ok(Found { required, relevant })
}

/// What the attribute asks for: a size of subgroups is of use where there are some, indices of 64 bits are computed with, and so are words of doubles made.
fn required(module: &Module) -> Features {
    let subgroups = if module.subgroup.is_some() { Features::of(&[Feature::Subgroups]) } else { Features::NONE };
    let index = if module.index.is_wide() { Features::of(&[Feature::Int64]) } else { Features::NONE };
    let words = module.requires.has(Feature::Float64) && wide::splits_doubles(module);
    let words = if words { Features::of(&[Feature::Int64]) } else { Features::NONE };
    module.requires.union(subgroups).union(index).union(words)
}

/// The targets on which there is a feature, as the attribute lists them.
fn able(feature: Feature) -> String {
    let able: Vec<&str> = Target::ALL.into_iter().filter(|target| !feature.never(*target)).map(Target::name).collect();
    able.join(", ")
}

/// The names of the kernel's targets of which something holds.
fn names_of(module: &Module, holds: impl Fn(Target) -> bool) -> Vec<&'static str> {
    module.targets.iter().copied().filter(|target| holds(*target)).map(Target::name).collect()
}

/// What makes a difference to a kernel's narrow floats, and is there where matrices are: halves in memory, and `bf16` in matrices.
fn narrow(module: &Module) -> Features {
    let elements = module.bindings.iter().map(|binding| binding.element);
    let workgroup = module.workgroup.iter().map(|(_, variable)| variable.element);
    let holds_halves = elements.chain(workgroup).any(|element| module.types[element].scalar() == Some(Scalar::F16));
    let is_of_brains = |ty: &Type| matches!(ty, Type::Matrix(matrix) if matrix.scalar == Scalar::BF16);
    let mut found = Features::NONE;
    if holds_halves {
        found = found.union(Features::of(&[Feature::F16Storage]));
    }
    if module.types.iter().any(|(_, ty)| is_of_brains(ty)) {
        found = found.union(Features::of(&[Feature::Bf16Matrices]));
    }
    found
}

/// Whether sums of the products of bytes are computed.
fn multiplies_bytes(module: &Module) -> bool {
    use MathFunction::{Dot4I8, Dot4U8};
    super::functions(module).any(|function| {
        let mut all = function.expressions.iter().map(|(_, expression)| &expression.kind);
        all.any(|kind| matches!(kind, ExpressionKind::Math { function: Dot4I8 | Dot4U8, .. }))
    })
}

/// Whether code for devices with exactly `features` needs nothing else.
pub fn viable(module: &Module, features: Features) -> bool {
    features.contains(required(module))
        && features.contains(live_features(module, features))
        && features.closed(narrow(module)) == features
        && (features.has(Feature::CooperativeMatrices) || !features.has(Feature::Bf16Matrices))
}

/// The features that operations need which are left when `if const` is decided for `features`.
pub fn live_features(module: &Module, features: Features) -> Features {
    let mut needed = Features::NONE;
    each_need(module, features, &mut |feature, _, _| needed = needed.union(Features::of(&[feature])));
    needed
}

/// Calls `visit` with each feature that an operation needs which is left when `if const` is decided for `features`, the operation
/// in the author's words, and where it is.
fn each_need(module: &Module, features: Features, visit: &mut dyn FnMut(Feature, &dyn Display, Span)) {
    let wide = |element: Handle<Type>| module.types[element].scalar().is_some_and(Scalar::is_wide);
    let mut atomics = |name: &str, span: Span| {
        for feature in [Feature::Int64Atomics, Feature::Int64] {
            visit(feature, &format_args!("the element type of `{name}`"), span);
        }
    };
    for binding in module.bindings.iter().filter(|binding| binding.kind == BindingKind::Atomic && wide(binding.element))
    {
        atomics(&binding.name, binding.span);
    }
    for (_, variable) in module.workgroup.iter().filter(|(_, variable)| variable.atomic && wide(variable.element)) {
        atomics(&variable.name, variable.span);
    }
    for binding in &module.bindings {
        if let Some(feature) = wide::of_memory(module, binding.element) {
            visit(feature, &format_args!("the element type of `{}`", binding.name), binding.span);
        }
    }
    for (_, variable) in module.workgroup.iter() {
        if let Some(feature) = wide::of_memory(module, variable.element) {
            visit(feature, &format_args!("the element type of `{}`", variable.name), variable.span);
        }
    }
    // A function calls only those before it, and needs nothing where all of its calls are left out.
    let mut called = vec![false; module.functions.len()];
    for (index, function) in super::functions(module).enumerate().collect::<Vec<_>>().into_iter().rev() {
        if called.get(index).is_some_and(|called| !called) {
            continue;
        }
        if function.precision == Precision::Strict && rounds(module, function) {
            visit(Feature::Strict, &"`strict`", function.span);
        }
        needs(module, function, &function.body, features, &mut called, visit);
    }
}

/// Whether a function computes with floats.
fn rounds(module: &Module, function: &Function) -> bool {
    let is_float =
        |part: Handle<Expression>| module.types[function.expressions[part].ty].scalar().is_some_and(Scalar::is_float);
    let mut found = false;
    function.live(&function.body, &mut |part| {
        found |= match &function.expressions[part].kind {
            ExpressionKind::Binary { operator, left, .. } => !operator.is_comparison() && is_float(*left),
            ExpressionKind::Math { arguments, .. } => arguments.first().is_some_and(|first| is_float(*first)),
            _ => false,
        };
    });
    found
}

fn needs(
    module: &Module,
    function: &Function,
    block: &Block,
    features: Features,
    called: &mut [bool],
    visit: &mut dyn FnMut(Feature, &dyn Display, Span),
) {
    for statement in block {
        statement.kind.operands(&mut |operand| {
            function.tree(*operand, &mut |part| {
                let expression = &function.expressions[part];
                if let ExpressionKind::Call { function, .. } = &expression.kind {
                    called[function.index()] = true;
                }
                if let ExpressionKind::Builtin(
                    builtin @ (Builtin::SubgroupSize | Builtin::SubgroupLane | Builtin::SubgroupIndex),
                ) = expression.kind
                {
                    let name = Builtin::ALL.iter().find(|(known, _)| *known == builtin).map_or("", |(_, name)| name);
                    visit(Feature::Subgroups, &format_args!("`{name}()`"), expression.span);
                }
                if let Type::Matrix(matrix) = &module.types[expression.ty] {
                    visit(Feature::CooperativeMatrices, &format_args!("`{}`", matrix.role.name()), expression.span);
                }
                if let Some((features, what)) = wide::of_expression(module, function, part, features) {
                    features.iter().for_each(|feature| visit(feature, &what, expression.span));
                }
            });
        });
        match &statement.kind {
            StatementKind::If { condition, accept, reject, constant: true } => {
                let value = evaluate(module, function, *condition, features);
                if value != Some(false) {
                    needs(module, function, accept, features, called, visit);
                }
                if value != Some(true) {
                    needs(module, function, reject, features, called, visit);
                }
            }
            kind => {
                match kind {
                    StatementKind::Subgroup { function, .. } => {
                        visit(Feature::Subgroups, &format_args!("`{}`", function.name()), statement.span);
                    }
                    StatementKind::Fence(scope) => {
                        visit(Feature::Ordering, &format_args!("`{}`", scope.fence()), statement.span);
                    }
                    StatementKind::Atomic { function, ordering, .. } if kind.orders_memory() => {
                        let name = format!("`{}{}`", function.name(), ordering.order.suffix());
                        visit(Feature::Ordering, &name, statement.span);
                    }
                    _ => {}
                }
                if let StatementKind::Matrix { operation, .. } = kind {
                    visit(
                        Feature::CooperativeMatrices,
                        &format_args!("`{}` of a matrix", operation.name()),
                        statement.span,
                    );
                }
                if let StatementKind::Tile(operation @ TileOperation::Multiply { .. }) = kind {
                    visit(Feature::CooperativeMatrices, &format_args!("`{}`", operation.name()), statement.span);
                }
                for inner in kind.blocks() {
                    needs(module, function, inner, features, called, visit);
                }
            }
        }
    }
}

/// The value of the condition of an `if const`.
pub fn evaluate(
    module: &Module,
    function: &Function,
    condition: Handle<Expression>,
    features: Features,
) -> Option<bool> {
    match constant::evaluate(module, function, condition, &|feature| Some(features.has(feature)))? {
        Literal::Bool(value) => Some(value),
        _ => None,
    }
}
