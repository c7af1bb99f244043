package sched

import (
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

// Timeline keeps the latest entries. Safe for concurrent use.
type Timeline struct {
	mu   sync.Mutex
	ring []Entry
	next int // where the next entry goes, once the ring is full
}

func newTimeline(length int) *Timeline { return &Timeline{ring: make([]Entry, 0, length)} }

func (t *Timeline) add(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
