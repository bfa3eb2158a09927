//! Pooling, resizing and sampling against their references: one, two and three spatial axes, every attribute, strided operands, on every device.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::{Values, check, compare, computes, devices, tolerance};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::pull::sample::{GridSample, Outside, Sampling};
use trefoil_graph::ops::{Alignment, BlockOrder, Interpolation, Nearest, Pooling, ResizeAxis, Window};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Options, Symbol, Tensor,
    reference,
};

const F32: ElementType = ElementType::F32;

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A graph with its inputs; ops are added to it as outputs.
struct Case {
    graph: Graph,
    inputs: Vec<(String, Values)>,
    outputs: usize,
    element: ElementType,
    tolerance: f64,
}

impl Case {
    fn new(element: ElementType) -> Self {
        let tolerance = tolerance(element);
        Self { graph: Graph::new(), inputs: Vec::new(), outputs: 0, element, tolerance }
    }

    fn given(&mut self, values: Values, extents: &[usize]) -> Tensor {
        let name = format!("x{}", self.inputs.len());
        let tensor = self.graph.input(&name, self.element, shape(extents)).unwrap();
        self.inputs.push((name, values));
        tensor
    }

    /// An input whose first two axes lie in memory the other way round.
    fn input(&mut self, extents: &[usize]) -> Tensor {
        let name = format!("x{}", self.inputs.len());
        let values = Values::of(self.element, extents.iter().product(), self.inputs.len() as u32 + 1, 2.0);
        self.inputs.push((name.clone(), values));
        let mut there = extents.to_vec();
        there.swap(0, 1);
        let x = self.graph.input(&name, self.element, shape(&there)).unwrap();
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.swap(0, 1);
        self.graph.transpose(x, &order).unwrap()
    }

    fn output(&mut self, tensor: Result<Tensor, GraphError>) {
        let name = format!("y{}", self.outputs);
        self.outputs += 1;
        self.graph.output(&name, tensor.unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap();
    }

    fn check(&self) {
        let inputs: Vec<(&str, Values)> =
            self.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        for device in devices() {
            let compiled = Executable::compile(&self.graph, &Model::new(), &device, &Options::default());
            if !computes(&device, self.element) {
                assert!(matches!(compiled, Err(Error::Lacking { .. })), "{:?}", self.element);
                continue;
            }
            let executable = compiled.unwrap_or_else(|error| panic!("{error} on {}", device.properties().name));
            compare(&self.graph, &executable, &inputs, &Extents::new(), self.tolerance);
        }
    }
}

type Build<'a> = &'a dyn Fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>;

/// The references of two results for the same input differ, in shape or in a value.
fn differ(about: &str, extents: &[usize], one: Build<'_>, other: Build<'_>) {
    let result = |op: Build<'_>| {
        let mut graph = Graph::new();
        let x = graph.input("x", F32, shape(extents)).unwrap();
        let y = op(&mut graph, x).unwrap_or_else(|error| panic!("{about}: {error}"));
        graph.output("y", y).unwrap();
        let values = (1..=extents.iter().product::<usize>()).map(|i| (i * i % 17) as f64 - 4.0).collect();
        let leaves = BTreeMap::from([("x".to_owned(), HostTensor { shape: extents.to_vec(), values })]);
        reference::evaluate(&graph, &leaves, &Extents::new()).unwrap()
    };
    assert_ne!(result(one), result(other), "{about} makes no difference");
}

/// Size, stride, dilation, padding in front and behind.
fn window([size, stride, dilation, front, behind]: [i64; 5], ceil: bool) -> Window {
    let [size, stride, dilation] = [size, stride, dilation].map(Dim::from);
    Window { size, stride, dilation, padding: [front, behind].map(Dim::from), ceil }
}

#[test]
fn pools() {
    for element in ElementType::ALL {
        if element == ElementType::Bool {
            continue;
        }
        let mut case = Case::new(element);
        let mut all = vec![Pooling::Max, Pooling::Min, Pooling::Sum, Pooling::PlaceOfMax];
        if element.is_float() {
            all.extend([Pooling::Mean, Pooling::MeanWithPadding, Pooling::Product]);
            all.extend([Pooling::Norm(2.0), Pooling::Norm(3.0)]);
        }
        for pooling in all {
            let sets: [(&[usize], Vec<Window>); 6] = [
                (&[2, 3, 11], vec![window([3, 2, 1, 1, 0], false)]),
                (&[2, 3, 11], vec![window([2, 3, 2, 0, 1], true)]),
                (&[1, 2, 7, 5], vec![window([3, 1, 1, 1, 2], false), window([2, 2, 1, 0, 1], true)]),
                (
                    &[3, 2, 4, 3, 5],
                    vec![window([2, 1, 1, 0, 0], false), window([3, 3, 1, 1, 1], false), window([2, 2, 2, 1, 1], true)],
                ),
                (&[1, 1, 1], vec![window([1, 1, 1, 0, 0], false)]),
                (&[0, 2, 4], vec![window([2, 2, 1, 0, 0], false)]),
            ];
            for (extents, windows) in sets {
                let x = case.input(extents);
                let y = case.graph.pool(x, pooling, &windows);
                case.output(y);
            }
        }
        if element.is_float() {
            let x = case.input(&[2, 3, 7, 10]);
            for parts in [&[3i64, 4][..], &[1, 1], &[7, 13], &[5]] {
                let parts: Vec<Dim> = parts.iter().map(|parts| Dim::from(*parts)).collect();
                let y = case.graph.adaptive_mean(x, &parts);
                case.output(y);
            }
        }
        case.check();
    }
}

/// A place times the extent, or times as many parts as there may be, is more than 32 bits hold, or nearly so.
#[test]
fn means_of_parts_of_long_axes() {
    let mut case = Case::new(F32);
    for (extent, parts) in [(480_000, 5000), (46_339, 46_340)] {
        let x = case.input(&[1, 1, extent]);
        let y = case.graph.adaptive_mean(x, &[Dim::from(parts)]);
        case.output(y);
    }
    case.check();
}

/// Integers of 64 bits, of which a float holds none so near to the ends, and of which half are negative to who takes their sign wrong.
#[test]
fn pools_of_long_integers_know_their_ends() {
    let unsigned = Values::U64(vec![1 << 63, 1, u64::MAX - 2047, 3, 1 << 62, 7]);
    let signed = Values::I64(vec![i64::MIN, i64::MIN + 1024, -1, i64::MAX - 1023, 5, i64::MIN]);
    for values in [unsigned, signed] {
        let element = values.element();
        let mut graph = Graph::new();
        let x = graph.input("x", element, shape(&[1, 6])).unwrap();
        for (name, pooling) in [("max", Pooling::Max), ("min", Pooling::Min), ("place", Pooling::PlaceOfMax)] {
            let y = graph.pool(x, pooling, &[window([2, 1, 1, 1, 0], false)]).unwrap();
            graph.output(name, y).unwrap();
        }
        for device in devices().into_iter().filter(|device| computes(device, element)) {
            let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
            compare(&graph, &executable, &[("x", values.clone())], &Extents::new(), 0.0);
        }
    }
}

#[test]
fn a_nan_wins() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, shape(&[1, 6])).unwrap();
    for (name, pooling) in [("max", Pooling::Max), ("min", Pooling::Min), ("place", Pooling::PlaceOfMax)] {
        let y = graph.pool(x, pooling, &[window([3, 3, 1, 0, 0], false)]).unwrap();
        graph.output(name, y).unwrap();
    }
    let values = Values::F32(vec![1.0, f32::NAN, 2.0, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        compare(&graph, &executable, &[("x", values.clone())], &Extents::new(), 0.0);
    }
}

#[test]
fn resizes() {
    let interpolations = [
        Interpolation::Nearest(Nearest::PreferLower),
        Interpolation::Nearest(Nearest::PreferUpper),
        Interpolation::Nearest(Nearest::Lower),
        Interpolation::Nearest(Nearest::Upper),
        Interpolation::Linear,
        Interpolation::Cubic { a: -0.75, within: false },
        Interpolation::Cubic { a: -0.5, within: true },
    ];
    let alignments = [
        Alignment::HalfPixel,
        Alignment::Corners,
        Alignment::Asymmetric,
        Alignment::At { step: 5, start: -3, over: 7 },
    ];
    for element in [F32, ElementType::F16, ElementType::BF16, ElementType::F64] {
        let mut case = Case::new(element);
        for (index, interpolation) in interpolations.into_iter().enumerate() {
            for (turn, alignment) in alignments.iter().enumerate() {
                let axis = |extent: usize| ResizeAxis { extent: Dim::from(extent), alignment: alignment.clone() };
                let x = case.input(&[2, 3, 5]);
                let y = case.graph.resize(x, &[axis([1, 4, 7, 10][(index + turn) % 4])], interpolation);
                case.output(y);
                let x = case.input(&[1, 2, 4, 7]);
                let y = case.graph.resize(x, &[axis(9), axis(3)], interpolation);
                case.output(y);
            }
        }
        let x = case.input(&[1, 2, 3, 2, 4]);
        let y =
            case.graph.resize(x, &[ResizeAxis::new(2), ResizeAxis::new(5), ResizeAxis::new(4)], Interpolation::Linear);
        case.output(y);
        case.check();
    }
    for element in [ElementType::U8, ElementType::I64, ElementType::Bool] {
        let mut case = Case::new(element);
        let x = case.input(&[1, 3, 5]);
        let y = case.graph.resize(x, &[ResizeAxis::new(13)], interpolations[0]);
        case.output(y);
        let compiled: Vec<_> = devices()
            .iter()
            .map(|device| Executable::compile(&case.graph, &Model::new(), device, &Options::default()).unwrap())
            .collect();
        for executable in compiled {
            compare(&case.graph, &executable, &[("x0", case.inputs[0].1.clone())], &Extents::new(), 0.0);
        }
    }
}

/// Places that are counted nearly as far as they may be.
#[test]
fn the_nearest_of_far_places() {
    let mut case = Case::new(F32);
    let x = case.input(&[2, 3, 5]);
    for nearest in [Nearest::PreferLower, Nearest::PreferUpper, Nearest::Lower, Nearest::Upper] {
        let alignment = Alignment::At { step: 104_000_000, start: -90_000_000, over: 75_000_000 };
        let axis = ResizeAxis { extent: Dim::from(6), alignment };
        let y = case.graph.resize(x, &[axis], Interpolation::Nearest(nearest));
        case.output(y);
    }
    case.check();
}

#[test]
fn samples() {
    for element in [F32, ElementType::F64] {
        let mut case = Case::new(element);
        // Places that are exact, so that no rounding decides between neighbours.
        case.tolerance = case.tolerance.max(1e-12) * 8.0;
        for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
            for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
                for align_corners in [false, true] {
                    let how = GridSample { sampling, outside, align_corners };
                    for (x, grid) in [
                        ([2usize, 3, 5, 9].to_vec(), [2usize, 3, 4, 2].to_vec()),
                        (vec![1, 2, 5], vec![1, 7, 1]),
                        (vec![1, 1, 2, 1, 4], vec![1, 2, 2, 3, 3]),
                    ] {
                        // Cubes of 64 neighbours take long to compile, and are nothing new.
                        if sampling == Sampling::Cubic && x.len() == 5 {
                            continue;
                        }
                        let (x, grid) = (case.input(&x), case.input(&grid));
                        let y = case.graph.grid_sample(x, grid, how);
                        case.output(y);
                    }
                }
            }
        }
        case.check();
    }
}

/// Beyond a border each of four neighbours is the outermost element, with the weight that it has.
#[test]
fn cubes_at_borders() {
    let mut case = Case::new(F32);
    let x = case.given(Values::F32(vec![0.0, 1.0, 2.0, 3.0]), &[1, 1, 4]);
    // Place -0.5, and ever further ones.
    let places = vec![-4.0 / 3.0, -5.0, 3.0, f32::MAX, f32::NEG_INFINITY, f32::INFINITY];
    let grid = case.given(Values::F32(places), &[1, 6, 1]);
    let how = GridSample { sampling: Sampling::Cubic, outside: Outside::Border, align_corners: true };
    let y = case.graph.grid_sample(x, grid, how);
    case.output(y);
    case.check();
    let leaves = case.inputs.iter().map(|(name, values)| (name.clone(), values.host())).collect();
    let found = &reference::evaluate(&case.graph, &leaves, &Extents::new()).unwrap()["y0"].values;
    let wanted = [-0.09375, 0.0, 3.0, 3.0, 0.0, 3.0];
    assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-6), "{found:?}");
}

#[test]
fn samples_at_no_place_and_infinitely_far() {
    for element in [F32, ElementType::F64] {
        let mut case = Case::new(element);
        let places = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30];
        let values = match element {
            F32 => Values::F32(places.iter().map(|place| *place as f32).collect()),
            _ => Values::F64(places.to_vec()),
        };
        let grid = case.given(values, &[1, 5, 1]);
        let xs = [case.input(&[1, 1, 4]), case.input(&[1, 1, 1])];
        for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
            for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
                for align_corners in [false, true] {
                    for x in xs {
                        let y = case.graph.grid_sample(x, grid, GridSample { sampling, outside, align_corners });
                        case.output(y);
                    }
                }
            }
        }
        case.check();
    }
}

/// What lies outside is 0, whatever the first element is.
#[test]
fn zeros_outside_are_no_elements() {
    let mut case = Case::new(F32);
    let x = case.given(Values::F32(vec![f32::INFINITY, 2.0, 3.0, f32::NAN]), &[1, 1, 4]);
    let grid = case.given(Values::F32(vec![1.5, -1.5, 0.0, 1.1, -9.0]), &[1, 5, 1]);
    for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
        let how = GridSample { sampling, outside: Outside::Zeros, align_corners: false };
        let y = case.graph.grid_sample(x, grid, how);
        case.output(y);
    }
    case.check();
}

/// As of a sum, where infinity times 0 is no number.
#[test]
fn neighbours_without_weight_count() {
    let mut case = Case::new(F32);
    let x = case.given(Values::F32(vec![1.0, f32::INFINITY]), &[1, 2]);
    for interpolation in [Interpolation::Linear, Interpolation::Cubic { a: -0.5, within: true }] {
        let y = case.graph.resize(x, &[ResizeAxis::new(2)], interpolation);
        case.output(y);
    }
    // With weights along two axes, of which either may be 0.
    let x = case.given(Values::F32(vec![1.0, 2.0, -3.0, f32::INFINITY]), &[2, 2]);
    for extents in [[2i64, 2], [3, 2], [1, 3], [5, 4]] {
        let y = case.graph.resize(x, &extents.map(ResizeAxis::new), Interpolation::Linear);
        case.output(y);
    }
    case.check();
}

/// What the processor has beside the expression.
const ON_HOST: &str = "linear resize on the host";

/// By a function of the processor itself, which is what it takes, and by the expression.
#[test]
fn linear_resizes_on_the_processor() {
    // To more elements and to fewer, to one and from one, by odd factors; of one row and of many; over one, two and three axes.
    let all: [(&[usize], &[i64]); 15] = [
        (&[2, 3, 8], &[16]),
        (&[2, 3, 17], &[5]),
        (&[3, 2, 1], &[7]),
        (&[1, 4, 9], &[1]),
        (&[5, 3], &[3]),
        (&[2, 3, 5, 7], &[10, 14]),
        (&[1, 2, 9, 12], &[4, 5]),
        (&[2, 1, 1, 6], &[3, 1]),
        (&[1, 1, 13, 1], &[1, 29]),
        (&[3, 4, 6, 6], &[6, 6]),
        (&[2, 1, 3, 4, 5], &[5, 2, 9]),
        (&[1, 2, 1, 1, 1], &[2, 2, 2]),
        (&[2, 3, 4], &[3, 2, 7]),
        // Few of many elements.
        (&[1, 2, 100], &[3]),
        (&[2, 2, 3, 70], &[4, 2]),
    ];
    let alignments = [
        Alignment::HalfPixel,
        Alignment::Corners,
        Alignment::Asymmetric,
        Alignment::At { step: 5, start: -3, over: 7 },
        Alignment::At { step: -3, start: 11, over: 4 },
    ];
    for element in [F32, ElementType::F16, ElementType::BF16] {
        let mut case = Case::new(element);
        for (from, to) in all {
            // Its first two axes lie in memory the other way round.
            let x = case.input(from);
            for alignment in &alignments {
                let axis = |extent: &i64| ResizeAxis { extent: Dim::from(*extent), alignment: alignment.clone() };
                let axes: Vec<ResizeAxis> = to.iter().map(axis).collect();
                let y = case.graph.resize(x, &axes, Interpolation::Linear);
                case.output(y);
            }
        }
        let inputs: Vec<(&str, Values)> =
            case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        let resize = case.graph.nodes().iter().find(|node| node.op.name() == "resize").unwrap();
        let ways = resize.op.kind().ways();
        assert!(ways.len() == 2 && ways.contains(&ON_HOST), "{ways:?}");
        for device in devices().iter().filter(|device| device.kind() == DeviceKind::Cpu) {
            for forced in [None, Some(ways[0]), Some(ways[1])] {
                let force = forced.map(|way| ("resize".to_owned(), way.to_owned())).into_iter().collect();
                let options = Options { force, ..Options::default() };
                let executable = Executable::compile(&case.graph, &Model::new(), device, &options).unwrap();
                compare(&case.graph, &executable, &inputs, &Extents::new(), case.tolerance);
                let (told, way) = (executable.explain(), forced.unwrap_or(ON_HOST));
                let taken = told.decisions.iter().filter(|decision| decision.candidate == way).count();
                assert_eq!(taken, all.len() * alignments.len(), "{way}: {told}");
            }
        }
    }
}

/// Elements at places of elements are these.
#[test]
fn linear_resizes_to_places_of_elements_are_exact() {
    let mut case = Case::new(F32);
    case.tolerance = 0.0;
    let at = |extent: usize, [step, start, over]: [i32; 3]| ResizeAxis {
        extent: Dim::from(extent),
        alignment: Alignment::At { step, start, over },
    };
    let x = case.input(&[2, 3, 7, 11]);
    for axes in [
        vec![at(11, [1, 0, 1])],
        vec![at(4, [2, 0, 1]), at(20, [3, -9, 3])],
        vec![at(3, [-1, 2, 1]), at(9, [-1, 8, 1]), at(5, [10, 0, 5])],
    ] {
        let y = case.graph.resize(x, &axes, Interpolation::Linear);
        case.output(y);
    }
    case.check();
}

/// Images and extents that each run decides.
#[test]
fn linear_resizes_of_as_many_elements_as_each_run_wants() {
    let (images, n) = (Symbol::new("images", 0, 3).unwrap(), Symbol::new("n", 1, 12).unwrap());
    for element in [F32, ElementType::F16] {
        let mut graph = Graph::new();
        let x = graph.input("x", element, (&images, 2, &n, 8)).unwrap();
        for (name, alignment) in [("edges", Alignment::HalfPixel), ("corners", Alignment::Corners)] {
            let axis = |extent: Dim| ResizeAxis { extent, alignment: alignment.clone() };
            let larger = [axis(Dim::from(&n) * 2i64), axis(Dim::from(13))];
            let y = graph.resize(x, &larger, Interpolation::Linear).unwrap();
            graph.output(&format!("larger by {name}"), y).unwrap();
            let fixed = [axis(Dim::from(5)), axis(Dim::from(&n))];
            let y = graph.resize(x, &fixed, Interpolation::Linear).unwrap();
            graph.output(&format!("of five rows by {name}"), y).unwrap();
        }
        for device in devices() {
            let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
            for [count, extent] in [[1usize, 1], [3, 12], [0, 5], [2, 7]] {
                let extents = Extents::with([(&images, count as i64), (&n, extent as i64)]).unwrap();
                let values = Values::of(element, count * 2 * extent * 8, 1, 2.0);
                compare(&graph, &executable, &[("x", values)], &extents, tolerance(element));
            }
        }
    }
}

/// A part of a tensor, and one of which each element is read several times; and along no axis.
#[test]
fn linear_resizes_of_views() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, shape(&[3, 6, 10])).unwrap();
    let part = graph.narrow(x, 2, 3, 5).unwrap();
    let row = graph.narrow(x, 1, 2, 1).unwrap();
    let rows = graph.expand(row, shape(&[3, 4, 10])).unwrap();
    for (name, x) in [("part", part), ("rows", rows)] {
        let y = graph.resize(x, &[ResizeAxis::new(7), ResizeAxis::new(9)], Interpolation::Linear).unwrap();
        graph.output(name, y).unwrap();
    }
    let same = graph.resize(x, &[], Interpolation::Linear).unwrap();
    graph.output("same", same).unwrap();
    for device in devices() {
        check(&graph, &device, &[("x", Values::of(F32, 180, 1, 2.0))], &Extents::new(), tolerance(F32));
    }
}

/// Sums with the coefficient are of doubles too.
#[test]
fn cubes_of_doubles() {
    let mut case = Case::new(ElementType::F64);
    case.tolerance = 1e-13;
    let x = case.input(&[3, 5]);
    for within in [false, true] {
        let y = case.graph.resize(x, &[ResizeAxis::new(9)], Interpolation::Cubic { a: -0.6, within });
        case.output(y);
    }
    case.check();
}

#[test]
fn blocks_of_channels() {
    let mut case = Case::new(F32);
    for order in [BlockOrder::ChannelFirst, BlockOrder::PositionFirst] {
        let x = case.input(&[2, 12, 3, 5]);
        let y = case.graph.depth_to_space(x, 2, order).unwrap();
        case.output(Ok(y));
        // One undoes the other.
        let back = case.graph.space_to_depth(y, 2, order).unwrap();
        let same = case.graph.sub(back, x);
        case.output(same);
    }
    let x = case.input(&[9, 2, 2]);
    let y = case.graph.pixel_shuffle(x, 3);
    case.output(y);
    case.check();
    // Channels 0 to 3 are the positions of channel 0's blocks.
    let mut graph = Graph::new();
    let x = graph.arange(0.0, 1.0, 8, F32).unwrap();
    let x = graph.reshape(x, shape(&[8, 1, 1])).unwrap();
    let (a, b) = (graph.pixel_shuffle(x, 2).unwrap(), graph.depth_to_space(x, 2, BlockOrder::PositionFirst).unwrap());
    graph.output("a", a).unwrap();
    graph.output("b", b).unwrap();
    let found = reference::evaluate(&graph, &BTreeMap::new(), &Extents::new()).unwrap();
    assert_eq!(found["a"].values, [0., 1., 2., 3., 4., 5., 6., 7.]);
    assert_eq!(found["b"].values, [0., 2., 4., 6., 1., 3., 5., 7.]);
}

/// Extents that each run decides, in multiples of a block.
#[test]
fn blocks_of_as_many_elements_as_each_run_wants() {
    let n = Symbol::with_multiple("n", 0, 12, 2).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", F32, (1, 4, &n, 8)).unwrap();
    for (name, order) in [("channels", BlockOrder::ChannelFirst), ("positions", BlockOrder::PositionFirst)] {
        let y = graph.space_to_depth(x, 2, order).unwrap();
        assert_eq!(graph.type_of(y).unwrap().to_string(), "f32[1, 16, n / 2, 4]");
        let back = graph.depth_to_space(y, 2, order).unwrap();
        assert_eq!(graph.type_of(back).unwrap(), graph.type_of(x).unwrap());
        let sum = graph.add(back, x).unwrap();
        graph.output(name, y).unwrap();
        graph.output(&format!("back from {name}"), sum).unwrap();
    }
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for rows in [2usize, 12, 0, 6] {
            println!("{rows} on {}", device.properties().name);
            let extents = Extents::with([(&n, rows as i64)]).unwrap();
            compare(&graph, &executable, &[("x", Values::of(F32, 32 * rows, 1, 2.0))], &extents, 0.0);
        }
    }
}

#[test]
fn attributes_count() {
    let pool = |pooling, numbers, ceil| move |g: &mut Graph, x| g.pool(x, pooling, &[window(numbers, ceil)]);
    let plain = [3, 2, 1, 1, 1];
    for (about, other) in [
        ("size", [2, 2, 1, 1, 1]),
        ("stride", [3, 1, 1, 1, 1]),
        ("dilation", [3, 2, 2, 1, 1]),
        ("padding in front", [3, 2, 1, 0, 1]),
        ("padding behind", [3, 2, 1, 1, 2]),
    ] {
        differ(about, &[2, 8], &pool(Pooling::Sum, plain, false), &pool(Pooling::Sum, other, false));
    }
    differ("ceil", &[2, 8], &pool(Pooling::Sum, [3, 2, 1, 0, 0], false), &pool(Pooling::Sum, [3, 2, 1, 0, 0], true));
    let all = [
        Pooling::Max,
        Pooling::Min,
        Pooling::Sum,
        Pooling::Product,
        Pooling::Mean,
        Pooling::MeanWithPadding,
        Pooling::Norm(2.0),
        Pooling::Norm(3.0),
        Pooling::PlaceOfMax,
    ];
    for (index, one) in all.iter().enumerate() {
        for other in &all[..index] {
            differ("pooling", &[2, 9], &pool(*one, plain, false), &pool(*other, plain, false));
        }
    }
    let parts = |count: i64| move |g: &mut Graph, x| g.adaptive_mean(x, &[Dim::from(count)]);
    differ("parts", &[2, 9], &parts(2), &parts(3));
    let resize = |extent: i64, alignment: Alignment, interpolation| {
        move |g: &mut Graph, x| {
            g.resize(x, &[ResizeAxis { extent: Dim::from(extent), alignment: alignment.clone() }], interpolation)
        }
    };
    let linear = Interpolation::Linear;
    differ("extent", &[1, 5], &resize(7, Alignment::HalfPixel, linear), &resize(8, Alignment::HalfPixel, linear));
    let at = |step, start, over| Alignment::At { step, start, over };
    let alignments = [
        Alignment::HalfPixel,
        Alignment::Corners,
        Alignment::Asymmetric,
        at(1, 0, 3),
        at(2, 0, 5),
        at(1, 1, 3),
        at(1, 0, 4),
    ];
    for (index, one) in alignments.iter().enumerate() {
        for other in &alignments[..index] {
            differ("alignment", &[1, 5], &resize(7, one.clone(), linear), &resize(7, other.clone(), linear));
        }
    }
    let cubic = |a, within| Interpolation::Cubic { a, within };
    let ways = [linear, cubic(-0.5, false), cubic(-0.75, false), cubic(-0.75, true)];
    let nearest =
        [Nearest::PreferLower, Nearest::PreferUpper, Nearest::Lower, Nearest::Upper].map(Interpolation::Nearest);
    let ways = [&ways[..], &nearest].concat();
    for (index, one) in ways.iter().enumerate() {
        for other in &ways[..index] {
            let quarters = at(1, 0, 4);
            differ("interpolation", &[1, 5], &resize(9, quarters.clone(), *one), &resize(9, quarters, *other));
        }
    }
    let sample = |sampling, outside, align_corners| {
        move |g: &mut Graph, x| {
            let grid = g.constant(F32, shape(&[1, 6, 1]), &[-1.3f32, -0.9, 0.1, 0.55, 1.0, 1.7])?;
            g.grid_sample(x, grid, GridSample { sampling, outside, align_corners })
        }
    };
    let x = &[1usize, 2, 5][..];
    let (near, line, cube) = (Sampling::Nearest, Sampling::Linear, Sampling::Cubic);
    differ("sampling", x, &sample(near, Outside::Zeros, false), &sample(line, Outside::Zeros, false));
    differ("sampling", x, &sample(cube, Outside::Zeros, false), &sample(line, Outside::Zeros, false));
    differ("outside", x, &sample(line, Outside::Zeros, false), &sample(line, Outside::Border, false));
    differ("outside", x, &sample(line, Outside::Reflection, false), &sample(line, Outside::Border, false));
    differ("align_corners", x, &sample(line, Outside::Zeros, false), &sample(line, Outside::Zeros, true));
}

/// Of a window that meets no element the largest is the least number of the type, and the other way round.
#[test]
fn windows_of_integers_without_any_element() {
    for (element, least, most) in [
        (ElementType::I8, -128.0, 127.0),
        (ElementType::I16, -32_768.0, 32_767.0),
        (ElementType::I32, -2_147_483_648.0, 2_147_483_647.0),
        (ElementType::U16, 0.0, 65_535.0),
    ] {
        for device in devices() {
            let mut graph = Graph::new();
            let x = graph.input("x", F32, shape(&[1, 1, 1])).unwrap();
            let x = graph.cast(x, element).unwrap();
            for (name, pooling) in [("largest", Pooling::Max), ("smallest", Pooling::Min)] {
                // Its elements are two places before and behind the one that there is.
                let y = graph.pool(x, pooling, &[window([2, 1, 3, 1, 2], false)]).unwrap();
                graph.output(name, y).unwrap();
            }
            let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
            let outputs = executable.run(&[("x", (&[5f32]).into())], &Extents::new()).unwrap();
            for (name, wanted) in [("largest", least), ("smallest", most)] {
                let values = outputs.host(name).unwrap().values;
                assert_eq!(values, [wanted], "{name} of {element} on {}", device.properties().name);
            }
        }
    }
}

#[test]
fn mistakes() {
    let refused = |result: Result<Tensor, GraphError>| result.unwrap_err().to_string();
    let mut g = Graph::new();
    let x = g.input("x", F32, shape(&[2, 3, 6])).unwrap();
    let i = g.input("i", ElementType::I64, shape(&[2, 3, 6])).unwrap();
    let u = g.input("u", ElementType::U8, shape(&[2, 3, 6])).unwrap();
    assert!(
        refused(g.pool(x, Pooling::Max, &[window([9, 1, 1, 0, 0], false)])).contains("axis 2 to hold a window of 9")
    );
    assert!(refused(g.pool(x, Pooling::Max, &[window([2, 0, 1, 0, 0], false)])).contains("at least 1"));
    assert!(refused(g.pool(x, Pooling::Max, &[window([2, 1, 1, 2, 0], false)])).contains("padding from 0 to less"));
    assert!(refused(g.pool(i, Pooling::Mean, &[window([2, 1, 1, 0, 0], false)])).contains("cast"));
    assert!(refused(g.pool(u, Pooling::Mean, &[window([2, 1, 1, 0, 0], false)])).contains("cast"));
    assert!(refused(g.pool(x, Pooling::Norm(-1.0), &[window([2, 1, 1, 0, 0], false)])).contains("power"));
    assert!(refused(g.resize(u, &[ResizeAxis::new(3)], Interpolation::Linear)).contains("cast"));
    assert!(refused(g.resize(x, &[ResizeAxis::new(-3)], Interpolation::Linear)).contains("not negative"));
    assert!(refused(g.resize(x, &[ResizeAxis::new(1 << 30)], Interpolation::Linear)).contains("counted below"));
    // Twice what such places are counted to is no coordinate.
    let far = Alignment::At { step: 200_000_000, start: 0, over: 200_000_000 };
    let far = ResizeAxis { extent: Dim::from(6), alignment: far };
    assert!(refused(g.resize(x, &[far], Interpolation::Nearest(Nearest::Upper))).contains("counted below"));
    assert!(refused(g.adaptive_mean(x, &[Dim::from(1 << 30)])).contains("what they leave of the extent"));
    let long = g.input("long", F32, shape(&[1, 480_000])).unwrap();
    assert!(refused(g.adaptive_mean(long, &[Dim::from(50_000)])).contains("what they leave of the extent"));
    let how = GridSample { sampling: Sampling::Linear, outside: Outside::Zeros, align_corners: false };
    assert!(refused(g.grid_sample(x, x, how)).contains("1 axes of places and 1 coordinates"));
    assert!(refused(g.depth_to_space(x, 2, BlockOrder::ChannelFirst)).contains("a multiple of 4 channels"));
    assert!(refused(g.space_to_depth(x, 4, BlockOrder::ChannelFirst)).contains("multiples of 4"));
}
