// The encoding of points in parameter files, and back.
//
// A point is x, then y, each 48 bytes (G1) or c1 and c0 of 48 bytes (G2), big-endian and canonical; the three top
// bits of the first byte are flags. Source: the uncompressed form of the zkcrypto project's BLS12-381, which
// bellperson writes. What decode refuses, and in which order, is what package engine/params refuses.
//
// Cost of decoding: 2 or 4 products to Montgomery form, 4 for the curve. Floor: the bus that brings the file.
#pragma once
#include "../curve/xyzz.cuh"

namespace sealc2 {
namespace points {

// What is wrong with a point; numbers are those of package points.
enum Fault : uint32_t { fault_none, fault_flags, fault_infinity, fault_range, fault_zero, fault_curve, fault_order };

// note keeps the fault of the lowest index: index << 8 | fault, all ones before any.
SEALC2_DEVICE void note(unsigned long long* first, uint64_t index, uint32_t fault) {
    if (fault != fault_none) atomicMin(first, (unsigned long long)(index << 8 | fault));
}

// Coordinates are the words of an encoded point: 16-byte units in memory, words big-endian.
SEALC2_DEVICE uint32_t swap_bytes(uint32_t word) { return __byte_perm(word, 0, 0x0123); }

SEALC2_DEVICE void load_big_endian(Fp& e, const uint4* from) {
    SEALC2_UNROLL
    for (int j = 0; j < 3; j++) {
        const uint4 unit = from[j];
        e.limb[11 - 4 * j] = swap_bytes(unit.x);
        e.limb[10 - 4 * j] = swap_bytes(unit.y);
        e.limb[9 - 4 * j] = swap_bytes(unit.z);
        e.limb[8 - 4 * j] = swap_bytes(unit.w);
    }
}
SEALC2_DEVICE void load_big_endian(Fp2& e, const uint4* from) {
    load_big_endian(e.c1, from);
    load_big_endian(e.c0, from + 3);
}

SEALC2_DEVICE void store_big_endian(uint4* to, const Fp& e) {
    SEALC2_UNROLL
    for (int j = 0; j < 3; j++)
        to[j] = make_uint4(swap_bytes(e.limb[11 - 4 * j]), swap_bytes(e.limb[10 - 4 * j]), swap_bytes(e.limb[9 - 4 * j]), swap_bytes(e.limb[8 - 4 * j]));
}
SEALC2_DEVICE void store_big_endian(uint4* to, const Fp2& e) {
    store_big_endian(to, e.c1);
    store_big_endian(to + 3, e.c0);
}

SEALC2_DEVICE bool below_modulus(const Fp& e) {
    uint32_t m[Fp::limbs], less[Fp::limbs];
    Montgomery<Fp>::load_modulus(m);
    return sub_limbs<Fp::limbs>(less, e.limb, m) != 0;
}
SEALC2_DEVICE bool below_modulus(const Fp2& e) { return below_modulus(e.c0) && below_modulus(e.c1); }

constexpr uint32_t flag_mask = 0xe0, flag_infinity = 0x40;

// decode reads an encoded point whole before it returns, and says what is wrong with it; the order is not looked at.
template <class F> SEALC2_DEVICE uint32_t decode(Affine<F>& p, const uint4* from) {
    constexpr int units = sizeof(F) / sizeof(uint4);
    const uint32_t flags = from[0].x & flag_mask; // of the first byte
    load_big_endian(p.x, from);
    load_big_endian(p.y, from + units);
    if (flags != 0) return flags == flag_infinity ? fault_infinity : fault_flags;
    if (!below_modulus(p.x) || !below_modulus(p.y)) return fault_range;
    p.x = from_canonical(p.x);
    p.y = from_canonical(p.y);
    if (is_infinity(p)) return fault_zero;
    return on_curve(p) ? fault_none : fault_curve;
}

template <class F> SEALC2_DEVICE void encode(uint4* to, const Affine<F>& p) {
    constexpr int units = sizeof(F) / sizeof(uint4);
    const bool infinite = is_infinity(p);
    store_big_endian(to, to_canonical(p.x));
    store_big_endian(to + units, to_canonical(p.y));
    if (infinite) to[0].x = flag_infinity;
}

} // namespace points
} // namespace sealc2
