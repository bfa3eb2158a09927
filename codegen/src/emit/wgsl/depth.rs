//! How deep a text is nested, which naga follows only so far.

use crate::diagnostic::Diagnostic;
use crate::ir::{Block, Expression, ExpressionKind, Function, Handle, Span};
use crate::lower::Lowered;

/// Brackets of all kinds within each other: naga follows 200 statements and expressions, of which each is in one more than its brackets.
const MOST_BRACKETS: usize = 190;
/// Braces within each other, of which naga follows 127.
const MOST_BRACES: usize = 120;

/// Whether naga can follow how deep a text is nested.
///
/// # Errors
/// What is too deep, at what is nested deepest in the kernel.
pub fn check(lowered: &Lowered, text: &str) -> Result<(), Diagnostic> {
    let (brackets, braces) = deepest(text);
    if brackets <= MOST_BRACKETS && braces <= MOST_BRACES {
        return Ok(());
    }
    let module = &lowered.module;
    let functions = module.functions.iter().map(|(_, function)| function).chain([&module.entry]);
    let (_, span) = functions.map(deepest_of).max_by_key(|(depth, _)| *depth).unwrap_or((0, module.entry.span));
    let what = if braces > MOST_BRACES {
        format!(
            "{braces} braces within each other, of which {MOST_BRACES} are possible: put what is inside into functions"
        )
    } else {
        format!(
            "{brackets} brackets within each other, of which {MOST_BRACKETS} are possible: put parts of it into variables by `let`, or into functions"
        )
    };
    Err(Diagnostic::new(span, format!("this is nested too deep for WGSL, where it takes {what}")))
}

/// The most brackets within each other, and the most braces.
fn deepest(text: &str) -> (usize, usize) {
    let (mut open, mut braces, mut most, mut most_braces) = (0usize, 0usize, 0, 0);
    // What an author says of the kernel stands behind `//`.
    for byte in text.lines().flat_map(|line| line.split("//").next().unwrap_or_default().bytes()) {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => continue,
        }
        match byte {
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        (most, most_braces) = (open.max(most), braces.max(most_braces));
    }
    (most, most_braces)
}

/// About how deep a function is nested, and where it is deepest.
fn deepest_of(function: &Function) -> (usize, Span) {
    let mut found = (0, function.span);
    in_block(function, &function.body, 1, &mut found);
    found
}

fn in_block(function: &Function, block: &Block, outside: usize, found: &mut (usize, Span)) {
    for statement in block {
        let mut consider = |depth: usize, span: Span| {
            if depth > found.0 {
                *found = (depth, span);
            }
        };
        consider(outside, statement.span);
        statement.kind.operands(&mut |operand| {
            consider(outside + depth(function, *operand), function.expressions[*operand].span);
        });
        for inner in statement.kind.blocks() {
            in_block(function, inner, outside + 1, found);
        }
    }
}

/// About how many brackets within each other an expression takes: what is on the left of an operator needs none.
fn depth(function: &Function, handle: Handle<Expression>) -> usize {
    let kind = &function.expressions[handle].kind;
    if let ExpressionKind::Binary { left, right, .. } | ExpressionKind::Logical { left, right, .. } = kind {
        return depth(function, *left).max(1 + depth(function, *right));
    }
    let mut most = 0;
    kind.operands(&mut |operand| most = most.max(1 + depth(function, *operand)));
    most
}
