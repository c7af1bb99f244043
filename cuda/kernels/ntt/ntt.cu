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
template <bool shifted>
SEALC2_DEVICE void ntt_forward_pass(uint4* shared, Fr* v, const NttPass& pass, const FrRoot* roots, const Fr* other, const NttShift& shift) {
    const NttBlock block(shared, pass, blockIdx.x);
    Fr x[8];
    block.load(x, v, ntt_top);
    if (shifted) {
        block.raise(x, roots, shift, false, [&](uint32_t at, const Fr& y) { block.write(at, y); });
        block.read_all(x, ntt_top);
    }
    block.forward(x, roots);
    if (pass.stride_log > 0) {
        block.store(v, x, block.bottom());
        return;
    }
    block.each(x, block.bottom(), [&](uint32_t at, const Fr& y) { v[at] = other == nullptr ? reduce(y) : mul(other[at], y); });
}

extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_forward(Fr* v, NttPass pass, const FrRoot* roots, const Fr* other) {
    SEALC2_SHARED(uint4, shared);
    ntt_forward_pass<false>(shared, v, pass, roots, other, NttShift{});
}
SEALC2_KERNEL(ntt_forward);

// The pass below the cut.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_forward_shifted(Fr* v, NttPass pass, const FrRoot* roots, const Fr* other, NttShift shift) {
    SEALC2_SHARED(uint4, shared);
    ntt_forward_pass<true>(shared, v, pass, roots, other, shift);
}
SEALC2_KERNEL(ntt_forward_shifted);

// A pass of an inverse transform, and what finishes it: only what is scaled is reduced.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_inverse(Fr* v, NttPass pass, const FrRoot* roots, NttFinish finish) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass, blockIdx.x);
    Fr x[8];
    if (pass.natural) block.load_reversed(x, v);
    else block.load_bottom(x, v);
    const uint32_t base = (block.group & pass.inside) + pass.coset; // rows are the groups: columns do not matter
    block.inverse(x, roots, pass.column_log, block.bottom(), ntt_top, [&](uint32_t i) { return base + i; });
    if (finish.kind == ntt_plain) {
        block.store(v, x, ntt_top);
        return;
    }
    block.each(x, ntt_top, [&](uint32_t at, const Fr& y) {
        const Fr scaled = mul(finish.scale, y);
        v[at] = finish.kind == ntt_scaled ? scaled : sub(mul(finish.other_scale, finish.other[at]), scaled);
    });
}
SEALC2_KERNEL(ntt_inverse);

// The pass below the cut, which is never the last.
extern "C" __global__ void __launch_bounds__(ntt_threads, ntt_blocks)
ntt_inverse_shifted(Fr* v, NttPass pass, const FrRoot* roots, NttShift shift) {
    SEALC2_SHARED(uint4, shared);
    const NttBlock block(shared, pass, blockIdx.x);
    Fr x[8];
    block.load_bottom(x, v);
    const uint32_t base = block.group & pass.inside;
    block.inverse(x, roots, pass.column_log, block.bottom(), ntt_top, [&](uint32_t i) { return base + i; });
    block.raise(x, roots, shift, true, [&](uint32_t at, const Fr& y) { v[block.place(at)] = y; });
}
SEALC2_KERNEL(ntt_inverse_shifted);

// v = finish.other * finish.other_scale - v * finish.scale, of count elements. One thread an element, any grid.
extern "C" __global__ void __launch_bounds__(256)
ntt_subtract(Fr* v, uint32_t count, NttFinish finish) {
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        v[i] = sub(mul(finish.other_scale, finish.other[i]), mul(finish.scale, v[i]));
}
SEALC2_KERNEL(ntt_subtract);

// The first pass of an inverse transform with c = 1 of values in natural order: five levels. stride_log is log - 5,
// column_log 5. Grid as above; a block has 2 * ntt_threads threads, and 64 * ntt_tile bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(2 * ntt_threads, ntt_blocks / 2)
ntt_inverse_natural(Fr* v, NttPass pass, const FrRoot* roots) {
    SEALC2_SHARED(uint4, shared);
    const uint32_t tile = blockIdx.x, image = uint32_t((uint64_t(__brev(tile)) << (pass.log - ntt_tile_log)) >> 32);
    if (tile > image) return; // the other's block does both
    const bool second = threadIdx.x >= ntt_threads;
    const NttBlock block(shared + (second ? 2 * ntt_tile : 0), pass, second ? image : tile);
    Fr x[8];
    {
        const NttBlock from(shared, pass, second ? tile : image);
        from.load(x, v, ntt_top);
    }
    SEALC2_UNROLL
    for (uint32_t k = 0; k < 8; k++) block.write(__brev(block.index(ntt_top) | k << ntt_top) >> (32 - ntt_tile_log), x[k]);
    __syncthreads();
    block.read_all(x, 0);
    __syncthreads();
    const uint32_t last = pass.column_log - 3;
    block.inverse(x, roots, 0, 0, last, [&](uint32_t i) { return block.place(i) & pass.inside; });
    block.store(v, x, last); // where tile is image, both halves have and store the same
}
SEALC2_KERNEL(ntt_inverse_natural);
