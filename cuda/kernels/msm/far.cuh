// Field operations as calls: for code that is long, or seldom run, and would grow beyond all bounds inlined. Operands lie in
// memory; the result may be one of them.
#pragma once
#include "../curve/xyzz.cuh"

namespace sealc2 {
namespace msm {

template <class F> SEALC2_DEVICE_CALL void mul_far(F* r, const F* a, const F* b) { *r = mul(*a, *b); }
template <class F> SEALC2_DEVICE_CALL void add_far(F* r, const F* a, const F* b) { *r = add(*a, *b); }
template <class F> SEALC2_DEVICE_CALL void sub_far(F* r, const F* a, const F* b) { *r = sub(*a, *b); }
template <class F> SEALC2_DEVICE_CALL void dbl_far(F* r, const F* a) { *r = dbl(*a); }

} // namespace msm
} // namespace sealc2
