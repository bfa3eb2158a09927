//! Matrices: their types, the functions that make them, and what is done with them.

use super::build::{Build, indices};
use super::infer::{Length, Ty, VarKind};
use super::places::{Operand, peel_reference};
use super::scope::{Entity, Infer};
use super::session::{Scope, Session};
use super::tree::{Block, For, Kind, MatrixNode, Node, Place, Projection, Root, Slice, Statement};
use crate::ir::{MatrixOperation, MatrixOrder, MatrixRole};

/// The role of the matrices of that type.
pub(super) fn role(name: &str) -> Option<MatrixRole> {
    MatrixRole::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
}

impl Session {
    /// The `MatrixA<f16, 16, 16>` that is written.
    pub(super) fn matrix_type(&mut self, role: MatrixRole, path: &syn::Path, scope: &Scope) -> Ty {
        let arguments = path.segments.last().map(|last| &last.arguments);
        let Some(syn::PathArguments::AngleBracketed(arguments)) = arguments else {
            return self.no_matrix(role, path);
        };
        let arguments: Vec<_> = arguments.args.iter().collect();
        let [syn::GenericArgument::Type(scalar), rows, columns] = arguments[..] else {
            return self.no_matrix(role, path);
        };
        let scalar = self.resolve_type(scalar, scope);
        let (Some(rows), Some(columns)) = (self.side(rows, scope), self.side(columns, scope)) else {
            return Ty::Error;
        };
        if scalar == Ty::Error {
            return Ty::Error;
        }
        Ty::Matrix(role, Box::new(scalar), Box::new([rows, columns]))
    }

    fn no_matrix(&mut self, role: MatrixRole, path: &syn::Path) -> Ty {
        let (name, scalar) = (role.name(), role.scalars()[0].rust_name());
        self.error(path, format!("write what the matrix holds, its rows and its columns: `{name}<{scalar}, 16, 16>`"));
        Ty::Error
    }

    /// The number of rows or columns that is written.
    pub(super) fn side(&mut self, argument: &syn::GenericArgument, scope: &Scope) -> Option<Length> {
        match argument {
            syn::GenericArgument::Const(value) => self.size(value, scope),
            // A constant's name looks like a type's.
            syn::GenericArgument::Type(syn::Type::Path(path)) if path.qself.is_none() => {
                let path = syn::ExprPath { attrs: Vec::new(), qself: None, path: path.path.clone() };
                self.size(&syn::Expr::Path(path), scope)
            }
            other => {
                self.error(other, "the rows and columns of a matrix are numbers");
                None
            }
        }
    }
}

impl Infer<'_> {
    /// `MatrixA::<f16, 16, 16>::load(..)` and the other functions that make matrices.
    pub(super) fn matrix_call(
        &mut self,
        role: MatrixRole,
        owner: &syn::PathSegment,
        name: &str,
        full: &str,
        e: &syn::ExprCall,
        hint: Option<&Ty>,
    ) -> Node {
        let ty = if owner.arguments.is_none() {
            let sides = Box::new([self.table.fresh_length(), self.table.fresh_length()]);
            Ty::Matrix(role, Box::new(self.table.fresh(VarKind::Any)), sides)
        } else {
            let scope = self.scope.clone();
            self.session.matrix_type(role, &syn::Path::from(owner.clone()), &scope)
        };
        if ty == Ty::Error {
            return self.failed(e);
        }
        // What is wanted fills in what is not written; if it is another type, whoever wants it says so.
        if let Some(wanted @ Ty::Matrix(..)) = hint.map(|hint| self.table.shallow(hint)) {
            self.table.unify(&ty, &wanted);
        }
        let Ty::Matrix(_, scalar, ..) = &ty else { return self.failed(e) };
        match name {
            "fill" => {
                let Some([value]) = self.arguments(e, full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, scalar);
                self.node(Kind::Splat(Box::new(value)), ty, e)
            }
            "load" | "load_columns" => {
                let Some([memory, offset, stride]) = self.arguments(e, full) else {
                    return self.failed(e);
                };
                let order = if name == "load" { MatrixOrder::Rows } else { MatrixOrder::Columns };
                let Some(slice) = self.matrix_memory(memory, scalar) else {
                    return self.failed(e);
                };
                let (place, stride) = self.matrix_place(&slice, offset, stride);
                self.node(Kind::Matrix(Box::new(MatrixNode::Load(place, stride, order))), ty, e)
            }
            "convert" if role == MatrixRole::Accumulator => {
                let Some([value]) = self.arguments(e, full) else {
                    return self.failed(e);
                };
                let value = self.expr(value, None);
                let Ty::Matrix(_, _, sides) = &ty else { return self.failed(e) };
                let from = self.table.fresh(VarKind::Any);
                let from = Ty::Matrix(role, Box::new(from), sides.clone());
                let value = self.coerce(value, &from, e);
                self.node(Kind::Convert(Box::new(value)), ty, e)
            }
            _ => {
                let convert = if role == MatrixRole::Accumulator { ", convert" } else { "" };
                self.wrong(&e.func, format!("there is no function `{full}` in kernels: matrices are made by fill, load, load_columns{convert} and multiply_add"))
            }
        }
    }

    /// The slice or workgroup array that a matrix lies in.
    fn matrix_memory(&mut self, argument: &syn::Expr, scalar: &Ty) -> Option<Slice> {
        let slice = match self.operand(peel_reference(argument)) {
            Operand::Slice(slice) if slice.view.is_none() && !slice.atomic => slice,
            Operand::Value(Node { kind: Kind::Error, .. }) => return None,
            _ => {
                self.error(
                    argument,
                    "a matrix lies in a slice or a workgroup array, as in `load(&tile, offset, stride)`",
                );
                return None;
            }
        };
        let element = self.table.shallow(&slice.element);
        if element == Ty::vector(4, Ty::U32) {
            return Some(slice);
        }
        if matches!(element, Ty::Vector(..)) || !self.table.unify(scalar, &element) {
            let (wanted, found) = (self.describe(scalar), self.describe(&element));
            self.error(
                argument,
                format!(
                    "this matrix lies in memory of `{wanted}`, or of `Vec4<u32>` as its bits; this holds `{found}`"
                ),
            );
            return None;
        }
        Some(slice)
    }

    fn matrix_place(&mut self, slice: &Slice, offset: &syn::Expr, stride: &syn::Expr) -> (Place, Node) {
        let at = self.expr(offset, Some(&Ty::INDEX));
        let at = self.index_type(at, offset);
        let step = self.expr(stride, Some(&Ty::INDEX));
        let step = self.index_type(step, stride);
        let place = Place {
            root: Root::Memory(slice.origin),
            path: vec![Projection::Index(at)],
            ty: slice.element.clone(),
            atomic: false,
            writable: slice.writable,
        };
        (place, step)
    }

    /// `multiply_add(a, b, c)`
    pub(super) fn matrix_product(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let Some([a, b, c]) = self.arguments(e, name) else {
            return self.failed(e);
        };
        let [rows, columns, depth] = std::array::from_fn(|_| self.table.fresh_length());
        let (input, sum) = (self.table.fresh(VarKind::Any), self.table.fresh(VarKind::Any));
        let left = Ty::Matrix(MatrixRole::A, Box::new(input.clone()), Box::new([rows.clone(), depth.clone()]));
        let right = Ty::Matrix(MatrixRole::B, Box::new(input), Box::new([depth, columns.clone()]));
        let ty = Ty::Matrix(MatrixRole::Accumulator, Box::new(sum), Box::new([rows, columns]));
        let a = self.expect(a, &left);
        let b = self.expect(b, &right);
        let c = self.expect(c, &ty);
        if matches!(self.table.shallow(&ty), Ty::Error) {
            return self.failed(e);
        }
        self.node(Kind::Matrix(Box::new(MatrixNode::MultiplyAdd([a, b, c]))), ty, e)
    }

    /// What is done with one matrix.
    pub(super) fn matrix_method(
        &mut self,
        role: MatrixRole,
        receiver: Node,
        name: &str,
        e: &syn::ExprMethodCall,
    ) -> Node {
        let arguments: Vec<&syn::Expr> = e.args.iter().collect();
        let store = role == MatrixRole::Accumulator;
        match (name, &arguments[..]) {
            ("store" | "store_columns", [memory, offset, stride]) if store => {
                let Ty::Matrix(_, scalar, ..) = self.table.shallow(&receiver.ty) else { return self.failed(e) };
                let order = if name == "store" { MatrixOrder::Rows } else { MatrixOrder::Columns };
                let Some(slice) = self.matrix_memory(memory, &scalar) else {
                    return self.failed(e);
                };
                if !slice.writable {
                    return self.wrong(*memory, "this slice is read only: declare it `&mut [T]` to write to it");
                }
                let (place, stride) = self.matrix_place(&slice, offset, stride);
                self.node(Kind::Matrix(Box::new(MatrixNode::Store(place, stride, order, receiver))), Ty::Unit, e)
            }
            ("map", [function]) if store => self.matrix_map(receiver, None, function, e),
            ("zip", [other, function]) if store => {
                let ty = receiver.ty.clone();
                let node = self.expect(other, &ty);
                self.matrix_map(receiver, Some(node), function, e)
            }
            ("map", _) if store => self.count_of(name, 1, e),
            ("zip", _) if store => self.count_of(name, 2, e),
            ("store" | "store_columns", _) if store => self.count_of(name, 3, e),
            _ => {
                let has = if store {
                    "it has map, zip, store and store_columns"
                } else {
                    "it is loaded or filled, and multiplied"
                };
                self.wrong(&e.method, format!("a `{}` has no `.{name}()` in kernels: {has}", role.name()))
            }
        }
    }

    fn count_of(&mut self, name: &str, wanted: usize, e: &syn::ExprMethodCall) -> Node {
        self.wrong_count(name, wanted, e.args.len(), e);
        self.failed(e)
    }

    /// A matrix with a closure's value in place of each element: a loop over the parts that the invocation holds.
    fn matrix_map(
        &mut self,
        receiver: Node,
        other: Option<Node>,
        function: &syn::Expr,
        e: &syn::ExprMethodCall,
    ) -> Node {
        let inputs = 1 + usize::from(other.is_some());
        let syn::Expr::Closure(closure) = peel_reference(function) else {
            return self.wrong(function, "what is done with the elements is a closure: `|x| x * 2.0`");
        };
        if closure.inputs.len() != inputs {
            return self.wrong(
                closure,
                format!(
                    "this closure gets {inputs} element{}, and has {} parameters",
                    if inputs == 1 { "" } else { "s" },
                    closure.inputs.len()
                ),
            );
        }
        let ty = receiver.ty.clone();
        let Ty::Matrix(_, scalar, ..) = self.table.shallow(&ty) else { return self.failed(e) };
        let hidden = |infer: &mut Self, name: &str, ty: Ty, assigned: bool| {
            // No name of the author's means it.
            infer.scopes.push(Default::default());
            let local = infer.local(name, ty, e);
            infer.scopes.pop();
            infer.locals[local].assigned = assigned;
            local
        };
        let result = hidden(self, "mapped", ty.clone(), true);
        let mut statements = Vec::new();
        let span = self.session.span(e);
        statements.push(Statement::Let { local: result, value: Some(receiver), span });
        let other = other.map(|node| {
            // A part of a variable is read without a copy of the rest.
            let local = hidden(self, "zipped", ty.clone(), true);
            statements.push(Statement::Let { local, value: Some(node), span });
            local
        });
        let counter = hidden(self, "part", Ty::INDEX, false);
        let part = |infer: &mut Self, local: usize| {
            let whole = |local: usize, ty: Ty| Place {
                root: Root::Local(local),
                path: Vec::new(),
                ty,
                atomic: false,
                writable: true,
            };
            let index = infer.node(Kind::Load(whole(counter, Ty::INDEX)), Ty::INDEX, e);
            Place { path: vec![Projection::Index(index)], ..whole(local, (*scalar).clone()) }
        };
        let mut given = Vec::new();
        for local in std::iter::once(result).chain(other) {
            let place = part(self, local);
            given.push(Entity::Value(Kind::Load(place), (*scalar).clone()));
        }
        let (lets, value) = self.in_closure(closure, given, &scalar);
        let target = part(self, result);
        let value = {
            let ty = (*scalar).clone();
            self.node(Kind::Block(Box::new(Block { statements: lets, tail: Some(value), ty: ty.clone() })), ty, e)
        };
        let assign = self.node(Kind::Assign(target, None, Box::new(value)), Ty::Unit, e);
        let start = self.node(Kind::Integer(0), Ty::INDEX, e);
        let end = self.node(Kind::MatrixLength(ty.clone()), Ty::INDEX, e);
        let body = Block { statements: vec![Statement::Evaluate(assign)], tail: None, ty: Ty::Unit };
        let range =
            For { local: counter, start, end, step: None, inclusive: false, reversed: false, unroll: false, body };
        let range = self.node(Kind::For(Box::new(range)), Ty::Unit, e);
        statements.push(Statement::Evaluate(range));
        let whole =
            Place { root: Root::Local(result), path: Vec::new(), ty: ty.clone(), atomic: false, writable: true };
        let tail = Some(self.node(Kind::Load(whole), ty.clone(), e));
        self.node(Kind::Block(Box::new(Block { statements, tail, ty: ty.clone() })), ty, e)
    }
}

impl Build<'_> {
    /// The operation, its operands evaluated.
    pub(super) fn matrix(&mut self, operation: &MatrixNode) -> Option<MatrixOperation> {
        match operation {
            MatrixNode::Load(place, stride, order) => {
                let mut nodes = indices(place);
                nodes.push(stride);
                let mut values = self.ordered(&nodes);
                let stride = values.pop()?;
                Some(MatrixOperation::Load { place: self.place(place, values), stride, order: *order })
            }
            MatrixNode::Store(place, stride, order, value) => {
                let mut nodes = vec![value];
                nodes.extend(indices(place));
                nodes.push(stride);
                let mut values = self.ordered(&nodes);
                let stride = values.pop()?;
                let value = values.remove(0);
                Some(MatrixOperation::Store { place: self.place(place, values), stride, order: *order, value })
            }
            MatrixNode::MultiplyAdd([a, b, c]) => match self.ordered(&[a, b, c])[..] {
                [a, b, c] => Some(MatrixOperation::MultiplyAdd { a, b, c }),
                _ => None,
            },
        }
    }
}
