//! A reader for the small part of Rust that the library is written in: one function of immutable `let`s and a value at the end.
//!
//! It is no more than that grammar, so that lowering needs no parser of Rust, works on any thread, and costs a few microseconds a function.

use crate::ir::{BinaryOperator as B, UnaryOperator};

/// A function.
#[derive(Debug)]
pub struct Item<'t> {
    pub name: &'t str,
    /// Names, and names of types.
    pub inputs: Vec<(&'t str, &'t str)>,
    pub result: &'t str,
    pub lets: Vec<(&'t str, Node<'t>)>,
    pub value: Node<'t>,
}

/// An expression.
#[derive(Debug)]
pub enum Node<'t> {
    Float(f64),
    Integer {
        value: u64,
        /// The name of its type, empty if it has none.
        suffix: &'t str,
    },
    Name(&'t str),
    Unary(UnaryOperator, Box<Self>),
    Binary(B, Box<Self>, Box<Self>),
    /// `as` a type of that name.
    Convert(Box<Self>, &'t str),
    Call(&'t str, Vec<Self>),
}

impl Node<'_> {
    /// Whether it is a number without a sign.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Float(_) | Self::Integer { .. })
    }
}

type Result<T> = std::result::Result<T, String>;

/// Reads a function.
///
/// # Errors
/// What was expected, and what is there.
pub fn read(text: &str) -> Result<Item<'_>> {
    let mut reader = Reader { rest: text.trim() };
    reader.expect("fn")?;
    let name = reader.name()?;
    reader.expect("(")?;
    let mut inputs = Vec::new();
    while !reader.accept(")") {
        let input = reader.name()?;
        reader.expect(":")?;
        inputs.push((input, reader.name()?));
        if !reader.accept(",") {
            reader.expect(")")?;
            break;
        }
    }
    reader.expect("->")?;
    let result = reader.name()?;
    reader.expect("{")?;
    let mut lets = Vec::new();
    while reader.accept_word("let") {
        let local = reader.name()?;
        reader.expect("=")?;
        lets.push((local, reader.expression(0)?));
        reader.expect(";")?;
    }
    let value = reader.expression(0)?;
    reader.expect("}")?;
    if reader.rest.is_empty() {
        Ok(Item { name, inputs, result, lets, value })
    } else {
        Err(reader.unexpected("the end"))
    }
}

/// The binary operators with their ranks, as in Rust; of signs that begin alike the longer stands first.
const OPERATORS: [(&str, u8, B); 15] = [
    ("<<", 5, B::ShiftLeft),
    (">>", 5, B::ShiftRight),
    ("==", 1, B::Equal),
    ("<=", 1, B::LessEqual),
    (">=", 1, B::GreaterEqual),
    ("<", 1, B::Less),
    (">", 1, B::Greater),
    ("|", 2, B::Or),
    ("^", 3, B::Xor),
    ("&", 4, B::And),
    ("+", 6, B::Add),
    ("-", 6, B::Subtract),
    ("*", 7, B::Multiply),
    ("/", 7, B::Divide),
    ("%", 7, B::Remainder),
];

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn unexpected(&self, wanted: &str) -> String {
        format!("{wanted} was expected before `{}`", self.rest.lines().next().unwrap_or_default())
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_start();
        taken
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = self.rest.starts_with(sign);
        if found {
            self.take(sign.len());
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn word(&self) -> &'t str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        &self.rest[..end]
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.take(word.len());
        }
        found
    }

    fn name(&mut self) -> Result<&'t str> {
        let word = self.word();
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            Ok(self.take(word.len()))
        } else {
            Err(self.unexpected("a name"))
        }
    }

    /// An expression of operators above a rank.
    fn expression(&mut self, above: u8) -> Result<Node<'t>> {
        let mut left = self.operand()?;
        loop {
            if self.accept_word("as") {
                left = Node::Convert(Box::new(left), self.name()?);
                continue;
            }
            let Some((sign, rank, operator)) = OPERATORS.into_iter().find(|(sign, ..)| self.rest.starts_with(sign))
            else {
                return Ok(left);
            };
            if rank <= above {
                return Ok(left);
            }
            self.take(sign.len());
            left = Node::Binary(operator, Box::new(left), Box::new(self.expression(rank)?));
        }
    }

    fn operand(&mut self) -> Result<Node<'t>> {
        for (sign, operator) in [("-", UnaryOperator::Negate), ("!", UnaryOperator::Not)] {
            if self.accept(sign) {
                return Ok(Node::Unary(operator, Box::new(self.operand()?)));
            }
        }
        if self.accept("(") {
            let inner = self.expression(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let name = self.name()?;
        if !self.accept("(") {
            return Ok(Node::Name(name));
        }
        let mut arguments = Vec::new();
        while !self.accept(")") {
            arguments.push(self.expression(0)?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Node::Call(name, arguments))
    }

    fn number(&mut self) -> Result<Node<'t>> {
        let fault = |text: &str| format!("`{text}` is no number");
        if let Some(hex) = self.rest.strip_prefix("0x") {
            let end = hex.find(|c: char| !c.is_ascii_hexdigit() && c != '_').unwrap_or(hex.len());
            let digits = self.take(2 + end);
            let value = u64::from_str_radix(&digits[2..].replace('_', ""), 16).map_err(|_| fault(digits))?;
            return Ok(Node::Integer { value, suffix: self.suffix() });
        }
        let bytes = self.rest.as_bytes();
        let is_part = |i: usize| {
            let sign_of_exponent = matches!(bytes[i], b'+' | b'-') && i > 0 && bytes[i - 1] == b'e';
            bytes[i].is_ascii_digit() || matches!(bytes[i], b'.' | b'_' | b'e') || sign_of_exponent
        };
        let end = (0..bytes.len()).find(|i| !is_part(*i)).unwrap_or(bytes.len());
        let digits = self.take(end);
        let plain = digits.replace('_', "");
        if plain.contains(['.', 'e']) {
            return plain.parse().map(Node::Float).map_err(|_| fault(digits));
        }
        let value = plain.parse().map_err(|_| fault(digits))?;
        Ok(Node::Integer { value, suffix: self.suffix() })
    }

    /// The type that a number ends in.
    fn suffix(&mut self) -> &'t str {
        let word = self.word();
        if matches!(word, "u32" | "i32" | "u64" | "i64") { self.take(word.len()) } else { "" }
    }
}
