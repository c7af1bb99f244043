package cuda

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: a batch of fewer partitions than planned goes through: the last one of eleven, or one that begins once more. Method: one of two, whose points
// come up in several pieces a block.
func TestStream_FewerThanPlanned(t *testing.T) {
	c, b := streaming(t, 2, 2, 0)
	c.v = loadTiny(t, "tiny-1024", true)
	f := form{roots: compactRoots, vectors: 2, count: 2, slot: 64 * 192}
	if err := f.plan(b, c.v); err != nil {
		t.Fatal(err)
	}
	plan, err := b.Plan(c.v.program, 2)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	batch, err := b.Begin(c.v.program, plan, 1, c.v.fixed, c.v.srs, arena)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Close()
	for _, stage := range batch.Stages() {
		if err := stage.Run(t.Context()); err != nil {
			t.Fatalf("%s: %v", stage.Name, err)
		}
	}
	if _, err := batch.Sums(0); err != nil {
		t.Error(err)
	}
	batch.Close()
	settled(t, b)
}

// Goal: a plan is that of its partitions, whatever else was planned since. Method: a card on which one partition has all points resident, and ten share
// points that come up.
func TestPlan_Repeats(t *testing.T) {
	b := &Backend{owner: &owner{}, card: h200(2400<<20, 60<<30)}
	s, blocks := porep2k.program(t)
	cut := func() (*pointBlocks, error) { return blocks, nil }
	ask := func(partitions int) *plan {
		t.Helper()
		p, err := b.planFor(s, cut, partitions)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ten := ask(10)
	one := ask(1)
	if one.streams() || !ten.streams() {
		t.Fatalf("another card is wanted here: %s; %s", one, ten)
	}
	if again := ask(10); again != ten {
		t.Errorf("first %s\nthen  %s", ten, again)
	}
	if p := ask(0); p.common(b) != one.common(b) || p.shared != one.shared {
		t.Error("jobs of other lengths by an equal plan do not share its memory")
	}
	if one.common(b) == ten.common(b) {
		t.Error("jobs by different plans share memory")
	}
}

// Goal: a block that waits for the next partition is not handed to one that has reserved less: the limit holds whatever came before.
func TestMemory_IdleBlocks(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		m := s.memory
		m.limit = m.used + 20<<20
		large, err := m.hold(10 << 20)
		if err != nil {
			return err
		}
		m.release(large)
		same, err := m.hold(10<<20 - 1)
		if err != nil {
			return err
		}
		if same != large {
			t.Error("a block of that size was not used again")
		}
		m.release(same)
		var all []*driver.Arena
		for _, bytes := range []int64{6 << 20, 14 << 20} { // as reserved: all of the limit
			a, err := m.hold(bytes)
			if err != nil {
				return err
			}
			all = append(all, a)
		}
		for _, a := range all {
			m.release(a)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Goal: rows that were made elsewhere are read by no stage behind the one that says it reads them last. Method: all forms of plans.
func TestStages_RereadRows(t *testing.T) {
	for vectors := range 4 {
		for _, explicit := range []bool{false, true} {
			c, b := streaming(t, 3, 1, 1<<20)
			f := form{explicit: explicit, roots: compactRoots, vectors: vectors, count: 1, slot: 64 * 192}
			if vectors == 0 && !explicit {
				continue
			}
			if err := f.plan(b, c.v); err != nil {
				t.Fatal(err)
			}
			plan, err := b.Plan(c.v.program, 1)
			if explicit {
				plan, err = b.PlanAssignment(c.v.assignment, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			arena, err := host.NewArena(plan.HostBytes)
			if err != nil {
				t.Fatal(err)
			}
			own := *c.v.assignment
			var p groth16.Batch
			if explicit {
				p, err = b.BeginAssignment([]*groth16.Assignment{&own}, plan, c.v.srs, arena)
			} else {
				p, err = b.Begin(c.v.program, plan, 1, c.v.fixed, c.v.srs, arena)
			}
			if err != nil {
				t.Fatal(err)
			}
			stages, last := p.Stages(), 0
			for i, s := range stages {
				if s.Name == "evaluate" || s.Rereads {
					last = i
				}
			}
			if late := explicit && (vectors == 1 || vectors == 2); late != (stages[last].Name == "quotient") {
				t.Errorf("explicit %t, %d vectors: rows are read until %s", explicit, vectors, stages[last].Name)
			}
			for i, s := range stages {
				if err := s.Run(t.Context()); err != nil {
					t.Fatalf("%s: %v", s.Name, err)
				}
				if i == last {
					own.A, own.B, own.C = nil, nil, nil // whoever reads on fails
				}
			}
			p.Close()
			arena.Close()
		}
	}
}

// Goal: a panic outside of what a lane was asked to run, here of the caller's log, leaves nobody waiting: neither who asked nor Close.
func TestOwner_Panic(t *testing.T) {
	double := sim.New(sim.Small(idle{}, 1))
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{API: api, Images: [][]byte{{1}}, Threads: 1, MemoryBytes: 1 << 30, PinnedBytes: minPinnedBytes, Log: func(level, text string) {
		if strings.Contains(text, "context died") {
			panic("the caller's")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 2)
	go func() {
		var err error
		defer func() { over <- err }()
		defer status.Recover("test", &err)
		err = b.owner.do(context.Background(), computing, "test", func(_ context.Context, s *session) error {
			double.Lose(0, driver.ECCUncorrectable)
			_, _, err := s.device.Memory()
			return err
		})
	}()
	wait := func(what string) {
		t.Helper()
		select {
		case err := <-over:
			if status.KindOf(err) != status.Internal || !strings.Contains(err.Error(), "the caller's") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s waits for ever", what)
		}
	}
	wait("the request")
	go func() {
		var err error
		defer func() { over <- err }()
		defer status.Recover("test", &err)
		err = b.Close()
	}()
	wait("Close")
}
