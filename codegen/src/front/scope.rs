//! The inference of one body: what names mean at a point of it, and the state that expressions and statements share.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use proc_macro2::TokenStream;

use super::assignments::Assignments;
use super::beginnings::{Beginnings, as_float};
use super::callables::FunctionParameter;
use super::ends::Placed;
use super::infer::{Length, Table, Ty, VarKind};
use super::session::{Scope, Session};
use super::tree::{Kind, Local, Node, Place, Root, Slice, Statement};
use super::undecided::Undecided;
use crate::ir::{Bound, Handle, Scalar, WorkgroupVariable};

/// What a name in a body means.
#[derive(Clone, Debug)]
pub(super) enum Entity {
    Local(usize),
    Slice(Slice),
    /// A tile variable.
    Tile(Handle<WorkgroupVariable>),
    /// A parameter that is passed by value.
    Value(Kind, Ty),
    /// A parameter that is passed by `&mut`.
    Reference(u32, Ty),
    /// A parameter that is a function.
    Function(Rc<FunctionParameter>),
    /// Something wrong, which was reported.
    Failed,
}

/// A loop around the point at which inference is.
pub(super) struct Loop {
    pub unroll: bool,
    pub breaks: bool,
}

/// Types to be written into the author's text, by the address of the syntax that they belong to.
#[derive(Default)]
pub(super) struct Ascriptions {
    pub literals: HashMap<usize, Ty>,
    pub lets: HashMap<usize, usize>,
    /// Of `let (a, b) = ..`: a local for each part, none for `_`.
    pub tuples: HashMap<usize, Vec<Option<usize>>>,
}

/// The inference of one body.
pub(super) struct Infer<'s> {
    pub session: &'s mut Session,
    pub scope: Scope,
    pub scopes: Vec<HashMap<String, Entity>>,
    pub locals: Vec<Local>,
    pub table: Table,
    pub result: Ty,
    pub loops: Vec<Loop>,
    /// Whether the condition of an `if const` is being read.
    pub constant: bool,
    /// Whether types are wanted for the author's text: for the body itself, not for constants that it uses.
    pub record: bool,
    pub ascriptions: Ascriptions,
    /// Locals for parameters that are declared `mut`.
    pub prologue: Vec<Statement>,
    /// For the message on workgroup arrays in constants.
    pub in_constant: bool,
    /// In a closure: what the names around it mean, none of which it may use.
    pub around: Option<HashMap<String, Entity>>,
    pub assignments: Assignments,
    pub beginnings: Beginnings,
    /// The workgroup arrays that the body declares.
    pub arrays: HashSet<Handle<WorkgroupVariable>>,
    pub undecided: Undecided,
}

impl<'s> Infer<'s> {
    pub(super) fn new(session: &'s mut Session, scope: Scope, result: Ty, record: bool) -> Self {
        Self {
            session,
            scope,
            scopes: vec![HashMap::new()],
            locals: Vec::new(),
            table: Table::default(),
            result,
            loops: Vec::new(),
            constant: false,
            record,
            ascriptions: Ascriptions::default(),
            prologue: Vec::new(),
            in_constant: false,
            around: None,
            assignments: Assignments::default(),
            beginnings: Beginnings::default(),
            arrays: HashSet::new(),
            undecided: Undecided::default(),
        }
    }

    pub(super) fn error(&mut self, at: &impl Placed, message: impl Into<String>) {
        self.session.error(at, message);
    }

    /// Reports a mistake and gives what stands for it.
    pub(super) fn wrong(&mut self, at: &impl Placed, message: impl Into<String>) -> Node {
        self.session.error(at, message);
        self.failed(at)
    }

    /// What stands for something wrong that was reported.
    pub(super) fn failed(&mut self, at: &impl Placed) -> Node {
        self.session.poisoned = true;
        self.node(Kind::Error, Ty::Error, at)
    }

    pub(super) fn node(&mut self, kind: Kind, ty: Ty, at: &impl Placed) -> Node {
        let span = self.session.span(at);
        Node { kind, ty, span }
    }

    pub(super) fn lookup(&self, name: &str) -> Option<&Entity> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    pub(super) fn declare(&mut self, name: &str, entity: Entity) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), entity);
        }
    }

    /// A new local that no name means; its own is for people.
    pub(super) fn unnamed(&mut self, name: &str, ty: Ty, at: &impl Placed) -> usize {
        let span = self.session.span(at);
        self.locals.push(Local { name: name.to_owned(), ty, span, assigned: false });
        self.locals.len() - 1
    }

    /// A new local, known by its name from here on.
    pub(super) fn local(&mut self, name: &str, ty: Ty, at: &impl Placed) -> usize {
        let local = self.unnamed(name, ty, at);
        self.declare(name, Entity::Local(local));
        local
    }

    /// A type as the author would write it, with what is known by now.
    pub(super) fn describe(&self, ty: &Ty) -> String {
        let ty = self.table.shallow(ty);
        match &ty {
            Ty::Var(_) => match self.table.kind(&ty) {
                Some(VarKind::Integer) => "{integer}".to_owned(),
                Some(VarKind::Float) => "{float}".to_owned(),
                _ => "_".to_owned(),
            },
            Ty::Vector(lanes, scalar) => format!("Vec{lanes}<{}>", self.describe(scalar)),
            Ty::Array(element, length) => {
                let length = match self.table.length(length) {
                    Some(length) => super::infer::Length::Known(length),
                    None => length.clone(),
                };
                let known = self.session.describe(&Ty::Array(Box::new(Ty::Error), length));
                known.replacen('_', &self.describe(element), 1)
            }
            Ty::Matrix(role, scalar, sides) => {
                let known = |length: &Length| match self.table.length(length) {
                    Some(length) => Length::Known(length),
                    None => length.clone(),
                };
                let scalar = Box::new(self.table.shallow(scalar));
                let sides = Box::new([known(&sides[0]), known(&sides[1])]);
                self.session.describe(&Ty::Matrix(*role, scalar, sides))
            }
            other => self.session.describe(other),
        }
    }

    /// Makes the node's type the expected one, or reports that it is another.
    pub(super) fn coerce(&mut self, mut node: Node, expected: &Ty, at: &impl Placed) -> Node {
        if self.table.unify(&node.ty, expected) {
            match self.table.shallow(&node.ty) {
                Ty::Never => node.ty = expected.clone(),
                Ty::Error if self.session.poisoned => self.table.give_up(expected),
                _ => {}
            }
            return node;
        }
        if let Kind::Load(place) = &node.kind
            && self.is_begun_wrong(place, expected)
        {
            return self.failed(at);
        }
        let (found, wanted) = (self.table.shallow(&node.ty), self.table.shallow(expected));
        let advice = self.advice(&found, &wanted, &quote::ToTokens::to_token_stream(at));
        let message = format!("expected `{}`, found `{}`{advice}", self.describe(&wanted), self.describe(&found));
        self.wrong(at, message)
    }

    /// What to write to get from one type to another, where the author wrote this.
    fn advice(&self, found: &Ty, wanted: &Ty, written: &TokenStream) -> String {
        let literal = || {
            let literal = syn::parse2::<syn::Expr>(written.clone()).ok().and_then(|written| as_float(&written));
            literal.unwrap_or_else(|| "0.5".to_owned())
        };
        match (found, wanted) {
            (Ty::Var(_), Ty::Scalar(scalar)) => match (self.table.kind(found), scalar) {
                (Some(VarKind::Integer), Scalar::F32 | Scalar::F64) => {
                    ": a float literal has a point, as in `2.0`".to_owned()
                }
                (Some(VarKind::Integer | VarKind::Float), Scalar::Generic(_)) => {
                    let (ty, literal) = (self.session.describe(wanted), literal());
                    format!(": a literal of a generic type is written `{ty}::lit({literal})`")
                }
                (Some(_), Scalar::F16 | Scalar::BF16) => {
                    format!(": write `{}::from_f32({})`", self.session.describe(wanted), literal())
                }
                _ => String::new(),
            },
            (Ty::Scalar(Scalar::F16 | Scalar::BF16), Ty::Scalar(_)) => ": convert with `.to_f32()`".to_owned(),
            (Ty::Scalar(_), Ty::Scalar(half @ (Scalar::F16 | Scalar::BF16))) => {
                format!(": convert with `{}::from_f32(..)`", half.rust_name())
            }
            (Ty::Scalar(Scalar::Generic(index)), Ty::Scalar(Scalar::F32))
                if self.session.bound(*index) == Some(Bound::Float) =>
            {
                ": convert with `.to_f32()`".to_owned()
            }
            (Ty::Scalar(Scalar::F32), Ty::Scalar(Scalar::Generic(index)))
                if self.session.bound(*index) == Some(Bound::Float) =>
            {
                format!(": convert with `{}::from_f32(..)`", self.session.describe(wanted))
            }
            (Ty::Scalar(a), Ty::Scalar(b)) if numeric(*a) && numeric(*b) => {
                format!(": convert with `as {}`", b.rust_name())
            }
            (Ty::Unit, _) => ": a block gives the value of its last expression if no `;` follows it".to_owned(),
            _ => String::new(),
        }
    }

    /// The type as far as it is known; reports if nothing is known, since what is asked next depends on it.
    pub(super) fn known(&mut self, ty: &Ty, at: &impl Placed) -> Ty {
        let ty = self.table.shallow(ty);
        if self.table.kind(&ty) == Some(VarKind::Any) {
            self.error(at, "the type must be known here: write it where the variable is declared, as in `let x: f32`");
            return Ty::Error;
        }
        ty
    }

    /// Remembers that the variable that holds the place is written after its declaration.
    pub(super) fn written(&mut self, place: &Place) {
        if let Root::Local(local) = place.root
            && let Some(local) = self.locals.get_mut(local)
        {
            local.assigned = true;
        }
    }
}

pub(super) fn numeric(scalar: Scalar) -> bool {
    scalar.is_number()
}
