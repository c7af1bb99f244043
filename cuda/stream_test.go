package cuda

import (
	"context"
	"fmt"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
)

// form is choices of a plan, in place of those that a device with plenty of memory gets.
type form struct {
	explicit bool
	resident [groth16.BlockCount]bool
	roots    roots
	vectors  int
	count    int   // partitions of the batch
	slot     int64 // bytes
	host     int64 // pinned host memory; 0: points come from the file each time
}

// plan makes the form's plan for a circuit the one that the backend has.
func (f *form) plan(b *Backend, v *tiny) error {
	s, blocks := assignmentShape(v.assignment), new(pointBlocks)
	if f.explicit {
		for block := range groth16.BlockCount {
			var err error
			if blocks[block], err = assignmentBlock(v.assignment, block, circuit.Bits{}); err != nil {
				return err
			}
		}
	} else {
		known, _, err := b.planned(v.program)
		if err != nil {
			return err
		}
		s, blocks = known.shape, &known.blocks
	}
	p := newPlan(s, f.resident, f.roots, f.vectors, f.count, 1)
	p.slotBytes = f.slot
	if err := p.lay(blocks, b.card); err != nil {
		return err
	}
	clear(b.plans)
	b.plans[planKey{*s, f.count}] = p
	return nil
}

// limitHost is the pinned memory of the session, after a limit of 0 or more was set and what nobody uses was given back.
func limitHost(t *testing.T, b *Backend, limit int64) (used int64) {
	t.Helper()
	err := b.owner.do(t.Context(), copying, "test", func(_ context.Context, s *session) error {
		if limit >= 0 {
			s.host.limit = limit
			if err := s.host.freeAll(); err != nil {
				return err
			}
		}
		used = s.host.used
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// Goal: whatever of the parameters is resident, comes up in pieces from pinned memory or from the file, and however rows and roots are
// kept, the proofs are the reference's. Method: plans of all forms on one device, most of them on the smallest circuit; the larger one has several pieces a block.
// The last one finds what the one before has pinned.
func TestProve_Plans(t *testing.T) {
	onlyH, none := [groth16.BlockCount]bool{true}, [groth16.BlockCount]bool{}
	b, _ := openBackend(t, 11)
	small, large := loadTiny(t, "tiny-16", true), loadTiny(t, "tiny-64", true)
	for _, c := range []struct {
		form
		v    *tiny
		free bool // what is pinned, before
	}{
		{form{false, onlyH, fullRoots, 3, 2, 64 * 192, 0}, small, true},
		{form{true, none, fullRoots, 3, 1, 64 * 192, 20 << 10}, small, true},
		{form{false, none, compactRoots, 2, 1, 80 * 192, 1 << 30}, large, true},
		{form{false, none, compactRoots, 1, 1, 64 * 192, 1 << 30}, small, true},
		{form{true, none, compactRoots, 1, 2, 64 * 192, 1 << 30}, small, false},
	} {
		name := fmt.Sprintf("%s, %+v", c.v.name, c.form)
		before := int64(0)
		if c.free {
			limitHost(t, b, c.host)
		} else {
			before = limitHost(t, b, -1)
		}
		if err := c.plan(b, c.v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		proofs, err := proveBatch(t.Context(), b, c.v, c.explicit, c.count)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for k, proof := range proofs {
			if proof != c.v.proof {
				t.Errorf("%s: partition %d has another proof", name, k)
			}
		}
		if used := limitHost(t, b, -1); used > c.host || (used > 0) != (c.host > 0) || !c.free && used != before {
			t.Errorf("%s: %d bytes of host memory pinned, %d before", name, used, before)
		}
		settled(t, b)
	}
}
