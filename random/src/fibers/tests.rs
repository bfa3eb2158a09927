//! What the machine makes of texts, good and bad.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use super::*;

/// A launch of one block of a kernel, by its body; `out` has as many words as the block has threads.
fn task(body: &str, threads: u32) -> Task {
    let text = format!(
        "extern \"C\" __global__ void __launch_bounds__({threads}) kernel(\n    unsigned int* out\n) {{\n{body}\n}}\n"
    );
    Task {
        text,
        constants: Vec::new(),
        workgroup: [threads, 1, 1],
        groups: 1,
        buffers: vec![vec![0; 4 * threads as usize]],
        params: Vec::new(),
    }
}

/// Of a machine that has a compiler.
fn fibers() -> Option<Fibers> {
    Fibers::open().map_err(|words| println!("not tested: {words}")).ok()
}

fn words(outcome: &Outcome) -> Vec<u32> {
    outcome.as_ref().unwrap()[0].chunks(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn threads_wait_for_each_other() {
    let Some(fibers) = fibers() else { return };
    let barrier = "__shared__ unsigned int held[40]; held[threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.x] = held[39 - threadIdx.x];";
    // Eight lanes of the second warp are there: what the others would give is nobody's.
    let warps = "const unsigned int mask = threadIdx.x < 32 ? 0xffffffffu : 0xffu;
        const unsigned int below = __shfl_up_sync(mask, threadIdx.x, 1), sum = __reduce_add_sync(mask, threadIdx.x);
        out[threadIdx.x] = sum * 100 + below + (__ballot_sync(mask, threadIdx.x > 35) == 0xf0u);";
    let found = fibers.run(&[&task(barrier, 40), &task(warps, 40)]);
    assert_eq!(words(&found[0]), (0..40).rev().collect::<Vec<u32>>());
    let sums = [(0..32).sum::<u32>(), (32..40).sum()];
    let wanted = |i: u32| sums[i as usize / 32] * 100 + if i.is_multiple_of(32) { i } else { i - 1 } + i / 32;
    assert_eq!(words(&found[1]), (0..40).map(wanted).collect::<Vec<u32>>());
}

#[test]
fn what_ends_badly_is_the_failure_of_its_launch_alone() {
    let Some(fibers) = fibers() else { return };
    let cases = [
        ("if (threadIdx.x < 3) { __syncthreads(); }", "5 have ended, 3 wait at a barrier"),
        ("if (threadIdx.x < 3) { __syncwarp(); } else { __syncthreads(); }", "5 wait at a barrier and 3 in a warp"),
        ("__shfl_sync(0xf0u, threadIdx.x, 0);", "is not in the mask"),
        ("out[0] = *(unsigned int*)(threadIdx.x);", "signal: Segmentation fault"),
        ("out[64] = 1;", "signal: Segmentation fault"),
        ("out[0] = 1 / (threadIdx.x - threadIdx.x);", "a quotient by zero"),
        ("int most = 2147483647; out[0] = most + int(blockDim.x);", "line 4 of its text, column 38: a signed sum"),
        ("out[0] = 1u << (blockDim.x * 4u);", "a shift by too much"),
        ("out[0] = int(4e9f * blockDim.x);", "a float becomes an integer"),
        ("((float4*)(out + 1))->x = 1.0f;", "not aligned"),
        ("int held[4]; out[0] = held[threadIdx.x];", "outside of an array"),
        ("while (true) { out[0] = 1; }", "does not end"),
        ("nonsense;", "error"),
        ("asm(\"nonsense;\");", "inline PTX `asm(\"nonsense;\");`"),
    ];
    let good = task("out[threadIdx.x] = 7;", 8);
    let tasks: Vec<Task> = cases.iter().map(|(body, _)| task(body, 8)).chain([good]).collect();
    let found = fibers.run(&tasks.iter().collect::<Vec<_>>());
    for ((body, wanted), outcome) in cases.iter().zip(&found) {
        let failure = outcome.as_ref().unwrap_err();
        assert!(failure.words.contains(wanted), "{body}: {failure}");
    }
    assert_eq!(words(&found[cases.len()]), [7; 8]);
}
