package kernels_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
)

// group is what the tests of both curves share: P is an affine point, F a coordinate.
type group[P, F comparable] struct {
	name     string
	points   []P // with infinity, opposite points and points outside the group of order r
	scale    func(rng *rand.Rand) F
	add      func(r, a, b *P)
	neg      func(r, a *P)
	infinite func(p *P) bool
	on       func(p *P) bool
	off      P // not on the curve
}

// Goal: the laws of both curves are gnark-crypto's, with infinity, equal and opposite points. Method: every pair of
// some points, each with ZZ of its own.
func TestCurves(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	_, _, g1, g2 := bls.Generators()
	one := new(big.Int)
	points1 := []bls.G1Affine{{}, g1, outsideG1(3), outsideG1(4)}
	points2 := []bls.G2Affine{{}, g2, outsideG2(1), outsideG2(2)}
	for range 3 {
		one.SetUint64(rng.Uint64())
		var p bls.G1Affine
		p.ScalarMultiplication(&g1, one)
		points1 = append(points1, p)
		var q bls.G2Affine
		q.ScalarMultiplication(&g2, one)
		points2 = append(points2, q)
	}
	for i := range points1[1:] {
		var p bls.G1Affine
		p.Neg(&points1[i+1])
		points1 = append(points1, p)
		var q bls.G2Affine
		q.Neg(&points2[i+1])
		points2 = append(points2, q)
	}
	testCurve(t, rng, &group[bls.G1Affine, fp.Element]{
		name: "g1", points: points1,
		scale:    nonzero,
		add:      func(r, a, b *bls.G1Affine) { r.Add(a, b) },
		neg:      func(r, a *bls.G1Affine) { r.Neg(a) },
		infinite: (*bls.G1Affine).IsInfinity, on: (*bls.G1Affine).IsOnCurve,
		off: bls.G1Affine{X: g1.Y, Y: g1.X},
	})
	testCurve(t, rng, &group[bls.G2Affine, bls.E2]{
		name: "g2", points: points2,
		scale:    func(rng *rand.Rand) bls.E2 { return bls.E2{A0: nonzero(rng), A1: nonzero(rng)} },
		add:      func(r, a, b *bls.G2Affine) { r.Add(a, b) },
		neg:      func(r, a *bls.G2Affine) { r.Neg(a) },
		infinite: (*bls.G2Affine).IsInfinity, on: (*bls.G2Affine).IsOnCurve,
		off: bls.G2Affine{X: g2.Y, Y: g2.X},
	})
}

func testCurve[P, F comparable](t *testing.T, rng *rand.Rand, g *group[P, F]) {
	a, b := pairs(g.points)
	n := len(a)
	scales := make([]F, n)
	for i := range scales {
		scales[i] = g.scale(rng)
	}
	sums := each2(a, b, g.add)
	ap, bp, zp := kerneltest.Put(t, a), kerneltest.Put(t, b), kerneltest.Put(t, scales)
	rp := kerneltest.Put(t, make([]P, 2*n))
	var args driver.Args
	for _, name := range []string{"_add_affine", "_add"} {
		launch(t, "unit_"+g.name+name, n, args.Reset().Ptr(ap).Ptr(bp).Ptr(zp).Ptr(rp).U32(uint32(n)))
		same(t, g.name+name, kerneltest.Get[P](t, rp, n), sums, a, b)
	}

	launch(t, "unit_"+g.name+"_dbl", n, args.Reset().Ptr(ap).Ptr(zp).Ptr(rp).U32(uint32(n)))
	for i, got := range kerneltest.Get[P](t, rp, 2*n) {
		var want P
		g.add(&want, &a[i/2], &a[i/2])
		if i%2 == 0 {
			g.neg(&want, &want)
		}
		if got != want {
			t.Fatalf("%s_dbl: %v: want %v, got %v", g.name, a[i/2], want, got)
		}
	}

	launch(t, "unit_"+g.name+"_add_finite", n, args.Reset().Ptr(ap).Ptr(bp).Ptr(rp).U32(uint32(n)))
	same(t, g.name+"_add_finite", kerneltest.Get[P](t, rp, n), each2(a, b, func(r, a, b *P) {
		if !g.infinite(a) && !g.infinite(b) {
			g.add(r, a, b)
		}
	}), a, b)

	a[0], b[0] = g.off, g.off
	launch(t, "unit_"+g.name+"_tests", n, args.Reset().Ptr(kerneltest.Put(t, a)).Ptr(kerneltest.Put(t, b)).Ptr(zp).Ptr(rp).U32(uint32(n)))
	got := kerneltest.Get[uint32](t, rp, n)
	for i := range got {
		var minus P
		g.neg(&minus, &a[i])
		if want := answers(g.on(&a[i]) || g.infinite(&a[i]), a[i] == b[i], g.infinite(&a[i]), minus == b[i]); got[i] != want {
			t.Errorf("%s_tests: %v, %v: want %b, got %b", g.name, a[i], b[i], want, got[i])
		}
	}
}

func nonzero(rng *rand.Rand) (e fp.Element) {
	for e.IsZero() {
		e = fp.Element(limbs(numbers(fp.Modulus(), fp.Limbs, 1, rng)[len(edges(fp.Modulus(), fp.Limbs))], fp.Limbs))
	}
	return e
}

// outsideG1 is a point of the curve with the first x from `from` on, which is outside the group of order r for all
// but one in some 2^125.
func outsideG1(from uint64) (p bls.G1Affine) {
	_, _, g1, _ := bls.Generators()
	var b, y2 fp.Element
	b.Square(&g1.Y)
	y2.Square(&g1.X).Mul(&y2, &g1.X)
	b.Sub(&b, &y2)
	for x := from; ; x++ {
		p.X.SetUint64(x)
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &b)
		if p.Y.Sqrt(&y2) != nil && !p.IsInSubGroup() {
			return p
		}
	}
}

// outsideG2 is outsideG1 on the twist, with x = from + u.
func outsideG2(from uint64) (p bls.G2Affine) {
	_, _, _, g2 := bls.Generators()
	var b, y2 bls.E2
	b.Square(&g2.Y)
	y2.Square(&g2.X).Mul(&y2, &g2.X)
	b.Sub(&b, &y2)
	for x := from; ; x++ {
		p.X.A0.SetUint64(x)
		p.X.A1.SetOne()
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &b)
		if y2.Legendre() == 1 {
			p.Y.Sqrt(&y2)
			return p
		}
	}
}
