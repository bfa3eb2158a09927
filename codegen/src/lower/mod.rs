//! Lowering: from what the author wrote to what a target's language can say, on the IR, before anything is printed.
//!
//! After lowering, every operation that is left has the IR's meaning when it is printed in the target's plain form, so emitters hold
//! no knowledge of differences in meaning.

use crate::artefact::{ParamTransport, Params};
use crate::ir::Module;
use crate::target::Profile;
use crate::verify::KernelInfo;

/// A kernel instance, legal for one profile: what emitters take.
///
/// What no longer occurs: generics and generic literals, `TargetHas`, constant `If`, unrolled loops, mathematical functions that
/// the target lacks or means otherwise (they are calls of functions added to the module), integer division by anything but a
/// nonzero literal where the target means otherwise, views' projections (the front end has made them indices), halves in
/// bindings where the profile has no [`crate::target::Feature::F16Storage`] (they are `u32` words, [`crate::ir::Binding::packed`] 2).
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The instance.
    pub module: Module,
    /// Facts, kept in step with the module.
    pub info: KernelInfo,
    /// What it is legal for.
    pub profile: Profile,
    /// The parameter block.
    pub params: Params,
    /// How parameters reach it.
    pub transport: ParamTransport,
}
