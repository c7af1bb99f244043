package simulate

import (
	"context"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine/host"
)

// Card is a GPU as the scheduler sees it, or a region of one.
type Card struct {
	Title string
	Bytes int64 // of its memory
	slots int
	part  *shared // of the card that this is a region of
}

// Name is the card's.
func (c *Card) Name() string { return c.Title }

// Slots is one: a stage takes the card.
func (c *Card) Slots() int { return max(1, c.slots) }

// Region is a part of the card's memory set apart, a device of its own whose stages share the card's arithmetic with the others'.
func (c *Card) Region(title string, bytes int64) *Card {
	c.Bytes -= bytes
	return &Card{Title: title, Bytes: bytes, part: c.power()}
}

func (c *Card) power() *shared {
	if c.part == nil {
		c.part = newShared(demand{1})
	}
	return c.part
}

// Machine is a host with its cards.
type Machine struct {
	Cores     int
	Bandwidth float64 // of memory, GB/s; 0: no limit
	HostBytes int64   // for proofs
	Cards     []*Card

	once sync.Once
	cpu  *shared
}

// host is what all host stages share.
func (m *Machine) host() *shared {
	m.once.Do(func() { m.cpu = newShared(demand{float64(m.Cores), m.Bandwidth}) })
	return m.cpu
}

// Budget is one over all of the machine.
func (m *Machine) Budget() *host.Budget {
	ceiling := host.Needs{HostBytes: m.HostBytes, Threads: m.Cores}
	for _, c := range m.Cards {
		ceiling.DeviceBytes += c.Bytes
	}
	return host.NewBudget(ceiling)
}

// demand is how much of each resource a user wants while it runs at full speed: cores and memory bandwidth, or a card.
type demand [2]float64

// shared is resources whose users go at the speed at which all together take no more than there is.
type shared struct {
	mu      sync.Mutex
	limit   demand // 0: none
	wanted  demand
	users   int
	changed chan struct{} // closed when users come or go
}

func newShared(limit demand) *shared { return &shared{limit: limit, changed: make(chan struct{})} }

// join adds d (or takes it away, sign -1) and tells the others; the caller holds mu.
func (s *shared) join(d demand, sign float64) {
	s.users += int(sign)
	for i := range d {
		s.wanted[i] += sign * d[i]
	}
	if s.users == 0 {
		s.wanted = demand{} // nothing is left of rounding
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// speed is the share of full speed that a user has; the caller holds mu.
func (s *shared) speed(d demand) float64 {
	least := 1.0
	for i, limit := range s.limit {
		if d[i] > 0 && limit > 0 && s.wanted[i] > limit {
			least = min(least, limit/s.wanted[i])
		}
	}
	return least
}

// use takes work of full speed, longer where others want the same. It returns early when ctx ends.
func (s *shared) use(ctx context.Context, work time.Duration, d demand) error {
	s.mu.Lock()
	s.join(d, 1)
	defer func() {
		s.mu.Lock()
		s.join(d, -1)
		s.mu.Unlock()
	}()
	left := float64(work)
	for {
		speed, changed := s.speed(d), s.changed
		s.mu.Unlock()
		began := time.Now()
		timer := time.NewTimer(time.Duration(left / speed))
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-changed:
			timer.Stop()
		}
		left = max(0, left-speed*float64(time.Since(began)))
		s.mu.Lock()
	}
}
