//! `trefoil emit`

use std::fs;
use std::path::Path;

use clap::ValueEnum;
use indicatif::ProgressBar;
use trefoil::artefact::{Code, Kernel, ParamTransport, Target, Variant};
use trefoil::codegen::compile;
use trefoil::codegen::emit::{cpu, spirv};
use trefoil::codegen::ir::{Instance, Module};

use crate::kernels::known;
use crate::{Outcome, describe};

/// What can be printed of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// WebGPU shading language.
    Wgsl,
    /// SPIR-V, disassembled.
    Spirv,
    /// CUDA C.
    Cuda,
    /// The Rust that runs on the CPU.
    Cpu,
    /// The compiler's own representation, after verification.
    Ir,
}

/// The instances that go by a name: an instance's own, or that of its generic kernel.
pub fn instances(name: &str) -> Outcome<Vec<&'static Kernel>> {
    let named = |kernel: &Kernel| kernel.name == name || generic_name(kernel).is_ok_and(|generic| generic == name);
    let found: Vec<&'static Kernel> = known().filter(|kernel| named(kernel)).collect();
    if found.is_empty() {
        return Err(format!("no kernel is called `{name}`; `trefoil kernels` lists them").into());
    }
    Ok(found)
}

/// Prints the code of the instances that go by a name, variant after variant; it fails if none has code for the target.
pub fn one(name: &str, form: Form) -> Outcome {
    let mut lacking = Vec::new();
    let instances = instances(name)?;
    for &kernel in &instances {
        let target = match form {
            Form::Wgsl => Target::Wgsl,
            Form::Spirv => Target::Spirv,
            Form::Cuda => Target::Cuda,
            Form::Cpu => {
                say!("{}", cpu_text(kernel)?);
                continue;
            }
            Form::Ir => {
                say!("{}", compiled(kernel, Target::Cpu)?.verified.module);
                continue;
            }
        };
        let mut variants = kernel.variants.iter().filter(|variant| variant.target == target).peekable();
        if variants.peek().is_none() {
            lacking.push(format!("`{}` has no {} code: it has {}", kernel.name, target.name(), targets(kernel)));
        }
        for variant in variants {
            say!("// {}", file_stem(kernel, variant));
            match &variant.code {
                Code::Text(text) => say!("{text}"),
                Code::Spirv(bytes) => say!("{}", spirv::disassemble(&words(bytes))),
            }
        }
    }
    if lacking.len() == instances.len() {
        return Err(lacking.join("\n").into());
    }
    for line in lacking {
        say!("// {line}");
    }
    Ok(())
}

/// The targets for which a kernel has code.
fn targets(kernel: &Kernel) -> String {
    let has = |target: &Target| match target {
        Target::Cpu => kernel.cpu.is_some(),
        Target::Wgsl | Target::Spirv | Target::Cuda => kernel.variants.iter().any(|variant| variant.target == *target),
    };
    Target::ALL.into_iter().filter(has).map(Target::name).collect::<Vec<_>>().join(", ")
}

/// Writes everything about every kernel of the library and the examples, and of the guide in folders of their own: one for each row, whose kernels may go by
/// the names of others.
pub fn all(out: &Path) -> Outcome {
    let mut files = folder(out, known())?;
    for row in trefoil_guide::ROWS {
        files += folder(&out.join("guide").join(row.name), row.instances())?;
    }
    say!("{files} files in {}", out.display());
    Ok(())
}

/// Writes everything about some kernels into a folder; how many files that are.
fn folder(out: &Path, kernels: impl IntoIterator<Item = &'static Kernel>) -> Outcome<usize> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut files = 0;
    let mut write = |name: String, bytes: &[u8]| -> Outcome {
        let path = out.join(name);
        files += 1;
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()).into())
    };
    let kernels: Vec<_> = kernels.into_iter().collect();
    // Drawn on a terminal alone.
    let progress = ProgressBar::new(kernels.len() as u64);
    for kernel in progress.wrap_iter(kernels.into_iter()) {
        for variant in kernel.variants.iter() {
            let stem = file_stem(kernel, variant);
            let name = format!("{stem}.{}", extension(variant.target));
            match &variant.code {
                Code::Text(text) => write(name, text.as_bytes())?,
                Code::Spirv(bytes) => {
                    write(name, bytes)?;
                    write(format!("{stem}.spvasm"), spirv::disassemble(&words(bytes)).as_bytes())?;
                }
            }
        }
        let description = serde_json::to_string_pretty(&describe::kernel(kernel))?;
        write(format!("{}.json", kernel.name), description.as_bytes())?;
    }
    Ok(files)
}

/// `NAME.PROFILE`, and `NAME.PROFILE.buffer` for the variant that reads its parameters from a buffer where another takes them by value.
pub fn file_stem(kernel: &Kernel, variant: &Variant) -> String {
    let by_value = |other: &Variant| other.target == variant.target && other.transport == ParamTransport::Value;
    let buffer = variant.transport == ParamTransport::Buffer && kernel.variants.iter().any(by_value);
    format!("{}.{}{}", kernel.name, variant.profile, if buffer { ".buffer" } else { "" })
}

/// How the files of a target end.
pub const fn extension(target: Target) -> &'static str {
    match target {
        Target::Wgsl => "wgsl",
        Target::Spirv => "spv",
        Target::Cuda => "cu",
        Target::Cpu => "rs",
    }
}

fn generic_name(kernel: &Kernel) -> Outcome<String> {
    Ok(Module::from_bytes(&kernel.ir)?.name)
}

/// The kernel once more through the compiler, for a target.
fn compiled(kernel: &Kernel, target: Target) -> Outcome<compile::Compiled> {
    let module = Module::from_bytes(&kernel.ir)?;
    let instance = Instance::from_bytes(&kernel.instance)?;
    Ok(compile::build(&module, &instance, &[target])?)
}

fn cpu_text(kernel: &Kernel) -> Outcome<String> {
    let lowered = compile::lower_for_cpu(&compiled(kernel, Target::Cpu)?.verified)?;
    let function = cpu::emit(&lowered, "trefoil::artefact")?;
    let name = kernel.name.to_uppercase();
    let file = syn::parse_file(&format!("pub const {name}: trefoil::artefact::CpuFunction = {function};"))?;
    Ok(prettyplease::unparse(&file))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
