package cuda

import (
	"context"
	"slices"
	"sync"

	"github.com/sealc2/sealc2/engine/status"
)

// shelf is blocks of memory whose content outlives the batches that use it, by key; those that nobody uses go least recently used first. The mutex of
// what it belongs to guards it.
type shelf[B any] struct {
	all   []*kept[B]
	clock int64
}

// kept is a block on a shelf. While one is being filled others that want it wait.
type kept[B any] struct {
	key   any
	block B
	bytes int64
	value any           // for whoever finds it
	ready bool          // filled
	over  chan struct{} // closed when it is, or never will be
	once  sync.Once     // closes it
	users int
	used  int64
}

// put is a new block, with a user, who fills it.
func (s *shelf[B]) put(key any, block B, bytes int64) *kept[B] {
	k := &kept[B]{key: key, block: block, bytes: bytes, over: make(chan struct{})}
	s.all = append(s.all, k)
	s.use(k)
	return k
}

func (s *shelf[B]) use(k *kept[B]) {
	s.clock++
	k.users++
	k.used = s.clock
}

// find counts a user of a block that is filled. Where there is none but somebody fills one, that is over once the channel is closed.
func (s *shelf[B]) find(key any) (k *kept[B], filling <-chan struct{}) {
	for _, k := range s.all {
		switch {
		case k.key != key:
		case k.ready:
			s.use(k)
			return k, nil
		default:
			select {
			case <-k.over:
			default:
				filling = k.over
			}
		}
	}
	return nil, filling
}

// fill marks a block as filled.
func (k *kept[B]) fill(value any) {
	k.value, k.ready = value, true
	k.end()
}

// end lets those in that wait for a block, which may never be filled. Whoever was to fill it calls this in any case, with or without the mutex.
func (k *kept[B]) end() { k.once.Do(func() { close(k.over) }) }

// wait waits until somebody has filled a block, or never will.
func wait(ctx context.Context, op string, filling <-chan struct{}) error {
	select {
	case <-filling:
		return nil
	case <-ctx.Done():
		return status.Wrap(status.Cancelled, op, "", context.Cause(ctx))
	}
}

// oldest is the block that has gone unused longest; nil where all are in use.
func (s *shelf[B]) oldest() (old *kept[B]) {
	for _, k := range s.all {
		if k.users == 0 && (old == nil || k.used < old.used) {
			old = k
		}
	}
	return old
}

// remove takes a block off, and says whether it was there.
func (s *shelf[B]) remove(k *kept[B]) bool {
	i := slices.Index(s.all, k)
	if i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
		k.end()
	}
	return i >= 0
}
