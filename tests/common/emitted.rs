//! What every kernel of a crate becomes for every target, as snapshots: whoever changes the compiler or a kernel sees in the diff what that does.
//!
//! The crates' tests hand over the list of their kernels, so that a new kernel is covered by being listed. For each kernel there is the generic IR, and for each instance the text of each
//! variant: WGSL, CUDA C, SPIR-V disassembled, and the Rust that runs on the CPU. Text that nobody would read is not kept whole: what is longer than [`FIRST_LINES`], or in
//! further instances of the same kernel, which repeat the first with other constants, [`FURTHER_LINES`]; and the twins of variants that differ in where parameters lie. Every text,
//! kept or not, has a line in its kernel's table, with its length and a hash.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use trefoil_codegen::artefact::{Code, Dialect, Kernel, ParamTransport, Target, Variant};
use trefoil_codegen::compile::{build, lower_for_cpu};
use trefoil_codegen::emit::{cpu, spirv};
use trefoil_codegen::ir::{Instance, Module};

/// The longest text of a kernel's first instance that is kept.
const FIRST_LINES: usize = 800;
/// The longest text of another instance that is kept.
const FURTHER_LINES: usize = 250;

/// FNV-1a: the same on every machine and for every version of Rust.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn code(variant: &Variant) -> String {
    match &variant.code {
        Code::Text(text) => text.to_string(),
        Code::Spirv(bytes) => {
            let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
            spirv::disassemble(&words.collect::<Vec<_>>())
        }
    }
}

/// The Rust that runs an instance on the CPU.
fn rust(kernel: &Kernel, module: &Module) -> String {
    let instance = Instance::from_bytes(&kernel.instance).unwrap();
    let compiled = build(module, &instance, &[Target::Cpu]).unwrap();
    cpu::text(&lower_for_cpu(&compiled.verified).unwrap()).unwrap()
}

/// Hands every text of `kernels` to `check`, with its name; `folder` holds the snapshots.
pub fn every_kernel_for_every_target(kernels: Vec<&'static Kernel>, folder: &str, check: fn(&str, &str)) {
    // By generic kernel: its table, a line for each text.
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for kernel in kernels {
        let module = Module::from_bytes(&kernel.ir).unwrap();
        let first = !tables.contains_key(&module.name);
        let table = tables.entry(module.name.clone()).or_default();
        if first {
            let name = format!("{}.ir", module.name);
            check(&name, &module.to_string());
            kept.insert(name);
        }
        let mut texts = Vec::new();
        if kernel.cpu.is_some() {
            texts.push((format!("{}.cpu", kernel.name), rust(kernel, &module), false));
        }
        for variant in kernel.variants.iter() {
            // CUDA and Vulkan have a twin of each variant that takes parameters from a buffer; WGSL one that asks for subgroups, for browsers.
            let buffer = variant.transport == ParamTransport::Buffer && variant.target != Target::Wgsl;
            let twin = buffer || variant.dialect == Some(Dialect::Browsers);
            let name = format!("{}.{}.{}", kernel.name, variant.target.name(), variant.profile);
            texts.push((if buffer { format!("{name}.buffer") } else { name }, code(variant), twin));
        }
        for (name, text, twin) in texts {
            let lines = text.lines().count();
            writeln!(table, "{name}: {lines} lines, {:016x}", hash(&text)).unwrap();
            if !twin && lines <= if first { FIRST_LINES } else { FURTHER_LINES } {
                check(&name, &text);
                kept.insert(name);
            }
        }
    }
    for (kernel, table) in &tables {
        let name = format!("{kernel}.table");
        check(&name, table);
        kept.insert(name);
    }
    // What is no longer made must not stay.
    let there = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stale: Vec<_> =
        there.filter(|file| file.strip_suffix(".snap").is_some_and(|name| !kept.contains(name))).collect();
    assert!(stale.is_empty(), "snapshots of nothing, to be deleted: {stale:?}");
}
