//! Statements, and blocks of them.

use rand::Rng;
use trefoil_codegen::ir::{BinaryOperator as B, Scalar};

use super::Draw;
use super::bits::sensible;
use super::float::clamped;
use crate::syntax::{Block, Expr, Kind, Mode, Place, Root, Stmt, Ty};

/// Floats of variables stay within this.
const BOUND: f64 = 32.0;

impl Draw {
    /// Several statements in a row, in the scope that is there.
    pub(super) fn statements(&mut self, count: usize) -> Block {
        let mut block = Vec::new();
        for _ in 0..count {
            let statement = self.statement();
            block.extend(statement);
        }
        block
    }

    /// A block of its own, whose variables are folded at its end.
    fn block(&mut self, extra: &[(usize, bool)]) -> Block {
        let first = self.scope.len();
        self.scope.extend_from_slice(extra);
        self.depth += 1;
        let count = self.rng.random_range(1..=3);
        let mut block = self.statements(count);
        self.depth -= 1;
        let own: Vec<usize> = self.scope[first + extra.len()..].iter().map(|(var, _)| *var).collect();
        for var in own {
            self.fold(var, &mut block);
        }
        self.scope.truncate(first);
        block
    }

    /// A block out of which nothing leaps: the body of a loop that is written out.
    fn closed(&mut self, extra: &[(usize, bool)]) -> Block {
        let outside = (std::mem::replace(&mut self.breaks, false), std::mem::replace(&mut self.unrolled, true));
        let block = self.block(extra);
        (self.breaks, self.unrolled) = outside;
        block
    }

    fn looped(&mut self, extra: &[(usize, bool)]) -> Block {
        let outside = std::mem::replace(&mut self.breaks, true);
        let block = self.block(extra);
        self.breaks = outside;
        block
    }

    /// A value of a variable: floats stay of moderate size.
    fn settled(&mut self, ty: &Ty, exact: bool) -> Expr {
        let value = self.expr(ty, 4, exact);
        let is_float = ty.scalar().is_some_and(Scalar::is_float);
        if is_float && !exact && self.percent(70) { clamped(value, BOUND) } else { value }
    }

    /// One statement, with the declarations that it needs.
    pub(super) fn statement(&mut self) -> Block {
        let deep = self.depth >= 3;
        match self.below(20) {
            0..=7 => self.declaration(),
            8..=12 => self.assignment(),
            13 | 14 if !deep => {
                let condition = self.condition();
                let accept = self.block(&[]);
                let reject = if self.percent(50) { self.block(&[]) } else { Vec::new() };
                vec![Stmt::If(condition, accept, reject)]
            }
            15 if !deep => {
                let selector = self.selector(2);
                let mut arms = Vec::new();
                for number in 0..self.rng.random_range(1..=3) {
                    let values = if self.percent(30) { vec![2 * number, 2 * number + 1] } else { vec![2 * number] };
                    arms.push((values, self.block(&[])));
                }
                vec![Stmt::Match(selector, arms, self.block(&[]))]
            }
            16 | 17 if !deep => self.repetition(),
            18 => self.changing_call().unwrap_or_else(|| self.declaration()),
            19 if self.breaks => {
                let condition = self.condition();
                let leave = self.pick(&[Stmt::Break, Stmt::Continue]);
                vec![Stmt::If(condition, vec![leave], Vec::new())]
            }
            19 if !self.unrolled
                && let Some(result) = self.result.clone() =>
            {
                let condition = self.condition();
                let value = self.expr(&result, 2, false);
                vec![Stmt::If(condition, vec![Stmt::Return(value)], Vec::new())]
            }
            _ => self.declaration(),
        }
    }

    fn declaration(&mut self) -> Block {
        let ty = self.any_type();
        let exact = self.sum.is_none() || self.percent(45);
        let value = self.settled(&ty, exact);
        let var = self.var(ty, exact);
        let mutable = self.percent(50);
        self.scope.push((var, mutable));
        vec![Stmt::Let { var, mutable, value }]
    }

    fn assignment(&mut self) -> Block {
        let mut written = self.scope.clone();
        written.retain(|(_, mutable)| *mutable);
        if written.is_empty() {
            return self.declaration();
        }
        let (var, _) = self.pick(&written);
        let variable = self.program.vars[var].clone();
        let (path, ty) = self.way_into(&variable.ty);
        let place = Place { root: Root::Var(var), path };
        let exact = variable.exact;
        if let Some(scalar) = ty.scalar()
            && scalar.is_integer()
            && self.percent(50)
        {
            let operator = self.pick(&[
                B::Add,
                B::Subtract,
                B::Multiply,
                B::Xor,
                B::And,
                B::Or,
                B::Divide,
                B::Remainder,
                B::ShiftLeft,
                B::ShiftRight,
            ]);
            let right = match operator {
                B::ShiftLeft | B::ShiftRight => Ty::lanes_of(ty.lanes(), Scalar::U32),
                _ => ty,
            };
            let right = sensible(operator, scalar, self.expr(&right, 3, true));
            return vec![Stmt::Assign(place, Some(operator), right)];
        }
        if ty.scalar().is_some_and(Scalar::is_float) && !exact && self.percent(30) {
            let operator = self.pick(&[B::Add, B::Subtract]);
            let value = self.expr(&ty, 3, false);
            let bounded = clamped(Expr::new(ty.clone(), Kind::Read(place.clone())), BOUND);
            return vec![Stmt::Assign(place.clone(), Some(operator), value), Stmt::Assign(place, None, bounded)];
        }
        vec![Stmt::Assign(place, None, self.settled(&ty, exact))]
    }

    fn repetition(&mut self) -> Block {
        let times = self.rng.random_range(1..=4);
        if self.percent(40) {
            let condition = if self.percent(50) { self.condition() } else { Expr::literal(Scalar::Bool, 1) };
            let var = self.var(Ty::U32, true);
            if self.percent(50) {
                let body = self.looped(&[(var, false)]);
                return vec![Stmt::While { var, times, condition, body }];
            }
            let ends = Expr::new(Ty::BOOL, Kind::Not(Box::new(condition)));
            let body = self.looped(&[(var, false)]);
            return vec![Stmt::Loop { var, times, condition: ends, body }];
        }
        let ty = self.pick(&[Ty::INDEX, Ty::U32, Ty::I32]);
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let unroll = self.percent(20);
        let literal = |value: i64| Expr::literal(scalar, crate::value::cut(scalar, value as u64));
        let first = if scalar == Scalar::I32 { self.rng.random_range(-3..=2) } else { self.rng.random_range(0..=3) };
        let (start, end) = if unroll || self.percent(40) {
            (literal(first), literal(first + i64::from(times)))
        } else {
            let word = Ty::Scalar(if scalar == Scalar::Index { Scalar::U32 } else { scalar });
            let value = self.expr(&word, 2, true);
            let few = self.few(value, 5).convert(scalar);
            (literal(first), Expr::binary(B::Add, literal(first), few))
        };
        let step = self.percent(25).then(|| self.rng.random_range(2..=3));
        let reversed = self.percent(15);
        let var = self.var(ty, true);
        let body = if unroll { self.closed(&[(var, false)]) } else { self.looped(&[(var, false)]) };
        vec![Stmt::For { var, start, end, step, unroll, reversed, body }]
    }

    /// A call of a function that changes what it is given.
    fn changing_call(&mut self) -> Option<Block> {
        let changes =
            |function: &crate::syntax::Function| function.params.iter().any(|(_, mode)| *mode == Mode::Mutable);
        let mut fitting: Vec<usize> = (0..self.program.functions.len()).collect();
        fitting.retain(|function| changes(&self.program.functions[*function]));
        if fitting.is_empty() {
            return None;
        }
        let function = self.pick(&fitting);
        let (params, result) = {
            let function = &self.program.functions[function];
            (function.params.clone(), function.result.ty.clone())
        };
        if self.sum.is_none() && result.scalar().is_none_or(Scalar::is_float) {
            return None;
        }
        let mut arguments = Vec::new();
        let mut mutable = Vec::new();
        for param in params {
            let argument = self.argument(param, 2, false)?;
            if let crate::syntax::Argument::Mutable(var) = argument {
                // Rust lends a variable once.
                if mutable.contains(&var) {
                    return None;
                }
                mutable.push(var);
            }
            arguments.push(argument);
        }
        let var = self.var(result.clone(), false);
        let value = Expr::new(result, Kind::Call(function, arguments));
        self.scope.push((var, false));
        Some(vec![Stmt::Let { var, mutable: false, value }])
    }
}
