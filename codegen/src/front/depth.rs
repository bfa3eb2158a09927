//! How deep syntax may be nested.
//!
//! Everything that reads syntax calls itself for what is nested in it, beginning with the parser, and a stack that overflows ends the compiler without a word. So tokens are
//! looked at before they are parsed, without calls that nest, and expressions once more while they are read. The bounds are many times what people write, and leave room on a stack of
//! 8 MiB for a compiler that is not optimised. naga has bounds of its own, which the emitter of WGSL holds its texts against.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

use super::ends::Placed;
use super::session::Session;

/// Brackets within each other.
const MOST_BRACKETS: usize = 64;
/// Operators and the like that may nest without brackets, those around the brackets included: `--x`, `a + b + c`, `if .. else if ..`.
const MOST_OPERATORS: usize = 1024;
/// What some of them count, for which the parser takes more of its stack.
const HEAVY: usize = 4;
/// Expressions within each other, of which a chain of operators (`a + b + c`) is one.
const MOST_NESTED: usize = 128;
/// Expressions within each other, all operators of a chain counted.
const MOST_CHAINED: usize = 400;
/// Values within each other while they are built, in all functions that are made for one another.
pub(super) const MOST_BUILT: usize = 1000;
/// Functions and constants that use each other one after the other.
pub(super) const MOST_ITEMS: usize = 64;
/// Copies of functions, for other types, constants and slices, in one kernel: functions that call each other with other constants may ask for any number.
pub(super) const MOST_COPIES: usize = 1 << 10;
/// How often a kernel's constants may be looked up, in each other too: each use of one that uses another twice looks that up twice.
const MOST_CONSTANTS: usize = 1 << 14;

/// How deep an expression is in others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depth {
    nested: usize,
    chained: usize,
}

pub(super) fn too_deep() -> String {
    format!(
        "expressions are nested too deep here, more than {MOST_NESTED} within each other: put parts of them into variables by `let`, or into functions"
    )
}

pub(super) fn too_many_items() -> String {
    format!("here more than {MOST_ITEMS} functions and constants use each other, one after the other")
}

pub(super) fn too_many_copies() -> String {
    format!(
        "here more than {MOST_COPIES} copies of functions are made, one for each set of types, constants and slices: give numbers as arguments instead of const parameters"
    )
}

impl Session {
    /// Goes one expression deeper, and gives how deep it was before; nothing, and a mistake, where that is too deep.
    pub(super) fn enter(&mut self, e: &syn::Expr) -> Option<Depth> {
        let outside = self.depth;
        let nested = outside.nested + usize::from(!matches!(e, syn::Expr::Binary(_)));
        let chained = outside.chained + 1;
        if nested > MOST_NESTED || chained > MOST_CHAINED {
            self.error(e, too_deep());
            return None;
        }
        self.depth = Depth { nested, chained };
        Some(outside)
    }

    /// Begins work on a constant; whether that is not too deep, and not too much, which would be a mistake at `at`.
    pub(super) fn enter_constant(&mut self, hash: &str, at: &impl Placed) -> bool {
        self.constants += 1;
        if self.stack.len() < MOST_ITEMS && self.constants <= MOST_CONSTANTS {
            self.stack.push(hash.to_owned());
            return true;
        }
        let message = if self.constants > MOST_CONSTANTS {
            format!(
                "constants are used more than {MOST_CONSTANTS} times here, each time anew in those that use them: write the value of one of them as a literal"
            )
        } else {
            too_many_items()
        };
        // Once is enough: all that is left to do is too much as well.
        if !self.poisoned {
            self.error(at, message);
        }
        self.poisoned = true;
        false
    }
}

/// Tokens between two brackets that are being looked at.
struct Level {
    tokens: proc_macro2::token_stream::IntoIter,
    /// Operators around the brackets.
    outside: usize,
    /// Operators here that what comes next may be nested in.
    operators: usize,
    /// What the last value here is a part or a result of: `.a[0](1)`. The next value is in none of that.
    postfixes: usize,
    /// Those operators that a comma does not end: `<` without `>`.
    angles: usize,
    /// What the token before was.
    before: Before,
}

#[derive(Clone, Copy, PartialEq)]
enum Before {
    Start,
    /// A value may end here, of which brackets make another: `f(x)`.
    Value,
    /// The end of braces, behind which a new statement may begin.
    Braces,
    /// A sign, which may go on in the next one; the last says whether it stands between two values.
    Sign(char, Spacing, bool),
}

impl Level {
    fn new(tokens: TokenStream, outside: usize) -> Self {
        Self { tokens: tokens.into_iter(), outside, operators: 0, postfixes: 0, angles: 0, before: Before::Start }
    }

    /// A sign or a word that is like one, of that weight.
    fn operator(&mut self, weight: usize) {
        self.operators += weight;
        self.postfixes = 0;
    }

    /// How deep what comes next is.
    fn depth(&self) -> usize {
        self.outside + self.operators + self.postfixes
    }

    /// What comes is nested in nothing that came, but for open angles.
    fn separate(&mut self) {
        self.operators = self.angles * HEAVY;
        self.postfixes = 0;
    }

    fn sign(&mut self, sign: char, spacing: Spacing) {
        let is_between = self.before == Before::Value;
        let is_second_half = match self.before {
            Before::Sign(first, Spacing::Joint, is_between) => is_double(first, sign, is_between),
            _ => false,
        };
        match sign {
            ';' => {
                self.angles = 0;
                self.separate();
            }
            ',' => self.separate(),
            _ if is_second_half => return self.before = Before::Sign(sign, Spacing::Alone, false),
            // An attribute begins something.
            '#' if self.before == Before::Braces => self.separate(),
            '.' | '?' if is_between => self.postfixes += 1,
            '<' => {
                self.angles += 1;
                self.operator(HEAVY);
            }
            '>' => {
                self.angles = self.angles.saturating_sub(1);
                self.operator(1);
            }
            // A reference or a closure, and no operator between two values.
            '&' | '|' if !is_between => self.operator(HEAVY),
            '|' => self.operator(2),
            _ => self.operator(1),
        }
        self.before = Before::Sign(sign, spacing, is_between);
    }

    fn word(&mut self, word: &str) {
        // What stands before a value or a type that is nested in it, or goes on behind one.
        match word {
            "else" | "as" => self.operator(1),
            _ if self.before == Before::Braces => {
                self.angles = 0;
                self.separate();
            }
            "return" | "break" | "move" | "let" | "fn" | "impl" | "dyn" | "mut" | "const" | "static" | "unsafe"
            | "async" | "ref" | "for" | "in" | "yield" | "await" | "box" | "try" | "if" | "match" | "while"
            | "loop" | "extern" | "where" => self.operator(HEAVY),
            _ => {}
        }
        self.before = Before::Value;
    }
}

/// Checks that tokens are nested no deeper than parser and compiler can follow: before they are parsed.
///
/// # Errors
/// They are, at the token where they become so.
pub fn check_depth(tokens: &TokenStream) -> syn::Result<()> {
    let mut levels = vec![Level::new(tokens.clone(), 0)];
    while let Some(level) = levels.last_mut() {
        let Some(token) = level.tokens.next() else {
            levels.pop();
            continue;
        };
        let span = token.span();
        match token {
            TokenTree::Punct(punct) => level.sign(punct.as_char(), punct.spacing()),
            TokenTree::Ident(word) => level.word(&word.to_string()),
            TokenTree::Literal(_) => level.word(""),
            TokenTree::Group(group) => {
                if matches!(level.before, Before::Value | Before::Braces) {
                    level.postfixes += 1;
                }
                let outside = level.depth() + 1;
                level.before = if group.delimiter() == Delimiter::Brace { Before::Braces } else { Before::Value };
                if levels.len() > MOST_BRACKETS {
                    return Err(too_deep_at(
                        group.span_open(),
                        &format!("more than {MOST_BRACKETS} brackets within each other"),
                    ));
                }
                levels.push(Level::new(group.stream(), outside));
            }
        }
        if let Some(level) = levels.last()
            && level.depth() > MOST_OPERATORS
        {
            return Err(too_deep_at(span, &format!("more than {MOST_OPERATORS} operators in one expression")));
        }
    }
    Ok(())
}

/// Whether two signs are one operator; before a value, `&&` are two.
fn is_double(first: char, second: char, is_between: bool) -> bool {
    match second {
        '&' if !is_between => false,
        '=' => "=!<>+-*/%^&|".contains(first),
        '&' | '|' | '.' | ':' => first == second,
        '>' => first == '-' || first == '=',
        _ => false,
    }
}

fn too_deep_at(span: Span, what: &str) -> syn::Error {
    syn::Error::new(
        span,
        format!("this is nested too deep, with {what}: put parts of it into variables by `let`, or into functions"),
    )
}
