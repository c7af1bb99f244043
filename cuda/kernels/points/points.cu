// Entries for points: decode, encode, order, products of a fixed base. count is below 2^31 in all of them.
#include "fixedbase.cuh"
#include "order.cuh"

using namespace sealc2;
using namespace sealc2::points;

SEALC2_DEVICE uint32_t point_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define POINTS_ENTRIES(group, F)                                                                                      \
    /* from may be to. first is the index of the first point, for faults. */                                          \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_decode_##group(const uint4* from, Affine<F>* to, uint64_t first, uint32_t count, unsigned long long* fault) { \
        const uint32_t i = point_index();                                                                             \
        if (i >= count) return;                                                                                       \
        Affine<F> p;                                                                                                  \
        note(fault, first + i, decode(p, from + size_t(i) * (sizeof p / sizeof(uint4))));                             \
        to[i] = p;                                                                                                    \
    }                                                                                                                 \
    SEALC2_KERNEL(points_decode_##group);                                                                             \
    /* to may be from. */                                                                                             \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_encode_##group(const Affine<F>* from, uint4* to, uint32_t count) {                                     \
        const uint32_t i = point_index();                                                                             \
        if (i < count) encode(to + size_t(i) * (sizeof(Affine<F>) / sizeof(uint4)), from[i]);                         \
    }                                                                                                                 \
    SEALC2_KERNEL(points_encode_##group);                                                                             \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_order_##group(const Affine<Called<F>>* points, uint64_t first, uint32_t count, unsigned long long* fault) { \
        const uint32_t i = point_index();                                                                             \
        if (i < count) note(fault, first + i, in_group(to_xyzz(points[i])) ? fault_none : fault_order);               \
    }                                                                                                                 \
    SEALC2_KERNEL(points_order_##group);                                                                              \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_sum_##group(const Affine<Called<F>>* points, uint32_t count, Deal deal, uint32_t log, Xyzz<Called<F>>* sums, uint32_t buckets) { \
        const uint32_t bucket = point_index();                                                                        \
        if (bucket >= buckets) return;                                                                                \
        Xyzz<Called<F>> sum = sums[bucket];                                                                           \
        sum_bucket(sum, points, count, deal, log, bucket, buckets);                                                   \
        sums[bucket] = sum;                                                                                           \
    }                                                                                                                 \
    SEALC2_KERNEL(points_sum_##group);                                                                                \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_sums_order_##group(const Xyzz<Called<F>>* sums, uint32_t count, unsigned long long* fault) {           \
        const uint32_t i = point_index();                                                                             \
        if (i < count) note(fault, i, in_group(sums[i]) ? fault_none : fault_order);                                  \
    }                                                                                                                 \
    SEALC2_KERNEL(points_sums_order_##group);                                                                         \
    /* One doubling of the tables of all windows: blockIdx.y is the window, entries its length when whole. */         \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_extend_##group(Affine<F>* table, uint32_t entries, uint32_t have, F* prefixes) {                       \
        Extend<F> sums{table + size_t(blockIdx.y) * entries, have};                                                   \
        batch_add(sums, point_index(), have, gridDim.x * blockDim.x, prefixes + size_t(blockIdx.y) * have);           \
    }                                                                                                                 \
    SEALC2_KERNEL(points_extend_##group);                                                                             \
    /* sums[i] = the scalar behind digits[i], digits[count + i], ... times the base. prefixes: count elements. */     \
    extern "C" __global__ void __launch_bounds__(block_threads)                                                       \
        points_multiply_##group(const Affine<F>* table, uint32_t entries, const uint32_t* digits, uint32_t windows,   \
                                uint32_t count, Affine<F>* sums, F* prefixes) {                                       \
        const uint32_t threads = gridDim.x * blockDim.x;                                                              \
        Multiply<F> work{sums, table, digits};                                                                        \
        for (uint32_t i = point_index(); i < count; i += threads) sums[i] = work.load_b(i);                           \
        SEALC2_ROLL                                                                                                   \
        for (uint32_t w = 1; w < windows; w++) {                                                                      \
            work.table += entries;                                                                                    \
            work.digits += count;                                                                                     \
            batch_add(work, point_index(), count, threads, prefixes);                                                 \
        }                                                                                                             \
    }                                                                                                                 \
    SEALC2_KERNEL(points_multiply_##group);

POINTS_ENTRIES(g1, Fp)
POINTS_ENTRIES(g2, Fp2)

struct Bias {
    uint32_t words[10];
};

// digits[w * count + i] is digit w of scalar i, as recode_next gives it.
extern "C" __global__ void __launch_bounds__(block_threads)
    points_recode(const Fr* scalars, uint32_t count, Bias bias, uint32_t bits, uint32_t windows, uint32_t* digits) {
    const uint32_t i = point_index();
    if (i >= count) return;
    Recoder r;
    recode_begin(r, scalars[i], bias.words);
    SEALC2_ROLL
    for (uint32_t w = 0; w < windows; w++) digits[size_t(w) * count + i] = recode_next(r, bits);
}
SEALC2_KERNEL(points_recode);

// powers_of gives base^exponent from squares[k] = base^(2^k).
SEALC2_DEVICE Fr powers_of(const Fr* squares, uint32_t exponent) {
    Fr r = Fr::one();
    SEALC2_ROLL
    for (uint32_t k = 0; exponent != 0; k++, exponent >>= 1)
        if (exponent & 1) r = mul(r, squares[k]);
    return r;
}

// out[i] = scale * base^(first + i); each thread makes `run` neighbours.
extern "C" __global__ void __launch_bounds__(block_threads)
    points_powers(const Fr* squares, Fr scale, uint32_t first, uint32_t count, uint32_t run, Fr* out) {
    const uint32_t from = point_index() * run;
    if (from >= count) return;
    Fr at = mul(powers_of(squares, first + from), scale);
    const Fr base = squares[0];
    const uint32_t end = min(count, from + run);
    SEALC2_ROLL
    for (uint32_t i = from; i < end; i++) {
        out[i] = at;
        at = mul(at, base);
    }
}
SEALC2_KERNEL(points_powers);
