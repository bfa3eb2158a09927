//! `assert!`, `println!` and their like: what a kernel reports.
//!
//! The macro's tokens are read here as Rust reads them, format string and all. In the copy that rustc checks the macro stays as it is written, so that rustc says what is wrong with a format that
//! this module lets pass, such as an argument that nobody shows.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;

use super::infer::{Ty, VarKind};
use super::scope::Infer;
use super::tree::{Kind, Node, ReportNode};
use crate::ir::{Format, Piece, Style};

/// What a macro asserts or prints.
pub(super) struct Written {
    /// What must hold.
    condition: Option<syn::Expr>,
    /// The author's own message, and the values that it shows.
    message: Option<(Vec<Piece>, Vec<syn::Expr>)>,
}

impl Written {
    /// Every expression in it.
    pub(super) fn values(&self) -> impl Iterator<Item = &syn::Expr> {
        self.condition.iter().chain(self.message.iter().flat_map(|(_, values)| values))
    }
}

/// What a macro has before its message.
enum Asserts {
    Nothing,
    Condition,
    /// Two values that are compared.
    Sides(syn::BinOp),
}

/// Reads a macro that reports something; `None` for every other.
///
/// # Errors
/// Its tokens are not what the macro takes.
pub(super) fn read(call: &syn::Macro) -> Option<syn::Result<Written>> {
    let name = call.path.get_ident()?.to_string();
    let asserts = match name.strip_prefix("debug_").unwrap_or(&name) {
        "assert" => Asserts::Condition,
        "assert_eq" => Asserts::Sides(syn::BinOp::Eq(Default::default())),
        "assert_ne" => Asserts::Sides(syn::BinOp::Ne(Default::default())),
        _ => match name.as_str() {
            "print" | "println" | "eprint" | "eprintln" => Asserts::Nothing,
            _ => return None,
        },
    };
    Some(arguments(call, asserts))
}

fn arguments(call: &syn::Macro, asserts: Asserts) -> syn::Result<Written> {
    let given = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated.parse2(call.tokens.clone())?;
    let mut given = given.into_iter();
    let prints = matches!(asserts, Asserts::Nothing);
    let mut next = |what: &str| {
        let name = call.path.to_token_stream();
        given.next().ok_or_else(|| syn::Error::new_spanned(&call.path, format!("`{name}!` takes {what}")))
    };
    let condition = match asserts {
        Asserts::Nothing => None,
        Asserts::Condition => Some(next("what must hold, and a message if you like")?),
        Asserts::Sides(op) => {
            let what = "two values that are compared, and a message if you like";
            let (left, right) = (Box::new(next(what)?), Box::new(next(what)?));
            Some(syn::Expr::Binary(syn::ExprBinary { attrs: Vec::new(), left, op, right }))
        }
    };
    let message = match given.next() {
        Some(text) => Some(message(&text, given)?),
        None if prints => Some((Vec::new(), Vec::new())),
        None => None,
    };
    Ok(Written { condition, message })
}

/// A message from its format string and arguments.
fn message(text: &syn::Expr, given: impl Iterator<Item = syn::Expr>) -> syn::Result<(Vec<Piece>, Vec<syn::Expr>)> {
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = text else {
        return Err(syn::Error::new_spanned(text, "a message is a text in quotes, with a value for each `{}` behind"));
    };
    let mut names = Vec::new();
    let mut values = Vec::new();
    for argument in given {
        match argument {
            syn::Expr::Assign(syn::ExprAssign { left, right, .. }) => {
                names.push(Some(left.to_token_stream().to_string()));
                values.push(*right);
            }
            plain => {
                names.push(None);
                values.push(plain);
            }
        }
    }
    let mut reader = Reader { text: text.value(), at: 0, span: text.span(), names, values, next: 0 };
    let pieces = reader.pieces()?;
    Ok((pieces, reader.values))
}

/// Reads a format string.
struct Reader {
    text: String,
    at: usize,
    span: Span,
    names: Vec<Option<String>>,
    values: Vec<syn::Expr>,
    next: usize,
}

impl Reader {
    fn error<T>(&self, message: impl std::fmt::Display) -> syn::Result<T> {
        Err(syn::Error::new(self.span, message))
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Goes on behind a text, if it stands here.
    fn skip(&mut self, text: &str) -> bool {
        let stands = self.rest().starts_with(text);
        self.at += if stands { text.len() } else { 0 };
        stands
    }

    /// The characters from here on for which something holds.
    fn take(&mut self, holds: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let taken = rest[..rest.find(|c| !holds(c)).unwrap_or(rest.len())].to_owned();
        self.at += taken.len();
        taken
    }

    fn pieces(&mut self) -> syn::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        while !self.rest().is_empty() {
            plain += &self.take(|c| !matches!(c, '{' | '}'));
            if self.skip("{{") {
                plain.push('{');
            } else if self.skip("}}") {
                plain.push('}');
            } else if self.skip("{") {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
                }
                let value = self.value()?;
                let format = if self.skip(":") { self.format()? } else { Format::default() };
                self.take(char::is_whitespace);
                if !self.skip("}") {
                    return self.error(format!(
                        "a report shows values by `{{}}`, `{{:?}}`, `{{:x}}`, `{{:8.3}}` and the like; `{}` is none of what it knows",
                        self.text
                    ));
                }
                pieces.push(Piece::Value(value, format));
            } else if self.skip("}") {
                return self.error("a `}` that closes nothing is written `}}`");
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain.into()));
        }
        Ok(pieces)
    }

    /// The position of the value that is meant.
    fn value(&mut self) -> syn::Result<u32> {
        self.take(char::is_whitespace);
        let name = self.take(|c| c.is_alphanumeric() || c == '_');
        self.take(char::is_whitespace);
        let position = if name.is_empty() {
            self.next += 1;
            self.next - 1
        } else if let Ok(position) = name.parse() {
            position
        } else if let Some(named) = self.names.iter().position(|known| known.as_deref() == Some(&name)) {
            named
        } else {
            // A variable around, by its name.
            let Ok(mut ident) = syn::parse_str::<syn::Ident>(&name) else {
                return self.error(format!("`{name}` is no name of a value"));
            };
            ident.set_span(self.span);
            let path = syn::Path::from(ident);
            self.names.push(Some(name));
            self.values.push(syn::Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path }));
            self.values.len() - 1
        };
        if position >= self.values.len() {
            let (wanted, given) = (position + 1, self.values.len());
            return self.error(format!("the message wants {wanted} values, and {given} are given"));
        }
        Ok(position as u32)
    }

    fn format(&mut self) -> syn::Result<Format> {
        let alternate = self.skip("#");
        let zeros = self.skip("0");
        let width = self.number()?;
        let precision = if self.skip(".") { self.number()? } else { None };
        let sign = self.take(|c| c == '?' || c.is_alphabetic());
        let Some((style, _)) = Style::ALL.into_iter().find(|(_, known)| *known == sign) else {
            return self.error(format!("a report does not know the format `{sign}`"));
        };
        Ok(Format { style, alternate, zeros, width, precision })
    }

    fn number(&mut self) -> syn::Result<Option<u32>> {
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(number) if number <= u32::from(u16::MAX) => Ok(Some(number)),
            _ => self.error(format!("{digits} characters are too many")),
        }
    }
}

impl Infer<'_> {
    /// What a macro reports; `None` for macros that report nothing.
    pub(super) fn report(&mut self, call: &syn::Macro) -> Option<Node> {
        let written = match read(call)? {
            Ok(written) => written,
            Err(error) => {
                let message = error.to_string();
                self.session.error(&syn::Ident::new("here", error.span()), message);
                return Some(self.failed(call));
            }
        };
        if self.in_constant {
            return Some(self.wrong(call, "a constant reports nothing: there is no invocation that computes it"));
        }
        // The syntax is read from the macro's tokens, and is nowhere in the text that rustc checks.
        let record = std::mem::replace(&mut self.record, false);
        let condition = written.condition.as_ref().map(|condition| self.expect(condition, &Ty::BOOL));
        let (text, values) = match (&written.message, &written.condition) {
            (Some((pieces, values)), asserted) => {
                let before = asserted.is_some().then(|| Piece::Text("assertion failed: ".into()));
                let values = values.iter().map(|value| self.expr(value, None)).collect();
                (before.into_iter().chain(pieces.iter().cloned()).collect(), values)
            }
            (None, Some(asserted)) => self.asserted(asserted),
            (None, None) => (Vec::new(), Vec::new()),
        };
        self.record = record;
        let report = ReportNode { condition, text, values };
        Some(self.node(Kind::Report(Box::new(report)), Ty::Unit, call))
    }

    /// The message of an assertion that has none: what is asserted, and what its sides are.
    fn asserted(&mut self, asserted: &syn::Expr) -> (Vec<Piece>, Vec<Node>) {
        let mut text = vec![Piece::Text(format!("assertion failed: {}", spelled(asserted)).into())];
        let mut values = Vec::new();
        let mut known = Vec::new();
        // A side that is read by itself may lack the type that it has beside the other, where shifts were looked at.
        let shifts = self.undecided.shifts.len();
        for side in sides(asserted) {
            let name = spelled(side);
            if known.contains(&name) {
                continue;
            }
            let node = self.expr(side, None);
            let ty = self.table.shallow(&node.ty);
            let number = matches!(self.table.kind(&ty), Some(VarKind::Integer | VarKind::Float));
            if !number && !matches!(ty, Ty::Scalar(_) | Ty::Vector(..) | Ty::Enum(_)) {
                continue;
            }
            let before = if values.is_empty() { ":" } else { "," };
            text.push(Piece::Text(format!("{before} {name} is ").into()));
            text.push(Piece::Value(values.len() as u32, Format { style: Style::Debug, ..Format::default() }));
            values.push(node);
            known.push(name);
        }
        self.undecided.shifts.truncate(shifts);
        (text, values)
    }
}

/// What is compared in a condition, but for literals.
fn sides(condition: &syn::Expr) -> Vec<&syn::Expr> {
    use syn::BinOp as B;
    match condition {
        syn::Expr::Paren(inner) => sides(&inner.expr),
        syn::Expr::Group(inner) => sides(&inner.expr),
        syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => sides(&unary.expr),
        syn::Expr::Binary(binary) => match binary.op {
            B::And(_) | B::Or(_) | B::BitAnd(_) | B::BitOr(_) | B::BitXor(_) => {
                [sides(&binary.left), sides(&binary.right)].concat()
            }
            B::Eq(_) | B::Ne(_) | B::Lt(_) | B::Le(_) | B::Gt(_) | B::Ge(_) => {
                [&*binary.left, &*binary.right].into_iter().filter(|side| !is_literal(side)).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_literal(side: &syn::Expr) -> bool {
    match side {
        syn::Expr::Lit(_) => true,
        syn::Expr::Unary(unary) => is_literal(&unary.expr),
        syn::Expr::Paren(inner) => is_literal(&inner.expr),
        _ => false,
    }
}

/// Syntax as one writes it, for messages.
pub(super) fn spelled(syntax: &impl ToTokens) -> String {
    let mut out = String::new();
    spell(syntax.to_token_stream(), &mut out);
    out
}

fn spell(tokens: TokenStream, out: &mut String) {
    // Whether an operand comes next, before which a sign is a prefix; whether it belongs to what stands before; and whether a sign goes on.
    let (mut operand, mut glued, mut joint) = (true, true, false);
    // The lists of generics around.
    let mut generics = 0;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::None => ("", ""),
                };
                // Behind an operand they are a call's or an index's.
                *out += if operand && !glued { " " } else { "" };
                *out += open;
                spell(group.stream(), out);
                *out += close;
                (operand, glued) = (false, false);
            }
            TokenTree::Punct(punct) => {
                let sign = punct.as_char();
                let (opens, closes) = (sign == '<' && (operand || generics > 0), sign == '>' && generics > 0);
                generics += i32::from(opens) - i32::from(closes);
                let tight = (opens && !operand) || closes || matches!(sign, '.' | ':' | ',' | ';' | '?');
                *out += if tight || joint || glued { "" } else { " " };
                out.push(sign);
                joint = punct.spacing() == Spacing::Joint;
                glued = opens || matches!(sign, '.' | ':') || (operand && !tight);
                operand |= sign != '?' && !closes && !joint;
            }
            word => {
                *out += if glued { "" } else { " " };
                *out += &word.to_string();
                (operand, glued) = (false, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test that fails may panic")]
    fn syntax_is_spelled_as_one_writes_it() {
        for text in [
            "a[i + 1] < -b.c(x, 3) && !(d == 2)",
            "lanes::<3, Pair<f32>>(x) < <T as Bounded>::MOST",
            "Tile::<SIZE>::ROWS > 1 || a >> 2 <= b << 1",
        ] {
            let written: syn::Expr = syn::parse_str(text).unwrap();
            assert_eq!(super::spelled(&written), text);
        }
    }
}
