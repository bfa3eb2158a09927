//! Types and constants.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::emit::EmitError;
use crate::emit::text::{Code, Dialect, Level, Printer};
use crate::hashing::HashSet;
use crate::ir::{Handle, Literal, Scalar, Struct, SubgroupFunction, Type};

use super::Cuda;

type Result<T> = std::result::Result<T, EmitError>;

/// Words of C++ and of CUDA, and names that NVRTC or the emitter itself gives a meaning.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "const_cast",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "main",
    "NULL",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    // Types of the emitted text.
    "uint",
    "ushort",
    "uchar",
    "schar",
    "ulong",
    "half",
    "size_t",
    "dim3",
    "Array",
    // Functions that it calls.
    "min",
    "max",
    "abs",
    "fabsf",
    "fminf",
    "fmaxf",
    "floorf",
    "ceilf",
    "rintf",
    "truncf",
    "sqrtf",
    "rsqrtf",
    "expf",
    "exp2f",
    "logf",
    "log2f",
    "powf",
    "sinf",
    "cosf",
    "tanf",
    "tanhf",
    "atanf",
    "atan2f",
    "erff",
    "fmaf",
    "fmodf",
    "roundf",
    "copysignf",
    "asinf",
    "acosf",
    "sinhf",
    "coshf",
    "asinhf",
    "acoshf",
    "atanhf",
    "expm1f",
    "log1pf",
    "log10f",
    "cbrtf",
    "hypotf",
    "memcpy",
    "copy_async",
    "bytes_there",
    "async_commit",
    "async_wait",
    "atomicAdd",
    "atomicSub",
    "atomicMin",
    "atomicMax",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
    "atomicExch",
    "atomicCAS",
    "bitcast",
    "lane",
    "set_lane",
    "given",
    "array_at",
    "in_a_register",
    "read_here",
    "splat",
    "choose",
    "dot",
    "signum",
    "is_nan",
    "is_infinite",
    "count_ones",
    "leading_zeros",
    "trailing_zeros",
    "to_half",
    "to_float",
    "to_int",
    "to_uint",
    "wrapping_add",
    "wrapping_subtract",
    "wrapping_multiply",
    "wrapping_negate",
    "wrapping_abs",
    "shift_left",
    "subgroup_mask",
    "reverse_bits",
    "mul_high",
    "nearest_brain",
    "dot4_i8",
    "dot4_u8",
    "i64",
    "u64",
    "clamp",
    "unpack_half",
    "pack_half",
    "workgroup_memory",
    "params_buffer",
    "matrix_lane",
    "matrix_brain_pair",
    "tile_side",
    "tile_descriptor",
    "finish_products",
    "finish_sums",
    "async_wait_tiles",
    "TensorMap",
    "TensorMaps",
    "tensor_maps",
    "BULK_COPIES",
    "BulkGroups",
    "BulkCopies",
    "bulk_copies",
    "bulk_groups",
    "bulk_thread",
    "finish_bulk_group",
    "finish_bulk_groups",
    "close_bulk_group",
    "copy_tile_bulk",
    "matrix_a_shared",
    "matrix_a_global",
    "matrix_b_shared",
    "matrix_b_global",
    "matrix_load",
    "matrix_store",
    "matrix_part",
    "matrix_pair",
    "matrix_to_half",
    "matrix_to_float",
    "matrix_product_f16_f32",
    "matrix_product_f16_f16",
    "matrix_product_bf16_f32",
    "matrix_halves",
    // Those of the mathematical library that it calls for doubles.
    "fma",
    "floor",
    "ceil",
    "rint",
    "trunc",
    "sqrt",
    "fmin",
    "fmax",
    "fabs",
    "fmod",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "pow",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "erf",
    // Other functions of the mathematical library, which NVRTC declares at global scope.
    "exp10",
    "erfc",
    "round",
    "rsqrt",
    "signbit",
    "isnan",
    "isinf",
    "isfinite",
    "norm",
    "y0",
    "y1",
    "yn",
    "j0",
    "j1",
    "jn",
    "gamma",
    "printf",
    "malloc",
    "free",
    "clock",
    "abort",
    "exit",
    "index",
    "remainder",
    "remquo",
    "fdim",
    "hypot",
    "rhypot",
    "ldexp",
    "frexp",
    "modf",
    "logb",
    "ilogb",
    "cbrt",
    "rcbrt",
    "erfinv",
    "erfcinv",
    "erfcx",
    "lgamma",
    "tgamma",
    "nearbyint",
    "lrint",
    "llrint",
    "lround",
    "llround",
    "nextafter",
    "nan",
    "copysign",
    "scalbn",
    "scalbln",
    "sincos",
    "sinpi",
    "cospi",
    "sincospi",
    "normcdf",
    "normcdfinv",
    "rnorm",
    "norm3d",
    "norm4d",
    "rnorm3d",
    "rnorm4d",
    "abs",
    "labs",
    "llabs",
    "min",
    "max",
    "memcpy",
    "memset",
    "clock64",
    "fdivide",
    "fdividef",
];

/// The first of the functions that a text does not call.
const FIRST_OTHER: &str = "exp10";

/// Whether a name has a meaning of its own. Locals may hide the library's functions that the text does not call; those exist with an `f` after their names too.
pub fn reserved(name: &str, global: bool) -> bool {
    /// Words, and the functions of the library, which every name of a text is looked up in.
    static SETS: LazyLock<[HashSet<&str>; 2]> = LazyLock::new(|| {
        let library = RESERVED.iter().position(|known| *known == FIRST_OTHER).unwrap_or(RESERVED.len());
        let (words, functions) = RESERVED.split_at(library);
        [words, functions].map(|list| list.iter().copied().collect())
    });
    let [words, functions] = &*SETS;
    let is_function = |name: &str| functions.contains(name) || words.contains(name);
    let is_subgroup = SubgroupFunction::ALL.iter().any(|(_, known)| *known == name);
    let is_ordered = name.starts_with("atomic_") && (name.ends_with("_gpu") || name.ends_with("_cta"));
    words.contains(name)
        || is_subgroup
        || is_ordered
        || is_of_vectors(name)
        || is_of_tiles(name)
        || super::precision::reserved(name)
        || global && (is_function(name) || name.strip_suffix('f').is_some_and(is_function))
}

/// Whether it is the name of a vector, or of a function that makes one: of its parts, of one for all, of another's type, or of lanes that it picks.
fn is_of_vectors(name: &str) -> bool {
    static VECTORS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let named = |scalar: Scalar| (2..=4).map(move |lanes| vector_name(lanes, scalar));
        Scalar::ALL.into_iter().flat_map(named).collect()
    });
    if let Some(lanes) = name.strip_prefix("swizzle_") {
        return (2..=4).contains(&lanes.len()) && lanes.chars().all(|lane| "xyzw".contains(lane));
    }
    let made = ["make_", "splat_", "to_"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    VECTORS.contains(made.unwrap_or(name))
}

/// Whether it is the name of a function that multiplies tiles into so many sums.
fn is_of_tiles(name: &str) -> bool {
    let function = ["multiply_tiles_", "tile_step_"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    let sums = function.and_then(|input| input.strip_prefix("f16_").or_else(|| input.strip_prefix("bf16_")));
    sums.is_some_and(|sums| sums.parse::<u32>().is_ok())
}

/// A scalar's name.
pub const fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I32 => "int",
        Scalar::U32 | Scalar::Index => "uint",
        Scalar::F16 => "half",
        Scalar::F32 => "float",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F64 => "double",
        Scalar::I8 => "schar",
        Scalar::U8 => "uchar",
        Scalar::I16 => "short",
        Scalar::U16 | Scalar::BF16 => "ushort",
        Scalar::Generic(_) => "a type parameter",
    }
}

/// A type's name; what it needs is added to the prelude.
pub fn type_name(p: &mut Printer<'_, Cuda>, ty: &Type) -> Result<String> {
    match ty {
        Type::Scalar(Scalar::Generic(_)) => Err(p.error("a type parameter is left")),
        Type::Scalar(scalar) => {
            scalar_prelude(p, *scalar);
            Ok(scalar_name(*scalar).to_owned())
        }
        Type::Vector { lanes, scalar } => {
            let name = vector_name(*lanes, *scalar);
            scalar_prelude(p, *scalar);
            match scalar {
                Scalar::I64 | Scalar::U64 | Scalar::F64 => wide_vector(p, *lanes, *scalar),
                Scalar::F16 => p.prelude(&name, || {
                    let fields = ["x", "y", "z", "w"][..usize::from(*lanes)].join(", ");
                    let typed = ["half x", "half y", "half z", "half w"][..usize::from(*lanes)].join(", ");
                    format!(
                        "typedef ushort{lanes} half{lanes};\n__device__ __forceinline__ half{lanes} make_half{lanes}({typed}) {{\n    \
                         return make_ushort{lanes}({fields});\n}}\n"
                    )
                }),
                Scalar::Bool => p.prelude(&name, || {
                    let fields = ["x", "y", "z", "w"][..usize::from(*lanes)].join(", ");
                    let typed = ["bool x", "bool y", "bool z", "bool w"][..usize::from(*lanes)].join(", ");
                    format!(
                        "struct bool{lanes} {{\n    bool {fields};\n}};\n__device__ __forceinline__ bool{lanes} make_bool{lanes}({typed}) {{\n    \
                         return bool{lanes}{{{fields}}};\n}}\n"
                    )
                }),
                _ => {}
            }
            Ok(name)
        }
        Type::Array { element, length } => {
            let (element, length) = (p.ty(*element), p.size(length)?);
            array_prelude(p);
            Ok(format!("Array<{}, {length}>", type_name(p, element)?))
        }
        Type::Struct(handle) => Ok(p.structs[handle.index()].clone()),
        Type::Enum(_) => Ok("uint".to_owned()),
        Type::Matrix(matrix) => super::matrix::type_name(p, matrix),
    }
}

pub fn scalar_prelude(p: &mut Printer<'_, Cuda>, scalar: Scalar) {
    match scalar {
        Scalar::F16 => p.prelude("half", || "typedef unsigned short half;\n".to_owned()),
        Scalar::I64 => p.prelude("i64", || "typedef long long i64;\n".to_owned()),
        Scalar::U64 => p.prelude("u64", || "typedef unsigned long long u64;\n".to_owned()),
        Scalar::I8 => p.prelude("schar", || "typedef signed char schar;\n".to_owned()),
        Scalar::U8 => p.prelude("uchar", || "typedef unsigned char uchar;\n".to_owned()),
        Scalar::U16 => p.prelude("ushort", || "typedef unsigned short ushort;\n".to_owned()),
        _ => {}
    }
}

/// A vector's name: those of 64-bit scalars are the text's own, since CUDA aligns its four lanes otherwise than the host.
pub fn vector_name(lanes: u8, scalar: Scalar) -> String {
    match scalar {
        scalar if scalar.is_wide() => format!("{}x{lanes}", scalar.rust_name()),
        Scalar::I8 => format!("char{lanes}"),
        scalar => format!("{}{lanes}", scalar_name(scalar)),
    }
}

/// The struct that a vector of 64-bit scalars is.
fn wide_vector(p: &mut Printer<'_, Cuda>, lanes: u8, scalar: Scalar) {
    let name = vector_name(lanes, scalar);
    p.prelude(&name, || {
        let part = scalar_name(scalar);
        let fields = ["x", "y", "z", "w"][..usize::from(lanes)].join(", ");
        let typed: Vec<String> =
            ["x", "y", "z", "w"][..usize::from(lanes)].iter().map(|lane| format!("{part} {lane}")).collect();
        let align = if lanes == 3 { 8 } else { 8 * u32::from(lanes) };
        format!(
            "struct __align__({align}) {name} {{\n    {part} {fields};\n}};\n__device__ __forceinline__ {name} make_{name}({}) {{\n    \
             return {name}{{{fields}}};\n}}\n",
            typed.join(", ")
        )
    });
}

/// Arrays that can be copied, passed and returned.
pub fn array_prelude(p: &mut Printer<'_, Cuda>) {
    p.prelude("Array", || {
        "// An array that can be copied, passed and returned.\n\
         template <typename T, uint N> struct Array {\n    T parts[N];\n    \
         __device__ __forceinline__ T& operator[](uint i) { return parts[i]; }\n    \
         __device__ __forceinline__ const T& operator[](uint i) const { return parts[i]; }\n};\n"
            .to_owned()
    });
}

/// The same bits as another type.
pub fn bitcast_prelude(p: &mut Printer<'_, Cuda>) {
    p.prelude("bitcast", || {
        "template <typename To, typename From> __device__ __forceinline__ To bitcast(const From& from) {\n    \
         static_assert(sizeof(To) == sizeof(From), \"a bitcast keeps the size\");\n    \
         To to;\n    memcpy(&to, &from, sizeof(To));\n    return to;\n}\n"
            .to_owned()
    });
}

/// A constant. Infinities and NaN have no literals, and an opaque one must not be computed with in the compiler, which would warn.
pub fn literal(p: &mut Printer<'_, Cuda>, literal: Literal, opaque: bool) -> Result<Code> {
    Ok(match literal {
        Literal::Bool(value) => Code::atom(value.to_string()),
        Literal::I32(i32::MIN) => Code { text: "-2147483647 - 1".to_owned(), level: Level::Sum },
        Literal::I32(value) => number(value.to_string()),
        Literal::U32(value) | Literal::Index(value) => Code::atom(format!("{value}u")),
        Literal::F32(value) if value.is_finite() && !opaque => number(format!("{value:?}f")),
        Literal::F32(value) => {
            bitcast_prelude(p);
            Code::atom(format!("bitcast<float>({:#x}u)", value.to_bits()))
        }
        Literal::I8(_) | Literal::U8(_) | Literal::I16(_) | Literal::U16(_) | Literal::BF16(_) => {
            return Err(p.error(format!("a constant of type {} is left", literal.scalar().rust_name())));
        }
        Literal::F16(bits) => {
            scalar_prelude(p, Scalar::F16);
            Code::atom(format!("half({bits:#x})"))
        }
        Literal::I64(i64::MIN) => Code { text: "-9223372036854775807ll - 1ll".to_owned(), level: Level::Sum },
        Literal::I64(value) => number(format!("{value}ll")),
        Literal::U64(value) => Code::atom(format!("{value}ull")),
        Literal::F64(value) if value.is_finite() && !opaque => number(format!("{value:?}")),
        Literal::F64(value) => {
            bitcast_prelude(p);
            Code::atom(format!("bitcast<double>({:#x}ull)", value.to_bits()))
        }
        Literal::Generic { .. } => return Err(p.error("a generic literal is left")),
    })
}

/// A number, which a sign makes an operation.
fn number(text: String) -> Code {
    let level = if text.starts_with('-') { Level::Unary } else { Level::Atom };
    Code { text, level }
}

/// The declaration of a struct, laid out as the host does it.
pub fn structure(p: &mut Printer<'_, Cuda>, handle: Handle<Struct>) -> Result<String> {
    let mut text = format!("struct {} {{\n", p.structs[handle.index()]);
    for index in 0..p.lowered.module.structs[handle].fields.len() as u32 {
        let ty = Cuda::field_type(p, handle, index)?;
        let (name, ty) = (p.field_name(handle, index)?, type_name(p, &ty)?);
        let _ = writeln!(text, "    {ty} {name};");
    }
    text.push_str("};\n");
    Ok(text)
}
