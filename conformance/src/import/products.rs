//! Products of matrices.

use trefoil_graph::ElementType;

use super::{Import, Imported, Importer};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("MatMul", |i, n| {
        let (a, b) = (i.input(n, 0)?, i.input(n, 1)?);
        Ok(vec![i.graph.matmul(a, b)?])
    }),
    ("Gemm", gemm),
    ("MatMulInteger", integers),
];

/// `(a - its zero point) (b - its zero point)` in 32 bits; zero points are one, or one for each row of `a` and each column of `b`.
fn integers(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut sides = [importer.input(node, 0)?, importer.input(node, 1)?];
    let zeros = [importer.optional(node, 2)?, importer.optional(node, 3)?];
    // Bytes are multiplied as they are; a difference of two does not fit one.
    if zeros.iter().any(Option::is_some) {
        for (number, (side, zero)) in sides.iter_mut().zip(zeros).enumerate() {
            *side = importer.graph.cast(*side, ElementType::I32)?;
            if let Some(zero) = zero {
                let mut zero = importer.graph.cast(zero, ElementType::I32)?;
                if number == 0 && importer.ty(zero)?.rank() == 1 {
                    zero = importer.graph.unsqueeze(zero, -1)?;
                }
                *side = importer.graph.sub(*side, zero)?;
            }
        }
    }
    Ok(vec![importer.graph.matmul(sides[0], sides[1])?])
}

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
