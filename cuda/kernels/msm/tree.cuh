// Sums of all buckets at once by rounds of affine additions that share inversions.
//
// A round adds the pairs of neighbours of each bucket; a bucket of m points is done after log2(m) rounds. Pairs are packed
// whatever the buckets' sizes, so every thread has work for any distribution of scalars. A round is three kernels:
// forward multiplies the differences of x of a thread's pairs and keeps the products before each; invert inverts the
// threads' products, several a thread; backward goes through the pairs again, last to first, gets each difference's
// inverse with two products, and adds. Source: Montgomery's shared inversion, over buckets as in
// gnark-crypto's batched affine method; here as a tree, and over numbers of points in place of copies.
//
// Exceptional pairs: equal points put 2y in the product in place of the difference, so doublings share the inversion; a
// pair that cancels, or with an infinite point, puts 1.
//
// Cost an addition: 5 products, 1 square. Bytes, G1: forward 2 x 48 read (at random in the first round) and 48 written;
// backward 48 + 2 x 96 read and 96 written; 16 for the pairs' numbers. Floor by operand reads on an H200: 4.6 G additions/s.
#pragma once
#include "sort.cuh"

namespace sealc2 {
namespace msm {

template <> struct Tree<Fp> : TreeG1 {};
template <> struct Tree<Fp2> : TreeG2 {};

// Large is a bucket whose pairs the whole grid writes.
struct Large {
    uint32_t first, count, odd, base;
};

// pair_of is pair j of a bucket.
SEALC2_DEVICE uint2 pair_of(uint32_t first, uint32_t count, uint32_t odd, uint32_t j) {
    return make_uint2(first + 2 * j, 2 * j + 1 < count ? first + 2 * j + 1 : odd);
}

// next_pairs writes the pairs of a round after the first. The round's slots have numbers from `slots` on. Each block takes
// pair_buckets buckets.
SEALC2_DEVICE void next_pairs(Buckets buckets, uint32_t bucket_count, uint32_t slots, uint2* pairs, uint32_t capacity, Large* large, uint32_t* control) {
    constexpr int items = pair_buckets / pair_threads;
    __shared__ uint32_t sums[max_warps + 1], offset[pair_buckets], first[pair_buckets], count[pair_buckets], odd[pair_buckets];
    __shared__ uint32_t base;
    const uint32_t at = blockIdx.x * pair_buckets;
    uint32_t own[items], sum = 0, total;
    SEALC2_UNROLL
    for (int k = 0; k < items; k++) { // a thread's buckets are neighbours
        const uint32_t b = threadIdx.x * items + k;
        uint32_t f = 0, c = 0, o = none;
        if (at + b < bucket_count) f = buckets.first[at + b], c = buckets.count[at + b], o = buckets.odd[at + b];
        first[b] = f, count[b] = c, odd[b] = o;
        own[k] = (c + (o != none)) / 2;
        offset[b] = sum;
        if (own[k] <= pair_limit) sum += own[k];
    }
    const uint32_t before = exclusive_scan(sum, sums, total);
    if (threadIdx.x == 0) base = atomicAdd(&control[control_pairs], total);
    __syncthreads();
    const uint32_t from = base;
    SEALC2_UNROLL
    for (int k = 0; k < items; k++) {
        const uint32_t b = threadIdx.x * items + k;
        offset[b] += before;
        if (at + b >= bucket_count) continue;
        const uint32_t f = first[b], c = count[b], o = odd[b];
        uint32_t place = from + offset[b];
        if (own[k] > pair_limit) {
            place = atomicAdd(&control[control_pairs], own[k]);
            large[atomicAdd(&control[control_large], 1u)] = Large{f, c, o, place};
        }
        buckets.first[at + b] = slots + place;
        buckets.count[at + b] = own[k];
        uint32_t left = none;
        if ((c + (o != none)) % 2 == 1) left = c % 2 == 1 ? f + c - 1 : o;
        buckets.odd[at + b] = left;
    }
    __syncthreads();
    if (total == 0) return;
    if (from + total > capacity) {
        if (threadIdx.x == 0) atomicOr(&control[control_status], fault_pairs);
        return;
    }
    for (uint32_t j = threadIdx.x; j < total; j += blockDim.x) {
        // The last bucket that starts at or before j: those behind it that start there too have no pairs of their own here.
        uint32_t lo = 0, hi = pair_buckets;
        while (hi - lo > 1) {
            const uint32_t mid = (lo + hi) / 2;
            if (offset[mid] <= j)
                lo = mid;
            else
                hi = mid;
        }
        pairs[from + j] = pair_of(first[lo], count[lo], odd[lo], j - offset[lo]);
    }
}

// large_pairs writes the pairs of the large buckets that next_pairs has found.
SEALC2_DEVICE void large_pairs(uint2* pairs, uint32_t capacity, const Large* large, uint32_t* control) {
    const uint32_t found = control[control_large];
    for (uint32_t g = 0; g < found; g++) {
        const Large b = large[g];
        const uint32_t n = (b.count + (b.odd != none)) / 2;
        if (b.base + n > capacity) {
            atomicOr(&control[control_status], fault_pairs);
            return;
        }
        for (uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) pairs[b.base + j] = pair_of(b.first, b.count, b.odd, j);
    }
}

// merge_pairs writes pairs of slots with numbers from `slot` on and the sums of buckets; infinity is the number of a slot
// that is. `slots` pairs are written, those behind the last bucket's with infinity too.
SEALC2_DEVICE void merge_pairs(Buckets buckets, uint32_t bucket, uint32_t bucket_count, uint32_t slots, uint32_t slot, uint32_t infinity, uint2* pairs) {
    for (uint32_t b = blockIdx.x * blockDim.x + threadIdx.x; b < slots; b += gridDim.x * blockDim.x) {
        uint32_t number = none;
        if (b < bucket_count) number = buckets.count[bucket + b] > 0 ? buckets.first[bucket + b] : buckets.odd[bucket + b];
        pairs[b] = make_uint2(slot + b, number == none ? infinity : number);
    }
}

// What a suspect pair turns out to be.
constexpr uint32_t pair_ordinary = 0, pair_first = 1, pair_second = 2, pair_cancels = 3, pair_doubles = 4;

// classify tells what a pair is, and replaces factor, which is its difference, by what it puts in the product.
template <class F> SEALC2_DEVICE_CALL uint32_t classify(const Points<F>& points, uint32_t a, uint32_t b, F* factor) {
    F x1, x2, y1, y2;
    const uint4 *p = points.x(a), *q = points.x(b);
    load(x1, p);
    load(x2, q);
    const bool first = is_zero(x1), second = is_zero(x2);
    if (!first && !second && !eq(x1, x2)) return pair_ordinary;
    *factor = F::one();
    if (first) return pair_second;
    if (second) return pair_first;
    load(y1, p + points.y_offset(a));
    load(y2, q + points.y_offset(b));
    y1 = Steps<F>::strict(Steps<F>::negate_if(Steps<F>::strict(y1), (a & sign_bit) != 0));
    y2 = Steps<F>::strict(Steps<F>::negate_if(Steps<F>::strict(y2), (b & sign_bit) != 0));
    if (!eq(y1, y2)) return pair_cancels;
    *factor = dbl(y1);
    return pair_doubles;
}

// finish writes the sum of a pair that is not ordinary; reciprocal is 1/factor.
template <class F> SEALC2_DEVICE_CALL void finish(const Points<F>& points, uint32_t a, uint32_t b, uint32_t kind, const F* reciprocal, uint4* to) {
    Affine<F> r = Affine<F>::infinity();
    if (kind != pair_cancels) {
        const uint32_t from = kind == pair_second ? b : a;
        const uint4* p = points.x(from);
        load(r.x, p);
        load(r.y, p + points.y_offset(from));
        if (!is_zero(r.x)) r.y = Steps<F>::strict(Steps<F>::negate_if(Steps<F>::strict(r.y), (from & sign_bit) != 0));
    }
    if (kind == pair_doubles) { // slope = 3 x^2 / 2y
        F slope = reduce(*reciprocal), t, x;
        mul_far(&t, &r.x, &r.x);
        mul_far(&slope, &slope, &t);
        dbl_far(&t, &slope);
        add_far(&slope, &slope, &t);
        mul_far(&x, &slope, &slope);
        sub_far(&x, &x, &r.x);
        sub_far(&x, &x, &r.x);
        sub_far(&t, &r.x, &x);
        mul_far(&t, &slope, &t);
        sub_far(&r.y, &t, &r.y);
        r.x = x;
    }
    store(to, 1, r.x);
    store(to + 32 * Points<F>::units, 1, r.y);
}

// forward: thread t of `threads` takes pairs t, threads + t, ..., at most `steps`. The product before pair s (from the
// second on) goes to prefixes[s - 1], all products to totals; both lie in units, `threads` apart.
template <class F> SEALC2_DEVICE void forward(const Points<F>& points, const uint2* pairs, uint32_t count, uint4* prefixes, uint4* totals, uint32_t steps,
                                              uint32_t threads) {
    using S = Steps<F>;
    constexpr int units = Points<F>::units;
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    F product = F::one(), x1, x2;
    uint2 pair = make_uint2(0, 0), ahead = pair;
    bool more = t < count;
    if (more) {
        pair = pairs[t];
        load(x1, points.x(pair.x));
        load(x2, points.x(pair.y));
        if (steps > 1 && threads + t < count) ahead = pairs[threads + t];
    }
    SEALC2_ROLL
    for (uint32_t s = 0; more; s++) {
        F factor = S::difference(x2, x1);
        const bool suspect = S::suspect(x1, x2, factor);
        const uint2 now = pair;
        const uint32_t next = (s + 1) * threads + t;
        more = s + 1 < steps && next < count;
        pair = ahead;
        if (more) { // the next pair travels while this one is worked on
            load(x1, points.x(pair.x));
            load(x2, points.x(pair.y));
            if (s + 2 < steps && next + threads < count) ahead = pairs[next + threads];
        }
        if (suspect) {
            F f = factor;
            classify(points, now.x, now.y, &f);
            factor = f;
        }
        if (s == 0) {
            product = factor;
        } else {
            store(prefixes + size_t(s - 1) * units * threads + t, threads, product);
            product = mul_lazy(product, factor);
        }
    }
    store(totals + t, threads, product);
}

// invert replaces the totals by their inverses; each thread takes `share` of them, which divides threads. kept is
// as large as totals.
template <class F> SEALC2_DEVICE void invert(uint4* totals, uint4* kept, uint32_t threads, uint32_t share) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, apart = threads / share;
    if (t >= apart) return;
    F product, x;
    load(product, totals + t, threads);
    SEALC2_ROLL
    for (uint32_t k = 1; k < share; k++) {
        const size_t at = t + size_t(k) * apart;
        store(kept + at, threads, product);
        load(x, totals + at, threads);
        product = mul_lazy(product, x);
    }
    F rest = inverse(product);
    SEALC2_ROLL
    for (uint32_t k = share - 1; k > 0; k--) {
        const size_t at = t + size_t(k) * apart;
        F before;
        load(before, kept + at, threads);
        load(x, totals + at, threads);
        store(totals + at, threads, mul_lazy(rest, before));
        rest = mul_lazy(rest, x);
    }
    store(totals + t, threads, rest);
}

// backward adds the pairs that forward has gone through, with the totals' inverses; pair i's sum goes to slot
// first_slot + i. The next pair's points travel to shared memory while this one is worked on; a thread reads only what it
// has fetched. Shared memory: two pairs of points a thread.
template <class F> SEALC2_DEVICE void backward(const Points<F>& points, const uint2* pairs, uint32_t count, const uint4* prefixes, const uint4* totals,
                                               uint32_t first_slot, uint32_t steps, uint32_t threads) {
    using S = Steps<F>;
    constexpr int units = Points<F>::units, block = Tree<F>::threads;
    SEALC2_SHARED(uint4, staged);
    const uint32_t t = blockIdx.x * block + threadIdx.x;
    if (t >= count) return;
    uint4* const mine = staged + threadIdx.x; // [buffer][x1, y1, x2, y2][unit][thread]
    uint32_t s = min(steps - 1, (count - 1 - t) / threads), buffer = 0;
    const auto fetch = [&](uint4* to, uint2 p) {
        const uint4 *a = points.x(p.x), *b = points.x(p.y);
        const uint32_t ay = points.y_offset(p.x), by = points.y_offset(p.y);
        SEALC2_UNROLL
        for (int j = 0; j < units; j++) {
            copy_unit(to + j * block, a + j);
            copy_unit(to + (2 * units + j) * block, b + j);
        }
        SEALC2_UNROLL
        for (int j = 0; j < units; j++) {
            copy_unit(to + (units + j) * block, a + ay + j);
            copy_unit(to + (3 * units + j) * block, b + by + j);
        }
    };
    // Numbers are read two pairs ahead, in G2 one, where registers do not suffice.
    constexpr bool two_ahead = units == 3;
    uint2 pair, ahead = pairs[size_t(s) * threads + t], later = ahead;
    if (two_ahead && s > 0) later = pairs[size_t(s - 1) * threads + t];
    fetch(mine, ahead);
    copy_async_commit();
    F rest;
    load(rest, totals + t, threads);
    SEALC2_ROLL
    for (bool more = true; more; s--, buffer ^= 1) {
        more = s > 0;
        const uint32_t at = s * threads + t;
        pair = ahead;
        if (two_ahead)
            ahead = later;
        else if (more)
            ahead = pairs[at - threads];
        F reciprocal = rest; // of this pair's factor
        if (more) {
            load(reciprocal, prefixes + size_t(s - 1) * units * threads + t, threads);
            fetch(mine + (buffer ^ 1) * (4 * units * block), ahead);
            if (two_ahead && s > 1) later = pairs[at - 2 * threads];
        }
        copy_async_commit();
        if (more) reciprocal = mul_lazy(rest, reciprocal);
        copy_async_wait<1>();
        const uint4 *const a = mine + buffer * (4 * units * block), *const b = a + 2 * units * block;
        uint4* const to = points.slot(first_slot + at);
        F x1, x2;
        load(x1, a, block);
        load(x2, b, block);
        F factor = S::difference(x2, x1);
        if (S::suspect(x1, x2, factor)) {
            F f = factor, r = reciprocal;
            const uint32_t kind = classify(points, pair.x, pair.y, &f);
            if (kind != pair_ordinary) {
                finish(points, pair.x, pair.y, kind, &r, to);
                rest = mul_lazy(rest, f);
                continue;
            }
        }
        rest = mul_lazy(rest, factor);
        F y1, y2;
        load(y1, a + units * block, block);
        load(y2, b + units * block, block);
        y1 = S::negate_if(y1, (pair.x & sign_bit) != 0);
        y2 = S::negate_if(y2, (pair.y & sign_bit) != 0);
        const F slope = S::slope(S::rise(y2, y1), reciprocal);
        // Read again: registers are scarcer than shared memory.
        load(x1, a, block);
        load(x2, b, block);
        const F x3 = S::third_x(slope, x1, x2);
        store(to, 1, x3);
        load(y1, a + units * block, block);
        y1 = S::negate_if(y1, (pair.x & sign_bit) != 0);
        store(to + 32 * units, 1, S::third_y(slope, x1, x3, y1));
    }
}

// collect copies the buckets' sums to slots from first_slot on, infinity for an empty bucket; `padded` slots are written. A
// thread takes a unit of a point, or the whole y where it is to be negated.
template <class F> SEALC2_DEVICE void collect(const Points<F>& points, Buckets buckets, uint32_t bucket, uint32_t bucket_count, uint32_t padded, uint32_t first_slot) {
    constexpr uint32_t units = Points<F>::units;
    for (uint32_t e = blockIdx.x * blockDim.x + threadIdx.x; e < padded * 2 * units; e += gridDim.x * blockDim.x) {
        const uint32_t b = e / (2 * units), j = e - b * (2 * units);
        uint4* const to = points.slot(first_slot + b) + (j < units ? j : 32 * units + j - units);
        uint32_t number = none;
        if (b < bucket_count) number = buckets.count[bucket + b] > 0 ? buckets.first[bucket + b] : buckets.odd[bucket + b];
        if (number == none) {
            *to = make_uint4(0, 0, 0, 0);
            continue;
        }
        const uint4* const p = points.x(number);
        if (j < units) {
            *to = p[j];
        } else if ((number & sign_bit) == 0) {
            *to = p[points.y_offset(number) + j - units];
        } else if (j == units) {
            F y;
            load(y, p + points.y_offset(number));
            store(to, 1, Steps<F>::strict(Steps<F>::negate_if(Steps<F>::strict(y), true)));
        }
    }
}

} // namespace msm
} // namespace sealc2
