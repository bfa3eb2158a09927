//! Calls: of the language's functions, of types' functions, and of `#[device]` functions.

use super::device_calls::Given;
use super::ends::Placed;
use super::foreign;
use super::infer::{Ty, VarKind};
use super::intrinsics::{self, Intrinsic};
use super::named;
use super::places::{Operand, peel};
use super::scope::{Entity, Infer, numeric};
use super::tree::{Kind, Node, Origin, Root};
use crate::ir::{BinaryOperator, Bound, Builtin, Domain, MathFunction, OperandType, Scalar, SubgroupFunction};
use crate::target::Feature;

impl Infer<'_> {
    pub(super) fn call(&mut self, e: &syn::ExprCall, hint: Option<&Ty>) -> Node {
        let syn::Expr::Path(function) = peel(&e.func) else {
            return self.wrong(&e.func, "only functions are called: write the function's name");
        };
        let path = &function.path;
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if path.segments.len() == 1 {
            match self.lookup(&name).cloned() {
                Some(Entity::Function(given)) => return self.parameter_call(&given, e),
                Some(entity) if self.is_mistaken(&entity) => return self.call_in_vain(e),
                Some(_) => return self.wrong(path, format!("`{name}` is a variable, not a function")),
                None if self.is_captured(&name) => {
                    self.captured(&name, path);
                    return self.failed(e);
                }
                None => {}
            }
        }
        if let Some(bundle) = self.session.bundle(&self.scope, path) {
            let own = self.scope.clone();
            return self.device_call(&bundle, path, &own, e.args.iter().map(Given::Written).collect(), e);
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
        let refused = foreign::message(path).or_else(|| foreign::called_macro(path));
        if self.session.is_inner(path) || refused.is_some() {
            let node = self.call_in_vain(e);
            return match refused {
                Some(message) => self.wrong(path, message),
                None => node,
            };
        }
        if let Some(owner) = named::owner(path).or_else(|| self.generic_owner(path)) {
            return self.owned_call(&owner, &name, e, hint);
        }
        let shown = super::path_name(path);
        self.read_in_vain(&e.args);
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
    pub(super) fn arguments<'e, const N: usize>(
        &mut self,
        e: &'e syn::ExprCall,
        name: &str,
    ) -> Option<[&'e syn::Expr; N]> {
        let arguments: Vec<&syn::Expr> = e.args.iter().collect();
        match arguments.try_into() {
            Ok(arguments) => Some(arguments),
            Err(given) => {
                self.wrong_count(name, N, given.len(), e);
                None
            }
        }
    }

    pub(super) fn wrong_count(&mut self, name: &str, wanted: usize, given: usize, at: &impl Placed) {
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
            Intrinsic::Asynchronous => self.asynchronous(e, name),
            Intrinsic::Fence(scope) => {
                let Some([]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                self.node(Kind::Fence(scope), Ty::Unit, e)
            }
            Intrinsic::UniformLoad => self.uniform_load(e, name),
            Intrinsic::WorkgroupArray => self.wrong(
                e,
                "a workgroup array is declared by a `let` of its own: `let mut tile = workgroup_array::<f32>(64);`",
            ),
            Intrinsic::WorkgroupTile => self.wrong(
                e,
                "a tile is declared by a `let` of its own: `let mut tile = workgroup_tile::<f16, 64, 64>(2);`",
            ),
            Intrinsic::CopyTile => self.copy_tile(e, name),
            Intrinsic::MultiplyTiles => self.multiply_tiles(e, name),
            Intrinsic::Unroll => self.wrong(e, "`unroll(a..b)` stands after `in` alone: `for i in unroll(0..4)`"),
            Intrinsic::TargetHas => self.target_has(e, name),
            Intrinsic::Subgroup(function) => self.subgroup(function, name, e, hint),
            // Lane 0 exists in every subgroup, and all that exist take part.
            Intrinsic::BroadcastFirst => {
                let Some([value]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let node = self.expr(value, hint);
                let first = self.node(Kind::Integer(0), Ty::U32, e);
                self.subgroup_of(SubgroupFunction::Broadcast, name, node, value, Some(Box::new(first)), e)
            }
            Intrinsic::Elect => {
                let Some([]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let lane = self.node(Kind::Builtin(Builtin::SubgroupLane), Ty::INDEX, e);
                let zero = self.node(Kind::Integer(0), Ty::INDEX, e);
                self.node(Kind::Binary(BinaryOperator::Equal, Box::new(lane), Box::new(zero)), Ty::BOOL, e)
            }
            Intrinsic::MultiplyAdd => self.matrix_product(e, name),
            Intrinsic::Math(function) => {
                let nodes: Vec<Node> = {
                    let mut nodes = Vec::new();
                    let like = function.gives() == OperandType::Same;
                    for (index, argument) in e.args.iter().enumerate() {
                        let hint = match (index.checked_sub(1), nodes.first()) {
                            (Some(rest), Some(Node { ty, .. })) => {
                                function.operands().get(rest).map(|operand| operand_type(*operand, ty))
                            }
                            _ => hint.filter(|_| like).cloned(),
                        };
                        nodes.push(self.expr(argument, hint.as_ref()));
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

    pub(super) fn bitcast(&mut self, value: Node, target: Ty, e: &impl Placed) -> Node {
        let source = self.table.shallow(&value.ty);
        let target = self.table.shallow(&target);
        let bytes = |ty: &Ty| match ty.scalar() {
            Ty::Scalar(scalar) if scalar.is_number() && *scalar != Scalar::Index => scalar.bytes(),
            Ty::Var(_) => Some(4),
            _ => None,
        };
        let lanes = |ty: &Ty| match ty {
            Ty::Vector(lanes, _) => *lanes,
            _ => 1,
        };
        if *source.scalar() == Ty::Error || *target.scalar() == Ty::Error {
            return self.failed(e);
        }
        // Of a type parameter the verifier knows the bytes, instance by instance.
        let is_open = |ty: &Ty| matches!(ty.scalar(), Ty::Scalar(Scalar::Generic(_)));
        let same_bytes = bytes(&source).is_some() && bytes(&source) == bytes(&target);
        if !(same_bytes || is_open(&source) || is_open(&target)) || lanes(&source) != lanes(&target) {
            let (from, to) = (self.describe(&source), self.describe(&target));
            return self.wrong(e, format!("the bits of `{from}` cannot be read as `{to}`: both are f32, i32 or u32, or f64, i64 or u64, or vectors of these with as many lanes"));
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
        if function.takes_bool() {
            let node = self.expect(value, &Ty::BOOL);
            let result = if function == SubgroupFunction::Ballot { Ty::vector(4, Ty::U32) } else { Ty::BOOL };
            return self.node(Kind::Subgroup(function, Box::new(node), None), result, e);
        }
        let node = self.expr(value, hint);
        let lane = lane.map(|lane| Box::new(self.expect(lane, &Ty::U32)));
        self.subgroup_of(function, name, node, value, lane, e)
    }

    /// A subgroup operation on a number or vector of numbers.
    fn subgroup_of(
        &mut self,
        function: SubgroupFunction,
        name: &str,
        node: Node,
        value: &syn::Expr,
        lane: Option<Box<Node>>,
        e: &syn::ExprCall,
    ) -> Node {
        let ty = self.known(&node.ty, value);
        let fits = match ty.scalar() {
            Ty::Scalar(Scalar::Generic(index)) => {
                self.session.has_bound(*index, Bound::Number) && function.takes(Scalar::F32)
            }
            Ty::Scalar(scalar) => function.takes(*scalar),
            Ty::Var(_) | Ty::Error => true,
            _ => false,
        };
        if !fits {
            let (takes, found) = (function.words(), self.describe(&ty));
            return self.wrong(value, format!("`{name}` works on {takes}, this is `{found}`: convert with `as u32`"));
        }
        self.node(Kind::Subgroup(function, Box::new(node), lane), ty, e)
    }

    /// A function of the mathematical library on values that are inferred.
    pub(super) fn math(
        &mut self,
        function: MathFunction,
        mut nodes: Vec<Node>,
        at: &[&syn::Expr],
        e: &impl Placed,
    ) -> Node {
        if nodes.len() != function.arguments() {
            self.wrong_count(function.name(), function.arguments(), nodes.len(), e);
            return self.failed(e);
        }
        let Some(&first) = at.first() else {
            return self.failed(e);
        };
        let mut ty = self.known(&nodes[0].ty.clone(), first);
        let rest = nodes.split_off(1);
        for (index, (node, operand)) in rest.into_iter().zip(function.operands()).enumerate() {
            let place = at.get(index + 1).copied().unwrap_or(first);
            let wanted = operand_type(*operand, &ty);
            if *operand == OperandType::Same
                && let Some(Node { kind: Kind::Load(begun), .. }) = nodes.first()
                && self.is_begun_wrong(begun, &node.ty)
            {
                return self.failed(e);
            }
            // A literal before a typed argument takes the other's type.
            let node = self.coerce(node, &wanted, place);
            nodes.push(node);
        }
        ty = self.table.shallow(&ty);
        if *ty.scalar() == Ty::Error {
            return self.failed(e);
        }
        let domain = function.domain();
        if let Domain::Only(lanes, scalar) = domain {
            // A literal becomes what is wanted.
            let wanted = operand_type(
                if lanes == 1 { OperandType::One(scalar) } else { OperandType::Vector(lanes, scalar) },
                &ty,
            );
            let node = nodes.remove(0);
            nodes.insert(0, self.coerce(node, &wanted, first));
            let result = operand_type(function.gives(), &wanted);
            return self.node(Kind::Math(function, nodes), result, e);
        }
        let scalar = ty.scalar().clone();
        let lanes = if let Ty::Vector(lanes, _) = &ty { *lanes } else { 1 };
        // What the host has for all floats.
        let real = match scalar {
            Ty::Scalar(Scalar::F64) => function.is_of_doubles(),
            Ty::Scalar(s) => s.is_float() && function.is_exact(),
            _ => false,
        };
        let float = scalar == Ty::F32 || real || self.table.kind(&scalar) == Some(VarKind::Float);
        let literal = self.table.kind(&scalar) == Some(VarKind::Integer);
        let integer = literal
            || matches!(scalar, Ty::Scalar(s) if s.is_integer())
            || matches!(scalar, Ty::Scalar(Scalar::Generic(index)) if self.session.has_bound(index, Bound::Int));
        let single = !matches!(scalar, Ty::Scalar(s) if s.bits() != 32);
        let number =
            matches!(scalar, Ty::Scalar(Scalar::Generic(index)) if self.session.has_bound(index, Bound::Number));
        let fits = match domain {
            Domain::Float => float,
            Domain::Signed => float || literal || matches!(scalar, Ty::Scalar(s) if s.is_signed()),
            Domain::Number if function == MathFunction::RemEuclid => float || integer && single,
            // What a `Number` has of Rust's traits.
            Domain::Number => float || integer || number,
            Domain::Integer => integer && single,
            Domain::Word => literal || matches!(scalar, Ty::Scalar(Scalar::I32 | Scalar::U32)),
            Domain::Vector => float && lanes > 1,
            Domain::Vector3 => float && lanes == 3,
            Domain::Only(..) => true,
        };
        if !fits {
            let found = self.describe(&ty);
            let of_integers = matches!(domain, Domain::Integer | Domain::Word);
            if !of_integers
                && lanes_fit(domain, lanes)
                && let Some(Node { kind: Kind::Load(place), .. }) = nodes.first()
                && self.is_begun_wrong(place, &Ty::F32)
            {
                return self.failed(first);
            }
            let advice = match &scalar {
                Ty::Scalar(Scalar::F16 | Scalar::BF16) => ": convert with `.to_f32()`".to_owned(),
                Ty::Scalar(Scalar::Generic(index)) if self.session.bound(*index) == Some(Bound::Float) => {
                    ": convert with `.to_f32()`".to_owned()
                }
                Ty::Scalar(Scalar::Index) if domain == Domain::Word => ": convert with `as u32`".to_owned(),
                Ty::Scalar(Scalar::F64) => {
                    ": convert with `as f32`, or compute it from what `f64` has: +, -, *, /, sqrt, exp, ln, sin and others"
                        .to_owned()
                }
                Ty::Scalar(scalar) if numeric(*scalar) && !of_integers && lanes_fit(domain, lanes) => {
                    ": convert with `as f32`".to_owned()
                }
                Ty::Var(_) if !of_integers => ": a float literal has a point, as in `2.0`".to_owned(),
                _ => String::new(),
            };
            let name = function.name();
            return self.wrong(first, format!("`{name}` works on {}, this is `{found}`{advice}", domain.words()));
        }
        let result = operand_type(function.gives(), &ty);
        self.node(Kind::Math(function, nodes), result, e)
    }
}

/// The type of an operand of a function whose first argument has type `first`.
pub(super) fn operand_type(operand: OperandType, first: &Ty) -> Ty {
    match operand {
        OperandType::Same => first.clone(),
        OperandType::Lane => first.scalar().clone(),
        OperandType::Lanes(scalar) => first.with_scalar(Ty::Scalar(scalar)),
        OperandType::One(scalar) => Ty::Scalar(scalar),
        OperandType::Vector(lanes, scalar) => Ty::vector(lanes, Ty::Scalar(scalar)),
    }
}

/// Whether it is not the number of lanes that is wrong.
fn lanes_fit(domain: Domain, lanes: u8) -> bool {
    match domain {
        Domain::Vector => lanes > 1,
        Domain::Vector3 => lanes == 3,
        _ => true,
    }
}

/// What to write for names that other languages use.
fn nearest(name: &str) -> &'static str {
    match name {
        "log" => " (the natural logarithm is `ln`)",
        "pow" => " (powers are `powf(x, y)`)",
        "rsqrt" | "inversesqrt" => " (it is `inverse_sqrt`)",
        "fma" => " (it is `mul_add`)",
        _ => "",
    }
}
