//! `grouped_matmul(x, weights, ids)`: rows of x, each times the matrix that its id names, as mixtures of experts want it; and `lora_matmul`, a product with a small correction that each row chooses. Ids stay on the device.

mod candidates;
#[cfg(feature = "cpu")]
mod host;

use super::types::{Types, usual};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::ops::support::{expect_element, expect_inputs, expect_one_of, expect_shape, shape_error};
use crate::types::{ElementType, TensorType};

use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};

/// `[T, K]` by `[E, K, N]` and ids `[T]` of `u32` to `[T, N]`: row t is row t of x times the matrix `ids[t]`, or zeros if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupedMatMul;

/// The small product that is added to a row: down to a few elements, and up again.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct Adapters<T = Tensor> {
    /// `[E, K, R]`, a matrix for each adapter.
    pub down: T,
    /// `[E, R, N]`
    pub up: T,
    /// Multiplies what an adapter adds.
    pub scale: f64,
}

impl Op for GroupedMatMul {
    fn name(&self) -> &'static str {
        "grouped_matmul"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=3)?;
        let (x, weights, ids) = (&inputs[0], &inputs[1], &inputs[2]);
        expect_one_of("x", x, ElementType::is_float)?;
        let out = usual(x.element, weights.element);
        Types::new(x, weights, out)?;
        let [rows, depth] = x.shape.as_slice() else {
            return Err(shape_error("x", x, "a matrix".to_owned()));
        };
        let fits = matches!(weights.shape.as_slice(), [_, own, _] if own == depth);
        if !fits {
            return Err(shape_error(
                "weights",
                weights,
                format!("matrices of {depth} rows, as many as {x} has columns"),
            ));
        }
        expect_element("ids", ids, U32)?;
        expect_shape("ids", ids, std::slice::from_ref(rows))?;
        Ok(vec![TensorType { element: out, shape: vec![rows.clone(), weights.shape[2].clone()] }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, weights, ids) = (&inputs[0], &inputs[1], &inputs[2]);
        let (k, n) = (x.shape[1], outputs[0][1]);
        let element = |row: usize, column: usize| {
            let id = ids.values[row];
            if id >= weights.shape[0] as f64 {
                return 0.0;
            }
            let first = id as usize * k * n + column;
            (0..k).map(|i| x.values[row * k + i] * weights.values[first + i * n]).sum()
        };
        let values = (0..outputs[0][0]).flat_map(|row| (0..n).map(move |column| (row, column)));
        let values = values.map(|(row, column)| element(row, column)).collect();
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim {
        outputs[0].elements() * inputs[0].shape[1].clone() * 2
    }

    fn kind(&self) -> OpKind<'_> {
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "nothing is added"))]
        let mut candidates = candidates::all();
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::ByGroup));
        OpKind::Kernels(candidates)
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Each row of `x` times the matrix of `weights` that its id names: `x` is `[.., K]`, `weights` `[E, K, N]` and `ids` `[..]`, of integers in any order; the result is `[.., N]`. An id below 0, or of E and more, gives a row of
    /// zeros. Weights that are stored as `[E, N, K]` are transposed, which costs nothing.
    ///
    /// Elements are those of [`Graph::matmul`] that are floats. Rows are sorted by their ids on the device, unless they are so few that each reads its matrix by itself.
    ///
    /// # Errors
    /// The elements are no such floats or the ids no integers, or the shapes do not fit.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let shape = |extents: &[usize]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
    /// let x = g.input("x", ElementType::F32, shape(&[2, 5, 8]))?;
    /// let experts = g.input("experts", ElementType::F32, shape(&[4, 8, 16]))?;
    /// let ids = g.input("ids", ElementType::I32, shape(&[2, 5]))?;
    /// let y = g.grouped_matmul(x, experts, ids)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[2, 5, 16]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn grouped_matmul(&mut self, x: Tensor, weights: Tensor, ids: Tensor) -> Result<Tensor, GraphError> {
        let refused = |error| GraphError::Op { op: "grouped_matmul".to_owned(), error };
        let (ty, of_weights, of_ids) = (
            self.operand("grouped_matmul", x)?.clone(),
            self.operand("grouped_matmul", weights)?.clone(),
            self.operand("grouped_matmul", ids)?.clone(),
        );
        let Some((depth, leading)) = ty.shape.split_last() else {
            return Err(refused(shape_error("x", &ty, "one axis or more".to_owned())));
        };
        expect_shape("ids", &of_ids, leading).map_err(refused)?;
        let Some(columns) = of_weights.shape.get(2).cloned() else {
            return Err(refused(shape_error(
                "weights",
                &of_weights,
                "three axes: groups, rows and columns".to_owned(),
            )));
        };
        let ids = self.as_groups("grouped_matmul", ids)?;
        let rows: Dim = leading.iter().cloned().product();
        let x = self.reshape(x, vec![rows.clone(), depth.clone()])?;
        let ids = self.reshape(ids, vec![rows])?;
        let y = self.add_one(GroupedMatMul, &[x, weights, ids])?;
        self.reshape(y, leading.iter().cloned().chain([columns]).collect::<Vec<_>>())
    }

    /// `x weight^T` with a weight of `[N, K]`, plus for each row what its adapter adds: `scale (x down_i) up_i` for the adapter i that `ids` name, `[..]` for an `x` of `[.., K]`. A row whose id is below 0, or of E and more, has no
    /// adapter. So rows of many users are one product.
    ///
    /// # Errors
    /// As [`Graph::linear`] and [`Graph::grouped_matmul`].
    ///
    /// ```
    /// use trefoil_graph::ops::Adapters;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let shape = |extents: &[usize]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
    /// let x = g.input("x", ElementType::F32, shape(&[5, 64]))?;
    /// let weight = g.input("weight", ElementType::F32, shape(&[32, 64]))?;
    /// let adapters = Adapters {
    ///     down: g.input("down", ElementType::F32, shape(&[3, 64, 4]))?,
    ///     up: g.input("up", ElementType::F32, shape(&[3, 4, 32]))?,
    ///     scale: 0.5,
    /// };
    /// let ids = g.input("ids", ElementType::I32, shape(&[5]))?;
    /// let y = g.lora_matmul(x, weight, adapters, ids)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[5, 32]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn lora_matmul(
        &mut self,
        x: Tensor,
        weight: Tensor,
        adapters: Adapters<Tensor>,
        ids: Tensor,
    ) -> Result<Tensor, GraphError> {
        const OP: &str = "lora_matmul";
        let y = self.linear(x, weight, None, super::Activation::Identity)?;
        if let [leading @ .., _] = self.operand(OP, x)?.shape.as_slice() {
            expect_shape("ids", self.operand(OP, ids)?, leading)
                .map_err(|error| GraphError::Op { op: OP.to_owned(), error })?;
        }
        // Once for both products.
        let ids = self.as_groups(OP, ids)?;
        let down = self.grouped_matmul(x, adapters.down, ids)?;
        let up = self.grouped_matmul(down, adapters.up, ids)?;
        let scale = self.scalar(adapters.scale, self.type_of(up)?.element)?;
        let added = self.mul(up, scale)?;
        self.add(y, added)
    }

    /// Ids as `u32`, of which those that are negative or too large name no group.
    fn as_groups(&mut self, op: &str, ids: Tensor) -> Result<Tensor, GraphError> {
        match self.operand(op, ids)?.element {
            U32 => Ok(ids),
            I32 => self.bitcast(ids, U32),
            U8 | U16 => self.cast(ids, U32),
            I8 | I16 => {
                let words = self.cast(ids, I32)?;
                self.bitcast(words, U32)
            }
            given @ (I64 | U64) => {
                // A negative one is large, and what is too large for a word is the largest.
                let ids = if given == I64 { self.bitcast(ids, U64)? } else { ids };
                let most = self.constant(U64, (), &[u64::from(u32::MAX)])?;
                let ids = self.minimum(ids, most)?;
                self.cast(ids, U32)
            }
            given => {
                let expected = format!("an integer ({}; `cast` converts)", ElementType::list(ElementType::is_integer));
                let error = OpError::ElementType { input: "ids", given, expected };
                Err(GraphError::Op { op: op.to_owned(), error })
            }
        }
    }
}
