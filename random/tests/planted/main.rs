//! Faults of emitters are found: each of a list, planted wherever it can be, shows within 1,000 kernels.
//!
//! A fault is a change of the IR ([`faults`]), so that the evaluator runs what a device would that got wrong code. A missing barrier does nothing there, where a workgroup runs in step: it is the checker that sees it. Faults in CUDA C are changes of the text ([`text`]).

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod faults;
mod text;

use faults::{FAULTS, planted};
use trefoil_codegen::verify::verify;
use trefoil_random::run::Understood;
use trefoil_random::syntax::Program;
use trefoil_random::value::Value;
use trefoil_random::{draw, meaning, run};

const SUBGROUP: u32 = 8;
const KERNELS: u64 = 1000;
/// What is drawn too rarely to show, and is left to `tests/meaning.rs`: constants that shift by too much are refused in kernels.
const RARE: [&str; 1] = ["<< by an amount that is not taken modulo the bits"];

/// Whether somebody notices.
fn is_seen(program: &Program, wanted: &[Vec<Value>], faulty: trefoil_codegen::ir::Module) -> bool {
    // The verifier's own rules may see it first; and the checker gives up a loop that a fault made endless, which the evaluator would run.
    let Ok(verified) = verify(faulty.clone()) else { return true };
    let Ok(checked) = run::checked(&faulty, program, SUBGROUP) else { return true };
    let found = run::evaluate(&verified, program, SUBGROUP).unwrap();
    run::agree("checker", program, wanted, &checked).is_err()
        || run::agree("evaluator", program, wanted, &found).is_err()
}

#[test]
fn every_planted_fault_is_found() {
    assert!(FAULTS.len() >= 30);
    let mut open: Vec<usize> = (0..FAULTS.len()).collect();
    let mut sites = vec![0u32; FAULTS.len()];
    for seed in 0..KERNELS {
        let program = draw::draw(seed);
        let Ok(wanted) = meaning::outcome(&program, SUBGROUP) else { continue };
        let Understood { module, .. } = run::understand(&program).unwrap();
        open.retain(|fault| {
            let (name, change) = FAULTS[*fault];
            let Some(faulty) = planted(&module, change) else { return true };
            sites[*fault] += 1;
            let seen = is_seen(&program, &wanted, faulty);
            if seen {
                println!("{name}: seed {seed}, the kernel number {} that has a place for it", sites[*fault]);
            }
            !seen
        });
        if open.is_empty() {
            break;
        }
    }
    println!("{} of {} faults found", FAULTS.len() - open.len(), FAULTS.len());
    open.retain(|fault| !RARE.contains(&FAULTS[*fault].0));
    let names: Vec<_> =
        open.iter().map(|fault| format!("{} (in {} kernels)", FAULTS[*fault].0, sites[*fault])).collect();
    assert!(names.is_empty(), "not found within {KERNELS} kernels: {}", names.join(", "));
}
