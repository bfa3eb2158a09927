//! Products of matrices by a library that comes with a device: what is asked of it, as data.
//!
//! A device that has such a library tells of it ([`Properties::matrix_library`](crate::device::Properties::matrix_library)) and takes [`Call::Product`](crate::device::Call::Product) in its lists.

use trefoil_codegen::ir::Scalar;

/// A library that multiplies matrices for a device's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixLibrary {
    /// Its name.
    pub name: &'static str,
    /// The elements of operands and of results that it takes together.
    pub elements: &'static [(Scalar, Scalar)],
}

impl MatrixLibrary {
    /// Why it cannot be asked for a product, if that is so.
    pub fn refusal(&self, product: &LibraryProduct) -> Option<String> {
        let (operands, result) = (product.operands, product.result);
        if !self.elements.contains(&(operands, result)) {
            let [operands, result] = [operands, result].map(Scalar::rust_name);
            return Some(format!("{} makes no {result} of elements of {operands}", self.name));
        }
        product.defect().map(|defect| format!("a product with {defect}"))
    }
}

/// How a matrix lies: lines of elements that follow on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Whether a line is a row; otherwise it is a column.
    pub in_rows: bool,
    /// Elements from one line to the next; no fewer than a line has.
    pub line: u64,
    /// Elements from one matrix of the batch to the next; 0 where all products have the same.
    pub batch: u64,
}

/// `c = a * b`, plus a bias for each column of `c`; for each of a batch. Products are summed in `f32`, of `f64` in that.
///
/// `a` has `rows` by `depth` elements, `b` `depth` by `columns`; those of `c` lie row by row, one matrix behind the other. No extent is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LibraryProduct {
    /// The type of `a` and `b`.
    pub operands: Scalar,
    /// The type of `c` and of the bias.
    pub result: Scalar,
    /// How many products.
    pub batch: u64,
    /// Rows of `a` and of `c`.
    pub rows: u64,
    /// Columns of `b` and of `c`.
    pub columns: u64,
    /// Columns of `a` and rows of `b`.
    pub depth: u64,
    /// How `a` lies.
    pub a: MatrixLayout,
    /// How `b` lies.
    pub b: MatrixLayout,
    /// Whether there is a bias: a third operand, of `columns` elements.
    pub bias: bool,
}

impl LibraryProduct {
    /// The bytes that each operand has at least, and those of the result; `None` if they cannot be counted.
    ///
    /// ```
    /// use trefoil_codegen::ir::Scalar::F32;
    /// use trefoil_dsl::product::{LibraryProduct, MatrixLayout};
    ///
    /// let in_rows = |line| MatrixLayout { in_rows: true, line, batch: 0 };
    /// let product = LibraryProduct {
    ///     operands: F32, result: F32, batch: 1, rows: 2, columns: 3, depth: 4, a: in_rows(4), b: in_rows(3), bias: false,
    /// };
    /// assert_eq!(product.bytes(), Some((vec![32, 48], 24)));
    /// ```
    pub fn bytes(&self) -> Option<(Vec<u64>, u64)> {
        let each = |scalar: Scalar| u64::from(scalar.bits()) / 8;
        let matrix = |layout: &MatrixLayout, rows: u64, columns: u64| {
            let (lines, length) = if layout.in_rows { (rows, columns) } else { (columns, rows) };
            let last = lines.checked_sub(1)?.checked_mul(layout.line)?;
            let before = self.batch.checked_sub(1)?.checked_mul(layout.batch)?;
            before.checked_add(last)?.checked_add(length)?.checked_mul(each(self.operands))
        };
        let mut operands = vec![matrix(&self.a, self.rows, self.depth)?, matrix(&self.b, self.depth, self.columns)?];
        if self.bias {
            operands.push(self.columns.checked_mul(each(self.result))?);
        }
        let result = self.batch.checked_mul(self.rows)?.checked_mul(self.columns)?.checked_mul(each(self.result))?;
        Some((operands, result))
    }

    /// Why no library can be asked for it, whatever its elements, if that is so.
    pub fn defect(&self) -> Option<String> {
        let extents = [self.batch, self.rows, self.columns, self.depth];
        if extents.iter().any(|extent| *extent == 0 || i32::try_from(*extent).is_err()) {
            return Some(format!("extents of {extents:?}, of which each is from 1 to 2^31"));
        }
        let (a, b) = (&self.a, &self.b);
        let short = |layout: &MatrixLayout, rows, columns| layout.line < if layout.in_rows { columns } else { rows };
        (short(a, self.rows, self.depth) || short(b, self.depth, self.columns))
            .then(|| format!("lines {} and {} apart, which is less than they are long", a.line, b.line))
    }
}
