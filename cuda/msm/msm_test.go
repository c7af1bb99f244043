package msm

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: sums equal gnark-crypto's multi-exponentiation for every kind of input, and however a plan cuts the work.
// Method: one list of cases for both curves, tiny in the emulator and up to 2^20 on a card, with gnark-crypto as reference.

// group is what the tests need of a curve.
type group[A any] struct {
	curve    Curve
	multiply func(scalars []fr.Element) []A // of the generator
	neg      func(p A) A
	sum      func(m *Summer, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (A, error)
	want     func(points []A, scalars []fr.Element) (A, error)
}

func background() context.Context { return context.Background() }

var groupG1 = group[bls.G1Affine]{
	curve: G1,
	multiply: func(scalars []fr.Element) []bls.G1Affine {
		_, _, g, _ := bls.Generators()
		return bls.BatchScalarMultiplicationG1(&g, scalars)
	},
	neg: func(p bls.G1Affine) (r bls.G1Affine) { r.Neg(&p); return r },
	sum: func(m *Summer, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (r bls.G1Affine, err error) {
		j, err := m.SumG1(background(), s, p, in, scratch)
		r.FromJacobian(&j)
		return r, err
	},
	want: func(points []bls.G1Affine, scalars []fr.Element) (r bls.G1Affine, err error) {
		if len(points) == 0 {
			return r, nil
		}
		_, err = r.MultiExp(points, scalars, ecc.MultiExpConfig{})
		return r, err
	},
}

var groupG2 = group[bls.G2Affine]{
	curve: G2,
	multiply: func(scalars []fr.Element) []bls.G2Affine {
		_, _, _, g := bls.Generators()
		return bls.BatchScalarMultiplicationG2(&g, scalars)
	},
	neg: func(p bls.G2Affine) (r bls.G2Affine) { r.Neg(&p); return r },
	sum: func(m *Summer, s *driver.Stream, p *Plan, in Input, scratch driver.Ptr) (r bls.G2Affine, err error) {
		j, err := m.SumG2(background(), s, p, in, scratch)
		r.FromJacobian(&j)
		return r, err
	},
	want: func(points []bls.G2Affine, scalars []fr.Element) (r bls.G2Affine, err error) {
		if len(points) == 0 {
			return r, nil
		}
		_, err = r.MultiExp(points, scalars, ecc.MultiExpConfig{})
		return r, err
	},
}

// newSummer opens the device's Summer.
func newSummer(tb testing.TB) *Summer {
	tb.Helper()
	m, err := New(kerneltest.Open(tb), kerneltest.Find)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// edges are the scalars at which signs, carries and windows change.
func edges() []fr.Element {
	one, r := big.NewInt(1), fr.Modulus()
	half := new(big.Int).Rsh(r, 1)
	values := []*big.Int{big.NewInt(0), one, big.NewInt(2), new(big.Int).Sub(r, one), new(big.Int).Sub(r, big.NewInt(2)),
		half, new(big.Int).Add(half, one), new(big.Int).Sub(half, one), new(big.Int).Add(half, big.NewInt(2))}
	for k := uint(1); k < 255; k += 3 {
		p := new(big.Int).Lsh(one, k)
		values = append(values, p, new(big.Int).Sub(p, one))
	}
	all := make([]fr.Element, len(values))
	for i, v := range values {
		all[i].SetBigInt(v)
	}
	return all
}

func randomScalars(rng *rand.Rand, n int) []fr.Element {
	all := make([]fr.Element, n)
	for i := range all {
		var b [32]byte
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		all[i].SetBytes(b[:])
	}
	return all
}

// pointsOf gives n points, made of few: hard ones have infinity, repeats and opposites among them.
func (g *group[A]) pointsOf(rng *rand.Rand, n int, hard bool) []A {
	different := min(n, 200)
	base := g.multiply(randomScalars(rng, max(different, 1)))
	all := make([]A, n)
	for i := range all {
		all[i] = base[i%len(base)]
		if n <= 200 || !hard {
			continue
		}
		all[i] = base[rng.IntN(len(base))]
	}
	if hard {
		for i := range all {
			switch rng.IntN(8) {
			case 0:
				all[i] = *new(A)
			case 1:
				all[i] = base[0]
			case 2:
				all[i] = g.neg(base[rng.IntN(len(base))])
			case 3:
				all[i] = g.neg(base[0])
			}
		}
	}
	return all
}

// check runs a sum and compares.
func (g *group[A]) check(t *testing.T, m *Summer, p *Plan, points []A, scalars []fr.Element) {
	t.Helper()
	in := Input{Points: kerneltest.Put(t, points), Scalars: kerneltest.Put(t, scalars), Count: len(scalars)}
	g.compare(t, m, p, in, points, scalars)
}

func (g *group[A]) compare(t *testing.T, m *Summer, p *Plan, in Input, points []A, scalars []fr.Element) {
	t.Helper()
	got, err := g.sum(m, kerneltest.Stream(t), p, in, kerneltest.Memory(t, p.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	want, err := g.want(points, scalars)
	if err != nil {
		t.Fatal(err)
	}
	if any(got) != any(want) {
		t.Errorf("%s, %d points, plan %s: want %v, got %v", g.curve, len(points), p, want, got)
	}
}

// planned plans for a device without a limit that matters.
func planned(t *testing.T, m *Summer, s Shape) *Plan {
	t.Helper()
	p, err := PlanFor(s, m.Card(), 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// brief tells whether a sample of the cases will do: G2 runs the same code as G1, and takes the emulator four times as long.
func brief(c Curve) bool { return c == G2 && !kerneltest.Large() }

func sizes() []int {
	if kerneltest.Large() {
		return []int{0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20}
	}
	return []int{0, 1, 2, 33, 129}
}

func testSizes[A any](t *testing.T, g group[A]) {
	m := newSummer(t)
	rng := rand.New(rand.NewPCG(1, uint64(g.curve)))
	for i, n := range sizes() {
		if brief(g.curve) && i%2 == 0 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			points := g.pointsOf(rng, n, false)
			g.check(t, m, planned(t, m, Shape{Curve: g.curve, Points: n, Scalars: n}), points, randomScalars(rng, n))
		})
	}
}

func TestSum_SizesG1(t *testing.T) { testSizes(t, groupG1) }
func TestSum_SizesG2(t *testing.T) { testSizes(t, groupG2) }

// kinds are the distributions of scalars.
var kinds = []struct {
	name string
	make func(rng *rand.Rand, i int) fr.Element
}{
	{"edges", func(rng *rand.Rand, i int) fr.Element { e := edges(); return e[i%len(e)] }},
	{"zeros", func(rng *rand.Rand, i int) (x fr.Element) { return x }},
	{"ones", func(rng *rand.Rand, i int) (x fr.Element) { x.SetOne(); return x }},
	{"minus one", func(rng *rand.Rand, i int) (x fr.Element) { x.SetInt64(-1); return x }},
	{"bits", func(rng *rand.Rand, i int) (x fr.Element) { x.SetUint64(uint64(rng.IntN(2))); return x }},
	{"same", func(rng *rand.Rand, i int) (x fr.Element) {
		x.SetString("123456789123456789123456789123456789")
		return x
	}},
	{"clustered", func(rng *rand.Rand, i int) (x fr.Element) { x.SetUint64(1<<40 + uint64(rng.IntN(3))); return x }},
	{"one random", func(rng *rand.Rand, i int) (x fr.Element) {
		if i == 1 {
			return randomScalars(rng, 1)[0]
		}
		return x
	}},
}

func testKinds[A any](t *testing.T, g group[A], n int) {
	m := newSummer(t)
	rng := rand.New(rand.NewPCG(2, uint64(g.curve)))
	for i, kind := range kinds {
		if brief(g.curve) && i%4 != 0 {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			points := g.pointsOf(rng, n, true)
			scalars := make([]fr.Element, n)
			for i := range scalars {
				scalars[i] = kind.make(rng, i)
			}
			g.check(t, m, planned(t, m, Shape{Curve: g.curve, Points: n, Scalars: n}), points, scalars)
		})
	}
}

func hardSize() int {
	if kerneltest.Large() {
		return 1 << 17
	}
	return 210
}

func TestSum_KindsG1(t *testing.T) { testKinds(t, groupG1, hardSize()) }
func TestSum_KindsG2(t *testing.T) { testKinds(t, groupG2, hardSize()/2) }

// Goal: however a plan cuts the work, the sum is the same. Method: windows from few to many, digits and folds group by group,
// points in parts, and partitions that no block has memory for.
func TestSum_Plans(t *testing.T) {
	m := newSummer(t)
	rng := rand.New(rand.NewPCG(3, 0))
	n := 50
	if kerneltest.Large() {
		n = 1 << 14
	}
	points := groupG1.pointsOf(rng, n, true)
	scalars := randomScalars(rng, n)
	for i, e := range edges() {
		if i < n/2 {
			scalars[i] = e
		}
	}
	shape := Shape{Curve: G1, Points: n, Scalars: n}
	for _, c := range []struct {
		windows, group, part, capacity int
		together, ahead, even          bool
	}{
		{windows: 24, group: 24, together: true, ahead: true, even: true},
		{windows: 29, group: 3, together: true, ahead: true, even: true},
		{windows: 32, group: 11, together: false, ahead: false},
		{windows: 37, group: 37, part: n/3 + 1, together: true, ahead: true},
		{windows: 48, group: 17, capacity: 20, together: true, ahead: false, even: true},
		{windows: 36, group: 36, capacity: 9, part: n / 2, together: false, ahead: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			p := Plan{Shape: shape, target: m.Card(), part: n, together: c.together, ahead: c.ahead}
			if c.part > 0 {
				p.part = c.part
			}
			p.group = c.group
			p.prepare(c.windows)
			p.even = c.even
			if c.capacity > 0 {
				p.capacity = c.capacity
			}
			p.lay()
			groupG1.check(t, m, &p, points, scalars)
			// Fewer than planned.
			groupG1.check(t, m, &p, points[:n/2+3], scalars[:n/2+3])
		})
	}
}

// chosen is the host's view of sections.
type chosen struct {
	density, kind, bits []uint64
	scalars             []fr.Element
	full                bool
	count               int
}

func get(words []uint64, i int) bool { return words[i/64]>>(i%64)&1 == 1 }

// draw makes a section with the given shares of points, field elements and ones, in percent; below 0: no bitmap.
func draw(rng *rand.Rand, count, points, fields, ones int, full bool) (c chosen) {
	c.count, c.full = count, full
	bitmap := func(percent int) []uint64 {
		if percent < 0 {
			return nil
		}
		words := make([]uint64, (count+63)/64)
		for i := range count {
			if rng.IntN(100) < percent {
				words[i/64] |= 1 << (i % 64)
			}
		}
		return words
	}
	c.density, c.kind, c.bits = bitmap(points), bitmap(fields), bitmap(ones)
	for i := range count {
		field := c.kind == nil || get(c.kind, i)
		if field && c.bits != nil {
			c.bits[i/64] &^= 1 << (i % 64)
		}
		if field || full {
			c.scalars = append(c.scalars, randomScalars(rng, 1)[0])
		}
	}
	return c
}

// values are the section's values with points, in order.
func (c *chosen) values() (all []fr.Element) {
	num := 0
	for i := range c.count {
		var x fr.Element
		field := c.kind == nil || get(c.kind, i)
		switch {
		case field && c.full:
			x = c.scalars[i]
		case field:
			x = c.scalars[num]
		case c.bits != nil && get(c.bits, i):
			x.SetOne()
		}
		if field {
			num++
		}
		if c.density == nil || get(c.density, i) {
			all = append(all, x)
		}
	}
	return all
}

func testSections[A any](t *testing.T, g group[A], scale int) {
	m := newSummer(t)
	rng := rand.New(rand.NewPCG(4, uint64(g.curve)))
	for i, c := range []struct {
		name     string
		sections []chosen
	}{
		{"none", []chosen{draw(rng, scale, 0, 50, 50, false)}},
		{"all ones", []chosen{draw(rng, scale, -1, 0, 100, false)}},
		{"one one", []chosen{draw(rng, 1, -1, 0, 100, false)}},
		{"all zero", []chosen{draw(rng, scale, -1, 0, 0, false)}},
		{"bits", []chosen{draw(rng, 10*scale, -1, 2, 50, false)}},
		{"bits with density", []chosen{draw(rng, 5*scale, 30, 10, 40, false)}},
		{"field elements", []chosen{draw(rng, scale, 60, -1, -1, true)}},
		{"inputs and aux", []chosen{draw(rng, 21, -1, -1, -1, true), draw(rng, 7*scale+1, 80, 3, 50, false)}},
		{"three", []chosen{draw(rng, scale, 50, 50, 50, true), draw(rng, 64, -1, 100, -1, false), draw(rng, 3, 50, 50, 50, false)}},
	} {
		if brief(g.curve) && i%4 != 3 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var in Input
			var scalars []fr.Element
			shape := Shape{Curve: g.curve}
			// In one piece of memory: a sum takes scalars that lie within 128 GiB, and tools spread mappings further.
			var fields []fr.Element
			for _, s := range c.sections {
				fields = append(fields, s.scalars...)
			}
			at := kerneltest.Put(t, fields)
			for _, s := range c.sections {
				values := s.values()
				scalars = append(scalars, values...)
				put := func(words []uint64) driver.Ptr {
					if words == nil {
						return 0
					}
					return kerneltest.Put(t, words)
				}
				in.Sections = append(in.Sections, Section{Count: s.count, Density: put(s.density), Kind: put(s.kind), Bits: put(s.bits),
					Scalars: at, Full: s.full, Points: len(values)})
				at = at.Add(int64(len(s.scalars)) * fr.Bytes)
				shape.Points += len(values)
				shape.Variables = max(shape.Variables, s.count)
			}
			shape.Scalars, shape.Ones = shape.Points, shape.Points
			points := g.pointsOf(rng, shape.Points, true)
			in.Points = kerneltest.Put(t, points)
			g.compare(t, m, planned(t, m, shape), in, points, scalars)
		})
	}
}

func sectionScale() int {
	if kerneltest.Large() {
		return 5000
	}
	return 90
}

func TestSum_SectionsG1(t *testing.T) { testSections(t, groupG1, sectionScale()) }
func TestSum_SectionsG2(t *testing.T) { testSections(t, groupG2, sectionScale()/2) }

// Goal: a bucket so large that the whole grid writes its pairs. Method: ones alone, enough for two such rounds.
func TestSum_LargeBucket(t *testing.T) {
	m := newSummer(t)
	n := 4*pairLimit + 3
	if kerneltest.Large() {
		n = 1<<20 + 1
	}
	rng := rand.New(rand.NewPCG(5, 0))
	c := draw(rng, n, -1, 0, 100, false)
	points := groupG1.pointsOf(rng, n, false)
	in := Input{Points: kerneltest.Put(t, points), Sections: []Section{{Count: n, Kind: kerneltest.Put(t, c.kind), Bits: kerneltest.Put(t, c.bits), Points: n}}}
	groupG1.compare(t, m, planned(t, m, Shape{Curve: G1, Points: n, Ones: n, Variables: n}), in, points, c.values())
}

// Goal: an input that is not what was planned is refused by value, before the device or by its kernels, and the next sum is
// right. Method: one of each kind.
func TestSum_Refuses(t *testing.T) {
	m := newSummer(t)
	rng := rand.New(rand.NewPCG(6, 0))
	const n = 40
	points, scalars := groupG1.pointsOf(rng, n, false), randomScalars(rng, n)
	plain := planned(t, m, Shape{Curve: G1, Points: n, Scalars: n})
	listed := planned(t, m, Shape{Curve: G1, Points: n, Scalars: n, Ones: 3, Variables: n})
	other := *plain
	other.target.SMs++
	in := Input{Points: kerneltest.Put(t, points), Scalars: kerneltest.Put(t, scalars), Count: n}
	ones := Section{Count: n, Kind: kerneltest.Put(t, []uint64{0}), Bits: kerneltest.Put(t, []uint64{^uint64(0)}), Points: n}
	for _, c := range []struct {
		name string
		plan *Plan
		in   Input
		at   driver.Ptr
	}{
		{"more scalars", plain, Input{Points: in.Points, Scalars: in.Scalars, Count: n + 1}, 0},
		{"sections", plain, Input{Points: in.Points, Sections: []Section{ones}}, 0},
		{"more ones", listed, Input{Points: in.Points, Sections: []Section{ones}}, 0},
		{"more variables", listed, Input{Points: in.Points, Sections: []Section{{Count: n + 1, Points: n + 1}}}, 0},
		{"more points", listed, Input{Points: in.Points, Sections: []Section{{Count: 30, Points: 30, Kind: ones.Kind}, {Count: 30, Points: 30, Kind: ones.Kind}}}, 0},
		{"another card", &other, in, 0},
		{"scratch", plain, in, 8},
	} {
		scratch := kerneltest.Memory(t, c.plan.Bytes+alignment)
		_, err := m.SumG1(background(), kerneltest.Stream(t), c.plan, c.in, scratch+c.at)
		var e *status.Error
		if !errors.As(err, &e) || e.Kind != status.Internal || e.Want == "" || e.Got == "" {
			t.Errorf("%s: want an error with what was wanted and got, got %v", c.name, err)
		}
	}
	if _, err := m.SumG2(background(), kerneltest.Stream(t), plain, in, kerneltest.Memory(t, plain.Bytes)); err == nil {
		t.Error("a plan for G1 in a sum over G2: want an error")
	}
	groupG1.check(t, m, plain, points, scalars)
}
