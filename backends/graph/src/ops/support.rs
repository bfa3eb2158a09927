//! What op definitions share: checks of inputs, and choosing kernels.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::{DeviceKind, Properties};

use crate::dim::{Dim, Symbol};
use crate::op::{CallStep, Grid, Implementation, Ineligible, KernelStep, OpError, ParamValue, Request, Slot, Step};
use crate::types::{ElementType, TensorType};

/// Checks how many inputs there are.
///
/// # Errors
/// There is another number of them.
pub fn expect_inputs(inputs: &[TensorType], expected: std::ops::RangeInclusive<usize>) -> Result<(), OpError> {
    if expected.contains(&inputs.len()) {
        return Ok(());
    }
    Err(OpError::InputCount { given: inputs.len(), expected: *expected.end() })
}

/// Checks that extents of a new shape are not surely negative; those that depend on a run are looked at there.
///
/// # Errors
/// One is.
pub fn expect_extents(shape: &[Dim]) -> Result<(), OpError> {
    if shape.iter().all(|extent| extent.bounds().1 >= 0) {
        return Ok(());
    }
    let expected = "extents that are not negative".to_owned();
    Err(OpError::Attribute { attribute: "shape", given: format!("{shape:?}"), expected })
}

/// Checks that an input is of an element type.
///
/// # Errors
/// It is not; the message names the cast.
pub fn expect_element(input: &'static str, ty: &TensorType, expected: ElementType) -> Result<(), OpError> {
    if ty.element == expected {
        return Ok(());
    }
    Err(OpError::ElementType {
        input,
        given: ty.element,
        expected: format!("{expected} (cast it with `g.cast(tensor, ElementType::{expected:?})`)"),
    })
}

/// Checks that an input is of one of the element types that an op takes.
///
/// # Errors
/// It is of none of them; the message lists them, and names the cast.
pub fn expect_one_of(input: &'static str, ty: &TensorType, takes: impl Fn(ElementType) -> bool) -> Result<(), OpError> {
    if takes(ty.element) {
        return Ok(());
    }
    let expected = format!("{} (`cast` converts)", ElementType::list(takes));
    Err(OpError::ElementType { input, given: ty.element, expected })
}

/// Checks an input's shape.
///
/// # Errors
/// It is another.
pub fn expect_shape(input: &'static str, ty: &TensorType, expected: &[Dim]) -> Result<(), OpError> {
    if ty.shape == expected {
        return Ok(());
    }
    let expected = TensorType { element: ty.element, shape: expected.to_vec() };
    Err(OpError::Shape { input, given: type_apart(ty, &expected), expected: type_apart(&expected, ty) })
}

/// That an input has another shape than an op takes: what was given, and what is expected in words.
pub fn shape_error(input: &'static str, given: &TensorType, expected: String) -> OpError {
    OpError::Shape { input, given: given.to_string(), expected }
}

/// A dimension, with what it may be where it is no number: `n (1 to 8)`.
pub fn with_bounds(dim: &Dim) -> String {
    if dim.constant().is_some() {
        return dim.to_string();
    }
    let (least, most) = dim.bounds();
    match dim.symbol().map_or(1, Symbol::multiple_of) {
        1 => format!("{dim} ({least} to {most})"),
        multiple => format!("{dim} ({least} to {most} in multiples of {multiple})"),
    }
}

/// A dimension, with its bounds where `other` is another that is written alike: symbols of one name with other bounds are other symbols.
pub fn apart(dim: &Dim, other: &Dim) -> String {
    let text = dim.to_string();
    if dim != other && text == other.to_string() { with_bounds(dim) } else { text }
}

/// A tensor's type, with the bounds of extents that are written as those of `other` and differ.
fn type_apart(ty: &TensorType, other: &TensorType) -> String {
    if ty.rank() != other.rank() {
        return ty.to_string();
    }
    let extents: Vec<_> = ty.shape.iter().zip(&other.shape).map(|(mine, theirs)| apart(mine, theirs)).collect();
    format!("{}[{}]", ty.element, extents.join(", "))
}

/// What is expected of a dimension, and that it is not what was given where that is written alike.
pub fn rather_than(expected: &Dim, given: &Dim) -> (String, String) {
    let (wanted, other) = (apart(expected, given), apart(given, expected));
    let not = if other == given.to_string() { String::new() } else { format!(", not {other}") };
    (wanted, not)
}

/// The symbols of dimensions, some more than once.
pub fn symbols_of<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for dim in dims {
        dim.for_each_symbol(&mut |symbol| symbols.push(symbol.clone()));
    }
    symbols
}

/// The instance of a kernel by its name.
///
/// # Errors
/// The library lists no such instance.
pub fn instance(kernels: &[&'static Kernel], name: &str) -> Result<Arc<Kernel>, Ineligible> {
    kernels
        .iter()
        .find(|kernel| kernel.name == name)
        .map(|kernel| Arc::new((*kernel).clone()))
        .ok_or_else(|| Ineligible::Other(format!("the kernel library lists no instance `{name}`")))
}

/// The kernel with these values of its specialisation constants.
///
/// # Errors
/// It has no such constant, or the constant no such value.
pub fn specialised(kernel: &Kernel, constants: &[(&str, i64)]) -> Result<Arc<Kernel>, Ineligible> {
    kernel.specialise(constants).map(Arc::new).map_err(|error| Ineligible::Other(error.to_string()))
}

/// An implementation that is one kernel.
pub fn one_kernel(
    kernel: Arc<Kernel>,
    bindings: Vec<Slot>,
    params: Vec<ParamValue>,
    grid: Grid,
    cost: f64,
) -> Implementation {
    Implementation {
        steps: vec![Step::Kernel(KernelStep { kernel, bindings, params, grid })],
        scratch: Vec::new(),
        cost,
    }
}

/// The steps of another op's implementation as those of an op that makes use of it: `input` and `output` stand for its own, and its scratch memory goes behind what is in `scratch`.
pub fn steps_within(other: Implementation, input: &Slot, output: &Slot, scratch: &mut Vec<Dim>) -> Vec<Step> {
    let first = scratch.len();
    scratch.extend(other.scratch);
    let moved = |slots: Vec<Slot>| {
        let slots = slots.into_iter().map(|slot| match slot {
            Slot::Input(_) => input.clone(),
            Slot::Output(_) => output.clone(),
            Slot::Scratch(piece) => Slot::Scratch(first + piece),
            other @ (Slot::Over { .. } | Slot::Counters(_) | Slot::Empty) => other,
        });
        slots.collect()
    };
    let steps = other.steps.into_iter().map(|step| match step {
        Step::Kernel(step) => Step::Kernel(KernelStep { bindings: moved(step.bindings), ..step }),
        Step::Call(step) => Step::Call(CallStep { reads: moved(step.reads), writes: moved(step.writes), ..step }),
    });
    steps.collect()
}

/// Floating-point operations in a microsecond, on two cores: a guess, to compare candidates.
pub const FLOPS_PER_MICROSECOND: f64 = 1.0e5;
/// What a launch more costs on a large GPU, in microseconds.
pub const LAUNCH: f64 = 3.0;

/// A dimension that is known.
pub fn number(value: i64) -> Dim {
    Dim::from(value)
}

/// The least power of two that is not below `value`, at most `most`, which is one.
pub fn power_of_two(value: i64, most: i64) -> i64 {
    let mut power = 1;
    while power < value && power < most {
        power *= 2;
    }
    power
}

/// The upper bound of a dimension, as a float for cost guesses.
#[expect(clippy::cast_precision_loss, reason = "a cost is a guess")]
pub fn upper(dim: &Dim) -> f64 {
    dim.bounds().1 as f64
}

/// Whether what a kernel gains by what its pipeline knows is more than what another pipeline costs, for elements of such extents.
pub fn is_worth_a_pipeline<'a>(extents: impl IntoIterator<Item = &'a Dim>) -> bool {
    extents.into_iter().map(upper).product::<f64>() >= 1_048_576.0
}

/// What a kernel costs on a device that would take so many microseconds on a large GPU.
pub fn kernel_time(device: &Properties, microseconds: f64) -> f64 {
    // Two cores take some ten thousand times as long for a product.
    microseconds * if device.kind == DeviceKind::Cpu { 1.0e4 } else { 1.0 }
}

/// Refuses the CPU, for kernels that are not compiled for it: it has functions of its own. One that plays a GPU, to check kernels, takes them.
pub fn not_on_processors(request: &Request<'_>) -> Result<(), Ineligible> {
    if request.device.kind == DeviceKind::Cpu && !request.device.software {
        return Err(Ineligible::Other("it is not compiled for processors".to_owned()));
    }
    Ok(())
}

/// Microseconds to move that many bytes, to compare candidates.
pub fn transfer_time(bytes: f64) -> f64 {
    2.0 + bytes / 1.0e6
}
