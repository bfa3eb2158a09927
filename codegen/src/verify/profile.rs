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
        let limit = |profile: &Profile| profile.max_workgroup_bytes;
        let limits = limits(verified, profile, &limit, u64::from(info.workgroup_bytes), "make it smaller");
        fail(
            span,
            format!(
                "`{}` uses {} bytes of workgroup memory (most of it for `{name}`); {limits}",
                module.name, info.workgroup_bytes
            ),
        );
    }
    let bindings = module.bindings.len() as u32;
    if bindings > profile.max_storage_buffers {
        let limit = |profile: &Profile| profile.max_storage_buffers;
        let limits = limits(verified, profile, &limit, u64::from(bindings), "take fewer");
        fail(
            module.entry.span,
            format!("`{}` takes {bindings} slices and views, which are buffers; {limits}", module.name),
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
    let invocations = u64::from(x) * u64::from(y) * u64::from(z);
    if invocations > u64::from(profile.max_invocations) {
        let limits = limits(verified, profile, &|profile| profile.max_invocations, invocations, "make it smaller");
        // Along an axis there are no more than in all: who makes it smaller need not hear of both.
        return fail(at, format!("a workgroup of `{name}` has {invocations} invocations ({x} x {y} x {z}); {limits}"));
    }
    for (axis, (name_of_axis, size)) in ['x', 'y', 'z'].into_iter().zip([x, y, z]).enumerate() {
        let limit = |profile: &Profile| profile.max_along()[axis];
        if size > limit(profile) {
            let limits = limits(verified, profile, &limit, u64::from(size), "make it smaller");
            fail(at, format!("a workgroup of `{name}` has {size} invocations along {name_of_axis}; {limits}"));
        }
    }
}

/// Which of the kernel's targets have less than `wanted` of what `limit` reads from a profile, and what to do: `wgsl and spirv have 256 on every device: ..`. It is
/// the same text whichever of them the kernel is checked for, so that one mistake is told once.
fn limits(
    verified: &Verified,
    profile: &Profile,
    limit: &dyn Fn(&Profile) -> u32,
    wanted: u64,
    advice: &str,
) -> String {
    let listed = |target: &Target| *target == profile.target || verified.module.targets.contains(target);
    let of = |target, features| limit(&Profile::portable(target).with(features));
    let known = |target| if target == profile.target { limit(profile) } else { of(target, profile.features) };
    let fits = |target: Target| u64::from(known(target)) >= wanted;
    let (enough, lacking): (Vec<Target>, Vec<Target>) =
        Target::ALL.into_iter().filter(listed).partition(|target| fits(*target));
    let mut figures: Vec<(u32, Vec<&str>)> = Vec::new();
    for target in &lacking {
        match figures.iter_mut().find(|(figure, _)| *figure == known(*target)) {
            Some((_, names)) => names.push(target.name()),
            None => figures.push((known(*target), vec![target.name()])),
        }
    }
    let told = figures.iter().map(|(figure, names)| {
        let has = if names.len() == 1 { "has" } else { "have" };
        format!("{} {has} {figure}", joined(names))
    });
    let told: Vec<String> = told.collect();
    let mut ways = vec![advice.to_owned()];
    let large = Features::of(&[Feature::LargeWorkgroups]);
    let least = lacking.iter().map(|target| of(*target, profile.features.union(large))).min();
    if let Some(least) = least.filter(|least| u64::from(*least) >= wanted) {
        let name = Feature::LargeWorkgroups.variant_name();
        ways.push(format!("write `requires({name})` on the kernel for devices that have {least}"));
    }
    if !enough.is_empty() {
        let names: Vec<&str> = enough.iter().map(|target| target.name()).collect();
        ways.push(format!("list `targets({})`", names.join(", ")));
    }
    let last = ways.pop().unwrap_or_default();
    let instead = if ways.is_empty() { last } else { format!("{}, or {last}", ways.join(", ")) };
    format!("{} on every device: {instead}", told.join(", "))
}

/// `a, b and c`
fn joined(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
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
