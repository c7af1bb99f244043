// Fr, the scalar field of BLS12-381: r has 255 bits, R = 2^256. In memory as gnark-crypto's fr.Element.
//
// r = 1 - 2^32 + 2^64 * s, so the word that a row of the reduction clears needs no multiplication by -1/r, and
// neither do the two low words of r. With E the lowest word and q = 2^32 - E,
//     (T + q * r) / 2^32 = (T >> 32) + E + 2^32 * (~E * s) + [1 + 2^32 * (s - 1)].
// What stands in brackets does not depend on T: all eight rows' are in the table fr_rows and enter as start values.
//
// Cost of a product: 112 wide multiplies (plain: 136). Measured floor on an H200 by its operand reads: 491 clocks a
// warp and sub-partition, 68 G/s.
#pragma once
#include "montgomery.cuh"

namespace sealc2 {

struct alignas(16) Fr {
    uint32_t limb[8];

    static constexpr int limbs = 8;
    static constexpr uint32_t minus_inverse = fr_minus_inverse;
    static constexpr int inverse_rounds = fr_inverse_rounds;
    SEALC2_DEVICE static uint32_t modulus(int j) { return fr_modulus(j); }
    SEALC2_DEVICE static uint32_t inverse_scale(int j) { return fr_inverse_scale(j); }

    SEALC2_DEVICE static Fr zero() { return Fr{}; }
    SEALC2_DEVICE static Fr one() {
        Fr r;
        SEALC2_UNROLL
        for (int j = 0; j < limbs; j++) r.limb[j] = fr_one(j);
        return r;
    }
};

// FrRows has the two steps of the product with r's low words.
struct FrRows {
    static constexpr int n = Fr::limbs;
    using M = Montgomery<Fr>;

    // first starts the rows with a * b and the start values of all rows that lie in the window.
    SEALC2_DEVICE static void first(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b) {
        Carry c;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) even[j] = fr_rows(j);
        M::row(c, even, a, b);
        const uint32_t top = carry_out(c);
        SEALC2_UNROLL
        for (int j = 0; j < n; j += 2) mul_wide(odd[j], odd[j + 1], a[j + 1], b);
        odd[n - 1] += top;
    }

    // clear adds E at word 1 and ~E * s from word 2 on; even[0] stays and is dropped by the next step.
    SEALC2_DEVICE static void clear(uint32_t* even, uint32_t* odd) {
        Carry c;
        const uint32_t q = ~even[0];
        even[1] = add_cc(c, even[1], even[0]);
        SEALC2_UNROLL
        for (int j = 0; j < n - 2; j += 2) {
            even[j + 2] = madc_lo_cc(c, fr_s(j), q, even[j + 2]);
            even[j + 3] = madc_hi_cc(c, fr_s(j), q, even[j + 3]);
        }
        odd[n - 1] = addc_cc(c, odd[n - 1], 0);
        odd[2] = mad_lo_cc(c, fr_s(1), q, odd[2]);
        odd[3] = madc_hi_cc(c, fr_s(1), q, odd[3]);
        SEALC2_UNROLL
        for (int j = 3; j < n - 2; j += 2) {
            odd[j + 1] = madc_lo_cc(c, fr_s(j), q, odd[j + 1]);
            odd[j + 2] = madc_hi_cc(c, fr_s(j), q, odd[j + 2]);
        }
    }

    SEALC2_DEVICE static Fr mul_lazy(const Fr& a, const Fr& b) {
        uint32_t even[n], odd[n];
        first(even, odd, a.limb, b.limb[0]);
        clear(even, odd);
        SEALC2_UNROLL
        for (int i = 1; i < n; i++) {
            uint32_t* const e = i & 1 ? odd : even;
            uint32_t* const o = i & 1 ? even : odd;
            M::next(e, o, a.limb, b.limb[i], fr_rows(i + n - 1));
            clear(e, o);
        }
        return M::join(odd, even, fr_rows(2 * n - 1));
    }
};

SEALC2_DEVICE Fr add(const Fr& a, const Fr& b) { return Montgomery<Fr>::add(a, b); }
SEALC2_DEVICE Fr sub(const Fr& a, const Fr& b) { return Montgomery<Fr>::sub(a, b); }
SEALC2_DEVICE Fr neg(const Fr& a) { return Montgomery<Fr>::neg(a); }
SEALC2_DEVICE Fr dbl(const Fr& a) { return Montgomery<Fr>::add(a, a); }
SEALC2_DEVICE Fr halve(const Fr& a) { return Montgomery<Fr>::halve(a); }
SEALC2_DEVICE bool is_zero(const Fr& a) { return Montgomery<Fr>::is_zero(a); }
SEALC2_DEVICE bool eq(const Fr& a, const Fr& b) { return Montgomery<Fr>::eq(a, b); }
SEALC2_DEVICE Fr select(bool condition, const Fr& a, const Fr& b) { return Montgomery<Fr>::select(condition, a, b); }

// reduce takes a value below 2r to one below r.
SEALC2_DEVICE Fr reduce(const Fr& a) { return Montgomery<Fr>::reduce(a); }

// mul_lazy is a product below 2r, of a below r and b below 2r. Not the other way round: the rows are sums of a, which leave no
// room for a larger one.
SEALC2_DEVICE Fr mul_lazy(const Fr& a, const Fr& b) { return FrRows::mul_lazy(a, b); }
SEALC2_DEVICE Fr mul(const Fr& a, const Fr& b) { return reduce(mul_lazy(a, b)); }
SEALC2_DEVICE Fr sqr(const Fr& a) { return mul(a, a); }

// to_canonical gives the integer that a stands for; from_canonical the element of an integer below r.
SEALC2_DEVICE Fr to_canonical(const Fr& a) {
    Fr one = {{1}};
    return mul(a, one);
}
SEALC2_DEVICE Fr from_canonical(const Fr& a) {
    Fr r2;
    SEALC2_UNROLL
    for (int j = 0; j < Fr::limbs; j++) r2.limb[j] = fr_r2(j);
    return mul(a, r2);
}

} // namespace sealc2
