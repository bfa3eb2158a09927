//! Products of tiles: `wgmma` on Hopper, which four warps issue together and which reads both sides from shared memory by itself, and `mma.sync` on older devices, as
//! one text for both.
//!
//! A stage is blocks of 64 columns, of which each row is 128 bytes, its pieces of 16 bytes permuted by the row (`tiles.rs`). `wgmma` calls that the swizzle of 128 bytes;
//! the left side is read along its rows, the right one across them. What a thread holds of 64 by `n` sums is what it holds of its warp's 16 by `n` in `mma.sync`: the
//! accumulators of 16 by 16 are those of `matrix.rs`.
//!
//! `wgmma` goes on by itself: lowering says where it is waited for. Before its reads, what `cp.async` wrote is made known to it where the copies are waited for.

use std::fmt::Write as _;

use crate::emit::EmitError;
use crate::emit::text::{Code, Printer, Side};
use crate::ir::{Scalar, Type};

use super::Cuda;

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

/// Whether the compiler is told to make code for one architecture with all that it has, and that is Hopper.
const HOPPER: &str = "#ifdef __CUDA_ARCH_FEAT_SM90_ALL";

/// The statement that adds a product.
pub fn multiply(
    p: &mut P<'_>,
    ty: &Type,
    sums: Code,
    [a, b]: [Side<'_>; 2],
    [rows, columns, stage]: [Code; 3],
) -> Result<String> {
    let Type::Array { length, .. } = ty else { return Err(p.error("sums that are no array")) };
    let count = length.literal().ok_or_else(|| p.error("an array of no length"))?;
    let input = if a.tile.scalar == Scalar::BF16 { "bf16" } else { "f16" };
    let held = super::types::type_name(p, ty)?;
    let product = super::matrix::product_function(p, a.tile.scalar, Scalar::F32);
    side(p);
    let name = format!("multiply_tiles_{input}_{count}");
    let step = format!("tile_step_{input}_{count}");
    p.prelude("tile_descriptor", || {
        format!(
            "{HOPPER}\n\
             // What `wgmma` is told of a tile: where it is, what lies between blocks of 64 columns if it is read across its rows, the 1024 bytes of eight rows, and the swizzle.\n\
             __device__ __forceinline__ unsigned long long tile_descriptor(uint at, uint block) {{\n    \
             return (unsigned long long)(at / 16u) | (unsigned long long)(block / 16u) << 16u | 64ull << 32u | 1ull << 62u;\n}}\n\
             #endif\n"
        )
    });
    p.prelude(&step, || {
        let mut sums = String::new();
        let registers: Vec<String> = (0..count * 8).map(|number| format!("%{number}")).collect();
        for number in 0..count * 8 {
            let comma = if number == 0 { "" } else { ", " };
            let _ = write!(sums, "{comma}\"+f\"(d[{}][{}])", number / 8, number % 8);
        }
        let (left, right, registers) = (count * 8, count * 8 + 1, registers.join(", "));
        format!(
            "{HOPPER}\n\
             // 64 by {columns} sums and a product of depth 16.\n\
             __device__ __forceinline__ void {step}({held}& d, unsigned long long a, unsigned long long b) {{\n    \
             asm volatile(\"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{input}.{input} {{{registers}}}, %{left}, %{right}, 1, 1, 1, 0, 1;\" : {sums} : \"l\"(a), \"l\"(b));\n}}\n\
             #endif\n",
            columns = count * 16
        )
    });
    p.prelude(&name, || {
        let columns = count * 16;
        format!(
            "// Adds the product of 64 rows of a tile, 16 of them a warp's, and {columns} columns of another.\n\
             template <uint ROWS, uint DEPTH, uint A_STAGES, uint COLUMNS, uint B_STAGES> __device__ __forceinline__ void {name}({held}& sums, const void* a, const void* b, uint rows, uint columns, uint stage) {{\n    \
             const uint left = uint(__cvta_generic_to_shared(a)) + stage % A_STAGES * (ROWS * DEPTH * 2u) + rows % (ROWS / 64u) * 8192u;\n    \
             const uint right = uint(__cvta_generic_to_shared(b)) + stage % B_STAGES * (DEPTH * COLUMNS * 2u) + columns % (COLUMNS / {columns}u) * (DEPTH * {bytes}u);\n\
             {HOPPER}\n    \
             const unsigned long long x = tile_descriptor(left, 16u);\n    \
             const unsigned long long y = tile_descriptor(right, DEPTH * 128u);\n    \
             asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n    \
             #pragma unroll\n    \
             for (uint d = 0u; d < DEPTH / 16u; d++) {{\n        \
             {step}(sums, x + d / 4u * (ROWS * 8u) + d % 4u * 2u, y + d * 128u);\n    \
             }}\n    \
             asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n\
             #else\n    \
             const uint lane = matrix_lane();\n    \
             const uint warp = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32u % 4u;\n    \
             const uint row = warp * 16u + lane % 16u;\n    \
             for (uint d = 0u; d < DEPTH / 16u; d++) {{\n        \
             const uint piece = d * 2u + lane / 16u;\n        \
             const Array<uint, 4> x = tile_side<false>(left + piece / 8u * (ROWS * 128u) + row * 128u + (piece % 8u ^ row % 8u) * 16u);\n        \
             const uint line = d * 16u + lane % 16u;\n        \
             #pragma unroll\n        \
             for (uint i = 0u; i < {count}u; i++) {{\n            \
             const uint piece = i * 2u + lane / 16u;\n            \
             const Array<uint, 4> y = tile_side<true>(right + piece / 8u * (DEPTH * 128u) + line * 128u + (piece % 8u ^ line % 8u) * 16u);\n            \
             sums[i] = {product}<8>(x, y, sums[i]);\n        \
             }}\n    }}\n\
             #endif\n}}\n",
            bytes = columns * 2
        )
    });
    let ([rows_of_a, depth], [_, width]) = (a.tile.shape(), b.tile.shape());
    let arguments = [sums, a.name, b.name, rows, columns, stage];
    let call = Code::call(&format!("{name}<{rows_of_a}, {depth}, {}, {width}, {}>", a.stages, b.stages), arguments);
    Ok(format!("{};", call.text))
}

/// What `mma.sync` wants of a side at once.
fn side(p: &mut P<'_>) {
    p.prelude("tile_side", || {
        "// 16 by 16 elements of two bytes, of each lane a row's half.\n\
         template <bool ACROSS> __device__ __forceinline__ Array<uint, 4> tile_side(uint at) {\n    \
         Array<uint, 4> m;\n    \
         if (ACROSS) {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[2]), \"=r\"(m[3]) : \"r\"(at) : \"memory\");\n    \
         } else {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[2]), \"=r\"(m[3]) : \"r\"(at) : \"memory\");\n    \
         }\n    return m;\n}\n"
            .to_owned()
    });
}

/// The statements that wait for products: none is on its way behind them, and nothing that reads the sums comes before them.
pub fn finish(p: &mut P<'_>, sums: Vec<Code>) -> Vec<String> {
    p.prelude("finish_products", || {
        format!(
            "__device__ __forceinline__ void finish_products() {{\n\
             {HOPPER}\n    \
             asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n\
             #endif\n}}\n\n\
             // What reads the sums stays behind the wait.\n\
             template <uint N> __device__ __forceinline__ void finish_sums(Array<Array<float, 8>, N>& sums) {{\n\
             {HOPPER}\n    \
             #pragma unroll\n    \
             for (uint i = 0u; i < N; i++) {{\n        \
             #pragma unroll\n        \
             for (uint j = 0u; j < 8u; j++) {{\n            \
             asm volatile(\"\" : \"+f\"(sums[i][j]) :: \"memory\");\n        \
             }}\n    }}\n\
             #endif\n}}\n"
        )
    });
    let mut lines = vec!["finish_products();".to_owned()];
    lines.extend(sums.into_iter().map(|sums| format!("finish_sums({});", sums.argument())));
    lines
}

/// Whether workgroup memory holds tiles.
pub fn held(p: &P<'_>) -> bool {
    p.lowered.module.workgroup.iter().any(|(_, variable)| variable.tile.is_some())
}
