package cuda

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/cuda/driver"
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
		return b.bring(ctx, op, block, 0, b.plan.shape.points[block], r.arena.Base())
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

// fault is the status word for points: of the first partition, whose upload has ended.
func (b *batch) fault() driver.Ptr { return b.parts[0].at(b.plan.own.status) }

// queueDecode queues the decoding of points, the first of which is number from, in place.
func (b *batch) queueDecode(s *session, block groth16.Block, at driver.Ptr, from, count int) error {
	if err := s.up.Fill8(b.fault(), 0xff, points.FaultBytes); err != nil {
		return err
	}
	return s.points.Decode(s.up, group(block), at, at, uint64(from), count, b.fault())
}

// decoded waits for what was queued, and names a point that is bad as the file's own reader words it.
func (b *batch) decoded(ctx context.Context, op string, s *session, srs groth16.EncodedSRS, block groth16.Block) error {
	var word [1]uint64
	if err := fetch(ctx, s.up, s.arrived, b.fault(), word[:]); err != nil {
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

// hostPoints are blocks in pinned host memory, decoded, from where they go up at full speed. They live as long as the session.
type hostPoints struct {
	mu     sync.Mutex
	limit  int64
	used   int64
	blocks map[blockKey]*driver.Pinned
}

// find is the block, or nil.
func (h *hostPoints) find(key blockKey) *driver.Pinned {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.blocks[key]
}

// room books bytes, if the limit allows them.
func (h *hostPoints) room(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used+bytes > h.limit {
		return false
	}
	h.used += bytes
	return true
}

// keep remembers a block, or gives its bytes back where there is none.
func (h *hostPoints) keep(key blockKey, p *driver.Pinned, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p == nil {
		h.used -= bytes
		return
	}
	h.blocks[key] = p
}

// pinPoints copies a block that is not resident to pinned host memory, where there is room for it: through the device, which decodes
// and checks it. Registering the memory stalls the device, once a block and process.
func (b *batch) pinPoints(ctx context.Context, block groth16.Block) error {
	op := "cuda.pin_" + blockNames[block]
	key, bytes := blockKey{b.srs.ID(), block}, b.plan.shape.blockBytes(block)
	var kept *hostPoints
	var pinned *driver.Pinned
	err := b.do(ctx, copying, op, func(_ context.Context, s *session) (err error) {
		kept = &s.host
		if kept.find(key) != nil || !kept.room(bytes) {
			return nil
		}
		if pinned, err = s.device.NewPinned(bytes, b.backend.threads); err != nil {
			kept.keep(key, nil, bytes)
			if status.KindOf(err) == status.NoMemory {
				b.backend.owner.config.log("warn", "device %s: points of %s go up from the file each time: %v", b.backend.name, b.srs.ID(), err)
				return nil
			}
		}
		return err
	})
	if err != nil || pinned == nil {
		return err
	}
	if err = b.fillPinned(ctx, op, block, pinned); err == nil {
		kept.keep(key, pinned, bytes)
		return nil
	}
	_ = b.do(context.WithoutCancel(ctx), copying, op, func(context.Context, *session) error { return pinned.Close() })
	kept.keep(key, nil, bytes)
	return err
}

// fillPinned reads a block piece by piece, and has the device decode each while the next one is read.
func (b *batch) fillPinned(ctx context.Context, op string, block groth16.Block, pinned *driver.Pinned) error {
	count, pointBytes := b.plan.shape.points[block], group(block).PointBytes()
	piece := int(b.plan.slotBytes / pointBytes)
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
			// Small runs, so that many threads share a piece.
			const run = 1 << 14
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
			slot, bytes := b.feeder.slot(0), int64(size(i))*pointBytes
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

// feeder brings points up piece by piece, in the order in which the batch's sums take them, as far ahead as there are slots. One batch
// of a device feeds at a time: the one that has the lane which computes.
type feeder struct {
	batch  *batch
	slots  *resident
	free   chan driver.Ptr
	ready  chan driver.Ptr
	cancel context.CancelFunc
	over   chan struct{}
	err    error // once over
	began  atomic.Bool
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
	f.slots, err = f.batch.resident(ctx, "cuda.feed", slotsKey{int64(p.slots), p.slotBytes}, int64(p.slots)*p.slotBytes, func(context.Context, *resident) error { return nil })
	return err
}

func (f *feeder) slot(i int) driver.Ptr {
	return f.slots.arena.Base().Add(int64(i) * f.batch.plan.slotBytes)
}

// start begins to feed; once.
func (f *feeder) start() {
	if f.began.Swap(true) {
		return
	}
	for i := range f.batch.plan.slots {
		f.free <- f.slot(i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() {
		defer close(f.over)
		defer status.Recover("cuda.feed", &f.err)
		f.err = f.feed(ctx)
	}()
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
	var pinned *driver.Pinned
	err := b.do(ctx, copying, op, func(ctx context.Context, s *session) error {
		if pinned = s.host.find(blockKey{b.srs.ID(), block}); pinned == nil {
			return nil
		}
		pointBytes := group(block).PointBytes()
		if err := s.up.CopyToDevice(slot, unsafe.Add(pinned.Pointer(), int64(from)*pointBytes), int64(count)*pointBytes); err != nil {
			return err
		}
		return s.up.Synchronize(ctx)
	})
	if err != nil || pinned != nil {
		return err
	}
	return b.bring(ctx, op, block, from, count, slot)
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

// stop ends feeding and waits for its end.
func (f *feeder) stop() {
	if f.began.Load() {
		f.cancel()
		<-f.over
	}
}
