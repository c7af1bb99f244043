package cuda

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/status"
)

// Goal: a value is made once, whoever asks meanwhile; who asks for another one does not wait; what could not be made is tried again, and a panic is an error of all that
// wait. Method: one maker that stands still.
func TestMemo(t *testing.T) {
	var m memo[string, int]
	at, on := make(chan struct{}), make(chan struct{})
	var made atomic.Int64
	slow := func() (int, error) {
		close(at)
		<-on
		made.Add(1)
		return 7, nil
	}
	var asking sync.WaitGroup
	ask := func(make func() (int, error)) {
		asking.Go(func() {
			var err error
			defer status.Recover("test", &err)
			if v, err := m.get("slow", make); v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	ask(slow)
	<-at
	for range 3 {
		ask(func() (int, error) { made.Add(1); return 8, nil })
	}
	done := make(chan struct{})
	go func() {
		var err error
		defer close(done)
		defer status.Recover("test", &err)
		if v, err := m.get("other", func() (int, error) { return 9, nil }); v != 9 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("another key waits")
	}
	close(on)
	asking.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
	bad := errors.New("bad")
	if _, err := m.get("bad", func() (int, error) { return 0, bad }); err != bad {
		t.Error(err)
	}
	if _, err := m.get("bad", func() (int, error) { panic("worse") }); status.KindOf(err) != status.Internal {
		t.Error(err)
	}
	if v, err := m.get("bad", func() (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	for i := range 3 * memoLimit {
		if v, err := m.get(string(rune('a'+i)), func() (int, error) { return i, nil }); v != i || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	}
	if n := len(m.all); n > memoLimit {
		t.Errorf("%d are remembered", n)
	}
}
