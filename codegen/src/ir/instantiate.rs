//! Giving a generic module's parameters their values.

use super::arena::{Arena, Handle};
use super::expression::{Builtin, Expression, ExpressionKind, Literal};
use super::matrix::Matrix;
use super::module::{Function, Generic, GenericKind, GenericValue, Instance, Module};
use super::rewrite::{Copy, Rewrite, rewrite};
use super::span::Span;
use super::types::{Scalar, Size, SizeOperator, Type};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hashing::HashMap;

/// The module with its generics replaced by `instance`'s values, named after them (`matmul_f32_64`), and with indices as wide as it says
/// (`matmul_f32_64_index64`, which has no WGSL). A module without generics is instantiated by an empty instance.
///
/// # Errors
/// The values are not what the generics ask for, a size cannot be computed, or a constant does not fit its type.
pub fn instantiate(module: &Module, instance: &Instance) -> Result<Module, Diagnostics> {
    check_values(module, instance)?;
    let mut out = Module {
        types: Arena::new(),
        generics: Vec::new(),
        entry: Function::default(),
        functions: Arena::new(),
        ..module.clone()
    };
    for value in &instance.values {
        out.name.push('_');
        out.name.push_str(&value_name(*value));
    }
    if module.workgroup_size.len() != 3 {
        return Err(Diagnostic::new(
            module.entry.span,
            format!("kernel `{}`: the workgroup has {} axes; it needs three", module.name, module.workgroup_size.len()),
        )
        .into());
    }
    let mut pass = Instantiate {
        old: module,
        values: &instance.values,
        types: Arena::new(),
        known: HashMap::default(),
        subgroup_size: None,
    };
    for (axis, size) in out.workgroup_size.iter_mut().enumerate() {
        let value = pass.size(size, module.entry.span, "the workgroup's size")?;
        if value == 0 {
            return Err(Diagnostic::new(
                module.entry.span,
                format!("the workgroup of `{}` has no invocations along axis {axis}", out.name),
            )
            .into());
        }
        *size = Size::Literal(value);
    }
    if let Some(stated) = &mut out.subgroup {
        let size = pass.size(&stated.size, stated.span, "the size of a subgroup")?;
        stated.size = Size::Literal(size);
        pass.subgroup_size = Some(size);
    }
    if let Some(resident) = &mut out.resident {
        let what = "the number of workgroups that a multiprocessor has room for";
        *resident = pass.exact(resident, module.entry.span, what)?;
        if super::largest(resident, &module.params).is_none_or(|(least, _)| least == 0) {
            let message = format!("{what} is no number from 1 on for every value of its specialisation constants");
            return Err(Diagnostic::new(module.entry.span, message).into());
        }
    }
    for (_, item) in out.structs.iter_mut() {
        for (_, field) in &mut item.fields {
            *field = pass.ty(*field)?;
        }
    }
    for binding in &mut out.bindings {
        binding.element = pass.ty(binding.element)?;
    }
    for param in &mut out.params {
        param.ty = pass.ty(param.ty)?;
    }
    for (_, variable) in out.workgroup.iter_mut() {
        variable.element = pass.ty(variable.element)?;
        if let Some(tile) = &mut variable.tile {
            let what = format!("a side of the tile `{}`", variable.name);
            for side in [&mut tile.rows, &mut tile.columns] {
                *side = Size::Literal(pass.size(side, variable.span, &what)?);
            }
            tile.scalar = pass.scalar(tile.scalar)?;
        }
        let what = format!("the length of `{}`", variable.name);
        let exact = pass.exact(&variable.length, variable.span, &what)?;
        let (least, length) = super::largest(&exact, &module.params).ok_or_else(|| {
            Diagnostic::new(
                variable.span,
                format!("{what} is no number from 1 to 2^32 - 1 for every value of its specialisation constants"),
            )
        })?;
        if least == 0 {
            return Err(Diagnostic::new(
                variable.span,
                format!("{what} is 0; workgroup memory needs at least one element"),
            )
            .into());
        }
        variable.length = Size::Literal(length);
        variable.exact = exact.is_specialised().then_some(exact);
    }
    for (_, function) in module.functions.iter() {
        out.functions.add(rewrite(&mut pass, function)?);
    }
    out.entry = rewrite(&mut pass, &module.entry)?;
    out.types = pass.types;
    if instance.index.is_wide() {
        out.name.push_str(WIDE);
        // Of several targets, those that have such indices.
        if out.targets.iter().any(|target| target.has_wide_indices()) {
            out.targets.retain(|target| target.has_wide_indices());
        }
        super::widen::widen(&mut out)?;
    }
    Ok(out)
}

/// What the name of an instance ends in whose indices are 64 bits wide.
const WIDE: &str = "_index64";

fn value_name(value: GenericValue) -> String {
    match value {
        GenericValue::Type(scalar) => scalar.rust_name().to_owned(),
        GenericValue::Const(Literal::Bool(value)) => value.to_string(),
        GenericValue::Const(literal) => match literal.as_integer() {
            Some(value) if value < 0 => format!("n{}", -value),
            Some(value) => value.to_string(),
            None => format!("{:x}", literal.bits()),
        },
    }
}

fn check_values(module: &Module, instance: &Instance) -> Result<(), Diagnostics> {
    let (expected, given) = (module.generics.len(), instance.values.len());
    if expected != given {
        return Err(Diagnostic::new(
            module.entry.span,
            format!("kernel `{}` has {expected} generic parameters; {given} values were given", module.name),
        )
        .into());
    }
    let mut found = Vec::new();
    for (generic, value) in module.generics.iter().zip(&instance.values) {
        if let Some(wanted) = mismatch(generic, *value) {
            let given = match value {
                GenericValue::Type(scalar) => format!("the type {}", scalar.rust_name()),
                GenericValue::Const(literal) => {
                    format!("a constant of type {}", literal.scalar().rust_name())
                }
            };
            found.push(Diagnostic::new(
                module.entry.span,
                format!("kernel `{}`: `{}` stands for {wanted}; {given} was given", module.name, generic.name),
            ));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// What the generic asks for, if the value is something else.
fn mismatch(generic: &Generic, value: GenericValue) -> Option<String> {
    let allowed: &[Scalar] = match generic.kind {
        GenericKind::Const(scalar) => {
            let fits = matches!(value, GenericValue::Const(literal) if literal.scalar() == scalar);
            return (!fits).then(|| format!("a constant of type {}", scalar.rust_name()));
        }
        GenericKind::Type(bound) => bound.scalars(),
    };
    if matches!(value, GenericValue::Type(scalar) if allowed.contains(&scalar)) {
        return None;
    }
    let names: Vec<_> = allowed.iter().map(|scalar| scalar.rust_name()).collect();
    Some(format!("one of the types {}", names.join(", ")))
}

struct Instantiate<'a> {
    old: &'a Module,
    values: &'a [GenericValue],
    types: Arena<Type>,
    known: HashMap<Handle<Type>, Handle<Type>>,
    /// The one that the kernel states.
    subgroup_size: Option<u32>,
}

impl Instantiate<'_> {
    fn scalar(&self, scalar: Scalar) -> Result<Scalar, Diagnostic> {
        let Scalar::Generic(index) = scalar else {
            return Ok(scalar);
        };
        match self.values.get(index as usize) {
            Some(GenericValue::Type(scalar)) => Ok(*scalar),
            _ => Err(Diagnostic::new(
                Span::NONE,
                format!("generic parameter {index} of `{}` is used as a type and is none", self.old.name),
            )),
        }
    }

    fn constant(&self, index: u32, span: Span) -> Result<Literal, Diagnostic> {
        match self.values.get(index as usize) {
            Some(GenericValue::Const(literal)) => Ok(*literal),
            _ => Err(Diagnostic::new(
                span,
                format!("generic parameter {index} of `{}` is used as a constant and is none", self.old.name),
            )),
        }
    }

    fn size(&self, size: &Size, span: Span, what: &str) -> Result<u32, Diagnostic> {
        let value = self.wide_size(size, span, what)?;
        u32::try_from(value)
            .map_err(|_| Diagnostic::new(span, format!("{what} is {value}, which is not a number from 0 to 2^32 - 1")))
    }

    /// The size with everything computed but what depends on specialisation constants.
    fn exact(&self, size: &Size, span: Span, what: &str) -> Result<Size, Diagnostic> {
        Ok(match size {
            Size::Param(index) => Size::Param(*index),
            Size::Binary(operator, left, right) if size.is_specialised() => {
                let (left, right) = (self.exact(left, span, what)?, self.exact(right, span, what)?);
                Size::Binary(*operator, Box::new(left), Box::new(right))
            }
            size => Size::Literal(self.size(size, span, what)?),
        })
    }

    fn wide_size(&self, size: &Size, span: Span, what: &str) -> Result<i64, Diagnostic> {
        match size {
            Size::Literal(value) => Ok(i64::from(*value)),
            Size::Param(_) => Err(Diagnostic::new(
                span,
                format!(
                    "{what} is wanted while building, and a specialisation constant is known when a pipeline is made"
                ),
            )),
            Size::Generic(index) => self
                .constant(*index, span)?
                .as_integer()
                .and_then(|value| i64::try_from(value).ok())
                .ok_or_else(|| Diagnostic::new(span, format!("{what} uses a constant that is no integer"))),
            Size::Binary(operator, left, right) => {
                let left = self.size(left, span, what)?;
                let right = self.size(right, span, what)?;
                let value = match operator {
                    SizeOperator::Add => left.checked_add(right),
                    SizeOperator::Subtract => left.checked_sub(right),
                    SizeOperator::Multiply => left.checked_mul(right),
                    SizeOperator::Divide => left.checked_div(right),
                    SizeOperator::Remainder => left.checked_rem(right),
                };
                let sign = operator.sign();
                value.map(i64::from).ok_or_else(|| {
                    Diagnostic::new(
                        span,
                        format!("{what} cannot be computed: {left} {sign} {right} is no number from 0 to 2^32 - 1"),
                    )
                })
            }
        }
    }
}

impl Rewrite for Instantiate<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        if let Some(known) = self.known.get(&ty) {
            return Ok(*known);
        }
        let new = match &self.old.types[ty] {
            Type::Scalar(scalar) => Type::Scalar(self.scalar(*scalar)?),
            Type::Vector { lanes, scalar } => Type::vector(*lanes, self.scalar(*scalar)?),
            Type::Array { element, length } => {
                let length = self.size(length, Span::NONE, "the length of an array")?;
                if length == 0 {
                    return Err(Diagnostic::new(
                        Span::NONE,
                        format!("an array in `{}` has no elements; it needs at least one", self.old.name),
                    ));
                }
                Type::Array { element: self.ty(*element)?, length: Size::Literal(length) }
            }
            Type::Struct(item) => Type::Struct(*item),
            Type::Enum(item) => Type::Enum(*item),
            Type::Matrix(matrix) => Type::Matrix(Matrix {
                role: matrix.role,
                scalar: self.scalar(matrix.scalar)?,
                rows: Size::Literal(self.size(&matrix.rows, Span::NONE, "the rows of a matrix")?),
                columns: Size::Literal(self.size(&matrix.columns, Span::NONE, "the columns of a matrix")?),
            }),
        };
        let new = self.types.intern(new);
        self.known.insert(ty, new);
        Ok(new)
    }

    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        expression: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let old = &copy.old.expressions[expression];
        let (span, ty) = (old.span, old.ty);
        let literal = match &old.kind {
            ExpressionKind::GenericConstant(index) => self.constant(*index, span)?,
            ExpressionKind::Builtin(Builtin::SubgroupSize) => match self.subgroup_size {
                Some(size) => Literal::Index(size),
                None => return copy.expression(self, expression),
            },
            ExpressionKind::Literal(Literal::Generic { scalar, value }) => {
                let scalar = self.scalar(*scalar)?;
                nearest(scalar, *value).ok_or_else(|| {
                    Diagnostic::new(
                        span,
                        format!(
                            "{value} has no counterpart of type {}, which `{}` has here",
                            scalar.rust_name(),
                            copy.old.name
                        ),
                    )
                })?
            }
            // `x.to_f32()` where T is f32 is x.
            ExpressionKind::Convert(value) => {
                let value = *value;
                let from = self.ty(copy.old.expressions[value].ty)?;
                if from == self.ty(ty)? {
                    return self.expression(copy, value);
                }
                return copy.expression(self, expression);
            }
            _ => return copy.expression(self, expression),
        };
        let ty = self.ty(ty)?;
        Ok(copy.add(ExpressionKind::Literal(literal), ty, span))
    }
}

/// The literal of a type nearest to `value`; `None` for integers if it is none of the type's values.
fn nearest(scalar: Scalar, value: f64) -> Option<Literal> {
    if scalar.is_integer() {
        // An integer that is no number of the type becomes another one here.
        return Literal::exact_integer(scalar, value as i128).filter(|_| value.fract() == 0.0);
    }
    Literal::float(scalar, value)
}
