//! Regions within the kernels of candidates: what a kernel reads is computed where it is read (a *prologue*), and what it writes goes through a region before it is written (an *epilogue*), so that neither exists in memory.
//!
//! A slice's index is an element's place in memory, whatever a kernel computed it from; and where a region's values lie one after the other, that place is the position which the region computes for. So each `x[i]` of a kernel
//! becomes a call of a function of `i`, which reads what the region reads for that position, and each `y[i] = v` the writing of a function of `i` and `v`: nothing else in the kernel changes. Past the end the function gives zeros, as
//! memory does there, and `x.len()` is how many elements the region has.
//!
//! The region's buffers take the place of the one that is gone, then of optional operands that are not there (an empty slice is zeros everywhere), and stand behind the others for the rest; its parameters stand behind the author's. The
//! result goes the way of every generated kernel: verified, lowered, printed, and kept by its structure.
//!
//! | file | what it does |
//! |---|---|
//! | `facts` | what a kernel does with its buffers, from its IR |
//! | `functions` | a region as functions |
//! | `rewrite` | the kernel's IR with calls of them |
//! | [`super::attach`] | which regions go into which kernels |

mod facts;
mod functions;
mod rewrite;

use std::fmt::Write as _;
use std::sync::Arc;

use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::{Literal, Module, Scalar};

pub(crate) use self::facts::{Facts, Touched, facts, identity};
pub(crate) use self::functions::Spliced;
use super::kernel::{Structure, describe, fingerprint, types_of};
use crate::compile::program::ValueId;

/// What is put into one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Joint<'a> {
    /// Regions in the place of what bindings read.
    pub(crate) before: Vec<(usize, &'a Spliced)>,
    /// The region behind what a binding is written with, and whether that is written too.
    pub(crate) behind: Option<(usize, &'a Spliced, bool)>,
    /// Bindings that read empty slices, in ascending order.
    pub(crate) empty: Vec<u32>,
}

/// What a binding of the kernel that comes of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// That of the kernel before, at that position.
    Own(usize),
    /// What a region reads: the region by its position in [`Joint::before`], or the one behind, and which of its reads.
    Read {
        /// The region.
        region: Option<usize>,
        /// Which.
        read: usize,
    },
    /// An output of the region behind.
    Output(usize),
}

/// Zero bits of a scalar.
fn zero_of(scalar: Scalar) -> Literal {
    Literal::zero(scalar).unwrap_or(Literal::U32(0))
}

impl Joint<'_> {
    /// Every region.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &Spliced> {
        self.before.iter().map(|(_, region)| *region).chain(self.behind.map(|(_, region, _)| region))
    }

    /// The bindings of the kernel that comes of one with so many.
    pub(crate) fn held(&self, bindings: usize) -> Vec<Held> {
        let mut held: Vec<Held> = (0..bindings).map(Held::Own).collect();
        let mut free = self.empty.iter().map(|binding| *binding as usize);
        let mut put =
            |held: &mut Vec<Held>, own: &mut Option<usize>, new: Held| match own.take().or_else(|| free.next()) {
                Some(at) => held[at] = new,
                None => held.push(new),
            };
        for (number, (binding, region)) in self.before.iter().enumerate() {
            let mut own = Some(*binding);
            for read in 0..region.reads.len() {
                put(&mut held, &mut own, Held::Read { region: Some(number), read });
            }
        }
        if let Some((binding, region, keeps)) = self.behind {
            let mut own = (!keeps).then_some(binding);
            for output in 0..region.region.outputs.len() {
                put(&mut held, &mut own, Held::Output(output));
            }
            for read in 0..region.reads.len() {
                put(&mut held, &mut None, Held::Read { region: None, read });
            }
        }
        held
    }

    /// The value that a binding holds, if it is one of a region's.
    pub(crate) fn value(&self, held: Held) -> Option<ValueId> {
        match held {
            Held::Own(_) => None,
            Held::Read { region: Some(number), read } => Some(self.before[number].1.reads[read]),
            Held::Read { region: None, read } => self.behind.map(|(_, region, _)| region.reads[read]),
            Held::Output(output) => self.behind.map(|(_, region, _)| region.region.outputs[output]),
        }
    }

    /// All that decides the code of the kernel that comes of `kernel`.
    pub(crate) fn structure(&self, kernel: &Kernel) -> Structure {
        let mut text = format!("spliced {} {:016x}", kernel.name, identity(kernel));
        // Writing to a string does not fail.
        for (binding, region) in &self.before {
            let _ = write!(text, "; {binding} is {}", region.structure());
        }
        if let Some((binding, region, keeps)) = self.behind {
            let _ = write!(text, "; {binding} becomes {}, kept {keeps}", region.structure());
        }
        let _ = write!(text, "; empty {:?}", self.empty);
        let types = self.regions().flat_map(|region| types_of(&region.region.maps));
        Structure::new(text, types.collect())
    }

    /// The IR of the kernel that comes of `kernel`.
    ///
    /// # Errors
    /// It has no IR that a region can be put into; why, in words.
    pub(crate) fn module(&self, kernel: &Kernel, structure: &Structure) -> Result<Module, String> {
        let module = facts::module_of(kernel).ok_or("its IR cannot be read, or has indices of 64 bits")?;
        let held = self.held(kernel.bindings.len());
        let mut module = rewrite::spliced(module, self, &held).map_err(|found| Diagnostics(vec![found]).to_string())?;
        module.name = format!("{}_fused_{:08x}", kernel.name, fingerprint(structure.text()) >> 32);
        module.entry.name.clone_from(&module.name);
        let what: Vec<String> = self.regions().map(|region| describe(&region.region.maps)).collect();
        module.doc = format!("Generated by fusion: `{}` with {}.", kernel.name, what.join(" and "));
        Ok(module)
    }
}

/// The kernel with the values of the specialisation constants of another.
///
/// # Errors
/// It does not have these constants.
pub(crate) fn with_constants_of(kernel: Arc<Kernel>, other: &Kernel) -> Result<Arc<Kernel>, String> {
    if other.constants.is_empty() {
        return Ok(kernel);
    }
    let values: Vec<(&str, i64)> = other.constants.iter().map(|known| (&*known.name, known.value)).collect();
    kernel.specialise(&values).map(Arc::new).map_err(|error| error.to_string())
}
