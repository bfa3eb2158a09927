//! A case on a device, and what came of it.

use trefoil::Device;
use trefoil_graph::{Data, ElementType, Executable, Extents, Options};

use crate::cases::{Case, Cases};
use crate::import::{Model, elements, import, stored_type, values};

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The device gives what the case expects.
    Passed,
    /// There is no graph for it, or the device cannot run that graph, and why.
    Unsupported(String),
    /// Something else came out, and what.
    Failed(String),
}

/// Runs a case on devices, with one graph for all.
pub fn run(cases: &Cases, case: &Case, devices: &[Device]) -> Vec<Outcome> {
    match import(cases, case) {
        Ok(model) => devices.iter().map(|device| run_on(cases, case, &model, device)).collect(),
        Err(reason) => vec![Outcome::Unsupported(reason.to_string()); devices.len()],
    }
}

fn run_on(cases: &Cases, case: &Case, model: &Model, device: &Device) -> Outcome {
    let made = Executable::compile(&model.graph, &trefoil_graph::Model::new(), device, &Options::default());
    let executable = match made {
        Ok(executable) => executable,
        Err(error) => return Outcome::Unsupported(format!("on {}: {error}", device.kind())),
    };
    let given: Vec<_> = model
        .inputs
        .iter()
        .filter_map(|stored| {
            let element = stored_type(&stored.element)?;
            Some((stored.name.as_str(), element, elements(element, cases.bytes(stored))))
        })
        .collect();
    let mut inputs = Vec::new();
    for (name, element, bytes) in &given {
        match Data::from_bytes(*element, bytes) {
            Some(data) => inputs.push((*name, data)),
            None => return Outcome::Failed(format!("`{name}` has {} bytes", bytes.len())),
        }
    }
    let outputs = match executable.run(&inputs, &Extents::new()) {
        Ok(outputs) => outputs,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    for wanted in &case.outputs {
        let Some(element) = stored_type(&wanted.element) else {
            return Outcome::Unsupported(format!("no tensors of {}", wanted.element));
        };
        let found = match outputs.host(&wanted.name) {
            Ok(found) => found,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        if found.shape != wanted.shape {
            return Outcome::Failed(format!("`{}` is {:?}, not {:?}", wanted.name, found.shape, wanted.shape));
        }
        let expected = values(cases, element, wanted);
        for (at, (found, expected)) in found.values.iter().zip(&expected).enumerate() {
            let relative = case.absolute + case.relative * expected.abs();
            // Relative to an infinity, any number would be near.
            let near =
                expected.is_finite() && (found - expected).abs() <= relative.max(rounding(case, element, *expected));
            if !near && found != expected && !(found.is_nan() && expected.is_nan()) {
                return Outcome::Failed(format!("`{}`[{at}] is {found}, not {expected}", wanted.name));
            }
        }
    }
    Outcome::Passed
}

/// What two ways of rounding may differ by: a graph of several nodes rounds elements of 16 bits after each of them, as did what made the expected values, in another order of sums. A thousandth, as
/// cases allow, is less than two units in the last place of a half, and less than one of a bfloat16.
fn rounding(case: &Case, element: ElementType, expected: f64) -> f64 {
    // The bits behind the point, and the smallest number that has all of them.
    let (bits, smallest) = match element {
        ElementType::F16 => (10.0, half::f16::MIN_POSITIVE.to_f64()),
        ElementType::BF16 => (7.0, half::bf16::MIN_POSITIVE.to_f64()),
        _ => return 0.0,
    };
    if case.nodes.len() < 2 {
        return 0.0;
    }
    let exponent = expected.abs().max(smallest).log2().floor();
    2.0 * (exponent - bits).exp2()
}
