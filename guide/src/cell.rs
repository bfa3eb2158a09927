//! A cell of the table: asked of the compiler, never written down.

use serde::Serialize;
use trefoil::artefact::{Kernel, Target};
use trefoil_codegen::compile;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::lower::lower;
use trefoil_codegen::target::Features;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

use crate::Outcome;

/// How a target serves a feature, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Support {
    /// The target's language has it.
    #[serde(rename = "yes")]
    Yes,
    /// It is made of what the target's language has.
    #[serde(rename = "emulated")]
    Emulated,
    /// A kernel that uses it and lists the target is refused while it is built.
    #[serde(rename = "compile error")]
    CompileError,
}

impl Support {
    /// As the table says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Emulated => "emulated",
            Self::CompileError => "compile error",
        }
    }
}

/// What a target makes of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// On a device with every feature.
    pub support: Support,
    /// Features that a device must have.
    pub requires: Vec<&'static str>,
    /// What stands for what, how it is on poorer devices, or the compiler's message.
    pub note: String,
}

/// What a target makes of some kernels: the worst of what it makes of each.
///
/// # Errors
/// A kernel's IR cannot be read.
pub fn cell(kernels: impl IntoIterator<Item = &'static Kernel>, target: Target) -> Outcome<Cell> {
    let mut worst = Cell { support: Support::Yes, requires: Vec::new(), note: String::new() };
    for kernel in kernels {
        let cell = one(kernel, target)?;
        let requires: Vec<_> = worst.requires.iter().chain(&cell.requires).copied().collect();
        if cell.support > worst.support || (cell.support == worst.support && worst.note.is_empty()) {
            worst = cell;
        }
        worst.requires = requires;
    }
    worst.requires.sort_unstable();
    worst.requires.dedup();
    Ok(worst)
}

fn one(kernel: &Kernel, target: Target) -> Outcome<Cell> {
    let mut module = Module::from_bytes(&kernel.ir)?;
    let instance = Instance::from_bytes(&kernel.instance)?;
    // A kernel that leaves the target out is asked what would be if it did not.
    module.targets = vec![target];
    let refused = |message: String| Cell { support: Support::CompileError, requires: Vec::new(), note: message };
    let verified = match instantiate(&module, &instance).and_then(verify) {
        Ok(verified) => verified,
        Err(found) => return Ok(refused(found.to_string())),
    };
    if let Err(found) = compile::compile(&module, &instance) {
        return Ok(refused(found.to_string()));
    }
    // The variants, from the one that wants most features to the one that wants least.
    let mut forms = Vec::new();
    for (profile, transport) in variants(&verified) {
        match lower(&verified, &profile, transport) {
            Ok(lowered) => forms.push((profile.features, lowered.emulated)),
            Err(found) => return Ok(refused(found.to_string())),
        }
    }
    let (Some((best, emulated)), Some((_, poorest))) = (forms.first(), forms.last()) else {
        return Ok(refused("it has no variant".to_owned()));
    };
    let required = verified.info.required;
    let names = |features: Features| features.iter().map(|feature| feature.variant_name()).collect::<Vec<_>>();
    let support = if emulated.is_empty() { Support::Yes } else { Support::Emulated };
    let note = match (emulated.is_empty(), poorest.is_empty()) {
        (false, _) => emulated.join(", "),
        (true, false) => {
            let missing = names(Features(best.0 & !required.0)).join(", ");
            format!("without {missing} emulated: {}", poorest.join(", "))
        }
        (true, true) => String::new(),
    };
    Ok(Cell { support, requires: names(required), note })
}
