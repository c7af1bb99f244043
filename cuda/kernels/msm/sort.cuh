// From scalars to pairs: digits, their sort by bucket in two passes, and the first pairs of every bucket.
//
// A scalar s is taken as s or r - s, whichever is below r/2, so 254 bits and a sign; plus the bias, the sum of
// 2^(offset + bits - 1) over the windows, so that a window's digit is its bits minus 2^(bits - 1) and needs no carry.
// Digit d goes to bucket |d| - 1 with the point or its negative; zeros go nowhere.
//
// The sort's first pass splits the digits of the windows of a group by the high bits of their bucket, through tiles in shared
// memory; its second pass sorts each partition by the low bits in shared memory, one block a partition, and writes what the
// tree of additions starts from: all pairs of neighbours in a bucket, packed, and for each bucket where its pairs are, how
// many, and the odd point if there is one. Buckets' order among the pairs does not matter, so each partition takes its
// place by one atomic addition. Digits are first taken to be spread evenly (scatter_even); where they are not, partitions are
// counted (count_partitions, scatter_entries), and one that exceeds a block's memory, as skewed scalars make them, is counted,
// scanned and scattered by the whole grid through global memory (count_large and so on).
//
// Cost an entry: 4 bytes written for the digit; 4 read (8 where partitions are counted first) and 8 written in the first pass;
// 8 read (twice, the second time from the cache) and 4 written in the second: 28 bytes, 0.9 ms for 2^27 entries at
// 4.3 TB/s. Measured: 2.3 ms, bound by runs written and by shared memory's atomics; see docs/kernels.md.
#pragma once
#include "block.cuh"
#include "points.cuh"

namespace sealc2 {
namespace msm {

constexpr int max_windows = 48;

struct Window {
    uint16_t offset, bits; // of the scalar
    uint32_t bucket;       // the window's first bucket, among those of its group, a multiple of 2^low_bits
};

struct Windows {
    uint32_t count;
    uint32_t low_bits; // of a bucket's number, that are the same partition
    uint32_t bias[8];
    Window window[max_windows];
};

// A digit's word: bucket within the window, and the sign; none for zero.

// write_digits writes digits[w - first][i] of scalar i for each window from the first-th on; scalars are in Montgomery form.
// index names the scalars where it is not null. A warp takes digit_items * 32 neighbours, since each window is a stream of its
// own to memory, and short pieces of many streams are slow.
SEALC2_DEVICE void write_digits(const Fr* scalars, const uint32_t* index, uint32_t count, const Windows& windows, uint32_t first, uint32_t* digits) {
    constexpr uint32_t piece = 32 * digit_items;
    const uint32_t lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, step = (gridDim.x * blockDim.x >> 5) * piece;
    for (uint32_t at = warp * piece + lane; at - lane < count; at += step) {
        uint32_t k[digit_items][9];
        uint32_t negatives = 0;
        SEALC2_UNROLL
        for (int q = 0; q < digit_items; q++) {
            const uint32_t i = min(at + 32 * q, count - 1);
            // Montgomery's reduction alone takes the form off.
            uint32_t T[16] = {}, m[8], d[8];
            load_words<8>(T, reinterpret_cast<const uint4*>(scalars + (index ? index[i] : i)), 1);
            const Fr s = reduce(Montgomery<Fr>::reduce_wide(T));
            Montgomery<Fr>::load_modulus(m);
            sub_limbs<8>(m, m, s.limb);
            const bool negative = sub_limbs<8>(d, m, s.limb) != 0; // r - s < s
            SEALC2_UNROLL
            for (int j = 0; j < 8; j++) d[j] = negative ? m[j] : s.limb[j];
            add_limbs<8>(k[q], d, windows.bias);
            k[q][8] = 0;
            negatives |= uint32_t(negative) << q;
        }
        uint32_t w = first;
        uint32_t* to = digits + at;
        SEALC2_UNROLL
        for (int j = 0; j < 8; j++) {
            // The windows that begin in word j.
            SEALC2_ROLL
            for (; w < windows.count && windows.window[w].offset < 32 * (j + 1); w++, to += count) {
                const uint32_t half = 1u << (windows.window[w].bits - 1);
                SEALC2_UNROLL
                for (int q = 0; q < digit_items; q++) {
                    const uint32_t value = __funnelshift_r(k[q][j], k[q][j + 1], windows.window[w].offset) & (2 * half - 1);
                    const bool below = value < half, negative = (negatives >> q & 1) != 0;
                    const uint32_t bucket = (below ? half - value : value - half) - 1; // all ones for digit 0
                    if (at + 32 * q < count) to[32 * q] = bucket == none ? none : bucket | (below != negative ? sign_bit : 0u);
                }
            }
        }
    }
}

// count_partitions adds to counts[partition] the digits of window blockIdx.y.
SEALC2_DEVICE void count_partitions(const uint32_t* digits, uint32_t count, const Windows& windows, uint32_t partitions,
                                    uint32_t* counts) {
    SEALC2_SHARED(uint32_t, local);
    const uint32_t low = windows.low_bits, w = blockIdx.y;
    digits += size_t(w) * count;
    counts += windows.window[w].bucket >> low;
    for (uint32_t p = threadIdx.x; p < partitions; p += blockDim.x) local[p] = 0;
    __syncthreads();
    constexpr int ahead = 8;
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += ahead * step) {
        uint32_t d[ahead];
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++) d[k] = i + k * step < count ? digits[i + k * step] : none;
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++)
            if (d[k] != none) atomicAdd(&local[(d[k] & ~sign_bit) >> low], 1u);
    }
    __syncthreads();
    for (uint32_t p = threadIdx.x; p < partitions; p += blockDim.x)
        if (local[p] != 0) atomicAdd(&counts[p], local[p]);
}

// scan_rows replaces each of the rows counts[row][0 .. count) by its exclusive prefix sums plus carry[row], writes them to
// copy too where that is not null, and adds the row's sum to carry[row]. One block a row; carry may be null.
SEALC2_DEVICE void scan_rows(uint32_t* counts, uint32_t* copy, uint32_t count, uint32_t* carry) {
    __shared__ uint32_t sums[max_warps + 1];
    counts += size_t(blockIdx.x) * count;
    if (copy) copy += size_t(blockIdx.x) * count;
    uint32_t before = carry ? carry[blockIdx.x] : 0;
    for (uint32_t at = 0; at < count; at += blockDim.x) {
        const uint32_t i = at + threadIdx.x;
        uint32_t total;
        const uint32_t value = i < count ? counts[i] : 0;
        const uint32_t sum = before + exclusive_scan(value, sums, total);
        if (i < count) {
            counts[i] = sum;
            if (copy) copy[i] = sum;
        }
        before += total;
    }
    __syncthreads();
    if (carry && threadIdx.x == 0) carry[blockIdx.x] = before;
}

// scan_shared replaces words[0 .. count) in shared memory by exclusive prefix sums and returns the sum.
SEALC2_DEVICE uint32_t scan_shared(uint32_t* words, uint32_t count, uint32_t* sums) {
    const uint32_t each = (count + blockDim.x - 1) / blockDim.x;
    const uint32_t lo = min(threadIdx.x * each, count), hi = min(lo + each, count);
    uint32_t own = 0, total;
    for (uint32_t i = lo; i < hi; i++) own += words[i];
    uint32_t sum = exclusive_scan(own, sums, total);
    for (uint32_t i = lo; i < hi; i++) {
        const uint32_t w = words[i];
        words[i] = sum;
        sum += w;
    }
    __syncthreads();
    return total;
}

// An entry: bucket in the group, and the number of a point with the digit's sign.

// scatter_entries writes the entries of window blockIdx.y to their partitions. A tile's entries are put in order in
// shared memory, so that those of a partition leave as one run. places[partition] is where the next one goes; index gives
// the points' numbers where it is not null. Shared memory: a tile of entries, two words a partition.
SEALC2_DEVICE void scatter_entries(const uint32_t* digits, const uint32_t* index, uint32_t count, const Windows& windows, uint32_t partitions,
                                   uint32_t* places, uint2* entries, uint32_t capacity, uint32_t* control) {
    SEALC2_SHARED(uint2, staged);
    __shared__ uint32_t sums[max_warps + 1];
    const uint32_t tile = blockDim.x * scatter_items, low = windows.low_bits, w = blockIdx.y;
    uint32_t* const start = reinterpret_cast<uint32_t*>(staged + tile);
    uint32_t* const place = start + partitions;
    const uint32_t bucket = windows.window[w].bucket;
    digits += size_t(w) * count;
    places += bucket >> low;
    for (uint32_t at = blockIdx.x * tile; at < count; at += gridDim.x * tile) {
        for (uint32_t p = threadIdx.x; p < partitions; p += blockDim.x) start[p] = 0;
        uint32_t digit[scatter_items], rank[scatter_items];
        SEALC2_UNROLL
        for (int k = 0; k < scatter_items; k++) {
            const uint32_t i = at + k * blockDim.x + threadIdx.x;
            digit[k] = i < count ? digits[i] : none;
        }
        __syncthreads();
        SEALC2_UNROLL
        for (int k = 0; k < scatter_items; k++)
            rank[k] = digit[k] != none ? atomicAdd(&start[(digit[k] & ~sign_bit) >> low], 1u) : 0;
        __syncthreads();
        for (uint32_t p = threadIdx.x; p < partitions; p += blockDim.x) {
            const uint32_t n = start[p];
            if (n != 0) place[p] = atomicAdd(&places[p], n);
        }
        __syncthreads();
        const uint32_t total = scan_shared(start, partitions, sums);
        SEALC2_UNROLL
        for (int k = 0; k < scatter_items; k++) {
            if (digit[k] == none) continue;
            const uint32_t i = at + k * blockDim.x + threadIdx.x, b = digit[k] & ~sign_bit;
            staged[start[b >> low] + rank[k]] = make_uint2(bucket + b, (index ? index[i] : i) | (digit[k] & sign_bit));
        }
        __syncthreads();
        for (uint32_t j = threadIdx.x; j < total; j += blockDim.x) {
            const uint2 e = staged[j];
            const uint32_t p = (e.x - bucket) >> low, to = place[p] + j - start[p];
            if (to < capacity)
                entries[to] = e;
            else
                atomicOr(&control[control_status], fault_entries);
        }
        __syncthreads();
    }
}

// scatter_even is scatter_entries for scalars that are spread evenly, which needs no count beforehand: every partition has
// `room` entries, and filled[partition] says how many are taken. Where a partition's room does not suffice the fault says so,
// and the host does it again by scatter_entries. What counts is the length of runs: an H200 takes some 33 G of them a second,
// however short. So tiles are as large as shared memory holds at a word an entry: place in the tile, low bits, sign.
// Shared memory: a word an entry of the tile, two and a half a partition, and half a word.
SEALC2_DEVICE void scatter_even(const uint32_t* digits, const uint32_t* index, uint32_t count, const Windows& windows, uint32_t partitions,
                                uint32_t* filled, uint32_t room, uint2* entries, uint32_t* control) {
    SEALC2_SHARED(uint32_t, staged);
    __shared__ uint32_t sums[max_warps + 1];
    constexpr int place_bits = 15;
    const uint32_t tile = blockDim.x * even_items, low = windows.low_bits, low_mask = (1u << low) - 1, w = blockIdx.y;
    uint32_t *const next = staged + tile, *const place = next + partitions;
    uint16_t* const start = reinterpret_cast<uint16_t*>(place + partitions);
    const uint32_t bucket = windows.window[w].bucket, first = bucket >> low;
    digits += size_t(w) * count;
    entries += size_t(first) * room;
    const uint32_t each = (partitions + blockDim.x - 1) / blockDim.x;
    const uint32_t lo = min(threadIdx.x * each, partitions), hi = min(lo + each, partitions);
    for (uint32_t at = blockIdx.x * tile; at < count; at += gridDim.x * tile) {
        for (uint32_t p = threadIdx.x; p < partitions; p += blockDim.x) next[p] = 0;
        uint32_t digit[even_items];
        SEALC2_UNROLL
        for (int k = 0; k < even_items; k++) {
            const uint32_t i = at + k * blockDim.x + threadIdx.x;
            digit[k] = i < count ? digits[i] : none;
        }
        __syncthreads();
        SEALC2_UNROLL
        for (int k = 0; k < even_items; k++)
            if (digit[k] != none) atomicAdd(&next[(digit[k] & ~sign_bit) >> low], 1u);
        __syncthreads();
        uint32_t own = 0, total;
        for (uint32_t p = lo; p < hi; p++) own += next[p];
        uint32_t from = exclusive_scan(own, sums, total);
        for (uint32_t p = lo; p < hi; p++) {
            const uint32_t n = next[p];
            next[p] = from;
            start[p] = uint16_t(from);
            from += n;
            uint32_t to = none;
            if (n != 0) {
                to = atomicAdd(&filled[first + p], n);
                if (to + n > room) {
                    atomicOr(&control[control_status], fault_room);
                    to = none;
                } else {
                    to += p * room;
                }
            }
            place[p] = to;
        }
        if (threadIdx.x == 0) start[partitions] = uint16_t(total);
        __syncthreads();
        SEALC2_UNROLL
        for (int k = 0; k < even_items; k++) {
            if (digit[k] == none) continue;
            const uint32_t b = digit[k] & ~sign_bit;
            staged[atomicAdd(&next[b >> low], 1u)] = (k * blockDim.x + threadIdx.x) | (b & low_mask) << place_bits | (digit[k] & sign_bit);
        }
        __syncthreads();
        // Eight lanes write a partition's run.
        for (uint32_t p = threadIdx.x >> 3; p < partitions; p += blockDim.x >> 3) {
            const uint32_t to = place[p], begin = start[p], end = start[p + 1];
            if (to == none) continue;
            for (uint32_t j = begin + (threadIdx.x & 7); j < end; j += 8) {
                const uint32_t e = staged[j], i = at + (e & ((1u << place_bits) - 1));
                entries[to + j - begin] = make_uint2(bucket + (p << low) + ((e & ~sign_bit) >> place_bits), (index ? index[i] : i) | (e & sign_bit));
            }
        }
        __syncthreads();
    }
}

// What the tree knows of a bucket: `count` pool slots with numbers from `first` on (for the first round: pairs' places),
// and one number more, or none.
struct Buckets {
    uint32_t *first, *count, *odd;
};

// add_rounds adds to rounds[r], in shared memory, how many pairs a bucket of `size` entries has in round r. All lanes of a
// warp come.
SEALC2_DEVICE void add_rounds(uint32_t size, uint32_t* rounds) {
    for (int r = 1; r < 32 && __any_sync(0xffffffffu, size > 1); r++) {
        uint32_t pairs = size >> 1;
        size -= pairs;
        SEALC2_UNROLL
        for (int d = 16; d > 0; d >>= 1) pairs += __shfl_xor_sync(0xffffffffu, pairs, d);
        if ((threadIdx.x & 31) == 0) atomicAdd(&rounds[r], pairs);
    }
}

// sort_partition sorts partition blockIdx.x: its pairs go behind those that other blocks have written. Slots of the
// first round have numbers from `slots` on. Partitions lie from starts[partition] to the next one's, or where room is not 0 in
// their rooms, starts[partition] entries long. Those with more than capacity entries go to the list `large`.
// Shared memory: two words a bucket, capacity words.
SEALC2_DEVICE void sort_partition(const uint2* entries, const uint32_t* starts, uint32_t room, uint32_t low_bits, uint32_t capacity, uint32_t slots, uint32_t first_pair,
                                  uint2* pairs, uint32_t pair_capacity, Buckets buckets, uint32_t* large, uint32_t* control) {
    SEALC2_SHARED(uint32_t, shared);
    __shared__ uint32_t sums[max_warps + 1];
    __shared__ uint32_t base, rounds[32];
    const uint32_t each = 1u << low_bits, low = each - 1, own = starts[blockIdx.x];
    const uint32_t count = room != 0 ? own : starts[blockIdx.x + 1] - own, bucket = blockIdx.x << low_bits;
    entries += room != 0 ? size_t(blockIdx.x) * room : own;
    if (room != 0 && (control[control_status] & fault_room) != 0) return; // to be done again
    if (room == 0 && count > capacity) {
        if (threadIdx.x == 0) large[atomicAdd(&control[control_partitions], 1u)] = blockIdx.x;
        return;
    }
    uint32_t *const next = shared, *const end = next + each, *const sorted = end + each;
    for (uint32_t b = threadIdx.x; b < each; b += blockDim.x) next[b] = 0;
    if (threadIdx.x < 32) rounds[threadIdx.x] = 0;
    __syncthreads();
    constexpr int ahead = 12; // reads under way
    for (uint32_t i = threadIdx.x; i < count; i += ahead * blockDim.x) {
        uint32_t b[ahead];
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++) b[k] = i + k * blockDim.x < count ? entries[i + k * blockDim.x].x : none;
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++)
            if (b[k] != none) atomicAdd(&next[b[k] & low], 1u);
    }
    __syncthreads();
    const uint32_t rounded = (each + 31) & ~31u;
    for (uint32_t b = threadIdx.x; b < rounded; b += blockDim.x) {
        const uint32_t size = b < each ? next[b] : 0;
        if (b < each) {
            end[b] = size;
            next[b] = size & ~1u;
        }
        // The last turn may not be whole blocks, but it is whole warps.
        add_rounds(size, rounds);
    }
    __syncthreads();
    const uint32_t paired = scan_shared(next, each, sums);
    if (threadIdx.x == 0) base = first_pair + atomicAdd(&control[control_pairs], paired / 2);
    if (threadIdx.x < 32 && rounds[threadIdx.x] != 0) atomicAdd(&control[control_rounds + threadIdx.x], rounds[threadIdx.x]);
    __syncthreads();
    if (base + paired / 2 > pair_capacity || paired > capacity) {
        if (threadIdx.x == 0) atomicOr(&control[control_status], paired > capacity ? fault_room : fault_pairs);
        return;
    }
    for (uint32_t b = threadIdx.x; b < each; b += blockDim.x) {
        const uint32_t size = end[b];
        buckets.first[bucket + b] = slots + base + next[b] / 2;
        buckets.count[bucket + b] = size / 2;
        if (size % 2 == 0) buckets.odd[bucket + b] = none;
        end[b] = next[b] + (size & ~1u);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += ahead * blockDim.x) {
        uint2 e[ahead];
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++) e[k] = i + k * blockDim.x < count ? entries[i + k * blockDim.x] : make_uint2(none, none);
        SEALC2_UNROLL
        for (int k = 0; k < ahead; k++) {
            if (e[k].x == none) continue;
            const uint32_t b = e[k].x & low, to = atomicAdd(&next[b], 1u);
            if (to == end[b])
                buckets.odd[bucket + b] = e[k].y; // of an odd number of entries, the last; that of an even number never gets here
            else
                sorted[to] = e[k].y;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < paired / 2; i += blockDim.x) pairs[base + i] = make_uint2(sorted[2 * i], sorted[2 * i + 1]);
}

// The large partitions, in three kernels. places[bucket] counts a bucket's entries first, and is then the next one's place.

// count_large counts their entries by bucket.
SEALC2_DEVICE void count_large(const uint2* entries, const uint32_t* starts, uint32_t low_bits, const uint32_t* large, const uint32_t* control, uint32_t* places) {
    SEALC2_SHARED(uint32_t, local);
    const uint32_t each = 1u << low_bits, low = each - 1, found = control[control_partitions];
    for (uint32_t g = 0; g < found; g++) {
        const uint32_t p = large[g], end = starts[p + 1];
        const uint32_t step = gridDim.x * blockDim.x;
        for (uint32_t b = threadIdx.x; b < each; b += blockDim.x) local[b] = 0;
        __syncthreads();
        for (uint32_t i = starts[p] + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) atomicAdd(&local[entries[i].x & low], 1u);
        __syncthreads();
        for (uint32_t b = threadIdx.x; b < each; b += blockDim.x)
            if (local[b] != 0) atomicAdd(&places[(p << low_bits) + b], local[b]);
        __syncthreads();
    }
}

// scan_large is sort_partition's middle: each block takes large partitions. size gets each bucket's number of entries, and
// places becomes 0.
SEALC2_DEVICE void scan_large(uint32_t low_bits, uint32_t slots, uint32_t first_pair, uint32_t pair_capacity, Buckets buckets, const uint32_t* large,
                              uint32_t* control, uint32_t* places, uint32_t* size) {
    SEALC2_SHARED(uint32_t, next);
    __shared__ uint32_t sums[max_warps + 1];
    __shared__ uint32_t base, rounds[32];
    const uint32_t each = 1u << low_bits, rounded = (each + 31) & ~31u, found = control[control_partitions];
    for (uint32_t g = blockIdx.x; g < found; g += gridDim.x) {
        const uint32_t bucket = large[g] << low_bits;
        if (threadIdx.x < 32) rounds[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t b = threadIdx.x; b < rounded; b += blockDim.x) {
            const uint32_t n = b < each ? places[bucket + b] : 0;
            if (b < each) {
                size[bucket + b] = n;
                places[bucket + b] = 0;
                next[b] = n & ~1u;
            }
            add_rounds(n, rounds);
        }
        __syncthreads();
        const uint32_t paired = scan_shared(next, each, sums);
        if (threadIdx.x == 0) base = first_pair + atomicAdd(&control[control_pairs], paired / 2);
        if (threadIdx.x < 32 && rounds[threadIdx.x] != 0) atomicAdd(&control[control_rounds + threadIdx.x], rounds[threadIdx.x]);
        __syncthreads();
        if (base + paired / 2 > pair_capacity) {
            if (threadIdx.x == 0) atomicOr(&control[control_status], fault_pairs);
            return;
        }
        for (uint32_t b = threadIdx.x; b < each; b += blockDim.x) {
            buckets.first[bucket + b] = slots + base + next[b] / 2;
            buckets.count[bucket + b] = size[bucket + b] / 2;
            buckets.odd[bucket + b] = none; // until scatter_large finds one
        }
        __syncthreads();
    }
}

// scatter_large writes the large partitions' pairs.
SEALC2_DEVICE void scatter_large(const uint2* entries, const uint32_t* starts, uint32_t low_bits, uint32_t slots, uint2* pairs, Buckets buckets, const uint32_t* large,
                                 const uint32_t* control, uint32_t* places, const uint32_t* size) {
    SEALC2_SHARED(uint32_t, local);
    const uint32_t each = 1u << low_bits, low = each - 1, found = control[control_partitions], step = gridDim.x * blockDim.x;
    if (control[control_status] & fault_pairs) return; // places that scan_large refused
    uint32_t* const flat = reinterpret_cast<uint32_t*>(pairs);
    for (uint32_t g = 0; g < found; g++) {
        const uint32_t p = large[g], bucket = p << low_bits, begin = starts[p] + blockIdx.x * blockDim.x + threadIdx.x, end = starts[p + 1];
        for (uint32_t b = threadIdx.x; b < each; b += blockDim.x) local[b] = 0;
        __syncthreads();
        for (uint32_t i = begin; i < end; i += step) atomicAdd(&local[entries[i].x & low], 1u);
        __syncthreads();
        for (uint32_t b = threadIdx.x; b < each; b += blockDim.x)
            if (local[b] != 0) local[b] = atomicAdd(&places[bucket + b], local[b]);
        __syncthreads();
        for (uint32_t i = begin; i < end; i += step) {
            const uint2 e = entries[i];
            const uint32_t b = e.x & low, k = atomicAdd(&local[b], 1u), n = size[bucket + b];
            if (k + 1 == n && n % 2 == 1)
                buckets.odd[bucket + b] = e.y;
            else
                flat[2 * size_t(buckets.first[bucket + b] - slots) + k] = e.y;
        }
        __syncthreads();
    }
}

} // namespace msm
} // namespace sealc2
