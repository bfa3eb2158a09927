//! Values on the host: what runs and models are given, and what runs give back.

use std::borrow::Cow;

use bytemuck::Pod;
use half::f16;

use crate::types::ElementType;

/// A Rust type that is the memory form of an element type.
pub trait HostElement: Pod {
    /// The element type.
    const ELEMENT: ElementType;
}

impl HostElement for f32 {
    const ELEMENT: ElementType = ElementType::F32;
}
impl HostElement for f16 {
    const ELEMENT: ElementType = ElementType::F16;
}
impl HostElement for i32 {
    const ELEMENT: ElementType = ElementType::I32;
}
impl HostElement for u32 {
    const ELEMENT: ElementType = ElementType::U32;
}

/// Elements of a tensor, the last axis fastest: borrowed, except bools, which become words.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    pub(crate) element: ElementType,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl Data<'_> {
    /// What the elements are.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 / self.element.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a, T: HostElement> From<&'a [T]> for Data<'a> {
    fn from(values: &'a [T]) -> Self {
        Self { element: T::ELEMENT, bytes: Cow::Borrowed(bytemuck::cast_slice(values)) }
    }
}

impl<'a, T: HostElement, const N: usize> From<&'a [T; N]> for Data<'a> {
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T: HostElement> From<&'a Vec<T>> for Data<'a> {
    fn from(values: &'a Vec<T>) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a> From<&'a [bool]> for Data<'a> {
    fn from(values: &'a [bool]) -> Self {
        let bytes = values.iter().flat_map(|value| u32::from(*value).to_le_bytes()).collect();
        Self { element: ElementType::Bool, bytes: Cow::Owned(bytes) }
    }
}

/// Elements in memory, as `f64`.
pub(crate) fn to_f64(element: ElementType, bytes: &[u8]) -> Vec<f64> {
    let words = || bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    match element {
        ElementType::F32 => words().map(|word| f64::from(f32::from_bits(word))).collect(),
        ElementType::I32 => words().map(|word| f64::from(word.cast_signed())).collect(),
        ElementType::U32 => words().map(f64::from).collect(),
        ElementType::Bool => words().map(|word| f64::from(u8::from(word != 0))).collect(),
        ElementType::F16 => bytes.chunks_exact(2).map(|half| f16::from_le_bytes([half[0], half[1]]).to_f64()).collect(),
    }
}
