package host

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/sealc2/sealc2/engine/status"
)

// Budget is a ceiling over host bytes, device bytes and threads that many jobs share. A reservation is
// granted whole or not at all, in the order of the requests: a small one never overtakes a large one that
// waits, so nobody starves. Safe for concurrent use.
type Budget struct {
	mu      sync.Mutex
	ceiling Needs
	used    Needs
	peak    Needs
	growing list.List // of *waiter: holders that want more; served before newcomers
	waiting list.List // of *waiter
}

// waiter is a request that did not fit yet. granted is closed once it does.
type waiter struct {
	needs   Needs
	granted chan struct{}
}

// Reservation is a granted part of a budget.
type Reservation struct {
	budget *Budget
	mu     sync.Mutex
	needs  Needs
	over   bool
}

// Usage is a budget's state at one moment.
type Usage struct {
	Ceiling, Used, Peak Needs
	Waiting             int // requests that wait
}

// NewBudget makes a budget. A part of the ceiling that is 0 refuses every request for it.
func NewBudget(ceiling Needs) *Budget { return &Budget{ceiling: ceiling} }

// Fits fails with NoMemory, naming both numbers, where needs can never be granted, and with Internal
// for a negative part.
func (b *Budget) Fits(op string, needs Needs) error {
	if needs.HostBytes < 0 || needs.DeviceBytes < 0 || needs.Threads < 0 {
		return status.New(status.Internal, op, "budget", "needs of 0 or more", fmt.Sprintf("%+v", needs))
	}
	refuse := func(what, want, have string) error {
		return status.New(status.NoMemory, op, what, "at most "+have+" (the budget)", want)
	}
	switch c := b.ceiling; {
	case needs.HostBytes > c.HostBytes:
		return refuse("host memory", sizeText(needs.HostBytes), sizeText(c.HostBytes))
	case needs.DeviceBytes > c.DeviceBytes:
		return refuse("device memory", sizeText(needs.DeviceBytes), sizeText(c.DeviceBytes))
	case needs.Threads > c.Threads:
		return refuse("threads", fmt.Sprint(needs.Threads), fmt.Sprint(c.Threads))
	}
	return nil
}

// sizeText gives a size exactly and for people.
func sizeText(n int64) string { return fmt.Sprintf("%d bytes (%s)", n, FormatBytes(n)) }

// Reserve waits for its turn and until needs fits beside what others hold. It fails at once with NoMemory
// where needs can never fit, and with Cancelled when ctx ends first. Whoever holds a reservation must not
// wait for a second one: use Grow, or ask for all at once.
func (b *Budget) Reserve(ctx context.Context, needs Needs) (*Reservation, error) {
	const op = "host.Reserve"
	if err := b.Fits(op, needs); err != nil {
		return nil, err
	}
	if err := b.acquire(ctx, op, &b.waiting, needs); err != nil {
		return nil, err
	}
	return &Reservation{budget: b, needs: needs}, nil
}

// Grow adds more to the reservation, waiting like Reserve but before all newcomers, who hold nothing yet.
// Two holders that wait for each other's share would wait for ever, so at most one reservation of a
// budget may be in Grow at a time; the scheduler's desk sees to it, and a second one is Internal.
func (r *Reservation) Grow(ctx context.Context, more Needs) error {
	const op = "host.Grow"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return status.New(status.Internal, op, "reservation", "one that is held", "one that was released")
	}
	if err := r.budget.Fits(op, r.needs.Plus(more)); err != nil {
		return err
	}
	if err := r.budget.acquire(ctx, op, &r.budget.growing, more); err != nil {
		return err
	}
	r.needs = r.needs.Plus(more)
	return nil
}

// acquire takes needs, waiting in queue where they do not fit.
func (b *Budget) acquire(ctx context.Context, op string, queue *list.List, needs Needs) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, op, "", err)
	}
	w, place, err := b.enqueue(op, queue, needs)
	if w == nil || err != nil {
		return err
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // granted while we gave up: hand it on
		b.used = b.used.minus(needs)
	default:
		queue.Remove(place)
	}
	b.serve()
	return status.Wrap(status.Cancelled, op, "", ctx.Err())
}

// enqueue takes needs where nobody waits before them and they fit, and returns nil; else it puts them into queue.
func (b *Budget) enqueue(op string, queue *list.List, needs Needs) (*waiter, *list.Element, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.growing.Len() == 0 && (queue == &b.growing || b.waiting.Len() == 0)
	if first && b.used.Plus(needs).within(b.ceiling) {
		b.take(needs)
		return nil, nil, nil
	}
	if queue == &b.growing && b.growing.Len() > 0 {
		return nil, nil, status.New(status.Internal, op, "budget", "one reservation that grows", "a second one")
	}
	w := &waiter{needs: needs, granted: make(chan struct{})}
	return w, queue.PushBack(w), nil
}

// take books needs; the caller holds mu and has seen that they fit.
func (b *Budget) take(needs Needs) {
	used := b.used.Plus(needs)
	status.Check(used.within(b.ceiling), "host.Budget", "use below the ceiling")
	b.used = used
	b.peak.HostBytes = max(b.peak.HostBytes, b.used.HostBytes)
	b.peak.DeviceBytes = max(b.peak.DeviceBytes, b.used.DeviceBytes)
	b.peak.Threads = max(b.peak.Threads, b.used.Threads)
}

// serve grants from the heads of the queues as long as the head fits; the caller holds mu.
func (b *Budget) serve() {
	for _, queue := range []*list.List{&b.growing, &b.waiting} {
		for front := queue.Front(); front != nil; front = queue.Front() {
			w := front.Value.(*waiter)
			if !b.used.Plus(w.needs).within(b.ceiling) {
				return
			}
			b.take(w.needs)
			queue.Remove(front)
			close(w.granted)
		}
	}
}

// Release gives the whole reservation back and lets waiters in. Only the first call counts, so it can be
// deferred; on a nil reservation it does nothing.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.minus(r.needs)
	status.Check(b.used.HostBytes >= 0 && b.used.DeviceBytes >= 0 && b.used.Threads >= 0, "host.Release", "use of 0 or more")
	b.serve()
}

// Needs is what the reservation holds.
func (r *Reservation) Needs() Needs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.needs
}

// Usage tells the state.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Usage{Ceiling: b.ceiling, Used: b.used, Peak: b.peak, Waiting: b.growing.Len() + b.waiting.Len()}
}
