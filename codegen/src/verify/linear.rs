//! Linear forms over unknowns, and a small prover for inequalities between them.
//!
//! An *atom* is an unknown integer that does not change while it is spoken of: a param, a length, an immutable local, a mutable local
//! between two of its stores, or the result of an operation on such. Its range holds always. A *form* is a sum of atoms with
//! coefficients and a constant, computed without wrapping. A *fact* is a form that is known not to be negative.

use std::collections::{BTreeMap, HashMap};

use crate::ir::{BinaryOperator, Builtin, Handle, Local, MathFunction, Root};

/// What an atom stands for; equal keys are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Param(u32),
    Length(u32),
    Extent(u32, u32),
    Stride(u32, u32),
    Builtin(Builtin),
    Argument(u32),
    Local(Handle<Local>),
    /// What a variable holds between two stores, which are counted.
    Variable(Root, u32),
    /// A part known by number.
    Part(Box<Key>, u32),
    /// A form reduced modulo 2^32 into the range of its type (signed or not).
    Wrapped(Form, bool),
    /// The result of an operation.
    Operation(BinaryOperator, Form, Form),
    /// The result of `min`, `max` or `clamp`.
    Math(MathFunction, Vec<Form>),
    /// Something of which nothing is known but its range.
    Fresh(usize),
}

/// An atom's number.
pub type Atom = usize;

/// A sum of atoms with coefficients, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Form {
    pub terms: BTreeMap<Atom, i128>,
    pub constant: i128,
}

/// Beyond this, forms are given up, so that no arithmetic on them overflows.
const LARGE: i128 = 1 << 80;

impl Form {
    pub fn constant(value: i128) -> Self {
        Self { terms: BTreeMap::new(), constant: value }
    }

    pub fn atom(atom: Atom) -> Self {
        Self { terms: BTreeMap::from([(atom, 1)]), constant: 0 }
    }

    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + other * factor`
    pub fn add(&self, other: &Self, factor: i128) -> Self {
        let mut sum = self.clone();
        for (atom, coefficient) in &other.terms {
            let value = sum.terms.entry(*atom).or_insert(0);
            *value += coefficient * factor;
            if *value == 0 {
                sum.terms.remove(atom);
            }
        }
        sum.constant += other.constant * factor;
        sum
    }

    pub fn plus(&self, constant: i128) -> Self {
        let mut sum = self.clone();
        sum.constant += constant;
        sum
    }

    pub fn times(&self, factor: i128) -> Self {
        Self::default().add(self, factor)
    }

    /// Whether its numbers are small enough to go on with.
    fn is_small(&self) -> bool {
        self.constant.abs() < LARGE && self.terms.len() <= 12 && self.terms.values().all(|value| value.abs() < LARGE)
    }
}

/// Atoms and facts.
#[derive(Default)]
pub struct Knowledge {
    keys: HashMap<Key, Atom>,
    atoms: Vec<(Key, i128, i128)>,
    facts: Vec<Form>,
}

impl Knowledge {
    /// The atom of that key; its range, which must hold always, is set when it is first seen.
    pub fn atom(&mut self, key: Key, low: i128, high: i128) -> Form {
        let next = self.atoms.len();
        let atom = *self.keys.entry(key.clone()).or_insert(next);
        if atom == next {
            self.atoms.push((key, low, high));
        }
        Form::atom(atom)
    }

    /// An atom of which nothing is known but its range.
    pub fn fresh(&mut self, low: i128, high: i128) -> Form {
        self.atom(Key::Fresh(self.atoms.len()), low, high)
    }

    /// What an atom stands for.
    pub fn key(&self, atom: Atom) -> &Key {
        &self.atoms[atom].0
    }

    /// How many facts there are, for [`Knowledge::forget`].
    pub fn mark(&self) -> usize {
        self.facts.len()
    }

    /// Forgets the facts learned since `mark`.
    pub fn forget(&mut self, mark: usize) {
        self.facts.truncate(mark);
    }

    /// Learns that a form is not negative.
    pub fn learn(&mut self, fact: Form) {
        if !fact.terms.is_empty() && fact.is_small() && !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    /// The least and the greatest value that ranges allow.
    pub fn range(&self, form: &Form) -> (i128, i128) {
        let (mut low, mut high) = (form.constant, form.constant);
        for (atom, coefficient) in &form.terms {
            let (_, least, most) = &self.atoms[*atom];
            let (a, b) = (least * coefficient, most * coefficient);
            low += a.min(b);
            high += a.max(b);
        }
        (low, high)
    }

    /// Whether the form is proved not to be negative.
    pub fn proves(&self, form: &Form) -> bool {
        let mut budget = 600;
        self.search(form, 5, &mut budget)
    }

    /// Whether the form is proved to be in a range.
    pub fn within(&self, form: &Form, low: i128, high: i128) -> bool {
        self.proves(&form.plus(-low)) && self.proves(&form.times(-1).plus(high))
    }

    /// Takes facts away from the form so that an atom vanishes: if what is left is not negative, neither is the form.
    fn search(&self, form: &Form, depth: u32, budget: &mut u32) -> bool {
        if !form.is_small() || *budget == 0 {
            return false;
        }
        *budget -= 1;
        if self.range(form).0 >= 0 {
            return true;
        }
        if depth == 0 {
            return false;
        }
        for (atom, coefficient) in &form.terms {
            for fact in self.facts.iter().rev() {
                let Some(other) = fact.terms.get(atom) else { continue };
                if other.signum() != coefficient.signum() {
                    continue;
                }
                let left = form.times(other.abs()).add(fact, -coefficient.abs());
                if self.search(&left, depth - 1, budget) {
                    return true;
                }
            }
        }
        false
    }
}
