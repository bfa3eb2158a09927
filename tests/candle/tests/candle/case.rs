//! An op as both have it, and the comparison.

use candle_core::{self as candle, DType};
use trefoil::artefact::Feature;
use trefoil::graph::graph::GraphError;
use trefoil::graph::op::HostTensor;
use trefoil::graph::ops::map::Function;
use trefoil::graph::{Data, Dim, ElementType, Executable, Extents, Graph, Model, Options, Tensor, reference};
use trefoil::{Device, bf16, f16};

use crate::common::{Subject, devices};
use crate::numbers::numbers;

use ElementType::{BF16, Bool, F16, F32, F64, I16, I32, I64, U8, U32};

/// The floats.
pub const FLOATS: &[ElementType] = &[F32, F16, BF16, F64];
/// The numbers that both have.
pub const NUMBERS: &[ElementType] = &[F32, F16, BF16, F64, U8, U32, I16, I32, I64];
/// Those of them with a sign.
pub const SIGNED: &[ElementType] = &[F32, F16, BF16, F64, I16, I32, I64];

/// What an input holds; what has no type here is of the case's.
#[derive(Clone, Debug)]
pub enum Input {
    /// Floats between -3 and 3, integers between -11 and 11, or from 0 on.
    Numbers(Vec<usize>),
    /// Floats between 0.01 and 3, integers between 1 and 11.
    Positive(Vec<usize>),
    /// Numbers between -300 and 300, of bytes from 0 on.
    Wide(Vec<usize>),
    /// Integers, each once, in no order.
    Shuffled(Vec<usize>),
    /// Integers of a type from 0 up to a number, and without it.
    Indices(Vec<usize>, usize, ElementType),
    /// Bools.
    Mask(Vec<usize>),
}

use Input::{Indices, Mask, Numbers, Positive, Shuffled, Wide};

/// How far a result may be from candle's.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// It is the same.
    Exact,
    /// As far as the table of functions says of that one.
    Function(&'static Function),
    /// As far as sums may be.
    Sum,
}

type Ours = Box<dyn Fn(&mut Graph, &[Tensor]) -> Result<Tensor, GraphError>>;
type Theirs = Box<dyn Fn(&[candle::Tensor]) -> candle::Result<candle::Tensor>>;

/// An op as both have it.
pub struct Case {
    name: String,
    types: Vec<ElementType>,
    gives: Option<ElementType>,
    is_long: bool,
    inputs: Vec<Input>,
    allowed: Allowed,
    ours: Ours,
    theirs: Theirs,
}

impl Case {
    /// A case for elements of each of `types`.
    pub fn new(
        name: impl Into<String>,
        types: &[ElementType],
        inputs: impl IntoIterator<Item = Input>,
        allowed: Allowed,
        ours: impl Fn(&mut Graph, &[Tensor]) -> Result<Tensor, GraphError> + 'static,
        theirs: impl Fn(&[candle::Tensor]) -> candle::Result<candle::Tensor> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            types: types.to_vec(),
            gives: None,
            is_long: false,
            inputs: inputs.into_iter().collect(),
            allowed,
            ours: Box::new(ours),
            theirs: Box::new(theirs),
        }
    }

    /// It computes with elements of that type too, which some devices do not.
    pub fn gives(self, element: ElementType) -> Self {
        Self { gives: Some(element), ..self }
    }

    /// Its kernels are long: a processor that plays a GPU compiles them for minutes, and is not asked.
    pub fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    fn runs_on(&self, device: &Device) -> bool {
        self.gives.is_none_or(|element| computes(device, element)) && !(self.is_long && device.properties().software)
    }
}

/// Extents as ours.
pub fn dims(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

impl Input {
    fn shape(&self) -> &[usize] {
        match self {
            Numbers(shape) | Positive(shape) | Wide(shape) | Shuffled(shape) | Indices(shape, ..) | Mask(shape) => {
                shape
            }
        }
    }

    fn element(&self, of_case: ElementType) -> ElementType {
        match self {
            Indices(_, _, element) => *element,
            Mask(_) => Bool,
            _ => of_case,
        }
    }

    /// Its values, before they are rounded to its type.
    fn values(&self, element: ElementType, seed: u32) -> Vec<f64> {
        let count = self.shape().iter().product();
        let (is_float, is_signed) = (element.is_float(), element.scalar().is_signed() || element.is_float());
        let all = |range: f32, of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            numbers(count, seed, range).into_iter().map(|x| of(f64::from(x))).collect()
        };
        let signed = |x: f64| if is_signed { x } else { x.abs() };
        let whole = |x: f64| if is_float { x } else { x.trunc() };
        match self {
            Numbers(_) => all(if is_float { 3.0 } else { 11.5 }, &|x| whole(signed(x))),
            Positive(_) if is_float => all(2.99, &|x| x.abs() + 0.01),
            Positive(_) => all(10.5, &|x| x.abs().trunc() + 1.0),
            Wide(_) if element == U8 => all(255.0, &|x| x.abs().trunc()),
            Wide(_) => all(300.0, &|x| whole(signed(x))),
            Shuffled(_) => {
                // Steps of a prime that no extent here is a multiple of.
                let lowest = if is_signed { count / 2 } else { 0 };
                (0..count).map(|at| (at * 7919 % count) as f64 - lowest as f64).collect()
            }
            Indices(_, below, _) => all(0.5, &|x| ((x + 0.5) * *below as f64).floor().min(*below as f64 - 1.0)),
            Mask(_) => all(1.0, &|x| f64::from(u8::from(x > 0.0))),
        }
    }
}

/// Values as they lie in memory.
fn stored(values: &[f64], element: ElementType) -> Vec<u8> {
    let all = |of: &dyn Fn(f64) -> Vec<u8>| values.iter().flat_map(|value| of(*value)).collect();
    match element {
        F16 => all(&|x| f16::from_f64(x).to_le_bytes().to_vec()),
        BF16 => all(&|x| bf16::from_f64(x).to_le_bytes().to_vec()),
        F32 => all(&|x| (x as f32).to_le_bytes().to_vec()),
        F64 => all(&|x| x.to_le_bytes().to_vec()),
        _ => all(&|x| (x as i64).to_le_bytes()[..element.bytes() as usize].to_vec()),
    }
}

/// What candle computes with for elements of a type: floats are widened.
fn judging(element: ElementType) -> DType {
    match element {
        U8 | Bool => DType::U8,
        U32 => DType::U32,
        I16 => DType::I16,
        I32 => DType::I32,
        I64 => DType::I64,
        _ => DType::F64,
    }
}

/// How an input's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// In order.
    Contiguous,
    /// With the last two axes the other way around.
    Turned,
}

impl Memory {
    fn turns(self, input: &Input) -> bool {
        self == Self::Turned && input.shape().len() >= 2
    }
}

/// The order of axes that turns the last two.
fn turn(rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 2, rank - 1);
    axes
}

/// A graph of all cases for elements of a type, its inputs, and what candle gives.
struct Trial<'a> {
    graph: Graph,
    inputs: Vec<(String, ElementType, Vec<u8>)>,
    wanted: Vec<(&'a Case, String, HostTensor)>,
}

impl<'a> Trial<'a> {
    fn new(cases: impl Iterator<Item = (usize, &'a Case)>, element: ElementType, memory: Memory) -> Self {
        let mut trial = Self { graph: Graph::new(), inputs: Vec::new(), wanted: Vec::new() };
        for (at, case) in cases {
            trial.add(at, case, element, memory);
        }
        trial
    }

    fn add(&mut self, at: usize, case: &'a Case, of_case: ElementType, memory: Memory) {
        let name = format!("{at}: {} of {of_case}, {memory:?}", case.name);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (input, seed) in case.inputs.iter().zip(1..) {
            let (element, mut shape) = (input.element(of_case), input.shape().to_vec());
            let rank = shape.len();
            let turns = memory.turns(input);
            if turns {
                shape.swap(rank - 2, rank - 1);
            }
            let bytes = stored(&input.values(element, seed), element);
            let leaf = format!("input {seed} of {name}");
            let mut x = self.graph.input(&leaf, element, dims(&shape)).unwrap();
            let mut y = candle::Tensor::from_vec(reference::values(element, &bytes), shape, &candle::Device::Cpu)
                .and_then(|y| y.to_dtype(judging(element)))
                .unwrap();
            if turns {
                x = self.graph.transpose(x, &turn(rank)).unwrap();
                y = y.transpose(rank - 2, rank - 1).unwrap();
            }
            self.inputs.push((leaf, element, bytes));
            ours.push(x);
            theirs.push(y);
        }
        let y = (case.ours)(&mut self.graph, &ours).unwrap_or_else(|error| panic!("{name}: {error}"));
        self.graph.output(&name, y).unwrap();
        // Some of candle's ops want contiguous memory, and say so.
        let wanted = (case.theirs)(&theirs).or_else(|_| {
            let contiguous: candle::Result<Vec<_>> = theirs.iter().map(candle::Tensor::contiguous).collect();
            (case.theirs)(&contiguous?)
        });
        let wanted = wanted.unwrap_or_else(|error| panic!("{name}, candle: {error}"));
        let shape = wanted.dims().to_vec();
        let values = wanted.to_dtype(DType::F64).and_then(|y| y.flatten_all()?.to_vec1()).unwrap();
        self.wanted.push((case, name, HostTensor { shape, values }));
    }

    /// What is wrong on a device.
    fn run(&self, on: &str, device: &Device, of_case: ElementType) -> Vec<String> {
        let executable = Executable::compile(&self.graph, &Model::new(), device, &Options::default()).unwrap();
        let data: Vec<_> = self
            .inputs
            .iter()
            .map(|(name, element, bytes)| (name.as_str(), Data::from_bytes(*element, bytes).unwrap()))
            .collect();
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        let mut wrong = Vec::new();
        for (case, name, wanted) in &self.wanted {
            let got = outputs.host(name).unwrap();
            if got.shape != wanted.shape {
                wrong.push(format!("{name} on {on}: {:?}, of candle {:?}", got.shape, wanted.shape));
                continue;
            }
            let far = |(_, (got, wanted)): &(usize, (&f64, &f64))| !case.allowed.holds(**got, **wanted, of_case);
            if let Some((at, (got, wanted))) = got.values.iter().zip(&wanted.values).enumerate().find(far) {
                wrong.push(format!("{name} on {on}, [{at}]: {got:e}, of candle {wanted:e}"));
            }
        }
        wrong
    }
}

impl Allowed {
    fn holds(self, got: f64, wanted: f64, element: ElementType) -> bool {
        if got == wanted || got.is_nan() && wanted.is_nan() {
            return true;
        }
        // Relative to an infinity, any number would be near.
        wanted.is_finite() && (got - wanted).abs() <= self.at(wanted, element)
    }

    fn at(self, wanted: f64, element: ElementType) -> f64 {
        match self {
            Self::Exact => 0.0,
            Self::Sum => reference::tolerance(element) * wanted.abs().max(1.0),
            Self::Function(function) if function.accuracy(element).at(3.0) == 0.0 => 0.0,
            Self::Function(function) => {
                // A unit of the last place is at most so much of a number; arguments are at most 3.
                let (unit, rounded, least) = match element {
                    // candle rounds to doubles too, and what it rounds is up to 3 before it cancels, as in `exp(x) - 1`.
                    F64 => (f64::EPSILON, 0.0, 4.0 * f64::EPSILON),
                    // Rounded once more, by half a unit, or half of the smallest number there is.
                    F16 => (f64::from(f32::EPSILON), f16::EPSILON.to_f64() / 2.0, 2f64.powi(-25)),
                    BF16 => (f64::from(f32::EPSILON), bf16::EPSILON.to_f64() / 2.0, 0.0),
                    F32 => (f64::from(f32::EPSILON), 0.0, 0.0),
                    _ => return 0.0,
                };
                (function.accuracy(element).at(3.0) * unit + rounded) * wanted.abs() + least
            }
        }
    }
}

/// Whether elements of a type are judged on a device: a processor that plays a GPU takes its time for each kernel, and what it makes of the others
/// is held to the ops' references.
fn judged(device: &Device, element: ElementType) -> bool {
    computes(device, element) && (!device.properties().software || matches!(element, F32 | I32))
}

/// Whether a device computes with elements of a type: those of 64 bits are optional.
fn computes(device: &Device, element: ElementType) -> bool {
    let features = device.properties().features;
    match element {
        F64 => features.has(Feature::Float64),
        I64 => features.has(Feature::Int64),
        _ => true,
    }
}

/// Runs the cases for every type, from memory in order and not, on every device, and fails with all that is wrong.
pub fn judge(cases: &[Case]) {
    let mut wrong = Vec::new();
    for Subject { name, device } in devices() {
        for element in NUMBERS.iter().copied().filter(|element| judged(&device, *element)) {
            for memory in [Memory::Contiguous, Memory::Turned] {
                let wanted = cases.iter().enumerate().filter(|(_, case)| {
                    let differs = memory == Memory::Contiguous || case.inputs.iter().any(|input| memory.turns(input));
                    case.types.contains(&element) && differs && case.runs_on(&device)
                });
                let trial = Trial::new(wanted, element, memory);
                if !trial.wanted.is_empty() {
                    wrong.extend(trial.run(&name, &device, element));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
