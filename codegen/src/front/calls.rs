//! Calls: of the language's functions, of types' functions, and of `#[device]` functions.

use std::collections::HashMap;
use std::rc::Rc;

use super::bundle::Bundle;
use super::infer::{Length, Ty, VarKind};
use super::intrinsics::{self, Intrinsic};
use super::items;
use super::named;
use super::places::{Operand, peel, peel_reference};
use super::scope::{Entity, Infer, numeric};
use super::session::{GenericArgument, Scope};
use super::signature::ParameterType;
use super::tree::{Argument, Callee, Kind, Node, Origin, Place, Root, Slice};
use crate::ir::{Bound, GenericKind, MathFunction, Scalar, SubgroupFunction};
use crate::target::Feature;

impl Infer<'_> {
    pub(super) fn call(&mut self, e: &syn::ExprCall, hint: Option<&Ty>) -> Node {
        let syn::Expr::Path(function) = peel(&e.func) else {
            return self.wrong(&e.func, "only functions are called: write the function's name");
        };
        let path = &function.path;
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if path.segments.len() == 1 && self.lookup(&name).is_some() {
            return self.wrong(path, format!("`{name}` is a variable, not a function"));
        }
        if let Some(bundle) = self.session.bundle(&self.scope, path) {
            return self.device_call(&bundle, path, e);
        }
        if path.segments.len() == 1 && name == self.scope.own {
            return self.wrong(
                path,
                format!("`{name}` calls itself: recursion is not part of the kernel language; use a loop"),
            );
        }
        if let Some(intrinsic) = intrinsics::function_of_path(path) {
            return self.intrinsic(intrinsic, &name, path, e, hint);
        }
        if let Some(owner) = named::owner(path).or_else(|| self.generic_owner(path)) {
            return self.owned_call(&owner, &name, e, hint);
        }
        let shown = super::path_name(path);
        for argument in &e.args {
            let _ = self.operand(peel_reference(argument));
        }
        let near = nearest(&name);
        let message = format!(
            "no function `{shown}` is known in kernels{near}: put #[device] on a function of your own, and `use` it where the kernel is"
        );
        self.wrong(path, message)
    }

    /// The `T` of `T::lit`, if it is a type parameter whose name does not look like one.
    fn generic_owner(&self, path: &syn::Path) -> Option<syn::Path> {
        let first = path.segments.first()?;
        let known = path.segments.len() == 2 && self.scope.generics.contains_key(&first.ident.to_string());
        known.then(|| syn::Path::from(first.clone()))
    }

    /// The arguments, if there are as many as there should be.
    fn arguments<'e, const N: usize>(&mut self, e: &'e syn::ExprCall, name: &str) -> Option<[&'e syn::Expr; N]> {
        let arguments: Vec<&syn::Expr> = e.args.iter().collect();
        match arguments.try_into() {
            Ok(arguments) => Some(arguments),
            Err(given) => {
                self.wrong_count(name, N, given.len(), e);
                None
            }
        }
    }

    pub(super) fn wrong_count(&mut self, name: &str, wanted: usize, given: usize, at: &impl quote::ToTokens) {
        let s = if wanted == 1 { "" } else { "s" };
        self.error(at, format!("`{name}` takes {wanted} argument{s}, {given} given"));
    }

    fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        name: &str,
        path: &syn::Path,
        e: &syn::ExprCall,
        hint: Option<&Ty>,
    ) -> Node {
        match intrinsic {
            Intrinsic::Builtin(builtin) => {
                let Some([]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let ty = if builtin.is_vector() { Ty::vector(3, Ty::INDEX) } else { Ty::INDEX };
                self.node(Kind::Builtin(builtin), ty, e)
            }
            Intrinsic::Barrier => {
                let Some([]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                self.node(Kind::Barrier, Ty::Unit, e)
            }
            Intrinsic::UniformLoad => self.uniform_load(e, name),
            Intrinsic::WorkgroupArray => self.wrong(
                e,
                "a workgroup array is declared by a `let` of its own: `let mut tile = workgroup_array::<f32>(64);`",
            ),
            Intrinsic::Unroll => self.wrong(e, "`unroll(a..b)` stands after `in` alone: `for i in unroll(0..4)`"),
            Intrinsic::TargetHas => self.target_has(e, name),
            Intrinsic::Subgroup(function) => self.subgroup(function, name, e, hint),
            Intrinsic::Math(function) => {
                let nodes: Vec<Node> = {
                    let mut nodes = Vec::new();
                    let mut hint = if function == MathFunction::Dot { None } else { hint.cloned() };
                    for argument in &e.args {
                        let node = self.expr(argument, hint.as_ref());
                        hint = Some(node.ty.clone());
                        nodes.push(node);
                    }
                    nodes
                };
                let at: Vec<&syn::Expr> = e.args.iter().collect();
                self.math(function, nodes, &at, e)
            }
            Intrinsic::Select => {
                let Some([condition, accept, reject]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let condition = self.expect(condition, &Ty::BOOL);
                let accept = self.expr(accept, hint);
                let ty = accept.ty.clone();
                let reject = self.expect(reject, &ty);
                let known = self.table.shallow(&ty);
                if !matches!(known, Ty::Scalar(_) | Ty::Vector(..) | Ty::Var(_) | Ty::Error) {
                    let found = self.describe(&known);
                    return self.wrong(e, format!("`select` chooses scalars and vectors, this is `{found}`: use `if`"));
                }
                self.node(Kind::Select(Box::new([condition, accept, reject])), ty, e)
            }
            Intrinsic::Bitcast => {
                let Some([value]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let target = match path.segments.last().map(|segment| &segment.arguments) {
                    Some(syn::PathArguments::AngleBracketed(arguments)) => match arguments.args.first() {
                        Some(syn::GenericArgument::Type(ty)) if !matches!(ty, syn::Type::Infer(_)) => {
                            let scope = self.scope.clone();
                            Some(self.session.resolve_type(ty, &scope))
                        }
                        _ => None,
                    },
                    _ => hint.cloned(),
                };
                let value = self.expr(value, None);
                match target {
                    Some(target) => self.bitcast(value, target, e),
                    None => self.wrong(e, "write the type to read the bits as: `bitcast::<u32>(x)`"),
                }
            }
        }
    }

    pub(super) fn bitcast(&mut self, value: Node, target: Ty, e: &impl quote::ToTokens) -> Node {
        let source = self.table.shallow(&value.ty);
        let target = self.table.shallow(&target);
        let word = |ty: &Ty| match ty.scalar() {
            Ty::Scalar(scalar) => matches!(scalar, Scalar::F32 | Scalar::I32 | Scalar::U32),
            Ty::Var(_) => true,
            _ => false,
        };
        let lanes = |ty: &Ty| match ty {
            Ty::Vector(lanes, _) => *lanes,
            _ => 1,
        };
        if source == Ty::Error || target == Ty::Error {
            return self.failed(e);
        }
        if !word(&source) || !word(&target) || lanes(&source) != lanes(&target) {
            let (from, to) = (self.describe(&source), self.describe(&target));
            return self.wrong(e, format!("the bits of `{from}` cannot be read as `{to}`: both are f32, i32 or u32, or vectors of these with as many lanes"));
        }
        self.node(Kind::Bitcast(Box::new(value)), target, e)
    }

    fn uniform_load(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let Some([argument]) = self.arguments(e, name) else {
            return self.failed(e);
        };
        let syn::Expr::Reference(reference) = peel(argument) else {
            return self.wrong(
                argument,
                "`workgroup_uniform_load` takes a reference to an element: `workgroup_uniform_load(&tile[i])`",
            );
        };
        match self.operand(&reference.expr) {
            Operand::Place(place)
                if matches!(place.root, Root::Memory(Origin::Workgroup(_)))
                    || (self.session.alone && matches!(place.root, Root::Memory(_))) =>
            {
                if place.atomic {
                    return self.wrong(argument, "atomics are not loaded this way: use `.load()` and pass the value through a plain workgroup array");
                }
                let ty = place.ty.clone();
                self.node(Kind::UniformLoad(place), ty, e)
            }
            Operand::Value(Node { kind: Kind::Error, .. }) => self.failed(e),
            _ => self.wrong(
                argument,
                "`workgroup_uniform_load` takes an element of a workgroup array: `workgroup_uniform_load(&tile[i])`",
            ),
        }
    }

    fn target_has(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let Some([argument]) = self.arguments(e, name) else {
            return self.failed(e);
        };
        if !self.constant {
            return self.wrong(
                e,
                "what the target has is asked while compiling: `if const { target::has(Feature::Subgroups) } { .. }`",
            );
        }
        let feature = match peel(argument) {
            syn::Expr::Path(path) => {
                path.path.segments.last().and_then(|last| Feature::from_variant_name(&last.ident.to_string()))
            }
            _ => None,
        };
        match feature {
            Some(feature) => self.node(Kind::TargetHas(feature), Ty::BOOL, e),
            None => {
                let known: Vec<String> =
                    Feature::ALL.into_iter().map(|feature| format!("Feature::{}", feature.variant_name())).collect();
                self.wrong(argument, format!("a feature is one of {}", known.join(", ")))
            }
        }
    }

    fn subgroup(&mut self, function: SubgroupFunction, name: &str, e: &syn::ExprCall, hint: Option<&Ty>) -> Node {
        let (value, lane) = if function.takes_lane() {
            let Some([value, lane]) = self.arguments(e, name) else {
                return self.failed(e);
            };
            (value, Some(lane))
        } else {
            let Some([value]) = self.arguments(e, name) else {
                return self.failed(e);
            };
            (value, None)
        };
        let node = self.expr(value, hint);
        let lane = lane.map(|lane| Box::new(self.expect(lane, &Ty::U32)));
        let ty = self.known(&node.ty, value);
        let fits = match ty.scalar() {
            Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) == Some(Bound::Number),
            Ty::Scalar(scalar) => matches!(scalar, Scalar::F32 | Scalar::I32 | Scalar::U32),
            Ty::Var(_) | Ty::Error => true,
            _ => false,
        };
        if !fits {
            let found = self.describe(&ty);
            return self.wrong(
                value,
                format!(
                    "`{name}` works on f32, i32, u32 and vectors of these, this is `{found}`: convert with `as u32`"
                ),
            );
        }
        self.node(Kind::Subgroup(function, Box::new(node), lane), ty, e)
    }

    /// A function of the mathematical library on values that are inferred.
    pub(super) fn math(
        &mut self,
        function: MathFunction,
        mut nodes: Vec<Node>,
        at: &[&syn::Expr],
        e: &impl quote::ToTokens,
    ) -> Node {
        if nodes.len() != function.arguments() {
            self.wrong_count(function.name(), function.arguments(), nodes.len(), e);
            return self.failed(e);
        }
        let Some(first) = at.first() else {
            return self.failed(e);
        };
        // A literal before a typed argument takes the other's type.
        let mut ty = self.known(&nodes[0].ty.clone(), first);
        for index in 1..nodes.len() {
            let node = std::mem::replace(
                &mut nodes[index],
                Node { kind: Kind::Error, ty: Ty::Error, span: crate::ir::Span::NONE },
            );
            let place = at.get(index).copied().unwrap_or(first);
            nodes[index] = self.coerce(node, &ty, place);
        }
        ty = self.table.shallow(&ty);
        if ty == Ty::Error {
            return self.failed(e);
        }
        use MathFunction as M;
        let scalar = ty.scalar().clone();
        let float = scalar == Ty::F32 || self.table.kind(&scalar) == Some(VarKind::Float);
        let integer =
            matches!(scalar, Ty::Scalar(s) if s.is_integer()) || self.table.kind(&scalar) == Some(VarKind::Integer);
        let signed = scalar == Ty::Scalar(Scalar::I32) || self.table.kind(&scalar) == Some(VarKind::Integer);
        let number =
            matches!(scalar, Ty::Scalar(Scalar::Generic(index)) if self.session.bound(index) == Some(Bound::Number));
        let (fits, wants) = match function {
            M::Abs | M::Signum => (float || signed, "f32 and i32"),
            M::Min | M::Max | M::Clamp => (float || integer || number, "numbers"),
            M::CountOnes | M::LeadingZeros | M::TrailingZeros => (integer, "integers"),
            M::Dot => (float && matches!(ty, Ty::Vector(..)), "two vectors of f32"),
            _ => (float, "f32"),
        };
        if !fits {
            let found = self.describe(&ty);
            let advice = match &scalar {
                Ty::Scalar(Scalar::F16) => ": convert with `.to_f32()`".to_owned(),
                Ty::Scalar(Scalar::Generic(index)) if self.session.bound(*index) == Some(Bound::Float) => {
                    ": convert with `.to_f32()`".to_owned()
                }
                Ty::Scalar(scalar) if numeric(*scalar) && !integer_only(function) => {
                    ": convert with `as f32`".to_owned()
                }
                Ty::Var(_) if !integer_only(function) => ": a float literal has a point, as in `2.0`".to_owned(),
                _ => String::new(),
            };
            let vectors = if function == M::Dot { "" } else { " (and vectors of them, lane by lane)" };
            return self
                .wrong(first, format!("`{}` works on {wants}{vectors}, this is `{found}`{advice}", function.name()));
        }
        let result = match function {
            M::Dot => scalar,
            M::IsNan | M::IsInfinite => ty.with_scalar(Ty::BOOL),
            M::CountOnes | M::LeadingZeros | M::TrailingZeros => ty.with_scalar(Ty::U32),
            _ => ty,
        };
        self.node(Kind::Math(function, nodes), result, e)
    }

    /// `T::lit(0.5)`, `Vec4::new(..)`, `f32::from_bits(u)`.
    fn owned_call(&mut self, owner: &syn::Path, name: &str, e: &syn::ExprCall, hint: Option<&Ty>) -> Node {
        let Some(last) = owner.segments.last() else {
            return self.failed(e);
        };
        let owner_name = last.ident.to_string();
        let full = format!("{owner_name}::{name}");
        if let Some(lanes) = items::lanes(&owner_name) {
            return self.vector_call(lanes, last, name, &full, e, hint);
        }
        let generic = match self.scope.generics.get(&owner_name) {
            Some(GenericArgument::Type(ty)) if owner.segments.len() == 1 => Some(ty.clone()),
            _ => None,
        };
        let ty = match generic.or_else(|| items::scalar(&owner_name).map(Ty::Scalar)) {
            Some(ty) => ty,
            None => {
                let scope = self.scope.clone();
                if self.session.resolve_type_path(owner, &scope) == Ty::Error {
                    return self.failed(e);
                }
                return self
                    .wrong(&e.func, format!("there is no function `{full}` in kernels: write a #[device] function"));
            }
        };
        match name {
            "lit" => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                self.generic_literal(value, ty, e)
            }
            "from_f32" => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, &Ty::F32);
                let fits = match &ty {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) == Some(Bound::Float),
                    ty => matches!(ty, Ty::Scalar(Scalar::F32 | Scalar::F16) | Ty::Error),
                };
                if !fits {
                    let shown = self.describe(&ty);
                    return self.wrong(e, format!("`from_f32` belongs to `Float` types, `{shown}` is none: use `as`"));
                }
                self.convert(value, ty, e)
            }
            "from_bits" if ty == Ty::F32 => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, &Ty::U32);
                self.bitcast(value, Ty::F32, e)
            }
            _ => match MathFunction::from_name(name) {
                Some(function) => {
                    let mut nodes = Vec::new();
                    for argument in &e.args {
                        nodes.push(self.expect(argument, &ty));
                    }
                    let at: Vec<&syn::Expr> = e.args.iter().collect();
                    self.math(function, nodes, &at, e)
                }
                None => self.wrong(
                    &e.func,
                    format!("there is no function `{full}` in kernels; conversions are written `x as f32`"),
                ),
            },
        }
    }

    /// A conversion, left out if it changes nothing.
    pub(super) fn convert(&mut self, value: Node, ty: Ty, e: &impl quote::ToTokens) -> Node {
        if self.table.shallow(&value.ty) == ty {
            return value;
        }
        self.node(Kind::Convert(Box::new(value)), ty, e)
    }

    /// `T::lit(0.5)`; the literal is an `f64` in the author's text and is left as it is written.
    fn generic_literal(&mut self, value: &syn::Expr, ty: Ty, e: &syn::ExprCall) -> Node {
        let fits = match &ty {
            Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) != Some(Bound::Element),
            Ty::Scalar(scalar) => matches!(scalar, Scalar::F32 | Scalar::F16 | Scalar::I32 | Scalar::U32),
            _ => false,
        };
        if !fits {
            let shown = self.describe(&ty);
            return self.wrong(e, format!("`lit` belongs to `Float` and `Number` types, `{shown}` is none"));
        }
        let (sign, literal) = match peel(value) {
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => (-1.0, peel(expr)),
            other => (1.0, other),
        };
        let number = match literal {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(value), .. }) => {
                value.base10_digits().parse::<f64>().ok()
            }
            _ => None,
        };
        match number {
            Some(number) => self.node(Kind::Float((sign * number) as f32, sign * number), ty, e),
            None => self.wrong(value, "`lit` takes a float literal, as in `T::lit(2.0)`"),
        }
    }

    fn vector_call(
        &mut self,
        lanes: u8,
        segment: &syn::PathSegment,
        name: &str,
        full: &str,
        e: &syn::ExprCall,
        hint: Option<&Ty>,
    ) -> Node {
        let scope = self.scope.clone();
        let Some(written) = self.session.vector_scalar(segment, &scope) else {
            return self.failed(e);
        };
        let wanted = match hint.map(|hint| self.table.shallow(hint)) {
            Some(Ty::Vector(count, scalar)) if count == lanes => Some(*scalar),
            _ => None,
        };
        match name {
            "new" | "splat" => {
                let count = if name == "new" { usize::from(lanes) } else { 1 };
                if e.args.len() != count {
                    self.wrong_count(full, count, e.args.len(), e);
                    return self.failed(e);
                }
                let scalar = match written.or(wanted) {
                    Some(scalar) => scalar,
                    None => self.table.fresh(VarKind::Any),
                };
                let mut nodes = Vec::new();
                for argument in &e.args {
                    nodes.push(self.expect(argument, &scalar));
                }
                let found = self.known(&scalar, e);
                if !matches!(&found, Ty::Var(_) | Ty::Error)
                    && !matches!(&found, Ty::Scalar(scalar) if *scalar != Scalar::Bool)
                {
                    let shown = self.describe(&found);
                    return self.wrong(e, format!("the lanes of a vector are numbers, this is `{shown}`"));
                }
                let ty = Ty::vector(lanes, scalar);
                match (name, nodes.pop()) {
                    ("splat", Some(value)) => self.node(Kind::Splat(Box::new(value)), ty, e),
                    (_, Some(value)) => {
                        nodes.push(value);
                        self.node(Kind::Compose(nodes), ty, e)
                    }
                    (_, None) => self.failed(e),
                }
            }
            "from_f32" => {
                let Some([value]) = self.arguments(e, full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, &Ty::vector(lanes, Ty::F32));
                let Some(scalar) = written.or(wanted) else {
                    return self.wrong(e, format!("write the type to convert to: `Vec{lanes}::<f16>::from_f32(v)`"));
                };
                let fits = match self.table.shallow(&scalar) {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.bound(index) == Some(Bound::Float),
                    ty => matches!(ty, Ty::Scalar(Scalar::F32 | Scalar::F16)),
                };
                if !fits {
                    return self.wrong(e, "`from_f32` gives vectors of f16, of f32 and of `Float` types");
                }
                self.convert(value, Ty::vector(lanes, scalar), e)
            }
            _ => self.wrong(
                &e.func,
                format!("there is no function `{full}` in kernels: vectors are made by `new`, `splat` and `from_f32`"),
            ),
        }
    }

    /// A call of a `#[device]` function.
    fn device_call(&mut self, bundle: &Rc<Bundle>, path: &syn::Path, e: &syn::ExprCall) -> Node {
        let syn::Item::Fn(item) = &bundle.item else {
            return self.wrong(path, "this is not a function");
        };
        if bundle.failed {
            for argument in &e.args {
                let _ = self.operand(peel_reference(argument));
            }
            return self.failed(e);
        }
        let name = item.sig.ident.to_string();
        if self.session.stack.contains(&bundle.hash) {
            return self.wrong(path, format!("`{name}` calls itself by way of other functions: recursion is not part of the kernel language; use a loop"));
        }
        if e.args.len() != item.sig.inputs.len() {
            self.wrong_count(&name, item.sig.inputs.len(), e.args.len(), e);
            return self.failed(e);
        }
        let (generics, types, constants) = self.call_generics(item, path);
        let scope = Scope { names: Rc::new(bundle.names.clone()), generics: Rc::new(generics), own: name.clone() };
        let mut arguments = Vec::new();
        let mut origins = Vec::new();
        let mut wrong = false;
        for (parameter, argument) in item.sig.inputs.iter().zip(&e.args) {
            let syn::FnArg::Typed(parameter) = parameter else {
                return self.failed(e);
            };
            match self.session.parameter_type(&parameter.ty, &scope) {
                ParameterType::Value(ty) => {
                    let node = self.expect(argument, &ty);
                    arguments.push(Argument::Value(node));
                }
                ParameterType::Shared(ty) => {
                    let node = self.expect(peel_reference(argument), &ty);
                    arguments.push(Argument::Value(node));
                }
                ParameterType::Reference(ty) => match self.reference_argument(argument, &ty) {
                    Some(place) => arguments.push(Argument::Reference(place)),
                    None => wrong = true,
                },
                ParameterType::Slice { element, mutable, atomic, view, .. } => {
                    match self.slice_argument(argument, &element, mutable, atomic, view) {
                        Some(slice) => origins.push(slice.origin),
                        None => wrong = true,
                    }
                }
                ParameterType::Failed => wrong = true,
            }
        }
        let result = match &item.sig.output {
            syn::ReturnType::Default => Ty::Unit,
            syn::ReturnType::Type(_, ty) => self.session.resolve_type(ty, &scope),
        };
        if wrong {
            let mut node = self.failed(e);
            if result == Ty::Unit {
                node.ty = Ty::Unit;
            }
            return node;
        }
        let span = self.session.span(path);
        let callee = Callee { hash: bundle.hash.clone(), types, constants, origins, span };
        self.node(Kind::Call(Rc::new(callee), arguments), result, e)
    }

    /// Variables, or what is written, for the generics of a function that is called.
    fn call_generics(
        &mut self,
        item: &syn::ItemFn,
        path: &syn::Path,
    ) -> (HashMap<String, GenericArgument>, Vec<Ty>, Vec<Length>) {
        let written: Vec<&syn::GenericArgument> = match path.segments.last().map(|segment| &segment.arguments) {
            Some(syn::PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect(),
            _ => Vec::new(),
        };
        let kinds = self.session.generic_kinds(&item.sig.generics);
        if !written.is_empty() && written.len() != kinds.len() {
            let (wanted, given) = (kinds.len(), written.len());
            self.error(path, format!("`{}` has {wanted} generic parameters, {given} given", item.sig.ident));
        }
        let (mut generics, mut types, mut constants) = (HashMap::new(), Vec::new(), Vec::new());
        let own = self.scope.clone();
        for (index, (name, kind)) in kinds.into_iter().enumerate() {
            let argument = written.get(index).copied();
            match kind {
                GenericKind::Type(_) => {
                    let ty = match argument {
                        Some(syn::GenericArgument::Type(ty)) if !matches!(ty, syn::Type::Infer(_)) => {
                            self.session.resolve_type(ty, &own)
                        }
                        _ => self.table.fresh(VarKind::Any),
                    };
                    types.push(ty.clone());
                    generics.insert(name, GenericArgument::Type(ty));
                }
                GenericKind::Const(scalar) => {
                    let length = match argument {
                        Some(syn::GenericArgument::Const(value)) => self.constant_argument(value, scalar),
                        // A constant's name looks like a type's.
                        Some(syn::GenericArgument::Type(syn::Type::Path(path))) => {
                            let value = syn::Expr::Path(syn::ExprPath {
                                attrs: Vec::new(),
                                qself: None,
                                path: path.path.clone(),
                            });
                            self.session.size(&value, &own)
                        }
                        _ => Some(self.table.fresh_length()),
                    };
                    let length = length.unwrap_or(Length::Known(crate::ir::Size::Literal(1)));
                    constants.push(length.clone());
                    generics.insert(name, GenericArgument::Const(scalar, length));
                }
            }
        }
        (generics, types, constants)
    }

    fn constant_argument(&mut self, value: &syn::Expr, scalar: Scalar) -> Option<Length> {
        let own = self.scope.clone();
        match peel(value) {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(value), .. }) if scalar == Scalar::Bool => {
                Some(Length::Known(crate::ir::Size::Literal(u32::from(value.value))))
            }
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) if scalar == Scalar::I32 => {
                match self.session.size(expr, &own)? {
                    Length::Known(crate::ir::Size::Literal(value)) => {
                        Some(Length::Known(crate::ir::Size::Literal(value.wrapping_neg())))
                    }
                    _ => None,
                }
            }
            value => self.session.size(value, &own),
        }
    }

    fn slice_argument(
        &mut self,
        e: &syn::Expr,
        element: &Ty,
        mutable: bool,
        atomic: bool,
        view: Option<u32>,
    ) -> Option<Slice> {
        let slice = match self.operand(peel_reference(e)) {
            Operand::Slice(slice) => slice,
            Operand::Value(Node { kind: Kind::Error, .. }) => return None,
            Operand::Place(_) | Operand::Value(_) => {
                self.error(e, "a slice argument is a buffer or a workgroup array of the kernel, as a whole; a private array is passed as `&mut [T; N]` or by value");
                return None;
            }
        };
        if slice.view.is_some() != view.is_some() || (view.is_some() && slice.view != view) {
            self.error(
                e,
                if view.is_some() { "expected a view of that rank" } else { "expected a slice, this is a view" },
            );
            return None;
        }
        if slice.atomic != atomic {
            self.error(
                e,
                if atomic {
                    "expected a slice of atomics"
                } else {
                    "this slice holds atomics: the parameter would have to be `&[Atomic<T>]`"
                },
            );
            return None;
        }
        if mutable && !slice.writable {
            self.error(e, "the function writes to this slice, which is read only here: declare it `&mut [T]`");
            return None;
        }
        if !self.table.unify(&slice.element, element) {
            let (wanted, found) = (self.describe(element), self.describe(&slice.element));
            self.error(e, format!("expected a slice of `{wanted}`, found a slice of `{found}`"));
            return None;
        }
        Some(slice)
    }

    fn reference_argument(&mut self, e: &syn::Expr, ty: &Ty) -> Option<Place> {
        let inner = match peel(e) {
            syn::Expr::Reference(reference) if reference.mutability.is_some() => &*reference.expr,
            // A `&mut` parameter is handed on by its name.
            syn::Expr::Path(path)
                if path
                    .path
                    .get_ident()
                    .is_some_and(|name| matches!(self.lookup(&name.to_string()), Some(Entity::Reference(..)))) =>
            {
                e
            }
            other => {
                self.error(other, "this parameter is changed by the function: pass `&mut x`");
                return None;
            }
        };
        let place = self.writable(inner)?;
        if !self.table.unify(&place.ty, ty) {
            let (wanted, found) = (self.describe(ty), self.describe(&place.ty));
            self.error(e, format!("expected `&mut {wanted}`, found `&mut {found}`"));
            return None;
        }
        Some(place)
    }
}

fn integer_only(function: MathFunction) -> bool {
    matches!(function, MathFunction::CountOnes | MathFunction::LeadingZeros | MathFunction::TrailingZeros)
}

/// What to write for names that other languages use.
fn nearest(name: &str) -> &'static str {
    match name {
        "log" => " (the natural logarithm is `ln`)",
        "pow" => " (powers are `powf(x, y)`)",
        "round" => " (rounding is `round_ties_even`)",
        "rsqrt" | "inversesqrt" => " (it is `inverse_sqrt`)",
        "fma" => " (it is `mul_add`)",
        "__syncthreads" | "workgroup_barrier" | "sync_threads" => " (it is `barrier()`)",
        _ => "",
    }
}
