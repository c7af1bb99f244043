package host

import (
	"context"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/status"
)

// onDevice takes so much of one device's memory.
func onDevice(i int, bytes int64) (n Needs) {
	n.DeviceBytes, n.Memory[i] = bytes, bytes
	return n
}

// Goal: what is free on one device is not granted to a request for another, and what one could never have is refused, whatever there is in all.
func TestBudget_SeveralMemories(t *testing.T) {
	b := NewBudget(onDevice(0, 100).Plus(onDevice(1, 10)))
	if _, err := b.Reserve(t.Context(), onDevice(1, 11)); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "memory of one device") ||
		!strings.Contains(err.Error(), "11 bytes") || !strings.Contains(err.Error(), "10 bytes") {
		t.Errorf("more than the device has: %v", err)
	}
	first := mustReserve(t, b, onDevice(1, 8).Plus(onDevice(0, 20)))
	granted := make(chan *Reservation, 1)
	go func() {
		r, err := b.Reserve(context.Background(), onDevice(1, 3))
		if err != nil {
			t.Error(err)
		}
		granted <- r
	}()
	until(t, "a request that waits", func() bool { return b.Usage().Waiting == 1 })
	first.Release()
	second := <-granted
	if u := b.Usage(); u.Used != onDevice(1, 3) || u.Peak.Memory[1] != 8 || u.Peak.Memory[0] != 20 {
		t.Errorf("%+v", u)
	}
	// A request that fits beside it waits for nobody.
	mustReserve(t, b, onDevice(0, 100)).Release()
	second.Release()
	if u := b.Usage(); u.Used != (Needs{}) {
		t.Errorf("%+v used at the end", u.Used)
	}
}
