// Multiples of one point by many scalars.
//
// A table has for each of n windows of c bits, n * c >= 255, the multiples 1 .. 2^(c-1) of the base times the window's
// place value. A scalar is taken to the half of the field nearer to zero; digits are signed by adding 2^(c-1) in every
// window beforehand, so no carries travel. A product is one entry a window, added up in affine coordinates: a thread has
// many sums under way that share an inversion (Montgomery's trick). The table is filled in the same way, by doubling its
// length until it is whole.
//
// Cost an addition: 5 products, 1 square and the inversion's share; some 450 bytes moved, 96 or 192 of them at random.
// Floor by operand reads on an H200: 4.6 G additions/s in G1, n - 1 of them a scalar.
#pragma once
#include "../curve/affine.cuh"
#include "../tuning/points.cuh"

namespace sealc2 {
namespace points {

// What adding b to a is.
enum Sum : uint32_t { sum_first, sum_second, sum_adds, sum_doubles, sum_cancels };

// sum_of classifies a + b and gives what must be inverted for it: 1 where nothing.
template <class F> SEALC2_DEVICE uint32_t sum_of(const Affine<F>& a, const Affine<F>& b, F& factor) {
    factor = F::one();
    if (is_infinity(b)) return sum_first;
    if (is_infinity(a)) return sum_second;
    const F dx = sub(b.x, a.x);
    if (!is_zero(dx)) {
        factor = dx;
        return sum_adds;
    }
    if (!eq(a.y, b.y)) return sum_cancels;
    factor = dbl(a.y);
    return sum_doubles;
}

// batch_add makes the sums numbered first, first + apart, ..., below end, of which there are at most `most`. sums has
// load_a(i), load_b(i) and store(i, sum); store may change what load gives for i, and for no other number. prefixes has room for
// `most` elements, `apart` apart; the thread's own begin at prefixes[first].
template <class F, class Sums> SEALC2_DEVICE void batch_add(Sums& sums, uint32_t first, uint32_t end, uint32_t apart, F* prefixes) {
    if (first >= end) return;
    F product = F::one();
    const uint32_t last = first + (end - 1 - first) / apart * apart;
    SEALC2_ROLL
    for (uint32_t i = first; i < end; i += apart) {
        F factor;
        sum_of(sums.load_a(i), sums.load_b(i), factor);
        prefixes[i] = product;
        product = mul(product, factor);
    }
    F rest = inverse(product);
    SEALC2_ROLL
    for (uint32_t i = last;; i -= apart) {
        const Affine<F> a = sums.load_a(i), b = sums.load_b(i);
        F factor;
        const uint32_t kind = sum_of(a, b, factor);
        const F reciprocal = mul(rest, prefixes[i]);
        rest = mul(rest, factor);
        Affine<F> r = Affine<F>::infinity();
        if (kind == sum_first)
            r = a;
        else if (kind == sum_second)
            r = b;
        else if (kind == sum_adds)
            r = add_finite(a, b, reciprocal);
        else if (kind == sum_doubles)
            r = dbl_finite(a, reciprocal);
        sums.store(i, r);
        if (i == first) break;
    }
}

// Digits of a scalar, n windows of c bits.
struct Recoder {
    uint32_t words[10]; // what is left of the scalar plus 2^(c-1) in every window
    bool negative;
};

// recode_begin takes a scalar in Montgomery form. bias is the sum of 2^(c-1) over all windows, ten words.
SEALC2_DEVICE void recode_begin(Recoder& r, const Fr& scalar, const uint32_t* bias) {
    const Fr canonical = to_canonical(scalar), opposite = neg(canonical);
    uint32_t less[8];
    r.negative = sub_limbs<8>(less, opposite.limb, canonical.limb) != 0; // above half of the field
    Carry c;
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) {
        const uint32_t word = r.negative ? opposite.limb[j] : canonical.limb[j];
        r.words[j] = j == 0 ? add_cc(c, word, bias[j]) : addc_cc(c, word, bias[j]);
    }
    r.words[8] = addc_cc(c, 0, bias[8]);
    r.words[9] = addc_cc(c, 0, bias[9]);
}

// recode_next takes the lowest window off, as |digit| << 1 | sign, 0 for the digit 0. bits is from 4 to 24.
SEALC2_DEVICE uint32_t recode_next(Recoder& r, uint32_t bits) {
    const uint32_t half = 1u << (bits - 1), raw = r.words[0] & (2 * half - 1);
    SEALC2_UNROLL
    for (int j = 0; j < 9; j++) r.words[j] = __funnelshift_r(r.words[j], r.words[j + 1], bits);
    r.words[9] >>= bits;
    const bool below = raw < half;
    const uint32_t digit = below ? half - raw : raw - half;
    return digit == 0 ? 0 : digit << 1 | uint32_t(below != r.negative);
}

// Multiply are the sums of one window: a scalar's sum so far and its entry of the table.
template <class F> struct Multiply {
    Affine<F>* sums;
    const Affine<F>* table; // the window's
    const uint32_t* digits; // the window's

    SEALC2_DEVICE Affine<F> load_a(uint32_t i) const { return sums[i]; }
    SEALC2_DEVICE Affine<F> load_b(uint32_t i) const {
        const uint32_t digit = digits[i];
        if (digit == 0) return Affine<F>::infinity();
        Affine<F> p = table[(digit >> 1) - 1];
        p.y = select(digit & 1, neg(p.y), p.y);
        return p;
    }
    SEALC2_DEVICE void store(uint32_t i, const Affine<F>& p) const { sums[i] = p; }
};

// Extend are the sums by which a window's table of `have` multiples doubles.
template <class F> struct Extend {
    Affine<F>* table;
    uint32_t have;

    SEALC2_DEVICE Affine<F> load_a(uint32_t i) const { return table[i]; }
    SEALC2_DEVICE Affine<F> load_b(uint32_t) const { return table[have - 1]; }
    SEALC2_DEVICE void store(uint32_t i, const Affine<F>& p) const { table[have + i] = p; }
};

} // namespace points
} // namespace sealc2
