package host

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sealc2/sealc2/engine/status"
)

// Budget is a ceiling over host bytes, device bytes and threads that many jobs share. A reservation is
// granted whole or not at all, in the order of the requests: a small one never overtakes a large one that
// waits, so nobody starves. Safe for concurrent use.
type Budget struct {
	mu      sync.Mutex
	ceiling Needs
	lowered int // how often the ceiling has become lower
	used    Needs
	peak    Needs
	growing []*waiter // reservations that want more, in the order of their priority; served before newcomers
	waiting list.List // of *waiter
	shared  map[any]*holding
	holders int // reservations that hold something
	freeing int // idle holdings that are on their way out
	aside   aside
}

// aside is host memory that only reservations from a class on may take.
type aside struct {
	class uint8
	bytes int64
}

// SetAside keeps host memory for reservations of class and above. Before the first reservation.
func (b *Budget) SetAside(class uint8, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aside = aside{class, bytes}
}

// limitNow is limit for who does not hold mu.
func (b *Budget) limitNow(p Priority) Needs {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit(p)
}

// limit is what may be used where a reservation of p is granted; the caller holds mu.
func (b *Budget) limit(p Priority) Needs {
	c := b.ceiling
	if p.Class < b.aside.class {
		c.HostBytes -= b.aside.bytes
	}
	return c
}

// ErrGiveBack is what Grow fails with where reservations that wait for each other would wait for ever: this one, the last
// in order of those that hold something, is to be released, and may ask for all once more. Also where what is asked for was planned before the ceiling
// became too low for it.
var ErrGiveBack = errors.New("what is held is needed by one that goes first")

// Shared is what several holders have together: it counts once for as long as one of them has it. All ask for the same
// under a key, which is comparable.
type Shared struct {
	Key   any
	Needs Needs
	// Free, where it is not nil, says that what is shared is kept for the next one that asks for it: it counts on when the last holder is
	// gone, until a request does not fit. Then Free is called, by a goroutine of its own and perhaps while a new holder already uses what it finds,
	// and gives back what nobody uses; when it returns it no longer counts.
	Free func()
}

// holding is something shared that somebody has, or nobody now.
type holding struct {
	needs   Needs
	holders int
	free    func()
	kept    bool // out of the budget, for good
}

// waiter is a request of a reservation that did not fit yet. granted is closed once it does, or once it never will.
type waiter struct {
	from     *Reservation
	needs    Needs
	shared   []Shared
	granted  chan struct{}
	giveBack bool // its reservation is in the way
}

// Reservation is a granted part of a budget.
type Reservation struct {
	budget   *Budget
	priority Priority
	mu       sync.Mutex
	needs    Needs
	shared   []Shared
	over     bool
	parts    int // grants of something; under the budget's mutex
	lowered  int // the budget's, when it was opened
}

// Usage is a budget's state at one moment.
type Usage struct {
	Ceiling, Used, Peak Needs
	Kept                Needs // of what is used, what nobody has any more and goes when somebody lacks it
	Waiting             int   // requests that wait
}

// NewBudget makes a budget. A part of the ceiling that is 0 refuses every request for it.
func NewBudget(ceiling Needs) *Budget {
	return &Budget{ceiling: ceiling, shared: map[any]*holding{}}
}

// Fits fails with NoMemory, naming both numbers, where needs can never be granted, and with Internal
// for a negative part.
func (b *Budget) Fits(op string, needs Needs) error { return b.FitsFor(op, Priority{}, needs) }

// FitsFor is Fits for a reservation of p.
func (b *Budget) FitsFor(op string, p Priority, needs Needs) error {
	if needs.HostBytes < 0 || needs.DeviceBytes < 0 || needs.Threads < 0 {
		return status.New(status.Internal, op, "budget", "needs of 0 or more", fmt.Sprintf("%+v", needs))
	}
	refuse := func(what, want, have string) error {
		return status.New(status.NoMemory, op, what, "at most "+have+" (the budget)", want)
	}
	c := b.limitNow(p)
	switch {
	case needs.HostBytes > c.HostBytes:
		return refuse("host memory", sizeText(needs.HostBytes), sizeText(c.HostBytes))
	case needs.DeviceBytes > c.DeviceBytes:
		return refuse("device memory", sizeText(needs.DeviceBytes), sizeText(c.DeviceBytes))
	case needs.Threads > c.Threads:
		return refuse("threads", fmt.Sprint(needs.Threads), fmt.Sprint(c.Threads))
	}
	if i := needs.crowded(c); i >= 0 {
		return refuse("memory of one device", sizeText(needs.Memory[i]), sizeText(c.Memory[i]))
	}
	return nil
}

// Resize adds to the ceiling of a device's memory, or takes from it what others have now. What was granted stays so; who waits for more than can
// ever fit now gives back (ErrGiveBack).
func (b *Budget) Resize(device int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lower(deviceNeeds(device, -bytes))
}

// Keep takes what is shared out of the budget for good: the ceiling is lower by it, and who asks for it gets it for nothing. Once for a key.
func (b *Budget) Keep(s Shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.shared[s.Key]
	switch {
	case h == nil:
		h = &holding{}
		b.shared[s.Key] = h
	case h.kept:
		return
	}
	b.used = b.used.minus(h.needs)
	h.needs, h.kept = Needs{}, true
	b.lower(s.Needs)
}

// Offer books what is shared and kept for whoever asks for it next (Shared.Free), with nobody holding it, as behind its last holder. False where it
// does not fit beside what others have or wait for.
func (b *Budget) Offer(s Shared) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &waiter{from: &Reservation{budget: b}, shared: []Shared{s}}
	if b.shared[s.Key] != nil {
		return true
	}
	if len(b.growing) > 0 || b.waiting.Len() > 0 || !b.fits(w) {
		return false
	}
	b.take(w)
	b.giveBack(w)
	return true
}

// deviceNeeds are bytes of a device's memory.
func deviceNeeds(device int, bytes int64) (n Needs) {
	n.DeviceBytes, n.Memory[device] = bytes, bytes
	return n
}

// lower takes from the ceiling; the caller holds mu.
func (b *Budget) lower(by Needs) {
	before := b.ceiling
	b.ceiling = b.ceiling.minus(by)
	if !before.within(b.ceiling) {
		b.lowered++
		b.growing = slices.DeleteFunc(b.growing, b.tooMuch)
		for e := b.waiting.Front(); e != nil; {
			here := e
			e = e.Next()
			if b.tooMuch(here.Value.(*waiter)) {
				b.waiting.Remove(here)
			}
		}
	}
	b.serve()
}

// tooMuch says whether a request never fits, and lets it give back; the caller holds mu.
func (b *Budget) tooMuch(w *waiter) bool {
	if b.whole(b.whole(w.from.needs.Plus(w.needs), w.from.shared), w.shared).within(b.limit(w.from.priority)) {
		return false
	}
	w.giveBack = true
	close(w.granted)
	return true
}

// whole adds to needs what is shared and not kept; the caller holds mu.
func (b *Budget) whole(needs Needs, shared []Shared) Needs {
	for _, s := range shared {
		if h := b.shared[s.Key]; h == nil || !h.kept {
			needs = needs.Plus(s.Needs)
		}
	}
	return needs
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
	r := &Reservation{budget: b}
	if err := b.acquire(ctx, op, false, &waiter{from: r, needs: needs}); err != nil {
		return nil, err
	}
	r.needs = needs
	return r, nil
}

// Open makes a reservation that holds nothing yet and never waits for that.
func (b *Budget) Open(p Priority) *Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Reservation{budget: b, priority: p, lowered: b.lowered}
}

// Grow adds more to the reservation, waiting like Reserve but before all newcomers, and of several that grow in the order of
// their priority: none is granted anything while one before it waits. Where all that hold something wait here, and the first
// does not fit, the last one of them fails with ErrGiveBack (kind NoMemory). Of what is shared, that which other holders have
// already costs nothing.
func (r *Reservation) Grow(ctx context.Context, more Needs, shared ...Shared) error {
	const op = "host.Grow"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return status.New(status.Internal, op, "reservation", "one that is held", "one that was released")
	}
	if err := r.budget.FitsFor(op, r.priority, r.whole(more, shared)); err != nil {
		if r.outdated() {
			return status.Wrap(status.NoMemory, op, err.Error(), ErrGiveBack)
		}
		return err
	}
	if err := r.budget.acquire(ctx, op, true, &waiter{from: r, needs: more, shared: shared}); err != nil {
		return err
	}
	r.needs = r.needs.Plus(more)
	r.shared = append(r.shared, shared...)
	return nil
}

// whole is what the reservation would hold with more.
func (r *Reservation) whole(more Needs, shared []Shared) Needs {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole(b.whole(r.needs.Plus(more), r.shared), shared)
}

// outdated says whether the ceiling has become lower since the reservation was opened.
func (r *Reservation) outdated() bool {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	return r.lowered != r.budget.lowered
}

// acquire takes what w wants, waiting in queue where it does not fit.
func (b *Budget) acquire(ctx context.Context, op string, grows bool, w *waiter) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, op, "", err)
	}
	if b.enqueue(grows, w) {
		return nil
	}
	select {
	case <-w.granted:
		if w.giveBack {
			return status.Wrap(status.NoMemory, op, "", ErrGiveBack)
		}
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // granted while we gave up: hand it on
		if !w.giveBack {
			b.giveBack(w)
		}
	default:
		b.leave(w)
	}
	b.serve()
	return status.Wrap(status.Cancelled, op, "", ctx.Err())
}

// enqueue takes what w wants where nobody waits before it and it fits, and says so; else it puts it into its queue.
func (b *Budget) enqueue(grows bool, w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := len(b.growing)
	if grows {
		at, _ = slices.BinarySearchFunc(b.growing, w, func(v, w *waiter) int {
			return cmp.Or(v.from.priority.Compare(w.from.priority), -1) // behind its equals
		})
	}
	if at == 0 && (grows || b.waiting.Len() == 0) && b.fits(w) {
		b.take(w)
		return true
	}
	w.granted = make(chan struct{})
	if b.tooMuch(w) { // since its caller looked
		return false
	}
	if grows {
		b.growing = slices.Insert(b.growing, at, w)
		b.unlock()
	} else {
		b.waiting.PushBack(w)
		if b.waiting.Len() == 1 && len(b.growing) == 0 {
			b.freeIdle(w)
		}
	}
	return false
}

// leave takes a request out of its queue; the caller holds mu.
func (b *Budget) leave(w *waiter) {
	b.growing = slices.DeleteFunc(b.growing, func(v *waiter) bool { return v == w })
	for e := b.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == w {
			b.waiting.Remove(e)
			return
		}
	}
}

// fits says whether a request fits as things are; the caller holds mu.
func (b *Budget) fits(w *waiter) bool { return b.used.Plus(b.cost(w)).within(b.limit(w.from.priority)) }

// something says whether a request takes anything.
func (w *waiter) something() bool { return w.needs != (Needs{}) || len(w.shared) > 0 }

// unlock looks whether all that hold something wait for more while the first of them does not fit, and lets the last one give back
// what it has. The first one alone always fits. The caller holds mu.
func (b *Budget) unlock() {
	if len(b.growing) == 0 || b.fits(b.growing[0]) || b.freeIdle(b.growing[0]) {
		return
	}
	last, holding := -1, 0
	for i, w := range b.growing {
		if w.from.parts > 0 {
			last = i
			holding++
		}
	}
	if holding < b.holders || last <= 0 {
		return
	}
	w := b.growing[last]
	b.growing = slices.Delete(b.growing, last, last+1)
	w.giveBack = true
	close(w.granted)
}

// freeIdle sets out to free what is kept, nobody has, and takes what a request lacks; and says whether anything is on its way out. It counts until
// it has been freed. The caller holds mu.
func (b *Budget) freeIdle(w *waiter) bool {
	over := b.used.Plus(b.cost(w)).minus(b.limit(w.from.priority))
	for key, h := range b.shared {
		helps := over.HostBytes > 0 && h.needs.HostBytes > 0 || over.DeviceBytes > 0 && h.needs.DeviceBytes > 0
		if h.holders > 0 || !helps || slices.ContainsFunc(w.shared, func(s Shared) bool { return s.Key == key }) {
			continue
		}
		delete(b.shared, key)
		b.freeing++
		go func() {
			defer b.freed(h)
			var err error // a panic of Free's: the memory is as gone as it will be
			defer status.Recover("host.Budget", &err)
			h.free()
		}()
	}
	return b.freeing > 0
}

// freed takes what was idle out of the books.
func (b *Budget) freed(h *holding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeing--
	b.used = b.used.minus(h.needs)
	b.serve()
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
	if w.something() {
		if w.from.parts++; w.from.parts == 1 {
			b.holders++
		}
	}
	for _, s := range w.shared {
		if b.shared[s.Key] == nil {
			b.shared[s.Key] = &holding{needs: s.Needs, free: s.Free}
		}
		b.shared[s.Key].holders++
	}
	b.peak.HostBytes = max(b.peak.HostBytes, b.used.HostBytes)
	b.peak.DeviceBytes = max(b.peak.DeviceBytes, b.used.DeviceBytes)
	b.peak.Threads = max(b.peak.Threads, b.used.Threads)
	for i, bytes := range b.used.Memory {
		b.peak.Memory[i] = max(b.peak.Memory[i], bytes)
	}
}

// giveBack takes a request that was granted out of the books; the caller holds mu.
func (b *Budget) giveBack(w *waiter) {
	b.unbook(w.needs, w.shared)
	if w.something() {
		if w.from.parts--; w.from.parts == 0 {
			b.holders--
		}
	}
}

// unbook lowers what is used; the caller holds mu.
func (b *Budget) unbook(needs Needs, shared []Shared) {
	b.used = b.used.minus(needs)
	for _, s := range shared {
		h := b.shared[s.Key]
		if h.holders--; h.holders == 0 && h.free == nil && !h.kept {
			b.used = b.used.minus(h.needs)
			delete(b.shared, s.Key)
		}
	}
}

// serve grants from the heads of the queues as long as the head fits; the caller holds mu.
func (b *Budget) serve() {
	for len(b.growing) > 0 {
		w := b.growing[0]
		if !b.fits(w) {
			b.unlock()
			return
		}
		b.take(w)
		b.growing = slices.Delete(b.growing, 0, 1)
		close(w.granted)
	}
	for front := b.waiting.Front(); front != nil; front = b.waiting.Front() {
		w := front.Value.(*waiter)
		if !b.fits(w) {
			b.freeIdle(w)
			return
		}
		b.take(w)
		b.waiting.Remove(front)
		close(w.granted)
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
	b.unbook(r.needs, r.shared)
	if r.parts > 0 {
		r.parts = 0
		b.holders--
	}
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
	u := Usage{Ceiling: b.ceiling, Used: b.used, Peak: b.peak, Waiting: len(b.growing) + b.waiting.Len()}
	for _, h := range b.shared {
		if h.holders == 0 {
			u.Kept = u.Kept.Plus(h.needs)
		}
	}
	return u
}
