//! A drawn graph on a device, against what it should give.

use std::collections::BTreeMap;

use half::{bf16, f16};
use trefoil_dsl::device::Device;
use trefoil_graph::compile::prove::prove;
use trefoil_graph::{DebugOptions, ElementType, Executable, HostTensor, Model, Options};

use super::bounds::Reference;
use super::draw::Drawn;
use crate::common::{Values, computes};

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The outputs that are wrong; none if nothing ran.
    pub outputs: Vec<String>,
    /// In words.
    pub words: String,
}

/// How a graph went that is right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Elements that were compared.
    pub elements: u64,
    /// Of those, how many the reference does not settle.
    pub unsettled: u64,
    /// Whether the device lacks a type of the graph, so that nothing was run.
    pub lacking: bool,
}

/// Numbers as elements of a type.
pub fn typed(element: ElementType, values: &[f64]) -> Values {
    macro_rules! of {
        ($($variant:ident => $map:expr),* $(,)?) => {
            match element {
                $(ElementType::$variant => Values::$variant(values.iter().map($map).collect()),)*
                _ => panic!("no values of {element}"),
            }
        };
    }
    of! {
        F32 => |x| *x as f32, F16 => |x| f16::from_f64(*x), BF16 => |x| bf16::from_f64(*x), F64 => |x| *x,
        I8 => |x| *x as i8, U8 => |x| *x as u8, I16 => |x| *x as i16, U16 => |x| *x as u16, I32 => |x| *x as i32,
        U32 => |x| *x as u32, I64 => |x| *x as i64, U64 => |x| *x as u64, Bool => |x| *x != 0.0,
    }
}

/// The largest finite number of a type.
fn most(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => 65504.0,
        ElementType::BF16 | ElementType::F32 => f64::from(f32::MAX),
        _ => f64::INFINITY,
    }
}

/// Runs a graph and compares every output of every run. The model is that of all graphs, which share its generated kernels; params have names of their own.
///
/// # Errors
/// What is wrong.
pub fn check(
    drawn: &Drawn,
    device: &Device,
    model: &Model,
    options: &Options,
    exact: &[&str],
) -> Result<Outcome, Failure> {
    let failed = |words: String| Failure { outputs: Vec::new(), words };
    let name = &device.properties().name;
    let graph = &drawn.graph;
    let mut outcome = Outcome::default();
    let runs = drawn.runs();
    for (leaf, values) in drawn.given(0, &runs[0]).iter().filter(|(leaf, _)| drawn.is_param(leaf)) {
        let ty = &graph.nodes()[graph.leaves()[leaf].node()].outputs[0];
        let shape: Vec<usize> = ty.shape.iter().map(|extent| extent.constant().unwrap() as usize).collect();
        model.set(leaf, &shape, values.data()).map_err(|error| failed(format!("param: {error}")))?;
    }
    if drawn.elements().iter().any(|element| !computes(device, *element)) {
        return Ok(Outcome { lacking: true, ..outcome });
    }
    let executable = Executable::compile(graph, model, device, options)
        .map_err(|error| failed(format!("on {name} it does not compile: {error}")))?;
    let trace = executable.trace().map_err(|error| failed(error.to_string()))?;
    prove(graph, &trace).map_err(|defect| failed(format!("on {name}: {defect}")))?;
    let symbols: Vec<_> = executable.symbols().cloned().collect();
    let mut reference = Reference::new(graph, exact, drawn.seed);
    for (run, extents) in runs.iter().enumerate() {
        let given = drawn.given(run, extents);
        let leaves: BTreeMap<String, HostTensor> =
            given.iter().map(|(leaf, values)| (leaf.clone(), values.host())).collect();
        let (expected, _) =
            reference.run(&leaves, extents).map_err(|error| failed(format!("the reference: {error}")))?;
        let inputs: Vec<_> = given
            .iter()
            .filter(|(leaf, _)| !drawn.is_param(leaf))
            .map(|(leaf, values)| (leaf.as_str(), values.data()))
            .collect();
        // Not every graph has both symbols.
        let extents = &extents.only(&symbols);
        // Some by steps, where what is read too late is NaN.
        let outputs = if drawn.seed % 5 == 2 {
            let options = DebugOptions { reference: drawn.seed % 10 == 2, poison: true };
            let run = executable.prepare(extents);
            let run = inputs.iter().fold(run, |run, (leaf, data)| run.input(*leaf, data.clone()));
            run.debug(&options).map(|(outputs, _)| outputs)
        } else {
            executable.run(&inputs, extents)
        };
        let outputs = outputs.map_err(|error| failed(format!("run {run} on {name}: {error}")))?;
        let mut failure = Failure { outputs: Vec::new(), words: String::new() };
        for (output, tensor) in graph.outputs() {
            let wanted = &expected[output];
            let got = outputs.host(output).map_err(|error| failed(error.to_string()))?;
            let most = most(graph.nodes()[tensor.node()].outputs[tensor.port()].element);
            if got.values.len() != wanted.value.values.len() {
                failure.outputs.push(output.clone());
                failure.words += &format!("run {run} on {name}: `{output}` has {} elements\n", got.values.len());
                continue;
            }
            let pairs = got.values.iter().zip(&wanted.value.values).zip(&wanted.tolerance);
            let mut wrong = None;
            for (index, ((got, wanted), tolerance)) in pairs.enumerate() {
                outcome.elements += 1;
                if *tolerance > 0.05 * wanted.abs().max(1.0) {
                    outcome.unsettled += 1;
                }
                // Out of the type's range on the side of what came out.
                let beyond = wanted * got.signum() + tolerance >= most && got.abs() >= most * 0.999;
                let close = (got - wanted).abs() <= *tolerance || got == wanted || got.is_nan() && wanted.is_nan();
                if !close && !tolerance.is_infinite() && !beyond {
                    wrong.get_or_insert((index, *got, *wanted, *tolerance));
                }
            }
            if let Some((index, got, wanted, tolerance)) = wrong {
                failure.outputs.push(output.clone());
                failure.words += &format!(
                    "run {run} on {name}: `{output}`[{index}] is {got}, not {wanted} to within {tolerance:e}\n"
                );
            }
        }
        if !failure.outputs.is_empty() {
            return Err(failure);
        }
    }
    Ok(outcome)
}
