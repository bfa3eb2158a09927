//! Faults planted into CUDA C, which its run on the CPU finds: what an emitter of text gets wrong shows in no other way on a machine without a GPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use trefoil_codegen::target::Target;
use trefoil_random::fibers::{Fibers, PLACE, SUBGROUP, Task, is_required};
use trefoil_random::syntax::Program;
use trefoil_random::value::Value;
use trefoil_random::{draw, meaning, run};

/// So many kernels are compiled together.
const BATCH: usize = 16;
/// Within so many kernels that have a place for it, a fault is found.
const KERNELS: usize = 64;
/// Seeds that are looked at.
const SEEDS: u64 = 1000;

/// A fault: its name, what is written, and what stands there instead.
const FAULTS: [(&str, &str, &str); 8] = [
    ("the first barrier left out", "    __syncthreads();\n", ""),
    ("sums of signed integers are differences", "return int(uint(a) + uint(b));", "return int(uint(a) - uint(b));"),
    ("a negative without its one", "return int(inverted + 1u);", "return int(inverted);"),
    ("a guard that lets the element behind the end through", "_len) {", "_len + 1u) {"),
    ("the lane of a subgroup is not counted from its first", "local_index % 32u", "local_index % 16u"),
    ("an atomic sum that is an exchange", "atomicAdd(", "atomicExch("),
    ("the next lane for the one before", "__shfl_up_sync(", "__shfl_down_sync("),
    ("the remainder of floats is the first of them", "fmodf(", "copysignf("),
];

/// A kernel with a fault, and what it means without.
struct Planted {
    task: Task,
    program: Arc<(Program, Vec<Vec<Value>>)>,
    fault: usize,
    seed: u64,
}

/// The kernel's text with the fault; for a barrier the first alone, since others may do its work.
fn planted(text: &str, fault: usize) -> Option<String> {
    let (_, from, to) = FAULTS[fault];
    let changed = if to.is_empty() { text.replacen(from, to, 1) } else { text.replace(from, to) };
    (changed != text).then_some(changed)
}

#[test]
fn faults_of_cuda_text_are_found() {
    let fibers = match Fibers::open() {
        Ok(fibers) => fibers,
        Err(words) => {
            let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
            assert!(!is_required(&required), "{PLACE} is required: {words}");
            return println!("not tested: {words}");
        }
    };
    let mut open: BTreeMap<usize, usize> = (0..FAULTS.len()).map(|fault| (fault, 0)).collect();
    let mut waiting: Vec<Planted> = Vec::new();
    for seed in 0..SEEDS {
        if open.is_empty() {
            break;
        }
        let program = draw::draw(seed);
        let Ok(wanted) = meaning::outcome(&program, SUBGROUP) else { continue };
        let kernel = run::compile(&run::understand(&program).unwrap().module, &[Target::Cuda]).unwrap();
        let task = Task::new(&Arc::new(kernel), &program).unwrap();
        let shared = Arc::new((program, wanted));
        for (fault, sites) in &mut open {
            let Some(text) = planted(&task.text, *fault).filter(|_| *sites < KERNELS) else { continue };
            *sites += 1;
            let mut task = task.clone();
            task.text = text;
            waiting.push(Planted { task, program: shared.clone(), fault: *fault, seed });
        }
        if waiting.len() >= BATCH || seed + 1 == SEEDS {
            let tasks: Vec<&Task> = waiting.iter().map(|one| &one.task).collect();
            for (one, outcome) in waiting.iter().zip(fibers.run(&tasks)) {
                let (program, wanted) = &*one.program;
                let seen = outcome.and_then(|found| run::agree(PLACE, program, wanted, &found));
                if let (Err(failure), true) = (seen, open.contains_key(&one.fault)) {
                    println!("{}: seed {}, {failure}", FAULTS[one.fault].0, one.seed);
                    open.remove(&one.fault);
                }
            }
            waiting.clear();
        }
    }
    let names: Vec<_> =
        open.iter().map(|(fault, sites)| format!("{} (in {sites} kernels)", FAULTS[*fault].0)).collect();
    assert!(names.is_empty(), "not found: {}", names.join(", "));
}
