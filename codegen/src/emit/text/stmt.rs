//! Statements.

use crate::emit::EmitError;
use crate::ir::{
    Asynchronous, BinaryOperator, Block, Case, Expression, ExpressionKind, Handle, Local, LogicalOperator, Place, Root,
    Scalar, StatementKind, Type, breaks, leaves,
};
use crate::verify::place_type;

use super::code::{infix, logical};
use super::largest::largest;
use super::printer::Scope;
use super::{AtomicCall, Code, Dialect, Level, Position, Printer, Writer};

type Result<T> = std::result::Result<T, EmitError>;

impl<'a, D: Dialect> Printer<'a, D> {
    /// Prints the statements of a block, up to the first after which nothing runs.
    ///
    /// # Errors
    /// The language cannot say one of them.
    pub fn block(&mut self, scope: &mut Scope<'a>, out: &mut Writer, block: &'a Block) -> Result<()> {
        let mut waited = false;
        for statement in block {
            if let StatementKind::UniformLoad { result, place } = &statement.kind {
                self.uniform_load(scope, out, *result, place, waited)?;
            } else {
                self.statement(scope, out, &statement.kind)?;
            }
            waited = matches!(statement.kind, StatementKind::Barrier | StatementKind::UniformLoad { .. });
            if leaves(std::slice::from_ref(statement)) {
                break;
            }
        }
        Ok(())
    }

    fn statement(&mut self, scope: &mut Scope<'a>, out: &mut Writer, kind: &'a StatementKind) -> Result<()> {
        match kind {
            StatementKind::Let { local, value } => self.declaration(scope, out, *local, *value),
            StatementKind::Store { place, value } => self.store(scope, out, place, *value),
            StatementKind::Evaluate(value) => {
                let code = self.expression(scope, *value)?;
                out.line(format!("{};", code.text));
                Ok(())
            }
            StatementKind::If { constant: true, .. } => Err(self.error("an `if const` is left")),
            StatementKind::If { condition, accept, reject, constant: false } => {
                let condition = self.expression(scope, *condition)?;
                out.open(format!("if ({}) {{", condition.text));
                self.block(scope, out, accept)?;
                self.otherwise(scope, out, reject)
            }
            StatementKind::Switch { selector, cases, default } => self.switch(scope, out, *selector, cases, default),
            StatementKind::For { local, start, end, step, body, unroll } => {
                if *unroll {
                    let word = D::UNROLL.ok_or_else(|| self.error("an unrolled loop is left"))?;
                    out.line(word);
                }
                self.for_loop(scope, out, *local, [*start, *end, *step], body)
            }
            StatementKind::While { condition, body } => {
                let condition = self.expression(scope, *condition)?;
                out.open(format!("while ({}) {{", condition.text));
                self.block(scope, out, body)?;
                out.close("}");
                Ok(())
            }
            StatementKind::Loop { body } => {
                out.open(D::LOOP);
                self.block(scope, out, body)?;
                out.close("}");
                Ok(())
            }
            StatementKind::Break => {
                out.line("break;");
                Ok(())
            }
            StatementKind::Continue => {
                out.line("continue;");
                Ok(())
            }
            StatementKind::Return(None) => {
                out.line("return;");
                Ok(())
            }
            StatementKind::Return(Some(value)) => {
                let value = self.expression(scope, *value)?;
                out.line(format!("return {};", value.text));
                Ok(())
            }
            StatementKind::Barrier => self.barrier(out),
            StatementKind::UniformLoad { result, place } => self.uniform_load(scope, out, *result, place, false),
            StatementKind::Asynchronous(kind) => self.asynchronous(scope, out, kind),
            StatementKind::Fence(reach) => {
                let line = D::fence(self, *reach)?;
                out.line(line);
                Ok(())
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let value = self.optional(scope, *value)?;
                let compare = self.optional(scope, *compare)?;
                let reach = ordering.scope.at(place.root);
                let call = AtomicCall { function: *function, ordering: *ordering, scope: reach, value, compare };
                let code = self.atomic(scope, place, call)?;
                match result {
                    Some(result) => self.declare(scope, out, *result, code),
                    None => {
                        out.line(format!("{};", code.text));
                        Ok(())
                    }
                }
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let ty = self.type_of(scope, *value);
                let literal = lane.is_some_and(|lane| matches!(scope.kind(lane), ExpressionKind::Literal(_)));
                let value = self.expression(scope, *value)?;
                let lane = self.optional(scope, *lane)?;
                let code = D::subgroup(self, *function, ty, value, lane, literal)?;
                self.declare(scope, out, *result, code)
            }
            StatementKind::Matrix { result, operation } => self.matrix(scope, out, *result, operation),
            StatementKind::Tile(operation) => self.tile(scope, out, operation),
            StatementKind::Reporting(_) | StatementKind::Report(_) => Err(self.error("a report is left")),
        }
    }

    fn optional(&mut self, scope: &Scope<'a>, value: Option<Handle<Expression>>) -> Result<Option<Code>> {
        value.map(|value| self.expression(scope, value)).transpose()
    }

    pub(super) fn declare(
        &mut self,
        scope: &Scope<'a>,
        out: &mut Writer,
        local: Handle<Local>,
        value: Code,
    ) -> Result<()> {
        let ty = self.ty(scope.function.locals[local].ty);
        let name = &scope.locals[local.index()];
        let line = if scope.function.locals[local].mutable {
            D::declare_variable(self, name, ty, Some(value))?
        } else {
            D::declare_value(self, name, ty, value)?
        };
        out.line(format!("{line};"));
        Ok(())
    }

    fn declaration(
        &mut self,
        scope: &Scope<'a>,
        out: &mut Writer,
        local: Handle<Local>,
        value: Option<Handle<Expression>>,
    ) -> Result<()> {
        let ty = self.ty(scope.function.locals[local].ty);
        match value {
            Some(value) => {
                let code = self.expression(scope, value)?;
                self.declare(scope, out, local, code)
            }
            None => {
                let line = D::declare_variable(self, &scope.locals[local.index()], ty, None)?;
                out.line(format!("{line};"));
                Ok(())
            }
        }
    }

    fn store(&mut self, scope: &Scope<'a>, out: &mut Writer, place: &Place, value: Handle<Expression>) -> Result<()> {
        if let Some(line) = self.compound(scope, place, value)? {
            out.line(line);
            return Ok(());
        }
        let value = self.expression(scope, value)?;
        for line in self.write(scope, place, value)? {
            out.line(line);
        }
        Ok(())
    }

    /// `place += value`, if the value is the place's own and something else, of 32 bits, and the dialect has nothing but the operator for it: no function that rounds, wraps or keeps infinities.
    fn compound(&mut self, scope: &Scope<'a>, place: &Place, value: Handle<Expression>) -> Result<Option<String>> {
        let ExpressionKind::Binary { operator, left, right } = scope.kind(value) else {
            return Ok(None);
        };
        let ExpressionKind::Load(from) = scope.kind(*left) else {
            return Ok(None);
        };
        let ty = self.type_of(scope, *left);
        let simple = matches!(ty, Type::Scalar(Scalar::I32 | Scalar::F32 | Scalar::U32 | Scalar::Index));
        if !simple || operator.is_comparison() || from.root != place.root {
            return Ok(None);
        }
        let (Some(from), Some(to)) = (self.plain_place(scope, from)?, self.plain_place(scope, place)?) else {
            return Ok(None);
        };
        if from != to {
            return Ok(None);
        }
        let (left, right) = (self.expression(scope, *left)?, self.expression(scope, *right)?);
        let is_same = left.text == right.text;
        let whole = D::binary(self, *operator, ty, left.clone(), right.clone(), is_same)?;
        if whole.text != infix(*operator, left, right.clone()).text {
            return Ok(None);
        }
        Ok(Some(format!("{} {}= {};", to.text, operator.sign(), right.text)))
    }

    /// Closes an `if`, with the `else` that follows.
    fn otherwise(&mut self, scope: &mut Scope<'a>, out: &mut Writer, reject: &'a Block) -> Result<()> {
        match reject.as_slice() {
            [] => {
                out.close("}");
                Ok(())
            }
            [only] => match &only.kind {
                StatementKind::If { condition, accept, reject, constant: false } => {
                    let condition = self.expression(scope, *condition)?;
                    out.reopen(format!("}} else if ({}) {{", condition.text));
                    self.block(scope, out, accept)?;
                    self.otherwise(scope, out, reject)
                }
                _ => self.last_else(scope, out, reject),
            },
            _ => self.last_else(scope, out, reject),
        }
    }

    fn last_else(&mut self, scope: &mut Scope<'a>, out: &mut Writer, reject: &'a Block) -> Result<()> {
        out.reopen("} else {");
        self.block(scope, out, reject)?;
        out.close("}");
        Ok(())
    }

    fn switch(
        &mut self,
        scope: &mut Scope<'a>,
        out: &mut Writer,
        selector: Handle<Expression>,
        cases: &'a [Case],
        default: &'a Block,
    ) -> Result<()> {
        let ty = self.type_of(scope, selector);
        let stable = matches!(scope.kind(selector), ExpressionKind::Local(_) | ExpressionKind::Argument(_));
        let code = self.expression(scope, selector)?;
        let value = |bits: u32| match ty {
            Type::Scalar(Scalar::I32) => crate::ir::Literal::I32(bits.cast_signed()),
            _ => crate::ir::Literal::U32(bits),
        };
        let labels = |p: &mut Self, case: &Case| -> Result<Vec<String>> {
            case.values.iter().map(|bits| Ok(D::literal(p, value(*bits), false)?.text)).collect()
        };
        // The target's `break` would leave its switch, not the loop around it: such a choice is a chain of ifs.
        if cases.iter().map(|case| &case.body).chain([default]).any(|block| breaks(block)) {
            let code = if stable { code } else { self.keep(scope, out, "selector", ty, code)? };
            for (position, case) in cases.iter().enumerate() {
                let tests = labels(self, case)?
                    .into_iter()
                    .map(|label| infix(BinaryOperator::Equal, code.clone(), Code::atom(label)))
                    .reduce(|all, next| logical(LogicalOperator::Or, all, next));
                let test = tests.map_or_else(|| "false".to_owned(), |code| code.text);
                if position == 0 {
                    out.open(format!("if ({test}) {{"));
                } else {
                    out.reopen(format!("}} else if ({test}) {{"));
                }
                self.block(scope, out, &case.body)?;
            }
            if cases.is_empty() {
                out.open("{");
                self.block(scope, out, default)?;
                out.close("}");
                return Ok(());
            }
            return if default.is_empty() {
                out.close("}");
                Ok(())
            } else {
                self.last_else(scope, out, default)
            };
        }
        out.open(format!("switch ({}) {{", code.text));
        for case in cases {
            let labels = labels(self, case)?;
            let meaning = self.variants(ty, &case.values);
            out.open(format!("{}{meaning}", D::case(&labels)));
            self.case_body(scope, out, &case.body)?;
        }
        out.open(D::default_case());
        self.case_body(scope, out, default)?;
        out.close("}");
        Ok(())
    }

    fn case_body(&mut self, scope: &mut Scope<'a>, out: &mut Writer, body: &'a Block) -> Result<()> {
        self.block(scope, out, body)?;
        if let (Some(line), false) = (D::end_of_case(), leaves(body)) {
            out.line(line);
        }
        out.close("}");
        Ok(())
    }

    /// The names of an enum's variants as a comment after a case.
    fn variants(&self, ty: &Type, values: &[u32]) -> String {
        let Type::Enum(handle) = ty else {
            return String::new();
        };
        let variants = &self.lowered.module.enums[*handle].variants;
        let names: Vec<&str> = values
            .iter()
            .filter_map(|value| variants.iter().find(|(_, known)| known == value))
            .map(|(name, _)| name.as_str())
            .collect();
        format!(" // {}", names.join(", "))
    }

    /// Keeps a value in a new variable, and gives its name.
    fn keep(&mut self, scope: &mut Scope<'a>, out: &mut Writer, name: &str, ty: &Type, value: Code) -> Result<Code> {
        let name = scope.names.claim(name, |name| D::reserved(name, Position::Local));
        let line = D::declare_value(self, &name, ty, value)?;
        out.line(format!("{line};"));
        Ok(Code::atom(name))
    }

    fn for_loop(
        &mut self,
        scope: &mut Scope<'a>,
        out: &mut Writer,
        local: Handle<Local>,
        [start, end, step]: [Handle<Expression>; 3],
        body: &'a Block,
    ) -> Result<()> {
        let ty = self.ty(scope.function.locals[local].ty);
        let name = scope.locals[local.index()].clone();
        let literal_step = match scope.kind(step) {
            ExpressionKind::Literal(literal) => Some(literal.bits().max(1)),
            _ => None,
        };
        let start = self.expression(scope, start)?;
        let stable = self.is_stable(scope, end);
        let mut end_code = self.expression(scope, end)?;
        if !stable {
            end_code = self.keep(scope, out, &format!("{name}_end"), ty, end_code)?;
        }
        let (lowered, function) = (self.lowered, scope.function);
        // Whether a step from below the end leads no further than to the largest number of the type.
        let stays = |step: u64| {
            let most = ty.scalar().unwrap_or(Scalar::U32).limits()[1];
            let end = match &function.expressions[end].kind {
                ExpressionKind::Literal(literal) => literal.as_integer(),
                _ => largest(lowered, function, end).map(i128::from),
            };
            end.is_some_and(|end| end + i128::from(step) - 1 <= most)
        };
        let update = match literal_step {
            Some(1) => format!("{name}++"),
            Some(step) if stays(step) => format!("{name} += {}", self.number(ty, step)?.text),
            _ => {
                // A step of 0 counts as 1.
                let mut step = self.expression(scope, step)?;
                if literal_step.is_none() {
                    let one = self.number(ty, 1)?;
                    step = D::math(self, crate::ir::MathFunction::Max, ty, vec![step, one])?;
                    step = self.keep(scope, out, &format!("{name}_step"), ty, step)?;
                }
                self.step_to_end(ty, &name, step, end_code.clone())?
            }
        };
        let first = D::declare_variable(self, &name, ty, Some(start))?;
        let condition = format!("{name} < {}", end_code.at(Level::Sum));
        out.open(format!("for ({first}; {condition}; {update}) {{"));
        self.block(scope, out, body)?;
        out.close("}");
        Ok(())
    }

    /// Adds a step to a counter, or what is left to the end: so the counter does not wrap round past it. What is left of a number with a sign may be more than its type has.
    fn step_to_end(&mut self, ty: &Type, name: &str, step: Code, end: Code) -> Result<String> {
        let counter = Code::atom(name);
        if ty.scalar() != Some(Scalar::I32) {
            let rest = infix(BinaryOperator::Subtract, end, counter);
            let step = D::math(self, crate::ir::MathFunction::Min, ty, vec![step, rest])?;
            return Ok(format!("{name} += {}", step.text));
        }
        let word = Type::Scalar(Scalar::U32);
        let counter = D::bitcast(self, ty, &word, counter)?;
        let end = D::bitcast(self, ty, &word, end)?;
        let step = D::bitcast(self, ty, &word, step)?;
        let rest = infix(BinaryOperator::Subtract, end, counter.clone());
        let step = D::math(self, crate::ir::MathFunction::Min, &word, vec![step, rest])?;
        let sum = infix(BinaryOperator::Add, counter, step);
        Ok(format!("{name} = {}", D::bitcast(self, &word, ty, sum)?.text))
    }

    fn number(&mut self, ty: &Type, bits: u64) -> Result<Code> {
        let literal = match ty {
            Type::Scalar(Scalar::I32) => crate::ir::Literal::I32((bits as u32).cast_signed()),
            Type::Scalar(Scalar::U64) => crate::ir::Literal::U64(bits),
            _ => crate::ir::Literal::U32(bits as u32),
        };
        D::literal(self, literal, false)
    }

    fn asynchronous(&mut self, scope: &Scope<'a>, out: &mut Writer, kind: &'a Asynchronous) -> Result<()> {
        let number = |value: Handle<Expression>| match scope.kind(value) {
            ExpressionKind::Literal(literal) => Ok(literal.bits() as u32),
            _ => crate::copies::number(&self.lowered.module, scope.function, value)
                .ok_or_else(|| self.error("a number of elements or groups that is no constant")),
        };
        let line = match kind {
            Asynchronous::Commit => D::async_commit(self)?,
            Asynchronous::Wait(pending) => {
                let pending = number(*pending)?;
                D::async_wait(self, pending)?
            }
            Asynchronous::Copy { to, from, count } => {
                let count = number(*count)?;
                let mut plain = |place: &Place| {
                    let place = Place { guarded: false, ..place.clone() };
                    let code = self.plain_place(scope, &place)?;
                    code.ok_or_else(|| self.error("an asynchronous copy of something that is no place"))
                };
                let (target, source) = (plain(to)?, plain(from)?);
                let element = self.element_type(from.root).ok_or_else(|| self.error("a buffer has no type"))?;
                let scalar = element.scalar().and_then(Scalar::bytes).unwrap_or(0);
                let size = scalar * u32::from(element.lanes().unwrap_or(1));
                let left = match (from.guarded, from.path.first()) {
                    (true, Some(crate::ir::Projection::Index(index))) => {
                        let index = self.expression(scope, *index)?;
                        Some((index, self.length_guard(from.root, 1)?))
                    }
                    _ => None,
                };
                D::copy_async(self, target, source, (count, size), left)?
            }
        };
        out.line(line);
        Ok(())
    }

    fn barrier(&mut self, out: &mut Writer) -> Result<()> {
        for line in D::barrier(self)? {
            out.line(line);
        }
        Ok(())
    }

    /// Whether a place in an array of workgroup memory is a lane of a vector, which has no address.
    fn is_lane(&self, scope: &Scope<'a>, place: &Place) -> bool {
        let mut around = place.clone();
        around.path.pop();
        // The first step is to an element.
        !around.path.is_empty()
            && place_type(&self.lowered.module, scope.function, &around)
                .is_ok_and(|ty| matches!(ty, Type::Vector { .. }))
    }

    /// Loads a place between two barriers; `waited` says that the first has just been.
    fn uniform_load(
        &mut self,
        scope: &Scope<'a>,
        out: &mut Writer,
        result: Handle<Local>,
        place: &Place,
        waited: bool,
    ) -> Result<()> {
        if matches!(place.root, Root::Workgroup(_))
            && !self.is_lane(scope, place)
            && let Some(plain) = self.plain_place(scope, place)?
            && let Some(code) = D::uniform_load(self, plain)
        {
            // The target's own waits for workgroup memory alone.
            if !waited && self.orders_buffers() {
                self.barrier(out)?;
            }
            return self.declare(scope, out, result, code);
        }
        if !waited {
            self.barrier(out)?;
        }
        let code = self.read(scope, place)?;
        self.declare(scope, out, result, code)?;
        self.barrier(out)
    }
}
