//! Values on the host: what runs and models are given, and what runs give back.

use std::borrow::Cow;

use bytemuck::Pod;

use crate::types::{ElementType, with_element_types};

/// A Rust type that is the memory form of an element type.
pub trait HostElement: Pod {
    /// The element type.
    const ELEMENT: ElementType;

    /// The value; 64-bit integers of more than 53 bits are rounded.
    fn to_f64(self) -> f64;
}

macro_rules! host_elements {
    ($($(#[$doc:meta])* $variant:ident = $host:ty, $to_f64:expr;)*) => {
        $(impl HostElement for $host {
            const ELEMENT: ElementType = ElementType::$variant;

            fn to_f64(self) -> f64 {
                let convert: fn($host) -> f64 = $to_f64;
                convert(self)
            }
        })*

        /// Elements in memory, as `f64`; 64-bit integers of more than 53 bits are rounded.
        pub(crate) fn to_f64(element: ElementType, bytes: &[u8]) -> Vec<f64> {
            match element {
                $(ElementType::$variant => {
                    bytes.chunks_exact(size_of::<$host>()).map(|one| bytemuck::pod_read_unaligned::<$host>(one).to_f64()).collect()
                })*
                ElementType::Bool => {
                    bytes.chunks_exact(4).map(|word| f64::from(u8::from(word.iter().any(|byte| *byte != 0)))).collect()
                }
            }
        }

        /// The first element in memory, as [`to_f64`] gives it.
        pub(crate) fn one_to_f64(element: ElementType, bytes: &[u8]) -> Option<f64> {
            match element {
                $(ElementType::$variant => {
                    bytes.first_chunk::<{ size_of::<$host>() }>().map(|one| bytemuck::cast::<_, $host>(*one).to_f64())
                })*
                ElementType::Bool => bytes.first_chunk::<4>().map(|word| f64::from(u8::from(*word != [0; 4]))),
            }
        }
    };
}

with_element_types!(host_elements);

/// Elements of a tensor, the last axis fastest: borrowed, except bools, which become words.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    pub(crate) element: ElementType,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl<'a> Data<'a> {
    /// Elements as they lie in memory, little-endian (of bools, words that are 1 or 0); `None` if the bytes are no whole number of them.
    pub fn from_bytes(element: ElementType, bytes: &'a [u8]) -> Option<Self> {
        let whole = (bytes.len() as u64).is_multiple_of(element.bytes());
        whole.then_some(Self { element, bytes: Cow::Borrowed(bytes) })
    }

    /// The same elements, borrowed from this.
    pub(crate) fn borrowed(&self) -> Data<'_> {
        Data { element: self.element, bytes: Cow::Borrowed(&self.bytes) }
    }

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

/// Room for elements of a tensor in the caller's memory, the last axis fastest.
#[derive(Debug)]
pub struct DataMut<'a> {
    pub(crate) element: ElementType,
    pub(crate) bytes: &'a mut [u8],
}

impl<'a> DataMut<'a> {
    /// Room for elements as they lie in memory, little-endian (of bools, words that are 1 or 0); `None` if the bytes are no whole number of them.
    pub fn from_bytes(element: ElementType, bytes: &'a mut [u8]) -> Option<Self> {
        let whole = (bytes.len() as u64).is_multiple_of(element.bytes());
        whole.then_some(Self { element, bytes })
    }

    /// For how many elements there is room.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 / self.element.bytes()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a, T: HostElement> From<&'a mut [T]> for DataMut<'a> {
    fn from(room: &'a mut [T]) -> Self {
        Self { element: T::ELEMENT, bytes: bytemuck::cast_slice_mut(room) }
    }
}

impl<'a, T: HostElement, const N: usize> From<&'a mut [T; N]> for DataMut<'a> {
    fn from(room: &'a mut [T; N]) -> Self {
        Self::from(room.as_mut_slice())
    }
}

impl<'a, T: HostElement> From<&'a mut Vec<T>> for DataMut<'a> {
    fn from(room: &'a mut Vec<T>) -> Self {
        Self::from(room.as_mut_slice())
    }
}

impl<'a> From<&'a [bool]> for Data<'a> {
    fn from(values: &'a [bool]) -> Self {
        let bytes = values.iter().flat_map(|value| u32::from(*value).to_le_bytes()).collect();
        Self { element: ElementType::Bool, bytes: Cow::Owned(bytes) }
    }
}
