package sched

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// TestPolicies_Order: the same stages under each policy, by hand. A partition expands in 10, 11 or 12 ms, uploads in 5, computes in 20 and verifies in 4.
func TestPolicies_Order(t *testing.T) {
	serial := []string{"expand 0 0-10", "upload 0 10-15", "compute 0 15-35", "verify 0 35-39", "expand 1 39-50", "upload 1 50-55", "compute 1 55-75", "verify 1 75-79", "expand 2 79-91", "upload 2 91-96", "compute 2 96-116", "verify 2 116-120"}
	beside := []string{"expand 0 0-10", "expand 1 0-11", "expand 2 10-22", "upload 0 10-15", "upload 1 15-20", "upload 2 22-27", "compute 0 15-35", "compute 1 35-55", "compute 2 55-75", "verify 0 35-39", "verify 1 55-59", "verify 2 75-79"}
	inside := []string{"expand 0 0-10", "expand 1 0-11", "expand 2 10-22", "upload 0 10-15", "upload 1 35-40", "upload 2 60-65", "compute 0 15-35", "compute 1 40-60", "compute 2 65-85", "verify 0 35-39", "verify 1 60-64", "verify 2 85-89"}
	for _, c := range []struct {
		policy         Policy
		workers, rooms int
		want           []string
	}{
		{Single{}, 1, 0, serial},
		// The host's part is hidden, the copy is not; a worker is free when its partition is verified.
		{Single{}, 0, 0, []string{"expand 0 0-10", "expand 1 0-11", "upload 0 10-15", "compute 0 15-35", "upload 1 35-40", "compute 1 40-60", "verify 0 35-39", "expand 2 39-51", "upload 2 60-65", "compute 2 65-85", "verify 1 60-64", "verify 2 85-89"}},
		// The worker goes on before that.
		{Split{}, 1, 0, []string{"expand 0 0-10", "upload 0 10-15", "compute 0 15-35", "verify 0 35-39", "expand 1 35-46", "upload 1 46-51", "compute 1 51-71", "verify 1 71-75", "expand 2 71-83", "upload 2 83-88", "compute 2 88-108", "verify 2 108-112"}},
		// The copy is hidden too; with room for one it is done inside, and nothing else is lost.
		{TwoLock{}, 0, 0, beside},
		{TwoLock{}, 0, 1, inside},
		{Reservation{}, 0, 0, beside},
		{Reservation{}, 0, 1, inside},
		{Reservation{}, 1, 0, serial},
	} {
		virtual(t, Config{Policy: c.policy, Workers: c.workers}, 1, func(s *Scheduler, d []*fakeDevice) {
			j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 3, Rooms: c.rooms}}, parts: 3, steps: func(_, first, _ int) []step {
				name := func(s string) string { return fmt.Sprint(s, " ", first) }
				return []step{{name("expand"), host.LaneHost, 0, nil, false, 10 + first, nil}, {name("upload"), host.LaneCopy, 0, []int{0}, false, 5, nil},
					{name("compute"), host.LaneDevice, 0, []int{1}, false, 20, nil}, {name("verify"), host.LaneHost, 0, []int{2}, false, 4, nil}}
			}}
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Fatal(err)
			}
			if got, want := sorted(j.log), sorted(c.want); !slices.Equal(got, want) {
				t.Errorf("%s, %d workers, rooms %d:\ngot  %q\nwant %q", c.policy.Name(), c.workers, c.rooms, got, want)
			}
		})
	}
}

func TestPolicyNamed(t *testing.T) {
	for _, p := range Policies() {
		got, err := PolicyNamed(p.Name())
		if err != nil || got != p {
			t.Errorf("%s: %v, %v", p.Name(), got, err)
		}
	}
	if p, err := PolicyNamed(""); err != nil || p.Name() != "reservation" {
		t.Errorf("the default: %v, %v", p, err)
	}
	if _, err := PolicyNamed("gpu-lock"); status.KindOf(err) != status.Caller {
		t.Errorf("got %v", err)
	}
}

// TestTwoLock_Borders: what stands at the borders of staging and computing. A batch that may compute at once stages first. One that only copies
// gives its room to the one that waits to stage inside. And a batch that keeps the copy lane does so while it stages: behind that it
// would wait for the right to compute, which another one has that needs the lane.
func TestTwoLock_Borders(t *testing.T) {
	for _, c := range []struct {
		name  string
		rooms int
		parts [][]step
		want  []string
	}{
		{"stages first", 0, [][]step{{{"h", host.LaneHost, 0, nil, false, 20, nil}, {"c", host.LaneCopy, 0, []int{0}, false, 5, nil}, {"d", host.LaneDevice, 0, nil, false, 10, nil}}},
			[]string{"c 20-25", "d 25-35", "h 0-20"}},
		{"only copies", 1, [][]step{
			{{"c0", host.LaneCopy, 0, nil, false, 20, nil}},
			{{"h1", host.LaneHost, 0, nil, false, 5, nil}, {"c1", host.LaneCopy, 0, []int{0}, false, 5, nil}, {"d1", host.LaneDevice, 0, []int{1}, false, 10, nil}}},
			[]string{"c0 0-20", "c1 20-25", "d1 25-35", "h1 0-5"}},
		{"keeps the copies", 0, [][]step{
			{{"c0", host.LaneCopy, 0, nil, false, 5, nil}, {"d0", host.LaneDevice, 0, []int{0}, false, 20, nil}, {"e0", host.LaneCopy, 0, []int{1}, false, 5, nil}},
			{{"c1", host.LaneCopy, 0, nil, true, 5, nil}, {"d1", host.LaneDevice, 0, []int{0}, false, 20, nil}, {"e1", host.LaneCopy, 0, []int{1}, false, 5, nil}}},
			[]string{"c0 0-5", "c1 5-10", "d0 5-25", "d1 30-50", "e0 25-30", "e1 50-55"}},
	} {
		virtual(t, Config{Policy: TwoLock{}}, 1, func(s *Scheduler, d []*fakeDevice) {
			j := &timed{t: t, start: time.Now(), shares: []Share{{Device: d[0], Batch: 1, Ahead: 3, Rooms: c.rooms}}, parts: len(c.parts), steps: func(_, first, _ int) []step { return c.parts[first] }}
			if err := s.Run(context.Background(), j.job()); err != nil {
				t.Fatal(err)
			}
			if got := sorted(j.log); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q\nwant %q", c.name, got, c.want)
			}
		})
	}
}
