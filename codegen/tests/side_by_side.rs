//! The macro's way to compile gives what the late way gives.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::artefact::Code;
use trefoil_codegen::compile::{Built, Reports, build_and_print, build_with};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::Instance;

const KERNELS: [&str; 3] = [
    include_str!("support/kernels/functions.txt"),
    include_str!("support/wide_indices.txt"),
    "#[kernel(workgroup(64))] fn told(x: &[f32], y: &mut [f32]) { let i = global_index(); assert!(x[i] > 0.0); y[i] = x[i]; }
     #[kernel(workgroup(8, 8), index = 64, targets(spirv, cuda, cpu))] fn told_wide(x: &[f32], y: &mut [f32], width: usize) {
         let i = global_id().y * width + global_id().x; assert!(i < x.len()); y[i] = x[i]; }",
];

#[test]
fn instances_compiled_side_by_side_are_those_compiled_alone() {
    let parsed = |source: &&str| parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    for output in KERNELS.iter().flat_map(parsed) {
        let instances = match output.instances.as_slice() {
            [] => vec![Instance::default()],
            listed => listed.to_vec(),
        };
        let spell = |code: &Code| match code {
            Code::Text(text) => text.len(),
            Code::Spirv(words) => words.len(),
        };
        for reports in [Reports::Dropped, Reports::Buffered] {
            let (all, judged) =
                build_and_print(&output.module, &instances, reports, |_| Ok("printed"), spell, |all| all);
            judged.unwrap();
            assert_eq!(all.len(), instances.len());
            for (built, instance) in all.into_iter().zip(&instances) {
                let Built { kernel, printed, spelled } = built.unwrap();
                let alone = build_with(&output.module, instance, &output.module.targets, reports).unwrap().kernel;
                assert_eq!(kernel.hash, alone.hash);
                assert_eq!(format!("{kernel:?}"), format!("{alone:?}"));
                assert_eq!(printed, Some("printed"));
                assert_eq!(spelled, kernel.variants.iter().map(|variant| spell(&variant.code)).collect::<Vec<_>>());
            }
        }
    }
}
