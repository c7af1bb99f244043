package sched

import (
	"context"
	"sync"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// turnstile lets a fixed number of jobs through at a time, in the order of their priority.
type turnstile struct {
	mu      sync.Mutex
	free    int
	waiting queue[*turn]
}

// turn is a job's place in the queue; granted is closed when it is its turn.
type turn struct {
	priority host.Priority
	granted  chan struct{}
}

func newTurnstile(free int) *turnstile {
	return &turnstile{free: free, waiting: newQueue(func(t, u *turn) bool { return t.priority.Compare(u.priority) < 0 })}
}

// enter waits for the job's turn, and calls queued once it has it or has its place in the queue. Fails with Cancelled when ctx ends first,
// and with Internal where queued panics: the turn is then the next one's.
func (q *turnstile) enter(ctx context.Context, p host.Priority, queued func()) error {
	q.mu.Lock()
	if q.free > 0 { // then nobody waits
		q.free--
		q.mu.Unlock()
		err := tell(queued)
		if err != nil {
			q.leave()
		}
		return err
	}
	return q.wait(ctx, p, queued)
}

// leave gives the place up.
func (q *turnstile) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handOn()
}

// handOn passes a place to the first in the queue; the caller holds mu.
func (q *turnstile) handOn() {
	if len(q.waiting.items) == 0 {
		q.free++
		return
	}
	next := q.waiting.first()
	q.waiting.remove(next)
	close(next.value.granted)
}

// wait queues up; the caller holds mu, which wait unlocks.
func (q *turnstile) wait(ctx context.Context, p host.Priority, queued func()) error {
	t := &turn{priority: p, granted: make(chan struct{})}
	place := q.waiting.push(t)
	q.mu.Unlock()
	err := tell(queued)
	if err == nil {
		select {
		case <-t.granted:
			return nil
		case <-ctx.Done():
			err = status.Wrap(status.Cancelled, op, "", ctx.Err())
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if place.at >= 0 {
		q.waiting.remove(place)
	} else { // our turn came while we gave up
		q.handOn()
	}
	return err
}

// tell calls a function of the job's, which may be nil.
func tell(f func()) error {
	return guard(func() error {
		if f != nil {
			f()
		}
		return nil
	})
}
