// Entries that run one operation of a curve on each element of arrays of points: for tests, not for proofs.
#include "xyzz.cuh"

using namespace sealc2;

SEALC2_DEVICE uint32_t unit_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// scaled is the point with ZZ = z^2, so that no test runs on ZZ = 1 alone; z is not zero.
template <class F> SEALC2_DEVICE Xyzz<F> scaled(const Affine<F>& p, const F& z) {
    if (is_infinity(p)) return Xyzz<F>{z, z, F::zero(), F::zero()}; // infinity has any X and Y
    const F zz = sqr(z), zzz = mul(zz, z);
    return Xyzz<F>{mul(p.x, zz), mul(p.y, zzz), zz, zzz};
}

#define UNIT_CURVE(group, F)                                                                                  \
    extern "C" __global__ void unit_##group##_add_affine(const Affine<F>* a, const Affine<F>* b, const F* z,  \
                                                         Affine<F>* r, uint32_t n) {                          \
        const uint32_t i = unit_index();                                                                      \
        if (i < n) r[i] = to_affine(add(scaled(a[i], z[i]), b[i]));                                           \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##group##_add_affine);                                                                 \
    extern "C" __global__ void unit_##group##_add(const Affine<F>* a, const Affine<F>* b, const F* z,         \
                                                  Affine<F>* r, uint32_t n) {                                 \
        const uint32_t i = unit_index();                                                                      \
        if (i < n) r[i] = to_affine(add(scaled(a[i], z[i]), scaled(b[i], dbl(z[i]))));                        \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##group##_add);                                                                        \
    /* dbl and neg: r[2i] = -2a by xyzz, r[2i + 1] = 2a from affine. */                                       \
    extern "C" __global__ void unit_##group##_dbl(const Affine<F>* a, const F* z, Affine<F>* r, uint32_t n) { \
        const uint32_t i = unit_index();                                                                      \
        if (i >= n) return;                                                                                   \
        r[2 * i] = to_affine(neg(dbl(scaled(a[i], z[i]))));                                                   \
        r[2 * i + 1] = to_affine(dbl(a[i]));                                                                  \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##group##_dbl);                                                                        \
    /* r = a + b by the affine laws; where those have no answer, infinity. */                                 \
    extern "C" __global__ void unit_##group##_add_finite(const Affine<F>* a, const Affine<F>* b,              \
                                                         Affine<F>* r, uint32_t n) {                          \
        const uint32_t i = unit_index();                                                                      \
        if (i >= n) return;                                                                                   \
        const bool same = eq(a[i], b[i]), finite = !is_infinity(a[i]) && !is_infinity(b[i]);                  \
        r[i] = Affine<F>::infinity();                                                                         \
        if (finite && same) r[i] = dbl_finite(a[i], inverse(dbl(a[i].y)));                                    \
        if (finite && !eq(a[i].x, b[i].x)) r[i] = add_finite(a[i], b[i], inverse(sub(b[i].x, a[i].x)));       \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##group##_add_finite);                                                                 \
    /* Bits: a on the curve, a = b as xyzz, a infinite, -a = b. */                                            \
    extern "C" __global__ void unit_##group##_tests(const Affine<F>* a, const Affine<F>* b, const F* z,       \
                                                    uint32_t* r, uint32_t n) {                                \
        const uint32_t i = unit_index();                                                                      \
        if (i >= n) return;                                                                                   \
        const Xyzz<F> p = scaled(a[i], z[i]), q = scaled(b[i], dbl(z[i]));                                    \
        r[i] = uint32_t(on_curve(a[i])) | uint32_t(eq(p, q)) << 1 | uint32_t(is_infinity(p)) << 2 |           \
               uint32_t(eq(neg(a[i]), b[i])) << 3;                                                            \
    }                                                                                                         \
    SEALC2_KERNEL(unit_##group##_tests);

UNIT_CURVE(g1, Fp)
UNIT_CURVE(g2, Fp2)
