// Inverses by a binary GCD that works on 64-bit approximations.
//
// A round takes 30 steps of the binary GCD on numbers made of the top 33 and the low 31 bits of both values, which is
// enough to decide every step but rarely, and an error there only costs a sign; the four factors that come out are then
// applied to the whole values, and to the cofactors modulo p, where a Montgomery step divides by 2^32.
// Source: T. Pornin, "Optimized binary GCD for modular inversion" (eprint 2020/972).
//
// Cost: 2 * bits - 1 steps of some 15 instructions and a sixth of that again for the rounds; about a tenth of the time of a
// power with exponent p - 2. All threads take the same path.
#pragma once
#include "fp2.cuh"
#include "fr.cuh"

namespace sealc2 {

template <class F> struct Inverse {
    static constexpr int n = F::limbs;

    // combine writes |a * f + b * g| >> 30 and returns whether the sum was negative. |f| + |g| <= 2^30.
    SEALC2_DEVICE static bool combine(uint32_t* r, const uint32_t* a, const uint32_t* b, int32_t f, int32_t g) {
        int64_t sum = 0;
        uint32_t below = 0, words[n];
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            sum += int64_t(uint64_t(a[j])) * f + int64_t(uint64_t(b[j])) * g;
            const uint32_t word = uint32_t(sum);
            sum >>= 32;
            if (j > 0) words[j - 1] = below >> 30 | word << 2;
            below = word;
        }
        words[n - 1] = below >> 30 | uint32_t(sum) << 2;
        const uint32_t negative = uint32_t(sum >> 63);
        uint64_t carry = negative & 1;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            carry += words[j] ^ negative;
            r[j] = uint32_t(carry);
            carry >>= 32;
        }
        return negative != 0;
    }

    // combine_mod writes (a * f + b * g) / 2^32 modulo p, below 1.5 p for a, b below 1.5 p.
    SEALC2_DEVICE static void combine_mod(uint32_t* r, const uint32_t* a, const uint32_t* b, int32_t f, int32_t g) {
        int64_t sum = 0;
        uint64_t cleared = 0;
        uint32_t q = 0, words[n];
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            sum += int64_t(uint64_t(a[j])) * f + int64_t(uint64_t(b[j])) * g;
            const uint32_t word = uint32_t(sum);
            sum >>= 32;
            if (j == 0) q = word * F::minus_inverse;
            cleared += uint64_t(q) * F::modulus(j) + word;
            if (j > 0) words[j - 1] = uint32_t(cleared);
            cleared >>= 32;
        }
        sum += int64_t(cleared);
        words[n - 1] = uint32_t(sum);
        const uint32_t negative = uint32_t(sum >> 63);
        uint64_t carry = 0;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            carry += uint64_t(words[j]) + (F::modulus(j) & negative);
            r[j] = uint32_t(carry);
            carry >>= 32;
        }
    }

    // approximate packs the low 31 bits and the 33 bits from the higher of the two values' top bits down.
    SEALC2_DEVICE static void approximate(uint64_t& A, uint64_t& B, const uint32_t* a, const uint32_t* b) {
        uint32_t a2 = 0, a1 = 0, a0 = 0, b2 = 0, b1 = 0, b0 = 0;
        bool found = false;
        SEALC2_UNROLL
        for (int j = n - 1; j >= 2; j--) {
            const bool here = !found && (j == 2 || (a[j] | b[j]) != 0);
            a2 = here ? a[j] : a2;
            a1 = here ? a[j - 1] : a1;
            a0 = here ? a[j - 2] : a0;
            b2 = here ? b[j] : b2;
            b1 = here ? b[j - 1] : b1;
            b0 = here ? b[j - 2] : b0;
            found = found || here;
        }
        if ((a2 | b2) == 0) { // both below 2^64: exact
            A = uint64_t(a1) << 32 | a0;
            B = uint64_t(b1) << 32 | b0;
            return;
        }
        const int shift = __clz(int(a2 | b2));
        uint64_t high_a = uint64_t(a2) << 32 | a1, high_b = uint64_t(b2) << 32 | b1;
        if (shift > 0) {
            high_a = high_a << shift | a0 >> (32 - shift);
            high_b = high_b << shift | b0 >> (32 - shift);
        }
        A = high_a >> 31 << 31 | (a[0] & 0x7fffffffu);
        B = high_b >> 31 << 31 | (b[0] & 0x7fffffffu);
    }

    // run gives the inverse of a Montgomery value below 4p, and 0 for 0; below p.
    SEALC2_DEVICE static F run(const F& value) {
        uint32_t a[n], b[n], u[n], v[n], x[n], y[n];
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            a[j] = value.limb[j];
            b[j] = F::modulus(j);
            u[j] = j == 0;
            v[j] = 0;
        }
        // a = u * value and b = v * value modulo p, up to the powers of two that inverse_scale makes good; b ends as 1.
        SEALC2_ROLL
        for (int round = 0; round < F::inverse_rounds; round++) {
            uint64_t A, B;
            approximate(A, B, a, b);
            int32_t f0 = 1, g0 = 0, f1 = 0, g1 = 1;
            SEALC2_ROLL
            for (int i = 0; i < 30; i++) {
                const bool odd = A & 1, swap = odd && A < B;
                const uint64_t larger = swap ? B : A;
                B = swap ? A : B;
                A = (larger - (odd ? B : 0)) >> 1;
                const int32_t f = swap ? f1 : f0, g = swap ? g1 : g0;
                f1 = swap ? f0 : f1;
                g1 = swap ? g0 : g1;
                f0 = f - (odd ? f1 : 0);
                g0 = g - (odd ? g1 : 0);
                f1 *= 2;
                g1 *= 2;
            }
            const bool negative_a = combine(x, a, b, f0, g0), negative_b = combine(y, a, b, f1, g1);
            SEALC2_UNROLL
            for (int j = 0; j < n; j++) {
                a[j] = x[j];
                b[j] = y[j];
            }
            f0 = negative_a ? -f0 : f0;
            g0 = negative_a ? -g0 : g0;
            f1 = negative_b ? -f1 : f1;
            g1 = negative_b ? -g1 : g1;
            combine_mod(x, u, v, f0, g0);
            combine_mod(y, u, v, f1, g1);
            SEALC2_UNROLL
            for (int j = 0; j < n; j++) {
                u[j] = x[j];
                v[j] = y[j];
            }
        }
        F inverse, scale;
        SEALC2_UNROLL
        for (int j = 0; j < n; j++) {
            inverse.limb[j] = v[j];
            scale.limb[j] = F::inverse_scale(j);
        }
        return mul(scale, inverse);
    }
};

// inverse is 1/a, and 0 for 0.
SEALC2_DEVICE Fr inverse(const Fr& a) { return Inverse<Fr>::run(a); }
SEALC2_DEVICE Fp inverse(const Fp& a) { return Inverse<Fp>::run(a); }
SEALC2_DEVICE Fp2 inverse(const Fp2& a) { // (a0 - a1 u) / (a0^2 + a1^2)
    const Fp scale = inverse(add(sqr(a.c0), sqr(a.c1)));
    return Fp2{mul(a.c0, scale), neg(mul(a.c1, scale))};
}

// inverse_each replaces n elements by their inverses, zeros by zeros: one inversion and 3(n - 1) products. Prefix
// products of all but the last element are kept in registers or local memory.
template <class F, int n> SEALC2_DEVICE void inverse_each(F (&x)[n]) {
    F prefix[n];
    F product = F::one();
    SEALC2_UNROLL
    for (int i = 0; i < n; i++) {
        prefix[i] = product;
        product = mul(product, select(is_zero(x[i]), F::one(), x[i]));
    }
    F rest = inverse(product);
    SEALC2_UNROLL
    for (int i = n - 1; i >= 0; i--) {
        const bool zero = is_zero(x[i]);
        const F factor = select(zero, F::one(), x[i]);
        x[i] = select(zero, x[i], mul(rest, prefix[i]));
        rest = mul(rest, factor);
    }
}

} // namespace sealc2
