package engine

import (
	"context"
	"runtime/metrics"
	"testing"

	"github.com/sealc2/sealc2/engine/cpu"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
)

// TestProveProgram_Threads: a proof is spread over as many goroutines as the engine has threads: nothing below, gnark-
// crypto included, counts CPUs on its own. Method: the goroutines that were started while the backend worked, whose
// number depends on no clock. Verifying is left out: gnark-crypto sums a few points there, in a goroutine a window, which
// is some thousandths of a second.
func TestProveProgram_Threads(t *testing.T) {
	c := loadTiny(t, "tiny-1024")
	started := func() uint64 {
		sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	count := func(threads int) (n uint64) {
		var from uint64
		e := open(t, Config{}, nil)
		e.limits.Threads = threads // also more than the machine has
		e.budget = host.NewBudget(host.Needs{HostBytes: e.limits.HostBytes, Threads: threads})
		e.devices[0].backend = &faulty{Backend: cpu.New(threads), sums: func(*groth16.Sums) { n = started() - from }}
		e.sched = sched.New(e.budget, sched.SystemClock{}, timelineLength, e.devices[0])
		request := c.request(1)
		request.Progress = func(p Progress) {
			if p.Stage == "inputs" {
				from = started()
			}
		}
		if _, err := e.ProveProgram(context.Background(), request); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// One for each stage, and one for each loop over rows, whose caller waits; with more threads, so many for each loop of every stage.
	if one, two, eight := count(1), count(2), count(8); one > 9+4 || two <= 2*one || eight <= 2*two || eight > 8*two {
		t.Errorf("goroutines started with one, two and eight threads: %d, %d, %d", one, two, eight)
	}
}
