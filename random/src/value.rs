//! Values of the language, and their bytes in buffers.

use trefoil_codegen::ir::Scalar;
use trefoil_codegen::ir::constant::single_of;

use crate::interval::Interval;
use crate::syntax::{Memory, Ty};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer's bits, extended by zeros, or a `bool` as 0 or 1.
    Word(u64),
    /// A float.
    Float(Interval),
    /// Lanes, elements or fields.
    Parts(Vec<Value>),
    /// What a slice parameter is bound to.
    Slice(Memory),
}

/// The bits that belong to a type.
pub const fn cut(scalar: Scalar, bits: u64) -> u64 {
    match scalar {
        Scalar::Bool => bits & 1,
        _ if scalar.bits() == 64 => bits,
        _ => bits & ((1 << scalar.bits()) - 1),
    }
}

/// The number that an integer's bits are.
pub fn integer(scalar: Scalar, bits: u64) -> i128 {
    let bits = cut(scalar, bits);
    if scalar.is_signed() {
        let unused = 64 - scalar.bits();
        i128::from((bits << unused).cast_signed() >> unused)
    } else {
        i128::from(bits)
    }
}

/// The number that a float's bits are.
pub fn float(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Scalar::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// The bits of the nearest float.
pub fn bits_of(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F16 => half::f16::from_f32(single_of(value)).to_bits().into(),
        Scalar::BF16 => half::bf16::from_f32(single_of(value)).to_bits().into(),
        Scalar::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

impl Value {
    /// A scalar of these bits.
    pub fn of_bits(scalar: Scalar, bits: u64) -> Self {
        if scalar.is_float() {
            Self::Float(Interval::point(float(scalar, bits)))
        } else {
            Self::Word(cut(scalar, bits))
        }
    }

    /// All zeros of a type.
    pub fn zero(ty: &Ty, structs: &[Vec<Ty>]) -> Self {
        match ty {
            Ty::Scalar(scalar) => Self::of_bits(*scalar, 0),
            Ty::Vector(lanes, scalar) => Self::Parts(vec![Self::of_bits(*scalar, 0); usize::from(*lanes)]),
            Ty::Array(element, length) => Self::Parts(vec![Self::zero(element, structs); *length as usize]),
            Ty::Struct(index) => Self::Parts(structs[*index].iter().map(|field| Self::zero(field, structs)).collect()),
        }
    }

    /// The scalars that it is made of, in memory order, each with its type and its distance from the first byte.
    pub fn scalars(&self, ty: &Ty, structs: &[Vec<Ty>], at: usize, visit: &mut dyn FnMut(usize, Scalar, &Self)) {
        match (ty, self) {
            (Ty::Scalar(scalar), value) => visit(at, *scalar, value),
            (Ty::Vector(_, scalar), Self::Parts(parts)) => {
                let size = layout(&Ty::Scalar(*scalar), structs).0;
                parts.iter().enumerate().for_each(|(lane, part)| visit(at + lane * size, *scalar, part));
            }
            (Ty::Array(element, _), Self::Parts(parts)) => {
                let stride = layout(element, structs).0;
                for (index, part) in parts.iter().enumerate() {
                    part.scalars(element, structs, at + index * stride, visit);
                }
            }
            (Ty::Struct(index), Self::Parts(parts)) => {
                let mut next = 0usize;
                for (field, part) in structs[*index].iter().zip(parts) {
                    let (size, align) = layout(field, structs);
                    next = next.next_multiple_of(align);
                    part.scalars(field, structs, at + next, visit);
                    next += size;
                }
            }
            _ => {}
        }
    }

    /// Its bytes, floats to the nearest.
    pub fn write(&self, ty: &Ty, structs: &[Vec<Ty>], to: &mut [u8]) {
        self.scalars(ty, structs, 0, &mut |at, scalar, value| {
            let bits = match value {
                Self::Word(bits) => *bits,
                Self::Float(float) => bits_of(scalar, float.low),
                Self::Parts(_) | Self::Slice(_) => 0,
            };
            let size = scalar.bytes().unwrap_or(4) as usize;
            to[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        });
    }
}

/// The size and alignment of a type in a buffer: as `repr(C)` has it, vectors of two and four aligned to their size, those of three to their scalar.
pub fn layout(ty: &Ty, structs: &[Vec<Ty>]) -> (usize, usize) {
    match ty {
        Ty::Scalar(scalar) => {
            let size = scalar.bytes().unwrap_or(4) as usize;
            (size, size)
        }
        Ty::Vector(lanes, scalar) => {
            let scalar = scalar.bytes().unwrap_or(4) as usize;
            let size = usize::from(*lanes) * scalar;
            (size, if *lanes == 3 { scalar } else { size })
        }
        Ty::Array(element, length) => {
            let (size, align) = layout(element, structs);
            (size * *length as usize, align)
        }
        Ty::Struct(index) => {
            let (mut end, mut most) = (0usize, 1);
            for field in &structs[*index] {
                let (size, align) = layout(field, structs);
                end = end.next_multiple_of(align) + size;
                most = most.max(align);
            }
            (end.next_multiple_of(most), most)
        }
    }
}

/// The bytes of a buffer.
pub fn bytes(values: &[Value], ty: &Ty, structs: &[Vec<Ty>]) -> Vec<u8> {
    let size = layout(ty, structs).0;
    let mut bytes = vec![0; size * values.len()];
    for (value, to) in values.iter().zip(bytes.chunks_mut(size.max(1))) {
        value.write(ty, structs, to);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::nearest;

    /// `from_f64` of the crate `half` would look at the upper half of the double alone, and see a tie.
    #[test]
    fn floats_round_to_the_nearest_half() {
        let value = f64::from(f32::from_bits(0x3f80_8001));
        assert_eq!(bits_of(Scalar::BF16, value), 0x3f81);
        assert_eq!(nearest(Scalar::BF16, value), float(Scalar::BF16, 0x3f81));
        // Just above the middle between 1 and the next f16.
        let value = 1.0 + 0.5f64.powi(11) + 0.5f64.powi(40);
        assert_eq!(bits_of(Scalar::F16, value), 0x3c01);
        assert_eq!(nearest(Scalar::F16, value), float(Scalar::F16, 0x3c01));
    }
}
