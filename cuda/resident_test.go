package cuda

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// residents counts what is resident of parameters.
func residents(t *testing.T, b *Backend, id string) (n int) {
	t.Helper()
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		for _, r := range s.memory.kept.all {
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

// keeps says whether anything is kept of a program.
func (b *Backend) keeps(t *testing.T, p *circuit.Program) (kept bool) {
	t.Helper()
	b.programs.mu.Lock()
	kept = b.programs.all[p] != nil
	b.programs.mu.Unlock()
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		kept = kept || slices.ContainsFunc(s.memory.kept.all, func(r *resident) bool { return r.key == p })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept
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
	if err := b.Forget(t.Context(), loadTiny(t, "tiny-64", true).program); err != nil || !b.keeps(t, v.program) {
		t.Fatalf("another program forgotten: %v", err)
	}
	if err := b.Forget(t.Context(), v.program); err != nil || b.keeps(t, v.program) {
		t.Fatalf("after Forget: %v", err)
	}
	right("after Forget")
	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		if s.memory.used != s.word.Size() || len(s.memory.kept.all) != 0 {
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
	used := func() (bytes int64) {
		t.Helper()
		if err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error { bytes = s.memory.used; return nil }); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	other := loadTiny(t, "tiny-64", true)
	mine, err := b.planned(v.program)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.planned(other.program)
	if err != nil {
		t.Fatal(err)
	}
	needs, scratch, err := b.SRSNeeds(t.Context(), spec)
	if err != nil || scratch <= 0 || needs.Needs.DeviceBytes <= 0 {
		t.Fatalf("%+v, %d, %v", needs, scratch, err)
	}
	whole := b.cardFor(mine.shape)
	srs, err := b.MakeSRS(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	// Once more they are the same, and take nothing.
	before := used()
	again, err := b.MakeSRS(t.Context(), spec)
	if err != nil || again != srs || used() != before || residents(t, b, spec.ID()) != int(groth16.BlockCount) {
		t.Errorf("made again: %v, %d blocks, %d bytes in use, %d before", err, residents(t, b, spec.ID()), used(), before)
	}
	if same, scratch, err := b.SRSNeeds(t.Context(), spec); same.Key != needs.Key || same.Needs != needs.Needs || scratch != 0 || err != nil {
		t.Errorf("made again: %+v, %d, %v", same, scratch, err)
	}
	// Other circuits have what is left of the device, this one all of it, and what it shares with all that have the points is these.
	ofOthers, own := b.cardFor(theirs.shape), b.cardFor(mine.shape)
	if ofOthers.held != whole.held+needs.Needs.DeviceBytes || ofOthers.made || own.held != whole.held || !own.made {
		t.Errorf("%d bytes of points: cards %+v, %+v, before %+v", needs.Needs.DeviceBytes, ofOthers, own, whole)
	}
	plan, err := b.Plan(v.program, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Shared) != 2 || plan.Shared[1].Key != needs.Key || plan.Shared[1].Needs != needs.Needs {
		t.Errorf("%+v is not shared with %+v", plan.Shared, needs)
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	p, err := b.Begin(v.program, plan, 1, v.fixed, srs, arena)
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
	if b.cardFor(theirs.shape) != whole || b.cardFor(mine.shape) != whole {
		t.Error("after Evict plans are for less")
	}
}

// Goal: points that were made in a context are out of all plans once it has died.
func TestMakeSRS_Lost(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	spec, err := setup.NewSpec(c.v.program, &setup.Secrets{Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.MakeSRS(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if len(b.made) != 1 {
		t.Fatalf("%d sets", len(b.made))
	}
	err = b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		c.double.Lose(0, driver.ECCUncorrectable)
		_, _, err := s.device.Memory()
		return err
	})
	if err == nil || len(b.made) != 0 {
		t.Errorf("%v; %d sets are left", err, len(b.made))
	}
}

// Goal: a circuit whose points stay on the device, made there, is planned with all of them or refused with what that takes: none come up in pieces besides.
func TestPlan_Made(t *testing.T) {
	s, blocks := porep32.program(t)
	on := h200(74<<30, 100<<30)
	on.made = true
	for ; on.limit > 40<<30; on.limit -= 4 << 30 {
		p, err := planFor(s, blocks, 10, on)
		switch {
		case err == nil:
			honest(t, p, on.limit)
			if p.streams() || p.pointBytes(on.unit) < 44<<30 {
				t.Errorf("%d bytes: %s", on.limit, p)
			}
		case status.KindOf(err) != status.NoMemory || on.limit > 66<<30 || !strings.Contains(err.Error(), "more than 5"):
			t.Errorf("%d bytes: %v", on.limit, err)
		}
	}
}
