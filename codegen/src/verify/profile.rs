//! Whether a kernel fits a profile: what any device of the profile has is enough for it.

use super::{KernelInfo, Verified, live_features};
use crate::artefact::ParamTransport;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::layout;
use crate::target::{Feature, Features, Profile, Target};

/// Checks workgroup memory, bindings, invocations, parameters and features against what `profile` promises.
///
/// # Errors
/// What does not fit, with both figures.
pub fn check_profile(verified: &Verified, profile: &Profile) -> Result<(), Diagnostics> {
    let Verified { module, info } = verified;
    let target = profile.target.name();
    let mut found = Vec::new();
    let mut fail = |span, message: String| found.push(Diagnostic::new(span, message));
    if info.workgroup_bytes > profile.max_workgroup_bytes {
        let largest = module.workgroup.iter().max_by_key(|(_, variable)| {
            let size = layout::of(module, variable.element).map_or(0, |layout| layout.size);
            u64::from(size) * u64::from(variable.length.literal().unwrap_or(0))
        });
        let (name, span) =
            largest.map_or(("", module.entry.span), |(_, variable)| (variable.name.as_str(), variable.span));
        fail(
            span,
            format!(
                "`{}` uses {} bytes of workgroup memory (most of it for `{name}`); {target} has {} on every device",
                module.name, info.workgroup_bytes, profile.max_workgroup_bytes
            ),
        );
    }
    let bindings = module.bindings.len() as u32;
    if bindings > profile.max_storage_buffers {
        fail(
            module.entry.span,
            format!(
                "`{}` takes {bindings} slices and views; {target} binds {} buffers to a kernel on every device",
                module.name, profile.max_storage_buffers
            ),
        );
    }
    check_invocations(verified, profile, &mut fail);
    if profile.target == Target::Wgsl
        && let Some(params) = layout::params(module, info.grid)
        && params.size > MAX_UNIFORM_BYTES
    {
        fail(
            module.entry.span,
            format!("the parameters of `{}` take {} bytes; {target} has {MAX_UNIFORM_BYTES}", module.name, params.size),
        );
    }
    let needed = info.required.union(live_features(module, profile.features));
    let missing = Features(needed.0 & !profile.features.0);
    if missing != Features::NONE {
        let names: Vec<_> = missing.iter().map(|feature| format!("`Feature::{}`", feature.variant_name())).collect();
        fail(
            module.entry.span,
            format!(
                "`{}` needs {} and {target} in the profile `{}` does not have it; write `requires({})` on the kernel, or put the code that needs it into `if const {{ target::has({}) }}`",
                module.name,
                names.join(" and "),
                profile.name(),
                missing.iter().map(Feature::variant_name).collect::<Vec<_>>().join(", "),
                names[0].trim_matches('`'),
            ),
        );
    }
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// The smallest uniform buffer that WebGPU promises.
const MAX_UNIFORM_BYTES: u32 = 64 * 1024;
/// The smallest range of push constants that Vulkan promises.
const MAX_PUSH_CONSTANT_BYTES: u32 = 128;
/// The most that a CUDA kernel's arguments take on every device.
const MAX_ARGUMENT_BYTES: u32 = 4096;

fn check_invocations(verified: &Verified, profile: &Profile, fail: &mut dyn FnMut(crate::ir::Span, String)) {
    let KernelInfo { workgroup_size: [x, y, z], .. } = verified.info;
    let (name, at) = (&verified.module.name, verified.module.entry.span);
    let target = profile.target.name();
    let invocations = u64::from(x) * u64::from(y) * u64::from(z);
    if invocations > u64::from(profile.max_invocations) {
        fail(
            at,
            format!(
                "a workgroup of `{name}` has {invocations} invocations ({x} x {y} x {z}); {target} has {} on every device",
                profile.max_invocations
            ),
        );
    }
    let most = match profile.target {
        Target::Cuda => [1024, 1024, 64],
        Target::Wgsl | Target::Spirv | Target::Cpu => [256, 256, 64],
    };
    for (axis, (size, most)) in ['x', 'y', 'z'].into_iter().zip([x, y, z].into_iter().zip(most)) {
        if size > most {
            fail(
                at,
                format!(
                    "a workgroup of `{name}` has {size} invocations along {axis}; {target} has {most} on every device"
                ),
            );
        }
    }
}

/// Whether a block of `bytes` can reach a kernel in that way.
pub(crate) const fn transport_fits(target: Target, transport: ParamTransport, bytes: u32) -> bool {
    match (target, transport) {
        (Target::Spirv, ParamTransport::Value) => bytes <= MAX_PUSH_CONSTANT_BYTES,
        (Target::Cuda, ParamTransport::Value) => bytes <= MAX_ARGUMENT_BYTES / 2,
        (Target::Wgsl, ParamTransport::Value) | (Target::Cpu, ParamTransport::Buffer) => false,
        (Target::Wgsl | Target::Spirv | Target::Cuda, ParamTransport::Buffer)
        | (Target::Cpu, ParamTransport::Value) => true,
    }
}
