package msm

import (
	"cmp"
	"context"
	"slices"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// SumG1 returns the sum of a plan for G1. The input and scratch, p.Bytes of it, belong to the call until it returns; it has
// then waited for the stream, unless it returns an error: then they belong to the stream until that is synchronized. Errors:
// Cancelled; Internal for an input that is not what was planned, or when a kernel reports a fault; else what the driver said.
func (m *Summer) SumG1(ctx context.Context, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (sum bls.G1Jac, err error) {
	defer status.Recover("msm.SumG1", &err)
	status.Check(p.Curve == G1, "msm.SumG1", "a plan for G1")
	parts, err := m.sum(ctx, s, p, in, scratch)
	if err != nil {
		return sum, err
	}
	combine(parts, func() { sum.DoubleAssign() }, func(point unsafe.Pointer) {
		x := (*[4]fp.Element)(point)
		if x[2].IsZero() {
			return
		}
		// With Z = ZZZ, X/ZZ = X ZZ^2 / Z^2 and Y/ZZZ = Y ZZZ^2 / Z^3.
		p := bls.G1Jac{Z: x[3]}
		p.X.Square(&x[2]).Mul(&p.X, &x[0])
		p.Y.Square(&x[3]).Mul(&p.Y, &x[1])
		sum.AddAssign(&p)
	})
	return sum, nil
}

// SumG2 is SumG1 for G2.
func (m *Summer) SumG2(ctx context.Context, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (sum bls.G2Jac, err error) {
	defer status.Recover("msm.SumG2", &err)
	status.Check(p.Curve == G2, "msm.SumG2", "a plan for G2")
	parts, err := m.sum(ctx, s, p, in, scratch)
	if err != nil {
		return sum, err
	}
	combine(parts, func() { sum.DoubleAssign() }, func(point unsafe.Pointer) {
		x := (*[4]bls.E2)(point)
		if x[2].IsZero() {
			return
		}
		p := bls.G2Jac{Z: x[3]}
		p.X.Square(&x[2]).Mul(&p.X, &x[0])
		p.Y.Square(&x[3]).Mul(&p.Y, &x[1])
		sum.AddAssign(&p)
	})
	return sum, nil
}

// combine adds the parts, each doubled as often as it says, by 255 doublings of the sum in all.
func combine(parts []total, double func(), add func(point unsafe.Pointer)) {
	slices.SortStableFunc(parts, func(a, b total) int { return cmp.Compare(b.doublings, a.doublings) })
	at := 255
	for i := range parts {
		for ; at > parts[i].doublings; at-- {
			double()
		}
		at = parts[i].doublings
		add(unsafe.Pointer(&parts[i].point[0]))
	}
	for ; at > 0; at-- {
		double()
	}
}
