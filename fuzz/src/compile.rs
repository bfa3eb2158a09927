//! What becomes of kernels that the front end has understood.

use trefoil_codegen::compile::{build, lower_for_cpu};
use trefoil_codegen::emit;
use trefoil_codegen::front::Output;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::verify::verify;
use trefoil_codegen::{check, interp};

/// Compiles the first and the last instance for every target.
///
/// # Panics
/// What the verifier took comes out of no emitter, or naga refuses what came out: a fault of the compiler, unless only the kernel's name is to blame.
pub fn all_targets(output: &Output) {
    let none = [Instance::default()];
    let listed = if output.instances.is_empty() { &none[..] } else { &output.instances[..] };
    let last = listed.get(1..).and_then(|others| others.last());
    for instance in listed.first().into_iter().chain(last) {
        match build(&output.module, instance, &output.module.targets) {
            Ok(built) => {
                if let Ok(lowered) = lower_for_cpu(&built.verified)
                    && let Err(error) = emit::cpu::emit(&lowered, "::trefoil::dsl::expansion::artefact")
                {
                    panic!("the CPU's code: {error}");
                }
            }
            Err(refused) => {
                // What is said of a mistake is made for people.
                let _ = output.spans.errors(&refused).to_string();
                let words = format!("{refused:?}");
                // A name may mean something else in a language.
                assert!(!words.contains("cannot be emitted") || words.contains("rename the kernel"), "{words}");
            }
        }
    }
}

/// Whatever a program does with IR that it was given as bytes: it may be refused.
pub fn any(module: &Module, instance: &Instance) {
    drop(module.to_string());
    if let Ok(built) = build(module, instance, &module.targets)
        && let Ok(lowered) = lower_for_cpu(&built.verified)
    {
        let _ = emit::cpu::emit(&lowered, "::trefoil::dsl::expansion::artefact");
    }
    if let Ok(module) = instantiate(module, instance)
        && let Ok(verified) = verify(module)
    {
        let _ = interp::Program::new(&verified);
    }
    let _ = check::Program::new(module, instance, &[]);
}
