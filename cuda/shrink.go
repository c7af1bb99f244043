package cuda

import (
	"context"
	"errors"

	"github.com/sealc2/sealc2/cuda/driver"
)

// Shrink makes plans for what is left of the device's memory where other programs have taken so much of the backend's part that the driver
// refused it some, which is what err says a stage failed with. False where that is not so, or where nothing else could be planned. A stage that
// lacks memory by an older plan, after others were refused some, is in the same case. Regain gives plans back what others have given back, and Release
// the whole part.
func (b *Backend) Shrink(ctx context.Context, err error) bool {
	var refused *driver.Failure
	if !errors.As(err, &refused) {
		return b.shrunk()
	}
	if refused.Result != driver.OutOfMemory {
		return false
	}
	less := false
	failed := b.owner.do(ctx, computing, "cuda.Shrink", func(_ context.Context, s *session) error {
		free, _, err := s.device.Memory()
		if err != nil {
			return err
		}
		less = b.limit(s, func(now int64) int64 { return min(now, s.memory.within(free)) })
		return nil
	})
	if failed != nil {
		return false
	}
	if !less { // another batch may have been here before
		return b.shrunk()
	}
	b.owner.config.log("warn", "device %s: other programs have taken memory: plans are for %d bytes now", b.name, b.MemoryBytes())
	return true
}

// Regain makes plans for more again where others have given memory back, by an eighth of what plans are for at least: each change makes all plans anew. It
// asks the driver only where Shrink has made plans for less.
func (b *Backend) Regain(ctx context.Context) {
	if !b.shrunk() {
		return
	}
	changed := false
	err := b.owner.do(ctx, copying, "cuda.Regain", func(_ context.Context, s *session) error {
		free, _, err := s.device.Memory()
		if err != nil {
			return err
		}
		changed = b.limit(s, func(now int64) int64 {
			if more := min(s.memory.within(free), b.whole); more == b.whole || more > now+now/8 {
				return more
			}
			return now
		})
		return nil
	})
	if err == nil && changed {
		b.owner.config.log("info", "device %s: other programs have given memory back: plans are for %d bytes now", b.name, b.MemoryBytes())
	}
}

// shrunk says whether plans are for less than the whole part.
func (b *Backend) shrunk() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.card.limit < b.whole
}

// limit sets what may be taken of the device's memory, and what plans are for, by what they are for now, and says whether that is something else.
func (b *Backend) limit(s *session, by func(now int64) int64) bool {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.card.limit
	b.card.limit = by(before)
	s.memory.limit = b.card.limit
	return b.card.limit != before
}

// within is what is mapped, and what is free besides but for the headroom. The caller holds mu.
func (m *memory) within(free int64) int64 { return m.used + max(free-headroom(free), 0) }
