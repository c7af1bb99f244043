// Which values of a vector are one, and which neither zero nor one, as bitmaps.
//
// Algorithm. A lane has an element, and a warp's votes are words of the bitmaps; kinds_items words are read before the first
// is looked at, so that enough reads are under way. An element that is not below r is reported by its number.
//
// Cost: 32 bytes read an element, a quarter of a byte written. Floor for 2^27 elements: 4.3 GB, 1.07 ms at 4 TB/s.
#pragma once
#include "../field/fr.cuh"
#include "../tuning/kinds.cuh"

namespace sealc2 {

// kinds_mark writes bit i % 32 of word i / 32 of ones and of fields for elements [0, count), Montgomery form, and zeros up to
// `words` words, the bits of a range that has begun. failed becomes the lowest of first + i whose element is not below r,
// if it was not lower already; the bits of such an element say nothing. A warp takes kinds_items words at a time; any grid
// of whole warps.
SEALC2_DEVICE void kinds_mark(const Fr* elements, uint32_t first, uint32_t count, uint32_t words, uint32_t* ones, uint32_t* fields, uint32_t* failed) {
    const uint32_t lane = threadIdx.x & 31, step = (gridDim.x * blockDim.x >> 5) * kinds_items;
    for (uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x >> 5) * kinds_items; at < words; at += step) {
        Fr x[kinds_items];
        SEALC2_UNROLL
        for (int k = 0; k < kinds_items; k++) {
            const uint32_t i = (at + k) * 32 + lane;
            const uint4* const from = reinterpret_cast<const uint4*>(elements + i);
            uint4 low = make_uint4(0, 0, 0, 0), high = low;
            if (i < count) {
                low = from[0];
                high = from[1];
            }
            x[k] = Fr{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        }
        uint32_t one = 0, field = 0;
        SEALC2_UNROLL
        for (int k = 0; k < kinds_items; k++) {
            uint32_t m[8], less[8];
            Montgomery<Fr>::load_modulus(m);
            if (sub_limbs<8>(less, x[k].limb, m) == 0) atomicMin(failed, first + (at + k) * 32 + lane);
            const bool is_one = eq(x[k], Fr::one());
            const uint32_t o = __ballot_sync(0xffffffffu, is_one), f = __ballot_sync(0xffffffffu, !is_one && !is_zero(x[k]));
            if (lane == uint32_t(k)) {
                one = o;
                field = f;
            }
        }
        if (lane < kinds_items && at + lane < words) {
            ones[at + lane] = one;
            fields[at + lane] = field;
        }
    }
}

} // namespace sealc2
