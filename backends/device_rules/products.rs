//! Products of matrices by the library of a device that has one.

use std::sync::Arc;

use trefoil_codegen::artefact::ParamTransport;
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::{Call, CallCommand, Command, Memory, MemoryRange, RunIo};
use trefoil_dsl::product::{LibraryProduct, MatrixLayout};

use super::{Subject, by_value, download, kernel, load, open, upload, whole};

/// A matrix's lines, and where an element lies.
fn lying(in_rows: bool, [rows, columns]: [usize; 2], gap: usize, is_shared: bool) -> MatrixLayout {
    let (lines, length) = if in_rows { (rows, columns) } else { (columns, rows) };
    let line = length + gap;
    let batch = if is_shared { 0 } else { lines * line };
    MatrixLayout { in_rows, line: line as u64, batch: batch as u64 }
}

fn at(layout: &MatrixLayout, batch: usize, row: usize, column: usize) -> usize {
    let (line, within) = if layout.in_rows { (row, column) } else { (column, row) };
    batch * layout.batch as usize + line * layout.line as usize + within
}

/// Small integers, whose products and sums every order of adding up gives exactly.
fn small(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed) % 11) as f32 - 5.0).collect()
}

pub fn products_by_a_library(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    if device.properties().matrix_library.is_none() {
        return;
    }
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    for ([batch, m, n, k], ways) in [
        ([1, 1, 1, 1], 0),
        ([1, 64, 48, 32], 1),
        ([1, 7, 13, 5], 2),
        ([1, 1, 67, 130], 3),
        ([1, 67, 1, 33], 0),
        ([3, 16, 24, 8], 1),
        ([40, 5, 6, 7], 2),
        ([2, 33, 65, 600], 3),
    ] {
        for (bias, gap, is_shared) in [(false, 0, false), (true, 0, true), (true, 8, false)] {
            let a = lying(ways & 1 == 0, [m, k], gap, false);
            let b = lying(ways & 2 == 0, [k, n], gap, is_shared);
            let product = LibraryProduct {
                operands: Scalar::F32,
                result: Scalar::F32,
                batch: batch as u64,
                rows: m as u64,
                columns: n as u64,
                depth: k as u64,
                a,
                b,
                bias,
            };
            let (operands, result) = product.bytes().unwrap();
            let values: Vec<Vec<f32>> =
                operands.iter().enumerate().map(|(seed, bytes)| small(*bytes as usize / 4, seed)).collect();
            let read: Vec<Arc<dyn Memory>> = values.iter().map(|values| upload(&device, values)).collect();
            let out = upload(&device, &vec![f32::NAN; result as usize / 4]);
            let after = upload(&device, &vec![f32::NAN; result as usize / 4]);
            let range =
                |memory: &Arc<dyn Memory>| MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() };
            let call = Command::Call(CallCommand {
                call: Call::Product(product),
                reads: read.iter().map(range).collect(),
                writes: vec![range(&out)],
                run_words: 0..0,
                label: Arc::from("product"),
            });
            let mut wanted = Vec::with_capacity(batch * m * n);
            for (batch, row, column) in (0..batch * m * n).map(|i| (i / (m * n), i / n % m, i % n)) {
                let term = |i: usize| values[0][at(&a, batch, row, i)] * values[1][at(&b, batch, i, column)];
                let start = if bias { values[2][column] } else { 0.0 };
                wanted.push((0..k).map(term).fold(start, |sum, term| sum + term));
            }
            let case = format!("{product:?}");
            let check = |what: &str| {
                assert_eq!(download(&device, &out), wanted, "{what}: {case}");
                backend.write(&whole(&out), &super::bytes(&vec![f32::NAN; wanted.len()])).unwrap();
            };
            backend.execute(std::slice::from_ref(&call)).unwrap();
            check("executed");
            // What reads the result waits for it.
            let list = [call, Command::Barrier, by_value(&rotate, &[&out, &after], wanted.len(), 1.0)];
            let recording = backend.record(&list, 0).unwrap();
            let rotated: Vec<f32> = (0..wanted.len()).map(|i| wanted[(i + 1) % wanted.len()]).collect();
            for is_waited_for in [true, false, true, false] {
                if is_waited_for {
                    backend.run(&*recording, RunIo::default()).unwrap();
                } else {
                    (0..3).for_each(|_| backend.submit(&*recording).unwrap());
                }
                assert_eq!(download(&device, &after), rotated, "{case}");
                check("recorded");
            }
            assert!(backend.time(&list).unwrap()[0] > 0, "{case}");
            check("timed");
        }
    }
}
