//! Whole graphs on every device: candidates, copies, extents, params, host steps, and every error.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use common::ops::RowSum;
use common::{Values, check, compare, devices, devices_of_its_own, numbers};
use trefoil_dsl::artefact::Feature;
use trefoil_dsl::device::{Device, DeviceKind, DeviceOptions, Limits, Memory, MemoryRange};
use trefoil_graph::compile::prove::prove;
use trefoil_graph::compile::stages::{forecast, forecast_op};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, TensorType};

const FLOAT: ElementType = ElementType::F32;

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap()
}

/// gelu(rows of x + b), summed by row, scaled: maps, a view, a kernel, maps.
fn mixed(rows: impl Into<Dim>, columns: usize) -> Graph {
    let rows = rows.into();
    let mut graph = Graph::new();
    let x = graph.input("x", FLOAT, vec![Dim::from(columns), rows.clone()]).unwrap();
    let b = graph.input("b", FLOAT, shape(&[columns])).unwrap();
    let turned = graph.transpose(x, &[1, 0]).unwrap();
    let y = graph.add(turned, b).unwrap();
    let y = graph.gelu(y).unwrap();
    let sums = graph.add_one(RowSum, &[y]).unwrap();
    let turned_sums = graph.add_one(RowSum, &[turned]).unwrap();
    let z = graph.mul(sums, sums).unwrap();
    let z = graph.sub(z, turned_sums).unwrap();
    graph.output("sums", sums).unwrap();
    graph.output("z", z).unwrap();
    graph
}

fn mixed_inputs(rows: usize, columns: usize) -> [(&'static str, Values); 2] {
    [("x", Values::F32(numbers(rows * columns, 3, 1.0))), ("b", Values::F32(numbers(columns, 4, 1.0)))]
}

#[test]
fn maps_views_and_kernels_together() {
    for device in devices() {
        for (rows, columns) in [(1, 2), (5, 6), (130, 10)] {
            let graph = mixed(rows, columns);
            let executable = check(&graph, &device, &mixed_inputs(rows, columns), &Extents::new(), 1e-4);
            let explanation = executable.explain();
            assert!(explanation.decisions.iter().all(|decision| decision.candidate == "two passes"), "{explanation}");
            // A single row lies one element after the other whichever way it is turned.
            let copied: &[usize] = if rows > 1 { &[0] } else { &[] };
            assert_eq!(explanation.decisions[1].copied, copied, "{explanation}");
            assert!(explanation.barriers() >= 2, "{explanation}");
        }
    }
}

#[test]
fn candidates_are_forced_and_forbidden_by_name() {
    for device in devices() {
        let graph = mixed(7, 6);
        let force =
            |name: &str| Options { force: [("row_sum".to_owned(), name.to_owned())].into(), ..Options::default() };
        for name in ["one pass", "two passes", "host"] {
            let compiled = Executable::compile(&graph, &Model::new(), &device, &force(name));
            if name == "host" && device.kind() != DeviceKind::Cpu {
                let error = compiled.unwrap_err().to_string();
                assert!(error.contains("not the cpu device") && error.contains("another one is forced"), "{error}");
                continue;
            }
            let executable = compiled.unwrap();
            assert!(executable.explain().decisions.iter().all(|decision| decision.candidate == name));
            compare(&graph, &executable, &mixed_inputs(7, 6), &Extents::new(), 1e-4);
        }
        let forbid = Options { forbid: ["two passes".to_owned()].into(), ..Options::default() };
        let executable = Executable::compile(&graph, &Model::new(), &device, &forbid).unwrap();
        assert!(executable.explain().decisions.iter().all(|decision| decision.candidate == "one pass"));
        let error = Executable::compile(&graph, &Model::new(), &device, &force("magic")).unwrap_err();
        assert!(
            matches!(&error, Error::UnknownCandidate { known, .. } if known == "host, one pass, two passes"),
            "{error}"
        );
    }
}

#[test]
fn what_compiling_would_do_is_told_without_a_device() {
    for device in devices() {
        let graph = mixed(7, 6);
        let told = forecast(&graph, device.properties(), &Options::default()).unwrap();
        let done = compile(&graph, &device).explain();
        assert_eq!((&told.decisions, &told.activations), (&done.decisions, &done.activations));
        assert_eq!(told.steps, done.steps.iter().map(|step| step.kernel.clone()).collect::<Vec<_>>());
        // One op, with a candidate that not every device has; and one with a type that not every device has.
        let rows = [TensorType::new(FLOAT, [4, 6])];
        let on = |options: &Options| forecast_op(RowSum, &rows, device.properties(), options);
        let host = Options { force: [("row_sum".to_owned(), "host".to_owned())].into(), ..Options::default() };
        assert_eq!(on(&Options::default()).unwrap().decisions.len(), 1);
        assert_eq!(on(&host).is_ok(), device.kind() == DeviceKind::Cpu);
        let flat = [TensorType::new(FLOAT, [4])];
        assert!(matches!(forecast_op(RowSum, &flat, device.properties(), &Options::default()), Err(Error::Graph(_))));
        let mut doubles = Graph::new();
        let x = doubles.input("x", ElementType::F64, shape(&[5])).unwrap();
        let y = doubles.add(x, x).unwrap();
        doubles.output("y", y).unwrap();
        let told = forecast(&doubles, device.properties(), &Options::default());
        assert_eq!(told.is_ok(), device.properties().features.has(Feature::Float64), "{told:?}");
    }
}

#[test]
fn one_recording_serves_every_extent() {
    for device in devices_of_its_own() {
        let rows = Symbol::new("rows", 0, 70_000).unwrap();
        let graph = mixed(&rows, 4);
        let executable = compile(&graph, &device);
        let before = device.backend().counters();
        for count in [1usize, 70_000, 0, 63, 64, 65, 4099, 1] {
            let mut extents = Extents::new();
            extents.set(&rows, count as i64).unwrap();
            for _ in 0..2 {
                compare(&graph, &executable, &mixed_inputs(count, 4), &extents, 1e-4);
            }
        }
        let after = device.backend().counters();
        assert_eq!((after.pipelines, after.recordings), (before.pipelines, before.recordings));
        assert_eq!(after.allocations, before.allocations);
        let inputs = mixed_inputs(1, 4);
        let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
        assert!(matches!(executable.run(&data, &Extents::new()), Err(Error::Dim(_))));
    }
}

#[test]
fn grids_are_folded_where_an_axis_is_short() {
    for device in devices() {
        let at_most = Limits { max_groups: [3, 100, 100], ..*device.limits() };
        let options = DeviceOptions { at_most: Some(at_most), ..DeviceOptions::default() };
        let poor = trefoil::devices::open(device.kind(), &options);
        let rows = Symbol::new("rows", 1, 3000).unwrap();
        let graph = mixed(&rows, 4);
        let executable = compile(&graph, &poor.unwrap());
        for count in [1, 64 * 3, 64 * 3 + 1, 64 * 16, 3000, 2999] {
            let mut extents = Extents::new();
            extents.set(&rows, count).unwrap();
            compare(&graph, &executable, &mixed_inputs(count as usize, 4), &extents, 1e-4);
        }
    }
}

#[test]
fn what_a_step_reads_and_writes_lies_apart_where_it_must() {
    let cpu = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let at_most = Limits { shares_memory_within_dispatch: false, ..*cpu.limits() };
    let cpu = trefoil_cpu::open(&DeviceOptions { at_most: Some(at_most), ..DeviceOptions::default() }).unwrap();
    let graph = mixed(33, 6);
    let executable = check(&graph, &cpu, &mixed_inputs(33, 6), &Extents::new(), 1e-4);
    for step in executable.explain().steps {
        for read in step.uses.iter().filter(|used| !used.written) {
            assert!(
                step.uses.iter().all(|used| !used.written || used.buffer != read.buffer),
                "{}",
                executable.explain()
            );
        }
    }
}

#[test]
fn equal_structures_share_a_kernel() {
    for device in devices_of_its_own() {
        let model = Model::new();
        let mut graph = Graph::new();
        for (index, count) in [8usize, 12, 400].into_iter().enumerate() {
            let x = graph.input(&format!("x{index}"), FLOAT, shape(&[count])).unwrap();
            let y = graph.exp(x).unwrap();
            let y = graph.add(y, x).unwrap();
            graph.output(&format!("y{index}"), y).unwrap();
        }
        let before = device.backend().counters().pipelines;
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        assert_eq!(executable.explain().steps.len(), 3);
        assert_eq!(model.kernels().count().unwrap(), 1);
        assert!(device.backend().counters().pipelines - before <= 1);
        Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        assert_eq!(model.kernels().count().unwrap(), 1);
    }
}

#[test]
fn params_are_held_once_and_may_come_late() {
    for device in devices_of_its_own() {
        let mut graph = Graph::new();
        let x = graph.input("x", FLOAT, shape(&[6])).unwrap();
        let w = graph.param("w", FLOAT, shape(&[6])).unwrap();
        let c = graph.constant(FLOAT, shape(&[6]), &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let y = graph.mul(x, w).unwrap();
        let y = graph.add(y, c).unwrap();
        graph.output("y", y).unwrap();
        let model = Model::new();
        let at_first = device.backend().counters().allocations;
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let x = [1f32; 6];
        let run = || executable.run(&[("x", (&x).into())], &Extents::new());
        assert!(matches!(run(), Err(Error::MissingParams { missing, .. }) if missing[0].0 == "w"));
        model.set("w", &[6], &[2f32; 6]).unwrap();
        assert_eq!(run().unwrap().get::<f32>("y").unwrap(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        // A second executable shares the copy; new values reach both.
        let before = device.backend().counters().allocations;
        let second = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let made = device.backend().counters().allocations - before;
        assert_eq!(made + 1, before - at_first, "all but the param's copy");
        model.set("w", &[6], &[0f32; 6]).unwrap();
        for executable in [&executable, &second] {
            let outputs = executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
            assert_eq!(outputs.get::<f32>("y").unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
        assert!(matches!(model.set("w", &[3, 2], &[0f32; 6]), Err(Error::Shape { .. })));
        assert!(matches!(model.set("w", &[6], &[0i32; 6]), Err(Error::ElementType { .. })));
        assert!(matches!(model.set("w", &[7], &[0f32; 6]), Err(Error::Length { given: 6, expected: 7, .. })));
    }
}

#[test]
fn rows_of_several_params_are_one() {
    let model = Model::new();
    model.set("a", &[1, 3], &[1f32, 2.0, 3.0]).unwrap();
    model.set("b", &[2, 3], &[4f32, 5.0, 6.0, 7.0, 8.0, 9.0]).unwrap();
    model.set("narrow", &[1, 2], &[0f32; 2]).unwrap();
    model.set("whole", &[1, 3], &[0i32; 3]).unwrap();
    model.set("scalar", &[], &[1f32]).unwrap();
    for device in devices() {
        model.join("c", &["b", "a", "b"]).unwrap();
        let mut graph = Graph::new();
        let c = graph.param("c", FLOAT, [5, 3]).unwrap();
        let y = graph.neg(c).unwrap();
        graph.output("y", y).unwrap();
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let run = || executable.run(&[], &Extents::new()).unwrap().get::<f32>("y").unwrap().to_vec();
        assert_eq!(run(), [4f32, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0].map(|x| -x));
        // Devices that hold it get its new values.
        model.join("c", &["a", "b", "b"]).unwrap();
        assert_eq!(run()[..4], [-1.0, -2.0, -3.0, -4.0]);
        assert!(matches!(model.join("c", &["a", "b"]), Err(Error::Shape { .. })));
        assert_eq!(run()[..4], [-1.0, -2.0, -3.0, -4.0]);
    }
    model.set("most", &[usize::MAX, 0], &[0f32; 0]).unwrap();
    let most = usize::MAX;
    let beyond = format!(
        "param `d` is joined of `most`, which is f32[{most}, 0], behind {most} rows; expected {most} rows at most"
    );
    for (parts, wrong) in [
        (&["most", "most"][..], beyond.as_str()),
        (&[], "param `d` is joined of nothing; expected one param at least"),
        (&["scalar"], "param `d` is joined of `scalar`, which has no axes; expected an axis to join along"),
        (
            &["a", "narrow"],
            "param `d` is joined of `narrow`, which is f32[1, 2]; expected all but the first extent as of `a`, which is f32[1, 3]",
        ),
        (
            &["a", "whole"],
            "param `d` is joined of `whole`, which is i32[1, 3]; expected all but the first extent as of `a`, which is f32[1, 3]",
        ),
    ] {
        assert_eq!(model.join("d", parts).unwrap_err().to_string(), wrong);
    }
    assert!(matches!(model.join("d", &["a", "e"]), Err(Error::Unknown { what: "param", .. })));
}

#[test]
fn safetensors_are_mapped_and_checked() {
    use safetensors::tensor::{Dtype, TensorView};
    let directory = std::env::temp_dir().join(format!("trefoil-graph-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("model.safetensors");
    let values: Vec<u8> = numbers(6, 1, 1.0).iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = |dtype, shape: Vec<usize>, data| TensorView::new(dtype, shape, data).unwrap();
    let tensors = [
        ("w", view(Dtype::F32, vec![2, 3], &values)),
        ("doubles", view(Dtype::F64, vec![3], &values)),
        ("bytes", view(Dtype::U8, vec![5], &values[..5])),
    ];
    let bytes = safetensors::serialize(tensors, None).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let model = Model::from_safetensors(&[&path]).unwrap();
    assert_eq!(model.params().unwrap().len(), 3);
    let in_memory = Model::from_safetensors_bytes(&bytes).unwrap();
    assert_eq!(in_memory.params().unwrap(), model.params().unwrap());
    assert_eq!(in_memory.values("w").unwrap().values, model.values("w").unwrap().values);
    let error = Model::from_safetensors_bytes(&bytes[..bytes.len() - 3]).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("safetensors in memory: tensor `bytes` ends at byte "), "{error}");
    for device in devices() {
        let mut graph = Graph::new();
        let w = graph.param("w", FLOAT, shape(&[2, 3])).unwrap();
        let y = graph.neg(w).unwrap();
        graph.output("y", y).unwrap();
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let expected: Vec<f32> = numbers(6, 1, 1.0).iter().map(|x| -x).collect();
        assert_eq!(executable.run(&[], &Extents::new()).unwrap().get::<f32>("y").unwrap(), expected);
        let with = |name: &str, element, extents: &[usize]| {
            let mut graph = Graph::new();
            let w = graph.param(name, element, shape(extents)).unwrap();
            let y = graph.contiguous(w).unwrap();
            graph.output("y", y).unwrap();
            Executable::compile(&graph, &model, &device, &Options::default()).unwrap_err().to_string()
        };
        assert_eq!(with("w", FLOAT, &[3, 2]), "param `w` is f32[2, 3]; expected f32[3, 2]");
        assert_eq!(
            with("w", ElementType::F16, &[2, 3]),
            "param `w`: elements of type f32 given, f16 expected; declare it f32 and `cast` it"
        );
        assert_eq!(
            with("doubles", FLOAT, &[3]),
            "param `doubles`: elements of type f64 given, f32 expected; declare it f64 and `cast` it"
        );
    }
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Model::from_safetensors(&[&path]).map(|_| ()).unwrap_err().to_string()
    };
    let (file, whole) = (path.display(), bytes.len());
    let header = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    // Cut within the last tensor, at its start, within the first, and after the header; the larger elements come first.
    for (kept, tensor, end) in [
        (whole - 3, "bytes", whole),
        (whole - 5, "bytes", whole),
        (whole - 6, "w", whole - 5),
        (header + 24, "w", whole - 5),
        (header + 7, "doubles", header + 24),
        (header, "doubles", header + 24),
    ] {
        let expected =
            format!("{file}: tensor `{tensor}` ends at byte {end}, but the file has {kept}: it is truncated");
        assert_eq!(read(&bytes[..kept]), expected);
    }
    for kept in [header - 1, whole / 2, 9, 8, 7, 1].into_iter().filter(|kept| *kept < header) {
        let expected = format!("{file}: its {kept} bytes end within the header: it is truncated");
        assert_eq!(read(&bytes[..kept]), expected);
    }
    assert!(read(&[]).starts_with(&format!("{file}: ")));
    assert_eq!(read(&[&bytes[..], &[0; 4]].concat()), format!("{file}: it goes on after its last tensor"));
    let mut garbled = bytes.clone();
    garbled[9] = b'{';
    let error = read(&garbled);
    assert!(error.starts_with(&format!("{file}: invalid JSON in header")), "{error}");
    let with_header = |header: &str| [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let error = read(&with_header(r#"{"w":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}}"#));
    assert!(error.starts_with(&format!("{file}: its header is not of safetensors: ")), "{error}");
    // Tensors that end where numbers do, and a header that does.
    let most = (1u64 << 61) - 1;
    let tensors: Vec<_> = (0..8)
        .map(|at| {
            let ends = [at * most, (at + 1) * most];
            format!(r#""{at}":{{"dtype":"U8","shape":[{most}],"data_offsets":{ends:?}}}"#)
        })
        .collect();
    let error = read(&with_header(&format!("{{{}}}", tensors.join(","))));
    assert!(error.starts_with(&format!("{file}: tensor `0` ends at byte ")), "{error}");
    let error = read(&[&u64::MAX.to_le_bytes()[..], &bytes[8..]].concat());
    let expected = format!("{file}: its header would take {} bytes; safetensors allow 100000000", u64::MAX);
    assert_eq!(error, expected);
    let missing = directory.join("missing");
    let error = Model::from_safetensors(&[&missing]).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", missing.display())), "{error}");
    let twice = directory.join("again.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(&twice, &bytes).unwrap();
    let error = Model::from_safetensors(&[&path, &twice]).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{}: tensor `", twice.display())) && error.ends_with("` is in another file too")
    );
    assert_eq!(model.values("q").unwrap_err().to_string(), "there is no param `q`; there are: bytes, doubles, w");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn wrong_runs_are_errors_that_say_what_is_wrong() {
    for device in devices() {
        let rows = Symbol::new("rows", 1, 8).unwrap();
        let mut graph = Graph::new();
        let x = graph.input("x", FLOAT, vec![Dim::from(&rows), Dim::from(2i64)]).unwrap();
        graph.input("spare", ElementType::I32, shape(&[1])).unwrap();
        let y = graph.exp(x).unwrap();
        graph.output("y", y).unwrap();
        let executable = compile(&graph, &device);
        let mut extents = Extents::new();
        extents.set(&rows, 3).unwrap();
        let (good, short, whole) = ([0f32; 6], [0f32; 5], [0i32; 6]);
        let error =
            |inputs: &[(&str, trefoil_graph::Data<'_>)]| executable.run(inputs, &extents).unwrap_err().to_string();
        assert_eq!(error(&[]), "input `x` (f32[rows, 2]) is not given");
        assert_eq!(
            error(&[("x", (&short).into())]),
            "input `x`: 5 elements given, 6 expected for f32[rows, 2], here [3, 2]"
        );
        assert_eq!(error(&[("x", (&whole).into())]), "input `x`: elements of type i32 given, f32 expected");
        assert_eq!(
            error(&[("x", (&good).into()), ("z", (&good).into())]),
            "there is no input `z`; there are: x, spare"
        );
        assert_eq!(error(&[("x", (&good).into()), ("x", (&good).into())]), "input `x` is given twice");
        assert_eq!(
            error(&[("x", (&good).into()), ("spare", (&good).into())]),
            "input `spare`: elements of type f32 given, i32 expected"
        );
        let outputs = executable.run(&[("x", (&good).into())], &extents).unwrap();
        assert_eq!(outputs.shape("y").unwrap(), [3, 2]);
        assert_eq!(
            outputs.get::<u32>("y").unwrap_err().to_string(),
            "output `y` has elements of type f32, and was read as u32"
        );
        assert_eq!(outputs.get::<f32>("w").unwrap_err().to_string(), "there is no output `w`; there are: y");
    }
}

#[test]
fn what_is_too_large_is_named() {
    let cpu = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    for (allocation, binding, what) in [(1 << 12, 1 << 30, "allocation"), (1 << 30, 1 << 12, "binding")] {
        let at_most = Limits { max_allocation_bytes: allocation, max_binding_bytes: binding, ..*cpu.limits() };
        let poor = trefoil_cpu::open(&DeviceOptions { at_most: Some(at_most), ..DeviceOptions::default() }).unwrap();
        let mut graph = Graph::new();
        let x = graph.input("the large one", FLOAT, shape(&[1025])).unwrap();
        let y = graph.exp(x).unwrap();
        graph.output("y", y).unwrap();
        let error = Executable::compile(&graph, &Model::new(), &poor, &Options::default()).unwrap_err();
        assert!(
            matches!(&error, Error::TooLarge { tensor, bytes: 4100, limit: 4096, what: given, .. } if tensor == "the large one" && *given == what),
            "{error}"
        );
    }
    // Several buffers hold what one does not.
    let at_most = Limits { max_allocation_bytes: 1 << 12, ..*cpu.limits() };
    let poor = trefoil_cpu::open(&DeviceOptions { at_most: Some(at_most), ..DeviceOptions::default() }).unwrap();
    let executable = check(&mixed(16, 32), &poor, &mixed_inputs(16, 32), &Extents::new(), 1e-4);
    assert!(executable.explain().activations.len() > 1, "{}", executable.explain());
}

#[test]
fn no_region_binds_more_buffers_than_the_device_has() {
    let cpu = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let at_most = Limits { max_storage_buffers: 4, ..*cpu.limits() };
    let poor = trefoil_cpu::open(&DeviceOptions { at_most: Some(at_most), ..DeviceOptions::default() }).unwrap();
    let mut graph = Graph::new();
    let names: Vec<String> = (0..9).map(|index| format!("x{index}")).collect();
    let mut sum = graph.input(&names[0], FLOAT, shape(&[10])).unwrap();
    for name in &names[1..] {
        let x = graph.input(name, FLOAT, shape(&[10])).unwrap();
        sum = graph.add(sum, x).unwrap();
    }
    graph.output("sum", sum).unwrap();
    let inputs: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(seed, name)| (name.as_str(), Values::F32(numbers(10, seed as u32, 1.0))))
        .collect();
    let executable = check(&graph, &poor, &inputs, &Extents::new(), 1e-5);
    assert!(executable.explain().steps.iter().all(|step| step.uses.len() <= 4));
    assert!(executable.explain().steps.len() < 8);
}

#[test]
fn the_proof_accepts_what_was_recorded() {
    for device in devices() {
        let graph = mixed(9, 6);
        let executable = compile(&graph, &device);
        prove(&graph, &executable.trace().unwrap()).unwrap();
    }
}

#[test]
fn operands_may_start_anywhere_in_memory() {
    for device in devices() {
        // Starts that are, and are not, multiples of what devices align bindings to; and one that each run decides.
        let split = Symbol::new("split", 0, 9).unwrap();
        for start in [Dim::from(0i64), Dim::from(1i64), Dim::from(64i64), Dim::from(&split)] {
            let mut graph = Graph::new();
            let x = graph.input("x", FLOAT, shape(&[100, 2])).unwrap();
            let part = graph.narrow(x, 0, start.clone(), 33).unwrap();
            let sums = graph.add_one(RowSum, &[part]).unwrap();
            graph.output("sums", sums).unwrap();
            let executable = compile(&graph, &device);
            let moving = start.constant().is_none();
            let copied = !executable.explain().decisions[0].copied.is_empty();
            assert_eq!(copied, moving && device.kind().has_pointers(), "{}", executable.explain());
            let values = numbers(200, 6, 1.0);
            for split_at in if moving { vec![0, 5, 9] } else { vec![0] } {
                let mut extents = Extents::new();
                if moving {
                    extents.set(&split, split_at).unwrap();
                }
                let outputs = executable.run(&[("x", (&values).into())], &extents).unwrap();
                let first = start.eval(&extents).unwrap() as usize;
                let expected: Vec<f32> = (first..first + 33).map(|row| values[2 * row] + values[2 * row + 1]).collect();
                assert_eq!(outputs.get::<f32>("sums").unwrap(), expected);
            }
        }
    }
}

#[test]
fn maps_of_users_need_not_know_vectors() {
    use trefoil_codegen::ir::builder::FunctionBuilder;
    use trefoil_codegen::ir::{BinaryOperator, Expression, Handle, Local};
    use trefoil_graph::op::{HostTensor, Map, Op, OpError, OpKind};
    use trefoil_graph::types::TensorType;

    /// x * 3 + 1, with scalar constants.
    #[derive(Debug)]
    struct Affine;
    impl Map for Affine {
        fn body(&self, body: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Handle<Expression> {
            let (x, three, one) = (body.local(elements[0]), body.f32(3.0), body.f32(1.0));
            let product = body.binary(BinaryOperator::Multiply, x, three);
            body.binary(BinaryOperator::Add, product, one)
        }
    }
    impl Op for Affine {
        fn name(&self) -> &'static str {
            "affine"
        }
        fn attributes(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }
        fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
            Ok(inputs.to_vec())
        }
        fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
            let values = inputs[0].values.iter().map(|x| x * 3.0 + 1.0).collect();
            vec![HostTensor { shape: inputs[0].shape.clone(), values }]
        }
        fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
            inputs[0].elements() * 2i64
        }
        fn kind(&self) -> OpKind<'_> {
            OpKind::Map(self)
        }
    }

    for device in devices() {
        for count in [3usize, 4, 11] {
            let mut graph = Graph::new();
            let x = graph.input("x", FLOAT, shape(&[count])).unwrap();
            let y = graph.add_one(Affine, &[x]).unwrap();
            let y = graph.tanh(y).unwrap();
            graph.output("y", y).unwrap();
            let values = Values::F32(numbers(count, 1, 1.0));
            let executable = check(&graph, &device, &[("x", values)], &Extents::new(), 3e-5);
            assert_eq!(executable.explain().steps.len(), 1);
        }
    }
}

/// Outputs go to buffers of exactly their size, whatever element they begin with; states are as the run leaves them.
#[test]
fn outputs_of_halves_and_bytes_go_to_buffers() {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F16, shape(&[8])).unwrap();
    let bytes = graph.input("bytes", ElementType::U8, shape(&[8])).unwrap();
    let state = graph.state("state", FLOAT, shape(&[1])).unwrap();
    let one = graph.scalar(1.0, FLOAT).unwrap();
    let more = graph.add(state, one).unwrap();
    graph.update(state, more, 0, Dim::from(0)).unwrap();
    for (name, of, first, count) in [("four", x, 1, 4), ("three", x, 2, 3), ("five", bytes, 3, 5)] {
        let part = graph.narrow(of, 0, first, count).unwrap();
        graph.output(name, part).unwrap();
    }
    let halves: Vec<half::f16> = (0..8u8).map(half::f16::from).collect();
    let given: Vec<u8> = (10..18).collect();
    for device in devices() {
        let executable = compile(&graph, &device);
        let mut four = device.uninit::<half::f16>(4).unwrap();
        let mut three = device.uninit::<half::f16>(3).unwrap();
        let mut five = device.uninit::<u8>(5).unwrap();
        let mut more = device.buffer(&[half::f16::ONE; 8]).unwrap();
        let extents = Extents::new();
        let run = || executable.prepare(&extents).input("x", &halves).input("bytes", &given);
        run()
            .take_buffer("four", &mut four)
            .take_buffer("three", &mut three)
            .take_buffer("five", &mut five)
            .run()
            .unwrap();
        assert_eq!(four.read().unwrap(), halves[1..5]);
        assert_eq!(three.read().unwrap(), halves[2..5]);
        assert_eq!(five.read().unwrap(), given[3..8]);
        // A part of a buffer has no padding behind it.
        let refused = run().take_buffer("three", more.slice_mut(0..3).unwrap()).run().unwrap_err().to_string();
        assert!(refused.contains("whole words") && refused.contains("`three`"), "{refused}");
        assert_eq!(more.read().unwrap(), [half::f16::ONE; 8]);
        assert_eq!(executable.state("state").unwrap().get::<f32>().unwrap(), [1.0]);
    }
}

/// What no output needs may be left out, but not be of another length.
#[test]
fn inputs_that_nothing_needs_are_checked() {
    let mut graph = Graph::new();
    let x = graph.input("x", FLOAT, shape(&[2])).unwrap();
    graph.input("idle", FLOAT, shape(&[4])).unwrap();
    graph.output("x again", x).unwrap();
    for device in devices() {
        let executable = compile(&graph, &device);
        let (two, three, four) = ([1f32; 2], [1f32; 3], [1f32; 4]);
        let run = |idle: Option<&[f32]>| {
            let inputs = [Some(("x", (&two).into())), idle.map(|idle| ("idle", idle.into()))];
            executable.run(&inputs.into_iter().flatten().collect::<Vec<_>>(), &Extents::new()).map(|_| ())
        };
        run(None).unwrap();
        run(Some(&four)).unwrap();
        let found = run(Some(&three)).unwrap_err();
        assert!(matches!(&found, Error::Length { name, given: 3, expected: 4, .. } if name == "idle"), "{found}");
    }
}

/// Memory that goes only when another thread has run an executable, as that of an owner whose lock that thread holds.
#[derive(Debug)]
struct Waits {
    memory: Arc<dyn Memory>,
    executable: Arc<Executable>,
    said: Sender<bool>,
}

impl Memory for Waits {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn room(&self) -> u64 {
        self.memory.room()
    }

    fn as_any(&self) -> &dyn Any {
        self.memory.as_any()
    }

    fn device(&self) -> u64 {
        self.memory.device()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let (executable, (answer, answered)) = (self.executable.clone(), channel());
        thread::spawn(move || answer.send(executable.run(&[("x", (&[1f32; 4]).into())], &Extents::new()).is_ok()));
        self.said.send(answered.recv_timeout(Duration::from_secs(60)) == Ok(true)).unwrap();
    }
}

#[test]
fn memory_of_the_caller_goes_when_the_run_has_let_go_of_all() {
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("x", FLOAT, [4]).unwrap();
        let y = graph.neg(x).unwrap();
        graph.output("y", y).unwrap();
        let executable = Arc::new(compile(&graph, &device));
        let (said, told) = channel();
        let extents = Extents::new();
        let range = || {
            let memory = device.buffer(&[2f32; 4]).unwrap().memory().clone();
            let memory = Waits { memory, executable: executable.clone(), said: said.clone() };
            MemoryRange { memory: Arc::new(memory), offset: 0, bytes: 16 }
        };
        executable.prepare(&extents).memory("x", FLOAT, range()).take_memory("y", FLOAT, range()).run().unwrap();
        // What was submitted holds memory until the device is done with it.
        device.wait().unwrap();
        // A run that fails before anything runs.
        let refused = executable.prepare(&extents).input("x", &[1f32; 3]).take_memory("y", FLOAT, range()).run();
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
        for _ in 0..3 {
            assert!(told.recv().unwrap(), "on {}", device.properties().name);
        }
    }
}
