//! What kernels within graphs assert and print, on every device: told of by runs as by launches, with nothing changed of the plan and the barriers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trefoil::artefact::Kernel;
use trefoil::check::{self, Finding};
use trefoil::device::Command;
use trefoil::error::Error as DeviceError;
use trefoil::graph::explain::Explanation;
use trefoil::graph::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, ParamValue, Request,
    Slot, Step,
};
use trefoil::graph::types::TensorType;
use trefoil::graph::{Dim, Eager, ElementType, Error, Executable, Extents, Graph, IntoKernels, Model, Options, Symbol};
use trefoil::prelude::*;
use trefoil::report::Report;
use trefoil::{Device, graph};

/// Devices are opened once for all tests of a program, and what a kernel reports comes to whoever waits next: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[kernel(workgroup(64), specialise(MOST: u32 = 100, in 1..=1000))]
fn halved(x: &[f32], y: &mut [f32], least: f32) {
    let i = global_index();
    if i < y.len() {
        let value = x[i];
        assert!(value >= least);
        if value > MOST as f32 {
            println!("{value} is more than {MOST}");
        }
        y[i] = value * 0.5;
    }
}

/// Eight buffers are all that WebGPU has for sure.
#[kernel(workgroup(64))]
#[allow(clippy::too_many_arguments, reason = "as many as there can be")]
fn eight(a: &[f32], b: &[f32], c: &[f32], d: &[f32], e: &[f32], f: &[f32], g: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        let sum = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i];
        assert!(sum == 8.0);
        y[i] = sum;
    }
}

/// Half of each element, by [`halved()`].
#[derive(Clone, Copy, Debug)]
struct Halved {
    least: f32,
    most: Option<i64>,
}

/// The sum of seven tensors, by [`eight()`].
#[derive(Clone, Copy, Debug)]
struct Eight;

fn one_step(kernel: Kernel, request: &Request<'_>, params: Vec<ParamValue>) -> Result<Implementation, Ineligible> {
    let unfit = |(_, x): &(usize, &graph::op::Operand)| !x.layout.is_contiguous(&x.ty.shape);
    if let Some((input, _)) = request.inputs.iter().enumerate().find(unfit) {
        return Err(Ineligible::NeedsContiguous(vec![input]));
    }
    let bindings = (0..request.inputs.len()).map(Slot::Input).chain([Slot::Output(0)]).collect();
    let grid = Grid::Invocations(request.outputs[0].elements());
    let step = Step::Kernel(KernelStep { kernel: Arc::new(kernel), bindings, params, grid });
    Ok(Implementation { steps: vec![step], scratch: Vec::new(), cost: 1.0 })
}

impl Candidate for Halved {
    fn name(&self) -> &'static str {
        "by halves"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let kernel = match self.most {
            Some(most) => halved::KERNEL.specialise(&[("MOST", most)]).unwrap(),
            None => halved::KERNEL.clone(),
        };
        one_step(kernel, request, vec![ParamValue::F32(self.least)])
    }

    fn passes(&self, _: &Request<'_>, _: usize) -> Option<u32> {
        Some(1)
    }
}

impl Candidate for Eight {
    fn name(&self) -> &'static str {
        "eight buffers"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        one_step(eight::KERNEL.clone(), request, Vec::new())
    }
}

impl Op for Halved {
    fn name(&self) -> &'static str {
        "halved"
    }
    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("least", self.least.to_string()), ("most", format!("{:?}", self.most))]
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(inputs.to_vec())
    }
    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let values = inputs[0].values.iter().map(|x| x * 0.5).collect();
        vec![HostTensor { shape: inputs[0].shape.clone(), values }]
    }
    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }
    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

impl Op for Eight {
    fn name(&self) -> &'static str {
        "eight"
    }
    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(inputs[..1].to_vec())
    }
    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let sum = |i: usize| inputs.iter().map(|input| input.values[i]).sum();
        vec![HostTensor { shape: inputs[0].shape.clone(), values: (0..inputs[0].values.len()).map(sum).collect() }]
    }
    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 7i64
    }
    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

/// The executable of a graph with such inputs, which stay where they are for runs by hand; regions go into its kernels, also on the CPU.
fn compile(graph: &Graph, device: &Device, inputs: &[&str]) -> Executable {
    let resident = inputs.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { into_kernels: IntoKernels::Everywhere, resident, ..Options::default() };
    Executable::compile(graph, &Model::new(), device, &options).unwrap()
}

/// The place of a text in this file.
fn place(text: &str) -> String {
    let file = include_str!("graph_reports.rs");
    let (line, found) = file.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    format!("tests/graph_reports.rs:{}:{}", line + 1, found.find(text).unwrap() + 1)
}

/// The kernel and the message of an assertion of [`halved()`], and how many more do not hold.
fn assertion(result: graph::Result<()>) -> (String, String, u64) {
    match result.unwrap_err() {
        Error::Device(DeviceError::Assertion { kernel, at, message, more, .. }) => {
            assert_eq!(at, place("assert!(value >= least);"));
            (kernel, message, more)
        }
        other => panic!("{other}"),
    }
}

/// What a run reports, in the order of its kernels, workgroups and invocations: its commands are submitted by hand, so that nobody hears of it before.
fn reports(executable: &Executable, extents: &Extents) -> Vec<Report> {
    let device = executable.device();
    device.backend().execute(&executable.commands_by_value(extents).unwrap()).unwrap();
    let mut reports = device.reports().unwrap().reports;
    reports.sort_by_key(|report| (report.kernel.clone(), report.invocation.workgroup, report.invocation.local));
    reports
}

const TOLD: &str = "assertion failed: value >= least: value is -3.0, least is 0.0";

#[test]
fn a_run_answers_an_assertion_that_does_not_hold() {
    let _alone = alone();
    let count = Symbol::new("count", 0, 1000).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, [Dim::from(&count)]).unwrap();
    let y = graph.add_one(Halved { least: 0.0, most: None }, &[x]).unwrap();
    graph.output("y", y).unwrap();
    for subject in common::devices() {
        let executable = Arc::new(compile(&graph, &subject.device, &["x"]));
        let fork = executable.fork().unwrap();
        let mut extents = Extents::new();
        for length in [1000usize, 70, 1, 0, 500] {
            extents.set(&count, length as i64).unwrap();
            let good: Vec<f32> = (0..length).map(|i| (i % 90) as f32).collect();
            let mut bad = good.clone();
            bad.iter_mut().step_by(64).for_each(|x| *x = -3.0);
            let half = |x: &[f32]| x.iter().map(|x| x * 0.5).collect::<Vec<_>>();
            for executable in [&*executable, &fork] {
                let outputs = executable.run(&[("x", (&good).into())], &extents).unwrap();
                assert_eq!(outputs.get::<f32>("y").unwrap(), half(&good), "on {}", subject.name);
                if length == 0 {
                    continue;
                }
                let told = ("halved".to_owned(), TOLD.to_owned(), length.div_ceil(64) as u64 - 1);
                let ran = executable.run(&[("x", (&bad).into())], &extents).map(drop);
                assert_eq!(assertion(ran), told, "on {}", subject.name);
                // The run is done all the same.
                let mut y = vec![0f32; length];
                let run = executable.prepare(&extents).input("x", &bad).take_into("y", &mut y);
                assert_eq!(assertion(run.run().map(drop)), told, "on {}", subject.name);
                assert_eq!(y, half(&bad), "on {}", subject.name);
                let run = executable.prepare(&extents).input("x", &bad);
                assert_eq!(assertion(run.debug(&Default::default()).map(drop)), told, "on {}", subject.name);
            }
            if length > 0 {
                let queued = executable.queue(&extents).input("x", bad.clone()).take_into("y", vec![0f32; length]);
                let mut finished = queued.start().wait();
                assert_eq!(assertion(finished.result.map(drop)).1, TOLD, "on {}", subject.name);
                assert_eq!(finished.outputs.remove(0).into_vec::<f32>().unwrap(), half(&bad), "on {}", subject.name);
            }
        }
        subject.device.wait().unwrap();
    }
}

/// Two steps of one kernel side by side, one of it with another constant, and one that reads what the others write.
fn several() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, [Dim::from(100i64)]).unwrap();
    let z = graph.input("z", ElementType::F32, [Dim::from(100i64)]).unwrap();
    let by = |least: f32, most: Option<i64>| Halved { least, most };
    let a = graph.add_one(by(0.0, None), &[x]).unwrap();
    let b = graph.add_one(by(-50.0, None), &[z]).unwrap();
    let c = graph.add_one(by(-50.0, Some(40)), &[x]).unwrap();
    let d = graph.add_one(by(-10.0, None), &[a]).unwrap();
    for (name, tensor) in [("a", a), ("b", b), ("c", c), ("d", d)] {
        graph.output(name, tensor).unwrap();
    }
    graph
}

#[test]
fn steps_of_one_kernel_report_side_by_side() {
    let _alone = alone();
    let graph = several();
    for subject in common::devices() {
        let executable = compile(&graph, &subject.device, &["x", "z"]);
        let (mut x, mut z) = (vec![1f32; 100], vec![1f32; 100]);
        (x[3], x[70], z[70], z[99]) = (-30.0, 50.0, -60.0, 200.0);
        let outputs = executable.run(&[("x", (&x).into()), ("z", (&z).into())], &Extents::new());
        // Of `a`, `b` and `d`; the lines are printed.
        assert_eq!(assertion(outputs.map(drop)).2, 2, "on {}", subject.name);
        let told = reports(&executable, &Extents::new());
        let mut texts: Vec<_> = told
            .iter()
            .map(|report| (report.invocation.workgroup[0], report.invocation.local[0], &*report.message))
            .collect();
        texts.sort_unstable();
        assert_eq!(
            texts,
            [
                (0, 3, "assertion failed: value >= least: value is -15.0, least is -10.0"),
                (0, 3, "assertion failed: value >= least: value is -30.0, least is 0.0"),
                (1, 6, "50 is more than 40"),
                (1, 6, "assertion failed: value >= least: value is -60.0, least is -50.0"),
                (1, 35, "200 is more than 100"),
            ],
            "on {}",
            subject.name
        );
    }
}

/// How many buffers each dispatch binds.
fn bound(executable: &Executable) -> Vec<usize> {
    let dispatches = executable.commands().iter().filter_map(|command| match command {
        Command::Dispatch(dispatch) => Some(dispatch.bindings.len()),
        _ => None,
    });
    dispatches.collect()
}

#[test]
fn reports_change_neither_the_plan_nor_the_barriers() {
    let _alone = alone();
    let graph = several();
    for subject in common::devices() {
        let silent = subject.device.clone().without_reports();
        let (telling, silent) = (compile(&graph, &subject.device, &[]), compile(&graph, &silent, &[]));
        // In the run words the length of one more buffer stands.
        let explained = |executable: &Executable| Explanation { run_words: 0, ..executable.explain() }.to_string();
        assert_eq!(explained(&telling), explained(&silent), "on {}", subject.name);
        assert_eq!(telling.trace().unwrap(), silent.trace().unwrap(), "on {}", subject.name);
        assert_eq!((bound(&telling), bound(&silent)), (vec![3; 4], vec![2; 4]), "on {}", subject.name);
        let x = vec![-1000f32; 100];
        silent.run(&[("x", (&x).into()), ("z", (&x).into())], &Extents::new()).unwrap();
    }
}

#[test]
fn a_state_is_as_the_run_left_it() {
    let _alone = alone();
    let mut graph = Graph::new();
    let total = graph.state("total", ElementType::F32, vec![Dim::from(8i64)]).unwrap();
    let x = graph.input("x", ElementType::F32, [Dim::from(8i64)]).unwrap();
    let half = graph.add_one(Halved { least: 0.0, most: None }, &[x]).unwrap();
    let sum = graph.add(total, half).unwrap();
    graph.feed(total, sum).unwrap();
    for subject in common::devices() {
        let executable = compile(&graph, &subject.device, &["x"]);
        let ran = executable.run(&[("x", (&[-3f32; 8]).into())], &Extents::new());
        assert_eq!(assertion(ran.map(drop)).2, 7, "on {}", subject.name);
        executable.run(&[("x", (&[4f32; 8]).into())], &Extents::new()).unwrap();
        assert_eq!(executable.state("total").unwrap().get::<f32>().unwrap(), [0.5; 8], "on {}", subject.name);
    }
}

/// An op of the library before the kernel and one behind it, which become one kernel with it.
fn fused() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, [Dim::from(100i64)]).unwrap();
    let negative = graph.neg(x).unwrap();
    let half = graph.add_one(Halved { least: 0.0, most: Some(40) }, &[negative]).unwrap();
    let y = graph.relu(half).unwrap();
    graph.output("y", y).unwrap();
    graph
}

#[test]
fn kernels_with_regions_in_them_report_too() {
    let _alone = alone();
    let graph = fused();
    for subject in common::devices() {
        let executable = compile(&graph, &subject.device, &["x"]);
        let explained = executable.explain();
        assert_eq!(explained.steps.len(), 1, "{explained} on {}", subject.name);
        assert!(explained.steps[0].kernel.starts_with("halved_fused_"), "{explained}");
        let mut x = vec![-2f32; 100];
        (x[7], x[99]) = (3.0, -60.0);
        let (kernel, message, more) = assertion(executable.run(&[("x", (&x).into())], &Extents::new()).map(drop));
        assert_eq!((kernel, &*message, more), (explained.steps[0].kernel.clone(), TOLD, 0), "on {}", subject.name);
        let told = reports(&executable, &Extents::new());
        let texts: Vec<_> = told.iter().map(|report| &*report.message).collect();
        assert_eq!(texts, [TOLD, "60 is more than 40"], "on {}", subject.name);
        assert_eq!(told[1].at, place("println!(\"{value} is more"), "on {}", subject.name);
        let mut y = [0f32; 100];
        let run = executable.prepare(&Extents::new()).input("x", &[-2f32; 100]).take_into("y", &mut y).run();
        run.unwrap();
        assert_eq!(y, [1.0; 100], "on {}", subject.name);
    }
}

#[test]
fn the_checker_reads_the_reports_of_graphs_itself() {
    let (device, found) = check::device(&check::Options::default()).unwrap();
    let mut x = [-2f32; 100];
    x[7] = 3.0;
    let executable = compile(&fused(), &device, &["x"]);
    executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
    let findings: Vec<_> = found.take().into_iter().flat_map(|report| report.findings).collect();
    let [found] = findings.as_slice() else { panic!("{findings:?}") };
    let Finding::Assertion { message, invocation, .. } = &found.finding else { panic!("{found:?}") };
    assert_eq!((message.as_str(), invocation.local[0]), (TOLD, 7));
}

#[test]
fn ops_one_by_one_report_too() {
    let _alone = alone();
    for subject in common::devices() {
        let eager = Eager::new(&subject.device);
        let halved = |x: &[f32]| {
            let x = eager.tensor(&[x.len()], x).unwrap();
            eager.add_one(Halved { least: 0.0, most: None }, &[&x]).unwrap()
        };
        // Twice in one batch, with nothing between that one of them waits for.
        let (first, second) = (halved(&[-3.0, 4.0]), halved(&[6.0, 8.0, -3.0, -3.0]));
        let told = ("halved".to_owned(), TOLD.to_owned(), 2);
        assert_eq!(assertion(second.read::<f32>().map(drop)), told, "on {}", subject.name);
        assert_eq!(first.read::<f32>().unwrap(), [-1.5, 2.0], "on {}", subject.name);
        assert_eq!(second.read::<f32>().unwrap(), [3.0, 4.0, -1.5, -1.5], "on {}", subject.name);
        let _third = halved(&[-3.0]);
        assert_eq!(assertion(eager.wait()).2, 0, "on {}", subject.name);
    }
}

#[test]
fn a_device_without_a_buffer_for_reports_runs_the_graph_all_the_same() {
    let _alone = alone();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, [Dim::from(4i64)]).unwrap();
    let y = graph.add_one(Eight, &[x; 7]).unwrap();
    graph.output("y", y).unwrap();
    for subject in common::devices() {
        let executable = compile(&graph, &subject.device, &["x"]);
        let mut y = [0f32; 4];
        let run = executable.prepare(&Extents::new()).input("x", &[1f32; 4]).take_into("y", &mut y).run();
        match run {
            Ok(_) => assert_eq!(bound(&executable), [8], "on {}", subject.name),
            Err(Error::Device(DeviceError::Assertion { more, .. })) => {
                assert!(subject.device.limits().max_storage_buffers > 8 && more == 3, "on {}", subject.name);
            }
            Err(error) => panic!("{error} on {}", subject.name),
        }
        assert_eq!(y, [7.0; 4], "on {}", subject.name);
    }
}
