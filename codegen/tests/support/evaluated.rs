//! Kernels run by the evaluator.

use trefoil_codegen::artefact::{CpuArguments, CpuBuffer, ParamRole};
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::Module;
use trefoil_codegen::layout;
use trefoil_codegen::verify::verify;

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
    // SAFETY: buffers are as long as the lengths say, and the block is the kernel's.
    unsafe { program.run(&arguments, 0..groups.into()) };
}
