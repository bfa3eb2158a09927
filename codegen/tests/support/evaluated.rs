//! Kernels run by the evaluator.

use trefoil_codegen::artefact::{CpuArguments, CpuBuffer, ParamRole};
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::Module;
use trefoil_codegen::layout;
use trefoil_codegen::verify::verify;

/// Runs a kernel without parameters in the evaluator, over one workgroup: bindings are words and their elements.
pub fn evaluated(module: &Module, mut bindings: Vec<(Vec<u32>, u32)>) -> Vec<Vec<u32>> {
    let verified = verify(module.clone()).unwrap_or_else(|found| panic!("{found}"));
    let program = Program::new(&verified).unwrap_or_else(|error| panic!("{error}"));
    let params = layout::params(&verified.module, verified.info.grid).expect("it has parameters that can be ones");
    let mut block = vec![0; params.size as usize];
    for field in params.fields.iter() {
        let word = match field.role {
            ParamRole::Length(binding) => bindings[binding as usize].1,
            _ => 1,
        };
        block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    let buffers: Vec<CpuBuffer> = bindings
        .iter_mut()
        .map(|(words, _)| CpuBuffer { pointer: words.as_mut_ptr().cast(), bytes: words.len() * 4 })
        .collect();
    let arguments = CpuArguments { buffers: &buffers, params: &block, groups: [1; 3], subgroup_size: 8 };
    // SAFETY: buffers are as long as the lengths say, and the block is the kernel's.
    unsafe { program.run(&arguments, 0..1) };
    bindings.into_iter().map(|(words, _)| words).collect()
}
