//! Uniformity: barriers, subgroup operations and operations on matrices are reached by every invocation of a workgroup or by none; and what a subgroup gives
//! to an operation on a matrix is the same in all its invocations, which the same walk finds out with the subgroup in place of the workgroup.
//!
//! Values and control flow carry the reason why they may differ between the invocations of a workgroup, or nothing if they do not.
//! A function is gone through once for each combination of such arguments that occurs. Within a function, a mutable local differs
//! if anything that is ever assigned to it does, or if it is assigned where control flow differs; that grows until nothing changes.
//! A loop that an invocation may leave (or cut short) before others is a loop whose whole body differs; a function that an
//! invocation may leave before others differs from there to its end, while its caller comes together again.

use std::fmt;

use crate::diagnostic::Diagnostic;
use crate::hashing::HashMap;
use crate::ir::{
    Block, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Local, MatrixOperation, Module, Place,
    Root, Span, Statement, StatementKind, SubgroupFunction, TileOperation, Type,
};

/// Why a value differs; `None` if it does not.
type Reason = Option<Cause>;

/// What makes a value differ.
#[derive(Clone)]
struct Cause {
    /// In the author's words.
    words: String,
    /// Of the function at hand, the argument that brought it in, if one did.
    argument: Option<usize>,
}

impl Cause {
    /// One that the function at hand has by itself.
    fn own(words: impl Into<String>) -> Self {
        Self { words: words.into(), argument: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

pub fn check(module: &Module) -> Vec<Diagnostic> {
    let written = super::access::find(module).access.iter().map(|access| access.writes()).collect();
    let (collective, _) = super::function_facts(module);
    let walk = |within: Within, written: &[bool], collective: &[bool]| {
        let (written, collective) = (written.to_vec(), collective.to_vec());
        let mut analysis =
            Analysis { module, within, written, collective, results: HashMap::default(), found: Vec::new() };
        analysis.function(None, &[]);
        analysis.found
    };
    let written: Vec<bool> = written;
    // A kernel reaches functions that are not called from it never: they are not looked at, and not emitted.
    let mut found = walk(Within::Workgroup, &written, &collective);
    if module.types.iter().any(|(_, ty)| matches!(ty, Type::Matrix(_))) {
        found.extend(walk(Within::Subgroup, &written, &collective));
    }
    found.sort_by_key(|diagnostic| diagnostic.span);
    found.dedup();
    found
}

/// A function of the module (`None` is the kernel's own body), and whether each argument differs.
type Key = (Option<Handle<Function>>, Vec<bool>);

/// What a call gives. Calls share it whose arguments differ for other reasons: where an argument is the cause, the words are those of the first of them.
#[derive(Clone, Default)]
struct Outcome {
    result: Reason,
    /// For each by-reference argument, why it differs afterwards.
    references: Vec<Reason>,
}

/// Whose invocations are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Workgroup,
    Subgroup,
}

struct Analysis<'a> {
    module: &'a Module,
    within: Within,
    written: Vec<bool>,
    collective: Vec<bool>,
    results: HashMap<Key, Outcome>,
    found: Vec<Diagnostic>,
}

impl Analysis<'_> {
    /// The outcome of a call with arguments that differ for these reasons.
    fn function(&mut self, handle: Option<Handle<Function>>, arguments: &[Reason]) -> Outcome {
        let key: Key = (handle, arguments.iter().map(Option::is_some).collect());
        if let Some(known) = self.results.get(&key) {
            return known.clone();
        }
        let module = self.module;
        let function = handle.map_or(&module.entry, |handle| &module.functions[handle]);
        let mut walk = Walk {
            function,
            analysis: self,
            locals: vec![None; function.locals.len()],
            arguments: brought_in(arguments),
            result: None,
            left: None,
            exits: HashMap::default(),
            changed: true,
            report: false,
        };
        while walk.changed {
            walk.changed = false;
            walk.left = None;
            walk.block(&function.body, &None, &mut LoopExit::default());
        }
        walk.report = true;
        walk.left = None;
        walk.block(&function.body, &None, &mut LoopExit::default());
        let outcome = Outcome { result: walk.result, references: walk.arguments };
        self.results.insert(key, outcome.clone());
        outcome
    }
}

/// The reasons of arguments as the function that gets them has them.
fn brought_in(arguments: &[Reason]) -> Vec<Reason> {
    let mark = |(position, reason): (usize, &Reason)| {
        reason.as_ref().map(|cause| Cause { words: cause.words.clone(), argument: Some(position) })
    };
    arguments.iter().enumerate().map(mark).collect()
}

/// A reason of a function as its caller has it, whose arguments differ for these.
fn handed_back(reason: Reason, arguments: &[Reason]) -> Reason {
    let cause = reason?;
    match cause.argument {
        Some(position) => arguments.get(position).cloned().flatten(),
        None => Some(cause),
    }
}

/// Why control flow differs; `None` if it does not.
type Control = Option<Apart>;

/// How invocations came apart.
#[derive(Clone)]
struct Apart {
    /// Where that puts a statement: "inside an `if` whose condition depends on local_index()".
    place: String,
    /// The value on which it depends.
    reason: Cause,
}

/// Control flow inside a statement that is run as `reason` says.
fn inside(control: &Control, reason: Reason, what: &str) -> Control {
    control
        .clone()
        .or_else(|| reason.map(|reason| Apart { place: format!("inside {what} depends on {reason}"), reason }))
}

/// How invocations leave a loop apart.
#[derive(Default)]
struct LoopExit {
    /// Why, if they do.
    apart: Control,
}

struct Walk<'w, 'a> {
    function: &'a Function,
    analysis: &'w mut Analysis<'a>,
    locals: Vec<Reason>,
    arguments: Vec<Reason>,
    result: Reason,
    /// Why, for what comes after a `return` that not all invocations took.
    left: Control,
    /// How loops are left apart, by the addresses of their bodies.
    exits: HashMap<*const Block, Apart>,
    changed: bool,
    report: bool,
}

impl Walk<'_, '_> {
    fn block(&mut self, block: &Block, control: &Control, exit: &mut LoopExit) {
        for statement in block {
            // What comes after a partial return or loop exit differs.
            let control = control.clone().or_else(|| self.left.clone()).or_else(|| exit.apart.clone());
            self.statement(statement, &control, exit);
        }
    }

    fn statement(&mut self, statement: &Statement, control: &Control, exit: &mut LoopExit) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Let { local, value } => {
                if let Some(value) = value {
                    let reason = self.root_value(*value, control, span);
                    let mutable = self.function.locals[*local].mutable;
                    // A declaration inside differing control flow is seen only there; a mutable local may outlive one round of a loop.
                    let reason = if mutable { reason.or_else(|| because(control)) } else { reason };
                    self.assign(*local, reason);
                }
            }
            StatementKind::Store { place, value } => {
                let reason = self.value(*value).or_else(|| self.indices(place)).or_else(|| because(control));
                self.assign_root(place.root, reason);
            }
            StatementKind::Evaluate(value) => {
                self.root_value(*value, control, span);
            }
            StatementKind::If { condition, accept, reject, constant } => {
                let reason = if *constant { None } else { self.value(*condition) };
                let inner = inside(control, reason, "an `if` whose condition");
                self.block(accept, &inner, exit);
                self.block(reject, &inner, exit);
            }
            StatementKind::Switch { selector, cases, default } => {
                let reason = self.value(*selector);
                let inner = inside(control, reason, "a `match` on a value that");
                for case in cases {
                    self.block(&case.body, &inner, exit);
                }
                self.block(default, &inner, exit);
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let bounds = self.value(*start).or_else(|| self.value(*end)).or_else(|| self.value(*step));
                let first = self.value(*start).or_else(|| self.value(*step));
                self.assign(*local, first.or_else(|| because(control)));
                self.repeat(body, control, bounds, "a loop whose range");
            }
            StatementKind::While { condition, body } => {
                let reason = self.value(*condition);
                self.repeat(body, control, reason, "a `while` whose condition");
            }
            StatementKind::Loop { body } => self.repeat(body, control, None, "a loop that"),
            StatementKind::Break | StatementKind::Continue => {
                if exit.apart.is_none()
                    && let Some(apart) = control
                {
                    let word = if statement.kind == StatementKind::Break { "break" } else { "continue" };
                    exit.apart = Some(Apart {
                        place: format!(
                            "inside a loop with a `{word}` that some invocations take and others do not, because it is {}",
                            apart.place
                        ),
                        reason: apart.reason.clone(),
                    });
                }
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    let reason = self.value(*value).or_else(|| because(control));
                    if self.result.is_none() && reason.is_some() {
                        self.result = reason;
                        self.changed = true;
                    }
                }
                if self.left.is_none()
                    && let Some(apart) = control
                {
                    self.left = Some(Apart {
                        place: format!(
                            "after a `return` that some invocations take and others do not, because it is {}",
                            apart.place
                        ),
                        reason: apart.reason.clone(),
                    });
                }
            }
            StatementKind::Fence(_) | StatementKind::Asynchronous(_) => {}
            StatementKind::Reporting(body) => self.block(body, control, exit),
            StatementKind::Report(report) => {
                for value in &report.values {
                    self.value(*value);
                }
            }
            StatementKind::Matrix { result, operation } => self.matrix(*result, operation, control, span),
            StatementKind::Tile(operation) => self.tile(operation, control, span),
            StatementKind::Barrier => self.collective("barrier()", control, span),
            StatementKind::UniformLoad { place, .. } => {
                self.collective("workgroup_uniform_load()", control, span);
                if let (Within::Workgroup, Some(reason)) = (self.analysis.within, self.indices(place)) {
                    self.fail(span, format!("`workgroup_uniform_load` reads one element for the whole workgroup: its index depends on {reason}"));
                }
            }
            StatementKind::Atomic { result, .. } => {
                if let Some(result) = result {
                    self.assign(*result, Some(Cause::own("the result of an atomic operation")));
                }
            }
            StatementKind::Subgroup { result, function, lane, .. } => {
                let name = function.name();
                self.collective(&format!("{name}()"), control, span);
                if let (Within::Workgroup, SubgroupFunction::Broadcast, Some(lane)) =
                    (self.analysis.within, function, lane)
                    && let Some(reason) = self.value(*lane)
                {
                    self.fail(span, format!("`{name}` takes the value of one lane for the whole subgroup: its lane depends on {reason}; `subgroup_shuffle` takes a lane of each invocation's own"));
                }
                if self.analysis.within == Within::Workgroup || !function.is_uniform_in_subgroup() {
                    self.assign(*result, Some(Cause::own(format!("the result of {name}()"))));
                }
            }
        }
    }

    /// A loop's body: if invocations leave it apart, for `reason` or by themselves, all of it differs.
    fn repeat(&mut self, body: &Block, control: &Control, reason: Reason, what: &str) {
        // Whether they do by themselves was found out by an earlier walk of the whole function: a walk of the body for each loop around it would take
        // twice as long for every level.
        let key = std::ptr::from_ref(body);
        let known = self.exits.get(&key).cloned();
        let inner = inside(control, reason, what).or_else(|| known.clone());
        let before = self.left.is_some();
        let mut exit = LoopExit::default();
        self.block(body, &inner, &mut exit);
        let returned = if before { None } else { self.left.clone() };
        if known.is_none()
            && let Some(apart) = exit.apart.or(returned)
        {
            self.exits.insert(key, apart);
            self.changed = true;
        }
    }

    /// An operation on matrices: what it is given besides them is the subgroup's.
    fn matrix(&mut self, result: Option<Handle<Local>>, operation: &MatrixOperation, control: &Control, span: Span) {
        let name = operation.name();
        self.collective(&format!("`{name}` of a matrix"), control, span);
        if let MatrixOperation::Load { place, stride, .. } | MatrixOperation::Store { place, stride, .. } = operation {
            let stride = self.value(*stride);
            for (what, reason) in [("offset", self.indices(place)), ("stride", stride)] {
                if let (Within::Subgroup, Some(reason)) = (self.analysis.within, reason) {
                    self.fail(span, format!("a subgroup gives `{name}` of a matrix one {what}: it depends on {reason}; `subgroup_index()` is the same for a subgroup"));
                }
            }
        }
        if let Some(result) = result {
            self.assign(result, Some(Cause::own("a matrix")));
        }
    }

    /// An operation on tiles: what a copy is given is the workgroup's, and what a product is given the subgroup's.
    fn tile(&mut self, operation: &TileOperation, control: &Control, span: Span) {
        let name = operation.name();
        self.collective(&format!("`{name}`"), control, span);
        let (within, whose, hint, values) = match operation {
            TileOperation::Copy { stage, row, column, width, .. } => {
                let values = vec![("stage", stage), ("row", row), ("column", column), ("width", width)];
                (Within::Workgroup, "workgroup", "`group_index()` is the same for a workgroup", values)
            }
            TileOperation::Multiply { rows, columns, stage, .. } => {
                let values = vec![("number of rows", rows), ("number of columns", columns), ("stage", stage)];
                (Within::Subgroup, "subgroup", "`subgroup_index()` is the same for a subgroup", values)
            }
            TileOperation::BulkCopy { .. } | TileOperation::Finish { .. } => return,
        };
        for (what, value) in values {
            if let Some(reason) = self.value(*value).filter(|_| self.analysis.within == within) {
                self.fail(span, format!("a {whose} gives `{name}` one {what}: it depends on {reason}; {hint}"));
            }
        }
    }

    fn collective(&mut self, name: &str, control: &Control, span: Span) {
        if self.analysis.within == Within::Subgroup {
            return;
        }
        if let Some(Apart { place, .. }) = control {
            self.fail(span, format!("{name} must be reached by every invocation of the workgroup: it is {place}"));
        }
    }

    fn fail(&mut self, span: Span, message: String) {
        if self.report {
            self.analysis.found.push(Diagnostic::new(span, message));
        }
    }

    fn assign(&mut self, local: Handle<Local>, reason: Reason) {
        let known = &mut self.locals[local.index()];
        if known.is_none() && reason.is_some() {
            *known = reason;
            self.changed = true;
        }
    }

    fn assign_root(&mut self, root: Root, reason: Reason) {
        match root {
            Root::Local(local) => self.assign(local, reason),
            Root::Argument(argument) => {
                let known = &mut self.arguments[argument as usize];
                if known.is_none() && reason.is_some() {
                    *known = reason;
                    self.changed = true;
                }
            }
            Root::Binding(_) | Root::Workgroup(_) => {}
        }
    }

    fn indices(&mut self, place: &Place) -> Reason {
        let mut indices = Vec::new();
        place.indices(&mut |index| indices.push(*index));
        indices.into_iter().find_map(|index| self.value(index))
    }

    fn root_reason(&self, root: Root) -> Reason {
        match root {
            Root::Binding(binding) => {
                let binding = binding as usize;
                let name = &self.analysis.module.bindings[binding].name;
                self.analysis.written[binding]
                    .then(|| Cause::own(format!("what `{name}` holds, which the kernel writes")))
            }
            Root::Workgroup(variable) => {
                let name = &self.analysis.module.workgroup[variable].name;
                Some(Cause::own(format!(
                    "what the workgroup memory `{name}` holds (`workgroup_uniform_load` gives all invocations one value)"
                )))
            }
            Root::Local(local) => self.local(local),
            Root::Argument(argument) => self.arguments[argument as usize].clone(),
        }
    }

    fn local(&self, local: Handle<Local>) -> Reason {
        self.locals[local.index()].clone()
    }

    /// The root of a `Let` or `Evaluate`, which may be a call that waits.
    fn root_value(&mut self, handle: Handle<Expression>, control: &Control, span: Span) -> Reason {
        if let ExpressionKind::Call { function, arguments } = &self.function.expressions[handle].kind {
            if self.analysis.within == Within::Workgroup
                && self.analysis.collective[function.index()]
                && let Some(Apart { place, .. }) = control
            {
                let name = &self.analysis.module.functions[*function].name;
                let message = format!(
                    "`{name}` contains a barrier or a subgroup operation, and must be called by every invocation of the workgroup: the call is {place}"
                );
                self.fail(span, message);
            }
            return self.call(*function, arguments, control);
        }
        self.value(handle)
    }

    fn call(&mut self, function: Handle<Function>, arguments: &[CallArgument], control: &Control) -> Reason {
        let reasons: Vec<Reason> = arguments
            .iter()
            .map(|argument| match argument {
                CallArgument::Value(value) => self.value(*value),
                CallArgument::Reference(root) => self.root_reason(*root),
            })
            .collect();
        let outcome = self.analysis.function(Some(function), &reasons);
        for (argument, after) in arguments.iter().zip(outcome.references) {
            if let CallArgument::Reference(root) = argument {
                let after = handed_back(after, &reasons).or_else(|| because(control));
                self.assign_root(*root, after);
            }
        }
        handed_back(outcome.result, &reasons)
    }

    fn value(&mut self, handle: Handle<Expression>) -> Reason {
        let function = self.function;
        match &function.expressions[handle].kind {
            ExpressionKind::Builtin(Builtin::SubgroupIndex) if self.analysis.within == Within::Subgroup => None,
            ExpressionKind::MatrixLength(_) => Some(Cause::own("how many parts of a matrix an invocation holds")),
            ExpressionKind::Splat(value) => {
                let (ty, span) = (function.expressions[handle].ty, function.expressions[handle].span);
                let reason = self.value(*value);
                if let (Type::Matrix(_), Within::Subgroup, Some(reason)) =
                    (&self.analysis.module.types[ty], self.analysis.within, &reason)
                {
                    self.fail(span, format!("a subgroup fills a matrix with one value: it depends on {reason}"));
                }
                reason
            }
            ExpressionKind::Builtin(builtin) => builtin.varies_in_workgroup().then(|| {
                let name = Builtin::ALL.iter().find(|(known, _)| known == builtin).map_or("", |(_, name)| name);
                Cause::own(format!("{name}()"))
            }),
            ExpressionKind::Local(local) => self.local(*local),
            ExpressionKind::Argument(argument) => self.arguments[*argument as usize].clone(),
            ExpressionKind::Load(place) => self.root_reason(place.root).or_else(|| self.indices(place)),
            ExpressionKind::Call { function, arguments } => self.call(*function, arguments, &None),
            kind => {
                let mut operands = Vec::new();
                kind.operands(&mut |operand| operands.push(*operand));
                operands.into_iter().find_map(|operand| self.value(operand))
            }
        }
    }
}

/// A value that is assigned where control flow differs differs too.
fn because(control: &Control) -> Reason {
    control.as_ref().map(|apart| apart.reason.clone())
}
