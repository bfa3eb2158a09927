//! Lowering: from what the author wrote to what a target's language can say, on the IR, before anything is printed.
//!
//! After lowering, every operation that is left has the IR's meaning when it is printed in the target's plain form, so emitters hold
//! no knowledge of differences in meaning. The passes, in order: `settle` (decides `if const`, unrolls, puts counters in), then guards
//! are looked at again, since constants prove more; [`passes`] (fold what is known, and compute once what is computed again and again); `prune` (drops functions that are no
//! longer called); `tiles` (their layout, and what is done with them); `copies` (to workgroup memory, where the target
//! has none that go on by themselves); `small` (indices of 64 bits into what is small, as words); `flat` (parameters of structs as what they are made of); `narrow`
//! (arithmetic of 8- and 16-bit types in 32 bits); `wide` (64-bit types as two words where a device has no more); `storage` (narrow types where the
//! target cannot hold them); `atomics` (of floats); `groups` (subgroup operations that the target lacks, or leaves open); `meaning` (operations that the
//! target lacks or means otherwise, by the one `table`, become calls of functions of the `library`).

mod atomics;
mod groups;
mod library;
mod matrices;
mod meaning;
mod prune;
mod settle;
mod source;
mod storage;
mod table;
mod text;
mod wide;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::settle::Unrolling;
use crate::artefact::{ParamTransport, Params};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Module, Scalar, Type};
use crate::target::{Features, Profile, Target};
use crate::verify::{AccessReport, KernelInfo, Verified, clear_guards, function_facts, workgroup_bytes};
use crate::{copies, flat, layout, narrow, passes, small};

/// A kernel instance, legal for one profile: what emitters take.
///
/// What no longer occurs: generics and generic literals, `TargetHas`, constant `If`, unrolled loops, statements after a `Return`,
/// `Break` or `Continue`, functions that are not called, mathematical functions that
/// the target lacks or means otherwise (they are calls of functions added to the module), integer division by anything but a
/// nonzero literal where the target means otherwise, views' projections (the front end has made them indices), narrow types
/// where the target does not hold them (in bindings they are `u32` words, [`crate::ir::Binding::packed`] 2 or 4; elsewhere 32-bit types), 64-bit
/// indices of 64 bits into anything but a binding, 64-bit types where it has no [`crate::target::Feature::Int64`] or [`crate::target::Feature::Float64`] (they are vectors of two words).
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The instance.
    pub module: Module,
    /// Facts, kept in step with the module. What decides the launch (grid, access, vector) is the same in all variants.
    pub info: KernelInfo,
    /// What it is legal for.
    pub profile: Profile,
    /// The parameter block.
    pub params: Params,
    /// How parameters reach it.
    pub transport: ParamTransport,
    /// What stands for something that the target lacks or means otherwise: functions of the library, and forms of memory.
    pub emulated: Vec<&'static str>,
}

/// An instance with what of lowering depends on features alone: done once for each set that makes a difference to it, for all threads that lower it.
pub struct Settled<'v> {
    verified: &'v Verified,
    /// The features that the kernel asks for: others decide nothing here.
    asked: Features,
    /// Each is made by the thread that asks first, while others may make those of other features.
    modules: Mutex<Vec<(Features, Unrolling, Arc<Made>)>>,
}

/// What is settled for a set of features, once it is made.
type Made = OnceLock<Result<Arc<Common>, Diagnostics>>;

/// What all targets with the same features begin with.
#[derive(Clone)]
struct Common {
    module: Module,
    /// Whether [`legalise_alike`] was done: where nothing before it depends on the target, it is done once for all of them.
    alike: bool,
    /// What stands for something by now.
    emulated: Vec<&'static str>,
}

impl<'v> Settled<'v> {
    /// Of an instance.
    pub fn new(verified: &'v Verified) -> Self {
        let asked = settle::asked(&verified.module);
        Self { verified, asked, modules: Mutex::new(Vec::new()) }
    }

    /// What is common for these features.
    fn common(&self, features: Features, unrolling: Unrolling) -> Result<Arc<Common>, Diagnostics> {
        let made = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            match modules.iter().find(|known| (known.0, known.1) == (features, unrolling)) {
                Some((.., made)) => made.clone(),
                None => {
                    let made = Arc::new(Made::new());
                    modules.push((features, unrolling, made.clone()));
                    made
                }
            }
        };
        made.get_or_init(|| self.make(features, unrolling)).clone()
    }

    fn make(&self, features: Features, unrolling: Unrolling) -> Result<Arc<Common>, Diagnostics> {
        let mut module = self.verified.module.clone();
        let written_out = settle::settle(&mut module, features, unrolling)?;
        // Where all loops are short, every target begins with the same module.
        if written_out && unrolling != Unrolling::All {
            return self.common(features, Unrolling::All);
        }
        clear_guards(&mut module, &self.verified.info);
        passes::fold(&mut module);
        prune::prune(&mut module);
        passes::share(&mut module, passes::Sharing::ALL);
        let mut common = Common { alike: is_alike(&module), emulated: Vec::new(), module };
        if common.alike {
            common.emulated.extend(legalise_alike(&mut common.module)?);
        }
        Ok(Arc::new(common))
    }
}

/// Whether the module has none of what targets do differently before [`legalise_alike`].
fn is_alike(module: &Module) -> bool {
    !module.workgroup.iter().any(|(_, variable)| variable.tile.is_some())
        && !module.types.iter().any(|(_, ty)| matches!(ty, Type::Matrix(_)))
        && !copies::has_copies(module)
}

/// What is the same for all targets, and comes before all that is not but tiles, copies and matrices.
fn legalise_alike(module: &mut Module) -> Result<Option<&'static str>, Diagnostics> {
    small::legalise(module)?;
    flat::legalise(module)?;
    narrow::legalise(module)
}

/// Lowers an instance for one profile after the other.
pub struct Lowering<'s> {
    settled: &'s Settled<'s>,
    /// Transports and dialects differ in nothing that lowering does.
    last: Option<Lowered>,
}

impl<'s> Lowering<'s> {
    /// Of an instance.
    pub const fn new(settled: &'s Settled<'s>) -> Self {
        Self { settled, last: None }
    }

    /// Makes the instance legal for `profile`.
    ///
    /// # Errors
    /// The kernel needs something that the profile lacks, or holds something that cannot be made legal.
    pub fn lower(&mut self, profile: &Profile, transport: ParamTransport) -> Result<&Lowered, Diagnostics> {
        let lowered = match self.last.take() {
            Some(last) if (last.profile.target, last.profile.features) == (profile.target, profile.features) => {
                Lowered { profile: profile.clone(), transport, ..last }
            }
            _ => self.legalise(profile, transport)?,
        };
        Ok(self.last.insert(lowered))
    }

    fn legalise(&self, profile: &Profile, transport: ParamTransport) -> Result<Lowered, Diagnostics> {
        let features = profile.features.intersection(self.settled.asked);
        let common = self.settled.common(features, Unrolling::of(profile.target))?;
        let Common { mut module, alike, mut emulated } = Common::clone(&common);
        let verified = self.settled.verified;
        let mut info = verified.info.clone();
        emulated.extend(crate::tiles::legalise(&mut module, info.workgroup_size, profile.target)?);
        let holds_alike = |scalar| storage::is_native(scalar, profile);
        let native: Option<&dyn Fn(Scalar) -> bool> = (profile.target == Target::Cuda).then_some(&holds_alike);
        if copies::legalise(&mut module, native)? {
            clear_guards(&mut module, &info);
            emulated.extend(native.is_none().then_some("asynchronous copies by loads and stores"));
        }
        if profile.target == Target::Cpu {
            emulated.extend(crate::matrices::spell_out(&mut module)?);
        } else {
            matrices::guard(&mut module)?;
        }
        if !alike {
            emulated.extend(legalise_alike(&mut module)?);
        }
        emulated.extend(wide::lower(&mut module, profile)?);
        // Words stand where the wide parameters stood.
        let params = layout::params(&module, info.grid).ok_or_else(|| {
            Diagnostic::new(module.entry.span, format!("`{}` has a parameter that cannot be one", module.name))
        })?;
        emulated.extend(storage::lower(&mut module, &mut info, profile)?);
        emulated.extend(atomics::lower(&mut module, profile.target)?);
        emulated.extend(groups::lower(&mut module, info.workgroup_size, profile.target)?);
        let stays = module.bindings.iter().any(|binding| !binding.volatile.is_empty());
        emulated.extend((stays && !profile.target.has_volatile_reads()).then_some("reads that its compiler may move"));
        info.workgroup_bytes = workgroup_bytes(&module);
        if module.workgroup.iter().any(|(_, variable)| variable.tile.is_some()) {
            // A launch gives as much as the target whose tiles are widest wants.
            info.workgroup_bytes = info.workgroup_bytes.max(verified.info.workgroup_bytes);
        }
        // Whether it fits as written is for `check_profile` to say.
        if info.workgroup_bytes > profile.max_workgroup_bytes.max(verified.info.workgroup_bytes) {
            return Err(Diagnostic::new(
                module.entry.span,
                format!(
                    "`{}` uses {} bytes of workgroup memory where narrow types take four bytes; {} has {} on every device",
                    module.name,
                    info.workgroup_bytes,
                    profile.target.name(),
                    profile.max_workgroup_bytes
                ),
            )
            .into());
        }
        emulated.extend(meaning::legalise(&mut module, profile)?);
        (info.collective, info.effects) = function_facts(&module);
        Ok(Lowered { module, info, profile: profile.clone(), params, transport, emulated })
    }
}

/// Every access by an index that is left for a device with these features, with whether it is guarded and why it need not be: in the author's words,
/// and so before anything is folded or shared.
///
/// # Errors
/// The instance cannot be settled.
pub fn accesses(verified: &Verified, features: Features) -> Result<Vec<AccessReport>, Diagnostics> {
    let mut module = verified.module.clone();
    settle::settle(&mut module, features.intersection(settle::asked(&verified.module)), Unrolling::Long)?;
    clear_guards(&mut module, &verified.info);
    prune::prune(&mut module);
    Ok(crate::verify::accesses(&module, verified.info.workgroup_size))
}

/// Makes an instance legal for `profile`.
///
/// # Errors
/// As [`Lowering::lower`].
pub fn lower(verified: &Verified, profile: &Profile, transport: ParamTransport) -> Result<Lowered, Diagnostics> {
    Lowering::new(&Settled::new(verified)).legalise(profile, transport)
}
