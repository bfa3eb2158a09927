//! Kernels that count the workgroups that are done: every run finds zeros and leaves zeros, in memory that nothing else shares, whoever runs what in between.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::sync::Arc;

use common::{Values, compare, compare_one_by_one, devices};
use trefoil_codegen::artefact::Feature;
use trefoil_dsl::device::Device;
use trefoil_dsl::prelude::*;
use trefoil_graph::compile::program::Meaning;
use trefoil_graph::compile::prove::prove;
use trefoil_graph::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, Request, Slot, Step,
};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Symbol, TensorType};

use ElementType::U32;

/// Invocations of a workgroup.
const SIZE: usize = 64;
/// The most elements.
const MOST: usize = 5000;

/// Whichever workgroup comes last adds up what all of them have found.
#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn summed_by_the_last(x: &[u32], y: &mut [u32], sums: &mut [u32], counters: &[Atomic<u32>]) {
    let own = workgroup_array::<Atomic<u32>>(1);
    let i = local_index();
    if i == 0 {
        own[0].store(0);
    }
    barrier();
    own[0].add(x[global_index()]);
    barrier();
    if i == 0 {
        sums[group_index()] = own[0].load();
        if counters[0].add_acq_rel(1) as usize + 1 == group_count() {
            let mut sum = 0;
            for k in 0..group_count() {
                sum += sums[k];
            }
            y[0] = sum;
            counters[0].store(0);
        }
    }
}

/// The sum of all elements.
#[derive(Clone, Copy, Debug)]
struct Total {
    /// A kernel for each, which binds so many counters.
    counters: &'static [u64],
}

impl Candidate for Total {
    fn name(&self) -> &'static str {
        "total"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [x] = request.inputs else { return Err(Ineligible::Other("one input".to_owned())) };
        if !x.layout.is_contiguous(&x.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let groups = x.ty.elements().quotient_up(SIZE as i64);
        let step = |count: &u64| {
            Step::Kernel(KernelStep {
                kernel: Arc::new(summed_by_the_last::KERNEL.clone()),
                bindings: vec![Slot::Input(0), Slot::Output(0), Slot::Scratch(0), Slot::Counters(*count)],
                params: Vec::new(),
                grid: Grid::Workgroups(groups.clone()),
            })
        };
        let steps = self.counters.iter().map(step).collect();
        Ok(Implementation { steps, scratch: vec![groups * 4i64], cost: 1.0 })
    }
}

impl Op for Total {
    fn name(&self) -> &'static str {
        "total"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("counters", format!("{:?}", self.counters))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(inputs.iter().map(|x| TensorType { element: x.element, shape: vec![Dim::from(1usize)] }).collect())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![HostTensor { shape: outputs[0].clone(), values: vec![inputs[0].values.iter().sum()] }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

/// The devices that can count so.
fn counting_devices() -> impl Iterator<Item = Device> {
    devices().into_iter().filter(|device| device.properties().features.has(Feature::Ordering))
}

/// The sums of so many elements and of their squares, by a counter each.
fn graph(count: Dim) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", U32, vec![count]).unwrap();
    let squares = graph.mul(x, x).unwrap();
    for (name, tensor) in [("sum", x), ("squares", squares)] {
        let total = graph.add_one(Total { counters: &[1] }, &[tensor]).unwrap();
        graph.output(name, total).unwrap();
    }
    graph
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap()
}

fn inputs(count: usize) -> [(&'static str, Values); 1] {
    [("x", Values::of(U32, count, 7, 1.0))]
}

#[test]
fn every_run_counts_from_zero() {
    let count = Symbol::new("count", 1, MOST as i64).unwrap();
    let graph = graph(Dim::from(&count));
    for device in counting_devices() {
        let executable = compile(&graph, &device);
        let fork = executable.fork().unwrap();
        for elements in [MOST, 1, 4000, 64, 65].into_iter().cycle().take(20) {
            let extents = Extents::with([(&count, elements as i64)]).unwrap();
            let plan = executable.specialise(&extents).unwrap();
            for executable in [&executable, &fork, &plan] {
                compare(&graph, executable, &inputs(elements), &extents, 0.0);
            }
            executable.profile(&extents).unwrap();
            let [(name, values)] = inputs(elements);
            let (_, report) =
                executable.prepare(&extents).input(name, values.data()).debug(&Default::default()).unwrap();
            assert!(report.first_beyond(0.0).is_none(), "{report}");
        }
    }
}

#[test]
fn calls_one_by_one_count_from_zero() {
    let graph = graph(Dim::from(MOST));
    for device in counting_devices() {
        for _ in 0..5 {
            compare_one_by_one(&graph, &device, &inputs(MOST), 0.0);
        }
    }
}

#[test]
fn counters_share_their_memory_with_nothing() {
    for device in counting_devices() {
        let executable = compile(&graph(Dim::from(MOST)), &device);
        let told = executable.explain();
        let of = |is_counters: bool| {
            let uses = told.steps.iter().flat_map(|step| &step.uses);
            uses.filter(move |used| used.tensor.starts_with("counters of ") == is_counters)
        };
        let places: Vec<_> = of(true).map(|used| (used.buffer, used.offset)).collect();
        let [(buffer, first), (other, second)] = places[..] else { panic!("{told}") };
        assert!(buffer == other && first != second && told.counters >= 8, "{told}");
        assert!(of(false).all(|used| used.buffer != buffer), "{told}");
    }
}

#[test]
fn the_proof_holds_counters_to_their_places() {
    for device in counting_devices() {
        let graph = graph(Dim::from(MOST));
        let mut trace = compile(&graph, &device).trace().unwrap();
        prove(&graph, &trace).unwrap();
        trace.given.retain(|given| !matches!(given.meaning, Meaning::Counters { .. }));
        let defect = prove(&graph, &trace).unwrap_err();
        assert!(defect.contains("it reads Counters"), "{defect}");
    }
}

#[test]
fn counters_that_are_none_or_bound_twice_are_refused() {
    let refused = |counters: &'static [u64], reason: &str| {
        let mut graph = Graph::new();
        let x = graph.input("x", U32, vec![Dim::from(MOST)]).unwrap();
        let total = graph.add_one(Total { counters }, &[x]).unwrap();
        graph.output("sum", total).unwrap();
        for device in counting_devices() {
            let error = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    };
    refused(&[0], "it binds 0 counters; expected 1 or more");
    refused(&[1, 2], "it binds counters twice, 1 and 2 of them; expected once at most");
}
