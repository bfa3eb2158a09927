//! Loop-invariant code: what a loop does not change is computed once, before it.
//!
//! A driver moves such things if it knows that nothing in the loop writes what they are made of, which it loses behind guards and functions for division, and it does not
//! where the loop may run zero times. Here it is known, and integer arithmetic is total: computing it for nothing does no harm. What is moved:
//!
//! * scalars of integers and floats, made by operations that cost no more than a few instructions: no reads of memory, whose guards belong to where they stand, no
//!   mathematical functions and no division of floats, which a loop without a round would pay for; integer divisions only from where every round computes them;
//! * of at least two operations or a product: one addition costs less than the register that holds its result, and an addition of a literal is part of the address;
//! * at most [`MOST_MOVED`] values from one loop, since each takes a register for all of it.
//!
//! What depends on a local declared in the loop stays behind it, unless that local moves too.

use super::numbers::Number;
use super::values::{Known, Occurrence};
use crate::ir::{BinaryOperator, ExpressionKind, Function, Module, Scalar, Type};

/// So many values move out of one loop.
const MOST_MOVED: usize = 8;
/// What is cheaper stays where it is.
const LEAST_WEIGHT: u32 = 2;
/// What costs more moves only from where every round computes it.
const MOST_CONDITIONAL_WEIGHT: u32 = 4;

/// A loop around what is looked at.
struct Loop {
    /// Its statement and the block that holds it.
    position: u32,
    block: u32,
    /// How many branches there are around it.
    branches: u32,
    moved: Vec<Number>,
}

/// The loops around what is looked at, from outside.
pub struct Loops {
    enabled: bool,
    stack: Vec<Loop>,
    branches: u32,
}

impl Loops {
    pub const fn new(enabled: bool) -> Self {
        Self { enabled, stack: Vec::new(), branches: 0 }
    }

    /// How many there are.
    pub const fn depth(&self) -> u32 {
        self.stack.len() as u32
    }

    /// Whether anything moves.
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    pub fn enter(&mut self, position: u32, block: u32) {
        self.stack.push(Loop { position, block, branches: self.branches, moved: Vec::new() });
    }

    pub fn leave(&mut self) {
        self.stack.pop();
    }

    pub const fn enter_branch(&mut self) {
        self.branches += 1;
    }

    pub const fn leave_branch(&mut self) {
        self.branches -= 1;
    }

    /// Marks an occurrence to be moved before the outermost loop that does not change it, if that is worth it.
    pub fn moves(&mut self, module: &Module, function: &Function, known: &Known, occurrence: &mut Occurrence) -> bool {
        let Some(around) = self.stack.get_mut(known.depth as usize) else { return false };
        let expression = &function.expressions[occurrence.expression];
        let is_number = matches!(module.types[expression.ty], Type::Scalar(scalar) if scalar != Scalar::Bool);
        let is_conditional = self.branches > around.branches || !occurrence.leads;
        let worth = known.weight >= LEAST_WEIGHT
            && (!is_conditional || known.weight <= MOST_CONDITIONAL_WEIGHT)
            && !is_offset(function, &expression.kind);
        if !(is_number && known.harmless && worth) {
            return false;
        }
        if !around.moved.contains(&known.number) {
            if around.moved.len() == MOST_MOVED {
                return false;
            }
            around.moved.push(known.number);
        }
        *occurrence =
            Occurrence { lead: around.position, block: around.block, leads: true, moves: true, ..occurrence.clone() };
        true
    }
}

/// Whether a literal is all that is added.
fn is_offset(function: &Function, kind: &ExpressionKind) -> bool {
    let is_literal = |side| matches!(function.expressions[side].kind, ExpressionKind::Literal(_));
    match kind {
        ExpressionKind::Binary { operator: BinaryOperator::Add | BinaryOperator::Subtract, left, right } => {
            is_literal(*left) || is_literal(*right)
        }
        _ => false,
    }
}
