package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// The fault simulator. A seed makes jobs, devices, a policy and faults; the scheduler runs them in virtual time.
//
// Faults: a stage that fails, panics or asks for its partition once more; callbacks that fail or panic (Plan, Begin, Stages, Deliver,
// Observe, Close); a device that is lost for a while, or slow; a job that can never fit; others that take memory; a
// context that is cancelled or times out at any instant, also before its job begins.
//
// What must hold, looked at in each callback and at the end: use stays within the budget and comes back to nothing; a job ends once, nothing of
// it runs afterwards, and each batch is closed once; stages follow what they name; no more stages at once than a lane has slots; a lane that is kept
// is nobody else's; the policies' rights are each one batch's; results come in order; a job without a fault succeeds; no stage, and no
// memory, goes to a lower class while a higher one waits for it; nothing hangs; and the next job works.

// flaky is a device of the fault simulator.
type flaky struct {
	name                       string
	slots                      int
	lostFrom, lostTo, slowFrom time.Duration // since the start; 0: never
	slowTo                     time.Duration
	computing, copying         int          // stages
	inside                     map[*lot]int // batches with stages on it now, and how many
	kept                       *lot
}

func (d *flaky) Name() string { return d.name }
func (d *flaky) Slots() int   { return d.slots }

type fault uint8

const (
	noFault fault = iota
	fails
	panics
	again
)

// planned is a stage of each batch.
type plannedStage struct {
	host.Stage
	time time.Duration
}

// errand is a job.
type errand struct {
	*world
	number   int
	class    sched.Class
	deadline time.Duration
	start    time.Duration
	prepare  []host.Needs
	needs    host.Needs
	shared   bool
	parts    int
	shares   []sched.Share
	stages   func(count int) []plannedStage
	faults   map[string]fault
	ends     time.Duration // when its context does; 0: never
	cancels  bool          // by a cancel and not a time-out

	// Under the world's mutex.
	fired     map[status.Kind]bool
	once      map[string]bool // places whose fault has fired
	delivered int
	done      map[int]bool // partitions of which all has run
	running   int
	over      bool
	planAt    time.Duration // when it began to wait for memory; 0: it does not
	batches   int           // begun and not closed
}

// lot is a batch.
type lot struct {
	*errand
	device  *flaky
	first   int
	stages  []plannedStage
	ended   []bool
	ready   []time.Duration // when each stage became ready, 0 before
	began   []bool
	closed  bool
	running int
}

// started is a stage that started.
type started struct {
	lot  *lot
	lane host.Lane
	kept bool // its batch kept the lane
	at   time.Duration
}

// admission is a job that got its memory.
type admission struct {
	who *errand
	at  time.Duration
}

// world is one run.
type world struct {
	t        *testing.T
	seed     uint64
	policy   sched.Policy
	plain    bool // stages go by class alone: no worker, right or room is waited for
	sched    *sched.Scheduler
	budget   *host.Budget
	devices  []*flaky
	errands  []*errand
	began    time.Time
	hostUsed int

	mu      sync.Mutex
	started []started
	letIn   []admission
	bad     []string
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// wrong notes what does not hold; the caller holds mu.
func (w *world) wrong(format string, args ...any) {
	if len(w.bad) < 5 {
		w.bad = append(w.bad, fmt.Sprintf("at %v: ", w.now())+fmt.Sprintf(format, args...))
	}
}

// look is done in each callback; the caller holds mu.
func (e *errand) look(where string) {
	if u := e.budget.Usage(); u.Used.HostBytes > u.Ceiling.HostBytes || u.Used.DeviceBytes > u.Ceiling.DeviceBytes || u.Used.HostBytes < 0 {
		e.wrong("the budget: %+v", u)
	}
	if e.over {
		e.wrong("job %d: %s after its end", e.number, where)
	}
}

// at lets a place's fault happen, once.
func (e *errand) at(place string) error {
	e.mu.Lock()
	e.look(place)
	f := e.faults[place]
	if e.once[place] {
		f = noFault
	}
	e.once[place] = e.once[place] || f != noFault
	switch f {
	case fails:
		e.fired[status.Params] = true
	case panics:
		e.fired[status.Internal] = true
	}
	e.mu.Unlock()
	switch f {
	case fails:
		return status.New(status.Params, "test", place, "", "")
	case panics:
		panic("injected at " + place)
	case again:
		return fmt.Errorf("%w: test", sched.ErrAgain)
	}
	return nil
}

func (l *lot) Stages() (all []host.Stage) {
	if err := l.at("stages"); err != nil {
		panic(err)
	}
	for i, s := range l.stages {
		s.Run = func(ctx context.Context) error { return l.run(ctx, i) }
		all = append(all, s.Stage)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.becomeReady()
	return all
}

// becomeReady notes which stages have come to be ready; the caller holds mu.
func (l *lot) becomeReady() {
	var blocked [host.LaneCount]bool
	for i, s := range l.stages {
		if l.ended[i] {
			continue
		}
		if !blocked[s.Lane] && l.ready[i] == 0 && !slices.ContainsFunc(s.After, func(k int) bool { return !l.ended[k] }) {
			l.ready[i] = max(1, l.now())
		}
		blocked[s.Lane] = true
	}
}

func (l *lot) run(ctx context.Context, i int) (err error) {
	s := &l.stages[i]
	place := fmt.Sprintf("%d/%s", l.first+max(0, s.Partition), s.Name)
	l.mu.Lock()
	l.look(place)
	l.starts(i)
	work := s.time
	if now := l.now(); s.Lane != host.LaneHost && now >= l.device.slowFrom && now < l.device.slowTo {
		work *= 20
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ends(i, err)
	}()
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return ctx.Err()
	}
	if now := l.now(); s.Lane != host.LaneHost && now >= l.device.lostFrom && now < l.device.lostTo {
		l.mu.Lock()
		l.fired[status.NoDevice] = true
		l.mu.Unlock()
		return status.New(status.NoDevice, "test", place, "", "")
	}
	return l.at(place)
}

// starts books a stage and looks whether it may start; the caller holds mu.
func (l *lot) starts(i int) {
	s, d := &l.stages[i], l.device
	name := fmt.Sprintf("job %d, %s of partitions from %d", l.number, s.Name, l.first)
	l.errand.running++
	l.running++
	if l.began[i] || l.ended[i] || l.closed {
		l.wrong("%s: begun %v, ended %v, closed %v", name, l.began[i], l.ended[i], l.closed)
	}
	l.began[i] = true
	for _, k := range s.After {
		if !l.ended[k] {
			l.wrong("%s before %s", name, l.stages[k].Name)
		}
	}
	for k := range i {
		if l.stages[k].Lane == s.Lane && !l.ended[k] {
			l.wrong("%s before %s, of its lane", name, l.stages[k].Name)
		}
	}
	kept := false
	switch s.Lane {
	case host.LaneHost:
		if l.hostUsed++; l.hostUsed > 2 {
			l.wrong("%s: %d host stages at once", name, l.hostUsed)
		}
	case host.LaneCopy:
		if d.copying++; d.copying > 1 {
			l.wrong("%s: %d copies at once", name, d.copying)
		}
	case host.LaneDevice:
		if d.computing++; d.computing > d.slots {
			l.wrong("%s: %d stages compute at once", name, d.computing)
		}
		if kept = d.kept == l; d.kept != nil && !kept {
			l.wrong("%s where job %d keeps the lane", name, d.kept.number)
		}
		d.kept = nil
	}
	if s.Lane != host.LaneHost {
		d.inside[l]++
		if name := l.policy.Name(); len(d.inside) > 1 && (name == "single" || name == "split") {
			l.wrong("%d batches on %s at once", len(d.inside), d.name)
		}
	}
	if !l.plain {
		return
	}
	// Of stages that start at the same instant no order is known. A heavy one may wait for another heavy one.
	for _, o := range l.started {
		if o.lot.class < l.class && o.lane == s.Lane && (s.Lane == host.LaneHost || o.lot.device == d) && s.Needs.Threads == 1 && !o.kept && o.at > l.ready[i] && o.at < l.now() {
			l.wrong("%s waits since %v, while a stage of job %d, of a lower class, started at %v", name, l.ready[i], o.lot.number, o.at)
		}
	}
	l.started = append(l.started, started{l, s.Lane, kept, l.now()})
}

// ends books a stage that has ended; the caller holds mu.
func (l *lot) ends(i int, err error) {
	s, d := &l.stages[i], l.device
	l.ended[i] = true
	l.errand.running--
	l.running--
	switch s.Lane {
	case host.LaneHost:
		l.hostUsed--
	case host.LaneCopy:
		d.copying--
	case host.LaneDevice:
		d.computing--
	}
	if s.Lane != host.LaneHost {
		if d.inside[l]--; d.inside[l] == 0 {
			delete(d.inside, l)
		}
	}
	if s.Partition >= 0 && err == nil {
		l.done[l.first+s.Partition] = true
		for k := range l.stages {
			if l.stages[k].Partition == s.Partition && !l.ended[k] {
				l.done[l.first+s.Partition] = false
			}
		}
	}
	if errors.Is(err, sched.ErrAgain) { // what is left of its partition does not run
		for k := range l.stages {
			if o := &l.stages[k]; o.Partition == s.Partition && !l.began[k] {
				l.ended[k] = true
			}
		}
		if d.kept == l && !l.more() {
			d.kept = nil
		}
		err = nil
	}
	if s.Lane == host.LaneDevice && s.Keep && err == nil && l.more() {
		d.kept = l
	}
	l.becomeReady()
}

// more says whether stages are left that compute; the caller holds mu.
func (l *lot) more() bool {
	for i, ended := range l.ended {
		if !ended && l.stages[i].Lane == host.LaneDevice {
			return true
		}
	}
	return false
}

func (l *lot) Close() {
	l.mu.Lock()
	if l.closed || l.running > 0 {
		l.wrong("job %d: partitions from %d closed %v, %d stages running", l.number, l.first, l.closed, l.running)
	}
	l.closed = true
	l.batches--
	if l.device.kept == l {
		l.device.kept = nil
	}
	l.mu.Unlock()
	if err := l.at("close"); err != nil {
		panic(err)
	}
}

// job is the errand as the scheduler takes it.
func (e *errand) job() *sched.Job {
	j := &sched.Job{Name: fmt.Sprint("job ", e.number), Op: "test.Run", Class: e.class, Drop: func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.planAt = 0
	}}
	if e.deadline > 0 {
		j.Deadline = e.began.Add(e.deadline)
	}
	for i, needs := range e.prepare {
		j.Prepare = append(j.Prepare, host.Stage{Name: fmt.Sprint("prepare", i), Needs: needs, Run: func(ctx context.Context) error {
			select {
			case <-time.After(time.Duration(i+1) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			return e.at(fmt.Sprint("prepare", i))
		}})
	}
	j.Plan = func() (sched.Plan, error) {
		p := sched.Plan{Partitions: e.parts, Shares: e.shares, Needs: e.needs, Stage: host.Needs{Threads: 2}}
		if e.shared {
			p.Shared = []host.Shared{{Key: "points", Needs: host.Needs{DeviceBytes: 20}}}
		}
		err := e.at("plan")
		e.mu.Lock()
		e.planAt = max(1, e.now())
		e.mu.Unlock()
		return p, err
	}
	j.Begin = func(share, first, count int) (sched.Batch, error) {
		if err := e.at("begin"); err != nil {
			return nil, err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.planAt > 0 {
			e.letIn = append(e.letIn, admission{e, e.now()})
		}
		e.waited()
		e.batches++
		stages := e.stages(count)
		return &lot{errand: e, device: e.shares[share].Device.(*flaky), first: first, stages: stages, ended: make([]bool, len(stages)),
			ready: make([]time.Duration, len(stages)), began: make([]bool, len(stages))}, nil
	}
	j.Deliver = func(i int) error {
		e.mu.Lock()
		if i != e.delivered || !e.done[i] {
			e.wrong("job %d: partition %d delivered after %d, all of it has run: %v", e.number, i, e.delivered, e.done[i])
		}
		e.delivered++
		e.mu.Unlock()
		return e.at("deliver")
	}
	j.Observe = func(sched.Entry) {
		if err := e.at("observe"); err != nil {
			panic(err)
		}
	}
	return j
}

// waited is told that the errand waits for memory no more, and looks who was let in meanwhile; the caller holds mu.
func (e *errand) waited() {
	for _, a := range e.letIn {
		if e.planAt > 0 && a.who.class < e.class && a.at > e.planAt && a.at < e.now() {
			e.wrong("job %d was let in at %v while job %d, of a higher class, waited for memory since %v", a.who.number, a.at, e.number, e.planAt)
		}
	}
	e.planAt = 0
}

// run submits the errand and looks at how it ends.
func (e *errand) run() {
	time.Sleep(e.start)
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	switch {
	case e.ends > 0 && e.cancels:
		ctx, cancel = context.WithCancel(ctx)
		stop := time.AfterFunc(e.ends-e.start, cancel)
		defer stop.Stop()
	case e.ends > 0:
		ctx, cancel = context.WithTimeout(ctx, e.ends-e.start)
	}
	defer cancel()
	err := e.sched.Run(ctx, e.job())
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		e.fired[status.Cancelled] = true
	}
	e.waited()
	e.over = true
	if e.running != 0 || e.batches != 0 {
		e.wrong("job %d has ended with %d stages running and %d batches open", e.number, e.running, e.batches)
	}
	kind := status.KindOf(err)
	switch {
	case err == nil && (e.delivered != e.parts || e.fired[status.NoDevice] || e.fired[status.Params]):
		e.wrong("job %d succeeds, %d of %d partitions delivered, faults %v", e.number, e.delivered, e.parts, e.fired)
	case err != nil && !e.fired[kind]:
		e.wrong("job %d: an error that nobody made: %v; faults %v", e.number, err, e.fired)
	}
}

// newWorld makes a run of a seed.
func newWorld(t *testing.T, seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	one := func(n int) bool { return random.IntN(n) == 0 }
	pause := func(limit int) time.Duration { // no two alike
		return time.Duration(1+random.IntN(limit))*time.Millisecond + time.Duration(random.IntN(1e6))
	}
	w := &world{t: t, seed: seed, began: time.Now()}
	w.budget = host.NewBudget(host.Needs{HostBytes: 100, DeviceBytes: 100, Threads: 2})
	var devices []sched.Device
	for i := range 1 + random.IntN(3) {
		d := &flaky{name: fmt.Sprint("device ", i), slots: 1, inside: map[*lot]int{}}
		if one(8) {
			d.lostFrom = pause(100)
			d.lostTo = d.lostFrom + pause(50)
		}
		if one(8) {
			d.slowFrom = pause(100)
			d.slowTo = d.slowFrom + pause(50)
		}
		w.devices = append(w.devices, d)
		devices = append(devices, d)
	}
	config := sched.Config{Budget: w.budget, Clock: sched.SystemClock{}, TimelineLength: 10, Policy: sched.Policies()[0]}
	rooms := false
	if one(2) {
		config.Policy = sched.Policies()[random.IntN(4)]
		config.Workers = random.IntN(4)
		rooms = one(2)
	}
	w.policy, w.plain = config.Policy, config.Workers == 0 && config.Policy == sched.Policies()[0] && !rooms
	w.sched = sched.NewWith(config, devices...)
	for i := range 2 + random.IntN(7) {
		e := &errand{world: w, number: i, class: sched.Class(random.IntN(4)), start: pause(40), parts: 1 + random.IntN(4), shared: one(3),
			faults: map[string]fault{}, fired: map[status.Kind]bool{}, once: map[string]bool{}, done: map[int]bool{}}
		if one(3) {
			e.deadline = e.start + pause(100)
		}
		for range random.IntN(3) {
			e.prepare = append(e.prepare, host.Needs{HostBytes: int64(random.IntN(30)), Threads: 1})
		}
		e.needs = host.Needs{HostBytes: int64(random.IntN(40)), DeviceBytes: int64(random.IntN(80))}
		if one(3) { // close to all that there is, so that jobs at several desks are in each other's way
			e.needs.HostBytes = 100
			for _, n := range e.prepare {
				e.needs.HostBytes -= n.HostBytes
			}
		}
		if one(20) {
			e.needs.DeviceBytes = 101
			e.fired[status.NoMemory] = true
		}
		for _, k := range random.Perm(len(devices))[:1+random.IntN(len(devices))] {
			share := sched.Share{Device: devices[k], Batch: 1 + random.IntN(3), Ahead: 1 + random.IntN(3)}
			if rooms {
				share.Rooms = 1 + random.IntN(2)
			}
			e.shares = append(e.shares, share)
		}
		e.stages = randomStages(random.Uint64())
		one := e.stages(1)
		if random.IntN(3) == 0 {
			for range 1 + random.IntN(2) {
				s := one[random.IntN(len(one))]
				places := []string{"plan", "begin", "stages", "deliver", "observe", "close", "prepare0"}
				place, f := places[random.IntN(len(places))], fault(1+random.IntN(2))
				if random.IntN(2) == 0 {
					place = fmt.Sprintf("%d/%s", random.IntN(e.parts), s.Name)
					if s.Partition >= 0 && random.IntN(2) == 0 {
						f = again
					}
				}
				e.faults[place] = f
			}
		}
		if random.IntN(3) == 0 {
			e.ends, e.cancels = e.start+pause(80), random.IntN(2) == 0
			if random.IntN(8) == 0 {
				e.ends = e.start // before it begins
			}
		}
		w.errands = append(w.errands, e)
	}
	return w
}

// randomStages makes the stages of batches of some shape, the same ones for each seed.
func randomStages(seed uint64) func(count int) []plannedStage {
	return func(count int) (all []plannedStage) {
		random := rand.New(rand.NewPCG(seed, uint64(count)))
		add := func(name string, partition int) {
			s := plannedStage{time: time.Duration(1+random.IntN(8))*time.Millisecond + time.Duration(random.IntN(1e6))}
			s.Name, s.Partition, s.Lane, s.Needs.Threads = name, partition, host.Lane(random.IntN(3)), 1+random.IntN(2)
			for i := range all {
				if random.IntN(3) == 0 {
					s.After = append(s.After, i)
				}
			}
			all = append(all, s)
		}
		steps := 1 + random.IntN(4)
		for k := range count {
			for i := range steps {
				add(fmt.Sprint("step", i), k)
			}
		}
		if random.IntN(2) == 0 {
			add("together", host.WholeBatch)
		}
		last := -1
		for i := range all {
			if all[i].Lane == host.LaneDevice {
				if last >= 0 {
					all[last].Keep = random.IntN(2) == 0
				}
				last = i
			}
		}
		return all
	}
}

// simulate runs a seed.
func (w *world) simulate() {
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
		case <-time.After(24 * time.Hour):
			panic(fmt.Sprintf("SEALC2_SEED=%d: something hangs", w.seed))
		}
	}()
	var all sync.WaitGroup
	for _, e := range w.errands {
		all.Go(e.run)
	}
	if w.seed%4 == 0 {
		all.Go(func() { // another program's need
			time.Sleep(time.Duration(w.seed%50) * time.Millisecond)
			r, err := w.budget.Reserve(context.Background(), host.Needs{HostBytes: 60, DeviceBytes: 60})
			if err != nil {
				panic(err)
			}
			time.Sleep(20 * time.Millisecond)
			r.Release()
		})
	}
	all.Wait()
	time.Sleep(time.Second) // what is lost or slow is back
	for i, d := range w.devices {
		next := &errand{world: w, number: 100 + i, class: sched.PoRep, parts: 3, needs: host.Needs{HostBytes: 100, DeviceBytes: 100},
			shares: []sched.Share{{Device: d, Batch: 2, Ahead: 2}}, stages: randomStages(w.seed), fired: map[status.Kind]bool{}, once: map[string]bool{}, done: map[int]bool{}}
		next.run()
	}
	close(done)
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.budget.Usage(); u.Used != (host.Needs{}) || u.Waiting != 0 {
		w.wrong("the budget is not as before: %+v", u)
	}
	for _, what := range w.bad {
		w.t.Errorf("SEALC2_SEED=%d (%s): %s", w.seed, w.policy.Name(), what)
	}
}

// TestFaults: see above.
func TestFaults(t *testing.T) {
	count := uint64(8000)
	if testing.Short() {
		count = 300
	}
	first, end := seeds(t, count)
	for seed := first; seed < end && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { newWorld(t, seed).simulate() })
	}
}
