//! Copies from buffers to workgroup memory that go on while the invocation computes.
//!
//! A kernel that works through a long row tile by tile begins the copy of the next tile, computes with the one that is there, and waits:
//!
//! ```
//! use trefoil_dsl::prelude::*;
//!
//! /// The sum of each row of 16 tiles.
//! #[kernel(workgroup(64))]
//! fn row_sums(x: &[f32], y: &mut [f32]) {
//!     let mut tiles = workgroup_array::<f32>(2 * 256);
//!     let i = local_index();
//!     let row = group_index() * 16 * 256;
//!     copy_async(&mut tiles, 4 * i, x, row + 4 * i, 4);
//!     async_commit();
//!     let mut sum = 0.0;
//!     for tile in 0..16 {
//!         let next = (tile + 1) % 2 * 256;
//!         if tile < 15 {
//!             copy_async(&mut tiles, next + 4 * i, x, row + (tile + 1) * 256 + 4 * i, 4);
//!         }
//!         async_commit();
//!         // All groups but the one just begun are there, for this invocation; behind the barrier, for all.
//!         async_wait(1);
//!         barrier();
//!         for k in 0..4 {
//!             sum += tiles[tile % 2 * 256 + k * 64 + i];
//!         }
//!         // Nobody begins to overwrite what another still reads.
//!         barrier();
//!     }
//!     tiles[i] = sum;
//!     barrier();
//!     if i == 0 {
//!         let mut total = 0.0;
//!         for k in 0..64 {
//!             total += tiles[k];
//!         }
//!         y[group_index()] = total;
//!     }
//! }
//! ```

/// Begins to copy the elements `from[first..first + count]` to `to[at..at + count]`, a workgroup array.
///
/// They are 4, 8 or 16 bytes together, and `count` is a literal or a constant. Elements past the end of `from` come as zeros, and what is past the end of
/// `to` is dropped. They are there for this invocation behind an [`async_wait`] for their group, and for the workgroup behind the next
/// [`crate::intrinsics::barrier`]; until then nobody may touch them, nor change what is copied.
///
/// CUDA has an instruction for it (compute capability 8 and later), which takes a whole piece if `at` and `first` are multiples of `count`; other pieces
/// are copied element by element. Every other target copies at once, in vectors where it can. A slice of which pieces of several elements are
/// copied starts at a multiple of `count` elements of its buffer.
///
/// On the host it copies at once.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// let mut tile = workgroup_array::<f32>(8);
/// copy_async(&mut tile, 4, &[1.0, 2.0, 3.0], 1, 4);
/// async_commit();
/// async_wait(0);
/// assert_eq!(tile[4..], [2.0, 3.0, 0.0, 0.0]);
/// ```
pub fn copy_async<T: bytemuck::Zeroable + Copy>(to: &mut [T], at: usize, from: &[T], first: usize, count: usize) {
    for offset in 0..count {
        if let Some(to) = to.get_mut(at.wrapping_add(offset)) {
            *to = from.get(first.wrapping_add(offset)).copied().unwrap_or_else(T::zeroed);
        }
    }
}

/// The copies that this invocation has begun since the last commit are a group.
pub const fn async_commit() {}

/// Waits until all groups of this invocation but the last `groups` are there; a literal or a constant.
pub const fn async_wait(groups: usize) {
    let _ = groups;
}
