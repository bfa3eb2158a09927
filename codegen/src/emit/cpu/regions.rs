//! Prints the kernel's body for a whole workgroup, as [`Plan`] has cut it: loops over invocations, and between them what the
//! workgroup does together.
//!
//! A region's inner loop is counted and simple, so that LLVM turns it into vectors: the guard `if i < n` around a kernel's body, with `i` the
//! invocation's own index, becomes the loop's bound.

mod arrays;
mod subgroup;

use std::collections::BTreeSet;

use self::arrays::accumulators;
use self::subgroup::subgroup_results;
use super::expr::{Code, Kernel, Scope};
use super::module::derived;
use super::plan::{Plan, Storage, collective, expression_locals, own_locals};
use super::stmt::{Leave, Out};
use super::types;
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, Block, Builtin, Expression, ExpressionKind, Handle, Local, LogicalOperator, Scalar, Statement,
    StatementKind, Type,
};

/// Prints bodies of workgroups.
pub(super) struct Regions<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) plan: &'a Plan<'a>,
    /// Whether invocations may leave in one region and others go on in the next.
    masked: bool,
    size: u32,
    /// Locals whose array holds each invocation's value as a whole, not spread over one array for each scalar: see [`accumulators`].
    whole: Vec<bool>,
}

impl<'a> Regions<'a> {
    pub(super) fn new(scope: &'a Scope<'a>, plan: &'a Plan<'a>) -> Self {
        let mut regions = Self {
            scope,
            plan,
            masked: false,
            size: scope.kernel.lowered.info.workgroup_size.iter().product(),
            whole: vec![false; plan.function.locals.len()],
        };
        accumulators(plan, &subgroup_results(plan), &plan.function.body, &mut Vec::new(), &mut regions.whole);
        regions.masked = plan.splits() && regions.leaves_alone(&plan.function.body);
        regions
    }

    fn kernel(&self) -> &Kernel<'a> {
        self.plan.kernel
    }

    /// Whether a `Return` stands where invocations run alone.
    fn leaves_alone(&self, block: &Block) -> bool {
        block.iter().any(|statement| {
            let kind = &statement.kind;
            if self.plan.together(kind) {
                return kind.blocks().iter().any(|inner| self.leaves_alone(inner));
            }
            let mut returns = false;
            for inner in kind.blocks() {
                crate::ir::statements(inner, &mut |s| returns |= matches!(s.kind, StatementKind::Return(_)));
            }
            returns
        })
    }

    /// Prints the body of one workgroup.
    pub(super) fn body(&self, out: &mut Out) -> Result<(), EmitError> {
        if self.masked {
            out.line(&format!("let mut alive = [true; {}];", self.size));
        }
        self.block(&self.plan.function.body, &self.size.to_string(), out)
    }

    fn block(&self, block: &[Statement], limit: &str, out: &mut Out) -> Result<(), EmitError> {
        let mut region: Vec<Statement> = Vec::new();
        let splits = self.plan.splits();
        for statement in block {
            let kind = &statement.kind;
            if !splits {
                region.push(statement.clone());
            } else if self.plan.moves_up(kind) {
                self.together(statement, limit, out)?;
            } else if self.plan.together(kind) {
                self.region(&region, limit, out)?;
                region.clear();
                self.together(statement, limit, out)?;
                if matches!(kind, StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)) {
                    return Ok(());
                }
            } else {
                region.push(statement.clone());
            }
        }
        self.region(&region, limit, out)
    }

    /// Prints a loop over invocations.
    fn region(&self, statements: &[Statement], limit: &str, out: &mut Out) -> Result<(), EmitError> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut clipped = None;
        if let Some((bound, rest)) = self.clip(statements)? {
            out.line(&format!("let limit: u32 = ({bound}).min({limit});"));
            clipped = Some(rest);
        }
        let (statements, limit) = match &clipped {
            Some(rest) => (rest.as_slice(), "limit"),
            None => (statements, limit),
        };
        let (mut used, mut declared) = (Vec::new(), BTreeSet::new());
        let mut returns = false;
        crate::ir::statements(statements, &mut |inner| {
            own_locals(self.plan.function, &inner.kind, &mut used);
            declared.extend(inner.kind.declares());
            returns |= matches!(inner.kind, StatementKind::Return(_));
        });
        let changed = used.iter().filter(|local| self.plan.function.locals[**local].mutable);
        let in_lanes = |local: &Handle<Local>| self.plan.storage[local.index()] == Storage::Lanes;
        let written: BTreeSet<Handle<Local>> = declared.iter().chain(changed).copied().filter(in_lanes).collect();
        used.retain(|local| !declared.contains(local));
        self.loop_over(limit, out, |out| {
            if self.masked {
                out.line("if !alive[lane as usize] { continue 'lane; }");
            }
            self.wanted(&used, out)?;
            let leave =
                if self.masked { "{ alive[lane as usize] = false; continue 'lane; }" } else { "continue 'lane;" };
            self.scope.block(statements, Leave::Lane(leave), out)?;
            for local in &written {
                let name = &self.scope.locals[local.index()];
                let ty = self.plan.function.locals[*local].ty;
                out.line(&self.scatter(&self.array(*local), name, ty, self.whole[local.index()]));
            }
            Ok(())
        })?;
        if self.masked && returns {
            out.line("if !alive.contains(&true) { continue 'group; }");
        }
        Ok(())
    }

    fn loop_over(
        &self,
        limit: &str,
        out: &mut Out,
        body: impl FnOnce(&mut Out) -> Result<(), EmitError>,
    ) -> Result<(), EmitError> {
        let names = &self.kernel().names;
        if names.flat {
            out.open(&format!("'lane: for lane in 0u32..{limit} {{"));
        } else {
            let [x, y, z] = self.kernel().lowered.info.workgroup_size;
            out.line(&format!("for lane_z in 0u32..{z} {{ for lane_y in 0u32..{y} {{"));
            out.open(&format!("'lane: for lane_x in 0u32..{x} {{"));
            out.line(&format!("let lane = (lane_z * {y} + lane_y) * {x} + lane_x;"));
        }
        for line in names.invocation(true) {
            out.line(&line);
        }
        body(out)?;
        out.close(if names.flat { "}" } else { "} } }" });
        Ok(())
    }

    /// If the invocations from some index on do nothing in a region: the number of the others, and the region without the test.
    fn clip(&self, statements: &[Statement]) -> Result<Option<(String, Vec<Statement>)>, EmitError> {
        if !self.kernel().names.flat {
            return Ok(None);
        }
        let tested = statements.iter().position(|statement| !matches!(statement.kind, StatementKind::Let { .. }));
        let Some(tested) = tested else { return Ok(None) };
        // What stands before the test must not be missed by those that do not get there.
        let harmless = statements[..tested].iter().all(|statement| match &statement.kind {
            StatementKind::Let { local, value: Some(value) } => {
                self.plan.storage[local.index()] != Storage::Lanes && !self.plan.reads_memory(*value)
            }
            StatementKind::Let { local, value: None } => self.plan.storage[local.index()] != Storage::Lanes,
            _ => false,
        });
        let StatementKind::If { condition, accept, reject, .. } = &statements[tested].kind else { return Ok(None) };
        if !harmless || !reject.is_empty() {
            return Ok(None);
        }
        let mut rest = statements[..tested].to_vec();
        let returns = matches!(accept.as_slice(), [Statement { kind: StatementKind::Return(_), .. }]);
        let bound = if returns && !self.plan.splits() {
            let ExpressionKind::Binary { operator, left, right } = self.plan.function.expressions[*condition].kind
            else {
                return Ok(None);
            };
            let bound = match operator {
                BinaryOperator::GreaterEqual => self.bound(left, right)?,
                BinaryOperator::LessEqual => self.bound(right, left)?,
                _ => None,
            };
            rest.extend_from_slice(&statements[tested + 1..]);
            bound
        } else if tested + 1 == statements.len() {
            let (test, other) = match self.plan.function.expressions[*condition].kind {
                ExpressionKind::Logical { operator: LogicalOperator::And, left, right } => (left, Some(right)),
                _ => (*condition, None),
            };
            let ExpressionKind::Binary { operator, left, right } = self.plan.function.expressions[test].kind else {
                return Ok(None);
            };
            let bound = match operator {
                BinaryOperator::Less => self.bound(left, right)?,
                BinaryOperator::Greater => self.bound(right, left)?,
                _ => None,
            };
            match other {
                Some(condition) => rest.push(Statement {
                    kind: StatementKind::If {
                        condition,
                        accept: accept.clone(),
                        reject: Block::new(),
                        constant: false,
                    },
                    span: statements[tested].span,
                }),
                None => rest.extend_from_slice(accept),
            }
            bound
        } else {
            return Ok(None);
        };
        Ok(bound.map(|bound| (bound, rest)))
    }

    /// For `index < end`, with the index that of the invocation: how many invocations pass.
    fn bound(&self, index: Handle<Expression>, end: Handle<Expression>) -> Result<Option<String>, EmitError> {
        let Some(base) = self.plan.lane_offset(index) else { return Ok(None) };
        if !self.plan.is_uniform(end) || self.plan.reads_memory(end) {
            return Ok(None);
        }
        // The end may be a local of this very region.
        let mut wanted = Vec::new();
        expression_locals(self.plan.function, end, &mut wanted);
        let mut lets = Vec::new();
        let mut seen: Vec<Handle<Local>> = Vec::new();
        while let Some(local) = wanted.pop() {
            if seen.contains(&local) || self.plan.storage[local.index()] == Storage::Workgroup {
                continue;
            }
            seen.push(local);
            let Some(value) = self.plan.values[local.index()] else { return Ok(None) };
            if self.plan.reads_memory(value) {
                return Ok(None);
            }
            expression_locals(self.plan.function, value, &mut wanted);
            lets.push((self.plan.order[local.index()], local, value));
        }
        lets.sort_by_key(|(order, ..)| *order);
        let mut text = String::new();
        for (_, local, value) in lets {
            text.push_str(&format!(
                "let {} = {}; ",
                self.scope.locals[local.index()],
                self.scope.expression(value)?.text()
            ));
        }
        let end = self.scope.expression(end)?;
        Ok(Some(if text.is_empty() {
            format!("{}.saturating_sub({base})", end.operand())
        } else {
            format!("{{ {text}{} }}.saturating_sub({base})", end.operand())
        }))
    }

    /// Prints what the workgroup does together.
    fn together(&self, statement: &Statement, limit: &str, out: &mut Out) -> Result<(), EmitError> {
        let function = self.plan.function;
        let module = self.kernel().module;
        match &statement.kind {
            // Regions end here; one thread sees what it wrote.
            StatementKind::Barrier => {}
            StatementKind::Break => out.line("break;"),
            StatementKind::Continue => out.line("continue;"),
            StatementKind::Return(_) => out.line("continue 'group;"),
            StatementKind::Let { local, value } => {
                let declared = &function.locals[*local];
                let value = match value {
                    Some(value) => self.first(*value)?,
                    None => types::zero(module, declared.ty),
                };
                let mutable = if declared.mutable { "mut " } else { "" };
                let ty = types::rust(module, declared.ty);
                out.line(&format!("let {mutable}{}: {ty} = {value};", self.scope.locals[local.index()]));
            }
            StatementKind::Store { place, value } => {
                let value = Code::loose(self.first(*value)?);
                let mut used = Vec::new();
                place.indices(&mut |index| expression_locals(function, *index, &mut used));
                out.line(&self.first_with(&used, &self.scope.store(place, &value)?)?);
            }
            StatementKind::UniformLoad { result, place } => {
                let ty = function.locals[*result].ty;
                let mut used = Vec::new();
                place.indices(&mut |index| expression_locals(function, *index, &mut used));
                let read = self
                    .scope
                    .with_pointer(place, &types::zero(module, ty), &|pointer, _| format!("({pointer}).read()"))?;
                let value = self.first_with(&used, read.text())?;
                let name = &self.scope.locals[result.index()];
                out.line(&format!("let {name}: {} = {value};", types::rust(module, ty)));
            }
            StatementKind::If { condition, accept, reject, .. } => {
                out.open(&format!("if {} {{", self.first(*condition)?));
                self.block(accept, limit, out)?;
                if !reject.is_empty() {
                    out.close("} else {");
                    out.open("{");
                    self.block(reject, limit, out)?;
                    out.close("}");
                    out.line("}");
                } else {
                    out.close("}");
                }
            }
            StatementKind::Switch { selector, cases, default } => {
                let signed = matches!(module.types[function.expressions[*selector].ty], Type::Scalar(Scalar::I32));
                let value = self.first(*selector)?;
                out.open(&if signed { format!("match ({value}) as u32 {{") } else { format!("match {value} {{") });
                for case in cases {
                    let values: Vec<String> = case.values.iter().map(|value| format!("{value}u32")).collect();
                    out.open(&format!("{} => {{", values.join(" | ")));
                    self.block(&case.body, limit, out)?;
                    out.close("}");
                }
                out.open("_ => {");
                self.block(default, limit, out)?;
                out.close("}");
                out.close("}");
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let name = &self.scope.locals[local.index()];
                let wraps = self.plan.lane_offset(*start).is_none() && self.scope.largest(*start).is_none();
                let (start, end) = (self.first(*start)?, self.first(*end)?);
                let step = match self.scope.literal_step(*step) {
                    Some(step) => format!("{}", step.max(1)),
                    None => format!("({} as usize).max(1)", self.first(*step)?),
                };
                if self.plan.is_strided(*local) && !collective(body) {
                    // Each round is for neighbouring elements; the last may be short.
                    let [begin, first, last, own_limit] =
                        ["begin", "first", "end", "limit"].map(|of| derived(of, name));
                    let start = if wraps {
                        out.line(&format!("let {begin}: u32 = {start};"));
                        out.open(&format!("if {begin} <= u32::MAX - {}u32 {{", self.size - 1));
                        begin
                    } else {
                        start
                    };
                    out.line(&format!("let {last}: u32 = {end};"));
                    out.open(&format!("for {first} in ({start}..{last}).step_by(({step}) as usize) {{"));
                    out.line(&format!("let {own_limit}: u32 = ({last} - {first}).min({limit});"));
                    self.block(body, &own_limit, out)?;
                    if wraps {
                        // Where the sum wraps, some begin before the first one, and each runs alone.
                        out.close("}");
                        out.close("} else {");
                        out.depth += 1;
                        self.region(std::slice::from_ref(statement), limit, out)?;
                    }
                } else {
                    out.open(&if step == "1" {
                        format!("for {name} in ({start})..({end}) {{")
                    } else {
                        format!("for {name} in (({start})..({end})).step_by(({step}) as usize) {{")
                    });
                    self.block(body, limit, out)?;
                }
                out.close("}");
            }
            StatementKind::While { condition, body } => {
                out.open(&format!("while {} {{", self.first(*condition)?));
                self.block(body, limit, out)?;
                out.close("}");
            }
            StatementKind::Loop { body } => {
                out.open("loop {");
                self.block(body, limit, out)?;
                out.close("}");
            }
            StatementKind::Subgroup { result, function: operation, value, lane } => {
                self.subgroup(*result, *operation, *value, *lane, out)?;
            }
            StatementKind::Evaluate(_)
            | StatementKind::Reporting(_)
            | StatementKind::Report(_)
            | StatementKind::Atomic { .. }
            | StatementKind::Asynchronous(_)
            | StatementKind::Fence(_)
            | StatementKind::Matrix { .. }
            | StatementKind::Tile(_) => {
                return Err(self.kernel().error("a statement that the workgroup cannot run together"));
            }
        }
        Ok(())
    }
}

/// Whether an expression or any function uses a builtin.
pub(super) fn uses(kernel: &crate::ir::Module, entry: &crate::ir::Function, wanted: &dyn Fn(Builtin) -> bool) -> bool {
    let mut found = false;
    let functions = kernel.functions.iter().map(|(_, function)| function).chain([entry]);
    for function in functions {
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Builtin(builtin) = function.expressions[expression].kind {
                found |= wanted(builtin);
            }
        });
    }
    found
}
