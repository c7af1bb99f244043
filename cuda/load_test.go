package cuda

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
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
				if block.block, err = s.device.NewPinned(pages*page, 1); err != nil {
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
		if block, filling := h.find("one"); block != nil || filling == nil {
			t.Error("found before it is filled")
		}
		pin("one", 1, false) // somebody fills it
		for _, block := range []*hostBlock{one, two, three} {
			h.fill(block)
			if err := h.let(block); err != nil {
				return err
			}
		}
		if block, _ := h.find("one"); block != one { // used last now
			t.Error("one is gone")
		}
		four := pin("four", 2, true)
		if block, filling := h.find("two"); block != nil || filling != nil || len(h.blocks.all) != 3 {
			t.Errorf("%d blocks, want one, three and four", len(h.blocks.all))
		}
		pin("five", 11, false)
		if err := h.let(four); err != nil { // it was never filled
			return err
		}
		if len(h.blocks.all) != 2 || h.used != 7*page {
			t.Errorf("%d blocks, %d bytes", len(h.blocks.all), h.used)
		}
		if err := h.freeAll(); err != nil {
			return err
		}
		if len(h.blocks.all) != 1 || h.blocks.all[0] != one {
			t.Errorf("%d blocks left, want the one in use", len(h.blocks.all))
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

// counted is parameters whose points are counted as they are read; the first read stands still until it may go on.
type counted struct {
	*params.File
	at, on chan struct{}
	first  sync.Once
	points atomic.Int64
}

func (c *counted) ReadEncoded(ctx context.Context, b groth16.Block, from int, dst []byte) error {
	c.first.Do(func() {
		close(c.at)
		<-c.on
	})
	c.points.Add(int64(len(dst)) / group(b).PointBytes())
	return c.File.ReadEncoded(ctx, b, from, dst)
}

// Goal: parameters that two want at once are read and laid down once, on the device and in pinned memory; the second one waits for the first, and, where that fails,
// brings them up itself. Method: two that preload, of which the first stands still in its first read.
func TestPreload_Twice(t *testing.T) {
	for _, resident := range []bool{true, false} {
		for _, cancelled := range []bool{false, true} {
			c, b := streaming(t, 2, 1, 1<<20)
			if resident {
				f := form{resident: [groth16.BlockCount]bool{true, true, true, true, true}, roots: fullRoots, vectors: 3, count: 1, slot: 64 * 192}
				if err := f.plan(b, c.v); err != nil {
					t.Fatal(err)
				}
			}
			srs := &counted{File: c.v.srs, at: make(chan struct{}), on: make(chan struct{})}
			errs := make(chan error, 2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			load := func(ctx context.Context) {
				var err error
				defer func() { errs <- err }()
				defer status.Recover("test", &err)
				err = b.Preload(ctx, c.v.program, 1, srs)
			}
			go load(ctx)
			<-srs.at
			go load(t.Context())
			time.Sleep(20 * time.Millisecond) // so that it waits; if it does not yet, it finds what is there
			if cancelled {
				cancel()
			}
			close(srs.on)
			failed := 0
			for range 2 {
				if err := <-errs; status.KindOf(err) == status.Cancelled {
					failed++
				} else if err != nil {
					t.Error(err)
				}
			}
			if (failed == 1) != cancelled {
				t.Errorf("resident %t: %d were cancelled", resident, failed)
			}
			all := int64(0)
			for block := range groth16.BlockCount {
				all += int64(c.v.srs.Len(block))
			}
			if n := srs.points.Load(); n != all && !cancelled {
				t.Errorf("resident %t: %d points were read, of %d", resident, n, all)
			}
			err := b.owner.do(t.Context(), copying, "test", func(_ context.Context, s *session) error {
				keys := map[any]int{}
				for _, r := range s.memory.kept.all {
					keys[r.key]++
				}
				for _, r := range s.host.blocks.all {
					keys[r.key]++
				}
				for block := range groth16.BlockCount {
					if n := keys[blockKey{srs.ID(), block}]; n != 1 {
						t.Errorf("resident %t, cancelled %t: %s lies in %d places", resident, cancelled, block, n)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			settled(t, b)
		}
	}
}

// Goal: who waits for what another one brings up stops waiting when it is cancelled.
func TestShelf_Wait(t *testing.T) {
	var s shelf[int]
	k := s.put("key", 1, 1)
	none, filling := s.find("key")
	if none != nil || filling == nil {
		t.Fatal("found before it is filled")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx, "test", filling); status.KindOf(err) != status.Cancelled {
		t.Error(err)
	}
	k.end()
	if err := wait(t.Context(), "test", filling); err != nil {
		t.Error(err)
	}
	if other, filling := s.find("key"); other != nil || filling != nil {
		t.Error("one that nobody fills any more")
	}
	k.fill("value")
	if found, _ := s.find("key"); found != k || k.users != 2 || s.oldest() != nil {
		t.Errorf("%+v", found)
	}
	k.users = 0
	if s.oldest() != k || !s.remove(k) || s.remove(k) {
		t.Error("it is not the oldest, or goes twice")
	}
}
