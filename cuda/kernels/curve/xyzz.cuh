// Points of y^2 = x^3 + b as (X, Y, ZZ, ZZZ): x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2. ZZ = 0 is the point at infinity.
// All functions are complete: infinity, equal and opposite points give what they must.
// Source: explicit-formulas database, short Weierstrass, xyzz coordinates: madd-2008-s, add-2008-s, dbl-2008-s-1,
// mdbl-2008-s-1, with a = 0. Cost: xyzz += affine 8 products and 2 squares, xyzz += xyzz 12 and 2, doubling 6 and 3.
#pragma once
#include "affine.cuh"

namespace sealc2 {

template <class F> struct alignas(16) Xyzz {
    F x, y, zz, zzz;

    SEALC2_DEVICE static Xyzz infinity() { return Xyzz{F::zero(), F::zero(), F::zero(), F::zero()}; }
};

using G1Xyzz = Xyzz<Fp>;
using G2Xyzz = Xyzz<Fp2>;

template <class F> SEALC2_DEVICE bool is_infinity(const Xyzz<F>& p) { return is_zero(p.zz); }
template <class F> SEALC2_DEVICE Xyzz<F> neg(const Xyzz<F>& p) { return Xyzz<F>{p.x, neg(p.y), p.zz, p.zzz}; }

template <class F> SEALC2_DEVICE Xyzz<F> to_xyzz(const Affine<F>& p) {
    const F z = select(is_infinity(p), F::zero(), F::one());
    return Xyzz<F>{p.x, p.y, z, z};
}

// to_affine takes an inversion.
template <class F> SEALC2_DEVICE Affine<F> to_affine(const Xyzz<F>& p) {
    const F i = inverse(p.zzz); // 0 where p is infinity, which makes x and y 0
    const F z = mul(i, p.zz);   // 1/Z, Z = ZZZ/ZZ
    return Affine<F>{mul(p.x, sqr(z)), mul(p.y, i)};
}

// dbl of an affine point needs no ZZ; p may be infinity.
template <class F> SEALC2_DEVICE Xyzz<F> dbl(const Affine<F>& p) {
    const F u = dbl(p.y), v = sqr(u), w = mul(u, v), s = mul(p.x, v);
    const F xx = sqr(p.x), m = add(dbl(xx), xx);
    const F x = sub(sqr(m), dbl(s));
    return Xyzz<F>{x, sub(mul(m, sub(s, x)), mul(w, p.y)), v, w}; // y = 0 at infinity: then v = 0
}

template <class F> SEALC2_DEVICE Xyzz<F> dbl(const Xyzz<F>& p) {
    const F u = dbl(p.y), v = sqr(u), w = mul(u, v), s = mul(p.x, v);
    const F xx = sqr(p.x), m = add(dbl(xx), xx);
    const F x = sub(sqr(m), dbl(s));
    return Xyzz<F>{x, sub(mul(m, sub(s, x)), mul(w, p.y)), mul(v, p.zz), mul(w, p.zzz)};
}

template <class F> SEALC2_DEVICE Xyzz<F> add(const Xyzz<F>& p, const Affine<F>& q) {
    if (is_infinity(q)) return p;
    if (is_infinity(p)) return to_xyzz(q);
    const F dx = sub(mul(q.x, p.zz), p.x), dy = sub(mul(q.y, p.zzz), p.y);
    if (is_zero(dx)) return is_zero(dy) ? dbl(q) : Xyzz<F>::infinity();
    const F pp = sqr(dx), ppp = mul(dx, pp), q2 = mul(p.x, pp);
    const F x = sub(sub(sqr(dy), ppp), dbl(q2));
    return Xyzz<F>{x, sub(mul(dy, sub(q2, x)), mul(p.y, ppp)), mul(p.zz, pp), mul(p.zzz, ppp)};
}

template <class F> SEALC2_DEVICE Xyzz<F> add(const Xyzz<F>& p, const Xyzz<F>& q) {
    if (is_infinity(q)) return p;
    if (is_infinity(p)) return q;
    const F u = mul(p.x, q.zz), s = mul(p.y, q.zzz);
    const F dx = sub(mul(q.x, p.zz), u), dy = sub(mul(q.y, p.zzz), s);
    if (is_zero(dx)) return is_zero(dy) ? dbl(p) : Xyzz<F>::infinity();
    const F pp = sqr(dx), ppp = mul(dx, pp), q2 = mul(u, pp);
    const F x = sub(sub(sqr(dy), ppp), dbl(q2));
    return Xyzz<F>{x, sub(mul(dy, sub(q2, x)), mul(s, ppp)), mul(mul(p.zz, q.zz), pp), mul(mul(p.zzz, q.zzz), ppp)};
}

// eq tells whether two points are the same.
template <class F> SEALC2_DEVICE bool eq(const Xyzz<F>& p, const Xyzz<F>& q) {
    if (is_infinity(p) || is_infinity(q)) return is_infinity(p) == is_infinity(q);
    return eq(mul(p.x, q.zz), mul(q.x, p.zz)) && eq(mul(p.y, q.zzz), mul(q.y, p.zzz));
}

} // namespace sealc2
