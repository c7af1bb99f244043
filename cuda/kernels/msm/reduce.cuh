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

// The laws of curve/xyzz.cuh step by step: every value lies in memory, since the calls would have registers spilled.
template <class F> struct Laws {
    Xyzz<F>* sum;
    F u, s, dx, dy, pp, ppp, q, t;

    // twice doubles sum.
    SEALC2_DEVICE void twice() {
        dbl_far(&u, &sum->y);
        mul_far(&pp, &u, &u);       // V
        mul_far(&ppp, &u, &pp);     // W
        mul_far(&s, &sum->x, &pp);  // S
        mul_far(&t, &sum->x, &sum->x);
        dbl_far(&dx, &t);
        add_far(&dx, &dx, &t); // M
        mul_far(&sum->zz, &pp, &sum->zz);
        mul_far(&sum->zzz, &ppp, &sum->zzz);
        mul_far(&q, &ppp, &sum->y);
        finish(&s, &dx);
    }
    // finish sets x to slope^2 - 2 half and y to slope (half - x) - q.
    SEALC2_DEVICE void finish(const F* half, const F* slope) {
        mul_far(&sum->x, slope, slope);
        sub_far(&sum->x, &sum->x, half);
        sub_far(&sum->x, &sum->x, half);
        sub_far(&t, half, &sum->x);
        mul_far(&t, slope, &t);
        sub_far(&sum->y, &t, &q);
    }
    // plus adds the point whose u, s and differences are set, x and y of sum being u and s over its own ZZ.
    SEALC2_DEVICE void plus() {
        mul_far(&pp, &dx, &dx);
        mul_far(&ppp, &dx, &pp);
        mul_far(&u, &u, &pp);
        mul_far(&q, &s, &ppp);
        mul_far(&sum->x, &dy, &dy);
        sub_far(&sum->x, &sum->x, &ppp);
        sub_far(&sum->x, &sum->x, &u);
        sub_far(&sum->x, &sum->x, &u);
        sub_far(&t, &u, &sum->x);
        mul_far(&t, &dy, &t);
        sub_far(&sum->y, &t, &q);
        mul_far(&sum->zz, &sum->zz, &pp);
        mul_far(&sum->zzz, &sum->zzz, &ppp);
    }
};

template <class F> SEALC2_DEVICE_CALL void double_it(Xyzz<F>* p) {
    Laws<F> law;
    law.sum = p;
    law.twice();
}
template <class F> SEALC2_DEVICE_CALL void add_to(Xyzz<F>* sum, const Xyzz<F>* term) {
    if (is_infinity(*term)) return;
    if (is_infinity(*sum)) {
        *sum = *term;
        return;
    }
    Laws<F> law;
    law.sum = sum;
    mul_far(&law.u, &sum->x, &term->zz);
    mul_far(&law.s, &sum->y, &term->zzz);
    mul_far(&law.dx, &term->x, &sum->zz);
    mul_far(&law.dy, &term->y, &sum->zzz);
    sub_far(&law.dx, &law.dx, &law.u);
    sub_far(&law.dy, &law.dy, &law.s);
    if (is_zero(law.dx)) {
        if (is_zero(law.dy))
            law.twice();
        else
            *sum = Xyzz<F>::infinity();
        return;
    }
    mul_far(&sum->zz, &sum->zz, &term->zz);
    mul_far(&sum->zzz, &sum->zzz, &term->zzz);
    law.plus();
}
// add_affine_to adds a finite point.
template <class F> SEALC2_DEVICE_CALL void add_affine_to(Xyzz<F>* sum, const Affine<F>* term) {
    Laws<F> law;
    law.sum = sum;
    if (is_infinity(*sum)) {
        *sum = Xyzz<F>{term->x, term->y, F::one(), F::one()};
        return;
    }
    law.u = sum->x;
    law.s = sum->y;
    mul_far(&law.dx, &term->x, &sum->zz);
    mul_far(&law.dy, &term->y, &sum->zzz);
    sub_far(&law.dx, &law.dx, &law.u);
    sub_far(&law.dy, &law.dy, &law.s);
    if (is_zero(law.dx)) {
        if (is_zero(law.dy))
            law.twice();
        else
            *sum = Xyzz<F>::infinity();
        return;
    }
    law.plus();
}

// sum_list writes sums[2l] = the sum of weight * point of list l, and sums[2l + 1] = the plain sum. A block a list, a power of
// two of threads. Shared memory: a point a thread.
template <class F> SEALC2_DEVICE void sum_list(const Points<F>& points, const List* lists, Xyzz<F>* sums) {
    SEALC2_SHARED(Xyzz<F>, shared);
    const List list = lists[blockIdx.x];
    const uint32_t each = (list.count + blockDim.x - 1) / blockDim.x;
    const uint32_t lo = min(threadIdx.x * each, list.count), hi = min(lo + each, list.count);
    Xyzz<F> weighted = Xyzz<F>::infinity(), plain = weighted;
    SEALC2_ROLL
    for (uint32_t e = hi; e > lo; e--) {
        add_to(&weighted, &plain);
        Affine<F> p;
        const uint4* const at = points.x(list.from + e - 1);
        load(p.x, at);
        load(p.y, at + points.y_offset(list.from + e - 1));
        p.y = Steps<F>::strict(p.y);
        if (!is_zero(p.x)) add_affine_to(&plain, &p);
    }
    const uint32_t weight = list.weight + lo;
    Xyzz<F> multiple = Xyzz<F>::infinity();
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
        if (threadIdx.x == 0) sums[2 * blockIdx.x + k] = shared[0];
        __syncthreads();
    }
}

} // namespace msm
} // namespace sealc2
