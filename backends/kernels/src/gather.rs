//! Rows of a table by index.

use trefoil_dsl::prelude::*;

/// y row i = table row `indices[i]`; rows of `columns` elements, zero where the index is out of range.
#[kernel(workgroup(256), instances(T = [f32, f16]))]
pub fn gather_rows<T: Float>(table: &[T], indices: &[u32], y: &mut [f32], rows: usize, columns: usize) {
    let i = global_index();
    if i < y.len() {
        let row = indices[i / columns] as usize;
        let mut value = 0.0;
        if row < rows {
            value = table[row * columns + i % columns].to_f32();
        }
        y[i] = value;
    }
}
