//! The shape of functions: handles that exist, expressions used once, locals declared before use, control flow that goes somewhere.
//!
//! The front end makes only well-shaped modules; late modules are made by fusion, and mistakes there must not reach an emitter.

use super::access::function_facts;
use crate::diagnostic::Diagnostic;
use crate::hashing::HashSet;
use crate::ir::{
    Asynchronous, AtomicFunction, Block, CallArgument, Expression, ExpressionKind, Function, Handle, Local,
    MatrixOperation, Module, Piece, Place, Projection, Report, Root, Span, Statement, StatementKind, TileOperation,
    returns, statements,
};
use crate::reports;

pub fn check(module: &Module) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (handle, function) in module.functions.iter() {
        check_function(module, function, handle.index(), &mut found);
    }
    check_function(module, &module.entry, module.functions.len(), &mut found);
    let mut at_entry = |message: &str| found.push(Diagnostic::new(module.entry.span, message));
    if !module.entry.arguments.is_empty() {
        at_entry("a kernel's parameters are bindings and params, not arguments of its body");
    }
    if module.entry.result.is_some() {
        at_entry("a kernel gives no value: what it computes is written to `&mut` slices");
    }
    if found.is_empty() {
        check_call_positions(module, &mut found);
        check_reporting_calls(module, &mut found);
    }
    found
}

fn check_function(module: &Module, function: &Function, position: usize, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker {
        module,
        function,
        position,
        used: HashSet::default(),
        declared: HashSet::default(),
        known: HashSet::default(),
        loops: Vec::new(),
        constant: false,
        reporting: None,
        found,
    };
    let known_types = function.arguments.iter().map(|argument| argument.ty).chain(function.result);
    let local_types = function.locals.iter().map(|(_, local)| local.ty);
    let types = function.expressions.iter().map(|(_, expression)| expression.ty);
    for ty in known_types.chain(local_types).chain(types) {
        if module.types.get(ty).is_none() {
            return checker.fail(function.span, "a type is missing");
        }
    }
    checker.block(&function.body);
    if function.result.is_some() && !returns(&function.body) {
        let message = format!("`{}` gives a value, and does not return one on every path", function.name);
        checker.found.push(Diagnostic::new(function.span, message));
    }
}

struct Checker<'a> {
    module: &'a Module,
    function: &'a Function,
    /// The function's position in the arena: it may call those before.
    position: usize,
    used: HashSet<Handle<Expression>>,
    declared: HashSet<Handle<Local>>,
    known: HashSet<Handle<Local>>,
    /// For each enclosing loop, whether it is to be unrolled.
    loops: Vec<bool>,
    /// Whether the condition of an `if const` is being looked at.
    constant: bool,
    /// Where something is done for reports alone.
    reporting: Option<Outside>,
    found: &'a mut Vec<Diagnostic>,
}

/// What is around a block that is run for reports alone.
struct Outside {
    known: HashSet<Handle<Local>>,
    loops: usize,
}

impl Outside {
    /// What a statement does beyond the block.
    fn touched_by(&self, statement: &StatementKind, loops: usize) -> Option<&'static str> {
        let is_outside = |root: Root| !matches!(root, Root::Local(local) if !self.known.contains(&local));
        match statement {
            StatementKind::Store { place, .. } if is_outside(place.root) => Some("writes"),
            StatementKind::Atomic { function, .. } if *function != AtomicFunction::Load => Some("writes"),
            StatementKind::Asynchronous(_) | StatementKind::Tile(_) | StatementKind::Matrix { .. } => Some("writes"),
            StatementKind::Barrier | StatementKind::Fence(_) | StatementKind::UniformLoad { .. } => Some("waits"),
            StatementKind::Return(_) => Some("leaves the function"),
            StatementKind::Break | StatementKind::Continue if loops == self.loops => Some("leaves the loop"),
            _ => None,
        }
    }
}

impl Checker<'_> {
    fn fail(&mut self, span: Span, message: impl Into<String>) {
        let message = format!("{} (in `{}`)", message.into(), self.function.name);
        self.found.push(Diagnostic::new(span, message));
    }

    fn block(&mut self, block: &Block) {
        let outer = self.known.clone();
        for statement in block {
            self.statement(statement);
        }
        self.known = outer;
    }

    fn statement(&mut self, statement: &Statement) {
        let span = statement.span;
        self.constant = matches!(statement.kind, StatementKind::If { constant: true, .. });
        let touched = self.reporting.as_ref().and_then(|outside| outside.touched_by(&statement.kind, self.loops.len()));
        if let Some(does) = touched {
            self.fail(span, beyond_reports(does));
        }
        let before = self.found.len();
        statement.kind.operands(&mut |operand| self.expression(*operand, None, span));
        if self.found.len() > before {
            // What follows looks into the operands.
            return;
        }
        match &statement.kind {
            StatementKind::Let { local, value } => {
                let mutable = self.function.locals.get(*local).is_some_and(|local| local.mutable);
                if value.is_none() && !mutable {
                    self.fail(span, "an immutable local is declared without a value");
                }
                self.declare(*local, mutable, span);
            }
            StatementKind::Store { place, .. } => self.place(place, span),
            StatementKind::Evaluate(value) => {
                let kind = self.function.expressions.get(*value).map(|expression| &expression.kind);
                if !matches!(kind, Some(ExpressionKind::Call { .. })) {
                    self.fail(span, "only a call is a statement of its own");
                }
            }
            StatementKind::If { condition, constant: true, .. } => self.constant(*condition, span),
            StatementKind::Switch { cases, .. } => {
                let mut seen = HashSet::default();
                for case in cases {
                    if case.values.is_empty() || !case.values.iter().all(|value| seen.insert(*value)) {
                        self.fail(span, "each case of a match has values of its own");
                    }
                }
            }
            StatementKind::Break | StatementKind::Continue => match self.loops.last() {
                None => self.fail(span, "`break` and `continue` stand inside a loop"),
                Some(true) => {
                    self.fail(span, "a loop over `unroll(..)` can neither `break` nor `continue`: put the code that may be left out into an `if`");
                }
                Some(false) => {}
            },
            StatementKind::Return(value) => match (value, self.function.result) {
                (None, Some(_)) => self.fail(span, "the function gives a value; `return` it"),
                (Some(_), None) => self.fail(span, "the function gives no value"),
                _ => {}
            },
            StatementKind::UniformLoad { result, place } => {
                self.place(place, span);
                self.declare(*result, false, span);
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                self.place(place, span);
                let fits = result.is_some() != (*function == AtomicFunction::Store)
                    || !matches!(function, AtomicFunction::Load | AtomicFunction::Store);
                if !fits
                    || value.is_some() == (*function == AtomicFunction::Load)
                    || compare.is_some() != (*function == AtomicFunction::CompareExchange)
                {
                    self.fail(span, "an atomic operation has the wrong operands");
                }
                if !function.allows(ordering.order) {
                    let (name, suffix) = (function.name(), ordering.order.suffix());
                    self.fail(
                        span,
                        format!("there is no `{name}{suffix}`: what reads acquires, and what writes releases"),
                    );
                }
                if let Some(result) = result {
                    self.declare(*result, false, span);
                }
            }
            StatementKind::Subgroup { result, function, lane, .. } => {
                if lane.is_some() != function.takes_lane() {
                    self.fail(span, "a subgroup operation has the wrong operands");
                }
                self.declare(*result, false, span);
            }
            StatementKind::Matrix { result, operation } => {
                match operation {
                    MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. } => {
                        self.place(place, span)
                    }
                    MatrixOperation::MultiplyAdd { .. } => {}
                }
                match result {
                    Some(result) => self.declare(*result, false, span),
                    None if matches!(operation, MatrixOperation::Store { .. }) => {}
                    None => self.fail(span, "a matrix is made for nothing"),
                }
            }
            StatementKind::Tile(operation) => {
                if let TileOperation::Multiply { sums, .. } = operation {
                    self.place(sums, span);
                }
                if let TileOperation::Copy { from, .. } = operation {
                    self.root(*from, span);
                }
                if operation.tiles().into_iter().any(|tile| self.module.workgroup.get(tile).is_none()) {
                    self.fail(span, "a tile is missing");
                }
            }
            StatementKind::Report(Report { text, values, .. }) => {
                let shown = text.iter().filter_map(|piece| match piece {
                    Piece::Value(value, _) => Some(*value as usize),
                    Piece::Text(_) => None,
                });
                if shown.max().is_some_and(|last| last >= values.len()) {
                    self.fail(span, "a report shows a value that it is not given");
                }
                if self.reporting.is_none() {
                    self.fail(span, "a report stands among what is done for reports alone");
                }
            }
            StatementKind::Reporting(_)
            | StatementKind::If { .. }
            | StatementKind::For { .. }
            | StatementKind::While { .. }
            | StatementKind::Loop { .. }
            | StatementKind::Barrier
            | StatementKind::Fence(_) => {}
            StatementKind::Asynchronous(kind) => {
                if let Asynchronous::Copy { to, from, .. } = kind {
                    self.place(to, span);
                    self.place(from, span);
                }
            }
        }
        match &statement.kind {
            StatementKind::For { local, body, unroll, .. } => {
                let outer = self.known.clone();
                self.declare(*local, false, span);
                self.in_loop(body, *unroll);
                self.known = outer;
            }
            StatementKind::While { body, .. } | StatementKind::Loop { body } => self.in_loop(body, false),
            StatementKind::Reporting(body) => {
                let around = self.reporting.take();
                self.reporting = Some(Outside { known: self.known.clone(), loops: self.loops.len() });
                self.block(body);
                self.reporting = around;
            }
            kind => {
                for block in kind.blocks() {
                    self.block(block);
                }
            }
        }
    }

    fn in_loop(&mut self, body: &Block, unroll: bool) {
        self.loops.push(unroll);
        self.block(body);
        self.loops.pop();
    }

    fn declare(&mut self, local: Handle<Local>, mutable: bool, span: Span) {
        match self.function.locals.get(local) {
            None => self.fail(span, "a local is missing"),
            Some(item) => {
                if item.mutable != mutable {
                    self.fail(span, format!("`{}` gets its value once, and is declared as mutable", item.name));
                }
                if !self.declared.insert(local) {
                    self.fail(span, format!("`{}` is declared twice", item.name));
                }
                self.known.insert(local);
            }
        }
    }

    fn expression(&mut self, handle: Handle<Expression>, user: Option<Handle<Expression>>, span: Span) {
        let Some(expression) = self.function.expressions.get(handle) else {
            return self.fail(span, "an expression is missing");
        };
        let span = expression.span;
        if user.is_some_and(|user| user <= handle) {
            return self.fail(span, "an expression comes before its operands");
        }
        if !self.used.insert(handle) {
            return self.fail(span, "an expression is used twice; a value that is wanted twice is a local");
        }
        expression.kind.operands(&mut |operand| self.expression(*operand, Some(handle), span));
        let module = self.module;
        match &expression.kind {
            ExpressionKind::Local(local) => self.use_local(*local, false, span),
            ExpressionKind::Load(place) => self.place(place, span),
            ExpressionKind::Param(param) if *param as usize >= module.params.len() => {
                self.fail(span, "a parameter is missing");
            }
            ExpressionKind::Length(binding) if *binding as usize >= module.bindings.len() => {
                self.fail(span, "a binding is missing");
            }
            ExpressionKind::ViewExtent { binding, axis } | ExpressionKind::ViewStride { binding, axis } => {
                match module.bindings.get(*binding as usize) {
                    Some(known) if known.view.is_some_and(|rank| *axis < rank) => {}
                    Some(known) => {
                        let message = format!("`{}` has no axis {axis}", known.name);
                        self.fail(span, message);
                    }
                    None => self.fail(span, "a binding is missing"),
                }
            }
            ExpressionKind::Argument(argument) => match self.function.arguments.get(*argument as usize) {
                Some(argument) if !argument.by_reference => {}
                _ => self.fail(span, "an argument is missing or passed by reference"),
            },
            ExpressionKind::Call { function, arguments } => {
                if function.index() >= self.position {
                    self.fail(span, "a function calls itself or one after it; recursion is not part of the language");
                }
                for argument in arguments {
                    if let CallArgument::Reference(root) = argument {
                        self.root(*root, span);
                        if !matches!(root, Root::Local(_) | Root::Argument(_)) {
                            self.fail(span, "`&mut` of a part of memory cannot be passed to a function");
                        }
                    }
                }
            }
            ExpressionKind::TargetHas(_) if !self.constant => {
                self.fail(span, "`target::has` stands in the condition of an `if const` alone");
            }
            _ => {}
        }
    }

    /// A condition of `if const`: literals, `TargetHas` and operators alone.
    fn constant(&mut self, handle: Handle<Expression>, span: Span) {
        let mut allowed = true;
        self.function.tree(handle, &mut |part| {
            allowed &= matches!(
                self.function.expressions[part].kind,
                ExpressionKind::Literal(_)
                    | ExpressionKind::TargetHas(_)
                    | ExpressionKind::Unary { .. }
                    | ExpressionKind::Binary { .. }
                    | ExpressionKind::Logical { .. }
                    | ExpressionKind::Convert(_)
            );
        });
        if !allowed {
            self.fail(
                span,
                "the condition of an `if const` is made of `target::has(..)`, constants and operators alone",
            );
        }
    }

    fn place(&mut self, place: &Place, span: Span) {
        self.root(place.root, span);
        let elements = matches!(place.root, Root::Binding(_) | Root::Workgroup(_));
        if elements && !matches!(place.path.first(), Some(Projection::Index(_) | Projection::Vector { .. })) {
            self.fail(span, "a buffer or workgroup array is read and written element by element");
        }
        let inner = place.path.len().saturating_sub(1);
        if place.path[..inner].iter().any(|step| matches!(step, Projection::Vector { .. })) {
            self.fail(span, "a vector of elements is accessed as a whole");
        }
    }

    fn root(&mut self, root: Root, span: Span) {
        match root {
            Root::Binding(binding) if binding as usize >= self.module.bindings.len() => {
                self.fail(span, "a binding is missing");
            }
            Root::Workgroup(variable) if self.module.workgroup.get(variable).is_none() => {
                self.fail(span, "a workgroup variable is missing");
            }
            Root::Local(local) => self.use_local(local, true, span),
            Root::Argument(argument) => match self.function.arguments.get(argument as usize) {
                Some(argument) if argument.by_reference => {}
                _ => self.fail(span, "an argument is missing or passed by value"),
            },
            Root::Binding(_) | Root::Workgroup(_) => {}
        }
    }

    fn use_local(&mut self, local: Handle<Local>, mutable: bool, span: Span) {
        match self.function.locals.get(local) {
            None => self.fail(span, "a local is missing"),
            Some(item) if !self.known.contains(&local) => {
                self.fail(span, format!("`{}` is used where it is not declared", item.name));
            }
            Some(item) if item.mutable != mutable => {
                let how =
                    if mutable { "assigned, and declared as immutable" } else { "a value, and declared as mutable" };
                self.fail(span, format!("`{}` is {how}", item.name));
            }
            Some(_) => {}
        }
    }
}

/// The message for what is done in an assertion or a printed value, and does more than look.
fn beyond_reports(does: &str) -> String {
    format!(
        "what is asserted or printed is computed for reports alone, and must have no effects; this {does}: do it before, and use its result here"
    )
}

/// What is called for reports has no effects but reports, and does not wait.
fn check_reporting_calls(module: &Module, found: &mut Vec<Diagnostic>) {
    if !reports::has_reports(module) {
        return;
    }
    let mut quiet = module.clone();
    reports::without(&mut quiet);
    let (_, effects) = function_facts(&quiet);
    let waits = waiting(&quiet);
    for function in super::functions(module) {
        statements(&function.body, &mut |statement| {
            let StatementKind::Reporting(body) = &statement.kind else { return };
            function.live(body, &mut |expression| {
                let Expression { kind, span, .. } = &function.expressions[expression];
                let ExpressionKind::Call { function, .. } = kind else { return };
                if effects[function.index()] {
                    found.push(Diagnostic::new(*span, beyond_reports("writes")));
                } else if waits[function.index()] {
                    found.push(Diagnostic::new(*span, beyond_reports("waits")));
                }
            });
        });
    }
}

/// For each function, whether it or one that it calls does what [`Outside::touched_by`] refuses and is no effect.
fn waiting(module: &Module) -> Vec<bool> {
    let mut waiting = Vec::<bool>::new();
    for (_, function) in module.functions.iter() {
        let mut waits = false;
        statements(&function.body, &mut |statement| {
            waits |= matches!(
                statement.kind,
                StatementKind::Barrier
                    | StatementKind::UniformLoad { .. }
                    | StatementKind::Matrix { .. }
                    | StatementKind::Tile(_)
            );
        });
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Call { function: callee, .. } = &function.expressions[expression].kind {
                waits |= waiting.get(callee.index()).copied().unwrap_or(true);
            }
        });
        waiting.push(waits);
    }
    waiting
}

/// A call that writes or is collective is the root of a `Let` or `Evaluate`, and one that gives nothing that of an `Evaluate`.
fn check_call_positions(module: &Module, found: &mut Vec<Diagnostic>) {
    let (collective, effects) = function_facts(module);
    for function in super::functions(module) {
        statements(&function.body, &mut |statement| {
            let allowed = match &statement.kind {
                StatementKind::Let { value, .. } => *value,
                StatementKind::Evaluate(value) => Some(*value),
                _ => None,
            };
            statement.kind.operands(&mut |operand| {
                function.tree(*operand, &mut |part| {
                    let ExpressionKind::Call { function: callee, .. } = function.expressions[part].kind else {
                        return;
                    };
                    let is_alone = matches!(statement.kind, StatementKind::Evaluate(value) if value == part);
                    if !is_alone && module.functions[callee].result.is_none() {
                        found.push(Diagnostic::new(
                            function.expressions[part].span,
                            format!(
                                "`{}` gives no value: its call is a statement of its own",
                                module.functions[callee].name
                            ),
                        ));
                    } else if Some(part) != allowed && (collective[callee.index()] || effects[callee.index()]) {
                        found.push(Diagnostic::new(
                            function.expressions[part].span,
                            format!(
                                "the call of `{}`, which writes memory or waits for others, is a part of a larger expression; give its result a name with `let` first",
                                module.functions[callee].name
                            ),
                        ));
                    }
                });
            });
        });
    }
}
