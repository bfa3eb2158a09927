//! What all bodies of a kernel share: the module being made, the items known by hash, mistakes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use proc_macro2::{Span, TokenStream};

use super::bundle::{Bundle, Names};
use super::callables::Callable;
use super::depth::Depth;
use super::ends::Placed;
use super::errors::{Errors, SpanTable};
use super::impls::{self, Member};
use super::infer::{Length, Ty};
use super::signature::FunctionType;
use super::tree::Origin;
use crate::ir::{
    self, Bound, Enum, Function, GenericKind, Handle, IndexWidth, Module, Precision, Scalar, Size, Struct,
    WorkgroupVariable,
};
use crate::target::Target;

/// The state of the front end for one kernel.
pub(super) struct Session {
    pub module: Module,
    /// `None` for library code, which nobody wrote.
    pub spans: Option<SpanTable>,
    pub errors: Errors,
    pub bundles: HashMap<String, Rc<Bundle>>,
    /// By the hash of a type: the functions and constants of its `impl` blocks.
    pub members: HashMap<String, Vec<Member>>,
    pub structs: HashMap<String, Option<Handle<Struct>>>,
    /// How many scalars each is made of.
    pub struct_scalars: HashMap<Handle<Struct>, u64>,
    pub enums: HashMap<String, Option<Handle<Enum>>>,
    pub functions: Vec<(FunctionKey, Option<Handle<Function>>)>,
    /// By function: whether it writes anything but its own locals, or is collective.
    pub effects: HashMap<Handle<Function>, bool>,
    /// By the hash of a function with type parameters: a mark for each `operator=` in it, whether it is a call for their sake.
    pub calls: HashMap<String, Vec<bool>>,
    /// The hashes of the items that are being worked on, outermost first.
    pub stack: Vec<String>,
    /// How deep in expressions the one is that is being read.
    pub depth: Depth,
    /// How often constants were looked up.
    pub constants: usize,
    /// How deep in values the one is that is being built, functions that are made for it included.
    pub built: usize,
    /// The path to the crate that kernel authors import.
    pub support: TokenStream,
    /// Whether a `#[device]` function or constant is checked by itself: buffers then stand for its slices, which may be workgroup arrays.
    pub alone: bool,
    /// Of the function that is being made.
    pub precision: Precision,
    /// The slices that the attribute names as volatile, each with a target where it is.
    pub volatile: Vec<(Target, syn::Ident)>,
    /// How wide the indices of the kernel's instances are.
    pub widths: Vec<IndexWidth>,
    /// Names of items that stand within bodies, which was reported.
    pub inner: HashSet<String>,
    /// Workgroup arrays that are handed to functions by `&mut`.
    pub handed: HashSet<Handle<WorkgroupVariable>>,
    /// Whether something wrong was met, even if nothing is to be said about it here.
    pub poisoned: bool,
}

/// What makes a copy of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FunctionKey {
    pub hash: String,
    pub types: Vec<Ty>,
    pub constants: Vec<Size>,
    pub origins: Vec<Origin>,
    /// What its function parameters are.
    pub functions: Vec<Callable>,
    /// Its own, or its caller's.
    pub precision: Precision,
}

/// What a name among an item's generics stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GenericArgument {
    Type(Ty),
    Const(Scalar, Length),
    /// The type of a function parameter.
    Function(Rc<FunctionType>),
}

/// The generics of an item.
pub(super) type Generics = HashMap<String, GenericArgument>;

/// What the paths in an item mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scope {
    pub names: Rc<Names>,
    pub generics: Rc<Generics>,
    /// The item's own name.
    pub own: String,
}

impl Session {
    pub(super) fn new(module: Module, bundles: Vec<Bundle>, support: TokenStream) -> Self {
        let (blocks, items): (Vec<_>, Vec<_>) =
            bundles.into_iter().partition(|bundle| matches!(bundle.item, syn::Item::Impl(_)));
        let mut bundles = items.into_iter().map(|bundle| (bundle.hash.clone(), Rc::new(bundle))).collect();
        let members = impls::members(&mut bundles, &blocks);
        Self {
            module,
            spans: Some(SpanTable::default()),
            errors: Errors::default(),
            bundles,
            members,
            structs: HashMap::new(),
            struct_scalars: HashMap::new(),
            enums: HashMap::new(),
            functions: Vec::new(),
            effects: HashMap::new(),
            calls: HashMap::new(),
            stack: Vec::new(),
            depth: Depth::default(),
            constants: 0,
            built: 0,
            support,
            alone: false,
            precision: Precision::Usual,
            volatile: Vec::new(),
            widths: vec![IndexWidth::Bits32],
            inner: HashSet::new(),
            handed: HashSet::new(),
            poisoned: false,
        }
    }

    /// Whether indices of some instance are 64 bits wide, so that what leaves 32 bits is not known before instances are made.
    pub(super) fn has_wide_indices(&self) -> bool {
        self.widths.contains(&IndexWidth::Bits64)
    }

    /// Whether indices of each instance are. Of a function by itself, nobody knows.
    pub(super) fn has_only_wide_indices(&self) -> bool {
        self.alone || self.widths == [IndexWidth::Bits64]
    }

    /// Reports a mistake on the tokens of `at`.
    pub(super) fn error(&mut self, at: &impl Placed, message: impl Into<String>) {
        self.errors.add(at.ends(), message);
    }

    /// Reports a mistake at a span of the IR.
    pub(super) fn error_at(&mut self, span: ir::Span, message: impl Into<String>) {
        let place = self
            .spans
            .as_ref()
            .and_then(|spans| spans.get(span))
            .unwrap_or_else(|| (Span::call_site(), Span::call_site()));
        self.errors.add(place, message);
    }

    /// The IR's span for the tokens of `at`.
    pub(super) fn span(&mut self, at: &impl Placed) -> ir::Span {
        match &mut self.spans {
            Some(spans) => spans.add(at.ends(), &mut self.module.locations),
            None => ir::Span::NONE,
        }
    }

    /// The item that a path means in an item's text.
    pub(super) fn bundle(&self, scope: &Scope, path: &syn::Path) -> Option<Rc<Bundle>> {
        let hash = scope.names.get(&super::path_name(path))?;
        self.bundles.get(hash).cloned()
    }

    /// Whether a path means an item within a body, which was reported: nothing more is said about it.
    pub(super) fn is_inner(&mut self, path: &syn::Path) -> bool {
        let inner = path.segments.first().is_some_and(|first| self.inner.contains(&first.ident.to_string()));
        self.poisoned |= inner;
        inner
    }

    /// What a type parameter of the kernel may be.
    pub(super) fn bound(&self, generic: u32) -> Option<Bound> {
        match self.module.generics.get(generic as usize)?.kind {
            GenericKind::Type(bound) => Some(bound),
            GenericKind::Const(_) => None,
        }
    }

    /// Whether a type parameter of the kernel has that bound, or one above which it stands.
    pub(super) fn has_bound(&self, generic: u32, bound: Bound) -> bool {
        self.bound(generic).is_some_and(|has| has.implies(bound))
    }

    /// A type as Rust writes it.
    pub(super) fn describe(&self, ty: &Ty) -> String {
        match ty {
            Ty::Error => "_".to_owned(),
            Ty::Unit => "()".to_owned(),
            Ty::Never => "!".to_owned(),
            Ty::Var(_) => "_".to_owned(),
            Ty::Scalar(Scalar::Generic(index)) => {
                self.module.generics.get(*index as usize).map_or_else(|| "_".to_owned(), |generic| generic.name.clone())
            }
            Ty::Scalar(scalar) => scalar.rust_name().to_owned(),
            Ty::Vector(lanes, scalar) => format!("Vec{lanes}<{}>", self.describe(scalar)),
            Ty::Array(element, length) => {
                format!("[{}; {}]", self.describe(element), self.describe_length(length))
            }
            Ty::Struct(handle) => self.module.structs[*handle].name.clone(),
            Ty::Enum(handle) => self.module.enums[*handle].name.clone(),
            Ty::Matrix(role, scalar, sides) => {
                let [rows, columns] = [&sides[0], &sides[1]].map(|side| self.describe_length(side));
                format!("{}<{}, {rows}, {columns}>", role.name(), self.describe(scalar))
            }
        }
    }

    fn describe_length(&self, length: &Length) -> String {
        match length {
            Length::Known(Size::Literal(value)) => value.to_string(),
            Length::Known(Size::Generic(index)) => {
                self.module.generics.get(*index as usize).map_or_else(|| "_".to_owned(), |generic| generic.name.clone())
            }
            Length::Known(Size::Param(_) | Size::Binary(..)) => "..".to_owned(),
            Length::Var(_) => "_".to_owned(),
        }
    }

    /// The IR's type. `None` for what is no value (and was reported, or is `()`).
    pub(super) fn ir_type(&mut self, ty: &Ty) -> Option<Handle<ir::Type>> {
        let ty = match ty {
            Ty::Scalar(scalar) => ir::Type::Scalar(*scalar),
            Ty::Vector(lanes, scalar) => match **scalar {
                Ty::Scalar(scalar) => ir::Type::vector(*lanes, scalar),
                _ => return None,
            },
            Ty::Array(element, Length::Known(length)) => {
                ir::Type::Array { element: self.ir_type(element)?, length: length.clone() }
            }
            Ty::Struct(handle) => ir::Type::Struct(*handle),
            Ty::Enum(handle) => ir::Type::Enum(*handle),
            Ty::Matrix(role, scalar, sides) => match (&**scalar, &**sides) {
                (Ty::Scalar(scalar), [Length::Known(rows), Length::Known(columns)]) => ir::Type::Matrix(ir::Matrix {
                    role: *role,
                    scalar: *scalar,
                    rows: rows.clone(),
                    columns: columns.clone(),
                }),
                _ => return None,
            },
            Ty::Array(_, Length::Var(_)) | Ty::Error | Ty::Unit | Ty::Never | Ty::Var(_) => {
                return None;
            }
        };
        Some(self.module.intern(ty))
    }

    /// The type of a field or element, from the IR's.
    pub(super) fn ty(&self, handle: Handle<ir::Type>) -> Ty {
        match &self.module.types[handle] {
            ir::Type::Scalar(scalar) => Ty::Scalar(*scalar),
            ir::Type::Vector { lanes, scalar } => Ty::vector(*lanes, Ty::Scalar(*scalar)),
            ir::Type::Array { element, length } => {
                Ty::Array(Box::new(self.ty(*element)), Length::Known(length.clone()))
            }
            ir::Type::Struct(handle) => Ty::Struct(*handle),
            ir::Type::Enum(handle) => Ty::Enum(*handle),
            ir::Type::Matrix(matrix) => {
                let sides = [&matrix.rows, &matrix.columns].map(|side| Length::Known(side.clone()));
                Ty::Matrix(matrix.role, Box::new(Ty::Scalar(matrix.scalar)), Box::new(sides))
            }
        }
    }
}

/// `name`, or `name_1` and so on if it is taken.
pub(super) fn unique<'a>(name: &str, taken: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut candidate = name.to_owned();
    let mut number = 0;
    while taken.clone().any(|other| other == candidate) {
        number += 1;
        candidate = format!("{name}_{number}");
    }
    candidate
}
