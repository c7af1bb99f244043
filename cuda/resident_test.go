package cuda

import (
	"context"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
)

// residents counts what is resident of parameters.
func residents(t *testing.T, b *Backend, id string) (n int) {
	t.Helper()
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		for _, r := range s.memory.kept {
			if k, ok := r.key.(blockKey); ok && k.id == id {
				n++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Goal: parameters come before the first proof when asked to, go when asked to, and proofs are right before and after.
func TestResident_PreloadEvictRelease(t *testing.T) {
	b, _ := openBackend(t, 5)
	v := loadTiny(t, "tiny-16", true)
	right := func(when string) {
		t.Helper()
		if proof, err := prove(t.Context(), b, v, false); err != nil || proof != v.proof {
			t.Fatalf("%s: %v, the reference's proof: %v", when, err, proof == v.proof)
		}
	}
	if err := b.Preload(t.Context(), v.program, 1, v.srs); err != nil {
		t.Fatal(err)
	}
	if n := residents(t, b, v.srs.ID()); n != int(groth16.BlockCount) {
		t.Fatalf("%d blocks after Preload", n)
	}
	settled(t, b)
	right("after Preload")
	if err := b.Evict(t.Context(), "another"); err != nil || residents(t, b, v.srs.ID()) == 0 {
		t.Fatalf("another set evicted: %v", err)
	}
	if err := b.Evict(t.Context(), v.srs.ID()); err != nil || residents(t, b, v.srs.ID()) != 0 {
		t.Fatalf("after Evict: %v", err)
	}
	right("after Evict")
	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		if s.memory.used != s.word.Size() || len(s.memory.kept) != 0 {
			t.Errorf("%d bytes in use after Release", s.memory.used)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	right("after Release")
}

// Goal: parameters made in device memory prove like those of a file: the proof verifies under their key, and their points are where
// a reader finds them.
func TestMakeSRS(t *testing.T) {
	b, _ := openBackend(t, 6)
	v := loadTiny(t, "tiny-16", true)
	spec, err := setup.NewSpec(v.program, &setup.Secrets{
		Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11),
	})
	if err != nil {
		t.Fatal(err)
	}
	srs, err := b.MakeSRS(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.Plan(v.program, 1)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	p, err := b.Begin(v.program, 1, 1, v.fixed, srs, arena)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range p.Stages() {
		if err := stage.Run(t.Context()); err != nil {
			t.Fatalf("%s: %v", stage.Name, err)
		}
	}
	sums, err := p.Sums(0)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	key, err := groth16.Prepare(srs.VerifyingKey())
	if err != nil {
		t.Fatal(err)
	}
	proof := groth16.Assemble(srs.VerifyingKey(), sums, &v.r, &v.s)
	if ok, err := groth16.Verify(key, &proof, v.assignment.Inputs[1:]); !ok || err != nil {
		t.Errorf("verified: %v, %v", ok, err)
	}
	if err := b.Evict(t.Context(), spec.ID()); err != nil || residents(t, b, spec.ID()) != 0 {
		t.Errorf("after Evict: %v", err)
	}
}
