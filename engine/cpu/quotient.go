package cpu

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
)

// quotientBytes is what quotient takes from its arena.
func quotientBytes(k lanes.Kernel, n, threads int) int64 {
	rows := 1
	for rows*rows < n {
		rows *= 2
	}
	return 2 * int64(threads) * host.SliceBytes[uint64](k.Words()*rows)
}

// quotient computes h = (a b - c) / (X^n - 1) from the evaluations of a, b, c (natural order, n of each, a
// power of two). h goes to b: n coefficients in Montgomery form, low degree first, the last of them zero
// where every row is satisfied. a and c are scratch. Errors: Cancelled.
//
// Six transforms: with d = the interpolation of a b over the coset zeta w^i, where X^n = -1, a b = -2 h + c
// there, so h = (c - d) / 2. Scalings, the coset's powers, the product, the difference and the permutation
// to natural order are parts of the passes.
func quotient(ctx context.Context, arena *host.Arena, k lanes.Kernel, a, b, c []fr.Element, threads int) error {
	mark := arena.Mark()
	defer arena.Release(mark)
	g := newGeometry(k, len(a))
	type scratch struct{ x, y []uint64 }
	work := make([]scratch, threads)
	for i := range work {
		work[i] = scratch{host.Alloc[uint64](arena, k.Words()*g.rows), host.Alloc[uint64](arena, k.Words()*g.rows)}
	}
	one := fr.One()
	var scale, halfScale fr.Element // 1/n and 1/2n
	scale.SetUint64(uint64(g.n))
	halfScale.Double(&scale)
	scale.Inverse(&scale)
	halfScale.Inverse(&halfScale)
	factor := k.MulFactor()
	factor.Mul(&factor, &halfScale)

	// To the coset: interpolate, multiply coefficient i by zeta^i / n, evaluate. The middle passes of both
	// transforms run along the same rows, in one go.
	for _, v := range [][]fr.Element{a, b} {
		err := parallel(ctx, threads, g.columnBlocks(), func(worker, t int) error {
			x, p := work[worker].x, g.columns(t)
			k.Load(x, v, &p)
			k.DIF(x, g.rows, g.rowInverse)
			g.columnPowers(k, x, t, &g.inverse, &g.zeta, &scale)
			k.Store(v, &p, x)
			return nil
		})
		if err != nil {
			return err
		}
		err = parallel(ctx, threads, g.rowBlocks(), func(worker, t int) error {
			x, p := work[worker].x, g.outputRows(t)
			k.Load(x, v, &p)
			k.DIF(x, g.cols, g.colInverse)
			k.Scale(x, g.cols, g.coset)
			k.DIT(x, g.cols, g.colTable)
			k.Store(v, &p, x)
			return nil
		})
		if err != nil {
			return err
		}
		if &v[0] == &b[0] {
			break // its last pass is the product's first
		}
		err = parallel(ctx, threads, g.columnBlocks(), func(worker, t int) error {
			x, p := work[worker].x, g.columns(t)
			k.Load(x, v, &p)
			g.columnPowers(k, x, t, &g.root, &one, &one)
			k.DIT(x, g.rows, g.rowTable)
			k.Store(v, &p, x)
			return nil
		})
		if err != nil {
			return err
		}
	}
	// d and c: the columns.
	err := parallel(ctx, threads, 2*g.columnBlocks(), func(worker, task int) error {
		x, y, t := work[worker].x, work[worker].y, task/2
		p := g.columns(t)
		if task&1 == 0 {
			k.Load(x, b, &p)
			g.columnPowers(k, x, t, &g.root, &one, &one)
			k.DIT(x, g.rows, g.rowTable)
			k.Load(y, a, &p)
			k.Mul(x, y, g.rows)
			k.DIF(x, g.rows, g.rowInverse)
			g.columnPowers(k, x, t, &g.inverse, &g.zetaInverse, &factor)
			k.Store(a, &p, x)
			return nil
		}
		k.Load(x, c, &p)
		k.DIF(x, g.rows, g.rowInverse)
		g.columnPowers(k, x, t, &g.inverse, &one, &halfScale)
		k.Store(c, &p, x)
		return nil
	})
	if err != nil {
		return err
	}
	// The rows of both, and h.
	return parallel(ctx, threads, g.rowBlocks(), func(worker, t int) error {
		x, y := work[worker].x, work[worker].y
		p, to := g.outputRows(t), g.natural(t)
		k.Load(x, c, &p)
		k.DIF(x, g.cols, g.colInverse)
		k.Load(y, a, &p)
		k.DIF(y, g.cols, g.colInverse)
		k.Scale(y, g.cols, g.cosetInverse)
		k.Sub(x, y, g.cols)
		k.Store(b, &to, x)
		return nil
	})
}
