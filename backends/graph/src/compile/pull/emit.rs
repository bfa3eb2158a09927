//! A pull's expression written as a kernel in IR.
//!
//! Every number that depends on shapes is a parameter, but for strides that are surely 0 or 1, and axes of one position. So the text of a module is its structure:
//! tensors of other extents share the kernel.

mod machine;

use std::cell::RefCell;
use std::collections::BTreeMap;

use trefoil_codegen::artefact::Features;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, vector};
use trefoil_codegen::ir::{
    BinaryOperator, Builtin, Expression, Handle, Literal, Local, Module, Param, Place, Root, Scalar, Span,
    StatementKind, Type,
};

use super::plan::{Axis, Plan};
use crate::dim::Dim;
use crate::op::ParamValue;
use crate::pull::{Given, Machine, Pull};
use crate::types::ElementType;

/// Invocations in a workgroup.
const WORKGROUP: u32 = 256;

type Value = Handle<Expression>;

/// A kernel on its way.
pub struct Emit<'m> {
    builder: RefCell<FunctionBuilder<'m>>,
    plan: &'m Plan,
    /// For each input, its binding.
    bindings: &'m [u32],
    params: RefCell<Params>,
    /// Coordinates in the plan's axes, as indices; none for an axis of one position.
    at: RefCell<Vec<Option<Handle<Local>>>>,
    /// Units that are moved together.
    bundles: RefCell<Vec<Vec<Handle<Local>>>>,
}

#[derive(Default)]
struct Params {
    values: Vec<ParamValue>,
    known: BTreeMap<Key, u32>,
}

/// What a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Invocations,
    Extent(usize),
    /// The distance from one unit of an invocation to the next.
    Spread,
    OutputOffset,
    OutputStride(usize),
    Offset(usize),
    /// Of an input, along an axis of the plan.
    Through(usize, usize),
    /// Of an input, along an axis by which the op reads it.
    Stride(usize, usize),
    Distance(usize),
    Number(usize),
    Real(usize),
}

/// A value that a local holds.
#[derive(Clone, Copy)]
pub struct Term<'e, 'm> {
    emit: &'e Emit<'m>,
    local: Handle<Local>,
}

/// Units of an element, or of several elements.
#[derive(Clone, Copy)]
pub struct Bundle<'e, 'm> {
    emit: &'e Emit<'m>,
    number: usize,
}

impl std::fmt::Debug for Term<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Term")
    }
}

impl std::fmt::Debug for Bundle<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bundle")
    }
}

/// A kernel and what its parameters are. `bound` are the scalars that its bindings for reading hold, `bindings` which of them each input is.
pub fn module(
    name: &str,
    pull: &Pull<'_>,
    plan: &Plan,
    bound: &[Scalar],
    bindings: &[u32],
    requires: Features,
) -> (Module, Vec<ParamValue>) {
    let mut module = ModuleBuilder::new(name, [WORKGROUP, 1, 1]);
    for (position, scalar) in bound.iter().enumerate() {
        let ty = module.scalar(*scalar);
        module.shared(&format!("x{position}"), ty);
    }
    let ty = module.scalar(plan.unit.scalar);
    let output = module.mutable("y", ty);
    let emit = Emit {
        builder: RefCell::new(module.entry()),
        plan,
        bindings,
        params: RefCell::default(),
        at: RefCell::default(),
        bundles: RefCell::default(),
    };
    emit.all(pull, output);
    let Emit { builder, params, .. } = emit;
    builder.into_inner().finish_entry();
    module.module().requires = requires;
    (module.build(), params.into_inner().values)
}

impl<'m> Emit<'m> {
    fn all(&self, pull: &Pull<'_>, output: u32) {
        let i = self.builder.borrow_mut().builtin(Builtin::GlobalIndex);
        let i = self.bind("i", i);
        let count = self.index_param(Key::Invocations, || self.plan.invocations());
        let inside = self.op(BinaryOperator::Less, self.value_of(i), count);
        let outer = self.builder.borrow_mut().open();
        self.one(pull, output, i);
        let accept = self.builder.borrow_mut().close(outer);
        self.statement(StatementKind::If { condition: inside, accept, reject: Vec::new(), constant: false });
    }

    /// The units of one invocation.
    fn one(&self, pull: &Pull<'_>, output: u32, i: Handle<Local>) {
        *self.at.borrow_mut() = self.coordinates(i);
        let middle: Vec<_> = (self.plan.lead..self.plan.lead + self.plan.middle)
            .map(|axis| match self.at.borrow()[axis] {
                Some(local) => {
                    let value = self.builder.borrow_mut().local(local);
                    let value = self.builder.borrow_mut().convert(value, Scalar::I32);
                    self.term("at", value)
                }
                None => self.constant(0),
            })
            .collect();
        let given = |count: usize, key: fn(usize) -> Key, dims: &[Dim]| -> Vec<Term<'_, 'm>> {
            (0..count).map(|position| self.signed_param(key(position), &dims[position])).collect()
        };
        let distances = given(self.plan.distances.len(), Key::Distance, &self.plan.distances);
        let numbers = given(self.plan.numbers.len(), Key::Number, &self.plan.numbers);
        let made = pull.expression.emit(self, Given { at: &middle, distances: &distances, numbers: &numbers });
        let first = if self.plan.flat && self.plan.units == 1 {
            i
        } else {
            let offset = self.sum(Key::OutputOffset, &self.plan.offset, |emit, add| {
                for (axis, known) in emit.plan.axes.iter().enumerate() {
                    add(axis, Key::OutputStride(axis), &known.output);
                }
            });
            self.bind("to", offset)
        };
        for (unit, made) in made.iter().enumerate() {
            let value = self.stored(made.local);
            let index = self.spread(first, unit);
            self.builder.borrow_mut().store(self.place(Root::Binding(output), index, false), value);
        }
    }

    /// The coordinates of an invocation in the plan's axes.
    fn coordinates(&self, i: Handle<Local>) -> Vec<Option<Handle<Local>>> {
        let counted: Vec<usize> =
            (0..self.plan.axes.len()).filter(|axis| !self.plan.axes[*axis].extent.is(1)).collect();
        let mut at = vec![None; self.plan.axes.len()];
        let mut rest = i;
        for axis in counted.iter().skip(1).rev() {
            let extent = || self.index_param(Key::Extent(*axis), || self.plan.axes[*axis].extent.clone());
            let inner = self.op(BinaryOperator::Remainder, self.value_of(rest), extent());
            at[*axis] = Some(self.bind("c", inner));
            let outer = self.op(BinaryOperator::Divide, self.value_of(rest), extent());
            rest = self.bind("rest", outer);
        }
        if let Some(first) = counted.first() {
            at[*first] = Some(rest);
        }
        at
    }

    /// An offset and coordinates in the plan's axes times strides.
    fn sum(&self, offset: Key, start: &Dim, addends: impl FnOnce(&Self, &mut dyn FnMut(usize, Key, &Dim))) -> Value {
        let mut sum = (!start.is(0)).then(|| self.index_param(offset, || start.clone()));
        addends(self, &mut |axis, key, stride| {
            let Some(coordinate) = self.at.borrow()[axis] else { return };
            if stride.is(0) {
                return;
            }
            let value = self.value_of(coordinate);
            let distance = match stride.is(1) {
                true => value,
                false => self.op(BinaryOperator::Multiply, value, self.index_param(key, || stride.clone())),
            };
            sum = Some(match sum {
                Some(sum) => self.op(BinaryOperator::Add, sum, distance),
                None => distance,
            });
        });
        sum.unwrap_or_else(|| self.builder.borrow_mut().index(0))
    }

    /// The place of one of an invocation's units.
    fn spread(&self, first: Handle<Local>, unit: usize) -> Value {
        let first = self.value_of(first);
        if unit == 0 {
            return first;
        }
        let last = self.plan.axes.len() - 1;
        let far = self.index_param(Key::Spread, || self.plan.axes[last].extent.clone());
        let times = self.builder.borrow_mut().index(unit as u32);
        let distance = self.op(BinaryOperator::Multiply, far, times);
        self.op(BinaryOperator::Add, first, distance)
    }

    fn place(&self, root: Root, index: Value, guarded: bool) -> Place {
        let place = match self.plan.unit.lanes {
            1 => element(root, index),
            lanes => vector(root, index, lanes),
        };
        Place { guarded, ..place }
    }

    /// What memory holds for a value that was computed.
    fn stored(&self, made: Handle<Local>) -> Value {
        let value = self.value_of(made);
        if self.plan.computes_in.is_none() {
            return value;
        }
        let mut builder = self.builder.borrow_mut();
        let wanted = self.plan.element.stored();
        if builder.type_of(value).scalar() == Some(wanted) { value } else { builder.convert(value, wanted) }
    }

    /// An input's index of an element.
    fn address(&self, input: usize, at: &[Term<'_, 'm>]) -> Handle<Local> {
        let known = &self.plan.inputs[input];
        let start = self.sum(Key::Offset(input), &known.offset, |emit, add| {
            let through = |axis: usize| axis < emit.plan.lead || axis >= emit.plan.lead + emit.plan.middle;
            for (axis, Axis { inputs, .. }) in emit.plan.axes.iter().enumerate().filter(|(axis, _)| through(*axis)) {
                if let (true, Some(stride)) = (known.moved, inputs.get(input)) {
                    add(axis, Key::Through(input, axis), stride);
                }
            }
        });
        let mut sum = start;
        for (axis, (coordinate, stride)) in at.iter().zip(&known.strides).enumerate() {
            if stride.is(0) {
                continue;
            }
            let value = self.value_of(coordinate.local);
            let value = self.builder.borrow_mut().convert(value, Scalar::Index);
            let distance = match stride.is(1) {
                true => value,
                false => {
                    let stride = self.index_param(Key::Stride(input, axis), || stride.clone());
                    self.op(BinaryOperator::Multiply, value, stride)
                }
            };
            sum = self.op(BinaryOperator::Add, sum, distance);
        }
        self.bind("from", sum)
    }

    /// The type of what is moved or computed with.
    fn type_of_values(&self) -> Type {
        match self.plan.computes_in {
            Some(element) => Type::Scalar(element.computed()),
            None if self.plan.unit.lanes == 1 => Type::Scalar(self.plan.unit.scalar),
            None => Type::vector(self.plan.unit.lanes, self.plan.unit.scalar),
        }
    }

    fn op(&self, operator: BinaryOperator, left: Value, right: Value) -> Value {
        self.builder.borrow_mut().binary(operator, left, right)
    }

    fn bind(&self, name: &str, value: Value) -> Handle<Local> {
        self.builder.borrow_mut().bind(name, value)
    }

    fn value_of(&self, local: Handle<Local>) -> Value {
        self.builder.borrow_mut().local(local)
    }

    fn statement(&self, kind: StatementKind) {
        self.builder.borrow_mut().statement(kind);
    }

    fn term(&self, name: &str, value: Value) -> Term<'_, 'm> {
        Term { emit: self, local: self.bind(name, value) }
    }

    fn bundle(&self, locals: Vec<Handle<Local>>) -> Bundle<'_, 'm> {
        let mut bundles = self.bundles.borrow_mut();
        bundles.push(locals);
        Bundle { emit: self, number: bundles.len() - 1 }
    }

    fn locals(&self, bundle: Bundle<'_, 'm>) -> Vec<Handle<Local>> {
        self.bundles.borrow()[bundle.number].clone()
    }

    /// The locals of a bundle.
    pub fn lanes<'e>(&'e self, bundle: Bundle<'e, 'm>) -> Vec<Term<'e, 'm>> {
        self.locals(bundle).into_iter().map(|local| Term { emit: self, local }).collect()
    }

    /// The parameter for something, declared when it is first wanted.
    fn param(&self, key: Key, scalar: Scalar, value: impl FnOnce() -> ParamValue) -> Value {
        let mut params = self.params.borrow_mut();
        let mut builder = self.builder.borrow_mut();
        let number = match params.known.get(&key) {
            Some(number) => *number,
            None => {
                let module = builder.module();
                let ty = module.intern(Type::Scalar(scalar));
                let number = module.params.len() as u32;
                module.params.push(Param { name: format!("p{number}"), ty, specialise: None, span: Span::NONE });
                params.values.push(value());
                params.known.insert(key, number);
                number
            }
        };
        builder.param(number)
    }

    fn index_param(&self, key: Key, value: impl FnOnce() -> Dim) -> Value {
        self.param(key, Scalar::Index, || ParamValue::Dim(value()))
    }

    fn signed_param(&self, key: Key, value: &Dim) -> Term<'_, 'm> {
        let param = self.param(key, Scalar::I32, || ParamValue::Dim(value.clone()));
        self.term("n", param)
    }

    /// A number of the type of the values.
    fn number(&self, value: f64) -> Value {
        let literal = match self.type_of_values().scalar() {
            Some(scalar) if scalar.is_integer() => Literal::integer(scalar, value as i128 as u64),
            Some(scalar) => Literal::float(scalar, value),
            None => None,
        };
        self.builder.borrow_mut().literal(literal.unwrap_or(Literal::F32(value as f32)))
    }

    fn is_float(&self) -> bool {
        self.type_of_values().scalar().is_some_and(Scalar::is_float)
    }
}

/// The element types of a plan whose kernels need a feature of the device.
pub fn computed_types(plan: &Plan) -> impl Iterator<Item = ElementType> {
    let inputs = plan.inputs.iter().filter(|input| input.moved).map(|input| input.element);
    let all = plan.computes_in.into_iter().chain([plan.element]).chain(inputs);
    all.filter(|_| plan.computes_in.is_some() || plan.by_elements)
}
