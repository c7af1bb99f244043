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
template <class F> SEALC2_DEVICE void unit_points(const Affine<F>* table, uint32_t count, Affine<F>* points) {
    const uint32_t from = (blockIdx.x * blockDim.x + threadIdx.x) * unit_run;
    if (from >= count) return;
    Xyzz<F> p = to_xyzz(table[32]), run[unit_run];
    SEALC2_ROLL
    for (uint32_t j = 0; from >> j != 0; j++)
        if (from >> j & 1) add_affine_to(&p, &table[j]);
    // One inversion for all ZZZ, of which none is zero.
    F prefix[unit_run], product = F::one(), i, z;
    SEALC2_ROLL
    for (int k = 0; k < unit_run; k++) {
        run[k] = p;
        add_affine_to(&p, &table[0]);
        prefix[k] = product;
        mul_far(&product, &product, &run[k].zzz);
    }
    F rest = inverse(product);
    SEALC2_ROLL
    for (int k = unit_run - 1; k >= 0; k--) {
        mul_far(&i, &rest, &prefix[k]);
        mul_far(&rest, &rest, &run[k].zzz);
        mul_far(&z, &i, &run[k].zz);
        mul_far(&z, &z, &z);
        mul_far(&run[k].x, &run[k].x, &z);
        mul_far(&run[k].y, &run[k].y, &i);
        if (from + k < count) points[from + k] = Affine<F>{run[k].x, run[k].y};
    }
}
extern "C" __global__ void __launch_bounds__(128) unit_msm_points_g1(const G1Affine* table, uint32_t count, G1Affine* points) {
    unit_points(table, count, points);
}
SEALC2_KERNEL(unit_msm_points_g1);
extern "C" __global__ void __launch_bounds__(128) unit_msm_points_g2(const G2Affine* table, uint32_t count, G2Affine* points) {
    unit_points(table, count, points);
}
SEALC2_KERNEL(unit_msm_points_g2);
