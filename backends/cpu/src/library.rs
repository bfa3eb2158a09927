//! Products of matrices by the crate gemm.
//!
//! A product is done on all threads of the device's pool; of many small ones each is done on one.

use gemm_common::Parallelism;
use rayon::prelude::*;
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::product::{LibraryProduct, MatrixLayout, MatrixLibrary};

/// What it multiplies. Halves are left out: it rounds their sums to halves after each piece of K.
pub(crate) const LIBRARY: MatrixLibrary =
    MatrixLibrary { name: "gemm", elements: &[(Scalar::F32, Scalar::F32), (Scalar::F64, Scalar::F64)] };

/// How the crate multiplies, column by column: rows, columns and depth; the result with its strides of columns and of rows, and whether it is added to; likewise the operands; what the result is multiplied by before, and the
/// product; three flags for complex numbers; and threads.
type Multiply<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// Multiplies, on a thread of the pool and with the others; gives `None` for what it does not multiply.
///
/// # Safety
/// The ranges are those of a call that passed the checks of its list, so that they hold the product's matrices.
pub(crate) unsafe fn multiply(product: &LibraryProduct, reads: &[&[u8]], writes: &mut [&mut [u8]]) -> Option<()> {
    let (&[a, b, ref bias @ ..], [out]) = (reads, writes) else { return None };
    let operands = (a, b, bias.first().copied());
    match (product.operands, product.result) {
        (Scalar::F32, Scalar::F32) => {
            // SAFETY: as the caller says; the elements are `f32`.
            unsafe { typed(product, operands, out, [0.0f32, 1.0], gemm_f32::gemm::f32::get_gemm_fn()) }
        }
        (Scalar::F64, Scalar::F64) => {
            // SAFETY: as the caller says; the elements are `f64`.
            unsafe { typed(product, operands, out, [0.0f64, 1.0], gemm_f64::gemm::f64::get_gemm_fn()) }
        }
        _ => return None,
    }
    Some(())
}

/// From one row and from one column to the next.
fn strides(layout: &MatrixLayout) -> [isize; 2] {
    // The bytes between are within memory, which is shorter than `isize` reaches.
    let line = layout.line as isize;
    if layout.in_rows { [line, 1] } else { [1, line] }
}

/// # Safety
/// As for [`multiply`]; `T` is the type of all elements.
unsafe fn typed<T: Copy + Send + Sync>(
    product: &LibraryProduct,
    (a, b, bias): (&[u8], &[u8], Option<&[u8]>),
    out: &mut [u8],
    [zero, one]: [T; 2],
    multiply: Multiply<T>,
) {
    // Extents fit in 31 bits.
    let [batch, m, n, k] = [product.batch, product.rows, product.columns, product.depth].map(|extent| extent as usize);
    let row = n * size_of::<T>();
    let out = &mut out[..batch * m * row];
    if let Some(bias) = bias {
        out.chunks_exact_mut(row).for_each(|to| to.copy_from_slice(&bias[..row]));
    }
    let ([a_row, a_column], [b_row, b_column]) = (strides(&product.a), strides(&product.b));
    let each = |index: usize, to: &mut [u8], threads: Parallelism| {
        let a = a[index * product.a.batch as usize * size_of::<T>()..].as_ptr().cast::<T>();
        let b = b[index * product.b.batch as usize * size_of::<T>()..].as_ptr().cast::<T>();
        let (to, adds) = (to.as_mut_ptr().cast::<T>(), bias.is_some());
        let keep = if adds { one } else { zero };
        // Rows are what it takes for columns: it is asked for `cᵀ = bᵀ aᵀ`.
        // SAFETY: the ranges begin at multiples of an element's size, and the checks found all elements that the strides reach within them; `to` is one matrix of the result, which nobody else has.
        unsafe {
            multiply(
                n, m, k, to, n as isize, 1, adds, b, b_row, b_column, a, a_row, a_column, keep, one, false, false,
                false, threads,
            );
        }
    };
    if batch >= rayon::current_num_threads() {
        let each = |(index, to): (usize, &mut [u8])| each(index, to, Parallelism::None);
        out.par_chunks_exact_mut(m * row).enumerate().for_each(each);
    } else {
        for (index, to) in out.chunks_exact_mut(m * row).enumerate() {
            each(index, to, Parallelism::Rayon(0));
        }
    }
}
