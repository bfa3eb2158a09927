//! The checker: runs a kernel as the essay in [`crate::ir`] says, and tells of what its author did not mean.
//!
//! It is an evaluator of its own, beside the fast one in [`crate::interp`], and shares nothing with it but the IR. That one runs what was legalised, where an
//! access is an address and nobody remembers who wrote it; this one walks the verified instance itself, in which every expression still has its place in the
//! author's source, and keeps a shadow beside every scalar of memory (`memory`). So each is also a test of the other, and of the essay.
//!
//! # How it runs
//! A workgroup runs in lockstep: each statement for all invocations at once, whose words lie side by side, so that what is done for a statement is paid for
//! once and not once an invocation. Those that do not take part are left out by a list of lanes (`machine`). Workgroups follow one after the other, in an
//! order that may be chosen: a kernel whose result depends on it has a race, which is found in any order.
//!
//! Matrices and tiles are spelled out as plain loops first, as for the CPU. What they access is told of as accessed by the first lane of the subgroup, at the place of
//! the call. Which lane it really is, nobody knows: what one operation writes, another one of the same subgroup finds no more than anybody else does without a barrier. Asynchronous copies have their own meaning: what is copied may not be touched before somebody has waited.
//!
//! # What is found
//! * *Races*: accesses of one element by two invocations, one a write, without a barrier between them in a workgroup, or at all between workgroups. What ordered atomics
//!   make visible is no race (`atomic` says how far that is followed).
//! * *Accesses past the end*. They have a meaning, zero or nothing, and a kernel may rely on it: [`Options::reads_past_end`] and [`Options::writes_past_end`] allow it.
//! * *Reads of what was never written* in workgroup memory and in variables, *divergent* barriers and operations of subgroups, *divisions of integers by zero*, and loops that do
//!   not end, and what the kernel itself asserts (`assert!`). On request, *integers that overflow* (never of `wrapping_add` and its like) and *operations on numbers that give none*.
//!
//! What is found is found in one run with one set of arguments: a race that needs other values, or another size of subgroups, is not.

mod assertion;
mod asynchronous;
mod atomic;
mod expression;
mod lanes;
mod launch;
mod machine;
mod math;
mod memory;
mod place;
mod report;
mod scalar;
mod shape;
mod statement;
mod subgroup;

pub use launch::Launch;
pub use report::{Access, Finding, Found, Invocation, Location, Memory, MemoryKind, Printed, Report};

use self::machine::{Machine, Stop};
use self::shape::Shape;
use crate::artefact::{Access as BindingAccess, ParamRole, Params};
use crate::ir::{BindingKind, Instance, Module, Scalar, Scope, Size, StatementKind, instantiate, statements};
use crate::target::{Feature, Features, MOST_SUBGROUP, Target};
use crate::verify::{Verified, verify_as_written};
use crate::{flat, layout, matrices, tiles};

/// What is looked for, and how a kernel is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Races between invocations, accesses of what an asynchronous copy is still to write, and writes to what one is still to read.
    pub races: bool,
    /// Reads past the end, which give zero.
    pub reads_past_end: bool,
    /// Writes and atomic operations past the end, which do nothing.
    pub writes_past_end: bool,
    /// Reads of workgroup memory and variables that were never written.
    pub uninitialised: bool,
    /// Barriers and operations of subgroups that not all invocations get to.
    pub divergence: bool,
    /// Integers divided by zero, which gives 0.
    pub division_by_zero: bool,
    /// Integers that wrap, but for those of `wrapping_add` and its like.
    pub overflow: bool,
    /// Operations on numbers whose result is none.
    pub not_a_number: bool,
    /// Invocations of a subgroup, for kernels that do not state it: 4, 8, 32 and 64 are those of GPUs.
    pub subgroup_size: u32,
    /// Whether `target::has(Feature::Subgroups)` is true, as on most GPUs, or in kernels alone that require them.
    pub has_subgroups: bool,
    /// How workgroups follow each other.
    pub order: Order,
    /// What the kernel asserts, by `assert!` and its like.
    pub assertions: bool,
    /// With so many different findings a run ends.
    pub most_findings: usize,
    /// So many lines that the kernel prints are kept.
    pub most_printed: usize,
    /// A loop that is run more often does not end.
    pub most_rounds: u64,
}

impl Default for Options {
    /// Everything but overflow and NaN, in subgroups of 32.
    fn default() -> Self {
        Self {
            races: true,
            reads_past_end: true,
            writes_past_end: true,
            uninitialised: true,
            divergence: true,
            division_by_zero: true,
            overflow: false,
            not_a_number: false,
            subgroup_size: 32,
            has_subgroups: true,
            order: Order::Ascending,
            assertions: true,
            most_findings: 20,
            most_printed: 1000,
            most_rounds: 10_000_000,
        }
    }
}

/// How workgroups follow each other. A kernel that orders memory by atomics or fences may wait for an earlier one, and has them ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the first on.
    #[default]
    Ascending,
    /// From the last on.
    Descending,
    /// In an order that the seed decides.
    Shuffled(u64),
}

/// Why a kernel cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` cannot be checked: {reason}")]
pub struct CheckError {
    /// The kernel.
    pub kernel: String,
    /// What stands against it.
    pub reason: String,
}

/// A kernel instance, ready to be checked with any arguments.
#[derive(Clone, Debug)]
pub struct Program {
    verified: Verified,
    /// The instance with matrices and tiles spelled out and params as leaves.
    module: Module,
    shapes: Vec<Shape>,
    params: Params,
    features: Features,
    orders_memory: bool,
    /// The scopes of its fences.
    fences: Vec<Scope>,
    /// Which functions load or store a matrix for a subgroup.
    moves_matrix: Vec<bool>,
}

impl Program {
    /// Of an instance of a generic module, with these values of its specialisation constants.
    ///
    /// # Errors
    /// The kernel does not obey the rules, or holds something that is not run here.
    pub fn new(module: &Module, instance: &Instance, constants: &[i64]) -> Result<Self, CheckError> {
        let failed = |reason: String| CheckError { kernel: module.name.clone(), reason };
        let mut module = instantiate(module, instance).map_err(|found| failed(found.to_string()))?;
        if !constants.is_empty() {
            crate::ir::specialise(&mut module, constants);
        }
        let verified = verify_as_written(module).map_err(|found| failed(found.to_string()))?;
        Self::of_verified(verified)
    }

    /// Of an instance that was verified. Of one in which workgroup arrays were merged ([`crate::verify::verify`]), what one of them left counts as written in the other.
    ///
    /// # Errors
    /// It holds something that is not run here.
    pub fn of_verified(verified: Verified) -> Result<Self, CheckError> {
        let name = verified.module.name.clone();
        let failed = |reason: String| CheckError { kernel: name.clone(), reason };
        let mut module = verified.module.clone();
        let transfers = tiles::legalise(&mut module, verified.info.workgroup_size, Target::Cpu)
            .and_then(|_| matrices::with_transfers(&mut module))
            .and_then(|transfers| flat::legalise(&mut module).map(|_| transfers))
            .map_err(|found| failed(found.to_string()))?;
        let moves_matrix = module.functions.iter().map(|(_, function)| transfers.contains(&function.name)).collect();
        let params = layout::params(&module, verified.info.grid)
            .ok_or_else(|| failed("it has a parameter that cannot be one".to_owned()))?;
        let shapes = shape::shapes(&module).map_err(failed)?;
        let always = Feature::ALL.into_iter().filter(|feature| feature.always(Target::Cpu));
        let features = always.fold(verified.info.required, |all, feature| all.union(Features::of(&[feature])));
        let mut fences = Vec::new();
        for function in module.functions.iter().map(|(_, function)| function).chain([&module.entry]) {
            statements(&function.body, &mut |statement| {
                if let StatementKind::Fence(scope) = statement.kind {
                    fences.push(scope);
                }
            });
        }
        let orders_memory = module.orders_memory();
        Ok(Self { verified, module, shapes, params, features, orders_memory, fences, moves_matrix })
    }

    /// The instance that is checked.
    pub const fn verified(&self) -> &Verified {
        &self.verified
    }

    /// Bytes for so many elements of a buffer of which nobody says what it holds: floats between -1 and 1, and integers below 16, which are indices of most things.
    pub fn made_up(&self, binding: usize, elements: u64) -> Vec<u8> {
        let Some(binding) = self.module.bindings.get(binding) else { return Vec::new() };
        let shape = &self.shapes[binding.element.index()];
        let size = shape.bytes as usize;
        let mut bytes = vec![0; usize::try_from(elements).unwrap_or(0) * size];
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for element in bytes.chunks_exact_mut(size.max(1)) {
            for (scalar, offset) in shape.scalars.iter().zip(&shape.offsets) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = match scalar {
                    scalar if scalar.is_float() => {
                        scalar::rounded(*scalar, (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
                    }
                    _ => state >> 60,
                };
                let (at, count) = (*offset as usize, scalar.bytes().unwrap_or(4) as usize);
                element[at..at + count].copy_from_slice(&word.to_le_bytes()[..count]);
            }
        }
        bytes
    }

    /// Runs it with the bytes of its buffers, in the order of its signature, its parameter block and its workgroups, which all lie along x for a kernel that does not look at axes; what it writes is in the buffers afterwards.
    ///
    /// # Errors
    /// There are too few buffers, the block is too short, or the size of a subgroup is none.
    pub fn run(
        &self,
        options: &Options,
        buffers: &mut [Vec<u8>],
        params: &[u8],
        groups: [u32; 3],
    ) -> Result<Report, CheckError> {
        let module = &self.module;
        let failed = |reason: String| CheckError { kernel: module.name.clone(), reason };
        if buffers.len() != module.bindings.len() {
            let expected = module.bindings.len();
            return Err(failed(format!("{} buffers given, {expected} expected", buffers.len())));
        }
        if params.len() < self.params.size as usize {
            let expected = self.params.size;
            return Err(failed(format!("a parameter block of {} bytes given, {expected} expected", params.len())));
        }
        let subgroup = self.verified.info.subgroup_size.unwrap_or(options.subgroup_size);
        if !subgroup.is_power_of_two() || subgroup > MOST_SUBGROUP {
            return Err(failed(format!("subgroups of {subgroup}: a power of two up to {MOST_SUBGROUP} is expected")));
        }
        let mut machine = Machine::new(self, options, groups, subgroup);
        self.bind(&mut machine, buffers, params).map_err(failed)?;
        let order = self.order(options.order, machine.group_count);
        let mut stopped = false;
        for group in order {
            match machine.workgroup(group) {
                Ok(()) => {}
                Err(Stop::Enough) => {
                    stopped = true;
                    break;
                }
                Err(Stop::Broken(reason)) => return Err(failed(reason)),
            }
        }
        for ((memory, binding), bytes) in machine.bindings.iter().zip(&module.bindings).zip(buffers) {
            memory.to_bytes(&self.shapes[binding.element.index()], bytes);
        }
        let Machine { findings, printed, work, .. } = machine;
        Ok(Report { kernel: module.name.clone(), findings: findings.found, printed, stopped, work })
    }

    /// Gives a run its memory and its params.
    fn bind(&self, machine: &mut Machine<'_>, buffers: &[Vec<u8>], block: &[u8]) -> Result<(), String> {
        let module = &self.module;
        let words = |role: ParamRole| -> Result<(Scalar, Vec<u64>), String> {
            let field = self.params.fields.iter().find(|field| field.role == role);
            let field = field.ok_or("a parameter is not in the block")?;
            let scalar = of_param(field.ty.scalar);
            let bytes = field.ty.scalar.bytes() as usize;
            let start = field.offset as usize;
            let all = block[start..start + bytes * field.ty.count as usize].chunks_exact(bytes);
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            Ok((scalar, all.map(|bytes| scalar::canonical(scalar, word(bytes))).collect()))
        };
        for (index, param) in module.params.iter().enumerate() {
            let (from, given) = words(layout::param_role(module, index as u32))?;
            let to = self.shapes[param.ty.index()].scalars.first().copied().unwrap_or(from);
            machine.params.push(given.into_iter().map(|word| scalar::convert(from, to, word)).collect());
        }
        for (index, (binding, bytes)) in module.bindings.iter().zip(buffers).enumerate() {
            let index = index as u32;
            let length = words(ParamRole::Length(index))?.1[0];
            machine.lengths.push(length);
            let [mut extents, mut strides] = [Vec::new(), Vec::new()];
            if binding.view.is_some() {
                extents = words(ParamRole::Extents(index))?.1;
                strides = words(ParamRole::Strides(index))?.1;
            }
            machine.extents.push(extents);
            machine.strides.push(strides);
            let shape = &self.shapes[binding.element.index()];
            let mut memory = memory::Memory::of_bytes(shape, length, bytes);
            if memory.length < length {
                return Err(format!(
                    "`{}` has {length} elements, and there is memory for {}",
                    binding.name, memory.length
                ));
            }
            memory.atomic = binding.kind == BindingKind::Atomic;
            if self.verified.info.access[index as usize] != BindingAccess::Read {
                memory.cells = vec![memory::Cell::default(); memory.words.len()];
            }
            machine.bindings.push(memory);
        }
        for (_, variable) in module.workgroup.iter() {
            let length = size(variable.exact.as_ref().unwrap_or(&variable.length), &machine.params)
                .ok_or_else(|| format!("the length of `{}` is not known", variable.name))?;
            // The block of a launch may hold any value of a specialisation constant.
            let most = variable.length.literal().unwrap_or(0);
            if length > most {
                return Err(format!("`{}` has {length} elements, and at most {most} are possible", variable.name));
            }
            let scalars = &self.shapes[variable.element.index()].scalars;
            machine.workgroup.push(memory::Memory::of_workgroup(scalars, length, variable.atomic));
        }
        Ok(())
    }

    fn order(&self, order: Order, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        match order {
            _ if self.orders_memory => {}
            Order::Ascending => {}
            Order::Descending => all.reverse(),
            Order::Shuffled(seed) => {
                let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                for last in (1..all.len()).rev() {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    all.swap(last, (state % (last as u64 + 1)) as usize);
                }
            }
        }
        all
    }
}

/// What a scalar of the parameter block is.
const fn of_param(scalar: crate::artefact::ParamScalar) -> Scalar {
    use crate::artefact::ParamScalar as P;
    match scalar {
        P::F32 => Scalar::F32,
        P::I32 => Scalar::I32,
        P::U32 | P::Index => Scalar::U32,
        P::Bool => Scalar::Bool,
        P::I64 => Scalar::I64,
        P::U64 => Scalar::U64,
        P::F64 => Scalar::F64,
    }
}

/// A size that specialisation constants may decide.
fn size(size: &Size, params: &[Vec<u64>]) -> Option<u32> {
    use crate::ir::SizeOperator as O;
    match size {
        Size::Literal(value) => Some(*value),
        Size::Param(index) => u32::try_from(*params.get(*index as usize)?.first()?).ok(),
        Size::Generic(_) => None,
        Size::Binary(operator, left, right) => {
            let (left, right) = (self::size(left, params)?, self::size(right, params)?);
            match operator {
                O::Add => left.checked_add(right),
                O::Subtract => left.checked_sub(right),
                O::Multiply => left.checked_mul(right),
                O::Divide => left.checked_div(right),
                O::Remainder => left.checked_rem(right),
            }
        }
    }
}
