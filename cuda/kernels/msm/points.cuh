// How the multi-scalar multiplication names and stores points.
//
// A number names a point: below `inputs` one of the caller's, from there on a slot of the pool; bit 31 asks for its
// negative. Input points lie as gnark-crypto's affine points, x then y. The pool lies in groups of 32 slots, 32 x and then
// 32 y, so that a warp that reads x of neighbours, as the forward pass does, reads whole lines.
//
// Infinity is x = 0: no point of the groups of order r has that x, in G1 since x = 0 gives points of order 3, in G2 since
// 4 (1 + u) is no square. In the pool x is below p; y of G1 is below 2p, and of G2 below p.
#pragma once
#include "../field/inverse.cuh"
#include "../tuning/msm.cuh"
#include "far.cuh"

namespace sealc2 {
namespace msm {

constexpr uint32_t sign_bit = 0x80000000u;
constexpr uint32_t none = 0xffffffffu; // no point

// Words of the control block, which the host clears before a group of windows and reads after its sort.
constexpr int control_status = 0;     // faults, or-ed
constexpr int control_pairs = 1;      // pairs of the round so far
constexpr int control_large = 2;      // large buckets of the round
constexpr int control_partitions = 3; // partitions too large for one block
constexpr int control_ones = 4;       // selected variables with a one
constexpr int control_fields = 5;     // selected field elements
constexpr int control_rounds = 32;    // + r: pairs of round r, from 1
constexpr int control_words = 64;

// Faults.
constexpr uint32_t fault_entries = 1; // more entries than the plan has room for
constexpr uint32_t fault_pairs = 2;   // more pairs than that
constexpr uint32_t fault_lists = 4;   // more selected variables than that
constexpr uint32_t fault_room = 8;    // a partition's room does not suffice: no fault, but to be done again

// load and store move an element in 16-byte units that lie `stride` units apart.
template <int limbs> SEALC2_DEVICE void load_words(uint32_t* words, const uint4* from, size_t stride) {
    SEALC2_UNROLL
    for (int j = 0; j < limbs / 4; j++) {
        const uint4 v = from[j * stride];
        words[4 * j] = v.x;
        words[4 * j + 1] = v.y;
        words[4 * j + 2] = v.z;
        words[4 * j + 3] = v.w;
    }
}
template <int limbs> SEALC2_DEVICE void store_words(uint4* to, size_t stride, const uint32_t* words) {
    SEALC2_UNROLL
    for (int j = 0; j < limbs / 4; j++) to[j * stride] = make_uint4(words[4 * j], words[4 * j + 1], words[4 * j + 2], words[4 * j + 3]);
}
SEALC2_DEVICE void load(Fp& r, const uint4* from, size_t stride = 1) { load_words<12>(r.limb, from, stride); }
SEALC2_DEVICE void load(Fp2& r, const uint4* from, size_t stride = 1) {
    load(r.c0, from, stride);
    load(r.c1, from + 3 * stride, stride);
}
SEALC2_DEVICE void store(uint4* to, size_t stride, const Fp& a) { store_words<12>(to, stride, a.limb); }
SEALC2_DEVICE void store(uint4* to, size_t stride, const Fp2& a) {
    store(to, stride, a.c0);
    store(to + 3 * stride, stride, a.c1);
}

template <class F> struct Points {
    const uint4* input;
    uint4* pool;
    uint32_t inputs;

    static constexpr int units = sizeof(F) / 16;

    // x is where the point's x lies; its y lies y_offset(number) units further.
    SEALC2_DEVICE const uint4* x(uint32_t number) const {
        const uint32_t i = number & ~sign_bit;
        return i < inputs ? input + size_t(i) * (2 * units) : slot(i - inputs);
    }
    SEALC2_DEVICE uint4* slot(uint32_t s) const { return pool + size_t(s >> 5) * (64 * units) + (s & 31) * units; }
    SEALC2_DEVICE uint32_t y_offset(uint32_t number) const { return (number & ~sign_bit) < inputs ? units : 32 * units; }
};

// 2p.
SEALC2_CONSTANT(fp_modulus_twice, 12, 0xffff5556u, 0x73fdffffu, 0x62a7ffffu, 0x3d57fffdu, 0xed61ec48u, 0xce61a541u,
                0xe70a257eu, 0xc8ee9709u, 0x869759aeu, 0x96374f6cu, 0x72ffcd34u, 0x340223d4u)

// The steps of an affine addition, with as few reductions as the bounds allow.
template <class F> struct Steps;

template <> struct Steps<Fp> {
    // negate_if is 2p - y or y: below 2p, or 2p itself for y = 0, which no point has.
    SEALC2_DEVICE static Fp negate_if(const Fp& y, bool negative) {
        uint32_t m[12];
        SEALC2_UNROLL
        for (int j = 0; j < 12; j++) m[j] = fp_modulus_twice(j);
        Fp r;
        sub_limbs<12>(r.limb, m, y.limb);
        return select(negative, r, y);
    }
    // plus2p_if_negative adds 2p where the subtraction that made a borrowed.
    SEALC2_DEVICE static void plus2p_if(Fp& a, uint32_t borrow) {
        uint32_t m[12];
        SEALC2_UNROLL
        for (int j = 0; j < 12; j++) m[j] = borrow & fp_modulus_twice(j);
        add_limbs<12>(a.limb, a.limb, m);
    }
    // difference is x2 - x1 + p.
    SEALC2_DEVICE static Fp difference(const Fp& x2, const Fp& x1) { return sub_lazy(x2, x1); }
    // suspect finds every pair with an infinite point or equal x, and few others.
    SEALC2_DEVICE static bool suspect(const Fp& x1, const Fp& x2, const Fp& difference) {
        return x1.limb[11] == 0 || x2.limb[11] == 0 || difference.limb[0] == fp_modulus(0);
    }
    // rise is y2 - y1 + 2p, below 4p.
    SEALC2_DEVICE static Fp rise(const Fp& y2, const Fp& y1) {
        uint32_t m[12];
        SEALC2_UNROLL
        for (int j = 0; j < 12; j++) m[j] = fp_modulus_twice(j);
        Fp r;
        sub_limbs<12>(r.limb, y2.limb, y1.limb);
        add_limbs<12>(r.limb, r.limb, m);
        return r;
    }
    // slope is rise * (1 / run): 4 * 1.41 p^2 < R p, so below 1.6 p.
    SEALC2_DEVICE static Fp slope(const Fp& rise, const Fp& run_inverse) { return mul_lazy(rise, run_inverse); }
    // third_x is slope^2 - x1 - x2, below p: the square is below 1.3 p.
    SEALC2_DEVICE static Fp third_x(const Fp& slope, const Fp& x1, const Fp& x2) {
        const Fp sum = add_lazy(x1, x2);
        Fp r = sqr_lazy(slope);
        plus2p_if(r, sub_limbs<12>(r.limb, r.limb, sum.limb));
        return reduce(r);
    }
    // third_y is slope * (x1 - x3) - y1, below 2p.
    SEALC2_DEVICE static Fp third_y(const Fp& slope, const Fp& x1, const Fp& x3, const Fp& y1) {
        Fp r = mul_lazy(slope, sub_lazy(x1, x3));
        plus2p_if(r, sub_limbs<12>(r.limb, r.limb, y1.limb));
        return r;
    }
    // strict is y below p.
    SEALC2_DEVICE static Fp strict(const Fp& y) { return reduce(y); }
};

template <> struct Steps<Fp2> {
    SEALC2_DEVICE static Fp2 negate_if(const Fp2& y, bool negative) { return select(negative, neg(y), y); }
    SEALC2_DEVICE static Fp2 difference(const Fp2& x2, const Fp2& x1) { return sub(x2, x1); }
    SEALC2_DEVICE static bool suspect(const Fp2& x1, const Fp2& x2, const Fp2& difference) {
        return (x1.c0.limb[11] | x1.c1.limb[11]) == 0 || (x2.c0.limb[11] | x2.c1.limb[11]) == 0 ||
               (difference.c0.limb[0] | difference.c1.limb[0]) == 0;
    }
    SEALC2_DEVICE static Fp2 rise(const Fp2& y2, const Fp2& y1) { return sub(y2, y1); }
    SEALC2_DEVICE static Fp2 slope(const Fp2& rise, const Fp2& run_inverse) { return mul(rise, run_inverse); }
    SEALC2_DEVICE static Fp2 third_x(const Fp2& slope, const Fp2& x1, const Fp2& x2) { return sub(sub(sqr(slope), x1), x2); }
    SEALC2_DEVICE static Fp2 third_y(const Fp2& slope, const Fp2& x1, const Fp2& x3, const Fp2& y1) {
        return sub(mul(slope, sub(x1, x3)), y1);
    }
    SEALC2_DEVICE static Fp2 strict(const Fp2& y) { return y; }
};

} // namespace msm
} // namespace sealc2
