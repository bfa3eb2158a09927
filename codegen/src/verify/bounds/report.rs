//! Which accesses keep their guard, and why the others need none, for people.

use super::Walk;
#[cfg(feature = "lower")]
use super::calls;
use crate::ir::print::place_text;
use crate::ir::{Builtin, Function, Module, Place, Projection, Root, Span};
use crate::verify::linear::{Atom, Form, Key, Proof};

/// What was found of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Where it is written; where that is not known, the kernel as a whole.
    pub span: Span,
    /// The access, in the author's names: `x[i + 1]`.
    pub place: String,
    /// Whether the emitted code checks its index.
    pub guarded: bool,
    /// If it does not: what puts the index in range, as inequalities in the author's names. Empty if constants alone do.
    pub because: Vec<String>,
}

/// Every access by an index in a module, in the order of the text; an access that was written out several times is listed once for each
/// way in which it is in range.
#[cfg(feature = "lower")]
pub fn accesses(module: &Module, workgroup_size: [u32; 3]) -> Vec<AccessReport> {
    let mut found = Vec::new();
    let mut ranges = calls::Ranges::default();
    let order = calls::callers_first(&module.functions, &module.entry);
    let functions = order.into_iter().map(|handle| (Some(handle), &module.functions[handle]));
    for (handle, function) in std::iter::once((None, &module.entry)).chain(functions) {
        let mut body = function.body.clone();
        let mut walk = Walk::new(module, function, workgroup_size);
        walk.follow(handle, &mut ranges);
        walk.reports = Some(Vec::new());
        walk.block(&mut body);
        ranges = std::mem::take(&mut walk.calls);
        found.extend(walk.reports.take().into_iter().flatten());
    }
    found.sort_by_key(|report| report.span);
    found.dedup();
    found
}

impl Walk<'_> {
    /// Notes an access that has an index.
    pub(super) fn report_access(&mut self, place: &Place, span: Span, proved: bool) {
        let because = std::mem::take(&mut self.because);
        let indexed = place.path.iter().any(|step| matches!(step, Projection::Index(_) | Projection::Vector { .. }));
        if let (true, Some(reports)) = (indexed, &mut self.reports) {
            let place = place_text(self.module, self.function, place);
            let because = if proved { because } else { Vec::new() };
            reports.push(AccessReport { span, place, guarded: !proved, because });
        }
    }

    /// Puts proofs into words.
    pub(super) fn explain(&mut self, proofs: [Proof; 2]) {
        for Proof { facts, rest } in proofs {
            let mut lines: Vec<String> = facts.iter().map(|fact| self.inequality(fact)).collect();
            for (atom, coefficient) in rest.terms() {
                let (low, high) = self.knowledge.range_of(*atom);
                // That nothing without a sign is negative goes without saying.
                if *coefficient > 0 && low > 0 {
                    lines.push(format!("{} is at least {low}", self.name(*atom)));
                }
                if *coefficient < 0 && high < u32::MAX.into() {
                    lines.push(format!("{} is at most {high}", self.name(*atom)));
                }
            }
            for line in lines {
                if !self.because.contains(&line) {
                    self.because.push(line);
                }
            }
        }
    }

    /// A form that is not negative, as `left < right` or `left <= right`.
    fn inequality(&self, fact: &Form) -> String {
        let side = |sign: i128, constant: i128| {
            let mut parts: Vec<String> = fact
                .terms()
                .iter()
                .filter(|(_, coefficient)| coefficient.signum() == sign)
                .map(|(atom, coefficient)| match coefficient.abs() {
                    1 => self.name(*atom),
                    factor => format!("{factor} * {}", self.name(*atom)),
                })
                .collect();
            if constant != 0 || parts.is_empty() {
                parts.push(constant.to_string());
            }
            parts.join(" + ")
        };
        match fact.constant {
            // left + n <= right, of whole numbers, is left + n - 1 < right.
            constant if constant < 0 => format!("{} < {}", side(-1, -constant - 1), side(1, 0)),
            constant => format!("{} <= {}", side(-1, 0), side(1, constant)),
        }
    }

    fn name(&self, atom: Atom) -> String {
        self.key_name(self.knowledge.key(atom)).unwrap_or_else(|| {
            let (low, high) = self.knowledge.range_of(atom);
            format!("a number from {low} to {high}")
        })
    }

    fn form_text(&self, form: &Form) -> String {
        let mut text = String::new();
        for (atom, coefficient) in form.terms() {
            let sign = match (coefficient.signum(), text.is_empty()) {
                (-1, true) => "-",
                (-1, false) => " - ",
                (_, true) => "",
                (_, false) => " + ",
            };
            let factor = if coefficient.abs() == 1 { String::new() } else { format!("{} * ", coefficient.abs()) };
            text += &format!("{sign}{factor}{}", self.name(*atom));
        }
        match (form.constant, text.is_empty()) {
            (constant, true) => constant.to_string(),
            (0, false) => text,
            (constant, false) if constant < 0 => format!("{text} - {}", -constant),
            (constant, false) => format!("{text} + {constant}"),
        }
    }

    fn key_name(&self, key: &Key) -> Option<String> {
        let Module { bindings, params, workgroup, .. } = self.module;
        let Function { arguments, locals, .. } = self.function;
        let binding = |binding: &u32| bindings.get(*binding as usize).map(|known| known.name.clone());
        Some(match key {
            Key::Param(param) => params.get(*param as usize)?.name.clone(),
            Key::Length(of) => format!("{}.len()", binding(of)?),
            Key::Extent(of, axis) => format!("{}.extent({axis})", binding(of)?),
            Key::Stride(of, axis) => format!("{}.stride({axis})", binding(of)?),
            Key::Builtin(builtin) => {
                let (_, name) = Builtin::ALL.into_iter().find(|(known, _)| known == builtin)?;
                format!("{name}()")
            }
            Key::Argument(argument) | Key::Variable(Root::Argument(argument), _) => {
                arguments.get(*argument as usize)?.name.clone()
            }
            Key::Local(local) | Key::Variable(Root::Local(local), _) => locals.get(*local)?.name.clone(),
            Key::Variable(Root::Binding(of), _) => binding(of)?,
            Key::Variable(Root::Workgroup(variable), _) => workgroup.get(*variable)?.name.clone(),
            Key::Part(base, part) => {
                let base = self.key_name(base)?;
                "xyzw"
                    .chars()
                    .nth(*part as usize)
                    .map_or_else(|| format!("{base}.{part}"), |lane| format!("{base}.{lane}"))
            }
            Key::Wrapped(form, _) => format!("({})", self.form_text(form)),
            Key::Operation(operator, left, right, _) => {
                format!("({} {} {})", self.form_text(left), operator.sign(), self.form_text(right))
            }
            Key::Math(function, forms, _) => {
                let forms: Vec<String> = forms.iter().map(|form| self.form_text(form)).collect();
                format!("{}({})", function.name(), forms.join(", "))
            }
            Key::MatrixLength(_) | Key::Fresh(_) => return None,
        })
    }
}
