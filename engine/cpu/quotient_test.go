package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/engine/lanes"
)

// Goal: h equals the reference's, whose transforms are seven.
func TestQuotient_Tiny(t *testing.T) {
	for _, name := range tinyNames {
		v := readTiny(t, name)
		for _, k := range lanes.Kernels(v.Domain) {
			for _, threads := range []int{1, 3} {
				a, b, c := clone(v.a), clone(v.b), clone(v.c)
				if err := quotient(context.Background(), newTestArena(t, quotientBytes(k, v.Domain, threads)), k, a, b, c, threads); err != nil {
					t.Fatal(err)
				}
				if len(v.h) != v.Domain-1 || !b[v.Domain-1].IsZero() {
					t.Fatalf("%s, %T: degree", name, k)
				}
				for i := range v.h {
					if b[i] != v.h[i] {
						t.Fatalf("%s, %T: coefficient %d: want %s, got %s", name, k, i, v.h[i].String(), b[i].String())
					}
				}
			}
		}
	}
}

// Goal: for every size, h (X^n - 1) + c = a b at a random point, with c = a b on the domain, a and b random.
func TestQuotient_Identity(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	for _, log := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 17} { // 17: more rows than difRows takes at once
		n := 1 << log
		for _, k := range lanes.Kernels(n) {
			t.Run(fmt.Sprintf("%d %T", n, k), func(t *testing.T) {
				a, b, c := make([]fr.Element, n), make([]fr.Element, n), make([]fr.Element, n)
				for i := range n {
					a[i], b[i] = randomScalar(rnd), randomScalar(rnd)
					if i%5 == 0 {
						a[i] = minusOne()
					}
					if i%7 == 0 {
						b[i] = fr.Element{}
					}
					c[i].Mul(&a[i], &b[i])
				}
				x := randomScalar(rnd)
				left, bx, cx := valueAt(a, &x), valueAt(b, &x), valueAt(c, &x)
				left.Mul(&left, &bx)
				if err := quotient(context.Background(), newTestArena(t, quotientBytes(k, n, 2)), k, a, b, c, 2); err != nil {
					t.Fatal(err)
				}
				var right fr.Element
				for i := n - 1; i >= 0; i-- {
					right.Mul(&right, &x)
					right.Add(&right, &b[i])
				}
				z, one := power(x, n), fr.One()
				z.Sub(&z, &one)
				right.Mul(&right, &z)
				right.Add(&right, &cx)
				if left != right {
					t.Fatal("h (X^n - 1) + c is not a b")
				}
			})
		}
	}
}

// valueAt evaluates a polynomial given on the domain, with gnark-crypto's transform.
func valueAt(v []fr.Element, x *fr.Element) (y fr.Element) {
	p := clone(v)
	fft.NewDomain(uint64(len(p))).FFTInverse(p, fft.DIF)
	fft.BitReverse(p)
	for i := len(p) - 1; i >= 0; i-- {
		y.Mul(&y, x)
		y.Add(&y, &p[i])
	}
	return y
}

func clone(v []fr.Element) []fr.Element { return append([]fr.Element(nil), v...) }

func TestQuotient_Cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v := readTiny(t, "tiny-16")
	k := lanes.Kernels(v.Domain)[0]
	if err := quotient(ctx, newTestArena(t, quotientBytes(k, v.Domain, 1)), k, v.a, v.b, v.c, 1); err == nil {
		t.Fatal("went on after the end of its context")
	}
}

// BenchmarkQuotient prints CPU time a butterfly, with gnark-crypto's transform in the same run.
func BenchmarkQuotient(b *testing.B) {
	log := 14
	if !testing.Short() {
		log = 20
	}
	n := 1 << log
	butterflies := float64(n / 2 * log)
	v := [3][]fr.Element{make([]fr.Element, n), make([]fr.Element, n), make([]fr.Element, n)}
	for i := range n {
		v[0][i].SetUint64(uint64(i))
		v[1][i].SetUint64(uint64(i + 1))
		v[2][i].Mul(&v[0][i], &v[1][i])
	}
	d := fft.NewDomain(uint64(n))
	start := cpuTime()
	d.FFT(clone(v[0]), fft.DIF, fft.WithNbTasks(1))
	gnark := float64(cpuTime()-start) / butterflies
	for _, k := range lanes.Kernels(n) {
		b.Run(fmt.Sprintf("%T", k), func(b *testing.B) {
			arena := newTestArena(b, quotientBytes(k, n, 1))
			start, rounds := cpuTime(), 0
			for b.Loop() {
				if err := quotient(context.Background(), arena, k, v[0], v[1], v[2], 1); err != nil {
					b.Fatal(err)
				}
				rounds++
			}
			b.ReportMetric(float64(cpuTime()-start)/float64(rounds)/butterflies/6, "cpu-ns/butterfly")
			b.ReportMetric(gnark, "gnark-ns/butterfly")
		})
	}
}
