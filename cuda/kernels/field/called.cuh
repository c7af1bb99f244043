// Fp with products that are calls, arguments in registers: for loops over group operations of G1, which with inlined products
// are longer than the instruction caches and take the compiler long. Fp2's products are calls anyway.
#pragma once
#include "inverse.cuh"

namespace sealc2 {

struct alignas(16) CalledFp {
    Fp value;

    SEALC2_DEVICE static CalledFp zero() { return CalledFp{Fp::zero()}; }
    SEALC2_DEVICE static CalledFp one() { return CalledFp{Fp::one()}; }
};

SEALC2_DEVICE_CALL Fp mul_call(Fp a, Fp b) { return mul(a, b); }
SEALC2_DEVICE_CALL Fp sqr_call(Fp a) { return sqr(a); }

SEALC2_DEVICE CalledFp mul(const CalledFp& a, const CalledFp& b) { return CalledFp{mul_call(a.value, b.value)}; }
SEALC2_DEVICE CalledFp sqr(const CalledFp& a) { return CalledFp{sqr_call(a.value)}; }
SEALC2_DEVICE CalledFp add(const CalledFp& a, const CalledFp& b) { return CalledFp{add(a.value, b.value)}; }
SEALC2_DEVICE CalledFp sub(const CalledFp& a, const CalledFp& b) { return CalledFp{sub(a.value, b.value)}; }
SEALC2_DEVICE CalledFp neg(const CalledFp& a) { return CalledFp{neg(a.value)}; }
SEALC2_DEVICE CalledFp dbl(const CalledFp& a) { return CalledFp{dbl(a.value)}; }
SEALC2_DEVICE bool is_zero(const CalledFp& a) { return is_zero(a.value); }
SEALC2_DEVICE bool eq(const CalledFp& a, const CalledFp& b) { return eq(a.value, b.value); }
SEALC2_DEVICE CalledFp select(bool condition, const CalledFp& a, const CalledFp& b) {
    return CalledFp{select(condition, a.value, b.value)};
}

// Called<F> is the field with the elements of F, in the same place in memory, whose products are calls.
template <class F> struct CalledOf {
    using type = F;
};
template <> struct CalledOf<Fp> {
    using type = CalledFp;
};
template <class F> using Called = typename CalledOf<F>::type;

} // namespace sealc2
