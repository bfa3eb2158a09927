//! The parameter block as a struct of the author's program: what a launch fills by itself, for programs that bring a device of their own.

use trefoil_codegen::artefact::{Kernel, ParamRole, ParamScalar, Params};

/// The source of one struct for all instances if their blocks are alike, `Params`; otherwise of one for each, `ParamsScaleF16`.
pub fn structs(kernels: &[&Kernel], expansion: &str) -> String {
    let Some(first) = kernels.first() else { return String::new() };
    if kernels.iter().all(|kernel| kernel.params == first.params) {
        return block(&first.params, "Params", kernels, expansion);
    }
    let one = |kernel: &&Kernel| block(&kernel.params, &format!("Params{}", camel(&kernel.name)), &[kernel], expansion);
    kernels.iter().map(one).collect()
}

fn block(params: &Params, struct_name: &str, kernels: &[&Kernel], expansion: &str) -> String {
    let Some(kernel) = kernels.first() else { return String::new() };
    let (mut fields, mut checks, mut end) = (String::new(), String::new(), 0);
    let pad = |fields: &mut String, from: u32, to: u32| {
        if to > from {
            let mut name = format!("padding_{from}");
            while params.fields.iter().any(|field| *field.name == name) {
                name.push('_');
            }
            *fields += &format!("#[doc = \"Nothing.\"] pub {name}: [u8; {}],", to - from);
        }
    };
    for field in &*params.fields {
        pad(&mut fields, end, field.offset);
        let scalar = match field.ty.scalar {
            ParamScalar::Index | ParamScalar::Bool => "u32",
            other => other.rust_name(),
        };
        let count = field.ty.count;
        let ty = if count == 1 && !field.ty.array { scalar.to_owned() } else { format!("[{scalar}; {count}]") };
        let of = |binding: u32| kernel.bindings.get(binding as usize).map_or("", |binding| &*binding.name).to_owned();
        let doc = match field.role {
            ParamRole::User(_) if field.ty.scalar == ParamScalar::Bool => {
                format!("`{}`: 1 for true, 0 for false.", field.name)
            }
            ParamRole::User(_) => format!("`{}`.", field.name),
            ParamRole::Constant(constant) => {
                let name = kernel.constants.get(constant as usize).map_or("", |constant| &*constant.name);
                format!("The value of the specialisation constant `{name}`, which the pipeline has too.")
            }
            ParamRole::Length(binding) => format!("Elements of `{}`.", of(binding)),
            ParamRole::Offset(binding) => format!("The element of the bound range at which `{}` starts.", of(binding)),
            ParamRole::Extents(binding) => format!("The extents of `{}`.", of(binding)),
            ParamRole::Strides(binding) => format!("The strides of `{}`, in elements.", of(binding)),
            ParamRole::GroupCount => "Workgroups asked for; those beyond return at once.".to_owned(),
        };
        let (name, offset) = (&field.name, field.offset);
        fields += &format!("#[doc = {doc:?}] pub {name}: {ty},");
        checks += &format!("&& ::core::mem::offset_of!({struct_name}, {name}) == {offset}");
        end = field.offset + field.ty.scalar.bytes() * field.ty.count;
    }
    pad(&mut fields, end, params.size);
    let (name, size) = (&kernel.name, params.size);
    format!(
        "#[doc = \"The parameter block of `{name}`, byte for byte, for programs that bind it themselves; a launch fills it on its own.\"]
         #[allow(non_snake_case, reason = \"a field is named as the author names the parameter\")]
         #[repr(C)]
         #[derive(Clone, Copy, Debug, PartialEq)]
         pub struct {struct_name} {{ {fields} }}

         // SAFETY: every field is plain data, and the assertion below leaves no room for padding that is not a field.
         #[allow(unsafe_code)]
         unsafe impl {expansion}::bytemuck::Zeroable for {struct_name} {{}}
         // SAFETY: as above.
         #[allow(unsafe_code)]
         unsafe impl {expansion}::bytemuck::Pod for {struct_name} {{}}

         const _: () = ::core::assert!(::core::mem::size_of::<{struct_name}>() == {size} {checks});

         impl ::core::default::Default for {struct_name} {{
             fn default() -> Self {{ {expansion}::bytemuck::Zeroable::zeroed() }}
         }}"
    )
}

/// `softmax_held_1024` as `SoftmaxHeld1024`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.extend(letters);
    }
    camel
}
