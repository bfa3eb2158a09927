// What NVRTC and a GPU give to CUDA C, for a C++ compiler and a CPU: only what trefoil's emitter writes, so that a text that asks for more does not compile.
//
// Functions have CUDA's results, also where C++ leaves them open. They are in a namespace; each kernel is in one of its own, whose overloads for vectors would hide them, and names them there (DEVICE_NAMES). Threads are the
// fibers of machine.cpp. What stands for inline PTX is in the namespace `ptx`, and is called in its place.

#define __global__ static
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// One block runs at a time. The machine fills the section before each with what no kernel can want.
#define __shared__ static __attribute__((section("workgroup_memory")))
#define __CUDA_ARCH__ 900

#define VECTORS(scalar, name, size)                                                                                    \
    struct __align__(2 * size) name##2 { scalar x, y; };                                                               \
    struct name##3 { scalar x, y, z; };                                                                                \
    struct __align__(4 * size) name##4 { scalar x, y, z, w; };                                                         \
    inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                                               \
    inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }                                  \
    inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
VECTORS(signed char, char, 1)
VECTORS(unsigned char, uchar, 1)
VECTORS(short, short, 2)
VECTORS(unsigned short, ushort, 2)
VECTORS(int, int, 4)
VECTORS(unsigned int, uint, 4)
VECTORS(float, float, 4)
#undef VECTORS

// The thread that runs; the machine says which.
extern uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace fibers {

// What the lanes of a warp brought to an operation.
struct Gathered {
    unsigned long long values[32];
    // Those that took part.
    unsigned lanes;
};

// Waits for all threads of the block.
void barrier();
// Waits for the lanes of a mask, which must all have come to the same operation.
const Gathered& together(const char* operation, unsigned mask, unsigned long long value);
// The lane of the thread that runs.
unsigned lane();

template <typename To, typename From> inline To bits(From from) {
    To to = {};
    __builtin_memcpy(&to, &from, sizeof(to) < sizeof(from) ? sizeof(to) : sizeof(from));
    return to;
}

// What a lane that is not there gives to who asks it.
constexpr unsigned long long NOBODY = 0x5a5a5a5a5a5a5a5aull;

template <typename T> inline T from_lane(const Gathered& all, unsigned lane) {
    return bits<T>(all.lanes >> lane & 1u ? all.values[lane] : NOBODY);
}

// A kernel's parameter out of the list of a launch: buffers are pointers, the parameter block is a value.
template <typename T> struct Parameter {
    static T of(void* at) { return *static_cast<T*>(at); }
};
template <typename T> struct Parameter<T*> {
    static T* of(void* at) { return static_cast<T*>(at); }
};
template <int...> struct Numbers {};
template <int N, int... Rest> struct Count : Count<N - 1, N - 1, Rest...> {};
template <int... All> struct Count<0, All...> {
    typedef Numbers<All...> Type;
};
template <typename... T, int... N> inline void call(void (*kernel)(T...), void** at, Numbers<N...>) {
    kernel(Parameter<T>::of(at[N])...);
}
template <typename... T> inline void call(void (*kernel)(T...), void** at) {
    call(kernel, at, typename Count<sizeof...(T)>::Type());
}

} // namespace fibers

namespace device {

inline void memcpy(void* to, const void* from, unsigned long size) { __builtin_memcpy(to, from, size); }

#define OF_ONE(type, name) inline type name(type x) { return __builtin_##name(x); }
#define OF_TWO(type, name) inline type name(type x, type y) { return __builtin_##name(x, y); }
OF_ONE(float, fabsf) OF_ONE(float, floorf) OF_ONE(float, ceilf) OF_ONE(float, rintf) OF_ONE(float, truncf)
OF_ONE(float, roundf) OF_ONE(float, sqrtf) OF_ONE(float, expf) OF_ONE(float, exp2f) OF_ONE(float, expm1f)
OF_ONE(float, logf) OF_ONE(float, log2f) OF_ONE(float, log10f) OF_ONE(float, log1pf) OF_ONE(float, sinf)
OF_ONE(float, cosf) OF_ONE(float, tanf) OF_ONE(float, asinf) OF_ONE(float, acosf) OF_ONE(float, atanf)
OF_ONE(float, sinhf) OF_ONE(float, coshf) OF_ONE(float, tanhf) OF_ONE(float, asinhf) OF_ONE(float, acoshf)
OF_ONE(float, atanhf) OF_ONE(float, cbrtf) OF_ONE(float, erff)
OF_TWO(float, fminf) OF_TWO(float, fmaxf) OF_TWO(float, fmodf) OF_TWO(float, powf) OF_TWO(float, atan2f)
OF_TWO(float, hypotf) OF_TWO(float, copysignf)
OF_ONE(double, fabs) OF_ONE(double, floor) OF_ONE(double, ceil) OF_ONE(double, rint) OF_ONE(double, trunc)
OF_ONE(double, sqrt) OF_ONE(double, exp) OF_ONE(double, exp2) OF_ONE(double, expm1) OF_ONE(double, log)
OF_ONE(double, log2) OF_ONE(double, log10) OF_ONE(double, log1p) OF_ONE(double, sin) OF_ONE(double, cos)
OF_ONE(double, tan) OF_ONE(double, asin) OF_ONE(double, acos) OF_ONE(double, atan) OF_ONE(double, sinh)
OF_ONE(double, cosh) OF_ONE(double, tanh) OF_ONE(double, asinh) OF_ONE(double, acosh) OF_ONE(double, atanh)
OF_ONE(double, erf)
OF_TWO(double, fmin) OF_TWO(double, fmax) OF_TWO(double, fmod) OF_TWO(double, pow) OF_TWO(double, atan2)
#undef OF_ONE
#undef OF_TWO
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float rsqrtf(float x) { return float(1.0 / __builtin_sqrt(double(x))); }

// A product and a sum, rounded down: a product is exact in doubles, and the sum's error tells on which side of it the nearest number lies.
inline float __fmaf_rd(float x, float y, float z) {
    const float nearest = fmaf(x, y, z);
    const double product = double(x) * double(y), sum = product + double(z), part = sum - product;
    const double error = (product - (sum - part)) + (double(z) - part);
    const bool above = double(nearest) > sum || (double(nearest) == sum && error < 0);
    return above ? __builtin_nextafterf(nearest, -__builtin_inff()) : nearest;
}
// Between 0 and 1, and 0 of NaN.
inline float __saturatef(float x) { return x > 0.0f ? __builtin_fminf(x, 1.0f) : 0.0f; }

// Operations that are not contracted; here none is.
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }

// Nearest towards zero, saturating, and 0 of NaN.
inline int __float2int_rz(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : int(x);
}
inline unsigned __float2uint_rz(float x) { return !(x > 0.0f) ? 0u : x >= 4294967296.0f ? 4294967295u : unsigned(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) {
        y |= (x >> i & 1u) << (31 - i);
    }
    return y;
}
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }

#define ORDERED(type)                                                                                                  \
    inline type min(type x, type y) { return y < x ? y : x; }                                                          \
    inline type max(type x, type y) { return x < y ? y : x; }
ORDERED(int) ORDERED(unsigned) ORDERED(long long) ORDERED(unsigned long long)
#undef ORDERED

// Fibers take turns where they wait and nowhere else, so that what stands here is atomic.
#define ATOMIC(name, type, next)                                                                                       \
    inline type name(type* at, type value) {                                                                           \
        const type old = *(volatile type*)at;                                                                          \
        *(volatile type*)at = next;                                                                                    \
        return old;                                                                                                    \
    }                                                                                                                  \
    inline type name##_block(type* at, type value) { return name(at, value); }
#define ATOMICS(type)                                                                                                  \
    ATOMIC(atomicMin, type, value < old ? value : old)                                                                 \
    ATOMIC(atomicMax, type, old < value ? value : old)                                                                 \
    ATOMIC(atomicAnd, type, old & value)                                                                               \
    ATOMIC(atomicOr, type, old | value)                                                                                \
    ATOMIC(atomicXor, type, old ^ value)                                                                               \
    ATOMIC(atomicExch, type, value)                                                                                    \
    inline type atomicCAS(type* at, type expected, type value) {                                                       \
        const type old = *(volatile type*)at;                                                                          \
        if (old == expected) {                                                                                         \
            *(volatile type*)at = value;                                                                               \
        }                                                                                                              \
        return old;                                                                                                    \
    }                                                                                                                  \
    inline type atomicCAS_block(type* at, type expected, type value) { return atomicCAS(at, expected, value); }
ATOMICS(int)
ATOMICS(unsigned)
ATOMIC(atomicAdd, int, int(unsigned(old) + unsigned(value)))
ATOMIC(atomicAdd, unsigned, old + value)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicExch, float, value)
#undef ATOMICS
#undef ATOMIC

inline void __syncthreads() { fibers::barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { fibers::together("__syncwarp", mask, 0); }

inline int __any_sync(unsigned mask, int x) {
    const fibers::Gathered& all = fibers::together("__any_sync", mask, x != 0);
    int any = 0;
    for (int i = 0; i < 32; i++) {
        any |= int(all.lanes >> i & 1u & unsigned(all.values[i]));
    }
    return any;
}
inline int __all_sync(unsigned mask, int x) {
    const fibers::Gathered& all = fibers::together("__all_sync", mask, x != 0);
    int every = 1;
    for (int i = 0; i < 32; i++) {
        every &= int(~(all.lanes >> i) & 1u) | int(all.values[i]);
    }
    return every;
}
inline unsigned __ballot_sync(unsigned mask, int x) {
    const fibers::Gathered& all = fibers::together("__ballot_sync", mask, x != 0);
    unsigned votes = 0;
    for (int i = 0; i < 32; i++) {
        votes |= (all.lanes >> i & 1u & unsigned(all.values[i])) << i;
    }
    return votes;
}

// Of the other lane's number PTX takes five bits; who asks past an end gets its own value.
#define SHUFFLES(type)                                                                                                 \
    inline type __shfl_sync(unsigned mask, type x, int lane) {                                                         \
        const fibers::Gathered& all = fibers::together("__shfl_sync", mask, fibers::bits<unsigned long long>(x));      \
        return fibers::from_lane<type>(all, unsigned(lane) & 31u);                                                     \
    }                                                                                                                  \
    inline type __shfl_xor_sync(unsigned mask, type x, int lanes) {                                                    \
        const fibers::Gathered& all = fibers::together("__shfl_xor_sync", mask, fibers::bits<unsigned long long>(x));  \
        return fibers::from_lane<type>(all, fibers::lane() ^ (unsigned(lanes) & 31u));                                 \
    }                                                                                                                  \
    inline type __shfl_up_sync(unsigned mask, type x, unsigned delta) {                                                \
        const fibers::Gathered& all = fibers::together("__shfl_up_sync", mask, fibers::bits<unsigned long long>(x));   \
        delta &= 31u;                                                                                                  \
        return fibers::lane() < delta ? x : fibers::from_lane<type>(all, fibers::lane() - delta);                      \
    }                                                                                                                  \
    inline type __shfl_down_sync(unsigned mask, type x, unsigned delta) {                                              \
        const fibers::Gathered& all = fibers::together("__shfl_down_sync", mask, fibers::bits<unsigned long long>(x)); \
        const unsigned lane = fibers::lane() + (delta & 31u);                                                          \
        return lane > 31u ? x : fibers::from_lane<type>(all, lane);                                                    \
    }
SHUFFLES(int) SHUFFLES(unsigned) SHUFFLES(long long) SHUFFLES(unsigned long long) SHUFFLES(float) SHUFFLES(double)
#undef SHUFFLES

#define REDUCE(name, type, next)                                                                                       \
    inline type name(unsigned mask, type x) {                                                                          \
        const fibers::Gathered& all = fibers::together(#name, mask, fibers::bits<unsigned long long>(x));              \
        bool first = true;                                                                                             \
        type sum = {};                                                                                                 \
        for (int i = 0; i < 32; i++) {                                                                                 \
            if (all.lanes >> i & 1u) {                                                                                 \
                const type value = fibers::bits<type>(all.values[i]);                                                  \
                sum = first ? value : next;                                                                            \
                first = false;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
REDUCE(__reduce_add_sync, int, int(unsigned(sum) + unsigned(value))) REDUCE(__reduce_add_sync, unsigned, sum + value)
REDUCE(__reduce_min_sync, int, min(sum, value)) REDUCE(__reduce_min_sync, unsigned, min(sum, value))
REDUCE(__reduce_max_sync, int, max(sum, value)) REDUCE(__reduce_max_sync, unsigned, max(sum, value))
// Of bits there are those of words alone.
REDUCE(__reduce_and_sync, unsigned, sum & value) REDUCE(__reduce_or_sync, unsigned, sum | value)
REDUCE(__reduce_xor_sync, unsigned, sum ^ value)
#undef REDUCE

} // namespace device

namespace ptx {

// `"" : "+r"(x)`, which hides a value from the compiler.
template <typename T> inline void hidden(T&) {}
inline void laneid(unsigned& to) { to = fibers::lane(); }
inline void cvt_f32_f16(float& to, unsigned short from) {
    const unsigned exponent = from >> 10 & 31u, part = from & 1023u;
    // A part of a number of 24 bits is exact.
    float value = float(part | (exponent != 0 ? 1024u : 0u));
    for (unsigned i = exponent == 0 ? 1u : exponent; i < 25u; i++) {
        value *= 0.5f;
    }
    for (unsigned i = 25u; i < exponent; i++) {
        value *= 2.0f;
    }
    unsigned bits = fibers::bits<unsigned>(value);
    if (exponent == 31u) {
        bits = part != 0 ? 0x7fffffffu : 0x7f800000u;
    }
    to = fibers::bits<float>(bits | (from & 0x8000u) << 16);
}
inline void cvt_rn_f16_f32(unsigned short& to, float from) {
    const unsigned all = fibers::bits<unsigned>(from), sign = all >> 16 & 0x8000u, bits = all & 0x7fffffffu;
    if (bits > 0x7f800000u) {
        to = 0x7fff;
        return;
    }
    // Adding a power of two rounds at the last place of what a half below the normal ones has.
    if (bits < 0x38800000u) {
        const float sum = fibers::bits<float>(bits) + 0.5f;
        to = (unsigned short)(sign | (fibers::bits<unsigned>(sum) - 0x3f000000u));
        return;
    }
    const unsigned rounded = (bits + 0xfffu + (bits >> 13 & 1u)) >> 13;
    to = (unsigned short)(sign | (rounded >= 0x23c00u ? 0x7c00u : rounded - 0x1c000u));
}
inline void cvt_rn_bf16_f32(unsigned short& to, float from) {
    const unsigned bits = fibers::bits<unsigned>(from);
    to = from != from ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
inline void ex2_approx_ftz_f32(float& to, float from) { to = flushed(__builtin_exp2f(flushed(from))); }
inline void sqrt_approx_f32(float& to, float from) { to = __builtin_sqrtf(from); }
inline void dp4a_s32(unsigned& to, unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) {
        c += unsigned(int((signed char)(a >> i)) * int((signed char)(b >> i)));
    }
    to = c;
}
inline void dp4a_s32(int& to, unsigned a, unsigned b, int c) {
    unsigned sum;
    dp4a_s32(sum, a, b, unsigned(c));
    to = int(sum);
}
inline void dp4a_u32(unsigned& to, unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) {
        c += (a >> i & 255u) * (b >> i & 255u);
    }
    to = c;
}

} // namespace ptx

// What a kernel's namespace knows of `device`: its own overloads come beside these.
#define DEVICE_NAMES                                                                                                   \
    using device::memcpy, device::min, device::max;                                                                    \
    using device::fabsf, device::floorf, device::ceilf, device::rintf, device::truncf, device::roundf, device::sqrtf,  \
        device::expf, device::exp2f, device::expm1f, device::logf, device::log2f, device::log10f, device::log1pf,      \
        device::sinf, device::cosf, device::tanf, device::asinf, device::acosf, device::atanf, device::sinhf,          \
        device::coshf, device::tanhf, device::asinhf, device::acoshf, device::atanhf, device::cbrtf, device::erff,     \
        device::fminf, device::fmaxf, device::fmodf, device::powf, device::atan2f, device::hypotf, device::copysignf,  \
        device::fmaf, device::rsqrtf, device::__fmaf_rd, device::__saturatef;                                          \
    using device::fabs, device::floor, device::ceil, device::rint, device::trunc, device::sqrt, device::exp,           \
        device::exp2, device::expm1, device::log, device::log2, device::log10, device::log1p, device::sin,             \
        device::cos, device::tan, device::asin, device::acos, device::atan, device::sinh, device::cosh, device::tanh,  \
        device::asinh, device::acosh, device::atanh, device::erf, device::fmin, device::fmax, device::fmod,            \
        device::pow, device::atan2, device::fma;                                                                       \
    using device::__fadd_rn, device::__fsub_rn, device::__fmul_rn, device::__fdiv_rn, device::__fsqrt_rn,              \
        device::__dadd_rn, device::__dsub_rn, device::__dmul_rn, device::__ddiv_rn, device::__dsqrt_rn;                \
    using device::__float2int_rz, device::__float2uint_rz, device::__popc, device::__clz, device::__ffs,               \
        device::__brev, device::__mulhi, device::__umulhi;                                                             \
    using device::atomicAdd, device::atomicMin, device::atomicMax, device::atomicAnd, device::atomicOr,                \
        device::atomicXor, device::atomicExch, device::atomicCAS, device::atomicAdd_block, device::atomicMin_block,    \
        device::atomicMax_block, device::atomicAnd_block, device::atomicOr_block, device::atomicXor_block,             \
        device::atomicExch_block, device::atomicCAS_block;                                                             \
    using device::__syncthreads, device::__syncwarp, device::__any_sync, device::__all_sync, device::__ballot_sync,    \
        device::__shfl_sync, device::__shfl_xor_sync, device::__shfl_up_sync, device::__shfl_down_sync,                \
        device::__reduce_add_sync, device::__reduce_min_sync, device::__reduce_max_sync, device::__reduce_and_sync,    \
        device::__reduce_or_sync, device::__reduce_xor_sync;
