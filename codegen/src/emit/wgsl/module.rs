//! The module around the functions: declarations, the entry point, and naga's judgement.

use std::fmt::Write as _;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

use crate::artefact::{Access, GridKind, ParamField, ParamRole, ParamScalar};
use crate::emit::EmitError;
use crate::emit::text::{Dialect, Printer, Writer};
use crate::ir::{Builtin, Root, Scalar, Type};
use crate::overrides::declaration;
use crate::target::{self, Feature, Profile, Target};

use super::Wgsl;
use super::expr::elements_per_vector;
use super::types::{scalar_name, structure, type_name};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Wgsl>;

/// What is printed of a kernel, once for all dialects.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The name of the entry point.
    pub entry: String,
    doc: String,
    rest: String,
}

impl Printed {
    /// The text for a profile: its directives stand between the author's words and everything else.
    pub fn text(&self, profile: &Profile) -> String {
        [self.doc.as_str(), &extensions(profile), &self.rest].concat()
    }
}

/// Everything but the directives.
pub fn module(p: &mut P<'_>) -> Result<Printed> {
    let functions = p.device_functions()?;
    let body = p.entry_body()?;
    let entry = entry(p, &body)?;

    let mut out = Writer::default();
    out.comment(&p.lowered.module.doc);
    if !p.lowered.module.doc.is_empty() {
        out.line("");
    }
    let mut text = String::new();
    for handle in p.used_structs() {
        text.push_str(&structure(p, handle)?);
        text.push('\n');
    }
    text.push_str(&params(p)?);
    text.push_str(&bindings(p)?);
    if !p.lowered.params.fields.is_empty() {
        let binding = p.lowered.module.bindings.len();
        let _ = write!(text, "@group(0) @binding({binding}) var<uniform> params: Params;\n\n");
    }
    text.push_str(&constants(p)?);
    text.push_str(&workgroup(p)?);
    let (prelude, helpers) = p.take_helpers();
    for piece in prelude.into_iter().chain(helpers).chain(functions) {
        text.push_str(&piece);
        text.push('\n');
    }
    text.push_str(&entry);
    Ok(Printed { entry: p.entry.clone(), doc: out.finish(), rest: text })
}

/// Directives for what is no part of every WebGPU.
fn extensions(profile: &Profile) -> String {
    let half = profile.features.has(Feature::F16Storage).then_some("f16");
    // naga has subgroups without asking, and refuses the directive.
    let asks = profile.dialect == Some(target::Dialect::Browsers) && profile.features.has(Feature::Subgroups);
    let names: Vec<_> = half.into_iter().chain(asks.then_some("subgroups")).collect();
    if names.is_empty() { String::new() } else { format!("enable {};\n\n", names.join(", ")) }
}

/// The type of a field of the block; arrays are packed in vectors of 16 bytes.
fn field_type(field: &ParamField) -> String {
    let scalar = match field.ty.scalar {
        // A uniform buffer holds no bools.
        ParamScalar::Bool => Scalar::U32,
        other => Wgsl::param_scalar(other),
    };
    let scalar = scalar_name(scalar);
    match (field.ty.array, field.ty.count) {
        (true, count) => {
            let per = elements_per_vector(field);
            format!("array<vec{per}<{scalar}>, {}>", count.div_ceil(per).max(1))
        }
        (false, 1) => scalar.to_owned(),
        (false, count) => format!("vec{count}<{scalar}>"),
    }
}

/// The struct of the block at its exact offsets.
fn params(p: &P<'_>) -> Result<String> {
    let params = &p.lowered.params;
    if params.fields.is_empty() {
        return Ok(String::new());
    }
    let mut text = "struct Params {\n".to_owned();
    let (mut end, mut pads) = (0u32, 0u32);
    for field in params.fields.iter() {
        let (size, align) = match (field.ty.array, field.ty.count) {
            (true, count) => (16 * count.div_ceil(elements_per_vector(field)).max(1), 16),
            (false, 3) => (3 * field.ty.scalar.bytes(), 4 * field.ty.scalar.bytes()),
            (false, count) => (field.ty.scalar.bytes() * count, field.ty.scalar.bytes() * count),
        };
        if field.offset % align != 0 || field.offset < end {
            return Err(p.error(format!("parameter `{}` lies at an offset that WGSL does not allow", field.name)));
        }
        while end.next_multiple_of(align) < field.offset {
            let _ = writeln!(text, "    {}: u32,", p.padding_name(&mut pads));
            end += 4;
        }
        let _ = writeln!(text, "    {}: {},", p.param_name(field), field_type(field));
        end = field.offset + size;
    }
    text.push_str("}\n\n");
    Ok(text)
}

/// The storage buffers.
fn bindings(p: &mut P<'_>) -> Result<String> {
    let mut text = String::new();
    for (index, binding) in p.lowered.module.bindings.iter().enumerate() {
        let access = p.lowered.info.access[index];
        let mode = if access.writes() { "read_write" } else { "read" };
        let root = Root::Binding(index as u32);
        let element = if Wgsl::declared_words(p, root) {
            "u32".to_owned()
        } else {
            element_type(p, root, access == Access::Atomic, p.ty(binding.element))?
        };
        let name = &p.bindings[index];
        let _ = writeln!(text, "@group(0) @binding({index}) var<storage, {mode}> {name}: array<{element}>;");
    }
    Ok(text)
}

/// Specialisation constants: overrides, by position.
fn constants(p: &P<'_>) -> Result<String> {
    let mut text = String::new();
    for (position, (_, param, range)) in p.lowered.module.constants().enumerate() {
        let (ty, name) = (type_name(p, p.ty(param.ty))?, &p.constants[position]);
        let scalar = match p.ty(param.ty) {
            Type::Scalar(Scalar::Bool) => ParamScalar::Bool,
            Type::Scalar(Scalar::I32) => ParamScalar::I32,
            _ => ParamScalar::U32,
        };
        let _ = writeln!(text, "{}", declaration(position, name, &ty, scalar, range.default));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// Variables shared by a workgroup.
fn workgroup(p: &mut P<'_>) -> Result<String> {
    let mut text = String::new();
    for (handle, variable) in p.lowered.module.workgroup.iter() {
        if !p.entry_resources.workgroup.contains(&handle.index()) {
            continue;
        }
        let root = Root::Workgroup(handle);
        let lanes = Wgsl::declared_lanes(p, root);
        let element = element_type(p, root, variable.atomic, p.ty(variable.element))?;
        let length = p.declared_length(handle, lanes)?;
        let name = &p.workgroup[handle.index()];
        let _ = writeln!(text, "var<workgroup> {name}: array<{element}, {length}>;");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// The type in which elements are declared.
fn element_type(p: &P<'_>, root: Root, atomic: bool, ty: &Type) -> Result<String> {
    let lanes = Wgsl::declared_lanes(p, root);
    let name = match ty.scalar() {
        Some(scalar) if lanes > 1 => format!("vec{lanes}<{}>", scalar_name(scalar)),
        _ => type_name(p, ty)?,
    };
    Ok(if atomic { format!("atomic<{name}>") } else { name })
}

/// The entry point.
fn entry(p: &P<'_>, body: &str) -> Result<String> {
    let info = &p.lowered.info;
    let resources = &p.entry_resources;
    let linear = info.grid == GridKind::Linear;
    let uses = |builtin| resources.uses(builtin);
    let group_index = uses(Builtin::GroupIndex) || uses(Builtin::GlobalIndex);
    let wants = [
        (uses(Builtin::GlobalId), "@builtin(global_invocation_id) global_id: vec3<u32>"),
        (uses(Builtin::LocalId), "@builtin(local_invocation_id) local_id: vec3<u32>"),
        (uses(Builtin::LocalIndex) || uses(Builtin::GlobalIndex), "@builtin(local_invocation_index) local_index: u32"),
        (linear || group_index || uses(Builtin::GroupId), "@builtin(workgroup_id) group_id: vec3<u32>"),
        (
            linear || group_index || uses(Builtin::GroupCounts) || uses(Builtin::GroupCount),
            "@builtin(num_workgroups) group_counts: vec3<u32>",
        ),
        (uses(Builtin::SubgroupSize), "@builtin(subgroup_size) subgroup_size: u32"),
        (uses(Builtin::SubgroupLane), "@builtin(subgroup_invocation_id) subgroup_lane: u32"),
        (uses(Builtin::SubgroupIndex), "@builtin(subgroup_id) subgroup_index: u32"),
    ];
    let [x, y, z] = info.workgroup_size;
    let mut out = Writer::default();
    out.line(format!("@compute @workgroup_size({x}, {y}, {z})"));
    out.line(format!("fn {}(", p.entry));
    for (wanted, input) in wants {
        if wanted {
            out.line(format!("    {input},"));
        }
    }
    out.open(") {");
    if linear {
        out.line("let group_index = group_id.x + group_id.y * group_counts.x;");
        out.open(format!("if (group_index >= {}) {{", p.param_word(ParamRole::GroupCount)?.text));
        out.line("return;");
        out.close("}");
    } else {
        if group_index {
            out.line("let group_index = group_id.x + group_counts.x * (group_id.y + group_counts.y * group_id.z);");
        }
        if uses(Builtin::GroupCount) {
            out.line("let group_count = group_counts.x * group_counts.y * group_counts.z;");
        }
    }
    if uses(Builtin::GlobalIndex) {
        out.line(format!("let global_index = group_index * {}u + local_index;", x * y * z));
    }
    Ok(format!("{}{body}}}\n", out.finish()))
}

/// Reads a text with naga and has its validator prove it.
///
/// # Errors
/// What naga says, with the place in the text.
pub fn parse(text: &str) -> Result<(naga::Module, ModuleInfo)> {
    let error = |message: String| EmitError { kernel: entry_name(text), target: Target::Wgsl, message };
    let module = naga::front::wgsl::Frontend::new()
        .parse(text)
        .map_err(|cause| error(format!("naga cannot read it: {}", cause.emit_to_string(text))))?;
    let capabilities = Capabilities::SUBGROUP
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SHADER_INT64
        | Capabilities::FLOAT64;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    // All subgroup operations, in compute entry points.
    validator
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator
        .validate(&module)
        .map_err(|cause| error(format!("naga refuses it: {}", cause.emit_to_string(text))))?;
    Ok((module, info))
}

/// The name of a text's entry point, also of a text that cannot be read.
fn entry_name(text: &str) -> String {
    let after = text.split("@compute").nth(1).and_then(|rest| rest.split("fn ").nth(1)).unwrap_or_default();
    after.split('(').next().unwrap_or_default().trim().to_owned()
}
