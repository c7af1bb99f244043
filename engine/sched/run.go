package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// op is what errors are called by where a job does not say.
const op = "sched.Run"

// Scheduler shares a budget and devices among jobs. Safe for concurrent use.
type Scheduler struct {
	budget   *host.Budget
	clock    Clock
	start    time.Time
	timeline *Timeline
	lastJob  atomic.Uint64
	desk     turnstile
	devices  map[Device]*turnstile
}

// New makes a scheduler that keeps the last timelineLength stages (at least 1).
func New(budget *host.Budget, clock Clock, timelineLength int, devices ...Device) *Scheduler {
	s := &Scheduler{
		budget: budget, clock: clock, start: clock.Now(), timeline: newTimeline(max(1, timelineLength)),
		desk: turnstile{free: 1}, devices: make(map[Device]*turnstile, len(devices)),
	}
	for _, d := range devices {
		s.devices[d] = &turnstile{free: max(1, d.Slots())}
	}
	return s
}

// Timeline is what ran.
func (s *Scheduler) Timeline() *Timeline { return s.timeline }

// run is one call of Run.
type run struct {
	*Scheduler
	id   uint64
	job  *Job
	held *host.Reservation
}

// Run does a job and returns when it has ended, with all that it held given back. The error of a stage
// keeps its kind and gets the partition's index and the stage's name in front; besides, Run itself fails
// with NoMemory where the job can never fit, Cancelled when ctx ends, and Internal for a panic or a plan
// that a stage contradicts.
func (s *Scheduler) Run(ctx context.Context, job *Job) (err error) {
	r := &run{Scheduler: s, id: s.lastJob.Add(1), job: job}
	defer func() { r.held.Release() }()
	defer status.Recover(op, &err)
	plan, err := r.admit(ctx)
	if err != nil {
		return err
	}
	if len(plan.First) > 0 {
		if err := r.partition(ctx, &plan, WholeJob, func() (Partition, error) { return &fixed{plan.First}, nil }); err != nil {
			return err
		}
	}
	for index := range plan.Partitions {
		if err := r.partition(ctx, &plan, index, func() (Partition, error) { return job.Begin(index) }); err != nil {
			return err
		}
		if err := border(ctx); err != nil {
			return r.fail(index, "", err)
		}
		if err := guard(func() error { return job.Deliver(index) }); err != nil {
			return r.fail(index, "", err)
		}
	}
	return nil
}

// admit takes the job past the desk: prepared, planned, and everything reserved.
func (r *run) admit(ctx context.Context) (plan Plan, err error) {
	if err := border(ctx); err != nil {
		return plan, err
	}
	if err := r.desk.enter(ctx, r.id); err != nil {
		return plan, err
	}
	defer r.desk.leave()
	for i := range r.job.Prepare {
		stage := &r.job.Prepare[i]
		if err := border(ctx); err != nil {
			return plan, r.fail(WholeJob, stage.Name, err)
		}
		if err := r.reserve(ctx, stage.Needs); err != nil {
			return plan, r.fail(WholeJob, stage.Name, err)
		}
		if err := r.stage(ctx, WholeJob, "", stage); err != nil {
			return plan, err
		}
	}
	if err := border(ctx); err != nil {
		return plan, err
	}
	if err := guard(func() (err error) { plan, err = r.job.Plan(); return err }); err != nil {
		return plan, err
	}
	status.Check(r.devices[plan.Device] != nil, op, "a plan for one of the scheduler's devices")
	return plan, r.reserve(ctx, plan.Needs.Plus(plan.Stage))
}

// reserve adds to what the job holds. Threads are only compared with the ceiling: a device's slots bound
// how many stages keep them busy, and a job must not keep threads from others between its stages.
func (r *run) reserve(ctx context.Context, needs host.Needs) error {
	if err := r.budget.Fits(op, host.Needs{Threads: needs.Threads}); err != nil {
		return err
	}
	needs.Threads = 0
	if r.held != nil {
		return r.held.Grow(ctx, needs)
	}
	held, err := r.budget.Reserve(ctx, needs)
	r.held = held
	return err
}

// fixed is a list of stages in the form of a partition.
type fixed struct{ rest []Stage }

func (f *fixed) Next() (stage *Stage) {
	if len(f.rest) > 0 {
		stage, f.rest = &f.rest[0], f.rest[1:]
	}
	return stage
}

func (f *fixed) Close() {}

// partition runs the stages of one partition, or those of the whole job, on the plan's device.
func (r *run) partition(ctx context.Context, plan *Plan, index int, make func() (Partition, error)) (err error) {
	if err := border(ctx); err != nil {
		return r.fail(index, "", err)
	}
	var p Partition
	if err := guard(func() (err error) { p, err = make(); return err }); err != nil {
		return r.fail(index, "", err)
	}
	defer func() {
		if closed := guard(func() error { p.Close(); return nil }); closed != nil && err == nil {
			err = r.fail(index, "", closed)
		}
	}()

	slots := r.devices[plan.Device]
	if err := slots.enter(ctx, r.id); err != nil {
		return r.fail(index, "", err)
	}
	holds := true
	defer func() {
		if holds {
			slots.leave()
		}
	}()
	for {
		var stage *Stage
		if err := guard(func() error { stage = p.Next(); return nil }); err != nil {
			return r.fail(index, "", err)
		}
		if stage == nil {
			return nil
		}
		if err := border(ctx); err != nil {
			return r.fail(index, stage.Name, err)
		}
		if !covers(plan, stage) {
			return r.fail(index, stage.Name, status.New(status.Internal, op, "needs",
				fmt.Sprintf("at most the plan's %+v", plan.Stage), fmt.Sprintf("%+v", stage.Needs)))
		}
		if err := r.stage(ctx, index, plan.Device.Name(), stage); err != nil {
			return err
		}
		if err := slots.pass(ctx, r.id); err != nil {
			holds = false
			return r.fail(index, "", err)
		}
	}
}

// covers says whether the plan reserved what the stage needs.
func covers(plan *Plan, stage *Stage) bool {
	return stage.Needs.HostBytes <= plan.Stage.HostBytes && stage.Needs.DeviceBytes <= plan.Stage.DeviceBytes &&
		stage.Needs.Threads <= plan.Stage.Threads
}

// stage runs one stage and books it.
func (r *run) stage(ctx context.Context, partition int, device string, stage *Stage) error {
	begin := r.clock.Now()
	err := guard(func() error { return stage.Run(ctx) })
	entry := Entry{
		Job: r.id, Name: r.job.Name, Partition: partition, Device: device, Stage: stage.Name,
		Start: begin.Sub(r.start), End: r.clock.Now().Sub(r.start), Failed: err != nil,
	}
	r.timeline.add(entry)
	if r.job.Observe != nil {
		if told := guard(func() error { r.job.Observe(entry); return nil }); err == nil {
			err = told
		}
	}
	if err != nil {
		return r.fail(partition, stage.Name, err)
	}
	return nil
}

// guard turns a panic of f into an error, so that what f was called under is given back as after any other.
func guard(f func() error) (err error) {
	defer status.Recover(op, &err)
	return f()
}

// border is where the end of the caller's context takes effect.
func border(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, op, "", err)
	}
	return nil
}

// fail puts the place in front of an error and keeps its kind. A bare context error is a cancellation.
func (r *run) fail(partition int, stage string, err error) error {
	var where []string
	if partition != WholeJob {
		where = append(where, fmt.Sprintf("partition %d", partition))
	}
	if stage != "" {
		where = append(where, "stage "+stage)
	}
	kind := status.KindOf(err)
	if e := (*status.Error)(nil); !errors.As(err, &e) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		kind = status.Cancelled
	}
	return status.Wrap(kind, cmp.Or(r.job.Op, op), strings.Join(where, ", "), err)
}
