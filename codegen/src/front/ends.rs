//! Where a piece of syntax begins and ends in the author's text.
//!
//! Any piece can be turned to tokens, of which the first and the last are its ends. In a macro that is a call into the compiler for each bracket in it, and
//! every expression in an expression is asked once more; so the ends of those that kernels are made of are found in the syntax.

use std::any::Any;

use proc_macro2::{Delimiter, Span, TokenTree};
use quote::ToTokens;

/// A piece of syntax.
pub(super) trait Placed: ToTokens + Any {
    /// The spans of the first and the last token.
    fn ends(&self) -> (Span, Span);
}

impl<T: ToTokens + Any> Placed for T {
    fn ends(&self) -> (Span, Span) {
        let piece: &dyn Any = self;
        of_expression(piece).unwrap_or_else(|| of_tokens(self))
    }
}

/// The ends of anything, by way of its tokens.
fn of_tokens(piece: &(impl ToTokens + ?Sized)) -> (Span, Span) {
    let mut tokens = piece.to_token_stream().into_iter();
    let Some(first) = tokens.next() else {
        return (Span::call_site(), Span::call_site());
    };
    let last = tokens.last();
    let first_span = match &first {
        TokenTree::Group(group) if group.delimiter() != Delimiter::None => group.span_open(),
        // An invisible group stands where a macro put a fragment: its content is what the author wrote.
        TokenTree::Group(group) => of_tokens(&group.stream()).0,
        other => other.span(),
    };
    let last_span = match last.as_ref().unwrap_or(&first) {
        TokenTree::Group(group) if group.delimiter() != Delimiter::None => group.span_close(),
        TokenTree::Group(group) => of_tokens(&group.stream()).1,
        other => other.span(),
    };
    (first_span, last_span)
}

/// Finds the ends of kinds of expressions, which may be asked for as themselves or as expressions.
macro_rules! kinds {
    ($($variant:ident($ty:ident) |$e:ident| $ends:expr;)*) => {
        fn of_expression(piece: &dyn Any) -> Option<(Span, Span)> {
            if let Some(ident) = piece.downcast_ref::<syn::Ident>() {
                return Some((ident.span(), ident.span()));
            }
            // Parts of expressions are in boxes.
            if let Some(expression) = piece.downcast_ref::<Box<syn::Expr>>() {
                return of_expression(expression.as_ref());
            }
            if let Some(ty) = piece.downcast_ref::<Box<syn::Type>>() {
                return of_type(ty);
            }
            if let Some(path) = piece.downcast_ref::<syn::Path>() {
                return of_path(path);
            }
            if let Some(pattern) = piece.downcast_ref::<syn::Pat>() {
                return of_pattern(pattern);
            }
            if let Some(expression) = piece.downcast_ref::<syn::Expr>() {
                return match expression {
                    $(syn::Expr::$variant(e) => of_expression(e),)*
                    _ => None,
                };
            }
            $(if let Some($e) = piece.downcast_ref::<syn::$ty>() {
                return $e.attrs.is_empty().then(|| $ends);
            })*
            None
        }
    };
}

kinds! {
    Binary(ExprBinary) |e| (e.left.ends().0, e.right.ends().1);
    Assign(ExprAssign) |e| (e.left.ends().0, e.right.ends().1);
    Index(ExprIndex) |e| (e.expr.ends().0, e.bracket_token.span.close());
    Call(ExprCall) |e| (e.func.ends().0, e.paren_token.span.close());
    MethodCall(ExprMethodCall) |e| (e.receiver.ends().0, e.paren_token.span.close());
    Field(ExprField) |e| (e.base.ends().0, match &e.member {
        syn::Member::Named(name) => name.span(),
        syn::Member::Unnamed(index) => index.span,
    });
    Paren(ExprParen) |e| (e.paren_token.span.open(), e.paren_token.span.close());
    Array(ExprArray) |e| (e.bracket_token.span.open(), e.bracket_token.span.close());
    Unary(ExprUnary) |e| (match &e.op {
        syn::UnOp::Deref(token) => token.span,
        syn::UnOp::Not(token) => token.span,
        syn::UnOp::Neg(token) => token.span,
        other => of_tokens(other).0,
    }, e.expr.ends().1);
    Cast(ExprCast) |e| (e.expr.ends().0, e.ty.ends().1);
    Lit(ExprLit) |e| (e.lit.span(), e.lit.span());
    If(ExprIf) |e| (e.if_token.span, match &e.else_branch {
        Some((_, other)) => other.ends().1,
        None => e.then_branch.brace_token.span.close(),
    });
    ForLoop(ExprForLoop) |e| match &e.label {
        Some(_) => of_tokens(e),
        None => (e.for_token.span, e.body.brace_token.span.close()),
    };
    Path(ExprPath) |e| match of_path(&e.path) {
        Some(ends) if e.qself.is_none() => ends,
        _ => of_tokens(e),
    };
    Range(ExprRange) |e| match (&e.start, &e.end) {
        (Some(start), Some(end)) => (start.ends().0, end.ends().1),
        _ => of_tokens(e),
    };
    While(ExprWhile) |e| match &e.label {
        Some(_) => of_tokens(e),
        None => (e.while_token.span, e.body.brace_token.span.close()),
    };
    Loop(ExprLoop) |e| match &e.label {
        Some(_) => of_tokens(e),
        None => (e.loop_token.span, e.body.brace_token.span.close()),
    };
    Match(ExprMatch) |e| (e.match_token.span, e.brace_token.span.close());
    Return(ExprReturn) |e| (e.return_token.span, match &e.expr {
        Some(value) => value.ends().1,
        None => e.return_token.span,
    });
    Struct(ExprStruct) |e| match of_path(&e.path) {
        Some((first, _)) if e.qself.is_none() => (first, e.brace_token.span.close()),
        _ => of_tokens(e),
    };
    Reference(ExprReference) |e| (e.and_token.span, e.expr.ends().1);
    Block(ExprBlock) |e| match &e.label {
        Some(_) => of_tokens(e),
        None => (e.block.brace_token.span.open(), e.block.brace_token.span.close()),
    };
    Repeat(ExprRepeat) |e| (e.bracket_token.span.open(), e.bracket_token.span.close());
    Tuple(ExprTuple) |e| (e.paren_token.span.open(), e.paren_token.span.close());
}

/// The ends of a path, where it ends in a name or in generic arguments.
fn of_path(path: &syn::Path) -> Option<(Span, Span)> {
    let (first, last) = (path.segments.first()?, path.segments.last()?);
    let begin = path.leading_colon.map_or_else(|| first.ident.span(), |colons| colons.spans[0]);
    match &last.arguments {
        syn::PathArguments::None => Some((begin, last.ident.span())),
        syn::PathArguments::AngleBracketed(arguments) => Some((begin, arguments.gt_token.span)),
        syn::PathArguments::Parenthesized(_) => None,
    }
}

/// The ends of a pattern that is a name.
fn of_pattern(pattern: &syn::Pat) -> Option<(Span, Span)> {
    match pattern {
        syn::Pat::Ident(name) if name.attrs.is_empty() && name.by_ref.is_none() && name.subpat.is_none() => {
            Some((name.mutability.map_or_else(|| name.ident.span(), |word| word.span), name.ident.span()))
        }
        _ => None,
    }
}

/// The ends of a type that is a path.
fn of_type(ty: &syn::Type) -> Option<(Span, Span)> {
    match ty {
        syn::Type::Path(ty) if ty.qself.is_none() => of_path(&ty.path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Placed, of_expression, of_tokens};
    use proc_macro2::Span;

    fn places((first, last): (Span, Span)) -> [(usize, usize); 2] {
        [(first.start().line, first.start().column), (last.end().line, last.end().column)]
    }

    #[test]
    fn ends_found_in_the_syntax_are_those_of_the_tokens() {
        let sources = [
            "a + b * c",
            "a.x + b.0",
            "-a",
            "!*a",
            "a = b",
            "a += f(b)",
            "a[i]",
            "f(x)(y)",
            "a.f::<u32>(x)",
            "(a, b)",
            "(a)",
            "[a, b]",
            "[0.0; 4]",
            "a as f32",
            "a as Vec4<f32>",
            "a as *const f32",
            "&mut a",
            "0..n",
            "..n",
            "0..",
            "1.5",
            "if a { b } else if c { d } else { e }",
            "if a { b }",
            "for i in 0..n { f(i); }",
            "'outer: for i in 0..n { f(i); }",
            "{ a }",
            "'outer: { a }",
            "Vec4::<f32>::splat(x) + T::ZERO",
            "::core::f32::consts::PI",
            "<T as Number>::ONE * T::map::<u32>",
            "loop { break a; }",
            "while a < b { f(); }",
            "'outer: while a { f(); }",
            "match a { B::C => d, _ => e }",
            "return a + b",
            "return",
            "Pair { first: a, second: b }",
        ];
        for source in sources {
            let expression: Box<syn::Expr> = syn::parse_str(source).unwrap();
            let expected = places(of_tokens(&expression));
            assert_eq!(places(expression.ends()), expected, "{source}");
            assert_eq!(places(expression.as_ref().ends()), expected, "{source}");
        }
        for source in ["let a = 0;", "let mut a = 0;", "let (a, b) = c;", "let ref a = b;", "let a: f32 = 0.0;"] {
            let syn::Stmt::Local(statement) = syn::parse_str(source).unwrap() else { panic!("{source} is a `let`") };
            assert_eq!(places(statement.pat.ends()), places(of_tokens(&statement.pat)), "{source}");
        }
        // What kernels are made of is found in the syntax, also in a box.
        let sum: Box<syn::Expr> = syn::parse_str("a.x + b[i] as f32").unwrap();
        assert!(of_expression(&sum).is_some());
    }
}
