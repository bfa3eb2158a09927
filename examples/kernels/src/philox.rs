//! Normally distributed numbers from a counter-based generator: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) and the transform of Box and Muller.
//!
//! **Idea.** A counter-based generator has no state: the words at a counter are a function of the counter and a key, ten rounds of multiplying and mixing. So
//! every invocation makes numbers by itself, and any part of a stream can be made again, on any device.
//!
//! The rounds and the transform are device functions of the kernel library, which a kernel of any crate may call.
//!
//! **Invariants.** Elements `4 i` to `4 i + 3` of a stream come from the counter `(i, 0, stream)` and the key `seed`. The words are the same on all devices; the
//! normals are within 4 ulp of the exact formula on all of them.
//!
//! **Cost.** 4 bytes written an element, and about 60 instructions: five wide products and twenty others for the words, half a logarithm and square root, and a sine or cosine. Arithmetic
//! limits it.

use trefoil::dsl::launch::WriteBuffer;
use trefoil::kernels::random::normal::four_normals;
use trefoil::kernels::random::philox::philox;
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

/// `out` = the beginning of a stream.
#[kernel(workgroup(256))]
pub fn philox_normals(out: &mut [f32], seed: Vec2<u32>, stream: Vec2<u32>) {
    let i = global_index();
    let numbers = four_normals(philox(Vec4::new(i as u32, 0, stream.x, stream.y), seed));
    if 4 * i + 3 < out.len() {
        out.set_vec4(i, numbers);
    } else {
        // What lies past the end is not written.
        for lane in unroll(0..3) {
            out[4 * i + lane] = numbers[lane];
        }
    }
}

fn halves(number: u64) -> Vec2<u32> {
    Vec2::new(number as u32, (number >> 32) as u32)
}

/// `out` = the beginning of the stream of that number, of the generator of that seed.
///
/// # Errors
/// The buffer does not fit the device.
pub fn normals<'a>(out: impl WriteBuffer<'a, f32>, seed: u64, stream: u64) -> Result<Vec<Dispatch>> {
    let out = out.slice_mut();
    let quads = out.len().div_ceil(4);
    Ok(vec![philox_normals(out, halves(seed), halves(stream))?.over(quads)])
}
