package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// submitTiny submits a program's proof in place of a sector's, with a request of so many bytes.
func submitTiny(ctx context.Context, e *Engine, request *ProgramRequest, bytes int64, options SubmitOptions) (*Job, error) {
	content := sha256.Sum256(fmt.Appendf(nil, "%p %d", request, bytes))
	return e.submit(ctx, "engine.Submit", bytes, content, options, func(j *Job) (func(context.Context) (*ProveResult, error), error) {
		_ = host.Alloc[byte](j.c1, int(bytes))
		own := *request
		own.job = j
		return func(ctx context.Context) (*ProveResult, error) { return e.ProveProgram(ctx, &own) }, nil
	})
}

func waited(t *testing.T, j *Job) (*ProveResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // emulated proofs, on a machine that others use
	defer cancel()
	result, err := j.Wait(ctx)
	if status.KindOf(err) == status.Timeout {
		t.Fatal(err)
	}
	return result, err
}

// held is a backend whose stages of one name wait until they are let go.
func held(name string) (wrap func(groth16.Backend) groth16.Backend, inside chan struct{}, letGo func()) {
	inside, open := make(chan struct{}, 64), make(chan struct{})
	return func(b groth16.Backend) groth16.Backend {
		return &faulty{Backend: b, stage: func(ctx context.Context, at string) error {
			if at != name {
				return nil
			}
			inside <- struct{}{}
			select {
			case <-open:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}, inside, sync.OnceFunc(func() { close(open) })
}

// Goal: a submitted job has the proof that a call has, tells how far it is, and keeps its result for as many waiters as there are.
func TestSubmit(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	wrap, inside, letGo := held("quotient")
	e := open(t, Config{QueueBytes: 1 << 20}, wrap)
	j, err := submitTiny(t.Context(), e, c.request(2), 1000, SubmitOptions{ID: "porep-1000-1", Class: ClassWindow})
	if err != nil {
		t.Fatal(err)
	}
	<-inside
	until(t, "it is told of what ran before", func() bool { return j.Progress().Last.Stage == "evaluate" })
	p := j.Progress()
	if p.ID != "porep-1000-1" || p.State != JobRunning || p.Class != ClassWindow || p.Partitions != 2 || p.Last.Stage != "evaluate" || p.Last.Done <= 0 || p.Began.Before(p.Submitted) {
		t.Errorf("under way: %+v", p)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := j.Wait(soon); status.KindOf(err) != status.Timeout || !strings.Contains(err.Error(), `engine.Wait: job "porep-1000-1", which is running`) {
		t.Errorf("a wait that ends first: %v", err)
	}
	if text := e.Metrics(); !strings.Contains(text, `sealc2_jobs{state="running",class="window-post"} 1`) {
		t.Errorf("the running job is not in\n%s", text)
	}
	letGo()
	for range 2 {
		result, err := waited(t, j)
		if err != nil || !bytes.Equal(result.Proof, append(bytes.Clone(c.proof), c.proof...)) {
			t.Fatalf("%v", err)
		}
	}
	if p := j.Progress(); p.State != JobDone || p.Delivered != 2 || p.Last.Done != 1 || p.Ended.Before(p.Began) || p.Err != nil {
		t.Errorf("at the end: %+v", p)
	}
	if again, err := e.Job("porep-1000-1"); err != nil || again != j || len(e.Jobs()) != 1 {
		t.Errorf("by name: %v, %v", again, err)
	}
	j.Cancel() // too late
	if _, err := waited(t, j); err != nil {
		t.Error(err)
	}
	j.Forget()
	if _, err := e.Job("porep-1000-1"); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "porep-1000-1") {
		t.Errorf("after Forget: %v", err)
	}
	if entries := e.Timeline(); entries[0].Name != "porep-1000-1" {
		t.Errorf("timeline has %+v", entries[0])
	}
}

// Goal: a name stands for one content: the same again joins, another is refused until the job has failed or was cancelled.
func TestSubmit_Names(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	wrap, inside, letGo := held("quotient")
	e := open(t, Config{QueueBytes: 1 << 20}, wrap)
	good, bad := c.request(1), c.request(1)
	bad.Inputs[0] = c.spoiled()
	first, err := submitTiny(t.Context(), e, good, 1000, SubmitOptions{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	<-inside
	for _, ended := range []bool{false, true} {
		if j, err := submitTiny(t.Context(), e, good, 1000, SubmitOptions{ID: "a", Class: ClassWinning}); err != nil || j != first {
			t.Errorf("the same again, ended %t: %v", ended, err)
		}
		if _, err := submitTiny(t.Context(), e, bad, 1000, SubmitOptions{ID: "a"}); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), `job "a": want the content`) {
			t.Errorf("another content, ended %t: %v", ended, err)
		}
		letGo()
		if _, err := waited(t, first); err != nil {
			t.Fatal(err)
		}
	}
	failed, err := submitTiny(t.Context(), e, bad, 1000, SubmitOptions{ID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := waited(t, failed); status.KindOf(err) != status.Unsatisfied || !strings.Contains(err.Error(), "partition 0") || failed.Progress().State != JobFailed {
		t.Errorf("a failed job: %v", err)
	}
	second, err := submitTiny(t.Context(), e, good, 1000, SubmitOptions{ID: "b"})
	if err != nil || second == failed {
		t.Fatalf("the name of a failed job: %v", err)
	}
	if _, err := waited(t, second); err != nil {
		t.Error(err)
	}
	if one, two := mustSubmit(t, e, good, ""), mustSubmit(t, e, good, ""); one.ID() == two.ID() || len(one.ID()) != 36 {
		t.Errorf("jobs without names: %q and %q", one.ID(), two.ID())
	}
	for _, id := range []JobID{"a\nb", "\xff", JobID(strings.Repeat("x", MaxJobID+1)), "\u009b"} {
		if _, err := submitTiny(t.Context(), e, good, 1000, SubmitOptions{ID: id}); status.KindOf(err) != status.Caller {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := submitTiny(t.Context(), e, good, 1000, SubmitOptions{Class: ClassCount}); status.KindOf(err) != status.Caller {
		t.Errorf("an unknown class: %v", err)
	}
}

func mustSubmit(t *testing.T, e *Engine, request *ProgramRequest, id JobID) *Job {
	t.Helper()
	j, err := submitTiny(t.Context(), e, request, 1000, SubmitOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Goal: Cancel, a deadline and Close end a job, wherever it is, with a text that says which of them it was, and leave the others alone.
func TestSubmit_Cancel(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	wrap, inside, letGo := held("msm_l")
	e := open(t, Config{QueueBytes: 1 << 20}, wrap)
	running := mustSubmit(t, e, c.request(1), "running")
	<-inside
	waiting := mustSubmit(t, e, c.request(1), "waiting")
	running.Cancel()
	_, err := waited(t, running)
	if status.KindOf(err) != status.Cancelled || !strings.Contains(err.Error(), `engine.Cancel: job "running": cancelled: engine.ProveProgram: partition 0, stage msm_`) {
		t.Errorf("cancelled in a stage: %v", err)
	}
	late, err := submitTiny(t.Context(), e, c.request(1), 1000, SubmitOptions{ID: "late", Deadline: time.Now().Add(300 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = waited(t, late); status.KindOf(err) != status.Cancelled || !strings.Contains(err.Error(), `job "late": its deadline is over`) || late.Progress().State != JobCancelled {
		t.Errorf("past its deadline: %v", err)
	}
	letGo()
	if _, err := waited(t, waiting); err != nil {
		t.Errorf("the other job: %v", err)
	}
	if j := mustSubmit(t, e, c.request(1), "running"); j == running {
		t.Error("the name of a cancelled job is taken")
	} else if _, err := waited(t, j); err != nil {
		t.Error(err)
	}

	wrap, inside, _ = held("msm_l")
	e = open(t, Config{QueueBytes: 1 << 20}, wrap)
	open := mustSubmit(t, e, c.request(1), "open")
	<-inside
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := waited(t, open); status.KindOf(err) != status.Cancelled || !strings.Contains(err.Error(), "the engine was closed") {
		t.Errorf("closed over a job: %v", err)
	}
	if _, err := e.Submit(t.Context(), &ProveRequest{C1: []byte("{}")}, SubmitOptions{}); status.KindOf(err) != status.Caller {
		t.Errorf("a closed engine: %v", err)
	}
}

// Goal: requests of jobs lie in the queue's part of the memory until they are admitted; one that finds no room waits, as long as its caller
// wants; one that can never find any is refused with both numbers.
func TestSubmit_Queue(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{HostBytes: 256 << 20, QueueBytes: 100_000}, nil)
	if got := e.budget.Usage().Ceiling.HostBytes; got != 256<<20-100_000 {
		t.Errorf("the budget has %d bytes", got)
	}
	never := context.Background()
	if _, err := submitTiny(never, e, c.request(1), 200_000, SubmitOptions{}); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "100000 bytes") || !strings.Contains(err.Error(), "200000 bytes") {
		t.Errorf("larger than the queue: %v", err)
	}
	// However short the time is: there is room.
	if j, err := submitTiny(never, e, c.request(1), 1000, SubmitOptions{Room: time.Nanosecond}); err != nil {
		t.Error(err)
	} else if _, err := waited(t, j); err != nil {
		t.Error(err)
	}
	// A job that stays in its first stage, so that it is not admitted.
	parse, parsing := make(chan struct{}), make(chan *Job)
	first, err := e.submit(never, "engine.Submit", 80_000, [32]byte{1}, SubmitOptions{}, func(j *Job) (func(context.Context) (*ProveResult, error), error) {
		return func(context.Context) (*ProveResult, error) {
			close(j.entered)
			parsing <- j
			<-parse
			j.admitted()
			<-parse
			return nil, errors.New("over")
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-parsing
	soon, cancel := context.WithTimeout(never, 5*time.Millisecond)
	defer cancel()
	for _, how := range []struct {
		ctx  context.Context
		room time.Duration
	}{{soon, 0}, {never, time.Millisecond}} {
		if _, err := submitTiny(how.ctx, e, c.request(1), 60_000, SubmitOptions{ID: "no room", Room: how.room}); status.KindOf(err) != status.Timeout || !strings.Contains(err.Error(), "room for 60032 bytes in the queue") {
			t.Errorf("no room in time: %v", err)
		}
	}
	if _, err := submitTiny(never, e, c.request(1), 60_000, SubmitOptions{ID: "late", Deadline: time.Now().Add(20 * time.Millisecond)}); status.KindOf(err) != status.Cancelled || !strings.Contains(err.Error(), `job "late": its deadline is over`) {
		t.Errorf("past its deadline before there is room: %v", err)
	}
	closed, cancelCause := context.WithCancelCause(never)
	cancelCause(status.New(status.Cancelled, "test", "", "", "the engine was closed"))
	if _, err := submitTiny(closed, e, c.request(1), 60_000, SubmitOptions{}); status.KindOf(err) != status.Cancelled || !strings.Contains(err.Error(), "the engine was closed") {
		t.Errorf("closed before there is room: %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		j, err := submitTiny(never, e, c.request(1), 60_000, SubmitOptions{ID: "no room"})
		if err == nil {
			_, err = j.Wait(never)
		}
		waiting <- err
	}()
	until(t, "the second job waits", func() bool { return e.jobs.queue.Usage().Waiting == 1 })
	if text := e.Metrics(); !strings.Contains(text, `sealc2_budget_bytes{memory="queue",state="used"} 80000`) || !strings.Contains(text, `sealc2_budget_waiting{memory="queue"} 1`) {
		t.Errorf("the queue is not in\n%s", text)
	}
	parse <- struct{}{}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	close(parse)
	if _, err := waited(t, first); status.KindOf(err) != status.Internal || first.Progress().State != JobFailed {
		t.Errorf("a foreign error: %v", err)
	}
	if u := e.jobs.queue.Usage(); u.Used != (host.Needs{}) || u.Waiting != 0 || u.Peak.HostBytes > 100_000 {
		t.Errorf("the queue is not as before: %+v", u)
	}

	e = open(t, Config{}, nil)
	if _, err := submitTiny(never, e, c.request(1), 1000, SubmitOptions{}); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "QueueBytes") {
		t.Errorf("an engine without a queue: %v", err)
	}
	for _, bytes := range []int64{-2, 1 << 20, 2 << 20} {
		if _, err := Open(Config{HostBytes: 1 << 20, QueueBytes: bytes}); status.KindOf(err) != status.Caller {
			t.Errorf("a queue of %d bytes: %v", bytes, err)
		}
	}
	if got := open(t, Config{HostBytes: 64 << 20, QueueBytes: DefaultQueue}, nil).jobs.queue.Usage().Ceiling.HostBytes; got != 2<<20 {
		t.Errorf("by default the queue has %d bytes", got)
	}
}

// stayingJob fills a queue of 100,000 bytes with a job that is not admitted until it is let go, and then fails.
func stayingJob(t *testing.T, e *Engine) (letGo func()) {
	t.Helper()
	open := make(chan struct{})
	_, err := e.submit(t.Context(), "engine.Submit", 80_000, [32]byte{1}, SubmitOptions{}, func(j *Job) (func(context.Context) (*ProveResult, error), error) {
		return func(context.Context) (*ProveResult, error) {
			close(j.entered)
			<-open
			return nil, errors.New("over")
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	letGo = sync.OnceFunc(func() { close(open) })
	t.Cleanup(letGo)
	return letGo
}

// Goal: a call that finds a job of its name waiting for room does not share the fate of the one that submitted it: when that one is turned
// away, it waits by itself, as long as its own options say.
func TestSubmit_JoinsOneThatWaits(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{HostBytes: 256 << 20, QueueBytes: 100_000}, nil)
	letGo := stayingJob(t, e)
	ctx, giveUp := context.WithCancel(t.Context())
	request := c.request(1)
	turnedAway, joined := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := submitTiny(ctx, e, request, 60_000, SubmitOptions{ID: "a"})
		turnedAway <- err
	}()
	until(t, "the first waits", func() bool { return e.jobs.queue.Usage().Waiting == 1 })
	if _, err := submitTiny(t.Context(), e, request, 60_000, SubmitOptions{ID: "a", Room: time.Millisecond}); status.KindOf(err) != status.Timeout || !strings.Contains(err.Error(), `job "a", which waits for room in the queue`) {
		t.Errorf("one that waits shortly: %v", err)
	}
	if _, err := submitTiny(t.Context(), e, c.request(2), 60_000, SubmitOptions{ID: "a"}); status.KindOf(err) != status.Caller {
		t.Errorf("another content: %v", err)
	}
	go func() {
		j, err := submitTiny(t.Context(), e, request, 60_000, SubmitOptions{ID: "a"})
		if err == nil {
			_, err = j.Wait(t.Context())
		}
		joined <- err
	}()
	giveUp()
	if err := <-turnedAway; status.KindOf(err) != status.Cancelled {
		t.Errorf("the first: %v", err)
	}
	until(t, "the second waits", func() bool { return e.jobs.queue.Usage().Waiting == 1 })
	letGo()
	if err := <-joined; err != nil {
		t.Errorf("the second: %v", err)
	}
}

// Goal: submissions that were turned away, however many, leave what others may still fetch under its name.
func TestSubmit_TurnedAwayLeavesResults(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{HostBytes: 256 << 20, QueueBytes: 100_000}, nil)
	j := mustSubmit(t, e, c.request(1), "proved")
	until(t, "it is done", func() bool { return j.Progress().State == JobDone })
	stayingJob(t, e)
	request := c.request(1)
	for i := range keptJobs + 1 {
		if _, err := submitTiny(t.Context(), e, request, 60_000, SubmitOptions{ID: JobID(fmt.Sprint(i)), Room: time.Nanosecond}); status.KindOf(err) != status.Timeout {
			t.Fatalf("submission %d: %v", i, err)
		}
	}
	if again, err := e.Job("proved"); err != nil || again != j {
		t.Errorf("its result is gone: %v", err)
	}
	if all := e.Jobs(); len(all) != 2 {
		t.Errorf("%d jobs are remembered", len(all))
	}
}

// Goal: to wait for a job that has ended never says that it goes on, whatever a device said.
func TestSubmit_TimeoutIsNoOutcome(t *testing.T) {
	e := open(t, Config{QueueBytes: 100_000}, nil)
	j, err := e.submit(t.Context(), "engine.Submit", 10, [32]byte{1}, SubmitOptions{}, func(*Job) (func(context.Context) (*ProveResult, error), error) {
		return func(context.Context) (*ProveResult, error) {
			return nil, status.New(status.Timeout, "driver.Synchronize", "event", "an end within 2m0s", "none")
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := waited(t, j); status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "driver.Synchronize: event") || j.Progress().State != JobFailed {
		t.Errorf("a device that does not answer: %v, %s", err, j.Progress().State)
	}
}

// Goal: jobs fail and panic alone, in any number at once, and the budget is as before.
func TestSubmit_Storm(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{QueueBytes: 64 << 10}, nil)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			request := c.request(2)
			switch i % 4 {
			case 1:
				request.Inputs = []*circuit.Inputs{c.inputs, c.spoiled()}
			case 2:
				request.Progress = func(Progress) { panic("boom") }
			}
			j, err := submitTiny(t.Context(), e, request, int64(1000*i), SubmitOptions{ID: JobID(fmt.Sprint("job ", i)), Class: Class(i % int(ClassCount))})
			if err != nil {
				t.Error(err)
				return
			}
			if i%4 == 3 {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				j.Cancel()
			}
			result, err := j.Wait(t.Context())
			switch kind := status.KindOf(err); i % 4 {
			case 0:
				if err != nil || !bytes.Equal(result.Proof[192:], c.proof) {
					t.Errorf("job %d: %v", i, err)
				}
			case 1:
				if kind != status.Unsatisfied || !strings.Contains(err.Error(), "partition 1") {
					t.Errorf("job %d: %v", i, err)
				}
			case 2:
				if kind != status.Internal {
					t.Errorf("job %d: %v", i, err)
				}
			case 3:
				if kind != status.OK && kind != status.Cancelled {
					t.Errorf("job %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if u := e.jobs.queue.Usage(); u.Used != (host.Needs{}) || u.Waiting != 0 {
		t.Errorf("the queue is not as before: %+v", u)
	}
	text := e.Metrics()
	for _, want := range []string{`sealc2_failures_total{kind="unsatisfied"} 6`, `sealc2_failures_total{kind="internal"} 6`, `sealc2_jobs{state="running",class="porep"} 0`, `sealc2_jobs{state="waiting",class="winning-post"} 0`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// Goal: what is remembered of ended jobs is bounded; those that nobody has fetched stay longest.
func TestSubmit_Remembered(t *testing.T) {
	s := newJobs(1)
	end := func(id JobID, fetch bool) *Job {
		j, _, err := s.add("test", [32]byte{}, SubmitOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		s.end(j, &ProveResult{}, nil)
		if fetch {
			if _, err := j.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	end("unread", false)
	end("read", true)
	for i := range keptJobs - 2 {
		end(JobID(fmt.Sprint(i)), i > 5)
	}
	if len(s.byID) != keptJobs {
		t.Fatalf("%d jobs", len(s.byID))
	}
	end("one more", false)
	if s.byID["read"] != nil || s.byID["unread"] == nil || len(s.byID) != keptJobs || len(s.ended) != keptJobs {
		t.Errorf("%d names, %d ended; read %v, unread %v", len(s.byID), len(s.ended), s.byID["read"], s.byID["unread"])
	}
	for i := range 2 * keptJobs {
		end(JobID(fmt.Sprint("unread ", i)), false)
	}
	if s.byID["unread"] != nil || len(s.byID) != keptJobs || len(s.ended) != keptJobs {
		t.Errorf("%d names, %d ended", len(s.byID), len(s.ended))
	}
}

// Goal: what Prove would refuse, Submit refuses at once: before it copies anything.
func TestSubmit_Judged(t *testing.T) {
	e := open(t, Config{HostBytes: 1 << 30, QueueBytes: 32 << 20, Device: "cpu"}, nil)
	a, ni := loadSector(t, "porep-2k-a"), loadSector(t, "porep-2k-ni")
	foreign := a.ids(t)
	foreign.SectorID++
	for _, c := range []struct {
		name    string
		request *ProveRequest
		kind    status.Kind
		text    string
	}{
		{"nil", nil, status.Caller, "C1"},
		{"no C1", &ProveRequest{}, status.Caller, "C1"},
		{"nonsense", &ProveRequest{C1: []byte("{]")}, status.Input, "c1.Parse"},
		{"another sector's ids", &ProveRequest{C1: a.c1, IDs: foreign}, status.Input, "replica_id"},
		{"too many r and s", &ProveRequest{C1: a.c1, R: make([]fr.Element, 2), S: make([]fr.Element, 2)}, status.Caller, "r: want a scalar a partition, 1"},
		{"aggregate", &ProveRequest{C1: ni.c1, OnChain: true}, status.Unsupported, "aggregation is not supported yet"},
	} {
		if _, err := e.Submit(t.Context(), c.request, SubmitOptions{ID: "x"}); status.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if len(e.Jobs()) != 0 {
		t.Errorf("jobs: %+v", e.Jobs())
	}
	// What can be judged is good, so this fails as a job.
	request := &ProveRequest{C1: bytes.Clone(a.c1), IDs: a.ids(t), Params: ParamSource{Dir: t.TempDir(), AllowDev: true}}
	j, err := e.Submit(t.Context(), request, SubmitOptions{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	clear(request.C1)
	if _, err := waited(t, j); status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "stage params") {
		t.Errorf("no parameters: %v", err)
	}
	small := open(t, Config{HostBytes: 64 << 20, QueueBytes: 32 << 20, Device: "cpu"}, nil)
	_, err = small.Submit(t.Context(), &ProveRequest{C1: a.c1, IDs: a.ids(t)}, SubmitOptions{})
	r, refused := small.Requirements("2KiB", "cpu")
	if status.KindOf(err) != status.NoMemory || status.KindOf(refused) != status.NoMemory || r == nil {
		t.Fatalf("never fits: %v; %v", err, refused)
	}
	if want := fmt.Sprintf("got %d bytes", r.HostBytes+int64(len(a.c1))); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "at most 33554432 bytes") {
		t.Errorf("want %q in: %v", want, err)
	}
}

// Goal: a job of a higher class takes the device from one of a lower class at the next stage border, and sends one that is being prepared
// back to its start where it needs the memory; both then have their proofs.
func TestSubmit_Classes(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	wrap, inside, letGo := held("quotient")
	e := open(t, Config{QueueBytes: 1 << 20, Threads: 2}, wrap)
	low := mustSubmit(t, e, c.request(4), "low")
	<-inside
	high, err := submitTiny(t.Context(), e, c.request(1), 1000, SubmitOptions{ID: "high", Class: ClassWinning, Deadline: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the high job is admitted", func() bool { return high.Progress().State == JobRunning && high.Progress().Last.Stage == "params" })
	time.Sleep(10 * time.Millisecond)
	letGo()
	for _, j := range []*Job{high, low} {
		if _, err := waited(t, j); err != nil {
			t.Errorf("%s: %v", j.ID(), err)
		}
	}
	if h, l := high.Progress(), low.Progress(); !h.Ended.Before(l.Ended) {
		t.Errorf("high ended at %v, low at %v", h.Ended, l.Ended)
	}
}

// Goal: a submitted sector that a job of a higher class sends back to the start for its memory is parsed again from its copy, and ends
// as it would have.
// Method: both wait for memory until a third job ends; then the higher one needs what the sector holds of its own.
func TestSubmit_SentBack(t *testing.T) {
	source := ParamSource{Dir: paramDir(t, "porep-2k"), AllowDev: true}
	c, urgent, a := loadTiny(t, "tiny-16"), loadTiny(t, "tiny-64"), loadSector(t, "porep-2k-a")
	need, err := open(t, Config{Device: "cpu"}, nil).Requirements("2KiB", "")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(a.c1))
	budget := need.HostBytes + 2*size
	hold, inside, letGo := held("quotient")
	e := open(t, Config{Device: "cpu", HostBytes: budget + 1<<20, QueueBytes: 1 << 20}, func(b groth16.Backend) groth16.Backend {
		return &sized{hold(b), map[*circuit.Program]int64{c.program: budget / 4, urgent.program: budget - size/2 - heapGrowth*urgent.program.Bytes()}}
	})
	running := mustSubmit(t, e, c.request(1), "running")
	<-inside
	sector, err := e.Submit(t.Context(), &ProveRequest{C1: bytes.Clone(a.c1), IDs: a.ids(t), Params: source}, SubmitOptions{ID: "sector"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the sector waits for memory", func() bool { return sector.Progress().Last.Stage == "params" && e.budget.Usage().Waiting == 1 })
	high, err := submitTiny(t.Context(), e, urgent.request(1), 1000, SubmitOptions{ID: "high", Class: ClassWinning})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "both wait for memory", func() bool { return e.budget.Usage().Waiting == 2 })
	letGo()
	for _, j := range []*Job{running, high} {
		if _, err := waited(t, j); err != nil {
			t.Fatalf("%s: %v", j.ID(), err)
		}
	}
	until(t, "the sector is admitted", func() bool {
		return sector.Progress().Last.Stage != "params" && sector.Progress().Last.Stage != "parse"
	})
	sector.Cancel()
	if _, err := waited(t, sector); status.KindOf(err) != status.Cancelled {
		t.Errorf("the sector: %v", err)
	}
	parses := 0
	for _, entry := range e.Timeline() {
		if entry.Name == "sector" && entry.Stage == "parse" && !entry.Failed {
			parses++
		}
	}
	if parses != 2 {
		t.Errorf("parsed %d times", parses)
	}
}

// sized is a backend whose plans take so many bytes of host memory.
type sized struct {
	groth16.Backend
	bytes map[*circuit.Program]int64
}

func (s *sized) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	plan, err := s.Backend.Plan(p, partitions)
	if bytes := s.bytes[p]; bytes > 0 {
		plan.HostBytes = bytes
	}
	return plan, err
}

// Goal: a job of a high class goes first where jobs wait for room in the queue, though it came last, and its class alone counts against a limit on those that wait.
func TestSubmit_QueueInOrder(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{HostBytes: 256 << 20, QueueBytes: 100_000}, nil)
	letGo := stayingJob(t, e)
	jobs := make(chan *Job, 4)
	for i, id := range []JobID{"a", "b", "c", "winning"} {
		options := SubmitOptions{ID: id}
		if id == "winning" {
			options.Class, options.QueueLimit = ClassWinning, 1
		}
		go func() {
			j, err := submitTiny(context.Background(), e, c.request(1), 60_000, options)
			if err != nil {
				t.Error(err)
			}
			jobs <- j
		}()
		until(t, "it waits", func() bool { return e.jobs.queue.Usage().Waiting == i+1 })
	}
	letGo()
	began := map[JobID]time.Time{}
	for range 4 {
		j := <-jobs
		if j == nil {
			t.Fatal("refused")
		}
		if _, err := waited(t, j); err != nil {
			t.Error(err)
		}
		began[j.ID()] = j.Progress().Began
	}
	for id, at := range began {
		if at.Before(began["winning"]) {
			t.Errorf("%s began first", id)
		}
	}
}
