//! Debugging runs on every device: they give what runs give, and tell the first NaN, the first wrong step, and what was never written.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::ops::RowSum;
use common::transformer::{Builder, FIRST, STEPS, model};
use common::{devices, devices_of_its_own};
use trefoil_codegen::compile::compile_for;
use trefoil_codegen::ir::builder::{ModuleBuilder, element};
use trefoil_codegen::ir::{BinaryOperator, Builtin, Instance, Root, Scalar};
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, Request, Slot, Step,
};
use trefoil_graph::{
    DebugOptions, Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, TensorType,
};

const FLOAT: ElementType = ElementType::F32;

/// A copy whose kernel is wrong.
#[derive(Debug)]
enum Careless {
    /// It leaves the last element as it was.
    Forgets,
    /// It adds 1 to the last element.
    Adds,
}

#[derive(Debug)]
struct Way<'a>(&'a Careless);

impl Candidate for Way<'_> {
    fn name(&self) -> &'static str {
        "carelessly"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let mut module = ModuleBuilder::new("careless", [64, 1, 1]);
        let float = module.scalar(Scalar::F32);
        let x = module.shared("x", float);
        let y = module.mutable("y", float);
        let mut body = module.entry();
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (index, length, one) = (body.local(i), body.length(y), body.index(1));
        let next = body.binary(BinaryOperator::Add, index, one);
        let is_inner = body.binary(BinaryOperator::Less, next, length);
        body.if_then(is_inner, |body| {
            let at = body.local(i);
            let value = body.load(element(Root::Binding(x), at));
            body.store(element(Root::Binding(y), at), value);
        });
        if matches!(self.0, Careless::Adds) {
            let (index, length) = (body.local(i), body.length(y));
            let next = body.binary(BinaryOperator::Add, index, one);
            let is_last = body.binary(BinaryOperator::Equal, next, length);
            body.if_then(is_last, |body| {
                let at = body.local(i);
                let value = body.load(element(Root::Binding(x), at));
                let one = body.f32(1.0);
                let sum = body.binary(BinaryOperator::Add, value, one);
                body.store(element(Root::Binding(y), at), sum);
            });
        }
        body.finish_entry();
        let kernel = compile_for(&module.build(), &Instance::default(), &[request.device.kind.target()])
            .map_err(|diagnostics| Ineligible::Other(diagnostics.to_string()))?;
        let step = KernelStep {
            kernel: kernel.into(),
            bindings: vec![Slot::Input(0), Slot::Output(0)],
            params: Vec::new(),
            grid: Grid::Invocations(request.outputs[0].elements()),
        };
        Ok(Implementation { steps: vec![Step::Kernel(step)], scratch: Vec::new(), cost: 1.0 })
    }
}

impl Op for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("way", format!("{self:?}"))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        inputs.to_vec()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Way(self))])
    }
}

/// Sums of products of what a careless copy gives.
fn with_careless(device: &Device, op: Careless) -> Executable {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, [6, 5]).unwrap();
    let w = g.param("w", FLOAT, [5, 4]).unwrap();
    let root = g.sqrt(x).unwrap();
    let copy = g.add_op(op, &[root]).unwrap()[0];
    let product = g.matmul(copy, w).unwrap();
    let y = g.neg(product).unwrap();
    g.output("y", y).unwrap();
    let model = Model::new();
    model.set("w", &[5, 4], &[0.5f32; 20]).unwrap();
    Executable::compile(&g, &model, device, &Options::default()).unwrap()
}

#[test]
fn what_was_never_written_is_the_first_nan() {
    for device in devices() {
        let what = &device.properties().name;
        let executable = with_careless(&device, Careless::Forgets);
        let extents = Extents::new();
        let x = [4f32; 30];
        // What a run before left there does not hide it.
        executable.run(&[("x", (&x).into())], &extents).unwrap();
        let (outputs, report) = executable.prepare(&extents).input("x", &x).debug(&Default::default()).unwrap();
        let (step, tensor) = report.first_nan().unwrap();
        assert_eq!((&*step.unwrap().kernel, tensor.statistics.nans), ("careless", 1), "{what}: {report}");
        let (step, tensor) = report.first_beyond(1e6).unwrap();
        assert_eq!((&*step.kernel, tensor.difference.unwrap().element), ("careless", 29), "{what}: {report}");
        assert!(outputs.get::<f32>("y").unwrap()[20..].iter().all(|value| value.is_nan()), "{what}");
        assert!(report.to_string().contains("the first NaN is in `careless"), "{report}");

        let plain = DebugOptions { reference: false, poison: false };
        let (_, report) = executable.prepare(&extents).input("x", &x).debug(&plain).unwrap();
        assert!(report.steps.iter().flat_map(|step| &step.tensors).all(|tensor| tensor.difference.is_none()));
        // A run behind is none the wiser.
        executable.run(&[("x", (&x).into())], &extents).unwrap();
    }
}

#[test]
fn only_the_wrong_step_is_off() {
    for device in devices() {
        let executable = with_careless(&device, Careless::Adds);
        let extents = Extents::new();
        let run = |x: &[f32; 30]| executable.prepare(&extents).input("x", x).debug(&Default::default()).unwrap();
        let (outputs, report) = run(&[4f32; 30]);
        assert_eq!(report.first_nan(), None, "{report}");
        for step in &report.steps {
            for tensor in &step.tensors {
                let far = tensor.difference.unwrap();
                let relative = if step.kernel == "careless" { 0.5 } else { 0.0 };
                assert_eq!(far.relative, relative, "{}: {report}", step.label);
            }
        }
        let (wrong, tensor) = report.first_beyond(1.0).unwrap();
        let far = tensor.difference.unwrap();
        assert_eq!((&*wrong.kernel, far.element, far.given, far.expected), ("careless", 29, 3.0, 2.0));
        assert_eq!(outputs.get::<f32>("y").unwrap()[20..], [-5.5; 4]);
        let names: Vec<_> = report.given.iter().map(|tensor| (&*tensor.name, tensor.statistics.mean)).collect();
        assert!(names.contains(&("x", 4.0)) && names.contains(&("w", 0.5)), "{names:?}");
        // A NaN that was given is nobody's fault.
        let (_, report) = run(&std::array::from_fn(|i| if i == 3 { f32::NAN } else { 1.0 }));
        let (step, tensor) = report.first_nan().unwrap();
        assert_eq!((step, &*tensor.name, tensor.statistics.nans), (None, "x", 1));
    }
}

#[test]
fn a_model_with_states_is_right_step_by_step() {
    for device in devices_of_its_own() {
        let what = &device.properties().name;
        let at = Symbol::new("at", 0, STEPS as i64 - 1).unwrap();
        let built = Builder::default().transformer(&Dim::from(1), Some(&Dim::from(&at)));
        let params = model(&built.params);
        let compile = || Executable::compile(&built.g, &params, &device, &Options::default()).unwrap();
        let (watched, plain) = (compile(), compile());
        let mut token = FIRST;
        for position in 0..6 {
            let mut extents = Extents::new();
            extents.set(&at, position).unwrap();
            // Runs of both kinds follow each other on the same states.
            let given = [token];
            let run = watched.prepare(&extents).input("ids", &given);
            let outputs = if position % 3 == 1 {
                run.run().unwrap()
            } else {
                let (outputs, report) = run.debug(&DebugOptions::default()).unwrap();
                assert_eq!(report.steps.len(), watched.explain().steps.len(), "{what}");
                assert_eq!(report.first_nan(), None, "{what}: {report}");
                assert_eq!(report.first_beyond(4.0), None, "{what}: {report}");
                let told = report.steps.iter().flat_map(|step| &step.tensors);
                let held = told.clone().filter(|tensor| tensor.difference.is_some()).count();
                assert!(held * 10 >= told.count() * 9, "{what}: {report}");
                outputs
            };
            let expected = plain.run(&[("ids", (&given).into())], &extents).unwrap();
            let (logits, expected) = (outputs.get::<f32>("logits").unwrap(), expected.get::<f32>("logits").unwrap());
            assert_eq!(logits, expected, "{what}, position {position}");
            token = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap() as u32;
        }
    }
}

/// Steps of nodes that need nothing of each other stand together on a GPU, so that those of one node are no neighbours.
#[test]
fn steps_of_other_nodes_may_stand_between_those_of_a_node() {
    for device in devices() {
        let what = &device.properties().name;
        let mut g = Graph::new();
        let w = g.input("w", FLOAT, [65536]).unwrap();
        let (x, y) = (g.input("x", FLOAT, [2048, 8]).unwrap(), g.input("y", FLOAT, [1536, 8]).unwrap());
        // It takes so much memory that nothing is to be gained by doing one of the two behind the other.
        let z = g.neg(w).unwrap();
        let (sums, others) = (g.add_one(RowSum, &[x]).unwrap(), g.add_one(RowSum, &[y]).unwrap());
        for (name, tensor) in [("z", z), ("sums", sums), ("others", others)] {
            g.output(name, tensor).unwrap();
        }
        let executable = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let explained = executable.explain();
        let parts: Vec<_> = explained.steps.iter().filter_map(|step| step.label.split_once(" step ")).collect();
        if device.kind() != DeviceKind::Cpu && device.limits().shares_memory_within_dispatch {
            let positions: Vec<_> = parts.iter().map(|(_, position)| *position).collect();
            assert_eq!(positions, ["0", "0", "1", "1"], "{what}: {explained}");
        }

        let rows = |count: usize| (0..count * 8).map(|i| (i % 7) as f32).collect::<Vec<_>>();
        let (w, x, y) = (vec![1f32; 65536], rows(2048), rows(1536));
        let extents = Extents::new();
        let run = executable.prepare(&extents).input("w", &w).input("x", &x).input("y", &y);
        let (outputs, report) = run.debug(&DebugOptions::default()).unwrap();
        for (name, elements) in [("sums", &x), ("others", &y)] {
            let wanted: Vec<f32> = elements.chunks(8).map(|row| row.iter().sum()).collect();
            assert_eq!(outputs.get::<f32>(name).unwrap(), wanted, "{what}");
        }
        let held: Vec<_> = report.steps.iter().flat_map(|step| &step.tensors).map(|tensor| tensor.difference).collect();
        assert_eq!(held.len(), 3, "{what}: {report}");
        assert!(held.iter().all(|far| far.is_some_and(|far| far.relative == 0.0)), "{what}: {report}");

        let profile = executable.profile(&extents).unwrap();
        let nodes: Vec<_> = parts.iter().filter(|(_, position)| *position == "0").map(|(node, _)| *node).collect();
        assert_eq!(nodes.len(), 2, "{what}: {explained}");
        for (node, elements) in nodes.into_iter().zip([x.len() as u64, y.len() as u64]) {
            let own = |label: &str| label.split_once(" step ").is_some_and(|(of, _)| of == node);
            let steps: Vec<_> = profile.steps.iter().filter(|step| own(&step.label)).collect();
            let flops: u64 = steps.iter().map(|step| step.flops).sum();
            assert_eq!(steps.len(), 2, "{what}: {profile}");
            // They are shared out in whole numbers, by times.
            let is_timed = steps.iter().any(|step| step.nanoseconds > 0);
            assert!(!is_timed || (flops <= elements && flops + 2 > elements), "{what}: {profile}");
        }
    }
}

/// What is joined of more tensors than a device binds is done in steps, each of which writes a part: it is complete behind the last one alone.
#[test]
fn joins_in_parts_are_seen_when_they_are_whole() {
    for device in devices() {
        let what = &device.properties().name;
        // More than kernels for any device bind.
        let count = 71;
        let mut g = Graph::new();
        let names: Vec<String> = (0..count).map(|index| format!("x{index}")).collect();
        let parts: Vec<_> = names.iter().map(|name| g.input(name, FLOAT, [2, 3]).unwrap()).collect();
        let joined = g.concat(&parts, 0).unwrap();
        g.output("joined", joined).unwrap();
        let executable = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let steps = executable.explain().steps.len();
        assert_eq!(steps > 1, device.kind() != DeviceKind::Cpu, "{what}");

        let rows: Vec<[f32; 6]> = (0..count).map(|part| std::array::from_fn(|i| (6 * part + i) as f32)).collect();
        let extents = Extents::new();
        let run = || {
            let run = executable.prepare(&extents);
            names.iter().zip(&rows).fold(run, |run, (name, row)| run.input(name, row))
        };
        let (outputs, report) = run().debug(&DebugOptions::default()).unwrap();
        assert_eq!(outputs.get::<f32>("joined").unwrap(), rows.concat(), "{what}");
        assert_eq!(report.first_nan(), None, "{what}: {report}");
        let seen: Vec<_> = report.steps.iter().map(|step| step.tensors.len()).collect();
        assert_eq!((seen.len(), seen.iter().sum::<usize>(), seen[steps - 1]), (steps, 1, 1), "{what}: {report}");
        let far = report.steps[steps - 1].tensors[0].difference;
        assert!(far.is_some_and(|far| far.relative == 0.0), "{what}: {report}");

        // Every byte is read once and written once.
        run().run().unwrap();
        let profile = executable.profile(&extents).unwrap();
        let bytes: u64 = profile.steps.iter().map(|step| step.bytes).sum();
        assert_eq!(bytes, 2 * 24 * count as u64, "{what}: {profile}");
    }
}

#[test]
fn refused_as_a_run_is() {
    for device in devices() {
        let executable = with_careless(&device, Careless::Adds);
        let debug = |run: trefoil_graph::Run<'_>| run.debug(&Default::default()).unwrap_err();
        let extents = Extents::new();
        assert!(matches!(debug(executable.prepare(&extents)), Error::Missing { what: "input", .. }));
        assert!(matches!(debug(executable.prepare(&extents).input("z", &[1f32])), Error::Unknown { .. }));
    }
}
