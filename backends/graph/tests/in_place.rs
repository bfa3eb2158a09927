//! Scatters whose operand nobody reads any more write into its memory: what that saves, in bytes and copies, that the results are the same, and every reason against it.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::{Case, shape};
use common::ops::Increment;
use common::{Values, compare, computes, devices, numbers, tolerance, tries_every_way};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::scatter::Update;
use trefoil_graph::{
    Eager, ElementType, Error, Executable, Extents, Graph, IntoKernels, Model, Options, Symbol, Tensor,
};

use ElementType::{BF16, F16, F32, I64, U8, U32};

/// The ways that write into their operand's memory, and those that do not.
const IN_PLACE: [&str; 3] =
    ["last updates in place", "atomics in place", "updates in the order of their slots, in place"];
const APART: [&str; 3] = ["element by element", "atomics", "updates in the order of their slots"];

fn force(update: Update, way: &str) -> Options {
    Options { force: [(update.name().to_owned(), way.to_owned())].into(), ..Options::default() }
}

/// A scatter of one form of something that a map has made, and that nothing else reads.
fn scattered(element: ElementType, update: Update, form: usize, turned: bool) -> Case {
    let mut case = Case::default();
    let x = case.input("x", element, &[5, 7, 4]);
    let x = if element == ElementType::Bool { x } else { case.graph.add(x, x).unwrap() };
    let updates = |case: &mut Case, extents: &[usize]| {
        if turned { case.turned("updates", element, extents) } else { case.input("updates", element, extents) }
    };
    let y = match form {
        0 => {
            let i = case.input("i", ElementType::I32, &[3, 6]);
            let updates = updates(&mut case, &[5, 3, 6, 4]);
            case.graph.scatter(x, i, updates, 1, update)
        }
        1 => {
            let i = case.input("i", U8, &[5, 3, 4]);
            let updates = updates(&mut case, &[5, 3, 4]);
            case.graph.scatter_elements(x, i, updates, 1, update)
        }
        _ => {
            let i = case.input("i", I64, &[11, 2]);
            let updates = updates(&mut case, &[11, 4]);
            case.graph.scatter_nd(x, i, updates, update)
        }
    };
    case.output("y", y.unwrap());
    case
}

#[test]
fn every_type_in_every_form_by_every_way() {
    let mut taken = BTreeSet::new();
    for device in devices() {
        // A processor that plays a GPU takes minutes to compile the kernels of all types, which `scatters` runs there.
        let few = device.properties().software && device.kind() != DeviceKind::Cpu;
        let chosen =
            |element: &ElementType| !few || [F32, U8, BF16].contains(element) && tries_every_way(&device, *element);
        for element in ElementType::ALL.into_iter().filter(chosen) {
            for update in Update::ALL.into_iter().filter(|update| update.takes(element)) {
                if !computes(&device, element) {
                    continue;
                }
                for form in 0..3 {
                    let case = scattered(element, update, form, form == 2);
                    let inputs: Vec<_> =
                        case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
                    for way in IN_PLACE {
                        let options = force(update, way);
                        let executable = match Executable::compile(&case.graph, &Model::new(), &device, &options) {
                            Ok(executable) => executable,
                            // Not every type has atomics, and a set has a way of its own.
                            Err(Error::NoCandidate { .. } | Error::UnknownCandidate { .. }) => continue,
                            Err(error) => panic!("{way}: {error}"),
                        };
                        println!("{update:?} of {element}, form {form}, {way} on {}", device.properties().name);
                        compare(&case.graph, &executable, &inputs, &Extents::new(), 4.0 * tolerance(element));
                        let told = executable.explain();
                        assert!(told.steps.iter().all(|step| step.kernel != "scatter_copy"), "{told}");
                        assert!(told.to_string().contains(", over `"), "{told}");
                        taken.insert((way, update.name()));
                    }
                }
            }
        }
    }
    for update in Update::ALL {
        let ways = taken.iter().filter(|(_, taken)| *taken == update.name()).count();
        assert_eq!(ways, if matches!(update, Update::Add | Update::Max | Update::Min) { 2 } else { 1 }, "{taken:?}");
    }
}

/// Rows of a table, updated one time after the other.
fn chain(update: Update, times: usize) -> Case {
    let mut case = Case::default();
    let mut x = case.input("table", F32, &[1000, 64]);
    for time in 0..times {
        let places = (0..20).map(|i| (i * i * 7 + time as u32 * 13) % 1003).collect();
        let i = case.given(&format!("places {time}"), Values::U32(places), &[20]);
        let rows = case.input(&format!("rows {time}"), F32, &[20, 64]);
        x = case.graph.scatter(x, i, rows, 0, update).unwrap();
    }
    case.output("y", x);
    case
}

#[test]
fn bytes_and_copies_that_are_saved() {
    let table = 1000 * 64 * 4;
    for update in Update::ALL {
        let case = chain(update, 3);
        for device in devices() {
            let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            let compile =
                |options: &Options| Executable::compile(&case.graph, &Model::new(), &device, options).unwrap();
            let forbid = |ways: [&str; 3]| {
                let node = case.graph.nodes().iter().find(|node| node.op.name() == update.name()).unwrap();
                let known = node.op.kind().ways();
                let forbid = ways.into_iter().filter(|way| known.contains(way)).map(str::to_owned).collect();
                Options { forbid, ..Options::default() }
            };
            let (usual, apart) = (compile(&Options::default()), compile(&forbid(IN_PLACE)));
            let (told, told_apart) = (usual.explain(), apart.explain());
            for executable in [&usual, &apart] {
                // Twice: a run does not find what the one before left.
                compare(&case.graph, executable, &inputs, &Extents::new(), 1e-5);
                compare(&case.graph, executable, &inputs, &Extents::new(), 1e-5);
            }
            let in_place = told.decisions.iter().filter(|decision| IN_PLACE.contains(&&*decision.candidate)).count();
            assert_eq!(in_place, 3, "{update:?} on {}: {told}", device.properties().name);
            assert!(told_apart.decisions.iter().all(|decision| !IN_PLACE.contains(&&*decision.candidate)));
            // In place there is one table, otherwise one that is read and one that is written.
            let bytes: u64 = told.activations.iter().sum();
            let bytes_apart: u64 = told_apart.activations.iter().sum();
            println!("{update:?} on {}: {bytes} bytes, {bytes_apart} apart", device.properties().name);
            assert!(bytes < table + table / 2 && bytes_apart >= 2 * table, "{told}\n{told_apart}");
            assert!(told.steps.len() <= told_apart.steps.len(), "{told}\n{told_apart}");
            assert!(told.steps.iter().all(|step| step.kernel != "scatter_copy"), "{told}");
        }
    }
}

/// A graph, and why its scatter may not write over its operand.
type Row = (&'static str, fn(&mut Case) -> Tensor);

fn rows(case: &mut Case, x: Tensor) -> Tensor {
    let i = case.given("places", Values::U32(vec![1, 3, 3, 9, 5]), &[5]);
    let rows = case.input("rows", F32, &[5, 4]);
    case.graph.index_add(x, 0, i, rows).unwrap()
}

#[test]
fn what_must_stay_is_copied() {
    let table: [Row; 7] = [
        ("it is output `x`", |case| {
            let x = case.input("table", F32, &[6, 4]);
            let x = case.graph.relu(x).unwrap();
            case.output("x", x);
            rows(case, x)
        }),
        ("it is a param", |case| {
            let x = case.graph.param("weights", F32, shape(&[6, 4])).unwrap();
            rows(case, x)
        }),
        ("it is a constant", |case| {
            let x = case.graph.constant(F32, shape(&[6, 4]), &numbers(24, 5, 1.0)).unwrap();
            rows(case, x)
        }),
        ("reads it later", |case| {
            let x = case.input("table", F32, &[6, 4]);
            let x = case.graph.relu(x).unwrap();
            let y = rows(case, x);
            let later = case.graph.sum(x, &[0], false).unwrap();
            case.output("later", later);
            y
        }),
        ("it is read as another operand too", |case| {
            let x = case.input("table", F32, &[6, 4]);
            let x = case.graph.relu(x).unwrap();
            let i = case.given("places", Values::U32(vec![1, 3, 3, 9, 5, 0]), &[6]);
            case.graph.index_add(x, 0, i, x).unwrap()
        }),
        ("it is a part or another arrangement", |case| {
            let x = case.input("table", F32, &[9, 4]);
            let x = case.graph.relu(x).unwrap();
            let x = case.graph.narrow(x, 0, 2usize, 6usize).unwrap();
            rows(case, x)
        }),
        ("it is an input that stays for the next run", |case| {
            let x = case.input("resident", F32, &[6, 4]);
            rows(case, x)
        }),
    ];
    for (reason, build) in table {
        let mut case = Case::default();
        let y = build(&mut case);
        case.output("y", y);
        for device in devices() {
            let model = Model::new();
            let weights = numbers(24, 5, 1.0);
            if reason == "it is a param" {
                model.set("weights", &[6, 4], weights.as_slice()).unwrap();
            }
            let resident = case.inputs.iter().map(|(name, _)| name.clone()).filter(|name| name == "resident");
            let options = Options { resident: resident.collect(), ..Options::default() };
            let executable = Executable::compile(&case.graph, &model, &device, &options).unwrap();
            let told = executable.explain();
            let decision = told.decisions.iter().find(|decision| APART.contains(&&*decision.candidate));
            let others = &decision.unwrap_or_else(|| panic!("{reason}: {told}")).others;
            for way in IN_PLACE.iter().filter(|way| others.iter().any(|(known, _)| known == *way)) {
                let why = &others.iter().find(|(known, _)| known == way).unwrap().1;
                assert!(why.contains(reason), "{way}: {why}, not {reason}");
            }
            assert!(others.iter().any(|(known, _)| IN_PLACE.contains(&known.as_str())), "{told}");
            let mut inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            if reason == "it is a param" {
                let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
                let got = executable.run(&data, &Extents::new()).unwrap().host("y").unwrap();
                inputs.push(("weights", Values::F32(weights)));
                let leaves = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
                let wanted = trefoil_graph::reference::evaluate(&case.graph, &leaves, &Extents::new()).unwrap();
                let wanted = &wanted["y"].values;
                assert!(got.values.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-5));
                continue;
            }
            compare(&case.graph, &executable, &inputs, &Extents::new(), 1e-5);
        }
    }
}

/// A map of a table whose memory the scatter takes stays before it, though the scatter alone reads the result.
#[test]
fn maps_of_what_is_written_over_stay_outside() {
    let mut ran = 0;
    for device in devices() {
        for way in IN_PLACE {
            let mut case = Case::default();
            let table = case.input("table", F32, &[6, 4]);
            let table = case.graph.roll(table, &[(0, 1i64.into())]).unwrap();
            let i = case.given("places", Values::U32(vec![5, 4, 3, 2, 1, 0]), &[6]);
            let rows = case.graph.affine(table, 3.0, 1.0).unwrap();
            let y = case.graph.index_add(table, 0, i, rows).unwrap();
            case.output("y", y);
            let options = Options { into_kernels: IntoKernels::Everywhere, ..force(Update::Add, way) };
            let executable = match Executable::compile(&case.graph, &Model::new(), &device, &options) {
                Ok(executable) => executable,
                Err(Error::NoCandidate { .. } | Error::UnknownCandidate { .. }) => continue,
                Err(error) => panic!("{way}: {error}"),
            };
            let told = executable.explain();
            let mut refused = told.merges.iter().filter_map(|merge| merge.refused.as_deref());
            assert!(refused.any(|why| why == "it reads what its kernels write over"), "{told}");
            let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            compare(&case.graph, &executable, &inputs, &Extents::new(), 1e-5);
            ran += 1;
        }
    }
    assert!(ran > 0);
}

#[test]
fn what_was_read_before_does_not_matter() {
    for update in [Update::Set, Update::Add, Update::Mul] {
        let mut case = Case::default();
        let table = case.input("table", F32, &[6, 4]);
        let x = case.graph.relu(table).unwrap();
        // A map that could be one kernel with what comes after the scatter, and a sum.
        let before = case.graph.neg(x).unwrap();
        let sum = case.graph.sum(x, &[0], true).unwrap();
        let i = case.given("places", Values::U32(vec![1, 3, 3, 9, 5]), &[5]);
        let rows = case.input("rows", F32, &[5, 4]);
        let y = case.graph.scatter(x, i, rows, 0, update).unwrap();
        let after = case.graph.add(y, before).unwrap();
        let after = case.graph.mul(after, sum).unwrap();
        case.output("after", after);
        for device in devices() {
            let executable = case.check(&device, 1e-5);
            let told = executable.explain();
            assert!(told.decisions.iter().any(|decision| IN_PLACE.contains(&&*decision.candidate)), "{told}");
        }
    }
}

#[test]
fn zeros_that_are_filled_in() {
    let mut case = Case::default();
    let zeros = case.graph.fill(0.0, F32, shape(&[500, 8])).unwrap();
    let places = (0..300u32).map(|i| i * 7 % 500).collect();
    let i = case.given("places", Values::U32(places), &[300]);
    let rows = case.input("rows", F32, &[300, 8]);
    let y = case.graph.index_add(zeros, 0, i, rows).unwrap();
    case.output("y", y);
    for device in devices() {
        let executable = case.check(&device, 1e-5);
        let told = executable.explain();
        assert!(told.decisions.iter().any(|decision| IN_PLACE.contains(&&*decision.candidate)), "{told}");
    }
}

#[test]
fn each_run_decides_extents() {
    let slots = Symbol::new("slots", 0, 300).unwrap();
    let count = Symbol::new("count", 0, 900).unwrap();
    for (update, element) in [(Update::Set, F16), (Update::Add, F32), (Update::Max, BF16), (Update::Set, U32)] {
        let mut graph = Graph::new();
        let x = graph.input("x", element, (&slots, 6)).unwrap();
        let x = graph.add(x, x).unwrap();
        let i = graph.input("i", U32, [&count]).unwrap();
        let rows = graph.input("rows", element, (&count, 6)).unwrap();
        let y = graph.scatter(x, i, rows, 0, update).unwrap();
        graph.output("y", y).unwrap();
        for device in devices() {
            let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
            let told = executable.explain();
            assert!(told.decisions.iter().any(|decision| IN_PLACE.contains(&&*decision.candidate)), "{told}");
            for (s, n) in [(7usize, 5usize), (300, 900), (0, 4), (200, 0), (1, 1)] {
                let mut extents = Extents::new();
                extents.set(&slots, s as i64).unwrap();
                extents.set(&count, n as i64).unwrap();
                let inputs = [
                    ("x", Values::of(element, s * 6, 1, 1.0)),
                    ("i", Values::U32((0..n as u32).map(|i| i * 17 % (s as u32 + 3)).collect())),
                    ("rows", Values::of(element, n * 6, 2, 1.0)),
                ];
                compare(&graph, &executable, &inputs, &extents, 4.0 * tolerance(element));
            }
        }
    }
}

#[test]
fn operands_of_eager_calls_stay() {
    for device in devices() {
        let eager = Eager::new(&device);
        let x = numbers(24, 5, 1.0);
        let table = eager.tensor(&[6, 4], &x).unwrap();
        let places = eager.tensor(&[5], &[1u32, 3, 3, 9, 5]).unwrap();
        let rows = eager.tensor(&[5, 4], &numbers(20, 6, 1.0)).unwrap();
        for update in [Update::Set, Update::Add, Update::Mul] {
            let y = eager.scatter(&table, &places, &rows, 0, update).unwrap();
            assert_ne!(y.read::<f32>().unwrap(), x);
            assert_eq!(table.read::<f32>().unwrap(), x, "{update:?} on {}", device.properties().name);
        }
        // Turned around it is copied first, and the copy is written over.
        let turned = eager.transpose(&table, &[1, 0]).unwrap();
        let rows = eager.tensor(&[5, 6], &numbers(30, 6, 1.0)).unwrap();
        let places = eager.tensor(&[5], &[1u32, 3, 3, 9, 0]).unwrap();
        let _ = eager.scatter(&turned, &places, &rows, 0, Update::Add).unwrap().read::<f32>().unwrap();
        assert_eq!(table.read::<f32>().unwrap(), x);
    }
}

/// A copy that was made for one reader is an output's memory, or another reader's, and so is not written over.
#[test]
fn copies_that_others_read_stay() {
    let mut of_an_output = Case::default();
    let x = of_an_output.turned("x", F32, &[3, 2]);
    // The elements of the result in their order: the copy is the output.
    let flat = of_an_output.graph.reshape(x, shape(&[6])).unwrap();
    let y = of_an_output.graph.add_one(Increment, &[x]).unwrap();
    of_an_output.output("flat", flat);
    of_an_output.output("y", y);

    let mut of_a_reader = Case::default();
    let x = of_a_reader.turned("x", F32, &[3, 2]);
    let flat = of_a_reader.graph.reshape(x, shape(&[6])).unwrap();
    let y = of_a_reader.graph.add_one(Increment, &[x]).unwrap();
    let sum = of_a_reader.graph.sum(flat, &[0], true).unwrap();
    let both = of_a_reader.graph.add(y, sum).unwrap();
    let total = of_a_reader.graph.mul(flat, sum).unwrap();
    of_a_reader.output("both", both);
    of_a_reader.output("total", total);

    // One that nobody else reads is.
    let mut alone = Case::default();
    let x = alone.turned("x", F32, &[3, 2]);
    let y = alone.graph.add_one(Increment, &[x]).unwrap();
    alone.output("y", y);
    for device in devices() {
        for case in [&of_an_output, &of_a_reader, &alone] {
            let told = case.check(&device, 1e-5).explain();
            let increment = told.decisions.iter().find(|decision| decision.candidate == "in place").unwrap();
            assert_eq!(increment.copied, [0], "{told}");
            // It pays for the copy that it gets.
            assert!(increment.cost > 2.0, "{told}");
        }
    }
}
