//! The verifier: what a kernel must obey on every target, and the facts that emitters rely on.
//!
//! It takes an instance (no generics) and gives [`Verified`], the only thing that lowering accepts. The checks go from the ground up,
//! each relying on those before it: `signature` (bindings, params, memory, and by `sizes` that none is too large), `structure` (handles, scopes, control flow), `types`,
//! then `access` and `features` (facts), `uniformity`, and `bounds`, which takes away guards that are not needed.

mod access;
mod bounds;
mod disjoint;
mod features;
mod linear;
mod matrices;
mod profile;
mod share;
mod signature;
mod sizes;
mod structure;
mod tiles;
mod types;
mod uniformity;

use crate::artefact::{Access, GridKind, Site};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{ExpressionKind, Function, Module};
use crate::passes;
use crate::reports;
use crate::share::ShareStep;
use crate::target::Features;

pub(crate) use access::{function_facts, places, places_of, workgroup_bytes};
pub use bounds::AccessReport;
#[cfg(feature = "lower")]
pub(crate) use bounds::accesses;
#[cfg(feature = "lower")]
pub(crate) use bounds::clear_guards;
use bounds::clear_guards_telling;
pub(crate) use features::{live_features, viable};
#[cfg(feature = "cuda")]
pub(crate) use matrices::product;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
pub(crate) use matrices::wanted as wanted_matrices;
#[cfg(feature = "lower")]
pub(crate) use matrices::workgroup as workgroup_of_matrices;
pub(crate) use matrices::{
    bindings as matrix_bindings, element as matrix_element, offset as matrix_offset, scalars_of_element,
};
pub use profile::check_profile;
pub(crate) use profile::transport_fits;
#[cfg(feature = "front")]
pub(crate) use signature::no_wide_indices;
#[cfg(feature = "front")]
pub(crate) use sizes::{MOST_SCALARS, too_large};
pub(crate) use tiles::sums as sums_of_tiles;
pub(crate) use types::name as type_name;
#[cfg(any(feature = "wgsl", feature = "cuda"))]
pub(crate) use types::place_type;
pub(crate) use types::{is_split, splits};

/// An instance that obeys the rules, with the facts found about it. Places whose indices are proved in range have lost their guard, and workgroup arrays
/// that are never alive together are one.
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
    /// For each binding, the elements of the largest piece that is copied from it asynchronously, 0 if none is.
    pub copied: Vec<u32>,
    /// For each workgroup variable, likewise of what is copied to it.
    pub workgroup_copied: Vec<u32>,
    /// For each binding that is written, whether no two workgroups touch the same element, so that plain writes of those that may run at once ([`KernelInfo::at_once`]) do not race.
    pub disjoint: Vec<bool>,
    /// The steps to the number of elements that each workgroup has of these bindings, of the one of which it has most.
    pub share: Vec<ShareStep>,
    /// Invocations of a workgroup along x, y, z.
    pub workgroup_size: [u32; 3],
    /// Invocations of a subgroup, if the kernel states them.
    pub subgroup_size: Option<u32>,
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

/// Checks an instance, and finds out what there is to know about it.
///
/// # Errors
/// Everything in which the module breaks a rule, in the author's terms; checks that rely on a rule that is broken are left out.
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    let mut written = verify_as_written(module)?;
    // What reports alone need is nobody's need any more.
    if reports::without(&mut written.module) {
        written = verify_as_written(written.module)?;
    }
    Ok(merged(written))
}

/// Checks an instance as [`verify`] does, and gives it the buffer that its reports are written to; with the sites of these.
///
/// # Errors
/// As [`verify`].
pub fn verify_reporting(module: Module) -> Result<(Verified, Vec<Site>), Diagnostics> {
    let Verified { mut module, .. } = verify_as_written(module)?;
    let sites = reports::sites(&module);
    reports::with_buffer(&mut module);
    Ok((merged(verify_as_written(module)?), sites))
}

/// With workgroup arrays that are never alive together as one.
fn merged(Verified { mut module, mut info }: Verified) -> Verified {
    if passes::reuse(&mut module) {
        let uses = access::find(&module);
        (info.workgroup_vector, info.workgroup_copied) = (uses.workgroup_vector, uses.workgroup_copied);
        info.workgroup_bytes = access::workgroup_bytes(&module);
    }
    Verified { module, info }
}

/// Checks an instance as [`verify`] does, and leaves every workgroup array as its author wrote it, for who runs it to tell of them.
///
/// # Errors
/// As [`verify`].
pub fn verify_as_written(mut module: Module) -> Result<Verified, Diagnostics> {
    let stages: [fn(&Module) -> Vec<Diagnostic>; 5] =
        [signature::check, structure::check, sizes::calls, types::check, uniformity::check];
    for stage in stages {
        let found = stage(&module);
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
    }
    let mut info = info(&module)?;
    let mut divisions = disjoint::Divisions::new(&module, &info);
    clear_guards_telling(&mut module, info.workgroup_size, &mut |touch| divisions.touch(touch));
    for ((binding, disjoint), access) in info.disjoint.iter_mut().enumerate().zip(&info.access) {
        // What is behind the first element of a piece that is copied is not looked at.
        *disjoint = divisions.disjoint[binding] && (info.copied[binding] <= 1 || !access.writes());
    }
    info.share = divisions.share(&info.disjoint);
    Ok(Verified { module, info })
}

/// The facts about a module that obeys the rules, but for what the walk that clears the guards hears of: no binding counts as disjoint.
fn info(module: &Module) -> Result<KernelInfo, Diagnostics> {
    let features = features::find(module)?;
    let (collective, effects) = function_facts(module);
    let uses = access::find(module);
    let mut workgroup_size = [1; 3];
    for (value, size) in workgroup_size.iter_mut().zip(&module.workgroup_size) {
        *value = size.literal().unwrap_or(1);
    }
    Ok(KernelInfo {
        grid: grid(module),
        disjoint: vec![false; uses.access.len()],
        share: Vec::new(),
        access: uses.access,
        vector: uses.vector,
        workgroup_vector: uses.workgroup_vector,
        copied: uses.copied,
        workgroup_copied: uses.workgroup_copied,
        workgroup_size,
        subgroup_size: module.subgroup_size(),
        workgroup_bytes: access::workgroup_bytes(module).saturating_add(crate::tiles::padding(module)),
        required: features.required,
        relevant: features.relevant,
        collective,
        effects,
    })
}

/// How the grid is understood: by what the builtins that occur look at.
pub(crate) fn grid(module: &Module) -> GridKind {
    // What the host does not know it cannot fold, and put into the parameters.
    let mut volume = module.indirect;
    for function in functions(module) {
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Builtin(builtin) = function.expressions[expression].kind {
                volume |= builtin.wants_volume();
            }
        });
    }
    if volume { GridKind::Volume } else { GridKind::Linear }
}

/// Every function of a module, the kernel's own body last.
pub(crate) fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    module.functions.iter().map(|(_, function)| function).chain(std::iter::once(&module.entry))
}
