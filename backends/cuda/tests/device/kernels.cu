// The kernels of the device rules. The text before this defines PARAMETERS, the last argument's declaration, and P, which reads
// one of its fields: the block comes by value or by pointer.

struct Params { unsigned len; float scale; unsigned unused[2]; };
struct Table { unsigned len; unsigned unused[3]; unsigned words[31][4]; };

extern "C" __global__ void add(const float* a, const float* b, float* c, PARAMETERS(Params)) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < P(len)) { c[i] = (a[i] + b[i]) * P(scale); }
}

extern "C" __global__ void rotate(const float* x, float* y, PARAMETERS(Params)) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < P(len)) { y[i] = x[(i + 1u) % P(len)] * P(scale); }
}

extern "C" __global__ void table(unsigned* y, PARAMETERS(Table)) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < P(len)) { y[i] = P(words)[i % 31u][0]; }
}
