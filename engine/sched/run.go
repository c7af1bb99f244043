package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	policy   Policy
	lastJob  atomic.Uint64
	desks    [classCount]*turnstile

	mu      sync.Mutex
	host    lane
	devices map[Device]*lanes
}

// Config is fixed for the life of a Scheduler.
type Config struct {
	Budget         *host.Budget
	Clock          Clock
	TimelineLength int    // stages that are kept, at least 1
	Policy         Policy // nil: Reservation
	// Workers is how many batches of all jobs each device has under way at once (gw); 0: as many as the policy says.
	Workers int
	// PartitionWorkers is how many host stages of batches run at once (pw); 0: two.
	PartitionWorkers int
}

// New makes a scheduler with the default policy that keeps the last timelineLength stages (at least 1).
func New(budget *host.Budget, clock Clock, timelineLength int, devices ...Device) *Scheduler {
	return NewWith(Config{Budget: budget, Clock: clock, TimelineLength: timelineLength}, devices...)
}

// NewWith makes a scheduler.
func NewWith(c Config, devices ...Device) *Scheduler {
	if c.Policy == nil {
		c.Policy = Reservation{}
	}
	s := &Scheduler{
		budget: c.Budget, clock: c.Clock, start: c.Clock.Now(), timeline: newTimeline(max(1, c.TimelineLength)), policy: c.Policy,
		host: newLane(host.LaneHost, cmp.Or(c.PartitionWorkers, hostSlots)), devices: make(map[Device]*lanes, len(devices)),
	}
	for class := range s.desks {
		s.desks[class] = newTurnstile(1)
	}
	for _, d := range devices {
		s.devices[d] = newLanes(d, c.Policy, c.Workers)
	}
	return s
}

// Timeline is what ran.
func (s *Scheduler) Timeline() *Timeline { return s.timeline }

// run is one call of Run. Its batches' stages run in goroutines of their own; all else is done by that of Run.
type run struct {
	*Scheduler
	id       uint64
	priority host.Priority
	job      *Job
	held     *host.Reservation
	plan     Plan

	next      int    // partition that no batch has had yet
	round     int    // batches that are left of a round, one for each share
	again     []redo // partitions that begin once more
	delivered int
	begun     int

	// Under the scheduler's mutex.
	batches  []*batch // under way, oldest first
	running  int      // stages
	stopped  bool     // nothing starts any more
	owes     int      // partitions that are in no batch yet
	events   []event
	finished []bool        // partitions whose result is there
	wake     chan struct{} // has an element where events or the end of all stages wait to be seen
}

// redo is a partition that begins once more, on another share than before where one is free.
type redo struct{ partition, share int }

// event is a stage that ended.
type event struct {
	entry Entry
	err   error
	again *redo
	more  bool // err asks for what was asked for already
}

// batch is one batch under way. Its stages' state is under the scheduler's mutex.
type batch struct {
	run      *run
	ctx      context.Context
	share    int
	first    int
	count    int
	number   int // in the order of beginning
	work     Batch
	lanes    *lanes
	stages   []host.Stage
	computes int // the first stage that computes
	ended    []bool
	open     int                           // stages that have not ended
	left     [phaseCount]int               // of them by phase
	parts    []int                         // of them of each partition
	redone   []bool                        // partitions that begin once more
	queue    [host.LaneCount][]int         // stages that have not been offered to their lane
	taken    [host.LaneCount]bool          // one stage is offered or runs
	places   [host.LaneCount]*item[*ready] // of the stage that is offered

	holds    [rightCount]bool
	place    *item[*batch] // in the queue of the right that it waits for
	waitsFor right
	room     bool // it has some on the device
	inside   bool // it stages when it may compute
}

// Run does a job and returns when it has ended, with all that it held given back. The error of a stage
// keeps its kind and gets the partition's index and the stage's name in front; besides, Run itself fails
// with NoMemory where the job can never fit, Cancelled when ctx ends, and Internal for a panic or a plan
// that a stage contradicts.
func (s *Scheduler) Run(ctx context.Context, job *Job) (err error) {
	r := &run{Scheduler: s, id: s.lastJob.Add(1), job: job, wake: make(chan struct{}, 1)}
	defer func() { r.held.Release() }()
	defer status.Recover(op, &err)
	status.Check(job.Class < classCount, op, "a class")
	came := job.Came
	if came.IsZero() {
		came = s.clock.Now()
	}
	r.priority = PriorityOf(job.Class, job.Deadline, came, r.id)
	if err := r.admit(ctx); err != nil {
		return err
	}
	r.owe(r.plan.Partitions)
	defer r.settled()
	if len(r.plan.First) > 0 {
		// As a batch it queues up for the device like any other.
		first := func(ctx context.Context) error {
			if r.begun > 0 {
				return nil
			}
			return r.begin(ctx, 0, WholeJob, 0, func() (Batch, error) { return fixed(r.plan.First), nil })
		}
		if err := r.all(ctx, first); err != nil {
			return err
		}
	}
	r.finished = make([]bool, r.plan.Partitions)
	return r.all(ctx, r.fill)
}

// owe notes how many partitions are in no batch yet.
func (r *run) owe(partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owes = partitions
}

// settled gives up what turns the job still has.
func (r *run) settled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letAll()
}

// letAll gives up the job's turns on all devices, where no batch is to come any more; the caller holds the mutex.
func (r *run) letAll() {
	for i := range r.plan.Shares {
		r.let(r.devices[r.plan.Shares[i].Device])
	}
}

// let gives up the job's turn on a device, whose next batch has come; the caller holds the mutex.
func (r *run) let(d *lanes) {
	if d.compute.owed == r {
		d.compute.owed = nil
		r.startReady(&d.compute)
	}
}

// fixed is a list of stages in the form of a batch.
type fixed []host.Stage

func (f fixed) Stages() []host.Stage { return f }
func (f fixed) Close()               {}

// all begins batches, sees to those that end, and returns when none is left, or after the first failure when
// nothing runs any more.
func (r *run) all(ctx context.Context, fill func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.abandon(cancel)
	for {
		if err == nil {
			err = fill(ctx)
		}
		if err != nil {
			cancel()
			r.stop()
		}
		events, batches := r.wait(ctx)
		for _, e := range events {
			// Who has given up is told nothing more.
			if told := r.see(&e, err == nil && ctx.Err() == nil); err == nil {
				err = told
			}
		}
		if err == nil && ctx.Err() != nil {
			err = r.interrupted(ctx)
		}
		if err == nil {
			err = r.closeEnded()
		}
		if err == nil {
			err = r.deliver(ctx)
		}
		switch {
		case err != nil && r.isOver():
			return err
		case err == nil && batches == 0 && len(events) == 0:
			return nil
		}
	}
}

// wait returns what happened since the last call, waiting until something has: stages ended, ctx did, all stages of a
// job that was stopped have, or there is nothing to wait for.
func (r *run) wait(ctx context.Context) (events []event, batches int) {
	for {
		r.mu.Lock()
		events, r.events = r.events, nil
		batches = len(r.batches)
		stopped, running := r.stopped, r.running
		r.mu.Unlock()
		if len(events) > 0 || batches == 0 || stopped && running == 0 {
			return events, batches
		}
		if stopped {
			<-r.wake
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil, batches
		}
	}
}

// see tells the job of a stage that ended, if it is to be told, and remembers a partition that is to begin once more.
func (r *run) see(e *event, tell bool) error {
	var told error
	if tell && r.job.Observe != nil {
		told = guard(func() error { r.job.Observe(e.entry); return nil })
	}
	switch {
	case e.again != nil:
		r.again = append(r.again, *e.again)
		if errors.Is(e.err, ErrAlone) {
			r.mu.Lock()
			r.plan.Shares[e.again.share].Ahead = 1
			r.mu.Unlock()
		}
		return r.fail(e.entry.Partition, e.entry.Stage, told)
	case e.err != nil && !e.more:
		return r.fail(e.entry.Partition, e.entry.Stage, e.err)
	default:
		return r.fail(e.entry.Partition, e.entry.Stage, told)
	}
}

// interrupted is the end of the context, at the stage that comes next.
func (r *run) interrupted(ctx context.Context) error {
	partition, stage := r.comesNext()
	return r.fail(partition, stage, border(ctx))
}

// comesNext is a stage that has not ended; WholeJob and no name where there is none.
func (r *run) comesNext() (partition int, stage string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.batches) > 0 {
		b := r.batches[0]
		if i := slices.Index(b.ended, false); i >= 0 {
			return b.index(&b.stages[i]), b.stages[i].Name
		}
	}
	return WholeJob, ""
}

// closeEnded closes the batches whose stages have all ended.
func (r *run) closeEnded() (err error) {
	over := r.takeEnded()
	for _, b := range over {
		if closed := r.close(b); err == nil {
			err = closed
		}
	}
	return err
}

// takeEnded takes the batches off the list whose stages have all ended.
func (r *run) takeEnded() (over []*batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []*batch
	for _, b := range r.batches {
		if b.open == 0 {
			over = append(over, b)
		} else {
			left = append(left, b)
		}
	}
	r.batches = left
	return over
}

// close gives back what a batch holds, and only then its rights: the next one finds its memory free.
func (r *run) close(b *batch) error {
	err := r.fail(b.first, "", guard(func() error { b.work.Close(); return nil }))
	r.mu.Lock()
	defer r.mu.Unlock()
	b.dismiss()
	return err
}

// abandon closes what is left when all returns. After a failure nothing of it runs; after a panic on the way, stages may, and are waited for.
func (r *run) abandon(cancel func()) {
	r.mu.Lock()
	left, running := r.batches, r.running
	r.mu.Unlock()
	if len(left) == 0 && running == 0 {
		return
	}
	cancel()
	r.stop()
	for r.mu.Lock(); r.running > 0; r.mu.Lock() {
		r.mu.Unlock()
		<-r.wake
	}
	r.batches = nil
	r.mu.Unlock()
	for _, b := range left {
		_ = r.close(b) // the job has failed before
	}
}

// deliver hands over the results whose turn it is.
func (r *run) deliver(ctx context.Context) error {
	for r.delivered < len(r.finished) {
		r.mu.Lock()
		finished := r.finished[r.delivered]
		r.mu.Unlock()
		if !finished {
			return nil
		}
		err := border(ctx)
		if err == nil {
			err = guard(func() error { return r.job.Deliver(r.delivered) })
		}
		if err != nil {
			return r.fail(r.delivered, "", err)
		}
		r.delivered++
	}
	return nil
}

// fill begins batches as long as a share may have one more.
func (r *run) fill(ctx context.Context) error {
	for {
		share := r.freest()
		if share < 0 {
			return nil
		}
		first, count := r.next, 0
		switch {
		case len(r.again) > 0:
			i := max(0, slices.IndexFunc(r.again, func(a redo) bool { return a.share != share }))
			first, count = r.again[i].partition, 1
			r.again = slices.Delete(r.again, i, i+1)
		case r.next < r.plan.Partitions:
			// No share takes so many that another one has nothing to do: a round gives each a batch, and what is less than full batches for all is
			// dealt out evenly.
			if r.round == 0 {
				r.round = len(r.plan.Shares)
			}
			even := (r.plan.Partitions - r.next + r.round - 1) / r.round
			count = min(max(1, r.plan.Shares[share].Batch), even)
			r.next += count
			r.round--
		default:
			return nil
		}
		if err := r.begin(ctx, share, first, count, func() (Batch, error) { return r.job.Begin(share, first, count) }); err != nil {
			return err
		}
	}
}

// freest is the share with the fewest batches that may have one more; -1 where none may.
func (r *run) freest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make([]int, len(r.plan.Shares))
	for _, b := range r.batches {
		counts[b.share]++
	}
	best := -1
	for i, n := range counts {
		if n < max(1, r.plan.Shares[i].Ahead) && (best < 0 || n < counts[best]) {
			best = i
		}
	}
	return best
}

// begin makes a batch and offers its first stages.
func (r *run) begin(ctx context.Context, share, first, count int, make func() (Batch, error)) error {
	if err := border(ctx); err != nil {
		return r.fail(first, "", err)
	}
	r.begun++
	b := &batch{run: r, ctx: ctx, share: share, first: first, count: count, number: r.begun, lanes: r.devices[r.plan.Shares[share].Device]}
	if err := guard(func() (err error) { b.work, err = make(); return err }); err != nil {
		return r.fail(first, "", err)
	}
	err := guard(func() error { b.stages = b.work.Stages(); return b.prepare() })
	if err == nil {
		err = border(ctx)
	}
	if err != nil {
		_ = r.close(b) // the first error goes first
		return r.fail(first, "", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, b)
	r.owes -= count
	b.offer()
	if r.owes > 0 {
		r.let(b.lanes)
	} else {
		r.letAll()
	}
	return nil
}

// prepare checks the stages against the plan and queues them up.
func (b *batch) prepare() error {
	limit := b.run.plan.Stage
	b.ended, b.open, b.parts = make([]bool, len(b.stages)), len(b.stages), make([]int, max(1, b.count))
	b.redone = make([]bool, len(b.parts))
	b.computes = slices.IndexFunc(b.stages, func(s host.Stage) bool { return s.Lane == host.LaneDevice })
	if b.computes < 0 {
		b.computes = len(b.stages)
	}
	for i := range b.stages {
		s := &b.stages[i]
		if s.Needs.HostBytes > limit.HostBytes || s.Needs.DeviceBytes > limit.DeviceBytes || s.Needs.Threads > limit.Threads {
			return b.run.fail(b.index(s), s.Name, status.New(status.Internal, op, "needs", fmt.Sprintf("at most the plan's %+v", limit), fmt.Sprintf("%+v", s.Needs)))
		}
		status.Check(s.Lane < host.LaneCount && s.Partition >= host.WholeBatch && s.Partition < len(b.parts), op, "stages of the batch's partitions and lanes")
		for _, earlier := range s.After {
			status.Check(earlier >= 0 && earlier < i, op, "stages after earlier ones")
		}
		b.queue[s.Lane] = append(b.queue[s.Lane], i)
		b.left[b.phase(i)]++
		if s.Partition >= 0 {
			b.parts[s.Partition]++
		}
	}
	for _, queue := range b.queue {
		status.Check(len(queue) == 0 || !b.stages[queue[len(queue)-1]].Keep, op, "a lane given up at the end")
	}
	return nil
}

// index is the partition of the job that a stage is of; WholeJob where it is of several.
func (b *batch) index(s *host.Stage) int {
	switch {
	case s.Partition >= 0:
		return b.first + s.Partition
	case b.count == 1:
		return b.first
	}
	return WholeJob
}

// lane is where the batch's stages of that kind run.
func (b *batch) lane(l host.Lane) *lane {
	switch l {
	case host.LaneCopy:
		return &b.lanes.copy
	case host.LaneDevice:
		return &b.lanes.compute
	}
	return &b.run.host
}

// offer queues the stages that have become ready up for their lanes, and starts what may start. A panic ends the batch's job, whoever
// called. The caller holds the scheduler's mutex.
func (b *batch) offer() {
	var err error
	defer func() {
		if err != nil {
			b.run.broken(err)
		}
	}()
	defer status.Recover(op, &err)
	for l := range host.LaneCount {
		if b.taken[l] || len(b.queue[l]) == 0 || b.run.stopped {
			continue
		}
		i := b.queue[l][0]
		if slices.ContainsFunc(b.stages[i].After, func(earlier int) bool { return !b.ended[earlier] }) || !b.permitted(i) {
			continue
		}
		b.queue[l], b.taken[l] = b.queue[l][1:], true
		lane := b.lane(l)
		lane.offer(newReady(b, i))
		b.run.startReady(lane)
	}
}

// startReady starts what a lane has room for; the caller holds the mutex.
func (s *Scheduler) startReady(l *lane) {
	for {
		kept := l.kept
		next := l.take()
		if next == nil {
			return
		}
		if next.batch.run.stopped || next.batch.ctx.Err() != nil { // nothing starts after the end of its context, which Run sees by itself
			l.busy--
			l.heavy -= next.weight
			l.kept = kept
			continue
		}
		next.batch.run.running++
		// Nothing stands between the slot and the goroutine that gives it back.
		go func() {
			r, booked := next.batch.run, false
			var err error
			defer func() { // after a panic in the scheduler itself
				if err == nil {
					return
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				if !booked {
					r.running--
					l.busy--
					l.heavy -= next.weight
				}
				r.broken(err)
			}()
			defer status.Recover(op, &err)
			begin := r.clock.Now()
			ended := guard(func() error { return next.batch.stages[next.stage].Run(next.batch.ctx) })
			entry := next.entry(begin, r.clock.Now(), ended)
			r.timeline.add(entry)

			r.mu.Lock()
			defer r.mu.Unlock()
			booked = true
			r.running--
			l.busy--
			l.heavy -= next.weight
			next.batch.book(next.stage, l, event{entry: entry, err: ended})
		}()
	}
}

// entry is what the timeline says of a stage.
func (a *ready) entry(begin, end time.Time, err error) Entry {
	b, stage := a.batch, &a.batch.stages[a.stage]
	return Entry{
		Job: b.run.id, Name: b.run.job.Name, Partition: b.index(stage), Device: b.run.plan.Shares[b.share].Device.Name(), Lane: stage.Lane, Stage: stage.Name,
		Start: begin.Sub(b.run.start), End: end.Sub(b.run.start), Failed: err != nil,
	}
}

// broken ends a job after a panic of the scheduler's own; the caller holds the mutex.
func (r *run) broken(err error) {
	r.stopped = true
	r.tell(event{err: err, entry: Entry{Partition: WholeJob}})
}

// tell leaves an event for Run; the caller holds the mutex.
func (r *run) tell(e event) {
	r.events = append(r.events, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// book notes that a stage has ended, and starts what waited for it; the caller holds the mutex.
func (b *batch) book(i int, l *lane, e event) {
	r, stage := b.run, &b.stages[i]
	again := e.err != nil && stage.Partition >= 0 && errors.Is(e.err, ErrAgain)
	if again { // stages of two lanes may both ask for it
		if e.more = b.redone[stage.Partition]; !e.more {
			e.again = &redo{e.entry.Partition, b.share}
			r.owes++
		}
		b.redone[stage.Partition] = true
	}
	b.taken[stage.Lane] = false
	b.end(i)
	if again {
		b.skip(stage.Partition)
		b.unkeep()
	} else if stage.Partition >= 0 && b.parts[stage.Partition] == 0 && e.err == nil && !b.redone[stage.Partition] && b.count > 0 {
		r.finished[b.first+stage.Partition] = true
	}
	if e.err != nil && !again {
		r.stopped = true
		r.withdraw()
	}
	r.tell(e)
	if rest := b.queue[stage.Lane]; stage.Keep && len(rest) > 0 && b.phase(rest[0]) == b.phase(i) {
		l.kept = b
	}
	b.settle()
	b.offer()
	// The next batch begins when the job's goroutine has seen this. Until then no lower class has the device, which would keep it for a stage, or a batch.
	if stage.Lane == host.LaneDevice && len(b.queue[host.LaneDevice]) == 0 && r.owes > 0 && !r.stopped && (l.owed == nil || l.owed.priority.Class < r.priority.Class) {
		l.owed = r
	}
	r.startReady(l)
}

// end books a stage that needs no more running; the caller holds the mutex.
func (b *batch) end(i int) {
	b.ended[i] = true
	b.open--
	b.left[b.phase(i)]--
	if p := b.stages[i].Partition; p >= 0 {
		b.parts[p]--
	}
}

// skip leaves out what is left of a partition; the caller holds the mutex.
func (b *batch) skip(partition int) {
	for l := range host.LaneCount {
		if place := b.places[l]; place != nil && b.stages[place.value.stage].Partition == partition {
			b.lane(l).withdraw(b)
			b.taken[l] = false
			b.end(place.value.stage)
		}
		b.queue[l] = slices.DeleteFunc(b.queue[l], func(i int) bool {
			if b.stages[i].Partition == partition {
				b.end(i)
			}
			return b.stages[i].Partition == partition
		})
	}
}

// unkeep gives up the lanes that the batch keeps and has no stages for any more; the caller holds the mutex.
func (b *batch) unkeep() {
	for l := range host.LaneCount {
		if lane := b.lane(l); lane.kept == b && len(b.queue[l]) == 0 && !b.taken[l] {
			lane.kept = nil
			b.run.startReady(lane)
		}
	}
}

// stop lets no further stage of the job start.
func (r *run) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.withdraw()
}

// isOver says whether nothing of the job runs or will start.
func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && r.running == 0
}

// withdraw leaves all queues; the caller holds the mutex. Lanes that a batch keeps, and its rights, are free once it is closed.
func (r *run) withdraw() {
	for _, b := range r.batches {
		for l := range host.LaneCount {
			b.lane(l).withdraw(b)
		}
		b.giveUp()
	}
}

// admit takes the job past the desk of its class: prepared, planned, and everything reserved. Jobs at the desks of several classes can hold
// what the others want: then the last in order gives back what it has and begins once more.
func (r *run) admit(ctx context.Context) error {
	for {
		err := r.prepare(ctx)
		if !errors.Is(err, host.ErrGiveBack) || r.job.Drop == nil {
			return err
		}
		if err := guard(func() error { r.job.Drop(); return nil }); err != nil {
			return r.fail(WholeJob, "", err)
		}
		r.held.Release()
		r.held = nil
	}
}

// prepare is one go at admit.
func (r *run) prepare(ctx context.Context) error {
	if err := border(ctx); err != nil {
		return err
	}
	desk := r.desks[r.job.Class]
	if err := desk.enter(ctx, r.priority, r.job.Queued); err != nil {
		return err
	}
	defer desk.leave()
	for i := range r.job.Prepare {
		stage := &r.job.Prepare[i]
		if err := border(ctx); err != nil {
			return r.fail(WholeJob, stage.Name, err)
		}
		if err := r.reserve(ctx, stage.Needs); err != nil {
			return r.fail(WholeJob, stage.Name, err)
		}
		if err := r.stage(ctx, stage); err != nil {
			return err
		}
	}
	if err := border(ctx); err != nil {
		return err
	}
	if err := guard(func() (err error) { r.plan, err = r.job.Plan(); return err }); err != nil {
		return err
	}
	status.Check(len(r.plan.Shares) > 0, op, "a plan with a device")
	for _, share := range r.plan.Shares {
		status.Check(r.devices[share.Device] != nil, op, "a plan for devices of the scheduler")
	}
	return r.reserve(ctx, r.plan.Needs.Plus(r.plan.Stage), r.plan.Shared...)
}

// reserve adds to what the job holds. Threads are only compared with the ceiling: the lanes' slots bound
// how many stages keep them busy, and a job must not keep threads from others between its stages.
func (r *run) reserve(ctx context.Context, needs host.Needs, shared ...host.Shared) (err error) {
	if err := r.budget.Fits(op, host.Needs{Threads: needs.Threads}); err != nil {
		return err
	}
	needs.Threads = 0
	if r.held == nil {
		r.held = r.budget.Open(r.priority)
	}
	return r.held.Grow(ctx, needs, shared...)
}

// stage runs a stage of the whole job at the desk and books it.
func (r *run) stage(ctx context.Context, stage *host.Stage) error {
	begin := r.clock.Now()
	err := guard(func() error { return stage.Run(ctx) })
	entry := Entry{
		Job: r.id, Name: r.job.Name, Partition: WholeJob, Stage: stage.Name,
		Start: begin.Sub(r.start), End: r.clock.Now().Sub(r.start), Failed: err != nil,
	}
	r.timeline.add(entry)
	return r.see(&event{entry: entry, err: err}, true)
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

// fail puts the place in front of an error and keeps its kind; nil stays nil. A bare context error is a cancellation.
func (r *run) fail(partition int, stage string, err error) error {
	if err == nil {
		return nil
	}
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
