//! Kernels that compute one value from two, as lowered for a target.

use super::machine::Machine;
use trefoil_codegen::artefact::ParamTransport;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element};
use trefoil_codegen::ir::{Builtin, Expression, Handle, Module, Root, Scalar};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Features, Profile, Target};
use trefoil_codegen::verify::{Verified, verify};

pub type Value = Handle<Expression>;

pub fn verified(module: Module) -> Verified {
    verify(module).unwrap_or_else(|found| panic!("{found}"))
}

pub fn lowered(module: &Module, target: Target, features: Features) -> Lowered {
    let verified = verified(module.clone());
    let transport = if target == Target::Cpu { ParamTransport::Value } else { ParamTransport::Buffer };
    let lowered = lower(&verified, &Profile::portable(target).with(features), transport)
        .unwrap_or_else(|found| panic!("{found}"));
    // What is left obeys the rules as well; halves in bindings of atomics excepted, nothing is special.
    let mut again = lowered.module.clone();
    again.targets = vec![target];
    again.requires = Features::of_target(target);
    verify(again).unwrap_or_else(|found| panic!("lowered for {}: {found}", target.name()));
    lowered
}

/// `y[i] = f(x[i], z[i])` for three bindings of these scalars.
pub fn pointwise(from: Scalar, to: Scalar, f: impl Fn(&mut FunctionBuilder<'_>, Value, Value) -> Value) -> Module {
    let mut module = ModuleBuilder::new("pointwise", [64, 1, 1]);
    let (from, to) = (module.scalar(from), module.scalar(to));
    let (x, z) = (module.shared("x", from), module.shared("z", from));
    let y = module.mutable("y", to);
    let mut body = module.entry();
    let load = |body: &mut FunctionBuilder<'_>, binding: u32| {
        let i = body.builtin(Builtin::GlobalIndex);
        body.load(element(Root::Binding(binding), i))
    };
    let (a, b) = (load(&mut body, x), load(&mut body, z));
    let value = f(&mut body, a, b);
    let i = body.builtin(Builtin::GlobalIndex);
    body.store(element(Root::Binding(y), i), value);
    body.finish_entry();
    module.build()
}

/// Runs a pointwise kernel.
pub fn run(lowered: &Lowered, x: &[u32], z: &[u32]) -> Vec<u32> {
    let count = x.len();
    let mut machine = Machine {
        module: &lowered.module,
        bindings: vec![x.to_vec(), z.to_vec(), vec![0; count]],
        lengths: vec![count as u32; 3],
        params: Vec::new(),
        global_index: 0,
    };
    for i in 0..count {
        machine.run(i as u32);
    }
    machine.bindings.swap_remove(2)
}
