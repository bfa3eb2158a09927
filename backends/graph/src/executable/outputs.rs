//! What is read back: elements with their type and shape.

use super::unknown;
use crate::data::{HostElement, to_f64};
use crate::error::{Result, check_read};
use crate::op::HostTensor;
use crate::types::{ElementType, elements_of};

/// What a run gives: the outputs that it takes, in the order in which they were asked for, or named by the graph.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub(super) tensors: Vec<Elements>,
}

/// Elements of a tensor that were read back.
#[derive(Clone, Debug)]
pub struct Elements {
    /// `output` or `state`, and its name.
    of: (&'static str, String),
    element: ElementType,
    shape: Vec<usize>,
    /// Aligned for every element type; the last word may be used in part.
    words: Vec<u64>,
    bytes: usize,
}

impl Elements {
    /// Room for a tensor.
    pub(super) fn new(of: (&'static str, &str), element: ElementType, shape: Vec<usize>) -> Self {
        let bytes = elements_of(&shape) * element.bytes() as usize;
        let words = vec![0; bytes.div_ceil(size_of::<u64>())];
        Self { of: (of.0, of.1.to_owned()), element, shape, words, bytes }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    fn check(&self, wanted: ElementType) -> Result<()> {
        check_read(self.of.0, &self.of.1, self.element, wanted)
    }

    /// The name of the output or state.
    pub fn name(&self) -> &str {
        &self.of.1
    }

    /// The elements.
    ///
    /// # Errors
    /// They are of another type.
    pub fn get<T: HostElement>(&self) -> Result<&[T]> {
        self.check(T::ELEMENT)?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// The elements, if they are bools.
    ///
    /// # Errors
    /// They are of another type.
    pub fn get_bools(&self) -> Result<Vec<bool>> {
        self.check(ElementType::Bool)?;
        Ok(bytemuck::cast_slice::<u8, u32>(self.bytes()).iter().map(|word| *word != 0).collect())
    }

    /// The elements as a host tensor, of whatever type they are.
    pub fn host(&self) -> HostTensor {
        HostTensor { shape: self.shape.clone(), values: to_f64(self.element, self.bytes()) }
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = &'a Elements;
    type IntoIter = std::slice::Iter<'a, Elements>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Outputs {
    fn find(&self, name: &str) -> Result<&Elements> {
        let found = self.tensors.iter().find(|elements| elements.of.1 == name);
        found.ok_or_else(|| unknown("output", name, self.iter().map(Elements::name)))
    }

    /// All of them, in their order; an output of which several rows were asked for stands there several times.
    pub fn iter(&self) -> std::slice::Iter<'_, Elements> {
        self.tensors.iter()
    }

    /// The elements of an output; of what was asked for first, if several rows of it were.
    ///
    /// # Errors
    /// There is no such output, or its elements are of another type.
    pub fn get<T: HostElement>(&self, name: &str) -> Result<&[T]> {
        self.find(name)?.get()
    }

    /// The elements of an output of bools.
    ///
    /// # Errors
    /// There is no such output, or its elements are of another type.
    pub fn get_bools(&self, name: &str) -> Result<Vec<bool>> {
        self.find(name)?.get_bools()
    }

    /// An output as a host tensor, whatever its elements.
    ///
    /// # Errors
    /// There is no such output.
    pub fn host(&self, name: &str) -> Result<HostTensor> {
        Ok(self.find(name)?.host())
    }

    /// The extents of an output in this run.
    ///
    /// # Errors
    /// There is no such output.
    pub fn shape(&self, name: &str) -> Result<&[usize]> {
        Ok(self.find(name)?.shape())
    }
}
