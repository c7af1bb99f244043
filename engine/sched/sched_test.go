package sched

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// fakeClock moves by one second at every look.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

// fakeDevice counts the stages that run on it at the same time.
type fakeDevice struct {
	slots         int
	running, most atomic.Int64
}

func (d *fakeDevice) Name() string { return "fake" }
func (d *fakeDevice) Slots() int   { return d.slots }

func (d *fakeDevice) use(f func()) {
	n := d.running.Add(1)
	for m := d.most.Load(); n > m && !d.most.CompareAndSwap(m, n); m = d.most.Load() {
	}
	defer d.running.Add(-1)
	f()
}

// script is a job made of plain values: the named stages, and what happens in each.
type script struct {
	name       string
	prepare    []string
	first      []string
	partitions int
	stages     []string
	needs      host.Needs                                 // of the plan
	at         map[string]func(ctx context.Context) error // by "partition/stage", "begin 0", "stages 0", "close 0", "deliver 0", "plan"
	device     *fakeDevice

	mu     sync.Mutex
	log    []string
	closed int
}

func (s *script) note(event string) {
	s.mu.Lock()
	s.log = append(s.log, event)
	s.mu.Unlock()
}

func (s *script) do(ctx context.Context, event string) error {
	s.note(event)
	if f := s.at[event]; f != nil {
		return f(ctx)
	}
	return nil
}

type scriptBatch struct {
	s     *script
	first int
	count int
}

func (p *scriptBatch) Stages() (all []host.Stage) {
	if err := p.s.do(context.Background(), fmt.Sprintf("stages %d", p.first)); err != nil {
		panic(err)
	}
	for i := range p.count {
		for k, name := range p.s.stages {
			stage := host.Stage{Name: name, Partition: i, Lane: host.LaneDevice, Needs: host.Needs{Threads: 1}, Run: func(ctx context.Context) (err error) {
				p.s.device.use(func() { err = p.s.do(ctx, fmt.Sprintf("%d/%s", p.first+i, name)) })
				return err
			}}
			if k > 0 {
				stage.After = []int{len(all) - 1}
			}
			all = append(all, stage)
		}
	}
	return all
}

func (p *scriptBatch) Close() {
	p.s.closed++
	if err := p.s.do(context.Background(), fmt.Sprintf("close %d", p.first)); err != nil {
		panic(err)
	}
}

func (s *script) job() *Job {
	j := &Job{Name: s.name, Op: "test.Run"}
	for _, name := range s.prepare {
		j.Prepare = append(j.Prepare, host.Stage{Name: name, Needs: host.Needs{HostBytes: 10, Threads: 1},
			Run: func(ctx context.Context) error { return s.do(ctx, "-/"+name) }})
	}
	j.Plan = func() (Plan, error) {
		p := Plan{Partitions: s.partitions, Shares: []Share{{Device: s.device, Batch: 1, Ahead: 1}}, Needs: s.needs, Stage: host.Needs{Threads: 1}}
		for _, name := range s.first {
			p.First = append(p.First, host.Stage{Name: name, Partition: host.WholeBatch, Lane: host.LaneDevice, Run: func(ctx context.Context) (err error) {
				s.device.use(func() { err = s.do(ctx, "-/"+name) })
				return err
			}})
		}
		return p, s.do(context.Background(), "plan")
	}
	j.Begin = func(_, first, count int) (Batch, error) {
		return &scriptBatch{s, first, count}, s.do(context.Background(), fmt.Sprintf("begin %d", first))
	}
	j.Deliver = func(i int) error { return s.do(context.Background(), fmt.Sprintf("deliver %d", i)) }
	return j
}

// events is the log without the calls of Stages.
func (s *script) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(e string) bool { return strings.HasPrefix(e, "stages") })
}

func rig(bytes int64, slots int) (*Scheduler, *host.Budget, *fakeDevice) {
	b, d := host.NewBudget(host.Needs{HostBytes: bytes, Threads: 2}), &fakeDevice{slots: slots}
	return New(b, &fakeClock{}, 100, d), b, d
}

func idle(t *testing.T, b *host.Budget) {
	t.Helper()
	if u := b.Usage(); u.Used != (host.Needs{}) || u.Waiting != 0 {
		t.Errorf("budget is not as before: %+v", u)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func TestRun_Order(t *testing.T) {
	s, b, d := rig(100, 1)
	job := &script{name: "sector", prepare: []string{"parse", "params"}, first: []string{"check"}, partitions: 2, stages: []string{"expand", "prove"}, needs: host.Needs{HostBytes: 80}, device: d}
	j := job.job()
	var seen []Entry
	j.Observe = func(e Entry) { seen = append(seen, e) }
	var atStage int64
	job.at = map[string]func(context.Context) error{"1/prove": func(context.Context) error {
		atStage = b.Usage().Used.HostBytes
		return nil
	}}
	if err := s.Run(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	want := []string{"-/parse", "-/params", "plan", "-/check",
		"begin 0", "0/expand", "0/prove", "close 0", "deliver 0",
		"begin 1", "1/expand", "1/prove", "close 1", "deliver 1"}
	if got := job.events(); !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
	if atStage != 100 {
		t.Errorf("held %d bytes during the last stage, want 10 + 10 + 80", atStage)
	}
	idle(t, b)
	if got := s.Timeline().Entries(); !reflect.DeepEqual(got, seen) || len(got) != 7 {
		t.Errorf("timeline %+v\nobserved %+v", got, seen)
	}
	// The clock moves a second a look: New looked once, Run once for want of a deadline, then each stage twice.
	if e := seen[4]; e != (Entry{1, "sector", 0, "fake", host.LaneDevice, "prove", 10 * time.Second, 11 * time.Second, false}) {
		t.Errorf("entry %+v", e)
	}
	if e := seen[2]; e.Partition != WholeJob || e.Device != "fake" || e.Stage != "check" {
		t.Errorf("entry %+v", e)
	}
	if e := seen[0]; e.Partition != WholeJob || e.Device != "" || e.Stage != "parse" {
		t.Errorf("entry %+v", e)
	}
}

func TestTimeline_KeepsTheLatest(t *testing.T) {
	b, d := host.NewBudget(host.Needs{HostBytes: 100, Threads: 1}), &fakeDevice{slots: 1}
	s := New(b, &fakeClock{}, 3, d)
	job := &script{partitions: 4, stages: []string{"x"}, device: d}
	if err := s.Run(context.Background(), job.job()); err != nil {
		t.Fatal(err)
	}
	var kept []int
	for _, e := range s.Timeline().Entries() {
		kept = append(kept, e.Partition)
	}
	if !slices.Equal(kept, []int{1, 2, 3}) {
		t.Errorf("kept %v", kept)
	}
	// The sums have all four; each took a second of the clock.
	if got := s.Timeline().Totals(); !reflect.DeepEqual(got, map[Place]Total{{"fake", host.LaneDevice, "x"}: {Count: 4, Time: 4 * time.Second}}) {
		t.Errorf("sums %+v", got)
	}
}

// places are all events of the two-partition job at which something can go wrong.
func places() []string {
	s, _, d := rig(100, 1)
	job := &script{prepare: []string{"parse"}, first: []string{"check"}, partitions: 2, stages: []string{"a", "b"}, device: d}
	if err := s.Run(context.Background(), job.job()); err != nil {
		panic(err)
	}
	var all []string
	for _, e := range job.log {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// TestRun_FailAndPanicAnywhere: each callback fails, then panics; the error keeps its kind and names its
// place, all is given back, and the next job on the same scheduler works.
func TestRun_FailAndPanicAnywhere(t *testing.T) {
	s, b, d := rig(100, 1)
	cause := status.New(status.Unsatisfied, "circuit.Evaluate", "row 7", "", "")
	for _, place := range places() {
		for _, how := range []string{"fails", "panics", "panics with an error"} {
			if how == "fails" && (strings.HasPrefix(place, "stages") || strings.HasPrefix(place, "close")) {
				continue // these return nothing
			}
			job := &script{prepare: []string{"parse"}, first: []string{"check"}, partitions: 2, stages: []string{"a", "b"}, needs: host.Needs{HostBytes: 50}, device: d}
			job.at = map[string]func(context.Context) error{place: func(context.Context) error {
				switch how {
				case "fails":
					return cause
				case "panics":
					panic("boom")
				}
				panic(errors.New("boom"))
			}}
			err := s.Run(context.Background(), job.job())
			want := status.Internal
			if how == "fails" {
				want = status.Unsatisfied
				if !errors.Is(err, cause) {
					t.Errorf("%s %s: the cause is lost: %v", place, how, err)
				}
			}
			if status.KindOf(err) != want {
				t.Errorf("%s %s: %v", place, how, err)
			}
			text := fmt.Sprint(err)
			if strings.Contains(place, "/") && !strings.HasPrefix(text, "test.Run: ") {
				t.Errorf("%s %s: operation not named: %s", place, how, text)
			}
			if partition, stage, ok := strings.Cut(place, "/"); ok {
				if partition != "-" && !strings.Contains(text, "partition "+partition) || !strings.Contains(text, "stage "+stage) {
					t.Errorf("%s %s: place not named: %s", place, how, text)
				}
			}
			begun := 0
			for _, e := range job.log {
				if e == "begin 0" || e == "begin 1" {
					begun++
				}
			}
			if strings.HasPrefix(place, "begin") {
				begun-- // a partition that did not come to be is not closed
			}
			if job.closed != begun {
				t.Errorf("%s %s: %d partitions begun, %d closed", place, how, begun, job.closed)
			}
			idle(t, b)
			next := &script{partitions: 1, stages: []string{"a"}, needs: host.Needs{HostBytes: 100}, device: d}
			if err := s.Run(context.Background(), next.job()); err != nil {
				t.Fatalf("%s %s: the next job: %v", place, how, err)
			}
		}
	}
	if n := d.most.Load(); n != 1 {
		t.Errorf("%d stages at once", n)
	}
}

// TestRun_CancelAtEveryBorder: the context ends during each callback; nothing later than its border runs.
func TestRun_CancelAtEveryBorder(t *testing.T) {
	s, b, d := rig(100, 1)
	all := places()
	for _, place := range all[:len(all)-1] { // after the last delivery the job is done
		ctx, cancel := context.WithCancel(context.Background())
		job := &script{prepare: []string{"parse"}, first: []string{"check"}, partitions: 2, stages: []string{"a", "b"}, needs: host.Needs{HostBytes: 50}, device: d}
		job.at = map[string]func(context.Context) error{place: func(context.Context) error { cancel(); return nil }}
		err := s.Run(ctx, job.job())
		if status.KindOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", place, err)
		}
		for _, e := range job.log[slices.Index(job.log, place)+1:] {
			if strings.Contains(e, "/") || strings.HasPrefix(e, "deliver") || strings.HasPrefix(e, "begin") {
				t.Errorf("cancelled at %s, yet %s ran", place, e)
			}
		}
		idle(t, b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := &script{partitions: 1, device: d}
	if err := s.Run(ctx, job.job()); status.KindOf(err) != status.Cancelled || len(job.log) != 0 {
		t.Errorf("cancelled before: %v, %q", err, job.log)
	}
	job = &script{partitions: 1, stages: []string{"a"}, device: d}
	job.at = map[string]func(context.Context) error{"0/a": func(context.Context) error { return context.DeadlineExceeded }}
	if err := s.Run(context.Background(), job.job()); status.KindOf(err) != status.Cancelled {
		t.Errorf("a stage's bare context error: %v", err)
	}
}

func TestRun_NeverFits(t *testing.T) {
	s, b, d := rig(100, 1)
	job := &script{prepare: []string{"parse"}, partitions: 1, stages: []string{"a"}, needs: host.Needs{HostBytes: 91}, device: d}
	err := s.Run(context.Background(), job.job())
	if status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "101 bytes") || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("got %v", err)
	}
	if slices.Contains(job.log, "begin 0") {
		t.Error("work began for a job that cannot fit")
	}
	job = &script{partitions: 1, stages: []string{"a"}, needs: host.Needs{Threads: 3}, device: d}
	if err := s.Run(context.Background(), job.job()); status.KindOf(err) != status.NoMemory {
		t.Errorf("too many threads: %v", err)
	}
	idle(t, b)
}

// TestRun_StageAbovePlan: a stage that asks for more than its plan said does not run.
func TestRun_StageAbovePlan(t *testing.T) {
	s, b, d := rig(100, 1)
	job := (&script{partitions: 1, stages: []string{"a"}, device: d}).job()
	plan := job.Plan
	job.Plan = func() (Plan, error) {
		p, err := plan()
		p.Stage = host.Needs{}
		return p, err
	}
	if err := s.Run(context.Background(), job); status.KindOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	job.Plan = func() (Plan, error) {
		return Plan{Partitions: 1, Shares: []Share{{Device: &fakeDevice{slots: 1}, Batch: 1, Ahead: 1}}}, nil
	}
	if err := s.Run(context.Background(), job); status.KindOf(err) != status.Internal {
		t.Errorf("foreign device: %v", err)
	}
	idle(t, b)
}

// TestRun_OldestFirst: two jobs on one slot. The younger one, whose stage runs first because it was there
// alone, hands the device over at its stage border and gets it back when the older has ended.
func TestRun_OldestFirst(t *testing.T) {
	s, b, d := rig(100, 1)
	var mu sync.Mutex
	var order []string
	mark := func(text string) func(context.Context) error {
		return func(context.Context) error { mu.Lock(); order = append(order, text); mu.Unlock(); return nil }
	}
	hold := make(chan struct{})
	inBegin := make(chan struct{})
	old := &script{name: "old", partitions: 1, stages: []string{"a", "b"}, device: d, at: map[string]func(context.Context) error{
		"begin 0": func(context.Context) error { close(inBegin); <-hold; return nil },
		"0/a":     mark("old a"), "0/b": mark("old b")}}
	young := &script{name: "young", partitions: 1, stages: []string{"a", "b"}, device: d}
	young.at = map[string]func(context.Context) error{
		"0/a": func(context.Context) error {
			close(hold)
			until(t, "the old job waits", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.devices[d].compute.ready[0].len() == 1
			})
			return mark("young a")(nil)
		},
		"0/b": mark("young b")}
	var both sync.WaitGroup
	both.Go(func() {
		if err := s.Run(context.Background(), old.job()); err != nil {
			t.Error(err)
		}
	})
	<-inBegin
	both.Go(func() {
		if err := s.Run(context.Background(), young.job()); err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	if want := []string{"young a", "old a", "old b", "young b"}; !slices.Equal(order, want) {
		t.Errorf("order %q", order)
	}
	idle(t, b)
}

// TestRun_MemoryInOrder: a job that does not fit beside the running one waits at the desk with what it
// prepared, and jobs behind it wait too, however small.
func TestRun_MemoryInOrder(t *testing.T) {
	s, b, d := rig(100, 2)
	var mu sync.Mutex
	var order []string
	release := make(chan struct{})
	running := make(chan struct{})
	var all sync.WaitGroup
	start := func(name string, bytes int64, at func()) {
		job := &script{name: name, prepare: []string{"parse"}, partitions: 1, stages: []string{"a"}, needs: host.Needs{HostBytes: bytes}, device: d}
		job.at = map[string]func(context.Context) error{"0/a": func(context.Context) error {
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			at()
			return nil
		}}
		all.Go(func() {
			if err := s.Run(context.Background(), job.job()); err != nil {
				t.Error(err)
			}
		})
	}
	start("first", 60, func() { close(running); <-release })
	<-running
	start("large", 80, func() {})
	until(t, "large waits for memory", func() bool { return b.Usage().Waiting == 1 })
	start("small", 5, func() {})
	until(t, "small waits at the desk", func() bool {
		desk := s.desks[PoRep]
		desk.mu.Lock()
		defer desk.mu.Unlock()
		return desk.waiting.len() == 1
	})
	close(release)
	all.Wait()
	if !slices.Equal(order, []string{"first", "large", "small"}) {
		t.Errorf("order %q", order)
	}
	idle(t, b)
}

// TestRun_Storm: many jobs, some cancelled, some failing; neither the budget's ceiling nor the slots are
// ever passed, and no goroutine stays.
func TestRun_Storm(t *testing.T) {
	before := runtime.NumGoroutine()
	s, b, d := rig(100, 2)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			job := &script{prepare: []string{"parse"}, partitions: 1 + i%3, stages: []string{"a", "b"}, needs: host.Needs{HostBytes: int64(i * 37 % 90)}, device: d}
			job.at = map[string]func(context.Context) error{}
			switch i % 5 {
			case 1:
				job.at["0/b"] = func(context.Context) error { panic("boom") }
			case 2:
				time.AfterFunc(time.Duration(i)*20*time.Microsecond, cancel)
			case 3:
				job.at["0/a"] = func(ctx context.Context) error { cancel(); return ctx.Err() }
			}
			err := s.Run(ctx, job.job())
			switch kind := status.KindOf(err); i % 5 {
			case 1:
				if kind != status.Internal {
					t.Errorf("job %d: %v", i, err)
				}
			case 2:
				if kind != status.OK && kind != status.Cancelled {
					t.Errorf("job %d: %v", i, err)
				}
			case 3:
				if kind != status.Cancelled {
					t.Errorf("job %d: %v", i, err)
				}
			default:
				if err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	idle(t, b)
	if u := b.Usage(); u.Peak.HostBytes > 100 || d.most.Load() > 2 {
		t.Errorf("peak %+v, %d stages at once", u.Peak, d.most.Load())
	}
	if l := &s.devices[d].compute; l.busy != 0 || l.ready[0].len() != 0 || l.kept != nil || s.desks[PoRep].free != 1 || s.desks[PoRep].waiting.len() != 0 {
		t.Errorf("slots are not as before: %d busy, %d ready; desk %d, %d", l.busy, l.ready[0].len(), s.desks[PoRep].free, s.desks[PoRep].waiting.len())
	}
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}
