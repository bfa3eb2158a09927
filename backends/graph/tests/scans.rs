//! Every scan of every element type along every axis, inclusive and exclusive, from either end, against its reference, on every device: awkward extents, few and many sequences, strided
//! elements, extents that each run decides, what is not a number, and what there is none of.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::{Values, check, compare, computes, devices, numbers};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::scan::{Operator, Scan, Sweep};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Symbol, Tensor};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// What rounding may make of a few hundred numbers below 2.
fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::F64 => 1e-13,
        ElementType::F32 => 2e-5,
        ElementType::F16 => 1e-3,
        ElementType::BF16 => 8e-3,
        _ => 0.0,
    }
}

/// Adds a scan along an axis; what is left out and the end to begin at are the bits of `way`.
fn scanned(graph: &mut Graph, x: Tensor, operator: Operator, axis: usize, way: usize) {
    scanned_as(graph, &format!("{operator:?} along {axis}"), x, operator, axis, way);
}

fn scanned_as(graph: &mut Graph, name: &str, x: Tensor, operator: Operator, axis: usize, way: usize) {
    let sweep = Sweep { exclusive: way & 1 != 0, reverse: way & 2 != 0 };
    let along = axis.cast_signed();
    let y = match operator {
        Operator::Sum => graph.cumsum(x, along, sweep),
        Operator::Prod => graph.cumprod(x, along, sweep),
        Operator::Max => graph.cummax(x, along, sweep),
        Operator::Min => graph.cummin(x, along, sweep),
    };
    graph.output(&format!("{name}, {sweep:?}"), y.unwrap()).unwrap();
}

/// Checks every operator along every axis, each in one of the four ways or in all of them; tells which kernels ran.
fn all(devices: &[Device], element: ElementType, extents: &[usize], turned: bool, every_way: bool) -> BTreeSet<String> {
    let values = Values::of(element, extents.iter().product(), 5, 1.5);
    let mut kernels = BTreeSet::new();
    let mut graph = Graph::new();
    let there: Vec<usize> = if turned { extents.iter().rev().copied().collect() } else { extents.to_vec() };
    let mut x = graph.input("x", element, shape(&there)).unwrap();
    if turned {
        let order: Vec<usize> = (0..extents.len()).rev().collect();
        x = graph.transpose(x, &order).unwrap();
    }
    for (number, operator) in Operator::ALL.iter().enumerate() {
        // References know 53 bits of a product.
        let large = matches!(element, ElementType::I64 | ElementType::U64) && extents.iter().any(|extent| *extent > 12);
        if *operator == Operator::Prod && large {
            continue;
        }
        for (axis, extent) in extents.iter().enumerate() {
            for way in 0..4 {
                if every_way || way == (number + axis + extent) % 4 {
                    scanned(&mut graph, x, *operator, axis, way);
                }
            }
        }
    }
    for device in devices.iter().filter(|device| computes(device, element)) {
        println!("{element}{extents:?}, turned {turned}, on {}", device.properties().name);
        let executable = check(&graph, device, &[("x", values.clone())], &Extents::new(), tolerance(element));
        kernels.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
    }
    kernels
}

#[test]
fn every_type_along_every_axis() {
    let devices = devices();
    let mut ran = BTreeSet::new();
    for element in ElementType::ALL {
        if !Operator::Sum.takes().any(|taken| taken == element) {
            continue;
        }
        ran.extend(all(&devices, element, &[2, 8, 4], false, element == ElementType::F32));
        for extents in [&[0, 3][..], &[7], &[3, 1, 5], &[257]] {
            ran.extend(all(&devices, element, extents, false, false));
        }
        ran.extend(all(&devices, element, &[12, 20], true, false));
    }
    for kernel in trefoil_kernels::scan::kernels() {
        assert!(ran.contains(&*kernel.name), "no test runs `{}`", kernel.name);
    }
}

#[test]
fn what_is_broadcast_and_less_than_a_quad() {
    let devices = devices();
    for element in [ElementType::F32, ElementType::F16, ElementType::I64] {
        for extents in [&[1usize][..], &[2], &[3], &[3, 1], &[1, 2]] {
            all(&devices, element, extents, false, true);
        }
    }
    for (there, extents) in [
        (&[1usize][..], &[1000usize][..]),
        (&[1, 1], &[3, 70]),
        (&[3, 1], &[3, 1003]),
        (&[1, 3], &[600, 3]),
        (&[1, 8], &[40, 8]),
        (&[40, 1], &[40, 8]),
    ] {
        let values = Values::of(ElementType::F32, there.iter().product(), 8, 1.5);
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, shape(there)).unwrap();
        let x = graph.expand(x, shape(extents)).unwrap();
        for axis in 0..extents.len() {
            for way in 0..4 {
                scanned(&mut graph, x, Operator::Sum, axis, way);
                scanned(&mut graph, x, Operator::Max, axis, way);
            }
        }
        for device in &devices {
            check(&graph, device, &[("x", values.clone())], &Extents::new(), 1e-4);
        }
    }
}

#[test]
fn rows_and_columns_of_many_lengths() {
    let devices = devices();
    for (index, extents) in [
        &[13usize, 17][..],
        &[37, 64],
        &[64, 37],
        &[5, 1021],
        &[1021, 5],
        &[300, 8],
        &[3, 2, 12, 4],
        &[2, 4100],
        &[2, 3, 5, 7, 3],
    ]
    .into_iter()
    .enumerate()
    {
        all(&devices, ElementType::F32, extents, index % 2 == 0, false);
        all(&devices, ElementType::F32, extents, index % 2 == 1, false);
    }
}

/// Of a million elements and more, pipelines know how many invocations share a sequence.
#[test]
fn rows_and_columns_of_large_tensors() {
    let devices = devices();
    for extents in [[1030, 1032], [1032, 1023]] {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, shape(&extents)).unwrap();
        scanned(&mut graph, x, Operator::Sum, 0, 0);
        scanned(&mut graph, x, Operator::Sum, 1, 3);
        let values = Values::of(ElementType::F32, extents.iter().product(), 3, 1.0);
        for device in &devices {
            println!("{extents:?} on {}", device.properties().name);
            check(&graph, device, &[("x", values.clone())], &Extents::new(), 1e-4);
        }
    }
}

#[test]
fn few_sequences_are_cut_in_pieces() {
    let devices = devices();
    let cut = |extents: &[usize], element: ElementType, of: &[Operator], tolerance: f64| {
        let mut graph = Graph::new();
        let x = graph.input("x", element, shape(extents)).unwrap();
        let axis = (0..extents.len()).max_by_key(|axis| extents[*axis]).unwrap();
        for operator in of {
            for way in 0..4 {
                scanned(&mut graph, x, *operator, axis, way);
            }
        }
        let values = Values::of(element, extents.iter().product(), 3, 1.0);
        for device in devices.iter().filter(|device| computes(device, element)) {
            println!("{element}{extents:?} on {}", device.properties().name);
            let inputs = [("x", values.clone())];
            let executable = check(&graph, device, &inputs, &Extents::new(), tolerance);
            assert_eq!(executable.explain().steps.len(), 12 * of.len(), "totals, their scan, and the rest");
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let run = || executable.run(&data, &Extents::new()).unwrap();
            let (first, second) = (run(), run());
            for (name, _) in graph.outputs() {
                assert_eq!(first.host(name).unwrap(), second.host(name).unwrap(), "`{name}` in two runs");
            }
        }
    };
    use Operator::{Max, Min, Sum};
    for extents in [&[100_003usize][..], &[50_020], &[2, 50_021], &[50_021, 2], &[2, 20_011, 8]] {
        // Sums lose some units of the largest one, a few hundred.
        cut(extents, ElementType::F32, &[Sum, Max], 1e-4);
    }
    cut(&[40_000], ElementType::F16, &[Sum, Min], 1e-3);
    cut(&[40_000], ElementType::BF16, &[Sum, Max], 8e-3);
    cut(&[40_001], ElementType::I32, &[Sum, Operator::Prod, Max, Min], 0.0);
    // Bits that all numbers have below their first 24 are rounded alike by the reference.
    cut(&[40_000], ElementType::F64, &[Sum, Min], 1e-11);
    cut(&[40_000], ElementType::U64, &[Sum, Max], 0.0);
}

#[test]
fn each_run_decides_extents() {
    let rows = Symbol::new("rows", 0, 700).unwrap();
    let columns = Symbol::new("columns", 0, 9000).unwrap();
    let mut graph = Graph::new();
    let ty = vec![Dim::from(&rows), Dim::from(&columns), Dim::from(4usize)];
    let x = graph.input("x", ElementType::F32, ty).unwrap();
    for (operator, axis, way) in
        [(Operator::Sum, 0, 0), (Operator::Max, 1, 3), (Operator::Sum, 1, 2), (Operator::Min, 2, 1)]
    {
        scanned(&mut graph, x, operator, axis, way);
    }
    let flat = graph.input("flat", ElementType::F32, vec![Dim::from(&rows) * Dim::from(&columns)]).unwrap();
    scanned(&mut graph, flat, Operator::Sum, 0, 1);
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for (r, c) in [(0usize, 5usize), (1, 1), (3, 131), (700, 3), (2, 9000), (5, 0)] {
            let mut extents = Extents::new();
            extents.set(&rows, r as i64).unwrap();
            extents.set(&columns, c as i64).unwrap();
            println!("{r} by {c} on {}", device.properties().name);
            let inputs =
                [("x", Values::F32(numbers(r * c * 4, 9, 1.0))), ("flat", Values::F32(numbers(r * c, 2, 1.0)))];
            compare(&graph, &executable, &inputs, &extents, 1e-4);
        }
    }
}

#[test]
fn no_numbers_and_infinities() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let row = [1.0, -0.0, 3.0, inf, -2.0, nan, 0.0, -inf, 5.0, nan, -inf, 2.0];
    let no_nan = [1.0, -inf, 3.0, 1e-40, -2.0, 0.5, 0.0, inf, 5.0, 7.0, 8.0, 2.0];
    for device in devices() {
        for values in [row, no_nan] {
            let mut graph = Graph::new();
            let x = graph.input("x", ElementType::F32, shape(&[12])).unwrap();
            for operator in [Operator::Max, Operator::Min, Operator::Sum] {
                (0..4).for_each(|way| scanned(&mut graph, x, operator, 0, way));
            }
            check(&graph, &device, &[("x", Values::F32(values.to_vec()))], &Extents::new(), 1e-6);
        }
    }
}

#[test]
fn integers_wrap() {
    let signed = [i32::MAX, 1, i32::MIN, -1, 7, i32::MAX];
    let unsigned = [u32::MAX, 1, 2, u32::MAX, 7, 65_537];
    let mut graph = Graph::new();
    let i = graph.input("i", ElementType::I32, shape(&[6])).unwrap();
    let u = graph.input("u", ElementType::U32, shape(&[6])).unwrap();
    for (name, x) in [("i", i), ("u", u)] {
        let sums = graph.cumsum(x, 0, Sweep::default()).unwrap();
        graph.output(&format!("sums of {name}"), sums).unwrap();
        let products = graph.cumprod(x, -1, Sweep { exclusive: false, reverse: true }).unwrap();
        graph.output(&format!("products of {name}"), products).unwrap();
    }
    // Narrower ones are widened on the way; what comes of none is the end of their own type.
    let bytes = graph.input("bytes", ElementType::I8, shape(&[6])).unwrap();
    let words = graph.input("words", ElementType::U16, shape(&[6])).unwrap();
    for x in [bytes, words] {
        for operator in Operator::ALL {
            (0..4).for_each(|way| {
                let name = format!("{operator:?} of {}", graph.type_of(x).unwrap().element);
                scanned_as(&mut graph, &name, x, *operator, 0, way);
            });
        }
    }
    for device in devices() {
        let inputs = [
            ("i", Values::I32(signed.to_vec())),
            ("u", Values::U32(unsigned.to_vec())),
            ("bytes", Values::I8(vec![127, 1, -128, -1, 7, 100])),
            ("words", Values::U16(vec![u16::MAX, 1, 2, u16::MAX, 7, 257])),
        ];
        check(&graph, &device, &inputs, &Extents::new(), 0.0);
    }
}

/// The product of two numbers of 64 bits may take more than the 127 that references have for it.
#[test]
fn products_of_the_largest_integers_wrap() {
    // The largest that references know exactly.
    let most = u64::MAX << 11;
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::U64, shape(&[3])).unwrap();
    (0..4).for_each(|way| scanned(&mut graph, x, Operator::Prod, 0, way));
    for device in devices().iter().filter(|device| computes(device, ElementType::U64)) {
        check(&graph, device, &[("x", Values::U64(vec![most, most, 3]))], &Extents::new(), 0.0);
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, shape(&[3, 4])).unwrap();
    let b = graph.input("b", ElementType::Bool, shape(&[3])).unwrap();
    let refused = |result: Result<Tensor, _>| {
        let error: trefoil_graph::graph::GraphError = result.unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(graph.cumsum(b, 0, Sweep::default())),
        "cumsum(b: bool[3]): input `x` is bool; expected f32, f16, bf16, f64, i32, u32, i64 or u64 (`cast` converts)"
    );
    let bytes = graph.input("bytes", ElementType::I8, shape(&[3])).unwrap();
    let narrow = Scan { operator: Operator::Sum, element: ElementType::I8, axis: 0, sweep: Sweep::default() };
    assert!(refused(graph.add_one(narrow, &[bytes])).contains("input `x` is i8"), "the op takes what its kernels take");
    assert!(refused(graph.cummax(x, 2, Sweep::default())).contains("axes of f32[3, 4], each once"));
    assert!(refused(graph.cummin(x, -3, Sweep::default())).contains("axes of f32[3, 4], each once"));
}
