package sched

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
)

// stageCost runs some thousand empty stages with so many jobs queued up for the device, and gives the CPU time a stage.
func stageCost(t testing.TB, queued, stages int) time.Duration {
	d := &fakeDevice{slots: 1}
	s := New(host.NewBudget(host.Needs{HostBytes: 1, Threads: 1}), SystemClock{}, 100, d)
	job := func(class Class, parts int, run func() error) *Job {
		return &Job{Class: class, Plan: func() (Plan, error) {
			return Plan{Partitions: parts, Shares: []Share{{Device: d, Batch: 1, Ahead: 2}}, Stage: host.Needs{Threads: 1}}, nil
		}, Begin: func(_, first, count int) (Batch, error) {
			return fixed{{Name: "x", Lane: host.LaneDevice, Needs: host.Needs{Threads: 1}, Run: func(context.Context) error { return run() }}}, nil
		}, Deliver: func(int) error { return nil }}
	}
	nothing := func() error { return nil }
	// The first job holds the device until all others stand in its queue.
	hold, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	run := func(j *Job) {
		all.Go(func() {
			if err := s.Run(context.Background(), j); err != nil {
				t.Error(err)
			}
		})
	}
	run(job(WinningPoSt, 1, func() error { close(held); <-hold; return nil }))
	<-held
	for range queued {
		run(job(PoRep, 1, nothing))
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := s.devices[d].compute.ready[0].len()
		s.mu.Unlock()
		if n == queued {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d jobs queued", n, queued)
		}
	}
	// Of a higher class, so that all those stay in the queue; its stages are put in front of them and taken out.
	start := make(chan time.Duration, 1)
	measured := make(chan time.Duration, 1)
	n := 0
	all.Go(func() {
		if err := s.Run(context.Background(), job(WindowPoSt, stages, func() error {
			if n++; n == 1 {
				start <- cpuTime()
			}
			return nil
		})); err != nil {
			t.Error(err)
		}
		measured <- cpuTime() - <-start
	})
	runtime.GC() // of so many jobs' goroutines, not of the stages
	close(hold)
	took := <-measured
	all.Wait()
	return took / time.Duration(stages)
}

// cpuTime is what the process has computed: other work on the machine stretches the clock's time tenfold.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestStageCost: what the scheduler takes for a stage, its batch and its goroutine included, is far below 50 us, and no more with
// 10,000 jobs queued than with ten.
func TestStageCost(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector's cost is not the scheduler's")
	}
	best := func(queued int) time.Duration {
		least := time.Hour
		for range 3 { // the least of some: others use the machine
			least = min(least, stageCost(t, queued, 10000))
		}
		return least
	}
	few, many := best(10), best(10000)
	t.Logf("a stage takes %v with 10 jobs queued, %v with 10,000", few, many)
	if few > 50*time.Microsecond || many > 50*time.Microsecond {
		t.Error("more than 50 us")
	}
	if many > 3*few+10*time.Microsecond {
		t.Error("it grows with the queue")
	}
}

func BenchmarkStage(b *testing.B) {
	for _, queued := range []int{10, 10000} {
		b.Run(fmt.Sprint("queued=", queued), func(b *testing.B) {
			b.ReportMetric(float64(stageCost(b, queued, max(b.N, 1)).Nanoseconds()), "ns/stage")
		})
	}
}
