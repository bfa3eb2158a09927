//! What a kernel is asked to have: a few neighbours in the list of what the language has ([`crate::combination`]), so that every one comes up in as many kernels as any other. They say what the kernel is
//! about: the types of its numbers and what it needs of a device.

use rand::Rng;
use trefoil_codegen::ir::{AtomicFunction as A, BinaryOperator as B, SubgroupFunction as F, UnaryOperator};

use super::Draw;
use super::bits::operation;
use super::float::clamped;
use crate::combination::{Combination, Operation, Place as Where, all};
use crate::syntax::{Argument, Block, Expr, Function, Kind, Mode, Needs, Place, Root, Scalar, Step, Stmt, Ty, Var};

/// What one kernel is asked for.
const WISHES: u64 = 16;

/// What the kernel of a seed is asked for, and what it needs for that.
pub(super) fn wishes(seed: u64) -> (Vec<Combination>, Needs) {
    let all = all();
    let count = all.len() as u64;
    let first = (seed % count) * WISHES;
    let wishes: Vec<Combination> = (first..first + WISHES).map(|at| all[(at % count) as usize]).collect();
    let mut needs = Needs::default();
    for wish in &wishes {
        let of = wish.needs();
        needs.int64 |= of.int64;
        needs.float64 |= of.float64;
        needs.subgroups |= of.subgroups;
    }
    (wishes, needs)
}

impl Draw {
    /// A variable that keeps a value which somebody wished for.
    pub(super) fn kept(&mut self, value: Expr, body: &mut Block) -> Var {
        let exact = !value.ty.scalar().is_some_and(Scalar::is_float);
        let var = self.var(value.ty.clone(), exact);
        body.push(Stmt::Let { var, mutable: false, value });
        self.scope.push((var, false));
        var
    }

    /// A scalar, or now and then lanes of it where vectors have it.
    fn of_lanes(&mut self, scalar: Scalar) -> Ty {
        let lanes = if is_lane(scalar) && self.percent(25) { self.pick(&[2, 3, 4]) } else { 1 };
        Ty::lanes_of(lanes, scalar)
    }

    /// Two or three values of a type, as an array.
    fn several(&mut self, scalar: Scalar) -> Expr {
        let element = Ty::Scalar(scalar);
        let count = self.rng.random_range(2..=3);
        let parts = (0..count).map(|_| self.expr(&element, 1, false)).collect();
        Expr::new(Ty::Array(Box::new(element), count), Kind::Compose(parts))
    }

    /// The statements for a wish, where all invocations of a workgroup get to.
    pub(super) fn grant(&mut self, wish: Combination, body: &mut Block) {
        let Combination { operation, scalar } = wish;
        let one = Ty::Scalar(scalar);
        match operation {
            // The signature and the kernel's own result have these.
            Operation::Param | Operation::Load(Where::Binding) | Operation::Store(Where::Binding) => {}
            Operation::Literal => {
                let value = self.literal(&one);
                self.kept(value, body);
            }
            Operation::Local => {
                let value = self.expr(&one, 1, false);
                let var = self.kept(value, body);
                self.kept(Expr::var(var, one), body);
            }
            Operation::Load(Where::Local) | Operation::Store(Where::Local) => {
                let exact = !scalar.is_float();
                let var = self.var(one.clone(), exact);
                let (first, second) = (self.expr(&one, 1, exact), self.expr(&one, 1, exact));
                body.push(Stmt::Let { var, mutable: true, value: first });
                body.push(Stmt::Assign(Place { root: Root::Var(var), path: Vec::new() }, None, second));
                self.kept(Expr::var(var, one), body);
                self.scope.push((var, true));
            }
            Operation::Argument
            | Operation::Call
            | Operation::Return
            | Operation::Load(Where::Argument)
            | Operation::Store(Where::Argument) => self.called(&one, body),
            Operation::Member | Operation::Element | Operation::Compose => {
                let value = if is_lane(scalar) && self.percent(40) {
                    let lanes = self.pick(&[2, 3, 4]);
                    let parts = (0..lanes).map(|_| self.expr(&one, 1, false)).collect();
                    Expr::new(Ty::Vector(lanes, scalar), Kind::Compose(parts))
                } else {
                    self.several(scalar)
                };
                self.parts_of(value, one, body);
            }
            Operation::Splat => {
                let value = self.expr(&one, 1, false);
                let ty = if is_lane(scalar) {
                    Ty::Vector(self.pick(&[2, 3, 4]), scalar)
                } else {
                    Ty::Array(Box::new(one), 2)
                };
                self.kept(Expr::new(ty, Kind::Splat(Box::new(value))), body);
            }
            Operation::Unary(operator) => {
                let ty = self.of_lanes(scalar);
                let value = Box::new(self.expr(&ty, 1, false));
                let kind = if operator == UnaryOperator::Negate { Kind::Negate(value) } else { Kind::Not(value) };
                self.kept(Expr::new(ty, kind), body);
            }
            Operation::Binary(operator) => {
                let value = self.wished_binary(operator, scalar);
                self.kept(value, body);
            }
            Operation::Logical(operator) => {
                let (left, right) = (self.expr(&one, 1, true), self.expr(&one, 1, true));
                self.kept(Expr::new(one, Kind::Logical(operator, Box::new(left), Box::new(right))), body);
            }
            Operation::Select => {
                let ty = self.of_lanes(scalar);
                let parts = [self.expr(&Ty::BOOL, 1, true), self.expr(&ty, 1, false), self.expr(&ty, 1, false)];
                self.kept(Expr::new(ty, Kind::Select(Box::new(parts))), body);
            }
            Operation::Math(function) => {
                if let Some(value) = self.wished_function(function, scalar) {
                    self.kept(value, body);
                }
            }
            Operation::Convert(from) => {
                let from = Ty::Scalar(from);
                let exact = from.scalar().is_some_and(Scalar::is_float) && !scalar.is_float();
                let mut value = self.expr(&from, 1, exact);
                if scalar == Scalar::F16 {
                    value = clamped(value, 1000.0);
                }
                // The conversion of a number would be another number.
                let var = self.var(from.clone(), exact || !from.scalar().is_some_and(Scalar::is_float));
                body.push(Stmt::Let { var, mutable: true, value });
                self.scope.push((var, true));
                self.kept(Expr::var(var, from).convert(scalar), body);
            }
            Operation::Bitcast(from) => {
                let value = self.wished_bits(from, scalar);
                self.kept(value, body);
            }
            Operation::Length => {
                let memory = self.pick(&self.slices.clone());
                self.kept(Expr::new(Ty::INDEX, Kind::Length(memory)), body);
            }
            Operation::Builtin(builtin) => self.builtin(builtin, body),
            Operation::Atomic(function) => self.own_atomic(function, scalar, body),
            Operation::Subgroup(function) => self.wished_subgroup(function, scalar, body),
            Operation::Load(Where::Workgroup) | Operation::Store(Where::Workgroup) | Operation::UniformLoad => {
                self.handed_round(operation, scalar, body);
            }
        }
    }

    /// A value's parts, by number and by an index.
    fn parts_of(&mut self, value: Expr, one: Ty, body: &mut Block) {
        let ty = value.ty.clone();
        let length = match &ty {
            Ty::Array(_, length) => *length,
            other => other.lanes().into(),
        };
        let var = self.kept(value, body);
        let member = self.below(length as usize);
        self.kept(Expr::var(var, ty.clone()).part(Step::Member(member), one.clone()), body);
        let own = Expr::new(Ty::INDEX, Kind::LocalIndex);
        let index = self.few(own, length + 1);
        self.kept(Expr::var(var, ty).part(Step::Index(Box::new(index)), one), body);
    }

    fn wished_binary(&mut self, operator: B, scalar: Scalar) -> Expr {
        let ty = match operator {
            // A comparison of vectors gives lanes of bools, which no variable has here.
            _ if operator.is_comparison() => Ty::Scalar(scalar),
            _ => self.of_lanes(scalar),
        };
        if scalar.is_float() {
            let exact = operator.is_comparison();
            let (left, right) = (self.expr(&ty, 1, exact), self.expr(&ty, 1, exact));
            return match operator {
                B::Divide => self.quotient(left, right),
                B::Remainder => {
                    let [left, right] = self.rest(&ty);
                    Expr::binary(operator, left, right)
                }
                B::Multiply => Expr::binary(operator, left, clamped(right, 4.0)),
                B::Add | B::Subtract => super::float::apart(Expr::binary(operator, left, right)),
                _ => Expr::binary(operator, left, right),
            };
        }
        let right = match operator {
            B::ShiftLeft | B::ShiftRight => Ty::lanes_of(ty.lanes(), Scalar::U32),
            _ => ty.clone(),
        };
        let (left, right) = (self.expr(&ty, 1, true), self.expr(&right, 1, true));
        operation(operator, scalar, left, right)
    }

    /// Calls a function of its own, which reads and writes what it is given by reference.
    fn called(&mut self, one: &Ty, body: &mut Block) {
        let exact = !one.scalar().is_some_and(Scalar::is_float);
        let (value, changed, old) =
            (self.var(one.clone(), exact), self.var(one.clone(), exact), self.var(one.clone(), exact));
        let read = |var| Expr::var(var, one.clone());
        let place = Place { root: Root::Var(changed), path: Vec::new() };
        let early = Expr::binary(B::Equal, self.literal(&Ty::U32), Expr::u32(7));
        let inner = vec![
            Stmt::Let { var: old, mutable: false, value: read(changed) },
            Stmt::Assign(place, None, read(value)),
            Stmt::If(early, vec![Stmt::Return(read(value))], Vec::new()),
        ];
        let params = vec![(value, Mode::Value), (changed, Mode::Mutable)];
        self.program.functions.push(Function { params, body: inner, result: read(old) });
        let function = self.program.functions.len() - 1;
        let (first, given) = (self.expr(one, 1, exact), self.expr(one, 1, exact));
        let (var, result) = (self.var(one.clone(), exact), self.var(one.clone(), exact));
        body.push(Stmt::Let { var, mutable: true, value: first });
        let call = Kind::Call(function, vec![Argument::Value(given), Argument::Mutable(var)]);
        body.push(Stmt::Let { var: result, mutable: false, value: Expr::new(one.clone(), call) });
        self.scope.extend([(var, true), (result, false)]);
    }

    /// The bits of a type as another.
    fn wished_bits(&mut self, from: Scalar, to: Scalar) -> Expr {
        let one = Ty::Scalar(from);
        let value = if from.is_float() {
            self.given(&one)
        } else {
            let value = self.expr(&one, 1, true);
            // A pattern of bits that is a float between 1 and 2.
            let masks = match to {
                Scalar::F16 => Some((0x03ff, 0x3c00)),
                Scalar::BF16 => Some((0x007f, 0x3f80)),
                Scalar::F32 => Some((0x007f_ffff, 0x3f80_0000)),
                Scalar::F64 => Some((0x000f_ffff_ffff_ffff, 0x3ff0_0000_0000_0000)),
                _ => None,
            };
            match masks {
                Some((digits, one)) => {
                    let digits = Expr::binary(B::And, value, Expr::literal(from, digits));
                    Expr::binary(B::Or, digits, Expr::literal(from, one))
                }
                None => value,
            }
        };
        Expr::new(Ty::Scalar(to), Kind::Bitcast(Box::new(value)))
    }

    /// An element of workgroup memory for each invocation, written, and read by its neighbour or by all.
    fn handed_round(&mut self, operation: Operation, scalar: Scalar, body: &mut Block) {
        let one = Ty::Scalar(scalar);
        let count = self.program.workgroup;
        let Some(memory) = self.shared(one.clone(), count, false) else { return };
        let value = self.expr(&one, 1, false);
        let own = || Expr::new(Ty::INDEX, Kind::LocalIndex);
        let root = Root::Element(memory, Box::new(own()));
        body.push(Stmt::Assign(Place { root, path: Vec::new() }, None, value));
        if operation == Operation::UniformLoad {
            let var = self.var(one, !scalar.is_float());
            let index = Expr::index(self.rng.random_range(0..count));
            body.push(Stmt::UniformLoad { var, memory, index });
            self.scope.push((var, false));
            return;
        }
        body.push(Stmt::Barrier);
        let index = Expr::binary(B::Subtract, Expr::index(count - 1), own());
        self.kept(Expr::element(memory, index, one), body);
    }

    /// Atomics of which every invocation has its own.
    fn own_atomic(&mut self, function: A, scalar: Scalar, body: &mut Block) {
        let one = Ty::Scalar(scalar);
        let Some(memory) = self.shared(one.clone(), self.program.workgroup, true) else { return };
        let index = || Expr::new(Ty::INDEX, Kind::LocalIndex);
        let first = self.expr(&one, 1, true);
        body.push(Stmt::Atomic { var: None, memory, index: index(), function: A::Store, values: vec![first] });
        let result = |draw: &mut Self| draw.var(one.clone(), true);
        if !matches!(function, A::Load | A::Store) {
            let values = (0..function.arguments()).map(|_| self.expr(&one, 1, true)).collect();
            let var = result(self);
            body.push(Stmt::Atomic { var: Some(var), memory, index: index(), function, values });
            self.scope.push((var, false));
        }
        let var = self.var(one.clone(), !scalar.is_float());
        body.push(Stmt::Atomic { var: Some(var), memory, index: index(), function: A::Load, values: Vec::new() });
        self.scope.push((var, false));
    }

    fn wished_subgroup(&mut self, function: F, scalar: Scalar, body: &mut Block) {
        let one = Ty::Scalar(scalar);
        let combines = function.operator().is_some();
        let value = match scalar {
            // Sums of few digits and products of 1 and 2 are exact in any order.
            Scalar::F32 if combines => {
                let word = self.expr(&Ty::U32, 1, true);
                let few = self.few(word, 2).convert(Scalar::F32);
                Expr::binary(B::Add, few, Expr::f32(1.0))
            }
            _ => self.expr(&one, 1, true),
        };
        let lane = function.takes_lane().then(|| match function {
            F::Broadcast => Expr::u32(self.rng.random_range(0..10)),
            F::ShuffleXor => Expr::u32(self.rng.random_range(1..8)),
            _ => {
                let value = self.expr(&Ty::U32, 1, true);
                self.few(value, 11)
            }
        });
        let ty = if function == F::Ballot { Ty::Vector(4, Scalar::U32) } else { one.clone() };
        let var = self.var(ty.clone(), true);
        body.push(Stmt::Subgroup { var, function, value, lane });
        if matches!(function, F::ExclusiveScan(_)) && scalar == Scalar::F32 {
            // In the first lane there is the neutral element, which may be an infinity.
            let lane = Expr::new(Ty::INDEX, Kind::SubgroupLane);
            let is_first = Expr::binary(B::Equal, lane, Expr::index(0));
            let parts = [is_first, Expr::f32(0.5), Expr::var(var, ty.clone())];
            self.kept(Expr::new(ty, Kind::If(Box::new(parts))), body);
        } else {
            self.scope.push((var, false));
        }
    }
}

/// Whether there are vectors of it here.
const fn is_lane(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::Bool | Scalar::Index)
}
