//! Locals that live across a cut: arrays over the workgroup's invocations, gathered before a region and scattered after it.

use super::Regions;
use crate::emit::EmitError;
use crate::emit::cpu::module::derived;
use crate::emit::cpu::plan::{Plan, Storage, expression_locals};
use crate::emit::cpu::stmt::Out;
use crate::emit::cpu::types;
use crate::ir::{Expression, ExpressionKind, Handle, Local, Statement, StatementKind, Type};

impl<'a> Regions<'a> {
    /// The arrays over invocations, to be declared once before the first workgroup.
    pub(in crate::emit::cpu) fn arrays(&self, out: &mut Out) {
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

    pub(super) fn array_of(&self, ty: Handle<Type>, whole: bool) -> (String, String) {
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

    pub(super) fn array(&self, local: Handle<Local>) -> String {
        derived("lanes", &self.scope.locals[local.index()])
    }

    /// The value that this invocation has in an array over invocations.
    fn gather(&self, array: &str, ty: Handle<Type>, whole: bool) -> String {
        let lengths = self.spread(ty, whole).map_or_else(Vec::new, |(lengths, ..)| lengths);
        if lengths.is_empty() {
            return format!("*{array}.get_unchecked(lane as usize)");
        }
        // A loop costs Rust's compiler a fraction of what a closure for each element does.
        let path: String = (0..lengths.len()).map(|i| format!("[{}]", step(i))).collect();
        let mut text = format!("all{path} = *{array}{path}.get_unchecked(lane as usize);");
        for (i, length) in lengths.iter().enumerate().rev() {
            text = format!("for {} in 0..{length} {{ {text} }}", step(i));
        }
        let zero = types::zero(self.kernel().module, ty);
        format!("{{ let mut all = {zero}; {text} all }}")
    }

    pub(super) fn scatter(&self, array: &str, value: &str, ty: Handle<Type>, whole: bool) -> String {
        let lengths = self.spread(ty, whole).map_or_else(Vec::new, |(lengths, ..)| lengths);
        let path: String = (0..lengths.len()).map(|i| format!("[{}]", step(i))).collect();
        let mut text = format!("*{array}{path}.get_unchecked_mut(lane as usize) = {value}{path};");
        for (i, length) in lengths.iter().enumerate().rev() {
            text = format!("for {} in 0..{length} {{ {text} }}", step(i));
        }
        text
    }

    /// What the first invocation would compute, for code of the workgroup.
    pub(super) fn first(&self, expression: Handle<Expression>) -> Result<String, EmitError> {
        let mut used = Vec::new();
        expression_locals(self.plan.function, expression, &mut used);
        self.first_with(&used, self.scope.expression(expression)?.text())
    }

    pub(super) fn first_with(&self, used: &[Handle<Local>], text: &str) -> Result<String, EmitError> {
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
    pub(super) fn wanted(&self, used: &[Handle<Local>], out: &mut Out) -> Result<(), EmitError> {
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
                Storage::Strided => {
                    out.line(&format!("let {name}: u32 = {}.wrapping_add(lane);", derived("first", name)))
                }
                Storage::Region | Storage::Workgroup => {}
            }
        }
        Ok(())
    }
}

/// The counter of a loop over a nested array.
fn step(depth: usize) -> String {
    derived("k", &depth.to_string())
}

/// Marks the locals over invocations that a loop inside a region uses other than by its own counter.
///
/// Such a loop keeps the loop over invocations from becoming vectors; what can still become vectors are neighbouring parts of one
/// invocation's value, such as a tile of sums, so these lie together in memory. Otherwise the same part of neighbouring
/// invocations does, as in the arrays that subgroup operations fill (`results`).
pub(super) fn accumulators(
    plan: &Plan<'_>,
    results: &[bool],
    block: &[Statement],
    counters: &mut Vec<Option<Handle<Local>>>,
    whole: &mut [bool],
) {
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
            accumulators(plan, results, inner, counters, whole);
        }
        if inside {
            counters.pop();
        }
    }
    for (local, by_counter) in places {
        let several =
            matches!(plan.kernel.module.types[function.locals[local].ty], Type::Array { .. } | Type::Vector { .. });
        if several && !by_counter && plan.storage[local.index()] == Storage::Lanes && !results[local.index()] {
            whole[local.index()] = true;
        }
    }
}
