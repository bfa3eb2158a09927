//! Where a mistake can be made, and what it would be about.

use std::collections::BTreeSet;

use trefoil_codegen::ir::{
    Asynchronous, Block, CallArgument, ExpressionKind, Function, MatrixOperation, Module, Place, Root, Span, Statement,
    StatementKind, statements,
};

use crate::mistake::Mistake;

/// A place in an instance where a mistake can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Which mistake.
    pub mistake: Mistake,
    /// Where it is in the source.
    pub span: Span,
    /// `file:line`, or the file alone for code that nobody wrote.
    pub line: String,
    /// The function.
    pub function: String,
    /// Which it is of the sites of one mistake at one place in one function: the same in every instance that has it.
    pub number: u32,
    /// What goes wrong with it.
    pub about: About,
}

/// Lines and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// As in [`Site::line`].
    pub lines: BTreeSet<String>,
    /// Buffers, workgroup memory and variables, by their authors' names.
    pub memories: BTreeSet<String>,
    /// Whether it is about every pair of accesses that the site stands between.
    pub orders: bool,
    /// Whether it is a condition by which a loop or the function is left.
    pub exits: bool,
}

/// `file:line` of a span.
pub fn line(module: &Module, span: Span) -> String {
    match module.locations.position(span) {
        Some((file, line, _)) => format!("{file}:{line}"),
        None => module.locations.file.clone(),
    }
}

/// The author's name of a variable.
pub fn name(module: &Module, function: &Function, root: Root) -> String {
    match root {
        Root::Binding(binding) => module.bindings.get(binding as usize).map(|binding| &binding.name),
        Root::Workgroup(variable) => module.workgroup.get(variable).map(|variable| &variable.name),
        Root::Local(local) => function.locals.get(local).map(|local| &local.name),
        Root::Argument(index) => function.arguments.get(index as usize).map(|argument| &argument.name),
    }
    .cloned()
    .unwrap_or_default()
}

impl About {
    /// One variable.
    pub fn memory(module: &Module, function: &Function, root: Root) -> Self {
        Self { memories: [name(module, function, root)].into(), ..Self::default() }
    }

    /// What comes before what.
    pub fn order() -> Self {
        Self { orders: true, ..Self::default() }
    }

    /// What a block does: all of its lines with those of the functions that it calls, and everything that it writes.
    pub fn block(module: &Module, function: &Function, block: &Block) -> Self {
        let mut about = Self::default();
        about.add(module, function, block);
        about
    }

    /// The same of another block too.
    pub fn add(&mut self, module: &Module, function: &Function, block: &Block) {
        statements(block, &mut |statement| {
            self.lines.insert(line(module, statement.span));
            if let Some(place) = written(statement) {
                self.memories.insert(name(module, function, place.root));
            }
            statement.kind.operands(&mut |operand| {
                function.tree(*operand, &mut |part| {
                    let expression = &function.expressions[part];
                    self.lines.insert(line(module, expression.span));
                    let ExpressionKind::Call { function: callee, arguments } = &expression.kind else { return };
                    for argument in arguments {
                        if let CallArgument::Reference(root) = argument {
                            self.memories.insert(name(module, function, *root));
                        }
                    }
                    let callee = &module.functions[*callee];
                    self.add(module, callee, &callee.body);
                });
            });
        });
    }
}

/// What a statement writes.
fn written(statement: &Statement) -> Option<&Place> {
    match &statement.kind {
        StatementKind::Store { place, .. }
        | StatementKind::Atomic { place, .. }
        | StatementKind::Asynchronous(Asynchronous::Copy { to: place, .. })
        | StatementKind::Matrix { operation: MatrixOperation::Store { place, .. }, .. } => Some(place),
        _ => None,
    }
}
