package cuda

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
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
	s, blocks := b.shapeOf(v.assignment), new(pointBlocks)
	if f.explicit {
		for block := range groth16.BlockCount {
			var err error
			if blocks[block], err = assignmentBlock(v.assignment, block, circuit.Bits{}); err != nil {
				return err
			}
		}
	} else {
		known, err := b.planned(v.program)
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
	b.plans = memo[planKey, *plan]{}
	_, err := b.plans.get(planKey{*s, f.count, b.card}, func() (*plan, error) { return p, nil })
	return err
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

// streaming is a machine with kernels that do nothing, where everything comes up in pieces, from pinned memory where there is some.
func streaming(t *testing.T, vectors, count int, hostBytes int64) (*faultCase, *Backend) {
	t.Helper()
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-64", true)}
	c.renew(t)
	b, err := Open(Config{API: c.api, Images: c.images, Threads: 2, MemoryBytes: 1 << 30, PinnedBytes: minPinnedBytes, HostBytes: hostBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	f := form{roots: compactRoots, vectors: vectors, count: count, slot: 64 * 192}
	if err := f.plan(b, c.v); err != nil {
		t.Fatal(err)
	}
	return c, b
}

// begin starts a batch of equal partitions.
func begin(t *testing.T, c *faultCase, b *Backend, count int) groth16.Batch {
	t.Helper()
	plan, err := b.Plan(c.v.program, count)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	batch, err := b.Begin(c.v.program, plan, count, c.v.fixed, c.v.srs, arena)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// Goal: a batch ends soon, wherever it stands, while points come up, and leaves nothing. Method: close it before each of its stages, cancelled and
// not.
func TestStream_Ends(t *testing.T) {
	c, b := streaming(t, 2, 2, 0)
	for last := 0; ; last++ {
		batch := begin(t, c, b, 2)
		stages := batch.Stages()
		ctx, cancel := context.WithCancel(t.Context())
		for i, stage := range stages {
			if i == last {
				if last%2 == 1 {
					cancel()
					if err := stage.Run(ctx); status.KindOf(err) != status.Cancelled {
						t.Errorf("cancelled before %s: %v", stage.Name, err)
					}
				}
				break
			}
			if err := stage.Run(ctx); err != nil {
				t.Fatalf("%s: %v", stage.Name, err)
			}
		}
		batch.Close()
		cancel()
		settled(t, b)
		if last >= len(stages) {
			break
		}
	}
}

// Goal: batches that share slots feed one after the other. Method: the second one asks for its turn while the first, which has a piece in each
// slot, computes; it goes on when the first one ends, and not before.
func TestStream_Turns(t *testing.T) {
	c, b := streaming(t, 2, 1, 0)
	first, second := begin(t, c, b, 1), begin(t, c, b, 1)
	defer second.Close()
	stages := second.Stages()
	for _, stage := range first.Stages() {
		if err := stage.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if stage.Name == "quotient" {
			break
		}
	}
	done := make(chan error, 1)
	at := make(chan string, len(stages))
	go func() {
		var err error
		defer func() { done <- err }()
		defer status.Recover("test", &err)
		for _, stage := range stages {
			at <- stage.Name
			if err = stage.Run(t.Context()); err != nil {
				return
			}
		}
	}()
	for name := range at {
		if name == "evaluate" {
			break
		}
	}
	select {
	case name := <-at:
		t.Errorf("%s began beside another batch that feeds", name)
	case err := <-done:
		t.Fatalf("%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	first.Close()
	if err := <-done; err != nil {
		t.Errorf("behind the first: %v", err)
	}
	if _, err := second.Sums(0); err != nil {
		t.Error(err)
	}
}

// Goal: whatever driver call fails while points come up, are pinned, or vectors go to the host and back, the batch ends in an error by value, nothing is
// left, and the next one goes through. Method: fail calls of a batch in turn, every third, with what was pinned given back before.
func TestStream_Faults(t *testing.T) {
	c, b := streaming(t, 1, 2, 1<<20)
	count := 0
	for n := int64(1); ; n += 3 {
		limitHost(t, b, 1<<20)
		err, more := c.failing(t, n, lostAndNot[count%len(lostAndNot)], func() error {
			_, err := proveBatch(t.Context(), b, c.v, false, 2)
			return err
		})
		if !more {
			break
		}
		count++
		if _, again := proveBatch(t.Context(), b, c.v, false, 2); again != nil {
			t.Fatalf("call %d, after %v: %v", n, err, again)
		}
		settled(t, b)
	}
	if count < 100 {
		t.Errorf("only %d calls", count)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if live := c.double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}
