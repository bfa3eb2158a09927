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
    Field(ExprField) |e| (e.base.ends().0, e.member.ends().1);
    Paren(ExprParen) |e| (e.paren_token.span.open(), e.paren_token.span.close());
    Array(ExprArray) |e| (e.bracket_token.span.open(), e.bracket_token.span.close());
    Unary(ExprUnary) |e| (e.op.ends().0, e.expr.ends().1);
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
    Path(ExprPath) |e| match e.path.get_ident() {
        Some(ident) if e.qself.is_none() => (ident.span(), ident.span()),
        _ => of_tokens(e),
    };
}
