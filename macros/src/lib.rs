//! trefoil's proc macros: `#[kernel]` and `#[device]`.
//!
//! They are thin: what a kernel means, and the code for each target, is made by [`trefoil_codegen`]. What is here is what only a macro
//! can do: gather the `#[device]` items that a kernel names (`chain`), report mistakes on the author's tokens, and expand to
//! the author's function for rustc to check, the artefact, and the launch function.

mod artefact;
mod blocks;
mod chain;
mod device;
mod kernel;
mod launch;
mod layout;
mod literals;
mod mistaken;
mod params;
mod remembered;
mod shared;
mod support;
mod timings;

use proc_macro::TokenStream;

/// Makes a function a kernel: compiled for every target while the program is built, launched by a function of the same name.
///
/// ```text
/// #[kernel(workgroup(256))]
/// pub fn scale(x: &[f32], y: &mut [f32], factor: f32) {
///     let i = global_index();
///     if i < y.len() {
///         y[i] = x[i] * factor;
///     }
/// }
///
/// device.run(scale(&x, &mut y, 2.0)?.over(y.len()))?;
/// ```
///
/// # Arguments
/// * `workgroup(X)`, `workgroup(X, Y)`, `workgroup(X, Y, Z)`: invocations of a workgroup; literals, const generics, constants that carry
///   `#[device]`, and `+ - * / %` on them.
/// * `subgroup(32)`: every subgroup has so many invocations, a power of two from 4 to 128 of which the workgroup's first size is a multiple; otherwise the size
///   is the device's. In the kernel `subgroup_size()` is that number; a const generic (`subgroup(S)`) or a constant that carries `#[device]` serves for the
///   lengths of arrays too. The kernel requires `Subgroups`. CUDA has 32 alone, Vulkan what its pipelines may ask for, wgpu what all of the adapter's
///   subgroups have, the CPU every size; loading the kernel on a device that has no such size is an `Err`.
/// * `resident(8)`: how many workgroups a multiprocessor is to have room for at once, which bounds the registers of an invocation; a specialisation
///   constant (`resident(RESIDENT)`) says it anew for each pipeline. CUDA C has a word for it (`__launch_bounds__`); to the other targets' compilers
///   nothing can be said, and their code is the same without it. Right at any number, and slow at one for which registers do not suffice.
/// * `volatile(x, y)`: reads of these slices, which the kernel does not write, stay where the body has them, each done once: for kernels that ask for much before they use any of it, where a compiler would
///   put the reads off to save registers. `volatile(spirv(x), cuda(y))` says it to these targets' compilers alone. WGSL has no such reads, nor has the CPU's code, and is the same without it. Elements
///   are scalars, or vectors of two or four.
/// * `index = 64`: `usize` has 64 bits in the kernel and in the functions that it calls, as have lengths, extents, strides and offsets of its buffers, so
///   that buffers may have more than 2^32 elements; otherwise it has 32, whatever it has on the host, and a launch with arguments that do not fit is an `Err`. The kernel requires
///   `Int64`, and WGSL has no such indices: list the other targets. `index = [32, 64]` makes an instance of either width, of which WGSL gets the one with
///   32 bits; a launch takes the other where its arguments or its grid want it. A grid has at most 2^32 workgroups in either case.
/// * `instances(T = [f32, f16], TILE = [16, 32])`: for each generic parameter the values with which the kernel is compiled, in all
///   combinations.
/// * `specialise(TILE: usize = 16, in 1..=64, multiple_of 4; FAST: bool = false)`: constants that are fixed when a pipeline is made. Each has a type
///   (`usize`, `u32`, `i32`, `bool`), its usual value and the values that are possible, with which limits are checked. In the kernel's body
///   `TILE` is a value like another, and the length of workgroup arrays; functions are given it as an argument. A launch sets them with
///   `scale(&x, &mut y)?.specialise(scale::Constants { tile: 32, ..Default::default() })?`, and each set of values has a pipeline of its own.
/// * `targets(wgsl, spirv, cuda, cpu)`: the targets to compile for; all of them otherwise.
/// * `indirect`: the grid may come from a buffer (`Launch::indirect`); it is launched as it is given, along up to three axes. Kernels that look at axes
///   (`global_id` and its like) need no such word.
/// * `no_robustness`: drivers need not check accesses to buffers themselves. Every access is proved to be in range or guarded in the code, with this word or without it; but drivers add checks of their own,
///   around which some loops cannot be scheduled, while others are compiled better with them. Measure. Vulkan's pipelines ask for it where the device has `VK_EXT_pipeline_robustness`; nothing changes elsewhere.
/// * `strict` or `fast`: how closely the kernel, and each function that it calls and that says neither, keeps to what is written; see [`macro@device`].
/// * `requires(Subgroups)`: features without which the kernel does not run. With `LargeWorkgroups` a workgroup may have 1024 invocations and 32 KiB of memory in WGSL and SPIR-V too, where every device has 256 and 16 KiB.
///
/// # What it makes
/// * A function of the same name that takes a buffer (`&buffer`, `&mut buffer` or a slice of one) for each slice, and each value as it
///   is, and gives a launch. A generic kernel's is called as `name::<f32, 16>(..)`.
/// * A module of the same name with `KERNELS`, the compiled instances, for a kernel without generics `KERNEL` (and `KERNEL_INDEX64` beside it where there is an
///   instance of either width), and
///   `Params`, the parameter block as a struct, for programs that bring a device of their own.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    kernel::begin(attribute.into(), item.into()).into()
}

/// Makes a function, constant, struct, field-less enum or `impl` block known to kernels, in this crate and others.
///
/// The item stays what it is in Rust: functions can be called and tested on the host. A struct becomes `repr(C)`, an element of
/// buffers, and must have no padding; an enum becomes `repr(u32)` and a parameter of kernels.
///
/// # Precision
/// Products and sums of floats may be contracted to one rounding, as in `x * y + z`. `#[device(strict)]` on a function or an `impl` block, or `strict` on a
/// kernel, rounds every operation, which gives the same bits on every target but WGSL; WGSL cannot promise it, so that a kernel with strict functions lists
/// `targets(spirv, cuda, cpu)`, or calls them within `if const { target::has(Feature::Strict) }`. `mul_add` stays the contraction that its author wrote, and
/// `/`, `sqrt` and the mathematical functions have their usual accuracy.
///
/// `#[device(fast)]` takes the target's cheapest quotients, roots and functions of `f32` instead, of an accuracy of some units in the sixth digit where
/// arguments are moderate: on CUDA `__logf`, `__sinf`, `__powf`, `__fdividef` and their like, elsewhere shorter bodies of `tanh`, `powf` (of bases
/// that are not negative) and `log10`, and WGSL's own `min` and `max`, and `clamp` made of them, which with a NaN give any operand.
///
/// A function that says neither is as the one that calls it.
///
/// # Functions of functions
/// A function may take functions: `fn reduce<F: Fn(f32, f32) -> f32>(x: &[f32], combine: F) -> f32`, or `combine: impl Fn(f32, f32) -> f32`. It is
/// called with the path of a `#[device]` function, with a mathematical function (`max`, `f32::max`) or with a closure that captures nothing
/// (`|a, b| a.max(b)`), and there is one copy of it for each function that it is given. A function that hands its parameter on needs `F: Copy` too, or
/// takes `&F`.
///
/// # Methods
/// Methods, associated functions, associated constants and operators stand in `impl` blocks with `#[device]`, in the module of the type, which lists them:
///
/// ```text
/// #[device(methods, operators(Add, Mul<f32>))]
/// struct Complex { re: f32, im: f32 }
///
/// #[device]
/// impl Complex {
///     const ONE: Self = Self { re: 1.0, im: 0.0 };
///     fn norm(self) -> f32 { self.re * self.re + self.im * self.im }
/// }
///
/// #[device(uses(methods))]
/// impl Add for Complex { .. }
/// ```
///
/// `methods` is the block without a trait, of which there is one. A block uses its own functions; for those of other blocks of its type it lists these:
/// `uses(methods, Add)`. A function outside that takes the type cannot be called by its methods, since a type is known with its methods or not at all:
/// make it a method.
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    device::begin(attribute.into(), item.into()).into()
}

/// The end of a chain that `#[kernel]` began.
#[doc(hidden)]
#[proc_macro]
pub fn kernel_finish(input: TokenStream) -> TokenStream {
    kernel::finish(input.into()).into()
}

/// The end of a chain that a type's blocks are found by.
#[doc(hidden)]
#[proc_macro]
pub fn device_type_finish(input: TokenStream) -> TokenStream {
    device::finish_type(input.into()).into()
}

/// The end of a chain that `#[device]` began.
#[doc(hidden)]
#[proc_macro]
pub fn device_finish(input: TokenStream) -> TokenStream {
    device::finish(input.into()).into()
}
