//! Names, elements, fields and lanes: what can be read, and written where the signature allows it.

use quote::ToTokens;

use super::ends::Placed;
use super::infer::{Length, Ty};
use super::scope::{Entity, Infer};
use super::tree::{Kind, Node, Origin, Place, Projection, Root, Slice};
use crate::ir::{Scalar, Size};

/// What a name or a part of something is.
pub(super) enum Operand {
    Value(Node),
    Place(Place),
    Slice(Slice),
}

impl Infer<'_> {
    /// What an expression stands for, without reading it.
    pub(super) fn operand(&mut self, e: &syn::Expr) -> Operand {
        let Some(outside) = self.session.enter(e) else { return Operand::Value(self.failed(e)) };
        let operand = self.part(e);
        self.session.depth = outside;
        operand
    }

    fn part(&mut self, e: &syn::Expr) -> Operand {
        match e {
            syn::Expr::Paren(inner) => self.operand(&inner.expr),
            syn::Expr::Group(inner) => self.operand(&inner.expr),
            // A reference parameter is the variable that it refers to; rustc checks that the author's `*` is where Rust wants it.
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Deref(_), expr, .. }) => self.operand(expr),
            syn::Expr::Path(path) => self.name(path),
            syn::Expr::Index(index) => self.index(index),
            syn::Expr::Field(field) => self.field(field),
            other => Operand::Value(self.expr(other, None)),
        }
    }

    fn name(&mut self, e: &syn::ExprPath) -> Operand {
        let entity =
            e.path.get_ident().filter(|_| e.qself.is_none()).and_then(|name| self.lookup(&name.to_string())).cloned();
        match entity {
            Some(Entity::Local(local)) => Operand::Place(Place {
                root: Root::Local(local),
                path: Vec::new(),
                ty: self.locals[local].ty.clone(),
                atomic: false,
                writable: true,
            }),
            Some(Entity::Slice(slice)) => Operand::Slice(slice),
            Some(Entity::Value(kind, ty)) => Operand::Value(self.node(kind, ty, e)),
            Some(Entity::Reference(argument, ty)) => Operand::Place(Place {
                root: Root::Argument(argument),
                path: Vec::new(),
                ty,
                atomic: false,
                writable: true,
            }),
            Some(Entity::Tile(_)) => Operand::Value(self.wrong(
                e,
                "how the elements of a tile lie is the device's affair: a tile is filled by `copy_tile_async` and read by `multiply_tiles`, in the function that declares it",
            )),
            Some(Entity::Function(_)) => {
                Operand::Value(self.wrong(e, "a function is no value: call it, or hand it on to another function"))
            }
            Some(Entity::Failed) => Operand::Value(self.failed(e)),
            None => match e.path.get_ident().map(ToString::to_string).filter(|name| self.is_captured(name)) {
                Some(name) => {
                    self.captured(&name, e);
                    Operand::Value(self.failed(e))
                }
                None => Operand::Value(self.path_value(e)),
            },
        }
    }

    fn index(&mut self, e: &syn::ExprIndex) -> Operand {
        let base = self.operand(&e.expr);
        if let syn::Expr::Range(_) = peel(&e.index) {
            return Operand::Value(self.wrong(&e.index, "parts of slices are not part of the kernel language (yet): index element by element, or pass the slice with a first index"));
        }
        let index = self.expr(&e.index, Some(&Ty::INDEX));
        let index = self.index_type(index, &e.index);
        match base {
            Operand::Slice(slice) => {
                if slice.view.is_some() {
                    return Operand::Value(
                        self.wrong(e, "a view is read with `.at([i, j])` and written with `.set([i, j], x)`"),
                    );
                }
                if !self.is_within(&index, self.elements(slice.origin), e) {
                    return Operand::Value(self.failed(e));
                }
                Operand::Place(Place {
                    root: Root::Memory(slice.origin),
                    path: vec![Projection::Index(index)],
                    ty: slice.element,
                    atomic: slice.atomic,
                    writable: slice.writable,
                })
            }
            Operand::Place(mut place) => {
                let Some(ty) = self.element_type(&place.ty, e) else {
                    return Operand::Value(self.failed(e));
                };
                if !self.is_within(&index, self.parts(&place.ty), e) {
                    return Operand::Value(self.failed(e));
                }
                place.path.push(Projection::Index(index));
                place.ty = ty;
                Operand::Place(place)
            }
            Operand::Value(base) => {
                let Some(ty) = self.element_type(&base.ty, e) else {
                    return Operand::Value(self.failed(e));
                };
                let parts = self.parts(&base.ty);
                if !self.is_within(&index, parts, e) {
                    return Operand::Value(self.failed(e));
                }
                let kind = match index.kind {
                    Kind::Integer(number) if parts.is_some_and(|parts| number < parts) => {
                        Kind::Member(Box::new(base), number as u32)
                    }
                    _ => Kind::Element(Box::new(base), Box::new(index)),
                };
                Operand::Value(self.node(kind, ty, e))
            }
        }
    }

    /// How many parts a vector or an array has, if that is known.
    fn parts(&self, ty: &Ty) -> Option<u64> {
        match self.table.shallow(ty) {
            Ty::Vector(lanes, _) => Some(u64::from(lanes)),
            Ty::Array(_, length) => match self.table.length(&length) {
                Some(Size::Literal(length)) => Some(u64::from(length)),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many elements a workgroup array that the body declares has, if that is known. A function is handed arrays of any length, and may look at that before it reads.
    fn elements(&self, origin: Origin) -> Option<u64> {
        match origin {
            Origin::Workgroup(variable) if self.arrays.contains(&variable) => {
                self.session.module.workgroup[variable].length.literal().map(u64::from)
            }
            _ => None,
        }
    }

    /// Refuses an index that is a number past the end.
    fn is_within(&mut self, index: &Node, parts: Option<u64>, e: &syn::ExprIndex) -> bool {
        let (Kind::Integer(number), Some(parts)) = (&index.kind, parts) else { return true };
        if *number < parts {
            return true;
        }
        self.error(
            &e.index,
            format!("index {number} is past the end: this has {parts} elements, 0 to {}", parts.saturating_sub(1)),
        );
        false
    }

    /// An index must be a `usize`, as rustc wants it.
    pub(super) fn index_type(&mut self, node: Node, at: &impl Placed) -> Node {
        match self.table.shallow(&node.ty) {
            Ty::Scalar(scalar) if scalar.is_integer() && scalar != Scalar::Index => {
                let message =
                    format!("an index is a `usize`, this is `{}`: convert with `as usize`", scalar.rust_name());
                self.wrong(at, message)
            }
            _ => self.coerce(node, &Ty::INDEX, at),
        }
    }

    /// The type of an array's element or a vector's lane.
    fn element_type(&mut self, ty: &Ty, e: &syn::ExprIndex) -> Option<Ty> {
        match self.known(ty, &e.expr) {
            Ty::Vector(_, scalar) => Some(*scalar),
            Ty::Array(element, _) => Some(*element),
            Ty::Error => None,
            other => {
                let found = self.describe(&other);
                self.error(&e.expr, format!("`{found}` has no elements: slices, arrays and vectors are indexed"));
                None
            }
        }
    }

    fn field(&mut self, e: &syn::ExprField) -> Operand {
        let base = self.operand(&e.base);
        let ty = match &base {
            Operand::Value(node) => node.ty.clone(),
            Operand::Place(place) => place.ty.clone(),
            Operand::Slice(_) => {
                return Operand::Value(self.wrong(e, "a slice has no fields: index it first"));
            }
        };
        let Some((index, field)) = self.field_type(&ty, e) else {
            return Operand::Value(self.failed(e));
        };
        match base {
            Operand::Place(mut place) => {
                place.path.push(Projection::Member(index));
                place.ty = field;
                Operand::Place(place)
            }
            Operand::Value(node) => Operand::Value(self.node(Kind::Member(Box::new(node), index), field, e)),
            Operand::Slice(_) => Operand::Value(self.failed(e)),
        }
    }

    fn field_type(&mut self, ty: &Ty, e: &syn::ExprField) -> Option<(u32, Ty)> {
        let name = e.member.to_token_stream().to_string();
        match self.known(ty, &e.base) {
            Ty::Error => None,
            Ty::Vector(lanes, scalar) => {
                let lane = ["x", "y", "z", "w"].iter().position(|lane| *lane == name);
                match lane {
                    Some(lane) if lane < usize::from(lanes) => Some((lane as u32, *scalar)),
                    Some(_) => {
                        self.error(&e.member, format!("a Vec{lanes} has no lane `{name}`"));
                        None
                    }
                    None => {
                        self.error(&e.member, no_lane(&name));
                        None
                    }
                }
            }
            Ty::Struct(handle) => {
                let item = &self.session.module.structs[handle];
                match item.fields.iter().position(|(known, _)| *known == name) {
                    Some(index) => {
                        let ty = item.fields[index].1;
                        Some((index as u32, self.session.ty(ty)))
                    }
                    None => {
                        let names: Vec<_> = item.fields.iter().map(|(name, _)| name.as_str()).collect();
                        let message = format!("`{}` has no field `{name}`: it has {}", item.name, names.join(", "));
                        self.error(&e.member, message);
                        None
                    }
                }
            }
            other => {
                let found = self.describe(&other);
                self.error(&e.member, format!("`{found}` has no field `{name}`"));
                None
            }
        }
    }

    /// A place that may be written; reports what may not.
    pub(super) fn writable(&mut self, e: &syn::Expr) -> Option<Place> {
        let operand = self.operand(e);
        self.writable_operand(operand, e)
    }

    /// The same of an operand that has been read.
    pub(super) fn writable_operand(&mut self, operand: Operand, e: &syn::Expr) -> Option<Place> {
        match operand {
            Operand::Place(place) => {
                if place.atomic {
                    self.error(e, "an atomic is written with `.store(..)`");
                    return None;
                }
                if !place.writable {
                    self.error(e, "this slice is read only: declare it `&mut [T]` to write to it");
                    return None;
                }
                self.written(&place);
                Some(place)
            }
            Operand::Slice(_) => {
                self.error(e, "a slice cannot be assigned as a whole: assign its elements");
                None
            }
            Operand::Value(node) => {
                match node.kind {
                    Kind::Error => {}
                    Kind::Param(_) | Kind::Argument(_) => self.error(e, "this parameter cannot be assigned: declare it `mut` (the change stays in this invocation), or copy it with `let mut`"),
                    Kind::Member(..) | Kind::Element(..) => self.error(e, "a part of a value that is no variable cannot be assigned: store the value with `let mut` first; a parameter is declared `mut`, and `self` as `&mut self`"),
                    _ => self.error(e, "only variables, fields, lanes and elements can be assigned"),
                }
                None
            }
        }
    }

    /// The length of an array type as a value.
    pub(super) fn length_node(&mut self, length: &Length, e: &impl Placed) -> Node {
        match self.table.length(length) {
            Some(size) => self.node(Kind::Constant(size), Ty::INDEX, e),
            None => self.wrong(e, "the length must be known here: write the array's type where it is declared"),
        }
    }
}

/// What is said of a lane that no vector has.
pub(super) fn no_lane(name: &str) -> String {
    format!(
        "a vector has the lanes x, y, z and w; `{name}` is none. Lanes in another order are written one by one, as in `Vec2::new(v.y, v.x)`"
    )
}

/// Without parentheses and invisible groups.
pub(super) fn peel(e: &syn::Expr) -> &syn::Expr {
    match e {
        syn::Expr::Paren(inner) => peel(&inner.expr),
        syn::Expr::Group(inner) => peel(&inner.expr),
        other => other,
    }
}

/// Without parentheses, `&`, `&mut` and `*`.
pub(super) fn peel_reference(e: &syn::Expr) -> &syn::Expr {
    match peel(e) {
        syn::Expr::Reference(inner) => peel_reference(&inner.expr),
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Deref(_), expr, .. }) => peel_reference(expr),
        other => other,
    }
}
