//! A kernel instance as JSON: everything that a program needs to launch its emitted code without trefoil.

use serde_json::{Value, json};
use trefoil::artefact::{Access, Dialect, GridKind, Kernel, ParamRole, ParamTransport};

use crate::emit::{extension, file_stem};
use crate::kernels::param_type;

/// The description that `emit --all` writes beside the code.
pub fn kernel(kernel: &Kernel) -> Value {
    let bindings: Vec<_> = kernel
        .bindings
        .iter()
        .enumerate()
        .map(|(position, binding)| {
            json!({
                "binding": position,
                "name": binding.name,
                "element": binding.element.name,
                "element_bytes": binding.element.size,
                "access": access(binding.access),
                "elements_at_once": binding.vector,
                "view_rank": binding.view,
            })
        })
        .collect();
    let fields: Vec<_> = kernel
        .params
        .fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name,
                "offset": field.offset,
                "type": param_type(field.ty),
                "meaning": meaning(kernel, field.role),
            })
        })
        .collect();
    let variants: Vec<_> = kernel
        .variants
        .iter()
        .map(|variant| {
            json!({
                "target": variant.target.name(),
                "profile": variant.profile,
                "read_by": match variant.dialect {
                    None => "all",
                    Some(Dialect::Naga) => "naga",
                    Some(Dialect::Browsers) => "browsers",
                },
                "features": variant.features.iter().map(|feature| feature.name()).collect::<Vec<_>>(),
                "params": match variant.transport {
                    ParamTransport::Value => "push constants or by value",
                    ParamTransport::Buffer => "buffer",
                },
                "entry_point": variant.entry,
                "file": format!("{}.{}", file_stem(kernel, variant), extension(variant.target)),
            })
        })
        .collect();
    json!({
        "name": kernel.name,
        "doc": kernel.doc,
        "workgroup_size": kernel.workgroup_size,
        "subgroup_size": kernel.subgroup_size,
        "workgroup_bytes": kernel.workgroup_bytes,
        "index_bits": kernel.index.bits(),
        "grid": match kernel.grid {
            GridKind::Linear => "linear: workgroup index = x + y * groups along x; those from group_count on return",
            GridKind::Volume => "volume",
        },
        "bindings": bindings,
        "params": { "bytes": kernel.params.size, "binding": kernel.bindings.len(), "fields": fields },
        "variants": variants,
    })
}

const fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::ReadWrite => "read and write",
        Access::Atomic => "atomic",
    }
}

fn meaning(kernel: &Kernel, role: ParamRole) -> String {
    let of = |binding: u32, what: &str| {
        let name = kernel.bindings.get(binding as usize).map_or("a binding", |binding| &binding.name);
        format!("{what} of {name}")
    };
    match role {
        ParamRole::User(_) => "the author's".to_owned(),
        ParamRole::Constant(_) => "a specialisation constant's value".to_owned(),
        ParamRole::Length(binding) => of(binding, "elements"),
        ParamRole::Offset(binding) => of(binding, "first element within the bound range"),
        ParamRole::Extents(binding) => of(binding, "extents"),
        ParamRole::Strides(binding) => of(binding, "strides, in elements,"),
        ParamRole::GroupCount => "workgroups asked for".to_owned(),
    }
}
