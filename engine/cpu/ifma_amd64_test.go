package cpu

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// Goal: the assembly is what its generator writes.
func TestIFMA_Generated(t *testing.T) {
	want, err := exec.Command("go", "run", "gen_ifma.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("ifma_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Fatal("ifma_amd64.s is not what gen_ifma.go writes: run go generate")
	}
}

// Goal: slots hold what was loaded, signs and infinity included.
func TestIFMA_Slots(t *testing.T) {
	if !hasIFMA {
		t.Skip("the CPU has no AVX-512 IFMA; the portable store is tested instead")
	}
	points := append(somePoints(20), bls.G1Affine{})
	points[3].Neg(&points[3])
	offsets := make([]uint32, 0, len(points))
	for i := len(points) - 1; i >= 0; i-- {
		offsets = append(offsets, uint32(i)<<1|uint32(i&1)) // the sign is not load's
	}
	s := newIFMAStore(newTestArena(t, ifmaBytes(64, 1)), 64, 1)
	s.load(5, points, offsets)
	for i, o := range offsets {
		want := points[o>>1]
		if got := s.get(5 + i); got != want || s.empty(5+i) != want.IsInfinity() {
			t.Fatalf("slot of point %d: want %v, got %v", o>>1, want, got)
		}
		s.move(40, ref(5+i)|1)
		want.Neg(&want)
		if got := s.get(40); got != want {
			t.Fatalf("negated point %d: want %v, got %v", o>>1, want, got)
		}
	}
}

// Goal: long chains of additions stay exact though slots are not canonical: each result is compared with
// gnark-crypto's, with batches of every length up to some groups, and special cases among them.
func TestIFMA_Chains(t *testing.T) {
	if !hasIFMA {
		t.Skip("the CPU has no AVX-512 IFMA; the portable store is tested instead")
	}
	const n = 100
	rnd := rand.New(rand.NewPCG(21, 22))
	points := somePoints(2 * n)
	points[7] = bls.G1Affine{}
	points[n+9] = bls.G1Affine{}
	points[n+11] = points[11]
	points[n+12].Neg(&points[12])
	offsets := make([]uint32, 2*n)
	for i := range offsets {
		offsets[i] = uint32(i) << 1
	}
	s := newIFMAStore(newTestArena(t, ifmaBytes(2*n, 1)), 2*n, 1)
	s.load(0, points, offsets)
	for round := range 60 {
		count := round + 1
		order := rnd.Perm(2 * n)
		ops := make([]op, count)
		for i := range ops {
			a, b := order[2*i], order[2*i+1]
			ops[i] = op{uint32(a), ref(a) | rnd.Uint32()&1, ref(b) | rnd.Uint32()&1}
			x, y := points[a], points[b]
			if ops[i].a&1 == 1 {
				x.Neg(&x)
			}
			if ops[i].b&1 == 1 {
				y.Neg(&y)
			}
			points[a].Add(&x, &y)
		}
		s.add(0, ops)
		for i := range points {
			if got := s.get(i); got != points[i] {
				t.Fatalf("round %d: slot %d: want %v, got %v", round, i, points[i], got)
			}
		}
	}
}
