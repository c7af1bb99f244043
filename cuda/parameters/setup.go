package parameters

import (
	"context"
	"sync"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Setup is a setup under way.
type Setup struct {
	device *Device
	spec   *setup.Spec
	making *setup.Making
	arena  *driver.Arena
	batch  int // points that are made at a time
	buffer [2]driver.Ptr
}

// setupBytes is the device memory of a setup: scratch, and two buffers of a batch of points.
func setupBytes(spec *setup.Spec, d *driver.Device) (scratch, buffer int64, batch int) {
	most := 0
	for b := range groth16.BlockCount {
		most = max(most, spec.Len(b))
	}
	batch = max(1, min(points.BatchCount(d), most))
	roundUp := func(bytes int64) int64 { return (bytes + align - 1) &^ (align - 1) }
	return roundUp(spec.ScratchBytes(d)), roundUp(int64(batch) * points.G2.PointBytes()), batch
}

// Begin makes what all points come from, and the key. Errors: NoMemory, with both numbers, where the card's memory does not
// hold the work; those of setup.Maker's Begin.
func (d *Device) Begin(ctx context.Context, spec *setup.Spec) (s *Setup, err error) {
	const op = "parameters.Begin"
	s = &Setup{device: d, spec: spec}
	err = d.in(op, func() (err error) {
		scratch, buffer, batch := setupBytes(spec, d.device)
		if s.arena, err = d.take(op, "the setup of "+spec.Name(), scratch+2*buffer); err != nil {
			return err
		}
		s.batch = batch
		s.buffer = [2]driver.Ptr{s.arena.Base().Add(scratch), s.arena.Base().Add(scratch + buffer)}
		s.making, err = spec.Begin(ctx, d.maker, d.compute, s.arena.Base())
		return err
	})
	if err != nil {
		_ = s.Close() // what cannot be given back says less than the error
		return nil, err
	}
	return s, nil
}

// Key is the verifying key. It must not be written.
func (s *Setup) Key() *groth16.VerifyingKey { return s.making.Key() }

// Put takes the next points of a block, encoded as parameter files have them. It may keep the memory after it has returned
// without an error, and then calls done exactly once, from any goroutine, whatever happens meanwhile.
type Put func(piece []byte, done func()) error

// Block makes the points of a block and gives them to put, in order. It returns once all its memory is back. Points are made, encoded
// and copied beside each other: two batches take turns. Errors: put's; Cancelled; the driver's.
func (s *Setup) Block(ctx context.Context, b groth16.Block, put Put) error {
	const op = "parameters.Block"
	w := &sending{Setup: s, block: b, group: setup.GroupOf(b), count: s.spec.Len(b), put: put, free: make(chan int, slotCount)}
	for i := range slotCount {
		w.free <- i
	}
	err := s.device.in(op, func() error { return w.run(ctx) })
	w.given.Wait()
	return err
}

// sending is a block on its way down.
type sending struct {
	*Setup
	block  groth16.Block
	group  points.Group
	count  int
	put    Put
	free   chan int       // slots
	given  sync.WaitGroup // pieces that put has and is not done with
	queued []copying      // in order
}

// copying is a copy to a slot that is under way.
type copying struct{ slot, bytes int }

// points is how many points a batch has.
func (w *sending) points(batch int) int { return min(w.batch, w.count-batch*w.batch) }

func (w *sending) run(ctx context.Context) error {
	if w.count == 0 {
		return nil
	}
	if err := w.make(0); err != nil {
		return err
	}
	for batch := 0; batch*w.batch < w.count; batch++ {
		if ctx.Err() != nil {
			return status.Wrap(status.Cancelled, "parameters.Block", w.block.String(), context.Cause(ctx))
		}
		if (batch+1)*w.batch < w.count {
			if err := w.make(batch + 1); err != nil {
				return err
			}
		}
		if err := w.send(ctx, batch); err != nil {
			return err
		}
	}
	for len(w.queued) > 0 {
		if err := w.deliver(ctx); err != nil {
			return err
		}
	}
	return nil
}

// make queues the making of a batch, for when its buffer's last points have been copied.
func (w *sending) make(batch int) error {
	d, turn, n := w.device, batch&1, w.points(batch)
	if batch >= 2 {
		if err := d.compute.Wait(d.copied[turn]); err != nil {
			return err
		}
	}
	if err := w.making.Points(w.block, batch*w.batch, n, w.buffer[turn]); err != nil {
		return err
	}
	if err := d.points.Encode(d.compute, w.group, w.buffer[turn], w.buffer[turn], n); err != nil {
		return err
	}
	return d.compute.Record(d.made[turn])
}

// send queues the copies of a batch, and delivers those that are over.
func (w *sending) send(ctx context.Context, batch int) error {
	d, turn, n, size := w.device, batch&1, w.points(batch), w.group.PointBytes()
	if err := d.copies.Wait(d.made[turn]); err != nil {
		return err
	}
	piece := d.pieceOf(w.group)
	for from := 0; from < n; from += piece {
		i, err := w.slot(ctx)
		if err != nil {
			return err
		}
		bytes := int64(min(piece, n-from)) * size
		w.queued = append(w.queued, copying{i, int(bytes)})
		if err := d.copies.CopyToHost(unsafe.Pointer(&d.slot(i)[0]), w.buffer[turn].Add(int64(from)*size), bytes); err != nil {
			return err
		}
		if err := d.copies.Record(d.moved[i]); err != nil {
			return err
		}
	}
	return d.copies.Record(d.copied[turn])
}

// slot waits for a free slot, and delivers what has arrived meanwhile: at the latest when there is no free slot.
func (w *sending) slot(ctx context.Context) (int, error) {
	for len(w.queued) > 0 {
		if len(w.free) > 0 {
			if over, err := w.device.moved[w.queued[0].slot].Done(); err != nil {
				return 0, err
			} else if !over {
				break
			}
		}
		if err := w.deliver(ctx); err != nil {
			return 0, err
		}
	}
	return <-w.free, nil
}

// deliver waits for the oldest copy and gives it to put.
func (w *sending) deliver(ctx context.Context) error {
	c := w.queued[0]
	if err := w.device.moved[c.slot].Synchronize(ctx); err != nil {
		return err
	}
	w.queued = w.queued[1:]
	done := func() {
		w.free <- c.slot
		w.given.Done()
	}
	w.given.Add(1)
	err := w.put(w.device.slot(c.slot)[:c.bytes], done)
	if err != nil {
		done()
	}
	return err
}

// Close gives the memory back. Closing twice is legal.
func (s *Setup) Close() error { return s.device.release(s.arena) }
