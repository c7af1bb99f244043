package sched

import (
	"maps"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine/host"
)

// Entry is one stage that ran.
type Entry struct {
	Job        uint64 // in the order of Run calls, from 1
	Name       string // the job's
	Partition  int    // WholeJob for Prepare stages, and for those that serve several partitions
	Device     string // empty for Prepare stages
	Lane       host.Lane
	Stage      string
	Start, End time.Duration // since the scheduler was made
	Failed     bool
}

// Timeline keeps the latest entries, and sums of all. Safe for concurrent use.
type Timeline struct {
	mu     sync.Mutex
	ring   []Entry
	next   int // where the next entry goes, once the ring is full
	totals map[Place]Total
}

// Place is where stages of one name run.
type Place struct {
	Device string // as in Entry
	Lane   host.Lane
	Stage  string
}

// Total sums up the stages that ran in a place.
type Total struct {
	Count  int64
	Failed int64 // of them
	Time   time.Duration
}

func newTimeline(length int) *Timeline {
	return &Timeline{ring: make([]Entry, 0, length), totals: map[Place]Total{}}
}

func (t *Timeline) add(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	place := Place{e.Device, e.Lane, e.Stage}
	sum := t.totals[place]
	sum.Count++
	sum.Time += e.End - e.Start
	if e.Failed {
		sum.Failed++
	}
	t.totals[place] = sum
	if len(t.ring) < cap(t.ring) {
		t.ring = append(t.ring, e)
		return
	}
	t.ring[t.next] = e
	t.next = (t.next + 1) % len(t.ring)
}

// Entries copies what is kept, in the order in which the stages ended.
func (t *Timeline) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Entry, 0, len(t.ring))
	return append(append(all, t.ring[t.next:]...), t.ring[:t.next]...)
}

// Totals copies the sums of all stages that ended, those that are kept and those that are not.
func (t *Timeline) Totals() map[Place]Total {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.totals)
}
