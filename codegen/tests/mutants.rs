//! Mistakes are found: each that authors make, made at every site of some kernels, is refused by the verifier, told of by the checker, or seen in the results. Those that are none of it
//! are listed with the reason.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

// Those of the library's and the examples' kernels are a program of their own, of which this is the part that makes mistakes.
#[allow(dead_code, reason = "here nobody lists them")]
#[path = "../../mutants/src/mistake.rs"]
mod mistake;
#[path = "../../mutants/src/mutate.rs"]
mod mutate;
#[allow(dead_code, reason = "here nobody asks where runs get")]
#[path = "../../mutants/src/probe.rs"]
mod probe;
#[path = "../../mutants/src/site.rs"]
mod site;

use std::collections::BTreeMap;

use mistake::Mistake;
use mutate::{Change, changed, sites};
use trefoil_codegen::artefact::ParamRole;
use trefoil_codegen::check::{Options, Program};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::layout;
use trefoil_codegen::verify::verify_as_written;

/// A kernel with arguments for which it does nothing amiss: the words of its buffers and params, and its workgroups.
struct Case {
    kernel: &'static str,
    buffers: Vec<Vec<u32>>,
    params: Vec<u32>,
    groups: [u32; 3],
}

/// Small floats, none of them 0 and no two neighbours equal.
fn floats(count: u32) -> Vec<u32> {
    (0..count).map(|i| ((i * 7 % 23) as f32 + 1.0).to_bits()).collect()
}

fn cases() -> Vec<Case> {
    let case = |kernel, buffers, params, groups| Case { kernel, buffers, params, groups };
    let empty = |count: usize| vec![0x7fc0_1234; count];
    vec![
        case("scaled", vec![floats(300), empty(300)], vec![2.5f32.to_bits()], [2, 1, 1]),
        case("sum", vec![floats(500), empty(3)], vec![], [3, 1, 1]),
        case("tiled", vec![floats(11 * 13), floats(13 * 9), empty(11 * 9)], vec![11, 9, 13], [2, 2, 1]),
        case("histogram", vec![(0..150).map(|i| i * 5).collect(), vec![0; 16]], vec![], [3, 1, 1]),
        case("winding", vec![(0..50).collect(), vec![9; 50]], vec![], [2, 1, 1]),
        case("lanes", vec![floats(60), empty(60)], vec![], [2, 1, 1]),
        case("softmax", vec![floats(300), empty(300)], vec![100], [3, 1, 1]),
    ]
}

/// The instance of a kernel of the tests of the CPU.
fn module(name: &str) -> Module {
    let outputs = parse_source(include_str!("kernels/cpu.rs")).unwrap_or_else(|errors| panic!("{errors}"));
    let output = outputs.into_iter().find(|output| output.module.name == name).unwrap();
    instantiate(&output.module, &output.instances[0]).unwrap()
}

/// What becomes of a module with the arguments of a case.
enum Fate {
    /// The verifier says why it is none.
    Refused,
    /// The checker has something to say.
    Told,
    /// Nobody says anything, and it leaves this.
    Ran(Vec<Vec<u8>>),
}

fn fate(module: Module, case: &Case) -> Fate {
    let Ok(verified) = verify_as_written(module) else { return Fate::Refused };
    let program = Program::of_verified(verified).unwrap();
    let verified = program.verified();
    let params = layout::params(&verified.module, verified.info.grid).unwrap();
    let mut block = vec![0; params.size as usize];
    for field in params.fields.iter() {
        let word = match field.role {
            ParamRole::User(index) => case.params[index as usize],
            ParamRole::Length(binding) => case.buffers[binding as usize].len() as u32,
            ParamRole::GroupCount => case.groups.iter().product(),
            _ => 0,
        };
        block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    let mut buffers: Vec<Vec<u8>> =
        case.buffers.iter().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect()).collect();
    let options = Options { most_findings: 1, most_rounds: 10_000, ..Options::default() };
    let report = program.run(&options, &mut buffers, &block, case.groups).unwrap();
    if report.is_clean() { Fate::Ran(buffers) } else { Fate::Told }
}

/// Mutants that do what the kernel does, and why: kernel, mistake, line in `kernels/cpu.rs`.
const SURVIVORS: &[(&str, Mistake, u32, &str)] = &[
    // The checker runs all additions before any of the loads, and what atomics give without a barrier is a matter of time, not a race.
    ("histogram", Mistake::BarrierDropped, 70, "relaxed atomics race with nothing"),
    ("winding", Mistake::BranchDiverges, 79, "the first invocation of a workgroup is never beyond the end here"),
    ("winding", Mistake::BranchDiverges, 99, "the first invocation of a workgroup takes few steps here"),
    ("softmax", Mistake::IndexShifted, 136, "the largest of the odd invocations is the largest of all here"),
    (
        "softmax",
        Mistake::BarrierDropped,
        153,
        "a barrier comes right before this uniform load, and nothing is written behind it",
    ),
];

#[test]
fn every_mistake_is_refused_told_of_or_seen_but_for_those_that_change_nothing() {
    let mut survivors = Vec::new();
    let mut counts: BTreeMap<Mistake, [u32; 4]> = BTreeMap::new();
    for case in cases() {
        let module = module(case.kernel);
        let Fate::Ran(right) = fate(module.clone(), &case) else { panic!("`{}` does something amiss", case.kernel) };
        for (position, site) in sites(&module).unwrap().iter().enumerate() {
            let fate = fate(changed(&module, position, Change::Mistake).unwrap(), &case);
            let way = match &fate {
                Fate::Refused => 0,
                Fate::Told => 1,
                Fate::Ran(found) if *found != right => 2,
                Fate::Ran(_) => 3,
            };
            counts.entry(site.mistake).or_default()[way] += 1;
            if way == 3 {
                let line: u32 = site.line.split(':').nth(1).and_then(|line| line.parse().ok()).unwrap();
                survivors.push((case.kernel, site.mistake, line));
            }
        }
    }
    for (mistake, [refused, told, seen, same]) in &counts {
        println!("{mistake}: {refused} refused, {told} told of, {seen} seen in the results, {same} change nothing");
    }
    let listed: Vec<_> = SURVIVORS.iter().map(|(kernel, mistake, line, _)| (*kernel, *mistake, *line)).collect();
    assert_eq!(survivors, listed, "mutants that do what the kernel does, and those that are listed");
}

/// What leaves makes a difference where its condition holds, and its `else` is what is done without it.
#[test]
fn a_dropped_exit_does_what_its_else_does_and_differs_where_its_condition_holds() {
    let source = "#[kernel(workgroup(64))]
fn k(y: &mut [u32]) {
    let i = global_index();
    if i >= 100 {
        return;
    } else {
        y[i] = 1;
    }
}";
    let output = parse_source(source).unwrap_or_else(|errors| panic!("{errors}")).remove(0);
    let module = instantiate(&output.module, &Instance::default()).unwrap();
    let position = sites(&module).unwrap().iter().position(|site| site.mistake == Mistake::GuardDropped).unwrap();
    let case = |groups| Case { kernel: "k", buffers: vec![vec![0; 128]], params: vec![], groups: [groups, 1, 1] };
    let differs = changed(&module, position, Change::Differs).unwrap();
    assert!(matches!(fate(differs.clone(), &case(1)), Fate::Ran(_)), "nobody leaves");
    assert!(matches!(fate(differs, &case(2)), Fate::Told), "the last 28 leave");
    let Fate::Ran(found) = fate(changed(&module, position, Change::Mistake).unwrap(), &case(2)) else {
        panic!("it does something amiss")
    };
    assert_eq!(found, [1u32.to_le_bytes().repeat(128)]);
}
