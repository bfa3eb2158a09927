//! Rows of a table by index, some of which the table does not have.

use trefoil::f16;

use crate::case::{Case, Operand, exactly, kernel};
use crate::numbers::numbers;

/// Rows and columns of the table, and how many indices.
const SIZES: [[usize; 3]; 7] = [[3, 5, 0], [0, 4, 3], [1, 1, 1], [7, 3, 11], [5, 256, 3], [13, 257, 5], [300, 1, 1031]];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, columns, count] in SIZES {
        let table: Vec<f16> = numbers(rows * columns, 8, 9.0).into_iter().map(f16::from_f32).collect();
        let wide: Vec<f32> = table.iter().map(|x| x.to_f32()).collect();
        let mut indices: Vec<u32> = (0..count).map(|i| (i * 7 + 2) as u32 % (rows as u32 + 1)).collect();
        indices.iter_mut().skip(2).step_by(5).for_each(|index| *index = u32::MAX);
        let row = |index: u32| match wide.get(index as usize * columns..(index as usize + 1) * columns) {
            Some(row) => row.to_vec(),
            None => vec![0.0; columns],
        };
        let expected: Vec<_> = indices.iter().flat_map(|index| row(*index)).map(exactly).collect();
        for (name, table) in [("gather_rows_f16", Operand::F16(table)), ("gather_rows_f32", Operand::F32(wide))] {
            cases.push(Case {
                kernel: kernel(name),
                about: format!("{count} of {rows} rows of {columns}"),
                operands: vec![table, Operand::U32(indices.clone())],
                values: Box::new(move |launch| launch.value(rows)?.value(columns)),
                groups: expected.len().div_ceil(256),
                expected: expected.clone(),
            });
        }
    }
    cases
}
