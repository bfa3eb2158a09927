//! `matmul(a, b, bias?, activation, out)`: activation(a b + bias), with batch broadcasting and operands in any strides.
//!
//! Which elements can be multiplied is said in `types`, how kernels see a product in `product`, what does it in `candidates`, `matrices`, `rows`, `library` and `host`, and what is made of it
//! in `builders`; products of rows with a matrix for each group of them are `grouped`.

mod builders;
mod candidates;
mod grouped;
#[cfg(feature = "cpu")]
mod host;
mod library;
mod matrices;
mod product;
mod rows;
mod types;

use trefoil_kernels::activation::Activation;

pub use self::builders::Contraction;
pub use self::grouped::{Adapters, GroupedMatMul};
use self::product::is_partly_repeated;
use self::types::Types;
use super::activation::{activated, expect_known};
use super::support::{apart, expect_element, expect_inputs, expect_shape, rather_than};
use crate::dim::Dim;
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::types::{ElementType, TensorType, broadcast};

/// activation(a b + bias): a is `[.., M, K]`, b is `[.., K, N]`, bias is `[N]`; the leading axes broadcast, but those of one operand are all repeated or none of them: kernels step through its matrices by one stride.
/// [`Graph::matmul`](crate::Graph::matmul) copies an operand of which only some are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMul {
    /// Whether there is a bias, as third input, of the result's elements.
    pub bias: bool,
    /// Applied to each element last.
    pub activation: Activation,
    /// The result's elements.
    pub out: ElementType,
}

impl Op for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("bias", self.bias.to_string()),
            ("activation", format!("{:?}", self.activation)),
            ("out", self.out.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = 2 + usize::from(self.bias);
        expect_inputs(inputs, count..=count)?;
        let (a, b) = (&inputs[0], &inputs[1]);
        Types::new(a, b, self.out)?;
        expect_known(self.activation, self.out)?;
        for (name, ty) in [("a", a), ("b", b)] {
            if ty.rank() < 2 {
                let expected = "a matrix, or a batch of them".to_owned();
                return Err(OpError::Shape { input: name, given: ty.to_string(), expected });
            }
        }
        let (a_batch, a_matrix) = a.shape.split_at(a.rank() - 2);
        let (b_batch, b_matrix) = b.shape.split_at(b.rank() - 2);
        if a_matrix[1] != b_matrix[0] {
            let (rows, not) = rather_than(&a_matrix[1], &b_matrix[0]);
            let expected = format!("{rows} rows, as many as {a} has columns{not}");
            return Err(OpError::Shape { input: "b", given: b.to_string(), expected });
        }
        let mut shape = broadcast([a_batch, b_batch]).map_err(|(_, ours, theirs)| OpError::Shape {
            input: "b",
            given: b.to_string(),
            expected: format!(
                "leading axes that broadcast with those of {a}; {} and {} do not",
                apart(&ours, &theirs),
                apart(&theirs, &ours)
            ),
        })?;
        for (input, ty, own) in [("a", a, a_batch), ("b", b, b_batch)] {
            if is_partly_repeated(own, &shape) {
                let spread = [&*shape, &ty.shape[own.len()..]].concat();
                let expected = format!(
                    "leading axes that are all repeated to {shape:?} or none of them (`expand` it to {spread:?}, then `contiguous`)"
                );
                return Err(OpError::Shape { input, given: ty.to_string(), expected });
            }
        }
        shape.extend([a_matrix[0].clone(), b_matrix[1].clone()]);
        if self.bias {
            expect_element("bias", &inputs[2], self.out)?;
            expect_shape("bias", &inputs[2], std::slice::from_ref(&b_matrix[1]))?;
        }
        Ok(vec![TensorType { element: self.out, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (a, b, shape) = (&inputs[0], &inputs[1], &outputs[0]);
        let rank = shape.len();
        let (m, n) = (shape[rank - 2], shape[rank - 1]);
        let k = a.shape[a.shape.len() - 1];
        let batches: usize = shape[..rank - 2].iter().product();
        let mut values = Vec::with_capacity(batches * m * n);
        for batch in 0..batches {
            let a_first = matrix_of(&a.shape, &shape[..rank - 2], batch) * m * k;
            let b_first = matrix_of(&b.shape, &shape[..rank - 2], batch) * k * n;
            for row in 0..m {
                for column in 0..n {
                    let pairs = (0..k).map(|i| (a.values[a_first + row * k + i], b.values[b_first + i * n + column]));
                    let bias = if self.bias { inputs[2].values[column] } else { 0.0 };
                    values.push(if self.out.is_integer() {
                        wrapped(pairs, bias, self.out)
                    } else {
                        activated(pairs.map(|(x, y)| x * y).sum::<f64>() + bias, self.activation)
                    });
                }
            }
        }
        vec![HostTensor { shape: shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim {
        let k = inputs[0].shape.last().cloned().unwrap_or_else(|| Dim::from(1i64));
        outputs[0].elements() * k * 2
    }

    fn kind(&self) -> OpKind<'_> {
        let mut candidates = candidates::all(*self);
        candidates.push(Box::new(library::Library(*self)));
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::Panels(*self)));
        OpKind::Kernels(candidates)
    }
}

/// Which matrix of an operand belongs to a batch of the result, by broadcasting.
fn matrix_of(operand: &[usize], batch_shape: &[usize], batch: usize) -> usize {
    let own = &operand[..operand.len() - 2];
    let (mut rest, mut index, mut stride) = (batch, 0, 1);
    for (position, extent) in batch_shape.iter().enumerate().rev() {
        let at = rest % extent;
        rest /= extent;
        let from_last = batch_shape.len() - position;
        if from_last <= own.len() {
            let mine = own[own.len() - from_last];
            if mine != 1 {
                index += at * stride;
            }
            stride *= mine;
        }
    }
    index
}

/// A sum of products of integers that wraps as the type does.
fn wrapped(pairs: impl Iterator<Item = (f64, f64)>, bias: f64, element: ElementType) -> f64 {
    let sum = pairs
        .fold(bias as i128 as u64, |sum, (x, y)| sum.wrapping_add((x as i128 as u64).wrapping_mul(y as i128 as u64)));
    match element {
        ElementType::I32 => f64::from(sum as i32),
        ElementType::U32 => f64::from(sum as u32),
        ElementType::I64 => sum.cast_signed() as f64,
        _ => sum as f64,
    }
}
