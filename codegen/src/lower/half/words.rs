//! The functions that move halves within words: the bodies of the accessors, by the form of their memory.

use crate::ir::builder::{FunctionBuilder, element, vector};
use crate::ir::{
    AtomicFunction, BinaryOperator as B, Expression, Handle, MathFunction, Place, Root, Scalar, StatementKind,
};

type Value = Handle<Expression>;

/// Builds the accesses to the words of a packed binding; indices are argument 0, values argument 1, and in range.
pub(super) struct Words {
    pub(super) binding: u32,
    pub(super) atomic: bool,
}

impl Words {
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
        body.statement(StatementKind::Atomic { result: None, place, function, value: Some(word), compare: None });
    }

    /// `i >> 1`
    fn word_index(body: &mut FunctionBuilder<'_>) -> Value {
        let (i, one) = (body.get_argument(0), body.u32(1));
        body.binary(B::ShiftRight, i, one)
    }

    /// How far up in its word the half lies: `(i << 4) & 16`.
    fn shift(body: &mut FunctionBuilder<'_>) -> Value {
        let i = body.get_argument(0);
        let i = body.convert(i, Scalar::U32);
        let four = body.u32(4);
        let bits = body.binary(B::ShiftLeft, i, four);
        let sixteen = body.u32(16);
        body.binary(B::And, bits, sixteen)
    }

    pub(super) fn load_one(&self, body: &mut FunctionBuilder<'_>) {
        let index = Self::word_index(body);
        let word = self.load(body, index);
        let shift = Self::shift(body);
        let bits = body.binary(B::ShiftRight, word, shift);
        let value = body.math(MathFunction::UnpackHalf, vec![bits]);
        body.return_value(Some(value));
    }

    pub(super) fn store_one(&self, body: &mut FunctionBuilder<'_>) {
        let shift = Self::shift(body);
        let shift = body.bind("shift", shift);
        let index = Self::word_index(body);
        let index = body.bind("word", index);
        let (mask, by) = (body.u32(0xffff), body.local(shift));
        let mask = body.binary(B::ShiftLeft, mask, by);
        let others = body.unary(crate::ir::UnaryOperator::Not, mask);
        let at = body.local(index);
        self.update(body, AtomicFunction::And, Self::inside(element(Root::Binding(self.binding), at)), others);
        let value = body.get_argument(1);
        let bits = body.math(MathFunction::PackHalf, vec![value]);
        let by = body.local(shift);
        let bits = body.binary(B::ShiftLeft, bits, by);
        let at = body.local(index);
        self.update(body, AtomicFunction::Or, Self::inside(element(Root::Binding(self.binding), at)), bits);
    }

    /// The word of pair `pair` of the group of halves that the argument numbers.
    fn pair_index(body: &mut FunctionBuilder<'_>, lanes: u8, pair: u32) -> Value {
        let mut index = body.get_argument(0);
        if lanes == 4 {
            let two = body.index(2);
            index = body.binary(B::Multiply, index, two);
            if pair > 0 {
                let pair = body.index(pair);
                index = body.binary(B::Add, index, pair);
            }
        }
        index
    }

    pub(super) fn load_pairs(&self, body: &mut FunctionBuilder<'_>, lanes: u8) {
        let mut halves = Vec::new();
        if lanes == 4 && !self.atomic {
            let i = body.get_argument(0);
            let words = body.load(Self::inside(vector(Root::Binding(self.binding), i, 2)));
            let words = body.bind("words", words);
            for lane in 0..4 {
                let base = body.local(words);
                let word = body.lane(base, lane / 2);
                halves.push(Self::half(body, word, lane % 2));
            }
        } else {
            for pair in 0..u32::from(lanes) / 2 {
                let index = Self::pair_index(body, lanes, pair);
                let word = self.load(body, index);
                let word = body.bind("pair", word);
                for half in 0..2 {
                    let word = body.local(word);
                    halves.push(Self::half(body, word, half));
                }
            }
        }
        let value = body.compose(halves);
        body.return_value(Some(value));
    }

    /// The lower or the upper half of a word.
    fn half(body: &mut FunctionBuilder<'_>, word: Value, half: u32) -> Value {
        let bits = if half == 0 {
            word
        } else {
            let sixteen = body.u32(16);
            body.binary(B::ShiftRight, word, sixteen)
        };
        body.math(MathFunction::UnpackHalf, vec![bits])
    }

    pub(super) fn store_pairs(&self, body: &mut FunctionBuilder<'_>, lanes: u8) {
        let mut words = Vec::new();
        for pair in 0..u32::from(lanes) / 2 {
            let [low, high] = [0, 1].map(|half| {
                let value = body.get_argument(1);
                let lane = body.lane(value, 2 * pair + half);
                body.math(MathFunction::PackHalf, vec![lane])
            });
            let sixteen = body.u32(16);
            let high = body.binary(B::ShiftLeft, high, sixteen);
            words.push(body.binary(B::Or, low, high));
        }
        if lanes == 4 && !self.atomic {
            let value = body.compose(words);
            let i = body.get_argument(0);
            body.store(Self::inside(vector(Root::Binding(self.binding), i, 2)), value);
            return;
        }
        for (pair, word) in words.into_iter().enumerate() {
            let index = Self::pair_index(body, lanes, pair as u32);
            self.store(body, index, word);
        }
    }
}
