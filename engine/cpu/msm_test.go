package cpu

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
)

// somePoints makes n distinct points of order r: (i+1) G, by batches of affine additions.
func somePoints(n int) []bls.G1Affine {
	_, _, g, _ := bls.Generators()
	jac := make([]bls.G1Jac, n)
	var at bls.G1Jac
	for i := range jac {
		at.AddMixed(&g)
		jac[i] = at
	}
	return bls.BatchJacobianToAffineG1(jac)
}

func somePoints2(n int) []bls.G2Affine {
	_, _, _, g := bls.Generators()
	points := make([]bls.G2Affine, n)
	var at bls.G2Jac
	for i := range points {
		at.AddMixed(&g)
		points[i].FromJacobian(&at)
	}
	return points
}

func randomScalar(rnd *rand.Rand) (x fr.Element) {
	var b [32]byte
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	x.SetBytes(b[:])
	return x
}

func minusOne() (x fr.Element) {
	x.SetOne()
	x.Neg(&x)
	return x
}

// readFrom gives a test's points chunk by chunk.
func readFrom[A any](points []A) func(context.Context, int, []A) error {
	return func(_ context.Context, from int, dst []A) error {
		copy(dst, points[from:from+len(dst)])
		return nil
	}
}

// scalars bounds the number of values that are neither zero nor one.
func (s *section) scalars() int {
	switch {
	case s.full == nil:
		return len(s.nums)
	case s.kind.Len > 0 && s.density != nil:
		return both(s.kind, *s.density)
	case s.kind.Len > 0:
		return s.kind.Count()
	}
	n := 0
	for i := range s.full {
		if (s.density == nil || s.density.Get(i)) && !s.full[i].IsZero() && !s.full[i].IsOne() {
			n++
		}
	}
	return n
}

func (s *source) scalars() (n int) {
	for i := range s.sections {
		n += s.sections[i].scalars()
	}
	return n
}

func sumG1(t testing.TB, k lanes.StoreKind[bls.G1Affine], threads, chunk int, w *windows, points []bls.G1Affine, sections ...section) bls.G1Affine {
	t.Helper()
	src := newSource(sections...)
	cutting := cut(src.scalars(), k.SlotBytes)
	if w != nil {
		cutting = *w
	}
	sum, err := sumBlock[bls.G1Affine, bls.G1Jac](context.Background(), newTestArena(t, sumBlockBytes[bls.G1Affine](k, cutting, chunk, threads)), k, cutting, chunk, threads, src, readFrom(points))
	if err != nil {
		t.Fatal(err)
	}
	var p bls.G1Affine
	p.FromJacobian(&sum)
	return p
}

func newTestArena(t testing.TB, size int64) *host.Arena {
	t.Helper()
	a, err := host.NewArena(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// naive is the sum that the tests compare with.
func naive(points []bls.G1Affine, scalars []fr.Element) bls.G1Affine {
	var sum, t bls.G1Jac
	var k big.Int
	for i := range points {
		t.FromAffine(&points[i])
		t.ScalarMultiplication(&t, scalars[i].BigInt(&k))
		sum.AddAssign(&t)
	}
	var p bls.G1Affine
	p.FromJacobian(&sum)
	return p
}

// The one case list of points and scalars.
type sumCase struct {
	name    string
	points  []bls.G1Affine
	scalars []fr.Element
}

func sumCases(sizes []int) (cases []sumCase) {
	rnd := rand.New(rand.NewPCG(1, 2))
	top := sizes[len(sizes)-1]
	distinct := somePoints(top)
	one := fr.One()
	var half, halfUp fr.Element
	half.SetBigInt(new(big.Int).Rsh(fr.Modulus(), 1))
	halfUp.Add(&half, &one)
	fill := func(n int, f func(i int) fr.Element) []fr.Element {
		s := make([]fr.Element, n)
		for i := range s {
			s[i] = f(i)
		}
		return s
	}
	random := func(int) fr.Element { return randomScalar(rnd) }
	for _, n := range sizes {
		p := distinct[:n]
		same := make([]bls.G1Affine, n)
		opposite := make([]bls.G1Affine, n)
		holes := append([]bls.G1Affine(nil), p...)
		for i := range same {
			same[i] = distinct[0]
			opposite[i] = distinct[i/2]
			if i&1 == 1 {
				opposite[i].Neg(&opposite[i])
			}
			if i%3 == 0 {
				holes[i] = bls.G1Affine{}
			}
		}
		allInfinity := make([]bls.G1Affine, n)
		cases = append(cases,
			sumCase{fmt.Sprintf("%d random", n), p, fill(n, random)},
			sumCase{fmt.Sprintf("%d zeros", n), p, make([]fr.Element, n)},
			sumCase{fmt.Sprintf("%d ones", n), p, fill(n, func(int) fr.Element { return one })},
			sumCase{fmt.Sprintf("%d r-1", n), p, fill(n, func(int) fr.Element { return minusOne() })},
			sumCase{fmt.Sprintf("%d r/2", n), p, fill(n, func(i int) fr.Element { return []fr.Element{half, halfUp}[i&1] })},
			sumCase{fmt.Sprintf("%d small", n), p, fill(n, func(i int) fr.Element { return fr.NewElement(uint64(i)) })},
			sumCase{fmt.Sprintf("%d one digit", n), p, fill(n, func(int) fr.Element { return fr.NewElement(5) })},
			sumCase{fmt.Sprintf("%d powers of two", n), p, fill(n, func(i int) fr.Element {
				var x fr.Element
				return *x.SetBigInt(new(big.Int).Lsh(big.NewInt(1), uint(i%255)))
			})},
			sumCase{fmt.Sprintf("%d mostly bits", n), p, fill(n, func(i int) fr.Element {
				if i%7 == 0 {
					return randomScalar(rnd)
				}
				return fr.NewElement(uint64(rnd.Uint32() & 1))
			})},
			sumCase{fmt.Sprintf("%d equal points", n), same, fill(n, random)},
			sumCase{fmt.Sprintf("%d equal points, ones", n), same, fill(n, func(int) fr.Element { return one })},
			sumCase{fmt.Sprintf("%d equal points, one digit", n), same, fill(n, func(int) fr.Element { return fr.NewElement(3) })},
			sumCase{fmt.Sprintf("%d opposite points", n), opposite, fill(n, func(i int) fr.Element { return fr.NewElement(uint64(i/2) + 2) })},
			sumCase{fmt.Sprintf("%d opposite points, ones", n), opposite, fill(n, func(int) fr.Element { return one })},
			sumCase{fmt.Sprintf("%d infinity among", n), holes, fill(n, random)},
			sumCase{fmt.Sprintf("%d infinity among, ones", n), holes, fill(n, func(int) fr.Element { return one })},
			sumCase{fmt.Sprintf("%d infinity", n), allInfinity, fill(n, random)},
		)
	}
	return cases
}

// Goal: every store gives the naive loop's sum on the whole case list.
func TestSum_G1(t *testing.T) {
	cases := sumCases([]int{0, 1, 2, 15, 16, 17, 127, 128, 129})
	for _, c := range cases {
		want := naive(c.points, c.scalars)
		for _, k := range lanes.G1() {
			if got := sumG1(t, k, 1, max(1, len(c.points)), nil, c.points, section{count: len(c.scalars), full: c.scalars}); !got.Equal(&want) {
				t.Errorf("%s, %s: wrong sum", c.name, k.Name)
			}
		}
	}
}

// Goal: chunk size, threads and window width do not change the sum.
func TestSum_Divisions(t *testing.T) {
	const n = 3000
	rnd := rand.New(rand.NewPCG(3, 4))
	points := somePoints(n)
	scalars := make([]fr.Element, n)
	for i := range scalars {
		if i%3 == 0 {
			scalars[i] = fr.NewElement(uint64(rnd.Uint32() & 1))
		} else {
			scalars[i] = randomScalar(rnd)
		}
	}
	var want bls.G1Affine
	if _, err := want.MultiExp(points, scalars, ecc.MultiExpConfig{}); err != nil {
		t.Fatal(err)
	}
	for _, k := range lanes.G1() {
		for _, c := range []struct{ threads, chunk, width int }{{1, n, 4}, {3, 100, 9}, {2, 1000, 8}, {5, 10, 5}, {2, n, 13}, {40, 512, 7}, {2, 2999, 15}, {1, 4096, 16}, {2, 4096, 17}} {
			w := cutWidth(c.width)
			if got := sumG1(t, k, c.threads, c.chunk, &w, points, section{count: n, full: scalars}); !got.Equal(&want) {
				t.Errorf("%s: threads %d, chunk %d, width %d: wrong sum", k.Name, c.threads, c.chunk, c.width)
			}
		}
	}
}

// Goal: compact values and full vectors, with densities and several sections, give the same sum.
func TestSum_Compact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 63, 64, 65, 300} {
		for _, share := range []float64{0, 0.1, 0.9, 1} { // of field elements
			for _, dense := range []float64{0, 0.2, 1} {
				inputs := []fr.Element{fr.One(), randomScalar(rnd), {}}
				value, kind, density := circuit.NewBits(n), circuit.NewBits(n), circuit.NewBits(n)
				var nums []fr.Element
				full := make([]fr.Element, n)
				var chosen []fr.Element
				chosen = append(chosen, inputs...)
				for i := range n {
					if rnd.Float64() < share {
						kind.Set(i)
						full[i] = []fr.Element{randomScalar(rnd), fr.One(), {}}[rnd.IntN(3)]
						nums = append(nums, full[i])
					} else if rnd.IntN(2) == 1 {
						value.Set(i)
						full[i].SetOne()
					}
					if rnd.Float64() < dense {
						density.Set(i)
						chosen = append(chosen, full[i])
					}
				}
				points := somePoints(len(chosen))
				want := naive(points, chosen)
				k := lanes.G1()[0]
				for _, chunk := range []int{7, 64, len(points)} {
					compact := section{count: n, density: &density, bits: value, kind: kind, nums: nums}
					if got := sumG1(t, k, 2, chunk, nil, points, section{count: 3, full: inputs}, compact); !got.Equal(&want) {
						t.Fatalf("n %d, share %v, density %v, chunk %d: compact: wrong sum", n, share, dense, chunk)
					}
					if got := sumG1(t, k, 2, chunk, nil, points, section{count: 3, full: inputs}, section{count: n, density: &density, full: full}); !got.Equal(&want) {
						t.Fatalf("n %d, share %v, density %v, chunk %d: full: wrong sum", n, share, dense, chunk)
					}
				}
			}
		}
	}
}

func TestSum_G2(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	all := somePoints2(300)
	for _, n := range []int{0, 1, 2, 33, 300} {
		for _, form := range []string{"random", "ones", "equal", "opposite", "infinity"} {
			points := append([]bls.G2Affine(nil), all[:n]...)
			scalars := make([]fr.Element, n)
			var want, term bls.G2Jac
			for i := range points {
				scalars[i] = randomScalar(rnd)
				switch form {
				case "ones":
					scalars[i].SetOne()
				case "equal":
					points[i] = all[0]
					scalars[i] = fr.NewElement(uint64(i & 3))
				case "opposite":
					points[i] = all[i/2]
					scalars[i] = fr.NewElement(9)
					if i&1 == 1 {
						points[i].Neg(&points[i])
					}
				case "infinity":
					points[i] = bls.G2Affine{}
				}
				term.FromAffine(&points[i])
				term.ScalarMultiplication(&term, scalars[i].BigInt(new(big.Int)))
				want.AddAssign(&term)
			}
			src := newSource(section{count: n, full: scalars})
			for _, k := range lanes.G2() {
				w := cut(src.scalars(), k.SlotBytes)
				src := newSource(section{count: n, full: scalars})
				got, err := sumBlock[bls.G2Affine, bls.G2Jac](context.Background(), newTestArena(t, sumBlockBytes[bls.G2Affine](k, w, max(1, n), 2)), k, w, max(1, n), 2, src, readFrom(points))
				if err != nil || !got.Equal(&want) {
					t.Errorf("%d %s, %s: wrong sum, %v", n, form, k.Name, err)
				}
			}
		}
	}
}

// cpuTime is what the process has used: on shared cores wall time says little.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSum_G1 compares every store with gnark-crypto's MultiExp in the same run, by CPU time an addition
// into a bucket, and with the floor of 6 multiplications in the field.
func BenchmarkSum_G1(b *testing.B) {
	n := 1 << 16
	if !testing.Short() {
		n = 1 << 19
	}
	rnd := rand.New(rand.NewPCG(9, 10))
	points := somePoints(n)
	scalars := make([]fr.Element, n)
	for i := range scalars {
		scalars[i] = randomScalar(rnd)
	}
	var x, y fp.Element
	x.MustSetRandom()
	y.MustSetRandom()
	start := cpuTime()
	for range 1 << 20 {
		x.Mul(&x, &y)
	}
	floor := 6 * float64(cpuTime()-start) / (1 << 20)

	var want bls.G1Affine
	start = cpuTime()
	if _, err := want.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		b.Fatal(err)
	}
	gnark := float64(cpuTime()-start) / float64(n*16)
	for _, k := range lanes.G1() {
		b.Run(k.Name, func(b *testing.B) {
			w := cut(n, k.SlotBytes)
			chunk := chunkPoints(n, k.SlotBytes)
			arena := newTestArena(b, sumBlockBytes[bls.G1Affine](k, w, chunk, 1))
			start := cpuTime()
			rounds := 0
			for b.Loop() {
				arena.Release(0)
				sum, err := sumBlock[bls.G1Affine, bls.G1Jac](context.Background(), arena, k, w, chunk, 1, newSource(section{count: n, full: scalars}), readFrom(points))
				var got bls.G1Affine
				if got.FromJacobian(&sum); err != nil || !got.Equal(&want) {
					b.Fatal("wrong sum", err)
				}
				rounds++
			}
			ns := float64(cpuTime()-start) / float64(rounds) / float64(n*w.count)
			b.ReportMetric(ns, "cpu-ns/add")
			b.ReportMetric(float64(n*w.count), "adds")
			b.ReportMetric(floor, "floor-ns")
			b.ReportMetric(gnark, "gnark16-ns/add")
			b.ReportMetric(gnark*16/(ns*float64(w.count)), "gnark/ours")
		})
	}
}
