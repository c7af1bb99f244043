package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// errFunc is what a job of held is told to end with.
var errFunc = errors.New("as it was told")

// funcs submits jobs that end when they are told to, with what they are told.
type funcs struct {
	t     *testing.T
	e     *Engine
	begun chan JobID
	end   chan error
}

func newFuncs(t *testing.T) *funcs {
	return &funcs{t: t, e: open(t, Config{QueueBytes: 1 << 20}, nil), begun: make(chan JobID, 16), end: make(chan error)}
}

func (f *funcs) try(options SubmitOptions) (*Job, error) {
	return f.e.SubmitFunc(f.t.Context(), &ProveRequest{C1: []byte("C1 of " + options.ID)}, options, func(ctx context.Context, own *ProveRequest) (*ProveResult, error) {
		f.begun <- options.ID
		select {
		case err := <-f.end:
			return &ProveResult{Proof: bytes.Clone(own.C1)}, err // the copy goes with the job
		case <-ctx.Done():
			return nil, status.Wrap(status.Cancelled, "test", "", ctx.Err())
		}
	})
}

func (f *funcs) submit(options SubmitOptions) *Job {
	f.t.Helper()
	j, err := f.try(options)
	if err != nil {
		f.t.Fatal(err)
	}
	return j
}

// Goal: a function is a job as any other: joined by name, with the copy of its request, failed by what it fails with or panics; and jobs are counted.
func TestSubmitFunc(t *testing.T) {
	f := newFuncs(t)
	done, failed, cancelled := f.submit(SubmitOptions{ID: "done"}), f.submit(SubmitOptions{ID: "failed"}), f.submit(SubmitOptions{ID: "cancelled"})
	if again := f.submit(SubmitOptions{ID: "done"}); again != done {
		t.Error("the same again is another job")
	}
	<-f.begun
	if c := f.e.JobCounts(); c != (JobCounts{Queued: 2, Running: 1, QueueBytes: 3 * leastRequest}) {
		t.Errorf("under way: %+v", c)
	}
	time.Sleep(time.Millisecond) // the job takes some time
	f.end <- nil
	if r, err := waited(t, done); err != nil || string(r.Proof) != "C1 of done" {
		t.Errorf("%+v, %v", r, err)
	}
	<-f.begun
	f.end <- errFunc
	if _, err := waited(t, failed); err != errFunc || failed.Progress().State != JobFailed {
		t.Errorf("%v", err)
	}
	if !cancelled.CancelFor("nobody wants it") || cancelled.CancelFor("again") {
		t.Error("the first call cancels, and it alone")
	}
	var own *status.Error
	if _, err := waited(t, cancelled); !errors.As(err, &own) || own.Kind != status.Cancelled || own.Op != "engine.Cancel" || own.Got != "nobody wants it" {
		t.Errorf("%v", err)
	}
	if done.CancelFor("too late") {
		t.Error("a job that is done was cancelled")
	}
	if c := f.e.JobCounts(); c.DoneTime <= 0 || c != (JobCounts{Done: 1, Failed: 1, Cancelled: 1, DoneTime: c.DoneTime}) {
		t.Errorf("in the end: %+v", c)
	}
	j, err := f.e.SubmitFunc(t.Context(), &ProveRequest{C1: []byte("x")}, SubmitOptions{}, func(context.Context, *ProveRequest) (*ProveResult, error) { panic("on purpose") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := waited(t, j); status.KindOf(err) != status.Internal || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("a panic: %v", err)
	}
	if u := f.e.jobs.queue.Usage(); u.Used != (host.Needs{}) {
		t.Errorf("the queue is not as before: %+v", u)
	}
}

// Goal: a queued job knows how many go first, and that is the order in which they then begin.
func TestJob_Ahead(t *testing.T) {
	f := newFuncs(t)
	f.submit(SubmitOptions{ID: "runs"})
	<-f.begun
	now := time.Now()
	jobs := []*Job{
		f.submit(SubmitOptions{ID: "third"}), f.submit(SubmitOptions{ID: "last", Deadline: now.Add(time.Hour)}),
		f.submit(SubmitOptions{ID: "second", Deadline: now.Add(time.Minute)}), f.submit(SubmitOptions{ID: "first", Deadline: now.Add(30 * time.Second)}),
	}
	var got []int
	for _, j := range jobs {
		got = append(got, j.Progress().Ahead)
	}
	if !slices.Equal(got, []int{2, 3, 1, 0}) {
		t.Errorf("jobs ahead: %v", got)
	}
	for _, p := range f.e.Jobs() {
		if p.ID == "last" && p.Ahead != 3 || p.ID == "runs" && p.Ahead != 0 {
			t.Errorf("in the list: %+v", p)
		}
	}
	for _, want := range []JobID{"first", "second", "third", "last"} {
		f.end <- nil
		if got := <-f.begun; got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	// A higher class has a desk of its own, and waits for none of these.
	high := f.submit(SubmitOptions{ID: "high", Class: ClassWinning})
	if got := <-f.begun; got != "high" {
		t.Errorf("%s", got)
	}
	behind := f.submit(SubmitOptions{ID: "behind", Class: ClassWinning})
	low := f.submit(SubmitOptions{ID: "low"})
	if behind.Progress().Ahead != 0 || low.Progress().Ahead != 1 || high.Progress().Ahead != 0 {
		t.Errorf("behind %+v, low %+v", behind.Progress(), low.Progress())
	}
}

// Goal: a queue of so many jobs refuses one more, at once and by name, but not one that it has already.
func TestSubmit_QueueLimit(t *testing.T) {
	f := newFuncs(t)
	f.submit(SubmitOptions{ID: "runs", QueueLimit: 1})
	<-f.begun
	waits := f.submit(SubmitOptions{ID: "waits", QueueLimit: 1})
	if _, err := f.try(SubmitOptions{ID: "one more", QueueLimit: 1}); status.KindOf(err) != status.Timeout || !strings.Contains(err.Error(), "want at most 1 jobs that wait, got one more") {
		t.Errorf("full: %v", err)
	}
	if _, err := f.e.Job("one more"); err == nil {
		t.Error("one that was refused is remembered")
	}
	if j := f.submit(SubmitOptions{ID: "waits", QueueLimit: 1}); j != waits {
		t.Error("joined another job")
	}
	f.submit(SubmitOptions{ID: "any number"})
}

// Goal: other content may take the name of a job that is done where it is told to, and never that of one under way.
func TestSubmit_Replace(t *testing.T) {
	e := open(t, Config{QueueBytes: 1 << 20}, nil)
	end := make(chan struct{})
	submit := func(c1 string, replace bool) (*Job, error) {
		return e.SubmitFunc(t.Context(), &ProveRequest{C1: []byte(c1)}, SubmitOptions{ID: "a", Replace: replace}, func(context.Context, *ProveRequest) (*ProveResult, error) {
			<-end
			return &ProveResult{}, nil
		})
	}
	first, err := submit("one", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := submit("other", true); status.KindOf(err) != status.Caller {
		t.Errorf("one that is under way: %v", err)
	}
	close(end)
	if _, err := waited(t, first); err != nil {
		t.Fatal(err)
	}
	if _, err := submit("other", false); status.KindOf(err) != status.Caller {
		t.Errorf("without being told to: %v", err)
	}
	if j, err := submit("one", true); err != nil || j != first {
		t.Errorf("the same again: %v", err)
	}
	second, err := submit("other", true)
	if err != nil || second == first {
		t.Fatalf("other content: %v", err)
	}
	if j, err := e.Job("a"); err != nil || j != second {
		t.Errorf("by name: %v, %v", j, err)
	}
	if _, err := waited(t, second); err != nil {
		t.Error(err)
	}
}

// Goal: who asks for it gets a job that fails by what is wrong with its C1 output, and no error before.
func TestSubmit_JudgeLater(t *testing.T) {
	e := open(t, Config{HostBytes: 1 << 30, QueueBytes: 1 << 20, Device: "cpu"}, nil)
	j, err := e.Submit(t.Context(), &ProveRequest{C1: []byte("{]")}, SubmitOptions{ID: "x", JudgeLater: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := waited(t, j); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "c1.Parse") || j.Progress().State != JobFailed {
		t.Errorf("nonsense: %v", err)
	}
}
