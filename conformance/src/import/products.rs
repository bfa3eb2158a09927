//! Products of matrices.

use super::{Import, Imported, Importer};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("MatMul", |i, n| {
        let (a, b) = (i.input(n, 0)?, i.input(n, 1)?);
        Ok(vec![i.graph.matmul(a, b)?])
    }),
    ("Gemm", gemm),
];

/// `alpha * a' * b' + beta * c`
fn gemm(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (mut a, mut b) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let element = importer.ty(a)?.element;
    for (side, name) in [(&mut a, "transA"), (&mut b, "transB")] {
        if importer.int(node, name, 0) != 0 {
            *side = importer.graph.transpose(*side, &[1, 0])?;
        }
    }
    let mut result = importer.graph.matmul(a, b)?;
    let scaled = |importer: &mut Importer<'_>, x, name| {
        let factor = importer.float(node, name, 1.0);
        if factor == 1.0 {
            return Ok(x);
        }
        let factor = importer.graph.scalar(f64::from(factor), element)?;
        importer.graph.mul(x, factor)
    };
    result = scaled(importer, result, "alpha")?;
    if let Some(c) = importer.optional(node, 2)? {
        let c = scaled(importer, c, "beta")?;
        result = importer.graph.add(result, c)?;
    }
    Ok(vec![result])
}
