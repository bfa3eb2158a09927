//! Statements of one invocation, as Rust statements.
//!
//! The code that these print runs inside a loop over the invocations of a workgroup, or in a function; what the workgroup does
//! together is printed by [`super::regions`].

use super::expr::{Code, Memory, Scope};
use super::types;
use crate::emit::EmitError;
use crate::ir::{
    AtomicFunction, Block, Expression, ExpressionKind, Handle, Literal, Local, Order, Place, Root, Scalar, Statement,
    StatementKind, Type,
};

/// Text with indentation.
#[derive(Debug, Default)]
pub(super) struct Out {
    text: String,
    pub(super) depth: usize,
}

impl Out {
    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A line that opens a block.
    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    /// A line that closes one.
    pub(super) fn close(&mut self, text: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(text);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// How an invocation leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leave<'a> {
    /// By these statements: the code is in a loop over invocations.
    Lane(&'a str),
    /// By returning from a function.
    Function,
}

impl Scope<'_> {
    pub(super) fn block(&self, block: &[Statement], leave: Leave<'_>, out: &mut Out) -> Result<(), EmitError> {
        for statement in block {
            self.statement(&statement.kind, leave, out)?;
            if matches!(statement.kind, StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)) {
                // What follows is dead.
                break;
            }
        }
        Ok(())
    }

    fn nested(&self, block: &Block, leave: Leave<'_>, out: &mut Out) -> Result<(), EmitError> {
        self.block(block, leave, out)
    }

    fn ascribed(&self, local: Handle<Local>) -> String {
        let declared = &self.function.locals[local];
        let mutable = if declared.mutable { "mut " } else { "" };
        format!("let {mutable}{}: {}", self.locals[local.index()], types::rust(self.kernel.module, declared.ty))
    }

    pub(super) fn statement(
        &self,
        statement: &StatementKind,
        leave: Leave<'_>,
        out: &mut Out,
    ) -> Result<(), EmitError> {
        match statement {
            StatementKind::Let { local, value } => {
                let value = match value {
                    Some(value) => self.expression(*value)?.text().to_owned(),
                    None => types::zero(self.kernel.module, self.function.locals[*local].ty),
                };
                out.line(&format!("{} = {value};", self.ascribed(*local)));
            }
            StatementKind::Store { place, value } => {
                let value = self.expression(*value)?;
                out.line(&self.store(place, &value)?);
            }
            StatementKind::Evaluate(value) => {
                out.line(&format!("let _ = {};", self.expression(*value)?.text()));
            }
            StatementKind::If { condition, accept, reject, .. } => {
                out.open(&format!("if {} {{", self.expression(*condition)?.text()));
                self.nested(accept, leave, out)?;
                if !reject.is_empty() {
                    out.close("} else {");
                    out.depth += 1;
                    self.nested(reject, leave, out)?;
                }
                out.close("}");
            }
            StatementKind::Switch { selector, cases, default } => {
                let signed = matches!(
                    self.kernel.module.types[self.function.expressions[*selector].ty],
                    Type::Scalar(Scalar::I32)
                );
                let selector = self.expression(*selector)?;
                let bits = if signed { format!("{} as u32", selector.operand()) } else { selector.text().to_owned() };
                out.open(&format!("match {bits} {{"));
                for case in cases {
                    let values: Vec<String> = case.values.iter().map(|value| format!("{value}u32")).collect();
                    out.open(&format!("{} => {{", values.join(" | ")));
                    self.nested(&case.body, leave, out)?;
                    out.close("}");
                }
                out.open("_ => {");
                self.nested(default, leave, out)?;
                out.close("}");
                out.close("}");
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let name = &self.locals[local.index()];
                let range = format!("{}..{}", self.expression(*start)?.operand(), self.expression(*end)?.operand());
                out.open(&match self.literal_step(*step) {
                    Some(0 | 1) => format!("for {name} in {range} {{"),
                    Some(step) => format!("for {name} in ({range}).step_by({step}usize) {{"),
                    None => {
                        format!(
                            "for {name} in ({range}).step_by(({} as usize).max(1)) {{",
                            self.expression(*step)?.operand()
                        )
                    }
                });
                self.nested(body, leave, out)?;
                out.close("}");
            }
            StatementKind::While { condition, body } => {
                out.open(&format!("while {} {{", self.expression(*condition)?.text()));
                self.nested(body, leave, out)?;
                out.close("}");
            }
            StatementKind::Loop { body } => {
                out.open("loop {");
                self.nested(body, leave, out)?;
                out.close("}");
            }
            StatementKind::Break => out.line("break;"),
            StatementKind::Continue => out.line("continue;"),
            StatementKind::Return(value) => match (leave, value) {
                (Leave::Function, Some(value)) => {
                    out.line(&format!("return {};", self.expression(*value)?.text()));
                }
                (Leave::Function, None) => out.line("return;"),
                (Leave::Lane(text), _) => out.line(text),
            },
            StatementKind::Asynchronous(kind) => {
                return Err(self.kernel.error(format!("a `{}` is left", kind.name())));
            }
            StatementKind::Fence(_) => {
                // One thread runs a workgroup; for other workgroups each scope is the same.
                out.line("core::sync::atomic::fence(core::sync::atomic::Ordering::AcqRel);");
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let code = self.atomic(place, *function, *value, *compare, ordering.order)?;
                match result {
                    Some(result) => out.line(&format!("{} = {};", self.ascribed(*result), code.text())),
                    None => out.line(&format!("let _ = {};", code.text())),
                }
            }
            StatementKind::Reporting(_) | StatementKind::Report(_) => {
                return Err(self.kernel.error("a report is left"));
            }
            StatementKind::Barrier
            | StatementKind::UniformLoad { .. }
            | StatementKind::Subgroup { .. }
            | StatementKind::Matrix { .. }
            | StatementKind::Tile(_) => {
                return Err(self.kernel.error("a barrier or subgroup operation where the workgroup is not together"));
            }
        }
        Ok(())
    }

    /// The step of a loop, if it is a constant.
    pub(super) fn literal_step(&self, step: Handle<Expression>) -> Option<u32> {
        match self.function.expressions[step].kind {
            ExpressionKind::Literal(Literal::U32(step) | Literal::Index(step)) => Some(step),
            ExpressionKind::Literal(Literal::I32(step)) => u32::try_from(step).ok(),
            ExpressionKind::Literal(Literal::U64(step)) => u32::try_from(step).ok(),
            _ => None,
        }
    }

    fn atomic(
        &self,
        place: &Place,
        function: AtomicFunction,
        value: Option<Handle<Expression>>,
        compare: Option<Handle<Expression>>,
        order: Order,
    ) -> Result<Code, EmitError> {
        let ty = match place.root {
            Root::Binding(binding) => self.kernel.module.bindings[binding as usize].element,
            Root::Workgroup(variable) => self.kernel.module.workgroup[variable].element,
            Root::Local(_) | Root::Argument(_) => return Err(self.kernel.error("an atomic in private memory")),
        };
        let name = types::rust(self.kernel.module, ty);
        let atomic = match self.kernel.module.types[ty].scalar() {
            Some(Scalar::I32) => "core::sync::atomic::AtomicI32",
            Some(Scalar::I64) => "core::sync::atomic::AtomicI64",
            Some(Scalar::U64) => "core::sync::atomic::AtomicU64",
            // Floats by their bits.
            Some(Scalar::U32 | Scalar::Index | Scalar::F32) => "core::sync::atomic::AtomicU32",
            _ => return Err(self.kernel.error("an atomic of this type")),
        };
        let float = self.kernel.module.types[ty].scalar() == Some(Scalar::F32);
        // Operands are evaluated before the guard, as the IR says.
        let mut before = String::new();
        for (name, operand) in [("compare", compare), ("value", value)] {
            if let Some(operand) = operand {
                before.push_str(&format!("let {name} = {}; ", self.expression(operand)?.text()));
            }
        }
        let zero = if function == AtomicFunction::Store { "()".to_owned() } else { format!("0 as {name}") };
        let code = self.with_pointer(place, &zero, &|pointer, memory| {
            if matches!(place.root, Root::Workgroup(_)) || memory == Memory::Pointer {
                // One thread runs the whole workgroup.
                let new = match function {
                    AtomicFunction::Load => return format!("({pointer}).read()"),
                    AtomicFunction::Store => return format!("({pointer}).write(value)"),
                    AtomicFunction::Add if float => "old + value",
                    AtomicFunction::Add => "old.wrapping_add(value)",
                    AtomicFunction::Subtract => "old.wrapping_sub(value)",
                    AtomicFunction::Min => "old.min(value)",
                    AtomicFunction::Max => "old.max(value)",
                    AtomicFunction::And => "old & value",
                    AtomicFunction::Or => "old | value",
                    AtomicFunction::Xor => "old ^ value",
                    AtomicFunction::Exchange => "value",
                    AtomicFunction::CompareExchange => "if old == compare { value } else { old }",
                };
                return format!("let at = {pointer}; let old = at.read(); at.write({new}); old");
            }
            let name = |order: Order| format!("core::sync::atomic::Ordering::{:?}", order.host());
            // What a failed comparison orders, for operations that look and then write.
            let (order, seen) = (name(order), name(order.of_load()));
            let word = format!("{atomic}::from_ptr(({pointer}).cast())");
            if float {
                let bits = match function {
                    AtomicFunction::Store => return format!("{word}.store(value.to_bits(), {order})"),
                    AtomicFunction::Exchange => format!("swap(value.to_bits(), {order})"),
                    AtomicFunction::Add => format!(
                        "fetch_update({order}, {seen}, |old| Some((f32::from_bits(old) + value).to_bits()))\
                         .unwrap_or_else(|old| old)"
                    ),
                    // The verifier lets no other through.
                    _ => format!("load({order})"),
                };
                return format!("f32::from_bits({word}.{bits})");
            }
            let call = match function {
                AtomicFunction::Load => format!("load({order})"),
                AtomicFunction::Store => format!("store(value, {order})"),
                AtomicFunction::Add => format!("fetch_add(value, {order})"),
                AtomicFunction::Subtract => format!("fetch_sub(value, {order})"),
                AtomicFunction::Min => format!("fetch_min(value, {order})"),
                AtomicFunction::Max => format!("fetch_max(value, {order})"),
                AtomicFunction::And => format!("fetch_and(value, {order})"),
                AtomicFunction::Or => format!("fetch_or(value, {order})"),
                AtomicFunction::Xor => format!("fetch_xor(value, {order})"),
                AtomicFunction::Exchange => format!("swap(value, {order})"),
                AtomicFunction::CompareExchange => {
                    format!("compare_exchange(compare, value, {order}, {seen}).unwrap_or_else(|old| old)")
                }
            };
            format!("{word}.{call}")
        })?;
        Ok(if before.is_empty() { code } else { Code::loose(format!("{{ {before}{} }}", code.text())) })
    }
}
