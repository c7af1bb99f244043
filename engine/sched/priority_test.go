package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// classed is a timed job of one stage a partition, with a class.
func classed(t *testing.T, d *fakeDevice, name string, class Class, parts, ms int, keep bool) (*timed, *Job) {
	j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d, Batch: max(1, parts), Ahead: 1}}, parts: parts, steps: func(_, _, count int) (all []step) {
		for k := range count {
			all = append(all, step{fmt.Sprint(name, " ", k), host.LaneDevice, k, nil, keep && k < count-1, ms, nil})
		}
		return all
	}}
	job := j.job()
	job.Class = class
	return j, job
}

// TestRun_ClassTakesTheLane: a job of a higher class has the device at the next border of a running one's stages, and not where that one
// keeps the lane; then it has it where the device has a region of its own for that.
func TestRun_ClassTakesTheLane(t *testing.T) {
	for _, c := range []struct {
		keep, region bool
		want         string
	}{{false, false, "post 0 10-15"}, {true, false, "post 0 40-45"}, {true, true, "post 0 5-10"}} {
		virtual(t, Config{}, 2, func(s *Scheduler, d []*fakeDevice) {
			_, low := classed(t, d[0], "porep", PoRep, 4, 10, c.keep)
			on := d[0]
			if c.region {
				on = d[1]
			}
			post, high := classed(t, on, "post", WinningPoSt, 1, 5, false)
			var both sync.WaitGroup
			both.Go(func() {
				if err := s.Run(context.Background(), low); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(5 * time.Millisecond)
			both.Go(func() {
				if err := s.Run(context.Background(), high); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			if !slices.Equal(post.log, []string{c.want}) {
				t.Errorf("keep %v, region %v: got %q, want %q", c.keep, c.region, post.log, c.want)
			}
		})
	}
}

// TestRun_OrderOfQueue: what waits for a device goes by class, in a class by deadline, then by age; one without a deadline counts as due half an hour after
// it came, which may be before Run.
func TestRun_OrderOfQueue(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var order []string
		submit := func(name string, class Class, due time.Duration) {
			_, job := classed(t, d[0], name, class, 1, 100, false)
			if due > 0 {
				job.Deadline = time.Now().Add(due)
			}
			if name == "older porep" {
				job.Came = time.Now().Add(-time.Second)
			}
			job.Observe = func(Entry) { mu.Lock(); defer mu.Unlock(); order = append(order, name) }
			all.Go(func() {
				if err := s.Run(context.Background(), job); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		submit("first", PoRep, 0)
		submit("porep", PoRep, 0)
		submit("patient porep", PoRep, time.Hour) // no worse off than without
		submit("urgent porep", PoRep, time.Minute)
		submit("younger porep", PoRep, 0)
		submit("older porep", PoRep, 0)
		submit("update", SnapDeals, 0)
		submit("window, later", WindowPoSt, 2*time.Minute)
		submit("window", WindowPoSt, time.Minute)
		submit("winning", WinningPoSt, 0)
		all.Wait()
		want := []string{"first", "winning", "window", "window, later", "update", "urgent porep", "older porep", "porep", "patient porep", "younger porep"}
		if !slices.Equal(order, want) {
			t.Errorf("got %q\nwant %q", order, want)
		}
	})
}

// TestRun_ClassPassesTheDesk: a job of a higher class is let in while one of a lower class stands at the desk, in a stage there or
// waiting for memory, and what it frees goes to the higher class.
func TestRun_ClassPassesTheDesk(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		var all sync.WaitGroup
		ended := map[string]int64{}
		var mu sync.Mutex
		begin := time.Now()
		submit := func(name string, class Class, bytes int64, prepare int) {
			_, job := classed(t, d[0], name, class, 1, 20, false)
			plan := job.Plan
			job.Plan = func() (Plan, error) { p, err := plan(); p.Needs.HostBytes = bytes; return p, err }
			if prepare > 0 {
				job.Prepare = []host.Stage{{Name: "parse", Needs: host.Needs{HostBytes: 5}, Run: func(context.Context) error {
					time.Sleep(time.Duration(prepare) * time.Millisecond)
					return nil
				}}}
			}
			all.Go(func() {
				if err := s.Run(context.Background(), job); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ended[name] = time.Since(begin).Milliseconds()
			})
			time.Sleep(time.Millisecond)
		}
		submit("runs", PoRep, 50, 0)
		submit("waits for memory", PoRep, 60, 0)
		submit("small, of the same class", PoRep, 1, 0)
		submit("parses", SnapDeals, 30, 1000)
		submit("winning", WinningPoSt, 40, 0)
		all.Wait()
		// winning fits beside "runs" and takes the device at its border, and "waits for memory" has to wait for both.
		want := map[string]int64{"runs": 20, "winning": 40, "waits for memory": 60, "small, of the same class": 80, "parses": 1023}
		for name, at := range want {
			if ended[name] != at {
				t.Errorf("%s ended at %d ms, want %d", name, ended[name], at)
			}
		}
	})
}

// TestRun_GiveBack: two jobs at the desks of two classes hold what the other wants. The lower one gives back and begins once more; without Drop it is
// refused.
func TestRun_GiveBack(t *testing.T) {
	for _, drops := range []bool{true, false} {
		virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
			var both sync.WaitGroup
			prepared, dropped := 0, 0
			submit := func(name string, class Class, want status.Kind) {
				_, job := classed(t, d[0], name, class, 1, 20, false)
				plan := job.Plan
				job.Plan = func() (Plan, error) { p, err := plan(); p.Needs.HostBytes = 85; return p, err }
				job.Prepare = []host.Stage{{Name: "parse", Needs: host.Needs{HostBytes: 10}, Run: func(context.Context) error {
					if class == PoRep {
						prepared++
					}
					time.Sleep(10 * time.Millisecond)
					return nil
				}}}
				if drops {
					job.Drop = func() { dropped++ }
				}
				both.Go(func() {
					if err := s.Run(context.Background(), job); status.KindOf(err) != want || want != status.OK && !errors.Is(err, host.ErrGiveBack) {
						t.Errorf("%s: %v", name, err)
					}
				})
				time.Sleep(time.Millisecond)
			}
			refused := status.OK
			if !drops {
				refused = status.NoMemory
			}
			submit("porep", PoRep, refused)
			submit("winning", WinningPoSt, status.OK)
			both.Wait()
			if drops && (prepared != 2 || dropped != 1) {
				t.Errorf("prepared %d times, dropped %d times", prepared, dropped)
			}
		})
	}
}

// TestQueue_AgainstSlice: pushes and removals at random against a sorted slice.
func TestQueue_AgainstSlice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	q := newQueue(func(a, b int) bool { return a < b })
	var naive []*item[int]
	for range 20000 {
		switch {
		case len(naive) == 0 || random.IntN(5) < 2:
			naive = append(naive, q.push(random.Int()))
		case random.IntN(2) == 0:
			q.remove(q.first())
			least := slices.MinFunc(naive, func(a, b *item[int]) int { return cmp.Compare(a.value, b.value) })
			if least.at >= 0 {
				t.Fatalf("%d is not the first", least.value)
			}
			naive = slices.DeleteFunc(naive, func(i *item[int]) bool { return i == least })
		default:
			i := random.IntN(len(naive))
			q.remove(naive[i])
			q.remove(naive[i]) // does nothing
			naive = slices.Delete(naive, i, i+1)
		}
		if q.len() != len(naive) {
			t.Fatalf("%d in the queue, want %d", q.len(), len(naive))
		}
	}
}

func TestClass_String(t *testing.T) {
	for class, want := range map[Class]string{PoRep: "porep", SnapDeals: "snap-deals", WindowPoSt: "window-post", WinningPoSt: "winning-post", 9: "class 9"} {
		if class.String() != want {
			t.Errorf("%d is %q", class, class)
		}
	}
	s, b, d := rig(100, 1)
	_, job := classed(t, d, "x", classCount, 1, 0, false)
	if err := s.Run(context.Background(), job); status.KindOf(err) != status.Internal {
		t.Errorf("no class: %v", err)
	}
	idle(t, b)
}

// TestTurnstile_PanicWhenTold: a job whose function panics when it has its turn, or its place in the queue, leaves the turn to the others.
func TestTurnstile_PanicWhenTold(t *testing.T) {
	q := newTurnstile(1)
	ctx := context.Background()
	boom, quiet := func() { panic("boom") }, func() {}
	if err := q.enter(ctx, host.Priority{}, boom); status.KindOf(err) != status.Internal || q.free != 1 {
		t.Fatalf("at once: %v, %d free", err, q.free)
	}
	if err := q.enter(ctx, host.Priority{}, quiet); err != nil {
		t.Fatal(err)
	}
	if err := q.enter(ctx, host.Priority{}, boom); status.KindOf(err) != status.Internal || q.waiting.len() != 0 {
		t.Fatalf("in the queue: %v, %d wait", err, q.waiting.len())
	}
	if err := q.enter(ctx, host.Priority{}, func() { q.leave(); panic("boom") }); status.KindOf(err) != status.Internal || q.free != 1 {
		t.Fatalf("when its turn comes meanwhile: %v, %d free", err, q.free)
	}
}

// TestTurnstile_GrantedWhileGivingUp: a turn that comes at the moment at which its job gives up is handed on.
func TestTurnstile_GrantedWhileGivingUp(t *testing.T) {
	both := 0 // the turn had come, and the job had given up
	for range 300 {
		q := newTurnstile(1)
		if err := q.enter(context.Background(), host.Priority{}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		entered := make(chan error)
		go func() { entered <- q.enter(ctx, host.Priority{Serial: 1}, nil) }()
		until(t, "it waits", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.waiting.len() == 1 })
		q.mu.Lock() // so that both are there when it looks
		cancel()
		q.handOn()
		q.mu.Unlock()
		if err := <-entered; err == nil {
			q.leave()
		} else {
			both++
		}
		if q.free != 1 || q.waiting.len() != 0 {
			t.Fatalf("%d free, %d wait", q.free, q.waiting.len())
		}
	}
	if both == 0 {
		t.Error("never at the same time")
	}
}

// TestRun_ClassKeepsTheLaneBetweenBatches: a job of a higher class that has the device does not lose it to a lower one where one of its batches
// ends and the next one begins: between the stages before the first partition and that, and between two partitions.
func TestRun_ClassKeepsTheLaneBetweenBatches(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		_, low := classed(t, d[0], "porep", PoRep, 4, 100, false)
		post := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 1}}, parts: 2, steps: func(_, first, _ int) []step {
			return []step{{"post", host.LaneDevice, 0, nil, false, 5, nil}, {"verify", host.LaneHost, 0, []int{0}, false, 2, nil}}
		}}
		high := post.job()
		high.Class = WinningPoSt
		plan := high.Plan
		high.Plan = func() (Plan, error) {
			p, err := plan()
			p.First = []host.Stage{{Name: "check", Partition: host.WholeBatch, Lane: host.LaneDevice, Needs: host.Needs{Threads: 1}, Run: func(context.Context) error { time.Sleep(time.Millisecond); return nil }}}
			return p, err
		}
		var both sync.WaitGroup
		run := func(j *Job) {
			both.Go(func() {
				if err := s.Run(context.Background(), j); err != nil {
					t.Error(err)
				}
			})
		}
		run(low)
		time.Sleep(5 * time.Millisecond)
		run(high)
		both.Wait()
		if want := []string{"post 101-106", "verify 106-108", "post 108-113", "verify 113-115"}; !slices.Equal(post.log, want) {
			t.Errorf("got %q, want %q", post.log, want)
		}
	})
}

// TestRun_TurnsEnd: a job that has begun its last batch owes no device anything: one of a lower class runs on the device that it has left, beside its last batch on
// the other. Method: both devices end a batch at once, and one batch is left, on either.
func TestRun_TurnsEnd(t *testing.T) {
	virtual(t, Config{}, 2, func(s *Scheduler, d []*fakeDevice) {
		high := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 1}, {Device: d[1], Batch: 1, Ahead: 1}}, parts: 3, steps: func(_, first, _ int) []step {
			return []step{{"post", host.LaneDevice, 0, nil, false, 10 + 45*(first&2), nil}}
		}}
		job := high.job()
		job.Class = WinningPoSt
		low := &timed{t: t, start: time.Now(), shares: high.shares, parts: 2, steps: func(int, int, int) []step {
			return []step{{"porep", host.LaneDevice, 0, nil, false, 10, nil}}
		}}
		var both sync.WaitGroup
		for _, j := range []*Job{job, low.job()} {
			both.Go(func() {
				if err := s.Run(context.Background(), j); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		both.Wait()
		if want := []string{"post 0-10", "post 0-10", "post 10-110"}; !slices.Equal(high.log, want) {
			t.Errorf("got %q, want %q", high.log, want)
		}
		if want := []string{"porep 10-20", "porep 110-120"}; !slices.Equal(low.log, want) {
			t.Errorf("got %q, want %q", low.log, want)
		}
	})
}
