//! Plans for given values of symbols: the same results, the same weights and states, and no more plans than were asked for.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::{devices, devices_of_its_own, numbers};
use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
use trefoil_graph::ops::pull::arrange::{Roll, Tile};
use trefoil_graph::ops::pull::border::Pad;
use trefoil_graph::ops::pull::convolution::Convolution;
use trefoil_graph::ops::pull::made::Eye;
use trefoil_graph::ops::pull::masks::Triangle;
use trefoil_graph::ops::pull::patches::{Overlaid, Patches};
use trefoil_graph::ops::pull::pool::Pool;
use trefoil_graph::ops::pull::slices::UpdateSlice;
use trefoil_graph::ops::view::Narrow;
use trefoil_graph::ops::{Activation, Border, Overhang, Pooling, Slide, Window};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Op, Options, Plans, Symbol};

const FLOAT: ElementType = ElementType::F32;
const MOST: i64 = 13;

/// `sums[0..rows] += x @ w`, from a state of all rows, of which `tail` is the last.
fn graph(rows: &Symbol) -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(rows), Dim::from(24)]).unwrap();
    let w = g.param("w", FLOAT, [24, 8]).unwrap();
    let sums = g.state("sums", FLOAT, [MOST, 8]).unwrap();
    let product = g.matmul(x, w).unwrap();
    let old = g.narrow(sums, 0, 0, Dim::from(rows)).unwrap();
    let new = g.add(old, product).unwrap();
    let newest = g.update(sums, new, 0, Dim::from(0)).unwrap();
    // Rows that depend on the symbol by an op's own attribute.
    let tail = g.narrow(newest, 0, Dim::from(rows) - 1, 1).unwrap();
    let tail = g.neg(tail).unwrap();
    g.output("tail", tail).unwrap();
    let numbers = g.arange(1.0, 2.0, Dim::from(rows) * 2, FLOAT).unwrap();
    g.output("numbers", numbers).unwrap();
    g
}

fn extents(rows: &Symbol, count: i64) -> Extents {
    let mut extents = Extents::new();
    extents.set(rows, count).unwrap();
    extents
}

#[test]
fn states_run_on_over_plans_and_weights_are_held_once() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let graph = graph(&rows);
    let weights = numbers(24 * 8, 1, 1.0);
    for device in devices_of_its_own() {
        let what = &device.properties().name;
        let model = Model::new();
        model.set("w", &[24, 8], &weights).unwrap();
        let general = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let allocated = || device.backend().counters().allocated_bytes;
        let before = allocated();
        let plans = Plans::new(general, &[&rows], 3);
        let mut sums = vec![0f64; MOST as usize * 8];
        for (round, count) in [5, 13, 5, 1, 7, 13, 2, 5].into_iter().enumerate() {
            let x = numbers(count as usize * 24, round as u32, 1.0);
            let at = extents(&rows, count);
            let inputs = [("x", (&x).into())];
            // Every other run is one of the plan for all.
            let outputs =
                if round % 2 == 0 { plans.run(&inputs, &at) } else { plans.general().run(&inputs, &at) }.unwrap();
            for row in 0..count as usize {
                for column in 0..8 {
                    let terms = (0..24).map(|k| f64::from(x[row * 24 + k]) * f64::from(weights[k * 8 + column]));
                    sums[row * 8 + column] += terms.sum::<f64>();
                }
            }
            let close = |values: &[f32], wanted: &[f64]| {
                assert_eq!(values.len(), wanted.len(), "{what}, {count} rows");
                values.iter().zip(wanted).all(|(value, wanted)| (f64::from(*value) - wanted).abs() < 1e-4)
            };
            let last = (count as usize - 1) * 8;
            let tail: Vec<f64> = sums[last..last + 8].iter().map(|sum| -sum).collect();
            assert!(close(outputs.get::<f32>("tail").unwrap(), &tail), "{what}, {count} rows");
            let odd: Vec<f64> = (0..2 * count).map(|number| f64::from(2 * number as u32 + 1)).collect();
            assert!(close(outputs.get::<f32>("numbers").unwrap(), &odd), "{what}, {count} rows");
            assert!(close(plans.general().state("sums").unwrap().get::<f32>().unwrap(), &sums), "{what}");
            let plan = plans.at(&at).unwrap();
            assert!(close(plan.state("sums").unwrap().get::<f32>().unwrap(), &sums), "{what}");
        }
        // Rounds and looks at the plan made 5, 13, 1, 7, 13 again, 2, and 5 again.
        let statistics = plans.statistics().unwrap();
        assert_eq!((statistics.made, statistics.kept), (7, 3), "{what}");
        let own = |plan: &Executable| plan.explain().activations.iter().sum::<u64>();
        let kept: u64 = [13, 2, 5].into_iter().map(|count| own(&plans.at(&extents(&rows, count)).unwrap())).sum();
        // Activations alone: neither weights nor states.
        assert_eq!(allocated() - before, kept, "{what}");
        plans.general().reset().unwrap();
        let plan = plans.at(&extents(&rows, 5)).unwrap();
        assert_eq!(plan.state("sums").unwrap().get::<f32>().unwrap(), [0.0; MOST as usize * 8], "{what}");
        assert!(own(&plan) < own(plans.general()), "{what}: it was planned for its own value");
    }
}

/// A plan that cannot be made costs none of those that are there, unless their memory is what it lacks.
#[test]
fn plans_go_where_their_memory_is_needed() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    for device in devices() {
        let (faults, faulty) = Faults::over(&device);
        let model = Model::new();
        model.set("w", &[24, 8], &numbers(24 * 8, 1, 1.0)).unwrap();
        let general = Executable::compile(&graph(&rows), &model, &faulty, &Options::default()).unwrap();
        let plans = Plans::new(general, &[&rows], 3);
        let fails = |call| faults.plant(Fault { call, after: 0, then: Then::GoesOn });
        let at = |count| plans.at(&extents(&rows, count));
        let [_, newer] = [5, 7].map(|count| at(count).unwrap());
        fails(Call::Record);
        assert!(at(3).is_err());
        assert_eq!(plans.statistics().unwrap().kept, 2);
        fails(Call::Allocation);
        at(3).unwrap();
        let statistics = plans.statistics().unwrap();
        assert_eq!((statistics.made, statistics.kept), (3, 2));
        assert!(std::sync::Arc::ptr_eq(&newer, &at(7).unwrap()), "the older one went");
    }
}

#[test]
fn a_plan_is_for_its_values_alone() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let device = &devices()[0];
    let model = Model::new();
    model.set("w", &[24, 8], &numbers(24 * 8, 1, 1.0)).unwrap();
    let general = Executable::compile(&graph(&rows), &model, device, &Options::default()).unwrap();
    let plan = general.specialise(&extents(&rows, 5)).unwrap();
    assert_eq!(plan.bindings().get(&rows), Some(5));
    let x = numbers(7 * 24, 1, 1.0);
    let refused = plan.run(&[("x", (&x).into())], &extents(&rows, 7));
    assert!(matches!(&refused, Err(Error::Bound { symbol, given, expected: 5 }) if symbol == "rows" && given == "7"));
    assert!(matches!(plan.run(&[("x", (&x).into())], &Extents::new()), Err(Error::Bound { .. })));
    // Ids of the one are ids of the other.
    let (x_id, tail) = (general.input("x").unwrap(), general.output("tail").unwrap());
    let x = &x[..5 * 24];
    let at = extents(&rows, 5);
    let outputs = plan.prepare(&at).input(x_id, x).take(tail).run().unwrap();
    assert_eq!(outputs.iter().count(), 1);
    // A fork of a plan is one with states of its own.
    let fork = plan.fork().unwrap();
    plan.reset().unwrap();
    assert_ne!(fork.state("sums").unwrap().get::<f32>().unwrap(), [0.0; MOST as usize * 8]);
}

#[test]
fn extents_are_found_by_the_shapes_of_inputs() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows), Dim::from(2)]).unwrap();
    let both = g.input("both", FLOAT, [Dim::from(&rows) * 2, Dim::from(2)]).unwrap();
    let y = g.concat(&[x, both], 0).unwrap();
    g.output("y", y).unwrap();
    let executable = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let of = |shapes: &[(&str, &[usize])]| executable.extents_of(shapes);
    assert_eq!(of(&[("x", &[3, 2]), ("both", &[6, 2])]).unwrap().get(&rows), Some(3));
    assert_eq!(of(&[("both", &[6, 2]), ("x", &[3, 2])]).unwrap().get(&rows), Some(3));
    assert!(matches!(of(&[("x", &[3, 2]), ("both", &[5, 2])]), Err(Error::Shape { name, .. }) if name == "both"));
    let error = of(&[("x", &[3])]).unwrap_err().to_string();
    assert!(error.starts_with("input `x` is f32[3]; "), "{error}");
    assert!(matches!(of(&[("x", &[3, 4])]), Err(Error::Shape { .. })));
    assert!(matches!(of(&[("x", &[14, 2])]), Err(Error::Dim(_))));
    assert!(matches!(of(&[("z", &[1])]), Err(Error::Unknown { .. })));
}

#[test]
fn a_seed_runs_on_over_plans() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let mut g = Graph::new();
    let drawn = g.uniform([Dim::from(&rows)], 0.0, 1.0, FLOAT).unwrap();
    g.output("drawn", drawn).unwrap();
    let at = extents(&rows, 3);
    let draw = |executable: &Executable| executable.run(&[], &at).unwrap().get::<f32>("drawn").unwrap().to_vec();
    for device in devices() {
        let compile = || Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let alone = compile();
        let wanted: Vec<_> = (0..4).map(|_| draw(&alone)).collect();
        let general = compile();
        let plan = general.specialise(&at).unwrap();
        let found = [draw(&general), draw(&plan), draw(&plan), draw(&general)];
        assert_eq!(wanted, found, "{}", device.properties().name);
    }
}

#[test]
fn no_plan_is_kept_where_none_may_be() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let general = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let plans = Plans::new(general, &[&rows], 0);
    for _ in 0..2 {
        assert_eq!(plans.run(&[("x", (&[1f32, 2.0]).into())], &extents(&rows, 2)).unwrap().iter().count(), 1);
    }
    let statistics = plans.statistics().unwrap();
    assert_eq!((statistics.made, statistics.found, statistics.kept), (2, 0, 0));
}

#[test]
fn a_symbol_that_the_graph_lacks_is_refused() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let columns = Symbol::new("columns", 1, 8).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let general = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let plan = general.specialise(&extents(&rows, 2)).unwrap();
    let mut both = extents(&rows, 2);
    both.set(&columns, 3).unwrap();
    for executable in [&general, &plan] {
        let run = |at: &Extents| executable.run(&[("x", (&[1f32, 2.0]).into())], at).map(drop);
        let error = run(&both).unwrap_err().to_string();
        assert_eq!(error, format!("there is no symbol `columns (1 to 8)`; there are: rows (1 to {MOST})"));
        let symbols: Vec<_> = executable.symbols().cloned().collect();
        assert_eq!(symbols, std::slice::from_ref(&rows));
        run(&both.only(&symbols)).unwrap();
    }
}

/// Symbols that no run looks up are those of ops that no output needs.
#[test]
fn a_symbol_is_known_by_its_whole_name_and_its_bounds() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let idle = ["start", "cache-position"].map(|name| Symbol::new(name, 0, 3).unwrap());
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let unread = g.input("unread", FLOAT, [8]).unwrap();
    for symbol in &idle {
        g.narrow(unread, 0, Dim::from(symbol), 1).unwrap();
    }
    let general = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let plan = general.specialise(&extents(&rows, 2)).unwrap();
    for executable in [&general, &plan] {
        let run = |symbol: &Symbol| {
            let mut at = extents(&rows, 2);
            at.set(symbol, 2).unwrap();
            executable.run(&[("x", (&[1f32, 2.0]).into())], &at).map(drop)
        };
        for known in &idle {
            run(known).unwrap();
        }
        let strangers = ["row", "ows", "r", "f", "star", "tart", "che-position", "cache-pos"].map(|name| (name, MOST));
        for (name, most) in strangers.into_iter().chain([("rows", MOST + 1), ("start", 4)]) {
            let refused = run(&Symbol::new(name, 1, most).unwrap());
            assert!(matches!(&refused, Err(Error::Unknown { what: "symbol", .. })), "{name}: {refused:?}");
        }
    }
}

/// Of symbols of attributes types may have nothing.
#[test]
fn ops_tell_the_symbols_of_their_attributes() {
    let symbols: [Symbol; 6] = std::array::from_fn(|at| Symbol::new(&format!("s{at}"), 1, 4).unwrap());
    let s = |at: usize| Dim::from(&symbols[at]);
    let windows = || vec![Window { size: s(0), stride: s(1), dilation: s(2), padding: [s(3), s(4)], ceil: false }];
    let slides = vec![Slide { stride: s(0), dilation: s(1), padding: [s(2), s(3)], output_padding: s(4) }];
    let activation = Activation::Identity;
    let ops: [(Box<dyn Op>, usize); 11] = [
        (Box::new(Narrow { axis: 0, start: s(0), length: s(1) }), 2),
        (Box::new(Tile { repeats: vec![s(0), s(1)] }), 2),
        (Box::new(Roll { shifts: vec![s(0), s(1)] }), 2),
        (Box::new(Triangle { upper: true, diagonal: s(0) }), 1),
        (Box::new(Eye { rows: s(0), columns: s(1), diagonal: s(2), element: FLOAT }), 3),
        (Box::new(UpdateSlice { batch_axes: 0, starts: Some(vec![s(0), s(1)]), overhang: Overhang::Dropped }), 2),
        (Box::new(Pad { pads: vec![[s(0), s(1)], [s(2), s(3)]], border: Border::Edge, element: FLOAT }), 4),
        (Box::new(Pool { pooling: Pooling::Max, windows: windows() }), 5),
        (Box::new(Patches { windows: windows() }), 5),
        (Box::new(Overlaid { windows: windows(), image: vec![Dim::from(9)] }), 5),
        (Box::new(Convolution { transposed: true, slides, groups: s(5), bias: false, activation }), 6),
    ];
    let told = |op: &dyn Op| op.symbols().into_iter().collect::<BTreeSet<_>>();
    let first = |count: usize| symbols[..count].iter().cloned().collect::<BTreeSet<_>>();
    for (op, count) in &ops {
        assert_eq!(told(&**op), first(*count), "{op:?}");
    }
    let mut g = Graph::new();
    let (state, value) = (g.state("state", FLOAT, [8]).unwrap(), g.input("value", FLOAT, [1]).unwrap());
    g.update(state, value, 0, s(0)).unwrap();
    assert_eq!(told(&*g.nodes().last().unwrap().op), first(1));
}

/// Plans are for symbols of the graph alone: what is mistyped would leave all as it is.
#[test]
fn no_plan_is_for_a_symbol_that_the_graph_lacks() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let compile = || Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let general = compile();
    let plan = general.specialise(&extents(&rows, 2)).unwrap();
    let expected = format!("(1 to {MOST})`; there are: rows (1 to {MOST})");
    for mistyped in ["row", "Rows"].map(|name| Symbol::new(name, 1, MOST).unwrap()) {
        for executable in [&general, &plan] {
            let refused = executable.specialise(&extents(&mistyped, 3)).unwrap_err();
            assert!(matches!(&refused, Error::Unknown { what: "symbol", .. }), "{refused}");
            assert!(refused.to_string().ends_with(&expected), "{refused}");
        }
        let plans = Plans::new(compile(), &[&mistyped], 2);
        for at in [extents(&mistyped, 3), extents(&rows, 3)] {
            assert!(matches!(plans.at(&at), Err(Error::Unknown { what: "symbol", .. })));
        }
    }
}

/// Of an extent that is a product with a symbol that is 0 in a plan, nothing is left in the plan's types.
#[test]
fn a_plan_knows_symbols_of_which_its_values_leave_nothing() {
    let [rows, columns] = ["rows", "columns"].map(|name| Symbol::new(name, 0, 4).unwrap());
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows) * Dim::from(&columns)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let general = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let plan = general.specialise(&extents(&rows, 0)).unwrap();
    let mut at = extents(&rows, 0);
    at.set(&columns, 3).unwrap();
    for executable in [&general, &plan] {
        let outputs = executable.run(&[("x", (&[0f32; 0]).into())], &at).unwrap();
        assert_eq!(outputs.get::<f32>("y").unwrap(), [0f32; 0]);
    }
}

#[test]
fn extents_of_a_plan_are_those_that_it_takes() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let columns = Symbol::new("columns", 1, 8).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [Dim::from(&rows), Dim::from(&columns)]).unwrap();
    let y = g.neg(x).unwrap();
    g.output("y", y).unwrap();
    let general = Executable::compile(&g, &Model::new(), &devices()[0], &Options::default()).unwrap();
    let plan = general.specialise(&extents(&rows, 3)).unwrap();
    let found = plan.extents_of(&[("x", &[3, 2])]).unwrap();
    assert_eq!((found.get(&rows), found.get(&columns)), (Some(3), Some(2)));
    assert_eq!(plan.run(&[("x", (&[1f32; 6]).into())], &found).unwrap().get::<f32>("y").unwrap(), [-1.0; 6]);
    assert!(matches!(plan.extents_of(&[("x", &[4, 2])]), Err(Error::Shape { name, .. }) if name == "x"));
}

/// An output that lies in a state is what a run left of it until something else is written there, by whichever plan.
#[test]
fn an_output_in_a_state_that_was_written_since_is_not_fed() {
    let rows = Symbol::new("rows", 1, MOST).unwrap();
    let mut g = Graph::new();
    let [kept, to] = ["kept", "to"].map(|name| g.state(name, FLOAT, [4]).unwrap());
    let x = g.input("x", FLOAT, [4]).unwrap();
    let new = g.feed(kept, x).map(|()| g.states()[0].left).unwrap();
    g.output("new", new).unwrap();
    let apart = g.neg(x).unwrap();
    g.output("apart", apart).unwrap();
    g.output("to", to).unwrap();
    let y = g.input("rows", FLOAT, [Dim::from(&rows)]).unwrap();
    let y = g.neg(y).unwrap();
    g.output("y", y).unwrap();
    for device in devices() {
        let general = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let at = extents(&rows, 2);
        let plan = general.specialise(&at).unwrap();
        let run = |executable: &Executable| {
            executable.run(&[("x", (&[1f32, 2.0, 3.0, 4.0]).into()), ("rows", (&[0f32; 2]).into())], &at).unwrap();
        };
        let stale = |executable: &Executable| {
            executable.feed("apart", 0..1, "to", 2).unwrap();
            let refused = executable.feed("new", 0..1, "to", 3).unwrap_err();
            let reason = "it lies in state `kept`, which was written since";
            assert!(matches!(&refused, Error::Feed { reason: given, .. } if given == reason), "{refused}");
        };
        run(&general);
        // What is written elsewhere does not matter.
        general.feed("new", 0..1, "to", 0).unwrap();
        general.feed("new", 1..3, "to", 1).unwrap();
        assert_eq!(general.state("to").unwrap().get::<f32>().unwrap(), [1.0, 2.0, 3.0, 0.0]);
        general.set_state("kept", (&[9f32; 4]).into()).unwrap();
        stale(&general);
        run(&general);
        general.feed("new", 3..4, "kept", 0).unwrap();
        stale(&general);
        run(&general);
        general.reset_state("kept").unwrap();
        stale(&general);
        run(&general);
        run(&plan);
        plan.feed("new", 3..4, "to", 3).unwrap();
        stale(&general);
        run(&general);
        plan.profile(&at).unwrap();
        stale(&general);
        general.reset().unwrap();
        stale(&general);
        // What lies in the state itself is fed to it from what it has.
        run(&general);
        general.feed("to", 2..3, "to", 0).unwrap();
        let refused = general.feed("to", 2..3, "to", 1).unwrap_err();
        assert!(refused.to_string().contains("it lies in state `to`"), "{refused}");
    }
}

/// A plan is for its values, and so are plans that are made of it.
#[test]
fn a_plan_of_a_plan_has_its_values() {
    let (rows, columns) = (Symbol::new("rows", 1, 8).unwrap(), Symbol::new("columns", 1, 8).unwrap());
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [8, 8]).unwrap();
    let y = g.narrow(x, 0, 0, Dim::from(&rows)).unwrap();
    let y = g.narrow(y, 1, 0, Dim::from(&columns)).unwrap();
    g.output("y", y).unwrap();
    for device in devices() {
        let general = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let three = general.specialise(&extents(&rows, 3)).unwrap();
        for found in [
            three.specialise(&extents(&rows, 5)).unwrap_err(),
            Plans::new(general.specialise(&extents(&rows, 3)).unwrap(), &[&rows], 2)
                .at(&extents(&rows, 5))
                .unwrap_err(),
        ] {
            assert!(matches!(found, Error::Bound { expected: 3, .. }), "{found}");
        }
        let mut both = extents(&rows, 3);
        both.set(&columns, 2).unwrap();
        let given = numbers(64, 1, 1.0);
        let outputs = three.specialise(&both).unwrap().run(&[("x", (&given).into())], &both).unwrap();
        let wanted: Vec<f32> = (0..3).flat_map(|row| [given[row * 8], given[row * 8 + 1]]).collect();
        assert_eq!(outputs.get::<f32>("y").unwrap(), wanted);
    }
}
