//! The kernel IR, and what every operation means.
//!
//! A [`Module`] is one kernel: the buffers and parameters of its signature, its workgroup memory, the functions that it calls, and its
//! body. Everything lives in arenas and is named by [`Handle`]s. Expressions compute and read; statements write and steer. Each carries
//! the [`Span`] at which the author wrote it.
//!
//! # Specialisation constants
//! A param with [`Param::specialise`] is fixed when a pipeline is made: an override in WGSL, a specialisation constant in SPIR-V, a defined name in CUDA C.
//! On the CPU it is a param like the others, and the launch puts its value into the block on every target. It is uniform, it may be the length of a
//! workgroup variable, and nothing is decided by it while building: no `if const`, no unrolling, no size of a private array. Limits are checked at the
//! largest length that the declared range allows.
//!
//! # Subgroups of a stated size
//! The size of a subgroup is the device's, unless the kernel states it ([`Module::subgroup`]): then every instance has a number in place of
//! [`Builtin::SubgroupSize`], every subgroup is full, and what lanes there are is known while building. Such a kernel requires
//! [`crate::target::Feature::Subgroups`]. A device that cannot promise the size does not load it, and a target that has no such size at all
//! ([`crate::target::Target::subgroup_size`]) refuses it while it is built.
//!
//! # Indices
//! `usize` has 32 bits in every instance but those that say otherwise ([`Instance::index`]): these have `U64` wherever the author wrote `usize`, with all that
//! is said of it below, and lengths, extents, strides and offsets are of that type. Literals above 2^32 are there if each instance is such a one. Where
//! an invocation is in its grid has 32 bits and is extended, since a grid has no more than 2^32 workgroups; [`Builtin::GlobalIndex`] and
//! [`Builtin::GlobalId`] are computed in 64 bits. What has fewer than 2^32 parts (locals, workgroup memory, vectors, arrays among the parameters) is indexed
//! by words after lowering: an index that no word holds is past the end there as everywhere. Bit counts are those of 64 bits, amounts
//! of shifts count modulo 64, and a switch looks at all bits. Such an instance requires [`crate::target::Feature::Int64`], and WGSL has none. A launch whose lengths, offsets or
//! grid do not fit the instance's indices is an error, and so is one with a length or an extent above [`crate::artefact::MOST_ELEMENTS`] where they have 32 bits.
//!
//! # Evaluation
//! An expression is evaluated when the statement that holds it runs, operands before operation, each time anew: it is a tree, no
//! expression is the operand of two others or of two statements, and reads see what earlier statements wrote. No expression changes
//! memory, with one exception: the callee of a [`ExpressionKind::Call`] that is the root of a `Let` or `Evaluate` may. Since a
//! statement does at most one thing after evaluating its operands, the order among operands never matters; the front end turns
//! operands with effects into locals to keep Rust's order. A value that is wanted twice is an immutable local.
//! [`ExpressionKind::Select`] may evaluate both sides; [`ExpressionKind::Logical`] and [`StatementKind::If`] evaluate only what they
//! need.
//!
//! # Memory
//! * *Locals* are private to the invocation. Immutable ones are values, mutable ones are places. A mutable local that is read before
//!   it is written has an unspecified value. Two runs of the same `Let` (in a loop) are two variables.
//! * *Workgroup variables* are shared by the invocations of a workgroup; their contents are unspecified until written, so that two of which one is
//!   touched for the last time before a barrier and the other for the first time behind it may be the same memory.
//! * *Bindings* are storage buffers. `Length` is what the launch says, whatever the size of the memory that is bound.
//! * An element index past the end of a binding, workgroup variable, local array or vector is not an error of the program: **a read
//!   past the end gives zero bits, a write past the end is dropped, an atomic past the end does nothing and gives zero**. A place
//!   says whether an index on its way may be out of range (`guarded`); emitters guard those and only those. A
//!   [`Projection::Vector`] is past the end if any of its lanes is: it then reads as zero in every lane, and writes none.
//! * Plain accesses of two invocations to the same scalar, one of them a write, without a barrier (same workgroup) or an end of the
//!   dispatch (otherwise) between them, are a race: the value read is unspecified. Narrow neighbours that share a word do not race.
//! * A barrier makes writes to workgroup variables and to buffers visible to the workgroup. A float that is added to gets every addend once, in
//!   no stated order.
//!
//! # Orders
//! An atomic operation and a fence have an [`Ordering`]. What an invocation did *comes before* what it does later, what a workgroup did before a barrier
//! comes before what it does behind it, and what came before a release comes before what follows an acquire that reads what was written there (or a
//! value that further operations made of it), if the scope of both holds both invocations. Of accesses of which one comes before the other, the later
//! sees the earlier: they are no race. A [`StatementKind::Fence`] makes the relaxed writes after it release, and the relaxed reads before it acquire.
//! A relaxed operation orders nothing beside itself. In workgroup memory the scope is the workgroup, whatever the operation says.
//!
//! Orders are [`crate::target::Feature::Ordering`]. A kernel that waits for another workgroup must wait for one that has started: of those it may assume
//! that they go on, where the device promises it (see the page on memory of the user's documentation). A kernel that waits
//! has an ordered operation or a fence, of whatever use: one without may be run with workgroups in step. No invocation may wait for another of its workgroup but
//! at a barrier.
//!
//! # Asynchronous copies
//! [`Asynchronous::Copy`] moves elements of a buffer to workgroup memory as loads and stores of them would, past an end included: zeros are written for what
//! is past the end of the buffer, and nothing past the end of the variable. Behind the largest index comes the first: indices wrap as in sums.
//! What is copied is not there before the invocation waits for the copy's group: it is there for the invocation itself behind the wait, and for its workgroup behind the next barrier after that. Until then the copy counts
//! as an access of both ends: who changes the source or touches the target races with it. A target that has no such copies makes them at once, and
//! commits and waits are nothing there. A slice of which pieces of several elements are copied starts at a multiple of a piece, as one that is read in vectors does.
//!
//! # Arithmetic
//! | operation | meaning |
//! |---|---|
//! | integer `+ - *`, negate, `abs` | wraps modulo 2 to the power of its bits |
//! | integer `/` `%` | toward zero; by 0 gives 0; `MIN / -1` is `MIN`, `MIN % -1` is 0 |
//! | shifts | by the amount modulo the integer's bits; `>>` of signed ones keeps the sign |
//! | float `+ - * /`, `sqrt` | nearest (`/` and `sqrt` within 3 ulp on GPUs); a product and a sum may be contracted to one rounding; denormals may be flushed; see [`Precision`] |
//! | infinities, NaNs and the sign of zero | kept, but in `fast` functions. WGSL's compilers may take it that there are none, which shows where they see more than one operation; `x / x`, `x % x` and `x - x` are kept from them |
//! | float `%` | with the sign of the left side and smaller in size than the right one; exact in CUDA C and on the CPU, and on WGSL and SPIR-V where the quotient is below 2^22 and the right side at most 2^126 (only where the device's `mul_add` rounds once, and of doubles within the error of a product and a sum): beyond, it is 0 there or another such number; x by what is infinite is x; [`Precision::Fast`] takes the device's own |
//! | float compare | false with a NaN, except `!=` |
//! | `min` `max` | if one is NaN, the other |
//! | `clamp(x, low, high)` | of floats x if x is NaN, else `min(max(x, low), high)`, so that bounds out of order give `high`, and a NaN is no bound; of integers `min(max(x, low), high)` |
//! | `round_ties_even` | to the nearest, ties to even |
//! | `round`, `fract`, `rem_euclid` | as Rust's: ties away from zero; `x - trunc(x)`; not negative, and of integers by 0 it is 0 |
//! | `normalize`, `length`, `distance` | by the sum of the squares, which may overflow; the zero vector normalised is NaN |
//! | rotations | by the amount modulo 32 |
//! | `extract_bits`, `insert_bits` | offset as `min(offset, 32)`, count as `min(count, 32 - offset)`; no bits are 0 |
//! | packing to integers | clamped, then to the nearest, ties to even; a NaN is the lowest |
//! | float to integer | toward zero, saturating; NaN is 0 |
//! | integer to float | nearest, ties to even |
//! | integer to integer | extended by the source's sign, or cut off |
//! | bool to integer or float | 0 or 1 |
//! | `f32` to `f16` or `bf16` | nearest, ties to even; too large is infinity; a NaN stays one |
//! | `f16` or `bf16` to `f32` | exact |
//! | `f64` to `f32` | nearest |
//! | enum to integer | its discriminant |
//! | a switch on an enum | exhaustive; the front end checks, and makes the last case the default |
//! | `exp`, `sin` and so on | within the accuracy stated in the DSL for each |
//! | `is_nan`, `is_infinite` | by bits, also where the target assumes that there are none |
//!
//! Vectors work lane by lane. `Bool` is not held in buffers or params as such: a `bool` parameter is a word, 0 or 1.
//!
//! # Element types
//! * `i8`, `u8`, `i16`, `u16` wrap as Rust's do; targets may compute in 32 bits and wrap after every operation.
//! * `f16` and `bf16` are computed in `f32` and rounded after every operation. `f32` has more than twice their digits and two, so that this is the
//!   correctly rounded result of `+ - * /` and `sqrt`, as far as the one in `f32` is. A `bf16` is the upper 16 bits of an `f32`.
//! * `i64` and `u64` are moved, converted from and to other integers, compared for equality, and taken apart into their words (a bitcast to `Vec2<u32>`, the low one first) on every device, in two words where need be.
//!   Everything else done with them, and vectors of them, is [`crate::target::Feature::Int64`].
//! * `f64` is moved on every device. Everything else, and vectors of it, is [`crate::target::Feature::Float64`]; of mathematical functions there are those that
//!   all of its targets have exactly ([`MathFunction::is_exact`]), and powers, exponentials, logarithms, functions of angles, hyperbolic functions and the error function ([`MathFunction::is_elementary_of_doubles`]), which need
//!   [`crate::target::Feature::Int64`] too.
//! * A narrow parameter travels as the 32-bit type that holds it, a struct as the scalars and vectors in it; what lies within its arrays is an array
//!   of its own for each.
//! * Matrices that a subgroup holds together ([`Matrix`]) are values of locals, arguments and results; what their operations mean is told there.
//! * Tiles ([`Tile`]) are workgroup memory of which no element has a place that the language knows; what is done with them is told there.
//! * Loops count, and a [`StatementKind::Switch`] looks at, integers of 32 bits, and loops indices of 64 bits too; subgroup operations are of 32 bits. Atomics of `i64` and
//!   `u64` are [`crate::target::Feature::Int64Atomics`].
//!
//! # Control flow
//! Structured. `Break`, `Continue` and `Return` may stand anywhere in a block; what follows them there is dead. The bounds of `For`
//! are evaluated once, and its counter never wraps: where a step would lead past the largest number of its type, the loop ends.
//! A function's body ends in a `Return` on every path if it has a result.
//!
//! # Uniformity
//! A barrier, a [`StatementKind::UniformLoad`] and a subgroup operation must be reached by all invocations of the workgroup or by none:
//! the verifier demands that the control flow that leads to it depends on uniform values alone. Uniform are literals, params, lengths,
//! group indices, loads from bindings that the kernel does not write with uniform indices, results of `UniformLoad`, and what is
//! computed from such; locals that are assigned under non-uniform control flow are not.
//!
//! # Grid
//! A kernel that uses no [`Builtin`] for which [`Builtin::wants_volume`] is true has [`crate::artefact::GridKind::Linear`]: emitters
//! compute the group index as `x + y * groups along x`, and let workgroups from `group_count` on return before anything else.
//! Every other kernel, and every one that is [`Module::indirect`], is launched with the grid as it is given, the group index being
//! `x + groups along x * (y + groups along y * z)`: then it is all one whether the host knows the grid.

mod arena;
mod asynchronous;
pub mod builder;
pub mod constant;
mod expression;
mod instantiate;
mod math;
mod matrix;
mod module;
mod nested;
mod ordering;
mod precision;
pub(crate) mod print;
mod report;
pub mod rewrite;
mod sound;
mod span;
mod specialise;
mod statement;
mod subgroup;
mod tile;
mod types;
mod walk;
mod widen;

pub use arena::{Arena, Handle};
pub use asynchronous::Asynchronous;
pub use expression::{
    BinaryOperator, Builtin, CallArgument, Expression, ExpressionKind, Literal, LogicalOperator, Place, Projection,
    Root, UnaryOperator,
};
pub use instantiate::instantiate;
pub use math::{Domain, MathFunction, OperandType};
pub use matrix::{Matrix, MatrixNeed, MatrixOperation, MatrixOrder, MatrixProduct, MatrixRole, MatrixScalar};
pub use module::{
    Argument, Binding, BindingKind, Bound, Function, Generic, GenericKind, GenericValue, Instance, Local, Module,
    Param, Specialise, StatedSubgroup, WorkgroupVariable,
};
pub use ordering::{Order, Ordering, Scope};
pub use precision::Precision;
pub use report::{Format, Piece, Report, Style};
pub use span::{Locations, Span};
pub use specialise::{largest, specialise};
pub use statement::{AtomicFunction, Block, Case, Statement, StatementKind};
pub use subgroup::{SubgroupFunction, SubgroupOperator};
pub use tile::{Tile, TileOperation};
pub use types::{Enum, IndexWidth, Scalar, Size, SizeOperator, Struct, Type};
pub use walk::{breaks, escapes, leaves, returns, statements};
