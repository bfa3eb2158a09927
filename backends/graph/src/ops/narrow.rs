//! Types of eight bits and fewer, in which numbers are stored but not computed with.
//!
//! A tensor of such a type is one of *codes*: of `u8`, one code in the lower bits of each. [`crate::Graph::encode`] makes codes of numbers and [`crate::Graph::decode`] numbers of codes; both are maps, which fuse with
//! what stands around them. [`crate::Graph::pack_codes`] and [`crate::Graph::unpack_codes`] put as many codes into a byte as fit, the first in the lowest bits, as files have them.
//!
//! Everything is done with the bits of `f32`, since devices may take the smallest floats for 0.

mod body;
mod builders;
mod reference;

use super::support::{expect_element, expect_inputs, expect_one_of};
use crate::dim::Dim;
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::types::{ElementType, TensorType};

use ElementType::{BF16, F16, F32, U8};

/// What a narrow float is.
#[derive(Clone, Copy, Debug)]
struct Float {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    /// The code of the largest number.
    largest: u32,
    /// The code of infinity, if there is one.
    infinity: Option<u32>,
    /// The code of a NaN, to which its sign is added; or what stands for one.
    nan: u32,
    /// Whether what would be minus zero is the only NaN, so that zero has no sign.
    one_zero: bool,
}

/// What a narrow type's codes mean.
#[derive(Clone, Copy, Debug)]
enum Format {
    /// Sign, exponent and mantissa.
    Float(Float),
    /// `2^(code - 127)`; 255 is NaN.
    Scale,
    /// An integer of so many bits.
    Integer { bits: u32, signed: bool },
}

/// A type of eight bits or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Narrow {
    /// Four bits of exponent and three of mantissa, without infinities; numbers up to 448.
    Float8E4M3,
    /// As [`Narrow::Float8E4M3`], with one zero and one NaN; numbers up to 240.
    Float8E4M3Fnuz,
    /// Five bits of exponent and two of mantissa, the upper half of an `f16`; numbers up to 57344.
    Float8E5M2,
    /// As [`Narrow::Float8E5M2`], with one zero, one NaN and no infinities.
    Float8E5M2Fnuz,
    /// Powers of two from 2^-127 to 2^127, without a sign or zero: the scales of blocks.
    Float8E8M0,
    /// Two bits of exponent and one of mantissa, without infinities or NaN: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    Float4E2M1,
    /// -8 to 7.
    I4,
    /// 0 to 15.
    U4,
    /// -2 to 1.
    I2,
    /// 0 to 3.
    U2,
}

impl Narrow {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Float8E4M3,
        Self::Float8E4M3Fnuz,
        Self::Float8E5M2,
        Self::Float8E5M2Fnuz,
        Self::Float8E8M0,
        Self::Float4E2M1,
        Self::I4,
        Self::U4,
        Self::I2,
        Self::U2,
    ];

    const fn format(self) -> Format {
        const fn float(
            bits: [u32; 2],
            bias: i32,
            largest: u32,
            infinity: Option<u32>,
            nan: u32,
            one_zero: bool,
        ) -> Format {
            let [exponent_bits, mantissa_bits] = bits;
            Format::Float(Float { exponent_bits, mantissa_bits, bias, largest, infinity, nan, one_zero })
        }
        match self {
            Self::Float8E4M3 => float([4, 3], 7, 0x7e, None, 0x7f, false),
            Self::Float8E4M3Fnuz => float([4, 3], 8, 0x7f, None, 0x80, true),
            Self::Float8E5M2 => float([5, 2], 15, 0x7b, Some(0x7c), 0x7e, false),
            Self::Float8E5M2Fnuz => float([5, 2], 16, 0x7f, None, 0x80, true),
            Self::Float4E2M1 => float([2, 1], 1, 0x7, None, 0x8, false),
            Self::Float8E8M0 => Format::Scale,
            Self::I4 => Format::Integer { bits: 4, signed: true },
            Self::U4 => Format::Integer { bits: 4, signed: false },
            Self::I2 => Format::Integer { bits: 2, signed: true },
            Self::U2 => Format::Integer { bits: 2, signed: false },
        }
    }

    /// How many bits a code has.
    ///
    /// ```
    /// use trefoil_graph::ops::Narrow;
    /// assert_eq!((Narrow::Float8E5M2.bits(), Narrow::Float4E2M1.bits(), Narrow::U2.bits()), (8, 4, 2));
    /// ```
    pub const fn bits(self) -> u32 {
        match self.format() {
            Format::Float(float) => 1 + float.exponent_bits + float.mantissa_bits,
            Format::Scale => 8,
            Format::Integer { bits, .. } => bits,
        }
    }

    /// Whether its codes are floats.
    pub const fn is_float(self) -> bool {
        !matches!(self.format(), Format::Integer { .. })
    }

    /// The ways of rounding that it knows.
    pub const fn roundings(self) -> &'static [Rounding] {
        match self.format() {
            Format::Float(_) => &[Rounding::Nearest],
            Format::Scale => &[Rounding::Nearest, Rounding::Up, Rounding::Down],
            Format::Integer { .. } => &[Rounding::Nearest, Rounding::TowardZero],
        }
    }

    /// The number that a code means, of which bits above the type's are left out. The exact value, made without the kernels' code.
    ///
    /// ```
    /// use trefoil_graph::ops::Narrow;
    /// assert_eq!(Narrow::Float8E4M3.value(0x7e), 448.0);
    /// assert_eq!(Narrow::I4.value(0xf), -1.0);
    /// assert!(Narrow::Float8E8M0.value(0xff).is_nan());
    /// ```
    pub fn value(self, code: u8) -> f64 {
        reference::value(self, code)
    }
}

/// Which of two neighbours a number between them becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// The nearer one; halfway the even one, and of powers of two the larger.
    Nearest,
    /// The larger one.
    Up,
    /// The smaller one.
    Down,
    /// The one nearer to 0.
    TowardZero,
}

/// What becomes of a number that is beyond those of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The largest number with its sign, or the nearest end of an integer's range.
    Saturated,
    /// The number is lost: it is infinity, or NaN where there is none, and of an integer the lower bits are left.
    Lost,
}

/// Numbers as codes of a narrow type.
///
/// * Of a float what is beyond the largest number, infinities too, is that number with its sign if it saturates, else infinity or NaN. `Float4E2M1`, which has neither, saturates always, and minus zero
///   stands there for NaN. NaN keeps its sign where codes have one, but for an `f16`'s on GPUs, which widen all of these to the same NaN.
/// * Of `Float8E8M0` the sign is left out, what is below 2^-127 is 2^-127, and infinity is NaN; what is rounded to more than 2^127 is 2^127 if it saturates, else NaN.
/// * An integer is the nearest end of the type's range if it saturates, else its lower bits; of floats beyond those of `i32` and NaN it is as if they were cast to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encode {
    /// What the numbers are.
    pub from: ElementType,
    /// What they become.
    pub narrow: Narrow,
    /// What becomes of numbers beyond the largest.
    pub overflow: Overflow,
    /// What becomes of numbers between two neighbours.
    pub rounding: Rounding,
}

/// Codes of a narrow type as numbers. Every number of a narrow type is one of `f32`, `bf16` has all but NaNs' bits, and `f16` rounds those of `Float8E8M0`. Bits above the type's are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decode {
    /// What the codes are.
    pub narrow: Narrow,
    /// What they become.
    pub to: ElementType,
}

impl Encode {
    /// Whether a number beyond those of the type becomes the nearest of them.
    fn saturates(self) -> bool {
        self.overflow == Overflow::Saturated
    }
}

/// Whether maps compute with elements of a type in the 32 bits of a float, or in an integer of at most as many.
fn is_plain(element: ElementType) -> bool {
    matches!(element, F32 | F16 | BF16) || element.is_integer() && element.bytes() <= 4
}

impl Op for Encode {
    fn name(&self) -> &'static str {
        "encode"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("from", self.from.to_string()),
            ("narrow", format!("{:?}", self.narrow)),
            ("overflow", format!("{:?}", self.overflow)),
            ("rounding", format!("{:?}", self.rounding)),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let takes = |element: ElementType| is_plain(element) && (element.is_float() || !self.narrow.is_float());
        expect_one_of("x", &inputs[0], takes)?;
        expect_element("x", &inputs[0], self.from)?;
        if !self.saturates() && self.narrow == Narrow::Float4E2M1 {
            let expected = "Saturated, because Float4E2M1 has neither infinity nor NaN".to_owned();
            return Err(OpError::Attribute { attribute: "overflow", given: format!("{:?}", self.overflow), expected });
        }
        if !self.narrow.roundings().contains(&self.rounding) {
            let expected = format!("one of {:?}, as {:?} knows them", self.narrow.roundings(), self.narrow);
            return Err(OpError::Attribute { attribute: "rounding", given: format!("{:?}", self.rounding), expected });
        }
        Ok(vec![TensorType { element: U8, shape: inputs[0].shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let sizes = reference::sizes(self.narrow);
        let values = inputs[0].values.iter().map(|value| f64::from(reference::code(self, &sizes, *value))).collect();
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Op for Decode {
    fn name(&self) -> &'static str {
        "decode"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("narrow", format!("{:?}", self.narrow)), ("to", self.to.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_element("codes", &inputs[0], U8)?;
        let gives = |element: ElementType| is_plain(element) && (element.is_float() || !self.narrow.is_float());
        if !gives(self.to) {
            let expected = format!("{} (`cast` converts)", ElementType::list(gives));
            return Err(OpError::Attribute { attribute: "to", given: self.to.to_string(), expected });
        }
        Ok(vec![TensorType { element: self.to, shape: inputs[0].shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let number = |code: &f64| {
            let value = self.narrow.value(*code as u8);
            if self.to.is_float() { self.to.rounded(value) } else { self.to.wrapped(value as i128) }
        };
        vec![HostTensor { shape: outputs[0].clone(), values: inputs[0].values.iter().map(number).collect() }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}
