//! Every expression's type is what its operands imply, and every statement's operands have the types that it asks for.
//!
//! Halves are converted to and from `f32` alone: what else becomes one is rounded on the way, and the author says where.

use crate::diagnostic::Diagnostic;
use crate::ir::{
    Asynchronous, BinaryOperator, BindingKind, CallArgument, Expression, ExpressionKind, Function, Handle, Literal,
    MathFunction, Module, OperandType, Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type,
    UnaryOperator, statements,
};

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

    /// What an expression's type must be; `None` for a call that gives nothing.
    fn infer(&self, handle: Handle<Expression>) -> Result<Option<Type>, String> {
        let expression = &self.function.expressions[handle];
        let stated = &self.module.types[expression.ty];
        Ok(Some(match &expression.kind {
            ExpressionKind::Literal(Literal::U32(value)) if matches!(stated, Type::Enum(_)) => {
                let Type::Enum(item) = stated else { return Ok(None) };
                let item = &self.module.enums[*item];
                if !item.variants.iter().any(|(_, known)| known == value) {
                    return Err(format!("{value} is no discriminant of `{}`", item.name));
                }
                stated.clone()
            }
            ExpressionKind::Literal(Literal::Generic { .. }) | ExpressionKind::GenericConstant(_) => {
                return Err("a generic parameter was not replaced by its value".to_owned());
            }
            ExpressionKind::Literal(literal) => Type::Scalar(literal.scalar()),
            ExpressionKind::Param(param) => self.module.types[self.module.params[*param as usize].ty].clone(),
            ExpressionKind::Length(_) | ExpressionKind::ViewExtent { .. } | ExpressionKind::ViewStride { .. } => {
                self.index()
            }
            ExpressionKind::Builtin(builtin) if builtin.is_vector() => Type::vector(3, Scalar::Index),
            ExpressionKind::Builtin(_) => INDEX,
            ExpressionKind::Argument(argument) => {
                self.module.types[self.function.arguments[*argument as usize].ty].clone()
            }
            ExpressionKind::Local(local) => self.module.types[self.function.locals[*local].ty].clone(),
            ExpressionKind::Load(place) => {
                if self.is_atomic(place.root) {
                    return Err("an atomic is read with `.load()`".to_owned());
                }
                self.place(place)?
            }
            ExpressionKind::Member { base, index } => part(self.module, self.of(*base), *index)?,
            ExpressionKind::Element { base, index } => {
                if !self.is_index(*index) {
                    return Err(format!("an index is a usize, not {}", self.name(self.of(*index))));
                }
                match self.of(*base) {
                    ty @ Type::Struct(_) => return Err(format!("{} cannot be indexed", self.name(ty))),
                    ty => part(self.module, ty, 0)?,
                }
            }
            ExpressionKind::Compose(parts) => {
                self.compose(stated, parts)?;
                stated.clone()
            }
            ExpressionKind::MatrixLength(_) => INDEX,
            ExpressionKind::Splat(value) if let Type::Matrix(matrix) = stated => {
                if *self.of(*value) != Type::Scalar(matrix.scalar) {
                    return Err(format!("{} cannot fill {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Splat(value) => {
                if part(self.module, stated, 0)? != *self.of(*value) || matches!(stated, Type::Struct(_)) {
                    return Err(format!("{} cannot fill {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Swizzle { base, lanes } => match self.of(*base) {
                Type::Vector { lanes: count, scalar }
                    if (2..=4).contains(&lanes.len()) && lanes.iter().all(|lane| lane < count) =>
                {
                    Type::vector(lanes.len() as u8, *scalar)
                }
                ty => return Err(format!("{} does not have these lanes", self.name(ty))),
            },
            ExpressionKind::Unary { operator, value } => {
                let ty = self.of(*value);
                let allowed = match operator {
                    UnaryOperator::Negate => {
                        ty.scalar().is_some_and(|s| s.is_number() && (s.is_float() || s.is_signed()))
                    }
                    UnaryOperator::Not => ty.scalar().is_some_and(|s| s == Scalar::Bool || s.is_integer()),
                };
                if !allowed {
                    let sign = if *operator == UnaryOperator::Negate { "-" } else { "!" };
                    return Err(self.no_operation(sign, ty));
                }
                ty.clone()
            }
            ExpressionKind::Binary { operator, left, right } => self.binary(*operator, *left, *right)?,
            ExpressionKind::Logical { left, right, .. } => {
                for side in [left, right] {
                    if *self.of(*side) != BOOL {
                        return Err(format!("`&&` and `||` take bool, not {}", self.name(self.of(*side))));
                    }
                }
                BOOL
            }
            ExpressionKind::Math { function, arguments } => self.math(*function, arguments)?,
            ExpressionKind::Select { condition, accept, reject } => {
                let (accept, reject) = (self.of(*accept), self.of(*reject));
                let condition = self.of(*condition);
                let lanes = accept.lanes();
                if condition.scalar() != Some(Scalar::Bool) || (*condition != BOOL && condition.lanes() != lanes) {
                    return Err(format!("`select` takes a bool first, not {}", self.name(condition)));
                }
                if accept != reject {
                    return Err(format!("`select` chooses between {} and {}", self.name(accept), self.name(reject)));
                }
                accept.clone()
            }
            ExpressionKind::Convert(value)
                if let (Type::Matrix(from), Type::Matrix(to)) = (self.of(*value), stated) =>
            {
                if from.role != to.role || from.shape() != to.shape() {
                    return Err(format!("{} does not become {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Convert(value) => {
                self.convert(self.of(*value), stated)?;
                stated.clone()
            }
            ExpressionKind::Bitcast(value) => {
                let from = self.of(*value);
                let bytes = |ty: &Type| ty.scalar().filter(|s| s.is_number()).and_then(Scalar::bytes);
                if bytes(from).is_none() || bytes(from) != bytes(stated) || from.lanes() != stated.lanes() {
                    return Err(format!("the bits of {} cannot be those of {}", self.name(from), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Call { function, arguments } => return self.call(*function, arguments),
            ExpressionKind::TargetHas(_) => BOOL,
        }))
    }

    fn no_operation(&self, sign: &str, ty: &Type) -> String {
        let instead = match ty.scalar() {
            Some(Scalar::F64) if MathFunction::from_name(sign).is_some() => {
                ": not every target that has f64 has it; convert with `as f32`"
            }
            Some(scalar) if scalar.is_narrow() && scalar.is_integer() => ": convert it with `as u32` or `as i32`",
            Some(scalar) if scalar.bits() == 64 => ": it is there for 32 bits; take a word with `as u32`",
            _ => "",
        };
        format!("there is no `{sign}` for {}{instead}", self.name(ty))
    }

    fn compose(&self, stated: &Type, parts: &[Handle<Expression>]) -> Result<(), String> {
        let count = match stated {
            Type::Vector { lanes, .. } => u32::from(*lanes),
            Type::Array { length, .. } => length.literal().unwrap_or(0),
            Type::Struct(item) => self.module.structs[*item].fields.len() as u32,
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => {
                return Err(format!("{} is not made of parts", self.name(stated)));
            }
        };
        if count as usize != parts.len() {
            return Err(format!("{} has {count} parts; {} are given", self.name(stated), parts.len()));
        }
        for (index, value) in parts.iter().enumerate() {
            let expected = part(self.module, stated, index as u32)?;
            if expected != *self.of(*value) {
                return Err(format!(
                    "part {index} of {} is {}, not {}",
                    self.name(stated),
                    self.name(&expected),
                    self.name(self.of(*value))
                ));
            }
        }
        Ok(())
    }

    fn binary(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Type, String> {
        use BinaryOperator as B;
        let (a, b) = (self.of(left), self.of(right));
        let sign = operator.sign();
        let with = |scalar| match a {
            Type::Vector { lanes, .. } => Type::vector(*lanes, scalar),
            _ => Type::Scalar(scalar),
        };
        if matches!(operator, B::ShiftLeft | B::ShiftRight) {
            if !a.scalar().is_some_and(Scalar::is_integer) {
                return Err(self.no_operation(sign, a));
            }
            if *b != with(Scalar::U32) {
                return Err(format!("a shift is by {}, not by {}", self.name(&with(Scalar::U32)), self.name(b)));
            }
            return Ok(a.clone());
        }
        if a != b {
            return Err(format!("`{sign}` takes two values of one type, not {} and {}", self.name(a), self.name(b)));
        }
        let equality = matches!(operator, B::Equal | B::NotEqual);
        let Some(scalar) = a.scalar() else {
            return match a {
                Type::Enum(_) if equality => Ok(BOOL),
                _ => Err(self.no_operation(sign, a)),
            };
        };
        let bits = matches!(operator, B::And | B::Or | B::Xor);
        let allowed = match scalar {
            Scalar::Bool => equality || bits,
            scalar => scalar.is_integer() || (scalar.is_number() && !bits),
        };
        if !allowed {
            return Err(self.no_operation(sign, a));
        }
        Ok(if operator.is_comparison() { with(Scalar::Bool) } else { a.clone() })
    }

    fn convert(&self, from: &Type, to: &Type) -> Result<(), String> {
        let fail = || Err(format!("{} cannot be converted to {}", self.name(from), self.name(to)));
        if let Type::Enum(_) = from {
            return match to {
                Type::Scalar(scalar) if scalar.is_integer() => Ok(()),
                _ => fail(),
            };
        }
        let (Some(a), Some(b)) = (from.scalar(), to.scalar()) else { return fail() };
        if from.lanes() != to.lanes() {
            return fail();
        }
        let is_half = |scalar| matches!(scalar, Scalar::F16 | Scalar::BF16);
        let number = |scalar: Scalar| scalar.is_number() && !is_half(scalar);
        let half = |a, b| is_half(a) && (a == b || b == Scalar::F32);
        if half(a, b)
            || half(b, a)
            || (number(b) && (number(a) || a == Scalar::Bool))
            || (a, b) == (Scalar::Bool, Scalar::Bool)
        {
            Ok(())
        } else {
            fail()
        }
    }

    fn math(&self, function: MathFunction, arguments: &[Handle<Expression>]) -> Result<Type, String> {
        let called = function.name();
        if arguments.len() != function.arguments() {
            return Err(format!("`{called}` takes {} values; {} are given", function.arguments(), arguments.len()));
        }
        let ty = self.of(arguments[0]);
        if !function.takes(ty) {
            return Err(self.no_operation(called, ty));
        }
        for (other, operand) in arguments[1..].iter().zip(function.operands()) {
            let (wanted, given) = (operand.of(ty), self.of(*other));
            if *given == wanted {
                continue;
            }
            return Err(if *operand == OperandType::Same {
                format!("`{called}` takes values of one type, not {} and {}", self.name(ty), self.name(given))
            } else {
                format!("`{called}` takes {} there, not {}", self.name(&wanted), self.name(given))
            });
        }
        Ok(function.gives().of(ty))
    }

    fn call(&self, function: Handle<Function>, arguments: &[CallArgument]) -> Result<Option<Type>, String> {
        let callee = &self.module.functions[function];
        if callee.arguments.len() != arguments.len() {
            return Err(format!(
                "`{}` takes {} arguments; {} are given",
                callee.name,
                callee.arguments.len(),
                arguments.len()
            ));
        }
        for (expected, given) in callee.arguments.iter().zip(arguments) {
            let ty = match given {
                CallArgument::Value(value) if !expected.by_reference => self.of(*value),
                CallArgument::Reference(Root::Local(local)) if expected.by_reference => {
                    &self.module.types[self.function.locals[*local].ty]
                }
                CallArgument::Reference(Root::Argument(argument)) if expected.by_reference => {
                    &self.module.types[self.function.arguments[*argument as usize].ty]
                }
                _ => {
                    let how = if expected.by_reference { "`&mut`" } else { "value" };
                    return Err(format!("`{}` takes `{}` by {how}", callee.name, expected.name));
                }
            };
            if *ty != self.module.types[expected.ty] {
                return Err(format!(
                    "`{}` of `{}` is {}, not {}",
                    expected.name,
                    callee.name,
                    self.name(&self.module.types[expected.ty]),
                    self.name(ty)
                ));
            }
        }
        Ok(callee.result.map(|ty| self.module.types[ty].clone()))
    }

    fn statement(&self, statement: &Statement) -> Result<(), (Span, String)> {
        let at = statement.span;
        let span_of = |value: Handle<Expression>| self.function.expressions[value].span;
        let expect = |value: Handle<Expression>, ty: &Type| {
            if self.of(value) == ty {
                Ok(())
            } else {
                Err((span_of(value), format!("expected {}, found {}", self.name(ty), self.name(self.of(value)))))
            }
        };
        let place = |place: &Place| self.place(place).map_err(|message| (at, message));
        match &statement.kind {
            StatementKind::Let { local, value } => {
                if let Some(value) = value {
                    expect(*value, &self.module.types[self.function.locals[*local].ty])?;
                }
                Ok(())
            }
            StatementKind::Store { place: target, value } => {
                match target.root {
                    Root::Binding(binding) if self.module.bindings[binding as usize].kind == BindingKind::Shared => {
                        let name = &self.module.bindings[binding as usize].name;
                        return Err((
                            at,
                            format!("`{name}` is a shared slice, and cannot be written; declare it as `&mut`"),
                        ));
                    }
                    root if self.is_atomic(root) => {
                        return Err((at, "an atomic is written with `.store(v)`".to_owned()));
                    }
                    _ => {}
                }
                expect(*value, &place(target)?)
            }
            StatementKind::If { condition, .. } | StatementKind::While { condition, .. } => expect(*condition, &BOOL),
            StatementKind::Switch { selector, .. } => match self.of(*selector) {
                Type::Enum(_) => Ok(()),
                Type::Scalar(scalar) if scalar.is_integer() && scalar.bits() <= 32 => Ok(()),
                ty => Err((span_of(*selector), format!("a match on {} is not part of the language", self.name(ty)))),
            },
            StatementKind::For { local, start, end, step, .. } => {
                let ty = &self.module.types[self.function.locals[*local].ty];
                if !matches!(ty, Type::Scalar(scalar) if scalar.is_integer() && scalar.bits() == 32)
                    && *ty != self.index()
                {
                    return Err((at, format!("a loop counts integers of 32 bits, not {}", self.name(ty))));
                }
                expect(*start, ty)?;
                expect(*end, ty)?;
                expect(*step, ty)
            }
            StatementKind::Return(Some(value)) => match self.function.result {
                Some(result) => expect(*value, &self.module.types[result]),
                None => Ok(()),
            },
            StatementKind::UniformLoad { result, place: source } => {
                if !matches!(source.root, Root::Workgroup(_)) {
                    return Err((at, "`workgroup_uniform_load` reads workgroup memory".to_owned()));
                }
                if self.is_atomic(source.root) {
                    return Err((at, "`workgroup_uniform_load` does not read atomics".to_owned()));
                }
                self.result(*result, &place(source)?, at)
            }
            StatementKind::Atomic { result, place: target, function, value, compare, .. } => {
                if !self.is_atomic(target.root) {
                    return Err((
                        at,
                        format!("`{}` is there for atomics alone: `&[Atomic<u32>]`, `&[Atomic<i32>]`", function.name()),
                    ));
                }
                let ty = place(target)?;
                if !ty.scalar().is_some_and(|scalar| function.takes(scalar)) {
                    let (name, found) = (function.name(), self.name(&ty));
                    return Err((at, format!("`{name}` belongs to atomics of integers, not of {found}")));
                }
                for operand in [value, compare].into_iter().flatten() {
                    expect(*operand, &ty)?;
                }
                result.map_or(Ok(()), |result| self.result(result, &ty, at))
            }
            StatementKind::Asynchronous(Asynchronous::Wait(pending)) => self.constant(*pending).map(|_| ()),
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }) => {
                if !matches!(to.root, Root::Workgroup(_)) || self.is_atomic(to.root) {
                    return Err((at, "`copy_async` writes to a workgroup array, which holds no atomics".to_owned()));
                }
                if !matches!(from.root, Root::Binding(_)) || self.is_atomic(from.root) {
                    return Err((at, "`copy_async` reads from a buffer, which holds no atomics".to_owned()));
                }
                let (target, source) = (place(to)?, place(from)?);
                if target != source {
                    let (target, source) = (self.name(&target), self.name(&source));
                    return Err((at, format!("`copy_async` copies {source} to {target}")));
                }
                let count = self.constant(*count)?;
                let size = match source {
                    Type::Scalar(scalar) | Type::Vector { scalar, .. } => {
                        u64::from(scalar.bytes().unwrap_or(0)) * u64::from(source.lanes().unwrap_or(1))
                    }
                    Type::Array { .. } | Type::Struct(_) | Type::Enum(_) | Type::Matrix(_) => 0,
                };
                if !matches!(size * u64::from(count), 4 | 8 | 16) {
                    let (name, bytes) = (self.name(&source), size * u64::from(count));
                    let found =
                        if size == 0 { format!("not {name}") } else { format!("{count} of {name} are {bytes} bytes") };
                    return Err((
                        at,
                        format!("`copy_async` moves 4, 8 or 16 bytes of scalars or vectors at once: {found}"),
                    ));
                }
                Ok(())
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let ty = self.of(*value);
                let fits = ty.scalar().is_some_and(|scalar| function.takes(scalar));
                if !fits || (function.takes_bool() && ty.lanes() != Some(1)) {
                    let (name, takes, found) = (function.name(), function.words(), self.name(ty));
                    return Err((span_of(*value), format!("`{name}` takes {takes}, not {found}")));
                }
                if let Some(lane) = lane {
                    expect(*lane, &Type::Scalar(Scalar::U32))?;
                }
                self.result(*result, &function.result(ty), at)
            }
            StatementKind::Matrix { result, operation } => {
                match super::matrices::result(self.module, self.function, *result, operation) {
                    Err(message) => Err((at, message)),
                    Ok(()) => Ok(()),
                }
            }
            StatementKind::Tile(operation) => {
                super::tiles::operation(self.module, self.function, operation).map_err(|message| (at, message))
            }
            StatementKind::Evaluate(_)
            | StatementKind::Loop { .. }
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Return(None)
            | StatementKind::Barrier
            | StatementKind::Fence(_)
            | StatementKind::Asynchronous(Asynchronous::Commit) => Ok(()),
        }
    }

    /// A number that is an `Index` and known while compiling.
    fn constant(&self, value: Handle<Expression>) -> Result<u32, (Span, String)> {
        let known = crate::copies::number(self.module, self.function, value);
        known.filter(|_| *self.of(value) == Type::Scalar(Scalar::Index)).ok_or_else(|| {
            (
                self.function.expressions[value].span,
                "this number must be known while compiling: a literal or a constant".to_owned(),
            )
        })
    }

    fn result(&self, local: Handle<crate::ir::Local>, ty: &Type, at: Span) -> Result<(), (Span, String)> {
        let local = &self.function.locals[local];
        if self.module.types[local.ty] == *ty {
            return Ok(());
        }
        let stated = self.name(&self.module.types[local.ty]);
        Err((at, format!("`{}` is {stated}, and its value {}", local.name, self.name(ty))))
    }
}
