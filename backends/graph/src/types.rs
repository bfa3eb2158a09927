//! Element types, shapes and layouts of tensors.

use std::convert::Infallible;
use std::fmt;

use serde::{Deserialize, Serialize};
use trefoil_codegen::ir::{Literal, Scalar};

use crate::dim::{Dim, DimError, Extents};

/// The table of element types, from which everything about them follows: calls a macro with a row for each. The variant's name is that of the IR's scalar; beside
/// it stands the Rust type that is its memory form, with how a value of it becomes an `f64`.
macro_rules! with_element_types {
    ($callback:ident) => {
        $callback! {
            /// 32-bit float.
            F32 = f32, f64::from;
            /// 16-bit float; computed with in 32 bits.
            F16 = half::f16, half::f16::to_f64;
            /// 16-bit float with the range of 32 bits; computed with in 32 bits.
            BF16 = half::bf16, half::bf16::to_f64;
            /// 64-bit float.
            F64 = f64, f64::from;
            /// 8-bit signed integer.
            I8 = i8, f64::from;
            /// 8-bit unsigned integer.
            U8 = u8, f64::from;
            /// 16-bit signed integer.
            I16 = i16, f64::from;
            /// 16-bit unsigned integer.
            U16 = u16, f64::from;
            /// 32-bit signed integer.
            I32 = i32, f64::from;
            /// 32-bit unsigned integer.
            U32 = u32, f64::from;
            /// 64-bit signed integer.
            I64 = i64, |value| value as f64;
            /// 64-bit unsigned integer.
            U64 = u64, |value| value as f64;
        }
    };
}
pub(crate) use with_element_types;

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident = $host:ty, $to_f64:expr;)*) => {
        /// What a tensor's elements are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
            /// True or false; in memory a 32-bit word, 1 or 0.
            Bool,
        }

        impl ElementType {
            /// Every element type.
            pub const ALL: [Self; [$(Self::$variant,)* Self::Bool].len()] = [$(Self::$variant,)* Self::Bool];

            /// The IR's type of its values.
            pub const fn scalar(self) -> Scalar {
                match self {
                    $(Self::$variant => Scalar::$variant,)*
                    Self::Bool => Scalar::Bool,
                }
            }
        }
    };
}

with_element_types!(element_types);

impl ElementType {
    /// How it lies in memory.
    pub const fn stored(self) -> Scalar {
        match self.scalar() {
            Scalar::Bool => Scalar::U32,
            scalar => scalar,
        }
    }

    /// What maps compute with: 16-bit floats in 32 bits, everything else in itself.
    pub const fn computed(self) -> Scalar {
        let scalar = self.scalar();
        if scalar.is_float() { scalar.widened() } else { scalar }
    }

    /// The type of the same kind with at least 32 bits, for integers: what kernels that take no narrower ones take. Other types are themselves.
    pub const fn widened(self) -> Self {
        match self {
            Self::I8 | Self::I16 => Self::I32,
            Self::U8 | Self::U16 => Self::U32,
            other => other,
        }
    }

    /// Bytes of one element in memory.
    pub const fn bytes(self) -> u64 {
        match self.stored().bytes() {
            Some(bytes) => bytes as u64,
            None => 0,
        }
    }

    /// Its name, as Rust's: `f32`, `bf16`, `i8`, `bool`.
    pub const fn name(self) -> &'static str {
        self.scalar().rust_name()
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        self.scalar().is_float()
    }

    /// Whether it is a float of 16 bits, which is computed as an `f32`.
    pub const fn is_half(self) -> bool {
        self.is_float() && self.scalar().is_narrow()
    }

    /// Whether it is an integer.
    pub const fn is_integer(self) -> bool {
        self.scalar().is_integer()
    }

    /// The names of the types of which something holds, for messages: `f32, f16 or bf16`.
    pub fn list(holds: impl Fn(Self) -> bool) -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|element| holds(*element)).map(Self::name).collect();
        match names.as_slice() {
            [] => "none".to_owned(),
            [only] => (*only).to_owned(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    /// What maps compute with for an element whose bits in memory are these.
    pub(crate) fn literal(self, bits: u64) -> Literal {
        match (self.scalar(), self.stored_literal(bits)) {
            (Scalar::Bool, _) => Literal::Bool(bits != 0),
            (Scalar::F16 | Scalar::BF16, stored) => {
                let wide = stored.as_float().and_then(|value| Literal::float(self.computed(), value));
                wide.unwrap_or(stored)
            }
            (_, stored) => stored,
        }
    }

    /// An element as memory holds it, by its bits there.
    pub(crate) fn stored_literal(self, bits: u64) -> Literal {
        match self.stored() {
            Scalar::F16 => Literal::F16(bits as u16),
            Scalar::BF16 => Literal::BF16(bits as u16),
            Scalar::F32 => Literal::F32(f32::from_bits(bits as u32)),
            Scalar::F64 => Literal::F64(f64::from_bits(bits)),
            scalar => Literal::integer(scalar, bits).unwrap_or(Literal::U32(0)),
        }
    }

    /// The bits in memory of a value that the type has.
    pub(crate) fn bits(self, value: f64) -> u64 {
        let literal = match self.scalar() {
            scalar if scalar.is_float() => Literal::float(scalar, value),
            scalar => Literal::integer(scalar, value as i128 as u64),
        };
        literal.map_or(u64::from(value != 0.0), Literal::bits)
    }

    /// The value of the type, as an `f64`, that an integer becomes when its upper bits are cut off; itself for other types.
    pub(crate) fn wrapped(self, value: i128) -> f64 {
        let wrapped = Literal::integer(self.scalar(), value as u64).and_then(Literal::as_integer);
        wrapped.unwrap_or(value) as f64
    }

    /// The value of a float type that maps make of a number: rounded to what they compute with, then to the type. Itself for other types.
    pub(crate) fn rounded(self, value: f64) -> f64 {
        let computed = Literal::float(self.computed(), value).and_then(Literal::as_float).unwrap_or(value);
        Literal::float(self.scalar(), computed).and_then(Literal::as_float).unwrap_or(value)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// So many elements along one axis more; `None` are more than there are numbers, unless an axis has none.
const fn times(elements: Option<u64>, extent: u64) -> Option<u64> {
    match (elements, extent) {
        (_, 0) | (Some(0), _) => Some(0),
        (Some(elements), extent) => elements.checked_mul(extent),
        (None, _) => None,
    }
}

/// How many elements extents make, at most as many as there are numbers.
///
/// # Errors
/// The first of theirs.
pub(crate) fn counted<E>(extents: impl IntoIterator<Item = Result<u64, E>>) -> Result<u64, E> {
    let all = extents.into_iter().try_fold(Some(1), |elements, extent| Ok(times(elements, extent?)))?;
    Ok(all.unwrap_or(u64::MAX))
}

/// How many elements a shape has, at most as many as there are numbers.
pub(crate) fn elements_of(shape: &[usize]) -> usize {
    let Ok(all) = counted(shape.iter().map(|extent| Ok::<_, Infallible>(*extent as u64)));
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// The extents of a tensor, outermost first.
pub type Shape = Vec<Dim>;

/// What is taken for a [`Shape`]: arrays, slices and vectors of numbers, of symbols or of [`Dim`]s, tuples that mix them, and `()` for a scalar.
///
/// ```
/// use trefoil_graph::{Dim, ElementType, Graph, Symbol};
/// let mut g = Graph::new();
/// let batch = Symbol::new("batch", 1, 64)?;
/// g.param("weight", ElementType::F32, [16, 8])?;
/// g.input("x", ElementType::F32, (&batch, 16, Dim::from(&batch) + 1))?;
/// g.input("factor", ElementType::F32, ())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait IntoShape {
    /// The shape.
    fn into_shape(self) -> Shape;
}

impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::new()
    }
}

macro_rules! tuples {
    ($($dim:ident)+) => {
        impl<$($dim: Into<Dim>),+> IntoShape for ($($dim,)+) {
            fn into_shape(self) -> Shape {
                #[allow(non_snake_case, reason = "a value is named as its type is")]
                let ($($dim,)+) = self;
                vec![$($dim.into()),+]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

impl<D: Into<Dim>> IntoShape for Vec<D> {
    fn into_shape(self) -> Shape {
        self.into_iter().map(Into::into).collect()
    }
}

impl<D: Into<Dim>, const N: usize> IntoShape for [D; N] {
    fn into_shape(self) -> Shape {
        self.into_iter().map(Into::into).collect()
    }
}

impl<D: Clone + Into<Dim>> IntoShape for &[D] {
    fn into_shape(self) -> Shape {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<D: Clone + Into<Dim>, const N: usize> IntoShape for &[D; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<D: Clone + Into<Dim>> IntoShape for &Vec<D> {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

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

    /// The extents of a tensor without symbols; 0 where there is one.
    pub fn extents(&self) -> Vec<usize> {
        self.shape.iter().map(Dim::number).collect()
    }

    /// The extents in a run; 0 where one does not fit the host.
    ///
    /// # Errors
    /// A symbol has no value.
    pub fn shape_in(&self, extents: &Extents) -> Result<Vec<usize>, DimError> {
        self.shape.iter().map(|extent| Ok(usize::try_from(extent.eval(extents)?).unwrap_or(0))).collect()
    }

    /// How many elements.
    pub fn elements(&self) -> Dim {
        self.shape.iter().cloned().product()
    }

    /// The same, with values in the places of those symbols that have one.
    #[must_use]
    pub fn bound(&self, extents: &Extents) -> Self {
        Self { element: self.element, shape: self.shape.iter().map(|extent| extent.bound(extents)).collect() }
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
    /// The same, with values in the places of those symbols that have one.
    #[must_use]
    pub fn bound(&self, extents: &Extents) -> Self {
        let strides = self.strides.iter().map(|stride| stride.bound(extents)).collect();
        Self { offset: self.offset.bound(extents), strides }
    }

    /// Elements one after the other, the last axis fastest.
    pub fn contiguous(shape: &[Dim]) -> Self {
        let mut strides = vec![Dim::from(1i64); shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = &strides[axis] * &shape[axis];
        }
        Self { offset: Dim::from(0i64), strides }
    }

    /// Elements one after the other, `fastest` fastest and the other axes in their order.
    pub(crate) fn contiguous_along(shape: &[Dim], fastest: usize) -> Self {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if fastest < shape.len() {
            order[fastest..].rotate_left(1);
        }
        let moved: Vec<_> = order.iter().map(|axis| shape[*axis].clone()).collect();
        let mut layout = Self::contiguous(shape);
        for (axis, stride) in order.into_iter().zip(Self::contiguous(&moved).strides) {
            layout.strides[axis] = stride;
        }
        layout
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
