//! Parameters of structs, and of arrays of more than scalars, as the parameters that targets know: scalars, vectors and arrays of scalars.
//!
//! A parameter is taken apart into *leaves*: each scalar or vector that lies in it by a way through fields. What lies within arrays is one array for
//! all of its elements, lane by lane, so that no leaf is padded. The leaves are what the parameter block holds, in order; the launch
//! takes a value apart in the same way.

use crate::artefact::ParamType;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, BinaryOperator as B, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Module, Param,
    Scalar, Size, Span, Struct, Type,
};
use crate::layout;
use crate::names::FieldNames;

/// A leaf of a type: the names of the fields on the way, and what lies there.
pub(crate) struct Leaf {
    /// Joined by `_`; empty for the whole.
    pub(crate) name: String,
    pub(crate) ty: ParamType,
}

/// The leaves of a type; `None` if a part of it cannot be a parameter.
pub(crate) fn leaves(module: &Module, ty: Handle<Type>) -> Option<Vec<Leaf>> {
    match &module.types[ty] {
        Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) => {
            Some(vec![Leaf { name: String::new(), ty: layout::param_type(module, ty)? }])
        }
        Type::Array { element, length } => {
            let length = length.literal()?;
            if holds_enum(module, *element) {
                return None;
            }
            let each = |mut leaf: Leaf| {
                leaf.ty = ParamType { count: leaf.ty.count.checked_mul(length)?, array: true, ..leaf.ty };
                Some(leaf)
            };
            leaves(module, *element)?.into_iter().map(each).collect()
        }
        Type::Struct(handle) => {
            let mut all = Vec::new();
            for (field, ty) in &module.structs[*handle].fields {
                all.extend(leaves(module, *ty)?.into_iter().map(|leaf| Leaf {
                    name: if leaf.name.is_empty() { field.clone() } else { format!("{field}_{}", leaf.name) },
                    ..leaf
                }));
            }
            Some(all)
        }
        Type::Matrix(_) => None,
    }
}

/// The first leaf of a parameter, among those of all parameters.
pub(crate) fn first_leaf(module: &Module, param: u32) -> Option<u32> {
    let before = module.params.iter().take(param as usize).filter(|param| param.specialise.is_none());
    before.map(|param| count(module, param.ty)).sum()
}

/// How many leaves of a struct lie before those of a field.
pub(crate) fn leaves_before(module: &Module, structure: Handle<Struct>, field: u32) -> Option<u32> {
    module.structs[structure].fields.iter().take(field as usize).map(|(_, ty)| count(module, *ty)).sum()
}

fn count(module: &Module, ty: Handle<Type>) -> Option<u32> {
    leaves(module, ty).map(|leaves| leaves.len() as u32)
}

/// Whether the type has no fields, so that it is one leaf as a whole.
pub(crate) fn is_leaf(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty] {
        Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) => true,
        Type::Array { element, .. } => is_leaf(module, *element),
        Type::Struct(_) | Type::Matrix(_) => false,
    }
}

/// Whether an enum lies in the type.
fn holds_enum(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty] {
        Type::Scalar(_) | Type::Vector { .. } | Type::Matrix(_) => false,
        Type::Enum(_) => true,
        Type::Array { element, .. } => holds_enum(module, *element),
        Type::Struct(handle) => module.structs[*handle].fields.iter().any(|(_, field)| holds_enum(module, *field)),
    }
}

/// Takes every parameter apart into its leaves.
///
/// # Errors
/// A parameter cannot be one, which the verifier rules out.
pub(crate) fn legalise(module: &mut Module) -> Result<(), Diagnostics> {
    let simple = |ty: Handle<Type>| match &module.types[ty] {
        Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) => true,
        Type::Array { element, .. } => matches!(module.types[*element], Type::Scalar(_)),
        Type::Struct(_) | Type::Matrix(_) => false,
    };
    if module.params.iter().all(|param| simple(param.ty)) {
        return Ok(());
    }
    // Those of the block, which is laid out from the leaves as it is from what they are leaves of.
    let mut names = FieldNames::new(module);
    let old = std::mem::take(&mut module.params);
    let mut first = Vec::new();
    for param in &old {
        first.push(module.params.len() as u32);
        if param.specialise.is_some() {
            module.params.push(param.clone());
            continue;
        }
        let all = leaves(module, param.ty)
            .ok_or_else(|| Diagnostic::new(param.span, format!("`{}` cannot be a parameter", param.name)))?;
        let mut types = Vec::new();
        leaf_types(module, param.ty, None, &mut types);
        for (leaf, ty) in all.into_iter().zip(types) {
            let (name, ty) = (names.of_leaf(&param.name, &leaf.name), module.intern(ty));
            module.params.push(Param { name, ty, specialise: None, span: param.span });
        }
    }
    for exact in module.workgroup.iter_mut().filter_map(|(_, variable)| variable.exact.as_mut()) {
        exact.renumber(&first);
    }
    if let Some(resident) = &mut module.resident {
        resident.renumber(&first);
    }
    let functions = std::mem::take(&mut module.functions);
    let entry = std::mem::take(&mut module.entry);
    let mut pass = Flat { module, old, first };
    let mut rewritten = Arena::new();
    for (_, function) in functions.iter() {
        rewritten.add(rewrite(&mut pass, function)?);
    }
    let entry = rewrite(&mut pass, &entry)?;
    module.functions = rewritten;
    module.entry = entry;
    Ok(())
}

/// The types of a type's leaves; `within` is how many of it there are, if it lies in arrays.
fn leaf_types(module: &mut Module, ty: Handle<Type>, within: Option<u32>, out: &mut Vec<Type>) {
    let known = module.types[ty].clone();
    match (known, within) {
        (Type::Struct(handle), _) => {
            for (_, field) in module.structs[handle].fields.clone() {
                leaf_types(module, field, within, out);
            }
        }
        (Type::Array { element, length }, _) => {
            let length = length.literal().unwrap_or(1);
            leaf_types(module, element, Some(within.unwrap_or(1) * length), out);
        }
        (known, None) => out.push(known),
        (known, Some(count)) => {
            let element = module.intern(Type::Scalar(known.scalar().unwrap_or(Scalar::U32)));
            let length = Size::Literal(count * u32::from(known.lanes().unwrap_or(1)));
            out.push(Type::Array { element, length });
        }
    }
}

type Value = Handle<Expression>;

struct Flat<'a> {
    module: &'a mut Module,
    /// The parameters as they were.
    old: Vec<Param>,
    /// The first leaf of each.
    first: Vec<u32>,
}

/// A step from a part of a parameter to a part of that.
#[derive(Clone, Copy)]
enum Step {
    Known(u32),
    /// By an index of the old function.
    At(Value),
}

/// A part of a parameter.
#[derive(Clone)]
struct Part {
    ty: Handle<Type>,
    /// Its first leaf.
    leaf: u32,
    /// The steps into arrays on the way, each with the array's length; empty if it lies in none.
    steps: Vec<(Step, u32)>,
}

impl Flat<'_> {
    /// The part of a parameter that an expression is.
    fn part(&self, copy: &Copy<'_>, value: Value) -> Option<Part> {
        let (base, step) = match &copy.old.expressions[value].kind {
            ExpressionKind::Param(param) => {
                let index = *param as usize;
                return Some(Part { ty: self.old[index].ty, leaf: self.first[index], steps: Vec::new() });
            }
            ExpressionKind::Member { base, index } => (*base, Step::Known(*index)),
            ExpressionKind::Element { base, index } => (*base, Step::At(*index)),
            _ => return None,
        };
        self.step(self.part(copy, base)?, step)
    }

    /// A part of a struct or array; `None` for a lane.
    fn step(&self, part: Part, step: Step) -> Option<Part> {
        match (&self.module.types[part.ty], step) {
            (Type::Struct(handle), Step::Known(field)) => {
                let fields = &self.module.structs[*handle].fields;
                let before = fields[..field as usize].iter().map(|(_, ty)| self.count(*ty)).sum::<u32>();
                Some(Part { ty: fields[field as usize].1, leaf: part.leaf + before, steps: part.steps })
            }
            (Type::Array { element, length }, step) => {
                let mut steps = part.steps;
                steps.push((step, length.literal()?));
                Some(Part { ty: *element, leaf: part.leaf, steps })
            }
            _ => None,
        }
    }

    /// How many leaves a type has.
    fn count(&self, ty: Handle<Type>) -> u32 {
        match &self.module.types[ty] {
            Type::Struct(handle) => self.module.structs[*handle].fields.iter().map(|(_, ty)| self.count(*ty)).sum(),
            Type::Array { element, .. } => self.count(*element),
            Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) | Type::Matrix(_) => 1,
        }
    }

    fn add(&mut self, copy: &mut Copy<'_>, kind: ExpressionKind, ty: Type, span: Span) -> Value {
        let ty = self.module.intern(ty);
        copy.add(kind, ty, span)
    }

    fn word(&mut self, copy: &mut Copy<'_>, value: u32, span: Span) -> Value {
        self.add(copy, ExpressionKind::Literal(Literal::U32(value)), Type::Scalar(Scalar::U32), span)
    }

    fn binary(&mut self, copy: &mut Copy<'_>, operator: B, left: Value, right: Value, span: Span) -> Value {
        let scalar = if operator.is_comparison() { Scalar::Bool } else { Scalar::U32 };
        self.add(copy, ExpressionKind::Binary { operator, left, right }, Type::Scalar(scalar), span)
    }

    /// The index of a step as a word.
    fn index(&mut self, copy: &mut Copy<'_>, step: Step, span: Span) -> Result<Value, Diagnostic> {
        match step {
            Step::Known(number) => Ok(self.word(copy, number, span)),
            Step::At(index) => {
                let mut index = self.expression(copy, index)?;
                let ty = copy.new.expressions[index].ty;
                match self.module.types[ty] {
                    Type::Scalar(Scalar::U32) => return Ok(index),
                    // What no word holds is past the end.
                    Type::Scalar(Scalar::U64) => {
                        let most = ExpressionKind::Literal(Literal::U64(u32::MAX.into()));
                        let arguments = vec![index, copy.add(most, ty, span)];
                        index = copy.add(ExpressionKind::Math { function: MathFunction::Min, arguments }, ty, span);
                    }
                    _ => {}
                }
                Ok(self.add(copy, ExpressionKind::Convert(index), Type::Scalar(Scalar::U32), span))
            }
        }
    }

    /// A scalar of a leaf that is an array: `lane` of the `lanes` of the element that the steps lead to; zero past the end of any.
    fn scalar(
        &mut self,
        copy: &mut Copy<'_>,
        part: &Part,
        (lane, lanes): (u32, u32),
        span: Span,
    ) -> Result<Value, Diagnostic> {
        let leaf = self.module.params[part.leaf as usize].ty;
        let base = copy.add(ExpressionKind::Param(part.leaf), leaf, span);
        let Type::Array { element, .. } = self.module.types[leaf] else {
            return Err(Diagnostic::new(span, "a parameter in an array is no array"));
        };
        let known = part.steps.iter().try_fold(0u32, |at, (step, length)| match step {
            Step::Known(index) => Some(at * length + index),
            Step::At(_) => None,
        });
        if let Some(at) = known {
            return Ok(copy.add(ExpressionKind::Member { base, index: at * lanes + lane }, element, span));
        }
        let (mut at, mut inside) = (None, None);
        for (step, length) in &part.steps {
            let mut index = self.index(copy, *step, span)?;
            if let Some(before) = at {
                let length = self.word(copy, *length, span);
                let before = self.binary(copy, B::Multiply, before, length, span);
                index = self.binary(copy, B::Add, before, index, span);
            }
            at = Some(index);
            if let Step::At(_) = step {
                let index = self.index(copy, *step, span)?;
                let end = self.word(copy, *length, span);
                let here = self.binary(copy, B::Less, index, end, span);
                inside = Some(match inside {
                    None => here,
                    Some(before) => {
                        let kind = ExpressionKind::Binary { operator: B::And, left: before, right: here };
                        self.add(copy, kind, Type::Scalar(Scalar::Bool), span)
                    }
                });
            }
        }
        let (Some(mut at), Some(condition)) = (at, inside) else {
            return Err(Diagnostic::new(span, "an index leads nowhere"));
        };
        if lanes > 1 {
            let lanes = self.word(copy, lanes, span);
            let lane = self.word(copy, lane, span);
            at = self.binary(copy, B::Multiply, at, lanes, span);
            at = self.binary(copy, B::Add, at, lane, span);
        }
        let reject = self.word(copy, u32::MAX, span);
        let kind = ExpressionKind::Select { condition, accept: at, reject };
        let index = self.add(copy, kind, Type::Scalar(Scalar::U32), span);
        Ok(copy.add(ExpressionKind::Element { base, index }, element, span))
    }

    /// The value of a part.
    fn value(&mut self, copy: &mut Copy<'_>, part: &Part, span: Span) -> Result<Value, Diagnostic> {
        let parts = match self.module.types[part.ty].clone() {
            Type::Struct(handle) => self.module.structs[handle].fields.len() as u32,
            Type::Array { length, .. } => length.literal().unwrap_or(0),
            _ if part.steps.is_empty() => return Ok(copy.add(ExpressionKind::Param(part.leaf), part.ty, span)),
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => return self.scalar(copy, part, (0, 1), span),
            Type::Vector { lanes, .. } => {
                let lanes = u32::from(lanes);
                let values = (0..lanes).map(|lane| self.scalar(copy, part, (lane, lanes), span));
                let values = values.collect::<Result<Vec<_>, _>>()?;
                return Ok(copy.add(ExpressionKind::Compose(values), part.ty, span));
            }
        };
        // An array of scalars that lies in no other is a leaf.
        if part.steps.is_empty()
            && self.module.types[self.module.params[part.leaf as usize].ty] == self.module.types[part.ty]
        {
            return Ok(copy.add(ExpressionKind::Param(part.leaf), part.ty, span));
        }
        let mut values = Vec::new();
        for index in 0..parts {
            let inner = self
                .step(part.clone(), Step::Known(index))
                .ok_or_else(|| Diagnostic::new(span, "a part of a parameter is missing"))?;
            values.push(self.value(copy, &inner, span)?);
        }
        Ok(copy.add(ExpressionKind::Compose(values), part.ty, span))
    }
}

impl Rewrite for Flat<'_> {
    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, span, .. } = &old.expressions[handle];
        let part = match kind {
            ExpressionKind::Param(_) | ExpressionKind::Member { .. } | ExpressionKind::Element { .. } => {
                self.part(copy, handle)
            }
            _ => None,
        };
        let Some(part) = part else { return copy.expression(self, handle) };
        // One step into a leaf that is an array is what targets know.
        if let ([(Step::At(index), _)], Type::Scalar(_)) = (&part.steps[..], &self.module.types[part.ty]) {
            let leaf = self.module.params[part.leaf as usize].ty;
            let base = copy.add(ExpressionKind::Param(part.leaf), leaf, *span);
            let index = self.expression(copy, *index)?;
            return Ok(copy.add(ExpressionKind::Element { base, index }, part.ty, *span));
        }
        self.value(copy, &part, *span)
    }
}
