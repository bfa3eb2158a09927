//! What can go wrong between a graph and its results; each message names the thing, what was given and what was expected.

use std::fmt;
use std::ops::Range;

use thiserror::Error;
use trefoil_dsl::error::Error as DeviceError;

use crate::dim::DimError;
use crate::graph::GraphError;
use crate::types::ElementType;

/// A result whose error is [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a model, a compilation or a run.
///
/// Each message is complete: it contains that of the error that it wraps, if there is one, which [`source`](std::error::Error::source) gives to programs that walk the chain. [`Error::device`] finds the device's own.
#[derive(Clone, Error)]
#[non_exhaustive]
pub enum Error {
    /// A graph could not be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A dimension has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// A device refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device refused something, or failed, at a part of the graph.
    #[error("{what} `{name}`: {error}")]
    At {
        /// `step`, `param`, `constant`, `state`, or what else it was at.
        what: &'static str,
        /// Its name.
        name: String,
        /// What the device said.
        #[source]
        error: Box<DeviceError>,
    },
    /// A plan for one value of a symbol is to run with another.
    #[error("symbol `{symbol}` is {given}, in a plan that was made for {expected}")]
    Bound {
        /// The symbol.
        symbol: String,
        /// The value in the run's extents.
        given: String,
        /// The plan's.
        expected: i64,
    },
    /// A run that was called off before it began.
    #[error("the run was cancelled before its first step, `{step}`")]
    Cancelled {
        /// The step that would have come next.
        step: String,
    },
    /// No way to compute an op on this device.
    #[error("`{node}`: no candidate can compute it: {reasons}")]
    NoCandidate {
        /// The node.
        node: String,
        /// Every candidate with its reason.
        reasons: String,
    },
    /// A candidate or an op that was named in the options and does not exist.
    #[error("the options {what} `{name}`, but no node of the graph has such a candidate; there are: {known}")]
    UnknownCandidate {
        /// `force` or `forbid`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A candidate's steps do not fit its kernels or the graph.
    #[error("`{node}`, candidate `{candidate}`: {reason}")]
    Candidate {
        /// The node.
        node: String,
        /// The candidate.
        candidate: String,
        /// What does not fit.
        reason: String,
    },
    /// A map in a type with which the device does not compute.
    #[error("`{node}`: {device} does not compute `{op}` in {element}, since it lacks the feature `{feature}`: `cast` to {instead} where that is exact enough, or choose another device", instead = narrower(*.element))]
    Lacking {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
        /// The element type.
        element: ElementType,
        /// The device.
        device: String,
        /// What it lacks.
        feature: &'static str,
    },
    /// A generated kernel does not compile.
    #[error("generated kernel `{kernel}`: {message}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What the compiler said.
        message: String,
    },
    /// A number that a kernel needs does not fit into its parameter.
    #[error("`{step}`, parameter `{param}`: {value} does not fit into {bits}")]
    Param {
        /// The step.
        step: String,
        /// The parameter.
        param: String,
        /// The number.
        value: i64,
        /// What it should fit into.
        bits: &'static str,
    },
    /// A view of another kind than strides.
    #[error("`{node}`: a view without a layout even of contiguous elements")]
    View {
        /// The node.
        node: String,
    },
    /// A tensor that must have a shape of numbers.
    #[error("{what} `{name}` is {ty}: its extents must be numbers")]
    Symbolic {
        /// `param` or `constant`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Its type.
        ty: String,
    },
    /// A tensor is larger than the device allows.
    #[error("tensor `{tensor}` takes {bytes} bytes; {device} allows {limit} in one {what}")]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Its size at the upper bounds of its symbols.
        bytes: u64,
        /// What the device allows.
        limit: u64,
        /// `allocation`, `binding`, or what else counts it.
        what: &'static str,
        /// The device.
        device: String,
    },
    /// A stage of the compiler left something that its checker refuses. It is a fault of this crate.
    #[error("after `{stage}`: {defect}")]
    Stage {
        /// The stage.
        stage: &'static str,
        /// What is wrong.
        defect: String,
    },
    /// A name that the graph or model does not have.
    #[error("there is no {what} `{name}`; there are: {known}")]
    Unknown {
        /// `input`, `output`, `param`, `state` or `symbol`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Params that a run reads and the model has not given to the device.
    #[error("{}", missing_params(.missing, .others))]
    MissingParams {
        /// Each with its type, in the order in which the graph declares them.
        missing: Vec<(String, String)>,
        /// The names of the model's params that the graph does not declare.
        others: Vec<String>,
    },
    /// Something that must be given and is not.
    #[error("{what} `{name}` ({ty}) is not given")]
    Missing {
        /// `input`, or what a reference lacks.
        what: &'static str,
        /// Its name.
        name: String,
        /// Its type.
        ty: String,
    },
    /// Given twice.
    #[error("{what} `{name}` is given twice")]
    Twice {
        /// `input`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Elements of another type.
    #[error("{what} `{name}`: elements of type {given} given, {expected} expected{hint}", hint = as_given(.what, .given))]
    ElementType {
        /// `input`, `output`, `param` or `state`.
        what: &'static str,
        /// Its name.
        name: String,
        /// What was given.
        given: String,
        /// What is right.
        expected: ElementType,
    },
    /// Elements are read as another type than they have.
    #[error("{what} `{name}` has elements of type {element}, and was read as {wanted}{hint}", hint = other_way(.what, *.element))]
    ReadAs {
        /// `output`, `state` or `the result of`.
        what: &'static str,
        /// Its name, or that of the op.
        name: String,
        /// The type that they have.
        element: ElementType,
        /// The type that was asked for.
        wanted: ElementType,
    },
    /// What was handed over is not what it is taken back as.
    #[error("a {given} of {given_element} was handed over, and is taken back as a {wanted} of {element}")]
    HandedOver {
        /// What it is: `list` or `pinned buffer`.
        given: &'static str,
        /// Its elements; of bools, those are words.
        given_element: ElementType,
        /// As what it is taken back.
        wanted: &'static str,
        /// With which elements.
        element: ElementType,
    },
    /// Another number of elements.
    #[error("{what} `{name}`: {given} elements given, {expected} expected for {ty}")]
    Length {
        /// `input` or `param`.
        what: &'static str,
        /// Its name.
        name: String,
        /// How many were given.
        given: u64,
        /// How many are right.
        expected: u64,
        /// Its type.
        ty: String,
    },
    /// Another shape.
    #[error("{what} `{name}` is {given}; expected {expected}")]
    Shape {
        /// `input` or `param`.
        what: &'static str,
        /// Its name.
        name: String,
        /// What was given.
        given: String,
        /// What is right.
        expected: String,
    },
    /// An id that another graph's executable gave.
    #[error(
        "an id of an {what} of another graph's executable; `Executable::{what}` gives those of this one and its forks"
    )]
    OtherExecutable {
        /// `input` or `output`.
        what: &'static str,
    },
    /// An input that cannot stay as it is.
    #[error("input `{name}` cannot stay as it is: {reason}")]
    Unchanged {
        /// The input.
        name: String,
        /// Why.
        reason: String,
    },
    /// Rows that an output does not have.
    #[error("output `{output}`: rows {rows:?} asked for, of {shape:?}")]
    Rows {
        /// The output.
        output: String,
        /// The rows asked for.
        rows: Range<u64>,
        /// Its extents in this run.
        shape: Vec<usize>,
    },
    /// A tensor would have fewer than no positions in a run.
    #[error("tensor `{tensor}`, axis {axis}: the extent {extent} is {given} in this run; it must not be negative")]
    Extent {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: usize,
        /// The extent, as the graph says it.
        extent: String,
        /// What it would be.
        given: i64,
    },
    /// A run would update a state beyond its end.
    #[error("state `{state}`, axis {axis}: {length} positions from {position} on do not lie within its {extent}")]
    Position {
        /// The state.
        state: String,
        /// The axis.
        axis: usize,
        /// The first position.
        position: i64,
        /// How many there are.
        length: i64,
        /// How many the state has.
        extent: i64,
    },
    /// An output that cannot be fed to a state.
    #[error("output `{output}` cannot be fed to state `{state}`: {reason}")]
    Feed {
        /// The output.
        output: String,
        /// The state.
        state: String,
        /// What does not fit.
        reason: String,
    },
    /// A file that cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A tensor of another [`Eager`](crate::Eager), and so perhaps of another device.
    #[error(
        "`{op}`, argument `{argument}`: the tensor belongs to an `Eager` on {device}, not to this one on {expected}"
    )]
    OtherEager {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// The device of the tensor.
        device: String,
        /// The device of the op.
        expected: String,
    },
    /// Tensors would take more memory than they may.
    #[error("`{what}` takes {bytes} bytes more, with {held} in use, of a budget of {budget}")]
    Budget {
        /// What needs them.
        what: String,
        /// How many it needs.
        bytes: u64,
        /// How many are in use.
        held: u64,
        /// How many there may be.
        budget: u64,
    },
    /// A tensor of an [`Eager`](crate::Eager) that was never computed, because the batch of launches that computes it failed.
    #[error("`{op}` was not computed: {error}")]
    NotComputed {
        /// The op that computes it.
        op: &'static str,
        /// Why the batch failed.
        #[source]
        error: Box<Error>,
    },
    /// The operating system starts no thread for runs beside the program.
    #[error("the thread for runs beside the program does not start: {reason}")]
    Thread {
        /// What it said.
        reason: String,
    },
    /// Another thread failed while it held the executable.
    #[error("an earlier run of this executable was cut short by a panic")]
    Poisoned,
}

impl fmt::Debug for Error {
    /// As it is displayed: that is what a program prints whose `main` gives it back, and what `unwrap` says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The type of 32 bits that comes nearest to one of 64.
fn narrower(element: ElementType) -> ElementType {
    match element {
        ElementType::F64 => ElementType::F32,
        ElementType::I64 => ElementType::I32,
        ElementType::U64 => ElementType::U32,
        other => other,
    }
}

/// How a graph reads a param whose elements are of another type than it declares, if there are graphs that know it.
fn as_given(what: &str, given: &str) -> String {
    let is_known = what == "param" && ElementType::ALL.iter().any(|element| element.name() == given);
    if is_known { format!("; declare it {given} and `cast` it") } else { String::new() }
}

/// All params that are missing, and the first of those that the model has instead.
fn missing_params(missing: &[(String, String)], others: &[String]) -> String {
    /// Enough to see how the model names its params.
    const TOLD: usize = 10;
    let all: Vec<_> = missing.iter().map(|(name, ty)| format!("`{name}` ({ty})")).collect();
    let (params, are) = if missing.len() == 1 { ("param", "is") } else { ("params", "are") };
    let told: Vec<_> = others.iter().take(TOLD).map(|name| format!("`{name}`")).collect();
    let tail = match (others.len(), others.len().saturating_sub(TOLD)) {
        (0, _) => String::new(),
        (_, 0) => format!("; the model has {}", told.join(", ")),
        (_, more) => format!("; the model has {} and {more} more", told.join(", ")),
    };
    format!("{params} {} {are} not given{tail}", all.join(", "))
}

/// How elements are read that no type of the host stands for.
fn other_way(what: &str, element: ElementType) -> &'static str {
    match (element, what) {
        (ElementType::Bool, "the result of") => ": `read_bools` reads bools",
        (ElementType::Bool, _) => ": `get_bools` reads bools",
        _ => "",
    }
}

/// Goes on if elements are read as the type that they have.
pub(crate) fn check_read(what: &'static str, name: &str, element: ElementType, wanted: ElementType) -> Result<()> {
    if element == wanted {
        return Ok(());
    }
    Err(Error::ReadAs { what, name: name.to_owned(), element, wanted })
}

/// Goes on if elements are of the type that they must have.
pub(crate) fn check_element(what: &'static str, name: &str, expected: ElementType, given: ElementType) -> Result<()> {
    if expected == given {
        return Ok(());
    }
    Err(Error::ElementType { what, name: name.to_owned(), given: given.to_string(), expected })
}

/// Names in a list, for messages.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<_> = names.into_iter().collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

impl Error {
    /// What the device said, whatever it was at ([`Error::At`]) and whichever tensor was not computed for it ([`Error::NotComputed`]); `None` if it was no device that refused something or failed.
    ///
    /// ```
    /// # use trefoil_graph::{Executable, Extents, Result};
    /// # fn of(executable: &Executable, extents: &Extents) -> Result<()> {
    /// use trefoil_dsl::error::Error as DeviceError; // `trefoil::Error`
    ///
    /// match executable.run(&[], extents) {
    ///     Err(error) if matches!(error.device(), Some(DeviceError::Assertion { .. })) => {
    ///         println!("the run is done, but a kernel complains: {error}");
    ///     }
    ///     other => println!("{} outputs", other?.iter().count()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> Option<&DeviceError> {
        match self {
            Self::Device(error) => Some(error),
            Self::At { error, .. } => Some(error),
            Self::NotComputed { error, .. } => error.device(),
            _ => None,
        }
    }

    /// Whether the device failed for good: it answers every further call with this error, and programs open it again ([`Device::reopen`](trefoil_dsl::device::Device::reopen)) and compile anew.
    pub fn is_lost(&self) -> bool {
        self.device().is_some_and(DeviceError::is_lost)
    }

    /// Whether the device had no memory left for something. A budget that the program set itself is not meant ([`Error::Budget`]).
    pub fn is_out_of_memory(&self) -> bool {
        self.device().is_some_and(DeviceError::is_out_of_memory)
    }
}

/// What a device said, at the part of the graph that `what` and `name` tell.
pub(crate) fn at(what: &'static str, name: &str) -> impl FnOnce(DeviceError) -> Error {
    move |error| Error::At { what, name: name.to_owned(), error: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn lost() -> DeviceError {
        DeviceError::Lost { device: "a GPU".to_owned(), label: "exp".to_owned(), message: "it hangs".to_owned() }
    }

    fn out_of_memory() -> DeviceError {
        DeviceError::OutOfMemory { what: "`x`".to_owned(), bytes: 64, device: "a GPU".to_owned() }
    }

    fn not_computed(error: Error) -> Error {
        Error::NotComputed { op: "exp", error: Box::new(error) }
    }

    #[test]
    fn the_devices_error_is_found_in_all_that_wrap_it() {
        for error in [Error::from(lost()), at("step", "exp")(lost()), not_computed(lost().into())] {
            assert!(matches!(error.device(), Some(DeviceError::Lost { .. })), "{error}");
            assert!(error.is_lost() && !error.is_out_of_memory(), "{error}");
        }
        let wrapped = not_computed(not_computed(at("tensor", "x")(out_of_memory())));
        assert!(wrapped.is_out_of_memory() && !wrapped.is_lost(), "{wrapped}");
        let budget = Error::Budget { what: "x".to_owned(), bytes: 2, held: 1, budget: 2 };
        for error in [Error::Poisoned, budget] {
            assert!(error.device().is_none() && !error.is_lost() && !error.is_out_of_memory(), "{error}");
        }
    }

    #[test]
    fn sources_lead_to_the_devices_error() {
        let error = not_computed(at("step", "exp")(lost()));
        let at_the_step = error.source().unwrap();
        let of_the_device = at_the_step.source().unwrap();
        assert_eq!(error.to_string(), format!("`exp` was not computed: {at_the_step}"));
        assert_eq!(at_the_step.to_string(), format!("step `exp`: {of_the_device}"));
        assert_eq!(of_the_device.to_string(), lost().to_string());
        assert!(of_the_device.source().is_none());
        // What only passes an error on is not a link of its own.
        assert!(Error::from(lost()).source().is_none());
    }
}
