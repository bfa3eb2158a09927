//! Probes, which tell whether a run gets to a place: divisions by zero at lines that no file has, so that the checker itself tells of them.

use trefoil_codegen::ir::{
    BinaryOperator, Block, Expression, ExpressionKind, Function, Handle, Literal, Local, Module, Scalar, Span,
    Statement, StatementKind, Type,
};

/// The line of the first probe.
const FIRST: u32 = 1_000_000;

/// What probes of a module have in common.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    word: Handle<Type>,
    made: u32,
}

impl Probes {
    /// None yet.
    pub fn of(module: &mut Module) -> Self {
        Self { word: module.intern(Type::Scalar(Scalar::U32)), made: 0 }
    }

    /// The place of the next one.
    pub fn next(&mut self, module: &mut Module) -> Span {
        self.made += 1;
        let file = module.locations.file.clone();
        module.locations.add(&file, FIRST + self.made - 1, 1)
    }

    /// A probe in a function.
    pub fn make(self, function: &mut Function, span: Span) -> Statement {
        let mut word = |kind| function.expressions.add(Expression { kind, ty: self.word, span });
        let left = word(ExpressionKind::Literal(Literal::U32(1)));
        let right = word(ExpressionKind::Literal(Literal::U32(0)));
        let value = word(ExpressionKind::Binary { operator: BinaryOperator::Divide, left, right });
        let local = Local { name: "probe".to_owned(), ty: self.word, mutable: false, span };
        let local = function.locals.add(local);
        Statement { kind: StatementKind::Let { local, value: Some(value) }, span }
    }

    /// Puts one at the beginning of a block and of every block inside it.
    fn everywhere(&mut self, module: &mut Module, function: &mut Function, block: &mut Block) {
        for statement in block.iter_mut() {
            for inner in statement.kind.blocks_mut() {
                self.everywhere(module, function, inner);
            }
        }
        let span = self.next(module);
        block.insert(0, self.make(function, span));
    }
}

/// The module with a probe at the beginning of every block, numbered from 0.
pub fn everywhere(module: &Module) -> Module {
    let mut probed = module.clone();
    let mut probes = Probes::of(&mut probed);
    let mut visit = |probed: &mut Module, function: &Function| {
        let mut copy = function.clone();
        let mut body = std::mem::take(&mut copy.body);
        probes.everywhere(probed, &mut copy, &mut body);
        copy.body = body;
        copy
    };
    for (handle, function) in module.functions.iter() {
        probed.functions[handle] = visit(&mut probed, function);
    }
    probed.entry = visit(&mut probed, &module.entry);
    probed
}

/// The number of the probe that is at a place of which the checker tells.
pub fn number(at: &str) -> Option<u32> {
    let line: u32 = at.rsplit(':').nth(1)?.parse().ok()?;
    line.checked_sub(FIRST)
}
