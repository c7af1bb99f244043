package engine

import (
	"context"
	"fmt"
	"runtime/metrics"
	"strings"
	"sync"
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
		e.threads.close()          // goroutines can be counted
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
	// One for each stage; with more threads, one less than these for each loop of every stage, whose caller takes part.
	if one, two, eight := count(1), count(2), count(8); one > 9 || two <= 2*one || eight <= 2*two || eight > 8*two {
		t.Errorf("goroutines started with one, two and eight threads: %d, %d, %d", one, two, eight)
	}
}

// TestProveProgram_Pool: an engine's first proof starts its threads, once, says where they are, and Close ends them.
func TestProveProgram_Pool(t *testing.T) {
	c := loadTiny(t, "tiny-1024")
	var mu sync.Mutex
	var said []string
	e := open(t, Config{Log: func(level, text string) {
		mu.Lock()
		defer mu.Unlock()
		if level == "info" && strings.Contains(text, " threads: ") {
			said = append(said, text)
		}
	}}, nil)
	if len(said) > 0 {
		t.Errorf("an engine without work: %q", said)
	}
	for range 2 {
		if _, err := e.ProveProgram(context.Background(), c.request(1)); err != nil {
			t.Fatal(err)
		}
	}
	if want := fmt.Sprintf("%d threads: ", e.limits.Threads); len(said) != 1 || !strings.HasPrefix(said[0], want) || !strings.Contains(said[0], "CPUs ") {
		t.Errorf("want one line %q, got %q", want, said)
	}
	if got := e.threads.pool.Threads(); got != e.limits.Threads {
		t.Errorf("%d threads of %d", got, e.limits.Threads)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	ran := false
	err := host.Do(host.WithPool(context.Background(), e.threads.pool), "test", 2, 1, 2, func(_, _, _ int) error { ran = true; return nil })
	if err != nil || !ran {
		t.Errorf("a loop after the end: %v", err)
	}
}
