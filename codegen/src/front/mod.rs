//! The front end: Rust syntax to generic kernel IR, with mistakes reported on the author's tokens.
//!
//! It infers types by itself, because a macro cannot ask rustc: unsuffixed literals and untyped `let`s are unification variables, and
//! what stays open becomes `i32`, as in rustc, or `f32`. Two type checkers that must agree are kept honest by [`Output::checked`]: the
//! author's body as ordinary Rust, with the inferred types written out, which rustc checks and nobody calls.
//!
//! The way of a body: syntax → (`statements`, `loops`, `patterns`, `expressions`, `operators`, `places`, `calls`, `methods`) → `tree`, resolved, with types
//! that may be open → (`build`, `values`, `memory`, `effects`, `matches`, `fold`) → IR. A function that is called is made in the second step, once for each
//! set of types, constants and variables behind its slices.

mod assignments;
mod asynchronous;
mod attributes;
mod beginnings;
mod build;
mod bundle;
mod callables;
mod calls;
mod checked;
mod constructors;
mod depth;
mod device_calls;
mod effects;
mod ends;
mod errors;
mod expressions;
mod fold;
mod foreign;
mod functions;
mod generics;
mod impls;
mod infer;
mod intrinsics;
mod items;
mod kernel;
mod loops;
mod matches;
mod matrices;
mod memory;
mod methods;
mod mistaken;
mod named;
mod operators;
mod patterns;
mod places;
mod precision;
mod reports;
mod scope;
mod session;
mod signature;
mod sizes;
mod source;
mod specialise;
mod statements;
mod tiles;
mod tree;
mod undecided;
mod unwritten;
mod values;

use proc_macro2::TokenStream;

pub use bundle::{Bundle, Bundles, Names, path_name};
pub use depth::check_depth;
pub use errors::{Error, Errors, SpanTable};
pub use foreign::is_macro;
pub use impls::owner_path;
pub use named::{Named, items_named, kernel_items_named};
pub use precision::mark_precision;
pub use source::{library, parse_source};

use crate::ir;

/// A kernel as a macro sees it.
#[derive(Clone, Debug)]
pub struct Input {
    /// What stands inside of `#[kernel(..)]`.
    pub attribute: TokenStream,
    /// The function.
    pub item: syn::ItemFn,
    /// Every `#[device]` item that the kernel uses, directly or not, in any order.
    pub bundles: Vec<Bundle>,
    /// Which of them each path in the kernel's own text means; the paths are those that [`items_named`] gave.
    pub names: Names,
    /// The path to the crate that kernel authors import (`::trefoil_dsl`, `::trefoil::dsl`), for types in [`Output::checked`].
    pub support: TokenStream,
    /// The source file, as the compiler names it.
    pub file: String,
}

/// A kernel that the front end has understood.
#[derive(Clone, Debug)]
pub struct Output {
    /// The generic IR.
    pub module: ir::Module,
    /// The instances that the attribute lists, in order; one without values if the kernel has no generics.
    pub instances: Vec<ir::Instance>,
    /// Where each span of the IR is in the author's tokens.
    pub spans: SpanTable,
    /// The function as ordinary Rust, without its attributes and visibility: same name, generics, parameters and body, the inferred types written at
    /// `let`s and literals. For rustc to check; never called.
    pub checked: TokenStream,
    /// The signature, for the launch function, in the author's order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of the kernel's signature.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The author's name.
    pub name: syn::Ident,
    /// The type as the author wrote it: `&[f32]`, `[u32; 4]`.
    pub ty: syn::Type,
    /// What it is.
    pub kind: ParameterKind,
}

/// What a parameter of the kernel's signature is.
#[derive(Clone, Debug)]
pub enum ParameterKind {
    /// A buffer.
    Buffer {
        /// Its position in `Module::bindings`.
        binding: u32,
        /// The type of its elements as the author wrote it; for `&[Atomic<u32>]` it is `u32`.
        element: Box<syn::Type>,
        /// How it is declared.
        kind: ir::BindingKind,
        /// The rank, if it is a view.
        view: Option<u32>,
    },
    /// A value.
    Value {
        /// Its position in `Module::params`.
        param: u32,
    },
}

/// A `#[device]` item by itself, where it is defined.
#[derive(Clone, Debug)]
pub struct ItemInput {
    /// The item, without its `#[device]` attribute: for an `impl`, too.
    pub item: syn::Item,
    /// Every other `#[device]` item that it uses, directly or not.
    pub bundles: Vec<Bundle>,
    /// Which of them each path in its text means.
    pub names: Names,
    /// As for [`Input::support`].
    pub support: TokenStream,
    /// The source file, as the compiler names it.
    pub file: String,
}

/// Checks a `#[device]` item where it is defined, and gives it back as ordinary Rust with the inferred types written out: what its
/// attribute expands to, beside the bundle.
///
/// # Errors
/// Every mistake that was found; none if all that is wrong is an item that is marked `failed`, which was told where it is defined.
pub fn check_item(input: ItemInput) -> Result<TokenStream, Errors> {
    kernel::check_item(input)
}

/// The kernel as generic IR.
///
/// # Errors
/// Every mistake that was found; none if all that is wrong is an item that is marked `failed`, which was told where it is defined.
pub fn parse(input: Input) -> Result<Output, Errors> {
    kernel::parse(input)
}
