//! Every expression's type is what its operands imply, and every statement's operands have the types that it asks for.
//!
//! Halves are converted to and from `f32` alone: what else becomes one is rounded on the way, and the author says where.

mod expression;
mod statement;

pub(crate) use expression::{is_split, splits};

use crate::diagnostic::Diagnostic;
use crate::ir::{BindingKind, Expression, Function, Handle, Module, Place, Projection, Root, Scalar, Type, statements};

pub fn check(module: &Module) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for function in super::functions(module) {
        let checker = Checker { module, function };
        function.live(&function.body, &mut |handle| {
            let expression = &function.expressions[handle];
            match checker.infer(handle) {
                // A statement of its own, whose type nobody asks for.
                Ok(None) => {}
                Ok(Some(ty)) if ty == module.types[expression.ty] => {}
                Ok(Some(ty)) => found.push(Diagnostic::new(
                    expression.span,
                    format!("expected {}, found {}", name(module, &module.types[expression.ty]), name(module, &ty)),
                )),
                Err(message) => found.push(Diagnostic::new(expression.span, message)),
            }
        });
        if found.is_empty() {
            statements(&function.body, &mut |statement| {
                if let Err((span, message)) = checker.statement(statement) {
                    found.push(Diagnostic::new(span, message));
                }
            });
        }
    }
    found
}

/// A type as Rust writes it.
pub fn name(module: &Module, ty: &Type) -> String {
    match ty {
        Type::Scalar(scalar) => scalar.rust_name().to_owned(),
        Type::Vector { lanes, scalar } => format!("Vec{lanes}<{}>", scalar.rust_name()),
        Type::Array { element, length } => {
            let length = length.literal().map_or_else(|| "_".to_owned(), |length| length.to_string());
            format!("[{}; {length}]", name(module, &module.types[*element]))
        }
        Type::Struct(item) => module.structs[*item].name.clone(),
        Type::Enum(item) => module.enums[*item].name.clone(),
        Type::Matrix(matrix) => {
            let [rows, columns] = matrix.shape();
            format!("{}<{}, {rows}, {columns}>", matrix.role.name(), matrix.scalar.rust_name())
        }
    }
}

/// The type of a place, which must exist.
pub fn place_type(module: &Module, function: &Function, place: &Place) -> Result<Type, String> {
    let (root, elements) = match place.root {
        Root::Binding(binding) => (module.bindings[binding as usize].element, true),
        Root::Workgroup(variable) => (module.workgroup[variable].element, true),
        Root::Local(local) => (function.locals[local].ty, false),
        Root::Argument(argument) => (function.arguments[argument as usize].ty, false),
    };
    let mut ty = module.types[root].clone();
    for (step, projection) in place.path.iter().enumerate() {
        let is_element = elements && step == 0;
        ty = match *projection {
            Projection::Index(_) if is_element => ty,
            Projection::Vector { lanes, .. } => {
                let element = match (&ty, is_element) {
                    (Type::Array { element, .. }, false) => &module.types[*element],
                    (ty, true) => ty,
                    _ => return Err(format!("{} is no array: it has no vectors of elements", name(module, &ty))),
                };
                match (element, lanes) {
                    (Type::Scalar(scalar), 2 | 4) => Type::vector(lanes, *scalar),
                    _ => {
                        return Err(format!(
                            "`vec2` and `vec4` are there for slices of scalars, not for one of {}",
                            name(module, element)
                        ));
                    }
                }
            }
            Projection::Index(_) => match ty {
                Type::Array { element, .. } => module.types[element].clone(),
                Type::Vector { scalar, .. } => Type::Scalar(scalar),
                Type::Matrix(matrix) => Type::Scalar(matrix.scalar),
                _ => return Err(format!("{} cannot be indexed", name(module, &ty))),
            },
            Projection::Member(index) => part(module, &ty, index)?,
        };
    }
    Ok(ty)
}

/// The type of a part known by number.
fn part(module: &Module, ty: &Type, index: u32) -> Result<Type, String> {
    let found = match ty {
        Type::Vector { lanes, scalar } => (index < u32::from(*lanes)).then_some(Type::Scalar(*scalar)),
        Type::Array { element, length } => {
            length.literal().is_some_and(|length| index < length).then(|| module.types[*element].clone())
        }
        Type::Struct(item) => {
            module.structs[*item].fields.get(index as usize).map(|(_, field)| module.types[*field].clone())
        }
        Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => None,
    };
    found.ok_or_else(|| format!("{} has no part {index}", name(module, ty)))
}

struct Checker<'a> {
    module: &'a Module,
    function: &'a Function,
}

/// Of what has 32 bits whatever the width of indices.
const INDEX: Type = Type::Scalar(Scalar::Index);
const BOOL: Type = Type::Scalar(Scalar::Bool);

impl Checker<'_> {
    /// The type of lengths and offsets.
    const fn index(&self) -> Type {
        Type::Scalar(self.module.index.scalar())
    }

    fn is_index(&self, value: Handle<Expression>) -> bool {
        matches!(self.of(value), Type::Scalar(Scalar::Index | Scalar::U32)) || *self.of(value) == self.index()
    }

    fn of(&self, expression: Handle<Expression>) -> &Type {
        &self.module.types[self.function.expressions[expression].ty]
    }

    fn name(&self, ty: &Type) -> String {
        name(self.module, ty)
    }

    fn indices(&self, place: &Place) -> Result<(), String> {
        let mut wrong = None;
        place.indices(&mut |index| {
            if !self.is_index(*index) {
                wrong = Some(self.name(self.of(*index)));
            }
        });
        match wrong {
            Some(ty) => Err(format!("an index is a usize, not {ty}; convert it with `as usize`")),
            None => Ok(()),
        }
    }

    fn is_atomic(&self, root: Root) -> bool {
        match root {
            Root::Binding(binding) => self.module.bindings[binding as usize].kind == BindingKind::Atomic,
            Root::Workgroup(variable) => self.module.workgroup[variable].atomic,
            Root::Local(_) | Root::Argument(_) => false,
        }
    }

    fn place(&self, place: &Place) -> Result<Type, String> {
        self.indices(place)?;
        place_type(self.module, self.function, place)
    }
}
