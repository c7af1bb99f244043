// Products with a factor that is known beforehand, such as a root of unity: V. Shoup's method, for Fr.
//
// For w below r, let w' = floor(w * 2^256 / r). With q = floor(a * w' / 2^256), a * w - q * r lies in [0, 2r) for any a below
// 2^256, and in [0, (1 + a/2^256) r) to be exact; so it is known from its low 256 bits, and half of either product will do.
// q is gathered from the words 6 and up of a * w', which makes it at most one too small, and a multiple of 2^29 a time less
// often than not: what the lower words could add to the fraction is below 2^-29, which the bound has room for.
// a may be in Montgomery form, w is not; the product is in a's form.
//
// -r = 2^32 - 1 + 2^64 * m with m = -s modulo 2^192 (s as in field/fr.cuh), so q * r takes six words a row.
//
// Cost: 43 + 28 + 15 wide multiplies and 14 low ones, against the 112 wide ones of a Montgomery product. Source: D. Harvey,
// "Faster arithmetic for number-theoretic transforms" (2014).
#pragma once
#include "../field/fr.cuh"

namespace sealc2 {

// FrRoot is a factor in both forms.
struct FrRoot {
    Fr value;    // w, not in Montgomery form
    Fr quotient; // floor(w * 2^256 / r)
};

SEALC2_CONSTANT(fr_minus_s, 6, 0x0001a401u, 0xac425bfdu, 0xf65e27fau, 0xccc627f7u, 0xd66282b7u, 0x8c1258acu)

// FrRootRows gathers products of words by columns: even columns in one array, odd ones in another.
struct FrRootRows {
    // high adds b * a[j] for the j of one parity with i + j >= 6, at word i + j; words[k] is word `first` + k. The carry goes to
    // the word behind, which holds nothing or a carry yet.
    template <int first> SEALC2_DEVICE static void high(uint32_t* words, const uint32_t* a, uint32_t b, int i, int parity, bool carries) {
        Carry c;
        int begin = i >= 6 ? 0 : 6 - i;
        begin += (begin & 1) != parity;
        SEALC2_UNROLL
        for (int j = begin; j < 8; j += 2) {
            const int at = i + j - first;
            words[at] = j == begin ? mad_lo_cc(c, a[j], b, words[at]) : madc_lo_cc(c, a[j], b, words[at]);
            words[at + 1] = madc_hi_cc(c, a[j], b, words[at + 1]);
            if (j + 2 >= 8 && carries) words[at + 2] = addc_cc(c, words[at + 2], 0);
        }
    }
    // low adds b * a[j] for the j of one parity, j < count, at word i + j < 8; words[k] is word `first` + k.
    template <int first> SEALC2_DEVICE static void low(uint32_t* words, const uint32_t* a, uint32_t b, int i, int parity, int count) {
        Carry c;
        SEALC2_UNROLL
        for (int j = parity; j < count && i + j < 8; j += 2) {
            const int at = i + j - first;
            words[at] = j == parity ? mad_lo_cc(c, a[j], b, words[at]) : madc_lo_cc(c, a[j], b, words[at]);
            if (i + j < 7) words[at + 1] = madc_hi_cc(c, a[j], b, words[at + 1]);
        }
    }
};

// mul_lazy is a * w below 2r, in a's form, for any a below 2^256.
SEALC2_DEVICE Fr mul_lazy(const FrRoot& w, const Fr& a) {
    using R = FrRootRows;
    uint32_t q[8];
    {
        uint32_t even[11] = {}, odd[9] = {}; // words 6 to 16 and 7 to 15
        SEALC2_UNROLL
        for (int i = 0; i < 8; i++) {
            // Rows that reach a word for the first time leave no carry.
            R::high<6>(even, w.quotient.limb, a.limb[i], i, i & 1, i % 2 == 0 && i > 0);
            R::high<7>(odd, w.quotient.limb, a.limb[i], i, 1 - (i & 1), i % 2 == 1);
        }
        Carry c;
        add_cc(c, even[1], odd[0]);
        SEALC2_UNROLL
        for (int j = 0; j < 8; j++) q[j] = addc_cc(c, even[j + 2], odd[j + 1]);
    }
    // a * w - q * r = a * w + ((q * m) << 64) + (q << 32) + ~q + 1, modulo 2^256.
    uint32_t even[8], odd[7], m[6]; // words 0 to 7 and 1 to 7
    SEALC2_UNROLL
    for (int j = 0; j < 6; j++) m[j] = fr_minus_s(j);
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) even[j] = ~q[j];
    SEALC2_UNROLL
    for (int j = 0; j < 7; j++) odd[j] = q[j];
    SEALC2_UNROLL
    for (int i = 0; i < 8; i++) {
        R::low<0>(even, w.value.limb, a.limb[i], i, i & 1, 8);
        R::low<1>(odd, w.value.limb, a.limb[i], i, 1 - (i & 1), 8);
        if (i < 6) {
            R::low<0>(even, m, q[i], i + 2, i & 1, 6);
            R::low<1>(odd, m, q[i], i + 2, 1 - (i & 1), 6);
        }
    }
    Fr r;
    Carry c;
    r.limb[0] = add_cc(c, even[0], 1);
    SEALC2_UNROLL
    for (int j = 1; j < 8; j++) r.limb[j] = addc_cc(c, even[j], odd[j - 1]);
    return r;
}
SEALC2_DEVICE Fr mul(const FrRoot& w, const Fr& a) { return reduce(mul_lazy(w, a)); }

// root_of makes both forms of a factor in Montgomery form; minus_inverse is -1/r modulo 2^256.
SEALC2_DEVICE FrRoot root_of(const Fr& factor, const Fr& minus_inverse) {
    // The Montgomery form is what w * 2^256 leaves modulo r, so w' = (w * 2^256 - factor)/r, which is exact.
    FrRoot w;
    w.value = to_canonical(factor);
    uint32_t product[16];
    Wide<8>::mul(product, factor.limb, minus_inverse.limb);
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) w.quotient.limb[j] = product[j];
    return w;
}

} // namespace sealc2
