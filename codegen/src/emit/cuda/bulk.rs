//! Bulk copies of tiles: a Hopper copies a box of a matrix by itself (`cp.async.bulk.tensor`), told by a tensor map where the matrix is. The first thread begins them and knows of them alone.
//!
//! A group of copies has an `mbarrier`, which counts the bytes that are still to come: copies add to what it waits for, and closing the group is the one arrival that
//! lets it complete. The barriers of [`GROUPS`] groups lie in shared memory and take turns; before one has its turn again, its group before is waited for. Waiting for groups means
//! that the first thread waits: everybody else is behind the barrier of the workgroup, without which nobody may read what another copied.
//!
//! What is read by `wgmma` and written by these copies is one proxy's affair, so that no fence stands between them. A workgroup waits for all of its copies before it ends,
//! since its memory is another's then.
//!
//! The text says both: bulk copies where it is compiled for a Hopper and has tensor maps (`BULK_COPIES`), which come with parameters that are passed by value; else what lowering
//! wrote beside them.

use crate::emit::EmitError;
use crate::emit::text::{Code, Printer, Side, Writer};
use crate::ir::{Asynchronous, ExpressionKind, StatementKind, TileOperation, statements};
use crate::tensor_map::{GROUPS, TensorMap, tensor_maps};

use super::Cuda;

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

/// The first lines of a text with tensor maps; what is for other copies alone is not used then.
pub const SWITCH: &str =
    "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#define BULK_COPIES\n#pragma nv_diag_suppress 177\n#endif\n";
/// What is only there with bulk copies.
const WITH: &str = "#ifdef BULK_COPIES";

/// Whether the kernel has any.
pub fn held(p: &P<'_>) -> bool {
    !tensor_maps(&p.lowered.module).is_empty()
}

/// The types of the hidden argument.
pub fn types(p: &P<'_>) -> String {
    let count = tensor_maps(&p.lowered.module).len();
    format!(
        "// Where matrices are, as the driver writes it.\n\
         struct __align__(128) TensorMap {{\n    unsigned long long words[16];\n}};\n\
         struct TensorMaps {{\n    TensorMap of[{count}];\n}};\n\n"
    )
}

/// The lines that begin a copy.
pub fn copy(
    p: &mut P<'_>,
    to: &Side<'_>,
    map: &TensorMap,
    [stage, row, column]: [Code; 3],
    otherwise: &Code,
) -> Result<Vec<String>> {
    let number = tensor_maps(&p.lowered.module).iter().position(|known| known == map);
    let number = number.ok_or_else(|| p.error("a tile is copied by a map that the kernel lacks"))?;
    groups(p);
    p.prelude("copy_tile_bulk", || {
        format!(
            "{WITH}\n\
             // Begins to copy a tile, in boxes of 64 columns; what is beyond the matrix is zero.\n\
             template <uint ROWS, uint COLUMNS, uint STAGES, uint BOX> __device__ __forceinline__ void copy_tile_bulk(void* tile, uint stage, const TensorMap& map, uint row, uint column) {{\n    \
             if (bulk_thread()) {{\n        \
             BulkGroups& groups = bulk_groups();\n        \
             const uint arrived = uint(__cvta_generic_to_shared(&groups.arrived[groups.closed % {GROUPS}u]));\n        \
             const uint to = uint(__cvta_generic_to_shared(tile)) + stage % STAGES * (ROWS * COLUMNS * 2u);\n        \
             // No number of a matrix is beyond these, and none is negative.\n        \
             const uint x = min(column, 0x0fffffffu) * 8u;\n        \
             const uint y = min(row, 0x7fffffffu);\n        \
             asm volatile(\"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\" :: \"r\"(arrived), \"n\"(ROWS * COLUMNS * 2u) : \"memory\");\n        \
             #pragma unroll\n        \
             for (uint block = 0u; block < COLUMNS / 64u; block++) {{\n            \
             #pragma unroll\n            \
             for (uint part = 0u; part < ROWS / BOX; part++) {{\n                \
             asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{%2, %3}}], [%4];\" :: \"r\"(to + (block * ROWS + part * BOX) * 128u), \"l\"(&map), \"r\"(x + block * 64u), \"r\"(y + part * BOX), \"r\"(arrived) : \"memory\");\n            \
             }}\n        }}\n    }}\n    \
             __syncwarp();\n}}\n\
             #endif\n"
        )
    });
    let [rows, columns] = to.tile.shape();
    let map_argument = Code::atom(format!("tensor_maps.of[{number}]"));
    let function = format!("copy_tile_bulk<{rows}, {columns}, {}, {}>", to.stages, map.rows);
    let call = Code::call(&function, [to.name.clone(), stage, map_argument, row, column]);
    Ok(vec![
        WITH.to_owned(),
        format!("{};", call.text),
        "#else".to_owned(),
        format!("{};", otherwise.text),
        "#endif".to_owned(),
    ])
}

/// The groups, and what is done with them.
fn groups(p: &mut P<'_>) {
    p.prelude("bulk_groups", || {
        format!(
            "{WITH}\n\
             // Groups of bulk copies, of which the first thread knows: a barrier for each that may be on its way, how many were closed, and for how many it waited.\n\
             struct BulkGroups {{\n    unsigned long long arrived[{GROUPS}];\n    uint closed;\n    uint finished;\n}};\n\n\
             extern \"C\" __device__ __forceinline__ BulkGroups& bulk_groups();\n\n\
             // What it does alone, its warp waits for: `wgmma` is for whole warps.\n\
             __device__ __forceinline__ bool bulk_thread() {{\n    \
             return (threadIdx.x | threadIdx.y | threadIdx.z) == 0u;\n}}\n\n\
             // Waits for the first group for which nobody waited.\n\
             __device__ __forceinline__ void finish_bulk_group(BulkGroups& groups) {{\n    \
             const uint arrived = uint(__cvta_generic_to_shared(&groups.arrived[groups.finished % {GROUPS}u]));\n    \
             const uint round = groups.finished / {GROUPS}u % 2u;\n    \
             uint done;\n    \
             do {{\n        \
             asm volatile(\"{{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }}\" : \"=r\"(done) : \"r\"(arrived), \"r\"(round) : \"memory\");\n    \
             }} while (done == 0u);\n    \
             groups.finished++;\n}}\n\n\
             __device__ __forceinline__ void close_bulk_group() {{\n    \
             if (bulk_thread()) {{\n        \
             BulkGroups& groups = bulk_groups();\n        \
             const uint arrived = uint(__cvta_generic_to_shared(&groups.arrived[groups.closed % {GROUPS}u]));\n        \
             asm volatile(\"{{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }}\" :: \"r\"(arrived) : \"memory\");\n        \
             groups.closed++;\n        \
             // The next group's barrier is free.\n        \
             if (groups.closed - groups.finished == {GROUPS}u) {{\n            finish_bulk_group(groups);\n        }}\n    }}\n    \
             __syncwarp();\n}}\n\n\
             // Waits for all groups but the last `pending`.\n\
             __device__ __forceinline__ void finish_bulk_groups(uint pending) {{\n    \
             if (bulk_thread()) {{\n        \
             BulkGroups& groups = bulk_groups();\n        \
             while (groups.closed - groups.finished > pending) {{\n            finish_bulk_group(groups);\n        }}\n    }}\n    \
             __syncwarp();\n}}\n\n\
             // From the kernel's first statement to wherever it ends.\n\
             struct BulkCopies {{\n    \
             __device__ __forceinline__ BulkCopies() {{\n        \
             if (bulk_thread()) {{\n            \
             BulkGroups& groups = bulk_groups();\n            \
             groups.closed = 0u;\n            groups.finished = 0u;\n            \
             for (uint i = 0u; i < {GROUPS}u; i++) {{\n                \
             asm volatile(\"mbarrier.init.shared::cta.b64 [%0], 1;\" :: \"r\"(uint(__cvta_generic_to_shared(&groups.arrived[i]))) : \"memory\");\n            \
             }}\n            \
             asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n        }}\n        \
             __syncwarp();\n    }}\n\n    \
             // Its memory is another workgroup's when it ends.\n    \
             __device__ __forceinline__ ~BulkCopies() {{\n        \
             close_bulk_group();\n        finish_bulk_groups(0u);\n    }}\n}};\n\
             #endif\n"
        )
    });
}

/// The lines that prepare a kernel that has bulk copies; `at` is where its groups lie in memory that the launch provides, if it does.
pub fn prepare(p: &mut P<'_>, at: Option<u32>, out: &mut Writer) {
    groups(p);
    let place = match at {
        Some(at) => format!(
            "extern __shared__ __align__({}) unsigned char workgroup_memory[];\n    return *reinterpret_cast<BulkGroups*>(workgroup_memory + {at});",
            super::module::TILE_ALIGN
        ),
        None => "__shared__ BulkGroups groups;\n    return groups;".to_owned(),
    };
    p.prelude("bulk_groups()", || {
        format!(
            "{WITH}\nextern \"C\" __device__ __forceinline__ BulkGroups& bulk_groups() {{\n    {place}\n}}\n#endif\n"
        )
    });
    for line in [WITH, "const BulkCopies bulk_copies;", "#endif"] {
        out.line(line);
    }
}

/// In `async_commit`: what closes a group of these, up to what is for other asynchronous copies.
pub fn close(p: &mut P<'_>) -> String {
    before_others(p, "close_bulk_group()")
}

/// In `async_wait<N>`: what waits for these.
pub fn finish(p: &mut P<'_>) -> String {
    before_others(p, "finish_bulk_groups(N)")
}

fn before_others(p: &mut P<'_>, call: &str) -> String {
    let others = "#if __CUDA_ARCH__ >= 800\n";
    if !held(p) {
        return others.to_owned();
    }
    groups(p);
    match has_others(p) {
        true => format!("{WITH}\n    {call};\n#endif\n{others}"),
        false => format!("{WITH}\n    {call};\n#elif __CUDA_ARCH__ >= 800\n"),
    }
}

/// Whether there are asynchronous copies that are not made in bulk wherever these can be.
pub fn has_others(p: &P<'_>) -> bool {
    let module = &p.lowered.module;
    let mut instead = Vec::new();
    statements(&module.entry.body, &mut |statement| {
        if let StatementKind::Tile(TileOperation::BulkCopy { otherwise, .. }) = statement.kind
            && let ExpressionKind::Call { function, .. } = module.entry.expressions[otherwise].kind
        {
            instead.push(function);
        }
    });
    let functions = module.functions.iter().filter(|(handle, _)| !instead.contains(handle));
    functions.map(|(_, function)| function).chain([&module.entry]).any(|function| {
        let mut found = false;
        statements(&function.body, &mut |statement| {
            found |= matches!(statement.kind, StatementKind::Asynchronous(Asynchronous::Copy { .. }));
        });
        found
    })
}
