//! A local that is renamed changes its name in every emitted text, and nothing else: no number, no other name and no order follows from how an author calls things.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::artefact::{Code, ParamTransport, Target};
use trefoil_codegen::compile::{build, lower_for_cpu};
use trefoil_codegen::emit::{cpu, spirv};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::Instance;

/// A kernel with locals of every kind.
const KERNEL: &str = "
#[device]
fn scaled(given: f32, by: f32) -> f32 {
    let pondered = given * by;
    if pondered > 4.0 { pondered - by } else { pondered * pondered }
}

#[kernel(workgroup(64))]
fn renamed(x: &[f32], y: &mut [f32], count: u32, factor: f32) {
    let mut commons = workgroup_array::<f32>(64);
    let whereabouts = global_index();
    let own = local_index();
    let mut tally = 0.0;
    for lapnumber in 0..count {
        let portion = scaled(x[whereabouts + lapnumber as usize], factor);
        tally += portion;
        let mut residue = lapnumber;
        while residue > 2 {
            tally -= 0.5;
            residue /= 2;
        }
    }
    commons[own] = tally;
    barrier();
    let mut quartet = [0.0; 4];
    for quarter in 0..4 {
        quartet[quarter] = commons[(own + quarter * 16) % 64];
    }
    let best = quartet[0].max(quartet[1]).max(quartet[2] + quartet[3]);
    if whereabouts < y.len() {
        y[whereabouts] = best;
    }
}
";

/// An immutable local, a mutable one, an array, a loop's, one in a loop, one in a function, and workgroup memory.
const LOCALS: [&str; 9] =
    ["whereabouts", "tally", "quartet", "lapnumber", "quarter", "portion", "residue", "pondered", "commons"];

/// Every text that a kernel becomes, by what it is.
fn texts(source: &str) -> Vec<(String, String)> {
    let output = parse_source(source).unwrap_or_else(|errors| panic!("{errors}")).remove(0);
    let compiled = build(&output.module, &Instance::default(), &Target::ALL).unwrap();
    let mut texts = vec![
        ("the IR".to_owned(), output.module.to_string()),
        ("Rust for the CPU".to_owned(), cpu::text(&lower_for_cpu(&compiled.verified).unwrap()).unwrap()),
    ];
    for variant in compiled.kernel.variants.iter() {
        let text = match &variant.code {
            Code::Text(text) => text.to_string(),
            Code::Spirv(bytes) => {
                let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
                spirv::disassemble(&words.collect::<Vec<_>>())
            }
        };
        let transport = if variant.transport == ParamTransport::Buffer { "buffer" } else { "value" };
        texts.push((format!("{} {}, by {transport}", variant.target.name(), variant.profile), text));
    }
    texts
}

#[test]
fn a_local_that_is_renamed_changes_its_name_alone() {
    let usual = texts(KERNEL);
    for target in ["wgsl", "spirv", "cuda"] {
        assert!(usual.iter().any(|(what, _)| what.starts_with(target)), "no text for {target}");
    }
    for name in LOCALS {
        for other in ["q7", "what_somebody_else_would_call_it"] {
            let renamed = texts(&KERNEL.replace(name, other));
            assert_eq!(usual.len(), renamed.len());
            for ((what, before), (_, after)) in usual.iter().zip(&renamed) {
                assert_eq!(before.replace(name, other), *after, "`{name}` as `{other}`: {what}");
            }
        }
    }
}
