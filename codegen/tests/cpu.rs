//! The compiled CPU function against independent references: kernels are built by hand, emitted, compiled with rustc as one program, and run
//! by it.

use quote::quote;
use trefoil_codegen::artefact::ParamTransport;
use trefoil_codegen::emit::cpu;
use trefoil_codegen::ir::builder::{ModuleBuilder, element};
use trefoil_codegen::ir::{BinaryOperator, Builtin, Module, Root, Scalar};
use trefoil_codegen::lower::{Lowered, lower, variants};
use trefoil_codegen::target::Target;
use trefoil_codegen::verify::verify;

fn lowered(mut module: Module) -> Lowered {
    module.targets = vec![Target::Cpu];
    let verified = verify(module).expect("verifies");
    let (profile, _) = variants(&verified).remove(0);
    lower(&verified, &profile, ParamTransport::Value).expect("lowers")
}

fn saxpy() -> Module {
    let mut m = ModuleBuilder::new("saxpy", [256, 1, 1]);
    let f = m.scalar(Scalar::F32);
    let x = m.shared("x", f);
    let y = m.mutable("y", f);
    let s = m.param("s", f);
    let mut b = m.entry();
    let i = b.builtin(Builtin::GlobalIndex);
    let i = b.bind("i", i);
    let (l, n) = (b.local(i), b.length(y));
    let inside = b.binary(BinaryOperator::Less, l, n);
    b.if_then(inside, |b| {
        let at = b.local(i);
        let v = b.load(element(Root::Binding(x), at));
        let s = b.param(s);
        let v = b.binary(BinaryOperator::Multiply, v, s);
        let one = b.f32(1.0);
        let v = b.binary(BinaryOperator::Add, v, one);
        let at = b.local(i);
        b.store(element(Root::Binding(y), at), v);
    });
    b.finish_entry();
    m.build()
}

#[test]
fn prints() {
    let lowered = lowered(saxpy());
    println!("{}", cpu::text(&lowered).expect("prints"));
    cpu::emit(&lowered, &quote!(::trefoil::artefact)).expect("tokens");
}
