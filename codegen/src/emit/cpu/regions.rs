//! Prints the kernel's body for a whole workgroup, as [`Plan`] has cut it: loops over invocations, and between them what the
//! workgroup does together.
//!
//! A region's inner loop is counted and simple, so that LLVM turns it into vectors: the guard `if i < n` around a kernel's body, with `i` the
//! invocation's own index, becomes the loop's bound.

use super::SUBGROUP_SIZE;
use super::expr::{Code, Kernel, Scope};
use super::plan::{Plan, Storage, collective, expression_locals, own_locals};
use super::stmt::{Leave, Out};
use super::types;
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, Block, Builtin, Expression, ExpressionKind, Handle, Local, LogicalOperator, Scalar, Statement,
    StatementKind, SubgroupFunction, Type,
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
        accumulators(plan, &plan.function.body, &mut Vec::new(), &mut regions.whole);
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

    /// The arrays over invocations, to be declared once before the first workgroup.
    pub(super) fn arrays(&self, out: &mut Out) {
        for (handle, local) in self.plan.function.locals.iter() {
            if self.plan.storage[handle.index()] != Storage::Lanes {
                continue;
            }
            let (ty, zero) = self.array_of(local.ty, self.whole[handle.index()]);
            out.line(&format!("let mut {}: {ty} = {zero};", self.array(handle)));
        }
    }

    /// The lengths of the nested arrays over which a value is spread.
    fn spread(&self, ty: Handle<Type>, whole: bool) -> Option<(Vec<u32>, &'static str, &'static str)> {
        if whole { None } else { types::spread(self.kernel().module, ty) }
    }

    fn array_of(&self, ty: Handle<Type>, whole: bool) -> (String, String) {
        let module = self.kernel().module;
        let size = self.size;
        match self.spread(ty, whole) {
            Some((lengths, name, zero)) => {
                let mut text = (format!("[{name}; {size}]"), format!("[{zero}; {size}]"));
                for length in lengths.iter().rev() {
                    text = (format!("[{}; {length}]", text.0), format!("[{}; {length}]", text.1));
                }
                text
            }
            None => {
                (format!("[{}; {size}]", types::rust(module, ty)), format!("[{}; {size}]", types::zero(module, ty)))
            }
        }
    }

    fn array(&self, local: Handle<Local>) -> String {
        format!("lanes_{}", self.scope.locals[local.index()])
    }

    /// The value that this invocation has in an array over invocations.
    fn gather(&self, array: &str, ty: Handle<Type>, whole: bool) -> String {
        let depth = self.spread(ty, whole).map_or(0, |(lengths, ..)| lengths.len());
        let path: String = (0..depth).map(|i| format!("[k{i}]")).collect();
        let mut text = format!("*{array}{path}.get_unchecked(lane as usize)");
        for i in (0..depth).rev() {
            text = format!("core::array::from_fn(|k{i}| {text})");
        }
        text
    }

    fn scatter(&self, array: &str, value: &str, ty: Handle<Type>, whole: bool) -> String {
        let lengths = self.spread(ty, whole).map_or_else(Vec::new, |(lengths, ..)| lengths);
        let path: String = (0..lengths.len()).map(|i| format!("[k{i}]")).collect();
        let mut text = format!("*{array}{path}.get_unchecked_mut(lane as usize) = {value}{path};");
        for (i, length) in lengths.iter().enumerate().rev() {
            text = format!("for k{i} in 0..{length} {{ {text} }}");
        }
        text
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
                self.together(kind, limit, out)?;
            } else if self.plan.together(kind) {
                self.region(&region, limit, out)?;
                region.clear();
                self.together(kind, limit, out)?;
                if matches!(kind, StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)) {
                    return Ok(());
                }
            } else {
                region.push(statement.clone());
            }
        }
        self.region(&region, limit, out)
    }

    /// What the first invocation would compute, for code of the workgroup.
    fn first(&self, expression: Handle<Expression>) -> Result<String, EmitError> {
        let mut used = Vec::new();
        expression_locals(self.plan.function, expression, &mut used);
        self.first_with(&used, self.scope.expression(expression)?.text())
    }

    fn first_with(&self, used: &[Handle<Local>], text: &str) -> Result<String, EmitError> {
        let plain = used.iter().all(|local| self.plan.storage[local.index()] == Storage::Workgroup);
        let varying = ["lane", "global", "local_id"].iter().any(|word| text.contains(word));
        if plain && !varying {
            return Ok(text.to_owned());
        }
        let mut out = Out::default();
        out.open("{");
        out.line("let lane = 0u32;");
        for line in self.kernel().names.invocation(false) {
            out.line(&line);
        }
        self.wanted(used, &mut out)?;
        out.line(text);
        out.close("}");
        Ok(out.into_text().trim_end().to_owned())
    }

    /// Declares, for one invocation, the locals that it wants from outside its region.
    fn wanted(&self, used: &[Handle<Local>], out: &mut Out) -> Result<(), EmitError> {
        for local in self.plan.wanted(used) {
            let name = &self.scope.locals[local.index()];
            let declared = &self.plan.function.locals[local];
            let ty = types::rust(self.kernel().module, declared.ty);
            let mutable = if declared.mutable { "mut " } else { "" };
            match self.plan.storage[local.index()] {
                Storage::Lanes => {
                    let value = self.gather(&self.array(local), declared.ty, self.whole[local.index()]);
                    out.line(&format!("let {mutable}{name}: {ty} = {value};"));
                }
                Storage::Again => {
                    if let Some(value) = self.plan.values[local.index()] {
                        out.line(&format!("let {name}: {ty} = {};", self.scope.expression(value)?.text()));
                    }
                }
                Storage::Strided => out.line(&format!("let {name}: u32 = first_{name}.wrapping_add(lane);")),
                Storage::Region | Storage::Workgroup => {}
            }
        }
        Ok(())
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
        let (mut used, mut declared, mut written) = (Vec::new(), Vec::new(), Vec::new());
        let mut returns = false;
        for statement in statements {
            crate::ir::statements(&vec![statement.clone()], &mut |inner| {
                own_locals(self.plan.function, &inner.kind, &mut used);
                declared.extend(inner.kind.declares());
                returns |= matches!(inner.kind, StatementKind::Return(_));
            });
        }
        for (handle, local) in self.plan.function.locals.iter() {
            let here = declared.contains(&handle);
            if self.plan.storage[handle.index()] == Storage::Lanes
                && (here || (local.mutable && used.contains(&handle)))
            {
                written.push(handle);
            }
        }
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
    fn together(&self, kind: &StatementKind, limit: &str, out: &mut Out) -> Result<(), EmitError> {
        let function = self.plan.function;
        let module = self.kernel().module;
        match kind {
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
                let (start, end) = (self.first(*start)?, self.first(*end)?);
                let step = match self.scope.literal_step(*step) {
                    Some(step) => format!("{}", step.max(1)),
                    None => format!("({} as usize).max(1)", self.first(*step)?),
                };
                if self.plan.is_strided(*local) && !collective(body) {
                    // Each round is for neighbouring elements; the last may be short.
                    out.line(&format!("let end_{name}: u32 = {end};"));
                    out.open(&format!("for first_{name} in ({start}..end_{name}).step_by(({step}) as usize) {{"));
                    out.line(&format!("let limit_{name}: u32 = (end_{name} - first_{name}).min({limit});"));
                    self.block(body, &format!("limit_{name}"), out)?;
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
            StatementKind::Evaluate(_) | StatementKind::Atomic { .. } => {
                return Err(self.kernel().error("a statement that the workgroup cannot run together"));
            }
        }
        Ok(())
    }

    /// The values of all invocations go to an array; the operation fills the result's array.
    fn subgroup(
        &self,
        result: Handle<Local>,
        operation: SubgroupFunction,
        value: Handle<Expression>,
        lane: Option<Handle<Expression>>,
        out: &mut Out,
    ) -> Result<(), EmitError> {
        let function = self.plan.function;
        let module = self.kernel().module;
        let ty = function.expressions[value].ty;
        let (array_type, zero) = self.array_of(ty, false);
        let size = self.size;
        out.open("{");
        out.line(&format!("let mut given: {array_type} = {zero};"));
        if lane.is_some() {
            out.line(&format!("let mut asked: [u32; {size}] = [0u32; {size}];"));
        }
        let mut used = Vec::new();
        expression_locals(function, value, &mut used);
        if let Some(lane) = lane {
            expression_locals(function, lane, &mut used);
        }
        self.loop_over(&size.to_string(), out, |out| {
            self.wanted(&used, out)?;
            out.line(&format!("let value: {} = {};", types::rust(module, ty), self.scope.expression(value)?.text()));
            out.line(&self.scatter("given", "value", ty, false));
            if let Some(lane) = lane {
                out.line(&format!(
                    "*asked.get_unchecked_mut(lane as usize) = {};",
                    self.scope.expression(lane)?.text()
                ));
            }
            Ok(())
        })?;
        let scalar =
            module.types[ty].scalar().ok_or_else(|| self.kernel().error("a subgroup operation on a struct"))?;
        let parts: Vec<String> = match module.types[ty] {
            Type::Vector { lanes, .. } => (0..lanes).map(|i| format!("[{i}]")).collect(),
            _ => vec![String::new()],
        };
        let target = self.array(result);
        out.open(&format!("for first in (0usize..{size}).step_by({SUBGROUP_SIZE}) {{"));
        out.line(&format!("let last = (first + {SUBGROUP_SIZE}).min({size});"));
        for part in parts {
            let combine = match (operation, scalar) {
                (SubgroupFunction::Add, Scalar::F32) => Some("all + other"),
                (SubgroupFunction::Add, _) => Some("all.wrapping_add(other)"),
                (SubgroupFunction::Max, _) => Some("all.max(other)"),
                (SubgroupFunction::Min, _) => Some("all.min(other)"),
                (SubgroupFunction::Broadcast | SubgroupFunction::Shuffle | SubgroupFunction::ShuffleXor, _) => None,
            };
            match combine {
                Some(combine) => {
                    out.line(&format!("let mut all = given{part}[first];"));
                    out.line(&format!("for at in first + 1..last {{ let other = given{part}[at]; all = {combine}; }}"));
                    out.line(&format!("for at in first..last {{ {target}{part}[at] = all; }}"));
                }
                None => {
                    let from = match operation {
                        SubgroupFunction::ShuffleXor => "((at - first) as u32 ^ asked[at]) as usize",
                        _ => "asked[at] as usize",
                    };
                    out.line(&format!(
                        "for at in first..last {{ let from = {from}; {target}{part}[at] = if from < last - first {{ \
                         given{part}[first + from] }} else {{ {} }}; }}",
                        types::zero_scalar(scalar)
                    ));
                }
            }
        }
        out.close("}");
        out.close("}");
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

/// Marks the locals over invocations that a loop inside a region uses other than by its own counter.
///
/// Such a loop keeps the loop over invocations from becoming vectors; what can still become vectors are neighbouring parts of one
/// invocation's value, such as a tile of sums, so these lie together in memory. Otherwise the same part of neighbouring
/// invocations does.
fn accumulators(plan: &Plan<'_>, block: &[Statement], counters: &mut Vec<Option<Handle<Local>>>, whole: &mut [bool]) {
    let function = plan.function;
    let mut places: Vec<(Handle<Local>, bool)> = Vec::new();
    for statement in block {
        let kind = &statement.kind;
        if !counters.is_empty() {
            let by_counter = |place: &crate::ir::Place| {
                let mut used = Vec::new();
                place.indices(&mut |index| expression_locals(function, *index, &mut used));
                used.iter().any(|local| counters.contains(&Some(*local)))
            };
            if let StatementKind::Store { place, .. } = kind
                && let crate::ir::Root::Local(local) = place.root
            {
                places.push((local, by_counter(place)));
            }
            kind.operands(&mut |operand| {
                function.tree(*operand, &mut |part| match &function.expressions[part].kind {
                    ExpressionKind::Load(place) => {
                        if let crate::ir::Root::Local(local) = place.root {
                            places.push((local, by_counter(place)));
                        }
                    }
                    ExpressionKind::Local(local) => places.push((*local, false)),
                    _ => {}
                });
            });
        }
        let loops =
            matches!(kind, StatementKind::For { .. } | StatementKind::While { .. } | StatementKind::Loop { .. });
        let inside = loops && (!counters.is_empty() || !plan.together(kind));
        if inside {
            counters.push(kind.declares());
        }
        for inner in kind.blocks() {
            accumulators(plan, inner, counters, whole);
        }
        if inside {
            counters.pop();
        }
    }
    for (local, by_counter) in places {
        let several =
            matches!(plan.kernel.module.types[function.locals[local].ty], Type::Array { .. } | Type::Vector { .. });
        if several && !by_counter && plan.storage[local.index()] == Storage::Lanes && !from_subgroup(plan, local) {
            whole[local.index()] = true;
        }
    }
}

/// Whether a subgroup operation fills the local's array, which it does part by part.
fn from_subgroup(plan: &Plan<'_>, local: Handle<Local>) -> bool {
    let mut found = false;
    crate::ir::statements(&plan.function.body, &mut |statement| {
        found |= matches!(statement.kind, StatementKind::Subgroup { result, .. } if result == local);
    });
    found
}
