// What the threads of a block do together: prefix sums; and copies into shared memory.
#pragma once
#include "../memory.cuh"

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

// copy_unit is copy_async16 through the first cache: a point's 16-byte units share sectors, each of which is fetched once.
SEALC2_DEVICE void copy_unit(uint4* shared, const uint4* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint32_t to = uint32_t(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    copy_async16(shared, from);
#endif
}

} // namespace msm
} // namespace sealc2
