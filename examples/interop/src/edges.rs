//! The graph that the examples run between their own commands: the softened edges of a grey image.

use trefoil::graph::ops::{Activation, Slide};
use trefoil::graph::{ElementType, Graph};

/// Rows and columns of the image, `image`.
pub const SIZE: usize = 64;
/// Rows and columns of the edges, `edges`.
pub const INNER: usize = SIZE - 2;

/// Edges of an image, softened.
///
/// # Errors
/// There are none in what is built here.
pub fn graph() -> trefoil::graph::Result<Graph> {
    let mut g = Graph::new();
    let image = g.input("image", ElementType::F32, [1, 1, SIZE, SIZE])?;
    let kernel = g.constant(ElementType::F32, [1, 1, 3, 3], &[-1f32, -1., -1., -1., 8., -1., -1., -1., -1.])?;
    let edges = g.conv(image, kernel, None, &[Slide::default(), Slide::default()], 1, Activation::Tanh)?;
    g.output("edges", edges)?;
    Ok(g)
}

/// A bright square.
#[must_use]
pub fn image() -> Vec<f32> {
    let bright = |i: usize| (16..48).contains(&(i / SIZE)) && (16..48).contains(&(i % SIZE));
    (0..SIZE * SIZE).map(|i| f32::from(u8::from(bright(i)))).collect()
}

/// Looks at the square's edges.
///
/// # Errors
/// Names the first pixel that is wrong.
pub fn check(edges: &[f32]) -> Result<(), String> {
    // A corner of the square has five dark neighbours, an edge three; inside and outside all are alike.
    let expected = [((16, 16), 5f32.tanh()), ((16, 30), 3f32.tanh()), ((30, 30), 0.0), ((5, 5), 0.0)];
    for ((row, column), value) in expected {
        let got = edges.get((row - 1) * INNER + column - 1).copied().unwrap_or(f32::NAN);
        if got.is_nan() || (got - value).abs() > 1e-5 {
            return Err(format!("pixel {row}, {column} is {got}, not {value}"));
        }
    }
    Ok(())
}
