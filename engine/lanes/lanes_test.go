package lanes

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"golang.org/x/sys/unix"
)

// value is element k of b as an integer.
func value(b *Block, k int) *big.Int {
	v := new(big.Int)
	for i := limbCount - 1; i >= 0; i-- {
		v.Lsh(v, limbBits)
		v.Add(v, new(big.Int).SetUint64(b[i][k]))
	}
	return v
}

// blockOf holds eight integers below 2^416.
func blockOf(v [Width]*big.Int) (b Block) {
	for k := range v {
		for i := range limbCount {
			b[i][k] = limb(v[k], i)
		}
	}
	return b
}

// values draws eight integers up to `times` p, edges among them.
func values(r *rand.Rand, times int64) (v [Width]*big.Int) {
	top := new(big.Int).Mul(fp.Modulus(), big.NewInt(times))
	for k := range v {
		switch r.IntN(8) {
		case 0:
			v[k] = big.NewInt(int64(r.IntN(3)))
		case 1:
			v[k] = new(big.Int).Sub(top, big.NewInt(int64(r.IntN(3))))
		case 2: // limbs of ones
			v[k] = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(limbBits*(1+r.IntN(7)))), big.NewInt(1))
		case 3: // around a multiple of p
			v[k] = new(big.Int).Mul(fp.Modulus(), big.NewInt(r.Int64N(times)))
			v[k].Add(v[k], big.NewInt(int64(r.IntN(3))))
		default:
			var bytes [56]byte
			for i := range bytes {
				bytes[i] = byte(r.Uint32())
			}
			v[k] = new(big.Int).Mod(new(big.Int).SetBytes(bytes[:]), top)
		}
	}
	return v
}

// both runs a test with the instructions and without.
func both(t *testing.T, test func(t *testing.T)) {
	t.Run("plain", func(t *testing.T) {
		withoutFast(t)
		test(t)
	})
	t.Run("fast", func(t *testing.T) {
		if !Fast() {
			t.Skip("this machine has no AVX-512 IFMA")
		}
		test(t)
	})
}

// Goal: each operation equals big integers within the documented bounds, on random values and edges.
func TestBlock(t *testing.T) {
	both(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		p := fp.Modulus()
		toR := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 416), p)
		times := func(n int64) *big.Int { return new(big.Int).Mul(p, big.NewInt(n)) }
		limit := new(big.Int).Div(times(101), big.NewInt(100))
		for range 2000 {
			va, vb, vc, vd := values(r, 16), values(r, 16), values(r, 2), values(r, 3)
			a, b, c, d := blockOf(va), blockOf(vb), blockOf(vc), blockOf(vd)
			mask := uint8(r.Uint32())
			var product, sum, difference, folded Block
			negated := c
			product.Mul(&a, &b)
			sum.Add(&a, &b)
			difference.Sub(&a, &d)
			folded.Fold(&d, &c, &c)
			negated.Negate(mask)
			for k := range Width {
				check := func(what string, got, want *big.Int) {
					if got.Cmp(want) != 0 {
						t.Fatalf("%s: element %d: want %x, got %x; a %x b %x c %x d %x", what, k, want, got, va[k], vb[k], vc[k], vd[k])
					}
				}
				want := new(big.Int).Mul(va[k], vb[k])
				check("mul", new(big.Int).Mod(value(&product, k), p), want.Mul(want, toR).Mod(want, p))
				check("add", value(&sum, k), new(big.Int).Add(va[k], vb[k]))
				check("sub", value(&difference, k), want.Sub(va[k], vd[k]).Add(want, times(4)))
				want.Sub(vd[k], vc[k]).Sub(want, vc[k]).Mod(want, p)
				check("fold", new(big.Int).Mod(value(&folded, k), p), want)
				want.Set(vc[k])
				if mask>>k&1 == 1 {
					want.Sub(times(2), vc[k])
				}
				check("negate", value(&negated, k), want)
				for what, v := range map[string]*Block{"mul": &product, "fold": &folded} {
					if value(v, k).Cmp(limit) >= 0 {
						t.Fatalf("%s: element %d is %x, above the bound", what, k, value(v, k))
					}
				}
			}
			for what, v := range map[string]*Block{"mul": &product, "add": &sum, "sub": &difference, "fold": &folded, "negate": &negated} {
				for i := range v {
					for k := range v[i] {
						if v[i][k] > limbMask {
							t.Fatalf("%s: limb %d of element %d is %x", what, i, k, v[i][k])
						}
					}
				}
			}
		}
	})
}

// Goal: elements come back as they went in; multiples of p come back as zero; inverses are inverses.
func TestBlock_Exchange(t *testing.T) {
	both(t, func(t *testing.T) {
		var e, back [Width]fp.Element
		for k := range e {
			e[k].MustSetRandom()
		}
		e[1].SetZero()
		e[2].SetOne()
		e[3].Neg(&e[2])
		var b Block
		b.Import(&e)
		b.Export(&back)
		if e != back {
			t.Errorf("want %v, got %v", e, back)
		}
		if before := b; b.Invert() || b != before {
			t.Error("zero was inverted")
		}
		e[1].SetUint64(3)
		b.Import(&e)
		if !b.Invert() {
			t.Error("nothing is zero")
		}
		b.Export(&back)
		for k := range e {
			if e[k].Inverse(&e[k]); e[k] != back[k] {
				t.Errorf("inverse of element %d is wrong", k)
			}
		}
		var multiples [Width]*big.Int
		for k := range multiples {
			multiples[k] = new(big.Int).Mul(fp.Modulus(), big.NewInt(int64(k)))
		}
		b = blockOf(multiples)
		b.Export(&back)
		if back != [Width]fp.Element{} {
			t.Errorf("multiples of p: got %v", back)
		}
	})
}

// Goal: rows are transposed on the way in and out, at their offsets.
func TestBlock_Rows(t *testing.T) {
	both(t, func(t *testing.T) {
		var rows, out [3 * Width]Row
		var in, to [Width]*Row
		for i := range rows {
			for j := range rows[i] {
				rows[i][j] = uint64(100*i + j)
			}
		}
		for k := range in {
			in[k], to[k] = &rows[(5*k%Width)*3], &out[(5*k%Width)*3]
		}
		for offset := range 3 {
			var b Block
			b.Load(&in, offset)
			for k := range Width {
				for i := range limbCount {
					if want := uint64(100*((5*k%Width)*3+offset) + i); b[i][k] != want {
						t.Fatalf("offset %d, limb %d of element %d: want %d, got %d", offset, i, k, want, b[i][k])
					}
				}
			}
			b.Store(&to, offset)
		}
		if rows != out {
			t.Error("rows came back different")
		}
	})
}

func TestE2(t *testing.T) {
	both(t, func(t *testing.T) {
		var x, y, product, square, inverse [Width]bls.E2
		for k := range x {
			x[k].MustSetRandom()
			y[k].MustSetRandom()
		}
		x[0].SetOne()
		x[1].A0.SetZero()
		y[1].A1.SetZero()
		var a, b, c E2
		a.Import(&x)
		b.Import(&y)
		c.Mul(&a, &b)
		c.Export(&product)
		c.Square(&a)
		c.Export(&square)
		if !a.Invert() {
			t.Error("nothing is zero")
		}
		a.Export(&inverse)
		for k := range x {
			var want bls.E2
			if want.Mul(&x[k], &y[k]); want != product[k] {
				t.Errorf("product %d is wrong", k)
			}
			if want.Square(&x[k]); want != square[k] {
				t.Errorf("square %d is wrong", k)
			}
			if want.Inverse(&x[k]); want != inverse[k] {
				t.Errorf("inverse %d is wrong", k)
			}
		}
		x[5] = bls.E2{}
		a.Import(&x)
		if a.Invert() {
			t.Error("zero was inverted")
		}
	})
}

// Goal: many additions in a row stay exact (bounds do not creep), in both groups; signs by Negate; equal
// and opposite points are refused with nothing changed.
func TestAdder(t *testing.T) {
	both(t, func(t *testing.T) {
		const groups, rounds = 3, 20
		var g1 [groups * Width]bls.G1Affine
		var g2 [groups * Width]bls.G2Affine
		var step1 [groups * Width]bls.G1Affine
		var step2 [groups * Width]bls.G2Affine
		for i := range g1 {
			g1[i].ScalarMultiplicationBase(big.NewInt(int64(1000 + i)))
			g2[i].ScalarMultiplicationBase(big.NewInt(int64(1000 + i)))
			step1[i].ScalarMultiplicationBase(big.NewInt(int64(3 + i*i)))
			step2[i].ScalarMultiplicationBase(big.NewInt(int64(3 + i*i)))
		}
		var ax, ay, bx, by, kept [groups]Block
		var ax2, ay2, bx2, by2 [groups]E2
		for g := range groups {
			var x, y [Width]fp.Element
			var x2, y2 [Width]bls.E2
			put := func(p1 []bls.G1Affine, p2 []bls.G2Affine, bx, by *Block, bx2, by2 *E2) {
				for k := range Width {
					x[k], y[k] = p1[k].X, p1[k].Y
					x2[k], y2[k] = p2[k].X, p2[k].Y
				}
				bx.Import(&x)
				by.Import(&y)
				bx2.Import(&x2)
				by2.Import(&y2)
			}
			put(g1[g*Width:], g2[g*Width:], &ax[g], &ay[g], &ax2[g], &ay2[g])
			put(step1[g*Width:], step2[g*Width:], &bx[g], &by[g], &bx2[g], &by2[g])
		}
		adder := NewAdder[Block](groups)
		adder2 := NewAdder[E2](groups)
		for round := range rounds {
			mask := uint8(0)
			if round%3 == 1 {
				mask = 0x5a
			}
			py, py2 := by, by2
			for g := range groups {
				py[g].Negate(mask)
				py2[g].Negate(mask)
			}
			if !adder.Add(ax[:], ay[:], bx[:], py[:]) || !adder2.Add(ax2[:], ay2[:], bx2[:], py2[:]) {
				t.Fatal("general points were refused")
			}
			for i := range g1 {
				s1, s2 := step1[i], step2[i]
				if mask>>(i%Width)&1 == 1 {
					s1.Neg(&s1)
					s2.Neg(&s2)
				}
				g1[i].Add(&g1[i], &s1)
				g2[i].Add(&g2[i], &s2)
			}
		}
		for g := range groups {
			var x, y [Width]fp.Element
			var x2, y2 [Width]bls.E2
			ax[g].Export(&x)
			ay[g].Export(&y)
			ax2[g].Export(&x2)
			ay2[g].Export(&y2)
			for k := range Width {
				i := g*Width + k
				if (bls.G1Affine{X: x[k], Y: y[k]}) != g1[i] {
					t.Errorf("G1: point %d is wrong", i)
				}
				if (bls.G2Affine{X: x2[k], Y: y2[k]}) != g2[i] {
					t.Errorf("G2: point %d is wrong", i)
				}
			}
		}
		kept = ax
		bx[1][0], bx[1] = ax[1][0], ax[1] // the same x in a whole group
		if adder.Add(ax[:], ay[:], bx[:], by[:]) || ax != kept {
			t.Error("equal x were added")
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := blockOf(values(r, 1)), blockOf(values(r, 1))
	var z Block
	var e, f fp.Element
	e.MustSetRandom()
	f.MustSetRandom()
	rows := make([]Row, 4096)
	var at [Width]*Row
	for k := range at {
		at[k] = &rows[k*399]
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"gnark-crypto", func() {
			for range Width {
				e.Mul(&e, &f)
			}
		}},
		{"mul", func() { z.Mul(&x, &y) }},
		{"sub", func() { z.Sub(&x, &y) }},
		{"fold", func() { z.Fold(&x, &y, &y) }},
		{"load", func() { z.Load(&at, 1) }},
		{"store", func() { z.Store(&at, 1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.run()
			}
		})
	}
}

func BenchmarkAdder(b *testing.B) {
	for _, groups := range []int{64, 128, 256, 512} {
		b.Run(fmt.Sprintf("G1/%d", groups*Width), func(b *testing.B) { benchmarkAdder[Block](b, groups) })
		b.Run(fmt.Sprintf("G2/%d", groups*Width), func(b *testing.B) { benchmarkAdder[E2](b, groups) })
	}
}

func benchmarkAdder[B any, PB interface {
	Coordinate[B]
	randomizer
}](b *testing.B, groups int) {
	coordinates := make([][]B, 4)
	for i := range coordinates {
		coordinates[i] = make([]B, groups)
		for g := range groups {
			PB(&coordinates[i][g]).random()
		}
	}
	s := NewAdder[B, PB](groups)
	start := cpuTime()
	for b.Loop() {
		s.Add(coordinates[0], coordinates[1], coordinates[2], coordinates[3])
	}
	spent := cpuTime() - start
	perAdd := float64(spent.Nanoseconds()) / float64(b.N*groups*Width)
	b.ReportMetric(perAdd, "cpu-ns/addition")
	const rounds = 2000 // the six multiplications alone
	start = cpuTime()
	for range rounds {
		for i := range 5 {
			PB(&coordinates[i&1][i]).Mul(&coordinates[2][i], &coordinates[3][i])
		}
		PB(&coordinates[0][5]).Square(&coordinates[2][5])
	}
	floor := float64((cpuTime() - start).Nanoseconds()) / (rounds * Width)
	b.ReportMetric(floor, "floor-cpu-ns/addition")
	b.ReportMetric(perAdd/floor, "x-floor")
}

// cpuTime is the time that the process has computed, which other processes disturb less than the clock.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type randomizer interface{ random() }

func (b *Block) random() {
	var e [Width]fp.Element
	for k := range e {
		e[k].MustSetRandom()
	}
	b.Import(&e)
}

func (z *E2) random() {
	z[0].random()
	z[1].random()
}
