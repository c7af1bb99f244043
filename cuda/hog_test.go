package cuda

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// crowded is a device of some size of which another program has a part, with kernels that do nothing.
func crowded(t *testing.T, bytes int64, percent int64) (*driver.API, *sim.Driver) {
	t.Helper()
	config := sim.Small(idle{}, 1)
	config.Devices[0].MemoryBytes = bytes
	double := sim.New(config)
	t.Cleanup(double.Close)
	double.Hog(0, bytes*percent/100)
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	return api, double
}

// Goal: a device that other programs have parts of opens for what is free, and plans are made for that; where nothing is left it is refused with
// numbers and nothing stays behind.
func TestHog_BeforeOpening(t *testing.T) {
	s, blocks := porep2k.program(t)
	needs := int64(1 << 40)
	for _, percent := range []int64{0, 30, 60, 90, 99} {
		api, double := crowded(t, 8<<30, percent)
		free := int64(8<<30) * (100 - percent) / 100
		b, err := Open(Config{API: api, Images: [][]byte{{1}}, Threads: 1, PinnedBytes: minPinnedBytes, HostBytes: 1 << 30})
		if percent == 99 {
			if status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "81.9 MiB") {
				t.Errorf("%d%%: %v", percent, err)
			}
			if live := double.Live(); live != (sim.Live{}) {
				t.Errorf("%d%%: left behind %+v", percent, live)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d%%: %v", percent, err)
		}
		p, err := planFor(s, blocks, 1, b.card)
		if err != nil || b.MemoryBytes() > free || b.MemoryBytes() < free-free/8-128<<20 || p.needs() > b.MemoryBytes() || p.needs() > needs {
			t.Errorf("%d%%: %d bytes for proofs, of %d free: %v, %v", percent, b.MemoryBytes(), free, p, err)
		} else {
			needs = p.needs()
		}
		c := &faultCase{api: api, double: double, v: loadTiny(t, "tiny-16", true)}
		c.right(t, b, "opening")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Goal: memory that another program takes while a batch is under way costs that batch, by value and with numbers, or nothing; what it held is
// given back, and the next one goes through once there is memory again. Method: before each stage in turn, another program takes 30, 60 and 90 percent of
// the device, of which the batch takes half.
func TestHog_During(t *testing.T) {
	const device = 64 << 20
	api, double := crowded(t, device, 0)
	b, err := Open(Config{API: api, Images: [][]byte{{1}}, Threads: 1, MemoryBytes: device * 9 / 10, PinnedBytes: minPinnedBytes, HostBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := &faultCase{api: api, double: double, v: loadTiny(t, "tiny-16", true)}
	f := form{resident: [groth16.BlockCount]bool{true}, roots: compactRoots, vectors: 1, count: 2, slot: 4 << 20}
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
	// run runs a batch, and takes memory before a stage of it.
	run := func(before int, bytes int64) (more bool, err error) {
		batch, err := b.Begin(c.v.program, plan, 2, c.v.fixed, c.v.srs, arena)
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Close()
		for i, stage := range batch.Stages() {
			if i == before {
				more = true
				double.Hog(0, bytes)
				defer double.Hog(0, -bytes)
			}
			if err := stage.Run(t.Context()); err != nil {
				return more, fmt.Errorf("stage %d, %s: %w", i, stage.Name, err)
			}
		}
		return more, nil
	}
	for _, percent := range []int64{30, 60, 90} {
		failed := 0
		for before := 0; ; before++ {
			if err := b.Release(t.Context()); err != nil { // so that the batch needs all anew
				t.Fatal(err)
			}
			more, err := run(before, device*percent/100)
			if err != nil {
				failed++
				if status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "free of 64 MiB") || percent == 30 {
					t.Errorf("%d%%, before stage %d: %v", percent, before, err)
				}
			}
			settled(t, b)
			if arena.Used() != 0 {
				t.Errorf("%d%%: %d bytes of the arena in use", percent, arena.Used())
			}
			if !more {
				break
			}
		}
		if failed == 0 && percent > 30 {
			t.Errorf("%d%%: nothing failed", percent)
		}
		if _, err := run(-1, 0); err != nil {
			t.Errorf("once there is memory again: %v", err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if live := double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind %+v", live)
	}
}
