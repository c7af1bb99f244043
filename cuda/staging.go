package cuda

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// The ring: pinned host memory through which everything goes up that lies elsewhere. Each worker has two slots, and fills
// one while the other is copied. Eight of them copy pageable memory as fast as PCIe 5 takes it.
const (
	ringWorkers = 8
	// pinnedBytes is its size where nobody says: slots of 4 MiB, of which a copy takes 75 us.
	pinnedBytes = 2 * ringWorkers * 4 << 20
	// minPinnedBytes gives slots of some points.
	minPinnedBytes = 2 * ringWorkers * 4 << 10
	// downBytes is pinned memory for results.
	downBytes = 1 << 16
)

// ring is owned by the session; its slots are written by the workers of one upload at a time.
type ring struct {
	pinned    *driver.Pinned
	slotBytes int64
	events    [2 * ringWorkers]*driver.Event
	busy      sync.Mutex // one upload at a time
}

func (r *ring) slot(i int) unsafe.Pointer {
	return unsafe.Add(r.pinned.Pointer(), int64(i)*r.slotBytes)
}

// send copies count items of some bytes each to the device: fill writes items [from, from+n) to memory at to, and is
// called by several goroutines at once. It returns when all have arrived, or with the first error. The batch has a session.
func (b *batch) send(ctx context.Context, op string, dst driver.Ptr, count int, itemBytes int64,
	fill func(ctx context.Context, to unsafe.Pointer, from, n int) error) error {
	if count == 0 {
		return nil
	}
	b.mu.Lock()
	r := &b.session.ring
	b.mu.Unlock()
	r.busy.Lock()
	defer r.busy.Unlock()
	chunk := max(1, min(int(r.slotBytes/itemBytes), count))
	chunks := (count + chunk - 1) / chunk
	workers := max(1, min(b.backend.threads, ringWorkers, chunks))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func(w int) error {
		for k := 0; ; k++ {
			i := int(next.Add(1)) - 1
			if i >= chunks {
				return nil
			}
			mine, other := 2*w+k&1, 2*w+1-k&1
			from := i * chunk
			n := min(chunk, count-from)
			if err := fill(ctx, r.slot(mine), from, n); err != nil {
				return err
			}
			err := b.do(ctx, copying, op, func(ctx context.Context, s *session) error {
				if err := s.up.CopyToDevice(dst.Add(int64(from)*itemBytes), r.slot(mine), int64(n)*itemBytes); err != nil {
					return err
				}
				if err := s.up.Record(r.events[mine]); err != nil {
					return err
				}
				return r.events[other].Synchronize(ctx)
			})
			if err != nil {
				return err
			}
		}
	}
	failed := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				if failed[w] != nil {
					cancel(failed[w])
				}
			}()
			defer status.Recover(op, &failed[w])
			failed[w] = work(w)
		}()
	}
	wg.Wait()
	// What others fail with after the first is that they were cancelled for it.
	var first error
	for _, err := range failed {
		if err != nil && (first == nil || status.KindOf(first) == status.Cancelled) {
			first = err
		}
	}
	// The slots are reused, and the next stage reads: all copies are over before either.
	err := b.do(context.WithoutCancel(ctx), copying, op, func(ctx context.Context, s *session) error { return s.up.Synchronize(ctx) })
	if first != nil {
		return first
	}
	return err
}

// sendSlice copies a slice that lies in memory.
func sendSlice[T any](ctx context.Context, b *batch, op string, dst driver.Ptr, from []T) error {
	size := int64(unsafe.Sizeof(*new(T)))
	return b.send(ctx, op, dst, len(from), size, func(_ context.Context, to unsafe.Pointer, at, n int) error {
		copy(unsafe.Slice((*T)(to), n), from[at:at+n])
		return nil
	})
}
