//! What the invocations of a workgroup do together, at the top of a kernel, where all of them get to: each writes an element of its own and behind a barrier reads those of others; they change atomics
//! by operations whose order does not matter; and they exchange values in subgroups.

use rand::Rng;
use trefoil_codegen::ir::{AtomicFunction as A, BinaryOperator as B, Scalar, SubgroupFunction as F};

use super::Draw;
use crate::syntax::{Access, Block, Expr, Kind, Memory, Place, Root, Shared, Stmt, Ty};

/// Bytes of workgroup memory that a kernel may take.
const MOST_BYTES: usize = 8 * 1024;

impl Draw {
    /// Adds one of these to the kernel's body.
    pub(super) fn together(&mut self, body: &mut Block) {
        if self.program.needs.subgroups && self.percent(50) {
            return self.subgroup(body);
        }
        match self.below(9) {
            0..=3 => self.exchange(body),
            4 | 5 => self.counts(body),
            6 => self.atomic_buffer(body),
            7 => self.uniform_loop(body),
            _ => self.exchange(body),
        }
    }

    pub(super) fn shared(&mut self, element: Ty, length: u32, atomic: bool) -> Option<Memory> {
        let structs = &self.program.structs;
        let bytes = |shared: &Shared| crate::value::layout(&shared.element, structs).0 * shared.length as usize;
        let new = Shared { element, length, atomic };
        let taken: usize = self.program.shared.iter().chain([&new]).map(bytes).sum();
        if taken > MOST_BYTES {
            return None;
        }
        self.program.shared.push(new);
        Some(Memory::Shared(self.program.shared.len() - 1))
    }

    /// Each invocation writes an element, and reads another's.
    fn exchange(&mut self, body: &mut Block) {
        let element = self.element_type();
        let exact = self.percent(50);
        let count = self.program.workgroup;
        let Some(memory) = self.shared(element.clone(), count, false) else { return };
        let value = self.expr(&element, 3, exact);
        let own = Expr::new(Ty::INDEX, Kind::LocalIndex);
        let root = Root::Element(memory, Box::new(own));
        body.push(Stmt::Assign(Place { root: root.clone(), path: Vec::new() }, None, value));
        if self.percent(30) {
            let (path, ty) = self.way_into(&element);
            let value = self.expr(&ty, 2, exact);
            body.push(Stmt::Assign(Place { root, path }, None, value));
        }
        if self.percent(20) && !matches!(element, Ty::Struct(_)) {
            let var = self.var(element.clone(), exact);
            let index = Expr::index(self.rng.random_range(0..count));
            body.push(Stmt::UniformLoad { var, memory, index });
            self.scope.push((var, false));
        } else {
            body.push(Stmt::Barrier);
        }
        if self.percent(30) && exact {
            // It is there for whoever comes later, too.
            self.slices.push(memory);
        }
        for _ in 0..self.rng.random_range(1..=2) {
            let index = match self.below(3) {
                0 => {
                    let own = Expr::new(Ty::INDEX, Kind::LocalIndex);
                    Expr::binary(B::Subtract, Expr::index(count - 1), own)
                }
                _ => self.index_below(count),
            };
            let var = self.var(element.clone(), exact);
            body.push(Stmt::Let { var, mutable: false, value: Expr::element(memory, index, element.clone()) });
            self.scope.push((var, false));
        }
        if self.percent(40) {
            body.push(Stmt::Barrier);
        }
    }

    /// Atomics that are set by one invocation each, changed by all, and read by all.
    fn counts(&mut self, body: &mut Block) {
        let scalar = self.pick(&[Scalar::U32, Scalar::I32]);
        let ty = Ty::Scalar(scalar);
        let length = self.rng.random_range(1..=self.program.workgroup.min(8));
        let Some(memory) = self.shared(ty.clone(), length, true) else { return };
        let own = || Expr::new(Ty::INDEX, Kind::LocalIndex);
        let first = self.expr(&ty, 1, true);
        let set = Stmt::Atomic { var: None, memory, index: own(), function: A::Store, values: vec![first] };
        body.push(Stmt::If(Expr::binary(B::Less, own(), Expr::index(length)), vec![set], Vec::new()));
        body.push(Stmt::Barrier);
        let change = self.change(memory, length, &ty);
        if self.percent(40) {
            let condition = self.condition();
            body.push(Stmt::If(condition, vec![change], Vec::new()));
        } else {
            body.push(change);
        }
        body.push(Stmt::Barrier);
        let var = self.var(ty, true);
        let index = self.index_below(length);
        body.push(Stmt::Atomic { var: Some(var), memory, index, function: A::Load, values: Vec::new() });
        self.scope.push((var, false));
    }

    /// A change of one of several atomics; done by many, all of one kind, it gives the same in any order.
    fn change(&mut self, memory: Memory, length: u32, ty: &Ty) -> Stmt {
        let function = self.pick(&[A::Add, A::Subtract, A::Min, A::Max, A::And, A::Or, A::Xor]);
        let index = self.index_below(length);
        let value = self.expr(ty, 3, true);
        Stmt::Atomic { var: None, memory, index, function, values: vec![value] }
    }

    /// Atomics of a buffer: changed by all invocations of all workgroups, or one for each, of which what was there is seen.
    fn atomic_buffer(&mut self, body: &mut Block) {
        let taken = |buffer: &crate::syntax::Buffer| buffer.access == Access::Atomic;
        if self.program.buffers.iter().any(taken) {
            return self.exchange(body);
        }
        let ty = self.pick(&[Ty::U32, Ty::I32]);
        let (few, all) = (self.rng.random_range(1..=5u32), self.program.invocations());
        let memory = self.buffer(Access::Atomic, ty.clone(), (few + all) as usize);
        if self.percent(60) {
            let change = self.change(memory, few, &ty);
            body.push(match change {
                // The last ones have owners.
                Stmt::Atomic { var, memory, index, function, values } => {
                    let index = self.few(index, few);
                    Stmt::Atomic { var, memory, index, function, values }
                }
                other => other,
            });
        }
        for _ in 0..self.rng.random_range(0..=2) {
            let function = self.pick(&[
                A::Add,
                A::Exchange,
                A::CompareExchange,
                A::Xor,
                A::Max,
                A::Min,
                A::Load,
                A::Subtract,
                A::And,
                A::Or,
            ]);
            let own = Expr::new(Ty::INDEX, Kind::GlobalIndex);
            let index = Expr::binary(B::Add, own, Expr::index(few));
            let values = (0..function.arguments()).map(|_| self.expr(&ty, 2, true)).collect();
            let var = self.var(ty.clone(), true);
            body.push(Stmt::Atomic { var: Some(var), memory, index, function, values });
            self.scope.push((var, false));
        }
    }

    fn subgroup(&mut self, body: &mut Block) {
        let mut functions: Vec<F> = F::ALL.iter().map(|(function, _)| *function).collect();
        if self.percent(50) {
            // There are many more that combine values.
            functions.retain(|function| function.operator().is_none());
        }
        let function = self.pick(&functions);
        let ty = if function.takes_bool() {
            Ty::BOOL
        } else {
            let mut scalars = vec![Scalar::U32, Scalar::I32, Scalar::F32];
            // The order of a float sum is not stated.
            let sums = function.operator().is_some_and(|operator| operator.of_two().is_ok());
            if sums {
                scalars.pop();
            }
            let lanes = if self.percent(25) { self.pick(&[2, 3, 4]) } else { 1 };
            Ty::lanes_of(lanes, self.pick(&scalars))
        };
        // The neutral element of a float is an infinity.
        let infinite = matches!(function, F::ExclusiveScan(_)) && ty.scalar() == Some(Scalar::F32);
        if infinite {
            return self.exchange(body);
        }
        let value = self.expr(&ty, 3, true);
        let lane = function.takes_lane().then(|| match function {
            F::Broadcast => Expr::u32(self.rng.random_range(0..10)),
            F::ShuffleXor => Expr::u32(self.rng.random_range(1..8)),
            _ => {
                let value = self.expr(&Ty::U32, 2, true);
                self.few(value, 11)
            }
        });
        let result = if function == F::Ballot { Ty::Vector(4, Scalar::U32) } else { ty };
        let var = self.var(result, true);
        body.push(Stmt::Subgroup { var, function, value, lane });
        self.scope.push((var, false));
        if self.percent(30) {
            let kind = self.pick(&[Kind::SubgroupLane, Kind::SubgroupSize]);
            let var = self.var(Ty::INDEX, true);
            body.push(Stmt::Let { var, mutable: false, value: Expr::new(Ty::INDEX, kind) });
            self.scope.push((var, false));
        }
    }

    /// A loop in step, with barriers in it: values move from neighbour to neighbour.
    fn uniform_loop(&mut self, body: &mut Block) {
        let ty = match self.element_type() {
            Ty::Struct(_) => Ty::U32,
            other => other,
        };
        let count = self.program.workgroup;
        let Some(memory) = self.shared(ty.clone(), count, false) else { return };
        let exact = self.percent(50);
        let first = self.expr(&ty, 2, exact);
        let kept = self.var(ty.clone(), exact);
        body.push(Stmt::Let { var: kept, mutable: true, value: first });
        let var = self.var(Ty::INDEX, true);
        let own = || Expr::new(Ty::INDEX, Kind::LocalIndex);
        let root = Root::Element(memory, Box::new(own()));
        let distance = Expr::binary(B::Add, Expr::var(var, Ty::INDEX), Expr::index(1));
        let other = Expr::binary(B::Remainder, Expr::binary(B::Add, own(), distance), Expr::index(count));
        let value = Expr::element(memory, other, ty.clone());
        self.scope.extend([(kept, false), (var, false)]);
        let mixed = if ty.scalar().is_some_and(Scalar::is_float) {
            super::float::math(trefoil_codegen::ir::MathFunction::Max, vec![self.expr(&ty, 1, exact), value])
        } else {
            Expr::binary(B::Xor, self.expr(&ty, 1, exact), value)
        };
        self.scope.pop();
        let kept_place = Place { root: Root::Var(kept), path: Vec::new() };
        let round = vec![
            Stmt::Assign(Place { root, path: Vec::new() }, None, Expr::var(kept, ty)),
            Stmt::Barrier,
            Stmt::Assign(kept_place, None, mixed),
            Stmt::Barrier,
        ];
        body.push(Stmt::For {
            var,
            start: Expr::index(0),
            end: Expr::index(self.rng.random_range(1..=4)),
            step: None,
            unroll: false,
            reversed: false,
            body: round,
        });
    }
}
