//! Making IR without source text: for fusion, for lowering's own functions, and for tests.
//!
//! The builder computes each expression's type from its operands as the verifier will check it; where operands do not fit it takes the
//! left one's type and leaves the complaint to the verifier. Handles that it gives out are used once, as the IR demands; a value that
//! is wanted twice goes through [`FunctionBuilder::bind`].
//!
//! ```
//! use trefoil_codegen::ir::builder::{ModuleBuilder, element};
//! use trefoil_codegen::ir::{BinaryOperator, Builtin, Root, Scalar};
//!
//! let mut module = ModuleBuilder::new("twice", [64, 1, 1]);
//! let float = module.scalar(Scalar::F32);
//! let x = module.shared("x", float);
//! let y = module.mutable("y", float);
//! let mut body = module.entry();
//! let i = body.builtin(Builtin::GlobalIndex);
//! let i = body.bind("i", i);
//! let (index, length) = (body.local(i), body.length(y));
//! let inside = body.binary(BinaryOperator::Less, index, length);
//! body.if_then(inside, |body| {
//!     let index = body.local(i);
//!     let value = body.load(element(Root::Binding(x), index));
//!     let two = body.f32(2.0);
//!     let value = body.binary(BinaryOperator::Multiply, value, two);
//!     let index = body.local(i);
//!     body.store(element(Root::Binding(y), index), value);
//! });
//! body.finish_entry();
//! assert_eq!(module.build().bindings.len(), 2);
//! ```

use super::{
    Arena, Argument, AtomicFunction, BinaryOperator, Binding, BindingKind, Block, Builtin, CallArgument, Case,
    Expression, ExpressionKind, Function, Handle, Literal, Local, LogicalOperator, MathFunction, Module, Ordering,
    Param, Place, Precision, Projection, Root, Scalar, Size, Span, Statement, StatementKind, SubgroupFunction, Type,
    UnaryOperator, WorkgroupVariable,
};
use crate::target::Target;

/// Makes a [`Module`].
#[derive(Clone, Debug)]
pub struct ModuleBuilder {
    module: Module,
}

/// The place of one element of a buffer, workgroup variable or array.
pub fn element(root: Root, index: Handle<Expression>) -> Place {
    Place { root, path: vec![Projection::Index(index)], guarded: true }
}

/// The place of `lanes` consecutive elements of a buffer or workgroup variable.
pub fn vector(root: Root, index: Handle<Expression>, lanes: u8) -> Place {
    Place { root, path: vec![Projection::Vector { index, lanes }], guarded: true }
}

/// The whole of a mutable local.
pub fn variable(local: Handle<Local>) -> Place {
    Place { root: Root::Local(local), path: Vec::new(), guarded: false }
}

impl ModuleBuilder {
    /// A kernel of that name and workgroup size, for every target.
    pub fn new(name: &str, workgroup_size: [u32; 3]) -> Self {
        let module = Module {
            name: name.to_owned(),
            workgroup_size: workgroup_size.map(Size::Literal).to_vec(),
            targets: Target::ALL.to_vec(),
            ..Module::default()
        };
        Self { module }
    }

    /// A scalar type.
    pub fn scalar(&mut self, scalar: Scalar) -> Handle<Type> {
        self.module.intern(Type::Scalar(scalar))
    }

    /// A vector type.
    pub fn vector(&mut self, lanes: u8, scalar: Scalar) -> Handle<Type> {
        self.module.intern(Type::vector(lanes, scalar))
    }

    /// An array type.
    pub fn array(&mut self, element: Handle<Type>, length: u32) -> Handle<Type> {
        self.module.intern(Type::Array { element, length: Size::Literal(length) })
    }

    /// A buffer that is read.
    pub fn shared(&mut self, name: &str, element: Handle<Type>) -> u32 {
        self.binding(name, element, BindingKind::Shared)
    }

    /// A buffer that is written.
    pub fn mutable(&mut self, name: &str, element: Handle<Type>) -> u32 {
        self.binding(name, element, BindingKind::Mutable)
    }

    /// A buffer of atomics.
    pub fn atomic(&mut self, name: &str, element: Handle<Type>) -> u32 {
        self.binding(name, element, BindingKind::Atomic)
    }

    fn binding(&mut self, name: &str, element: Handle<Type>, kind: BindingKind) -> u32 {
        let binding = Binding {
            name: name.to_owned(),
            element,
            kind,
            view: None,
            packed: 1,
            volatile: Vec::new(),
            span: Span::NONE,
        };
        self.module.bindings.push(binding);
        self.module.bindings.len() as u32 - 1
    }

    /// A by-value parameter.
    pub fn param(&mut self, name: &str, ty: Handle<Type>) -> u32 {
        self.module.params.push(Param { name: name.to_owned(), ty, specialise: None, span: Span::NONE });
        self.module.params.len() as u32 - 1
    }

    /// A variable in workgroup memory.
    pub fn workgroup(
        &mut self,
        name: &str,
        element: Handle<Type>,
        length: u32,
        atomic: bool,
    ) -> Handle<WorkgroupVariable> {
        self.module.workgroup.add(WorkgroupVariable {
            name: name.to_owned(),
            element,
            length: Size::Literal(length),
            exact: None,
            atomic,
            tile: None,
            span: Span::NONE,
        })
    }

    /// The kernel's body.
    pub fn entry(&mut self) -> FunctionBuilder<'_> {
        FunctionBuilder::new(&mut self.module, "main")
    }

    /// A function that the kernel may call.
    pub fn function(&mut self, name: &str) -> FunctionBuilder<'_> {
        FunctionBuilder::new(&mut self.module, name)
    }

    /// The module so far, to look at.
    pub fn module(&mut self) -> &mut Module {
        &mut self.module
    }

    /// The module.
    pub fn build(self) -> Module {
        self.module
    }
}

/// Makes a [`Function`] of a module.
#[derive(Debug)]
pub struct FunctionBuilder<'m> {
    module: &'m mut Module,
    function: Function,
    block: Block,
    span: Span,
}

type Value = Handle<Expression>;

impl<'m> FunctionBuilder<'m> {
    /// A function of that name in `module`.
    pub fn new(module: &'m mut Module, name: &str) -> Self {
        Self::continuing(module, Function { name: name.to_owned(), ..Function::default() })
    }

    /// A function that is there already, to be written on behind its last statement; [`FunctionBuilder::into_function`] gives it back.
    pub fn continuing(module: &'m mut Module, mut function: Function) -> Self {
        let block = std::mem::take(&mut function.body);
        Self { module, function, block, span: Span::NONE }
    }

    /// What follows is written there.
    pub fn at(&mut self, span: Span) {
        self.span = span;
    }

    /// How closely the function's arithmetic keeps to what is written.
    pub fn precision(&mut self, precision: Precision) {
        self.function.precision = precision;
    }

    /// The module, for its types.
    pub fn module(&mut self) -> &mut Module {
        self.module
    }

    /// The type of an expression made before.
    pub fn type_of(&self, value: Value) -> &Type {
        &self.module.types[self.function.expressions[value].ty]
    }

    /// Adds a by-value argument.
    pub fn argument(&mut self, name: &str, ty: Handle<Type>) -> u32 {
        self.function.arguments.push(Argument { name: name.to_owned(), ty, by_reference: false });
        self.function.arguments.len() as u32 - 1
    }

    /// Says what the function gives.
    pub fn result(&mut self, ty: Handle<Type>) {
        self.function.result = Some(ty);
    }

    /// An expression of a known type.
    pub fn expression(&mut self, kind: ExpressionKind, ty: Type) -> Value {
        let ty = self.module.intern(ty);
        self.function.expressions.add(Expression { kind, ty, span: self.span })
    }

    fn same_type(&mut self, kind: ExpressionKind, like: Value) -> Value {
        let ty = self.function.expressions[like].ty;
        self.function.expressions.add(Expression { kind, ty, span: self.span })
    }

    /// Adds an expression of a type that is known by its handle.
    pub fn expression_of(&mut self, kind: ExpressionKind, ty: Handle<Type>) -> Value {
        self.function.expressions.add(Expression { kind, ty, span: self.span })
    }

    /// A size as an index.
    pub fn size(&mut self, size: &Size) -> Value {
        match size {
            Size::Literal(value) => self.index(*value),
            Size::Generic(index) => {
                self.expression(ExpressionKind::GenericConstant(*index), Type::Scalar(self.module.index.scalar()))
            }
            Size::Param(index) => {
                let value = self.param(*index);
                self.convert(value, self.module.index.scalar())
            }
            Size::Binary(operator, left, right) => {
                let (left, right) = (self.size(left), self.size(right));
                self.binary(operator.binary(), left, right)
            }
        }
    }

    /// `like`'s type with another scalar.
    fn with_scalar(&self, like: Value, scalar: Scalar) -> Type {
        match self.type_of(like) {
            Type::Vector { lanes, .. } => Type::vector(*lanes, scalar),
            Type::Scalar(_) | Type::Array { .. } | Type::Struct(_) | Type::Enum(_) | Type::Matrix(_) => {
                Type::Scalar(scalar)
            }
        }
    }

    /// A constant.
    pub fn literal(&mut self, literal: Literal) -> Value {
        self.expression(ExpressionKind::Literal(literal), Type::Scalar(literal.scalar()))
    }

    /// A constant.
    pub fn f32(&mut self, value: f32) -> Value {
        self.literal(Literal::F32(value))
    }

    /// A constant.
    pub fn u32(&mut self, value: u32) -> Value {
        self.literal(Literal::U32(value))
    }

    /// A constant.
    pub fn i32(&mut self, value: i32) -> Value {
        self.literal(Literal::I32(value))
    }

    /// A constant.
    pub fn index(&mut self, value: u32) -> Value {
        self.literal(self.module.index.literal(value))
    }

    /// A kernel parameter.
    pub fn param(&mut self, param: u32) -> Value {
        let known = self.module.params.get(param as usize).map(|known| known.ty);
        let ty = known.unwrap_or_else(|| self.module.intern(Type::Scalar(Scalar::U32)));
        self.function.expressions.add(Expression { kind: ExpressionKind::Param(param), ty, span: self.span })
    }

    /// The length of a buffer.
    pub fn length(&mut self, binding: u32) -> Value {
        self.expression(ExpressionKind::Length(binding), Type::Scalar(self.module.index.scalar()))
    }

    /// A builtin, as an index.
    pub fn builtin(&mut self, builtin: Builtin) -> Value {
        let ty = if builtin.is_vector() { Type::vector(3, Scalar::Index) } else { Type::Scalar(Scalar::Index) };
        let value = self.expression(ExpressionKind::Builtin(builtin), ty);
        let index = self.module.index.scalar();
        if index == Scalar::Index { value } else { self.convert(value, index) }
    }

    /// A by-value argument of this function.
    pub fn get_argument(&mut self, argument: u32) -> Value {
        let ty = self.function.arguments[argument as usize].ty;
        self.function.expressions.add(Expression { kind: ExpressionKind::Argument(argument), ty, span: self.span })
    }

    /// The value of an immutable local.
    pub fn local(&mut self, local: Handle<Local>) -> Value {
        let ty = self.function.locals[local].ty;
        self.function.expressions.add(Expression { kind: ExpressionKind::Local(local), ty, span: self.span })
    }

    /// What a place holds.
    pub fn load(&mut self, place: Place) -> Value {
        let ty = self.place_type(&place);
        self.expression(ExpressionKind::Load(place), ty)
    }

    /// The type of a place.
    fn place_type(&self, place: &Place) -> Type {
        let types = &self.module.types;
        let (mut ty, mut elements) = match place.root {
            Root::Binding(binding) => (&types[self.module.bindings[binding as usize].element], true),
            Root::Workgroup(variable) => (&types[self.module.workgroup[variable].element], true),
            Root::Local(local) => (&types[self.function.locals[local].ty], false),
            Root::Argument(argument) => (&types[self.function.arguments[argument as usize].ty], false),
        };
        for step in &place.path {
            if std::mem::take(&mut elements) {
                if let (Projection::Vector { lanes, .. }, Some(scalar)) = (step, ty.scalar()) {
                    return Type::vector(*lanes, scalar);
                }
                continue;
            }
            match (step, ty) {
                (Projection::Vector { lanes, .. }, Type::Array { element, .. }) => {
                    let scalar = types[*element].scalar().unwrap_or(Scalar::U32);
                    return Type::vector(*lanes, scalar);
                }
                (Projection::Index(_) | Projection::Member(_), Type::Array { element, .. }) => ty = &types[*element],
                (Projection::Index(_) | Projection::Member(_), Type::Vector { scalar, .. }) => {
                    return Type::Scalar(*scalar);
                }
                (Projection::Member(field), Type::Struct(handle)) => {
                    match self.module.structs[*handle].fields.get(*field as usize) {
                        Some((_, field)) => ty = &types[*field],
                        None => break,
                    }
                }
                _ => break,
            }
        }
        ty.clone()
    }

    /// A lane of a vector value.
    pub fn lane(&mut self, base: Value, index: u32) -> Value {
        let ty = Type::Scalar(self.type_of(base).scalar().unwrap_or(Scalar::U32));
        self.expression(ExpressionKind::Member { base, index }, ty)
    }

    /// Lanes of a vector in another order.
    pub fn swizzle(&mut self, base: Value, lanes: Vec<u8>) -> Value {
        let scalar = self.type_of(base).scalar().unwrap_or(Scalar::U32);
        let ty = Type::vector(lanes.len() as u8, scalar);
        self.expression(ExpressionKind::Swizzle { base, lanes }, ty)
    }

    /// A vector from its lanes.
    pub fn compose(&mut self, parts: Vec<Value>) -> Value {
        let scalar = parts.first().and_then(|first| self.type_of(*first).scalar()).unwrap_or(Scalar::U32);
        let ty = Type::vector(parts.len() as u8, scalar);
        self.expression(ExpressionKind::Compose(parts), ty)
    }

    /// A vector of equal lanes.
    pub fn splat(&mut self, value: Value, lanes: u8) -> Value {
        let scalar = self.type_of(value).scalar().unwrap_or(Scalar::U32);
        self.expression(ExpressionKind::Splat(value), Type::vector(lanes, scalar))
    }

    /// An operation on one value.
    pub fn unary(&mut self, operator: UnaryOperator, value: Value) -> Value {
        self.same_type(ExpressionKind::Unary { operator, value }, value)
    }

    /// An operation on two values.
    pub fn binary(&mut self, operator: BinaryOperator, left: Value, right: Value) -> Value {
        let kind = ExpressionKind::Binary { operator, left, right };
        if operator.is_comparison() {
            let ty = self.with_scalar(left, Scalar::Bool);
            self.expression(kind, ty)
        } else {
            self.same_type(kind, left)
        }
    }

    /// `&&` or `||`.
    pub fn logical(&mut self, operator: LogicalOperator, left: Value, right: Value) -> Value {
        self.same_type(ExpressionKind::Logical { operator, left, right }, left)
    }

    /// A mathematical function.
    pub fn math(&mut self, function: MathFunction, arguments: Vec<Value>) -> Value {
        let Some(&first) = arguments.first() else {
            return self.expression(ExpressionKind::Math { function, arguments }, Type::Scalar(Scalar::F32));
        };
        let ty = function.gives().of(self.type_of(first));
        self.expression(ExpressionKind::Math { function, arguments }, ty)
    }

    /// One of two values.
    pub fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.same_type(ExpressionKind::Select { condition, accept, reject }, accept)
    }

    /// `value as scalar`.
    pub fn convert(&mut self, value: Value, scalar: Scalar) -> Value {
        let ty = self.with_scalar(value, scalar);
        self.expression(ExpressionKind::Convert(value), ty)
    }

    /// The same bits as another scalar.
    pub fn bitcast(&mut self, value: Value, scalar: Scalar) -> Value {
        let ty = self.with_scalar(value, scalar);
        self.expression(ExpressionKind::Bitcast(value), ty)
    }

    /// A call with values only; `ty` is the function's result.
    pub fn call(&mut self, function: Handle<Function>, arguments: Vec<Value>, ty: Type) -> Value {
        let arguments = arguments.into_iter().map(CallArgument::Value).collect();
        self.expression(ExpressionKind::Call { function, arguments }, ty)
    }

    /// Adds a statement.
    pub fn statement(&mut self, kind: StatementKind) {
        self.block.push(Statement { kind, span: self.span });
    }

    /// A local of that type, not yet declared by a statement.
    pub fn new_local(&mut self, name: &str, ty: Handle<Type>, mutable: bool) -> Handle<Local> {
        self.function.locals.add(Local { name: name.to_owned(), ty, mutable, span: self.span })
    }

    /// Declares an immutable local.
    pub fn bind(&mut self, name: &str, value: Value) -> Handle<Local> {
        let ty = self.function.expressions[value].ty;
        let local = self.new_local(name, ty, false);
        self.statement(StatementKind::Let { local, value: Some(value) });
        local
    }

    /// Declares a mutable local.
    pub fn variable(&mut self, name: &str, ty: Handle<Type>, value: Option<Value>) -> Handle<Local> {
        let local = self.new_local(name, ty, true);
        self.statement(StatementKind::Let { local, value });
        local
    }

    /// Writes a value to a place.
    pub fn store(&mut self, place: Place, value: Value) {
        self.statement(StatementKind::Store { place, value });
    }

    /// What `body` adds, as a block of its own.
    pub fn nested(&mut self, body: impl FnOnce(&mut Self)) -> Block {
        let outer = self.open();
        body(self);
        self.close(outer)
    }

    /// Starts a block of its own, where no closure can hold the builder; gives the block so far, for [`FunctionBuilder::close`].
    pub fn open(&mut self) -> Block {
        std::mem::take(&mut self.block)
    }

    /// Ends the block that [`FunctionBuilder::open`] started, goes on with the one from before, and gives what was added since.
    pub fn close(&mut self, outer: Block) -> Block {
        std::mem::replace(&mut self.block, outer)
    }

    /// `if condition { accept }`
    pub fn if_then(&mut self, condition: Value, accept: impl FnOnce(&mut Self)) {
        self.if_else(condition, accept, |_| {});
    }

    /// `if condition { accept } else { reject }`
    pub fn if_else(&mut self, condition: Value, accept: impl FnOnce(&mut Self), reject: impl FnOnce(&mut Self)) {
        let accept = self.nested(accept);
        let reject = self.nested(reject);
        self.statement(StatementKind::If { condition, accept, reject, constant: false });
    }

    /// `for name in start..end { body }`
    pub fn for_range(&mut self, name: &str, start: Value, end: Value, body: impl FnOnce(&mut Self, Handle<Local>)) {
        let step = match self.type_of(start).scalar() {
            Some(Scalar::I32) => self.i32(1),
            Some(Scalar::U32) => self.u32(1),
            _ => self.index(1),
        };
        let ty = self.function.expressions[start].ty;
        let local = self.new_local(name, ty, false);
        let body = self.nested(|inner| body(inner, local));
        self.statement(StatementKind::For { local, start, end, step, body, unroll: false });
    }

    /// `while condition { body }`
    pub fn while_loop(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let body = self.nested(body);
        self.statement(StatementKind::While { condition, body });
    }

    /// `loop { body }`
    pub fn endless_loop(&mut self, body: impl FnOnce(&mut Self)) {
        let body = self.nested(body);
        self.statement(StatementKind::Loop { body });
    }

    /// A choice by number; blocks come from [`FunctionBuilder::nested`].
    pub fn switch(&mut self, selector: Value, cases: Vec<Case>, default: Block) {
        self.statement(StatementKind::Switch { selector, cases, default });
    }

    /// A workgroup barrier.
    pub fn barrier(&mut self) {
        self.statement(StatementKind::Barrier);
    }

    /// An atomic operation that gives the value from before.
    pub fn atomic(
        &mut self,
        name: &str,
        function: AtomicFunction,
        place: Place,
        value: Option<Value>,
    ) -> Handle<Local> {
        let ty = self.place_type(&place);
        let ty = self.module.intern(ty);
        let result = self.new_local(name, ty, false);
        self.statement(StatementKind::Atomic {
            result: Some(result),
            place,
            function,
            value,
            compare: None,
            ordering: Ordering::RELAXED,
        });
        result
    }

    /// A subgroup operation.
    pub fn subgroup(
        &mut self,
        name: &str,
        function: SubgroupFunction,
        value: Value,
        lane: Option<Value>,
    ) -> Handle<Local> {
        let ty = function.result(self.type_of(value));
        let ty = self.module.intern(ty);
        let result = self.new_local(name, ty, false);
        self.statement(StatementKind::Subgroup { result, function, value, lane });
        result
    }

    /// Leaves the function.
    pub fn return_value(&mut self, value: Option<Value>) {
        self.statement(StatementKind::Return(value));
    }

    /// The function, for who has a place for it.
    pub fn into_function(self) -> Function {
        Function { body: self.block, ..self.function }
    }

    /// Adds the function to the module.
    pub fn finish(mut self) -> Handle<Function> {
        self.function.body = self.block;
        self.module.functions.add(self.function)
    }

    /// Makes the function the module's entry.
    pub fn finish_entry(mut self) {
        self.function.body = self.block;
        self.function.name = self.module.name.clone();
        self.module.entry = self.function;
    }

    /// The locals so far.
    pub fn locals(&self) -> &Arena<Local> {
        &self.function.locals
    }
}
