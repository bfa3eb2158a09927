//! Subgroup operations, which read the arrays of all invocations of a subgroup.

use super::Regions;
use crate::emit::EmitError;
use crate::emit::cpu::plan::{Plan, expression_locals};
use crate::emit::cpu::stmt::Out;
use crate::emit::cpu::types;
use crate::ir::{Expression, Handle, Local, Scalar, StatementKind, SubgroupFunction, Type};
use crate::target::CPU_SUBGROUP_SIZE;

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
        out.open(&format!("for first in (0usize..{size}).step_by({CPU_SUBGROUP_SIZE}) {{"));
        out.line(&format!("let last = (first + {CPU_SUBGROUP_SIZE}).min({size});"));
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

/// Whether a subgroup operation fills the local's array, which it does part by part.
pub(super) fn from_subgroup(plan: &Plan<'_>, local: Handle<Local>) -> bool {
    let mut found = false;
    crate::ir::statements(&plan.function.body, &mut |statement| {
        found |= matches!(statement.kind, StatementKind::Subgroup { result, .. } if result == local);
    });
    found
}
