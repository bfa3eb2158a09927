//! Emitters: from lowered kernels to the text of a target. Every target's folder has the same files: `types`, `expr`, `stmt` and
//! `module`. The languages that look like C share a printer, [`text`].

#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use std::borrow::Cow;

use crate::artefact::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::MatrixNeed;
#[cfg(feature = "lower")]
use crate::lower::{Lowered, Lowering, Settled};
#[cfg(any(feature = "wgsl", feature = "cuda"))]
use crate::target::Features;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::target::MATRIX_BLOCK;
use crate::target::{ParamTransport, Profile, Target};
use crate::tensor_map::TensorMap;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::tensor_map::tensor_maps;
#[cfg(feature = "lower")]
use crate::timings::{Stage, stage};
use crate::verify::Verified;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::verify::wanted_matrices;

#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "lower")]
pub mod names;
#[cfg(feature = "spirv")]
pub mod spirv;
#[cfg(any(feature = "wgsl", feature = "cuda"))]
pub mod text;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
mod touched;
#[cfg(feature = "wgsl")]
pub mod wgsl;

/// Why a kernel cannot be written in a target's language. The verifier and lowering let such kernels pass only where the target lacks
/// something that this version of the emitter does not work around.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` cannot be emitted for {}: {message}", target.name())]
pub struct EmitError {
    /// The kernel's instance.
    pub kernel: String,
    /// The target.
    pub target: Target,
    /// What is wrong.
    pub message: String,
}

/// An instance, with what its emitters share, on whatever threads they are.
pub struct Source<'v> {
    verified: &'v Verified,
    #[cfg(feature = "lower")]
    settled: Settled<'v>,
}

impl<'v> Source<'v> {
    /// Of an instance.
    pub fn new(verified: &'v Verified) -> Self {
        Self {
            verified,
            #[cfg(feature = "lower")]
            settled: Settled::new(verified),
        }
    }

    /// The instance.
    pub const fn verified(&self) -> &'v Verified {
        self.verified
    }
}

/// The code for one profile, and what it wants.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The name of the entry point.
    pub entry: String,
    /// The code.
    pub code: Code,
    /// The products of matrices that a device must list.
    pub matrices: Vec<MatrixNeed>,
    /// The tensor maps that it takes.
    pub tensor_maps: Vec<TensorMap>,
}

/// Emits an instance for one profile after the other.
pub struct Emitter<'s> {
    source: &'s Source<'s>,
    #[cfg(feature = "lower")]
    lowering: Lowering<'s>,
    #[cfg(feature = "wgsl")]
    wgsl: Last<wgsl::Printed>,
    #[cfg(feature = "cuda")]
    cuda: Last<cuda::Printed>,
}

/// What was printed last, with the features that it is for: transports and dialects make little difference to a text.
#[cfg(any(feature = "wgsl", feature = "cuda"))]
struct Last<P>(Option<(Features, P)>);

#[cfg(any(feature = "wgsl", feature = "cuda"))]
impl<P> Last<P> {
    /// What is printed for these features; `print` does it if it is not what was printed last.
    fn printed(&mut self, features: Features, print: impl FnOnce() -> Result<P, EmitError>) -> Result<&P, EmitError> {
        let last = match self.0.take() {
            Some((known, printed)) if known == features => (known, printed),
            _ => (features, print()?),
        };
        Ok(&self.0.insert(last).1)
    }
}

impl<'s> Emitter<'s> {
    /// Of an instance.
    pub const fn new(source: &'s Source<'s>) -> Self {
        Self {
            source,
            #[cfg(feature = "lower")]
            lowering: Lowering::new(&source.settled),
            #[cfg(feature = "wgsl")]
            wgsl: Last(None),
            #[cfg(feature = "cuda")]
            cuda: Last(None),
        }
    }

    /// What the code for a profile is printed from.
    ///
    /// # Errors
    /// The kernel cannot be made legal for the profile.
    #[cfg(feature = "lower")]
    pub fn lowered(&mut self, profile: &Profile, transport: ParamTransport) -> Result<&Lowered, Diagnostics> {
        stage(Stage::Lower, || self.lowering.lower(profile, transport))
    }

    /// The code for one profile of a target that is a text or SPIR-V, and what it wants; WGSL is yet to be validated.
    ///
    /// # Errors
    /// The kernel cannot be made legal for the profile or cannot be written, or the target's emitter is not in this build.
    #[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
    pub fn code(&mut self, profile: &Profile, transport: ParamTransport) -> Result<Printed, Diagnostics> {
        let source = self.source;
        let lowered = stage(Stage::Lower, || self.lowering.lower(profile, transport))?;
        #[cfg(any(feature = "wgsl", feature = "cuda"))]
        let text = |text: String| Code::Text(Cow::Owned(text));
        let emitted = match profile.target {
            #[cfg(feature = "wgsl")]
            Target::Wgsl => stage(Stage::Wgsl, || {
                let printed = self.wgsl.printed(profile.features, || wgsl::print(lowered))?;
                Ok((printed.entry.clone(), text(printed.text(profile))))
            }),
            #[cfg(feature = "cuda")]
            Target::Cuda => stage(Stage::Cuda, || {
                let printed = self.cuda.printed(profile.features, || cuda::print(lowered))?;
                Ok((printed.entry.clone(), text(printed.text(transport))))
            }),
            #[cfg(feature = "spirv")]
            Target::Spirv => stage(Stage::Spirv, || spirv::emit(lowered)).map(|words| {
                let bytes: Vec<_> = words.into_iter().map(u32::to_le_bytes).collect();
                (lowered.module.name.clone(), Code::Spirv(Cow::Owned(bytes.into_flattened())))
            }),
            _ => return Err(absent(source.verified, profile)),
        };
        let (entry, code) = emitted
            .map_err(|error: EmitError| Diagnostic::new(source.verified.module.entry.span, error.to_string()))?;
        #[cfg(feature = "wgsl")]
        if let (Target::Wgsl, Code::Text(text)) = (profile.target, &code) {
            wgsl::check_depth(lowered, text)?;
        }
        let mut needs = wanted_matrices(&lowered.module);
        if profile.blocks {
            needs = needs.into_iter().map(|need| need.of_side(MATRIX_BLOCK)).collect();
            needs.sort_unstable();
            needs.dedup();
        }
        // What is read from a buffer is not known when the kernel is launched.
        let tensor_maps = match (profile.target, transport) {
            (Target::Cuda, ParamTransport::Value) => tensor_maps(&lowered.module),
            _ => Vec::new(),
        };
        Ok(Printed { entry, code, matrices: needs, tensor_maps })
    }

    /// The code for one profile: this build has no emitter.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(any(feature = "wgsl", feature = "spirv", feature = "cuda")))]
    pub fn code(&mut self, profile: &Profile, _transport: ParamTransport) -> Result<Printed, Diagnostics> {
        Err(absent(self.source.verified, profile))
    }
}

/// Has naga judge WGSL.
///
/// # Errors
/// What naga says, with the place in the text.
#[cfg(feature = "wgsl")]
pub fn validate_wgsl(text: &str) -> Result<(), EmitError> {
    wgsl::validate(text)
}

/// Has naga judge WGSL, of which there is none without its emitter.
///
/// # Errors
/// Never.
#[cfg(not(feature = "wgsl"))]
pub const fn validate_wgsl(_: &str) -> Result<(), EmitError> {
    Ok(())
}

fn absent(verified: &Verified, profile: &Profile) -> Diagnostics {
    let error = EmitError {
        kernel: verified.module.name.clone(),
        target: profile.target,
        message: format!("this program was built without the feature `{}` of trefoil-codegen", profile.target.name()),
    };
    Diagnostic::new(verified.module.entry.span, error.to_string()).into()
}
