// Montgomery arithmetic on 32-bit limbs, shared by Fr and Fp.
//
// A product is gathered in two rows of words: even[j] stands for even[j] * 2^(32j), odd[j] for odd[j] * 2^(32(j+1)).
// Products of even limbs of a fall on word pairs of one row and those of odd limbs on pairs of the other, so each row
// takes its products in one carry chain, and the machine does a product's two halves as one wide multiply-add.
// After a limb of b the lowest word is cleared by a multiple of the modulus; the window moves up by one word, and the
// rows change places. Source: the even/odd form of Montgomery's method as in N. Emmart, J. Luitjens, C. Weems,
// C. Woolley, "Optimizing modular multiplication for NVIDIA's Maxwell GPUs" (ARITH 2016).
//
// Cost for n limbs: n*n wide multiplies for the product, n*n + n for the reduction.
#pragma once
#include "../limb.cuh"
#include "constants.cuh"

namespace sealc2 {

// Montgomery is the arithmetic of a field F with F::limbs, F::modulus(j) and F::minus_inverse. Values are below the
// modulus p unless a function says otherwise; 2p fits into the limbs.
template <class F> struct Montgomery {
    static constexpr int n = F::limbs;
    static_assert(n % 2 == 0, "rows of word pairs");

    SEALC2_DEVICE static void load_modulus(uint32_t* m) {
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) m[j] = F::modulus(j);
    }

    // reduce takes a value below 2p to one below p.
    SEALC2_DEVICE static F reduce(const F& a) {
        uint32_t m[n];
        load_modulus(m);
        F less;
        const uint32_t borrow = sub_limbs<n>(less.limb, a.limb, m);
        return select(borrow != 0, a, less);
    }

    SEALC2_DEVICE static F select(bool condition, const F& a, const F& b) {
        F r;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) r.limb[j] = condition ? a.limb[j] : b.limb[j];
        return r;
    }

    // add_lazy leaves the sum as it is: it must fit into the limbs.
    SEALC2_DEVICE static F add_lazy(const F& a, const F& b) {
        F r;
        add_limbs<n>(r.limb, a.limb, b.limb);
        return r;
    }

    SEALC2_DEVICE static F add(const F& a, const F& b) { return reduce(add_lazy(a, b)); }

    SEALC2_DEVICE static F sub(const F& a, const F& b) {
        F r;
        const uint32_t borrow = sub_limbs<n>(r.limb, a.limb, b.limb);
        uint32_t back[n];
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) back[j] = borrow & F::modulus(j);
        add_limbs<n>(r.limb, r.limb, back);
        return r;
    }

    // neg is p - a, and 0 for 0.
    SEALC2_DEVICE static F neg(const F& a) {
        F r;
        uint32_t m[n];
        const uint32_t keep = is_zero(a) ? 0u : ~0u;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) m[j] = keep & F::modulus(j);
        sub_limbs<n>(r.limb, m, a.limb);
        return r;
    }

    SEALC2_DEVICE static bool is_zero(const F& a) {
        uint32_t any = 0;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) any |= a.limb[j];
        return any == 0;
    }

    SEALC2_DEVICE static bool eq(const F& a, const F& b) {
        uint32_t any = 0;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) any |= a.limb[j] ^ b.limb[j];
        return any == 0;
    }

    // halve is a/2: a value below 2p gives one below 1.5p, one below p stays below p.
    SEALC2_DEVICE static F halve(const F& a) {
        const uint32_t odd = 0u - (a.limb[0] & 1);
        F r;
        uint32_t m[n];
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) m[j] = odd & F::modulus(j);
        const uint32_t top = add_limbs<n>(r.limb, a.limb, m);
        SEALC2_UNROLL
        for (int j = 0; j < n - 1; j++) r.limb[j] = r.limb[j] >> 1 | r.limb[j + 1] << 31;
        r.limb[n - 1] = r.limb[n - 1] >> 1 | top << 31;
        return r;
    }

    // row adds b * (a[0], a[2], a[4], ...) to n words and leaves the carry in c.
    SEALC2_DEVICE static void row(Carry& c, uint32_t* words, const uint32_t* a, uint32_t b) {
        words[0] = mad_lo_cc(c, a[0], b, words[0]);
        words[1] = madc_hi_cc(c, a[0], b, words[1]);
        SEALC2_UNROLL
        for (int j = 2; j < n; j += 2) {
            words[j] = madc_lo_cc(c, a[j], b, words[j]);
            words[j + 1] = madc_hi_cc(c, a[j], b, words[j + 1]);
        }
    }

    // first starts the rows with a * b.
    SEALC2_DEVICE static void first(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b) {
        SEALC2_UNROLL
        for (int j = 0; j < n; j += 2) {
            mul_wide(even[j], even[j + 1], a[j], b);
            mul_wide(odd[j], odd[j + 1], a[j + 1], b);
        }
    }

    // next moves the window up by one word and adds a * b. The rows have changed places: even is what was odd, and
    // odd what was even, whose word 0 is spent and whose word 1 now belongs to even[0]. top enters as the window's
    // highest word.
    SEALC2_DEVICE static void next(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b, uint32_t top) {
        Carry c;
        even[0] = add_cc(c, even[0], odd[1]);
        SEALC2_UNROLL
        for (int j = 0; j < n - 2; j += 2) {
            odd[j] = madc_lo_cc(c, a[j + 1], b, odd[j + 2]);
            odd[j + 1] = madc_hi_cc(c, a[j + 1], b, odd[j + 3]);
        }
        odd[n - 2] = madc_lo_cc(c, a[n - 1], b, top);
        odd[n - 1] = madc_hi_cc(c, a[n - 1], b, 0);
        row(c, even, a, b);
        odd[n - 1] = addc_cc(c, odd[n - 1], 0);
    }

    // clear makes even[0] zero by adding a multiple of p.
    SEALC2_DEVICE static void clear(uint32_t* even, uint32_t* odd) {
        Carry c;
        uint32_t m[n];
        load_modulus(m);
        const uint32_t q = even[0] * F::minus_inverse;
        row(c, odd, m + 1, q);
        row(c, even, m, q);
        odd[n - 1] = addc_cc(c, odd[n - 1], 0);
    }

    // join adds the rows after the last clear; even and odd are named as they were in it. top as in next.
    SEALC2_DEVICE static F join(const uint32_t* even, const uint32_t* odd, uint32_t top) {
        Carry c;
        F r;
        r.limb[0] = add_cc(c, odd[0], even[1]);
        SEALC2_UNROLL
        for (int j = 1; j < n - 1; j++) r.limb[j] = addc_cc(c, odd[j], even[j + 1]);
        r.limb[n - 1] = addc_cc(c, odd[n - 1], top);
        return r;
    }

    // mul_lazy is a * b / R plus less than p: below 2p where a * b < R * p.
    SEALC2_DEVICE static F mul_lazy(const F& a, const F& b) {
        uint32_t even[n], odd[n];
        first(even, odd, a.limb, b.limb[0]);
        clear(even, odd);
        SEALC2_UNROLL
        for (int i = 1; i < n; i++) {
            uint32_t* const e = i & 1 ? odd : even;
            uint32_t* const o = i & 1 ? even : odd;
            next(e, o, a.limb, b.limb[i], 0);
            clear(e, o);
        }
        return join(odd, even, 0);
    }

    // reduce_wide is T / R plus less than p, for the 2n limbs of T. The result must fit: T < R * (R - p).
    SEALC2_DEVICE static F reduce_wide(const uint32_t* T) {
        uint32_t even[n], odd[n], m[n];
        load_modulus(m);
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) even[j] = T[j];
        {
            Carry c;
            const uint32_t q = even[0] * F::minus_inverse;
            SEALC2_UNROLL
            for (int j = 0; j < n; j += 2) mul_wide(odd[j], odd[j + 1], m[j + 1], q);
            row(c, even, m, q);
            odd[n - 1] = addc_cc(c, odd[n - 1], 0);
        }
        SEALC2_UNROLL
        for (int i = 1; i < n; i++) {
            uint32_t* const e = i & 1 ? odd : even;
            uint32_t* const o = i & 1 ? even : odd;
            Carry c;
            e[0] = add_cc(c, e[0], o[1]);
            const uint32_t q = e[0] * F::minus_inverse;
            SEALC2_UNROLL
            for (int j = 0; j < n - 2; j += 2) {
                o[j] = madc_lo_cc(c, m[j + 1], q, o[j + 2]);
                o[j + 1] = madc_hi_cc(c, m[j + 1], q, o[j + 3]);
            }
            o[n - 2] = madc_lo_cc(c, m[n - 1], q, T[i + n - 1]); // the upper half enters as the window moves
            o[n - 1] = madc_hi_cc(c, m[n - 1], q, 0);
            row(c, e, m, q);
            o[n - 1] = addc_cc(c, o[n - 1], 0);
        }
        return join(odd, even, T[2 * n - 1]);
    }
};

// Wide is the product of n limbs before any reduction.
template <int n> struct Wide {
    // row adds b * (a[first], a[first + 2], ...), count products, to words from `at` on.
    SEALC2_DEVICE static void row(uint32_t* words, const uint32_t* a, uint32_t b, int at, int first, int count, bool carries) {
        Carry c;
        SEALC2_UNROLL
        for (int k = 0; k < count; k++) {
            const uint32_t x = a[first + 2 * k];
            const int j = at + 2 * k;
            words[j] = k == 0 ? mad_lo_cc(c, x, b, words[j]) : madc_lo_cc(c, x, b, words[j]);
            words[j + 1] = madc_hi_cc(c, x, b, words[j + 1]);
        }
        if (carries) words[at + 2 * count] = addc_cc(c, words[at + 2 * count], 0);
    }

    // mul writes the 2n limbs of a * b: n*n wide multiplies.
    SEALC2_DEVICE static void mul(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t even[2 * n] = {}, odd[2 * n] = {}; // products at even and at odd words
        SEALC2_UNROLL
        for (int i = 0; i < n; i++) {
            const int e = i & 1, o = 1 - e;
            row(even, a, b[i], i + e, e, n / 2, i + e + n < 2 * n);
            row(odd, a, b[i], i + o, o, n / 2, i + o + n < 2 * n);
        }
        add_limbs<2 * n>(r, even, odd);
    }

    // sqr writes the 2n limbs of a * a: n*(n+1)/2 wide multiplies.
    SEALC2_DEVICE static void sqr(uint32_t* r, const uint32_t* a) {
        uint32_t even[2 * n] = {}, odd[2 * n] = {};
        SEALC2_UNROLL
        for (int i = 0; i < n - 1; i++) { // a[i] * a[j], j > i
            const int counted = (n - i - 1) / 2;
            if (counted > 0) row(even, a, a[i], 2 * i + 2, i + 2, counted, true);
            row(odd, a, a[i], 2 * i + 1, i + 1, (n - i) / 2, true);
        }
        add_limbs<2 * n>(r, even, odd);
        add_limbs<2 * n>(r, r, r);
        Carry c;
        r[0] = mad_lo_cc(c, a[0], a[0], r[0]);
        r[1] = madc_hi_cc(c, a[0], a[0], r[1]);
        SEALC2_UNROLL
        for (int k = 1; k < n; k++) {
            r[2 * k] = madc_lo_cc(c, a[k], a[k], r[2 * k]);
            r[2 * k + 1] = madc_hi_cc(c, a[k], a[k], r[2 * k + 1]);
        }
    }
};

} // namespace sealc2
