//! Products of rows with a matrix for each group of them: the rows of a group are laid out together, multiplied as one product, and put where they belong.

use trefoil_kernels::activation::Activation;

use crate::number::Number;
use crate::product::{Matrices, Product, multiply};

/// Row r of the result is row r of A times the matrix of B that `groups[r]` names; zeros where B has no such matrix.
#[derive(Clone, Copy, Debug)]
pub struct Grouped<'a, A, B> {
    /// Rows of A and of the result.
    pub rows: usize,
    /// Columns of B and of the result.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// How many matrices B has.
    pub count: usize,
    /// A's elements, and the distances from one row and column to the next.
    pub a: (&'a [A], [usize; 2]),
    /// B.
    pub b: Matrices<'a, B>,
    /// The matrix of each row.
    pub groups: &'a [u32],
}

/// Computes them into `out`, which is `[rows, n]`.
///
/// # Errors
/// An operand or the result is too short.
pub fn multiply_grouped<A: Number, B: Number, C: Number>(
    grouped: &Grouped<'_, A, B>,
    out: &mut [C],
) -> Result<(), String> {
    let Grouped { rows, n, k, count, a: (a, [a_row, a_column]), b, groups } = *grouped;
    let short =
        |name: &str, given: usize, wanted: usize| format!("`{name}`: {given} elements given, {wanted} expected");
    let groups = groups.get(..rows).ok_or_else(|| short("groups", groups.len(), rows))?;
    let (given, wanted) = (out.len(), rows.saturating_mul(n));
    let out = out.get_mut(..wanted).ok_or_else(|| short("the result", given, wanted))?;
    out.fill(C::narrow(0.0));
    if wanted == 0 || k == 0 {
        return Ok(());
    }
    let needed = ((rows - 1).saturating_mul(a_row)).saturating_add((k - 1).saturating_mul(a_column)).saturating_add(1);
    if a.len() < needed {
        return Err(short("a", a.len(), needed));
    }
    let mut order: Vec<usize> = (0..rows).filter(|row| (groups[*row] as usize) < count).collect();
    order.sort_by_key(|row| groups[*row]);
    let (mut left, mut product): (Vec<A>, Vec<C>) = (Vec::new(), Vec::new());
    for members in order.chunk_by(|one, other| groups[*one] == groups[*other]) {
        left.clear();
        for row in members {
            left.extend((0..k).map(|column| a[row * a_row + column * a_column]));
        }
        product.resize(members.len() * n, C::narrow(0.0));
        let first = (groups[members[0]] as usize).saturating_mul(b.strides[0]);
        let right =
            Matrices { values: b.values.get(first..).unwrap_or_default(), strides: [0, b.strides[1], b.strides[2]] };
        let left = Matrices { values: &left, strides: [0, k, 1] };
        let m = members.len();
        multiply(
            &Product { batch: 1, m, n, k, a: left, b: right, bias: None, activation: Activation::Identity },
            &mut product,
        )?;
        for (row, product) in members.iter().zip(product.chunks(n)) {
            out[row * n..(row + 1) * n].copy_from_slice(product);
        }
    }
    Ok(())
}
