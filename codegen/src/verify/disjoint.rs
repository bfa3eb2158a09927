//! Whether workgroups keep out of each other's way: for each binding that is written, whether no two workgroups touch one element, as far as indices do not wrap.
//!
//! Proved for kernels whose accesses all lie in a block of the workgroup's own: `block * group_index() + rest` with
//! `0 <= rest < block`, where the block is a number, or a value that all workgroups agree on times a number of rows
//! (`(rows * group_index() + k) * n + rest`). An index is what such a sum wraps to, so that the blocks of workgroups with more than 2^32 elements between
//! them may be one. Therefore a binding counts as divided only if a launch can find out how long its blocks are, and who lets workgroups run at once must do so ([`crate::share`]).

use super::KernelInfo;
use super::bounds::Touch;
use super::linear::{Atom, Form, Key, Knowledge};
use super::share::Source;
use crate::artefact::{Access, GridKind};
use crate::hashing::{HashMap, HashSet};
use crate::ir::{BinaryOperator, Builtin, Module, Root};
use crate::layout;
use crate::share::ShareStep;

/// How a binding is divided among workgroups.
#[derive(Clone, PartialEq)]
enum Division {
    /// Blocks of so many elements.
    Elements(i128),
    /// Blocks of so many rows, of as many elements as the form says.
    Rows(i128, Form),
}

/// What has been found of each binding: it hears of every access of the kernel's own body.
pub struct Divisions {
    writes: Vec<bool>,
    invocations: i128,
    grid: GridKind,
    divisions: Vec<Option<Division>>,
    /// For each binding, the steps to the length of its blocks.
    shares: Vec<Vec<ShareStep>>,
    /// For each binding, whether workgroups are apart as far as has been seen.
    pub disjoint: Vec<bool>,
}

impl Divisions {
    /// Before the kernel's body; accesses of functions that it calls are not followed.
    pub fn new(module: &Module, info: &KernelInfo) -> Self {
        let access = &info.access;
        let mut disjoint: Vec<bool> = access.iter().map(|access| *access != Access::Atomic).collect();
        for (_, function) in module.functions.iter() {
            super::access::places(function, &mut |place, _| {
                if let Root::Binding(binding) = place.root {
                    disjoint[binding as usize] &= !access[binding as usize].writes();
                }
            });
        }
        Self {
            writes: access.iter().map(|access| access.writes()).collect(),
            invocations: info.workgroup_size.iter().map(|size| i128::from(*size)).product(),
            grid: info.grid,
            divisions: vec![None; access.len()],
            shares: vec![Vec::new(); access.len()],
            disjoint,
        }
    }

    /// Hears of an access.
    pub fn touch(&mut self, touch: Touch<'_>) {
        let binding = touch.binding as usize;
        if !self.writes[binding] || !self.disjoint[binding] {
            return;
        }
        let Touch { index, lanes, module, knowledge, .. } = touch;
        let found = division(&index, lanes, knowledge, self.invocations);
        match (found, &self.divisions[binding]) {
            (Some(found), None) => match found.share(module, self.grid, knowledge) {
                Some(share) => {
                    self.shares[binding] = share;
                    self.divisions[binding] = Some(found);
                }
                None => self.disjoint[binding] = false,
            },
            (Some(found), Some(known)) if found == *known => {}
            _ => self.disjoint[binding] = false,
        }
    }

    /// The steps to the length of the longest block that a workgroup has of one of the bindings that are `disjoint`; none if it has no block.
    pub fn share(&self, disjoint: &[bool]) -> Vec<ShareStep> {
        let mut longest: Vec<ShareStep> = Vec::new();
        let mut known: Vec<&[ShareStep]> = Vec::new();
        for (share, _) in self.shares.iter().zip(disjoint).filter(|(share, disjoint)| **disjoint && !share.is_empty()) {
            if known.contains(&share.as_slice()) {
                continue;
            }
            longest.extend(share);
            if !known.is_empty() {
                longest.push(ShareStep::Max);
            }
            known.push(share);
        }
        longest
    }
}

impl Division {
    /// The steps to the length of a block; nothing if a launch cannot find it out.
    fn share(&self, module: &Module, grid: GridKind, knowledge: &Knowledge) -> Option<Vec<ShareStep>> {
        Some(match self {
            Self::Elements(elements) => vec![ShareStep::Number(*elements)],
            Self::Rows(rows, length) => {
                let params = layout::params(module, grid)?;
                let mut steps = Vec::new();
                Source { module, params: &params, knowledge }.form(length, &mut steps)?;
                if *rows != 1 {
                    steps.extend([ShareStep::Number(*rows), ShareStep::Multiply]);
                }
                steps
            }
        })
    }
}

/// The block of the workgroup's own that an access is proved to lie in.
fn division(index: &Form, lanes: u32, knowledge: &mut Knowledge, invocations: i128) -> Option<Division> {
    let lanes = i128::from(lanes);
    let mut expanded = Expanded::default();
    let index = expand(knowledge, index, invocations, &mut expanded)?;
    let group = group(knowledge);
    if let Some(block) = index.coefficient(group) {
        let rest = index.without(group);
        return knowledge.within(&rest, 0, block - 1).then_some(Division::Elements(block * lanes));
    }
    // A product of the row and the length of a row.
    let products: Vec<_> = index.terms().iter().filter(|(_, factor)| *factor == 1).map(|(atom, _)| *atom).collect();
    for product in products {
        let Key::Operation(BinaryOperator::Multiply, left, right, _) = knowledge.key(product).clone() else { continue };
        for (row, length) in [(&left, &right), (&right, &left)] {
            let Some(row) = expand(knowledge, row, invocations, &mut expanded) else { continue };
            let Some(rows) = row.coefficient(group) else { continue };
            let (row, rest) = (row.without(group), index.clone().without(product));
            if is_common(knowledge, length, &mut HashSet::default())
                && knowledge.within(&row, 0, rows - 1)
                && knowledge.proves(&rest)
                && knowledge.proves(&length.add(&rest, -1).plus(-1))
            {
                return Some(Division::Rows(rows * lanes, length.clone()));
            }
        }
    }
    None
}

fn group(knowledge: &mut Knowledge) -> Atom {
    let group = knowledge.atom(Key::Builtin(Builtin::GroupIndex), 0, u32::MAX.into());
    group.terms().first().map_or(0, |(atom, _)| *atom)
}

/// What atoms are expanded to, each once; nothing where that is too large to go on with.
type Expanded = HashMap<Atom, Option<Form>>;

/// The form with computed values in place of what they wrap to, and the global index in its parts; nothing where its numbers become too large to go on with.
fn expand(knowledge: &mut Knowledge, form: &Form, invocations: i128, expanded: &mut Expanded) -> Option<Form> {
    if !knowledge.is_small(form) {
        return None;
    }
    let mut out = Form::constant(form.constant);
    for (atom, factor) in form.terms() {
        let part = match expanded.get(atom) {
            Some(known) => known.clone(),
            None => {
                let part = match knowledge.key(*atom).clone() {
                    Key::Wrapped(inner, _) => expand(knowledge, &inner, invocations, expanded),
                    Key::Builtin(Builtin::GlobalIndex) => {
                        let group = knowledge.atom(Key::Builtin(Builtin::GroupIndex), 0, u32::MAX.into());
                        let local = knowledge.atom(Key::Builtin(Builtin::LocalIndex), 0, invocations - 1);
                        Some(group.times(invocations).add(&local, 1))
                    }
                    _ => Some(Form::atom(*atom)),
                };
                expanded.insert(*atom, part.clone());
                part
            }
        };
        out = out.add(&part?, *factor);
        if !knowledge.is_small(&out) {
            return None;
        }
    }
    Some(out)
}

/// Whether all workgroups agree on the value; `known` are atoms of which that was found.
fn is_common(knowledge: &Knowledge, form: &Form, known: &mut HashSet<Atom>) -> bool {
    form.terms().iter().all(|(atom, _)| {
        let common = known.contains(atom) || common_key(knowledge, knowledge.key(*atom), known);
        if common {
            known.insert(*atom);
        }
        common
    })
}

fn common_key(knowledge: &Knowledge, key: &Key, known: &mut HashSet<Atom>) -> bool {
    match key {
        Key::Param(_) | Key::Length(_) | Key::Extent(..) | Key::Stride(..) => true,
        Key::Part(base, _) => common_key(knowledge, base, known),
        Key::Wrapped(form, _) => is_common(knowledge, form, known),
        Key::Operation(_, left, right, _) => is_common(knowledge, left, known) && is_common(knowledge, right, known),
        Key::Math(_, forms, _) => forms.iter().all(|form| is_common(knowledge, form, known)),
        Key::Builtin(_)
        | Key::Argument(_)
        | Key::Local(_)
        | Key::Variable(..)
        | Key::MatrixLength(_)
        | Key::Fresh(_) => false,
    }
}
