package cuda

import (
	"context"
	"testing"

	"github.com/sealc2/sealc2/cuda/sim"
)

// Goal: pinned memory stays within its limit, what is in use stays, and what has gone unused longest goes first. Method: blocks of many sizes, of which some are let
// go of, on a simulated device that counts what is pinned.
func TestHostMemory(t *testing.T) {
	c, b := streaming(t, 2, 1, 1<<20)
	const page = 1 << 12
	err := b.owner.do(t.Context(), copying, "test", func(_ context.Context, s *session) error {
		h := &s.host
		h.limit = 10 * page
		before := c.double.Live().Pinned
		pin := func(key string, pages int64, wants bool) *hostBlock {
			t.Helper()
			block, err := h.book(key, pages*page)
			if err != nil || (block != nil) != wants {
				t.Fatalf("%s: %v, %v", key, block, err)
			}
			if block != nil {
				if block.pinned, err = s.device.NewPinned(pages*page, 1); err != nil {
					t.Fatal(err)
				}
			}
			if pinned := c.double.Live().Pinned - before; pinned != h.used || h.used > h.limit {
				t.Errorf("%s: %d bytes pinned, %d booked of %d", key, pinned, h.used, h.limit)
			}
			return block
		}
		one, two, three := pin("one", 4, true), pin("two", 3, true), pin("three", 3, true)
		pin("four", 1, false) // all are in use
		if h.find("one") != nil {
			t.Error("found before it is filled")
		}
		pin("one", 1, false) // somebody fills it
		for _, block := range []*hostBlock{one, two, three} {
			h.fill(block)
			if err := h.let(block); err != nil {
				return err
			}
		}
		if h.find("one") != one { // used last now
			t.Error("one is gone")
		}
		four := pin("four", 2, true)
		if h.find("two") != nil || len(h.blocks) != 3 {
			t.Errorf("%d blocks, want one, three and four", len(h.blocks))
		}
		pin("five", 11, false)
		if err := h.let(four); err != nil { // it was never filled
			return err
		}
		if len(h.blocks) != 2 || h.used != 7*page {
			t.Errorf("%d blocks, %d bytes", len(h.blocks), h.used)
		}
		if err := h.freeAll(); err != nil {
			return err
		}
		if len(h.blocks) != 1 || h.blocks[0] != one {
			t.Errorf("%d blocks left, want the one in use", len(h.blocks))
		}
		return h.let(one)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if live := c.double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}
