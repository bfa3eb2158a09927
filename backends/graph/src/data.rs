//! Values on the host: what runs and models are given, and what runs give back.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use bytemuck::Pod;

use trefoil_dsl::pinned::PinnedBuffer;

use crate::error::{Error, Result};
use crate::types::{ElementType, with_element_types};

/// A Rust type that is the memory form of an element type.
pub trait HostElement: Pod + Send + Sync + fmt::Debug {
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

impl<'a, T, const N: usize> From<&'a [T; N]> for Data<'a>
where
    Self: From<&'a [T]>,
{
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T> From<&'a Vec<T>> for Data<'a>
where
    Self: From<&'a [T]>,
{
    fn from(values: &'a Vec<T>) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T: HostElement> From<&'a PinnedBuffer<T>> for Data<'a> {
    fn from(values: &'a PinnedBuffer<T>) -> Self {
        Self::from(&**values)
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

impl<'a, T: HostElement> From<&'a mut PinnedBuffer<T>> for DataMut<'a> {
    fn from(room: &'a mut PinnedBuffer<T>) -> Self {
        Self::from(&mut **room)
    }
}

/// Elements of a tensor, or room for them, that are handed over and come back: for runs that go on while the program does something else. Made of a `Vec` or a [`PinnedBuffer`] and turned into it again, in the same memory.
#[derive(Debug)]
pub struct OwnedData(Box<dyn Owned>);

/// A list of some element type, or a pinned buffer of them.
trait Owned: Any + Send + Sync + fmt::Debug {
    /// What it is, for messages.
    fn name(&self) -> &'static str;
    fn data(&self) -> Data<'_>;
    fn data_mut(&mut self) -> DataMut<'_>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

const LIST: &str = "list";
const PINNED: &str = "pinned buffer";

macro_rules! owned {
    ($($held:ident: $name:expr),*) => {
        $(impl<T: HostElement> Owned for $held<T> {
            fn name(&self) -> &'static str {
                $name
            }

            fn data(&self) -> Data<'_> {
                self.into()
            }

            fn data_mut(&mut self) -> DataMut<'_> {
                self.into()
            }

            fn into_any(self: Box<Self>) -> Box<dyn Any> {
                self
            }
        }

        impl<T: HostElement> From<$held<T>> for OwnedData {
            fn from(elements: $held<T>) -> Self {
                Self(Box::new(elements))
            }
        })*
    };
}

owned!(Vec: LIST, PinnedBuffer: PINNED);

/// Words that are 1 or 0.
#[derive(Debug)]
struct Bools(Vec<u32>);

impl Owned for Bools {
    fn name(&self) -> &'static str {
        LIST
    }

    fn data(&self) -> Data<'_> {
        Data { element: ElementType::Bool, ..Data::from(&self.0) }
    }

    fn data_mut(&mut self) -> DataMut<'_> {
        DataMut { element: ElementType::Bool, ..DataMut::from(&mut self.0) }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.0)
    }
}

impl OwnedData {
    /// Bools, as words that are 1 or 0.
    pub fn bools(words: Vec<u32>) -> Self {
        Self(Box::new(Bools(words)))
    }

    /// The elements.
    pub fn data(&self) -> Data<'_> {
        self.0.data()
    }

    /// The elements, to be written.
    pub fn data_mut(&mut self) -> DataMut<'_> {
        self.0.data_mut()
    }

    /// The list that it was made of; of bools, that of their words.
    ///
    /// # Errors
    /// The elements are of another type, or it was made of a [`PinnedBuffer`].
    pub fn into_vec<T: HostElement>(self) -> Result<Vec<T>> {
        self.into_what_it_was(LIST, T::ELEMENT)
    }

    /// The pinned buffer that it was made of.
    ///
    /// # Errors
    /// The elements are of another type, or it was made of a `Vec`.
    pub fn into_pinned<T: HostElement>(self) -> Result<PinnedBuffer<T>> {
        self.into_what_it_was(PINNED, T::ELEMENT)
    }

    fn into_what_it_was<C: 'static>(self, wanted: &'static str, element: ElementType) -> Result<C> {
        let (given, given_element) = (self.0.name(), self.0.data().element);
        let other = |_| Error::HandedOver { given, given_element, wanted, element };
        Ok(*self.0.into_any().downcast().map_err(other)?)
    }
}

impl<'a> From<&'a [bool]> for Data<'a> {
    fn from(values: &'a [bool]) -> Self {
        let bytes = values.iter().flat_map(|value| u32::from(*value).to_le_bytes()).collect();
        Self { element: ElementType::Bool, bytes: Cow::Owned(bytes) }
    }
}
