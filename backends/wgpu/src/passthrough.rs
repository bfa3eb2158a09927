//! SPIR-V for kernels that WGSL cannot say: those with matrices that a subgroup holds together, and those with reads that stay where they are written.
//!
//! naga has matrices of its own, and kernels cannot be written with them: there is no way to an accumulator's elements, none to convert one, no memory of another
//! type than the matrix's, and no shape but squares of 8 and 16. Above all, the SPIR-V that naga makes of them declares the Vulkan memory model and marks no access
//! as non-private, so that no barrier orders what invocations of a workgroup write for each other. So a device of wgpu on Vulkan that has matrices takes
//! the kernel's own SPIR-V, unchanged, through the pipeline layout of wgpu. Bindings are numbered alike there; the parameter block is a storage buffer.
//!
//! Reads stay where they are written if they are volatile, which WGSL does not have: others a driver puts off until each waits for its own. The argmax of rows of 1,024 has 94 % of what memory gives so, and 88 % from
//! WGSL. Kernels whose pipelines want no checks of the driver's (`no_robustness`) are left in WGSL all the same: a device of wgpu has these checks, with which convolutions have 31 TFLOP/s from WGSL and 28 as SPIR-V. So are those that sum products
//! of bytes: WGSL has a function for that, and wgpu does not tell whether SPIR-V's instruction may be used.
//!
//! A device that has no matrices never takes SPIR-V: with them wgpu enables the memory model that every module of ours has. Modules that make halves ask for rounding to the nearest, of which wgpu tells nothing: drivers
//! that multiply matrices have it.

use std::ops::Range;

use trefoil_codegen::artefact::{
    Code, Constant, Feature, Features, Kernel, MatrixProduct, MatrixScalar, ParamTransport, Target, Variant,
    VariantError,
};
use trefoil_dsl::device::Properties;

use crate::device::Shared;

/// What wgpu must have for kernels with matrices.
pub(crate) fn wanted() -> wgpu::Features {
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX
        | wgpu::Features::PASSTHROUGH_SHADERS
        | wgpu::Features::SUBGROUP
        | wgpu::Features::SHADER_F16
}

/// What kernels may use on a device that takes SPIR-V, beside what WGSL has.
pub(crate) const FEATURES: Features = Features::of(&[Feature::CooperativeMatrices]);

/// The products of matrices that wgpu lists for an adapter that takes SPIR-V; none if it does not, or if they are of integers.
pub(crate) fn products(adapter: &wgpu::Adapter) -> Vec<MatrixProduct> {
    if adapter.get_info().backend != wgpu::Backend::Vulkan || !adapter.features().contains(wanted()) {
        return Vec::new();
    }
    let scalar = |ty: wgpu::CooperativeScalarType| match ty {
        wgpu::CooperativeScalarType::F16 => Some(MatrixScalar::F16),
        wgpu::CooperativeScalarType::F32 => Some(MatrixScalar::F32),
        wgpu::CooperativeScalarType::I32 | wgpu::CooperativeScalarType::U32 => None,
    };
    let product = |one: wgpu::CooperativeMatrixProperties| {
        Some(MatrixProduct {
            rows: one.m_size,
            columns: one.n_size,
            depth: one.k_size,
            input: scalar(one.ab_type)?,
            accumulator: scalar(one.cr_type)?,
        })
    };
    adapter.cooperative_matrix_properties().into_iter().filter_map(product).collect()
}

/// The variant that a device runs: SPIR-V where it does what WGSL cannot say, or where there is no WGSL, and WGSL otherwise.
pub(crate) fn select<'k>(shared: &Shared, kernel: &'k Kernel) -> Result<&'k Variant, VariantError> {
    let Properties { features, matrices, .. } = &shared.state.properties;
    // The one form of parameters in WGSL serves both transports, and SPIR-V's that looks like it does too.
    let choose = |language| kernel.variant_with(language, *features, matrices, ParamTransport::Buffer);
    if !shared.takes_spirv {
        return choose(shared.language);
    }
    match (choose(Target::Spirv.into()), choose(shared.language)) {
        (Ok(spirv), Ok(wgsl)) => {
            let unsayable = spirv.features.iter().any(|feature| feature.never(Target::Wgsl));
            let dots = || kernel.variants.iter().any(|variant| variant.features.has(Feature::IntegerDot));
            let stays = || !kernel.no_robustness && has_volatile_reads(&spirv.code) && !dots();
            Ok(if unsayable || stays() { spirv } else { wgsl })
        }
        (Err(VariantError::NoTarget { .. }), wgsl) | (Err(_), wgsl @ Ok(_)) => wgsl,
        (spirv, Err(_)) => spirv,
    }
}

/// The words of a module; `None` if it is not SPIR-V.
fn module(code: &Code) -> Option<Vec<u32>> {
    const MAGIC: u32 = 0x0723_0203;
    let Code::Spirv(bytes) = code else { return None };
    let (chunks, []) = bytes.as_chunks::<4>() else { return None };
    let words: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
    (words.first() == Some(&MAGIC) && words.len() >= HEADER).then_some(words)
}

/// Words before a module's first instruction.
const HEADER: usize = 5;

/// Where a module's instructions are; `None` if one goes past the end.
fn instructions(words: &[u32]) -> Option<Vec<Range<usize>>> {
    let (mut all, mut at) = (Vec::new(), HEADER);
    while let Some(first) = words.get(at) {
        let end = at + ((first >> 16) as usize).max(1);
        words.get(at..end)?;
        all.push(at..end);
        at = end;
    }
    Some(all)
}

/// Whether a module reads anything by a volatile load.
fn has_volatile_reads(code: &Code) -> bool {
    const LOAD: u32 = 61;
    const VOLATILE: u32 = 1;
    let Some(words) = module(code) else { return false };
    let is_volatile = |at: Range<usize>| matches!(words[at], [first, _, _, _, access, ..] if first & 0xffff == LOAD && access & VOLATILE != 0);
    instructions(&words).is_some_and(|all| all.into_iter().any(is_volatile))
}

/// The words of a module with the values of the kernel's specialisation constants, of which wgpu passes none on; `None` if it is not SPIR-V.
pub(crate) fn words(code: &Code, constants: &[Constant]) -> Option<Vec<u32>> {
    const DECORATE: u32 = 71;
    const SPEC_ID: u32 = 1;
    const SPEC_TRUE: u32 = 48;
    const SPEC_FALSE: u32 = 49;
    const SPEC_CONSTANT: u32 = 50;
    let mut words = module(code)?;
    // Decorations come before constants.
    let mut named: Vec<(u32, &Constant)> = Vec::new();
    for at in instructions(&words)? {
        let instruction = &mut words[at];
        match (instruction[0] & 0xffff, instruction) {
            (DECORATE, [_, id, SPEC_ID, number]) => {
                named.extend(constants.get(*number as usize).map(|constant| (*id, constant)));
            }
            (SPEC_TRUE | SPEC_FALSE, [first, _, id]) => {
                if let Some((_, constant)) = named.iter().find(|(known, _)| known == id) {
                    *first = *first & 0xffff_0000 | if constant.value == 0 { SPEC_FALSE } else { SPEC_TRUE };
                }
            }
            (SPEC_CONSTANT, [_, _, id, value]) => {
                if let Some((_, constant)) = named.iter().find(|(known, _)| known == id) {
                    // Of an `i32` its two's complement.
                    *value = constant.value as u32;
                }
            }
            _ => {}
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use trefoil_codegen::artefact::ParamScalar;

    use super::*;

    fn constant(name: &'static str, scalar: ParamScalar, value: i64) -> Constant {
        Constant { name: name.into(), scalar, value, low: i64::MIN, high: i64::MAX, multiple: 1 }
    }

    fn bytes(words: &[u32]) -> Code {
        Code::Spirv(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into())
    }

    #[test]
    fn constants_are_written_into_the_module() {
        let module = |values: [u32; 3]| {
            vec![
                0x0723_0203,
                0x0001_0500,
                0,
                20,
                0, // the header
                4 << 16 | 71,
                7,
                1,
                1, // the second constant, of an id of its own
                4 << 16 | 71,
                6,
                1,
                0,
                4 << 16 | 71,
                8,
                1,
                2,
                4 << 16 | 50,
                3,
                6,
                values[0],
                4 << 16 | 50,
                3,
                7,
                values[1],
                3 << 16 | values[2],
                2,
                8,
                4 << 16 | 50,
                3,
                9,
                77, // one that no constant of the kernel is
            ]
        };
        let all = [
            constant("a", ParamScalar::U32, 5),
            constant("b", ParamScalar::I32, -2),
            constant("c", ParamScalar::Bool, 0),
        ];
        assert_eq!(words(&bytes(&module([0, 1, 48])), &all), Some(module([5, 0xffff_fffe, 49])));
        assert_eq!(words(&bytes(&module([0, 1, 49])), &[]), Some(module([0, 1, 49])));
    }

    #[test]
    fn volatile_loads_are_found() {
        let with =
            |access: u32| bytes(&[0x0723_0203, 0x0001_0500, 0, 20, 0, 5 << 16 | 61, 1, 2, 3, access, 1 << 16 | 253]);
        assert!(has_volatile_reads(&with(0b1)) && has_volatile_reads(&with(0b10_0001)));
        assert!(!has_volatile_reads(&with(0b10_0000)));
        // One without an operand for it, behind which another instruction begins with an odd word.
        assert!(!has_volatile_reads(&bytes(&[
            0x0723_0203,
            0x0001_0500,
            0,
            20,
            0,
            4 << 16 | 61,
            1,
            2,
            3,
            1 << 16 | 253
        ])));
        assert!(!has_volatile_reads(&Code::Text("fn main() {}".into())));
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert_eq!(words(&Code::Text("fn main() {}".into()), &[]), None);
        assert_eq!(words(&bytes(&[1, 2, 3, 4, 5]), &[]), None);
        assert_eq!(words(&bytes(&[0x0723_0203, 0, 0, 0, 0, 9 << 16 | 71]), &[]), None, "an instruction past the end");
    }
}
