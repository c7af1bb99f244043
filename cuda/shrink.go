package cuda

import (
	"context"
	"errors"

	"github.com/sealc2/sealc2/cuda/driver"
)

// Shrink makes plans for what is left of the device's memory where other programs have taken so much of the backend's part that the driver
// refused it some, which is what err says a stage failed with. False where that is not so, or where nothing else could be planned. A stage that
// lacks memory by an older plan, after others were refused some, is in the same case. Release gives the whole part back to plans, once the others have
// gone.
func (b *Backend) Shrink(ctx context.Context, err error) bool {
	var refused *driver.Failure
	if !errors.As(err, &refused) {
		return b.shrunk()
	}
	if refused.Result != driver.OutOfMemory {
		return false
	}
	shrunk := false
	failed := b.owner.do(ctx, computing, "cuda.Shrink", func(_ context.Context, s *session) error {
		free, _, err := s.device.Memory()
		if err != nil {
			return err
		}
		limit := s.memory.shrink(free - headroom(free))
		b.mu.Lock()
		defer b.mu.Unlock()
		shrunk = limit < b.card.limit
		b.card.limit = limit
		return nil
	})
	if failed != nil {
		return false
	}
	if !shrunk { // another batch may have been here before
		return b.shrunk()
	}
	b.owner.config.log("warn", "device %s: other programs have taken memory: plans are for %d bytes now", b.name, b.MemoryBytes())
	return true
}

// shrunk says whether plans are for less than the whole part.
func (b *Backend) shrunk() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.card.limit < b.whole
}

// shrink lowers the limit to what is mapped and what is free besides, and returns it.
func (m *memory) shrink(free int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = min(m.limit, m.used+max(free, 0))
	return m.limit
}

// grow takes back what shrink did.
func (b *Backend) grow(s *session) {
	s.memory.mu.Lock()
	s.memory.limit = b.whole
	s.memory.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.card.limit = b.whole
}
