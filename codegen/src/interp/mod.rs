//! The evaluator: runs the IR as the essay in [`crate::ir`] says. It is the living definition of the IR and the CPU's engine for kernels
//! that were built at run time.
//!
//! A [`Program`] is made from a [`Verified`] instance, not from a lowered one: `if const` is decided while it is built, functions are inlined,
//! and the mathematical functions are its own (`math`), a loop over lanes for each, which is much faster than the same formula
//! spelled out operation by operation.
//!
//! # How it runs
//! Every instruction is run over a *batch* of invocations at once, with one word for each in every register (`program`). Invocations that
//! do not take part are masked out. If the kernel has barriers, subgroup operations or workgroup memory, a batch is one workgroup, so that all
//! of it advances in step and a barrier is nothing; else a batch is as many whole workgroups as make instructions worth their
//! overhead and leave the registers in the cache.
//!
//! What is the same in all lanes, or rises evenly, as most indices and conditions do, is known by two numbers and computed as such (`run::lines`). So it is seen at once
//! that lanes access neighbours: operands are then read where they are bound, and results computed where they are bound (`run::registers`), so that kernels
//! bound by memory run near its speed.

mod build;
mod functions;
mod lanes;
mod math;
mod program;
mod run;
mod uses;
mod wide;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use self::build::{Built, build};
use self::program::{Constant, Given, Register};
use self::run::Batch;
use self::run::lines::Line;
use self::run::registers::{Leeway, Place};
use self::uses::Uses;
use crate::artefact::{CpuArguments, GridKind, ParamRole, Params};
use crate::emit::EmitError;
use crate::ir::IndexWidth;
use crate::share::{self, ShareStep};
use crate::target::Target;
use crate::verify::Verified;
use crate::{copies, flat, layout, matrices, narrow, small, tiles};

/// Registers of a batch are to fit in so many words of cache.
const CACHE_WORDS: usize = 48 * 1024;
/// The fewest and most lanes of a batch of several workgroups.
const LANES: (usize, usize) = (128, 1024);

/// A kernel instance, ready to be evaluated by any number of threads.
pub struct Program {
    built: Built,
    uses: Vec<Uses>,
    params: Params,
    grid: GridKind,
    size: [u32; 3],
    /// Where the block holds the length of each binding, and how wide it is.
    lengths: Vec<u32>,
    index: IndexWidth,
    group_count: Option<u32>,
    groups_per_batch: u32,
    /// Lanes of a register.
    stride: usize,
    /// The steps to what a workgroup has of a buffer to itself.
    share: Vec<ShareStep>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} registers of {} lanes)", self.built.registers, self.stride)
    }
}

/// What a thread needs to run a program.
#[derive(Default)]
struct Scratch {
    /// Registers' own places, and then workgroup memory.
    words: Vec<u32>,
    places: Vec<Cell<Place>>,
    lengths: Vec<u64>,
    leeway: Vec<Leeway>,
}

thread_local! {
    /// That of the last program that the thread ran, kept to be used again.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Program {
    /// Makes the program of an instance.
    ///
    /// # Errors
    /// The instance holds something that cannot be evaluated, which the message names.
    pub fn new(verified: &Verified) -> Result<Self, EmitError> {
        let module = &verified.module;
        let info = &verified.info;
        let error =
            |message: &str| EmitError { kernel: module.name.clone(), target: Target::Cpu, message: message.to_owned() };
        let params = layout::params(module, info.grid).ok_or_else(|| error("it has a parameter that cannot be one"))?;
        let mut legal = module.clone();
        tiles::legalise(&mut legal, info.workgroup_size, Target::Cpu)
            .and_then(|_| copies::legalise(&mut legal, None))
            .and_then(|_| matrices::spell_out(&mut legal))
            .and_then(|_| small::legalise(&mut legal))
            .and_then(|()| flat::legalise(&mut legal))
            .and_then(|()| narrow::legalise(&mut legal))
            .map_err(|diagnostics| error(&diagnostics.to_string()))?;
        let built = build(&legal, verified, &params)?;
        let offset = |role: ParamRole| params.fields.iter().find(|field| field.role == role).map(|field| field.offset);
        let lengths = (0..module.bindings.len() as u32)
            .map(|binding| offset(ParamRole::Length(binding)))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| error("the parameter block lacks the length of a buffer"))?;
        let group_count = offset(ParamRole::GroupCount);
        if info.grid == GridKind::Linear && group_count.is_none() {
            return Err(error("the parameter block lacks the number of workgroups"));
        }
        let workgroup = info.workgroup_size.iter().product::<u32>().max(1);
        let groups_per_batch = if built.together {
            1
        } else {
            let lanes = (CACHE_WORDS / built.registers as usize).clamp(LANES.0, LANES.1) as u32;
            (lanes / workgroup).max(1)
        };
        let stride = ((groups_per_batch * workgroup) as usize).next_multiple_of(16);
        Ok(Self {
            uses: Uses::of(&built.code, module.bindings.len()),
            built,
            params,
            grid: info.grid,
            size: info.workgroup_size,
            lengths,
            index: module.index,
            group_count,
            groups_per_batch,
            stride,
            share: info.share.clone(),
        })
    }

    /// As [`crate::artefact::CpuFunction::at_once`].
    #[must_use]
    pub fn at_once(&self, params: &[u8]) -> u64 {
        share::at_once(&self.share, params)
    }

    /// Runs the workgroups `range` (linear, x fastest) of the grid in `arguments` on this thread.
    ///
    /// # Safety
    /// As [`crate::artefact::CpuFunction::entry`].
    pub unsafe fn run(&self, arguments: &CpuArguments<'_>, range: Range<u64>) {
        // A kernel does not start another on its thread, so nobody else holds the scratch; if somebody did, we would take our own.
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            // SAFETY: the caller's contract.
            Ok(mut scratch) => unsafe { self.run_in(&mut scratch, arguments, range) },
            // SAFETY: the caller's contract.
            Err(_) => unsafe { self.run_in(&mut Scratch::default(), arguments, range) },
        });
    }

    unsafe fn run_in(&self, scratch: &mut Scratch, arguments: &CpuArguments<'_>, range: Range<u64>) {
        let registers = self.built.registers as usize * self.stride;
        let memory = self.built.workgroup_bytes.div_ceil(4) as usize;
        if scratch.words.len() < registers + memory {
            scratch.words.resize(registers + memory, 0);
        }
        let word = |offset: u32| {
            let at = offset as usize;
            arguments
                .params
                .get(at..at + 4)
                .map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        debug_assert!(arguments.params.len() >= self.params.size as usize, "a parameter block that is too short");
        let index = |offset: u32| match self.index {
            IndexWidth::Bits32 => u64::from(word(offset)),
            IndexWidth::Bits64 => u64::from(word(offset)) | u64::from(word(offset + 4)) << 32,
        };
        scratch.lengths.clear();
        scratch.lengths.extend(self.lengths.iter().map(|offset| index(*offset)));
        scratch.leeway.clear();
        scratch.leeway.extend(uses::leeway(&self.uses, arguments.buffers));
        let (count, end) = match (self.grid, self.group_count) {
            (GridKind::Linear, Some(offset)) => (word(offset), range.end.min(u64::from(word(offset)))),
            _ => (arguments.groups.iter().fold(1u32, |all, one| all.wrapping_mul(*one)), range.end),
        };
        let pointer = scratch.words.as_mut_ptr();
        let own = (0..registers).step_by(self.stride);
        scratch.places.clear();
        // SAFETY: the scratch holds the registers and then the workgroup memory.
        scratch.places.extend(own.map(|at| Cell::new(Place::Words(unsafe { pointer.add(at) }))));
        let mut batch = Batch {
            arguments,
            lengths: &scratch.lengths,
            leeway: &scratch.leeway,
            places: &scratch.places,
            registers: pointer,
            stride: self.stride,
            lanes: self.stride,
            // SAFETY: as above.
            workgroup: unsafe { pointer.add(registers) }.cast(),
            any: true,
            // The mask is not filled yet.
            all: false,
            saved: Vec::new(),
        };
        for (constant, register) in &self.built.constants {
            let value = match *constant {
                Constant::Literal(bits) => bits,
                Constant::Param { offset, bool } if bool => lanes::mask(word(offset) != 0),
                Constant::Param { offset, .. } => word(offset),
                Constant::GroupCount => count,
                Constant::Groups(axis) => arguments.groups[usize::from(axis)],
                Constant::SubgroupSize => arguments.subgroup_size,
            };
            batch.set_line(*register, Line::same(value));
        }
        let workgroup = self.size.iter().product::<u32>();
        let mut first = range.start;
        let mut full_batch_is_laid_out = false;
        while first < end {
            let groups = u64::from(self.groups_per_batch).min(end - first) as u32;
            batch.lanes = (groups * workgroup) as usize;
            for (given, register) in &self.built.given {
                let local =
                    matches!(given, Given::LocalIndex | Given::LocalId(_) | Given::SubgroupLane | Given::SubgroupIndex);
                if !(local && full_batch_is_laid_out) {
                    // SAFETY: the register is one of the program's.
                    unsafe { self.give(&batch, *given, *register, first, groups) };
                }
            }
            full_batch_is_laid_out = true;
            // SAFETY: the registers are there, and the rest is the caller's contract.
            unsafe {
                batch.all_active();
                run::run(&mut batch, &self.built.code);
            }
            first += u64::from(groups);
        }
    }

    /// Fills a register whose lanes follow from the invocations' places in the grid; `first` is the batch's first workgroup.
    unsafe fn give(&self, batch: &Batch<'_>, given: Given, register: Register, first: u64, groups: u32) {
        let [x, y, z] = self.size;
        let workgroup = x * y * z;
        let counts = batch.arguments.groups.map(|count| u64::from(count).max(1));
        let subgroup = batch.arguments.subgroup_size;
        let group_id = |group: u64, axis: u8| match axis {
            0 => (group % counts[0]) as u32,
            1 => (group / counts[0] % counts[1]) as u32,
            _ => (group / counts[0] / counts[1]) as u32,
        };
        // Of one number for a workgroup, and three for an invocation in it and its index.
        let fill = |of_group: &dyn Fn(u64) -> u32, of: &dyn Fn(u32, [u32; 3], u32) -> u32| {
            // SAFETY: the caller's contract.
            let to = unsafe { batch.target(register) };
            for group in 0..groups {
                let (number, start) = (of_group(first + u64::from(group)), group * workgroup);
                for local in 0..workgroup {
                    let at = [local % x, local / x % y, local / x / y];
                    // SAFETY: the register has a word for each invocation of the batch.
                    unsafe { to.add((start + local) as usize).write(of(number, at, local)) };
                }
            }
        };
        let line = |first: u32, step: u32| batch.set_line(register, Line { first, step });
        let alone = groups == 1;
        match given {
            Given::GlobalIndex => line((first as u32).wrapping_mul(workgroup), 1),
            Given::LocalIndex if alone => line(0, 1),
            Given::LocalIndex => fill(&|_| 0, &|_, _, local| local),
            Given::GroupIndex if alone => line(first as u32, 0),
            Given::GroupIndex => fill(&|group| group as u32, &|group, _, _| group),
            Given::GroupId(axis) if alone => line(group_id(first, axis), 0),
            Given::GroupId(axis) => fill(&|group| group_id(group, axis), &|group, _, _| group),
            Given::LocalId(axis) => fill(&|_| 0, &|_, at, _| at[usize::from(axis)]),
            Given::GlobalId(axis) => {
                let size = self.size[usize::from(axis)];
                let start = |group: u64| group_id(group, axis).wrapping_mul(size);
                // Workgroups that lie along x, of one row.
                let row = y == 1 && z == 1 && first % counts[0] + u64::from(groups) <= counts[0];
                match axis {
                    0 if row => line(start(first), 1),
                    _ if row => line(start(first), 0),
                    _ => fill(&start, &|start, at, _| start.wrapping_add(at[usize::from(axis)])),
                }
            }
            Given::SubgroupLane => fill(&|_| 0, &|_, _, local| local % subgroup),
            Given::SubgroupIndex => fill(&|_| 0, &|_, _, local| local / subgroup),
        }
    }
}
