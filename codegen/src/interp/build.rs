//! From the IR to a program: values are spread over registers, functions are inlined, control flow becomes masks.
//!
//! Registers are given out as on a stack: locals live until the end of their block, what a statement computes on the way until its
//! end. Literals, parameters and builtins have registers of their own, filled before anything runs.
//!
//! Here is what gives registers out; the walk through a function is in `statement`, `expression`, `choice` and `place`.

mod arithmetic;
mod choice;
mod expression;
mod place;
mod statement;
mod wide;

use std::collections::HashMap;

use super::program::{Constant, Given, Held, Instruction, Register, Term};
use crate::artefact::{ParamRole, Params};
use crate::emit::EmitError;
use crate::ir::{Expression, Function, Handle, Module, Scalar, Type};
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

/// Builds a module whose arithmetic of narrow types is done in 32 bits already; `verified` is what is known of it.
pub(super) fn build(module: &Module, verified: &Verified, params: &Params) -> Result<Built> {
    let mut builder = Builder {
        module,
        verified,
        params,
        // It has what every CPU device has; subgroups are emulated where a kernel requires them.
        features: Feature::ALL
            .into_iter()
            .filter(|feature| feature.always(Target::Cpu))
            .fold(verified.info.required, |all, feature| all.union(Features::of(&[feature]))),
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

/// How many words a scalar has.
const fn words_of(scalar: Scalar) -> u32 {
    if scalar.is_wide() { 2 } else { 1 }
}

/// The offsets of the words of consecutive scalars in memory, and how they are held.
fn parts_of(scalar: Scalar, count: u32, base: u32) -> impl Iterator<Item = (u32, Held)> {
    let held = match scalar {
        Scalar::F16 | Scalar::U16 => Held::Half,
        Scalar::I16 => Held::SignedHalf,
        Scalar::BF16 => Held::Upper,
        Scalar::U8 => Held::Byte,
        Scalar::I8 => Held::SignedByte,
        _ => Held::Word,
    };
    let step = scalar.bytes().unwrap_or(4).min(4);
    (0..count * words_of(scalar)).map(move |word| (base + word * step, held))
}

/// Moves fixed registers behind the others.
fn relocate(code: &mut [Instruction], base: u32) {
    let fix = |register: &mut Register| {
        if *register >= FIXED {
            *register = *register - FIXED + base;
        }
    };
    let terms = |terms: &mut Vec<Term>| {
        terms.iter_mut().flat_map(|term| [Some(&mut term.index), term.upper.as_mut()]).flatten().for_each(fix);
    };
    for instruction in code {
        match instruction {
            Instruction::One { to, a, .. } => [to, a].into_iter().for_each(fix),
            Instruction::Two { to, a, b, .. } => [to, a, b].into_iter().for_each(fix),
            Instruction::MulAdd { to, a, b, c } => [to, a, b, c].into_iter().for_each(fix),
            Instruction::Math { to, given, .. } => to.iter_mut().chain(given.iter_mut().flatten()).for_each(fix),
            Instruction::Wide { to, from, .. } => to.iter_mut().chain(from).for_each(fix),
            Instruction::Select { to, condition, accept, reject } => {
                [to, condition, accept, reject].into_iter().for_each(fix);
            }
            Instruction::Choose { to, a, b, accept, reject, .. } => {
                [to, a, b, accept, reject].into_iter().for_each(fix)
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
            Instruction::WideAtomic { address, to, value, compare, .. } => {
                to.iter_mut().flatten().chain(value).chain(compare).for_each(fix);
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
            Instruction::Fence => {}
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
            Type::Scalar(scalar) => words_of(*scalar),
            Type::Enum(_) => 1,
            Type::Vector { lanes, scalar } => u32::from(*lanes) * words_of(*scalar),
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
            Type::Matrix(_) => return Err(self.error("a matrix is left")),
        })
    }

    /// The offsets in memory of a value's words, and how they are held.
    fn scalars(&self, ty: Handle<Type>, base: u32, out: &mut Vec<(u32, Held)>) -> Result<()> {
        let size = |ty| layout::of(self.module, ty).ok_or_else(|| self.error("a type that memory does not hold"));
        match &self.module.types[ty] {
            Type::Scalar(scalar) => out.extend(parts_of(*scalar, 1, base)),
            Type::Enum(_) => out.push((base, Held::Word)),
            Type::Vector { lanes, scalar } => out.extend(parts_of(*scalar, u32::from(*lanes), base)),
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
            Type::Matrix(_) => return Err(self.error("a matrix is left")),
        }
        Ok(())
    }

    fn scalar_of(&self, function: &Function, value: Handle<Expression>) -> Result<Scalar> {
        match &self.module.types[function.expressions[value].ty] {
            Type::Scalar(scalar) | Type::Vector { scalar, .. } => Ok(*scalar),
            Type::Enum(_) => Ok(Scalar::U32),
            Type::Array { .. } | Type::Struct(_) | Type::Matrix(_) => {
                Err(self.error("an operation on an array or struct as a whole"))
            }
        }
    }

    fn field(&self, role: ParamRole) -> Result<u32> {
        let field = self.params.fields.iter().find(|field| field.role == role);
        field.map(|field| field.offset).ok_or_else(|| self.error(format!("the parameter block has no {role:?}")))
    }
}
