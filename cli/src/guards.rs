//! `trefoil guards`: which accesses of a kernel are checked at run time, and why the others need not be.

use trefoil::artefact::{Features, Kernel, Target};
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::lower::accesses;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

use crate::Outcome;
use crate::emit::instances;

/// Prints the accesses of every instance of a kernel, as they are on a device with all features.
pub fn print(name: &str) -> Outcome {
    for kernel in instances(name)? {
        of(kernel)?;
    }
    Ok(())
}

fn of(kernel: &Kernel) -> Outcome {
    let (module, instance) = (Module::from_bytes(&kernel.ir)?, Instance::from_bytes(&kernel.instance)?);
    let verified = verify(instantiate(&module, &instance)?)?;
    let best = variants(&verified).into_iter().find(|(profile, _)| profile.target != Target::Cpu);
    let features = best.map_or(Features::NONE, |(profile, _)| profile.features);
    let found = accesses(&verified, features)?;
    let guarded = found.iter().filter(|access| access.guarded).count();
    say!("{}: {} accesses, {guarded} guarded", kernel.name, found.len());
    let widest = found.iter().map(|access| access.place.chars().count()).max().unwrap_or(0).min(48);
    for access in found {
        let at = verified.module.locations.describe(access.span);
        let why = match (access.guarded, access.because.is_empty()) {
            (true, _) => "guarded".to_owned(),
            (false, true) => "in range: its index is a constant".to_owned(),
            (false, false) => format!("in range: {}", access.because.join(", ")),
        };
        say!("  {:<widest$}  {why}  ({at})", access.place);
    }
    Ok(())
}
