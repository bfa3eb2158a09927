//! Norms of rows: whole ones, such as fit in registers, and long ones; with a residual and its sum; halves; and over an axis that is not the last.

use trefoil::graph::graph::GraphError;
use trefoil::graph::ops::norm::NormOperands;
use trefoil::graph::{ElementType, Graph, Tensor};

use crate::cases::Case;
use crate::measure::Scale;

/// Shapes of many rows, of short ones and of long ones.
const SHAPES: [[i64; 2]; 3] = [[8192, 4096], [65_536, 1024], [4096, 32_000]];

/// Adds what is measured to inputs `[rows, columns]`, the residual of the same, gamma and beta.
type Add = fn(&mut Graph, &[Tensor]) -> Result<Tensor, GraphError>;

/// Names, how many tensors of x's size are moved, and what is added.
const NORMS: [(&str, u64, Add); 6] = [
    ("softmax", 2, |g, x| g.softmax(x[0], -1)),
    ("log_softmax", 2, |g, x| g.log_softmax(x[0], -1)),
    ("layer_norm", 2, |g, x| g.layer_norm(x[0], &[-1], 1e-5, vectors(x))),
    ("rms_norm", 2, |g, x| g.rms_norm(x[0], &[-1], 1e-5, NormOperands { beta: None, ..vectors(x) })),
    ("rms_norm + residual, and the sum", 4, |g, x| {
        let operands = NormOperands { residual: Some(x[3]), beta: None, ..vectors(x) };
        let (y, sum) = g.rms_norm_and_sum(x[0], &[-1], 1e-5, operands)?;
        g.output("sum", sum)?;
        Ok(y)
    }),
    ("softmax axis 0", 2, |g, x| g.softmax(x[0], 0)),
];

fn vectors(x: &[Tensor]) -> NormOperands {
    NormOperands { gamma: Some(x[1]), beta: Some(x[2]), ..NormOperands::default() }
}

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 4,
        Scale::Software => 32,
    };
    let mut cases = Vec::new();
    for [rows, columns] in SHAPES {
        let rows = rows / less;
        for (name, moved, add) in NORMS {
            let bytes = 4 * (rows * columns).unsigned_abs();
            let mut inputs = vec![("x", vec![rows, columns]), ("gamma", vec![columns]), ("beta", vec![columns])];
            if moved > 2 {
                inputs.push(("residual", vec![rows, columns]));
            }
            cases.push(Case {
                name: format!("norm {name} {rows}x{columns}"),
                inputs,
                build: Box::new(move |g, inputs| {
                    let y = add(g, inputs)?;
                    g.output("result", y)
                }),
                bytes: moved * bytes,
                flops: None,
            });
        }
    }
    // 32 groups of 10 channels of 64 by 64, as image models have them; and halves, which a cast to them leaves.
    let batch = 32 / less.min(16);
    cases.push(Case {
        name: format!("norm group_norm {batch}x320x64x64"),
        inputs: vec![("x", vec![batch, 320, 64, 64]), ("gamma", vec![320]), ("beta", vec![320])],
        build: Box::new(|g, inputs| {
            let y = g.group_norm(inputs[0], 32, 1e-5, Some(inputs[1]), Some(inputs[2]))?;
            g.output("result", y)
        }),
        bytes: 2 * 4 * (batch * 320 * 64 * 64).unsigned_abs(),
        flops: None,
    });
    let [rows, columns] = [SHAPES[0][0] / less, SHAPES[0][1]];
    cases.push(Case {
        name: format!("norm layer_norm {rows}x{columns} from f32 to f16 and back"),
        inputs: vec![("x", vec![rows, columns])],
        build: Box::new(|g, inputs| {
            let half = g.cast(inputs[0], ElementType::F16)?;
            let y = g.layer_norm(half, &[-1], 1e-5, NormOperands::default())?;
            let y = g.cast(y, ElementType::F32)?;
            g.output("result", y)
        }),
        // A cast moves 6 bytes an element, the norm 4.
        bytes: 16 * (rows * columns).unsigned_abs(),
        flops: None,
    });
    cases
}
