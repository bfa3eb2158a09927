//! What a device must have to compute with elements of a type, and to move them.

use trefoil_codegen::artefact::{Feature, Features};
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::Properties;

use crate::types::ElementType;

/// The feature without which a device only moves elements of a type, converts them to other integers and tells whether they are equal.
pub fn feature(element: ElementType) -> Option<Feature> {
    features(element).first().copied()
}

/// That feature, and behind it what some functions of the elements ask for besides.
const fn features(element: ElementType) -> &'static [Feature] {
    match element.stored() {
        Scalar::I64 | Scalar::U64 => &[Feature::Int64],
        // Exponentials and logarithms are made of a double's bits.
        Scalar::F64 => &[Feature::Float64, Feature::Int64],
        _ => &[],
    }
}

fn has(device: &Properties, feature: Feature) -> bool {
    feature.always(device.kind.target()) || device.features.has(feature)
}

/// Whether a device computes with elements of a type.
pub fn computes(device: &Properties, element: ElementType) -> bool {
    feature(element).is_none_or(|feature| has(device, feature))
}

/// What a device lacks of the features for elements of a type.
pub fn lacking(device: &Properties, element: ElementType) -> Option<Feature> {
    features(element).iter().copied().find(|feature| !has(device, *feature))
}

/// What a device has of them.
pub fn there(device: &Properties, element: ElementType) -> Features {
    let there: Vec<_> = features(element).iter().copied().filter(|feature| has(device, *feature)).collect();
    Features::of(&there)
}
