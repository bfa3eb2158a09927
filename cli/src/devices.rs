//! `trefoil devices`

use serde_json::{Value, json};
use trefoil::device::DeviceOptions;
use trefoil::devices::{self, Listing};

use crate::Outcome;

/// Prints a line for each kind of device, or an array of objects: `kind` and `usable`, and then `name`, `driver`, `software` and `features`, or the `reason`.
pub fn list(as_json: bool) -> Outcome {
    let listings = devices::list(&DeviceOptions::default());
    if as_json {
        let objects: Vec<Value> = listings.iter().map(object).collect();
        say!("{}", serde_json::to_string_pretty(&objects)?);
        return Ok(());
    }
    for listing in listings {
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

fn object(listing: &Listing) -> Value {
    let kind = listing.kind.name();
    match &listing.device {
        Ok(device) => {
            let properties = device.properties();
            let features: Vec<_> = properties.features.iter().map(|feature| feature.name()).collect();
            json!({
                "kind": kind,
                "usable": true,
                "name": properties.name,
                "driver": properties.driver,
                "software": properties.software,
                "features": features,
            })
        }
        Err(error) => json!({ "kind": kind, "usable": false, "reason": error.to_string() }),
    }
}
