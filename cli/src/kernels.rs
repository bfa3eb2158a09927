//! `trefoil kernels`

use serde_json::{Value, json};
use trefoil::artefact::{Access, Kernel, ParamRole, ParamType};

use crate::{Outcome, describe};

/// The kernels that go by their names: those of the library, and of the examples.
pub fn known() -> impl Iterator<Item = &'static Kernel> {
    trefoil::kernels::library().into_iter().chain(trefoil_example_kernels::all())
}

/// Prints each instance of each kernel of the library and of the examples with its signature, or an array of objects: what `emit --all` writes of each, and its `signature`.
pub fn list(as_json: bool) -> Outcome {
    if as_json {
        let objects: Vec<Value> = known().map(object).collect();
        say!("{}", serde_json::to_string_pretty(&objects)?);
        return Ok(());
    }
    for kernel in known() {
        say!("{}", signature(kernel));
    }
    Ok(())
}

fn object(kernel: &Kernel) -> Value {
    let mut object = describe::kernel(kernel);
    object["signature"] = json!(signature(kernel));
    object
}

/// The signature of a kernel, as its author wrote it.
pub fn signature(kernel: &Kernel) -> String {
    let slices = kernel.bindings.iter().map(|binding| {
        let element = &binding.element.name;
        let ty = match (binding.access, binding.view) {
            (Access::Atomic, _) => format!("&[Atomic<{element}>]"),
            (Access::Read, None) => format!("&[{element}]"),
            (Access::Read, Some(rank)) => format!("&View<{element}, {rank}>"),
            (Access::Write | Access::ReadWrite, None) => format!("&mut [{element}]"),
            (Access::Write | Access::ReadWrite, Some(rank)) => format!("&mut View<{element}, {rank}>"),
        };
        format!("{}: {ty}", binding.name)
    });
    let params = kernel
        .params
        .fields
        .iter()
        .filter(|field| matches!(field.role, ParamRole::User(_)))
        .map(|field| format!("{}: {}", field.name, param_type(field.ty)));
    format!("{}({})", kernel.name, slices.chain(params).collect::<Vec<_>>().join(", "))
}

/// A parameter's type in Rust.
pub fn param_type(ty: ParamType) -> String {
    let scalar = ty.scalar.rust_name();
    match (ty.array, ty.count) {
        (true, count) => format!("[{scalar}; {count}]"),
        (false, 1) => scalar.to_owned(),
        (false, lanes) => format!("Vec{lanes}<{scalar}>"),
    }
}
