package lanes

import (
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// TestRow: formulas over rows are those over their lanes, at the ends of the bounds too.
func TestRow(t *testing.T) {
	if !HasRows() {
		t.Skip("no IFMA")
	}
	random := rand.New(rand.NewPCG(7, 8))
	var minusOne fr.Element
	minusOne.SetOne()
	minusOne.Neg(&minusOne)
	set := func() (x [Width]fr.Element) {
		for l := range x {
			switch random.IntN(6) {
			case 0:
				x[l].SetUint64(uint64(random.IntN(3)))
			case 1:
				x[l] = minusOne
			case 2: // raw words r - 1
				for j, w := range fr.Modulus().Bits() {
					x[l][j] = uint64(w)
				}
				x[l][0]--
			default:
				for j := range x[l] {
					x[l][j] = random.Uint64()
				}
				x[l][3] &= 1<<62 - 1
			}
		}
		return x
	}
	at := [Width]int{5, 0, 9, 2, 7, 1, 3, 8}
	check := func(what string, r *Row, want func(l int) fr.Element) {
		t.Helper()
		var got [10]fr.Element
		r.Store(got[:], &at)
		for l := range Width {
			if w := want(l); got[at[l]] != w {
				t.Fatalf("%s, lane %d: want %v, got %v", what, l, w, got[at[l]])
			}
		}
		if got[4] != (fr.Element{}) || got[6] != (fr.Element{}) {
			t.Fatalf("%s: wrote elsewhere", what)
		}
	}
	for range 2000 {
		x, y, z := set(), set(), set()
		var a, b, c, sum, d Row
		a.Load(&x)
		b.Load(&y)
		c.Load(&z)
		check("load", &a, func(l int) fr.Element { return x[l] })
		sum.Add(&a, &b) // up to 2 r
		check("add", &sum, func(l int) (w fr.Element) { return *w.Add(&x[l], &y[l]) })
		d.Mul(&sum, &sum)
		check("square", &d, func(l int) (w fr.Element) { w.Add(&x[l], &y[l]); return *w.Square(&w) })
		d.Mul(&d, &sum)
		check("cube", &d, func(l int) (w fr.Element) {
			var v fr.Element
			v.Add(&x[l], &y[l])
			return *w.Square(&v).Mul(&w, &v)
		})
		// As many terms of rows near the limit as stay below it.
		rows := []Row{a, b, c, sum}
		values := func(row, l int) fr.Element {
			switch row {
			case 0:
				return x[l]
			case 1:
				return y[l]
			case 2:
				return z[l]
			}
			var w fr.Element
			return *w.Add(&x[l], &y[l])
		}
		terms, factors := []Term{}, []uint64{}
		var coefficients []fr.Element
		var names []int
		bound := RowTight
		for {
			row := random.IntN(len(rows))
			share := TermShare
			if row == 3 {
				share *= 2
			}
			if bound += share; bound > RowLimit || len(terms) > random.IntN(40) {
				break
			}
			k := set()[random.IntN(Width)]
			terms = append(terms, NewTerm(row, len(coefficients)))
			factors = AppendFactor(factors, &k)
			coefficients, names = append(coefficients, k), append(names, row)
		}
		if len(terms) == 0 {
			continue
		}
		linear := func(l int) (w fr.Element) {
			for i := range names {
				v := values(names[i], l)
				v.Mul(&v, &coefficients[i])
				w.Add(&w, &v)
			}
			return w
		}
		d.Linear(rows, terms, factors)
		check("linear", &d, linear)
		d.Mul(&d, &d)
		check("its square", &d, func(l int) fr.Element { w := linear(l); return *w.Square(&w) })
		rows[0].Linear(rows, terms, factors)
		check("in place", &rows[0], linear)
		d.Broadcast(&z[3])
		check("broadcast", &d, func(int) fr.Element { return z[3] })
	}
}

func BenchmarkRow(b *testing.B) {
	if !HasRows() {
		b.Skip("no IFMA")
	}
	var rows [16]Row
	var factors []uint64
	var terms []Term
	for i := range rows {
		var x fr.Element
		x.SetUint64(uint64(i + 5))
		x.Inverse(&x)
		rows[i].Broadcast(&x)
		factors = AppendFactor(factors, &x)
		terms = append(terms, NewTerm(i, i))
	}
	b.Run("Mul", func(b *testing.B) {
		for b.Loop() {
			rows[0].Mul(&rows[0], &rows[1])
		}
	})
	b.Run("Linear2", func(b *testing.B) {
		for b.Loop() {
			rows[0].Linear(rows[:], terms[:2], factors)
		}
	})
	b.Run("Linear12", func(b *testing.B) {
		for b.Loop() {
			rows[0].Linear(rows[:], terms[:12], factors)
		}
	})
}
