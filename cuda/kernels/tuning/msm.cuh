// Numbers of msm/, by what was measured on an H200. They change times, never results.
#pragma once

namespace sealc2 {
namespace msm {

// Scalars that a thread of write_digits takes at a time.
constexpr int digit_items = 4;

// Digits that a thread of scatter_entries holds in registers.
constexpr int scatter_items = 16;
constexpr int scatter_threads = 1024; // at most
constexpr int even_items = 32;     // the same of scatter_even; with even_threads, at most 2^15 a tile
constexpr int even_threads = 1024; // at most
constexpr int bucket_threads = 1024; // of sort_partition, at most

// Buckets that a block of next_pairs looks at, and the number of pairs above which a bucket's pairs are written by the
// whole grid in place of one block.
constexpr int pair_threads = 256;
constexpr int pair_buckets = 1024;
constexpr int pair_limit = 4096;

// Threads of a block of the tree's kernels, and blocks that fit on a multiprocessor by their registers.
template <class F> struct Tree;
struct TreeG1 {
    static constexpr int threads = 128, forward_blocks = 5, backward_blocks = 4;
};
struct TreeG2 {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 // 64 KiB of shared memory
    static constexpr int threads = 32;
#else
    static constexpr int threads = 64;
#endif
    static constexpr int forward_blocks = 4, backward_blocks = 4;
};
constexpr int invert_threads = 32;
constexpr int total_threads = 128; // of a block of sum_list

} // namespace msm
} // namespace sealc2
