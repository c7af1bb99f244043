package ntt

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

// largeLog is the size of a 32 GiB partition.
const largeLog = 27

// parallelVector fills a large vector with pseudo-random elements on all threads.
func parallelVector(tb testing.TB, seed uint64, n int) []fr.Element {
	tb.Helper()
	v := make([]fr.Element, n)
	parallel(tb, n, func(part, from, to int) {
		rng := rand.New(rand.NewPCG(seed, uint64(part)))
		for i := from; i < to; i++ {
			v[i] = fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
		}
	})
	return v
}

// parallel runs f over parts of [0, n) on all threads.
func parallel(tb testing.TB, n int, f func(part, from, to int)) {
	tb.Helper()
	workers := runtime.NumCPU()
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			defer status.Recover("ntt.parallel", &errs[w])
			f(w, n*w/workers, n*(w+1)/workers)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// Goal: transforms of three and four passes equal gnark-crypto's.
func TestTransforms_Large(t *testing.T) {
	kerneltest.NeedCard(t)
	s := kerneltest.Stream(t)
	const most = 21
	for _, f := range forms {
		large(t, s, newTransforms(t, s, most, f), f)
	}
}

func large(t *testing.T, s *driver.Stream, tr *Transforms, f form) {
	t.Helper()
	for _, log := range []int{13, 17, 19, 20, tr.log} {
		for _, coset := range []bool{false, true} {
			coefficients := parallelVector(t, uint64(log), 1<<log)
			v := kerneltest.Put(t, coefficients)
			if err := errors.Join(tr.Forward(s, v, log, coset), s.Synchronize(context.Background())); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("%s: forward, 2^%d, coset %v", f, log, coset), kerneltest.Get[fr.Element](t, v, 1<<log), values(coefficients, coset))
			if err := errors.Join(tr.Inverse(s, v, log, coset), s.Synchronize(context.Background())); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("%s: inverse, 2^%d, coset %v", f, log, coset), kerneltest.Get[fr.Element](t, v, 1<<log), coefficients)
		}
	}
}

// Goal: at 2^27 and 2^28, values are those of the polynomial, the way back is the way back, and the quotient is one.
// Method: sampled values against the coefficients' sums; h (X^n - 1) + c = a b at a random point.
func TestTransforms_Full(t *testing.T) {
	kerneltest.NeedCard(t)
	s := kerneltest.Stream(t)
	tr := newTransforms(t, s, largeLog, full)
	n := 1 << largeLog
	run := func(err error) {
		t.Helper()
		if err := errors.Join(err, s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	var polynomials [3][]fr.Element
	var vectors [3]driver.Ptr
	got := make([]fr.Element, n)
	for i := range 2 {
		polynomials[i] = parallelVector(t, uint64(i), n)
		vectors[i] = kerneltest.Put(t, polynomials[i])
		run(tr.Forward(s, vectors[i], largeLog, i == 1))
		kerneltest.GetInto(t, vectors[i], got)
		root, err := fft.Generator(uint64(n) << i)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range []int{0, 1, n / 3, n - 1} {
			exponent := int(bits.Reverse32(uint32(place)) >> (32 - largeLog))
			exponent = exponent<<i + i // on the coset the odd powers
			var x fr.Element
			x.Exp(root, big.NewInt(int64(exponent)))
			if want := at(polynomials[i], &x); got[place] != want {
				t.Fatalf("coset %v: value %d: want %s, got %s", i == 1, place, want.String(), got[place].String())
			}
		}
		run(tr.Inverse(s, vectors[i], largeLog, i == 1))
		kerneltest.GetInto(t, vectors[i], got)
		if !slices.Equal(got, polynomials[i]) {
			t.Fatalf("coset %v: the way back leads elsewhere", i == 1)
		}
	}
	var rows [3][]fr.Element
	rows[0], rows[1], rows[2] = parallelVector(t, 5, n), parallelVector(t, 6, n), make([]fr.Element, n)
	parallel(t, n, func(_, from, to int) {
		for i := from; i < to; i++ {
			rows[2][i].Mul(&rows[0][i], &rows[1][i])
		}
	})
	root, err := fft.Generator(uint64(n))
	if err != nil {
		t.Fatal(err)
	}
	vectors[2] = kerneltest.Memory(t, int64(n)*elementBytes)
	for i, v := range vectors {
		kerneltest.Copy(t, v, rows[i])
		run(tr.Interpolate(s, v, largeLog))
		if polynomials[i] == nil {
			polynomials[i] = make([]fr.Element, n)
		}
		kerneltest.GetInto(t, v, polynomials[i])
		for _, row := range []int{0, 1, n / 3, n - 1} {
			var x fr.Element
			x.Exp(root, big.NewInt(int64(row)))
			if got := at(polynomials[i], &x); got != rows[i][row] {
				t.Fatalf("row %d: want %s, got %s", row, rows[i][row].String(), got.String())
			}
		}
		kerneltest.Copy(t, v, rows[i])
	}
	run(tr.Quotient(s, vectors[0], vectors[1], vectors[2], largeLog))
	h := got
	kerneltest.GetInto(t, vectors[1], h)
	if !h[n-1].IsZero() {
		t.Fatalf("coefficient %d of h is %s", n-1, h[n-1].String())
	}
	x := fr.Element{12345, 6789, 1011, 1213}
	checkQuotient(t, largeLog, h, polynomials[0], polynomials[1], polynomials[2], &x)
}

// Goal: at 2^27 and 2^28 a compact table gives the quotient of a full one, bit for bit; and at 2^27 the host's help does not change it.
func TestQuotient_Full(t *testing.T) {
	kerneltest.NeedCard(t)
	for log := largeLog; log <= MaxLog; log++ {
		t.Run(fmt.Sprint(log), func(t *testing.T) { compareForms(t, log, log == largeLog) })
	}
}

func compareForms(t *testing.T, log int, hosted bool) {
	s := kerneltest.Stream(t)
	bytes := int64(elementBytes) << log
	var rows, out [3]driver.Ptr
	rows[0] = kerneltest.Put(t, parallelVector(t, 0, 1<<log))
	for i := range rows {
		out[i] = kerneltest.Memory(t, bytes)
		if i == 0 {
			continue
		}
		rows[i] = kerneltest.Memory(t, bytes) // the first, turned
		turn := bytes / 4 * int64(i)
		if err := errors.Join(s.CopyDevice(rows[i], rows[0].Add(turn), bytes-turn), s.CopyDevice(rows[i].Add(bytes-turn), rows[0], turn)); err != nil {
			t.Fatal(err)
		}
	}
	var want []fr.Element
	compare := func(what string, v driver.Ptr, err error) {
		t.Helper()
		if err = errors.Join(err, s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
		got := kerneltest.Get[fr.Element](t, v, 1<<log)
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Fatalf("%s: another quotient", what)
		}
	}
	for _, f := range forms {
		tr := newTransforms(t, s, log, f)
		var err error
		for i := range rows {
			err = errors.Join(err, s.CopyDevice(out[i], rows[i], bytes))
		}
		compare(string(f), out[1], errors.Join(err, tr.Quotient(s, out[0], out[1], out[2], log)))
		if hosted && f == compact {
			h := newHosted(t, tr, Queues{kerneltest.Stream(t), s, kerneltest.Stream(t)}, log)
			compare("hosted", h.vector, h.run(rows[0], rows[1], rows[2]))
		}
	}
}

// transformCost counts multiplications and bytes of one transform of 2^log elements.
func transformCost(log int, coset bool) (w kerneltest.Work) {
	n := float64(uint64(1) << log)
	w = kerneltest.Work{Multiplications: n / 2 * float64(log), Bytes: n * elementBytes * float64(2*len(passesOf(log))+2)}
	if !coset {
		w.Multiplications -= n - 1
	}
	return w
}

// BenchmarkTransforms times one transform each way and the quotient at 2^27, with either table, and the hosted quotient.
func BenchmarkTransforms(b *testing.B) {
	kerneltest.NeedCard(b)
	s := kerneltest.Stream(b)
	var v [3]driver.Ptr
	for i := range v {
		v[i] = kerneltest.Put(b, parallelVector(b, uint64(i), 1<<largeLog))
	}
	plain, coset := transformCost(largeLog, false), transformCost(largeLog, true)
	// One multiplication for the product, two for the scales, and the other factor and c read.
	quotient := kerneltest.Work{
		Multiplications: 3*(plain.Multiplications+coset.Multiplications) + 3<<largeLog,
		Bytes:           3*(plain.Bytes+coset.Bytes) + 2*elementBytes<<largeLog,
	}
	for _, f := range forms {
		tr := newTransforms(b, s, largeLog, f)
		b.Run(string(f), func(b *testing.B) {
			benchmarkPasses(b, s, tr, v[0])
			b.Run("quotient", func(b *testing.B) {
				kerneltest.Timed(b, s, quotient, func() error { return tr.Quotient(s, v[0], v[1], v[2], largeLog) })
			})
		})
	}
	h := newHosted(b, newTransforms(b, s, largeLog, compact), Queues{kerneltest.Stream(b), s, kerneltest.Stream(b)}, largeLog)
	for _, step := range []struct {
		name string
		f    func() error
	}{
		{"all", func() error { return errors.Join(h.TakeC(), h.TakeA(), h.Finish()) }},
		{"take c", h.TakeC},
		{"take c and a", func() error { return errors.Join(h.TakeC(), h.TakeA()) }},
	} {
		b.Run("hosted/"+step.name, func(b *testing.B) { kerneltest.Timed(b, s, quotient, step.f) })
	}
}

// benchmarkPasses times transforms in v, and their passes.
func benchmarkPasses(b *testing.B, s *driver.Stream, tr *Transforms, v driver.Ptr) {
	const n = 1 << largeLog
	for _, coset := range []bool{false, true} {
		w := transformCost(largeLog, coset)
		b.Run(fmt.Sprintf("forward/coset=%v", coset), func(b *testing.B) {
			kerneltest.Timed(b, s, w, func() error { return tr.Forward(s, v, largeLog, coset) })
		})
		w.Multiplications += float64(n) // by 1/n
		b.Run(fmt.Sprintf("inverse/coset=%v", coset), func(b *testing.B) {
			kerneltest.Timed(b, s, w, func() error { return tr.Inverse(s, v, largeLog, coset) })
		})
	}
	for i, p := range tr.passes[largeLog] {
		w := kerneltest.Work{Multiplications: n / 2 * float64(p.levels()), Bytes: n * 2 * elementBytes}
		b.Run(fmt.Sprintf("forward/pass=%d,levels=%d", i, p.levels()), func(b *testing.B) {
			kerneltest.Timed(b, s, w, func() error { return tr.forwardPasses(s, v, []pass{p}, true, 0) })
		})
		b.Run(fmt.Sprintf("inverse/pass=%d,levels=%d", i, p.levels()), func(b *testing.B) {
			kerneltest.Timed(b, s, w, func() error { return tr.inversePasses(s, v, []pass{p}, true, &finish{}) })
		})
	}
	b.Run("natural", func(b *testing.B) {
		w := transformCost(largeLog, false)
		kerneltest.Timed(b, s, w, func() error { return tr.naturalPasses(s, v, largeLog, &finish{}) })
	})
	b.Run(fmt.Sprintf("natural/first,levels=%d", naturalLevels), func(b *testing.B) {
		w := kerneltest.Work{Multiplications: n / 2 * naturalLevels, Bytes: n * 2 * elementBytes}
		kerneltest.Timed(b, s, w, func() error { return tr.naturalFirst(s, v, largeLog) })
	})
}
