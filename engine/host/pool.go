package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// Pool is a number of threads that are bound to the CPUs of a node each, for loops by Do. No other thread's mask is
// touched, and the threads end with the pool. Safe for concurrent use.
//
// A thread may run on all CPUs of its node that are ours (on one of each core, where there are cores enough): the kernel
// knows which of them is free, and several processes that all took the first CPUs would stand in each other's way.
type Pool struct {
	seats []seat

	mu     sync.Mutex
	open   []*loop // that more workers may join, oldest first
	closed bool
	over   sync.WaitGroup // threads
}

// seat is one thread's place.
type seat struct {
	node    int
	mask    CPUSet
	refused error // why the thread is not bound
	calls   chan call
	idle    bool // waits for a call; the pool's lock guards it
}

// call sends a thread into a loop.
type call struct {
	loop   *loop
	worker int
}

type poolKey struct{}

// WithPool returns a context by which Do runs on the pool's threads; nil: on goroutines of its own.
func WithPool(ctx context.Context, p *Pool) context.Context {
	if p == nil {
		return context.WithValue(ctx, poolKey{}, nil)
	}
	return context.WithValue(ctx, poolKey{}, p)
}

// NewPool starts threads (at least one) in a topology. near is the node where most of their data lies, as a device's:
// its cores are taken first, then those of the other nodes by their distance, then SMT siblings in the same order. Below
// 0, or a node without CPUs of ours: the threads are spread over the nodes by their numbers of cores. A thread that the
// kernel does not let us bind runs anywhere; PerNode and String tell.
func NewPool(t *Topology, threads, near int) *Pool {
	p := &Pool{seats: t.seats(max(1, threads), near)}
	var ready sync.WaitGroup
	for i := range p.seats {
		s := &p.seats[i]
		s.calls = make(chan call, 1)
		p.over.Add(1)
		ready.Add(1)
		p.start(s, ready.Done)
	}
	ready.Wait()
	return p
}

// Threads is how many there are.
func (p *Pool) Threads() int { return len(p.seats) }

// NodeThreads is how many threads are bound to a node; -1 stands for those that are not bound, and for CPUs without a node.
type NodeThreads struct{ Node, Threads int }

// PerNode counts the threads by node, in rising order.
func (p *Pool) PerNode() []NodeThreads {
	counts := map[int]int{}
	for i := range p.seats {
		counts[p.seats[i].bound()]++
	}
	var out []NodeThreads
	for node, n := range counts {
		out = append(out, NodeThreads{node, n})
	}
	slices.SortFunc(out, func(a, b NodeThreads) int { return a.Node - b.Node })
	return out
}

func (s *seat) bound() int {
	if s.refused != nil {
		return -1
	}
	return s.node
}

// String is "6 threads: 4 on node 0, 2 on node 1", for a log; with the reason where one is not bound.
func (p *Pool) String() string {
	var parts []string
	for _, n := range p.PerNode() {
		where := "on no node"
		if n.Node >= 0 {
			where = fmt.Sprintf("on node %d", n.Node)
		}
		parts = append(parts, fmt.Sprintf("%d %s", n.Threads, where))
	}
	text := fmt.Sprintf("%d threads: %s", len(p.seats), strings.Join(parts, ", "))
	for i := range p.seats {
		if s := &p.seats[i]; s.refused != nil {
			return text + fmt.Sprintf(" (binding to CPUs %s: %v)", s.mask.String(), s.refused)
		}
	}
	return text
}

// Close ends the threads once their loops have. Loops that come later run without them; closing twice is legal.
func (p *Pool) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	if first {
		for i := range p.seats {
			if s := &p.seats[i]; s.idle {
				close(s.calls) // a busy one sees closed when it is done
			}
		}
	}
	p.mu.Unlock()
	p.over.Wait()
}

// start gives a seat its thread, and calls ready when it is bound.
func (p *Pool) start(s *seat, ready func()) {
	ready = sync.OnceFunc(ready)
	go func() {
		defer ready() // whatever becomes of the thread, nobody waits for it
		defer status.Recover("host.Pool", &s.refused)
		// Never unlocked: a locked goroutine's thread ends with it, and its mask goes along.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread's mask is what others take for the process's, and that thread cannot end. The next
			// goroutine gets another one, as long as this one keeps it.
			next := make(chan struct{})
			p.start(s, func() { close(next) })
			<-next
			runtime.UnlockOSThread()
			ready()
			return
		}
		defer p.over.Done()
		before, err := threadMask(0)
		if err == nil && !s.mask.Empty() {
			err = bindThread(&s.mask)
		}
		if s.refused = err; err == nil {
			// Of a library's threads there is one that Go only puts to sleep.
			defer func() { _ = bindThread(&before) }()
		}
		ready()
		for c, ok := p.await(s, nil); ok; c, ok = p.await(s, c.loop) {
			c.loop.serve(c.worker)
		}
	}()
}

// await takes a thread out of the loop that it has done, where there was one, and waits for the next; false: the pool is
// closed.
func (p *Pool) await(s *seat, done *loop) (c call, ok bool) {
	p.mu.Lock()
	if done != nil {
		p.leave(done)
	}
	if len(p.open) > 0 {
		c = call{p.open[0], p.open[0].enter()}
		if c.loop.workers == c.loop.limit {
			p.open = slices.Delete(p.open, 0, 1)
		}
		p.mu.Unlock()
		return c, true
	}
	closed := p.closed
	s.idle = !closed
	p.mu.Unlock()
	if closed {
		return call{}, false
	}
	c, ok = <-s.calls
	return c, ok
}

// do runs a loop. Threads that are idle are sent into it; where there are none, the caller begins it itself, so that
// loops within loops get on, and threads join it when they have done theirs.
func (p *Pool) do(l *loop) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.plain()
		return
	}
	l.limit = min(l.limit, len(p.seats))
	l.ended = make(chan struct{})
	for i := range p.seats {
		if l.workers == l.limit {
			break
		}
		if s := &p.seats[i]; s.idle {
			s.idle = false
			s.calls <- call{l, l.enter()} // has room for the one call of an idle thread
		}
	}
	alone := l.workers == 0
	if alone {
		l.enter()
	}
	if l.workers < l.limit {
		p.open = append(p.open, l)
	}
	p.mu.Unlock()
	if alone {
		l.serve(0)
		p.mu.Lock()
		p.leave(l)
		p.mu.Unlock()
	}
	<-l.ended
}

// enter counts a worker in and numbers it; the caller holds the pool's lock.
func (l *loop) enter() (worker int) {
	l.active++
	l.workers++
	return l.workers - 1
}

// leave counts a worker out, which finds no more runs; the caller holds the lock.
func (p *Pool) leave(l *loop) {
	if i := slices.Index(p.open, l); i >= 0 {
		p.open = slices.Delete(p.open, i, i+1)
	}
	if l.active--; l.active == 0 {
		close(l.ended)
	}
}

// seats places threads: cores first, then siblings, and more threads than CPUs begin again.
func (t *Topology) seats(threads, near int) []seat {
	order, from := t.near(near)
	var once []int // nodes, by their place in order, one for each CPU
	for _, room := range []func(*Node) int{
		func(n *Node) int { return n.Cores.Count() },
		func(n *Node) int { return n.CPUs.Count() - n.Cores.Count() },
	} {
		rooms := make([]int, len(order))
		for i, n := range order {
			rooms[i] = room(n)
		}
		if from {
			for i, n := range rooms {
				once = append(once, slices.Repeat([]int{i}, n)...)
			}
		} else {
			once = append(once, spread(rooms)...)
		}
	}
	out := make([]seat, threads)
	if len(once) == 0 { // no CPUs are known: nothing to bind to
		for i := range out {
			out[i].node = -1
		}
		return out
	}
	counts := make([]int, len(order))
	for i := range out {
		counts[once[i%len(once)]]++
	}
	for i := range out {
		at := once[i%len(once)]
		n := order[at]
		out[i].node, out[i].mask = n.Number, n.CPUs
		if counts[at] <= n.Cores.Count() {
			out[i].mask = n.Cores
		}
	}
	return out
}

// near lists the nodes with CPUs of ours: by their distance from a node and true, where that is one of the topology's;
// else in rising order.
func (t *Topology) near(number int) (order []*Node, known bool) {
	var distances []int
	for i := range t.Nodes {
		if n := &t.Nodes[i]; number >= 0 && n.Number == number {
			known, distances = true, n.Distances
		}
	}
	far := map[*Node]int{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.CPUs.Empty() {
			continue
		}
		order = append(order, n)
		switch {
		case n.Number == number:
			far[n] = -1
		case i < len(distances):
			far[n] = distances[i]
		default:
			far[n] = 255
		}
	}
	if known {
		slices.SortStableFunc(order, func(a, b *Node) int { return far[a] - far[b] })
	}
	return order, known
}

// spread gives each place i of rooms[i], so that at any time places are taken in proportion.
func spread(rooms []int) (order []int) {
	taken := make([]int, len(rooms))
	for {
		best := -1
		for i, n := range rooms {
			if taken[i] < n && (best < 0 || (taken[i]+1)*rooms[best] < (taken[best]+1)*n) {
				best = i
			}
		}
		if best < 0 {
			return order
		}
		taken[best]++
		order = append(order, best)
	}
}
