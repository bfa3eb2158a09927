//! Subgroup operations, which read the arrays of all invocations of a subgroup.

use super::Regions;
use crate::emit::EmitError;
use crate::emit::cpu::plan::{Plan, expression_locals};
use crate::emit::cpu::stmt::Out;
use crate::emit::cpu::types;
use crate::ir::{Expression, Handle, Literal, Local, Scalar, StatementKind, SubgroupFunction, SubgroupOperator, Type};

impl<'a> Regions<'a> {
    /// The values of all invocations go to an array; the operation fills the result's array.
    pub(super) fn subgroup(
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
        out.open(&format!("for first in (0usize..{size}).step_by(p.subgroup_size as usize) {{"));
        out.line(&format!("let last = (first + p.subgroup_size as usize).min({size});"));
        for part in parts {
            let given = format!("given{part}");
            let filled = format!("{target}{part}");
            for line in lines(operation, scalar, &given, &filled)
                .ok_or_else(|| self.kernel().error(format!("`{}` of {}", operation.name(), scalar.rust_name())))?
            {
                out.line(&line);
            }
        }
        out.close("}");
        out.close("}");
        Ok(())
    }
}

/// The code that fills the lanes `first..last` of an array from those of another.
fn lines(operation: SubgroupFunction, scalar: Scalar, given: &str, filled: &str) -> Option<Vec<String>> {
    let fill = |value: &str| format!("for at in first..last {{ {filled}[at] = {value}; }}");
    Some(match operation {
        SubgroupFunction::Reduce(operator) => {
            let combined = combined(operator, scalar);
            vec![
                format!("let mut all = {given}[first];"),
                format!("for at in first + 1..last {{ let other = {given}[at]; all = {combined}; }}"),
                fill("all"),
            ]
        }
        SubgroupFunction::InclusiveScan(operator) => {
            let combined = combined(operator, scalar);
            vec![
                format!("let mut all = {given}[first];"),
                format!("{filled}[first] = all;"),
                format!(
                    "for at in first + 1..last {{ let other = {given}[at]; all = {combined}; {filled}[at] = all; }}"
                ),
            ]
        }
        SubgroupFunction::ExclusiveScan(operator) => {
            let neutral = match operator.neutral(scalar)? {
                Literal::F32(value) => format!("f32::from_bits({:#x}u32)", value.to_bits()),
                Literal::I32(value) => format!("({value}i32)"),
                other => format!("{}u32", other.bits()),
            };
            let combined = combined(operator, scalar);
            vec![
                format!("let mut all = {neutral};"),
                format!("for at in first..last {{ let other = {given}[at]; {filled}[at] = all; all = {combined}; }}"),
            ]
        }
        SubgroupFunction::Any => {
            vec![
                "let mut all = false;".to_owned(),
                format!("for at in first..last {{ all |= {given}[at]; }}"),
                fill("all"),
            ]
        }
        SubgroupFunction::All => {
            vec![
                "let mut all = true;".to_owned(),
                format!("for at in first..last {{ all &= {given}[at]; }}"),
                fill("all"),
            ]
        }
        SubgroupFunction::Ballot => vec![
            "let mut all = [0u32; 4];".to_owned(),
            format!(
                "for at in first..last {{ all[(at - first) / 32] |= u32::from({given}[at]) << ((at - first) % 32); }}"
            ),
            format!("for at in first..last {{ for j in 0..4 {{ {filled}[j][at] = all[j]; }} }}"),
        ],
        SubgroupFunction::Broadcast
        | SubgroupFunction::Shuffle
        | SubgroupFunction::ShuffleXor
        | SubgroupFunction::ShuffleUp
        | SubgroupFunction::ShuffleDown => {
            let from = match operation {
                SubgroupFunction::ShuffleXor => "(at - first) as u32 ^ asked[at]",
                SubgroupFunction::ShuffleUp => "((at - first) as u32).wrapping_sub(asked[at])",
                SubgroupFunction::ShuffleDown => "((at - first) as u32).wrapping_add(asked[at])",
                _ => "asked[at]",
            };
            let own = match operation {
                SubgroupFunction::Broadcast => types::zero_scalar(scalar).to_owned(),
                _ => format!("{given}[at]"),
            };
            vec![format!(
                "for at in first..last {{ let from = ({from}) as usize; {filled}[at] = if from < last - first {{ \
                 {given}[first + from] }} else {{ {own} }}; }}"
            )]
        }
    })
}

/// What two values, `all` and `other`, are together.
fn combined(operator: SubgroupOperator, scalar: Scalar) -> &'static str {
    let float = scalar == Scalar::F32;
    match operator {
        SubgroupOperator::Add if float => "all + other",
        SubgroupOperator::Add => "all.wrapping_add(other)",
        SubgroupOperator::Multiply if float => "all * other",
        SubgroupOperator::Multiply => "all.wrapping_mul(other)",
        SubgroupOperator::Min => "all.min(other)",
        SubgroupOperator::Max => "all.max(other)",
        SubgroupOperator::And => "all & other",
        SubgroupOperator::Or => "all | other",
        SubgroupOperator::Xor => "all ^ other",
    }
}

/// The locals whose arrays subgroup operations fill, which they do part by part.
pub(super) fn subgroup_results(plan: &Plan<'_>) -> Vec<bool> {
    let mut results = vec![false; plan.function.locals.len()];
    crate::ir::statements(&plan.function.body, &mut |statement| {
        if let StatementKind::Subgroup { result, .. } = statement.kind {
            results[result.index()] = true;
        }
    });
    results
}
