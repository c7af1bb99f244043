package cuda

import (
	"sync"

	"github.com/sealc2/sealc2/engine/status"
)

// memoLimit is how many values of a kind are remembered, which are some kilobytes each: programs, plans. A plan takes up to some tenths of a second to
// find, and three callers ask for it in each proof.
const memoLimit = 64

// memo remembers what was made for a key. Whoever asks first makes it, and others wait for that key alone. Safe for concurrent use; the zero value is
// empty.
type memo[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]*memoized[V]
}

// memoized is a value, once made is closed, or why there is none.
type memoized[V any] struct {
	made  chan struct{}
	value V
	err   error
}

// get is the value of a key, which make makes where it is not known. Errors: make's, for all that wait for it; the next one that asks tries again. A
// panic of make's is Internal.
func (m *memo[K, V]) get(key K, make func() (V, error)) (V, error) {
	one, mine := m.enter(key)
	if !mine {
		<-one.made
		return one.value, one.err
	}
	defer m.leave(key, one)
	one.err = guarded("cuda.memo", func() (err error) {
		one.value, err = make()
		return err
	})
	return one.value, one.err
}

// forget lets go of a key's value.
func (m *memo[K, V]) forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// enter finds a key's value, perhaps under way, or says that it is the caller's to make. Where there are too many, all others are forgotten.
func (m *memo[K, V]) enter(key K) (one *memoized[V], mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one = m.all[key]; one != nil {
		return one, false
	}
	if m.all == nil || len(m.all) >= memoLimit {
		m.all = map[K]*memoized[V]{}
	}
	one = &memoized[V]{made: make(chan struct{}), err: status.New(status.Internal, "cuda.memo", "", "a value", "none")}
	m.all[key] = one
	return one, true
}

// leave lets those in that wait, and forgets what could not be made.
func (m *memo[K, V]) leave(key K, one *memoized[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one.err != nil && m.all[key] == one {
		delete(m.all, key)
	}
	close(one.made)
}
