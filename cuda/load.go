package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// blockKey names resident points.
type blockKey struct {
	id    string
	block groth16.Block
}

// group is the group of a block's points.
func group(b groth16.Block) points.Group {
	if b == groth16.BlockB2 {
		return points.G2
	}
	return points.G1
}

// load makes a block of the parameters resident, and pins it until the batch has summed it up for the last time.
func (b *batch) load(ctx context.Context, block groth16.Block) error {
	op := "cuda.load_" + blockNames[block]
	_, err := b.resident(ctx, op, blockKey{b.srs.ID(), block}, b.plan.shape.blockBytes(block), func(ctx context.Context, r *resident) error {
		return b.bring(ctx, op, block, 0, b.plan.shape.points[block], r.block.Base())
	})
	return err
}

// bring copies points [from, from+count) of a block to the device and has them decoded and checked there, which takes the CPU most of a
// microsecond a point.
func (b *batch) bring(ctx context.Context, op string, block groth16.Block, from, count int, to driver.Ptr) error {
	pointBytes := group(block).PointBytes()
	srs, encoded := b.srs.(groth16.EncodedSRS)
	err := b.send(ctx, op, to, count, pointBytes, func(ctx context.Context, memory unsafe.Pointer, at, n int) error {
		return b.read(ctx, block, from+at, memory, n)
	})
	if err != nil || !encoded {
		return err
	}
	return b.do(ctx, copying, op, func(ctx context.Context, s *session) error {
		if err := b.queueDecode(s, block, to, from, count); err != nil {
			return err
		}
		return b.decoded(ctx, op, s, srs, block)
	})
}

// read fills memory with points as the parameters have them: encoded where they can be had so.
func (b *batch) read(ctx context.Context, block groth16.Block, from int, to unsafe.Pointer, n int) error {
	if srs, ok := b.srs.(groth16.EncodedSRS); ok {
		return srs.ReadEncoded(ctx, block, from, unsafe.Slice((*byte)(to), int64(n)*group(block).PointBytes()))
	}
	if block == groth16.BlockB2 {
		return b.srs.ReadG2(ctx, from, unsafe.Slice((*bls.G2Affine)(to), n))
	}
	return b.srs.ReadG1(ctx, block, from, unsafe.Slice((*bls.G1Affine)(to), n))
}

// queueDecode queues the decoding of points, the first of which is number from, in place.
func (b *batch) queueDecode(s *session, block groth16.Block, at driver.Ptr, from, count int) error {
	if err := s.up.Fill8(s.word.Base(), 0xff, points.FaultBytes); err != nil {
		return err
	}
	return s.points.Decode(s.up, group(block), at, at, uint64(from), count, s.word.Base())
}

// decoded waits for what was queued, and names a point that is bad as the file's own reader words it.
func (b *batch) decoded(ctx context.Context, op string, s *session, srs groth16.EncodedSRS, block groth16.Block) error {
	var word [1]uint64
	if err := fetch(ctx, s.up, s.arrived, s.word.Base(), word[:]); err != nil {
		return err
	}
	index, fault, found := points.FaultOf(word[0])
	if !found {
		return nil
	}
	var err error
	if block == groth16.BlockB2 {
		err = srs.ReadG2(ctx, int(index), make([]bls.G2Affine, 1))
	} else {
		err = srs.ReadG1(ctx, block, int(index), make([]bls.G1Affine, 1))
	}
	if err != nil {
		return err
	}
	return status.New(status.SelfCheck, op, fmt.Sprintf("%s[%d]", block, index), "a point that is good on the CPU to be good on the GPU", fmt.Sprintf("fault %d", fault))
}

// hostMemory is pinned host memory for what does not fit the device, up to a limit: points, decoded, which go up from it at full speed, and the
// vectors of hosted quotients. Its blocks outlive the batches that use them, and go least recently used first where others want room. They are
// made and closed by the lane that copies.
type hostMemory struct {
	mu     sync.Mutex
	limit  int64
	used   int64
	blocks shelf[*driver.Pinned]
}

// hostBlock is a block of it.
type hostBlock = kept[*driver.Pinned]

// find counts a user of a block that is filled; where there is none but another batch fills one, that is over once the channel is closed.
func (h *hostMemory) find(key any) (*hostBlock, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.blocks.find(key)
}

// book is a new block without memory, with a user. Blocks that nobody uses make room. nil where there is not enough, or the driver has not let go of
// one of that key. Errors: the driver's, of giving memory back.
func (h *hostMemory) book(key any, bytes int64) (*hostBlock, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes > h.limit || slices.ContainsFunc(h.blocks.all, func(b *hostBlock) bool { return b.key == key }) {
		return nil, nil
	}
	for h.used+bytes > h.limit {
		if freed, err := h.free(); err != nil || !freed {
			return nil, err
		}
	}
	h.used += bytes
	return h.blocks.put(key, nil, bytes), nil
}

// free gives back the block that has gone unused longest; false where all are in use. The caller holds mu. A block that the driver does
// not let go of stays, to be tried again.
func (h *hostMemory) free() (bool, error) {
	b := h.blocks.oldest()
	if b == nil {
		return false, nil
	}
	return true, h.giveBack(b)
}

// giveBack gives a block's memory back; the caller holds mu.
func (h *hostMemory) giveBack(b *hostBlock) error {
	if b.block != nil {
		if err := b.block.Close(); err != nil {
			return err
		}
	}
	if h.blocks.remove(b) {
		h.used -= b.bytes
	}
	return nil
}

// freeAll gives back all that nobody uses.
func (h *hostMemory) freeAll() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if freed, err := h.free(); err != nil || !freed {
			return err
		}
	}
}

// fill marks a block as filled.
func (h *hostMemory) fill(b *hostBlock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.fill(nil)
}

// let ends a use. One that was not filled is given back, where the driver takes it.
func (h *hostMemory) let(b *hostBlock) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.users--
	if b.ready || b.users > 0 {
		return nil
	}
	b.end()
	return h.giveBack(b)
}

// left says how much there is, for errors.
func (h *hostMemory) left() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%s of %s, the rest in use", host.FormatBytes(h.limit-h.used), host.FormatBytes(h.limit))
}

// close gives everything back.
func (h *hostMemory) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	for _, b := range h.blocks.all {
		if b.block != nil {
			all = append(all, b.block.Close())
		}
	}
	h.blocks.all, h.used = nil, 0
	return errors.Join(all...)
}

// hostBlock is pinned host memory under a key, for the batch until Close: a block that is there, if need be once another batch has filled it, or a fresh one, whose
// content, if it is to have some, is the caller's to make, who ends it in any case. Registering memory stalls the device, once a block and session. nil where the limit
// leaves no room. Errors: NoMemory where the machine has less; Cancelled; else the driver's.
func (b *batch) hostBlock(ctx context.Context, op string, key any, bytes int64, content bool) (block *hostBlock, fresh bool, err error) {
	for {
		var filling <-chan struct{}
		err = b.do(ctx, copying, op, func(_ context.Context, s *session) (err error) {
			if block, filling = s.host.find(key); filling != nil {
				return nil
			}
			if block == nil {
				if block, err = s.host.book(key, bytes); err != nil || block == nil {
					return err
				}
				fresh = true
				if block.block, err = s.device.NewPinned(bytes, b.backend.threads); err != nil {
					return errors.Join(err, s.host.let(block))
				}
				if !content {
					s.host.fill(block)
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.hostBlocks = append(b.hostBlocks, block)
			return nil
		})
		if err == nil && filling != nil {
			if err = wait(ctx, op, filling); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, false, err
		}
		return block, fresh, nil
	}
}

// letHost ends the batch's use of a block whose content could not be made.
func (b *batch) letHost(op string, block *hostBlock) error {
	return b.do(context.Background(), copying, op, func(_ context.Context, s *session) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if i := slices.Index(b.hostBlocks, block); i >= 0 {
			b.hostBlocks = slices.Delete(b.hostBlocks, i, i+1)
			return s.host.let(block)
		}
		return nil
	})
}

// pinPoints copies a block that is not resident to pinned host memory, where there is room for it: through the device, which decodes
// and checks it.
func (b *batch) pinPoints(ctx context.Context, block groth16.Block) error {
	op := "cuda.pin_" + blockNames[block]
	host, fresh, err := b.hostBlock(ctx, op, blockKey{b.srs.ID(), block}, b.plan.shape.blockBytes(block), true)
	if status.KindOf(err) == status.NoMemory {
		b.backend.owner.config.log("warn", "device %s: points of %s go up from the file each time: %v", b.backend.name, b.srs.ID(), err)
		return nil
	}
	if err != nil || host == nil {
		return err
	}
	if fresh {
		defer host.end()
		if err := b.fillPinned(ctx, op, block, host.block); err != nil {
			if left := b.letHost(op, host); left != nil {
				b.backend.owner.config.log("warn", "device %s: %v", b.backend.name, left)
			}
			return err
		}
		if err := b.do(ctx, copying, op, func(_ context.Context, s *session) error { s.host.fill(host); return nil }); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.points[block] = host.block
	return nil
}

// hostedKey names the host memory of hosted quotients of 2^log rows.
type hostedKey struct{ log int }

// pinVectors is host memory for the batch's hosted quotients. Errors: NoMemory, with both numbers; else the driver's.
func (b *batch) pinVectors(ctx context.Context) error {
	const op = "cuda.pin_vectors"
	log := b.plan.shape.log
	block, _, err := b.hostBlock(ctx, op, hostedKey{log}, ntt.HostedBytes(log), false)
	if err != nil {
		return err
	}
	return b.do(ctx, copying, op, func(_ context.Context, s *session) error {
		if block == nil {
			return status.New(status.NoMemory, op, "host memory for vectors", host.FormatBytes(ntt.HostedBytes(log)), s.host.left())
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.vectorsAt = block.block
		return nil
	})
}

// fillPinned reads a block piece by piece, and has the device decode each while the next one is read.
func (b *batch) fillPinned(ctx context.Context, op string, block groth16.Block, pinned *driver.Pinned) error {
	count, pointBytes := b.plan.shape.points[block], group(block).PointBytes()
	piece := int(b.plan.bounceBytes() / pointBytes)
	pieces := (count + piece - 1) / piece
	srs, encoded := b.srs.(groth16.EncodedSRS)
	at := func(i int) unsafe.Pointer { return unsafe.Add(pinned.Pointer(), int64(i)*int64(piece)*pointBytes) }
	size := func(i int) int { return min(piece, count-i*piece) }
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	read := make(chan int, pieces)
	var failed error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(read)
		defer status.Recover(op, &failed)
		for i := range pieces {
			// Small runs, so that many threads share a piece evenly.
			const run = 1 << 12
			if failed = host.Do(ctx, op, size(i), run, b.backend.threads, func(_, from, to int) error {
				return b.read(ctx, block, i*piece+from, unsafe.Add(at(i), int64(from)*pointBytes), to-from)
			}); failed != nil {
				return
			}
			read <- i
		}
	})
	var err error
	for i := range read {
		if !encoded || err != nil {
			continue
		}
		err = b.do(ctx, copying, op, func(ctx context.Context, s *session) error {
			slot, bytes := b.feeder.bounce(), int64(size(i))*pointBytes
			if err := s.up.CopyToDevice(slot, at(i), bytes); err != nil {
				return err
			}
			if err := b.queueDecode(s, block, slot, i*piece, size(i)); err != nil {
				return err
			}
			if err := s.up.CopyToHost(at(i), slot, bytes); err != nil {
				return err
			}
			return b.decoded(ctx, op, s, srs, block)
		})
		if err != nil {
			cancel(err)
		}
	}
	reader.Wait()
	if err != nil {
		return err
	}
	return failed
}

// feeder brings points up piece by piece, in the order in which the batch's sums take them, as far ahead as there are slots. Batches share
// the slots' memory, and one at a time feeds: the one that computes, from its first rows on to its last sum, its failure or its end.
type feeder struct {
	batch *batch
	slots *resident
	free  chan driver.Ptr
	ready chan driver.Ptr
	over  chan struct{}
	err   error // once over

	mu     sync.Mutex
	cancel context.CancelFunc // nil before the start
	ended  bool               // the slots are another batch's
}

// slotsKey names the memory of slots.
type slotsKey struct{ count, bytes int64 }

func newFeeder(b *batch) *feeder {
	return &feeder{batch: b, free: make(chan driver.Ptr, b.plan.slots), ready: make(chan driver.Ptr, b.plan.slots), over: make(chan struct{})}
}

// prepare pins the slots.
func (f *feeder) prepare(ctx context.Context) (err error) {
	if f.slots != nil {
		return nil
	}
	p := f.batch.plan
	f.slots, err = f.batch.resident(ctx, "cuda.feed", slotsKey{int64(p.slots), p.slotBytes}, p.slotsBytes(), func(context.Context, *resident) error { return nil })
	return err
}

func (f *feeder) slot(i int) driver.Ptr {
	return f.slots.block.Base().Add(int64(i) * f.batch.plan.slotBytes)
}

// bounce is the place behind the slots that points go through on their way to pinned memory: of one request of the lane that copies.
func (f *feeder) bounce() driver.Ptr { return f.slot(f.batch.plan.slots) }

// start begins to feed, once the batch before has ended; once.
func (f *feeder) start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil || f.ended {
		return nil
	}
	turn := f.batch.backend.feeding
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return status.Wrap(status.Cancelled, "cuda.feed", "", context.Cause(ctx))
	}
	for i := range f.batch.plan.slots {
		f.free <- f.slot(i)
	}
	ctx, f.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(f.over)
		defer status.Recover("cuda.feed", &f.err)
		f.err = f.feed(ctx)
	}()
	return nil
}

func (f *feeder) feed(ctx context.Context) error {
	plan := f.batch.plan
	for range f.batch.parts {
		if err := f.feedBlock(ctx, groth16.BlockH, &plan.blocks[groth16.BlockH]); err != nil {
			return err
		}
	}
	for block := groth16.BlockL; block < groth16.BlockCount; block++ {
		if err := f.feedBlock(ctx, block, &plan.blocks[block]); err != nil {
			return err
		}
	}
	return nil
}

func (f *feeder) feedBlock(ctx context.Context, block groth16.Block, plan *blockPlan) error {
	op := "cuda.feed_" + blockNames[block]
	for _, piece := range plan.pieces {
		var slot driver.Ptr
		select {
		case slot = <-f.free:
		case <-ctx.Done():
			return status.Wrap(status.Cancelled, op, "", context.Cause(ctx))
		}
		if err := f.bring(ctx, op, block, piece.From, piece.Points, slot); err != nil {
			return err
		}
		f.ready <- slot
	}
	return nil
}

// bring copies points to a slot, from pinned memory where they are there.
func (f *feeder) bring(ctx context.Context, op string, block groth16.Block, from, count int, slot driver.Ptr) error {
	b := f.batch
	b.mu.Lock()
	pinned := b.points[block]
	b.mu.Unlock()
	if pinned == nil {
		return b.bring(ctx, op, block, from, count, slot)
	}
	return b.do(ctx, copying, op, func(ctx context.Context, s *session) error {
		pointBytes := group(block).PointBytes()
		if err := s.up.CopyToDevice(slot, unsafe.Add(pinned.Pointer(), int64(from)*pointBytes), int64(count)*pointBytes); err != nil {
			return err
		}
		return s.up.Synchronize(ctx)
	})
}

// take is the next piece's place.
func (f *feeder) take(ctx context.Context) (driver.Ptr, error) {
	select {
	case slot := <-f.ready:
		return slot, nil
	default:
	}
	select {
	case slot := <-f.ready:
		return slot, nil
	case <-f.over:
		if f.err != nil {
			return 0, f.err
		}
		return <-f.ready, nil // it ended behind the piece that was asked for
	case <-ctx.Done():
		return 0, status.Wrap(status.Cancelled, "cuda.feed", "", context.Cause(ctx))
	}
}

// give gives a place back.
func (f *feeder) give(slot driver.Ptr) { f.free <- slot }

// stop ends feeding, waits for its end and lets the next batch begin. Stopping twice is legal; the caller holds no lock of the batch's, which
// feeding may want.
func (f *feeder) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil && !f.ended {
		f.cancel()
		<-f.over
		<-f.batch.backend.feeding
	}
	f.ended = true
}
