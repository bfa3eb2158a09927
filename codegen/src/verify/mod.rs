//! The verifier: what a kernel must obey on every target, and the facts that emitters rely on.
//!
//! It takes an instance (no generics) and gives [`Verified`], the only thing that lowering accepts.

use crate::artefact::{Access, GridKind};
use crate::ir::Module;
use crate::target::Features;

/// An instance that obeys the rules, with the facts found about it. Places whose indices are proved in range have lost their guard.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The instance.
    pub module: Module,
    /// What is known about it.
    pub info: KernelInfo,
}

/// Facts about an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelInfo {
    /// How its grid is understood.
    pub grid: GridKind,
    /// For each binding, what the kernel does with it.
    pub access: Vec<Access>,
    /// For each binding, the most elements that one access moves: 1, 2 or 4.
    pub vector: Vec<u32>,
    /// For each workgroup variable, likewise.
    pub workgroup_vector: Vec<u32>,
    /// For each binding that is written, whether no two workgroups touch the same element, so that plain writes do not race.
    pub disjoint: Vec<bool>,
    /// Invocations of a workgroup along x, y, z.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Features that every variant needs: by `requires(..)`, or because an operation outside `if const` wants it.
    pub required: Features,
    /// Features that make a difference to the emitted code: required ones, those asked for with `target::has`, and native halves
    /// where a binding holds halves.
    pub relevant: Features,
    /// For each function, whether it or a function that it calls contains a barrier or a subgroup operation.
    pub collective: Vec<bool>,
    /// For each function, whether it or a function that it calls writes bindings, workgroup memory or by-reference arguments.
    pub effects: Vec<bool>,
}
