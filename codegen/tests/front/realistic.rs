//! Kernels as people write them go through the front end, instantiation and the verifier.

use trefoil_codegen::{ir, verify};

/// A matrix product in tiles, a row softmax, a histogram, structs, enums, views and generics.
pub const KERNELS: &str = include_str!("kernels.txt");

#[test]
fn every_instance_is_verified() {
    let outputs = super::outputs(KERNELS);
    assert_eq!(outputs.len(), 6);
    let mut instances = 0;
    for output in &outputs {
        for instance in &output.instances {
            let module = ir::instantiate(&output.module, instance)
                .unwrap_or_else(|errors| panic!("{errors}\n{}", output.module));
            verify::verify(module).unwrap_or_else(|errors| panic!("{errors}\n{}", output.module));
            instances += 1;
        }
    }
    assert_eq!(instances, 8);
}

#[test]
fn no_expression_is_used_twice() {
    for output in super::outputs(KERNELS) {
        let functions = output.module.functions.iter().map(|(_, function)| function);
        for function in functions.chain([&output.module.entry]) {
            let mut used = vec![0; function.expressions.len()];
            function.live(&function.body, &mut |handle| used[handle.index()] += 1);
            assert!(used.iter().all(|count| *count <= 1), "{}", output.module);
        }
    }
}
