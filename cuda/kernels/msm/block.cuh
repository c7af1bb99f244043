// What the threads of a block do together: prefix sums.
#pragma once
#include "../device.cuh"

namespace sealc2 {
namespace msm {

constexpr int max_warps = 32;

// exclusive_scan replaces the block's values, one a thread, by the sum of those of lower threads; total gets the
// whole sum. All threads of the block come, a multiple of 32. sums is shared memory for max_warps + 1 words.
SEALC2_DEVICE uint32_t exclusive_scan(uint32_t value, uint32_t* sums, uint32_t& total) {
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    uint32_t sum = value;
    SEALC2_UNROLL
    for (int d = 1; d < 32; d <<= 1) {
        const uint32_t below = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= uint32_t(d)) sum += below;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        uint32_t s = lane < warps ? sums[lane] : 0;
        SEALC2_UNROLL
        for (int d = 1; d < 32; d <<= 1) {
            const uint32_t below = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= uint32_t(d)) s += below;
        }
        if (lane < warps) sums[lane] = s;
        if (lane == 31) sums[max_warps] = s;
    }
    __syncthreads();
    total = sums[max_warps];
    const uint32_t before = warp > 0 ? sums[warp - 1] : 0;
    __syncthreads(); // sums may be used again at once
    return before + sum - value;
}

} // namespace msm
} // namespace sealc2
