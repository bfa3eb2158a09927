//! Names of Rust's library and of other languages for kernels, and what is written here instead. None of them is looked for among `#[device]` items: rustc would
//! find no such macro, and say that.

use super::intrinsics;
use super::items;

/// Whether a path begins in Rust's own library.
pub(super) fn is_library(path: &syn::Path) -> bool {
    path.segments.len() > 1
        && path.segments.first().is_some_and(|first| ["std", "core", "alloc"].iter().any(|name| first.ident == name))
}

/// Whether a path to a value means no item of anybody's.
pub(super) fn is_value(path: &syn::Path) -> bool {
    let is_taken = |name: String| is_name(&name) || is_macro(&name);
    is_library(path) || path.get_ident().is_some_and(|name| is_taken(name.to_string()))
}

/// Whether a macro of that name is known everywhere, so that rustc could not tell it from the macro that an item is found by.
pub fn is_macro(name: &str) -> bool {
    matches!(
        name,
        "assert"
            | "assert_eq"
            | "assert_ne"
            | "cfg"
            | "cfg_select"
            | "column"
            | "compile_error"
            | "concat"
            | "dbg"
            | "debug_assert"
            | "debug_assert_eq"
            | "debug_assert_ne"
            | "env"
            | "eprint"
            | "eprintln"
            | "file"
            | "format"
            | "format_args"
            | "include"
            | "include_bytes"
            | "include_str"
            | "line"
            | "matches"
            | "module_path"
            | "option_env"
            | "panic"
            | "print"
            | "println"
            | "stringify"
            | "thread_local"
            | "todo"
            | "unimplemented"
            | "unreachable"
            | "vec"
            | "write"
            | "writeln"
    )
}

/// Why a call is refused that is of a macro's name, and so of no item.
pub(super) fn called_macro(path: &syn::Path) -> Option<String> {
    let name = path.get_ident().map(ToString::to_string).filter(|name| is_macro(name))?;
    Some(format!(
        "`{name}` is a macro of the standard library, and no #[device] function has its name: give the function another name, and call it by that"
    ))
}

/// Whether no function or constant may have that name, since who writes it means something else.
pub(super) fn is_name(name: &str) -> bool {
    generic_of(name).is_some() || elsewhere(name).is_some()
}

/// What is written in place of a name that other languages for kernels have.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "vec2" | "make_float2" => "`Vec2::new(x, y)`, or `Vec2::splat(x)`",
        "vec3" | "make_float3" => "`Vec3::new(x, y, z)`, or `Vec3::splat(x)`",
        "vec4" | "make_float4" => "`Vec4::new(x, y, z, w)`, or `Vec4::splat(x)`",
        "threadIdx" | "thread_idx" | "local_invocation_id" | "gl_LocalInvocationID" | "get_local_id" => {
            "`local_index()`, or `local_id()` for the places along x, y and z"
        }
        "blockIdx" | "block_idx" | "workgroup_id" | "gl_WorkGroupID" | "get_group_id" => {
            "`group_index()`, or `group_id()` for the places along x, y and z"
        }
        "gridDim" | "num_workgroups" | "gl_NumWorkGroups" | "get_num_groups" => {
            "`group_count()`, or `group_counts()` for the numbers along x, y and z"
        }
        "blockDim" | "gl_WorkGroupSize" | "get_local_size" => {
            "the sizes in `#[kernel(workgroup(..))]`, for which a #[device] constant serves"
        }
        "global_invocation_id" | "gl_GlobalInvocationID" | "get_global_id" => {
            "`global_index()`, or `global_id()` for the places along x, y and z"
        }
        "syncthreads"
        | "__syncthreads"
        | "sync_threads"
        | "workgroupBarrier"
        | "workgroup_barrier"
        | "threadgroup_barrier" => "`barrier()`",
        "__threadfence" | "storageBarrier" => "`device_fence()`",
        "__syncwarp" | "subgroupBarrier" => "`barrier()`: invocations of a subgroup are not ordered by themselves",
        _ => return None,
    })
}

/// Why a path is refused that Rust's library or another language has, and what to write instead.
pub(super) fn message(path: &syn::Path) -> Option<String> {
    let last = path.segments.last()?.ident.to_string();
    if let Some(advice) = generic_of(&last).filter(|_| path.segments.len() == 1 || is_library(path)) {
        return Some(advice.to_owned());
    }
    if path.segments.len() == 1 {
        return elsewhere(&last).map(|instead| format!("`{last}` is not part of the kernel language: write {instead}"));
    }
    if !is_library(path) {
        return None;
    }
    let before = path.segments.iter().rev().nth(1).map(|before| before.ident.to_string()).unwrap_or_default();
    let instead = match (before.as_str(), last.as_str()) {
        ("mem", "swap") => "write `let t = a; a = b; b = t;`".to_owned(),
        ("mem", "replace" | "take") => "keep the old value in a variable, and assign the new one".to_owned(),
        (_, name) if intrinsics::function(name).is_some() => {
            let takes = if matches!(name, "max" | "min") { "a, b" } else { ".." };
            format!("write `{name}({takes})`")
        }
        (scalar, name) if items::scalar(scalar).is_some() => format!("write `{scalar}::{name}`"),
        (_, name) if items::scalar(name).is_some() => format!("write `{name}`"),
        _ => "kernels know what the prelude has, and items that carry #[device]".to_owned(),
    };
    Some(format!("`{}` is not part of the kernel language: {instead}", super::path_name(path)))
}

/// What is said about the variants of Rust's own enums.
fn generic_of(name: &str) -> Option<&'static str> {
    match name {
        "Some" | "None" => Some(
            "`Option` is not part of the kernel language: keep the value in one variable, and in a bool whether there is one",
        ),
        "Ok" | "Err" => Some(
            "`Result` is not part of the kernel language: a kernel cannot fail; write to a buffer what the host is to know",
        ),
        _ => None,
    }
}
