// Points and scalars for tests and benchmarks, made where they are needed: distinct ones, whose sum can be told by exponents.
#include "reduce.cuh"

using namespace sealc2;
using namespace sealc2::msm;

// unit_mix is a permutation of 64-bit numbers that looks random. Source: S. Vigna's splitmix64, the finalizer.
SEALC2_DEVICE uint64_t unit_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

// unit_msm_scalars: word k of scalar i is mix(4i + k + seed), the top one with 63 bits; less r where that is below.
extern "C" __global__ void unit_msm_scalars(Fr* scalars, uint32_t count, uint64_t seed) {
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        Fr s;
        SEALC2_UNROLL
        for (int k = 0; k < 4; k++) {
            uint64_t w = unit_mix(4ull * i + k + seed);
            if (k == 3) w &= 0x7fffffffffffffffull;
            s.limb[2 * k] = uint32_t(w);
            s.limb[2 * k + 1] = uint32_t(w >> 32);
        }
        scalars[i] = reduce(s);
    }
}
SEALC2_KERNEL(unit_msm_scalars);

constexpr int unit_run = 16;

// unit_points writes table[32] + i * table[0] for i < count; table[j] = 2^j * table[0]. A thread makes unit_run points.
template <class F> SEALC2_DEVICE void unit_points(const Affine<Far<F>>* table, uint32_t count, Affine<Far<F>>* points) {
    const uint32_t from = (blockIdx.x * blockDim.x + threadIdx.x) * unit_run;
    if (from >= count) return;
    Xyzz<Far<F>> p = to_xyzz(table[32]), run[unit_run];
    SEALC2_ROLL
    for (uint32_t j = 0; from >> j != 0; j++)
        if (from >> j & 1) add_affine_to(&p, &table[j]);
    SEALC2_ROLL
    for (int k = 0; k < unit_run; k++) {
        run[k] = p;
        add_affine_to(&p, &table[0]);
    }
    // One inversion for all ZZZ; none is zero.
    Far<F> prefix[unit_run], product = Far<F>::one();
    SEALC2_ROLL
    for (int k = 0; k < unit_run; k++) {
        prefix[k] = product;
        product = mul(product, run[k].zzz);
    }
    Far<F> rest = Far<F>{inverse(product.value)};
    SEALC2_ROLL
    for (int k = unit_run - 1; k >= 0; k--) {
        const Far<F> i = mul(rest, prefix[k]), z = mul(i, run[k].zz);
        rest = mul(rest, run[k].zzz);
        if (from + k < count) points[from + k] = Affine<Far<F>>{mul(run[k].x, sqr(z)), mul(run[k].y, i)};
    }
}
extern "C" __global__ void __launch_bounds__(128) unit_msm_points_g1(const Affine<Far<Fp>>* table, uint32_t count, Affine<Far<Fp>>* points) {
    unit_points(table, count, points);
}
SEALC2_KERNEL(unit_msm_points_g1);
extern "C" __global__ void __launch_bounds__(128) unit_msm_points_g2(const Affine<Far<Fp2>>* table, uint32_t count, Affine<Far<Fp2>>* points) {
    unit_points(table, count, points);
}
SEALC2_KERNEL(unit_msm_points_g2);
