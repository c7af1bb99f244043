package ntt

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

var _ = kerneltest.Only("ntt")

// smallLog bounds the sizes that the emulator does.
const smallLog = 12

// form is how many roots the transforms under test have.
type form string

const (
	full    form = "full"
	compact form = "compact"
)

var forms = []form{full, compact}

// newTransforms makes transforms with a table on the test's device.
func newTransforms(tb testing.TB, s *driver.Stream, log int, f form) *Transforms {
	tb.Helper()
	bytes, make := TableBytes, New
	if f == compact {
		bytes, make = CompactBytes, NewCompact
	}
	t, err := make(kerneltest.Find, log, kerneltest.Memory(tb, bytes(log)))
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(t.Prepare(s), s.Synchronize(context.Background())); err != nil {
		tb.Fatal(err)
	}
	return t
}

// vector has n elements, small ones, large ones and random ones among them.
func vector(rng *rand.Rand, n int) []fr.Element {
	v := make([]fr.Element, n)
	for i := range v {
		switch rng.IntN(8) {
		case 0:
			v[i].SetUint64(uint64(rng.IntN(2)))
		case 1:
			v[i].SetInt64(-int64(rng.IntN(3)))
		default:
			v[i] = fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
		}
	}
	return v
}

func reversed(v []fr.Element) []fr.Element {
	out := make([]fr.Element, len(v))
	log := bits.TrailingZeros(uint(len(v)))
	for i := range v {
		out[int(bits.Reverse64(uint64(i)<<1)>>(63-log))] = v[i]
	}
	return out
}

// values is gnark-crypto's transform of coefficients, in bit-reversed order.
func values(coefficients []fr.Element, coset bool) []fr.Element {
	v := append([]fr.Element(nil), coefficients...)
	n := uint64(len(v))
	if coset {
		zeta, _ := fft.Generator(2 * n)
		at := fr.One()
		for i := range v {
			v[i].Mul(&v[i], &at)
			at.Mul(&at, &zeta)
		}
	}
	fft.NewDomain(n).FFT(v, fft.DIF)
	return v
}

func same(tb testing.TB, what string, got, want []fr.Element) {
	tb.Helper()
	for i := range want {
		if got[i] != want[i] {
			tb.Fatalf("%s: element %d: want %s, got %s", what, i, want[i].String(), got[i].String())
		}
	}
}

// Goal: transforms of every size, on the domain and the coset, both ways, equal gnark-crypto's.
// Method: all sizes that take one pass and two, with values that gnark-crypto makes of the same coefficients.
func TestTransforms_Sizes(t *testing.T) {
	s := kerneltest.Stream(t)
	for _, f := range forms {
		tr := newTransforms(t, s, smallLog, f)
		for log := range smallLog + 1 {
			checkSize(t, s, tr, log, string(f))
		}
	}
}

// Goal: the same where values in natural order come through a cut too, as they do from 2^14 on.
func TestTransforms_Cut(t *testing.T) {
	s := kerneltest.Stream(t)
	for _, most := range []int{14, 15} {
		checkSize(t, s, newTransforms(t, s, most, compact), most, string(compact))
	}
}

// Goal: compact tables are small, and have each root that a pass asks for.
// Method: the largest number of a group that each pass of each list counts, for all sizes that a table serves.
func TestCompact(t *testing.T) {
	for most := range MaxLog + 1 {
		roots := compactLog(most)
		if got := CompactBytes(most); got > 5<<20 || got >= 1<<20 && got > TableBytes(most)/8 {
			t.Fatalf("2^%d: %d bytes", most, got)
		}
		for log := range most + 1 {
			for _, list := range [][]pass{cut(passesOf(log), log, roots), cut(naturalPassesOf(log), log, roots)} {
				above, cuts := 0, 0
				for i, p := range list {
					if p.rest > 0 {
						cuts++
						if i == 0 || int(p.rest) != log-above || p.coset != 0 || uint64(p.shiftCoset) != 1<<(above+tileLog) {
							t.Fatalf("2^%d of 2^%d, pass %d: %+v", log, most, i, p)
						}
					}
					// The pass's last level counts the most digits.
					last := above + p.levels() - 1
					digits := min(last, bits.Len32(p.inside)-tileLog+p.levels()-1)
					if p.coset == 0 && p.columns == naturalLevels && int(p.stride) == log-naturalLevels {
						digits = min(last, bits.Len32(p.inside)-1)
					}
					if p.coset != 0 {
						digits = last + 1
					}
					if digits > roots {
						t.Fatalf("2^%d of 2^%d, pass %d: %+v: groups of %d digits, roots of %d", log, most, i, p, digits, roots)
					}
					above += p.levels()
				}
				if cuts > 1 || cuts == 0 && log > roots+1 {
					t.Fatalf("2^%d of 2^%d: %d cuts", log, most, cuts)
				}
			}
		}
	}
}

// checkSize compares all transforms of a size with gnark-crypto's.
func checkSize(t *testing.T, s *driver.Stream, tr *Transforms, log int, what string) {
	t.Helper()
	what = fmt.Sprintf("%s: 2^%d", what, log)
	for _, coset := range []bool{false, true} {
		coefficients := vector(rand.New(rand.NewPCG(1, uint64(log))), 1<<log)
		v := kerneltest.Put(t, coefficients)
		if err := errors.Join(tr.Forward(s, v, log, coset), s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
		got := kerneltest.Get[fr.Element](t, v, 1<<log)
		same(t, fmt.Sprintf("%s: forward, coset %v", what, coset), got, values(coefficients, coset))
		if err := errors.Join(tr.Inverse(s, v, log, coset), s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%s: inverse, coset %v", what, coset), kerneltest.Get[fr.Element](t, v, 1<<log), coefficients)
		if coset {
			continue
		}
		kerneltest.Copy(t, v, reversed(got))
		if err := errors.Join(tr.Interpolate(s, v, log), s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
		same(t, what+": from natural order", kerneltest.Get[fr.Element](t, v, 1<<log), coefficients)
	}
}

// Goal: every cut of a transform into passes has each level once, with the strides that the kernels need.
func TestPasses(t *testing.T) {
	for log := range MaxLog + 1 {
		for _, natural := range []bool{false, true} {
			list, above := passesOf(log), 0
			if natural {
				list = naturalPassesOf(log)
			}
			for i, p := range list {
				if last := i == len(list)-1; natural && last && log >= tileLog {
					if int(p.stride) != log-naturalLevels || int(p.columns) != naturalLevels || log-above != naturalLevels {
						t.Fatalf("2^%d, natural: %+v after %d levels", log, p, above)
					}
					above = log
					continue
				}
				levels := tileLog - int(p.columns)
				if int(p.log) != log || int(p.stride) != log-above-levels || uint64(p.coset) != 1<<(above+tileLog) {
					t.Fatalf("2^%d, pass %d: %+v", log, i, p)
				}
				if log > tileLog && p.columns > p.stride {
					t.Fatalf("2^%d, pass %d: %+v: tile", log, i, p)
				}
				above += levels
			}
			if above != log {
				t.Fatalf("2^%d: %d levels", log, above)
			}
		}
	}
}

// Goal: this package's tile is the kernels'.
func TestTuning(t *testing.T) {
	text, err := os.ReadFile("../kernels/tuning/ntt.cuh")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("#define SEALC2_NTT_TILE_LOG %d\n", tileLog); !strings.Contains(string(text), want) {
		t.Fatalf("want %q in the file", want)
	}
}

// rows makes values of a, b and c = a b on a domain, in natural order.
func rows(rng *rand.Rand, n int) (a, b, c []fr.Element) {
	a, b, c = vector(rng, n), vector(rng, n), make([]fr.Element, n)
	for i := range c {
		c[i].Mul(&a[i], &b[i])
	}
	return a, b, c
}

// Goal: h (X^n - 1) + c = a b as polynomials, for every size: at a random point, and by the degree of h.
func TestQuotient_Sizes(t *testing.T) {
	s := kerneltest.Stream(t)
	whole, few := newTransforms(t, s, smallLog, full), newTransforms(t, s, smallLog, compact)
	rng := rand.New(rand.NewPCG(3, 4))
	for log := range smallLog + 1 {
		n := 1 << log
		a, b, c := rows(rng, n)
		pa, pb, pc := kerneltest.Put(t, a), kerneltest.Put(t, b), kerneltest.Put(t, c)
		if err := errors.Join(whole.Quotient(s, pa, pb, pc, log), s.Synchronize(context.Background())); err != nil {
			t.Fatal(err)
		}
		h := kerneltest.Get[fr.Element](t, pb, n)
		if !h[n-1].IsZero() {
			t.Fatalf("2^%d: coefficient %d of h is %s", log, n-1, h[n-1].String())
		}
		var x fr.Element
		x.SetUint64(rng.Uint64())
		checkQuotient(t, log, h, interpolated(a), interpolated(b), interpolated(c), &x)
		for _, tr := range []*Transforms{whole, few} { // and by parts, in two vectors
			kerneltest.Copy(t, pa, a)
			kerneltest.Copy(t, pb, b)
			err := errors.Join(tr.CosetValues(s, pa, 0, log), tr.CosetValues(s, pb, pa, log), s.Synchronize(context.Background()))
			kerneltest.Copy(t, pa, c)
			if err = errors.Join(err, tr.Divide(s, pb, pa, log), s.Synchronize(context.Background())); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("2^%d: by parts, %d bytes of roots", log, rootBytes<<tr.rootsLog), kerneltest.Get[fr.Element](t, pb, n), h)
		}
	}
}

// interpolated is gnark-crypto's way from values to coefficients, both in natural order.
func interpolated(v []fr.Element) []fr.Element {
	p := append([]fr.Element(nil), v...)
	fft.NewDomain(uint64(len(p))).FFTInverse(p, fft.DIF)
	fft.BitReverse(p)
	return p
}

// checkQuotient compares both sides of h (X^n - 1) + c = a b at x.
func checkQuotient(tb testing.TB, log int, h, a, b, c []fr.Element, x *fr.Element) {
	tb.Helper()
	var left, right, z fr.Element
	one := fr.One()
	z.Exp(*x, new(big.Int).Lsh(big.NewInt(1), uint(log)))
	z.Sub(&z, &one)
	left, ax, bx, cx := at(h, x), at(a, x), at(b, x), at(c, x)
	left.Mul(&left, &z)
	left.Add(&left, &cx)
	right.Mul(&ax, &bx)
	if left != right {
		tb.Fatalf("2^%d: h (X^n - 1) + c is not a b at %s", log, x.String())
	}
}

// at evaluates a polynomial, on all threads.
func at(p []fr.Element, x *fr.Element) (y fr.Element) {
	workers := min(runtime.NumCPU(), len(p))
	parts := make([]fr.Element, workers)
	var wg sync.WaitGroup
	for w := range workers {
		from, to := len(p)*w/workers, len(p)*(w+1)/workers
		wg.Go(func() {
			var err error
			defer status.Recover("ntt.at", &err)
			for i := to - 1; i >= from; i-- {
				parts[w].Mul(&parts[w], x)
				parts[w].Add(&parts[w], &p[i])
			}
			var shift fr.Element
			shift.Exp(*x, big.NewInt(int64(from)))
			parts[w].Mul(&parts[w], &shift)
		})
	}
	wg.Wait()
	for w := range parts {
		y.Add(&y, &parts[w])
	}
	return y
}

// Goal: sizes beyond the table are refused by value.
func TestTransforms_Refused(t *testing.T) {
	s := kerneltest.Stream(t)
	tr := newTransforms(t, s, 2, full)
	for _, err := range []error{tr.Forward(s, 0, 3, false), tr.Inverse(s, 0, -1, false), tr.Interpolate(s, 0, 3), tr.Quotient(s, 0, 0, 0, 3)} {
		if status.KindOf(err) != status.Internal {
			t.Fatalf("want an internal error, got %v", err)
		}
	}
	if _, err := New(kerneltest.Find, MaxLog+1, 0); status.KindOf(err) != status.Internal {
		t.Fatalf("want an internal error, got %v", err)
	}
}
