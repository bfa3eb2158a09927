//! The whole way from a kernel's text to an artefact.

#![allow(clippy::unwrap_used, reason = "a failed test may stop anywhere")]

use proc_macro2::TokenStream;
use quote::quote;
use trefoil_codegen::artefact::{Access, Code, Kernel};
use trefoil_codegen::compile::{build, compile, compile_for};
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::emit;
use trefoil_codegen::front::{self, Output};
use trefoil_codegen::ir::{ExpressionKind, Module, StatementKind, statements};
use trefoil_codegen::target::{Features, ParamTransport, Target};

fn parse(attribute: TokenStream, item: TokenStream) -> Output {
    let input = front::Input {
        attribute,
        item: syn::parse2(item).unwrap(),
        bundles: Vec::new(),
        names: front::Names::default(),
        support: quote!(::trefoil),
        file: "kernels.rs".to_owned(),
    };
    front::parse(input).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Every instance, for every target, and the CPU's code.
fn all(attribute: TokenStream, item: TokenStream) -> Vec<Kernel> {
    let output = parse(attribute, item);
    let mut kernels = Vec::new();
    for instance in &output.instances {
        let compiled = build(&output.module, instance, &Target::ALL).unwrap_or_else(|found| panic!("{found}"));
        let cpu = compiled.cpu.expect("the CPU is a target");
        emit::cpu::emit(&cpu, &quote!(::trefoil::artefact)).unwrap_or_else(|error| panic!("{error}"));
        kernels.push(compiled.kernel);
    }
    kernels
}

fn refused(attribute: TokenStream, item: TokenStream) -> Diagnostics {
    let output = parse(attribute, item);
    compile(&output.module, &output.instances[0]).expect_err("this must be refused")
}

fn text(kernel: &Kernel, target: Target, profile: &str) -> String {
    let variant = kernel
        .variants
        .iter()
        .find(|variant| variant.target == target && variant.profile == profile)
        .unwrap_or_else(|| panic!("no {profile} for {}", target.name()));
    match &variant.code {
        Code::Text(text) => text.to_string(),
        Code::Spirv(_) => panic!("SPIR-V is no text"),
    }
}

fn softmax() -> (TokenStream, TokenStream) {
    (
        quote!(workgroup(256), instances(T = [f32, f16])),
        quote! {
            /// Each row becomes exp(x - max) / sum.
            pub fn softmax<T: Float>(x: &[T], y: &mut [T], columns: usize) {
                let mut shared = workgroup_array::<f32>(256);
                let row = group_index() * columns;
                let lane = local_index();
                let mut greatest = f32::NEG_INFINITY;
                for c in (lane..columns).step_by(256) {
                    greatest = max(greatest, x[row + c].to_f32());
                }
                if const { target::has(Feature::Subgroups) } {
                    greatest = subgroup_max(greatest);
                }
                shared[lane] = greatest;
                barrier();
                let mut half = 128;
                while half > 0 {
                    if lane < half {
                        shared[lane] = max(shared[lane], shared[lane + half]);
                    }
                    barrier();
                    half /= 2;
                }
                let greatest = workgroup_uniform_load(&shared[0]);
                for c in (lane..columns).step_by(256) {
                    y[row + c] = T::from_f32(exp(x[row + c].to_f32() - greatest));
                }
            }
        },
    )
}

#[test]
fn a_kernel_has_code_for_every_target_and_feature() {
    let (attribute, item) = softmax();
    let kernels = all(attribute, item);
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_ref()).collect();
    assert_eq!(names, ["softmax_f32", "softmax_f16"]);
    for kernel in &kernels {
        assert_eq!([kernel.bindings[0].access, kernel.bindings[1].access], [Access::Read, Access::Write]);
        for transport in [ParamTransport::Value, ParamTransport::Buffer] {
            kernel.variant(Target::Spirv, Features::NONE, transport).unwrap();
        }
        assert!(text(kernel, Target::Wgsl, "portable").contains("fn softmax_"));
    }
    assert!(text(&kernels[0], Target::Wgsl, "subgroups").contains("subgroupMax"));
    assert!(!text(&kernels[0], Target::Wgsl, "portable").contains("subgroupMax"));
    assert!(text(&kernels[1], Target::Wgsl, "subgroups-f16").contains("enable f16;"));
    assert!(text(&kernels[1], Target::Wgsl, "portable").contains("unpack2x16float"));
    assert_ne!(kernels[0].hash, kernels[1].hash);
}

#[test]
fn hashes_are_the_same_every_time() {
    let (attribute, item) = softmax();
    let output = parse(attribute, item);
    let once = compile(&output.module, &output.instances[0]).unwrap();
    let again = Module::from_bytes(&once.ir).unwrap();
    assert_eq!(compile(&again, &output.instances[0]).unwrap().hash, once.hash);
    let part = compile_for(&output.module, &output.instances[0], &[Target::Cuda]).unwrap();
    assert!(part.variants.iter().all(|variant| variant.target == Target::Cuda));
}

#[test]
fn everyday_kernels_compile() {
    all(
        quote!(workgroup(64)),
        quote! {
            fn histogram(x: &[u32], bins: &[Atomic<u32>], divisor: u32) {
                let local = workgroup_array::<Atomic<u32>>(64);
                let lane = local_index();
                local[lane].store(0);
                barrier();
                let i = global_index();
                if i < x.len() {
                    let bin = (x[i] / divisor) % 64;
                    local[bin as usize].add(1);
                }
                barrier();
                bins[lane].add(local[lane].load());
            }
        },
    );
    all(
        quote!(workgroup(16, 16), instances(TILE = [16])),
        quote! {
            fn matmul<const TILE: usize>(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
                let mut left = workgroup_array::<f32>(TILE * TILE);
                let mut right = workgroup_array::<f32>(TILE * TILE);
                let id = local_id();
                let group = group_id();
                let row = group.y * TILE + id.y;
                let column = group.x * TILE + id.x;
                let mut sums = [0.0f32; 4];
                for tile in 0..k.div_ceil(TILE) {
                    let inner = tile * TILE;
                    left[id.y * TILE + id.x] = if row < m && inner + id.x < k { a[row * k + inner + id.x] } else { 0.0 };
                    right[id.y * TILE + id.x] =
                        if column < n && inner + id.y < k { b[(inner + id.y) * n + column] } else { 0.0 };
                    barrier();
                    for j in unroll(0..TILE) {
                        sums[j % 4] = left[id.y * TILE + j].mul_add(right[j * TILE + id.x], sums[j % 4]);
                    }
                    barrier();
                }
                if row < m && column < n {
                    c[row * n + column] = sums[0] + sums[1] + sums[2] + sums[3];
                }
            }
        },
    );
    all(
        quote!(workgroup(256)),
        quote! {
            fn gelu(x: &[f32], y: &mut [f32]) {
                let i = global_index();
                if i < y.len() / 4 {
                    let v = x.vec4(i);
                    y.set_vec4(i, v * 0.5 * (1.0 + erf(v * FRAC_1_SQRT_2)));
                }
            }
        },
    );
}

#[test]
fn tiles_need_no_guards() {
    let output = parse(
        quote!(workgroup(16, 16)),
        quote! {
            fn transpose(x: &[f32], y: &mut [f32], n: usize) {
                let mut tile = workgroup_array::<f32>(16 * 17);
                let id = local_id();
                let i = global_index();
                tile[id.y * 17 + id.x] = if i < x.len() { x[i] } else { 0.0 };
                barrier();
                let value = tile[id.x * 17 + id.y];
                if i < y.len() {
                    y[i] = value;
                }
            }
        },
    );
    let verified = build(&output.module, &output.instances[0], &[Target::Wgsl]).unwrap().verified;
    let entry = &verified.module.entry;
    entry.live(&entry.body, &mut |expression| {
        if let ExpressionKind::Load(place) = &entry.expressions[expression].kind {
            assert!(!place.guarded || place.path.is_empty(), "{place:?}");
        }
    });
    statements(&entry.body, &mut |statement| {
        if let StatementKind::Store { place, .. } = &statement.kind {
            assert!(!place.guarded || place.path.is_empty(), "{place:?}");
        }
    });
}

#[test]
fn mistakes_are_told_in_the_authors_words() {
    let found = refused(
        quote!(workgroup(64)),
        quote! {
            fn early(y: &mut [f32]) {
                let i = global_index();
                if i >= y.len() {
                    return;
                }
                barrier();
                y[i] = 1.0;
            }
        },
    );
    let message = found.to_string();
    assert!(message.contains("barrier() must be reached by every invocation of the workgroup"), "{message}");
    assert!(message.contains("`return`") && message.contains("global_index()"), "{message}");
    assert_ne!(found.0[0].span.0, 0, "it has a place");
    let found = refused(
        quote!(workgroup(512)),
        quote! {
            fn large(y: &mut [f32]) {
                let tile = workgroup_array::<f32>(8192);
                y[0] = tile[local_index()];
            }
        },
    )
    .to_string();
    for word in ["32768 bytes", "`tile`", "16384", "512 invocations"] {
        assert!(found.contains(word), "{found}");
    }
}
