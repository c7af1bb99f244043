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
	shared  map[any]*holding
}

// Shared is what several holders have together: it counts once for as long as one of them has it. All ask for the same
// under a key, which is comparable.
type Shared struct {
	Key   any
	Needs Needs
}

// holding is something shared that somebody has.
type holding struct {
	needs   Needs
	holders int
}

// waiter is a request that did not fit yet. granted is closed once it does.
type waiter struct {
	needs   Needs
	shared  []Shared
	granted chan struct{}
}

// Reservation is a granted part of a budget.
type Reservation struct {
	budget *Budget
	mu     sync.Mutex
	needs  Needs
	shared []Shared
	over   bool
}

// Usage is a budget's state at one moment.
type Usage struct {
	Ceiling, Used, Peak Needs
	Waiting             int // requests that wait
}

// NewBudget makes a budget. A part of the ceiling that is 0 refuses every request for it.
func NewBudget(ceiling Needs) *Budget {
	return &Budget{ceiling: ceiling, shared: map[any]*holding{}}
}

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
	if err := b.acquire(ctx, op, &b.waiting, &waiter{needs: needs}); err != nil {
		return nil, err
	}
	return &Reservation{budget: b, needs: needs}, nil
}

// Grow adds more to the reservation, waiting like Reserve but before all newcomers, who hold nothing yet.
// Two holders that wait for each other's share would wait for ever, so at most one reservation of a
// budget may be in Grow at a time; the scheduler's desk sees to it, and a second one is Internal. Of what is shared, that which
// other holders have already costs nothing.
func (r *Reservation) Grow(ctx context.Context, more Needs, shared ...Shared) error {
	const op = "host.Grow"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return status.New(status.Internal, op, "reservation", "one that is held", "one that was released")
	}
	all := r.needs.Plus(more)
	for _, s := range append(r.shared, shared...) {
		all = all.Plus(s.Needs)
	}
	if err := r.budget.Fits(op, all); err != nil {
		return err
	}
	if err := r.budget.acquire(ctx, op, &r.budget.growing, &waiter{needs: more, shared: shared}); err != nil {
		return err
	}
	r.needs = r.needs.Plus(more)
	r.shared = append(r.shared, shared...)
	return nil
}

// acquire takes what w wants, waiting in queue where it does not fit.
func (b *Budget) acquire(ctx context.Context, op string, queue *list.List, w *waiter) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, op, "", err)
	}
	place, err := b.enqueue(op, queue, w)
	if place == nil || err != nil {
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
		b.giveBack(w.needs, w.shared)
	default:
		queue.Remove(place)
	}
	b.serve()
	return status.Wrap(status.Cancelled, op, "", ctx.Err())
}

// enqueue takes what w wants where nobody waits before it and it fits, and returns nil; else it puts it into queue.
func (b *Budget) enqueue(op string, queue *list.List, w *waiter) (*list.Element, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.growing.Len() == 0 && (queue == &b.growing || b.waiting.Len() == 0)
	if first && b.used.Plus(b.cost(w)).within(b.ceiling) {
		b.take(w)
		return nil, nil
	}
	if queue == &b.growing && b.growing.Len() > 0 {
		return nil, status.New(status.Internal, op, "budget", "one reservation that grows", "a second one")
	}
	w.granted = make(chan struct{})
	return queue.PushBack(w), nil
}

// cost is what a request adds to what is used, as things are; the caller holds mu.
func (b *Budget) cost(w *waiter) Needs {
	needs := w.needs
	for _, s := range w.shared {
		if b.shared[s.Key] == nil {
			needs = needs.Plus(s.Needs)
		}
	}
	return needs
}

// take books a request; the caller holds mu and has seen that it fits.
func (b *Budget) take(w *waiter) {
	used := b.used.Plus(b.cost(w))
	status.Check(used.within(b.ceiling), "host.Budget", "use below the ceiling")
	b.used = used
	for _, s := range w.shared {
		if b.shared[s.Key] == nil {
			b.shared[s.Key] = &holding{needs: s.Needs}
		}
		b.shared[s.Key].holders++
	}
	b.peak.HostBytes = max(b.peak.HostBytes, b.used.HostBytes)
	b.peak.DeviceBytes = max(b.peak.DeviceBytes, b.used.DeviceBytes)
	b.peak.Threads = max(b.peak.Threads, b.used.Threads)
}

// giveBack takes what was booked out of the books; the caller holds mu.
func (b *Budget) giveBack(needs Needs, shared []Shared) {
	b.used = b.used.minus(needs)
	for _, s := range shared {
		h := b.shared[s.Key]
		if h.holders--; h.holders == 0 {
			b.used = b.used.minus(h.needs)
			delete(b.shared, s.Key)
		}
	}
}

// serve grants from the heads of the queues as long as the head fits; the caller holds mu.
func (b *Budget) serve() {
	for _, queue := range []*list.List{&b.growing, &b.waiting} {
		for front := queue.Front(); front != nil; front = queue.Front() {
			w := front.Value.(*waiter)
			if !b.used.Plus(b.cost(w)).within(b.ceiling) {
				return
			}
			b.take(w)
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
	b.giveBack(r.needs, r.shared)
	status.Check(b.used.HostBytes >= 0 && b.used.DeviceBytes >= 0 && b.used.Threads >= 0, "host.Release", "use of 0 or more")
	b.serve()
}

// Needs is what the reservation holds, without what it shares.
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
