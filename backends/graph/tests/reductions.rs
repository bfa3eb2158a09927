//! Every reduction of every element type over every set of axes, against its reference, on every device: awkward extents, few and many results, strided elements, extents that each run
//! decides, what is not a number, and what there is none of.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, compare, computes, devices, numbers};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::reduce::{Reduce, Reduction};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, GraphError, Model, Options, Symbol, Tensor};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// What rounding may make of results of a few hundred numbers below 3.
fn tolerance(element: ElementType, count: usize) -> f64 {
    match element {
        // A sum of numbers of either sign wanders as far as the root of how many there are, and is rounded there.
        ElementType::F32 => 1e-5f64.max(4.0 * f64::from(f32::EPSILON) * (count as f64).sqrt()),
        // A unit in the last place of a half.
        ElementType::F16 => 1e-3,
        ElementType::BF16 => 8e-3,
        ElementType::F64 => 2e-14f64.max(4.0 * f64::EPSILON * (count as f64).sqrt()),
        _ => 0.0,
    }
}

fn takes(reduction: Reduction, element: ElementType) -> bool {
    reduction.takes().any(|known| known == element)
}

/// Adds a reduction as its method does.
fn by_method(
    graph: &mut Graph,
    x: Tensor,
    reduction: Reduction,
    axes: &[isize],
    keep: bool,
    correction: u32,
) -> Result<Tensor, GraphError> {
    match reduction {
        Reduction::Sum => graph.sum(x, axes, keep),
        Reduction::Mean => graph.mean(x, axes, keep),
        Reduction::Prod => graph.prod(x, axes, keep),
        Reduction::Max => graph.max_over(x, axes, keep),
        Reduction::Min => graph.min_over(x, axes, keep),
        Reduction::Any => graph.any(x, axes, keep),
        Reduction::All => graph.all(x, axes, keep),
        Reduction::L1 => graph.l1(x, axes, keep),
        Reduction::L2 => graph.l2(x, axes, keep),
        Reduction::LogSumExp => graph.logsumexp(x, axes, keep),
        Reduction::Var => graph.var(x, axes, keep, correction),
        Reduction::CountNonzero => graph.count_nonzero(x, axes, keep),
        Reduction::ArgMax => graph.argmax(x, axes, keep),
        Reduction::ArgMin => graph.argmin(x, axes, keep),
        Reduction::LastArgMax => graph.last_argmax(x, axes, keep),
        Reduction::LastArgMin => graph.last_argmin(x, axes, keep),
    }
}

/// Adds a reduction over the axes whose bits are set; `keep` and the correction differ from set to set.
fn reduced(graph: &mut Graph, x: Tensor, reduction: Reduction, set: usize) {
    let rank = graph.type_of(x).unwrap().rank();
    let axes: Vec<isize> = (0..rank).filter(|axis| set >> axis & 1 == 1).map(usize::cast_signed).collect();
    let correction = if reduction == Reduction::Var { (set % 2) as u32 } else { 0 };
    let name = format!("{reduction:?} over {axes:?}");
    let y = by_method(graph, x, reduction, &axes, set % 3 == 1, correction).unwrap();
    graph.output(&name, y).unwrap();
}

/// Checks every reduction of an element type over the sets of axes.
fn all(
    devices: &[Device],
    element: ElementType,
    extents: &[usize],
    turned: bool,
    sets: impl Iterator<Item = usize> + Clone,
) {
    use Reduction::{ArgMax, ArgMin, LastArgMax, LastArgMin, Max, Min};
    let values = Values::of(element, extents.iter().product(), 5, 1.5);
    for reduction in Reduction::ALL.iter().filter(|reduction| takes(**reduction, element)) {
        let mut graph = Graph::new();
        let there: Vec<usize> = if turned { extents.iter().rev().copied().collect() } else { extents.to_vec() };
        let mut x = graph.input("x", element, shape(&there)).unwrap();
        if turned {
            let order: Vec<usize> = (0..extents.len()).rev().collect();
            x = graph.transpose(x, &order).unwrap();
        }
        for set in sets.clone() {
            let none = (0..extents.len()).any(|axis| set >> axis & 1 == 1 && extents[axis] == 0);
            let extreme = matches!(reduction, Max | Min | ArgMax | ArgMin | LastArgMax | LastArgMin);
            if !(none && extreme) {
                reduced(&mut graph, x, *reduction, set);
            }
        }
        for device in devices.iter().filter(|device| computes(device, element)) {
            println!("{reduction:?} of {element}{extents:?}, turned {turned}, on {}", device.properties().name);
            check(
                &graph,
                device,
                &[("x", values.clone())],
                &Extents::new(),
                tolerance(element, extents.iter().product()),
            );
        }
    }
}

#[test]
fn every_type_over_every_set_of_axes() {
    let devices = devices();
    for element in ElementType::ALL {
        for extents in [&[1usize][..], &[0, 3], &[7], &[257], &[3, 1, 5], &[2, 3, 4, 5]] {
            all(&devices, element, extents, false, 0..1 << extents.len());
        }
    }
}

#[test]
fn elements_that_do_not_follow_on_each_other() {
    let devices = devices();
    for element in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64, ElementType::I64] {
        all(&devices, element, &[4, 3, 8], true, 0..8);
        all(&devices, element, &[5, 6], true, 0..4);
    }
}

#[test]
fn rows_and_columns_of_many_lengths() {
    let devices = devices();
    for extents in [&[13usize, 17][..], &[37, 64], &[64, 37], &[5, 1021], &[1021, 5], &[300, 8], &[3, 2, 12, 4]] {
        all(&devices, ElementType::F32, extents, false, 1..1 << extents.len());
    }
}

/// A graph of some reductions of one input.
fn of(extents: &[usize], axes: &[isize], reductions: &[Reduction]) -> Graph {
    of_element(ElementType::F32, extents, axes, reductions)
}

fn of_element(element: ElementType, extents: &[usize], axes: &[isize], reductions: &[Reduction]) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", element, shape(extents)).unwrap();
    let set = axes.iter().map(|axis| 1 << axis.rem_euclid(extents.len() as isize)).sum();
    for reduction in reductions {
        reduced(&mut graph, x, *reduction, set);
    }
    graph
}

#[test]
fn few_results_are_made_of_pieces() {
    let devices = devices();
    use Reduction::{ArgMax, ArgMin, CountNonzero, L2, LastArgMax, LastArgMin, LogSumExp, Max, Sum, Var};
    for (extents, axes) in [
        (&[100_003usize][..], &[0isize][..]),
        (&[2, 50_021], &[-1]),
        (&[50_021, 2], &[0]),
        (&[20_011, 8], &[0]),
        (&[63, 65, 31], &[0, 2]),
        (&[63, 65, 32], &[1, 0]),
        (&[2, 200_003], &[0]),
        (&[2, 200_004], &[0]),
        (&[30_011, 3], &[1]),
    ] {
        let graph =
            of(extents, axes, &[Sum, Max, L2, LogSumExp, Var, CountNonzero, ArgMax, ArgMin, LastArgMax, LastArgMin]);
        let values = Values::F32(numbers(extents.iter().product(), 3, 1.0));
        for device in &devices {
            println!("{extents:?} over {axes:?} on {}", device.properties().name);
            let inputs = [("x", values.clone())];
            // Sums lose some units of the largest partial sum, a few hundred.
            let executable = check(&graph, device, &inputs, &Extents::new(), 1e-4);
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let run = || executable.run(&data, &Extents::new()).unwrap();
            let (first, second) = (run(), run());
            for (name, _) in graph.outputs() {
                assert_eq!(first.host(name).unwrap(), second.host(name).unwrap(), "`{name}` in two runs");
            }
        }
    }
}

/// Doubles and long integers whose upper words matter, in rows, columns and pieces.
#[test]
fn long_elements_in_pieces_and_to_their_last_bits() {
    use Reduction::{ArgMax, ArgMin, CountNonzero, LastArgMax, LastArgMin, LogSumExp, Max, Mean, Min, Prod, Sum, Var};
    let words: Vec<i64> = numbers(100_000, 3, 1.0).iter().map(|x| (f64::from(*x) * 2f64.powi(35)) as i64).collect();
    for (extents, axis) in [(&[100_000usize][..], 0isize), (&[50_000, 2], 0), (&[25_000, 4], 0), (&[4, 25_000], 1)] {
        for element in [ElementType::F64, ElementType::I64, ElementType::U64] {
            let mut graph = Graph::new();
            let x = graph.input("x", element, shape(extents)).unwrap();
            let all = [Sum, Mean, Max, Min, LogSumExp, Var, CountNonzero, ArgMax, ArgMin, LastArgMax, LastArgMin];
            for reduction in all.into_iter().filter(|reduction| takes(*reduction, element)) {
                reduced(&mut graph, x, reduction, 1 << axis);
            }
            let values = match element {
                ElementType::F64 => Values::F64(words.iter().map(|word| *word as f64 / 2f64.powi(34) - 0.3).collect()),
                ElementType::I64 => Values::I64(words.clone()),
                _ => Values::U64(words.iter().map(|word| word.cast_unsigned() >> 12).collect()),
            };
            for device in devices().iter().filter(|device| computes(device, element)) {
                println!("{element}{extents:?} on {}", device.properties().name);
                check(&graph, device, &[("x", values.clone())], &Extents::new(), 3e-13);
            }
        }
    }
    // What wraps, and what differs in its last bit alone: the host's own sums of all bits.
    let rows: [[u64; 6]; 2] =
        [[u64::MAX, 3, 1 << 63, (1 << 63) - 1, 1 << 63, 5], [7, u64::MAX - 1, u64::MAX, 0, 0, u64::MAX]];
    for device in devices().iter().filter(|device| computes(device, ElementType::U64)) {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::U64, shape(&[2, 6])).unwrap();
        let signed = graph.bitcast(x, ElementType::I64).unwrap();
        for (name, of) in [("u", x), ("i", signed)] {
            for reduction in [Sum, Prod, Max, Min, ArgMax, ArgMin, LastArgMax, LastArgMin] {
                let y = by_method(&mut graph, of, reduction, &[1], false, 0).unwrap();
                graph.output(&format!("{name} {reduction:?}"), y).unwrap();
            }
        }
        let executable = Executable::compile(&graph, &Model::new(), device, &Options::default()).unwrap();
        let outputs = executable.run(&[("x", rows.concat().as_slice().into())], &Extents::new()).unwrap();
        let longs = |name: &str| outputs.get::<u64>(name).unwrap().to_vec();
        let of = |f: fn(&[u64; 6]) -> u64| rows.iter().map(f).collect::<Vec<_>>();
        assert_eq!(longs("u Sum"), of(|row| row.iter().fold(0, |sum, x| sum.wrapping_add(*x))));
        assert_eq!(longs("u Prod"), of(|row| row.iter().fold(1, |product, x| product.wrapping_mul(*x))));
        assert_eq!(longs("u Max"), of(|row| *row.iter().max().unwrap()));
        assert_eq!(longs("u Min"), of(|row| *row.iter().min().unwrap()));
        let signed = |name: &str| outputs.get::<i64>(name).unwrap().to_vec();
        let of = |f: fn(&[i64]) -> i64| rows.iter().map(|row| f(&row.map(u64::cast_signed))).collect::<Vec<_>>();
        assert_eq!(signed("i Sum"), of(|row| row.iter().fold(0, |sum, x| sum.wrapping_add(*x))));
        assert_eq!(signed("i Prod"), of(|row| row.iter().fold(1, |product, x| product.wrapping_mul(*x))));
        assert_eq!(signed("i Max"), of(|row| *row.iter().max().unwrap()));
        assert_eq!(signed("i Min"), of(|row| *row.iter().min().unwrap()));
        let places = |name: &str| outputs.get::<u32>(name).unwrap().to_vec();
        assert_eq!(places("u ArgMax"), [0, 2]);
        assert_eq!(places("u ArgMin"), [1, 3]);
        assert_eq!(places("u LastArgMax"), [0, 5]);
        assert_eq!(places("u LastArgMin"), [1, 4]);
        // As signed ones: -1, 3, MIN, MAX, MIN, 5; 7, -2, -1, 0, 0, -1.
        assert_eq!(places("i ArgMax"), [3, 0]);
        assert_eq!(places("i ArgMin"), [2, 1]);
        assert_eq!(places("i LastArgMax"), [3, 0]);
        assert_eq!(places("i LastArgMin"), [4, 1]);
    }
}

#[test]
fn each_run_decides_extents() {
    let rows = Symbol::new("rows", 0, 700).unwrap();
    let columns = Symbol::new("columns", 1, 9000).unwrap();
    let mut graph = Graph::new();
    let ty = vec![Dim::from(&rows), Dim::from(&columns), Dim::from(4usize)];
    let x = graph.input("x", ElementType::F32, ty).unwrap();
    for (reduction, set) in [
        (Reduction::Sum, 1),
        (Reduction::Mean, 2),
        (Reduction::ArgMax, 2),
        (Reduction::ArgMin, 6),
        (Reduction::LastArgMax, 2),
        (Reduction::LastArgMin, 6),
        (Reduction::Var, 7),
        (Reduction::Mean, 5),
        (Reduction::Sum, 7),
        (Reduction::LogSumExp, 3),
    ] {
        reduced(&mut graph, x, reduction, set);
    }
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for (r, c) in [(0usize, 5usize), (1, 1), (3, 131), (700, 3), (2, 9000), (5, 1)] {
            let mut extents = Extents::new();
            extents.set(&rows, r as i64).unwrap();
            extents.set(&columns, c as i64).unwrap();
            let values = Values::F32(numbers(r * c * 4, 9, 1.0));
            println!("{r} by {c} on {}", device.properties().name);
            compare(&graph, &executable, &[("x", values)], &extents, 1e-4);
        }
    }
}

#[test]
fn variances_far_from_zero() {
    let n = 20_000;
    let values: Vec<f32> = numbers(3 * n, 8, 1.732).into_iter().map(|x| 1.0e4 + x).collect();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, shape(&[3, n])).unwrap();
    for (axes, correction) in [(&[1isize][..], 0), (&[1], 1), (&[0], 0), (&[0, 1], 1)] {
        let y = graph.var(x, axes, false, correction).unwrap();
        graph.output(&format!("{axes:?}, {correction}"), y).unwrap();
    }
    for device in devices() {
        // An element's distance from the mean is exact to half a unit of 1e4: 5e-4 of a deviation of 1.
        check(&graph, &device, &[("x", Values::F32(values.clone()))], &Extents::new(), 2e-3);
    }
}

/// The square of such a mean is more than the largest number; the variance is not.
#[test]
fn variances_of_means_beyond_the_root_of_the_largest() {
    for (element, mean, deviation) in [(ElementType::F32, 1e20f64, 1e17f64), (ElementType::F64, 1e160, 1e150)] {
        let mut graph = Graph::new();
        let x = graph.input("equal", element, shape(&[2])).unwrap();
        let y = graph.var(x, &[0], false, 0).unwrap();
        graph.output("of equal ones", y).unwrap();
        let equal = match element {
            ElementType::F64 => Values::F64(vec![mean; 2]),
            _ => Values::F32(vec![mean as f32; 2]),
        };
        let mut inputs = vec![("equal".to_owned(), equal)];
        for extents in [[2usize, 1], [3, 64], [2, 9000]] {
            let name = format!("{extents:?}");
            let x = graph.input(&name, element, shape(&extents)).unwrap();
            for axes in [&[0isize][..], &[1], &[0, 1]] {
                let y = graph.var(x, axes, false, 0).unwrap();
                graph.output(&format!("{name} over {axes:?}"), y).unwrap();
            }
            // No two neighbours are equal, along either axis.
            let values = (0..extents[0] * extents[1]).map(|at| {
                let turn = (at / extents[1] + at % extents[1]) % 2;
                mean + deviation * turn as f64
            });
            let values = match element {
                ElementType::F64 => Values::F64(values.collect()),
                _ => Values::F32(values.map(|x| x as f32).collect()),
            };
            inputs.push((name, values));
        }
        let inputs: Vec<_> = inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        for device in devices().into_iter().filter(|device| computes(device, element)) {
            // The mean is exact to some units of its last place, which are 1e-4 of the deviation of `f32`.
            check(&graph, &device, &inputs, &Extents::new(), 1e-2);
        }
    }
}

#[test]
fn no_numbers_infinities_and_ties() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: [[f32; 7]; 8] = [
        [1.0, nan, 3.0, nan, -2.0, 5.0, 0.0],
        [-inf; 7],
        [inf, 1.0, -inf, inf, 2.0, -inf, 0.0],
        [0.0, -0.0, 0.0, -0.0, 0.0, -0.0, -0.0],
        [-0.0, 0.0, -1.0, -0.0, 1.0, 1.0, -1.0],
        [nan; 7],
        [1e38, 1e38, -1e38, 1e-30, -1e-30, 88.0, 90.0],
        [-5.0, -5.0, -7.0, -7.0, -7.0, -5.0, -6.0],
    ];
    let flat: Vec<f32> = rows.concat();
    let devices = devices();
    use Reduction::{ArgMax, ArgMin, CountNonzero, LastArgMax, LastArgMin, LogSumExp, Max, Mean, Min, Sum, Var};
    for axis in [0, 1] {
        let graph = of(&[8, 7], &[axis], &[ArgMax, ArgMin, LastArgMax, LastArgMin, CountNonzero, LogSumExp, Max, Min]);
        let row = of(&[7], &[0], &[Sum, Mean, Var, Max, Min]);
        let doubles = of_element(
            ElementType::F64,
            &[8, 7],
            &[axis],
            &[ArgMax, ArgMin, LastArgMax, LastArgMin, CountNonzero, LogSumExp, Max, Min],
        );
        for device in &devices {
            check(&graph, device, &[("x", Values::F32(flat.clone()))], &Extents::new(), 1e-6);
            check(&row, device, &[("x", Values::F32(rows[0].to_vec()))], &Extents::new(), 1e-6);
            if computes(device, ElementType::F64) {
                let wide = flat.iter().copied().map(f64::from).collect();
                check(&doubles, device, &[("x", Values::F64(wide))], &Extents::new(), 1e-14);
            }
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let maybe = Symbol::new("maybe", 0, 4).unwrap();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(3usize), Dim::from(&maybe)]).unwrap();
    let i = graph.input("i", ElementType::I32, shape(&[3, 4])).unwrap();
    let refused = |result: Result<Tensor, _>| {
        let error: trefoil_graph::graph::GraphError = result.unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(graph.max_over(x, &[1], false)),
        "max(x: f32[3, maybe]): input `x` is f32[3, maybe]; expected at least one element over axes [1]"
    );
    assert!(refused(graph.argmin(x, &[0, -1], false)).contains("at least one element"));
    // Every set over the other axis has three elements.
    assert!(graph.argmax(x, &[0], false).is_ok());
    assert_eq!(
        refused(graph.mean(i, &[0], false)),
        "mean(i: i32[3, 4]): input `x` is i32; expected f32 (cast it with `g.cast(tensor, ElementType::F32)`)"
    );
    let bytes = graph.input("bytes", ElementType::I8, shape(&[3])).unwrap();
    let narrow =
        Reduce { reduction: Reduction::Sum, element: ElementType::I8, axes: vec![0], keep: false, correction: 0 };
    assert!(refused(graph.add_one(narrow, &[bytes])).contains("input `x` is i8"), "the op takes what its kernels take");
    assert!(refused(graph.any(x, &[0], false)).contains("ElementType::Bool"));
    assert!(refused(graph.sum(x, &[2], false)).contains("axes of f32[3, maybe], each once"));
    assert!(refused(graph.sum(x, &[1, -1], false)).contains("axes of f32[3, maybe], each once"));
    // As in NumPy, no axes are none.
    let same = graph.sum(x, &[], true).unwrap();
    assert_eq!(graph.type_of(same).unwrap(), graph.type_of(x).unwrap());
}
