// From the buckets' sums to a window's sum, sum of (b + 1) * bucket b.
//
// With b = row * columns + column this is columns * sum of row * (sum of the row) + sum of (column + 1) * (sum of the column).
// Sums of rows and of columns are plain sums, so the batched affine rounds of tree.cuh make them: two additions of 6
// products a bucket, where running sums in xyzz take two of 10 and 14. What is left of a window is two lists of some thousand
// points, which sum_list adds up with their places as weights.
#pragma once
#include "tree.cuh"

namespace sealc2 {
namespace msm {

// Fold is one round of one window's rows or columns: `pairs` pairs, the first at `start` of the list, over slots with
// numbers from `from` on. Rows add neighbours (half = 0), columns slots that lie half the list apart.
struct Fold {
    uint32_t from, pairs, start, half;
};

SEALC2_DEVICE void fold_pairs(const Fold* folds, uint2* pairs) {
    const Fold f = folds[blockIdx.y];
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < f.pairs; i += gridDim.x * blockDim.x)
        pairs[f.start + i] = f.half != 0 ? make_uint2(f.from + i, f.from + f.half + i) : make_uint2(f.from + 2 * i, f.from + 2 * i + 1);
}

// List is a run of slots, by number, whose first has weight `weight`.
struct List {
    uint32_t from, count, weight;
};

// The laws as calls.
template <class F> SEALC2_DEVICE_CALL void add_to(Xyzz<F>* sum, const Xyzz<F>* term) { *sum = add(*sum, *term); }
template <class F> SEALC2_DEVICE_CALL void add_affine_to(Xyzz<F>* sum, const Affine<F>* term) { *sum = add(*sum, *term); }
template <class F> SEALC2_DEVICE_CALL void double_it(Xyzz<F>* p) { *p = dbl(*p); }

// sum_list writes sums[2l] = the sum of weight * point of list l, and sums[2l + 1] = the plain sum. A block a list, a power of
// two of threads. Shared memory: a point a thread.
template <class F> SEALC2_DEVICE void sum_list(const Points<F>& points, const List* lists, Xyzz<F>* sums) {
    SEALC2_SHARED(Xyzz<Far<F>>, shared);
    const List list = lists[blockIdx.x];
    const uint32_t each = (list.count + blockDim.x - 1) / blockDim.x;
    const uint32_t lo = min(threadIdx.x * each, list.count), hi = min(lo + each, list.count);
    Xyzz<Far<F>> weighted = Xyzz<Far<F>>::infinity(), plain = weighted;
    SEALC2_ROLL
    for (uint32_t e = hi; e > lo; e--) {
        add_to(&weighted, &plain);
        Affine<Far<F>> p;
        const uint4* const at = points.x(list.from + e - 1);
        load(p.x.value, at);
        load(p.y.value, at + points.y_offset(list.from + e - 1));
        p.y.value = Steps<F>::strict(p.y.value);
        if (!is_zero(p.x)) add_affine_to(&plain, &p);
    }
    const uint32_t weight = list.weight + lo;
    Xyzz<Far<F>> multiple = Xyzz<Far<F>>::infinity();
    SEALC2_ROLL
    for (uint32_t bit = weight == 0 ? 0 : 1u << (31 - __clz(int(weight))); bit != 0; bit >>= 1) {
        double_it(&multiple);
        if (weight & bit) add_to(&multiple, &plain);
    }
    add_to(&weighted, &multiple);
    SEALC2_ROLL
    for (int k = 0; k < 2; k++) {
        shared[threadIdx.x] = k == 0 ? weighted : plain;
        __syncthreads();
        SEALC2_ROLL
        for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) add_to(&shared[threadIdx.x], &shared[threadIdx.x + half]);
            __syncthreads();
        }
        if (threadIdx.x == 0) sums[2 * blockIdx.x + k] = Xyzz<F>{shared[0].x.value, shared[0].y.value, shared[0].zz.value, shared[0].zzz.value};
        __syncthreads();
    }
}

} // namespace msm
} // namespace sealc2
