package msm

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/circuit"
)

// known is the host's view of a section.
func (c *chosen) known(unknown bool) Known {
	k := Known{Count: c.count, Density: circuit.Bits{Words: c.density, Len: c.count}, Unknown: unknown}
	if !unknown {
		k.Kind = circuit.Bits{Words: c.kind, Len: c.count}
	}
	return k
}

// dirty fills what lies behind the bits of a bitmap's last word.
func dirty(words []uint64, count int) {
	if count%64 != 0 && words != nil {
		words[len(words)-1] |= ^uint64(0) << (count % 64)
	}
}

// pieceSections are inputs and aux, and more, of every density.
func pieceSections(rng *rand.Rand) map[string][]chosen {
	one := draw(rng, 700, 0, 3, 50, false)
	one.density[8] |= 1 << 17
	gap := draw(rng, 700, 60, 5, 50, false)
	clear(gap.density[2:9])
	all := map[string][]chosen{
		"none":          {draw(rng, 300, 0, 50, 50, false)},
		"all":           {draw(rng, 640, -1, 2, 50, false)},
		"single":        {one},
		"gap":           {gap},
		"random":        {draw(rng, 999, 30, 20, 50, false)},
		"by variable":   {draw(rng, 200, 60, 5, 50, true)},
		"field":         {draw(rng, 321, 60, -1, -1, true)},
		"inputs, aux":   {draw(rng, 9, -1, -1, -1, true), draw(rng, 260, 80, 2, 50, false)},
		"three":         {draw(rng, 130, 50, 50, 50, true), draw(rng, 64, -1, 100, -1, false), draw(rng, 300, 50, 50, 50, false)},
		"empty section": {draw(rng, 0, -1, -1, -1, true), draw(rng, 65, 50, 3, 50, false), draw(rng, 0, 50, 3, 50, false)},
	}
	for _, sections := range all {
		for i := range sections {
			dirty(sections[i].density, sections[i].count)
			dirty(sections[i].kind, sections[i].count)
		}
	}
	return all
}

func blockOf(tb testing.TB, sections []chosen) *Block {
	tb.Helper()
	var all []Known
	for i := range sections {
		all = append(all, sections[i].known(sections[i].full && sections[i].kind != nil))
	}
	b, err := NewBlock(all)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Goal: pieces are within their bound, few, of nearly one size, and have each point of the block once, with its value. Method:
// a naive reader of the sections that Input gives, over fake addresses.
func TestPieces_Values(t *testing.T) {
	const bitsAt, scalarsAt = 1 << 40, 1 << 50 // by section; bitmaps in order density, kind, bits
	for name, sections := range pieceSections(rand.New(rand.NewPCG(7, 0))) {
		var want []fr.Element
		whole := Input{Points: 1 << 60}
		for i := range sections {
			c := &sections[i]
			base := driver.Ptr(bitsAt + i*3<<30)
			s := Section{Count: c.count, Scalars: driver.Ptr(scalarsAt + i<<30), Full: c.full, Points: len(c.values())}
			if c.density != nil {
				s.Density = base
			}
			if c.kind != nil {
				s.Kind = base + 1<<30
			}
			if c.bits != nil {
				s.Bits = base + 2<<30
			}
			whole.Sections = append(whole.Sections, s)
			want = append(want, c.values()...)
		}
		block := blockOf(t, sections)
		if block.Points() != len(want) {
			t.Fatalf("%s: want %d points, got %d", name, len(want), block.Points())
		}
		for _, most := range []int{64, 65, 100, 127, 128, 300, 5000} {
			pieces, err := block.Pieces(most)
			if err != nil {
				t.Fatal(err)
			}
			if few := len(want) / (most - 63); len(pieces) > few+1 {
				t.Errorf("%s by %d: want at most %d pieces, got %d", name, most, few+1, len(pieces))
			}
			at := 0
			for n := range pieces {
				p := &pieces[n]
				if p.From != at || p.Points < 1 || p.Points > most || p.Variables < 1 {
					t.Fatalf("%s by %d: piece %d is %+v after %d points", name, most, n, p, at)
				}
				if fair := (len(want) + len(pieces) - 1) / len(pieces); p.Points > fair+63 {
					t.Errorf("%s by %d: want at most %d points, got %d", name, most, fair+63, p.Points)
				}
				in := p.Input(whole, 1<<59)
				if in.Points != 1<<59 {
					t.Errorf("%s: want the given points", name)
				}
				scalars, ones := 0, 0
				for _, s := range in.Sections {
					section := int(s.Scalars-scalarsAt) >> 30
					c := &sections[section]
					base := driver.Ptr(bitsAt + section*3<<30)
					first := -1
					for k, b := range []struct {
						at    driver.Ptr
						words []uint64
					}{{s.Density, c.density}, {s.Kind, c.kind}, {s.Bits, c.bits}} {
						if b.words == nil {
							continue
						}
						if off := int(b.at-base) - k<<30; first < 0 {
							first = off * 8
						} else if first != off*8 {
							t.Fatalf("%s: bitmaps at different variables: %+v", name, s)
						}
					}
					place := int(s.Scalars-scalarsAt) & (1<<30 - 1) / 32
					if first < 0 {
						first = place
					}
					if first%64 != 0 || first+s.Count > c.count {
						t.Fatalf("%s: variables [%d, +%d) of %d", name, first, s.Count, c.count)
					}
					points := 0
					for v := first; v < first+s.Count; v++ {
						field := c.kind == nil || get(c.kind, v)
						if c.density == nil || get(c.density, v) {
							var x fr.Element
							switch {
							case field && c.full:
								x = c.scalars[place+v-first]
							case field:
								x = c.scalars[place]
							case c.bits != nil && get(c.bits, v):
								x.SetOne()
								ones++
							}
							if field {
								scalars++
							}
							if x != want[at] {
								t.Fatalf("%s by %d, point %d: want %v, got %v", name, most, at, want[at], x)
							}
							at++
							points++
						}
						if field && !c.full {
							place++
						}
					}
					if points != s.Points || s.Count > p.Variables {
						t.Fatalf("%s by %d: want %d points in a section within %d variables, got %+v", name, most, points, p.Variables, s)
					}
				}
				if at != p.From+p.Points || scalars > p.Scalars || ones > p.Ones {
					t.Fatalf("%s by %d: piece %+v has points up to %d, %d scalars, %d ones", name, most, p, at, scalars, ones)
				}
			}
			if at != len(want) {
				t.Fatalf("%s by %d: want %d points, got %d", name, most, len(want), at)
			}
		}
	}
}

// Goal: a block without sections is cut anywhere.
func TestPieces_Plain(t *testing.T) {
	for _, n := range []int{0, 1, 64, 1000, 1<<27 - 1} {
		for _, most := range []int{64, 999, 1 << 24} {
			pieces, err := PlainBlock(n).Pieces(most)
			if err != nil || len(pieces) != (n+most-1)/most {
				t.Fatalf("%d by %d: %d pieces, %v", n, most, len(pieces), err)
			}
			at := 0
			for i := range pieces {
				p := &pieces[i]
				in := p.Input(Input{Scalars: 1 << 40, Count: n}, 5<<40)
				if p.From != at || p.Points > most || in.Points != 5<<40 || in.Scalars != driver.Ptr(1<<40+32*at) || in.Count != p.Points || in.Sections != nil {
					t.Fatalf("%d by %d: piece %d is %+v: %+v", n, most, i, p, in)
				}
				at += p.Points
			}
			if at != n {
				t.Fatalf("want %d points, got %d", n, at)
			}
		}
	}
	if _, err := PlainBlock(5).Pieces(LeastPiece - 1); err == nil {
		t.Error("want a bound below a word refused")
	}
	if _, err := NewBlock([]Known{{Count: 129, Density: circuit.NewBits(128)}}); err == nil {
		t.Error("want a short bitmap refused")
	}
}

// Goal: the pieces' sums, all by one plan, are the whole's. Method: the device's own sums over every density; over some in the
// emulator, which takes long.
func TestPieces_Sum(t *testing.T) {
	m, rng := newSummer(t), rand.New(rand.NewPCG(8, 0))
	sum := func(plan *Plan, in Input, scratch driver.Ptr) bls.G1Jac {
		t.Helper()
		r, err := m.SumG1(context.Background(), kerneltest.Stream(t), plan, in, scratch)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	compare := func(name string, block *Block, whole Input, points []bls.G1Affine, values []fr.Element, most int) {
		t.Helper()
		pieces, err := block.Pieces(most)
		if err != nil {
			t.Fatal(err)
		}
		want, err := groupG1.want(points, values)
		if err != nil {
			t.Fatal(err)
		}
		check := func(how string, got bls.G1Jac) {
			t.Helper()
			var affine bls.G1Affine
			if affine.FromJacobian(&got); affine != want {
				t.Errorf("%s in %d pieces %s: want %v, got %v", name, len(pieces), how, want, affine)
			}
		}
		shape := ShapeOf(G1, pieces)
		plan := planned(t, m, shape)
		scratch := kerneltest.Memory(t, plan.Bytes)
		var total bls.G1Jac
		shape.Pieces = len(pieces)
		together := planned(t, m, shape)
		running, err := m.Begin(together, kerneltest.Memory(t, together.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		for i := range pieces {
			p := &pieces[i]
			// The piece's points lie elsewhere, as they do when they come up one after the other.
			in := p.Input(whole, kerneltest.Put(t, points[p.From:p.From+p.Points]))
			r := sum(plan, in, scratch)
			total.AddAssign(&r)
			if err := running.Add(context.Background(), kerneltest.Stream(t), in); err != nil {
				t.Fatal(err)
			}
		}
		check("each for itself", total)
		got, err := running.G1(context.Background(), kerneltest.Stream(t))
		if err != nil {
			t.Fatal(err)
		}
		check("of one sum", got)
		if err := running.Add(context.Background(), kerneltest.Stream(t), Input{}); err == nil && len(pieces) > 0 {
			t.Errorf("%s: want more inputs than planned refused", name)
		}
	}
	for name, sections := range pieceSections(rng) {
		if few := name == "single" || name == "by variable" || name == "inputs, aux"; !few && !kerneltest.Large() {
			continue
		}
		whole := Input{Sections: make([]Section, len(sections))}
		var values []fr.Element
		put := func(words []uint64) driver.Ptr {
			if words == nil {
				return 0
			}
			return kerneltest.Put(t, words)
		}
		var fields []fr.Element // in one piece of memory, as testSections has them
		for i := range sections {
			fields = append(fields, sections[i].scalars...)
		}
		at := kerneltest.Put(t, fields)
		for i := range sections {
			c := &sections[i]
			own := c.values()
			whole.Sections[i] = Section{Count: c.count, Density: put(c.density), Kind: put(c.kind), Bits: put(c.bits),
				Scalars: at, Full: c.full, Points: len(own)}
			at = at.Add(int64(len(c.scalars)) * fr.Bytes)
			values = append(values, own...)
		}
		points := groupG1.pointsOf(rng, len(values), true)
		compare(name, blockOf(t, sections), whole, points, values, max(64, len(values)/2))
	}
	n := 100
	values, points := randomScalars(rng, n), groupG1.pointsOf(rng, n, true)
	compare("plain", PlainBlock(n), Input{Scalars: kerneltest.Put(t, values), Count: n}, points, values, 64)
}

// Goal: counting and cutting at full size take tens of milliseconds at most, and cutting again nearly nothing; and an estimate
// has the size of what is measured. Method: a 32 GiB partition's shares; times are only logged.
func TestPieces_Full(t *testing.T) {
	const variables = 130169893
	density, kind := circuit.NewBits(variables), circuit.NewBits(variables)
	for w := range density.Words {
		density.Words[w] = mix(uint64(w)) | mix(uint64(w)+1<<40)
		kind.Words[w] = mix(uint64(w)+1<<41) & mix(uint64(w)+1<<42) & mix(uint64(w)+1<<43) & mix(uint64(w)+1<<44) & mix(uint64(w)+1<<45) & mix(uint64(w)+1<<46)
	}
	begin := time.Now()
	block, err := NewBlock([]Known{{Count: 35}, {Count: variables, Density: density, Kind: kind}})
	if err != nil {
		t.Fatal(err)
	}
	counted := time.Since(begin)
	begin = time.Now()
	pieces, err := block.Pieces(1 << 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("counted in %v, cut in %v into %d pieces", counted, time.Since(begin), len(pieces))
	points, fields, ones := 0, 0, 0
	for i := range pieces {
		p := &pieces[i]
		points, fields, ones = points+p.Points, fields+p.Scalars, ones+p.Ones
	}
	want := density.Count() + 35
	if points != want || len(pieces) != (want+1<<24-1)>>24 || fields+ones != want {
		t.Errorf("want %d points in as few pieces as can be, got %d in %d", want, points, len(pieces))
	}
	for c, want := range []string{"g1", "g2"} {
		plan, err := PlanFor(ShapeOf(Curve(c), pieces), h200, 8<<30)
		if err != nil {
			t.Fatal(err)
		}
		all := 0.0
		for i := range pieces {
			all += plan.Seconds(pieces[i].Scalars, pieces[i].Ones/2)
		}
		if part := plan.Seconds(pieces[0].Scalars/2, pieces[0].Ones/4); part <= 0 || part >= all/float64(len(pieces)) {
			t.Errorf("%s: want half the values in less than %.3f s, got %.3f", want, all/float64(len(pieces)), part)
		}
		if all < 0.01 || all > 0.5 {
			t.Errorf("%s: want an estimate of the size of a tenth of a second, got %.3f s", want, all)
		}
	}
}
