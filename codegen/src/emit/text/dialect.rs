//! What a language says about itself.

use crate::artefact::{ParamField, ParamScalar};
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, Handle, Literal, MathFunction, Matrix, MatrixOrder, Module, Root, Scalar, Scope, SubgroupFunction,
    Type, UnaryOperator,
};
use crate::target::Target;
use crate::tensor_map::TensorMap;

use super::{AtomicCall, AtomicForm, Code, Index, Lvalue, Printer, Resources, Side};

type Result<T> = std::result::Result<T, EmitError>;

/// Where a name stands: shadowing is harmless for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The kernel itself, whose name cannot change.
    Entry,
    /// A function, buffer, struct or workgroup variable.
    Global,
    /// A variable or argument of a function.
    Local,
    /// A field of a struct.
    Field,
}

/// A C-like language. Its functions get the printer, through which they ask for helper functions.
pub trait Dialect: Sized {
    /// The target that it serves.
    const TARGET: Target;
    /// What an endless loop begins with.
    const LOOP: &'static str;

    /// Whether the language gives a name another meaning at that position.
    fn reserved(name: &str, position: Position) -> bool;

    /// A type's name.
    fn type_name(p: &mut Printer<'_, Self>, ty: &Type) -> Result<String>;
    /// A constant; `opaque` asks for a form that the language's compiler does not evaluate.
    fn literal(p: &mut Printer<'_, Self>, literal: Literal, opaque: bool) -> Result<Code>;
    /// Zero bits.
    fn zero(p: &mut Printer<'_, Self>, ty: &Type) -> Result<Code>;
    /// A vector, array or struct from its parts.
    fn compose(p: &mut Printer<'_, Self>, ty: &Type, parts: Vec<Code>) -> Result<Code>;
    /// A vector or array of equal parts.
    fn splat(p: &mut Printer<'_, Self>, ty: &Type, value: Code) -> Result<Code>;
    /// An operation on one value of type `ty`.
    fn unary(p: &mut Printer<'_, Self>, operator: UnaryOperator, ty: &Type, value: Code) -> Result<Code>;
    /// An operation on two values of type `ty`. `is_same`: they are one value, which is no constant.
    fn binary(
        p: &mut Printer<'_, Self>,
        operator: BinaryOperator,
        ty: &Type,
        left: Code,
        right: Code,
        is_same: bool,
    ) -> Result<Code>;
    /// A function of the library, of arguments of type `ty`.
    fn math(p: &mut Printer<'_, Self>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code>;
    /// Whether a helper ([`Printer::helper`]) that is printed later may get that name, which a local must not hide.
    fn is_helper_name(_name: &str) -> bool {
        false
    }
    /// The body of a function that reads elements of a buffer, or gives zero unless a condition holds (with a name for it), without a branch: for languages whose compilers wait for a load in
    /// a branch before they go on. It may read the first group instead, since something is always bound. `None` where a branch does no harm, or
    /// where the buffer is not declared in such groups.
    fn clamped_read(
        _p: &mut Printer<'_, Self>,
        _root: Root,
        _ty: &Type,
        _index: &Code,
        _inside: (&str, &str),
    ) -> Result<Option<Vec<String>>> {
        Ok(None)
    }
    /// One of two values of type `ty`.
    fn select(
        p: &mut Printer<'_, Self>,
        ty: &Type,
        condition_ty: &Type,
        condition: Code,
        accept: Code,
        reject: Code,
    ) -> Result<Code>;
    /// A conversion, lane by lane.
    fn convert(p: &mut Printer<'_, Self>, from: &Type, to: &Type, value: Code) -> Result<Code>;
    /// The same bits as another type.
    fn bitcast(p: &mut Printer<'_, Self>, from: &Type, to: &Type, value: Code) -> Result<Code>;
    /// A part of a vector or array value at an index that may be out of range.
    fn part(p: &mut Printer<'_, Self>, ty: &Type, base: Code, index: Code) -> Result<Code>;
    /// Other lanes of a vector of type `from`.
    fn swizzle(p: &mut Printer<'_, Self>, from: &Type, to: &Type, base: Code, lanes: &[u8]) -> Result<Code>;

    /// All of an array parameter as a value.
    fn param_array(p: &mut Printer<'_, Self>, field: &ParamField) -> Result<Code>;
    /// A part of an array parameter known by number.
    fn param_part(p: &mut Printer<'_, Self>, field: &ParamField, part: u32) -> Result<Code>;
    /// A part of an array parameter at an index that may be out of range.
    fn param_element(p: &mut Printer<'_, Self>, field: &ParamField, index: Code) -> Result<Code>;

    /// A variable that is behind a by-reference argument.
    fn dereference(name: &str) -> Code;
    /// What is passed for a by-reference argument; `forwarded` if it is one of the caller's own.
    fn reference(name: &str, forwarded: bool) -> Code;
    /// How the widest access makes a buffer or workgroup variable declared, if that is not scalar by scalar: in lanes.
    fn declared_lanes(p: &Printer<'_, Self>, root: Root) -> u32;
    /// Whether a buffer is declared as words, because the language would lay out its elements otherwise than the host.
    fn declared_words(_: &Printer<'_, Self>, _: Root) -> bool {
        false
    }
    /// A 64-bit scalar from its two words, for languages that declare buffers as words.
    fn from_words(p: &mut Printer<'_, Self>, scalar: Scalar, _low: Code, _high: Code) -> Result<Code> {
        Err(p.error(format!("a {} is put together from words", scalar.rust_name())))
    }
    /// The two words of a 64-bit scalar.
    fn to_words(p: &mut Printer<'_, Self>, scalar: Scalar, _value: Code) -> Result<[Code; 2]> {
        Err(p.error(format!("a {} is taken apart into words", scalar.rust_name())))
    }
    /// The index of an element of a buffer, counted from the start of what is bound.
    fn bound_index(_: &Printer<'_, Self>, _: Root, index: Code) -> Result<Code> {
        Ok(index)
    }
    /// What stands before a loop that the target's compiler is to unroll, if it can be asked to.
    const UNROLL: Option<&'static str> = None;
    /// Whether it matters to compilers that the indices of places which lie a number apart are said as such.
    const TELLS_APART: bool = false;
    /// Element `index` of a buffer or workgroup variable, in the elements in which it is declared.
    fn element(p: &mut Printer<'_, Self>, root: Root, index: Index) -> Result<Code>;
    /// `lanes` scalars of a buffer or workgroup variable from `lanes * index` on.
    fn vector_element(p: &mut Printer<'_, Self>, root: Root, scalar: Scalar, lanes: u8, index: Index)
    -> Result<Lvalue>;
    /// A lane of a vector place, by an index known at run time.
    fn lane_place(p: &mut Printer<'_, Self>, root: Root, vector: &Type, base: Code, index: Code) -> Result<Lvalue>;
    /// Reads a place that is declared as an atomic.
    fn atomic_load(place: Code, scalar: Scalar) -> Code;
    /// A statement that writes a place that is declared as an atomic.
    fn atomic_store(place: Code, scalar: Scalar, value: Code) -> String;
    /// An atomic operation.
    fn atomic(p: &mut Printer<'_, Self>, place: Code, scalar: Scalar, call: AtomicCall) -> Result<AtomicForm>;
    /// The line that begins to copy `count` elements of `size` bytes; if some may be past the end, the index of the first, and the end.
    fn copy_async(
        p: &mut Printer<'_, Self>,
        _to: Code,
        _from: Code,
        _pieces: (u32, u32),
        _left: Option<(Code, Code)>,
    ) -> Result<String> {
        Err(p.error("an asynchronous copy is left"))
    }
    /// The line that makes a group of the copies begun so far.
    fn async_commit(p: &mut Printer<'_, Self>) -> Result<String> {
        Err(p.error("an asynchronous copy is left"))
    }
    /// The line that waits for all groups but the last `pending`.
    fn async_wait(p: &mut Printer<'_, Self>, _pending: u32) -> Result<String> {
        Err(p.error("an asynchronous copy is left"))
    }
    /// The line that orders what an invocation did before against what it does after.
    fn fence(p: &mut Printer<'_, Self>, scope: Scope) -> Result<String>;

    /// Declares a variable that never changes.
    fn declare_value(p: &mut Printer<'_, Self>, name: &str, ty: &Type, value: Code) -> Result<String>;
    /// Declares a variable that may change, with or without a value, without a semicolon.
    fn declare_variable(p: &mut Printer<'_, Self>, name: &str, ty: &Type, value: Option<Code>) -> Result<String>;
    /// The line that opens a case with these values.
    fn case(values: &[String]) -> String;
    /// The line that opens the default case.
    fn default_case() -> &'static str;
    /// The last line inside a case, if the language wants one.
    fn end_of_case() -> Option<&'static str>;
    /// A barrier of the workgroup.
    fn barrier(p: &mut Printer<'_, Self>) -> Result<Vec<String>>;
    /// A load of one place by all invocations between barriers, if the language has it; the place is not guarded, and no lane of a vector.
    fn uniform_load(p: &mut Printer<'_, Self>, place: Code) -> Option<Code>;
    /// An operation over the subgroup.
    fn subgroup(
        p: &mut Printer<'_, Self>,
        function: SubgroupFunction,
        ty: &Type,
        value: Code,
        lane: Option<Code>,
        literal_lane: bool,
    ) -> Result<Code>;

    /// How many parts of a matrix an invocation holds.
    fn matrix_parts(p: &Printer<'_, Self>, matrix: &Matrix) -> Result<u32> {
        Err(no_matrices(p, matrix))
    }
    /// A load of a matrix that is there, from elements of a variable on.
    fn matrix_load(
        p: &mut Printer<'_, Self>,
        matrix: &Matrix,
        _root: Root,
        _offset: Code,
        _stride: Code,
        _order: MatrixOrder,
    ) -> Result<Code> {
        Err(no_matrices(p, matrix))
    }
    /// The statement that stores a matrix that is there.
    fn matrix_store(
        p: &mut Printer<'_, Self>,
        matrix: &Matrix,
        _root: Root,
        _offset: Code,
        _stride: Code,
        _order: MatrixOrder,
        _value: Code,
    ) -> Result<String> {
        Err(no_matrices(p, matrix))
    }
    /// `a * b + c`, of matrices of these types.
    fn matrix_multiply_add(p: &mut Printer<'_, Self>, types: [&Matrix; 3], _values: [Code; 3]) -> Result<Code> {
        Err(no_matrices(p, types[0]))
    }

    /// The statement that adds a product of parts of two tiles to sums of that type.
    fn multiply_tiles(
        p: &mut Printer<'_, Self>,
        _ty: &Type,
        _sums: Code,
        _sides: [Side<'_>; 2],
        _numbers: [Code; 3],
    ) -> Result<String> {
        Err(p.error("it has no products of tiles"))
    }
    /// The statements that begin to copy a tile by a tensor map: to which stage, from which row and column; or that do `otherwise`.
    fn bulk_copy(
        p: &mut Printer<'_, Self>,
        _to: Side<'_>,
        _map: &TensorMap,
        _numbers: [Code; 3],
        _otherwise: Code,
    ) -> Result<Vec<String>> {
        Err(p.error("it has no bulk copies"))
    }
    /// The statements that wait for such products.
    fn finish_products(p: &mut Printer<'_, Self>, _sums: Vec<Code>) -> Result<Vec<String>> {
        Err(p.error("it has no products of tiles"))
    }

    /// Whether the kernel itself must read the first parameter of the block by [`Dialect::given`].
    fn hides_first_param(_: &Module) -> bool {
        false
    }
    /// A parameter's value as one of which the language's compiler does not see where it comes from.
    fn given(_: &mut Printer<'_, Self>, value: Code) -> Code {
        value
    }

    /// The line at the beginning of a function that reads a specialisation constant, if the language's compiler must not compute with it.
    fn read_constant(_name: &str) -> Option<String> {
        None
    }

    /// The line that opens a function. Arguments are by value, or by reference where the last part is true.
    fn function(
        p: &mut Printer<'_, Self>,
        name: &str,
        arguments: &[(String, Type, bool)],
        resources: &Resources,
        result: Option<&Type>,
    ) -> Result<String>;
    /// What calls pass for a function's surroundings.
    fn pass(p: &Printer<'_, Self>, resources: &Resources) -> Vec<Code>;

    /// The IR type of a parameter's scalar.
    fn param_scalar(scalar: ParamScalar) -> Scalar {
        match scalar {
            ParamScalar::F32 => Scalar::F32,
            ParamScalar::I32 => Scalar::I32,
            ParamScalar::U32 => Scalar::U32,
            ParamScalar::Index => Scalar::Index,
            ParamScalar::Bool => Scalar::Bool,
            ParamScalar::I64 => Scalar::I64,
            ParamScalar::U64 => Scalar::U64,
            ParamScalar::F64 => Scalar::F64,
        }
    }

    /// The type of a struct's field.
    fn field_type(p: &Printer<'_, Self>, handle: Handle<crate::ir::Struct>, field: u32) -> Result<Type> {
        let structure = &p.lowered.module.structs[handle];
        match structure.fields.get(field as usize) {
            Some((_, ty)) => Ok(p.lowered.module.types[*ty].clone()),
            None => Err(p.error(format!("struct `{}` has no field {field}", structure.name))),
        }
    }
}

/// Why a language without matrices cannot say what is done with one; variants without the feature have none.
pub fn no_matrices<D: Dialect>(p: &Printer<'_, D>, matrix: &Matrix) -> EmitError {
    p.error(format!("it has no matrices such as `{}`", matrix.role.name()))
}
