//! Leaves: tensors that are given, not computed.

use std::sync::Arc;

use super::SEED;
use crate::compile::fuse::kernel::fingerprint_of;
use crate::dim::Dim;
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::ops::support::expect_extents;
use crate::types::TensorType;

/// What a leaf stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum LeafKind {
    /// Given anew for each run.
    Input,
    /// The words that random numbers depend on: given for a run, or counted on from run to run.
    Seed,
    /// Left by the run before, in the executable; zero before the first one.
    State,
    /// Given once, by a model.
    Param,
    /// Given with the graph, as bytes of its element type.
    Constant(Arc<[u8]>),
}

/// A tensor that is given, not computed.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// By whom it is given.
    pub kind: LeafKind,
    /// What it is.
    pub ty: TensorType,
}

impl Op for Leaf {
    fn name(&self) -> &'static str {
        match self.kind {
            LeafKind::Input => "input",
            LeafKind::Seed => SEED,
            LeafKind::State => "state",
            LeafKind::Param => "param",
            LeafKind::Constant(_) => "constant",
        }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = vec![("type", self.ty.to_string())];
        if let LeafKind::Constant(bytes) = &self.kind {
            attributes.push(("values", format!("{:016x}", fingerprint_of(bytes.iter().copied()))));
        }
        attributes
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        if !inputs.is_empty() {
            return Err(OpError::InputCount { given: inputs.len(), expected: 0 });
        }
        expect_extents(&self.ty.shape)?;
        Ok(vec![self.ty.clone()])
    }

    fn reference(&self, _: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        Vec::new()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Leaf
    }
}
