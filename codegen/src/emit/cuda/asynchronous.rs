//! Copies to workgroup memory that go on by themselves: `cp.async`, in inline PTX. Devices older than it copy at once.

use crate::emit::text::{Code, Printer};

use super::{Cuda, bulk};

/// A copy of `count` elements of `size` bytes, aligned to all of them; `left` is the index of the first and the end, if some may be past it.
pub fn copy(
    p: &mut Printer<'_, Cuda>,
    to: &Code,
    from: &Code,
    (count, size): (u32, u32),
    left: Option<(Code, Code)>,
) -> String {
    p.prelude("copy_async", || {
        "// Begins to copy N bytes to shared memory; in place of what lies behind the first `there` of them come zeros.\n\
         template <int N> __device__ __forceinline__ void copy_async(void* to, const void* from, uint there) {\n\
         #if __CUDA_ARCH__ >= 800\n    \
         uint at;\n    \
         asm(\"{ .reg .u64 shared; cvta.to.shared.u64 shared, %1; cvt.u32.u64 %0, shared; }\" : \"=r\"(at) : \"l\"(to));\n    \
         if (N == 16) {\n        \
         asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" :: \"r\"(at), \"l\"(from), \"r\"(there) : \"memory\");\n    \
         } else {\n        \
         asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\" :: \"r\"(at), \"l\"(from), \"n\"(N < 16 ? N : 4), \"r\"(there) : \"memory\");\n    \
         }\n\
         #else\n    \
         for (uint i = 0u; i < N; i++) {\n        \
         static_cast<unsigned char*>(to)[i] = i < there ? static_cast<const unsigned char*>(from)[i] : 0;\n    \
         }\n\
         #endif\n\
         }\n"
            .to_owned()
    });
    let bytes = count * size;
    let there = match left {
        None => format!("{bytes}u"),
        Some((index, end)) => {
            let wide = p.lowered.module.index.is_wide();
            p.prelude("copy_async there", || {
                // A difference of 64 bits is compared as such.
                let (index, fewest) =
                    if wide { ("u64", "uint(min(end - first, u64(count)))") } else { ("uint", "min(end - first, count)") };
                format!(
                    "// The bytes of `count` elements from `first` on that are before the end.\n\
                     __device__ __forceinline__ uint bytes_there({index} first, {index} end, uint count, uint size) {{\n    \
                     return first < end ? {fewest} * size : 0u;\n}}\n"
                )
            });
            format!("bytes_there({}, {}, {count}u, {size}u)", index.argument(), end.argument())
        }
    };
    format!("copy_async<{bytes}>(&{}, &{}, {there});", to.text, from.text)
}

/// Makes a group of the copies begun so far.
pub fn commit(p: &mut Printer<'_, Cuda>) -> String {
    if !p.has_prelude("async_commit") {
        let bulk = bulk::close(p);
        p.prelude("async_commit", || {
            format!(
                "__device__ __forceinline__ void async_commit() {{\n\
                 {bulk}    \
                 asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n\
                 #endif\n}}\n"
            )
        });
    }
    "async_commit();".to_owned()
}

/// Waits for all groups but the last `pending`.
pub fn wait(p: &mut Printer<'_, Cuda>, pending: u32) -> String {
    let call = |name: &str| format!("{name}<{pending}>();");
    let name = if super::tile::held(p) { "async_wait_tiles" } else { "async_wait" };
    if p.has_prelude(name) {
        return call(name);
    }
    let bulk = bulk::finish(p);
    p.prelude("async_wait", || {
        format!(
            "template <int N> __device__ __forceinline__ void async_wait() {{\n\
             {bulk}    \
             asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(N) : \"memory\");\n\
             #endif\n}}\n"
        )
    });
    if name == "async_wait_tiles" {
        // Bulk copies are of the proxy that `wgmma` reads by.
        let unless = if bulk::has_others(p) { "" } else { " && !defined(BULK_COPIES)" };
        p.prelude("async_wait_tiles", || {
            format!(
                "// What this thread copied is there, for `wgmma` too.\n\
                 template <int N> __device__ __forceinline__ void async_wait_tiles() {{\n    \
                 async_wait<N>();\n\
                 #if defined(__CUDA_ARCH_FEAT_SM90_ALL){unless}\n    \
                 asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n\
                 #endif\n}}\n"
            )
        });
    }
    call(name)
}
