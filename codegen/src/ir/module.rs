//! A kernel as a whole: its signature, its memory and its functions.

use serde::{Deserialize, Serialize};

use super::arena::{Arena, Handle};
use super::expression::{Expression, Literal};
use super::precision::Precision;
use super::sound::holds_together;
use super::span::{Locations, Span};
use super::statement::Block;
use super::tile::Tile;
use super::types::{Enum, IndexWidth, Scalar, Size, Struct, Type};
use crate::target::{Features, Target};

/// A kernel with everything that it uses. It is generic until its generics are given values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// The author's name for the kernel; an instance's name once instantiated.
    pub name: String,
    /// The author's documentation, without comment signs.
    pub doc: String,
    /// Type and const parameters, in the author's order; empty in an instance.
    pub generics: Vec<Generic>,
    /// Invocations of a workgroup along x, y, z; always three.
    pub workgroup_size: Vec<Size>,
    /// The invocations of a subgroup, if the author states them; otherwise they are the device's to say.
    pub subgroup: Option<StatedSubgroup>,
    /// How many workgroups a multiprocessor is to have room for at once, which bounds an invocation's registers, if the author states it: `resident(8)`.
    pub resident: Option<Size>,
    /// Whether its grid may come from a buffer: `indirect`.
    pub indirect: bool,
    /// Whether a driver is asked to leave out its own checks of accesses to buffers, beside which ours stand in the code anyway: `no_robustness`.
    pub no_robustness: bool,
    /// How wide the indices of an instance are; of a generic module, 32 bits, since its instances say.
    pub index: IndexWidth,
    /// What every variant needs, by the author's `requires(..)`.
    pub requires: Features,
    /// The targets to emit, by the author's `targets(..)`.
    pub targets: Vec<Target>,
    /// Storage buffers: the slices and views of the signature, in order.
    pub bindings: Vec<Binding>,
    /// By-value parameters of the signature, in order.
    pub params: Vec<Param>,
    /// Types, each once.
    pub types: Arena<Type>,
    /// Structs.
    pub structs: Arena<Struct>,
    /// Enums.
    pub enums: Arena<Enum>,
    /// Variables in workgroup memory.
    pub workgroup: Arena<WorkgroupVariable>,
    /// Functions that the kernel calls; a function calls only those before it, so there is no recursion.
    pub functions: Arena<Function>,
    /// The kernel's own body; it has no arguments and no result.
    pub entry: Function,
    /// Where things were written.
    pub locations: Locations,
}

/// The size of subgroups that a kernel relies on: `subgroup(32)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatedSubgroup {
    /// Invocations: a power of two from [`StatedSubgroup::LEAST`] to [`crate::target::MOST_SUBGROUP`], of which the workgroup's first axis is a multiple.
    pub size: Size,
    /// Where it was written.
    pub span: Span,
}

impl StatedSubgroup {
    /// The smallest size that a kernel can state: no GPU has smaller ones.
    pub const LEAST: u32 = 4;
}

/// A generic parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generic {
    /// The author's name.
    pub name: String,
    /// What it stands for.
    pub kind: GenericKind,
}

/// What a generic parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GenericKind {
    /// A scalar type with the operations of that bound.
    Type(Bound),
    /// A constant of that type: `U32`, `I32`, `Index` or `Bool`.
    Const(Scalar),
}

/// What a type parameter may be, and so what code may do with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// `T: Element`: held in memory, moved about.
    Element,
    /// `T: Float`: also converted to and from `f32`, and `T::lit`.
    Float,
    /// `T: Number`: arithmetic and comparison, and `T::lit`.
    Number,
    /// `T: Int`: what a `Number` of integers has, and bits.
    Int,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 4] = [Self::Element, Self::Float, Self::Number, Self::Int];

    /// The trait's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Element => "Element",
            Self::Float => "Float",
            Self::Number => "Number",
            Self::Int => "Int",
        }
    }

    /// What stands before the name.
    pub const fn article(self) -> &'static str {
        if matches!(self, Self::Element | Self::Int) { "an" } else { "a" }
    }

    /// Whether a type of this bound is of the other too: the trait has the other above it.
    pub const fn implies(self, other: Self) -> bool {
        matches!((self, other), (_, Self::Element) | (Self::Int | Self::Number, Self::Number))
            || matches!((self, other), (Self::Float, Self::Float) | (Self::Int, Self::Int))
    }

    /// The scalars that may stand for a type parameter of this bound.
    pub const fn scalars(self) -> &'static [Scalar] {
        use Scalar as S;
        match self {
            Self::Element | Self::Number => {
                &[S::F32, S::I32, S::U32, S::F16, S::BF16, S::I8, S::U8, S::I16, S::U16, S::I64, S::U64, S::F64]
            }
            Self::Float => &[S::F32, S::F16, S::BF16, S::F64],
            Self::Int => &[S::I32, S::U32, S::I8, S::U8, S::I16, S::U16, S::I64, S::U64],
        }
    }

    /// Their names, for people.
    pub fn names(self) -> String {
        let mut names: Vec<_> = self.scalars().iter().map(|scalar| scalar.rust_name()).collect();
        match names.pop() {
            Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
            last => last.unwrap_or_default().to_owned(),
        }
    }
}

/// The values of a module's generics, and how wide its indices are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// One for each generic, in order.
    pub values: Vec<GenericValue>,
    /// By the author's `index = 64`.
    pub index: IndexWidth,
}

/// The value of one generic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum GenericValue {
    /// A type.
    Type(Scalar),
    /// A constant.
    Const(Literal),
}

/// A storage buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The author's name.
    pub name: String,
    /// The type of its elements. For atomic access, the scalar inside: `I32`, `U32`, `F32`, `I64` or `U64`.
    pub element: Handle<Type>,
    /// How the signature declares it.
    pub kind: BindingKind,
    /// The rank, if it is a view.
    pub view: Option<u32>,
    /// How many of the slice's elements lie in one element of this binding: 1, or 2 or 4 where lowering has packed narrow scalars into words. A
    /// guard compares an index with the slice's length divided by this, rounded up.
    pub packed: u32,
    /// The targets whose compilers are told to leave its reads where they are written: `volatile(x)`.
    pub volatile: Vec<Target>,
    /// Where it was written.
    pub span: Span,
}

/// How a signature declares a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BindingKind {
    /// `&[T]`
    Shared,
    /// `&mut [T]`
    Mutable,
    /// `&[Atomic<T>]`
    Atomic,
}

/// A by-value parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The author's name.
    pub name: String,
    /// A scalar, a vector, an enum, or arrays and structs of these; no enum lies in an array.
    pub ty: Handle<Type>,
    /// The values that it may have, if it is a specialisation constant; constants stand after the others.
    pub specialise: Option<Specialise>,
    /// Where it was written.
    pub span: Span,
}

/// The values of a specialisation constant: an `I32`, `U32`, `Index` or `Bool` param whose value is fixed when a pipeline is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Specialise {
    /// The value where the launch gives none.
    pub default: i64,
    /// The smallest value.
    pub low: i64,
    /// The largest value.
    pub high: i64,
    /// Every value is a multiple of it.
    pub multiple: u32,
}

/// A variable in workgroup memory. Its contents are unspecified until written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkgroupVariable {
    /// The author's name, made unique in the module.
    pub name: String,
    /// The type of its elements.
    pub element: Handle<Type>,
    /// How many. Of an instance, the most that there may be.
    pub length: Size,
    /// Of an instance: how many there are, if a specialisation constant decides that. Guards compare with it.
    pub exact: Option<Size>,
    /// Whether its elements are atomics.
    pub atomic: bool,
    /// What a stage of it holds, if it holds tiles: its elements are then `Vec4<u32>`.
    pub tile: Option<Tile>,
    /// Where it was written.
    pub span: Span,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The author's name, made unique in the module.
    pub name: String,
    /// The author's documentation.
    pub doc: String,
    /// What it takes. Slices and workgroup arrays are no arguments: they are resolved to the variables that callers pass.
    pub arguments: Vec<Argument>,
    /// What it gives.
    pub result: Option<Handle<Type>>,
    /// Its locals.
    pub locals: Arena<Local>,
    /// Its expressions; operands come before what uses them.
    pub expressions: Arena<Expression>,
    /// How closely its arithmetic keeps to what is written.
    pub precision: Precision,
    /// What it does.
    pub body: Block,
    /// Where it was written.
    pub span: Span,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// The author's name.
    pub name: String,
    /// Its type.
    pub ty: Handle<Type>,
    /// Whether it is `&mut`: copied in and copied out.
    pub by_reference: bool,
}

/// A local variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Local {
    /// The author's name; several locals may have one name, since Rust shadows.
    pub name: String,
    /// Its type.
    pub ty: Handle<Type>,
    /// Whether it is assigned after its declaration, in whole or in part: then it is a place; else a value.
    pub mutable: bool,
    /// Where it was written.
    pub span: Span,
}

impl Module {
    /// The specialisation constants, with their positions among the params.
    pub fn constants(&self) -> impl Iterator<Item = (u32, &Param, Specialise)> {
        let params = self.params.iter().enumerate();
        params.filter_map(|(index, param)| Some((index as u32, param, param.specialise?)))
    }

    /// The invocations of a subgroup in an instance that states them.
    pub fn subgroup_size(&self) -> Option<u32> {
        self.subgroup.as_ref().and_then(|stated| stated.size.literal())
    }

    /// The handle of a type, which is added if it is new.
    pub fn intern(&mut self, ty: Type) -> Handle<Type> {
        self.types.intern(ty)
    }

    /// The IR as bytes, for [`Module::from_bytes`].
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// Reads what [`Module::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        let module = postcard::from_bytes(bytes)?;
        if holds_together(&module) { Ok(module) } else { Err(postcard::Error::DeserializeBadEncoding) }
    }
}

impl Instance {
    /// The values as bytes, for [`Instance::from_bytes`].
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// Reads what [`Instance::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
