//! Printed expressions, and when they need parentheses.
//!
//! The rules are those of C, made stricter where WGSL's grammar or a reader asks for it: operands of shifts and of `&`, `|`, `^` are
//! in parentheses unless they are atoms or a chain of the same operator, and so are `&&` inside `||` and comparisons among other
//! arguments (where WGSL might take `<` and `>` for a list of template arguments).

use crate::ir::{BinaryOperator, LogicalOperator};

/// How tightly an expression holds together, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `c ? a : b`
    Choice,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `==`, `<` and the like
    Compare,
    /// `<<` and `>>`
    Shift,
    /// `+` and `-`
    Sum,
    /// `*`, `/` and `%`
    Product,
    /// `-x`, `!x`, `*x`
    Unary,
    /// Names, literals, calls, indexing, members
    Atom,
}

/// A printed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its text.
    pub text: String,
    /// How tightly it holds together.
    pub level: Level,
}

impl Code {
    /// Something that never needs parentheses.
    pub fn atom(text: impl Into<String>) -> Self {
        Self { text: text.into(), level: Level::Atom }
    }

    /// A call.
    pub fn call(function: &str, arguments: impl IntoIterator<Item = Self>) -> Self {
        let arguments: Vec<Self> = arguments.into_iter().collect();
        // One comparison among atoms cannot be taken for a list of template arguments.
        let plain = arguments.iter().filter(|argument| argument.level != Level::Atom).count() <= 1;
        let mut text = function.to_owned();
        text.push('(');
        for (position, argument) in arguments.into_iter().enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            text.push_str(&if plain { argument.text } else { argument.argument() });
        }
        text.push(')');
        Self::atom(text)
    }

    /// Its text where at least `level` is wanted.
    pub fn at(self, level: Level) -> String {
        if self.level >= level { self.text } else { enclosed(&self.text) }
    }

    /// Its text as an argument or a part of a list.
    pub fn argument(self) -> String {
        if self.level == Level::Compare { enclosed(&self.text) } else { self.text }
    }

    /// `base[index]`
    #[must_use]
    pub fn index(self, index: Self) -> Self {
        Self::atom(joined(self.at(Level::Atom), &["[", &index.text, "]"]))
    }

    /// `base.name`
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        Self::atom(joined(self.at(Level::Atom), &[".", name]))
    }
}

/// A text in parentheses.
fn enclosed(text: &str) -> String {
    joined(String::with_capacity(text.len() + 2), &["(", text, ")"])
}

/// A text with others behind it: expressions are most of what is printed, and formatting takes three times as long.
fn joined(mut text: String, more: &[&str]) -> String {
    text.reserve(more.iter().map(|part| part.len()).sum());
    more.iter().for_each(|part| text.push_str(part));
    text
}

/// An operator before its operand.
pub fn prefix(operator: &str, value: Code) -> Code {
    Code { text: format!("{operator}{}", value.at(Level::Atom)), level: Level::Unary }
}

/// How tightly an operator holds.
const fn level(operator: BinaryOperator) -> Level {
    match operator {
        BinaryOperator::Add | BinaryOperator::Subtract => Level::Sum,
        BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Remainder => Level::Product,
        BinaryOperator::And => Level::BitAnd,
        BinaryOperator::Or => Level::BitOr,
        BinaryOperator::Xor => Level::BitXor,
        BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight => Level::Shift,
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterEqual => Level::Compare,
    }
}

/// Two operands and the operator between them.
pub fn infix(operator: BinaryOperator, left: Code, right: Code) -> Code {
    let (sign, level) = (operator.sign(), level(operator));
    let (left_level, right_level) = match level {
        Level::Sum => (Level::Sum, Level::Product),
        Level::Product => (Level::Product, Level::Unary),
        Level::Compare => (Level::Sum, Level::Sum),
        // A chain of one operator needs none; anything else does.
        _ if left.level == level && level != Level::Shift => (level, Level::Unary),
        _ => (Level::Unary, Level::Unary),
    };
    Code { text: joined(left.at(left_level), &[" ", sign, " ", &right.at(right_level)]), level }
}

/// `&&` and `||`.
pub fn logical(operator: LogicalOperator, left: Code, right: Code) -> Code {
    let (sign, level) = match operator {
        LogicalOperator::And => ("&&", Level::And),
        LogicalOperator::Or => ("||", Level::Or),
    };
    let left_level = if left.level == level { level } else { Level::Compare };
    Code { text: joined(left.at(left_level), &[" ", sign, " ", &right.at(Level::Compare)]), level }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOperator as B;

    fn atom(name: &str) -> Code {
        Code::atom(name)
    }

    #[test]
    fn only_needed_parentheses() {
        let sum = infix(B::Add, atom("a"), infix(B::Multiply, atom("b"), atom("c")));
        assert_eq!(sum.text, "a + b * c");
        assert_eq!(infix(B::Multiply, sum.clone(), atom("d")).text, "(a + b * c) * d");
        assert_eq!(infix(B::Subtract, atom("x"), sum.clone()).text, "x - (a + b * c)");
        assert_eq!(infix(B::Subtract, sum.clone(), atom("x")).text, "a + b * c - x");
        assert_eq!(infix(B::Less, sum.clone(), atom("x")).text, "a + b * c < x");
        assert_eq!(infix(B::ShiftLeft, sum, atom("x")).text, "(a + b * c) << x");
        assert_eq!(prefix("-", prefix("-", atom("x"))).text, "-(-x)");
    }

    #[test]
    fn grammar_of_wgsl() {
        let and = infix(B::And, infix(B::And, atom("a"), atom("b")), atom("c"));
        assert_eq!(and.text, "a & b & c");
        assert_eq!(infix(B::Or, and.clone(), atom("d")).text, "(a & b & c) | d");
        assert_eq!(infix(B::Equal, and, atom("d")).text, "(a & b & c) == d");
        let less = infix(B::Less, atom("a"), atom("b"));
        let both = logical(LogicalOperator::And, less.clone(), atom("c"));
        assert_eq!(both.text, "a < b && c");
        assert_eq!(logical(LogicalOperator::Or, both, atom("d")).text, "(a < b && c) || d");
        assert_eq!(Code::call("f", [less.clone(), atom("c")]).text, "f(a < b, c)");
        let shifted = infix(B::ShiftRight, atom("c"), atom("d"));
        assert_eq!(Code::call("f", [less, shifted]).text, "f((a < b), c >> d)");
    }
}
