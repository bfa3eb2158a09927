//! Linear forms over unknowns, and a small prover for inequalities between them.
//!
//! An *atom* is an unknown integer that does not change while it is spoken of: a param, a length, an immutable local, a mutable local
//! between two of its stores, or the result of an operation on such. Its range holds always. A *form* is a sum of atoms with
//! coefficients and a constant, computed without wrapping. A *fact* is a form that is known not to be negative.

use crate::hashing::HashMap;
use crate::ir::{BinaryOperator, Builtin, Handle, Local, MathFunction, Matrix, Root};

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
    /// A form reduced into the range of its type.
    Wrapped(Form, Kind),
    /// The result of an operation, in a type of that kind: whose range is the result's, so that what stands for a remainder without a sign never stands for one that may be negative.
    Operation(BinaryOperator, Form, Form, Kind),
    /// The result of `min`, `max` or `clamp`, in a type of that kind.
    Math(MathFunction, Vec<Form>, Kind),
    /// How many parts of a matrix an invocation holds.
    MatrixLength(Matrix),
    /// Something of which nothing is known but its range.
    Fresh(usize),
}

/// What a type's range is, for what wraps into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    pub signed: bool,
    pub wide: Wide,
}

/// Whether a type has 64 bits.
pub type Wide = bool;

/// An atom's number.
pub type Atom = usize;

/// A sum of atoms with coefficients, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Form {
    /// In the order of the atoms, none with the coefficient 0.
    terms: Vec<(Atom, i128)>,
    pub constant: i128,
}

/// Beyond these, forms are given up, so that no arithmetic on them overflows: not the sum of two products, nor its product with a value of a type.
#[derive(Clone, Copy, Debug)]
struct Large {
    coefficient: i128,
    constant: i128,
}

impl Large {
    /// Of values of 32 bits.
    const NARROW: Self = Self { coefficient: 1 << 60, constant: 1 << 60 };
    /// Of values of 64 bits, whose largest ones are constants of forms.
    const WIDE: Self = Self { coefficient: 1 << 52, constant: 1 << 72 };
}

/// Of so many terms at most are forms that a proof goes on with.
const MOST_TERMS: usize = 12;
/// A proof has at most so many facts.
const MOST_FACTS: u32 = 5;
/// After so many sums with facts, a form counts as not proved.
const MOST_TRIALS: u32 = 600;

impl Form {
    pub const fn constant(value: i128) -> Self {
        Self { terms: Vec::new(), constant: value }
    }

    pub fn atom(atom: Atom) -> Self {
        Self { terms: vec![(atom, 1)], constant: 0 }
    }

    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The atoms with their coefficients, none of them 0.
    pub fn terms(&self) -> &[(Atom, i128)] {
        &self.terms
    }

    /// The coefficient of an atom that occurs.
    pub fn coefficient(&self, atom: Atom) -> Option<i128> {
        let place = self.terms.binary_search_by_key(&atom, |term| term.0).ok()?;
        Some(self.terms[place].1)
    }

    /// The form without an atom.
    #[must_use]
    pub fn without(mut self, atom: Atom) -> Self {
        self.terms.retain(|term| term.0 != atom);
        self
    }

    /// `self + other * factor`
    pub fn add(&self, other: &Self, factor: i128) -> Self {
        self.combined(1, other, factor)
    }

    /// `self * own + other * factor`
    fn combined(&self, own: i128, other: &Self, factor: i128) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        self.merged(own, other, factor, |atom, coefficient| terms.push((atom, coefficient)));
        Self { terms, constant: self.constant * own + other.constant * factor }
    }

    /// Calls `visit` with the terms of `self * own + other * factor`, in the order of the atoms.
    fn merged(&self, own: i128, other: &Self, factor: i128, mut visit: impl FnMut(Atom, i128)) {
        let (mut left, mut right) = (self.terms.as_slice(), other.terms.as_slice());
        loop {
            let (atom, coefficient) = match (left, right) {
                ([(a, x), rest @ ..], [(b, ..), ..]) if a < b => {
                    left = rest;
                    (*a, x * own)
                }
                ([(a, x), left_rest @ ..], [(b, y), right_rest @ ..]) if a == b => {
                    (left, right) = (left_rest, right_rest);
                    (*a, x * own + y * factor)
                }
                (_, [(b, y), rest @ ..]) => {
                    right = rest;
                    (*b, y * factor)
                }
                ([(a, x), rest @ ..], []) => {
                    left = rest;
                    (*a, x * own)
                }
                ([], []) => break,
            };
            if coefficient != 0 {
                visit(atom, coefficient);
            }
        }
    }

    pub fn plus(&self, constant: i128) -> Self {
        let mut sum = self.clone();
        sum.constant += constant;
        sum
    }

    pub fn times(&self, factor: i128) -> Self {
        if factor == 0 {
            return Self::default();
        }
        let terms = self.terms.iter().map(|(atom, coefficient)| (*atom, coefficient * factor)).collect();
        Self { terms, constant: self.constant * factor }
    }

    /// Whether its numbers are small enough to go on with.
    fn is_small(&self, large: Large) -> bool {
        self.constant.abs() < large.constant
            && self.terms.len() <= MOST_TERMS
            && self.terms.iter().all(|(_, value)| value.abs() < large.coefficient)
    }
}

/// Atoms and facts.
pub struct Knowledge {
    keys: HashMap<Key, Atom>,
    atoms: Vec<Unknown>,
    facts: Vec<Form>,
    large: Large,
}

/// An atom: what it stands for, its range, and the facts that speak of it, in the order in which they were learned.
struct Unknown {
    key: Key,
    low: i128,
    high: i128,
    facts: Vec<usize>,
}

impl Knowledge {
    /// Nothing, of values of 64 bits too if there may be `wide` ones.
    pub fn new(wide: Wide) -> Self {
        let large = if wide { Large::WIDE } else { Large::NARROW };
        Self { keys: HashMap::default(), atoms: Vec::new(), facts: Vec::new(), large }
    }

    /// Whether a form's numbers are small enough to go on with: no product of two such forms' numbers overflows.
    pub fn is_small(&self, form: &Form) -> bool {
        form.is_small(self.large)
    }

    /// The atom of that key; its range, which must hold always, is set when it is first seen.
    pub fn atom(&mut self, key: Key, low: i128, high: i128) -> Form {
        if let Some(known) = self.keys.get(&key) {
            return Form::atom(*known);
        }
        let atom = self.atoms.len();
        self.keys.insert(key.clone(), atom);
        self.atoms.push(Unknown { key, low, high, facts: Vec::new() });
        Form::atom(atom)
    }

    /// An atom of which nothing is known but its range.
    pub fn fresh(&mut self, low: i128, high: i128) -> Form {
        self.atom(Key::Fresh(self.atoms.len()), low, high)
    }

    /// What an atom stands for.
    pub fn key(&self, atom: Atom) -> &Key {
        &self.atoms[atom].key
    }

    /// How many facts there are, for [`Knowledge::forget`].
    pub fn mark(&self) -> usize {
        self.facts.len()
    }

    /// Forgets the facts learned since `mark`.
    pub fn forget(&mut self, mark: usize) {
        for fact in self.facts.drain(mark..) {
            for (atom, _) in fact.terms {
                let facts = &mut self.atoms[atom].facts;
                facts.truncate(facts.partition_point(|fact| *fact < mark));
            }
        }
    }

    /// Learns that a form is not negative.
    pub fn learn(&mut self, fact: Form) {
        let Some((first, _)) = fact.terms.first() else { return };
        if !fact.is_small(self.large) || self.atoms[*first].facts.iter().any(|known| self.facts[*known] == fact) {
            return;
        }
        for (atom, _) in &fact.terms {
            self.atoms[*atom].facts.push(self.facts.len());
        }
        self.facts.push(fact);
    }

    /// The least and the greatest value that ranges allow.
    pub fn range(&self, form: &Form) -> (i128, i128) {
        let (mut low, mut high) = (form.constant, form.constant);
        for (atom, coefficient) in &form.terms {
            let unknown = &self.atoms[*atom];
            low += coefficient * unknown.extreme(*coefficient < 0);
            high += coefficient * unknown.extreme(*coefficient > 0);
        }
        (low, high)
    }

    /// Whether the form is proved not to be negative.
    pub fn proves(&self, form: &Form) -> bool {
        form.is_small(self.large) && {
            let least = self.range(form).0;
            least >= 0 || Search::new(self).rest(form, least, MOST_FACTS).is_some()
        }
    }

    /// Why the form is not negative, if that is proved.
    pub fn proof(&self, form: &Form) -> Option<Proof> {
        if !form.is_small(self.large) {
            return None;
        }
        let least = self.range(form).0;
        if least >= 0 {
            return Some(Proof { facts: Vec::new(), rest: form.clone() });
        }
        let mut search = Search::new(self);
        let rest = search.rest(form, least, MOST_FACTS)?;
        Some(Proof { facts: search.used.into_iter().map(|fact| self.facts[fact].clone()).collect(), rest })
    }

    /// The range of an atom, which holds always.
    pub fn range_of(&self, atom: Atom) -> (i128, i128) {
        (self.atoms[atom].low, self.atoms[atom].high)
    }

    /// Whether the form is proved to be in a range.
    pub fn within(&self, form: &Form, low: i128, high: i128) -> bool {
        self.proves(&form.plus(-low)) && {
            let mut below = form.times(-1);
            below.constant += high;
            self.proves(&below)
        }
    }

    /// The least value of `form * own + fact * factor` that ranges allow; nothing if its numbers are too large to go on with.
    fn least_of_sum(&self, form: &Form, own: i128, fact: &Form, factor: i128) -> Option<i128> {
        let mut least = form.constant * own + fact.constant * factor;
        let (mut small, mut count) = (least.abs() < self.large.constant, 0);
        form.merged(own, fact, factor, |atom, coefficient| {
            count += 1;
            small &= coefficient.abs() < self.large.coefficient;
            if small {
                least += coefficient * self.atoms[atom].extreme(coefficient < 0);
            }
        });
        (small && count <= MOST_TERMS).then_some(least)
    }

    /// The same of `form + fact * factor`, of the least value of the form, whose numbers are not too large: all but the fact's atoms add what they added.
    fn least_with(&self, form: &Form, lowest: i128, fact: &Form, factor: i128) -> Option<i128> {
        let constant = form.constant + fact.constant * factor;
        let mut least = lowest + fact.constant * factor;
        let mut small = constant.abs() < self.large.constant;
        let mut count = form.terms.len();
        let mut terms = form.terms.iter().peekable();
        for (atom, added) in &fact.terms {
            while terms.next_if(|(other, _)| other < atom).is_some() {}
            let before = terms.next_if(|(other, _)| other == atom).map_or(0, |(_, coefficient)| *coefficient);
            let after = before + added * factor;
            small &= after.abs() < self.large.coefficient;
            if !small {
                return None;
            }
            let unknown = &self.atoms[*atom];
            least += after * unknown.extreme(after < 0) - before * unknown.extreme(before < 0);
            count = count + usize::from(before == 0) - usize::from(after == 0);
        }
        (count <= MOST_TERMS).then_some(least)
    }
}

impl Unknown {
    /// Its greatest value or its least.
    const fn extreme(&self, greatest: bool) -> i128 {
        if greatest { self.high } else { self.low }
    }
}

/// The search for a proof.
struct Search<'k> {
    knowledge: &'k Knowledge,
    /// How many sums may still be tried.
    trials: u32,
    /// The facts that have been taken away.
    used: Vec<usize>,
}

impl<'k> Search<'k> {
    fn new(knowledge: &'k Knowledge) -> Self {
        Self { knowledge, trials: MOST_TRIALS, used: Vec::new() }
    }

    /// Takes up to `more` facts away from the form, whose least value by ranges is `lowest`, each so that an atom vanishes: if what is left is not negative by its range, neither is the form. Gives
    /// what is left.
    fn rest(&mut self, form: &Form, lowest: i128, more: u32) -> Option<Form> {
        let knowledge = self.knowledge;
        for (atom, coefficient) in &form.terms {
            for number in knowledge.atoms[*atom].facts.iter().rev() {
                if self.trials == 0 {
                    return None;
                }
                let fact = &knowledge.facts[*number];
                let Some(other) = fact.coefficient(*atom) else { continue };
                if other.signum() != coefficient.signum() {
                    continue;
                }
                let (own, factor) = (other.abs(), -coefficient.abs());
                // Most of what is left is looked at once and never again: it is made only to go on with.
                let least = match own {
                    1 => knowledge.least_with(form, lowest, fact, factor),
                    _ => knowledge.least_of_sum(form, own, fact, factor),
                };
                let Some(least) = least else { continue };
                self.trials -= 1;
                if least < 0 && more == 1 {
                    continue;
                }
                let left = form.combined(own, fact, factor);
                self.used.push(*number);
                if least >= 0 {
                    return Some(left);
                }
                let rest = self.rest(&left, least, more - 1);
                if rest.is_some() {
                    return rest;
                }
                self.used.pop();
            }
        }
        None
    }
}

/// Why a form is not negative.
pub struct Proof {
    /// Facts of which it is a sum, with what is left.
    pub facts: Vec<Form>,
    /// What is left, which is not negative whatever its atoms are within their ranges.
    pub rest: Form,
}
