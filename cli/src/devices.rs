//! `trefoil devices`

use trefoil::device::DeviceOptions;
use trefoil::devices;

use crate::Outcome;

/// Prints a line for each kind of device.
pub fn list() -> Outcome {
    for listing in devices::list(&DeviceOptions::default()) {
        match listing.device {
            Ok(device) => {
                let properties = device.properties();
                let features: Vec<_> = properties.features.iter().map(|feature| feature.name()).collect();
                say!(
                    "{:<7} {}{}, {}, features: {}",
                    listing.kind.name(),
                    properties.name,
                    if properties.software && listing.kind != trefoil::DeviceKind::Cpu { " (software)" } else { "" },
                    properties.driver,
                    if features.is_empty() { "none".to_owned() } else { features.join(" ") },
                );
            }
            Err(error) => say!("{:<7} not usable: {error}", listing.kind.name()),
        }
    }
    Ok(())
}
