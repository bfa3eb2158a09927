//! The functions that move narrow scalars within words: the bodies of the accessors, by the form of their memory.

use crate::ir::builder::{FunctionBuilder, element, vector};
use crate::ir::{
    AtomicFunction, BinaryOperator as B, Expression, Handle, MathFunction, Ordering, Place, Root, Scalar, StatementKind,
};

type Value = Handle<Expression>;

/// Builds the accesses to the words of a packed binding, a group of scalars at a time; indices of groups are argument 0, values argument 1, and
/// in range, but for [`Words::load_element`].
pub(super) struct Words {
    pub(super) binding: u32,
    pub(super) atomic: bool,
    pub(super) scalar: Scalar,
    /// Scalars of a group: 1, 2 or 4.
    pub(super) lanes: u8,
}

impl Words {
    /// The bits of a group: 8, 16, 32 or 64.
    pub(super) fn group_bits(&self) -> u32 {
        self.scalar.bits() * u32::from(self.lanes)
    }

    fn inside(mut place: Place) -> Place {
        place.guarded = false;
        place
    }

    /// The word at an index.
    fn load(&self, body: &mut FunctionBuilder<'_>, index: Value) -> Value {
        let place = Self::inside(element(Root::Binding(self.binding), index));
        if self.atomic {
            let word = body.atomic("word", AtomicFunction::Load, place, None);
            return body.local(word);
        }
        body.load(place)
    }

    fn store(&self, body: &mut FunctionBuilder<'_>, index: Value, word: Value) {
        let place = Self::inside(element(Root::Binding(self.binding), index));
        if self.atomic {
            self.update(body, AtomicFunction::Store, place, word);
        } else {
            body.store(place, word);
        }
    }

    fn update(&self, body: &mut FunctionBuilder<'_>, function: AtomicFunction, place: Place, word: Value) {
        body.statement(StatementKind::Atomic {
            result: None,
            place,
            function,
            value: Some(word),
            compare: None,
            ordering: Ordering::RELAXED,
        });
    }

    /// The word that a group smaller than a word lies in: `i >> 1` for halves.
    fn word_index(&self, body: &mut FunctionBuilder<'_>) -> Value {
        let (i, by) = (body.get_argument(0), body.u32((32 / self.group_bits()).trailing_zeros()));
        body.binary(B::ShiftRight, i, by)
    }

    /// How far up in its word such a group lies: `(i << 4) & 16` for halves.
    fn shift(&self, body: &mut FunctionBuilder<'_>) -> Value {
        let bits = self.group_bits();
        let i = body.get_argument(0);
        let i = body.convert(i, Scalar::U32);
        let by = body.u32(bits.trailing_zeros());
        let shifted = body.binary(B::ShiftLeft, i, by);
        let most = body.u32(32 - bits);
        body.binary(B::And, shifted, most)
    }

    /// The value of the scalar that lies so far up in a word.
    fn decode(&self, body: &mut FunctionBuilder<'_>, word: Value, up: u32) -> Value {
        let bits = self.scalar.bits();
        let shifted = |body: &mut FunctionBuilder<'_>, operator: B, value: Value, by: u32| {
            if by == 0 {
                return value;
            }
            let by = body.u32(by);
            body.binary(operator, value, by)
        };
        match self.scalar {
            Scalar::F16 => {
                let low = shifted(body, B::ShiftRight, word, up);
                body.math(MathFunction::UnpackHalf, vec![low])
            }
            Scalar::BF16 if up == 16 => {
                let mask = body.u32(0xffff_0000);
                let high = body.binary(B::And, word, mask);
                body.bitcast(high, Scalar::F32)
            }
            Scalar::BF16 => {
                let high = shifted(body, B::ShiftLeft, word, 16);
                body.bitcast(high, Scalar::F32)
            }
            scalar if scalar.is_signed() => {
                let high = shifted(body, B::ShiftLeft, word, 32 - bits - up);
                let signed = body.convert(high, Scalar::I32);
                shifted(body, B::ShiftRight, signed, 32 - bits)
            }
            _ => {
                let low = shifted(body, B::ShiftRight, word, up);
                if up + bits == 32 {
                    return low;
                }
                let mask = body.u32((1 << bits) - 1);
                body.binary(B::And, low, mask)
            }
        }
    }

    /// The bits of a value, in the low bits of a word, the others zero. A `bf16` is one already: what is converted was rounded before.
    fn encode(&self, body: &mut FunctionBuilder<'_>, value: Value) -> Value {
        match self.scalar {
            Scalar::F16 => body.math(MathFunction::PackHalf, vec![value]),
            Scalar::BF16 => {
                let bits = body.bitcast(value, Scalar::U32);
                let by = body.u32(16);
                body.binary(B::ShiftRight, bits, by)
            }
            scalar => {
                let value = if scalar.is_signed() { body.convert(value, Scalar::U32) } else { value };
                let mask = body.u32((1 << scalar.bits()) - 1);
                body.binary(B::And, value, mask)
            }
        }
    }

    /// A lane of the value that is stored.
    fn lane(&self, body: &mut FunctionBuilder<'_>, lane: u32) -> Value {
        let value = body.get_argument(1);
        if self.lanes == 1 { value } else { body.lane(value, lane) }
    }

    /// Some lanes of the value that is stored, from `first` on, as one word.
    fn encode_lanes(&self, body: &mut FunctionBuilder<'_>, first: u32, count: u32) -> Value {
        let lane = self.lane(body, first);
        let mut whole = self.encode(body, lane);
        if self.scalar == Scalar::BF16 && count == 2 {
            // Its bits are those of the upper half, and the others are zero.
            let lane = self.lane(body, first + 1);
            let high = body.bitcast(lane, Scalar::U32);
            return body.binary(B::Or, whole, high);
        }
        let rest: Vec<Value> = (1..count)
            .map(|at| {
                let lane = self.lane(body, first + at);
                self.encode(body, lane)
            })
            .collect();
        for (at, bits) in (1..).zip(rest) {
            let by = body.u32(at * self.scalar.bits());
            let high = body.binary(B::ShiftLeft, bits, by);
            whole = body.binary(B::Or, whole, high);
        }
        whole
    }

    /// A group that is smaller than a word.
    pub(super) fn load_within(&self, body: &mut FunctionBuilder<'_>) {
        let index = self.word_index(body);
        let word = self.load(body, index);
        let shift = self.shift(body);
        let bits = body.binary(B::ShiftRight, word, shift);
        if self.lanes == 1 {
            let value = self.decode(body, bits, 0);
            return body.return_value(Some(value));
        }
        let bits = body.bind("group", bits);
        let parts = (0..u32::from(self.lanes)).map(|lane| {
            let bits = body.local(bits);
            self.decode(body, bits, lane * self.scalar.bits())
        });
        let parts = parts.collect();
        let value = body.compose(parts);
        body.return_value(Some(value));
    }

    pub(super) fn store_within(&self, body: &mut FunctionBuilder<'_>) {
        let shift = self.shift(body);
        let shift = body.bind("shift", shift);
        let index = self.word_index(body);
        let index = body.bind("word", index);
        let (mask, by) = (body.u32((1 << self.group_bits()) - 1), body.local(shift));
        let mask = body.binary(B::ShiftLeft, mask, by);
        let others = body.unary(crate::ir::UnaryOperator::Not, mask);
        let at = body.local(index);
        self.update(body, AtomicFunction::And, Self::inside(element(Root::Binding(self.binding), at)), others);
        let bits = self.encode_lanes(body, 0, self.lanes.into());
        let by = body.local(shift);
        let bits = body.binary(B::ShiftLeft, bits, by);
        let at = body.local(index);
        self.update(body, AtomicFunction::Or, Self::inside(element(Root::Binding(self.binding), at)), bits);
    }

    /// How many words a group fills.
    fn word_count(&self) -> u32 {
        self.group_bits() / 32
    }

    /// Word `which` of the group that the argument numbers.
    fn group_word(&self, body: &mut FunctionBuilder<'_>, which: u32) -> Value {
        let mut index = body.get_argument(0);
        if self.word_count() == 2 {
            let two = body.index(2);
            index = body.binary(B::Multiply, index, two);
            if which > 0 {
                let which = body.index(which);
                index = body.binary(B::Add, index, which);
            }
        }
        index
    }

    pub(super) fn load_whole(&self, body: &mut FunctionBuilder<'_>) {
        let bits = self.scalar.bits();
        let mut values = Vec::new();
        if self.word_count() == 2 && !self.atomic {
            let i = body.get_argument(0);
            let words = body.load(Self::inside(vector(Root::Binding(self.binding), i, 2)));
            let words = body.bind("words", words);
            for lane in 0..u32::from(self.lanes) {
                let base = body.local(words);
                let word = body.lane(base, lane * bits / 32);
                values.push(self.decode(body, word, lane * bits % 32));
            }
        } else {
            for which in 0..self.word_count() {
                let index = self.group_word(body, which);
                let word = self.load(body, index);
                let word = body.bind(if bits == 16 { "pair" } else { "quad" }, word);
                for up in (0..32).step_by(bits as usize) {
                    let word = body.local(word);
                    values.push(self.decode(body, word, up));
                }
            }
        }
        let value = body.compose(values);
        body.return_value(Some(value));
    }

    /// An element of a slice whose elements are groups that fill words; past its end the words are zero, and so is the element.
    pub(super) fn load_element(&self, body: &mut FunctionBuilder<'_>, guarded: bool) {
        let i = body.get_argument(0);
        let words = body.load(Place { guarded, ..element(Root::Binding(self.binding), i) });
        let words = body.bind("words", words);
        let parts = (0..u32::from(self.lanes)).map(|lane| {
            let (first, mut word) = (lane * self.scalar.bits(), body.local(words));
            if self.word_count() > 1 {
                word = body.lane(word, first / 32);
            }
            self.decode(body, word, first % 32)
        });
        let parts = parts.collect();
        let value = body.compose(parts);
        body.return_value(Some(value));
    }

    pub(super) fn store_whole(&self, body: &mut FunctionBuilder<'_>) {
        let per_word = 32 / self.scalar.bits();
        let words: Vec<Value> =
            (0..self.word_count()).map(|which| self.encode_lanes(body, which * per_word, per_word)).collect();
        if self.word_count() == 2 && !self.atomic {
            let value = body.compose(words);
            let i = body.get_argument(0);
            body.store(Self::inside(vector(Root::Binding(self.binding), i, 2)), value);
            return;
        }
        for (which, word) in (0..).zip(words) {
            let index = self.group_word(body, which);
            self.store(body, index, word);
        }
    }
}
