package parameters

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// faultWords are two fault words of the kernels.
type faultWords struct{ encoding, order uint64 }

// CheckPoints reads all points of some blocks of one group, decodes them and checks their order. What is wrong is a result; with
// Exact it is known for all points of the lowest run of 4096 points of a block that has a fault, in both respects.
// progress may be nil; it gets points that are through, from the caller's goroutine. Errors: the reader's; NoMemory; Cancelled;
// the driver's.
func (d *Device) CheckPoints(ctx context.Context, srs groth16.EncodedSRS, blocks []groth16.Block, order groth16.OrderCheck, progress func(points int)) (f groth16.PointFaults, err error) {
	const op = "parameters.Check"
	c := &checking{device: d, srs: srs, blocks: blocks, order: order, progress: progress}
	if progress == nil {
		c.progress = func(int) {}
	}
	for i, b := range blocks {
		if g := setup.GroupOf(b); i == 0 {
			c.group = g
		} else if g != c.group {
			return f, status.New(status.Internal, op, "blocks", "blocks of one group", fmt.Sprint(blocks))
		}
	}
	c.cut()
	if len(c.pieces) == 0 {
		return f, nil
	}
	err = d.in(op, func() error { return c.run(ctx, &f) })
	if given := d.release(c.arena); err == nil {
		err = given
	}
	return f, err
}

// checking is a check under way.
type checking struct {
	device   *Device
	srs      groth16.EncodedSRS
	blocks   []groth16.Block
	group    points.Group
	order    groth16.OrderCheck
	progress func(int)

	pieces []piece
	arena  *driver.Arena
	ring   driver.Ptr // slotCount slots
	faults driver.Ptr // faultWords
	sums   driver.Ptr
}

// piece is a run of points of one block; first counts from the start of the first block.
type piece struct {
	block groth16.Block
	from  int
	count int
	first uint64
}

// cut cuts the blocks into pieces.
func (c *checking) cut() {
	first, most := uint64(0), c.device.pieceOf(c.group)
	for _, b := range c.blocks {
		n := c.srs.Len(b)
		for from := 0; from < n; from += most {
			c.pieces = append(c.pieces, piece{b, from, min(most, n-from), first + uint64(from)})
		}
		first += uint64(n)
	}
}

func (c *checking) run(ctx context.Context, f *groth16.PointFaults) (err error) {
	const op = "parameters.Check"
	d := c.device
	ringBytes := slotCount * d.slotBytes
	sums := int64(0)
	if !c.order.Exact {
		sums = points.CheckBytes(c.group, c.order.BucketBits, c.order.Rounds)
	}
	if c.arena, err = d.take(op, "the check of "+c.srs.ID(), ringBytes+align+sums); err != nil {
		return err
	}
	c.ring, c.faults, c.sums = c.arena.Base(), c.arena.Base().Add(ringBytes), c.arena.Base().Add(ringBytes+align)
	each := c.exact
	var buckets *points.Check
	if !c.order.Exact {
		if buckets, err = d.points.NewCheck(d.compute, c.group, c.order.BucketBits, c.order.Rounds, c.sums, rand.Reader); err != nil {
			return err
		}
		each = func(at driver.Ptr, p piece) error { return buckets.Add(d.compute, at, p.count) }
	}
	words, err := c.pass(ctx, each)
	if err != nil {
		return err
	}
	if !c.order.Exact && words.encoding == none {
		good, err := buckets.End(ctx, d.compute)
		if err != nil || good {
			return err
		}
		// The sums say that there is a bad point; the points say which.
		if words, err = c.pass(ctx, c.exact); err != nil {
			return err
		}
		f.Unnamed = words == faultWords{none, none}
	}
	f.Encoding, f.Order = c.found(words.encoding), c.found(words.order)
	return nil
}

// exact checks the order of each point of a piece.
func (c *checking) exact(at driver.Ptr, p piece) error {
	return c.device.points.Order(c.device.compute, c.group, at, p.first, p.count, c.orderFault())
}

func (c *checking) orderFault() driver.Ptr { return c.faults.Add(points.FaultBytes) }

// none is a fault word without a fault.
const none = ^uint64(0)

// found reads a fault word.
func (c *checking) found(word uint64) (f groth16.PointAt) {
	index, _, yes := points.FaultOf(word)
	if yes {
		f.Known = true
		f.Block, f.Index = place(c.srs, c.blocks, index)
	}
	return f
}

// settleBehind is how many pieces are under way on the device; the other slots are being read into.
const settleBehind = 4

// pass takes all pieces up and decodes them, and calls each for the kernels to follow. It ends behind the first piece in which
// there is a fault.
func (c *checking) pass(ctx context.Context, each func(at driver.Ptr, p piece) error) (words faultWords, err error) {
	d := c.device
	words = faultWords{none, none}
	if err := d.compute.Fill8(c.faults, 0xff, 2*points.FaultBytes); err != nil {
		return words, err
	}
	reading, stop := context.WithCancel(ctx)
	jobs := make(chan int, slotCount) // pieces to be read, each into the slot of its number modulo their count
	var filled [slotCount]chan error
	for i := range filled {
		filled[i] = make(chan error, 1)
	}
	var readers sync.WaitGroup
	defer func() {
		stop()
		close(jobs)
		readers.Wait()
	}()
	for range min(d.threads, slotCount, len(c.pieces)) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			var err error // read makes values of its panics
			defer status.Recover("parameters.CheckPoints", &err)
			for i := range jobs {
				filled[i%slotCount] <- c.read(reading, i)
			}
		}()
	}
	for i := range min(slotCount, len(c.pieces)) {
		jobs <- i
	}
	settle := func(i int) (found bool, err error) {
		slot := i % slotCount
		if err := d.worked[slot].Synchronize(ctx); err != nil {
			return false, err
		}
		words = c.results()[slot]
		c.progress(c.pieces[i].count)
		if words.encoding != none || words.order != none {
			return true, nil
		}
		if next := i + slotCount; next < len(c.pieces) {
			jobs <- next
		}
		return false, nil
	}
	for i := range len(c.pieces) + settleBehind {
		if i < len(c.pieces) {
			if err := <-filled[i%slotCount]; err != nil {
				return words, err
			}
			if err := c.queue(i, each); err != nil {
				return words, err
			}
		}
		if behind := i - settleBehind; behind >= 0 && behind < len(c.pieces) {
			if found, err := settle(behind); err != nil {
				return words, err
			} else if found {
				return words, d.drain()
			}
		}
	}
	return words, nil
}

// results is where the device leaves its fault words after each piece.
func (c *checking) results() *[slotCount]faultWords {
	return (*[slotCount]faultWords)(c.device.words.Pointer())
}

// read fills a piece's slot.
func (c *checking) read(ctx context.Context, i int) (err error) {
	defer status.Recover("parameters.Check", &err)
	p := c.pieces[i]
	return c.srs.ReadEncoded(ctx, p.block, p.from, c.device.slot(i % slotCount)[:int64(p.count)*c.group.PointBytes()])
}

// queue queues all that the device does with a piece.
func (c *checking) queue(i int, each func(at driver.Ptr, p piece) error) error {
	d, slot, p := c.device, i%slotCount, c.pieces[i]
	at := c.ring.Add(int64(slot) * d.slotBytes)
	if err := d.copies.CopyToDevice(at, unsafe.Pointer(&d.slot(slot)[0]), int64(p.count)*c.group.PointBytes()); err != nil {
		return err
	}
	if err := d.copies.Record(d.moved[slot]); err != nil {
		return err
	}
	if err := d.compute.Wait(d.moved[slot]); err != nil {
		return err
	}
	if err := d.points.Decode(d.compute, c.group, at, at, p.first, p.count, c.faults); err != nil {
		return err
	}
	if err := each(at, p); err != nil {
		return err
	}
	if err := d.compute.CopyToHost(unsafe.Pointer(&c.results()[slot]), c.faults, int64(unsafe.Sizeof(faultWords{}))); err != nil {
		return err
	}
	return d.compute.Record(d.worked[slot])
}
