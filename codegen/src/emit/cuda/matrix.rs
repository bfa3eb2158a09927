//! Matrices in the registers of a warp, as `mma.sync` of 16 by 8 by 16 wants them.
//!
//! A side of a product is an array of words of two elements each, an accumulator an array of its elements; a right side or an accumulator of 16 columns is
//! two of 8, one after the other. From workgroup memory the sides come by `ldmatrix`, of which a warp reads eight lines of 16 bytes at a time: lines whose distance is an
//! odd multiple of 16 bytes (a row of 32 halves and 8 more that nobody uses) lie in different banks. From buffers they come word by word.

use crate::emit::EmitError;
use crate::emit::text::{Code, Printer, infix};
use crate::ir::{BinaryOperator, Matrix, MatrixOrder, MatrixRole, Root, Scalar, Type};
use crate::verify::product;

use super::Cuda;
use super::types::{array_prelude, scalar_prelude};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

/// What an invocation holds of a matrix: elements of an accumulator, words of a side.
pub fn parts(p: &P<'_>, matrix: &Matrix) -> Result<u32> {
    let [rows, columns] = matrix.shape();
    let known = match matrix.role {
        MatrixRole::A => (rows, columns) == (16, 16),
        MatrixRole::B | MatrixRole::Accumulator => rows == 16 && matches!(columns, 8 | 16),
    };
    if !known {
        let (name, scalar) = (matrix.role.name(), matrix.scalar.rust_name());
        return Err(p.error(format!(
            "it has products of 16x16x16 and 16x8x16 alone, and so no `{name}<{scalar}, {rows}, {columns}>`: leave cuda out of `targets(..)`, or use another shape"
        )));
    }
    let elements = rows * columns / 32;
    Ok(if matrix.role == MatrixRole::Accumulator { elements } else { elements / 2 })
}

/// The scalar of the registers that hold it.
const fn register(matrix: &Matrix) -> Scalar {
    match (matrix.role, matrix.scalar) {
        (MatrixRole::Accumulator, Scalar::F16) => Scalar::F16,
        (MatrixRole::Accumulator, _) => Scalar::F32,
        _ => Scalar::U32,
    }
}

const fn register_name(matrix: &Matrix) -> &'static str {
    super::types::scalar_name(register(matrix))
}

/// The type of the registers.
pub fn type_name(p: &mut P<'_>, matrix: &Matrix) -> Result<String> {
    let count = parts(p, matrix)?;
    array_prelude(p);
    scalar_prelude(p, register(matrix));
    Ok(format!("Array<{}, {count}>", register_name(matrix)))
}

/// A matrix of equal elements; `splat` has been asked for.
pub fn fill(p: &mut P<'_>, matrix: &Matrix, value: Code) -> Result<Code> {
    let count = parts(p, matrix)?;
    let value = match (matrix.role, matrix.scalar) {
        (MatrixRole::Accumulator, _) => value,
        (_, Scalar::BF16) => {
            p.prelude("matrix_brain_pair", || {
                "// A bf16, held as the float that it is, in both halves of a word.\n__device__ __forceinline__ uint matrix_brain_pair(float value) {\n    \
                 const uint bits = __float_as_uint(value);\n    return (bits >> 16u) | (bits & 0xffff0000u);\n}\n"
                    .to_owned()
            });
            Code::call("matrix_brain_pair", [value])
        }
        _ => infix(BinaryOperator::Multiply, Code::call("uint", [value]), Code::atom("0x10001u")),
    };
    Ok(Code::call(&format!("splat<{}, {count}>", register_name(matrix)), [value]))
}

fn lane_prelude(p: &mut P<'_>) {
    array_prelude(p);
    p.prelude("matrix_lane", || {
        "// This invocation's place in its warp, which says what it holds of a matrix.\n\
         __device__ __forceinline__ uint matrix_lane() {\n    uint lane;\n    asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));\n    return lane;\n}\n"
            .to_owned()
    });
}

/// A side from workgroup memory.
fn side_shared(p: &mut P<'_>, role: MatrixRole) -> &'static str {
    lane_prelude(p);
    if role == MatrixRole::A {
        p.prelude("matrix_a_shared", || {
            "// 16 by 16 elements of two bytes from workgroup memory, lines `stride` bytes apart.\n\
             template <bool COLUMNS> __device__ __forceinline__ Array<uint, 4> matrix_a_shared(const void* tile, uint stride) {\n    \
             const uint lane = matrix_lane();\n    \
             const uint at = uint(__cvta_generic_to_shared(tile)) + (COLUMNS ? (lane / 16u * 8u + lane % 8u) * stride + lane / 8u % 2u * 16u : lane % 16u * stride + lane / 16u * 16u);\n    \
             Array<uint, 4> m;\n    \
             if (COLUMNS) {\n        \
             asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[2]), \"=r\"(m[3]) : \"r\"(at) : \"memory\");\n    \
             } else {\n        \
             asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[2]), \"=r\"(m[3]) : \"r\"(at) : \"memory\");\n    \
             }\n    return m;\n}\n"
                .to_owned()
        });
        return "matrix_a_shared";
    }
    p.prelude("matrix_b_shared", || {
        "// 16 rows of 4 * N elements of two bytes from workgroup memory, lines `stride` bytes apart.\n\
         template <bool COLUMNS, uint N> __device__ __forceinline__ Array<uint, N> matrix_b_shared(const void* tile, uint stride) {\n    \
         const uint lane = matrix_lane() % (8u * N);\n    \
         const uint at = uint(__cvta_generic_to_shared(tile)) + (COLUMNS ? (lane / 16u * 8u + lane % 8u) * stride + lane / 8u % 2u * 16u : lane % 16u * stride + lane / 16u * 16u);\n    \
         Array<uint, N> m;\n    \
         if (N == 2u && COLUMNS) {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\" : \"=r\"(m[0]), \"=r\"(m[1]) : \"r\"(at) : \"memory\");\n    \
         } else if (N == 2u) {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\" : \"=r\"(m[0]), \"=r\"(m[1]) : \"r\"(at) : \"memory\");\n    \
         } else if (COLUMNS) {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[N - 2u]), \"=r\"(m[N - 1u]) : \"r\"(at) : \"memory\");\n    \
         } else {\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(m[0]), \"=r\"(m[1]), \"=r\"(m[N - 2u]), \"=r\"(m[N - 1u]) : \"r\"(at) : \"memory\");\n    \
         }\n    return m;\n}\n"
            .to_owned()
    });
    "matrix_b_shared"
}

/// A side from a buffer.
fn side_global(p: &mut P<'_>, role: MatrixRole) -> &'static str {
    lane_prelude(p);
    p.prelude("matrix_halves", || {
        "// Two elements of two bytes in a word: neighbours, or one line apart.\n\
         template <bool APART> __device__ __forceinline__ uint matrix_halves(const char* at, size_t stride) {\n    \
         if (APART) {\n        \
         return uint(*reinterpret_cast<const unsigned short*>(at)) | uint(*reinterpret_cast<const unsigned short*>(at + stride)) << 16u;\n    \
         }\n    return *reinterpret_cast<const uint*>(at);\n}\n"
            .to_owned()
    });
    if role == MatrixRole::A {
        p.prelude("matrix_a_global", || {
            "// 16 by 16 elements of two bytes from a buffer, lines `stride` bytes apart.\n\
             template <bool COLUMNS> __device__ __forceinline__ Array<uint, 4> matrix_a_global(const void* tile, size_t stride) {\n    \
             const uint lane = matrix_lane();\n    \
             Array<uint, 4> m;\n    \
             for (uint i = 0u; i < 4u; i++) {\n        \
             const size_t row = lane / 4u + i % 2u * 8u;\n        \
             const size_t column = lane % 4u * 2u + i / 2u * 8u;\n        \
             m[i] = matrix_halves<COLUMNS>(static_cast<const char*>(tile) + (COLUMNS ? column * stride + row * 2u : row * stride + column * 2u), stride);\n    \
             }\n    return m;\n}\n"
                .to_owned()
        });
        return "matrix_a_global";
    }
    p.prelude("matrix_b_global", || {
        "// 16 rows of 4 * N elements of two bytes from a buffer, lines `stride` bytes apart.\n\
         template <bool COLUMNS, uint N> __device__ __forceinline__ Array<uint, N> matrix_b_global(const void* tile, size_t stride) {\n    \
         const uint lane = matrix_lane();\n    \
         Array<uint, N> m;\n    \
         for (uint i = 0u; i < N; i++) {\n        \
         const size_t row = lane % 4u * 2u + i % 2u * 8u;\n        \
         const size_t column = lane / 4u + i / 2u * 8u;\n        \
         m[i] = matrix_halves<!COLUMNS>(static_cast<const char*>(tile) + (COLUMNS ? column * stride + row * 2u : row * stride + column * 2u), stride);\n    \
         }\n    return m;\n}\n"
            .to_owned()
    });
    "matrix_b_global"
}

/// The offset in bytes of the first element, and the bytes from line to line, of memory whose elements are those of a root.
fn bytes(p: &P<'_>, root: Root) -> Result<u32> {
    let size = match p.element_type(root) {
        Some(Type::Scalar(scalar)) => scalar.bytes(),
        Some(Type::Vector { lanes, scalar }) => scalar.bytes().map(|bytes| bytes * u32::from(*lanes)),
        _ => None,
    };
    size.ok_or_else(|| p.error("a matrix lies in memory of something else"))
}

/// The address of an element.
fn address((root, memory): (Root, Code), offset: Code) -> Code {
    let offset = match root {
        // An index of 32 bits counts elements, and bytes may be more.
        Root::Binding(_) => Code::call("size_t", [offset]),
        _ => offset,
    };
    infix(BinaryOperator::Add, memory, offset)
}

pub fn load(
    p: &mut P<'_>,
    matrix: &Matrix,
    memory: (Root, Code),
    offset: Code,
    stride: Code,
    order: MatrixOrder,
) -> Result<Code> {
    let count = parts(p, matrix)?;
    let (root, columns) = (memory.0, order == MatrixOrder::Columns);
    let size = bytes(p, root)?;
    let stride = infix(BinaryOperator::Multiply, wide(root, stride), Code::atom(format!("{size}u")));
    let function = match (matrix.role, root) {
        (MatrixRole::Accumulator, _) => {
            transfers(p, matrix);
            format!("matrix_load<{columns}, {}, {count}>", register_name(matrix))
        }
        (MatrixRole::A, Root::Workgroup(_)) => format!("{}<{columns}>", side_shared(p, matrix.role)),
        (MatrixRole::A, _) => format!("{}<{columns}>", side_global(p, matrix.role)),
        (MatrixRole::B, Root::Workgroup(_)) => format!("{}<{columns}, {count}>", side_shared(p, matrix.role)),
        (MatrixRole::B, _) => format!("{}<{columns}, {count}>", side_global(p, matrix.role)),
    };
    Ok(Code::call(&function, [address(memory, offset), stride]))
}

/// A stride in what counts bytes of a buffer.
fn wide(root: Root, stride: Code) -> Code {
    match root {
        Root::Binding(_) => Code::call("size_t", [stride]),
        _ => stride,
    }
}

/// Loads and stores of accumulators.
fn transfers(p: &mut P<'_>, matrix: &Matrix) {
    lane_prelude(p);
    scalar_prelude(p, register(matrix));
    p.prelude("matrix_load", || {
        "// The bytes from the first element of an accumulator to part `i`, lines `stride` bytes apart.\n\
         template <bool COLUMNS, typename T> __device__ __forceinline__ size_t matrix_part(uint i, size_t stride) {\n    \
         const uint lane = matrix_lane();\n    \
         const size_t row = lane / 4u + i / 2u % 2u * 8u;\n    \
         const size_t column = lane % 4u * 2u + i % 2u + i / 4u * 8u;\n    \
         return COLUMNS ? column * stride + row * sizeof(T) : row * stride + column * sizeof(T);\n}\n\n\
         // Two neighbours, which are moved together.\n\
         template <typename T> struct alignas(2u * sizeof(T)) matrix_pair {\n    T first, second;\n};\n\n\
         template <bool COLUMNS, typename T, uint N> __device__ __forceinline__ Array<T, N> matrix_load(const void* tile, size_t stride) {\n    \
         Array<T, N> m;\n    \
         for (uint i = 0u; i < N; i += 2u) {\n        \
         const char* at = static_cast<const char*>(tile) + matrix_part<COLUMNS, T>(i, stride);\n        \
         if (COLUMNS) {\n            \
         m[i] = *reinterpret_cast<const T*>(at);\n            \
         m[i + 1u] = *reinterpret_cast<const T*>(at + stride);\n        \
         } else {\n            \
         const matrix_pair<T> pair = *reinterpret_cast<const matrix_pair<T>*>(at);\n            \
         m[i] = pair.first;\n            m[i + 1u] = pair.second;\n        \
         }\n    }\n    return m;\n}\n\n\
         template <bool COLUMNS, typename T, uint N> __device__ __forceinline__ void matrix_store(void* tile, size_t stride, const Array<T, N>& m) {\n    \
         for (uint i = 0u; i < N; i += 2u) {\n        \
         char* at = static_cast<char*>(tile) + matrix_part<COLUMNS, T>(i, stride);\n        \
         if (COLUMNS) {\n            \
         *reinterpret_cast<T*>(at) = m[i];\n            \
         *reinterpret_cast<T*>(at + stride) = m[i + 1u];\n        \
         } else {\n            \
         *reinterpret_cast<matrix_pair<T>*>(at) = matrix_pair<T>{m[i], m[i + 1u]};\n        \
         }\n    }\n}\n"
            .to_owned()
    });
}

pub fn store(
    p: &mut P<'_>,
    matrix: &Matrix,
    memory: (Root, Code),
    [offset, stride, value]: [Code; 3],
    order: MatrixOrder,
) -> Result<String> {
    let (root, count) = (memory.0, parts(p, matrix)?);
    transfers(p, matrix);
    let size = bytes(p, root)?;
    let stride = infix(BinaryOperator::Multiply, wide(root, stride), Code::atom(format!("{size}u")));
    let function = format!("matrix_store<{}, {}, {count}>", order == MatrixOrder::Columns, register_name(matrix));
    Ok(format!("{};", Code::call(&function, [address(memory, offset), stride, value]).text))
}

/// Each element of an accumulator as another type.
pub fn convert(p: &mut P<'_>, to: &Matrix, value: Code) -> Result<Code> {
    let count = parts(p, to)?;
    lane_prelude(p);
    scalar_prelude(p, Scalar::F16);
    let (from, to, function) =
        if to.scalar == Scalar::F16 { ("float", "half", "to_half") } else { ("half", "float", "to_float") };
    super::expr::half_prelude(p, function);
    p.prelude(&format!("matrix_to_{to}"), || {
        format!(
            "template <uint N> __device__ __forceinline__ Array<{to}, N> matrix_to_{to}(const Array<{from}, N>& m) {{\n    \
             Array<{to}, N> r;\n    for (uint i = 0u; i < N; i++) {{\n        r[i] = {function}(m[i]);\n    }}\n    return r;\n}}\n"
        )
    });
    Ok(Code::call(&format!("matrix_to_{to}<{count}>"), [value]))
}

pub fn multiply_add(p: &mut P<'_>, [a, b, c]: [&Matrix; 3], values: [Code; 3]) -> Result<Code> {
    if product(a, b, c).is_none() {
        return Err(p.error("a product of matrices that do not go together"));
    }
    parts(p, a)?;
    parts(p, b)?;
    let count = parts(p, c)?;
    let name = product_function(p, a.scalar, c.scalar);
    Ok(Code::call(&format!("{name}<{count}>"), values))
}

/// The function that multiplies a side of 16 by 16 with one of 16 by `N / 2` elements and adds `N` sums.
pub fn product_function(p: &mut P<'_>, input: Scalar, sum: Scalar) -> String {
    lane_prelude(p);
    let (input, halves) = (if input == Scalar::BF16 { "bf16" } else { "f16" }, sum == Scalar::F16);
    let name = format!("matrix_product_{input}_{}", sum.rust_name());
    scalar_prelude(p, sum);
    p.prelude(&name, || {
        if halves {
            return format!(
                "// a * b + c, eight columns at a time.\n\
                 template <uint N> __device__ __forceinline__ Array<half, N> {name}(const Array<uint, 4>& a, const Array<uint, N / 2u>& b, const Array<half, N>& c) {{\n    \
                 Array<half, N> d;\n    \
                 for (uint i = 0u; i < N; i += 4u) {{\n        \
                 uint low = uint(c[i]) | uint(c[i + 1u]) << 16u;\n        \
                 uint high = uint(c[i + 2u]) | uint(c[i + 3u]) << 16u;\n        \
                 asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%0, %1}}, {{%2, %3, %4, %5}}, {{%6, %7}}, {{%0, %1}};\" : \"+r\"(low), \"+r\"(high) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[i / 2u]), \"r\"(b[i / 2u + 1u]));\n        \
                 d[i] = half(low);\n        d[i + 1u] = half(low >> 16u);\n        d[i + 2u] = half(high);\n        d[i + 3u] = half(high >> 16u);\n    \
                 }}\n    return d;\n}}\n"
            );
        }
        format!(
            "// a * b + c, eight columns at a time.\n\
             template <uint N> __device__ __forceinline__ Array<float, N> {name}(const Array<uint, 4>& a, const Array<uint, N / 2u>& b, const Array<float, N>& c) {{\n    \
             Array<float, N> d = c;\n    \
             for (uint i = 0u; i < N; i += 4u) {{\n        \
             asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.{input}.{input}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};\" : \"+f\"(d[i]), \"+f\"(d[i + 1u]), \"+f\"(d[i + 2u]), \"+f\"(d[i + 3u]) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[i / 2u]), \"r\"(b[i / 2u + 1u]));\n    \
             }}\n    return d;\n}}\n"
        )
    });
    name
}
