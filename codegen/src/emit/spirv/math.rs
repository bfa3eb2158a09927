//! The mathematical functions that lowering leaves: those of GLSL.std.450, and those that are made of bits.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, GlslStd450Op as Glsl, Op, PackedVectorFormat, Word};

use super::expr::{Kind, lanes_of};
use super::function::FunctionWriter;
use crate::emit::EmitError;
use crate::ir::{Expression, Handle, MathFunction, Precision, Scalar};
use crate::target::Feature;

impl FunctionWriter<'_, '_> {
    /// A function of GLSL.std.450.
    pub(super) fn glsl(&mut self, function: Glsl, ty: Word, arguments: &[Word]) -> Word {
        let set = self.writer.glsl();
        let mut operands = vec![Operand::IdRef(set), Operand::LiteralExtInstInteger(function as u32)];
        operands.extend(arguments.iter().map(|id| Operand::IdRef(*id)));
        self.op_with(Op::ExtInst, ty, operands)
    }

    /// A mathematical function; `ty` is the type of the result.
    pub(super) fn math(
        &mut self,
        function: MathFunction,
        arguments: &[Handle<Expression>],
        ty: Word,
    ) -> Result<Word, EmitError> {
        use MathFunction as M;
        let Some(&first) = arguments.first().filter(|_| arguments.len() == function.arguments()) else {
            return Err(self.writer.fail(format!("`{}` takes {} arguments", function.name(), function.arguments())));
        };
        let kind = self.kind(first)?;
        let lanes = lanes_of(self.type_of(first));
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.value(*argument)?);
        }
        if let Some(native) = native(function, kind) {
            return Ok(self.glsl(native, ty, &values));
        }
        let x = values[0];
        Ok(match (function, kind) {
            (M::Clamp, Kind::Signed | Kind::Unsigned) => {
                let (least, most) =
                    if kind == Kind::Signed { (Glsl::SMax, Glsl::SMin) } else { (Glsl::UMax, Glsl::UMin) };
                let raised = self.glsl(least, ty, &[x, values[1]]);
                self.glsl(most, ty, &[raised, values[2]])
            }
            (M::Abs, Kind::Unsigned) => x,
            (M::Signum, Kind::Float) => {
                let one = self.words(lanes, 1.0f32.to_bits());
                let sign = self.words(lanes, 0x8000_0000);
                let word = self.word_type(lanes);
                let bits = self.op(Op::Bitcast, word, &[x]);
                let sign = self.op(Op::BitwiseAnd, word, &[bits, sign]);
                let bits = self.op(Op::BitwiseOr, word, &[sign, one]);
                let unit = self.op(Op::Bitcast, ty, &[bits]);
                let nan = self.compare_magnitude(x, lanes, Op::UGreaterThan);
                self.op(Op::Select, ty, &[nan, x, unit])
            }
            (M::IsNan | M::IsInfinite, Kind::Float) if self.type_of(first).scalar() == Some(Scalar::F64) => {
                let [x] = values[..] else { return Err(self.writer.fail("a class of no number")) };
                self.double_class(function, x, lanes, ty)?
            }
            (M::IsNan, Kind::Float) => self.compare_magnitude(x, lanes, Op::UGreaterThan),
            (M::IsInfinite, Kind::Float) => self.compare_magnitude(x, lanes, Op::IEqual),
            (M::Dot, Kind::Float) if self.function.precision == Precision::Strict => {
                self.strict_dot(&values, lanes, ty)
            }
            (M::Dot4I8 | M::Dot4U8, _) => self.byte_dot(function, &values, ty)?,
            (M::Dot, Kind::Float) => self.op(Op::Dot, ty, &values),
            (M::Dot, Kind::Signed | Kind::Unsigned) => self.integer_dot(&values, lanes, ty),
            (M::CountOnes, Kind::Signed | Kind::Unsigned) => {
                let bits = self.as_words(x, lanes, kind);
                self.op(Op::BitCount, ty, &[bits])
            }
            (M::LeadingZeros, Kind::Signed | Kind::Unsigned) => {
                // FindUMsb is -1 for 0.
                let bits = self.as_words(x, lanes, kind);
                let highest = self.glsl(Glsl::FindUMsb, ty, &[bits]);
                let top = self.words(lanes, 31);
                self.op(Op::ISub, ty, &[top, highest])
            }
            (M::TrailingZeros, Kind::Signed | Kind::Unsigned) => {
                let bits = self.as_words(x, lanes, kind);
                let lowest = self.glsl(Glsl::FindILsb, ty, &[bits]);
                let all = self.words(lanes, 32);
                self.glsl(Glsl::UMin, ty, &[lowest, all])
            }
            (M::ReverseBits, Kind::Signed | Kind::Unsigned) => self.op(Op::BitReverse, ty, &[x]),
            (M::UnpackHalf, Kind::Unsigned) => self.each_lane(&[x], lanes, ty, |this, lane| {
                let float = this.writer.f32_type();
                let pair = this.writer.vector_of(float, 2);
                let both = this.glsl(Glsl::UnpackHalf2x16, pair, &[lane]);
                this.op_with(Op::CompositeExtract, float, vec![Operand::IdRef(both), Operand::LiteralBit32(0)])
            }),
            (M::PackHalf, Kind::Float) => self.each_lane(&[x], lanes, ty, |this, lane| {
                let (float, word) = (this.writer.f32_type(), this.writer.u32_type());
                let pair = this.writer.vector_of(float, 2);
                let zero = this.writer.constant(float, 0);
                let both = this.op(Op::CompositeConstruct, pair, &[lane, zero]);
                this.glsl(Glsl::PackHalf2x16, word, &[both])
            }),
            _ => {
                let name = function.name();
                return Err(self.writer.fail(format!("`{name}` has no native form for its operands")));
            }
        })
    }

    /// A scalar product in the order of the lanes, of instructions that are rounded one by one.
    fn strict_dot(&mut self, vectors: &[Word], lanes: u8, ty: Word) -> Word {
        let mut sum = None;
        for lane in 0..u32::from(lanes) {
            let parts: Vec<Word> = vectors
                .iter()
                .map(|vector| {
                    let operands = vec![Operand::IdRef(*vector), Operand::LiteralBit32(lane)];
                    self.op_with(Op::CompositeExtract, ty, operands)
                })
                .collect();
            let product = self.op(Op::FMul, ty, &parts);
            self.keep_apart(Op::FMul, product);
            sum = Some(match sum {
                None => product,
                Some(before) => {
                    let sum = self.op(Op::FAdd, ty, &[before, product]);
                    self.keep_apart(Op::FAdd, sum);
                    sum
                }
            });
        }
        sum.unwrap_or_default()
    }

    fn word_type(&mut self, lanes: u8) -> Word {
        let word = self.writer.u32_type();
        self.writer.vector_of(word, lanes)
    }

    /// A constant of `lanes` equal words.
    fn words(&mut self, lanes: u8, value: u32) -> Word {
        let word = self.writer.u32_type();
        let value = self.writer.u32(value);
        self.writer.splat_constant(word, value, lanes)
    }

    fn as_words(&mut self, value: Word, lanes: u8, kind: Kind) -> Word {
        if kind == Kind::Unsigned {
            return value;
        }
        let word = self.word_type(lanes);
        self.op(Op::Bitcast, word, &[value])
    }

    /// Compares the bits below the sign with those of infinity.
    fn compare_magnitude(&mut self, value: Word, lanes: u8, op: Op) -> Word {
        let word = self.word_type(lanes);
        let mask = self.words(lanes, 0x7fff_ffff);
        let infinity = self.words(lanes, 0x7f80_0000);
        let flag = self.writer.bool_type();
        let flags = self.writer.vector_of(flag, lanes);
        let bits = self.op(Op::Bitcast, word, &[value]);
        let magnitude = self.op(Op::BitwiseAnd, word, &[bits, mask]);
        self.op(op, flags, &[magnitude, infinity])
    }

    /// Whether doubles are NaN or infinite, by their words, lane by lane.
    fn double_class(&mut self, function: MathFunction, value: Word, lanes: u8, ty: Word) -> Result<Word, EmitError> {
        let (flag, word) = (self.writer.bool_type(), self.writer.u32_type());
        let double = self.writer.scalar_type(Scalar::F64)?;
        let pair = self.writer.vector_of(word, 2);
        let (mask, infinity, none) = (self.writer.u32(0x7fff_ffff), self.writer.u32(0x7ff0_0000), self.writer.u32(0));
        let mut flags = Vec::new();
        for lane in 0..u32::from(lanes) {
            let part = match lanes {
                1 => value,
                _ => {
                    self.op_with(Op::CompositeExtract, double, vec![Operand::IdRef(value), Operand::LiteralBit32(lane)])
                }
            };
            let words = self.op(Op::Bitcast, pair, &[part]);
            let extract = |this: &mut Self, at: u32| {
                this.op_with(Op::CompositeExtract, word, vec![Operand::IdRef(words), Operand::LiteralBit32(at)])
            };
            let (low, high) = (extract(self, 0), extract(self, 1));
            let high = self.op(Op::BitwiseAnd, word, &[high, mask]);
            let top = self.op(Op::IEqual, flag, &[high, infinity]);
            flags.push(if function == MathFunction::IsNan {
                let more = self.op(Op::UGreaterThan, flag, &[high, infinity]);
                let rest = self.op(Op::INotEqual, flag, &[low, none]);
                let also = self.op(Op::LogicalAnd, flag, &[top, rest]);
                self.op(Op::LogicalOr, flag, &[more, also])
            } else {
                let rest = self.op(Op::IEqual, flag, &[low, none]);
                self.op(Op::LogicalAnd, flag, &[top, rest])
            });
        }
        Ok(match flags[..] {
            [only] => only,
            _ => self.op(Op::CompositeConstruct, ty, &flags),
        })
    }

    /// What `c` is with the products of the four bytes of `a` and `b`: arguments are in the order `a`, `b`, `c`.
    fn byte_dot(&mut self, function: MathFunction, values: &[Word], ty: Word) -> Result<Word, EmitError> {
        let [a, b, c] = *values else { return Err(self.writer.fail("a product of bytes takes three operands")) };
        self.writer.require(Feature::IntegerDot, "bytes are multiplied")?;
        self.writer.capability(Capability::DotProduct);
        self.writer.capability(Capability::DotProductInput4x8BitPacked);
        self.writer.extension("SPV_KHR_integer_dot_product");
        let op = if function == MathFunction::Dot4I8 { Op::SDot } else { Op::UDot };
        let packed = Operand::PackedVectorFormat(PackedVectorFormat::PackedVectorFormat4x8Bit);
        let products = self.op_with(op, ty, vec![Operand::IdRef(a), Operand::IdRef(b), packed]);
        Ok(self.op(Op::IAdd, ty, &[products, c]))
    }

    fn integer_dot(&mut self, values: &[Word], lanes: u8, ty: Word) -> Word {
        let vector = self.writer.vector_of(ty, lanes);
        let products = self.op(Op::IMul, vector, values);
        let mut sum = 0;
        for lane in 0..u32::from(lanes) {
            let operands = vec![Operand::IdRef(products), Operand::LiteralBit32(lane)];
            let product = self.op_with(Op::CompositeExtract, ty, operands);
            sum = if lane == 0 { product } else { self.op(Op::IAdd, ty, &[sum, product]) };
        }
        sum
    }

    /// Applies `scalar` to every lane of a vector of words or floats.
    fn each_lane(&mut self, values: &[Word; 1], lanes: u8, ty: Word, scalar: impl Fn(&mut Self, Word) -> Word) -> Word {
        let [value] = *values;
        if lanes == 1 {
            return scalar(self, value);
        }
        let float = self.writer.f32_type();
        let floats = self.writer.vector_of(float, lanes);
        let from = if ty == floats { self.writer.u32_type() } else { float };
        let mut parts = Vec::new();
        for lane in 0..u32::from(lanes) {
            let operands = vec![Operand::IdRef(value), Operand::LiteralBit32(lane)];
            let part = self.op_with(Op::CompositeExtract, from, operands);
            parts.push(scalar(self, part));
        }
        self.op(Op::CompositeConstruct, ty, &parts)
    }
}

/// The function of GLSL.std.450 that means the same.
fn native(function: MathFunction, kind: Kind) -> Option<Glsl> {
    use MathFunction as M;
    Some(match (function, kind) {
        (M::Abs, Kind::Float) => Glsl::FAbs,
        (M::Abs, Kind::Signed) => Glsl::SAbs,
        // The N forms give the number if one operand is a NaN.
        (M::Min, Kind::Float) => Glsl::NMin,
        (M::Min, Kind::Signed) => Glsl::SMin,
        (M::Min, Kind::Unsigned) => Glsl::UMin,
        (M::Max, Kind::Float) => Glsl::NMax,
        (M::Max, Kind::Signed) => Glsl::SMax,
        (M::Max, Kind::Unsigned) => Glsl::UMax,
        (M::Signum, Kind::Signed) => Glsl::SSign,
        (M::Floor, Kind::Float) => Glsl::Floor,
        (M::Ceil, Kind::Float) => Glsl::Ceil,
        (M::RoundTiesEven, Kind::Float) => Glsl::RoundEven,
        (M::Trunc, Kind::Float) => Glsl::Trunc,
        (M::Sqrt, Kind::Float) => Glsl::Sqrt,
        (M::InverseSqrt, Kind::Float) => Glsl::InverseSqrt,
        (M::Exp, Kind::Float) => Glsl::Exp,
        (M::Exp2, Kind::Float) => Glsl::Exp2,
        (M::Ln, Kind::Float) => Glsl::Log,
        (M::Log2, Kind::Float) => Glsl::Log2,
        (M::Powf, Kind::Float) => Glsl::Pow,
        (M::Sin, Kind::Float) => Glsl::Sin,
        (M::Cos, Kind::Float) => Glsl::Cos,
        (M::Tan, Kind::Float) => Glsl::Tan,
        (M::Tanh, Kind::Float) => Glsl::Tanh,
        (M::Atan, Kind::Float) => Glsl::Atan,
        (M::Atan2, Kind::Float) => Glsl::Atan2,
        (M::MulAdd, Kind::Float) => Glsl::Fma,
        _ => return None,
    })
}
