//! Small regions that need nothing of each other share kernels: the same results as apart, fewer steps, and where they must not.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::Case;
use common::{Values, compare, devices};
use trefoil_codegen::target::Profile;
use trefoil_dsl::device::Device;
use trefoil_graph::compile::fuse::beside::{MOST, NAME, SMALL};
use trefoil_graph::ops::Sweep;
use trefoil_graph::{Dim, ElementType, Executable, Explanation, Extents, Graph, Model, Options, Symbol, Tensor};

fn apart() -> Options {
    Options { forbid: [NAME.to_owned()].into(), ..Options::default() }
}

/// How many buffers a generated kernel binds at most.
fn most(device: &Device) -> usize {
    let portable = Profile::portable(device.kind().target()).max_storage_buffers;
    device.properties().limits.max_storage_buffers.min(portable) as usize
}

/// Runs a graph with small regions in shared kernels and apart, for each of these extents; tells what both do.
fn both(graph: &Graph, device: &Device, runs: &[(Vec<(&str, Values)>, Extents)]) -> [Explanation; 2] {
    [Options::default(), apart()].map(|options| {
        let executable = Executable::compile(graph, &Model::new(), device, &options)
            .unwrap_or_else(|error| panic!("on {}: {error}", device.properties().name));
        for (inputs, extents) in runs {
            compare(graph, &executable, inputs, extents, 1e-5);
        }
        executable.explain()
    })
}

fn of(case: &Case, device: &Device) -> [Explanation; 2] {
    let inputs = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    both(&case.graph, device, &[(inputs, Extents::new())])
}

#[test]
fn equal_small_regions_share_kernels() {
    for device in devices() {
        let mut case = Case::default();
        for number in 0..2 * MOST + 3 {
            let x = case.input(&format!("x{number}"), ElementType::F32, &[33, 7]);
            let y = case.graph.tanh(x).unwrap();
            let y = case.graph.mul(y, y).unwrap();
            case.output(&format!("y{number}"), y);
        }
        let [together, apart] = of(&case, &device);
        assert_eq!(apart.steps.len(), 2 * MOST + 3, "{apart}");
        // Each binds two buffers.
        let each = MOST.min(most(&device) / 2);
        assert_eq!(together.steps.len(), (2 * MOST + 3).div_ceil(each), "{together}");
        assert!(together.steps.iter().all(|step| step.uses.len() <= most(&device)), "{together}");
        assert_eq!(together.beside[0].regions.len(), each, "{together}");
        let why = together.beside[0].full.as_deref().unwrap_or_default();
        assert!(why.contains(if each == MOST { "16" } else { "buffers" }), "{together}");
        assert!(
            together.to_string().contains("beside each other, of 231 elements: tanh, mul; tanh, mul"),
            "{together}"
        );
        assert!(apart.beside.is_empty(), "{apart}");
    }
}

#[test]
fn regions_of_all_kinds_share_kernels() {
    for device in devices() {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[6, 10]);
        let row = case.input("row", ElementType::F32, &[10]);
        let turned = case.turned("turned", ElementType::F32, &[6, 10]);
        let number = case.input("number", ElementType::I32, &[60]);
        let small = case.input("small", ElementType::F16, &[3, 20]);
        let graph = &mut case.graph;
        let sum = graph.add(x, row).unwrap();
        let product = graph.mul(turned, x).unwrap();
        let square = graph.mul(number, number).unwrap();
        let half = graph.neg(small).unwrap();
        for (name, tensor) in [("sum", sum), ("product", product), ("square", square), ("half", half)] {
            case.output(name, tensor);
        }
        let [together, apart] = of(&case, &device);
        assert_eq!(apart.steps.len(), 4, "{apart}");
        // Nine buffers in all.
        assert_eq!(together.steps.len(), 9usize.div_ceil(most(&device).min(9)), "{together}");
    }
}

/// Rows that a kernel makes, and that two regions read, of which one by columns: it must see all of them before the other writes in their place.
fn turned_and_straight(graph: &mut Graph, rows: Tensor) -> [Tensor; 2] {
    let straight = graph.neg(rows).unwrap();
    let turned = graph.transpose(rows, &[1, 0]).unwrap();
    let turned = graph.abs(turned).unwrap();
    [straight, turned]
}

#[test]
fn nothing_is_written_over_that_a_neighbour_reads() {
    for device in devices() {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[48, 48]);
        let rows = case.graph.cumsum(x, -1, Sweep::default()).unwrap();
        let [straight, turned] = turned_and_straight(&mut case.graph, rows);
        // Not given out, so that they may lie anywhere.
        for (name, tensor) in [("straight", straight), ("turned", turned)] {
            let sum = case.graph.cumsum(tensor, -1, Sweep::default()).unwrap();
            case.output(name, sum);
        }
        let [together, apart] = of(&case, &device);
        assert!(together.steps.len() < apart.steps.len(), "{together}\n{apart}");
        assert_eq!(together.beside.len(), 1, "{together}");
    }
}

#[test]
fn what_is_large_or_needs_another_stays_apart() {
    for device in devices() {
        let mut case = Case::default();
        // Behind each other.
        let x = case.input("x", ElementType::F32, &[5, 8]);
        let first = case.graph.exp(x).unwrap();
        case.output("first", first);
        let turned = case.graph.transpose(first, &[1, 0]).unwrap();
        let second = case.graph.sqrt(turned).unwrap();
        case.output("second", second);
        // As far from the beginning, of another number of elements.
        let z = case.input("z", ElementType::F32, &[41]);
        let third = case.graph.exp(z).unwrap();
        case.output("third", third);
        // More bytes than are worth it.
        for name in ["large", "larger"] {
            let x = case.input(name, ElementType::F32, &[usize::try_from(SMALL).unwrap() / 4 + 1]);
            let y = case.graph.exp(x).unwrap();
            case.output(&format!("{name} y"), y);
        }
        let [together, apart] = of(&case, &device);
        assert!(together.beside.is_empty(), "{together}");
        assert_eq!(together.steps.len(), apart.steps.len(), "{together}\n{apart}");
    }
}

#[test]
fn small_whatever_the_symbols_are() {
    let (rows, many) = (Symbol::new("rows", 0, 40).unwrap(), Symbol::new("many", 1, 1 << 20).unwrap());
    let mut graph = Graph::new();
    let shapes = [("a", &rows), ("b", &rows), ("c", &many), ("d", &many)];
    for (name, symbol) in shapes {
        let x = graph.input(name, ElementType::F32, vec![Dim::from(symbol), Dim::from(9i64)]).unwrap();
        let y = graph.exp(x).unwrap();
        graph.output(&format!("{name} y"), y).unwrap();
    }
    let run = |r: i64, m: i64| {
        let values = |count: i64, seed| Values::of(ElementType::F32, 9 * count as usize, seed, 2.0);
        let mut extents = Extents::new();
        extents.set(&rows, r).unwrap();
        extents.set(&many, m).unwrap();
        let inputs = vec![("a", values(r, 1)), ("b", values(r, 2)), ("c", values(m, 3)), ("d", values(m, 4))];
        (inputs, extents)
    };
    for device in devices() {
        let [together, apart] = both(&graph, &device, &[run(40, 3), run(1, 70), run(0, 1), run(7, 5)]);
        assert_eq!([together.steps.len(), apart.steps.len()], [3, 4], "{together}");
    }
}
