//! What a pull's expression says, as IR: each operation is a local.

use std::ops;

use trefoil_codegen::ir::builder::{element, variable};
use trefoil_codegen::ir::{
    BinaryOperator, Handle, Literal, Local, MathFunction, Root, Scalar, StatementKind, Type, UnaryOperator,
};

use super::{Bundle, Emit, Key, Term};
use crate::op::ParamValue;
use crate::pull::{Calculator, Function, Index, Machine, Number, Truth};

impl<'e, 'm> Machine for &'e Emit<'m> {
    type Index = Term<'e, 'm>;
    type Truth = Term<'e, 'm>;
    type Value = Bundle<'e, 'm>;

    fn constant(self, value: i32) -> Self::Index {
        let value = self.builder.borrow_mut().i32(value);
        self.term("k", value)
    }

    fn index(self, input: usize, at: &[Self::Index]) -> Self::Index {
        let from = self.address(input, at);
        let root = Root::Binding(self.bindings[input]);
        let index = self.value_of(from);
        let mut builder = self.builder.borrow_mut();
        let value = builder.load(element(root, index));
        let whole = builder.bind("index", value);
        let value = builder.local(whole);
        let from = builder.type_of(value).scalar();
        if from == Some(Scalar::I32) {
            return Term { emit: self, local: whole };
        }
        let word = builder.convert(value, Scalar::I32);
        let word = builder.bind("word", word);
        let Some(wide) = from.filter(|scalar| scalar.is_wide()) else {
            return Term { emit: self, local: word };
        };
        let word_value = builder.local(word);
        let back = builder.convert(word_value, wide);
        let value = builder.local(whole);
        let same = builder.binary(BinaryOperator::Equal, value, back);
        let word_value = builder.local(word);
        let none = builder.i32(-1);
        let index = builder.select(same, word_value, none);
        Term { emit: self, local: builder.bind("index", index) }
    }

    fn read(self, input: usize, at: &[Self::Index]) -> Self::Value {
        let from = self.address(input, at);
        let root = Root::Binding(self.bindings[input]);
        let units = (0..self.plan.units as usize).map(|unit| {
            let index = self.spread(from, unit);
            let value = self.builder.borrow_mut().load(self.place(root, index, true));
            self.bind("x", value)
        });
        let mut units: Vec<_> = units.collect();
        if let Some(computes_in) = self.plan.computes_in {
            for unit in &mut units {
                let element = self.plan.inputs[input].element;
                // By way of what the input's own type is computed in.
                for wanted in [element.computed(), computes_in.computed()] {
                    let value = self.value_of(*unit);
                    let mut builder = self.builder.borrow_mut();
                    if builder.type_of(value).scalar() != Some(wanted) && wanted != Scalar::Bool {
                        let value = builder.convert(value, wanted);
                        *unit = builder.bind("x", value);
                    }
                }
            }
        }
        self.bundle(units)
    }

    fn bits(self, bits: u64) -> Self::Value {
        let value = match self.plan.computes_in {
            Some(element) => {
                let literal = element.literal(bits);
                self.builder.borrow_mut().literal(literal)
            }
            None if self.plan.by_elements => {
                let literal = self.plan.element.stored_literal(bits);
                let mut builder = self.builder.borrow_mut();
                let one = builder.literal(literal);
                match self.plan.unit.lanes {
                    1 => one,
                    lanes => builder.compose(vec![one; usize::from(lanes)]),
                }
            }
            None => {
                let size = self.plan.element.bytes() as usize;
                let all: Vec<u8> =
                    bits.to_le_bytes()[..size].iter().copied().cycle().take(self.plan.unit.bytes as usize).collect();
                let mut builder = self.builder.borrow_mut();
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
                match self.plan.unit.scalar {
                    Scalar::U32 if self.plan.unit.lanes > 1 => {
                        let words = all.chunks(4).map(|chunk| builder.u32(word(chunk))).collect();
                        builder.compose(words)
                    }
                    scalar => {
                        let literal = Literal::integer(scalar, u64::from(word(&all)));
                        builder.literal(literal.unwrap_or(Literal::U32(0)))
                    }
                }
            }
        };
        let local = self.bind("bits", value);
        self.bundle(vec![local; self.plan.units as usize])
    }

    fn choose(
        self,
        condition: Self::Truth,
        accept: impl FnOnce() -> Self::Value,
        reject: impl FnOnce() -> Self::Value,
    ) -> Self::Value {
        let ty = self.type_of_values();
        let ty = self.builder.borrow_mut().module().intern(ty);
        let chosen: Vec<_> =
            (0..self.plan.units).map(|_| self.builder.borrow_mut().variable("chosen", ty, None)).collect();
        let condition = self.value_of(condition.local);
        let block = |made: &mut dyn FnMut() -> Bundle<'e, 'm>| {
            let outer = self.builder.borrow_mut().open();
            let made = self.locals(made());
            for (place, value) in chosen.iter().zip(made) {
                let value = self.value_of(value);
                self.builder.borrow_mut().store(variable(*place), value);
            }
            self.builder.borrow_mut().close(outer)
        };
        let (mut accept, mut reject) = (Some(accept), Some(reject));
        // Each is called once.
        let accept = block(&mut || accept.take().map_or_else(|| self.bits(0), |accept| accept()));
        let reject = block(&mut || reject.take().map_or_else(|| self.bits(0), |reject| reject()));
        self.statement(StatementKind::If { condition, accept, reject, constant: false });
        let values = chosen.iter().map(|place| {
            let value = self.builder.borrow_mut().load(variable(*place));
            self.bind("value", value)
        });
        let values = values.collect();
        self.bundle(values)
    }

    fn select(self, condition: Self::Truth, accept: Self::Index, reject: Self::Index) -> Self::Index {
        let (condition, accept) = (self.value_of(condition.local), self.value_of(accept.local));
        let reject = self.value_of(reject.local);
        let value = self.builder.borrow_mut().select(condition, accept, reject);
        self.term("s", value)
    }

    fn less(self, left: Self::Index, right: Self::Index) -> Self::Truth {
        left.with(BinaryOperator::Less, right)
    }

    fn equal(self, left: Self::Index, right: Self::Index) -> Self::Truth {
        left.with(BinaryOperator::Equal, right)
    }
}

impl<'e, 'm> Calculator for &'e Emit<'m> {
    fn value(self, value: f64) -> Self::Value {
        let value = self.number(value);
        let local = self.bind("v", value);
        self.bundle(vec![local])
    }

    fn lowest(self) -> Self::Value {
        let integer = self.type_of_values().scalar().filter(|scalar| scalar.is_integer());
        if let Some(wide) = integer.filter(|scalar| scalar.is_wide()) {
            // A float is not as near to it.
            return self.bits(wide.limits()[0] as u64);
        }
        Calculator::value(self, integer.map_or(f64::NEG_INFINITY, |scalar| scalar.limits()[0] as f64))
    }

    fn highest(self) -> Self::Value {
        let integer = self.type_of_values().scalar().filter(|scalar| scalar.is_integer());
        if let Some(wide) = integer.filter(|scalar| scalar.is_wide()) {
            return self.bits(wide.limits()[1] as u64);
        }
        Calculator::value(self, integer.map_or(f64::INFINITY, |scalar| scalar.limits()[1] as f64))
    }

    fn real(self, position: usize) -> Self::Value {
        let value = self.plan.reals[position];
        if self.type_of_values().scalar() != Some(Scalar::F32) {
            // Parameters hold no more than 32 bits of a float.
            return Calculator::value(self, value);
        }
        let param = self.param(Key::Real(position), Scalar::F32, || ParamValue::F32(value as f32));
        let local = self.bind("v", param);
        self.bundle(vec![local])
    }

    fn of_index(self, index: Self::Index) -> Self::Value {
        let value = self.value_of(index.local);
        let wanted = self.type_of_values().scalar().unwrap_or(Scalar::F32);
        let value = if wanted == Scalar::I32 { value } else { self.builder.borrow_mut().convert(value, wanted) };
        let local = self.bind("v", value);
        self.bundle(vec![local])
    }

    fn floor(self, value: Self::Value) -> Self::Index {
        let value = self.value_of(self.locals(value)[0]);
        let value = match self.is_float() {
            true => self.builder.borrow_mut().math(MathFunction::Floor, vec![value]),
            false => value,
        };
        let value = self.builder.borrow_mut().convert(value, Scalar::I32);
        self.term("floor", value)
    }

    fn below(self, left: Self::Value, right: Self::Value) -> Self::Truth {
        let (left, right) = (self.value_of(self.locals(left)[0]), self.value_of(self.locals(right)[0]));
        let value = self.op(BinaryOperator::Less, left, right);
        self.term("below", value)
    }

    fn is_nan(self, value: Self::Value) -> Self::Truth {
        let value = match self.is_float() {
            true => {
                let value = self.value_of(self.locals(value)[0]);
                self.builder.borrow_mut().math(MathFunction::IsNan, vec![value])
            }
            false => self.builder.borrow_mut().literal(Literal::Bool(false)),
        };
        self.term("nan", value)
    }

    fn pick(self, condition: Self::Truth, accept: Self::Value, reject: Self::Value) -> Self::Value {
        let (accept, reject) = (self.value_of(self.locals(accept)[0]), self.value_of(self.locals(reject)[0]));
        let condition = self.value_of(condition.local);
        let value = self.builder.borrow_mut().select(condition, accept, reject);
        let local = self.bind("picked", value);
        self.bundle(vec![local])
    }

    fn math(self, function: Function, of: Self::Value, with: Self::Value) -> Self::Value {
        let arguments = [of, with].into_iter().take(function.arguments());
        let arguments = arguments.map(|value| self.value_of(self.locals(value)[0])).collect();
        let value = self.builder.borrow_mut().math(function.in_ir(), arguments);
        let local = self.bind("f", value);
        self.bundle(vec![local])
    }

    fn repeat<const V: usize, const I: usize>(
        self,
        count: Self::Index,
        values: [Self::Value; V],
        indices: [Self::Index; I],
        mut step: impl FnMut(Self::Index, [Self::Value; V], [Self::Index; I]) -> ([Self::Value; V], [Self::Index; I]),
    ) -> ([Self::Value; V], [Self::Index; I]) {
        let start = |local: Handle<Local>| {
            let value = self.value_of(local);
            let mut builder = self.builder.borrow_mut();
            let ty = builder.type_of(value).clone();
            let ty = builder.module().intern(ty);
            builder.variable("so_far", ty, Some(value))
        };
        let kept: [Handle<Local>; V] = values.map(|value| start(self.locals(value)[0]));
        let places: [Handle<Local>; I] = indices.map(|index| start(index.local));
        let now = || {
            let load = |place: Handle<Local>| {
                let value = self.builder.borrow_mut().load(variable(place));
                self.bind("now", value)
            };
            let values = kept.map(|place| self.bundle(vec![load(place)]));
            let indices = places.map(|place| Term { emit: self, local: load(place) });
            (values, indices)
        };
        let end = self.value_of(count.local);
        let first = self.builder.borrow_mut().i32(0);
        let one = self.builder.borrow_mut().i32(1);
        let ty = self.builder.borrow_mut().module().intern(Type::Scalar(Scalar::I32));
        let local = self.builder.borrow_mut().new_local("step", ty, false);
        let outer = self.builder.borrow_mut().open();
        let (values, indices) = now();
        let (values, indices) = step(Term { emit: self, local }, values, indices);
        let made = values.iter().map(|value| self.locals(*value)[0]).chain(indices.iter().map(|index| index.local));
        for (place, made) in kept.iter().chain(&places).zip(made) {
            let value = self.value_of(made);
            self.builder.borrow_mut().store(variable(*place), value);
        }
        let body = self.builder.borrow_mut().close(outer);
        self.statement(StatementKind::For { local, start: first, end, step: one, body, unroll: false });
        now()
    }
}

impl<'e, 'm> Term<'e, 'm> {
    fn with(self, operator: BinaryOperator, other: Self) -> Self {
        let (left, right) = (self.emit.value_of(self.local), self.emit.value_of(other.local));
        let value = self.emit.op(operator, left, right);
        self.emit.term("t", value)
    }
}

impl Index for Term<'_, '_> {}
impl Truth for Term<'_, '_> {}
impl Number for Bundle<'_, '_> {}

impl ops::Not for Term<'_, '_> {
    type Output = Self;
    fn not(self) -> Self {
        let value = self.emit.value_of(self.local);
        let value = self.emit.builder.borrow_mut().unary(UnaryOperator::Not, value);
        self.emit.term("not", value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident = $operator:ident on $($what:ident)+;)*) => {$(
        operators!(@one $trait $method $operator $($what)+);
    )*};
    (@one $trait:ident $method:ident $operator:ident Term $($more:ident)?) => {
        impl ops::$trait for Term<'_, '_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.with(BinaryOperator::$operator, other)
            }
        }
        $(operators!(@one $trait $method $operator $more);)?
    };
    (@one $trait:ident $method:ident $operator:ident Bundle) => {
        impl ops::$trait for Bundle<'_, '_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                let emit = self.emit;
                let (left, right) = (emit.value_of(emit.locals(self)[0]), emit.value_of(emit.locals(other)[0]));
                let value = emit.op(BinaryOperator::$operator, left, right);
                let local = emit.bind("v", value);
                emit.bundle(vec![local])
            }
        }
    };
}

operators! {
    Add add = Add on Term Bundle;
    Sub sub = Subtract on Term Bundle;
    Mul mul = Multiply on Term Bundle;
    Div div = Divide on Term Bundle;
    Rem rem = Remainder on Term;
    BitAnd bitand = And on Term;
    BitOr bitor = Or on Term;
}
