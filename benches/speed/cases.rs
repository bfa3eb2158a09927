//! What is measured.

use trefoil::graph::graph::GraphError;
use trefoil::graph::{ElementType, Graph};
use trefoil_embed::encoder::Bounds;

use crate::measure::Scale;

/// Adds ops and outputs to a graph with inputs.
pub type Build = Box<dyn Fn(&mut Graph, &[trefoil::graph::Tensor]) -> Result<(), GraphError>>;

/// A graph of one op or one fused map, with inputs that are all `f32`.
pub struct Case {
    /// Its name with its sizes.
    pub name: String,
    /// The shapes of its inputs.
    pub inputs: Vec<(&'static str, Vec<i64>)>,
    /// Adds the ops and the output.
    pub build: Build,
    /// Bytes that must be read and written at least.
    pub bytes: u64,
    /// Floating-point operations, for cases that are bound by them.
    pub flops: Option<u64>,
}

/// Batches of the model.
pub fn minilm(scale: Scale) -> &'static [(&'static str, Bounds)] {
    const BATCHES: [(&str, Bounds); 2] =
        [("minilm 1x128", Bounds { texts: 1, tokens: 128 }), ("minilm 32x128", Bounds { texts: 32, tokens: 128 })];
    // A processor that plays a GPU takes minutes for the second.
    if scale == Scale::Software { &BATCHES[..1] } else { &BATCHES }
}

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let (map, large, small) = match scale {
        Scale::Gpu => (64 << 20, 4096, 1024),
        Scale::Cpu => (16 << 20, 1024, 512),
        Scale::Software => (1 << 20, 256, 128),
    };
    let size = |elements: i64| elements.unsigned_abs() * 4;
    let mut cases = vec![Case {
        name: format!("gelu(x*y+1) {} Mi", map >> 20),
        inputs: vec![("x", vec![map]), ("y", vec![map])],
        build: Box::new(|g, inputs| {
            let product = g.mul(inputs[0], inputs[1])?;
            let one = g.scalar(1.0, ELEMENT)?;
            let sum = g.add(product, one)?;
            let result = g.gelu(sum)?;
            g.output("result", result)
        }),
        bytes: 3 * size(map),
        flops: None,
    }];
    for n in [large, small] {
        cases.push(Case {
            name: format!("matmul f32 {n}^3"),
            inputs: vec![("a", vec![n, n]), ("b", vec![n, n])],
            build: Box::new(|g, inputs| {
                let result = g.matmul(inputs[0], inputs[1])?;
                g.output("result", result)
            }),
            bytes: 3 * size(n * n),
            flops: Some(2 * (n * n * n).unsigned_abs()),
        });
    }
    cases.extend(crate::chains::all(scale));
    cases.extend(crate::norms::all(scale));
    cases.extend(crate::reductions::all(scale));
    cases.extend(crate::pulls::all(scale));
    cases.extend(crate::orders::all(scale));
    cases.extend(crate::random::all(scale));
    cases.extend(crate::scatters::all(scale));
    cases.extend(crate::convolutions::all(scale));
    cases
}

/// The element type of every input.
pub const ELEMENT: ElementType = ElementType::F32;
