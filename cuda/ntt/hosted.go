package ntt

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// A hosted quotient works in pieces, each of which is a transform of its own below the levels of the first pass, which must be
// as many as hostedLog at least. Sizes below hostedFrom are one piece. A piece that comes from the host has a slot.
const (
	hostedLog   = 4
	hostedFrom  = tileLog + hostedLog
	hostedSlots = 4
	// What is taken to the host is taken in so many ranges of columns, each beside the pass on the next.
	hostedRanges = 4
)

// hostedShape is the number of pieces and of slots.
func hostedShape(log int) (pieces, slots int) {
	if log < hostedFrom {
		return 1, 2
	}
	return 1 << hostedLog, hostedSlots
}

// HostedScratchBytes is the device memory beside its vector that a hosted quotient of 2^log rows works in: a quarter of the
// vector, from 2^14 rows on.
func HostedScratchBytes(log int) int64 {
	pieces, slots := hostedShape(log)
	return int64(slots) * elementBytes << log / int64(pieces)
}

// HostedBytes is the host memory of a hosted quotient of 2^log rows: c, and what of a does not stay in the scratch.
func HostedBytes(log int) int64 {
	pieces, slots := hostedShape(log)
	return elementBytes<<log + int64(max(0, pieces-slots))*elementBytes<<log/int64(pieces)
}

// Queues are a hosted quotient's streams, of one device: uploads and downloads run beside the kernels where they are three.
type Queues struct {
	Upload, Compute, Download *driver.Stream
}

// Hosted is a quotient for cards that hold one vector of 2^log elements and a quarter more. c and a wait on the host: c as
// coefficients, a as values on the coset of which the first levels are done. Then h is made of them and of b in place.
//
//	rows of c to the vector, TakeC; rows of a, TakeA; rows of b, Finish; h
//
// What writes the rows is queued on Compute, which waits for the downloads by itself; nothing waits on the host, and any number
// of quotients may be queued one behind the other. Beside Quotient's work there is one more pass over memory, and HostedBytes go each way across
// the bus: those up run beside the kernels, those down beside one pass alone, since what comes next wants the vector.
// It is used by one goroutine at a time, and its streams by nobody else while one of its methods runs.
type Hosted struct {
	t       *Transforms
	queues  Queues
	log     int
	vector  driver.Ptr
	scratch driver.Ptr
	c, a    unsafe.Pointer
	passes  []pass

	ready, taken  *driver.Event              // the vector may be downloaded; it has been
	filled, spent [hostedSlots]*driver.Event // a slot has its piece; the piece has been used
	held          int                        // vectors that the host holds: none, c, or c and a
	uploads       int                        // pieces queued, of those of a and then of c
	pieces, slots int
}

// NewHosted places a quotient of 2^log rows: a vector of 32 << log bytes and HostedScratchBytes(log) on the device, aligned to 256 bytes, and
// HostedBytes(log) of pinned host memory. The scratch is free for other use on Compute from Finish to TakeA, the host memory after Finish for
// what waits for Compute. Errors: Internal for a log beyond the table's; else the driver's.
func (t *Transforms) NewHosted(q Queues, log int, vector, scratch driver.Ptr, host unsafe.Pointer) (*Hosted, error) {
	list, err := t.list("ntt.NewHosted", log)
	if err != nil {
		return nil, err
	}
	h := &Hosted{
		t: t, queues: q, log: log, vector: vector, scratch: scratch, passes: list,
		c: host, a: unsafe.Add(host, elementBytes<<log),
	}
	h.pieces, h.slots = hostedShape(log)
	for _, e := range h.events() {
		if *e, err = q.Compute.Device().NewEvent(false); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

func (h *Hosted) events() []**driver.Event {
	list := []**driver.Event{&h.ready, &h.taken}
	for i := range hostedSlots {
		list = append(list, &h.filled[i], &h.spent[i])
	}
	return list
}

// Close gives the events up; queued work still runs. Closing twice is legal.
func (h *Hosted) Close() error {
	var all []error
	for _, e := range h.events() {
		if *e != nil {
			all = append(all, (*e).Close())
		}
	}
	return errors.Join(all...)
}

// TakeC queues taking c, whose values on the domain the vector has in natural order. Compute goes on once the vector is free.
func (h *Hosted) TakeC() error {
	// Streams keep hold of the host memory of their copies until they are known to be over: asked here, of the quotient before.
	for _, e := range []*driver.Event{h.taken, h.filled[(2*h.pieces-1)%h.slots]} {
		if _, err := e.Done(); err != nil {
			return err
		}
	}
	h.held = 1
	rest := h.t.naturalRest(h.log)
	if err := h.interpolate(rest[len(h.whole()):]); err != nil {
		return err
	}
	return h.take(h.c, 0, rest[0], func(v driver.Ptr) error {
		h.t.begin(v, rest[0], false).Struct(unsafe.Pointer(&finish{}), int(unsafe.Sizeof(finish{})))
		return h.columns(h.t.inverse)
	})
}

// TakeA queues taking a likewise. The scratch is in use from here on: it holds a's first pieces. Errors: Internal where c was not taken; else the
// driver's.
func (h *Hosted) TakeA() error {
	if err := h.follows("ntt.TakeA", 1); err != nil {
		return err
	}
	h.held = 2
	if err := h.interpolate(h.t.naturalRest(h.log)); err != nil {
		return err
	}
	h.uploads = min(h.slots, h.pieces)
	kept := int64(h.uploads) * h.bytes()
	if err := h.take(h.a, kept, h.passes[0], func(v driver.Ptr) error {
		h.t.begin(v, h.passes[0], true).Ptr(0)
		return h.columns(h.t.forward)
	}); err != nil {
		return err
	}
	if err := h.queues.Compute.CopyDevice(h.scratch, h.vector, kept); err != nil {
		return err
	}
	return h.queues.Upload.Wait(h.taken)
}

// Finish queues the rest: the vector has b's values on the domain in natural order, and gets h, as of Quotient. Errors:
// Internal where a or c was not taken; else the driver's.
func (h *Hosted) Finish() error {
	if err := h.follows("ntt.Finish", 2); err != nil {
		return err
	}
	h.held = 0
	compute := h.queues.Compute
	if err := h.interpolate(h.t.naturalRest(h.log)); err != nil {
		return err
	}
	if err := h.t.forwardPasses(compute, h.vector, h.whole(), true, 0); err != nil {
		return err
	}
	for i := range h.pieces {
		if err := h.multiply(i); err != nil {
			return err
		}
	}
	if err := h.t.inversePasses(compute, h.vector, h.whole(), true, &finish{}); err != nil {
		return err
	}
	for i := range h.pieces {
		if err := h.use(h.pieces+i, func(piece driver.Ptr) error {
			f := quotientFinish(piece, h.log)
			count := uint32(1) << h.log / uint32(h.pieces)
			h.t.args.Reset().Ptr(h.part(i)).U32(count).Struct(unsafe.Pointer(&f), int(unsafe.Sizeof(f)))
			return compute.Launch(h.t.subtract, driver.Dim{X: max(1, min(count/256, 1<<14))}, driver.Dim{X: 256}, 0, &h.t.args)
		}); err != nil {
			return err
		}
	}
	return nil
}

// follows checks the order of the steps.
func (h *Hosted) follows(op string, held int) error {
	if h.held != held {
		return status.New(status.Internal, op, "vectors taken before, c first", fmt.Sprint(held), fmt.Sprint(h.held))
	}
	return nil
}

// whole is the passes that go over the whole vector.
func (h *Hosted) whole() []pass {
	if h.pieces == 1 {
		return nil
	}
	return h.passes[:1]
}

// inside is the others, for one piece of the vector.
func (h *Hosted) inside(piece int) []pass {
	list := append([]pass(nil), h.passes[len(h.whole()):]...)
	for i := range list {
		p := &list[i]
		p.log -= uint32(bits.TrailingZeros(uint(h.pieces)))
		for _, coset := range []*uint32{&p.coset, &p.shiftCoset} {
			*coset = *coset / uint32(h.pieces) * uint32(h.pieces+piece) // group k of the piece's level is 2^level * (pieces + piece) + k
		}
	}
	return list
}

// interpolate queues the way from rows to coefficients, with some of the passes that end it.
func (h *Hosted) interpolate(rest []pass) error {
	if err := h.t.naturalFirst(h.queues.Compute, h.vector, h.log); err != nil {
		return err
	}
	return h.t.inversePasses(h.queues.Compute, h.vector, rest, false, &finish{})
}

// columns launches a pass over the vector on the columns of one range, which its arguments begin with.
func (h *Hosted) columns(k driver.Kernel) error {
	return h.queues.Compute.Launch(k, driver.Dim{X: 1 << (h.log - tileLog) / hostedRanges}, driver.Dim{X: tileThreads}, sharedBytes, &h.t.args)
}

// take queues the last pass p on the vector, by a call of each for the columns from v on of each range, and copying the vector behind its
// first kept bytes to the host; Compute waits for it. A vector of one piece has no such pass.
func (h *Hosted) take(to unsafe.Pointer, kept int64, p pass, each func(v driver.Ptr) error) error {
	q, ranges := h.queues, int64(hostedRanges)
	rows, row := int64(1)<<p.levels(), int64(elementBytes)<<p.stride
	if h.pieces == 1 {
		ranges, rows, row = 1, 1, h.bytes()
	}
	for r := range ranges {
		first := r * row / ranges
		if h.pieces > 1 {
			if err := each(h.vector.Add(first)); err != nil {
				return err
			}
		}
		if err := q.Compute.Record(h.ready); err != nil {
			return err
		}
		if err := q.Download.Wait(h.ready); err != nil {
			return err
		}
		for at := first; at < rows*row; at += row {
			if at < kept {
				continue
			}
			if err := q.Download.CopyToHost(unsafe.Add(to, at-kept), h.vector.Add(at), row/ranges); err != nil {
				return err
			}
		}
	}
	if err := q.Download.Record(h.taken); err != nil {
		return err
	}
	return q.Compute.Wait(h.taken)
}

// bytes is the size of a piece, part where one lies in the vector, and slot where the n-th upload goes.
func (h *Hosted) bytes() int64          { return elementBytes << h.log / int64(h.pieces) }
func (h *Hosted) part(i int) driver.Ptr { return h.vector.Add(int64(i) * h.bytes()) }
func (h *Hosted) slot(n int) driver.Ptr { return h.scratch.Add(int64(n%h.slots) * h.bytes()) }

// upload queues uploads up to the n-th, of all there are: the pieces of a, then those of c.
func (h *Hosted) upload(n int) error {
	up := h.queues.Upload
	for ; h.uploads < min(n, 2*h.pieces); h.uploads++ {
		from, i := h.a, h.uploads-h.slots // the first pieces of a are not on the host
		if h.uploads >= h.pieces {
			from, i = h.c, h.uploads-h.pieces
		}
		if h.uploads >= h.slots {
			if err := up.Wait(h.spent[h.uploads%h.slots]); err != nil {
				return err
			}
		}
		if err := up.CopyToDevice(h.slot(h.uploads), unsafe.Add(from, int64(i)*h.bytes()), h.bytes()); err != nil {
			return err
		}
		if err := up.Record(h.filled[h.uploads%h.slots]); err != nil {
			return err
		}
	}
	return nil
}

// use queues what f does with the n-th upload, and the upload that follows in its slot.
func (h *Hosted) use(n int, f func(piece driver.Ptr) error) error {
	if err := h.upload(n + 1); err != nil {
		return err
	}
	if err := h.queues.Compute.Wait(h.filled[n%h.slots]); err != nil {
		return err
	}
	if err := f(h.slot(n)); err != nil {
		return err
	}
	if err := h.queues.Compute.Record(h.spent[n%h.slots]); err != nil {
		return err
	}
	return h.upload(n + 1 + h.slots)
}

// multiply queues the rest of the way to the coset of a piece of a and of b, their product, and its way back up to the
// whole vector.
func (h *Hosted) multiply(i int) error {
	compute, list, part := h.queues.Compute, h.inside(i), h.part(i)
	if err := h.use(i, func(piece driver.Ptr) error {
		if err := h.t.forwardPasses(compute, piece, list, true, 0); err != nil {
			return err
		}
		return h.t.forwardPasses(compute, part, list, true, piece)
	}); err != nil {
		return err
	}
	return h.t.inversePasses(compute, part, list, true, &finish{})
}
