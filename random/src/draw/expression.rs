//! Expressions of any type: what is there to be read, choices, calls, and what is put together.

use rand::Rng;
use trefoil_codegen::ir::{BinaryOperator, Scalar};

use super::Draw;
use crate::syntax::{Expr, Kind, Mode, Step, Ty};

impl Draw {
    /// An expression of a type, of so many operations one in the other; floats in it are known exactly if that is asked for.
    pub(super) fn expr(&mut self, ty: &Ty, depth: u32, exact: bool) -> Expr {
        let exact = exact || self.sum.is_none();
        if depth == 0 || self.percent(15) {
            return self.leaf(ty, exact);
        }
        if self.percent(8)
            && let Some(call) = self.call(ty, depth - 1, exact)
        {
            return call;
        }
        match ty {
            Ty::Scalar(Scalar::Bool) => self.bool(depth),
            Ty::Scalar(scalar) if scalar.is_integer() => self.integer(ty, depth),
            Ty::Scalar(_) => self.float(ty, depth, exact),
            Ty::Vector(lanes, scalar) if self.percent(35) => {
                let part = Ty::Scalar(*scalar);
                if self.percent(30) {
                    let value = self.expr(&part, depth - 1, exact);
                    return Expr::new(ty.clone(), Kind::Splat(Box::new(value)));
                }
                let parts = (0..*lanes).map(|_| self.expr(&part, depth - 1, exact)).collect();
                Expr::new(ty.clone(), Kind::Compose(parts))
            }
            Ty::Vector(_, scalar) if scalar.is_integer() => self.integer(ty, depth),
            Ty::Vector(..) => self.float(ty, depth, exact),
            Ty::Array(element, length) => {
                if self.percent(25) {
                    return self.choice(ty, depth - 1, exact);
                }
                if self.percent(25) {
                    let value = self.expr(element, depth - 1, exact);
                    return Expr::new(ty.clone(), Kind::Splat(Box::new(value)));
                }
                let parts = (0..*length).map(|_| self.expr(element, depth - 1, exact)).collect();
                Expr::new(ty.clone(), Kind::Compose(parts))
            }
            Ty::Struct(index) => {
                if self.percent(25) {
                    return self.choice(ty, depth - 1, exact);
                }
                let fields = self.program.structs[*index].clone();
                let parts = fields.iter().map(|field| self.expr(field, depth - 1, exact)).collect();
                Expr::new(ty.clone(), Kind::Compose(parts))
            }
        }
    }

    /// One of several values.
    pub(super) fn choice(&mut self, ty: &Ty, depth: u32, exact: bool) -> Expr {
        let (first, second) = (self.expr(ty, depth, exact), self.expr(ty, depth, exact));
        let kind = match self.below(5) {
            0 => {
                let selector = self.selector(depth);
                let count = self.rng.random_range(1..=2);
                let mut arms = Vec::new();
                for number in 0..count {
                    let values = if self.percent(30) { vec![2 * number, 2 * number + 1] } else { vec![2 * number] };
                    arms.push((values, self.expr(ty, depth, exact)));
                }
                Kind::Match(Box::new(selector), arms, Box::new(first))
            }
            1 | 2 if !matches!(ty, Ty::Array(..) | Ty::Struct(_)) => {
                Kind::Select(Box::new([self.expr(&Ty::BOOL, depth, true), first, second]))
            }
            _ => Kind::If(Box::new([self.expr(&Ty::BOOL, depth, true), first, second])),
        };
        Expr::new(ty.clone(), kind)
    }

    /// What a `match` looks at: often a small number.
    pub(super) fn selector(&mut self, depth: u32) -> Expr {
        let ty = self.pick(&[Ty::U32, Ty::I32]);
        let value = self.expr(&ty, depth, true);
        if self.percent(80) { self.few(value, 5) } else { value }
    }

    /// A call of a function that changes nothing.
    fn call(&mut self, ty: &Ty, depth: u32, exact: bool) -> Option<Expr> {
        let fits = |function: &crate::syntax::Function| {
            function.result.ty == *ty && function.params.iter().all(|(_, mode)| *mode != Mode::Mutable)
        };
        // Of a float that a function gives nobody knows whether it is exact.
        let inexact = |ty: &Ty| !matches!(ty.scalar(), Some(scalar) if !scalar.is_float());
        if exact && inexact(ty) {
            return None;
        }
        let mut fitting: Vec<usize> = (0..self.program.functions.len()).collect();
        fitting.retain(|function| fits(&self.program.functions[*function]));
        if fitting.is_empty() {
            return None;
        }
        let function = self.pick(&fitting);
        let params = self.program.functions[function].params.clone();
        let arguments =
            params.into_iter().map(|param| self.argument(param, depth.min(1), exact)).collect::<Option<_>>()?;
        Some(Expr::new(ty.clone(), Kind::Call(function, arguments)))
    }

    /// Something that is there to be read, or a constant.
    pub(super) fn leaf(&mut self, ty: &Ty, exact: bool) -> Expr {
        if self.percent(35) && !self.slices.is_empty() {
            let slices = self.slices.clone();
            let memory = self.pick(&slices);
            let element = self.program.element(memory).clone();
            if let (Ty::Vector(lanes @ (2 | 4), scalar), Ty::Scalar(other)) = (ty, &element)
                && scalar == other
            {
                let lanes = u32::from(*lanes);
                let index = self.index_below(2 + self.program.invocations() / lanes);
                return Expr::new(ty.clone(), Kind::Several(memory, Box::new(index)));
            }
            let mut ways = Vec::new();
            self.ways(&element, ty, &mut Vec::new(), &mut ways);
            if !ways.is_empty() {
                let way = self.pick(&ways);
                let index = if self.percent(50) {
                    Expr::new(Ty::INDEX, Kind::GlobalIndex)
                } else {
                    self.index_below(self.program.invocations() + 3)
                };
                let index = self.within(memory, index);
                return self.along(Expr::element(memory, index, element), way);
            }
        }
        if self.percent(90) {
            let mut found = Vec::new();
            for (var, _) in &self.scope {
                let variable = &self.program.vars[*var];
                let float = ty.scalar().is_none_or(Scalar::is_float);
                if exact && float && !variable.exact {
                    continue;
                }
                let mut ways = Vec::new();
                self.ways(&variable.ty, ty, &mut Vec::new(), &mut ways);
                // A new variable is as likely as an old one, however many parts either has.
                if let Some(way) = ways.get(*var % ways.len().max(1)) {
                    found.push((*var, way.clone()));
                }
            }
            if !found.is_empty() {
                let (var, way) = self.pick(&found);
                let base = Expr::var(var, self.program.vars[var].ty.clone());
                return self.along(base, way);
            }
        }
        if *ty == Ty::INDEX && self.percent(60) {
            let kind = self.pick(&[Kind::GlobalIndex, Kind::LocalIndex, Kind::GroupIndex]);
            return Expr::new(Ty::INDEX, kind);
        }
        self.literal(ty)
    }

    /// The ways from a type to parts of another.
    fn ways(&self, from: &Ty, to: &Ty, way: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        if from == to {
            found.push(way.clone());
            return;
        }
        let parts = match from {
            Ty::Scalar(_) => 0,
            Ty::Vector(lanes, _) => (*lanes).into(),
            Ty::Array(_, length) => *length as usize,
            Ty::Struct(index) => self.program.structs[*index].len(),
        };
        for part in 0..parts {
            if let Some(ty) = self.program.part(from, &Step::Member(part)) {
                way.push(part);
                self.ways(&ty, to, way, found);
                way.pop();
            }
        }
    }

    /// The part of a value that a way leads to, now and then by an index that is computed.
    fn along(&mut self, mut value: Expr, way: Vec<usize>) -> Expr {
        for part in way {
            let length = match &value.ty {
                Ty::Array(_, length) => *length,
                Ty::Vector(lanes, _) if self.percent(25) => (*lanes).into(),
                _ => 0,
            };
            let step = if length > 0 && self.percent(50) {
                Step::Index(Box::new(self.index_below(length)))
            } else {
                Step::Member(part)
            };
            let Some(ty) = self.program.part(&value.ty, &step) else { return value };
            value = value.part(step, ty);
        }
        value
    }

    /// A condition that is neither always nor never true, if it can be helped.
    pub(super) fn condition(&mut self) -> Expr {
        if self.percent(40) {
            let value = self.expr(&Ty::U32, 2, true);
            let few = self.few(value, 3);
            return Expr::binary(BinaryOperator::NotEqual, few, Expr::u32(1));
        }
        self.expr(&Ty::BOOL, 3, true)
    }
}
