// Fp2 = Fp[u]/(u^2 + 1), where G2's coordinates live. In memory as gnark-crypto's E2: c0, then c1.
//
// A product takes three products of 144 wide multiplies each by Karatsuba's identity and two reductions of 156,
// 744 in place of the 900 of three whole products. A square is two products: (a0 + a1)(a0 - a1) and 2 a0 a1.
#pragma once
#include "fp.cuh"

namespace sealc2 {

struct alignas(16) Fp2 {
    Fp c0, c1;

    SEALC2_DEVICE static Fp2 zero() { return Fp2{Fp::zero(), Fp::zero()}; }
    SEALC2_DEVICE static Fp2 one() { return Fp2{Fp::one(), Fp::zero()}; }
};

SEALC2_DEVICE Fp2 add(const Fp2& a, const Fp2& b) { return Fp2{add(a.c0, b.c0), add(a.c1, b.c1)}; }
SEALC2_DEVICE Fp2 sub(const Fp2& a, const Fp2& b) { return Fp2{sub(a.c0, b.c0), sub(a.c1, b.c1)}; }
SEALC2_DEVICE Fp2 neg(const Fp2& a) { return Fp2{neg(a.c0), neg(a.c1)}; }
SEALC2_DEVICE Fp2 dbl(const Fp2& a) { return Fp2{dbl(a.c0), dbl(a.c1)}; }
SEALC2_DEVICE Fp2 halve(const Fp2& a) { return Fp2{halve(a.c0), halve(a.c1)}; }
SEALC2_DEVICE bool is_zero(const Fp2& a) { return is_zero(a.c0) && is_zero(a.c1); }
SEALC2_DEVICE bool eq(const Fp2& a, const Fp2& b) { return eq(a.c0, b.c0) && eq(a.c1, b.c1); }
SEALC2_DEVICE Fp2 select(bool condition, const Fp2& a, const Fp2& b) {
    return Fp2{select(condition, a.c0, b.c0), select(condition, a.c1, b.c1)};
}
// reduce takes coefficients below 2p to ones below p.
SEALC2_DEVICE Fp2 reduce(const Fp2& a) { return Fp2{reduce(a.c0), reduce(a.c1)}; }

// mul_lazy takes coefficients below 2p and gives such.
SEALC2_DEVICE Fp2 mul_lazy(const Fp2& a, const Fp2& b) {
    constexpr int n = Fp::limbs;
    // low = a0 b0 and high = a1 b1 are below 4p^2, mixed = (a0 + a1)(b0 + b1) below 16p^2; all fit, R being 9.8 p.
    uint32_t low[2 * n], high[2 * n], mixed[2 * n];
    const Fp sum_a = add_lazy(a.c0, a.c1), sum_b = add_lazy(b.c0, b.c1);
    Wide<n>::mul(mixed, sum_a.limb, sum_b.limb);
    Wide<n>::mul(low, a.c0.limb, b.c0.limb);
    sub_limbs<2 * n>(mixed, mixed, low);
    Wide<n>::mul(high, a.c1.limb, b.c1.limb);
    sub_limbs<2 * n>(mixed, mixed, high); // a0 b1 + a1 b0, below 8p^2 < R * p
    // low - high, with R * p added where it is negative.
    const uint32_t borrow = sub_limbs<2 * n>(low, low, high);
    uint32_t back[n];
    SEALC2_UNROLL
    for (int j = 0; j < n; j++) back[j] = borrow & Fp::modulus(j);
    add_limbs<n>(low + n, low + n, back);
    return Fp2{Montgomery<Fp>::reduce_wide(low), Montgomery<Fp>::reduce_wide(mixed)};
}

// sqr_lazy takes coefficients below p and gives ones below 2p.
SEALC2_DEVICE Fp2 sqr_lazy(const Fp2& a) {
    const Fp sum = add_lazy(a.c0, a.c1), difference = sub_lazy(a.c0, a.c1);
    return Fp2{mul_lazy(sum, difference), mul_lazy(add_lazy(a.c0, a.c0), a.c1)};
}

// Products are calls, by value and so in registers: a group operation of G2 has 10 to 14 of them, which inlined are longer than
// the instruction caches, and take the compiler minutes. Moving the arguments costs some 2%; the lazy ones are inlined.
SEALC2_DEVICE_CALL Fp2 mul(Fp2 a, Fp2 b) { return reduce(mul_lazy(a, b)); }
SEALC2_DEVICE_CALL Fp2 sqr(Fp2 a) { return reduce(sqr_lazy(a)); }

SEALC2_DEVICE Fp2 to_canonical(const Fp2& a) { return Fp2{to_canonical(a.c0), to_canonical(a.c1)}; }
SEALC2_DEVICE Fp2 from_canonical(const Fp2& a) { return Fp2{from_canonical(a.c0), from_canonical(a.c1)}; }

} // namespace sealc2
