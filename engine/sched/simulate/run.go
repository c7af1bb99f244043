package simulate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// Setup is the scheduler's part of a run.
type Setup struct {
	Policy                    sched.Policy
	Workers, PartitionWorkers int // as in sched.Config
}

// Result is what came of a run. Times count from its start.
type Result struct {
	Jobs    []JobResult // as given
	Wall    time.Duration
	Entries []sched.Entry
}

// JobResult is what came of a job.
type JobResult struct {
	End        time.Duration
	Partitions []time.Duration // when each was delivered
	Err        error
}

// Run submits the jobs at their times and returns when all have ended.
func Run(m *Machine, setup Setup, jobs []*Job) *Result {
	devices := make([]sched.Device, len(m.Cards))
	sites := make([]*site, len(m.Cards))
	for i, c := range m.Cards {
		devices[i] = c
		sites[i] = &site{machine: m, card: c}
	}
	s := sched.NewWith(sched.Config{
		Budget: m.Budget(), Clock: sched.SystemClock{}, TimelineLength: 1 << 16, Policy: setup.Policy,
		Workers: setup.Workers, PartitionWorkers: setup.PartitionWorkers,
	}, devices...)
	began := time.Now()
	result := &Result{Jobs: make([]JobResult, len(jobs))}
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			r := &result.Jobs[i]
			defer status.Recover("simulate.Run", &r.Err)
			time.Sleep(job.Start)
			r.Err = s.Run(context.Background(), job.scheduled(sites[job.Card], nil, func(int) { r.Partitions = append(r.Partitions, time.Since(began)) }))
			r.End = time.Since(began)
		})
	}
	all.Wait()
	result.Wall = time.Since(began)
	result.Entries = s.Timeline().Entries()
	return result
}

// Busy is how long steps computed on a card, in all.
func (r *Result) Busy(card string) (sum time.Duration) {
	for _, e := range r.Entries {
		if e.Device == card && e.Lane == host.LaneDevice {
			sum += e.End - e.Start
		}
	}
	return sum
}

// Err is the first job's that failed.
func (r *Result) Err() error {
	if i := slices.IndexFunc(r.Jobs, func(j JobResult) bool { return j.Err != nil }); i >= 0 {
		return r.Jobs[i].Err
	}
	return nil
}
