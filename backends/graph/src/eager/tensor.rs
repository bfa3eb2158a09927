//! Tensors on the device.

use std::fmt;
use std::sync::{Arc, OnceLock};

use trefoil_dsl::device::MemoryRange;

use super::Eager;
use super::pool::Buffer;
use crate::data::{HostElement, to_f64};
use crate::error::{Error, Result, at, check_read};
use crate::op::HostTensor;
use crate::types::{ElementType, Layout, TensorType, elements_of};

/// A tensor on a device. Clones are the same tensor, which nothing ever changes; its memory goes back to the pool with the last of them.
///
/// It may be a view: elements of another tensor's memory, otherwise arranged, which it then keeps alive as a whole.
#[derive(Clone)]
pub struct EagerTensor(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub eager: Eager,
    pub form: Arc<Form>,
    pub buffer: Arc<Buffer>,
    /// What became of the batch that computes it.
    pub outcome: Arc<Outcome>,
    /// What computes it, for errors.
    pub op: &'static str,
}

/// Why a batch did not run, if it did not.
#[derive(Debug, Default)]
pub(super) struct Outcome(pub OnceLock<Error>);

/// What a tensor is, and how it lies in its memory; tensors that are made again and again share it.
#[derive(Debug)]
pub(super) struct Form {
    pub ty: TensorType,
    /// How many elements lie in the memory.
    pub elements: i64,
    /// Where they are, if they are not one after the other from the memory's start.
    pub layout: Option<Layout>,
    /// What tells it from other forms in the key of a call.
    pub key: String,
}

impl Form {
    /// The form of elements of a type in memory with so many elements.
    pub fn new(ty: TensorType, layout: Layout, elements: i64) -> Self {
        let layout = Some(layout).filter(|layout| !layout.is_contiguous(&ty.shape));
        let elements = match &layout {
            Some(_) => elements,
            None => ty.elements().constant().unwrap_or(elements),
        };
        let key = match &layout {
            Some(Layout { offset, strides }) => format!("{ty} of {elements} at {offset} {strides:?}"),
            None => ty.to_string(),
        };
        Self { ty, elements, layout, key }
    }
}

impl fmt::Debug for EagerTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EagerTensor({} on {})", self.ty(), self.0.eager.device().properties().name)
    }
}

impl EagerTensor {
    /// Element type and shape; every extent is a number.
    pub fn ty(&self) -> &TensorType {
        &self.0.form.ty
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.ty().element
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> Vec<usize> {
        self.ty().extents()
    }

    /// Whether it shares its memory with other tensors in an order that is not its own, as a transposed tensor does; reading it to the host copies it first.
    pub fn is_strided(&self) -> bool {
        self.0.form.layout.is_some()
    }

    /// What computes it on which device.
    pub fn eager(&self) -> &Eager {
        &self.0.eager
    }

    /// The elements, the last axis fastest. Submits what was gathered, and waits for it.
    ///
    /// # Errors
    /// The elements are of another type; the op that computes it failed, which the error names; it is a view of more elements than the device holds; the device failed; or a kernel of an op asserted what does not hold ([`trefoil_dsl::Device::reports`]).
    pub fn read<T: HostElement>(&self) -> Result<Vec<T>> {
        self.expect(T::ELEMENT)?;
        let there = self.in_order()?;
        let mut values = vec![T::zeroed(); elements_of(&there.shape())];
        there.download(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// The elements of a tensor of bools.
    ///
    /// # Errors
    /// As [`EagerTensor::read`].
    pub fn read_bools(&self) -> Result<Vec<bool>> {
        self.expect(ElementType::Bool)?;
        let there = self.in_order()?;
        let mut words = vec![0u32; elements_of(&there.shape())];
        there.download(bytemuck::cast_slice_mut(&mut words))?;
        Ok(words.into_iter().map(|word| word != 0).collect())
    }

    /// The elements, whatever they are, as `f64`.
    ///
    /// # Errors
    /// As [`EagerTensor::read`].
    pub fn host(&self) -> Result<HostTensor> {
        let (there, shape) = (self.in_order()?, self.shape());
        let mut bytes = vec![0; elements_of(&shape).saturating_mul(self.element().bytes() as usize)];
        there.download(&mut bytes)?;
        Ok(HostTensor { shape, values: to_f64(self.element(), &bytes) })
    }

    fn expect(&self, wanted: ElementType) -> Result<()> {
        check_read("the result of", self.0.op, self.element(), wanted)
    }

    /// The same elements one after the other in memory. A view may have more of them than any memory holds, so that only those of this one are counted on the host.
    fn in_order(&self) -> Result<Self> {
        if self.is_strided() { self.0.eager.contiguous(self) } else { Ok(self.clone()) }
    }

    /// Reads a tensor that is not strided.
    fn download(&self, bytes: &mut [u8]) -> Result<()> {
        let eager = &self.0.eager;
        eager.submit();
        self.check()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let memory = self.0.buffer.piece()?.memory.clone();
        let range = MemoryRange { memory, offset: 0, bytes: bytes.len() as u64 };
        eager.device().backend().read(&range, bytes).map_err(at("the result of", self.0.op))?;
        Ok(eager.device().hear()?)
    }

    /// Says so if the batch that computes it did not run.
    pub(super) fn check(&self) -> Result<()> {
        let failed = |error: &Error| Error::NotComputed { op: self.0.op, error: Box::new(error.clone()) };
        self.0.outcome.0.get().map_or(Ok(()), |error| Err(failed(error)))
    }
}
