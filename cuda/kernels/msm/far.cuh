// A field whose operations are calls: for code that is long, or seldom run, and would grow beyond all bounds inlined.
#pragma once
#include "../curve/xyzz.cuh"

namespace sealc2 {
namespace msm {

template <class F> SEALC2_DEVICE_CALL void mul_far(F* r, const F* a, const F* b) { *r = mul(*a, *b); }
template <class F> SEALC2_DEVICE_CALL void sub_far(F* r, const F* a, const F* b) { *r = sub(*a, *b); }
template <class F> SEALC2_DEVICE_CALL void dbl_far(F* r, const F* a) { *r = dbl(*a); }

// Far is F in all but speed. In memory as F.
template <class F> struct alignas(16) Far {
    F value;

    SEALC2_DEVICE static Far zero() { return Far{F::zero()}; }
    SEALC2_DEVICE static Far one() { return Far{F::one()}; }
};

template <class F> SEALC2_DEVICE Far<F> mul(const Far<F>& a, const Far<F>& b) {
    Far<F> r;
    mul_far(&r.value, &a.value, &b.value);
    return r;
}
template <class F> SEALC2_DEVICE Far<F> sqr(const Far<F>& a) { return mul(a, a); }
template <class F> SEALC2_DEVICE Far<F> add(const Far<F>& a, const Far<F>& b) { return Far<F>{add(a.value, b.value)}; }
template <class F> SEALC2_DEVICE Far<F> sub(const Far<F>& a, const Far<F>& b) {
    Far<F> r;
    sub_far(&r.value, &a.value, &b.value);
    return r;
}
template <class F> SEALC2_DEVICE Far<F> neg(const Far<F>& a) { return Far<F>{neg(a.value)}; }
template <class F> SEALC2_DEVICE Far<F> dbl(const Far<F>& a) {
    Far<F> r;
    dbl_far(&r.value, &a.value);
    return r;
}
template <class F> SEALC2_DEVICE bool is_zero(const Far<F>& a) { return is_zero(a.value); }
template <class F> SEALC2_DEVICE bool eq(const Far<F>& a, const Far<F>& b) { return eq(a.value, b.value); }
template <class F> SEALC2_DEVICE Far<F> select(bool condition, const Far<F>& a, const Far<F>& b) {
    return Far<F>{select(condition, a.value, b.value)};
}

} // namespace msm
} // namespace sealc2
