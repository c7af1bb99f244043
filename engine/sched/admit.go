package sched

import (
	"context"
	"slices"
	"sync"

	"github.com/sealc2/sealc2/engine/status"
)

// turnstile lets a fixed number of jobs through at a time, oldest job first. Priorities will be one more
// field of turn and one more comparison in before.
type turnstile struct {
	mu      sync.Mutex
	free    int
	waiting []*turn // first to go first
}

// turn is a job's place in the queue; granted is closed when it is its turn.
type turn struct {
	job     uint64
	granted chan struct{}
}

// before orders the queue.
func (t *turn) before(u *turn) bool { return t.job < u.job }

// enter waits for the job's turn. Fails with Cancelled when ctx ends first.
func (q *turnstile) enter(ctx context.Context, job uint64) error {
	q.mu.Lock()
	if q.free > 0 { // then nobody waits
		q.free--
		q.mu.Unlock()
		return nil
	}
	return q.wait(ctx, job)
}

// leave gives the place up.
func (q *turnstile) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handOn()
}

// handOn passes a place to the first in the queue; the caller holds mu.
func (q *turnstile) handOn() {
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	close(q.waiting[0].granted)
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// wait queues up; the caller holds mu, which wait unlocks.
func (q *turnstile) wait(ctx context.Context, job uint64) error {
	t := &turn{job: job, granted: make(chan struct{})}
	at := len(q.waiting)
	for at > 0 && t.before(q.waiting[at-1]) {
		at--
	}
	q.waiting = slices.Insert(q.waiting, at, t)
	q.mu.Unlock()

	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else { // our turn came while we gave up
		q.handOn()
	}
	return status.Wrap(status.Cancelled, "sched.Run", "", ctx.Err())
}
