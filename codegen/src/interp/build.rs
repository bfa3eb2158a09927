//! From the IR to a program: values are spread over registers, functions are inlined, control flow becomes masks.
//!
//! Registers are given out as on a stack: locals live until the end of their block, what a statement computes on the way until its
//! end. Literals, parameters and builtins have registers of their own, filled before anything runs.

use std::collections::HashMap;

use super::program::{
    Address, AtomicOperation, Bound, Combine, Constant, Given, Instruction, One, Part, Register, Term, Two, Where,
};
use crate::artefact::{Access, ParamRole, Params};
use crate::emit::EmitError;
use crate::emit::cpu::SUBGROUP_SIZE;
use crate::ir::{
    AtomicFunction, BinaryOperator, BindingKind, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle,
    Literal, LogicalOperator, MathFunction, Module, Place, Projection, Root, Scalar, Statement, StatementKind,
    SubgroupFunction, Type, UnaryOperator,
};
use crate::layout;
use crate::target::{Feature, Features, Target};
use crate::verify::Verified;

/// The register of the mask of active lanes.
pub(super) const ACTIVE: Register = 0;

/// What is built.
pub(super) struct Built {
    pub(super) code: Vec<Instruction>,
    pub(super) registers: u32,
    pub(super) constants: Vec<(Constant, Register)>,
    pub(super) given: Vec<(Given, Register)>,
    pub(super) workgroup_bytes: u32,
    /// Whether workgroups must run one at a time, because they share memory or wait for each other.
    pub(super) together: bool,
}

/// Registers of a value, and whether nothing will change them.
#[derive(Clone, Debug)]
struct Value {
    registers: Vec<Register>,
    stable: bool,
}

/// A function while it is built.
struct Frame<'a> {
    function: &'a Function,
    locals: Vec<Vec<Register>>,
    arguments: Vec<Vec<Register>>,
    result: Vec<Register>,
    returned: Option<Register>,
    /// The loops around: where those that leave and those that continue are noted.
    loops: Vec<(Register, Register)>,
}

pub(super) struct Builder<'a> {
    module: &'a Module,
    verified: &'a Verified,
    params: &'a Params,
    features: Features,
    constants: HashMap<Constant, Register>,
    given: HashMap<Given, Register>,
    /// Registers with a fixed meaning are numbered from the other end, and moved behind the others at last.
    fixed: u32,
    top: u32,
    most: u32,
    workgroup: Vec<u32>,
    workgroup_bytes: u32,
    together: bool,
}

/// Fixed registers are numbered from here on while building.
const FIXED: u32 = 1 << 31;

type Result<T> = std::result::Result<T, EmitError>;

pub(super) fn build(verified: &Verified, params: &Params) -> Result<Built> {
    let module = &verified.module;
    let mut builder = Builder {
        module,
        verified,
        params,
        // Halves are held as such; subgroups are emulated where a kernel requires them.
        features: verified.info.required.union(Features::of(&[Feature::F16Storage])),
        constants: HashMap::new(),
        given: HashMap::new(),
        fixed: 0,
        top: 1,
        most: 1,
        workgroup: Vec::new(),
        workgroup_bytes: 0,
        together: !module.workgroup.is_empty(),
    };
    for (_, variable) in module.workgroup.iter() {
        let element = layout::of(module, variable.element)
            .ok_or_else(|| builder.error(format!("`{}` holds what memory does not", variable.name)))?;
        let length = variable
            .length
            .literal()
            .ok_or_else(|| builder.error(format!("the length of `{}` is not known", variable.name)))?;
        builder.workgroup_bytes = builder.workgroup_bytes.next_multiple_of(16);
        builder.workgroup.push(builder.workgroup_bytes);
        builder.workgroup_bytes += element.size * length;
    }
    let mut frame = builder.frame(&module.entry, Vec::new(), Vec::new(), None);
    let mut code = Vec::new();
    builder.block(&mut frame, &module.entry.body, &mut code)?;
    let base = builder.most;
    relocate(&mut code, base);
    let place = |register: Register| register - FIXED + base;
    let mut constants: Vec<_> = builder.constants.iter().map(|(what, at)| (*what, place(*at))).collect();
    let mut given: Vec<_> = builder.given.iter().map(|(what, at)| (*what, place(*at))).collect();
    constants.sort_by_key(|(_, at)| *at);
    given.sort_by_key(|(_, at)| *at);
    Ok(Built {
        code,
        registers: base + builder.fixed,
        constants,
        given,
        workgroup_bytes: builder.workgroup_bytes,
        together: builder.together,
    })
}

/// Moves fixed registers behind the others.
fn relocate(code: &mut [Instruction], base: u32) {
    let fix = |register: &mut Register| {
        if *register >= FIXED {
            *register = *register - FIXED + base;
        }
    };
    let terms = |terms: &mut Vec<Term>| terms.iter_mut().for_each(|term| fix(&mut term.index));
    for instruction in code {
        match instruction {
            Instruction::One { to, a, .. } => [to, a].into_iter().for_each(fix),
            Instruction::Two { to, a, b, .. } => [to, a, b].into_iter().for_each(fix),
            Instruction::MulAdd { to, a, b, c } => [to, a, b, c].into_iter().for_each(fix),
            Instruction::Select { to, condition, accept, reject } => {
                [to, condition, accept, reject].into_iter().for_each(fix);
            }
            Instruction::Copy { to, from } | Instruction::Assign { to, from } | Instruction::Uniform { to, from } => {
                [to, from].into_iter().for_each(fix);
            }
            Instruction::Pick { to: list, base, terms: t } | Instruction::Put { from: list, base, terms: t } => {
                list.iter_mut().for_each(fix);
                fix(base);
                terms(t);
            }
            Instruction::Load { address, parts } | Instruction::Store { address, parts } => {
                parts.iter_mut().for_each(|part| fix(&mut part.register));
                terms(&mut address.terms);
            }
            Instruction::Atomic { address, to, value, compare, .. } => {
                to.iter_mut().chain([value, compare]).for_each(fix);
                terms(&mut address.terms);
            }
            Instruction::Subgroup { to, value, lane, .. } => [to, value, lane].into_iter().for_each(fix),
            Instruction::If { condition, accept, reject } => {
                fix(condition);
                relocate(accept, base);
                relocate(reject, base);
            }
            Instruction::Loop { test, condition, body, step, left, continued } => {
                condition.iter_mut().chain([left, continued]).for_each(fix);
                for block in [test, body, step] {
                    relocate(block, base);
                }
            }
            Instruction::Function { body, returned } => {
                fix(returned);
                relocate(body, base);
            }
            Instruction::Leave { into } => into.iter_mut().for_each(fix),
        }
    }
}

impl<'a> Builder<'a> {
    fn error(&self, message: impl Into<String>) -> EmitError {
        EmitError { kernel: self.module.name.clone(), target: Target::Cpu, message: message.into() }
    }

    fn frame<'f>(
        &mut self,
        function: &'f Function,
        arguments: Vec<Vec<Register>>,
        result: Vec<Register>,
        returned: Option<Register>,
    ) -> Frame<'f> {
        Frame {
            function,
            locals: vec![Vec::new(); function.locals.len()],
            arguments,
            result,
            returned,
            loops: Vec::new(),
        }
    }

    // Registers.

    fn take(&mut self, count: u32) -> Vec<Register> {
        let first = self.top;
        self.top += count;
        self.most = self.most.max(self.top);
        (first..self.top).collect()
    }

    fn one(&mut self) -> Register {
        let register = self.top;
        self.top += 1;
        self.most = self.most.max(self.top);
        register
    }

    fn constant(&mut self, what: Constant) -> Register {
        if let Some(known) = self.constants.get(&what) {
            return *known;
        }
        let register = FIXED + self.fixed;
        self.fixed += 1;
        self.constants.insert(what, register);
        register
    }

    fn given(&mut self, what: Given) -> Register {
        if let Some(known) = self.given.get(&what) {
            return *known;
        }
        let register = FIXED + self.fixed;
        self.fixed += 1;
        self.given.insert(what, register);
        register
    }

    /// How many words a value of that type has.
    fn words(&self, ty: Handle<Type>) -> Result<u32> {
        Ok(match &self.module.types[ty] {
            Type::Scalar(_) | Type::Enum(_) => 1,
            Type::Vector { lanes, .. } => u32::from(*lanes),
            Type::Array { element, length } => {
                let length = length.literal().ok_or_else(|| self.error("an array whose length is not known"))?;
                self.words(*element)? * length
            }
            Type::Struct(handle) => {
                let mut words = 0;
                for (_, field) in &self.module.structs[*handle].fields {
                    words += self.words(*field)?;
                }
                words
            }
        })
    }

    /// The offsets in memory of a value's scalars, and which are halves.
    fn scalars(&self, ty: Handle<Type>, base: u32, out: &mut Vec<(u32, bool)>) -> Result<()> {
        let size = |ty| layout::of(self.module, ty).ok_or_else(|| self.error("a type that memory does not hold"));
        match &self.module.types[ty] {
            Type::Scalar(scalar) => out.push((base, *scalar == Scalar::F16)),
            Type::Enum(_) => out.push((base, false)),
            Type::Vector { lanes, scalar } => {
                let half = *scalar == Scalar::F16;
                let step = if half { 2 } else { 4 };
                out.extend((0..u32::from(*lanes)).map(|lane| (base + lane * step, half)));
            }
            Type::Array { element, length } => {
                let step = size(*element)?.size;
                for i in 0..length.literal().unwrap_or(0) {
                    self.scalars(*element, base + i * step, out)?;
                }
            }
            Type::Struct(handle) => {
                let offsets = layout::field_offsets(self.module, *handle)
                    .ok_or_else(|| self.error("a struct that memory does not hold"))?;
                for ((_, field), offset) in self.module.structs[*handle].fields.iter().zip(offsets) {
                    self.scalars(*field, base + offset, out)?;
                }
            }
        }
        Ok(())
    }

    fn scalar_of(&self, function: &Function, value: Handle<Expression>) -> Result<Scalar> {
        match &self.module.types[function.expressions[value].ty] {
            Type::Scalar(scalar) | Type::Vector { scalar, .. } => Ok(*scalar),
            Type::Enum(_) => Ok(Scalar::U32),
            Type::Array { .. } | Type::Struct(_) => Err(self.error("an operation on an array or struct as a whole")),
        }
    }

    fn field(&self, role: ParamRole) -> Result<u32> {
        let field = self.params.fields.iter().find(|field| field.role == role);
        field.map(|field| field.offset).ok_or_else(|| self.error(format!("the parameter block has no {role:?}")))
    }

    // Statements.

    fn block(&mut self, frame: &mut Frame<'_>, block: &[Statement], out: &mut Vec<Instruction>) -> Result<()> {
        let top = self.top;
        for statement in block {
            self.statement(frame, &statement.kind, out)?;
            if matches!(statement.kind, StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)) {
                break;
            }
        }
        self.top = top;
        Ok(())
    }

    fn statement(&mut self, frame: &mut Frame<'_>, kind: &StatementKind, out: &mut Vec<Instruction>) -> Result<()> {
        // Locals stay after the statement, what it computes on the way does not.
        let mut keep = self.top;
        match kind {
            StatementKind::Let { local, value } => {
                let declared = &frame.function.locals[*local];
                let words = self.words(declared.ty)?;
                match value {
                    Some(value) if !declared.mutable => {
                        // Computed in place, so that it stays; or nothing to compute, if it is a constant or another value.
                        let registers = self.take(words);
                        keep = self.top;
                        let found = self.expression(frame, *value, Some(&registers), out)?;
                        // What lies above is given to the next statement.
                        let stays = found.registers.iter().all(|register| *register < keep || *register >= FIXED);
                        frame.locals[local.index()] = if found.stable && stays {
                            found.registers
                        } else {
                            self.copy(&found.registers, &registers, out);
                            registers
                        };
                    }
                    Some(value) => {
                        let registers = self.take(words);
                        keep = self.top;
                        let found = self.expression(frame, *value, None, out)?;
                        for (to, from) in registers.iter().zip(&found.registers) {
                            out.push(Instruction::Assign { to: *to, from: *from });
                        }
                        frame.locals[local.index()] = registers;
                    }
                    None => {
                        let registers = self.take(words);
                        keep = self.top;
                        // Unspecified until written; in range and without surprises all the same.
                        frame.locals[local.index()] = registers;
                    }
                }
            }
            StatementKind::Store { place, value } => {
                let value = self.expression(frame, *value, None, out)?;
                self.store(frame, place, &value.registers, out)?;
            }
            StatementKind::Evaluate(value) => {
                self.expression(frame, *value, None, out)?;
            }
            StatementKind::If { condition, accept, reject, constant } => {
                if let (true, Some(known)) = (*constant, self.known(frame.function, *condition)) {
                    self.block(frame, if known { accept } else { reject }, out)?;
                } else {
                    let condition = self.expression(frame, *condition, None, out)?.registers[0];
                    let (mut yes, mut no) = (Vec::new(), Vec::new());
                    self.block(frame, accept, &mut yes)?;
                    self.block(frame, reject, &mut no)?;
                    out.push(Instruction::If { condition, accept: yes, reject: no });
                }
            }
            StatementKind::Switch { selector, cases, default } => {
                let selector = self.expression(frame, *selector, None, out)?;
                let selector = self.keep_value(selector, out).registers[0];
                // Which lanes no case has taken; each lane runs one body.
                let mut tests = Vec::new();
                for case in cases {
                    let mut any = None;
                    for value in &case.values {
                        let literal = self.constant(Constant::Literal(*value));
                        let mut test = self.two(Two::Equal, selector, literal, out);
                        if let Some(before) = any {
                            test = self.two(Two::Or, before, test, out);
                        }
                        any = Some(test);
                    }
                    if let Some(test) = any {
                        tests.push((test, &case.body));
                    }
                }
                let mut rest = Vec::new();
                self.block(frame, default, &mut rest)?;
                for (condition, body) in tests.into_iter().rev() {
                    let mut accept = Vec::new();
                    self.block(frame, body, &mut accept)?;
                    rest = vec![Instruction::If { condition, accept, reject: rest }];
                }
                out.extend(rest);
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let signed = self.scalar_of(frame.function, *start)? == Scalar::I32;
                let counter = self.one();
                frame.locals[local.index()] = vec![counter];
                let (left, continued, condition) = (self.one(), self.one(), self.one());
                let start = self.expression(frame, *start, None, out)?.registers[0];
                out.push(Instruction::Assign { to: counter, from: start });
                let end = self.expression(frame, *end, None, out)?;
                let end = self.keep_value(end, out).registers[0];
                let step = self.expression(frame, *step, None, out)?.registers[0];
                let one = self.constant(Constant::Literal(1));
                // A step of 0 is taken as 1.
                let step = self.two(Two::MaxUnsigned, step, one, out);
                let less = if signed { Two::LessSigned } else { Two::LessUnsigned };
                let test = vec![Instruction::Two { operation: less, to: condition, a: counter, b: end }];
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                // If the step passes the largest number, the loop is at its end.
                let mut advance = Vec::new();
                let next = self.two(Two::Add, counter, step, &mut advance);
                let wrapped = self.two(less, next, counter, &mut advance);
                advance.push(Instruction::If {
                    condition: wrapped,
                    accept: vec![Instruction::Leave { into: Some(left) }],
                    reject: Vec::new(),
                });
                advance.push(Instruction::Assign { to: counter, from: next });
                out.push(Instruction::Loop {
                    test,
                    condition: Some(condition),
                    body: inner,
                    step: advance,
                    left,
                    continued,
                });
            }
            StatementKind::While { condition, body } => {
                let (left, continued) = (self.one(), self.one());
                let mut test = Vec::new();
                let condition = self.expression(frame, *condition, None, &mut test)?.registers[0];
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                out.push(Instruction::Loop {
                    test,
                    condition: Some(condition),
                    body: inner,
                    step: Vec::new(),
                    left,
                    continued,
                });
            }
            StatementKind::Loop { body } => {
                let (left, continued) = (self.one(), self.one());
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                out.push(Instruction::Loop {
                    test: Vec::new(),
                    condition: None,
                    body: inner,
                    step: Vec::new(),
                    left,
                    continued,
                });
            }
            StatementKind::Break | StatementKind::Continue => {
                let (left, continued) =
                    *frame.loops.last().ok_or_else(|| self.error("`break` or `continue` outside of a loop"))?;
                let into = if matches!(kind, StatementKind::Break) { left } else { continued };
                out.push(Instruction::Leave { into: Some(into) });
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    let value = self.expression(frame, *value, None, out)?;
                    for (to, from) in frame.result.iter().zip(&value.registers) {
                        out.push(Instruction::Assign { to: *to, from: *from });
                    }
                }
                out.push(Instruction::Leave { into: frame.returned });
            }
            // A batch is one workgroup, which runs in step.
            StatementKind::Barrier => self.together = true,
            StatementKind::UniformLoad { result, place } => {
                self.together = true;
                let registers = self.take(self.words(frame.function.locals[*result].ty)?);
                keep = self.top;
                let loaded = self.load(frame, place, None, out)?;
                for (to, from) in registers.iter().zip(&loaded.registers) {
                    out.push(Instruction::Uniform { to: *to, from: *from });
                }
                frame.locals[result.index()] = registers;
            }
            StatementKind::Atomic { result, place, function, value, compare } => {
                let to = match result {
                    Some(result) => {
                        let register = self.one();
                        keep = self.top;
                        frame.locals[result.index()] = vec![register];
                        Some(register)
                    }
                    None => None,
                };
                let mut operand = |builder: &mut Self, value: &Option<Handle<Expression>>| match value {
                    Some(value) => Ok(builder.expression(frame, *value, None, out)?.registers[0]),
                    None => Ok(builder.constant(Constant::Literal(0))),
                };
                let compare = operand(self, compare)?;
                let value = operand(self, value)?;
                let (address, ty) = self.address(frame, place, out)?;
                let signed = matches!(ty, Walked::Known(ty) if self.module.types[ty].scalar() == Some(Scalar::I32));
                let operation = match function {
                    AtomicFunction::Load => AtomicOperation::Load,
                    AtomicFunction::Store => AtomicOperation::Store,
                    AtomicFunction::Add => AtomicOperation::Add,
                    AtomicFunction::Subtract => AtomicOperation::Subtract,
                    AtomicFunction::Min if signed => AtomicOperation::MinSigned,
                    AtomicFunction::Min => AtomicOperation::MinUnsigned,
                    AtomicFunction::Max if signed => AtomicOperation::MaxSigned,
                    AtomicFunction::Max => AtomicOperation::MaxUnsigned,
                    AtomicFunction::And => AtomicOperation::And,
                    AtomicFunction::Or => AtomicOperation::Or,
                    AtomicFunction::Xor => AtomicOperation::Xor,
                    AtomicFunction::Exchange => AtomicOperation::Exchange,
                    AtomicFunction::CompareExchange => AtomicOperation::CompareExchange,
                };
                out.push(Instruction::Atomic { operation, address, to, value, compare });
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                self.together = true;
                let scalar = self.scalar_of(frame.function, *value)?;
                let registers = self.take(self.words(frame.function.locals[*result].ty)?);
                keep = self.top;
                let value = self.expression(frame, *value, None, out)?;
                let lane = match lane {
                    Some(lane) => self.expression(frame, *lane, None, out)?.registers[0],
                    None => self.constant(Constant::Literal(0)),
                };
                let operator = |float, signed, unsigned| match scalar {
                    Scalar::F32 => Combine::With(float),
                    Scalar::I32 => Combine::With(signed),
                    _ => Combine::With(unsigned),
                };
                let combine = match function {
                    SubgroupFunction::Add => operator(Two::AddFloat, Two::Add, Two::Add),
                    SubgroupFunction::Max => operator(Two::MaxFloat, Two::MaxSigned, Two::MaxUnsigned),
                    SubgroupFunction::Min => operator(Two::MinFloat, Two::MinSigned, Two::MinUnsigned),
                    SubgroupFunction::Broadcast | SubgroupFunction::Shuffle => Combine::Lane,
                    SubgroupFunction::ShuffleXor => Combine::Xor,
                };
                for (to, value) in registers.iter().zip(&value.registers) {
                    out.push(Instruction::Subgroup { combine, to: *to, value: *value, lane });
                }
                frame.locals[result.index()] = registers;
            }
        }
        self.top = keep;
        Ok(())
    }

    /// The value of a condition made of constants.
    fn known(&self, function: &Function, condition: Handle<Expression>) -> Option<bool> {
        match &function.expressions[condition].kind {
            ExpressionKind::TargetHas(feature) => Some(self.features.has(*feature)),
            ExpressionKind::Literal(Literal::Bool(value)) => Some(*value),
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => Some(!self.known(function, *value)?),
            ExpressionKind::Logical { operator, left, right } => {
                let (left, right) = (self.known(function, *left)?, self.known(function, *right)?);
                Some(match operator {
                    LogicalOperator::And => left && right,
                    LogicalOperator::Or => left || right,
                })
            }
            // Comparisons of constants are computed as any others.
            _ => None,
        }
    }

    // Expressions.

    fn two(&mut self, operation: Two, a: Register, b: Register, out: &mut Vec<Instruction>) -> Register {
        let to = self.one();
        out.push(Instruction::Two { operation, to, a, b });
        to
    }

    fn copy(&mut self, from: &[Register], to: &[Register], out: &mut Vec<Instruction>) {
        for (to, from) in to.iter().zip(from) {
            if to != from {
                out.push(Instruction::Copy { to: *to, from: *from });
            }
        }
    }

    /// The value in registers that nothing changes.
    fn keep_value(&mut self, value: Value, out: &mut Vec<Instruction>) -> Value {
        if value.stable {
            return value;
        }
        let registers = self.take(value.registers.len() as u32);
        self.copy(&value.registers, &registers, out);
        Value { registers, stable: true }
    }

    fn target(&mut self, want: Option<&[Register]>, words: u32) -> Vec<Register> {
        match want {
            Some(want) => want.to_vec(),
            None => self.take(words),
        }
    }

    /// Builds an expression; what has to be computed is computed into `want`, if given.
    fn expression(
        &mut self,
        frame: &mut Frame<'_>,
        handle: Handle<Expression>,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let expression = &frame.function.expressions[handle];
        let words = self.words(expression.ty)?;
        let fixed = |registers: Vec<Register>| Ok(Value { registers, stable: true });
        match &expression.kind {
            ExpressionKind::Literal(literal) => {
                let bits = match literal {
                    Literal::Bool(value) => {
                        if *value {
                            u32::MAX
                        } else {
                            0
                        }
                    }
                    Literal::Generic { .. } => return Err(self.error("a generic literal in an instance")),
                    other => other.bits() as u32,
                };
                fixed(vec![self.constant(Constant::Literal(bits))])
            }
            ExpressionKind::TargetHas(feature) => {
                let bits = if self.features.has(*feature) { u32::MAX } else { 0 };
                fixed(vec![self.constant(Constant::Literal(bits))])
            }
            ExpressionKind::GenericConstant(_) => Err(self.error("a generic constant in an instance")),
            ExpressionKind::Param(index) => {
                let offset = self.field(ParamRole::User(*index))?;
                let bool = self.module.types[expression.ty].scalar() == Some(Scalar::Bool);
                fixed((0..words).map(|i| self.constant(Constant::Param { offset: offset + 4 * i, bool })).collect())
            }
            ExpressionKind::Length(binding) => {
                let offset = self.field(ParamRole::Length(*binding))?;
                fixed(vec![self.constant(Constant::Param { offset, bool: false })])
            }
            ExpressionKind::ViewExtent { binding, axis } => {
                let offset = self.field(ParamRole::Extents(*binding))? + 4 * axis;
                fixed(vec![self.constant(Constant::Param { offset, bool: false })])
            }
            ExpressionKind::ViewStride { binding, axis } => {
                let offset = self.field(ParamRole::Strides(*binding))? + 4 * axis;
                fixed(vec![self.constant(Constant::Param { offset, bool: false })])
            }
            ExpressionKind::Builtin(builtin) => fixed(self.builtin(*builtin)),
            ExpressionKind::Argument(index) => fixed(frame.arguments[*index as usize].clone()),
            ExpressionKind::Local(local) => fixed(frame.locals[local.index()].clone()),
            ExpressionKind::Load(place) => self.load(frame, place, want, out),
            ExpressionKind::Member { base, index } => {
                let (first, count) = self.part(frame.function.expressions[*base].ty, *index)?;
                let base = self.expression(frame, *base, None, out)?;
                let registers = base.registers[first as usize..(first + count) as usize].to_vec();
                Ok(Value { registers, stable: base.stable })
            }
            ExpressionKind::Element { base, index } => {
                let ty = frame.function.expressions[*base].ty;
                let (_, count) = self.part(ty, 0)?;
                let length = self.words(ty)? / count.max(1);
                let base = self.expression(frame, *base, None, out)?;
                let consecutive = base.registers.windows(2).all(|pair| pair[1] == pair[0] + 1);
                let base = if consecutive && base.registers.iter().all(|register| *register < FIXED) {
                    base.registers
                } else {
                    let copied = self.take(base.registers.len() as u32);
                    self.copy(&base.registers, &copied, out);
                    copied
                };
                let index = self.expression(frame, *index, None, out)?.registers[0];
                let to = self.target(want, words);
                let terms = vec![Term { index, stride: count, bound: Bound::Count(length) }];
                out.push(Instruction::Pick { to: to.clone(), base: base[0], terms });
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Compose(parts) => {
                let mut registers = Vec::new();
                let mut stable = true;
                for part in parts {
                    let value = self.expression(frame, *part, None, out)?;
                    stable &= value.stable;
                    registers.extend(value.registers);
                }
                Ok(Value { registers, stable: stable && want.is_none() })
            }
            ExpressionKind::Splat(value) => {
                let value = self.expression(frame, *value, None, out)?;
                let times = words as usize / value.registers.len().max(1);
                Ok(Value { registers: value.registers.repeat(times), stable: value.stable })
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let base = self.expression(frame, *base, None, out)?;
                let registers = lanes.iter().map(|lane| base.registers[usize::from(*lane)]).collect();
                Ok(Value { registers, stable: base.stable })
            }
            ExpressionKind::Unary { operator, value } => {
                let scalar = self.scalar_of(frame.function, *value)?;
                let operation = match (operator, scalar) {
                    (UnaryOperator::Not, _) => One::Not,
                    (UnaryOperator::Negate, Scalar::F32) => One::NegateFloat,
                    (UnaryOperator::Negate, _) => One::NegateInteger,
                };
                let value = self.expression(frame, *value, None, out)?;
                let to = self.target(want, words);
                self.each(operation, &to, &value.registers, out);
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Binary { operator, left, right } => {
                let scalar = self.scalar_of(frame.function, *left)?;
                let left = self.expression(frame, *left, None, out)?;
                let right = self.expression(frame, *right, None, out)?;
                let (operation, swapped) = binary(*operator, scalar);
                let to = self.target(want, words);
                for (i, to) in to.iter().enumerate() {
                    let (mut a, mut b) = (left.registers[i], right.registers[i]);
                    if swapped {
                        (a, b) = (b, a);
                    }
                    out.push(Instruction::Two { operation, to: *to, a, b });
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Logical { operator, left, right } => {
                let left = self.expression(frame, *left, None, out)?.registers[0];
                let mut inner = Vec::new();
                let right = self.expression(frame, *right, None, &mut inner)?.registers[0];
                if inner.iter().any(|instruction| {
                    !matches!(
                        instruction,
                        Instruction::One { .. }
                            | Instruction::Two { .. }
                            | Instruction::MulAdd { .. }
                            | Instruction::Select { .. }
                            | Instruction::Copy { .. }
                    )
                }) {
                    // The right side reads memory that may not be there.
                    let (accept, reject) = match operator {
                        LogicalOperator::And => (inner, Vec::new()),
                        LogicalOperator::Or => (Vec::new(), inner),
                    };
                    out.push(Instruction::If { condition: left, accept, reject });
                } else {
                    out.extend(inner);
                }
                let to = self.target(want, 1);
                let operation = match operator {
                    LogicalOperator::And => Two::And,
                    LogicalOperator::Or => Two::Or,
                };
                out.push(Instruction::Two { operation, to: to[0], a: left, b: right });
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Math { function, arguments } => {
                let scalar = self.scalar_of(frame.function, arguments[0])?;
                let function = *function;
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.expression(frame, *argument, None, out)?.registers);
                }
                let to = self.target(want, words);
                if function == MathFunction::Dot {
                    let mut sum = self.two(Two::MultiplyFloat, values[0][0], values[1][0], out);
                    for (a, b) in values[0].iter().zip(&values[1]).skip(1) {
                        let product = self.two(Two::MultiplyFloat, *a, *b, out);
                        sum = self.two(Two::AddFloat, sum, product, out);
                    }
                    out.push(Instruction::Copy { to: to[0], from: sum });
                } else {
                    for (i, to) in to.iter().enumerate() {
                        let lane: Vec<Register> = values.iter().map(|value| value[i]).collect();
                        self.math(function, scalar, *to, &lane, out)?;
                    }
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Select { condition, accept, reject } => {
                let condition = self.expression(frame, *condition, None, out)?.registers;
                let accept = self.expression(frame, *accept, None, out)?.registers;
                let reject = self.expression(frame, *reject, None, out)?.registers;
                let to = self.target(want, words);
                for (i, to) in to.iter().enumerate() {
                    let condition = if condition.len() == 1 { condition[0] } else { condition[i] };
                    out.push(Instruction::Select { to: *to, condition, accept: accept[i], reject: reject[i] });
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Convert(value) => {
                let from = self.scalar_of(frame.function, *value)?;
                let to = self.scalar_of(frame.function, handle)?;
                let value = self.expression(frame, *value, None, out)?;
                self.convert(from, to, value, want, out)
            }
            ExpressionKind::Bitcast(value) => {
                let function = frame.function;
                let from = &self.module.types[function.expressions[*value].ty];
                let pair = |ty: &Type| matches!(ty, Type::Vector { lanes: 2, scalar: Scalar::F16 });
                let (packs, unpacks) = (pair(from), pair(&self.module.types[expression.ty]));
                let value = self.expression(frame, *value, None, out)?;
                if packs == unpacks {
                    return Ok(value);
                }
                let to = self.target(want, words);
                if packs {
                    let (a, b) = (value.registers[0], value.registers[1]);
                    out.push(Instruction::Two { operation: Two::Pair, to: to[0], a, b });
                } else {
                    let a = value.registers[0];
                    out.push(Instruction::One { operation: One::LowHalf, to: to[0], a });
                    out.push(Instruction::One { operation: One::HighHalf, to: to[1], a });
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Call { function, arguments } => self.call(frame, *function, arguments, out),
        }
    }

    fn each(&mut self, operation: One, to: &[Register], from: &[Register], out: &mut Vec<Instruction>) {
        for (to, a) in to.iter().zip(from) {
            out.push(Instruction::One { operation, to: *to, a: *a });
        }
    }

    fn builtin(&mut self, builtin: Builtin) -> Vec<Register> {
        let axes = |builder: &mut Self, what: &dyn Fn(u8) -> Given| {
            (0..3).map(|axis| builder.given(what(axis))).collect::<Vec<_>>()
        };
        match builtin {
            Builtin::GlobalIndex => vec![self.given(Given::GlobalIndex)],
            Builtin::LocalIndex => vec![self.given(Given::LocalIndex)],
            Builtin::GroupIndex => vec![self.given(Given::GroupIndex)],
            Builtin::GroupCount => vec![self.constant(Constant::GroupCount)],
            Builtin::GlobalId => axes(self, &Given::GlobalId),
            Builtin::LocalId => axes(self, &Given::LocalId),
            Builtin::GroupId => axes(self, &Given::GroupId),
            Builtin::GroupCounts => (0..3).map(|axis| self.constant(Constant::Groups(axis))).collect(),
            Builtin::SubgroupSize => vec![self.constant(Constant::Literal(SUBGROUP_SIZE))],
            Builtin::SubgroupLane => vec![self.given(Given::SubgroupLane)],
            Builtin::SubgroupIndex => vec![self.given(Given::SubgroupIndex)],
        }
    }

    /// Where a part of a value known by number lies in its registers: the first, and how many.
    fn part(&self, ty: Handle<Type>, index: u32) -> Result<(u32, u32)> {
        match &self.module.types[ty] {
            Type::Vector { .. } => Ok((index, 1)),
            Type::Array { element, .. } => {
                let count = self.words(*element)?;
                Ok((index * count, count))
            }
            Type::Struct(handle) => {
                let mut first = 0;
                for (position, (_, field)) in self.module.structs[*handle].fields.iter().enumerate() {
                    let count = self.words(*field)?;
                    if position == index as usize {
                        return Ok((first, count));
                    }
                    first += count;
                }
                Err(self.error("a struct has no such field"))
            }
            Type::Scalar(_) | Type::Enum(_) => Err(self.error("a part of a scalar")),
        }
    }

    fn math(
        &mut self,
        function: MathFunction,
        scalar: Scalar,
        to: Register,
        values: &[Register],
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        let float = scalar == Scalar::F32;
        let signed = scalar == Scalar::I32;
        let pick = |of_float, of_signed, of_unsigned| {
            if float {
                of_float
            } else if signed {
                of_signed
            } else {
                of_unsigned
            }
        };
        let min = pick(Two::MinFloat, Two::MinSigned, Two::MinUnsigned);
        let max = pick(Two::MaxFloat, Two::MaxSigned, Two::MaxUnsigned);
        let one = match function {
            MathFunction::Abs if float => One::AbsFloat,
            MathFunction::Abs if signed => One::AbsInteger,
            MathFunction::Abs => {
                out.push(Instruction::Copy { to, from: values[0] });
                return Ok(());
            }
            MathFunction::Min | MathFunction::Max | MathFunction::Powf | MathFunction::Atan2 => {
                let operation = match function {
                    MathFunction::Min => min,
                    MathFunction::Max => max,
                    MathFunction::Powf => Two::Powf,
                    _ => Two::Atan2,
                };
                out.push(Instruction::Two { operation, to, a: values[0], b: values[1] });
                return Ok(());
            }
            MathFunction::Clamp => {
                let above = self.two(max, values[0], values[1], out);
                out.push(Instruction::Two { operation: min, to, a: above, b: values[2] });
                return Ok(());
            }
            MathFunction::MulAdd => {
                out.push(Instruction::MulAdd { to, a: values[0], b: values[1], c: values[2] });
                return Ok(());
            }
            MathFunction::Dot => return Err(self.error("`dot` of scalars")),
            MathFunction::Signum if float => One::SignumFloat,
            MathFunction::Signum => One::SignumInteger,
            MathFunction::Floor => One::Floor,
            MathFunction::Ceil => One::Ceil,
            MathFunction::RoundTiesEven => One::RoundTiesEven,
            MathFunction::Trunc => One::Trunc,
            MathFunction::Sqrt => One::Sqrt,
            MathFunction::InverseSqrt => One::InverseSqrt,
            MathFunction::Exp => One::Exp,
            MathFunction::Exp2 => One::Exp2,
            MathFunction::Ln => One::Ln,
            MathFunction::Log2 => One::Log2,
            MathFunction::Sin => One::Sin,
            MathFunction::Cos => One::Cos,
            MathFunction::Tan => One::Tan,
            MathFunction::Tanh => One::Tanh,
            MathFunction::Atan => One::Atan,
            MathFunction::Erf => One::Erf,
            MathFunction::IsNan => One::IsNan,
            MathFunction::IsInfinite => One::IsInfinite,
            MathFunction::CountOnes => One::CountOnes,
            MathFunction::LeadingZeros => One::LeadingZeros,
            MathFunction::TrailingZeros => One::TrailingZeros,
            MathFunction::UnpackHalf => One::HalfToFloat,
            MathFunction::PackHalf => One::FloatToHalf,
        };
        out.push(Instruction::One { operation: one, to, a: values[0] });
        Ok(())
    }

    fn convert(
        &mut self,
        from: Scalar,
        to: Scalar,
        value: Value,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let words = value.registers.len() as u32;
        let operation = match (from, to) {
            (Scalar::F16, Scalar::F16) | (Scalar::Bool, Scalar::Bool) | (Scalar::F32, Scalar::F32) => None,
            (from, to) if from.is_integer() && to.is_integer() => None,
            (Scalar::Bool, Scalar::F32) => Some(One::BoolToFloat),
            (Scalar::Bool, to) if to.is_integer() => Some(One::BoolToInteger),
            (Scalar::F32, Scalar::I32) => Some(One::FloatToSigned),
            (Scalar::F32, to) if to.is_integer() => Some(One::FloatToUnsigned),
            (Scalar::I32, Scalar::F32) => Some(One::SignedToFloat),
            (from, Scalar::F32) if from.is_integer() => Some(One::UnsignedToFloat),
            (Scalar::F16, Scalar::F32) => Some(One::HalfToFloat),
            (Scalar::F32, Scalar::F16) => Some(One::FloatToHalf),
            (Scalar::F32, Scalar::Bool) => Some(One::NotZeroFloat),
            (from, Scalar::Bool) if from.is_integer() => Some(One::NotZero),
            // By way of f32, as the IR's table says for halves.
            (Scalar::F16, _) => {
                let float = self.convert(Scalar::F16, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, float, want, out);
            }
            (_, Scalar::F16) => {
                let float = self.convert(from, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, float, want, out);
            }
            _ => return Err(self.error("a conversion of or to a type parameter")),
        };
        let Some(operation) = operation else { return Ok(value) };
        let to = self.target(want, words);
        self.each(operation, &to, &value.registers, out);
        Ok(Value { registers: to, stable: true })
    }

    fn call(
        &mut self,
        frame: &mut Frame<'_>,
        function: Handle<Function>,
        arguments: &[CallArgument],
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let callee = &self.module.functions[function];
        let result = match callee.result {
            Some(ty) => self.take(self.words(ty)?),
            None => Vec::new(),
        };
        let mut given = Vec::new();
        for argument in arguments {
            given.push(match argument {
                CallArgument::Value(value) => {
                    let value = self.expression(frame, *value, None, out)?;
                    self.keep_value(value, out).registers
                }
                CallArgument::Reference(Root::Local(local)) => frame.locals[local.index()].clone(),
                CallArgument::Reference(Root::Argument(index)) => frame.arguments[*index as usize].clone(),
                CallArgument::Reference(Root::Binding(_) | Root::Workgroup(_)) => {
                    return Err(self.error("a buffer is passed by reference"));
                }
            });
        }
        // A function that only returns a value at its end needs no mask.
        let simple = match callee.body.split_last() {
            Some((Statement { kind: StatementKind::Return(Some(value)), .. }, before)) => {
                let mut returns = false;
                crate::ir::statements(&before.to_vec(), &mut |statement| {
                    returns |= matches!(statement.kind, StatementKind::Return(_));
                });
                (!returns).then_some((before, *value))
            }
            _ => None,
        };
        if let Some((before, value)) = simple {
            let mut inner = self.frame(callee, given, Vec::new(), None);
            let top = self.top;
            for statement in before {
                self.statement(&mut inner, &statement.kind, out)?;
            }
            let found = self.expression(&mut inner, value, Some(&result), out)?;
            self.copy(&found.registers, &result, out);
            self.top = top;
            return Ok(Value { registers: result, stable: true });
        }
        let returned = self.one();
        let mut inner = self.frame(callee, given, result.clone(), Some(returned));
        let mut body = Vec::new();
        self.block(&mut inner, &callee.body, &mut body)?;
        out.push(Instruction::Function { body, returned });
        Ok(Value { registers: result, stable: true })
    }

    // Places.

    fn load(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        if let Root::Local(_) | Root::Argument(_) = place.root {
            let (registers, terms) = self.private(frame, place, out)?;
            if terms.is_empty() {
                return Ok(Value { registers, stable: false });
            }
            let to = self.target(want, registers.len() as u32);
            out.push(Instruction::Pick { to: to.clone(), base: registers[0], terms });
            return Ok(Value { registers: to, stable: true });
        }
        let (address, ty) = self.address(frame, place, out)?;
        let scalars = self.scalars_of(ty)?;
        let to = self.target(want, scalars.len() as u32);
        let parts = parts(&to, &scalars);
        out.push(Instruction::Load { address, parts });
        Ok(Value { registers: to, stable: true })
    }

    fn store(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        value: &[Register],
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        if let Root::Local(_) | Root::Argument(_) = place.root {
            let (registers, terms) = self.private(frame, place, out)?;
            if terms.is_empty() {
                // A value that is a part of the place (`v.x = v.y`, a swizzle) is read whole before any of it is written.
                let overlap = value.iter().any(|from| registers.contains(from));
                let from = if overlap {
                    let copied = self.take(value.len() as u32);
                    self.copy(value, &copied, out);
                    copied
                } else {
                    value.to_vec()
                };
                for (to, from) in registers.iter().zip(from) {
                    out.push(Instruction::Assign { to: *to, from });
                }
            } else {
                out.push(Instruction::Put { from: value.to_vec(), base: registers[0], terms });
            }
            return Ok(());
        }
        let (address, ty) = self.address(frame, place, out)?;
        let parts = parts(value, &self.scalars_of(ty)?);
        out.push(Instruction::Store { address, parts });
        Ok(())
    }

    fn scalars_of(&self, ty: Walked) -> Result<Vec<(u32, bool)>> {
        let mut scalars = Vec::new();
        match ty {
            Walked::Known(ty) => self.scalars(ty, 0, &mut scalars)?,
            Walked::Lanes(lanes, scalar) => {
                let half = scalar == Scalar::F16;
                let step = if half { 2 } else { 4 };
                scalars.extend((0..lanes).map(|lane| (lane * step, half)));
            }
        }
        Ok(scalars)
    }

    /// The registers of a place in private memory, before its indices known at run time are added.
    fn private(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        out: &mut Vec<Instruction>,
    ) -> Result<(Vec<Register>, Vec<Term>)> {
        let (mut registers, ty) = match place.root {
            Root::Local(local) => (frame.locals[local.index()].clone(), frame.function.locals[local].ty),
            Root::Argument(index) => {
                (frame.arguments[index as usize].clone(), frame.function.arguments[index as usize].ty)
            }
            Root::Binding(_) | Root::Workgroup(_) => return Err(self.error("not a private place")),
        };
        let mut ty = Walked::Known(ty);
        let mut terms = Vec::new();
        for projection in &place.path {
            let (first, count, next) = match projection {
                Projection::Member(member) => self.step(ty, *member)?,
                Projection::Index(index) => {
                    let (_, count, next) = self.step(ty, 0)?;
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let length = registers.len() as u32 / count.max(1);
                    let bound = if place.guarded { Bound::Count(length) } else { Bound::None };
                    terms.push(Term { index, stride: count, bound });
                    (0, count, next)
                }
                Projection::Vector { index, lanes } => {
                    let (_, _, element) = self.step(ty, 0)?;
                    let scalar = match element {
                        Walked::Known(ty) => self.module.types[ty].scalar(),
                        Walked::Lanes(..) => None,
                    };
                    let scalar = scalar.ok_or_else(|| self.error("a vector access to an array of structs"))?;
                    let lanes = u32::from(*lanes);
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(registers.len() as u32 / lanes) } else { Bound::None };
                    terms.push(Term { index, stride: lanes, bound });
                    (0, lanes, Walked::Lanes(lanes, scalar))
                }
            };
            registers = registers[first as usize..(first + count) as usize].to_vec();
            ty = next;
        }
        Ok((registers, terms))
    }

    /// A part of a type known by number: its first word, its words, and its type.
    fn step(&self, ty: Walked, index: u32) -> Result<(u32, u32, Walked)> {
        let Walked::Known(ty) = ty else {
            let Walked::Lanes(_, scalar) = ty else { return Err(self.error("an unexpected path")) };
            return Ok((index, 1, Walked::Lanes(1, scalar)));
        };
        let (first, count) = self.part(ty, index)?;
        let next = match &self.module.types[ty] {
            Type::Vector { scalar, .. } => Walked::Lanes(1, *scalar),
            Type::Array { element, .. } => Walked::Known(*element),
            Type::Struct(handle) => {
                let field = self.module.structs[*handle].fields.get(index as usize);
                Walked::Known(field.ok_or_else(|| self.error("a struct has no such field"))?.1)
            }
            Type::Scalar(_) | Type::Enum(_) => return Err(self.error("a part of a scalar")),
        };
        Ok((first, count, next))
    }

    /// The address of a place in memory, and its type.
    fn address(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        out: &mut Vec<Instruction>,
    ) -> Result<(Address, Walked)> {
        let (memory, element, reach) = match place.root {
            Root::Binding(binding) => {
                let index = binding as usize;
                let info = &self.verified.info;
                let atomic = self.module.bindings[index].kind == BindingKind::Atomic;
                let read_only = !atomic && info.access.get(index) == Some(&Access::Read);
                let disjoint = !atomic && info.disjoint.get(index).copied().unwrap_or(false);
                let relaxed = !(read_only || disjoint);
                // Checks that the length is there, so that running need not.
                self.field(ParamRole::Length(binding))?;
                let packed = self.module.bindings[index].packed;
                (Where::Binding { binding, relaxed }, self.module.bindings[index].element, Err((binding, packed)))
            }
            Root::Workgroup(variable) => {
                let length = self.module.workgroup[variable].length.literal().unwrap_or(0);
                let at = self.workgroup[variable.index()];
                (Where::Workgroup(at), self.module.workgroup[variable].element, Ok(length))
            }
            Root::Local(_) | Root::Argument(_) => return Err(self.error("not a place in memory")),
        };
        let bound = |groups: u32| match reach {
            Ok(length) => Bound::Count(length / groups),
            Err((binding, packed)) => Bound::Length { binding, divisor: packed * groups },
        };
        let size = |builder: &Self, ty| {
            layout::of(builder.module, ty)
                .map(|layout| layout.size)
                .ok_or_else(|| builder.error("a type that memory does not hold"))
        };
        let scalar_bytes = |scalar: Scalar| if scalar == Scalar::F16 { 2 } else { 4 };
        let mut address = Address { memory, terms: Vec::new(), constant: 0 };
        let mut path = place.path.iter();
        let mut ty = match path.next() {
            Some(Projection::Index(index)) => {
                let index = self.expression(frame, *index, None, out)?.registers[0];
                let bound = if place.guarded { bound(1) } else { Bound::None };
                address.terms.push(Term { index, stride: size(self, element)?, bound });
                Walked::Known(element)
            }
            Some(Projection::Vector { index, lanes }) => {
                let scalar = self.module.types[element]
                    .scalar()
                    .ok_or_else(|| self.error("a vector access to a buffer of structs"))?;
                let lanes = u32::from(*lanes);
                let index = self.expression(frame, *index, None, out)?.registers[0];
                let bound = if place.guarded { bound(lanes) } else { Bound::None };
                address.terms.push(Term { index, stride: lanes * scalar_bytes(scalar), bound });
                Walked::Lanes(lanes, scalar)
            }
            Some(Projection::Member(_)) | None => return Err(self.error("an access to a buffer without an index")),
        };
        for projection in path {
            // Memory's steps, in bytes.
            let (length, stride, next) = match ty {
                Walked::Lanes(lanes, scalar) => (lanes, scalar_bytes(scalar), Walked::Lanes(1, scalar)),
                Walked::Known(known) => match &self.module.types[known] {
                    Type::Vector { lanes, scalar } => {
                        (u32::from(*lanes), scalar_bytes(*scalar), Walked::Lanes(1, *scalar))
                    }
                    Type::Array { element, length } => {
                        (length.literal().unwrap_or(0), size(self, *element)?, Walked::Known(*element))
                    }
                    Type::Struct(handle) => {
                        let Projection::Member(member) = projection else {
                            return Err(self.error("an index into a struct"));
                        };
                        let offsets = layout::field_offsets(self.module, *handle)
                            .ok_or_else(|| self.error("a struct that memory does not hold"))?;
                        let field = self.module.structs[*handle].fields.get(*member as usize);
                        let (Some(offset), Some(field)) = (offsets.get(*member as usize), field) else {
                            return Err(self.error("a struct has no such field"));
                        };
                        address.constant += offset;
                        ty = Walked::Known(field.1);
                        continue;
                    }
                    Type::Scalar(_) | Type::Enum(_) => return Err(self.error("a part of a scalar")),
                },
            };
            ty = match projection {
                Projection::Member(member) => {
                    address.constant += member * stride;
                    next
                }
                Projection::Index(index) => {
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(length) } else { Bound::None };
                    address.terms.push(Term { index, stride, bound });
                    next
                }
                Projection::Vector { index, lanes } => {
                    let lanes = u32::from(*lanes);
                    let scalar = match next {
                        Walked::Known(ty) => self.module.types[ty].scalar(),
                        Walked::Lanes(_, scalar) => Some(scalar),
                    };
                    let scalar = scalar.ok_or_else(|| self.error("a vector access to an array of structs"))?;
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(length / lanes) } else { Bound::None };
                    address.terms.push(Term { index, stride: lanes * scalar_bytes(scalar), bound });
                    Walked::Lanes(lanes, scalar)
                }
            };
        }
        Ok((address, ty))
    }
}

/// The type of a place.
#[derive(Clone, Copy, Debug)]
enum Walked {
    Known(Handle<Type>),
    Lanes(u32, Scalar),
}

fn parts(registers: &[Register], scalars: &[(u32, bool)]) -> Vec<Part> {
    registers
        .iter()
        .zip(scalars)
        .map(|(register, (offset, half))| Part { register: *register, offset: *offset, half: *half })
        .collect()
}

/// The instruction of an operator, and whether its sides change places.
fn binary(operator: BinaryOperator, scalar: Scalar) -> (Two, bool) {
    let pick = |float, signed, unsigned| match scalar {
        Scalar::F32 => float,
        Scalar::I32 => signed,
        _ => unsigned,
    };
    match operator {
        BinaryOperator::Add => (pick(Two::AddFloat, Two::Add, Two::Add), false),
        BinaryOperator::Subtract => (pick(Two::SubtractFloat, Two::Subtract, Two::Subtract), false),
        BinaryOperator::Multiply => (pick(Two::MultiplyFloat, Two::Multiply, Two::Multiply), false),
        BinaryOperator::Divide => (pick(Two::DivideFloat, Two::DivideSigned, Two::DivideUnsigned), false),
        BinaryOperator::Remainder => (pick(Two::RemainderFloat, Two::RemainderSigned, Two::RemainderUnsigned), false),
        BinaryOperator::And => (Two::And, false),
        BinaryOperator::Or => (Two::Or, false),
        BinaryOperator::Xor => (Two::Xor, false),
        BinaryOperator::ShiftLeft => (Two::ShiftLeft, false),
        BinaryOperator::ShiftRight => {
            (pick(Two::ShiftRightUnsigned, Two::ShiftRightSigned, Two::ShiftRightUnsigned), false)
        }
        BinaryOperator::Equal => (pick(Two::EqualFloat, Two::Equal, Two::Equal), false),
        BinaryOperator::NotEqual => (pick(Two::NotEqualFloat, Two::NotEqual, Two::NotEqual), false),
        BinaryOperator::Less => (pick(Two::LessFloat, Two::LessSigned, Two::LessUnsigned), false),
        BinaryOperator::LessEqual => (pick(Two::LessEqualFloat, Two::LessEqualSigned, Two::LessEqualUnsigned), false),
        BinaryOperator::Greater => (pick(Two::LessFloat, Two::LessSigned, Two::LessUnsigned), true),
        BinaryOperator::GreaterEqual => (pick(Two::LessEqualFloat, Two::LessEqualSigned, Two::LessEqualUnsigned), true),
    }
}
