//! Element types, shapes and layouts of tensors.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dim::Dim;

/// What a tensor's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ElementType {
    /// 32-bit float.
    F32,
    /// 16-bit float; computed with in 32 bits.
    F16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// True or false; in memory a 32-bit word, 1 or 0.
    Bool,
}

impl ElementType {
    /// Every element type.
    pub const ALL: [Self; 5] = [Self::F32, Self::F16, Self::I32, Self::U32, Self::Bool];

    /// Bytes of one element in memory.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F16 => 2,
            Self::F32 | Self::I32 | Self::U32 | Self::Bool => 4,
        }
    }

    /// Its name: `f32`, `f16`, `i32`, `u32`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        }
    }

    /// `f32` or `f16`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The extents of a tensor, outermost first.
pub type Shape = Vec<Dim>;

/// Element type and shape of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// What its elements are.
    pub element: ElementType,
    /// Its extents, outermost first.
    pub shape: Shape,
}

impl TensorType {
    /// A tensor type.
    pub fn new(element: ElementType, shape: impl IntoIterator<Item = impl Into<Dim>>) -> Self {
        Self { element, shape: shape.into_iter().map(Into::into).collect() }
    }

    /// How many axes it has.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// How many elements.
    pub fn elements(&self) -> Dim {
        self.shape.iter().cloned().product()
    }

    /// How many bytes, without padding.
    pub fn bytes(&self) -> Dim {
        self.elements() * i64::try_from(self.element.bytes()).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        for (axis, extent) in self.shape.iter().enumerate() {
            if axis > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{extent}")?;
        }
        f.write_str("]")
    }
}

/// Where the elements of a tensor lie in the memory that holds it, in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The first element.
    pub offset: Dim,
    /// The distance from one element to the next along each axis; 0 along a broadcast axis.
    pub strides: Vec<Dim>,
}

impl Layout {
    /// Elements one after the other, the last axis fastest.
    pub fn contiguous(shape: &[Dim]) -> Self {
        let mut strides = vec![Dim::from(1i64); shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].clone() * shape[axis].clone();
        }
        Self { offset: Dim::from(0i64), strides }
    }

    /// Whether the elements lie one after the other from the memory's start, the last axis fastest. Strides of axes of extent 1 do not
    /// matter.
    pub fn is_contiguous(&self, shape: &[Dim]) -> bool {
        self.offset.is(0) && self.has_contiguous_strides(shape)
    }

    /// As [`Layout::is_contiguous`], wherever the first element lies.
    pub fn has_contiguous_strides(&self, shape: &[Dim]) -> bool {
        let plain = Self::contiguous(shape);
        self.strides.iter().zip(&plain.strides).zip(shape).all(|((mine, plain), extent)| extent.is(1) || mine == plain)
    }

    /// The layout of a tensor of extents `from`, read as if it had extents `to`, to which `from` broadcasts: repeated axes have stride 0.
    pub fn broadcast(&self, from: &[Dim], to: &[Dim]) -> Self {
        let added = to.len().saturating_sub(from.len());
        let strides = (0..to.len())
            .map(|axis| match axis.checked_sub(added) {
                Some(old) if from[old] == to[axis] => self.strides[old].clone(),
                _ => Dim::from(0i64),
            })
            .collect();
        Self { offset: self.offset.clone(), strides }
    }
}

/// The shape to which shapes broadcast by NumPy's rules: aligned at the last axis, extents equal or 1.
///
/// # Errors
/// The first pair of extents that does not fit, as the axis counted from the last, and both.
pub fn broadcast<'a>(shapes: impl IntoIterator<Item = &'a [Dim]>) -> Result<Shape, (usize, Dim, Dim)> {
    let mut result: Shape = Vec::new();
    for shape in shapes {
        while result.len() < shape.len() {
            result.insert(0, Dim::from(1i64));
        }
        let offset = result.len() - shape.len();
        for (axis, extent) in shape.iter().enumerate() {
            let known = &mut result[offset + axis];
            if known.is(1) {
                *known = extent.clone();
            } else if !extent.is(1) && known != extent {
                return Err((shape.len() - 1 - axis, known.clone(), extent.clone()));
            }
        }
    }
    Ok(result)
}
