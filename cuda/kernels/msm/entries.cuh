// Entries of the sums' parts that depend on the curve: MSM_ENTRIES(g1, Fp) defines msm_forward_g1 and so on.
#pragma once
#include "reduce.cuh"

#define MSM_ENTRIES(group, F)                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(Tree<F>::threads, Tree<F>::forward_blocks)                                                              \
        msm_forward_##group(const uint4* input, uint4* pool, uint32_t inputs, const uint2* pairs, uint32_t count, uint4* prefixes, uint4* totals,        \
                            uint32_t steps, uint32_t threads) {                                                                                          \
        forward(Points<F>{input, pool, inputs}, pairs, count, prefixes, totals, steps, threads);                                                         \
    }                                                                                                                                                    \
    SEALC2_KERNEL(msm_forward_##group);                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(invert_threads) msm_invert_##group(uint4* totals, uint4* kept, uint32_t threads, uint32_t share) {      \
        invert<F>(totals, kept, threads, share);                                                                                                         \
    }                                                                                                                                                    \
    SEALC2_KERNEL(msm_invert_##group);                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(Tree<F>::threads, Tree<F>::backward_blocks)                                                             \
        msm_backward_##group(const uint4* input, uint4* pool, uint32_t inputs, const uint2* pairs, uint32_t count, const uint4* prefixes,                \
                             const uint4* totals, uint32_t first_slot, uint32_t steps, uint32_t threads) {                                               \
        backward(Points<F>{input, pool, inputs}, pairs, count, prefixes, totals, first_slot, steps, threads);                                            \
    }                                                                                                                                                    \
    SEALC2_KERNEL(msm_backward_##group);                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                                                                    \
        msm_collect_##group(const uint4* input, uint4* pool, uint32_t inputs, Buckets buckets, uint32_t bucket, uint32_t count, uint32_t padded,         \
                            uint32_t first_slot) {                                                                                                       \
        collect(Points<F>{input, pool, inputs}, buckets, bucket, count, padded, first_slot);                                                             \
    }                                                                                                                                                    \
    SEALC2_KERNEL(msm_collect_##group);                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(total_threads)                                                                                          \
        msm_sum_list_##group(const uint4* input, uint4* pool, uint32_t inputs, const List* lists, Xyzz<F>* sums) {                                       \
        sum_list(Points<F>{input, pool, inputs}, lists, sums);                                                                                           \
    }                                                                                                                                                    \
    SEALC2_KERNEL(msm_sum_list_##group)
