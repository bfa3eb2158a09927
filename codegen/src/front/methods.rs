//! Methods: of slices, views and atomics, of vectors and scalars.

use super::calls::operand_type;
use super::infer::{Ty, VarKind};
use super::intrinsics;
use super::places::{Operand, no_lane, peel};
use super::scope::Infer;
use super::tree::{Kind, Node, Origin, Place, Projection, Root, Slice};
use crate::ir::{AtomicFunction, BinaryOperator, Bound, Domain, MathFunction, Ordering, Scalar, Scope, UnaryOperator};

impl Infer<'_> {
    pub(super) fn method(&mut self, e: &syn::ExprMethodCall, hint: Option<&Ty>) -> Node {
        let (receiver, scope) = self.scoped_receiver(e, hint);
        self.method_of(receiver, scope, e)
    }

    fn method_of(&mut self, receiver: Operand, scope: Scope, e: &syn::ExprMethodCall) -> Node {
        let name = e.method.to_string();
        if self.has_members(&receiver) {
            return self.member_call(receiver, e);
        }
        if let Some(turbofish) = &e.turbofish {
            self.error(turbofish, "methods of the kernel language take no type arguments");
        }
        match receiver {
            Operand::Slice(slice) if slice.view.is_some() => self.view_method(&slice, &name, e),
            Operand::Slice(slice) => self.slice_method(&slice, &name, e),
            Operand::Place(place) if place.atomic => self.atomic_method(place, scope, &name, e),
            operand => {
                let receiver = self.value_of(operand, &e.receiver);
                if let Ty::Matrix(role, ..) = self.table.shallow(&receiver.ty) {
                    return self.matrix_method(role, receiver, &name, e);
                }
                self.value_method(receiver, &name, e)
            }
        }
    }

    /// The receiver; that of `x.workgroup().add(1)` is the atomic `x`, narrowed to the workgroup.
    fn scoped_receiver(&mut self, e: &syn::ExprMethodCall, hint: Option<&Ty>) -> (Operand, Scope) {
        match peel(&e.receiver) {
            syn::Expr::MethodCall(inner) if inner.method == "workgroup" && inner.args.is_empty() => {
                let (receiver, scope) = self.scoped_receiver(inner, None);
                match receiver {
                    Operand::Place(place) if place.atomic => (Operand::Place(place), Scope::Workgroup),
                    other => (Operand::Value(self.method_of(other, scope, inner)), Scope::Device),
                }
            }
            _ => (self.receiver(e, hint), Scope::Device),
        }
    }

    fn receiver(&mut self, e: &syn::ExprMethodCall, hint: Option<&Ty>) -> Operand {
        match peel(&e.receiver) {
            // `1.0.max(x)`: the literal's type is that of the result.
            syn::Expr::Lit(_) | syn::Expr::Unary(_)
                if !matches!(peel(&e.receiver), syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Deref(_), .. })) =>
            {
                Operand::Value(self.expr(&e.receiver, hint))
            }
            _ => self.operand(&e.receiver),
        }
    }

    fn count(&mut self, e: &syn::ExprMethodCall, wanted: usize) -> bool {
        if e.args.len() == wanted {
            return true;
        }
        let name = e.method.to_string();
        self.wrong_count(&name, wanted, e.args.len(), e);
        false
    }

    fn slice_length(&mut self, slice: &Slice, e: &syn::ExprMethodCall) -> Node {
        match slice.origin {
            Origin::Binding(_) => self.node(Kind::Length(slice.origin), Ty::INDEX, e),
            Origin::Workgroup(variable) => {
                let length = self.session.module.workgroup[variable].length.clone();
                self.node(Kind::Constant(length), Ty::INDEX, e)
            }
        }
    }

    fn slice_method(&mut self, slice: &Slice, name: &str, e: &syn::ExprMethodCall) -> Node {
        let (lanes, sets) = match name {
            "len" | "is_empty" => {
                if !self.count(e, 0) {
                    return self.failed(e);
                }
                let length = self.slice_length(slice, e);
                if name == "len" {
                    return length;
                }
                let zero = self.node(Kind::Integer(0), Ty::INDEX, e);
                return self.node(Kind::Binary(BinaryOperator::Equal, Box::new(length), Box::new(zero)), Ty::BOOL, e);
            }
            "vec2" => (2, false),
            "vec4" => (4, false),
            "set_vec2" => (2, true),
            "set_vec4" => (4, true),
            "iter" | "iter_mut" | "chunks" | "first" | "last" | "get" | "swap" | "fill" => {
                return self.wrong(&e.method, format!("`.{name}()` is not part of the kernel language: index the slice, in a `for i in 0..x.len()` if need be"));
            }
            _ => {
                return self.wrong(&e.method, format!("slices have no `.{name}()` in kernels: they have len, is_empty, vec2, vec4, set_vec2 and set_vec4"));
            }
        };
        if !self.count(e, if sets { 2 } else { 1 }) {
            return self.failed(e);
        }
        let index = self.expr(&e.args[0], Some(&Ty::INDEX));
        let index = self.index_type(index, &e.args[0]);
        let scalar = match self.table.shallow(&slice.element) {
            Ty::Scalar(scalar) if scalar != Scalar::Bool && !slice.atomic => Ty::Scalar(scalar),
            other => {
                let found = self.describe(&other);
                return self.wrong(
                    &e.method,
                    format!("`.{name}()` moves several scalars at once; the elements of this slice are `{found}`"),
                );
            }
        };
        let ty = Ty::vector(lanes, scalar);
        let place = Place {
            root: Root::Memory(slice.origin),
            path: vec![Projection::Vector(index, lanes)],
            ty: ty.clone(),
            atomic: false,
            writable: slice.writable,
        };
        if !sets {
            return self.node(Kind::Load(place), ty, e);
        }
        let value = self.expect(&e.args[1], &ty);
        if !slice.writable {
            return self.wrong(&e.receiver, "this slice is read only: declare it `&mut [T]` to write to it");
        }
        self.node(Kind::Set(place, Box::new(value)), Ty::Unit, e)
    }

    fn view_method(&mut self, slice: &Slice, name: &str, e: &syn::ExprMethodCall) -> Node {
        let Origin::Binding(binding) = slice.origin else {
            return self.failed(e);
        };
        let rank = slice.view.unwrap_or(1);
        match name {
            "extent" | "stride" => {
                if !self.count(e, 1) {
                    return self.failed(e);
                }
                let axis = match peel(&e.args[0]) {
                    syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(axis), .. }) => axis.base10_parse::<u32>().ok(),
                    _ => None,
                };
                match axis {
                    Some(axis) if axis < rank => {
                        let kind = if name == "extent" {
                            Kind::ViewExtent(binding, axis)
                        } else {
                            Kind::ViewStride(binding, axis)
                        };
                        self.node(kind, Ty::INDEX, e)
                    }
                    Some(_) => self.wrong(&e.args[0], format!("this view has {rank} axes, counted from 0")),
                    None => self.wrong(&e.args[0], "the axis is a literal, as in `v.extent(0)`"),
                }
            }
            "at" | "set" => {
                if !self.count(e, if name == "at" { 1 } else { 2 }) {
                    return self.failed(e);
                }
                let Some(index) = self.view_index(binding, rank, &e.args[0]) else {
                    return self.failed(e);
                };
                let place = Place {
                    root: Root::Memory(slice.origin),
                    path: vec![Projection::Index(index)],
                    ty: slice.element.clone(),
                    atomic: false,
                    writable: slice.writable,
                };
                if name == "at" {
                    return self.node(Kind::Load(place), slice.element.clone(), e);
                }
                let value = self.expect(&e.args[1], &slice.element);
                if !slice.writable {
                    return self
                        .wrong(&e.receiver, "this view is read only: declare it `&mut View<T, R>` to write to it");
                }
                self.node(Kind::Set(place, Box::new(value)), Ty::Unit, e)
            }
            _ => self.wrong(
                &e.method,
                format!("views have no `.{name}()` in kernels: they have at, set, extent and stride"),
            ),
        }
    }

    /// `i * stride(0) + j * stride(1) + ..`
    fn view_index(&mut self, binding: u32, rank: u32, e: &syn::Expr) -> Option<Node> {
        let syn::Expr::Array(array) = peel(e) else {
            self.error(e, "write the index axis by axis: `v.at([i, j])`");
            return None;
        };
        if array.elems.len() != rank as usize {
            self.error(e, format!("this view has {rank} axes, {} indices given", array.elems.len()));
            return None;
        }
        let mut sum: Option<Node> = None;
        for (axis, index) in array.elems.iter().enumerate() {
            let node = self.expr(index, Some(&Ty::INDEX));
            let node = self.index_type(node, index);
            let stride = self.node(Kind::ViewStride(binding, axis as u32), Ty::INDEX, index);
            let product =
                self.node(Kind::Binary(BinaryOperator::Multiply, Box::new(node), Box::new(stride)), Ty::INDEX, index);
            sum = Some(match sum {
                None => product,
                Some(sum) => {
                    self.node(Kind::Binary(BinaryOperator::Add, Box::new(sum), Box::new(product)), Ty::INDEX, e)
                }
            });
        }
        sum
    }

    fn atomic_method(&mut self, place: Place, scope: Scope, name: &str, e: &syn::ExprMethodCall) -> Node {
        if name == "workgroup" {
            return self.wrong(&e.method, "an operation follows `.workgroup()`, as in `.workgroup().add(1)`");
        }
        let known = intrinsics::atomic(name);
        let Some((function, order)) = known.filter(|(function, order)| function.allows(*order)) else {
            let advice = match name {
                _ if known.is_some_and(|(function, _)| function == AtomicFunction::Load) => {
                    ": what only reads acquires: `.load_acquire()`".to_owned()
                }
                _ if known.is_some() => ": what only writes releases: `.store_release(v)`".to_owned(),
                "fetch_add" | "fetch_sub" | "fetch_min" | "fetch_max" | "fetch_and" | "fetch_or" | "fetch_xor" => {
                    format!(": it is `.{}(v)`", name.trim_start_matches("fetch_"))
                }
                "swap" => ": it is `.exchange(v)`".to_owned(),
                _ => ": they have load, store, add, sub, min, max, and, or, xor, exchange and compare_exchange, with `_acquire`, `_release` or `_acq_rel` behind if they are to order memory"
                    .to_owned(),
            };
            return self.wrong(&e.method, format!("atomics have no `.{name}()` in kernels{advice}"));
        };
        if !self.count(e, function.arguments()) {
            return self.failed(e);
        }
        let ty = place.ty.clone();
        if let Ty::Scalar(scalar) = &ty
            && !function.takes(*scalar)
        {
            let found = self.describe(&ty);
            return self.wrong(
                &e.method,
                format!(
                    "`.{name}()` belongs to atomics of integers; those of {found} have load, store, add and exchange"
                ),
            );
        }
        let mut nodes = Vec::new();
        for argument in &e.args {
            nodes.push(Box::new(self.expect(argument, &ty)));
        }
        let mut nodes = nodes.into_iter();
        let (value, compare) = if function == AtomicFunction::CompareExchange {
            let compare = nodes.next();
            (nodes.next(), compare)
        } else {
            (nodes.next(), None)
        };
        let result = if function == AtomicFunction::Store { Ty::Unit } else { ty };
        self.node(Kind::Atomic(function, Ordering { order, scope }, place, value, compare), result, e)
    }

    fn value_method(&mut self, receiver: Node, name: &str, e: &syn::ExprMethodCall) -> Node {
        let ty = self.known(&receiver.ty, &e.receiver);
        if matches!(ty.scalar(), Ty::Error | Ty::Never) {
            self.read_in_vain(&e.args);
            return self.failed(e);
        }
        if let Ty::Array(_, length) = &ty {
            return match name {
                "len" if self.count(e, 0) => self.length_node(length, e),
                "len" => self.failed(e),
                _ => self.wrong(
                    &e.method,
                    format!("arrays have no `.{name}()` in kernels: index them, in a `for i in 0..x.len()` if need be"),
                ),
            };
        }
        let scalar = ty.scalar().clone();
        let integer =
            matches!(scalar, Ty::Scalar(s) if s.is_integer()) || self.table.kind(&scalar) == Some(VarKind::Integer);
        if let Some(function) = MathFunction::from_name(name) {
            if let Domain::Only(..) = function.domain() {
                return self.wrong(&e.method, format!("`{name}` is a function: `{name}(..)`"));
            }
            let mut nodes = vec![receiver];
            let mut at = vec![&*e.receiver];
            for (index, argument) in e.args.iter().enumerate() {
                let hint = function.operands().get(index).map(|operand| operand_type(*operand, &ty));
                nodes.push(self.expr(argument, hint.as_ref()));
                at.push(argument);
            }
            if nodes.len() != function.arguments() {
                self.wrong_count(name, function.arguments() - 1, e.args.len(), e);
                return self.failed(e);
            }
            return self.math(function, nodes, &at, e);
        }
        let wrapping = match name {
            "wrapping_add" => Some(BinaryOperator::Add),
            "wrapping_sub" => Some(BinaryOperator::Subtract),
            "wrapping_mul" => Some(BinaryOperator::Multiply),
            _ => None,
        };
        match name {
            _ if wrapping.is_some() && integer && !matches!(ty, Ty::Vector(..)) => {
                if !self.count(e, 1) {
                    return self.failed(e);
                }
                let right = self.expect(&e.args[0], &ty);
                let operator = wrapping.unwrap_or(BinaryOperator::Add);
                let node = self.node(Kind::Binary(operator, Box::new(receiver), Box::new(right)), ty, e);
                self.session.module.locations.wrapping.push(node.span);
                node
            }
            "wrapping_neg" if matches!(ty, Ty::Scalar(scalar) if scalar.is_signed()) => {
                if !self.count(e, 0) {
                    return self.failed(e);
                }
                let node = self.node(Kind::Unary(UnaryOperator::Negate, Box::new(receiver)), ty, e);
                self.session.module.locations.wrapping.push(node.span);
                node
            }
            "div_ceil" => {
                if !self.count(e, 1) {
                    return self.failed(e);
                }
                if !matches!(ty, Ty::Scalar(scalar) if scalar.is_integer() && !scalar.is_signed()) {
                    let found = self.describe(&ty);
                    return self
                        .wrong(&e.receiver, format!("`div_ceil` belongs to unsigned integers, this is `{found}`"));
                }
                let right = self.expect(&e.args[0], &ty);
                self.node(Kind::DivideUp(Box::new(receiver), Box::new(right)), ty, e)
            }
            "to_bits" => {
                if !self.count(e, 0) {
                    return self.failed(e);
                }
                let target = match &ty {
                    Ty::Scalar(scalar) if scalar.is_float() => Ty::Scalar(super::constructors::bits_of(*scalar)),
                    _ if self.table.kind(&ty) == Some(VarKind::Float) => Ty::U32,
                    _ => {
                        let found = self.describe(&ty);
                        return self.wrong(&e.receiver, format!("`to_bits` belongs to floats, this is `{found}`"));
                    }
                };
                self.bitcast(receiver, target, e)
            }
            "to_f32" => {
                if !self.count(e, 0) {
                    return self.failed(e);
                }
                let fits = match &scalar {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) == Some(Bound::Float),
                    ty => matches!(ty, Ty::Scalar(scalar) if scalar.is_float()),
                };
                if !fits {
                    let found = self.describe(&ty);
                    return self.wrong(
                        &e.receiver,
                        format!("`to_f32` belongs to floats and `Float` types, this is `{found}`: use `as f32`"),
                    );
                }
                let target = ty.with_scalar(Ty::F32);
                self.convert(receiver, target, e)
            }
            _ => {
                self.read_in_vain(&e.args);
                let of_lanes = |letters: &str| name.chars().all(|letter| letters.contains(letter));
                if matches!(ty, Ty::Vector(..))
                    && (2..=4).contains(&name.len())
                    && (of_lanes("xyzw") || of_lanes("rgba"))
                {
                    return self.wrong(&e.method, no_lane(name));
                }
                let found = self.describe(&ty);
                let advice = match name {
                    "x" | "y" | "z" | "w" if matches!(ty, Ty::Vector(..)) => ": a lane is a field, as in `v.x`",
                    "saturating_add" => ": of integers without sign, write `a + b.min(!a)`",
                    "saturating_sub" => ": of integers without sign, write `a.max(b) - b`",
                    "abs_diff" => ": of integers without sign, write `a.max(b) - a.min(b)`",
                    "checked_add" | "checked_sub" | "checked_mul" | "checked_div" | "checked_rem" => {
                        ": there is no `Option` in kernels; compare with an `if`, and use the operator, or `wrapping_add(b)` and its like"
                    }
                    "swap_bytes" => {
                        ": of a u32, write `x.rotate_left(8) & 0x00ff_00ff | x.rotate_right(8) & 0xff00_ff00`"
                    }
                    "sin_cos" => ": call both, `x.sin()` and `x.cos()`",
                    "powi" => ": powers are `powf(y)`, small ones are written as products",
                    "log" => ": there are `ln`, `log2` and `log10`",
                    "recip" => ": write `1.0 / x`",
                    "rsqrt" => ": it is `inverse_sqrt`",
                    "fma" => ": it is `mul_add`",
                    "clone" => ": values are copied by their name alone",
                    "pow" => ": write a product, or shift",
                    "into" | "try_into" => ": convert with `as`",
                    "fetch_add" | "fetch_sub" | "fetch_min" | "fetch_max" | "fetch_and" | "fetch_or" | "fetch_xor" => {
                        ": atomics are elements of a slice of `Atomic<T>`, with `.add(..)`, `.sub(..)` and so on"
                    }
                    _ => "",
                };
                self.wrong(&e.method, format!("`{found}` has no `.{name}()` in kernels{advice}"))
            }
        }
    }
}
