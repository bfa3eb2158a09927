//! Which variants a kernel has: the profiles that make a difference to it.

use crate::artefact::ParamTransport;
use crate::ir::{Module, Scalar, Type};
use crate::layout;
use crate::target::{Dialect, Feature, Features, MATRIX_BLOCK, Profile, Target};
use crate::verify::{Verified, transport_fits, viable};

/// The variants to emit: for each of the kernel's targets the sets of features that make a difference to it, the largest first, in
/// each way that parameters can travel.
///
/// Every CUDA device has all features, so that CUDA has one set. The CPU has what every CPU device has, and emulates subgroups only where a kernel requires
/// them. Elsewhere there is no set with what a target never has, and none without what it always has if there is the same with it.
pub fn variants(verified: &Verified) -> Vec<(Profile, ParamTransport)> {
    let Verified { module, info } = verified;
    let bytes = layout::params(module, info.grid).map_or(0, |params| params.size);
    let mut found = Vec::new();
    let sets = viable_sets(verified);
    for target in &module.targets {
        for features in feature_sets(verified, &sets, *target) {
            for transport in [ParamTransport::Value, ParamTransport::Buffer] {
                if transport_fits(*target, transport, bytes) {
                    let profile = Profile::portable(*target).with(features);
                    found.extend(forms(module, profile).into_iter().map(|profile| (profile, transport)));
                }
            }
        }
    }
    found
}

/// The profile once for each dialect in which its text is another, or first with matrices as they are and then with matrices in blocks.
fn forms(module: &Module, profile: Profile) -> Vec<Profile> {
    let has = |feature| profile.features.has(feature);
    if profile.target == Target::Spirv && has(Feature::CooperativeMatrices) && falls_into_blocks(module) {
        return vec![profile.clone(), profile.in_blocks()];
    }
    if profile.target != Target::Wgsl {
        return vec![profile];
    }
    if has(Feature::Int64) || has(Feature::Float64) {
        return vec![profile.in_dialect(Dialect::Naga)];
    }
    if has(Feature::Subgroups) {
        return vec![profile.clone().in_dialect(Dialect::Naga), profile.in_dialect(Dialect::Browsers)];
    }
    vec![profile]
}

/// Whether every matrix is made of whole blocks of a type that devices have them in, and one of several.
fn falls_into_blocks(module: &Module) -> bool {
    let matrices = || {
        module.types.iter().filter_map(|(_, ty)| match ty {
            Type::Matrix(matrix) => Some(matrix),
            _ => None,
        })
    };
    let whole = |side: u32| side > 0 && side.is_multiple_of(MATRIX_BLOCK);
    matrices().all(|matrix| matrix.scalar != Scalar::BF16 && matrix.shape().into_iter().all(whole))
        && matrices().any(|matrix| matrix.shape() != [MATRIX_BLOCK; 2])
}

/// The sets of features that make a difference and that the kernel has code for, the largest first.
fn viable_sets(verified: &Verified) -> Vec<Features> {
    let Verified { module, info } = verified;
    let mut sets: Vec<Features> = (0..1u32 << Feature::ALL.len())
        .map(Features)
        .filter(|set| set.contains(info.required) && info.relevant.contains(*set) && viable(module, *set))
        .collect();
    sets.sort_by_key(|set| std::cmp::Reverse((set.count(), set.0)));
    sets
}

/// Those of the sets that a target has variants for.
fn feature_sets(verified: &Verified, sets: &[Features], target: Target) -> Vec<Features> {
    let info = &verified.info;
    match target {
        Target::Wgsl | Target::Spirv => {
            let always: Vec<Feature> = Feature::ALL.into_iter().filter(|feature| feature.always(target)).collect();
            let always = Features::of(&always).intersection(info.relevant);
            let serves = |set: Features| set.contains(always) || !sets.contains(&set.union(always));
            sets.iter().copied().filter(|set| Features::of_target(target).contains(*set) && serves(*set)).collect()
        }
        Target::Cuda => sets.iter().copied().take(1).collect(),
        Target::Cpu => {
            let always: Vec<Feature> = Feature::ALL.into_iter().filter(|feature| feature.always(target)).collect();
            let native = info.required.union(info.relevant.intersection(Features::of(&always)));
            let fits: Vec<Features> = sets.iter().copied().filter(|set| *set == native).collect();
            if fits.is_empty() { sets.iter().copied().rev().take(1).collect() } else { fits }
        }
    }
}
