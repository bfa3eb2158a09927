//! What graphs make of products: operands of one axis, layers, several results of one product, and contractions of any axes.

use trefoil_kernels::activation::Activation;

use super::MatMul;
use super::product::is_partly_repeated;
use super::types::usual;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::ops::axes::each_once;
use crate::ops::support::{expect_shape, rather_than, shape_error};
use crate::types::{ElementType, TensorType, broadcast};

/// Which axes [`Graph::dot_general`] sums over and which it keeps together, in pairs: the first of each pair are axes of `a`, the second of `b`; negative ones count from the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contraction {
    /// Pairs of axes that are summed over.
    pub contracted: Vec<(isize, isize)>,
    /// Pairs of axes that belong together: the result's first ones, in this order.
    pub batch: Vec<(isize, isize)>,
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// The product of two tensors over the last axis of `a` and the last but one of `b`, as NumPy's `matmul`: leading axes broadcast, and an operand of one axis is a row of `a` or a
    /// column of `b`, whose axis the result lacks. Transposed operands are read in place: `let bt = g.transpose(b, &[1, 0])?; g.matmul(a, bt)?`.
    ///
    /// Both are `f32`, `f16`, `bf16`, `f64`, `i32`, `u32`, `i64` or `u64`, and so is the result; or `f32` and `f16` or `bf16`, with a result of `f32`; or of 8-bit integers,
    /// with a result of `i32`. Sums of 16-bit floats are `f32`, integers wrap.
    ///
    /// # Errors
    /// The elements are none of these, an operand has no axis, or the extents do not fit.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F16, vec![Dim::from(4usize), Dim::from(8usize)])?;
    /// let v = g.input("v", ElementType::F16, vec![Dim::from(8usize)])?;
    /// let y = g.matmul(x, v)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f16[4]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn matmul(&mut self, a: Tensor, b: Tensor) -> Result<Tensor, GraphError> {
        let out = usual(self.operand("matmul", a)?.element, self.operand("matmul", b)?.element);
        self.matmul_to(a, b, out)
    }

    /// [`Graph::matmul`] with a result of other elements: `f32` of 16-bit floats.
    ///
    /// # Errors
    /// As [`Graph::matmul`]; or no kernel makes such elements of these.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::BF16, vec![Dim::from(4usize), Dim::from(4usize)])?;
    /// let y = g.matmul_to(x, x, ElementType::F32)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[4, 4]");
    /// assert!(g.matmul_to(x, x, ElementType::F16).is_err());
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn matmul_to(&mut self, a: Tensor, b: Tensor, out: ElementType) -> Result<Tensor, GraphError> {
        let (is_row, is_column) =
            (self.operand("matmul_to", a)?.rank() == 1, self.operand("matmul_to", b)?.rank() == 1);
        let a = if is_row { self.unsqueeze(a, 0)? } else { a };
        let b = if is_column { self.unsqueeze(b, -1)? } else { b };
        let op = MatMul { bias: false, activation: Activation::Identity, out };
        let mut result = self.product(op, a, b, None)?;
        if is_column {
            result = self.squeeze(result, -1)?;
        }
        if is_row {
            result = self.squeeze(result, if is_column { -1 } else { -2 })?;
        }
        Ok(result)
    }

    /// `activation(x weight^T + bias)` with a weight of `[N, K]`, as models store it. The bias has the result's elements, which are those that [`Graph::matmul`] gives.
    ///
    /// # Errors
    /// As [`Graph::matmul`]; or `x` has fewer than two axes, the weight is no matrix, or the last extent of `x` is not its last one, K; or the bias is not `[N]`; or the elements are integers and there is an activation.
    pub fn linear(
        &mut self,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
        activation: Activation,
    ) -> Result<Tensor, GraphError> {
        self.expect_layer("linear", x, weight, bias)?;
        let out = usual(self.type_of(x)?.element, self.type_of(weight)?.element);
        let weight = self.transpose(weight, &[1, 0])?;
        self.product(MatMul { bias: bias.is_some(), activation, out }, x, weight, bias)
    }

    /// One [`Graph::linear`] without activation whose columns are several results, such as queries, keys and values: so many columns each. They are views of the one product.
    ///
    /// # Errors
    /// As [`Graph::linear`]; or the columns are not all that there are.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, vec![Dim::from(5usize), Dim::from(8usize)])?;
    /// let weight = g.input("weight", ElementType::F32, vec![Dim::from(16usize), Dim::from(8usize)])?;
    /// let qkv = g.linear_split(x, weight, None, &[8, 4, 4])?;
    /// assert_eq!(g.type_of(qkv[1])?.to_string(), "f32[5, 4]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn linear_split(
        &mut self,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
        columns: &[usize],
    ) -> Result<Vec<Tensor>, GraphError> {
        self.expect_layer("linear_split", x, weight, bias)?;
        let all = columns.iter().map(|count| Dim::from(*count)).fold(Dim::from(0i64), |all, count| all + count);
        let ty = self.type_of(weight)?.clone();
        if ty.shape.first() != Some(&all) {
            let expected = format!("as many columns as `weight`, which is {ty}, has rows");
            let error = OpError::Attribute { attribute: "columns", given: format!("{columns:?}"), expected };
            return Err(GraphError::Op { op: "linear_split".to_owned(), error });
        }
        let product = self.linear(x, weight, bias, Activation::Identity)?;
        let mut first = 0;
        columns
            .iter()
            .map(|count| {
                let part = self.narrow(product, -1, first, *count);
                first += count;
                part
            })
            .collect()
    }

    /// The sum of products over any pairs of axes, with others kept together: the result has the batch axes, then those of `a` that are left, then those of `b`, in their orders.
    ///
    /// # Errors
    /// As [`Graph::matmul`]; or an axis does not exist, or is named twice; or two that are named together have other extents.
    ///
    /// ```
    /// use trefoil_graph::ops::Contraction;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let shape = |extents: [usize; 3]| extents.map(Dim::from).to_vec();
    /// let a = g.input("a", ElementType::F32, shape([3, 5, 2]))?;
    /// let b = g.input("b", ElementType::F32, shape([5, 7, 2]))?;
    /// let y = g.dot_general(a, b, &Contraction { contracted: vec![(1, 0)], batch: vec![(-1, -1)] })?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[2, 3, 7]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn dot_general(&mut self, a: Tensor, b: Tensor, contraction: &Contraction) -> Result<Tensor, GraphError> {
        let (a_ty, b_ty) = (self.operand("dot_general", a)?.clone(), self.operand("dot_general", b)?.clone());
        let resolved = |ty: &TensorType, pick: fn(&(isize, isize)) -> isize| {
            let both = [&contraction.batch, &contraction.contracted].map(|pairs| pairs.iter().map(pick));
            let axes = each_once(both.into_iter().flatten(), ty.rank())
                .map_err(|axis| refused(format!("axis {axis}"), &format!("axes of {ty}, each once")))?;
            Ok::<_, GraphError>((axes[..contraction.batch.len()].to_vec(), axes[contraction.batch.len()..].to_vec()))
        };
        let (a_batch, a_sum) = resolved(&a_ty, |pair| pair.0)?;
        let (b_batch, b_sum) = resolved(&b_ty, |pair| pair.1)?;
        for (own, other) in a_batch.iter().chain(&a_sum).zip(b_batch.iter().chain(&b_sum)) {
            if a_ty.shape[*own] != b_ty.shape[*other] {
                let given = format!("axis {own} of {a_ty} with axis {other} of {b_ty}");
                return Err(refused(given, "axes of equal extents"));
            }
        }
        let left = |ty: &TensorType, batch: &[usize], sum: &[usize]| -> Vec<usize> {
            (0..ty.rank()).filter(|axis| !batch.contains(axis) && !sum.contains(axis)).collect()
        };
        let (a_free, b_free) = (left(&a_ty, &a_batch, &a_sum), left(&b_ty, &b_batch, &b_sum));
        let extents =
            |ty: &TensorType, axes: &[usize]| -> Vec<Dim> { axes.iter().map(|axis| ty.shape[*axis].clone()).collect() };
        let mut shape = extents(&a_ty, &a_batch);
        let matrices = |rows: &[Dim], columns: &[Dim]| {
            let sides = [rows, columns].map(|axes| axes.iter().cloned().product::<Dim>());
            shape.iter().cloned().chain(sides).collect::<Vec<_>>()
        };
        let sum = extents(&a_ty, &a_sum);
        let a_shape = matrices(&extents(&a_ty, &a_free), &sum);
        let b_shape = matrices(&sum, &extents(&b_ty, &b_free));
        let a = self.transpose(a, &[a_batch, a_free.clone(), a_sum].concat())?;
        let a = self.reshape(a, a_shape)?;
        let b = self.transpose(b, &[b_batch, b_sum, b_free.clone()].concat())?;
        let b = self.reshape(b, b_shape)?;
        let product = self.matmul(a, b)?;
        shape.extend(extents(&a_ty, &a_free).into_iter().chain(extents(&b_ty, &b_free)));
        self.reshape(product, shape)
    }

    /// Checks the shapes of a layer, so that errors name its own operands: its product has a weight that lies the other way.
    fn expect_layer(&self, op: &str, x: Tensor, weight: Tensor, bias: Option<Tensor>) -> Result<(), GraphError> {
        let (x, weight) = (self.operand(op, x)?, self.operand(op, weight)?);
        let wrong = |error| GraphError::Op { op: op.to_owned(), error };
        let [rows, columns] = weight.shape.as_slice() else {
            return Err(wrong(shape_error("weight", weight, "a matrix, [N, K]".to_owned())));
        };
        let [_, .., depth] = x.shape.as_slice() else {
            return Err(wrong(shape_error("x", x, "a matrix, or a batch of them".to_owned())));
        };
        if columns != depth {
            let (wanted, not) = rather_than(depth, columns);
            let expected = format!("[N, {wanted}], with as many columns as `x`, which is {x}, has{not}");
            return Err(wrong(shape_error("weight", weight, expected)));
        }
        match bias {
            Some(bias) => expect_shape("bias", self.operand(op, bias)?, std::slice::from_ref(rows)).map_err(wrong),
            None => Ok(()),
        }
    }

    fn product(&mut self, op: MatMul, a: Tensor, b: Tensor, bias: Option<Tensor>) -> Result<Tensor, GraphError> {
        let (a, b) = (self.repeated(a, b)?, self.repeated(b, a)?);
        let inputs: Vec<_> = [Some(a), Some(b), bias].into_iter().flatten().collect();
        self.add_one(op, &inputs)
    }

    /// `operand` with its leading axes as those of its product with `other`, if some of them are repeated and some are not: kernels step through batches by one stride.
    fn repeated(&mut self, operand: Tensor, other: Tensor) -> Result<Tensor, GraphError> {
        let leading = |ty: &TensorType| ty.shape[..ty.rank().saturating_sub(2)].to_vec();
        let (ty, other) = (self.type_of(operand)?.clone(), leading(self.type_of(other)?));
        let own = leading(&ty);
        // What does not broadcast is for the op to refuse.
        let Ok(mut shape) = broadcast([own.as_slice(), &other]) else { return Ok(operand) };
        if !is_partly_repeated(&own, &shape) {
            return Ok(operand);
        }
        shape.extend_from_slice(&ty.shape[ty.rank() - 2..]);
        let spread = self.expand(operand, shape)?;
        self.contiguous(spread)
    }
}

fn refused(given: String, expected: &str) -> GraphError {
    let error = OpError::Attribute { attribute: "contraction", given, expected: expected.to_owned() };
    GraphError::Op { op: "dot_general".to_owned(), error }
}
