//! Tensor maps: which widths the host can derive, and what they come to for a launch.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::artefact::{Kernel, MapShape, ParamRole, ParamTransport, TensorMap, Variant};
use trefoil_codegen::ir::Instance;
use trefoil_codegen::target::Target;
use trefoil_codegen::{compile, front};

/// A kernel whose tile of so many rows is filled in rows of `width`, with what it computes before.
fn kernel(rows: u32, before: &str, width: &str) -> Kernel {
    let source = format!(
        "#[device] struct Inner {{ pad: f32, k: u32 }}
        #[device] struct Sizes {{ first: [u32; 3], inner: Inner }}
        #[kernel(workgroup(128), targets(cuda, cpu), requires(CooperativeMatrices), specialise(PIECE: usize = 8, in 1..=64))]
        fn k(x: &[f32], a: &[Vec4<u32>], n: usize, sizes: Sizes, m: u32) {{
            let mut tile = workgroup_tile::<f16, {rows}, 64>(1);
            {before}
            copy_tile_async(&mut tile, 0, a, 0, 0, {width});
            async_commit();
            async_wait(0);
        }}"
    );
    let outputs = front::parse_source(&source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    let module = &outputs.iter().find(|output| output.module.name == "k").unwrap().module;
    compile::compile(module, &Instance::default()).unwrap_or_else(|found| panic!("{found}\n{source}"))
}

fn variant(kernel: &Kernel, transport: ParamTransport) -> &Variant {
    kernel.variants.iter().find(|v| v.target == Target::Cuda && v.transport == transport).unwrap()
}

fn maps(kernel: &Kernel) -> &[TensorMap] {
    &variant(kernel, ParamTransport::Value).tensor_maps
}

/// A parameter block with `n` = 100, `sizes.inner.k` = 129, `m` = 5, a constant of 16, 4096 elements of `x` and 1000 of `a`.
fn block(kernel: &Kernel) -> Vec<u8> {
    let mut block = vec![0xff; kernel.params.size as usize];
    for field in kernel.params.fields.iter() {
        let value: u32 = match (field.role, &*field.name) {
            (_, "n") => 100,
            (_, "sizes_inner_k") => 129,
            (_, "m") => 5,
            (ParamRole::Constant(0), _) => 16,
            (ParamRole::Length(0), _) => 4096,
            (ParamRole::Length(1), _) => 1000,
            _ => continue,
        };
        block[field.offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }
    block
}

#[test]
fn the_host_derives_what_follows_from_parameters() {
    for (before, width, expected) in [
        ("", "9", 9),
        ("", "n", 100),
        ("", "n.div_ceil(8)", 13),
        ("", "(sizes.inner.k as usize).div_ceil(8)", 17),
        ("let k = sizes.inner.k as usize; let half = k / 2;", "half + (m as usize) % 3", 66),
        ("", "n / PIECE", 6),
        ("", "(n + PIECE - 1) / PIECE", 7),
        ("", "x.len() / n", 40),
        ("", "n >> 2 & 24", 24),
        // As on the device, in 32 bits, and by zero.
        ("", "n - 101 + 8", 7),
        ("", "n / (n - 100)", 0),
    ] {
        let kernel = kernel(64, before, width);
        let [map] = maps(&kernel) else { panic!("`{width}` gives {:?}", maps(&kernel)) };
        assert_eq!((map.binding, map.rows), (1, 64), "{width}");
        let rows = 1000u32.checked_div(expected).unwrap_or(0);
        assert_eq!(map.shape(&kernel.params, &block(&kernel)), Some(MapShape { width: expected, rows }), "{width}");
        // What is read from a buffer is not known at the launch.
        assert!(variant(&kernel, ParamTransport::Buffer).tensor_maps.is_empty(), "{width}");
    }
}

#[test]
fn other_widths_are_left_to_each_invocation() {
    for (before, width) in [
        ("let mut w = 8; if n > 3 { w = 9; }", "w"),
        ("let w = group_count();", "w"),
        ("", "sizes.first[1] as usize"),
        ("let w = (x.len() as f32 * 0.5) as usize;", "w"),
    ] {
        let kernel = kernel(64, before, width);
        assert_eq!(maps(&kernel), [], "{width}");
        let trefoil_codegen::artefact::Code::Text(text) = &variant(&kernel, ParamTransport::Value).code else {
            panic!("CUDA C is a text")
        };
        assert!(text.contains("copy_to_tile") && !text.contains("BULK_COPIES"), "{text}");
    }
}

#[test]
fn a_box_has_as_many_rows_as_the_hardware_takes() {
    for (rows, expected) in [(64, 64), (128, 128), (192, 192), (256, 256), (320, 64), (384, 192), (512, 256)] {
        assert_eq!(maps(&kernel(rows, "", "n"))[0].rows, expected, "{rows}");
    }
}

#[test]
fn a_block_that_is_too_short_gives_nothing() {
    let kernel = kernel(64, "", "n");
    assert_eq!(maps(&kernel)[0].shape(&kernel.params, &[0; 4]), None);
}
