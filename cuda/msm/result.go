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

// Running is a sum over inputs that come one after the other, as pieces of a block of points do (Block): buckets are summed up
// only once, at the end, and may be as many as pay for the whole sum. The plan's Shape says by Pieces how many inputs there
// are at most. After an error it is of no use. It is used like its Summer, which may do other sums between two inputs.
type Running struct{ run *run }

// Begin begins a sum. scratch, p.Bytes of it, belongs to the sum until it has ended, or until the stream is synchronized
// after an error. Errors: Internal for a plan for another card or scratch that is not aligned.
func (m *Summer) Begin(p *Plan, scratch driver.Ptr) (*Running, error) {
	r, err := m.begin(p, scratch)
	if err != nil {
		return nil, err
	}
	return &Running{r}, nil
}

// Add adds an input's sum. The input belongs to the call until it returns and, unless it returns an error, the stream has been
// synchronized. Errors: as SumG1.
func (r *Running) Add(ctx context.Context, s *driver.Stream, in Input) (err error) {
	defer status.Recover("msm.Add", &err)
	if err = r.run.add(ctx, s, in); err != nil {
		return err
	}
	return s.Synchronize(ctx)
}

// SumG1 returns the sum of a plan for G1. The input and scratch, p.Bytes of it, belong to the call until it returns; it has
// then waited for the stream, unless it returns an error: then they belong to the stream until that is synchronized. Errors:
// Cancelled; Internal for an input that is not what was planned, or when a kernel reports a fault; else what the driver said.
func (m *Summer) SumG1(ctx context.Context, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (sum bls.G1Jac, err error) {
	r, err := m.whole(ctx, s, G1, p, in, scratch)
	if err != nil {
		return sum, err
	}
	return r.G1(ctx, s)
}

// SumG2 is SumG1 for G2.
func (m *Summer) SumG2(ctx context.Context, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (sum bls.G2Jac, err error) {
	r, err := m.whole(ctx, s, G2, p, in, scratch)
	if err != nil {
		return sum, err
	}
	return r.G2(ctx, s)
}

// whole begins a sum and adds its only input.
func (m *Summer) whole(ctx context.Context, s *driver.Stream, curve Curve, p *Plan, in Input, scratch driver.Ptr) (r *Running, err error) {
	defer status.Recover("msm.Sum", &err)
	status.Check(p.Curve == curve, "msm.Sum", "a plan for the points' curve")
	if r, err = m.Begin(p, scratch); err != nil {
		return nil, err
	}
	return r, r.run.add(ctx, s, in)
}

// G1 ends the sum of a plan for G1 and returns it, after it has waited for the stream. Errors: as SumG1.
func (r *Running) G1(ctx context.Context, s *driver.Stream) (sum bls.G1Jac, err error) {
	defer status.Recover("msm.SumG1", &err)
	status.Check(r.run.Curve == G1, "msm.SumG1", "a plan for G1")
	parts, err := r.run.end(ctx, s)
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

// G2 is G1 for a plan for G2.
func (r *Running) G2(ctx context.Context, s *driver.Stream) (sum bls.G2Jac, err error) {
	defer status.Recover("msm.SumG2", &err)
	status.Check(r.run.Curve == G2, "msm.SumG2", "a plan for G2")
	parts, err := r.run.end(ctx, s)
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
