//! The file around the functions: declarations and the kernel.

use std::fmt::Write as _;

use crate::artefact::{Access, GridKind, ParamRole, ParamScalar, ParamTransport, defined_name};
use crate::emit::EmitError;
use crate::emit::text::{Dialect, Printer, Resources, Writer};
use crate::ir::{Builtin, Handle, Scalar, Type};
use crate::layout;
use crate::tensor_map::GROUP_BYTES;
use crate::verify::workgroup_of_matrices;

use super::types::{array_prelude, scalar_name, scalar_prelude, structure, type_name};
use super::{Cuda, bulk};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

/// More workgroup memory than this must be asked for when the kernel is launched.
const STATIC_LIMIT: u32 = 48 * 1024;

/// Where a tile begins: eight rows of 128 bytes, over which they are permuted.
pub const TILE_ALIGN: u32 = 1024;

/// What is printed of a kernel, once for all ways in which parameters reach it.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The name of the entry point.
    pub entry: String,
    /// Up to the parameter block among the kernel's own parameters.
    head: String,
    has_params: bool,
    /// Whether tensor maps come behind parameters that are passed by value.
    has_maps: bool,
    /// From the kernel's first statement on.
    tail: String,
}

impl Printed {
    /// The text for one way.
    pub fn text(&self, transport: ParamTransport) -> String {
        let by_value = transport == ParamTransport::Value;
        let switch = if self.has_maps && by_value { bulk::SWITCH } else { "" };
        let opening = match transport {
            _ if !self.has_params => ") {\n",
            ParamTransport::Value if self.has_maps => {
                "    const __grid_constant__ Params params,\n    const __grid_constant__ TensorMaps tensor_maps\n) {\n"
            }
            ParamTransport::Value => "    const __grid_constant__ Params params\n) {\n",
            ParamTransport::Buffer => {
                "    const Params* __restrict__ params_buffer\n) {\n    const Params& params = *params_buffer;\n"
            }
        };
        [switch, self.head.as_str(), opening, &self.tail].concat()
    }
}

/// Everything but how parameters reach the kernel.
pub fn module(p: &mut P<'_>) -> Result<Printed> {
    let functions = p.device_functions()?;
    let body = p.entry_body()?;
    // Before what their types ask for is written.
    let signature = signature(p)?;
    let tail = entry(p, &body)?;
    let mut structs = String::new();
    for handle in p.used_structs() {
        structs.push_str(&structure(p, handle)?);
        structs.push('\n');
    }
    let params = params(p)?;

    let mut out = Writer::default();
    out.comment(&p.lowered.module.doc);
    if !p.lowered.module.doc.is_empty() {
        out.line("");
    }
    out.line("typedef unsigned int uint;");
    out.line("");
    let mut text = out.finish();
    if bulk::held(p) {
        text.push_str(&bulk::types(p));
    }
    let (prelude, helpers) = p.take_helpers();
    for piece in prelude {
        text.push_str(&piece);
        text.push('\n');
    }
    text.push_str(&structs);
    text.push_str(&params);
    text.push_str(&constants(p)?);
    for piece in helpers.into_iter().chain(functions) {
        text.push_str(&piece);
        text.push('\n');
    }
    text.push_str(&signature);
    let has_params = !p.lowered.params.fields.is_empty();
    Ok(Printed { entry: p.entry.clone(), head: text, has_params, has_maps: bulk::held(p), tail })
}

/// The struct of the block at its exact offsets.
fn params(p: &mut P<'_>) -> Result<String> {
    let params = &p.lowered.params;
    if params.fields.is_empty() {
        return Ok(String::new());
    }
    let mut text = "struct Params {\n".to_owned();
    let (mut end, mut pads) = (0u32, 0u32);
    for field in params.fields.iter() {
        let scalar = match field.ty.scalar {
            ParamScalar::Bool => Scalar::U32,
            other => Cuda::param_scalar(other),
        };
        scalar_prelude(p, scalar);
        let ty = match (field.ty.array, field.ty.count) {
            (true, count) => {
                array_prelude(p);
                format!("Array<{}, {count}>", scalar_name(scalar))
            }
            (false, 1) => scalar_name(scalar).to_owned(),
            (false, count) => type_name(p, &Type::vector(count as u8, scalar))?,
        };
        pad(p, &mut text, (&mut end, &mut pads), field.offset);
        let _ = writeln!(text, "    {ty} {};", p.param_name(field));
        end = field.offset + field.ty.scalar.bytes() * field.ty.count;
    }
    pad(p, &mut text, (&mut end, &mut pads), params.size);
    let size = params.size;
    let _ = write!(text, "}};\nstatic_assert(sizeof(Params) == {size}, \"the block that the host writes\");\n\n");
    Ok(text)
}

/// Words from the end of what is there to where the next field lies; paddings are counted.
fn pad(p: &P<'_>, text: &mut String, (end, pads): (&mut u32, &mut u32), to: u32) {
    while *end < to {
        let _ = writeln!(text, "    uint {};", p.padding_name(pads));
        *end += 4;
    }
}

/// Specialisation constants: names that are defined before the text, or have their first values.
fn constants(p: &P<'_>) -> Result<String> {
    let mut text = String::new();
    for (position, (_, param, range)) in p.lowered.module.constants().enumerate() {
        let Type::Scalar(scalar) = p.ty(param.ty) else {
            return Err(p.error(format!("constant `{}` is no scalar", param.name)));
        };
        let (ty, name) = (scalar_name(*scalar), &p.constants[position]);
        let (defined, value) = (defined_name(&param.name), range.default);
        let _ = write!(
            text,
            "#ifndef {defined}\n#define {defined} {value}\n#endif\nstatic constexpr {ty} {name} = {ty}({defined});\n\n"
        );
    }
    Ok(text)
}

/// A buffer as a parameter of the kernel or of a function.
fn buffer(p: &mut P<'_>, binding: u32) -> Result<String> {
    let access = p.lowered.info.access[binding as usize];
    let element = p.ty(p.lowered.module.bindings[binding as usize].element);
    let element = type_name(p, element)?;
    let constant = if access == Access::Read { "const " } else { "" };
    // A launch never gives one range to two bindings of which one is written. Where others' writes are waited for, the compiler may not take
    // what was read or written before for what is there: of what is declared so it takes that no barrier changes it.
    let changes = access.writes() && (p.orders_buffers() || p.lowered.module.orders_memory());
    let alone = if changes { "" } else { "__restrict__ " };
    Ok(format!("{constant}{element}* {alone}{}", p.bindings[binding as usize]))
}

/// What a function needs of the kernel's surroundings, as parameters; [`Dialect::pass`] passes them in the same order.
pub fn surroundings(p: &mut P<'_>, resources: &Resources) -> Result<Vec<String>> {
    let mut parameters = Vec::new();
    for binding in &resources.bindings {
        parameters.push(buffer(p, *binding)?);
    }
    for variable in &resources.workgroup {
        let element = p.ty(p.lowered.module.workgroup[Handle::from_index(*variable)].element);
        let element = type_name(p, element)?;
        parameters.push(format!("{element}* {}", p.workgroup[*variable]));
    }
    if resources.params {
        parameters.push("const Params& params".to_owned());
    }
    for (builtin, name) in resources.builtins() {
        parameters.push(format!("{} {name}", if builtin.is_vector() { "uint3" } else { "uint" }));
    }
    Ok(parameters)
}

/// The declarations of workgroup memory in the kernel.
fn workgroup(p: &mut P<'_>, out: &mut Writer) -> Result<()> {
    let lowered = p.lowered;
    let dynamic = lowered.info.workgroup_bytes > STATIC_LIMIT;
    if dynamic {
        let align = if super::tile::held(p) { TILE_ALIGN } else { 16 };
        out.line(format!("extern __shared__ __align__({align}) unsigned char workgroup_memory[];"));
    }
    let mut end = 0u32;
    let held = workgroup_of_matrices(&lowered.module);
    // Tiles want the largest alignment, and are multiples of it.
    let (tiles, others): (Vec<_>, Vec<_>) =
        lowered.module.workgroup.iter().partition(|(_, variable)| variable.tile.is_some());
    for (handle, variable) in tiles.into_iter().chain(others) {
        let size = layout::of(&lowered.module, variable.element)
            .ok_or_else(|| p.error(format!("`{}` holds what memory cannot", variable.name)))?;
        let element = type_name(p, p.ty(variable.element))?;
        let (name, length) = (p.workgroup[handle.index()].clone(), p.size(&variable.length)?);
        let lanes = lowered.info.workgroup_vector[handle.index()].max(1);
        let piece = size.size * lowered.info.workgroup_copied[handle.index()];
        let align = size.align.max(size.size.min(4) * lanes).max(piece).next_power_of_two().min(16);
        // Lines of matrices are read 16 bytes at a time.
        let matrix = held[handle.index()];
        let align = if matrix { 16 } else { align };
        let align = if variable.tile.is_some() { TILE_ALIGN } else { align };
        if dynamic {
            end = end.next_multiple_of(align);
            out.line(format!("{element}* const {name} = reinterpret_cast<{element}*>(workgroup_memory + {end});"));
            end += size.size * length;
        } else if p.entry_resources.workgroup.contains(&handle.index()) {
            let length = p.declared_length(handle, 1)?;
            let aligned = lanes > 1 || piece > size.align || align > 16 || matrix;
            let align = if aligned { format!("__align__({align}) ") } else { String::new() };
            out.line(format!("__shared__ {align}{element} {name}[{length}];"));
        }
    }
    if bulk::held(p) {
        let at = dynamic.then(|| end.next_multiple_of(8));
        bulk::prepare(p, at, out);
        end = end.next_multiple_of(8) + GROUP_BYTES - 8;
    }
    if dynamic && end > lowered.info.workgroup_bytes {
        let bytes = lowered.info.workgroup_bytes;
        return Err(p.error(format!("its workgroup variables take {end} bytes, {bytes} are launched")));
    }
    Ok(())
}

/// The kernel's name and parameters, but for the parameter block.
fn signature(p: &mut P<'_>) -> Result<String> {
    let lowered = p.lowered;
    let [x, y, z] = lowered.info.workgroup_size;
    let mut out = Writer::default();
    let resident = match &lowered.module.resident {
        Some(resident) => format!(", {}", p.exact_size(resident)?.text),
        None => String::new(),
    };
    out.line(format!("extern \"C\" __global__ void __launch_bounds__({}{resident}) {}(", x * y * z, p.entry));
    let bindings = lowered.module.bindings.len() as u32;
    for binding in 0..bindings {
        let is_last = binding + 1 == bindings && lowered.params.fields.is_empty();
        let parameter = buffer(p, binding)?;
        out.line(format!("    {parameter}{}", if is_last { "" } else { "," }));
    }
    Ok(out.finish())
}

/// What the kernel computes before the author's statements, these, and its end.
fn entry(p: &mut P<'_>, body: &str) -> Result<String> {
    let lowered = p.lowered;
    let info = &lowered.info;
    let resources = p.entry_resources.clone();
    let [x, y, z] = info.workgroup_size;
    let mut out = Writer::at_depth(1);
    let uses = |builtin| resources.uses(builtin);
    let group_index = uses(Builtin::GroupIndex) || uses(Builtin::GlobalIndex);
    if info.grid == GridKind::Linear {
        out.line("const uint group_index = blockIdx.x + blockIdx.y * gridDim.x;");
        out.open(format!("if (group_index >= {}) {{", p.param_word(ParamRole::GroupCount)?.text));
        out.line("return;");
        out.close("}");
    } else {
        if group_index {
            out.line("const uint group_index = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);");
        }
        if uses(Builtin::GroupCount) {
            out.line("const uint group_count = gridDim.x * gridDim.y * gridDim.z;");
        }
    }
    let subgroup = uses(Builtin::SubgroupLane) || uses(Builtin::SubgroupIndex);
    if uses(Builtin::LocalIndex) || uses(Builtin::GlobalIndex) || subgroup {
        let index = match (y, z) {
            (1, 1) => "threadIdx.x".to_owned(),
            (_, 1) => format!("threadIdx.x + {x}u * threadIdx.y"),
            _ => format!("threadIdx.x + {x}u * (threadIdx.y + {y}u * threadIdx.z)"),
        };
        out.line(format!("const uint local_index = {index};"));
    }
    if uses(Builtin::GlobalIndex) {
        out.line(format!("const uint global_index = group_index * {}u + local_index;", x * y * z));
    }
    if uses(Builtin::GlobalId) {
        let axes =
            [("x", x), ("y", y), ("z", z)].map(|(axis, size)| format!("blockIdx.{axis} * {size}u + threadIdx.{axis}"));
        out.line(format!("const uint3 global_id = make_uint3({});", axes.join(", ")));
    }
    for (builtin, line) in [
        (Builtin::LocalId, "const uint3 local_id = make_uint3(threadIdx.x, threadIdx.y, threadIdx.z);"),
        (Builtin::GroupId, "const uint3 group_id = make_uint3(blockIdx.x, blockIdx.y, blockIdx.z);"),
        (Builtin::GroupCounts, "const uint3 group_counts = make_uint3(gridDim.x, gridDim.y, gridDim.z);"),
        (Builtin::SubgroupSize, "const uint subgroup_size = 32u;"),
        (Builtin::SubgroupLane, "const uint subgroup_lane = local_index % 32u;"),
        (Builtin::SubgroupIndex, "const uint subgroup_index = local_index / 32u;"),
    ] {
        if uses(builtin) {
            out.line(line);
        }
    }
    workgroup(p, &mut out)?;
    Ok(format!("{}{body}}}\n", out.finish()))
}
