//! Parts that start where indices say, and what windows see of images, against their references on every device.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::{Case, shape};
use common::{Values, compare, computes, devices, numbers, tolerance};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::pull::patches::Overlaid;
use trefoil_graph::ops::pull::slices::UpdateSlice;
use trefoil_graph::ops::{Border, Overhang, Pooling, Slide, Window};
use trefoil_graph::{
    DebugOptions, Dim, ElementType, Error, Executable, Extents, Graph, HostTensor, Model, Op, Options, Symbol, Tensor,
    reference,
};
use trefoil_kernels::activation::Activation;

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

#[test]
fn parts_of_every_type() {
    let devices = devices();
    for (turn, element) in ElementType::ALL.into_iter().enumerate() {
        let mut case = Case::default();
        let tensor = if turn % 2 == 0 { Case::input } else { Case::turned };
        let x = tensor(&mut case, "x", element, &[3, 7, 8]);
        // A start of its own for each matrix: within, to the end, beyond it, and none.
        let starts = case.given("starts", Values::I32(vec![1, 4, 3, 7, -1, 0]), &[3, 2]);
        let y = case.graph.dynamic_slice(x, starts, 1, &dims(&[3, 4])).unwrap();
        case.output("part", y);
        let small = tensor(&mut case, "small", element, &[3, 3, 4]);
        for overhang in [Overhang::Dropped, Overhang::Wrapped] {
            let y = case.graph.update_slice(x, small, starts, 1, overhang).unwrap();
            case.output(&format!("with a part, {overhang:?}"), y);
        }
        // Whole rows, by one start for all.
        let one = case.given("one", Values::U64(vec![1]), &[1]);
        let rows = tensor(&mut case, "rows", element, &[2, 7, 8]);
        let y = case.graph.dynamic_slice(x, one, 0, &dims(&[2])).unwrap();
        case.output("rows of x", y);
        let y = case.graph.update_slice(x, rows, one, 0, Overhang::Dropped).unwrap();
        case.output("with rows", y);
        let y = case.graph.update_slice_at(x, small, &dims(&[0, 2, 3])).unwrap();
        case.output("with a part at a known place", y);
        for device in &devices {
            println!("{element} on {}", device.properties().name);
            case.check(device, 0.0);
        }
    }
}

#[test]
fn nothing_and_far_places() {
    let mut case = Case::default();
    let x = case.input("x", ElementType::F32, &[5, 3]);
    let none = case.input("none", ElementType::F32, &[0, 3]);
    let far = case.given("far", Values::U64(vec![u64::MAX, 0]), &[2]);
    let end = case.given("end", Values::I64(vec![5, i64::from(i32::MAX)]), &[2]);
    let part = case.input("part", ElementType::F32, &[2, 2]);
    for (name, starts) in [("far", far), ("end", end)] {
        let y = case.graph.dynamic_slice(x, starts, 0, &dims(&[2, 2])).unwrap();
        case.output(&format!("from {name}"), y);
        let y = case.graph.update_slice(x, part, starts, 0, Overhang::Dropped).unwrap();
        case.output(&format!("to {name}"), y);
    }
    let y = case.graph.update_slice(x, none, far, 0, Overhang::Wrapped).unwrap();
    case.output("with nothing", y);
    let y = case.graph.dynamic_slice(none, end, 0, &dims(&[0, 2])).unwrap();
    case.output("of nothing", y);
    for device in devices() {
        println!("on {}", device.properties().name);
        case.check(&device, 0.0);
    }
}

/// Windows of every attribute.
fn windows() -> [Window; 2] {
    let [one, two] = [Dim::from(1i64), Dim::from(2i64)];
    let first = Window { stride: two.clone(), padding: [one.clone(), two.clone()], ..Window::new(3) };
    let second = Window { dilation: two, padding: [Dim::from(0i64), one], ..Window::new(2) };
    [first, second]
}

#[test]
fn windows_of_images_and_back() {
    let devices = devices();
    for (turn, element) in ElementType::ALL.into_iter().enumerate() {
        let mut case = Case::default();
        let tensor = if turn % 2 == 0 { Case::input } else { Case::turned };
        let x = tensor(&mut case, "x", element, &[2, 3, 7, 6]);
        let columns = case.graph.im2col(x, &windows()).unwrap();
        case.output("columns", columns);
        let sums = element.is_float() || element.is_integer() && element.scalar().bits() >= 32;
        let back = case.graph.col2im(columns, &dims(&[7, 6]), &windows());
        assert_eq!(back.is_ok(), sums, "{element}");
        if let Ok(back) = back {
            case.output("back", back);
        }
        for device in devices.iter().filter(|device| computes(device, element)) {
            println!("{element} on {}", device.properties().name);
            case.check(device, tolerance(element));
        }
    }
    // One axis and three, no image and no channel.
    let mut case = Case::default();
    for (name, extents) in
        [("one", &[2usize, 3, 11][..]), ("three", &[1, 2, 4, 5, 3]), ("none", &[0, 2, 5]), ("empty", &[2, 0, 5])]
    {
        let x = case.input(name, ElementType::F32, extents);
        let windows = vec![Window::new(2); extents.len() - 2];
        let columns = case.graph.im2col(x, &windows).unwrap();
        let back = case.graph.col2im(columns, &shape(&extents[2..]), &windows).unwrap();
        case.output(&format!("columns of {name}"), columns);
        case.output(&format!("back to {name}"), back);
    }
    for device in devices {
        println!("on {}", device.properties().name);
        case.check(&device, 1e-6);
    }
}

#[test]
fn each_run_decides_extents_and_starts() {
    let length = Symbol::new("length", 1, 40).unwrap();
    let place = Symbol::new("place", 0, 30).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(40i64) + Dim::from(&length), Dim::from(3i64)]).unwrap();
    let update = graph.input("update", ElementType::F32, vec![Dim::from(&length), Dim::from(3i64)]).unwrap();
    let starts = graph.input("starts", ElementType::I32, shape(&[1])).unwrap();
    let y = graph.dynamic_slice(x, starts, 0, &[Dim::from(&length)]).unwrap();
    graph.output("part", y).unwrap();
    let y = graph.update_slice(x, update, starts, 0, Overhang::Wrapped).unwrap();
    graph.output("with a part", y).unwrap();
    let images = graph
        .reshape(x, vec![Dim::from(1i64), Dim::from(1i64), Dim::from(40i64) + Dim::from(&length), Dim::from(3i64)]);
    let images = images.unwrap();
    let columns = graph.im2col(images, &windows()).unwrap();
    graph.output("columns", columns).unwrap();
    let mut by_symbol = graph.clone();
    let y = by_symbol.update_slice_at(x, update, &[Dim::from(&place)]).unwrap();
    by_symbol.output("at a place", y).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        let with_place = Executable::compile(&by_symbol, &Model::new(), &device, &Options::default()).unwrap();
        for (n, at) in [(1usize, 5usize), (40, 30), (13, 0)] {
            let mut extents = Extents::new();
            extents.set(&length, n as i64).unwrap();
            println!("{n} from {at} on {}", device.properties().name);
            let (all, part) = (numbers(3 * (40 + n), 1, 1.0), numbers(3 * n, 2, 1.0));
            let inputs = [
                ("x", Values::F32(all.clone())),
                ("update", Values::F32(part.clone())),
                ("starts", Values::I32(vec![at as i32])),
            ];
            compare(&graph, &executable, &inputs, &extents, 0.0);
            // References know no symbols of attributes.
            extents.set(&place, at as i64).unwrap();
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let given = with_place.run(&data, &extents).unwrap().host("at a place").unwrap().values;
            let mut wanted = all;
            wanted[3 * at..3 * (at + n)].copy_from_slice(&part);
            assert!(given.iter().zip(&wanted).all(|(given, wanted)| *given == f64::from(*wanted)), "{n} at {at}");
        }
    }
}

/// Columns of as many channels as each run wants, whose rows are those of whole windows.
#[test]
fn images_of_channels_that_each_run_decides() {
    let rows = Symbol::with_multiple("rows", 0, 16, 4).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, (2, &rows, 9)).unwrap();
    let y = graph.col2im(x, &dims(&[4, 4]), &[Window::new(2), Window::new(2)]).unwrap();
    assert_eq!(graph.type_of(y).unwrap().to_string(), "f32[2, rows / 4, 4, 4]");
    graph.output("y", y).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for count in [4usize, 16, 0] {
            println!("{count} on {}", device.properties().name);
            let extents = Extents::with([(&rows, count as i64)]).unwrap();
            compare(&graph, &executable, &[("x", Values::F32(numbers(18 * count, 1, 1.0)))], &extents, 1e-6);
        }
    }
}

#[test]
fn every_attribute_counts() {
    let mut results = BTreeSet::new();
    let changed: [fn(&mut Window); 4] = [
        |_| {},
        |window| window.stride = Dim::from(2i64),
        |window| window.dilation = Dim::from(2i64),
        |window| window.padding[0] = Dim::from(1i64),
    ];
    for change in changed {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[1, 1, 6, 5]);
        let mut first = Window::new(2);
        change(&mut first);
        let columns = case.graph.im2col(x, &[first.clone(), Window::new(3)]).unwrap();
        let back = case.graph.col2im(columns, &dims(&[6, 5]), &[first, Window::new(3)]).unwrap();
        case.output("columns", columns);
        case.output("back", back);
        let leaves = case.inputs.iter().map(|(name, values)| (name.clone(), values.host())).collect();
        for (name, result) in reference::evaluate(&case.graph, &leaves, &Extents::new()).unwrap() {
            assert!(results.insert(format!("{:?}", result.values)), "{name}");
        }
    }
    let overhangs = [Overhang::Dropped, Overhang::Wrapped];
    for (batch_axes, overhang) in [0usize, 1].into_iter().flat_map(|axes| overhangs.map(|overhang| (axes, overhang))) {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[6, 6, 2]);
        let part = case.input("part", ElementType::F32, if batch_axes == 0 { &[4, 6, 2] } else { &[6, 4, 2] });
        let extents: &[usize] = if batch_axes == 0 { &[1] } else { &[6, 1] };
        let starts = case.given("starts", Values::I32((0..extents[0] as i32).map(|i| 5 - i).collect()), extents);
        let y = case.graph.update_slice(x, part, starts, batch_axes, overhang).unwrap();
        case.output("y", y);
        let leaves = case.inputs.iter().map(|(name, values)| (name.clone(), values.host())).collect();
        for (name, result) in reference::evaluate(&case.graph, &leaves, &Extents::new()).unwrap() {
            assert!(results.insert(format!("{:?}", result.values)), "{name} {batch_axes} {overhang:?}");
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, shape(&[4, 3])).unwrap();
    let halves = graph.input("halves", ElementType::F16, shape(&[2, 3])).unwrap();
    let part = graph.input("part", ElementType::F32, shape(&[2, 3])).unwrap();
    let starts = graph.input("starts", ElementType::I32, shape(&[1])).unwrap();
    let reals = graph.input("reals", ElementType::F32, shape(&[1])).unwrap();
    let three = graph.input("three", ElementType::I32, shape(&[3])).unwrap();
    let image = graph.input("image", ElementType::F32, shape(&[1, 2, 4, 4])).unwrap();
    let columns = graph.input("columns", ElementType::F32, shape(&[1, 9, 9])).unwrap();
    let row = graph.input("row", ElementType::F32, shape(&[4])).unwrap();
    let batches = graph.input("batches", ElementType::U32, shape(&[4, 3, 0])).unwrap();
    let one = graph.input("one", ElementType::F32, shape(&[1, 1, 1])).unwrap();
    let beyond = UpdateSlice { batch_axes: usize::MAX, starts: Some(dims(&[0])), overhang: Overhang::Dropped };
    let squares = |window: Window| [window.clone(), window];
    let refused = [
        (graph.dynamic_slice(x, reals, 0, &dims(&[2])), "input `starts` is f32"),
        (graph.dynamic_slice(x, three, 0, &dims(&[2, 2, 2])), "a start for each axis behind"),
        (graph.dynamic_slice(row, batches, 2, &[]), "input `starts` is u32[4, 3, 0]"),
        (graph.update_slice(row, row, batches, 2, Overhang::Dropped), "input `starts` is u32[4, 3, 0]"),
        (graph.dynamic_slice(x, starts, 0, &dims(&[5])), "attribute `extents`"),
        (graph.update_slice(x, halves, starts, 0, Overhang::Dropped), "input `update` is f16"),
        (graph.update_slice(part, x, starts, 0, Overhang::Dropped), "input `update` is f32[4, 3]"),
        (graph.update_slice_at(x, part, &dims(&[3])), "attribute `starts` is 3"),
        (graph.update_slice_at(x, part, &dims(&[-1])), "attribute `starts` is -1"),
        (graph.im2col(x, &squares(Window::new(2))), "input `x` is f32[4, 3]; expected 4 axes"),
        (graph.im2col(image, &squares(Window::new(5))), "a window that 4 positions hold"),
        (graph.im2col(image, &squares(Window { stride: Dim::from(0i64), ..Window::new(2) })), "of at least 1"),
        (graph.col2im(columns, &dims(&[4, 4]), &squares(Window::new(2))), "expected f32[1, 8, 9]"),
        // Padding holds the window, where no image is.
        (
            graph.col2im(one, &dims(&[-1]), &[Window { padding: [1i64, 1].map(Dim::from), ..Window::new(1) }]),
            "attribute `image` is [-1]; expected extents that are not negative",
        ),
        (graph.add_one(beyond, &[x, part]), "attribute `starts` is Some([0])"),
    ];
    for (given, expected) in refused {
        let error = given.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// References know numbers alone: of attributes that depend on symbols they say that they know nothing, and nothing is compared with them.
#[test]
fn symbols_in_attributes_have_no_reference() {
    type Row = fn(&mut Graph, Tensor, Tensor, &Dim) -> Tensor;
    let rows: [(&str, Row); 10] = [
        ("triangle", |g, x, _, one| g.tril(x, one.clone()).unwrap()),
        ("eye", |g, _, _, one| g.eye(4, 4, one.clone(), ElementType::F32).unwrap()),
        ("roll", |g, x, _, one| g.roll(x, &[(0, one.clone())]).unwrap()),
        ("pad", |g, x, _, one| {
            let none = [Dim::from(0), Dim::from(0)];
            g.pad(x, &[none.clone(), none.clone(), none, [one.clone(), one.clone()]], Border::Edge).unwrap()
        }),
        ("update_slice", |g, x, weight, one| g.update_slice_at(x, weight, &[0.into(), 0.into(), one.clone()]).unwrap()),
        ("pool", |g, x, _, one| g.pool(x, Pooling::Max, &[Window { stride: one.clone(), ..Window::new(2) }]).unwrap()),
        ("im2col", |g, x, _, one| {
            let window = Window { dilation: one.clone(), ..Window::new(2) };
            g.im2col(x, &[window.clone(), window]).unwrap()
        }),
        ("conv with padding", |g, x, weight, one| {
            let slide = Slide { padding: [one.clone(), one.clone()], ..Slide::default() };
            g.conv(x, weight, None, &[slide.clone(), slide], 1, Activation::Identity).unwrap()
        }),
        ("conv by a stride", |g, x, weight, one| {
            let slide = Slide { stride: one.clone(), ..Slide::default() };
            g.conv(x, weight, None, &[slide.clone(), slide], 1, Activation::Identity).unwrap()
        }),
        ("conv_transpose by a stride", |g, x, weight, one| {
            let slide = Slide { stride: one.clone(), ..Slide::default() };
            g.conv_transpose(x, weight, None, &[slide.clone(), slide], 1, Activation::Identity).unwrap()
        }),
    ];
    let one = Symbol::new("one", 1, 2).unwrap();
    let mut extents = Extents::new();
    extents.set(&one, 1).unwrap();
    let device = devices().into_iter().find(|device| device.kind() == DeviceKind::Cpu).unwrap();
    for (name, add) in rows {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[1, 1, 4, 4]);
        let weight = case.input("weight", ElementType::F32, &[1, 1, 2, 4]);
        let y = add(&mut case.graph, x, weight, &Dim::from(&one));
        case.output("y", y);
        let leaves = case.inputs.iter().map(|(name, values)| (name.clone(), values.host())).collect();
        let refused = reference::evaluate(&case.graph, &leaves, &extents);
        assert!(matches!(refused, Err(Error::Missing { what: "reference of", .. })), "{name}: {refused:?}");
        let executable = Executable::compile(&case.graph, &Model::new(), &device, &Options::default()).unwrap();
        let run = executable.prepare(&extents);
        let run = case.inputs.iter().fold(run, |run, (name, values)| run.input(name, values.data()));
        let (_, report) = run.debug(&DebugOptions::default()).unwrap();
        let written = report.steps.iter().flat_map(|step| &step.tensors);
        assert!(
            written
                .filter(|tensor| tensor.name == case.graph.nodes()[y.node()].name)
                .all(|tensor| tensor.difference.is_none()),
            "{name}: {report}"
        );
    }
    let windows = vec![Window { stride: Dim::from(&one), ..Window::new(2) }];
    let columns = HostTensor { shape: vec![1, 1, 2, 3], values: vec![1.0; 6] };
    assert!(Overlaid { windows, image: dims(&[4]) }.reference(&[columns], &[vec![1, 1, 4]]).is_empty());
}
