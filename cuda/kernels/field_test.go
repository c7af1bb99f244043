package kernels_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
)

// Packages that run other kernels test those.
var _ = kerneltest.Only("emu", "field", "curve")

const unitBlock = 64

// launch runs a kernel with a thread for each of n.
func launch(t testing.TB, name string, n int, args *driver.Args) {
	t.Helper()
	kerneltest.Run(t, name, driver.Dim{X: uint32(n+unitBlock-1) / unitBlock}, driver.Dim{X: unitBlock}, 0, args)
}

// unary applies a unit kernel to each of a.
func unary[T any](t testing.TB, name string, a []T) []T {
	t.Helper()
	var args driver.Args
	r := kerneltest.Put(t, make([]T, len(a)))
	launch(t, name, len(a), args.Ptr(kerneltest.Put(t, a)).Ptr(r).U32(uint32(len(a))))
	return kerneltest.Get[T](t, r, len(a))
}

// binary applies a unit kernel to each pair; R is what it gives.
func binary[T, R any](t testing.TB, name string, a, b []T) []R {
	t.Helper()
	var args driver.Args
	r := kerneltest.Put(t, make([]R, len(a)))
	launch(t, name, len(a), args.Ptr(kerneltest.Put(t, a)).Ptr(kerneltest.Put(t, b)).Ptr(r).U32(uint32(len(a))))
	return kerneltest.Get[R](t, r, len(a))
}

// limbs is a number as 64-bit words, low word first.
func limbs(v *big.Int, words int) []uint64 {
	out := make([]uint64, words)
	for i := range out {
		out[i] = new(big.Int).Rsh(v, uint(64*i)).Uint64()
	}
	return out
}

// edges are the numbers below modulus whose words drive carries: as stored, that is, in Montgomery form.
func edges(modulus *big.Int, words int) []*big.Int {
	one := big.NewInt(1)
	var all []*big.Int
	add := func(v *big.Int) {
		if v.Sign() >= 0 && v.Cmp(modulus) < 0 {
			all = append(all, v)
		}
	}
	for d := range int64(3) {
		add(big.NewInt(d))
		add(new(big.Int).Sub(modulus, big.NewInt(d+1)))
		half := new(big.Int).Rsh(modulus, 1)
		add(half.Add(half, big.NewInt(d-1)))
	}
	r := new(big.Int).Lsh(one, uint(64*words))
	add(new(big.Int).Mod(r, modulus))                   // one in Montgomery form
	add(new(big.Int).Mod(new(big.Int).Neg(r), modulus)) // minus one
	for k := 32; k < 64*words; k += 32 {
		power := new(big.Int).Lsh(one, uint(k))
		add(power)
		add(new(big.Int).Sub(power, one))
		add(new(big.Int).Sub(modulus, power))
	}
	for low := 0; low < 2*words; low += 2 { // a word of ones in each place, and all others
		ones := new(big.Int).Lsh(big.NewInt(0xffffffff), uint(32*low))
		add(ones)
		add(new(big.Int).Xor(ones, new(big.Int).Sub(new(big.Int).Lsh(one, uint(modulus.BitLen()-1)), one)))
	}
	return all
}

// numbers are the edges and count random ones below modulus.
func numbers(modulus *big.Int, words, count int, rng *rand.Rand) []*big.Int {
	all := edges(modulus, words)
	for range count {
		v := new(big.Int)
		for range words + 1 {
			v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(rng.Uint64()))
		}
		all = append(all, v.Mod(v, modulus))
	}
	return all
}

func frElements(rng *rand.Rand, count int) (all []fr.Element) {
	for _, v := range numbers(fr.Modulus(), fr.Limbs, count, rng) {
		all = append(all, fr.Element(limbs(v, fr.Limbs)))
	}
	return all
}

func fpElements(rng *rand.Rand, count int) (all []fp.Element) {
	for _, v := range numbers(fp.Modulus(), fp.Limbs, count, rng) {
		all = append(all, fp.Element(limbs(v, fp.Limbs)))
	}
	return all
}

// pairs is every pair of elements.
func pairs[T any](all []T) (a, b []T) {
	for i := range all {
		for j := range all {
			a, b = append(a, all[i]), append(b, all[j])
		}
	}
	return a, b
}

func same[T comparable](t *testing.T, name string, got, want []T, inputs ...[]T) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			text := ""
			for _, in := range inputs {
				text += fmt.Sprintf(" %v", in[i])
			}
			t.Fatalf("%s: case %d,%s: want %v, got %v", name, i, text, want[i], got[i])
		}
	}
}

// each is f of every element or pair.
func each[T, R any](a []T, f func(*R, *T)) []R {
	out := make([]R, len(a))
	for i := range a {
		f(&out[i], &a[i])
	}
	return out
}

func each2[T, R any](a, b []T, f func(*R, *T, *T)) []R {
	out := make([]R, len(a))
	for i := range a {
		f(&out[i], &a[i], &b[i])
	}
	return out
}

// Goal: every operation of Fr is gnark-crypto's. Method: all pairs of edge values and random ones, as stored.
func TestFr(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	all := frElements(rng, 24)
	a, b := pairs(all)
	for name, f := range map[string]func(r, a, b *fr.Element){
		"add": func(r, a, b *fr.Element) { r.Add(a, b) },
		"sub": func(r, a, b *fr.Element) { r.Sub(a, b) },
		"mul": func(r, a, b *fr.Element) { r.Mul(a, b) },
	} {
		same(t, name, binary[fr.Element, fr.Element](t, "unit_fr_"+name, a, b), each2(a, b, f), a, b)
	}
	for name, f := range map[string]func(r, a *fr.Element){
		"neg":            func(r, a *fr.Element) { r.Neg(a) },
		"dbl":            func(r, a *fr.Element) { r.Double(a) },
		"halve":          func(r, a *fr.Element) { *r = *a; r.Halve() },
		"sqr":            func(r, a *fr.Element) { r.Square(a) },
		"inverse":        func(r, a *fr.Element) { r.Inverse(a) },
		"to_canonical":   func(r, a *fr.Element) { *r = a.Bits() },
		"from_canonical": func(r, a *fr.Element) { r.Mul(a, &frR2) },
	} {
		same(t, name, unary(t, "unit_fr_"+name, all), each(all, f), all)
	}
	same(t, "tests", binary[fr.Element, uint32](t, "unit_fr_tests", a, b), each2(a, b, func(r *uint32, a, b *fr.Element) { *r = answers(a.IsZero(), a.Equal(b)) }))
}

// Goal: lazy products of Fr take a second factor below 2r. Method: twice each edge value, unreduced.
func TestFrLazy(t *testing.T) {
	all := frElements(rand.New(rand.NewPCG(1, 2)), 8)
	a, b := pairs(all)
	got := binary[fr.Element, fr.Element](t, "unit_fr_mul_lazy", a, each(b, func(r, b *fr.Element) { *r = fr.Element(doubled(b[:])) }))
	same(t, "mul_lazy", got, each2(a, b, func(r, a, b *fr.Element) { r.Mul(a, b).Double(r) }), a, b)
}

// Goal: every operation of Fp is gnark-crypto's. Method: as for Fr.
func TestFp(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	all := fpElements(rng, 24)
	a, b := pairs(all)
	for name, f := range map[string]func(r, a, b *fp.Element){
		"add": func(r, a, b *fp.Element) { r.Add(a, b) },
		"sub": func(r, a, b *fp.Element) { r.Sub(a, b) },
		"mul": func(r, a, b *fp.Element) { r.Mul(a, b) },
	} {
		same(t, name, binary[fp.Element, fp.Element](t, "unit_fp_"+name, a, b), each2(a, b, f), a, b)
	}
	for name, f := range map[string]func(r, a *fp.Element){
		"neg":            func(r, a *fp.Element) { r.Neg(a) },
		"dbl":            func(r, a *fp.Element) { r.Double(a) },
		"halve":          func(r, a *fp.Element) { *r = *a; r.Halve() },
		"sqr":            func(r, a *fp.Element) { r.Square(a) },
		"inverse":        func(r, a *fp.Element) { r.Inverse(a) },
		"inverse_each":   func(r, a *fp.Element) { r.Inverse(a) },
		"to_canonical":   func(r, a *fp.Element) { *r = a.Bits() },
		"from_canonical": func(r, a *fp.Element) { r.Mul(a, &fpR2) },
	} {
		same(t, name, unary(t, "unit_fp_"+name, all), each(all, f), all)
	}
	same(t, "tests", binary[fp.Element, uint32](t, "unit_fp_tests", a, b), each2(a, b, func(r *uint32, a, b *fp.Element) { *r = answers(a.IsZero(), a.Equal(b)) }))
}

// Goal: lazy products of Fp take factors below 2p, squares one below 3p. Method: multiples of each edge value, unreduced.
func TestFpLazy(t *testing.T) {
	all := fpElements(rand.New(rand.NewPCG(2, 2)), 8)
	a, b := pairs(all)
	twice := func(r, a *fp.Element) { *r = fp.Element(doubled(a[:])) }
	got := binary[fp.Element, fp.Element](t, "unit_fp_mul_lazy", each(a, twice), each(b, twice))
	same(t, "mul_lazy", got, each2(a, b, func(r, a, b *fp.Element) { r.Mul(a, b).Double(r).Double(r) }), a, b)
	got = unary(t, "unit_fp_sqr_lazy", each(all, twice))
	same(t, "sqr_lazy", got, each(all, func(r, a *fp.Element) { r.Square(a).Double(r).Double(r) }), all)
}

// Goal: every operation of Fp2 is gnark-crypto's. Method: pairs of elements made of edge values of Fp.
func TestFp2(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	base := fpElements(rng, 8)
	var all []bls.E2
	for i := range base {
		all = append(all, bls.E2{A0: base[i], A1: base[rng.IntN(len(base))]}, bls.E2{A0: base[i]}, bls.E2{A1: base[i]})
	}
	a, b := pairs(all)
	for name, f := range map[string]func(r, a, b *bls.E2){
		"add": func(r, a, b *bls.E2) { r.Add(a, b) },
		"sub": func(r, a, b *bls.E2) { r.Sub(a, b) },
		"mul": func(r, a, b *bls.E2) { r.Mul(a, b) },
	} {
		same(t, name, binary[bls.E2, bls.E2](t, "unit_fp2_"+name, a, b), each2(a, b, f), a, b)
	}
	for name, f := range map[string]func(r, a *bls.E2){
		"neg":            func(r, a *bls.E2) { r.Neg(a) },
		"dbl":            func(r, a *bls.E2) { r.Double(a) },
		"halve":          func(r, a *bls.E2) { *r = *a; r.Halve() },
		"sqr":            func(r, a *bls.E2) { r.Square(a) },
		"inverse":        func(r, a *bls.E2) { r.Inverse(a) },
		"to_canonical":   func(r, a *bls.E2) { r.A0, r.A1 = a.A0.Bits(), a.A1.Bits() },
		"from_canonical": func(r, a *bls.E2) { r.A0.Mul(&a.A0, &fpR2); r.A1.Mul(&a.A1, &fpR2) },
	} {
		same(t, name, unary(t, "unit_fp2_"+name, all), each(all, f), all)
	}
	same(t, "tests", binary[bls.E2, uint32](t, "unit_fp2_tests", a, b), each2(a, b, func(r *uint32, a, b *bls.E2) { *r = answers(a.IsZero(), a.Equal(b)) }))
	twice := func(r, a *bls.E2) { r.A0, r.A1 = fp.Element(doubled(a.A0[:])), fp.Element(doubled(a.A1[:])) }
	got := binary[bls.E2, bls.E2](t, "unit_fp2_mul_lazy", each(a, twice), each(b, twice))
	same(t, "mul_lazy", got, each2(a, b, func(r, a, b *bls.E2) { r.Mul(a, b).Double(r).Double(r) }), a, b)
}

func answers(bits ...bool) (word uint32) {
	for i, bit := range bits {
		if bit {
			word |= 1 << i
		}
	}
	return word
}

// doubled is 2a without reduction.
func doubled(a []uint64) []uint64 {
	out := make([]uint64, len(a))
	carry := uint64(0)
	for i, w := range a {
		out[i] = w<<1 | carry
		carry = w >> 63
	}
	return out
}

// The stored forms of R^2, which gnark-crypto keeps to itself: a product with them takes a to a * R.
var (
	frR2 = fr.Element(limbs(new(big.Int).Mod(new(big.Int).Lsh(big.NewInt(1), 512), fr.Modulus()), fr.Limbs))
	fpR2 = fp.Element(limbs(new(big.Int).Mod(new(big.Int).Lsh(big.NewInt(1), 768), fp.Modulus()), fp.Limbs))
)

// Goal: the committed constants are gnark-crypto's. Method: run the generator again.
func TestConstants_UpToDate(t *testing.T) {
	if kerneltest.OnCard() {
		t.Skip("looks at sources, not at a device")
	}
	folder := t.TempDir()
	command := exec.Command("go", "run", "gen.go", folder)
	command.Dir = "field"
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"constants.cuh", "constants_order.cuh"} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("field", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("field/%s: want what gen.go writes; run it again", name)
		}
	}
}

// Goal: rates of the fields, beside the floors in their files. Method: dependent chains, two a thread, all SMs full.
func BenchmarkRates(b *testing.B) {
	kerneltest.NeedCard(b)
	for _, c := range []struct {
		name  string
		bytes int
		steps uint32
	}{
		{"fr_mul", 32, 2000}, {"fp_mul", 48, 1000}, {"fp_sqr", 48, 1000}, {"fp_inverse", 48, 10}, {"fp2_mul", 96, 300}, {"fp2_sqr", 96, 300},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, k := kerneltest.Open(b), kerneltest.Kernel(b, "unit_rate_"+c.name)
			perSM, err := k.BlocksPerSM(128, 0)
			if err != nil {
				b.Fatal(err)
			}
			blocks := d.SMCount * perSM
			elements := blocks * 128 * 2
			io := kerneltest.Memory(b, int64(elements*c.bytes))
			kerneltest.Copy(b, io, make([]byte, elements*c.bytes))
			s := kerneltest.Stream(b)
			begin, err := d.NewEvent(true)
			if err != nil {
				b.Fatal(err)
			}
			end, err := d.NewEvent(true)
			if err != nil {
				b.Fatal(err)
			}
			best := float32(0)
			for range max(b.N, 5) {
				var args driver.Args
				for _, err := range []error{
					s.Record(begin),
					s.Launch(k, driver.Dim{X: uint32(blocks)}, driver.Dim{X: 128}, 0, args.Ptr(io).U32(c.steps)),
					s.Record(end), s.Synchronize(b.Context()),
				} {
					if err != nil {
						b.Fatal(err)
					}
				}
				ms, err := end.Since(begin)
				if err != nil {
					b.Fatal(err)
				}
				if best == 0 || ms < best {
					best = ms
				}
			}
			rate := float64(elements) * float64(c.steps) / (float64(best) * float64(time.Millisecond/time.Nanosecond))
			b.ReportMetric(rate, "G/s")
			b.ReportMetric(float64(perSM*4), "warps/SM")
		})
	}
}
