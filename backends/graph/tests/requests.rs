//! What one run is given and takes, on every device: outputs in any order, rows of them, none, into the caller's memory; inputs from the device or as they were; only the bytes asked for move; and every error.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::ops::Range;

use common::states::at;
use common::{devices, numbers};
use counting::Counting;
use trefoil_dsl::device::{Device, DeviceOptions, MemoryRange};
use trefoil_graph::compile::prove::prove;
use trefoil_graph::{Data, DataMut, Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol};

const FLOAT: ElementType = ElementType::F32;
const COLUMNS: usize = 5;

/// The rows of all outputs, and the executable.
struct Subject {
    graph: Graph,
    rows: Symbol,
}

/// `sum` = x + by, `bytes` = -small in rows of three bytes, and `one` = -single, which has no rows.
fn subject() -> Subject {
    let rows = Symbol::new("rows", 0, 6).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", FLOAT, vec![Dim::from(&rows), COLUMNS.into()]).unwrap();
    let by = graph.input("by", FLOAT, vec![Dim::from(COLUMNS)]).unwrap();
    let small = graph.input("small", ElementType::I8, vec![Dim::from(&rows), 3.into()]).unwrap();
    let single = graph.input("single", FLOAT, Vec::<Dim>::new()).unwrap();
    let sum = graph.add(x, by).unwrap();
    let bytes = graph.neg(small).unwrap();
    let one = graph.neg(single).unwrap();
    for (name, tensor) in [("sum", sum), ("bytes", bytes), ("one", one)] {
        graph.output(name, tensor).unwrap();
    }
    Subject { graph, rows }
}

struct Given {
    x: Vec<f32>,
    by: Vec<f32>,
    small: Vec<i8>,
}

impl Given {
    fn new(rows: usize, seed: u32) -> Self {
        let small = numbers(rows * 3, seed + 1, 100.0).into_iter().map(|x| x as i8).collect();
        Self { x: numbers(rows * COLUMNS, seed, 1.0), by: numbers(COLUMNS, seed + 2, 1.0), small }
    }

    fn inputs(&self) -> [(&str, Data<'_>); 4] {
        let single = (&[7f32]).into();
        [("x", (&self.x).into()), ("by", (&self.by).into()), ("small", (&self.small).into()), ("single", single)]
    }

    fn sum(&self) -> Vec<f32> {
        self.x.iter().enumerate().map(|(i, x)| x + self.by[i % COLUMNS]).collect()
    }

    fn bytes(&self) -> Vec<i8> {
        self.small.iter().map(|x| x.wrapping_neg()).collect()
    }
}

fn compile(subject: &Subject, device: &Device, resident: &[&str]) -> Executable {
    let resident = resident.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { resident, ..Options::default() };
    let executable = Executable::compile(&subject.graph, &Model::new(), device, &options).unwrap();
    prove(&subject.graph, &executable.trace().unwrap()).unwrap();
    executable
}

#[test]
fn any_part_of_the_outputs_is_taken_and_nothing_else() {
    let subject = subject();
    for device in devices() {
        let (counting, device) = Counting::of(&device);
        let executable = compile(&subject, &device, &[]);
        for rows in [0usize, 1, 5, 6] {
            let (given, extents) = (Given::new(rows, 3), at(&subject.rows, rows));
            let (sum, bytes) = (given.sum(), given.bytes());
            let begin = || {
                counting.take();
                let run = executable.prepare(&extents);
                given.inputs().into_iter().fold(run, |run, (name, data)| run.input(name, data))
            };
            // All, in the graph's order.
            let all = begin().run().unwrap();
            assert_eq!(all.iter().map(|of| of.name()).collect::<Vec<_>>(), ["sum", "bytes", "one"]);
            assert_eq!((all.get::<f32>("sum").unwrap(), all.get::<i8>("bytes").unwrap()), (&*sum, &*bytes));
            assert_eq!((all.get::<f32>("one").unwrap(), all.shape("one").unwrap()), (&[-7f32][..], &[][..]));
            assert_eq!(counting.take()[1], (rows * (4 * COLUMNS + 3) + 4) as u64);
            // Some, in the caller's.
            let some = begin().take("one").take("bytes").run().unwrap();
            assert_eq!(some.iter().map(|of| of.name()).collect::<Vec<_>>(), ["one", "bytes"]);
            assert_eq!(some.get::<i8>("bytes").unwrap(), bytes);
            assert_eq!(
                some.get::<f32>("sum").unwrap_err().to_string(),
                "there is no output `sum`; there are: one, bytes"
            );
            assert_eq!(counting.take()[1], (rows * 3 + 4) as u64);
            // None.
            assert_eq!(begin().take_nothing().run().unwrap().iter().count(), 0);
            assert_eq!(counting.take()[1], 0);
            // Every range of rows, as a value and into memory, beside a whole output.
            for first in 0..=rows {
                for end in first..=rows {
                    let (mut floats, mut small) = (vec![9f32; (end - first) * COLUMNS], vec![9i8; (end - first) * 3]);
                    let mut whole = vec![9f32; rows * COLUMNS];
                    let range = first as u64..end as u64;
                    let taken = begin()
                        .take_rows_into("bytes", range.clone(), &mut small)
                        .take_rows("sum", range.clone())
                        .take_rows_into("sum", range, &mut floats)
                        .take_into("sum", &mut whole)
                        .run()
                        .unwrap();
                    let wanted = &sum[first * COLUMNS..end * COLUMNS];
                    assert_eq!((&*floats, &*small), (wanted, &bytes[first * 3..end * 3]));
                    assert_eq!(taken.get::<f32>("sum").unwrap(), wanted);
                    assert_eq!(taken.shape("sum").unwrap(), [end - first, COLUMNS]);
                    assert_eq!(taken.iter().count(), 1);
                    assert_eq!(whole, sum);
                    let moved = (end - first) * (2 * 4 * COLUMNS + 3) + rows * 4 * COLUMNS;
                    assert_eq!(counting.take()[1], moved as u64);
                }
            }
        }
    }
}

#[test]
fn bools_are_taken_as_words() {
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::Bool, [4]).unwrap();
        let y = graph.logical_not(x).unwrap();
        graph.output("y", y).unwrap();
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        let extents = Extents::new();
        let mut words = [9u32; 2];
        let into = DataMut::from_bytes(ElementType::Bool, bytemuck::cast_slice_mut(&mut words)).unwrap();
        let given = [true, false, false, true];
        executable.prepare(&extents).input("x", &given[..]).take_rows_into("y", 2..4, into).run().unwrap();
        assert_eq!(words, [1, 0]);
    }
}

#[test]
fn wrong_parts_of_outputs_are_refused() {
    let subject = subject();
    for device in devices() {
        let executable = compile(&subject, &device, &[]);
        let (given, extents) = (Given::new(4, 3), at(&subject.rows, 4));
        let begin = || {
            let run = executable.prepare(&extents);
            given.inputs().into_iter().fold(run, |run, (name, data)| run.input(name, data))
        };
        for rows in [3..5, 5..5, 0..u64::MAX, u64::MAX..u64::MAX, Range { start: 2, end: 1 }] {
            let error = begin().take_rows("sum", rows.clone()).run().unwrap_err().to_string();
            assert_eq!(error, format!("output `sum`: rows {rows:?} asked for, of [4, 5]"));
        }
        let error = begin().take_rows("one", 0..1).run().unwrap_err().to_string();
        assert_eq!(error, "output `one`: rows 0..1 asked for, of []");
        let (mut short, mut whole) = ([0f32; 19], [0u32; 20]);
        let error = begin().take_into("sum", &mut short).run().unwrap_err().to_string();
        assert_eq!(error, "output `sum`: 19 elements given, 20 expected for f32[rows, 5], here [4, 5]");
        let error = begin().take_rows_into("sum", 1..2, &mut short).run().unwrap_err().to_string();
        assert_eq!(error, "output `sum`: 19 elements given, 5 expected for f32[rows, 5], here [4, 5]");
        let error = begin().take_into("sum", &mut whole).run().unwrap_err().to_string();
        assert_eq!(error, "output `sum`: elements of type u32 given, f32 expected");
        let error = begin().take("total").run().unwrap_err().to_string();
        assert_eq!(error, "there is no output `total`; there are: sum, bytes, one");
        // Nothing of that keeps the next run from being right.
        assert_eq!(begin().run().unwrap().get::<f32>("sum").unwrap(), given.sum());
    }
}

#[test]
fn ids_stand_for_names_in_an_executable_and_its_forks() {
    let subject = subject();
    for device in devices() {
        let executable = compile(&subject, &device, &[]);
        let ids = ["x", "by", "small", "single"].map(|name| executable.input(name).unwrap());
        let (sum, one) = (executable.output("sum").unwrap(), executable.output("one").unwrap());
        let (given, extents) = (Given::new(3, 8), at(&subject.rows, 3));
        for executable in [&executable, &executable.fork().unwrap()] {
            let run = executable.prepare(&extents).take(one).take(sum);
            let run = ids.into_iter().zip(given.inputs()).fold(run, |run, (id, (_, data))| run.input(id, data));
            let outputs = run.run().unwrap();
            assert_eq!(outputs.get::<f32>("sum").unwrap(), given.sum());
            assert_eq!(outputs.iter().next().unwrap().name(), "one");
        }
        let other = compile(&subject, &device, &[]);
        let error = other.prepare(&extents).input(ids[0], &given.x).run().unwrap_err();
        assert!(matches!(error, Error::OtherExecutable { what: "input" }), "{error}");
        let error = other.prepare(&extents).take(sum).run().unwrap_err();
        assert!(matches!(error, Error::OtherExecutable { what: "output" }), "{error}");
        assert_eq!(
            executable.input("z").unwrap_err().to_string(),
            "there is no input `z`; there are: x, by, small, single"
        );
    }
}

#[test]
fn inputs_come_from_the_device() {
    let subject = subject();
    for device in devices() {
        let (counting, device) = Counting::of(&device);
        let executable = compile(&subject, &device, &[]);
        for rows in [0usize, 1, 5] {
            let (given, extents) = (Given::new(rows, 12), at(&subject.rows, rows));
            // From the first element of a buffer that is longer, from one within it, and from memory without a type, whose last word is not full.
            let long = [&given.x[..], &[f32::NAN; 3]].concat();
            let x = device.buffer(&long).unwrap();
            let around = device.buffer(&[&[f32::NAN], &given.by[..], &[f32::NAN]].concat()).unwrap();
            let small = device.backend().allocate(given.small.len() as u64, "small").unwrap();
            let small = MemoryRange { bytes: small.bytes(), memory: small, offset: 0 };
            device.backend().write(&small, bytemuck::cast_slice(&given.small)).unwrap();
            counting.take();
            let outputs = executable
                .prepare(&extents)
                .buffer("x", &x)
                .buffer("by", around.slice(1..=COLUMNS).unwrap())
                .memory("small", ElementType::I8, small)
                .input("single", &[7f32])
                .run()
                .unwrap();
            assert_eq!(outputs.get::<f32>("sum").unwrap(), given.sum());
            assert_eq!(outputs.get::<i8>("bytes").unwrap(), given.bytes());
            let [up, _, copied] = counting.take();
            assert_eq!((up, copied), (4, (4 * (rows + 1) * COLUMNS + (3 * rows).next_multiple_of(4)) as u64));
        }
    }
}

#[test]
fn wrong_device_memory_is_refused() {
    let subject = subject();
    let cpu = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    for device in devices() {
        let executable = compile(&subject, &device, &[]);
        let (given, extents) = (Given::new(4, 12), at(&subject.rows, 4));
        let error = |range: MemoryRange, element| {
            let run = executable.prepare(&extents).memory("x", element, range);
            let rest = given.inputs().into_iter().skip(1);
            rest.fold(run, |run, (name, data)| run.input(name, data)).run().unwrap_err().to_string()
        };
        let own = device.buffer(&given.x).unwrap().memory().clone();
        let range = |offset, bytes| MemoryRange { memory: own.clone(), offset, bytes };
        let name = device.properties().label();
        let foreign = MemoryRange { memory: cpu.buffer(&given.x).unwrap().memory().clone(), offset: 0, bytes: 80 };
        assert_eq!(error(foreign, FLOAT), format!("the memory of input `x` belongs to another device than {name}"));
        assert_eq!(
            error(range(0, 79), FLOAT),
            "input `x`: 19 elements given, 20 expected for f32[rows, 5], here [4, 5]"
        );
        for (offset, bytes) in [(4, 80), (u64::MAX, 80), (81, 0)] {
            let message = error(range(offset, bytes), FLOAT);
            assert!(message.starts_with("the memory of input `x`, counted in bytes: "), "{message}");
        }
        assert_eq!(error(range(0, 80), ElementType::U32), "input `x`: elements of type u32 given, f32 expected");
        let long = device.buffer(&[0f32; 30]).unwrap().memory().clone();
        let message = error(MemoryRange { memory: long, offset: 2, bytes: 80 }, FLOAT);
        assert!(message.ends_with("it starts at byte 2, not at a multiple of 4"), "{message}");
        // Nothing of that keeps the next run from being right.
        assert_eq!(executable.run(&given.inputs(), &extents).unwrap().get::<f32>("sum").unwrap(), given.sum());
    }
}

#[test]
fn inputs_that_do_not_change_are_not_uploaded_again() {
    let subject = subject();
    for device in devices() {
        let (counting, device) = Counting::of(&device);
        let executable = compile(&subject, &device, &["by", "small"]);
        let first = Given::new(4, 20);
        let extents = at(&subject.rows, 4);
        let rest = |executable: &Executable, given: &Given| {
            let run = executable.prepare(&extents).input("x", &given.x).input("single", &[7f32]);
            run.unchanged("by").unchanged("small").run()
        };
        let refused =
            |result: trefoil_graph::Result<_>| result.map(|_: trefoil_graph::Outputs| ()).unwrap_err().to_string();
        assert_eq!(refused(rest(&executable, &first)), "input `by` cannot stay as it is: no run was given it");
        executable.run(&first.inputs(), &extents).unwrap();
        counting.take();
        for seed in 21..24 {
            let given = Given { x: Given::new(4, seed).x, by: first.by.clone(), small: first.small.clone() };
            let outputs = rest(&executable, &given).unwrap();
            assert_eq!(outputs.get::<f32>("sum").unwrap(), given.sum());
            assert_eq!(outputs.get::<i8>("bytes").unwrap(), given.bytes());
            assert_eq!(counting.take()[0], (4 * 4 * COLUMNS + 4) as u64);
        }
        // What is given anew is what stays from then on.
        let second = Given::new(4, 30);
        executable.run(&second.inputs(), &extents).unwrap();
        assert_eq!(rest(&executable, &second).unwrap().get::<f32>("sum").unwrap(), second.sum());
        // Memory of a fork is its own.
        let fork = executable.fork().unwrap();
        assert_eq!(refused(rest(&fork, &second)), "input `by` cannot stay as it is: no run was given it");
        let other = at(&subject.rows, 3);
        let run = executable.prepare(&other).input("x", &[0f32; 15]).input("single", &[7f32]).unchanged("by");
        assert_eq!(
            refused(run.unchanged("small").run()),
            "input `small` cannot stay as it is: the last run had 12 elements of it, this one has 9"
        );
        let run = executable.prepare(&extents).unchanged("x");
        assert_eq!(
            refused(run.run()),
            "input `x` cannot stay as it is: its memory serves again once it is read, unless `Options::resident` names it"
        );
        let options = Options { resident: ["sum".to_owned()].into(), ..Options::default() };
        let error = Executable::compile(&subject.graph, &Model::new(), &device, &options).unwrap_err().to_string();
        assert_eq!(error, "there is no input `sum`; there are: by, single, small, x");
    }
}

#[test]
fn memory_of_inputs_serves_again_unless_they_are_resident() {
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("x", FLOAT, [1000]).unwrap();
        let mut y = x;
        for _ in 0..4 {
            y = graph.exp(y).unwrap();
            y = graph.tanh(y).unwrap();
        }
        graph.output("y", y).unwrap();
        let bytes = |resident: &[&str]| {
            let resident = resident.iter().map(|name| (*name).to_owned()).collect();
            let options = Options { fuse: false, resident, ..Options::default() };
            let executable = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
            prove(&graph, &executable.trace().unwrap()).unwrap();
            (executable.explain().activations.iter().sum::<u64>(), executable)
        };
        let ((without, _), (with, executable)) = (bytes(&[]), bytes(&["x"]));
        assert_eq!(with, without + 4096);
        let (values, extents) = (numbers(1000, 3, 1.0), Extents::new());
        let first = executable.run(&[("x", (&values).into())], &extents).unwrap();
        for _ in 0..2 {
            let again = executable.prepare(&extents).unchanged("x").run().unwrap();
            assert_eq!(again.get::<f32>("y").unwrap(), first.get::<f32>("y").unwrap());
        }
    }
}
