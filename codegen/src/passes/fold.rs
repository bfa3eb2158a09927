//! Folding: what is known while building is computed, what changes nothing is dropped, and so is what is never run.
//!
//! * Integer and `bool` operations on literals, as [`crate::ir::constant`] computes them; floats are the device's.
//! * Integer operations that give one operand, or a number whatever the operand is: `x + 0`, `x * 1`, `x * 0`, `x & 0`, `x / 1`. Such a form is seldom written and
//!   often made: by const generics, by the counters of unrolled loops, by what functions are given. Nothing of the kind holds for floats, whose zeros have signs.
//! * Branches, cases and loops whose condition is a literal.
//!
//! An operand that is dropped has no effects, since only the root of a statement may have any. Locals keep their names, known or not.

use crate::ir::{
    Arena, BinaryOperator, Block, Expression, ExpressionKind, Function, Handle, Literal, LogicalOperator, Module,
    Scalar, StatementKind, Type, UnaryOperator, constant,
};

/// Folds every function of the module.
pub fn fold(module: &mut Module) {
    super::each(module, |module, function| {
        let mut body = std::mem::take(&mut function.body);
        Fold { types: &module.types, function }.block(&mut body);
        function.body = body;
    });
}

struct Fold<'a> {
    types: &'a Arena<Type>,
    function: &'a mut Function,
}

/// What becomes of an expression.
enum Outcome {
    Same,
    Literal(Literal),
    /// It is one of its operands.
    Operand(Handle<Expression>),
    /// It is another operation on operands of its own.
    Kind(ExpressionKind),
}

impl Fold<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut position = 0;
        while position < block.len() {
            let statement = &mut block[position];
            statement.kind.operands(&mut |operand| self.expression(*operand));
            for inner in statement.kind.blocks_mut() {
                self.block(inner);
            }
            let Some(run) = self.run(&mut statement.kind) else {
                position += 1;
                continue;
            };
            let ends = run.last().is_some_and(|statement| statement.kind.is_jump());
            let length = run.len();
            block.splice(position..=position, run);
            position += length;
            if ends {
                block.truncate(position);
            }
        }
    }

    /// The one block that a statement runs, where that is known.
    fn run(&self, kind: &mut StatementKind) -> Option<Block> {
        match kind {
            StatementKind::If { condition, accept, reject, .. } => match self.literal(*condition)? {
                Literal::Bool(true) => Some(std::mem::take(accept)),
                Literal::Bool(false) => Some(std::mem::take(reject)),
                _ => None,
            },
            StatementKind::Switch { selector, cases, default } => {
                let bits = self.literal(*selector).filter(|literal| literal.scalar().bits() == 32)?.bits() as u32;
                let case = cases.iter_mut().find(|case| case.values.contains(&bits));
                Some(std::mem::take(case.map_or(default, |case| &mut case.body)))
            }
            StatementKind::While { condition, .. } => {
                (self.literal(*condition)? == Literal::Bool(false)).then(Block::new)
            }
            StatementKind::For { start, end, .. } => {
                let (start, end) = (self.literal(*start)?.as_integer()?, self.literal(*end)?.as_integer()?);
                (start >= end).then(Block::new)
            }
            _ => None,
        }
    }

    /// The number, if it is one; a value of an enum is none but for a switch.
    fn literal(&self, handle: Handle<Expression>) -> Option<Literal> {
        match self.function.expressions[handle].kind {
            ExpressionKind::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    fn expression(&mut self, handle: Handle<Expression>) {
        let mut operands = [None; 4];
        let mut count = 0;
        let mut more = Vec::new();
        self.function.expressions[handle].kind.operands(&mut |operand| {
            match operands.get_mut(count) {
                Some(slot) => *slot = Some(*operand),
                None => more.push(*operand),
            }
            count += 1;
        });
        for operand in operands.into_iter().flatten().chain(more) {
            self.expression(operand);
        }
        match self.outcome(handle) {
            Outcome::Same => {}
            Outcome::Literal(literal) => self.function.expressions[handle].kind = ExpressionKind::Literal(literal),
            Outcome::Kind(kind) => self.function.expressions[handle].kind = kind,
            Outcome::Operand(operand) => {
                // What it was made of is its own from here on, and nobody refers to the operand any more.
                let empty = ExpressionKind::Literal(Literal::Bool(false));
                let kind = std::mem::replace(&mut self.function.expressions[operand].kind, empty);
                self.function.expressions[handle].kind = kind;
            }
        }
    }

    fn outcome(&self, handle: Handle<Expression>) -> Outcome {
        let expression = &self.function.expressions[handle];
        let Type::Scalar(scalar) = self.types[expression.ty] else { return Outcome::Same };
        let literal = |result: Option<Literal>| result.map_or(Outcome::Same, Outcome::Literal);
        match &expression.kind {
            ExpressionKind::Unary { operator, value } => self.unary(*operator, *value, scalar),
            ExpressionKind::Binary { operator, left, right } => self.binary(*operator, *left, *right, scalar),
            ExpressionKind::Logical { operator, left, right } => {
                // `true` decides an or, `false` an and.
                let decides = *operator == LogicalOperator::Or;
                match (self.literal(*left), self.literal(*right)) {
                    (Some(Literal::Bool(value)), _) | (_, Some(Literal::Bool(value))) if value == decides => {
                        Outcome::Literal(Literal::Bool(decides))
                    }
                    (Some(_), _) => Outcome::Operand(*right),
                    (_, Some(_)) => Outcome::Operand(*left),
                    _ => Outcome::Same,
                }
            }
            ExpressionKind::Select { condition, accept, reject } => match self.literal(*condition) {
                Some(Literal::Bool(true)) => Outcome::Operand(*accept),
                Some(Literal::Bool(false)) => Outcome::Operand(*reject),
                _ => Outcome::Same,
            },
            ExpressionKind::Convert(value) if scalar.is_integer() => {
                let known = self.number(*value).filter(|known| known.as_float().is_none());
                literal(known.and_then(|known| constant::convert(known, scalar)))
            }
            _ => Outcome::Same,
        }
    }

    /// A literal that operations take: a value of an enum has another type.
    fn number(&self, handle: Handle<Expression>) -> Option<Literal> {
        let is_scalar = matches!(self.types[self.function.expressions[handle].ty], Type::Scalar(_));
        self.literal(handle).filter(|_| is_scalar)
    }

    fn unary(&self, operator: UnaryOperator, value: Handle<Expression>, scalar: Scalar) -> Outcome {
        if let Some(known) = self.number(value).filter(|known| known.as_float().is_none()) {
            return constant::unary(operator, known).map_or(Outcome::Same, Outcome::Literal);
        }
        match (operator, &self.function.expressions[value].kind) {
            (UnaryOperator::Not, ExpressionKind::Unary { operator: UnaryOperator::Not, value }) => {
                Outcome::Operand(*value)
            }
            (UnaryOperator::Not, ExpressionKind::Binary { operator, left, right }) if scalar == Scalar::Bool => {
                let opposite = match operator {
                    BinaryOperator::Equal => BinaryOperator::NotEqual,
                    BinaryOperator::NotEqual => BinaryOperator::Equal,
                    // Of floats both may be false.
                    _ => return Outcome::Same,
                };
                Outcome::Kind(ExpressionKind::Binary { operator: opposite, left: *left, right: *right })
            }
            _ => Outcome::Same,
        }
    }

    fn binary(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        scalar: Scalar,
    ) -> Outcome {
        use BinaryOperator as B;
        let (a, b) = (self.number(left), self.number(right));
        if let (Some(a), Some(b)) = (a, b) {
            return constant::binary(operator, a, b).map_or(Outcome::Same, Outcome::Literal);
        }
        if !scalar.is_integer() {
            return Outcome::Same;
        }
        let integer = |literal: Option<Literal>| literal.and_then(Literal::as_integer);
        match (operator, integer(a), integer(b)) {
            (B::Add | B::Or | B::Xor, Some(0), _) | (B::Multiply, Some(1), _) => Outcome::Operand(right),
            (B::Add | B::Subtract | B::Or | B::Xor | B::ShiftLeft | B::ShiftRight, _, Some(0))
            | (B::Multiply | B::Divide, _, Some(1)) => Outcome::Operand(left),
            (B::Multiply | B::And, Some(0), _)
            | (B::Multiply | B::And | B::Divide | B::Remainder, _, Some(0))
            | (B::Divide | B::Remainder | B::ShiftLeft | B::ShiftRight, Some(0), _)
            | (B::Remainder, _, Some(1)) => Literal::zero(scalar).map_or(Outcome::Same, Outcome::Literal),
            _ => Outcome::Same,
        }
    }
}
