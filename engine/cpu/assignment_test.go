package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// randomAux is n values with the given shares of zeros and ones; the rest are field elements, small ones too.
func randomAux(rng *rand.Rand, n int, zeros, ones float64) []fr.Element {
	out := make([]fr.Element, n)
	for i := range out {
		switch x := rng.Float64(); {
		case x < zeros:
		case x < zeros+ones:
			out[i].SetOne()
		case rng.IntN(2) == 0:
			out[i].SetUint64(2 + rng.Uint64N(1000))
		default:
			out[i].SetUint64(rng.Uint64()).Square(&out[i]).Square(&out[i])
		}
	}
	return out
}

// drain takes all values from a source in chunks, with offsets from the start.
func drain(src *source, chunk int) (ones, offsets []uint32, scalars []fr.Element) {
	v := values{ones: make([]uint32, 0, chunk), offsets: make([]uint32, 0, chunk), scalars: make([]fr.Element, 0, chunk)}
	for at, total := 0, src.points(); at < total; at += chunk {
		src.fill(&v, min(chunk, total-at))
		for _, o := range v.ones {
			ones = append(ones, o>>1+uint32(at))
		}
		for _, o := range v.offsets {
			offsets = append(offsets, o>>1+uint32(at))
		}
		scalars = append(scalars, v.scalars...)
	}
	return ones, offsets, scalars
}

// TestVectors_Classify: a sorted vector hands out what the vector itself has, for any share of bits, any
// density, lengths around words, and garbage behind the ends of the caller's bitmaps.
func TestVectors_Classify(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, n := range []int{0, 1, 63, 64, 65, 1000, classifyRun*64 + 7} {
		for _, share := range [][2]float64{{0, 0}, {1, 0}, {0, 1}, {0.5, 0.49}, {0.1, 0.1}} {
			a := &groth16.Assignment{Inputs: randomAux(rng, 5, 0.2, 0.4), Aux: randomAux(rng, n, share[0], share[1])}
			a.Inputs[0].SetOne()
			garbage := func(n int) circuit.Bits {
				b := circuit.NewBits(n)
				for i := range b.Words {
					b.Words[i] = rng.Uint64() | rng.Uint64()
				}
				return b
			}
			a.Density = circuit.Density{AAux: garbage(n), BInput: garbage(5), BAux: garbage(n)}
			a.A, a.B, a.C = make([]fr.Element, 3), make([]fr.Element, 3), make([]fr.Element, 3)
			s := assignmentShape(a)
			v := &vectors{from: a, shape: s, threads: 2}
			arena, err := host.NewArena(s.witnessBytes)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.expand(context.Background(), arena); err != nil {
				t.Fatal(err)
			}
			for _, block := range []groth16.Block{groth16.BlockL, groth16.BlockA, groth16.BlockB1, groth16.BlockB2} {
				sorted := v.values(block)
				plain := slices.Clone(sorted)
				for i := range plain {
					plain[i].bits, plain[i].kind = circuit.Bits{}, circuit.Bits{}
				}
				got, want := newSource(sorted...), newSource(plain...)
				if got.points() != s.points[block] || want.points() != s.points[block] {
					t.Fatalf("%d aux, shares %v, %v: %d points, planned %d", n, share, block, got.points(), s.points[block])
				}
				if got.scalars() < want.scalars() || s.scalars[block] < want.scalars() {
					t.Errorf("%d aux, shares %v, %v: bounds %d and %d for %d scalars", n, share, block, got.scalars(), s.scalars[block], want.scalars())
				}
				for _, chunk := range []int{7, 100000} {
					o1, f1, s1 := drain(newSource(sorted...), chunk)
					o2, f2, s2 := drain(newSource(plain...), chunk)
					if !slices.Equal(o1, o2) || !slices.Equal(f1, f2) || !slices.Equal(s1, s2) {
						t.Errorf("%d aux, shares %v, %v: other values", n, share, block)
					}
				}
			}
			arena.Close()
		}
	}
}

// TestVectors_Evaluate: rows are copied, what is behind them is zero, and the first that does not hold is named, for
// numbers of rows around the ends of runs, which leave whole runs of the domain without a row.
func TestVectors_Evaluate(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, rows := range []int{1, 3, evaluateRun - 1, evaluateRun, evaluateRun + 1, 2*evaluateRun + 1, 4*evaluateRun - 1} {
		x, y := randomAux(rng, rows, 0.4, 0.4), randomAux(rng, rows, 0.4, 0.4)
		z := make([]fr.Element, rows)
		for i := range z {
			z[i].Mul(&x[i], &y[i])
		}
		v := &vectors{from: &groth16.Assignment{A: slices.Clip(x), B: slices.Clip(y), C: slices.Clip(z)}, threads: 2}
		domain := v.from.Domain()
		room := randomAux(rng, 3*domain, 0, 0) // as an arena has it: full of something else
		a, b, c := room[:domain], room[domain:2*domain], room[2*domain:]
		if err := v.evaluate(context.Background(), a, b, c); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		for name, got := range map[string][2][]fr.Element{"a": {a, x}, "b": {b, y}, "c": {c, z}} {
			want := append(slices.Clone(got[1]), make([]fr.Element, domain-rows)...)
			if !slices.Equal(got[0], want) {
				t.Errorf("%d rows: other values in %s", rows, name)
			}
		}
		for _, row := range []int{rows - 1, rows / 2} { // the second is named although the first is wrong still
			var one fr.Element
			z[row].Add(&z[row], one.SetOne())
			err := v.evaluate(context.Background(), a, b, c)
			if want := fmt.Sprintf("row %d of %d", row, rows); status.KindOf(err) != status.Unsatisfied || !strings.Contains(err.Error(), want) {
				t.Errorf("%d rows, row %d does not hold: %v", rows, row, err)
			}
		}
	}
}

func BenchmarkVectors_Classify(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := &groth16.Assignment{Inputs: randomAux(rng, 1, 0, 1), Aux: randomAux(rng, 1<<20, 0.5, 0.487)}
	a.Density = circuit.Density{AAux: circuit.NewBits(1 << 20), BInput: circuit.NewBits(1), BAux: circuit.NewBits(1 << 20)}
	s := assignmentShape(a)
	b.SetBytes(32 << 20)
	for b.Loop() {
		arena, err := host.NewArena(s.witnessBytes)
		if err != nil {
			b.Fatal(err)
		}
		v := &vectors{from: a, shape: assignmentShape(a), threads: 1}
		if err := v.expand(context.Background(), arena); err != nil {
			b.Fatal(err)
		}
		arena.Close()
	}
}
