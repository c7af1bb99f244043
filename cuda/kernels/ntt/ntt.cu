// Entries of the transforms: see ntt.cuh. An element that is not reduced comes second in a product: mul wants that. Grid: n/ntt_tile blocks (at least one) of ntt_threads threads, with
// 32 * ntt_tile bytes of dynamic shared memory. All vectors are worked on in place.
#include "ntt.cuh"

using namespace sealc2;

// Fills roots[0, count): roots[k] = low[k mod 2^low_log] * high[k >> low_log], both in Montgomery form. minus_inverse is
// -1/r modulo 2^256. One thread a root, any grid.
extern "C" __global__ void __launch_bounds__(256)
ntt_fill_roots(FrRoot* roots, const Fr* low, const Fr* high, uint32_t low_log, uint32_t count, Fr minus_inverse) {
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += stride)
        roots[k] = root_of(mul(low[k & ((1u << low_log) - 1)], high[k >> low_log]), minus_inverse);
}
SEALC2_KERNEL(ntt_fill_roots);

// A pass of a forward transform. The last gives reduced values, multiplied by other's where that is not null.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_forward(Fr* v, NttPass pass, const FrRoot* roots, const Fr* other) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load(x, v, ntt_top);
    block.forward(x, roots);
    if (pass.stride_log > 0) {
        block.store(v, x, block.bottom());
        return;
    }
    block.each(x, block.bottom(), [&](size_t at, const Fr& y) { v[at] = other == nullptr ? reduce(y) : mul(other[at], y); });
}
SEALC2_KERNEL(ntt_forward);

// A pass of an inverse transform, and what finishes it: only what is scaled is reduced.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_inverse(Fr* v, NttPass pass, const FrRoot* roots, NttFinish finish) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load_bottom(x, v);
    block.inverse(x, roots);
    if (finish.kind == ntt_plain) {
        block.store(v, x, ntt_top);
        return;
    }
    block.each(x, ntt_top, [&](size_t at, const Fr& y) {
        const Fr scaled = mul(finish.scale, y);
        v[at] = finish.kind == ntt_scaled ? scaled : sub(mul(finish.other_scale, finish.other[at]), scaled);
    });
}
SEALC2_KERNEL(ntt_inverse);
