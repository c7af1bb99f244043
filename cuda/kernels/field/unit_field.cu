// Entries that run one operation of a field on each element of an array: for tests and for rates, not for proofs.
#include "inverse.cuh"

using namespace sealc2;

// The index of the calling thread in the launch.
SEALC2_DEVICE uint32_t unit_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define UNIT_BINARY(field, type, operation)                                                                   \
    extern "C" __global__ void unit_##field##_##operation(const type* a, const type* b, type* r, uint32_t n) { \
        const uint32_t i = unit_index();                                                                      \
        if (i < n) r[i] = operation(a[i], b[i]);                                                              \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##field##_##operation);
#define UNIT_UNARY(field, type, operation)                                                                    \
    extern "C" __global__ void unit_##field##_##operation(const type* a, type* r, uint32_t n) {                \
        const uint32_t i = unit_index();                                                                      \
        if (i < n) r[i] = operation(a[i]);                                                                    \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##field##_##operation);
// Answers of one bit: 1 or 0 in the lowest byte of a word.
#define UNIT_TESTS(field, type)                                                                               \
    extern "C" __global__ void unit_##field##_tests(const type* a, const type* b, uint32_t* r, uint32_t n) {   \
        const uint32_t i = unit_index();                                                                      \
        if (i < n) r[i] = uint32_t(is_zero(a[i])) | uint32_t(eq(a[i], b[i])) << 1;                            \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##field##_tests);
#define UNIT_FIELD(field, type)                                                                               \
    UNIT_BINARY(field, type, add)                                                                             \
    UNIT_BINARY(field, type, sub)                                                                             \
    UNIT_BINARY(field, type, mul)                                                                             \
    UNIT_UNARY(field, type, neg)                                                                              \
    UNIT_UNARY(field, type, dbl)                                                                              \
    UNIT_UNARY(field, type, halve)                                                                            \
    UNIT_UNARY(field, type, sqr)                                                                              \
    UNIT_UNARY(field, type, inverse)                                                                          \
    UNIT_UNARY(field, type, to_canonical)                                                                     \
    UNIT_UNARY(field, type, from_canonical)                                                                   \
    UNIT_TESTS(field, type)

UNIT_FIELD(fr, Fr)
UNIT_FIELD(fp, Fp)
UNIT_FIELD(fp2, Fp2)

// Lazy products and squares at the bounds that they promise: the results are reduced only as far as promised too.
extern "C" __global__ void unit_fr_mul_lazy(const Fr* a, const Fr* b, Fr* r, uint32_t n) {
    const uint32_t i = unit_index();
    if (i < n) r[i] = reduce(mul_lazy(a[i], b[i]));
}
SEALC2_KERNEL(unit_fr_mul_lazy);
extern "C" __global__ void unit_fp_mul_lazy(const Fp* a, const Fp* b, Fp* r, uint32_t n) {
    const uint32_t i = unit_index();
    if (i < n) r[i] = reduce(mul_lazy(a[i], b[i]));
}
SEALC2_KERNEL(unit_fp_mul_lazy);
extern "C" __global__ void unit_fp_sqr_lazy(const Fp* a, Fp* r, uint32_t n) {
    const uint32_t i = unit_index();
    if (i < n) r[i] = reduce(sqr_lazy(a[i]));
}
SEALC2_KERNEL(unit_fp_sqr_lazy);
extern "C" __global__ void unit_fp2_mul_lazy(const Fp2* a, const Fp2* b, Fp2* r, uint32_t n) {
    const uint32_t i = unit_index();
    if (i < n) r[i] = reduce(mul_lazy(a[i], b[i]));
}
SEALC2_KERNEL(unit_fp2_mul_lazy);

// Each thread inverts 5 neighbours with one inversion.
extern "C" __global__ void unit_fp_inverse_each(const Fp* a, Fp* r, uint32_t n) {
    const uint32_t first = 5 * unit_index();
    if (first >= n) return;
    Fp x[5];
    SEALC2_UNROLL
    for (uint32_t i = 0; i < 5; i++) x[i] = first + i < n ? a[first + i] : Fp::zero();
    inverse_each(x);
    SEALC2_UNROLL
    for (uint32_t i = 0; i < 5; i++)
        if (first + i < n) r[first + i] = x[i];
}
SEALC2_KERNEL(unit_fp_inverse_each);

// Rates: each thread runs two chains of `steps` dependent operations from io[2i] and io[2i + 1].
#define UNIT_RATE(field, type, operation, expression)                                                         \
    extern "C" __global__ void __launch_bounds__(128) unit_rate_##field##_##operation(type* io, uint32_t steps) { \
        const uint32_t i = 2 * unit_index();                                                                  \
        type x = io[i], y = io[i + 1];                                                                        \
        [[maybe_unused]] const type z = y;                                                                    \
        SEALC2_ROLL                                                                                           \
        for (uint32_t k = 0; k < steps; k++) {                                                                \
            x = [&](const type& v) { return expression; }(x);                                                 \
            y = [&](const type& v) { return expression; }(y);                                                 \
        }                                                                                                     \
        io[i] = x;                                                                                            \
        io[i + 1] = y;                                                                                        \
    }                                                                                                         \
    SEALC2_KERNEL(unit_rate_##field##_##operation);
UNIT_RATE(fr, Fr, mul, mul(v, z))
UNIT_RATE(fp, Fp, mul, mul(v, z))
UNIT_RATE(fp, Fp, sqr, sqr(v))
UNIT_RATE(fp, Fp, inverse, add(inverse(v), z))
UNIT_RATE(fp2, Fp2, mul, mul(v, z))
UNIT_RATE(fp2, Fp2, sqr, sqr(v))
