package lanes

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/host"
)

func newArena(t testing.TB, size int64) *host.Arena {
	t.Helper()
	a, err := host.NewArena(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func newStore[A any](t testing.TB, k StoreKind[A], slots, workers int) Store[A] {
	return k.New(newArena(t, k.Bytes(slots, workers)), slots, workers)
}

// curve is gnark-crypto's arithmetic, which the stores are compared with.
type curve[A any] interface {
	*A
	Neg(*A) *A
	Add(*A, *A) *A
	IsInfinity() bool
	Equal(*A) bool
}

func somePoints(n int) (g1 []bls.G1Affine, g2 []bls.G2Affine) {
	_, _, a, b := bls.Generators()
	p, q := a, b
	for range n {
		g1, g2 = append(g1, p), append(g2, q)
		p.Add(&p, &a)
		q.Add(&q, &b)
	}
	return g1, g2
}

func allOffsets(n int) []uint32 {
	o := make([]uint32, n)
	for i := range o {
		o[i] = uint32(i) << 1
	}
	return o
}

// Goal: slots hold what was loaded, signs and infinity included.
func TestStore_Slots(t *testing.T) {
	g1, g2 := somePoints(20)
	for _, k := range G1() {
		t.Run("G1 "+k.Name, func(t *testing.T) { testSlots(t, k, g1) })
	}
	for _, k := range G2() {
		t.Run("G2 "+k.Name, func(t *testing.T) { testSlots(t, k, g2) })
	}
}

func testSlots[A comparable, PA curve[A]](t *testing.T, k StoreKind[A], points []A) {
	var infinity A
	points = append(points, infinity)
	PA(&points[3]).Neg(&points[3])
	offsets := make([]uint32, 0, len(points))
	for i := len(points) - 1; i >= 0; i-- {
		offsets = append(offsets, uint32(i)<<1|uint32(i&1)) // the sign is not Load's
	}
	s := newStore(t, k, 64, 1)
	s.Load(5, points, offsets)
	for i, o := range offsets {
		want := points[o>>1]
		if got := s.Get(5 + i); got != want || s.Empty(5+i) != PA(&want).IsInfinity() {
			t.Fatalf("slot of point %d: want %v, got %v", o>>1, want, got)
		}
		s.Move(40, Ref(5+i)|1)
		PA(&want).Neg(&want)
		if got := s.Get(40); got != want {
			t.Fatalf("negated point %d: want %v, got %v", o>>1, want, got)
		}
	}
	s.Clear(7, 9)
	for i, want := range []bool{false, true, true, false} {
		if s.Empty(6+i) != want {
			t.Fatalf("slot %d: empty is %v", 6+i, !want)
		}
	}
}

// Goal: long chains of additions stay exact though slots are not canonical: each result is compared with
// gnark-crypto's, with batches of every length up to some groups, and special cases among them.
func TestStore_Chains(t *testing.T) {
	g1, g2 := somePoints(chainPoints)
	for _, k := range G1() {
		t.Run("G1 "+k.Name, func(t *testing.T) { testChains(t, k, g1) })
	}
	for _, k := range G2() {
		t.Run("G2 "+k.Name, func(t *testing.T) { testChains(t, k, g2) })
	}
}

const chainPoints = 200

func testChains[A comparable, PA curve[A]](t *testing.T, k StoreKind[A], points []A) {
	const n = chainPoints / 2
	rnd := rand.New(rand.NewPCG(21, 22))
	points = append([]A(nil), points...)
	var infinity A
	points[7] = infinity
	points[n+9] = infinity
	points[n+11] = points[11]
	PA(&points[n+12]).Neg(&points[12])
	s := newStore(t, k, 2*n, 2)
	s.Load(0, points, allOffsets(2*n))
	for round := range 60 {
		order := rnd.Perm(2 * n)
		ops := make([]Op, round+1)
		for i := range ops {
			a, b := order[2*i], order[2*i+1]
			ops[i] = Op{uint32(a), Ref(a) | rnd.Uint32()&1, Ref(b) | rnd.Uint32()&1}
			x, y := points[a], points[b]
			if ops[i].A&1 == 1 {
				PA(&x).Neg(&x)
			}
			if ops[i].B&1 == 1 {
				PA(&y).Neg(&y)
			}
			PA(&points[a]).Add(&x, &y)
		}
		s.Add(round&1, ops)
		for i := range points {
			if got := s.Get(i); got != points[i] {
				t.Fatalf("round %d: slot %d: want %v, got %v", round, i, points[i], got)
			}
		}
	}
}

// Goal: sums of every pair of small multiples, infinity, equal and opposite points included, in one batch.
func TestStore_SmallMultiples(t *testing.T) {
	g1, g2 := somePoints(4 * reach)
	for _, k := range G1() {
		t.Run("G1 "+k.Name, func(t *testing.T) { testMultiples(t, k, g1) })
	}
	for _, k := range G2() {
		t.Run("G2 "+k.Name, func(t *testing.T) { testMultiples(t, k, g2) })
	}
}

const reach = 5

func testMultiples[A comparable, PA curve[A]](t *testing.T, k StoreKind[A], points []A) {
	multiple := func(m int) (p A) {
		if m > 0 {
			return points[m-1]
		}
		if m < 0 {
			PA(&p).Neg(&points[-m-1])
		}
		return p
	}
	const n = 2*reach + 1
	s := newStore(t, k, 2*n*n, 1)
	var ops []Op
	for i := -reach; i <= reach; i++ {
		for j := -reach; j <= reach; j++ {
			at := 2 * len(ops)
			s.Load(at, []A{multiple(i), multiple(j)}, allOffsets(2))
			ops = append(ops, Op{uint32(at), Ref(at), Ref(at + 1)})
		}
	}
	s.Add(0, ops)
	for at := range ops {
		i, j := at/n-reach, at%n-reach
		if got := s.Get(2 * at); got != multiple(i+j) {
			t.Errorf("%d + %d is wrong", i, j)
		}
	}
}

// Goal: a finite point whose x is zero is not taken for infinity. (0, 2) is on G1's curve, outside the subgroup.
func TestStore_ZeroX(t *testing.T) {
	var p, sum, double bls.G1Affine
	p.Y.SetUint64(2)
	_, _, g, _ := bls.Generators()
	sum.Add(&p, &g)
	double.Double(&p)
	for _, k := range G1() {
		s := newStore(t, k, 60, 1)
		var ops []Op
		for at := 0; at < 60; at += 6 { // enough for a group
			s.Load(at, []bls.G1Affine{p, g, g, p, p, p}, allOffsets(6))
			for i := at; i < at+6; i += 2 {
				ops = append(ops, Op{uint32(i), Ref(i), Ref(i + 1)})
			}
		}
		s.Add(0, ops)
		for i, want := range []bls.G1Affine{sum, sum, double} {
			if got := s.Get(54 + 2*i); got != want {
				t.Errorf("%s, pair %d: want %v, got %v", k.Name, i, &want, &got)
			}
		}
	}
}

// edgeElement draws coordinates that a carry, a borrow or a reduction may get wrong. The law of addition holds for
// any x and y, on the curve or not.
func edgeElement(rnd *rand.Rand) (x fp.Element) {
	v := new(big.Int)
	switch rnd.IntN(6) {
	case 0:
		v.SetUint64(rnd.Uint64N(3))
	case 1:
		v.SetInt64(-rnd.Int64N(3))
	case 2: // limbs of ones
		v.Sub(v.Lsh(big.NewInt(1), uint(52*(1+rnd.IntN(7)))), big.NewInt(rnd.Int64N(3)))
	case 3: // top of the range
		v.Sub(v.Rsh(fp.Modulus(), uint(rnd.IntN(3))), new(big.Int).Lsh(big.NewInt(1), uint(rnd.IntN(360))))
	default:
		x.MustSetRandom()
		return x
	}
	if x.SetBigInt(v); rnd.IntN(2) == 0 {
		x.Mul(&x, &montgomeryUnit) // the words themselves are the value, as slots of 416 bits hold them
	}
	return x
}

// montgomeryUnit turns x into what is held as x: 2^-416.
var montgomeryUnit = func() (x fp.Element) {
	x.SetBigInt(new(big.Int).Lsh(big.NewInt(1), 416))
	return *x.Inverse(&x)
}()

// Goal: all stores agree on coordinates at the edges, over batches of one group to several thousand additions.
func TestStore_Edges(t *testing.T) {
	t.Run("G1", func(t *testing.T) {
		testEdges(t, G1(), func(rnd *rand.Rand) bls.G1Affine { return bls.G1Affine{X: edgeElement(rnd), Y: edgeElement(rnd)} })
	})
	t.Run("G2", func(t *testing.T) {
		e := func(rnd *rand.Rand) bls.E2 { return bls.E2{A0: edgeElement(rnd), A1: edgeElement(rnd)} }
		testEdges(t, G2(), func(rnd *rand.Rand) bls.G2Affine { return bls.G2Affine{X: e(rnd), Y: e(rnd)} })
	})
}

func testEdges[A comparable](t *testing.T, kinds []StoreKind[A], draw func(rnd *rand.Rand) A) {
	rnd := rand.New(rand.NewPCG(31, 32))
	for _, n := range []int{8, 100, BatchSize, BatchSize + 1, 3*BatchSize + 5} {
		points := make([]A, 2*n)
		for i := range points {
			points[i] = draw(rnd)
		}
		ops := make([]Op, n)
		for i := range ops {
			ops[i] = Op{uint32(2*i + i&1), Ref(2*i) | rnd.Uint32()&1, Ref(2*i+1) | rnd.Uint32()&1}
		}
		var want []A
		for at := len(kinds) - 1; at >= 0; at-- { // the plain one comes last
			s := newStore(t, kinds[at], 2*n, 1)
			s.Load(0, points, allOffsets(2*n))
			for range 3 {
				s.Add(0, ops)
			}
			for i := range points {
				got := s.Get(i)
				if at == len(kinds)-1 {
					want = append(want, got)
				} else if got != want[i] {
					t.Fatalf("%d additions, %s: slot %d: want %v, got %v", n, kinds[at].Name, i, want[i], got)
				}
			}
		}
	}
}

// Goal: all kernels give the plain one's values for each operation, partial places and permuted rows included.
func TestKernel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 42))
	for _, size := range []int{8, 64, 256, 1024} {
		v := make([]fr.Element, Width*size)
		for i := range v {
			v[i].MustSetRandom()
			switch rnd.IntN(5) {
			case 0:
				v[i] = fr.Element{}
			case 1:
				v[i].SetInt64(-1 - rnd.Int64N(2))
			}
		}
		w, err := fr.Generator(uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		twiddles, factors := make([]fr.Element, size/2), make([]fr.Element, size)
		at := fr.One()
		for i := range twiddles {
			twiddles[i] = at
			at.Mul(&at, &w)
		}
		order := make([]uint32, size)
		for i, o := range rnd.Perm(size) {
			order[i] = uint32(o)
			factors[i] = v[(7*i+3)%len(v)]
		}
		var first, ratio [Width]fr.Element
		for l := range Width {
			first[l], ratio[l] = v[l+Width], v[len(v)-1-l]
		}
		places := []Place{
			{At: [Width]int{0, 1, 2, 3, 4, 5, 6, 7}, Stride: Width, Count: Width, Size: size},
			{At: [Width]int{7, 2, 1, 4, 0, 6, 5, 3}, Stride: Width, Count: Width, Size: size, Order: order},
		}
		for i := range Width {
			p := Place{Stride: 1, Count: Width, Size: size}
			for l := range Width {
				p.At[l] = (l + i) % Width * size
			}
			places = append(places, p)
		}
		var want []fr.Element
		kernels := Kernels(1 << 20)
		for n := len(kernels) - 1; n >= 0; n-- {
			k := kernels[n]
			table := func(x []fr.Element) []uint64 {
				c := make([]uint64, len(x)*k.ConstantWords())
				k.Constants(c, x)
				return c
			}
			a, b := make([]uint64, k.Words()*size), make([]uint64, k.Words()*size)
			got := make([]fr.Element, len(v))
			var all []fr.Element
			for i := range places {
				for what, apply := range []func(){
					func() {},
					func() { k.DIF(a, size, table(twiddles)) },
					func() { k.DIT(a, size, table(twiddles)) },
					func() { k.Scale(a, size, table(factors)) },
					func() { k.Powers(a, order, &first, &ratio) },
					func() { k.Sub(a, b, size) },
					func() {
						k.Mul(a, b, size)
						f := make([]fr.Element, size)
						for j := range f {
							f[j] = k.MulFactor()
						}
						k.Scale(a, size, table(f))
					},
					func() {
						k.DIF(a, size, table(twiddles))
						k.Scale(a, size, table(factors))
						k.DIT(a, size, table(twiddles))
					},
				} {
					if i > 1 && what > 1 {
						continue
					}
					k.Load(a, v, &places[i])
					k.Load(b, v, &places[(i+1)%2])
					apply()
					k.Store(got, &places[(i+1)%len(places)], a)
					all = append(all, got...)
				}
			}
			if want == nil {
				want = all
				continue
			}
			for i := range all {
				if all[i] != want[i] {
					t.Fatalf("size %d, %T: vector %d, element %d: want %s, got %s", size, k, i/len(v), i%len(v), want[i].String(), all[i].String())
				}
			}
		}
	}
}

// BenchmarkStore measures additions over slots that a second-level cache holds, with the floor of gnark-crypto's six
// multiplications in the same run, and over slots all over the memory.
func BenchmarkStore(b *testing.B) {
	g1, g2 := somePoints(1000)
	for _, slots := range []int{2 * BatchSize, 1 << 18} {
		for _, k := range G1() {
			b.Run(fmt.Sprintf("G1/%s/%d", k.Name, slots), func(b *testing.B) { benchmarkStore(b, k, slots, g1, floor[fp.Element](b)) })
		}
		for _, k := range G2() {
			b.Run(fmt.Sprintf("G2/%s/%d", k.Name, slots), func(b *testing.B) { benchmarkStore(b, k, slots, g2, floor[bls.E2](b)) })
		}
	}
}

func benchmarkStore[A any](b *testing.B, k StoreKind[A], slots int, points []A, floor float64) {
	s := newStore(b, k, slots, 1)
	offsets := make([]uint32, slots)
	for i := range offsets {
		offsets[i] = uint32(i%len(points)) << 1
	}
	s.Load(0, points, offsets)
	perm := rand.New(rand.NewPCG(1, 2)).Perm(slots / 2)
	ops := make([]Op, len(perm))
	for i, p := range perm {
		ops[i] = Op{uint32(2 * p), Ref(2 * p), Ref(2*p + 1)}
	}
	start := cpuTime()
	for b.Loop() {
		s.Add(0, ops)
	}
	spent := float64((cpuTime() - start).Nanoseconds()) / float64(b.N*len(ops))
	b.ReportMetric(spent, "cpu-ns/addition")
	b.ReportMetric(floor, "gnark-floor-cpu-ns")
}

// floor measures 5M + 1S of gnark-crypto in ns.
func floor[F any, PF coordinate[F]](b *testing.B) float64 {
	const rounds = 20_000
	var x F
	PF(&x).SetOne()
	PF(&x).Double(&x)
	z := [6]F{x, x, x, x, x, x}
	start := cpuTime()
	for range rounds {
		for k := range 5 {
			PF(&z[k]).Mul(&x, &z[k])
		}
		PF(&z[5]).Square(&z[5])
	}
	return float64((cpuTime() - start).Nanoseconds()) / rounds
}

// cpuTime is the time that the process has computed, which other processes disturb less than the clock.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
