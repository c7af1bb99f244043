// Entries of the sums' parts that do not depend on the curve: selection by bitmaps, digits, sort, pairs.
#include "reduce.cuh"
#include "select.cuh"

using namespace sealc2;
using namespace sealc2::msm;

extern "C" __global__ void msm_count_words(Section section, uint32_t* counts) { count_words(section, counts); }
SEALC2_KERNEL(msm_count_words);

extern "C" __global__ void msm_write_lists(Section section, const uint32_t* counts, uint32_t* ones, uint32_t one_capacity, uint32_t* field_points,
                                           uint32_t* field_scalars, uint32_t field_capacity, uint32_t* control) {
    write_lists(section, counts, ones, one_capacity, field_points, field_scalars, field_capacity, control);
}
SEALC2_KERNEL(msm_write_lists);

extern "C" __global__ void msm_set_ones(const uint32_t* ones, uint32_t count, uint32_t slots, Buckets buckets, uint32_t bucket) {
    set_ones(ones, count, slots, buckets, bucket);
}
SEALC2_KERNEL(msm_set_ones);

extern "C" __global__ void __launch_bounds__(256) msm_write_digits(const Fr* scalars, const uint32_t* index, uint32_t count, Windows windows, uint32_t first, uint32_t* digits) {
    write_digits(scalars, index, count, windows, first, digits);
}
SEALC2_KERNEL(msm_write_digits);

extern "C" __global__ void __launch_bounds__(1024) msm_count_partitions(const uint32_t* digits, uint32_t count, Windows windows, uint32_t partitions, uint32_t* counts) {
    count_partitions(digits, count, windows, partitions, counts);
}
SEALC2_KERNEL(msm_count_partitions);

extern "C" __global__ void __launch_bounds__(1024) msm_scan_rows(uint32_t* counts, uint32_t* copy, uint32_t count, uint32_t* carry) {
    scan_rows(counts, copy, count, carry);
}
SEALC2_KERNEL(msm_scan_rows);

extern "C" __global__ void __launch_bounds__(scatter_threads, 1) msm_scatter_entries(const uint32_t* digits, const uint32_t* index, uint32_t count,
                                                                                     Windows windows, uint32_t partitions,
                                                                                     uint32_t* places, uint2* entries, uint32_t capacity, uint32_t* control) {
    scatter_entries(digits, index, count, windows, partitions, places, entries, capacity, control);
}
SEALC2_KERNEL(msm_scatter_entries);

extern "C" __global__ void __launch_bounds__(even_threads, 1) msm_scatter_even(const uint32_t* digits, const uint32_t* index, uint32_t count,
                                                                                  Windows windows, uint32_t partitions,
                                                                                  uint32_t* filled, uint32_t room, uint2* entries, uint32_t* control) {
    scatter_even(digits, index, count, windows, partitions, filled, room, entries, control);
}
SEALC2_KERNEL(msm_scatter_even);

extern "C" __global__ void __launch_bounds__(bucket_threads, 1) msm_sort_partition(const uint2* entries, const uint32_t* starts, uint32_t room, uint32_t low_bits,
                                                                                   uint32_t capacity, uint32_t slots, uint32_t first_pair, uint2* pairs,
                                                                                   uint32_t pair_capacity, Buckets buckets, uint32_t* large, uint32_t* control) {
    sort_partition(entries, starts, room, low_bits, capacity, slots, first_pair, pairs, pair_capacity, buckets, large, control);
}
SEALC2_KERNEL(msm_sort_partition);

extern "C" __global__ void __launch_bounds__(1024) msm_count_large(const uint2* entries, const uint32_t* starts, uint32_t low_bits, const uint32_t* large,
                                                                   const uint32_t* control, uint32_t* places) {
    count_large(entries, starts, low_bits, large, control, places);
}
SEALC2_KERNEL(msm_count_large);

extern "C" __global__ void __launch_bounds__(1024) msm_scan_large(uint32_t low_bits, uint32_t slots, uint32_t first_pair, uint32_t pair_capacity, Buckets buckets,
                                                                  const uint32_t* large, uint32_t* control, uint32_t* places, uint32_t* size) {
    scan_large(low_bits, slots, first_pair, pair_capacity, buckets, large, control, places, size);
}
SEALC2_KERNEL(msm_scan_large);

extern "C" __global__ void __launch_bounds__(1024) msm_scatter_large(const uint2* entries, const uint32_t* starts, uint32_t low_bits, uint32_t slots, uint2* pairs,
                                                                     Buckets buckets, const uint32_t* large, const uint32_t* control, uint32_t* places,
                                                                     const uint32_t* size) {
    scatter_large(entries, starts, low_bits, slots, pairs, buckets, large, control, places, size);
}
SEALC2_KERNEL(msm_scatter_large);

extern "C" __global__ void __launch_bounds__(pair_threads) msm_next_pairs(Buckets buckets, uint32_t bucket_count, uint32_t slots, uint2* pairs, uint32_t capacity,
                                                                          Large* large, uint32_t* control) {
    next_pairs(buckets, bucket_count, slots, pairs, capacity, large, control);
}
SEALC2_KERNEL(msm_next_pairs);

extern "C" __global__ void __launch_bounds__(256) msm_large_pairs(uint2* pairs, uint32_t capacity, const Large* large, uint32_t* control) {
    large_pairs(pairs, capacity, large, control);
}
SEALC2_KERNEL(msm_large_pairs);

extern "C" __global__ void __launch_bounds__(256) msm_merge_pairs(Buckets buckets, uint32_t bucket, uint32_t bucket_count, uint32_t slots, uint32_t slot,
                                                                  uint32_t infinity, uint2* pairs) {
    merge_pairs(buckets, bucket, bucket_count, slots, slot, infinity, pairs);
}
SEALC2_KERNEL(msm_merge_pairs);

extern "C" __global__ void __launch_bounds__(256) msm_fold_pairs(const Fold* folds, uint2* pairs) { fold_pairs(folds, pairs); }
SEALC2_KERNEL(msm_fold_pairs);
