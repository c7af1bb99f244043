package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// step is a stage in virtual time: so many milliseconds, then err.
type step struct {
	name  string
	lane  host.Lane
	part  int
	after []int
	keep  bool
	ms    int
	err   error
}

// timed is a job of such stages. What happens is noted as "name first-last" with the milliseconds since the start.
type timed struct {
	t       *testing.T
	start   time.Time
	shares  []Share
	parts   int
	steps   func(share, first, count int) []step
	mu      sync.Mutex
	log     []string
	order   []int // as delivered
	batches []string
	closing int // milliseconds that Close takes
}

type timedBatch struct {
	*timed
	first, share int
	steps        []step
}

func (b *timedBatch) Stages() (all []host.Stage) {
	for _, s := range b.steps {
		all = append(all, host.Stage{Name: s.name, Lane: s.lane, Partition: s.part, After: s.after, Keep: s.keep, Needs: host.Needs{Threads: 1}, Run: func(ctx context.Context) error {
			from := time.Since(b.start).Milliseconds()
			time.Sleep(time.Duration(s.ms) * time.Millisecond)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.log = append(b.log, fmt.Sprintf("%s %d-%d", s.name, from, time.Since(b.start).Milliseconds()))
			return s.err
		}})
	}
	return all
}

func (b *timedBatch) Close() { time.Sleep(time.Duration(b.closing) * time.Millisecond) }

func (j *timed) job() *Job {
	return &Job{
		Op: "test.Run",
		Plan: func() (Plan, error) {
			return Plan{Partitions: j.parts, Shares: j.shares, Stage: host.Needs{Threads: 1}}, nil
		},
		Begin: func(share, first, count int) (Batch, error) {
			j.batches = append(j.batches, fmt.Sprintf("%d: %d+%d", share, first, count))
			return &timedBatch{j, first, share, j.steps(share, first, count)}, nil
		},
		Deliver: func(i int) error { j.order = append(j.order, i); return nil },
	}
}

// virtual runs f in virtual time with a scheduler on so many devices.
func virtual(t *testing.T, c Config, devices int, f func(s *Scheduler, d []*fakeDevice)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Budget, c.Clock, c.TimelineLength = host.NewBudget(host.Needs{HostBytes: 100, Threads: 2}), SystemClock{}, 100
		var d []*fakeDevice
		var all []Device
		for range devices {
			d = append(d, &fakeDevice{slots: 1})
			all = append(all, d[len(d)-1])
		}
		s := NewWith(c, all...)
		f(s, d)
		idle(t, c.Budget)
		for _, l := range s.devices {
			for k := range l.rights {
				if r := &l.rights[k]; r.busy != 0 || r.waiting.len() != 0 {
					t.Errorf("right %d: %d have it, %d wait", k, r.busy, r.waiting.len())
				}
			}
			for _, lane := range []*lane{&l.copy, &l.compute, &s.host} {
				if lane.busy != 0 || lane.heavy != 0 || lane.kept != nil || lane.ready[0].len()+lane.ready[1].len() != 0 {
					t.Errorf("a lane is not as before: %+v", lane)
				}
			}
		}
	})
}

func sorted(list []string) []string { list = slices.Clone(list); slices.Sort(list); return list }

// TestBatch_LanesOverlap: lanes run side by side, each in its order, and stages wait for what they name.
func TestBatch_LanesOverlap(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 1}}, parts: 1, steps: func(int, int, int) []step {
			return []step{
				{"expand", host.LaneHost, 0, nil, false, 10, nil},
				{"upload", host.LaneCopy, 0, []int{0}, false, 5, nil},
				{"points", host.LaneCopy, host.WholeBatch, nil, false, 20, nil}, // behind the upload, beside the evaluation
				{"evaluate", host.LaneDevice, 0, []int{1}, true, 8, nil},
				{"sum", host.LaneDevice, 0, []int{2}, false, 4, nil},
				{"verify", host.LaneHost, 0, []int{4}, false, 1, nil},
			}
		}}
		if err := s.Run(context.Background(), j.job()); err != nil {
			t.Fatal(err)
		}
		want := []string{"expand 0-10", "upload 10-15", "evaluate 15-23", "points 15-35", "sum 35-39", "verify 39-40"}
		if !slices.Equal(j.log, want) {
			t.Errorf("got %q\nwant %q", j.log, want)
		}
	})
}

// TestBatch_Ahead: the host's and the copies' part of the next batch overlaps the device's of this one, with two batches and not with one.
func TestBatch_Ahead(t *testing.T) {
	for ahead, want := range map[int]int64{1: 3 * 30, 2: 10 + 3*20, 3: 10 + 3*20} {
		virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
			j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: ahead}}, parts: 3, steps: func(int, int, int) []step {
				return []step{{"expand", host.LaneHost, 0, nil, false, 10, nil}, {"prove", host.LaneDevice, 0, []int{0}, false, 20, nil}}
			}}
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(j.start).Milliseconds(); got != want {
				t.Errorf("%d ahead: %d ms, want %d", ahead, got, want)
			}
		})
	}
}

// TestBatch_Keep: between the stages of a batch that keeps the lane nobody else runs there, though the older job is ready and the lane
// stands still.
func TestBatch_Keep(t *testing.T) {
	for _, keep := range []bool{true, false} {
		virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
			share := []Share{{Device: d[0], Batch: 1, Ahead: 1}}
			old := &timed{t: t, start: time.Now(), shares: share, parts: 1, steps: func(int, int, int) []step {
				return []step{{"wait", host.LaneHost, 0, nil, false, 5, nil}, {"old", host.LaneDevice, 0, []int{0}, false, 10, nil}}
			}}
			young := &timed{t: t, start: time.Now(), shares: share, parts: 1, steps: func(int, int, int) []step {
				return []step{{"load", host.LaneCopy, 0, nil, false, 20, nil}, {"a", host.LaneDevice, 0, nil, keep, 10, nil}, {"b", host.LaneDevice, 0, []int{0}, false, 10, nil}}
			}}
			var both sync.WaitGroup
			both.Go(func() {
				if err := s.Run(context.Background(), old.job()); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond) // of two that came at once no order is known
			both.Go(func() {
				if err := s.Run(context.Background(), young.job()); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			want := map[bool][]string{true: {"a 1-11", "b 21-31", "load 1-21", "old 31-41", "wait 0-5"}, false: {"a 1-11", "b 21-31", "load 1-21", "old 11-21", "wait 0-5"}}[keep]
			if got := sorted(append(old.log, young.log...)); !slices.Equal(got, want) {
				t.Errorf("keep %v: got %q\nwant %q", keep, got, want)
			}
		})
	}
}

// TestBatch_KeptUntilClosed: a job that fails, or is cancelled, while it keeps a lane leaves it when its memory is given back, and
// not before.
func TestBatch_KeptUntilClosed(t *testing.T) {
	for _, how := range []string{"fails", "fails elsewhere", "cancelled"} {
		virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
			share := []Share{{Device: d[0], Batch: 1, Ahead: 1}}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var fault, elsewhere error
			switch how {
			case "fails":
				fault = errors.New("boom")
			case "fails elsewhere":
				elsewhere = errors.New("boom")
			case "cancelled":
				time.AfterFunc(15*time.Millisecond, cancel)
			}
			bad := &timed{t: t, start: time.Now(), shares: share, parts: 1, closing: 50, steps: func(int, int, int) []step {
				return []step{{"a", host.LaneDevice, 0, nil, true, 10, fault}, {"load", host.LaneCopy, 0, nil, false, 20, elsewhere}, {"b", host.LaneDevice, 0, []int{1}, false, 10, nil}}
			}}
			next := &timed{t: t, start: time.Now(), shares: share, parts: 1, steps: func(int, int, int) []step { return []step{{"next", host.LaneDevice, 0, nil, false, 10, nil}} }}
			var both sync.WaitGroup
			both.Go(func() {
				if err := s.Run(ctx, bad.job()); err == nil {
					t.Error("no error")
				}
			})
			time.Sleep(time.Millisecond)
			both.Go(func() {
				if err := s.Run(context.Background(), next.job()); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			if want := []string{"next 70-80"}; !slices.Equal(next.log, want) {
				t.Errorf("%s: got %q, want %q", how, next.log, want)
			}
		})
	}
}

// TestRun_Deals: a job whose partitions do not fill all shares' batches is dealt out evenly, in as few batches as there are shares.
func TestRun_Deals(t *testing.T) {
	for _, c := range []struct {
		parts, shares, batch int
		want                 []string
	}{
		{10, 2, 10, []string{"0: 0+5", "1: 5+5"}},
		{11, 2, 10, []string{"0: 0+6", "1: 6+5"}},
		{25, 2, 10, []string{"0: 0+10", "0: 20+3", "1: 10+10", "1: 23+2"}},
		{2, 3, 10, []string{"0: 0+1", "1: 1+1"}},
		{7, 3, 2, []string{"0: 0+2", "0: 6+1", "1: 2+2", "2: 4+2"}},
		{4, 1, 3, []string{"0: 0+3", "0: 3+1"}},
	} {
		virtual(t, Config{}, c.shares, func(s *Scheduler, d []*fakeDevice) {
			j := &timed{t: t, start: time.Now(), parts: c.parts, steps: func(_, _, count int) (all []step) {
				for k := range count {
					all = append(all, step{"sum", host.LaneDevice, k, nil, false, 10, nil})
				}
				return all
			}}
			for _, device := range d {
				j.shares = append(j.shares, Share{Device: device, Batch: c.batch, Ahead: 2})
			}
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Fatal(err)
			}
			if got := sorted(j.batches); !slices.Equal(got, c.want) {
				t.Errorf("%d partitions, %d shares of %d: got %q, want %q", c.parts, c.shares, c.batch, got, c.want)
			}
		})
	}
}

// TestRun_SharesInOrder: the partitions go to two devices, of which one is three times as fast; no share takes so many that the other has nothing to do,
// and results come in order though batches end out of order.
func TestRun_SharesInOrder(t *testing.T) {
	virtual(t, Config{}, 2, func(s *Scheduler, d []*fakeDevice) {
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 2, Ahead: 1}, {Device: d[1], Batch: 4, Ahead: 1}}, parts: 8, steps: func(share, first, count int) (all []step) {
			for k := range count {
				all = append(all, step{fmt.Sprint(first + k), host.LaneDevice, k, nil, false, 30 - 20*share, nil})
			}
			return all
		}}
		if err := s.Run(context.Background(), j.job()); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(j.order, want) {
			t.Errorf("delivered %v", j.order)
		}
		if want := []string{"0: 0+2", "1: 2+4", "1: 6+1", "1: 7+1"}; !slices.Equal(j.batches, want) {
			t.Errorf("batches %q, want %q", j.batches, want)
		}
	})
}

// TestRun_Again: a partition that asks for it begins once more, alone and on the other device; of its batch no further stage of it
// runs, also none that was waiting for its lane, and the others go on.
func TestRun_Again(t *testing.T) {
	virtual(t, Config{}, 2, func(s *Scheduler, d []*fakeDevice) {
		again := fmt.Errorf("%w: a test", ErrAgain)
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 2, Ahead: 1}, {Device: d[1], Batch: 2, Ahead: 1}}, parts: 4}
		j.steps = func(share, first, count int) (all []step) {
			for k := range count {
				var err error
				if first+k == 1 && count == 2 {
					err = again
				}
				all = append(all, step{fmt.Sprintf("check %d on %d", first+k, share), host.LaneHost, k, nil, false, 1 + 9*k, err})
			}
			for k := range count {
				name := fmt.Sprintf("%d on %d", first+k, share)
				all = append(all, step{"prove " + name, host.LaneDevice, k, nil, k == 0, 20 - 19*share, nil},
					step{"verify " + name, host.LaneHost, k, []int{len(all)}, false, 1, nil})
			}
			return append(all, step{fmt.Sprint("together from ", first), host.LaneDevice, host.WholeBatch, nil, false, 5, nil})
		}
		if err := s.Run(context.Background(), j.job()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(j.order, []int{0, 1, 2, 3}) {
			t.Errorf("delivered %v", j.order)
		}
		if want := []string{"0: 0+2", "1: 2+2", "1: 1+1"}; !slices.Equal(j.batches, want) {
			t.Errorf("batches %q, want %q", j.batches, want)
		}
		for _, e := range j.log {
			if strings.HasPrefix(e, "prove 1 on 0") || strings.HasPrefix(e, "verify 1 on 0") {
				t.Errorf("%s ran though its partition had begun once more", e)
			}
		}
		if !slices.ContainsFunc(j.log, func(e string) bool { return strings.HasPrefix(e, "together from 0") }) {
			t.Errorf("the batch did not go on: %q", j.log)
		}
	})
}

// TestRun_Alone: a partition that lacked room beside others begins once more, and from then on its device has one batch of the job at once.
func TestRun_Alone(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		lacked := false
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 2}}, parts: 4}
		j.steps = func(_, first, _ int) []step {
			var err error
			if first == 1 && !lacked {
				lacked, err = true, ErrAlone
			}
			return []step{{fmt.Sprint("expand ", first), host.LaneHost, 0, nil, false, 10 + first, nil}, {fmt.Sprint("prove ", first), host.LaneDevice, 0, []int{0}, false, 20, err}}
		}
		if err := s.Run(context.Background(), j.job()); err != nil {
			t.Fatal(err)
		}
		want := []string{"expand 0 0-10", "expand 1 0-11", "prove 0 10-30", "expand 2 30-42", "prove 1 30-50", "prove 2 50-70", // two at once until then
			"expand 1 70-81", "prove 1 81-101", "expand 3 101-114", "prove 3 114-134"}
		if !slices.Equal(j.log, want) {
			t.Errorf("got %q\nwant %q", j.log, want)
		}
	})
}

// TestRun_AgainAtOnce: a partition that asks to begin once more with a stage that keeps the lane, and is alone in its batch, leaves it.
func TestRun_AgainAtOnce(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 2}}, parts: 2}
		tried := false
		j.steps = func(_, first, _ int) []step {
			var err error
			if first == 0 && !tried {
				tried, err = true, ErrAgain
			}
			return []step{{"a", host.LaneDevice, 0, nil, true, 10, err}, {"b", host.LaneDevice, 0, nil, false, 10, nil}}
		}
		if err := s.Run(context.Background(), j.job()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(j.order, []int{0, 1}) || time.Since(j.start) != 50*time.Millisecond {
			t.Errorf("delivered %v after %v", j.order, time.Since(j.start))
		}
	})
}

// TestRun_FailsBesideOthers: a stage fails while stages of other lanes, batches and jobs run. Its job waits for those of its own, starts no more,
// and its error is the first one; the other job goes on.
func TestRun_FailsBesideOthers(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		share := []Share{{Device: d[0], Batch: 1, Ahead: 2}}
		bad := &timed{t: t, start: time.Now(), shares: share, parts: 4, steps: func(_, first, _ int) []step {
			var err error
			if first == 0 {
				err = status.New(status.Params, "test", "", "", "")
			}
			return []step{{fmt.Sprint("copy ", first), host.LaneCopy, 0, nil, false, 30, nil}, {fmt.Sprint("host ", first), host.LaneHost, 0, nil, false, 10, err},
				{fmt.Sprint("device ", first), host.LaneDevice, 0, nil, false, 20, errors.New("too late")}}
		}}
		good := &timed{t: t, start: time.Now(), shares: share, parts: 2, steps: func(_, first, _ int) []step {
			return []step{{"good", host.LaneCopy, 0, nil, false, 10, nil}, {"good", host.LaneDevice, 0, []int{0}, false, 10, nil}}
		}}
		var both sync.WaitGroup
		both.Go(func() {
			err := s.Run(context.Background(), bad.job())
			if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "partition 0, stage host 0") {
				t.Errorf("got %v", err)
			}
			if got := time.Since(bad.start); got != 30*time.Millisecond {
				t.Errorf("ended after %v, want the 30 ms of what ran", got)
			}
		})
		time.Sleep(time.Millisecond)
		both.Go(func() {
			if err := s.Run(context.Background(), good.job()); err != nil || !slices.Equal(good.order, []int{0, 1}) {
				t.Errorf("the other job: %v, delivered %v", err, good.order)
			}
		})
		both.Wait()
		if want := []string{"copy 0 0-30", "device 0 0-20", "host 0 0-10", "host 1 0-10"}; !slices.Equal(sorted(bad.log), want) {
			t.Errorf("got %q\nwant %q", sorted(bad.log), want)
		}
	})
}

// TestRun_AgainLeavesTheLane: a partition that begins once more while its batch keeps the lane, and has nothing else for it, leaves it
// to others at once, though its batch goes on.
func TestRun_AgainLeavesTheLane(t *testing.T) {
	virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
		tried := false
		j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 2, Ahead: 1}}, parts: 2, steps: func(_, first, count int) []step {
			var err error
			if !tried {
				tried, err = true, ErrAgain
			}
			all := []step{{"a", host.LaneDevice, 0, nil, true, 10, nil}, {"load", host.LaneCopy, 0, nil, false, 30, nil}, {"b", host.LaneDevice, 0, []int{1}, false, 10, nil},
				{"check", host.LaneHost, 0, nil, false, 15, err}}
			if count == 2 {
				all = append(all, step{"long", host.LaneHost, 1, nil, false, 100, nil})
			}
			return all
		}}
		other := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 1}}, parts: 1, steps: func(int, int, int) []step {
			return []step{{"other", host.LaneDevice, 0, nil, false, 10, nil}}
		}}
		var both sync.WaitGroup
		both.Go(func() {
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Millisecond)
		both.Go(func() {
			if err := s.Run(context.Background(), other.job()); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if want := []string{"other 15-25"}; !slices.Equal(other.log, want) {
			t.Errorf("got %q, want %q", other.log, want)
		}
	})
}

// TestRun_AgainBesideItself: while a stage asks for its partition once more another stage of it runs on, and ends well or asks for the
// same. The partition begins once more, once, and what is delivered is of then.
func TestRun_AgainBesideItself(t *testing.T) {
	for _, second := range []error{nil, ErrAgain} {
		virtual(t, Config{}, 1, func(s *Scheduler, d []*fakeDevice) {
			j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 2}}, parts: 1}
			j.steps = func(int, int, int) []step {
				if len(j.batches) == 1 {
					return []step{{"a", host.LaneDevice, 0, nil, false, 20, second}, {"b", host.LaneHost, 0, nil, false, 10, ErrAgain}}
				}
				return []step{{"c", host.LaneDevice, 0, nil, false, 50, nil}}
			}
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Fatal(err)
			}
			if want := []string{"b 0-10", "a 0-20", "c 20-70"}; !slices.Equal(j.log, want) || !slices.Equal(j.order, []int{0}) || time.Since(j.start) != 70*time.Millisecond {
				t.Errorf("got %q, delivered %v after %v", j.log, j.order, time.Since(j.start))
			}
		})
	}
}
