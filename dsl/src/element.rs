//! Types that buffers are made of, and what generic kernels may do with them.

use std::fmt;

use trefoil_codegen::ir::constant::single_of;

use crate::vector::Lane;

/// A type that buffers hold: plain data, laid out alike on the host and on every device.
///
/// Scalars and vectors are elements; `#[device]` makes a struct one. As a bound of a kernel's type parameter it stands for a
/// scalar that is moved about and not computed with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of a buffer",
    label = "an element is expected",
    note = "elements are f32, f16, bf16, f64, integers of 8 to 64 bits, vectors of these, and structs that carry #[device]; keep a bool or a usize as a u32"
)]
pub trait Element: bytemuck::Pod + Lane + Send + Sync + 'static {}

impl Element for f32 {}
impl Element for i32 {}
impl Element for u32 {}
impl Element for half::f16 {}
impl Element for half::bf16 {}
impl Element for i8 {}
impl Element for u8 {}
impl Element for i16 {}
impl Element for u16 {}
impl Element for i64 {}
impl Element for u64 {}
impl Element for f64 {}

/// Types of which a kernel that is generic over them can write constants.
pub trait Literal: Copy + fmt::Debug + fmt::Display + crate::param::Param {
    /// The value of this type nearest to `value`: `T::lit(0.5)`. In a kernel, `value` is a literal.
    fn lit(value: f64) -> Self;
}

/// Floating-point elements: `f32`, `f16`, `bf16` and `f64`. A kernel that is generic over them computes in `f32`.
pub trait Float: Element + Literal {
    /// The same value as `f32`: exactly, but for `f64`, of which it is the nearest.
    fn to_f32(self) -> f32;
    /// The nearest value of this type, ties to even; what is too large becomes infinite.
    fn from_f32(value: f32) -> Self;
}

impl Literal for f32 {
    fn lit(value: f64) -> Self {
        value as f32
    }
}

impl Literal for half::f16 {
    fn lit(value: f64) -> Self {
        half::f16::from_f32(single_of(value))
    }
}

impl Literal for f64 {
    fn lit(value: f64) -> Self {
        value
    }
}

impl Float for f64 {
    fn to_f32(self) -> f32 {
        self as f32
    }

    fn from_f32(value: f32) -> Self {
        value.into()
    }
}

impl Float for f32 {
    fn to_f32(self) -> f32 {
        self
    }

    fn from_f32(value: f32) -> Self {
        value
    }
}

impl Literal for half::bf16 {
    fn lit(value: f64) -> Self {
        half::bf16::from_f32(single_of(value))
    }
}

impl Float for half::bf16 {
    fn to_f32(self) -> f32 {
        half::bf16::to_f32(self)
    }

    fn from_f32(value: f32) -> Self {
        half::bf16::from_f32(value)
    }
}

impl Float for half::f16 {
    fn to_f32(self) -> f32 {
        half::f16::to_f32(self)
    }

    fn from_f32(value: f32) -> Self {
        half::f16::from_f32(value)
    }
}

/// Elements that kernels do arithmetic on: floats and integers of all widths, those of 64 bits where the device has them.
pub trait Number:
    Element
    + Literal
    + PartialOrd
    + crate::math::Lanes<Scalar = Self>
    + crate::math::Ordered
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
    + std::ops::AddAssign
    + std::ops::SubAssign
    + std::ops::MulAssign
    + std::ops::DivAssign
    + std::ops::RemAssign
{
}

macro_rules! integer_literals {
    ($($ty:ty),*) => {
        $(impl Literal for $ty {
            fn lit(value: f64) -> Self {
                value as $ty
            }
        })*
    };
}

integer_literals!(i8, u8, i16, u16, i32, u32, i64, u64);

impl Number for f32 {}
impl Number for i32 {}
impl Number for u32 {}
impl Number for half::f16 {}
impl Number for half::bf16 {}
impl Number for i8 {}
impl Number for u8 {}
impl Number for i16 {}
impl Number for u16 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u64 {}

/// Integer elements, with what a [`Number`] has, and bits.
///
/// ```
/// use trefoil_dsl::prelude::*;
///
/// /// The bits of `x` from `first` on, `count` of them.
/// #[device]
/// fn bits<T: Int>(x: T, first: u32, count: u32) -> T {
///     (x >> first) & !(!T::lit(0.0) << count)
/// }
///
/// assert_eq!(bits(0b1011_0110u32, 2, 4), 0b1101);
/// assert_eq!(bits(-1i32, 0, 3), 7);
/// ```
pub trait Int:
    Number
    + crate::math::Integer
    + Eq
    + Ord
    + std::ops::BitAnd<Output = Self>
    + std::ops::BitOr<Output = Self>
    + std::ops::BitXor<Output = Self>
    + std::ops::Not<Output = Self>
    + std::ops::Shl<u32, Output = Self>
    + std::ops::Shr<u32, Output = Self>
    + std::ops::BitAndAssign
    + std::ops::BitOrAssign
    + std::ops::BitXorAssign
    + std::ops::ShlAssign<u32>
    + std::ops::ShrAssign<u32>
{
}

impl Int for i8 {}
impl Int for u8 {}
impl Int for i16 {}
impl Int for u16 {}
impl Int for i32 {}
impl Int for u32 {}
impl Int for i64 {}
impl Int for u64 {}

/// The scalar type of a generic launch, which picks the listed instance; `None` for anything but a scalar.
#[doc(hidden)]
pub fn scalar_name<T: 'static>() -> Option<&'static str> {
    use std::any::TypeId;
    let id = TypeId::of::<T>();
    [
        (TypeId::of::<f32>(), "f32"),
        (TypeId::of::<i32>(), "i32"),
        (TypeId::of::<u32>(), "u32"),
        (TypeId::of::<half::f16>(), "f16"),
        (TypeId::of::<half::bf16>(), "bf16"),
        (TypeId::of::<i8>(), "i8"),
        (TypeId::of::<u8>(), "u8"),
        (TypeId::of::<i16>(), "i16"),
        (TypeId::of::<u16>(), "u16"),
        (TypeId::of::<f64>(), "f64"),
        (TypeId::of::<i64>(), "i64"),
        (TypeId::of::<u64>(), "u64"),
    ]
    .into_iter()
    .find_map(|(known, name)| (known == id).then_some(name))
}
