//! The whole text: helpers, the parameter block, functions, the body, its copies for each instruction set, and the entry.

mod names;

use std::fmt::Write;

pub(super) use self::names::{Names, derived};
use super::expr::{Class, Kernel, Scope};
use super::plan::Plan;
use super::regions::Regions;
use super::stmt::{Leave, Out};
use super::{inline, range, types};
use crate::artefact::{GridKind, ParamScalar};
use crate::emit::EmitError;
use crate::ir::Function;
use crate::lower::Lowered;
use crate::target::{Feature, Target};

/// Prints a kernel as the contents of a Rust module whose function `entry` runs it; `path` is the path of
/// [`crate::artefact`] as the printed code sees it.
pub(super) fn text(lowered: &Lowered, path: &str) -> Result<String, EmitError> {
    if lowered.profile.target != Target::Cpu {
        let message = "it was lowered for another target".to_owned();
        return Err(EmitError { kernel: lowered.module.name.clone(), target: Target::Cpu, message });
    }
    let (module, entry) = inline::entry(&lowered.module, &lowered.info.collective);
    let names = Names::new(&module, lowered, &entry);
    let kernel = Kernel { lowered, module: &module, names, helpers: std::cell::RefCell::default() };

    let mut out = Out::default();
    out.line(&types::structs(kernel.module));
    let params = params(&kernel, &mut out);
    context(&kernel, &mut out)?;
    for (handle, function) in kernel.module.functions.iter() {
        if !lowered.info.collective.get(handle.index()).copied().unwrap_or(false) {
            print_function(&kernel, handle.index(), function, &mut out)?;
        }
    }
    body(&kernel, &entry, &mut out)?;
    copies(&kernel, path, &params, &mut out)?;
    let mut whole = String::new();
    for (name, code) in HELPERS {
        let wanted = kernel.helpers.borrow();
        // A helper may use those that stand before it in the list.
        if wanted.contains(name) {
            whole.push_str(code);
            whole.push('\n');
        }
    }
    whole.push_str(&out.into_text());
    Ok(whole)
}

/// Prints `Params`, and gives the expression that reads it from the bytes `words`.
fn params(kernel: &Kernel<'_>, out: &mut Out) -> String {
    let mut read = String::from("Params { ");
    let mut fields = String::new();
    if kernel.lowered.profile.features.has(Feature::Subgroups) {
        fields.push_str("subgroup_size: u32, ");
        match kernel.lowered.info.subgroup_size {
            Some(size) => read.push_str(&format!("subgroup_size: {size}, ")),
            None => read.push_str("subgroup_size: arguments.subgroup_size, "),
        }
    }
    for (field, name) in kernel.lowered.params.fields.iter().zip(&kernel.names.params) {
        let ty = match field.ty.scalar {
            ParamScalar::F32 => "f32",
            ParamScalar::I32 => "i32",
            ParamScalar::U32 | ParamScalar::Index => "u32",
            ParamScalar::Bool => "bool",
            ParamScalar::I64 => "i64",
            ParamScalar::U64 => "u64",
            ParamScalar::F64 => "f64",
        };
        let word = |i: u32| {
            let at = field.offset + field.ty.scalar.bytes() * i;
            let long = format!("(u64::from(word({at})) | u64::from(word({})) << 32)", at + 4);
            match field.ty.scalar {
                ParamScalar::F32 => format!("f32::from_bits(word({at}))"),
                ParamScalar::I32 => format!("word({at}) as i32"),
                ParamScalar::U32 | ParamScalar::Index => format!("word({at})"),
                ParamScalar::Bool => format!("word({at}) != 0"),
                ParamScalar::I64 => format!("{long} as i64"),
                ParamScalar::U64 => long,
                ParamScalar::F64 => format!("f64::from_bits({long})"),
            }
        };
        if field.ty.count == 1 && !field.ty.array {
            let _ = write!(fields, "{name}: {ty}, ");
            let _ = write!(read, "{name}: {}, ", word(0));
        } else {
            let _ = write!(fields, "{name}: [{ty}; {}], ", field.ty.count);
            let words: Vec<String> = (0..field.ty.count).map(word).collect();
            let _ = write!(read, "{name}: [{}], ", words.join(", "));
        }
    }
    out.line(&format!("struct Params {{ {fields}}}"));
    read.push('}');
    read
}

/// The types of the bindings' pointers or slices.
fn binding_types(kernel: &Kernel<'_>, lifetime: &str) -> Vec<(String, String)> {
    let module = kernel.module;
    module
        .bindings
        .iter()
        .zip(&kernel.names.bindings)
        .enumerate()
        .map(|(index, (binding, name))| {
            let element = types::rust(module, binding.element);
            let ty = match kernel.class(index as u32) {
                Class::Shared => format!("&{lifetime}[{element}]"),
                Class::Plain | Class::Relaxed => format!("*mut {element}"),
            };
            (name.clone(), ty)
        })
        .collect()
}

fn context(kernel: &Kernel<'_>, out: &mut Out) -> Result<(), EmitError> {
    if !kernel.names.functions.iter().any(|function| function.context) {
        return Ok(());
    }
    let names = &kernel.names;
    let mut fields = vec!["p: &'k Params".to_owned()];
    for name in ["lane", "group", "group_count"] {
        fields.push(format!("{name}: u32"));
    }
    for name in ["group_id", "groups"] {
        fields.push(format!("{name}: [u32; 3]"));
    }
    if names.global {
        fields.push("global: u32".to_owned());
    }
    if names.local_id {
        fields.push("local_id: [u32; 3]".to_owned());
    }
    if names.global_id {
        fields.push("global_id: [u32; 3]".to_owned());
    }
    for (name, ty) in binding_types(kernel, "'k ") {
        fields.push(format!("{name}: {ty}"));
    }
    for ((_, variable), name) in kernel.module.workgroup.iter().zip(&names.workgroup) {
        fields.push(format!("{name}: *mut {}", types::rust(kernel.module, variable.element)));
    }
    out.line(&format!("#[derive(Clone, Copy)] struct Context<'k> {{ {} }}", fields.join(", ")));
    Ok(())
}

fn print_function(kernel: &Kernel<'_>, index: usize, function: &Function, out: &mut Out) -> Result<(), EmitError> {
    let (arguments, locals) = kernel.names.locals(function);
    let info = &kernel.names.functions[index];
    let mut given = Vec::new();
    if info.context {
        given.push("context: Context<'_>".to_owned());
    }
    for (argument, name) in function.arguments.iter().zip(&arguments) {
        let ty = types::rust(kernel.module, argument.ty);
        given.push(if argument.by_reference { format!("{name}: &mut {ty}") } else { format!("{name}: {ty}") });
    }
    let result = function.result.map_or_else(String::new, |ty| format!(" -> {}", types::rust(kernel.module, ty)));
    out.line("#[inline(always)]");
    out.open(&format!("unsafe fn {}<const FMA: bool>({}){result} {{", info.name, given.join(", ")));
    if info.context {
        out.line(&format!("let {} = context;", kernel.names.context()));
    }
    let ranges = range::of_locals(kernel, function);
    let scope = Scope { kernel, function, locals, arguments, ranges };
    scope.block(&function.body, Leave::Function, out)?;
    if function.result.is_some() && !ends_in_return(function) {
        // Every path returns, by the IR's rules; Rust does not see it through a loop or a switch.
        out.line("#[allow(unreachable_code)] { core::hint::unreachable_unchecked() }");
    }
    out.close("}");
    Ok(())
}

fn ends_in_return(function: &Function) -> bool {
    matches!(function.body.last().map(|s| &s.kind), Some(crate::ir::StatementKind::Return(_)))
}

fn body(kernel: &Kernel<'_>, entry: &Function, out: &mut Out) -> Result<(), EmitError> {
    let names = &kernel.names;
    let (arguments, locals) = names.locals(entry);
    let ranges = range::of_locals(kernel, entry);
    let scope = Scope { kernel, function: entry, locals, arguments, ranges };
    let plan = Plan::new(kernel, entry);
    let regions = Regions::new(&scope, &plan);
    let given: Vec<String> = binding_types(kernel, "").into_iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    out.line("#[inline(always)]");
    out.open(&format!(
        "unsafe fn body<const FMA: bool>(p: &Params, groups: [u32; 3], first: u64, end: u64, {}) {{",
        given.join(", ")
    ));
    for ((_, variable), name) in kernel.module.workgroup.iter().zip(&names.workgroup) {
        let zero = types::zero(kernel.module, variable.element);
        let length = variable.length.literal().unwrap_or(0);
        let memory = derived("memory", name);
        out.line(&format!("let mut {memory} = [{zero}; {length}];"));
        out.line(&format!("let {name} = {memory}.as_mut_ptr();"));
    }
    regions.arrays(out);
    let [x, y, z] = kernel.lowered.info.workgroup_size;
    let size = x * y * z;
    match kernel.lowered.info.grid {
        GridKind::Linear => {
            let count = kernel.field(crate::artefact::ParamRole::GroupCount)?;
            out.line(&format!("let group_count: u32 = {count};"));
            out.line("let end = end.min(u64::from(group_count));");
        }
        GridKind::Volume => {
            out.line("let group_count: u32 = groups[0].wrapping_mul(groups[1]).wrapping_mul(groups[2]);");
        }
    }
    out.open("'group: for group in first..end {");
    out.line(
        "let group_id: [u32; 3] = [(group % u64::from(groups[0])) as u32, (group / u64::from(groups[0]) % \
         u64::from(groups[1])) as u32, (group / u64::from(groups[0]) / u64::from(groups[1])) as u32];",
    );
    out.line("let group = group as u32;");
    if names.global {
        out.line(&format!("let Some(base) = group.checked_mul({size}u32) else {{ break }};"));
        out.line(&format!("if base > u32::MAX - {}u32 {{ break; }}", size - 1));
    }
    if names.global_id && names.flat {
        out.line(&format!("let base_x: u32 = group_id[0].wrapping_mul({x}u32);"));
    }
    regions.body(out)?;
    out.close("}");
    out.close("}");
    Ok(())
}

/// The copies of the body for each instruction set, and the entry that chooses among them.
fn copies(kernel: &Kernel<'_>, path: &str, params: &str, out: &mut Out) -> Result<(), EmitError> {
    let bindings = binding_types(kernel, "");
    let given: Vec<String> = bindings.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let passed: Vec<&str> = bindings.iter().map(|(name, _)| name.as_str()).collect();
    let (given, passed) = (given.join(", "), passed.join(", "));
    let once = kernel.module.requires.has(Feature::CooperativeMatrices);
    let copies = if once { &COPIES[BASELINE..] } else { &COPIES[..] };
    for BodyCopy { name, is_for, enabled, fma, .. } in copies {
        if !once {
            out.line(&format!("#[cfg({is_for})]"));
        }
        if !enabled.is_empty() {
            out.line(&format!("#[target_feature(enable = \"{enabled}\")]"));
        }
        // Not inlined, so that what is known of the arguments' aliasing is kept.
        out.line("#[inline(never)]");
        out.open(&format!("unsafe fn {name}(p: &Params, groups: [u32; 3], first: u64, end: u64, {given}) {{"));
        out.line(&format!("body::<{fma}>(p, groups, first, end, {passed})"));
        out.close("}");
    }
    out.open(&format!("pub unsafe fn entry(arguments: &{path}::CpuArguments<'_>, first: u64, end: u64) {{"));
    out.line(
        "let word = |at: usize| { let b = &arguments.params[at..at + 4]; u32::from_le_bytes([b[0], b[1], b[2], b[3]]) };",
    );
    out.line(&format!("let p = {params};"));
    for (index, binding) in kernel.module.bindings.iter().enumerate() {
        let name = &kernel.names.bindings[index];
        let element = types::rust(kernel.module, binding.element);
        let pointer = format!("arguments.buffers[{index}].pointer.cast::<{element}>()");
        if kernel.class(index as u32) == Class::Shared {
            let reach = kernel.reach(index as u32)?;
            out.line(&format!("let {name} = core::slice::from_raw_parts({pointer}.cast_const(), {reach} as usize);"));
        } else {
            out.line(&format!("let {name} = {pointer};"));
        }
    }
    if once {
        out.line(&format!("baseline(&p, arguments.groups, first, end, {passed});"));
        out.close("}");
        return Ok(());
    }
    for copy in copies {
        let call = format!("{}(&p, arguments.groups, first, end, {passed})", copy.name);
        match copy.vectors {
            Some(vectors) => out.line(&format!(
                "#[cfg({})] if {path}::Vectors::of_processor() >= {path}::Vectors::{vectors} {{ return {call}; }}",
                copy.is_for
            )),
            None => out.line(&format!("#[cfg({})] {call};", copy.is_for)),
        }
    }
    out.close("}");
    Ok(())
}

/// A copy of the body.
struct BodyCopy {
    name: &'static str,
    /// Where it is compiled.
    is_for: &'static str,
    /// What the processor must have, as [`crate::vectors::Vectors`] says; nothing that the target has not.
    vectors: Option<&'static str>,
    /// What it enables.
    enabled: &'static str,
    /// Whether a multiply-add is one instruction there.
    fma: bool,
}

/// The copies, best first.
const COPIES: [BodyCopy; 4] = [
    BodyCopy {
        name: "avx512",
        is_for: "all(target_arch = \"x86_64\", not(debug_assertions))",
        vectors: Some("Avx512"),
        enabled: "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma",
        fma: true,
    },
    BodyCopy {
        name: "avx2",
        is_for: "target_arch = \"x86_64\"",
        vectors: Some("Avx2"),
        enabled: "avx2,fma",
        fma: true,
    },
    BodyCopy { name: "neon", is_for: "target_arch = \"aarch64\"", vectors: None, enabled: "neon", fma: true },
    BodyCopy { name: "baseline", is_for: "not(target_arch = \"aarch64\")", vectors: None, enabled: "", fma: false },
];
/// The one copy of a kernel of cooperative matrices: on a processor that is there to be tested, and took as long to compile as half of a library.
const BASELINE: usize = 3;

/// Helper functions, each printed if it is used.
const HELPERS: [(&str, &str); 22] = [
    ("divide_u32", "#[inline(always)] fn divide_u32(x: u32, y: u32) -> u32 { if y == 0 { 0 } else { x / y } }"),
    (
        "divide_i32",
        "#[inline(always)] fn divide_i32(x: i32, y: i32) -> i32 { if y == 0 { 0 } else { x.wrapping_div(y) } }",
    ),
    ("remainder_u32", "#[inline(always)] fn remainder_u32(x: u32, y: u32) -> u32 { if y == 0 { 0 } else { x % y } }"),
    (
        "remainder_i32",
        "#[inline(always)] fn remainder_i32(x: i32, y: i32) -> i32 { if y == 0 { 0 } else { x.wrapping_rem(y) } }",
    ),
    ("divide_u64", "#[inline(always)] fn divide_u64(x: u64, y: u64) -> u64 { if y == 0 { 0 } else { x / y } }"),
    (
        "divide_i64",
        "#[inline(always)] fn divide_i64(x: i64, y: i64) -> i64 { if y == 0 { 0 } else { x.wrapping_div(y) } }",
    ),
    ("remainder_u64", "#[inline(always)] fn remainder_u64(x: u64, y: u64) -> u64 { if y == 0 { 0 } else { x % y } }"),
    (
        "remainder_i64",
        "#[inline(always)] fn remainder_i64(x: i64, y: i64) -> i64 { if y == 0 { 0 } else { x.wrapping_rem(y) } }",
    ),
    (
        "mul_add_f64",
        "#[inline(always)] fn mul_add_f64<const FMA: bool>(x: f64, y: f64, z: f64) -> f64 {\n    \
         if FMA { x.mul_add(y, z) } else { x * y + z }\n}",
    ),
    (
        "mul_add",
        "#[inline(always)] fn mul_add<const FMA: bool>(x: f32, y: f32, z: f32) -> f32 {\n    \
         if FMA { x.mul_add(y, z) } else { x * y + z }\n}",
    ),
    (
        "half_to_f32",
        // Without branches: normal numbers by shifting and adding to the exponent, others by one exact float operation.
        "#[inline(always)] fn half_to_f32(bits: u16) -> f32 {\n    \
         let sign = (bits as u32 & 0x8000) << 16;\n    \
         let rest = (bits as u32 & 0x7fff) << 13;\n    \
         let normal = f32::from_bits(rest) * f32::from_bits(0x7780_0000);\n    \
         let special = f32::from_bits(rest | 0x7f80_0000);\n    \
         let value = if rest >= 0x0f80_0000 { special } else { normal };\n    \
         f32::from_bits(value.to_bits() | sign)\n}",
    ),
    (
        "f32_to_half",
        // Rounding to even is done by float additions, whose unit in the last place is that of the half.
        "#[inline(always)] fn f32_to_half(value: f32) -> u16 {\n    \
         let bits = value.to_bits();\n    \
         let sign = (bits >> 16) & 0x8000;\n    \
         let magnitude = bits & 0x7fff_ffff;\n    \
         let odd = (magnitude >> 13) & 1;\n    \
         let normal = magnitude.wrapping_sub(0x3800_0000).wrapping_add(0xfff + odd) >> 13;\n    \
         let small = (f32::from_bits(magnitude) + 0.5f32).to_bits().wrapping_sub(0x3f00_0000);\n    \
         let finite = if magnitude < 0x3880_0000 { small } else { normal };\n    \
         let large = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };\n    \
         let all = if magnitude > 0x7f80_0000 { 0x7e00 } else { large };\n    \
         (sign | all) as u16\n}",
    ),
    (
        "read_word",
        "#[inline(always)] unsafe fn read_word(at: *mut u32) -> u32 {\n    \
         core::sync::atomic::AtomicU32::from_ptr(at).load(core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "write_word",
        "#[inline(always)] unsafe fn write_word(at: *mut u32, value: u32) {\n    \
         core::sync::atomic::AtomicU32::from_ptr(at).store(value, core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "read_long",
        "#[inline(always)] unsafe fn read_long(at: *mut u64) -> u64 {\n    \
         core::sync::atomic::AtomicU64::from_ptr(at).load(core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "write_long",
        "#[inline(always)] unsafe fn write_long(at: *mut u64, value: u64) {\n    \
         core::sync::atomic::AtomicU64::from_ptr(at).store(value, core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "read_byte",
        "#[inline(always)] unsafe fn read_byte(at: *mut u8) -> u8 {\n    \
         core::sync::atomic::AtomicU8::from_ptr(at).load(core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "write_byte",
        "#[inline(always)] unsafe fn write_byte(at: *mut u8, value: u8) {\n    \
         core::sync::atomic::AtomicU8::from_ptr(at).store(value, core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "read_half",
        "#[inline(always)] unsafe fn read_half(at: *mut u16) -> u16 {\n    \
         core::sync::atomic::AtomicU16::from_ptr(at).load(core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "write_half",
        "#[inline(always)] unsafe fn write_half(at: *mut u16, value: u16) {\n    \
         core::sync::atomic::AtomicU16::from_ptr(at).store(value, core::sync::atomic::Ordering::Relaxed)\n}",
    ),
    (
        "read_words",
        // Structs and arrays in buffers hold words without padding: the verifier refuses narrow parts.
        "#[inline(always)] unsafe fn read_words<T: Copy>(at: *mut T) -> T {\n    \
         let mut value = core::mem::MaybeUninit::<T>::uninit();\n    \
         for i in 0..core::mem::size_of::<T>() / 4 {\n        \
         let word = core::sync::atomic::AtomicU32::from_ptr(at.cast::<u32>().add(i)).load(core::sync::atomic::Ordering::Relaxed);\n        \
         value.as_mut_ptr().cast::<u32>().add(i).write(word);\n    }\n    value.assume_init()\n}",
    ),
    (
        "write_words",
        "#[inline(always)] unsafe fn write_words<T: Copy>(at: *mut T, value: T) {\n    \
         let from = (&raw const value).cast::<u32>();\n    \
         for i in 0..core::mem::size_of::<T>() / 4 {\n        \
         core::sync::atomic::AtomicU32::from_ptr(at.cast::<u32>().add(i)).store(from.add(i).read(), core::sync::atomic::Ordering::Relaxed);\n    }\n}",
    ),
];
