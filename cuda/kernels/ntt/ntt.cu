// Entries of the transforms: see ntt.cuh. Grid: n/ntt_tile blocks (at least one) of ntt_threads threads, with
// 32 * ntt_tile bytes of dynamic shared memory. All vectors are worked on in place.
#include "ntt.cuh"

using namespace sealc2;

// Fills roots[2^low_log, count) from those below: roots[k] = roots[k mod 2^low_log] * high[k >> low_log]. Any grid.
extern "C" __global__ void __launch_bounds__(256)
ntt_fill_roots(Fr* roots, const Fr* high, uint32_t low_log, uint32_t count) {
    const uint32_t stride = gridDim.x * blockDim.x, low = 1u << low_log;
    for (uint32_t k = low + blockIdx.x * blockDim.x + threadIdx.x; k < count; k += stride)
        roots[k] = mul(roots[k & (low - 1)], high[k >> low_log]);
}
SEALC2_KERNEL(ntt_fill_roots);

// A pass of a forward transform.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_forward(Fr* v, NttPass pass, const Fr* roots) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load(x, v, ntt_top);
    block.forward<true>(x, roots, pass.coset);
    block.store_bottom(v, x);
}
SEALC2_KERNEL(ntt_forward);

// A pass of an inverse transform, and what finishes it.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_inverse(Fr* v, NttPass pass, const Fr* roots, NttFinish finish) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load_bottom(x, v);
    block.inverse<true>(x, roots, pass.coset);
    if (finish.kind == ntt_plain) {
        block.store(v, x, ntt_top);
        return;
    }
    // One at a time, through the thread's own places in shared memory: a short loop.
    block.write_all(x, ntt_top);
    SEALC2_ROLL
    for (uint32_t i = block.index(ntt_top); i < ntt_tile; i += 1u << ntt_top) {
        if (!block.holds(i)) continue;
        Fr y = mul(block.read(i), finish.scale);
        if (finish.kind == ntt_subtracted) y = sub(mul(finish.other[block.place(i)], finish.other_scale), y);
        v[block.place(i)] = y;
    }
}
SEALC2_KERNEL(ntt_inverse);

// The last pass of an inverse transform with c = 1 and the first of a forward one on the coset.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_inverse_forward(Fr* v, NttPass pass, const Fr* roots) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load_bottom(x, v);
    block.inverse<true>(x, roots, 0);
    block.forward<false>(x, roots, pass.coset);
    block.store_bottom(v, x);
}
SEALC2_KERNEL(ntt_inverse_forward);

// The last pass of a forward transform on the coset, the product with other's values, and the first pass back.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks - 1)
ntt_multiply(Fr* v, const Fr* other, NttPass pass, const Fr* roots) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass);
    Fr x[8];
    block.load(x, v, ntt_top);
    block.forward<false>(x, roots, pass.coset);
    block.write_all(x, block.bottom());
    __syncthreads();
    SEALC2_ROLL
    for (uint32_t i = block.index(ntt_top); i < ntt_tile; i += 1u << ntt_top)
        if (block.holds(i)) block.write(i, mul(block.read(i), other[block.place(i)]));
    __syncthreads();
    block.read_all(x, block.bottom());
    __syncthreads();
    block.inverse<false>(x, roots, pass.coset);
    block.store(v, x, ntt_top);
}
SEALC2_KERNEL(ntt_multiply);

// v[i] = other[i] * other_scale - v[i] * scale: what finishes a quotient of a single pass.
extern "C" __global__ void __launch_bounds__(256)
ntt_subtract(Fr* v, NttFinish finish, uint32_t count) {
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        v[i] = sub(mul(finish.other[i], finish.other_scale), mul(v[i], finish.scale));
}
SEALC2_KERNEL(ntt_subtract);
