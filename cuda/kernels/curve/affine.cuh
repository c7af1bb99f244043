// Affine points of y^2 = x^3 + b over any field; in memory as gnark-crypto's G1Affine (Fp) and G2Affine (Fp2).
#pragma once
#include "../field/inverse.cuh"

namespace sealc2 {

// Affine with x = y = 0 is the point at infinity: b is not zero, so no finite point has these coordinates.
template <class F> struct alignas(16) Affine {
    F x, y;

    SEALC2_DEVICE static Affine infinity() { return Affine{F::zero(), F::zero()}; }
};

using G1Affine = Affine<Fp>;
using G2Affine = Affine<Fp2>;

template <class F> SEALC2_DEVICE bool is_infinity(const Affine<F>& p) { return is_zero(p.x) && is_zero(p.y); }
template <class F> SEALC2_DEVICE Affine<F> neg(const Affine<F>& p) { return Affine<F>{p.x, neg(p.y)}; }
template <class F> SEALC2_DEVICE bool eq(const Affine<F>& p, const Affine<F>& q) { return eq(p.x, q.x) && eq(p.y, q.y); }
template <class F> SEALC2_DEVICE Affine<F> select(bool condition, const Affine<F>& p, const Affine<F>& q) {
    return Affine<F>{select(condition, p.x, q.x), select(condition, p.y, q.y)};
}

// add_finite is p + q by the law for different x, given 1/(q.x - p.x); neither is infinity. Cost: 2 products, 1 square.
template <class F> SEALC2_DEVICE Affine<F> add_finite(const Affine<F>& p, const Affine<F>& q, const F& inverse_dx) {
    const F slope = mul(sub(q.y, p.y), inverse_dx);
    const F x = sub(sub(sqr(slope), p.x), q.x);
    return Affine<F>{x, sub(mul(slope, sub(p.x, x)), p.y)};
}

// dbl_finite is 2p, given 1/(2 p.y); p is not infinity and y not 0. Cost: 2 products, 2 squares.
template <class F> SEALC2_DEVICE Affine<F> dbl_finite(const Affine<F>& p, const F& inverse_2y) {
    const F xx = sqr(p.x);
    const F slope = mul(add(dbl(xx), xx), inverse_2y);
    const F x = sub(sqr(slope), dbl(p.x));
    return Affine<F>{x, sub(mul(slope, sub(p.x, x)), p.y)};
}

// curve_b is the constant of the curve over F.
template <class F> SEALC2_DEVICE F curve_b();
template <> SEALC2_DEVICE Fp curve_b<Fp>() {
    Fp b;
    SEALC2_UNROLL
    for (int j = 0; j < Fp::limbs; j++) b.limb[j] = g1_b(j);
    return b;
}
template <> SEALC2_DEVICE Fp2 curve_b<Fp2>() { return Fp2{curve_b<Fp>(), curve_b<Fp>()}; }

// on_curve tells whether y^2 = x^3 + b; infinity counts as on the curve.
template <class F> SEALC2_DEVICE bool on_curve(const Affine<F>& p) {
    return is_infinity(p) || eq(sqr(p.y), add(mul(sqr(p.x), p.x), curve_b<F>()));
}

} // namespace sealc2
