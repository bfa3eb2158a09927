//! Kernels run by the evaluator.

use trefoil_codegen::artefact::{CpuArguments, CpuBuffer, ParamRole};
use trefoil_codegen::check::{self, Finding, Found, Options};
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::{Module, Scalar};
use trefoil_codegen::layout;
use trefoil_codegen::verify::{Verified, verify};

/// Memory that is bound: which words, from which on, how many of them, and how many elements that is.
#[derive(Clone, Copy, Debug)]
pub struct Bind {
    pub memory: usize,
    pub first: usize,
    pub words: usize,
    pub elements: u32,
}

/// Runs a kernel without parameters in the evaluator, over one workgroup: bindings are words and their elements.
#[allow(dead_code, reason = "not every test that has this file")]
pub fn evaluated(module: &Module, bindings: Vec<(Vec<u32>, u32)>) -> Vec<Vec<u32>> {
    let binds = bindings.iter().enumerate();
    let binds =
        binds.map(|(memory, (words, elements))| Bind { memory, first: 0, words: words.len(), elements: *elements });
    let binds: Vec<_> = binds.collect();
    let mut memories: Vec<_> = bindings.into_iter().map(|(words, _)| words).collect();
    evaluate(module, &mut memories, &binds, 1);
    memories
}

/// A double of two words each.
fn double(words: &[u32], index: usize) -> f64 {
    f64::from_bits(u64::from(words[2 * index]) | u64::from(words[2 * index + 1]) << 32)
}

/// Runs it over some workgroups along x; several bindings may be in one memory.
pub fn evaluate(module: &Module, memories: &mut [Vec<u32>], binds: &[Bind], groups: u32) {
    let verified = verify(module.clone()).unwrap_or_else(|found| panic!("{found}"));
    let program = Program::new(&verified).unwrap_or_else(|error| panic!("{error}"));
    let params = layout::params(&verified.module, verified.info.grid).expect("it has parameters that can be ones");
    let mut block = vec![0; params.size as usize];
    for field in params.fields.iter() {
        let word = match field.role {
            ParamRole::Length(binding) => binds[binding as usize].elements,
            ParamRole::GroupCount => groups,
            _ => 1,
        };
        block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    let pointers: Vec<*mut u32> = memories.iter_mut().map(|words| words.as_mut_ptr()).collect();
    let buffers: Vec<CpuBuffer> = binds
        .iter()
        .map(|bind| {
            assert!(bind.first + bind.words <= memories[bind.memory].len(), "{bind:?}");
            CpuBuffer { pointer: pointers[bind.memory].wrapping_add(bind.first).cast(), bytes: bind.words * 4 }
        })
        .collect();
    let arguments = CpuArguments { buffers: &buffers, params: &block, groups: [groups, 1, 1], subgroup_size: 8 };
    let checked = checked(verified, memories, binds, &block, groups);
    // SAFETY: buffers are as long as the lengths say, and the block is the kernel's.
    unsafe { program.run(&arguments, 0..groups.into()) };
    let Some(checked) = checked else { return };
    for ((binding, bind), words) in module.bindings.iter().zip(binds).zip(checked) {
        let scalar = module.types[binding.element].scalar();
        let there = &memories[bind.memory][bind.first..][..bind.words];
        for (index, (checked, found)) in words.iter().zip(there).enumerate() {
            // Their functions are not the same: each is within two units in the last place of the exact one, and a kernel has a few of them.
            let close = match scalar {
                Some(Scalar::F32) => {
                    let (a, b) = (f32::from_bits(*checked), f32::from_bits(*found));
                    a.is_nan() && b.is_nan() || (a - b).abs() <= 16.0 * f32::EPSILON * b.abs()
                }
                Some(Scalar::F64) => {
                    let (a, b) = (double(&words, index / 2), double(there, index / 2));
                    a.is_nan() && b.is_nan() || (a - b).abs() <= 16.0 * f64::EPSILON * b.abs()
                }
                _ => false,
            };
            assert!(
                checked == found || close,
                "`{}`, element {index} of `{}`: the checker gives {checked:#x}, and the evaluator {found:#x}",
                module.name,
                binding.name
            );
        }
    }
}

/// What the checker makes of the bindings, where no two share memory (it has memory of its own for each), and where what it gives is specified: without a race, and nothing read
/// that was not written.
fn checked(
    verified: Verified,
    memories: &[Vec<u32>],
    binds: &[Bind],
    block: &[u8],
    groups: u32,
) -> Option<Vec<Vec<u32>>> {
    let shared = |(index, bind): (usize, &Bind)| binds[..index].iter().any(|other| other.memory == bind.memory);
    if binds.iter().enumerate().any(shared) {
        return None;
    }
    let mut bytes: Vec<Vec<u8>> = binds
        .iter()
        .map(|bind| {
            memories[bind.memory][bind.first..][..bind.words].iter().flat_map(|word| word.to_le_bytes()).collect()
        })
        .collect();
    // What is compared is results: arguments are the same for all kernels here, and some do not bear them.
    let options = Options { subgroup_size: 8, most_findings: usize::MAX, ..Options::default() };
    let program = check::Program::of_verified(verified).unwrap_or_else(|error| panic!("{error}"));
    let report = program.run(&options, &mut bytes, block, [groups, 1, 1]).unwrap_or_else(|error| panic!("{error}"));
    assert!(!report.stopped, "{report}");
    let unspecified = |found: &Found| matches!(found.finding, Finding::Race { .. } | Finding::Uninitialised { .. });
    if report.findings.iter().any(unspecified) {
        return None;
    }
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    Some(bytes.iter().map(|bytes| bytes.chunks(4).map(word).collect()).collect())
}
