// Whether points have order r.
//
// One point: on G1 sigma(P) = -x^2 P, on G2 psi(P) = xP, where sigma(x, y) = (beta x, y) for a cube root of unity beta,
// psi is the twist's Frobenius, and x = -0xd201000000010000 the parameter of the curve. Source: M. Scott, "A note on
// group membership tests for G1, G2 and GT on BLS pairing-friendly curves" (eprint 2021/1130). Cost: 126 doublings and
// 10 additions on G1, some 1300 products; 63 and 5 on G2.
//
// Many points: random bucket sums. A point outside the group of order r has a part in the rest of the curve, which
// vanishes in a sum only together with others', so every bucket's sum is tested in place of every point; whoever
// chooses the points best escapes a round with probability 1/buckets. A secret permutation of the indices deals the
// points out, so that the members of a bucket are enumerated and nothing is sorted.
// Cost: 8 products and 2 squares a point and round. Floor on an H200: 2.6 G points/s.
#pragma once
#include "../field/called.cuh"
#include "../field/constants_order.cuh"
#include "codec.cuh"

namespace sealc2 {
namespace points {

// endomorphism is what |x|, squared on G1, times a point of order r is.
SEALC2_DEVICE Xyzz<CalledFp> endomorphism(const Xyzz<CalledFp>& p) { // -sigma(p) = x^2 p
    CalledFp beta;
    SEALC2_UNROLL
    for (int j = 0; j < Fp::limbs; j++) beta.value.limb[j] = g1_beta(j);
    return Xyzz<CalledFp>{mul(p.x, beta), neg(p.y), p.zz, p.zzz};
}
SEALC2_DEVICE Fp2 conjugate(const Fp2& a) { return Fp2{a.c0, neg(a.c1)}; }
SEALC2_DEVICE G2Xyzz endomorphism(const G2Xyzz& p) { // -psi(p) = |x| p
    Fp2 x, y;
    SEALC2_UNROLL
    for (int j = 0; j < Fp::limbs; j++) {
        x.c0.limb[j] = g2_psi_x0(j);
        x.c1.limb[j] = g2_psi_x1(j);
        y.c0.limb[j] = g2_psi_y0(j);
        y.c1.limb[j] = g2_psi_y1(j);
    }
    return G2Xyzz{mul(conjugate(p.x), x), neg(mul(conjugate(p.y), y)), conjugate(p.zz), conjugate(p.zzz)};
}

// times_parameter is |x| p.
template <class F> SEALC2_DEVICE_CALL void times_parameter(Xyzz<F>* p) {
    constexpr uint64_t parameter = 0xd201000000010000u;
    const Xyzz<F> base = *p;
    Xyzz<F> sum = base;
    SEALC2_ROLL
    for (int bit = 62; bit >= 0; bit--) {
        sum = dbl(sum);
        if (parameter >> bit & 1) sum = add(sum, base);
    }
    *p = sum;
}

// in_group tells whether a point of the curve has order r or is infinity. F's products are calls.
template <class F> SEALC2_DEVICE bool in_group(const Xyzz<F>& p) {
    Xyzz<F> q = p;
    times_parameter(&q);
    if constexpr (sizeof(F) == sizeof(Fp)) times_parameter(&q); // twice on G1
    return is_infinity(p) || eq(endomorphism(p), q);
}

// Deal is a secret permutation of the numbers below 2^log: a Feistel network whose halves take turns.
struct Deal {
    static constexpr int rounds = 8;
    uint32_t keys[2 * rounds];
};

SEALC2_DEVICE uint32_t deal_mix(uint32_t x, uint32_t multiplier, uint32_t key) {
    x = (x ^ key) * (multiplier | 1);
    x ^= x >> 15;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

// place_of is the index at place v, for log from 1 to 32.
SEALC2_DEVICE uint32_t place_of(const Deal& deal, uint32_t v, uint32_t log) {
    const uint32_t low_log = log / 2, low_mask = (1u << low_log) - 1, high_mask = (1u << (log - low_log)) - 1;
    uint32_t low = v & low_mask, high = v >> low_log;
    SEALC2_UNROLL
    for (int i = 0; i < Deal::rounds; i += 2) {
        high ^= deal_mix(low, deal.keys[2 * i], deal.keys[2 * i + 1]) & high_mask;
        low ^= deal_mix(high, deal.keys[2 * i + 2], deal.keys[2 * i + 3]) & low_mask;
    }
    return high << low_log | low;
}

// sum_bucket adds to a bucket's sum the points that are dealt to it: those at places bucket, bucket + buckets, ... of
// the 2^log >= count ones.
template <class F> SEALC2_DEVICE void sum_bucket(Xyzz<F>& sum, const Affine<F>* points, uint32_t count, const Deal& deal, uint32_t log, uint32_t bucket, uint32_t buckets) {
    const uint64_t places = uint64_t(1) << log;
    SEALC2_ROLL
    for (uint64_t v = bucket; v < places; v += buckets) {
        uint32_t i = place_of(deal, uint32_t(v), log);
        SEALC2_ROLL
        while (i >= count) { // less than half of the places are empty
            v += buckets;
            if (v >= places) return;
            i = place_of(deal, uint32_t(v), log);
        }
        sum = add(sum, points[i]);
    }
}

} // namespace points
} // namespace sealc2
