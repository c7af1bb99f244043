// Fp, the base field of BLS12-381: p has 381 bits, R = 2^384. In memory as gnark-crypto's fp.Element.
//
// R is 9.8 p, so sums and lazy products of several p need no reduction between them: 9p fits into the limbs, and
// a product is below 2p as long as its factors' bounds, in units of p, multiply to 9.8 at most.
//
// Cost: a product 300 wide multiplies (144 for the product, 156 for the reduction), a square 234. Measured floors on
// an H200 by operand reads: 1226 clocks a warp and sub-partition, 27.3 G/s; squares 33.4 G/s.
#pragma once
#include "montgomery.cuh"

namespace sealc2 {

struct alignas(16) Fp {
    uint32_t limb[12];

    static constexpr int limbs = 12;
    static constexpr uint32_t minus_inverse = fp_minus_inverse;
    static constexpr int inverse_rounds = fp_inverse_rounds;
    SEALC2_DEVICE static uint32_t modulus(int j) { return fp_modulus(j); }
    SEALC2_DEVICE static uint32_t inverse_scale(int j) { return fp_inverse_scale(j); }

    SEALC2_DEVICE static Fp zero() { return Fp{}; }
    SEALC2_DEVICE static Fp one() {
        Fp r;
        SEALC2_UNROLL
        for (int j = 0; j < limbs; j++) r.limb[j] = fp_one(j);
        return r;
    }
};

SEALC2_DEVICE Fp add(const Fp& a, const Fp& b) { return Montgomery<Fp>::add(a, b); }
SEALC2_DEVICE Fp sub(const Fp& a, const Fp& b) { return Montgomery<Fp>::sub(a, b); }
SEALC2_DEVICE Fp neg(const Fp& a) { return Montgomery<Fp>::neg(a); }
SEALC2_DEVICE Fp dbl(const Fp& a) { return Montgomery<Fp>::add(a, a); }
SEALC2_DEVICE Fp halve(const Fp& a) { return Montgomery<Fp>::halve(a); }
SEALC2_DEVICE bool is_zero(const Fp& a) { return Montgomery<Fp>::is_zero(a); }
SEALC2_DEVICE bool eq(const Fp& a, const Fp& b) { return Montgomery<Fp>::eq(a, b); }
SEALC2_DEVICE Fp select(bool condition, const Fp& a, const Fp& b) { return Montgomery<Fp>::select(condition, a, b); }

// reduce takes a value below 2p to one below p.
SEALC2_DEVICE Fp reduce(const Fp& a) { return Montgomery<Fp>::reduce(a); }
// add_lazy is the plain sum, which must be below R = 9.8 p.
SEALC2_DEVICE Fp add_lazy(const Fp& a, const Fp& b) { return Montgomery<Fp>::add_lazy(a, b); }
// sub_lazy is a - b + p, for b at most p: above 0, below a's bound + p.
SEALC2_DEVICE Fp sub_lazy(const Fp& a, const Fp& b) {
    uint32_t m[Fp::limbs];
    Montgomery<Fp>::load_modulus(m);
    Fp r;
    sub_limbs<Fp::limbs>(r.limb, m, b.limb);
    return add_lazy(r, a);
}

// mul_lazy and sqr_lazy are below 2p where the factors' product is below R * p.
SEALC2_DEVICE Fp mul_lazy(const Fp& a, const Fp& b) { return Montgomery<Fp>::mul_lazy(a, b); }
SEALC2_DEVICE Fp sqr_lazy(const Fp& a) {
    uint32_t T[2 * Fp::limbs];
    Wide<Fp::limbs>::sqr(T, a.limb);
    return Montgomery<Fp>::reduce_wide(T);
}
SEALC2_DEVICE Fp mul(const Fp& a, const Fp& b) { return reduce(mul_lazy(a, b)); }
SEALC2_DEVICE Fp sqr(const Fp& a) { return reduce(sqr_lazy(a)); }

// to_canonical gives the integer that a stands for; from_canonical the element of an integer below p.
SEALC2_DEVICE Fp to_canonical(const Fp& a) {
    Fp one = {{1}};
    return mul(a, one);
}
SEALC2_DEVICE Fp from_canonical(const Fp& a) {
    Fp r2;
    SEALC2_UNROLL
    for (int j = 0; j < Fp::limbs; j++) r2.limb[j] = fp_r2(j);
    return mul(a, r2);
}

} // namespace sealc2
