//! The choice of an adapter by what the user asked for, and the devices that [`DeviceOptions`] pretend to have.

use crate::device::{DeviceKind, DeviceOptions, Limits, Properties};
use crate::error::{Error, Result};
use trefoil_codegen::artefact::{Feature, Features};

/// The position in `names` of the adapter that `asked` means: a position, or a part of a name in any case; without a wish the one
/// of the highest `rank`, the first among equals.
///
/// # Errors
/// [`Error::Unavailable`] if there is none at all, [`Error::NoSuchAdapter`] if none is called so.
pub fn choose(kind: DeviceKind, names: &[String], asked: Option<&str>, rank: impl Fn(usize) -> u32) -> Result<usize> {
    if names.is_empty() {
        return Err(Error::Unavailable {
            kind: kind.name(),
            reason: "the driver is there but lists no usable adapter".to_owned(),
        });
    }
    let Some(asked) = asked else {
        let mut best = 0;
        for i in 1..names.len() {
            if rank(i) > rank(best) {
                best = i;
            }
        }
        return Ok(best);
    };
    let by_position = asked.parse::<usize>().ok().filter(|i| *i < names.len());
    let wanted = asked.to_lowercase();
    by_position
        .or_else(|| names.iter().position(|name| !wanted.is_empty() && name.to_lowercase().contains(&wanted)))
        .ok_or_else(|| Error::NoSuchAdapter {
            kind: kind.name(),
            asked: asked.to_owned(),
            present: names.iter().enumerate().map(|(i, n)| format!("{i}: {n}")).collect::<Vec<_>>().join("; "),
        })
}

/// `properties` with no more than the options allow, and with large workgroups where the limits do.
///
/// # Errors
/// [`Error::Unavailable`] if the device has no subgroups of the size that is asked for.
pub fn restrict(mut properties: Properties, options: &DeviceOptions) -> Result<Properties> {
    if let Some(size) = options.subgroup_size {
        if !properties.offers_subgroups_of(size) {
            return Err(Error::Unavailable {
                kind: properties.kind.name(),
                reason: format!("{} has no subgroups of {size}: it {}", properties.name, offered(&properties)),
            });
        }
        properties.subgroup_sizes = Some(size..=size);
        properties.limits.min_subgroup = size;
        properties.limits.max_subgroup = size;
    }
    if let Some(most) = options.at_most {
        properties.limits = at_most(properties.limits, most);
    }
    // The one feature that is nothing but limits.
    let large = Features::of(&[Feature::LargeWorkgroups]);
    properties.features = Features(properties.features.0 & !large.0);
    if properties.limits.allow_large_workgroups() {
        properties.features = properties.features.union(large);
    }
    properties.features = Features(properties.features.0 & !options.without.0);
    if !properties.features.has(Feature::CooperativeMatrices) {
        properties.matrices.clear();
    }
    Ok(properties)
}

/// What sizes a device offers, for errors: a verb follows the device's name.
pub(super) fn offered(properties: &Properties) -> String {
    match properties.subgroup_sizes.clone().map(std::ops::RangeInclusive::into_inner) {
        None => "lets nobody choose".to_owned(),
        Some((least, most)) if least == most => format!("offers {least} alone"),
        Some((least, most)) => format!("offers {least} to {most}"),
    }
}

/// What a device without a choice of sizes offers: the one that it has, or none if they vary.
#[must_use]
pub fn without_choice(least: u32, most: u32) -> Option<std::ops::RangeInclusive<u32>> {
    (least == most && least > 0).then_some(least..=most)
}

/// The poorer of both, number by number.
fn at_most(a: Limits, b: Limits) -> Limits {
    let axes = |a: [u32; 3], b: [u32; 3]| [a[0].min(b[0]), a[1].min(b[1]), a[2].min(b[2])];
    Limits {
        max_allocation_bytes: a.max_allocation_bytes.min(b.max_allocation_bytes),
        max_binding_bytes: a.max_binding_bytes.min(b.max_binding_bytes),
        binding_alignment: a.binding_alignment.max(b.binding_alignment),
        max_storage_buffers: a.max_storage_buffers.min(b.max_storage_buffers),
        max_workgroup_bytes: a.max_workgroup_bytes.min(b.max_workgroup_bytes),
        max_invocations: a.max_invocations.min(b.max_invocations),
        max_workgroup_size: axes(a.max_workgroup_size, b.max_workgroup_size),
        max_groups: axes(a.max_groups, b.max_groups),
        // The size of a subgroup is a fact of the hardware, not an allowance.
        min_subgroup: a.min_subgroup,
        max_subgroup: a.max_subgroup,
        shares_memory_within_dispatch: a.shares_memory_within_dispatch && b.shares_memory_within_dispatch,
        near_host_bytes: a.near_host_bytes.min(b.near_host_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["Quick GPU".to_owned(), "llvmpipe".to_owned(), "Best GPU 9".to_owned()]
    }

    #[test]
    fn an_adapter_is_chosen_by_position_name_or_rank() {
        let rank = |i: usize| [1, 0, 2][i];
        let pick = |asked| choose(DeviceKind::Vulkan, &names(), asked, rank).ok();
        assert_eq!(pick(None), Some(2));
        assert_eq!(pick(Some("0")), Some(0));
        assert_eq!(pick(Some("LLVM")), Some(1));
        assert_eq!(pick(Some("9")), Some(2), "a number that is no position may be a part of a name");
        assert_eq!(pick(Some("")), None);
        assert!(matches!(choose(DeviceKind::Vulkan, &names(), Some("absent"), rank), Err(Error::NoSuchAdapter { .. })));
        assert!(matches!(choose(DeviceKind::Cuda, &[], None, rank), Err(Error::Unavailable { .. })));
    }
}
