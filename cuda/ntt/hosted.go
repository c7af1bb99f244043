package ntt

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// A hosted quotient works in pieces, each of which is a transform of its own below the levels of the first pass, which must be
// as many as hostedLog at least. Sizes below hostedFrom are one piece. A piece that comes from the host has a slot.
const (
	hostedLog   = 3
	hostedFrom  = tileLog + hostedLog
	hostedSlots = 2
)

// pieceLog is the number of pieces, as a power of two.
func pieceLog(log int) int {
	if log < hostedFrom {
		return 0
	}
	return hostedLog
}

// HostedScratchBytes is the device memory beside its vector that a hosted quotient of 2^log rows works in: a quarter of the
// vector, from 2^13 rows on.
func HostedScratchBytes(log int) int64 { return hostedSlots * elementBytes << log >> pieceLog(log) }

// HostedBytes is the host memory of a hosted quotient of 2^log rows: two vectors.
func HostedBytes(log int) int64 { return 2 * elementBytes << log }

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
// of quotients may be queued one behind the other. It costs two passes' memory traffic more than Quotient, and each way two vectors
// across the bus: those up run beside the kernels, those down do not, since what comes next wants the vector.
// It is used by one goroutine at a time, and its streams by nobody else while one of its methods runs.
type Hosted struct {
	t       *Transforms
	queues  Queues
	log     int
	vector  driver.Ptr
	scratch driver.Ptr
	c, a    unsafe.Pointer
	passes  []pass

	ready, taken    *driver.Event              // the vector may be downloaded; it has been
	filled, spent   [hostedSlots]*driver.Event // a slot has its piece; the piece has been used
	held            int                        // vectors that the host holds: none, c, or c and a
	uploads, pieces int                        // pieces queued of those of a, then of c; pieces of a vector
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
		t: t, queues: q, log: log, vector: vector, scratch: scratch, passes: list, pieces: 1 << pieceLog(log),
		c: host, a: unsafe.Add(host, elementBytes<<log),
	}
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
	if err := h.t.naturalPasses(h.queues.Compute, h.vector, h.log, &finish{}); err != nil {
		return err
	}
	h.held = 1
	return h.download(h.c)
}

// TakeA queues taking a likewise, and fetching its first pieces. The scratch is in use from here on. Errors: Internal where c was not
// taken; else the driver's.
func (h *Hosted) TakeA() error {
	if err := h.follows("ntt.TakeA", 1); err != nil {
		return err
	}
	if err := h.open(); err != nil {
		return err
	}
	if err := h.download(h.a); err != nil {
		return err
	}
	h.held, h.uploads = 2, 0
	if err := h.queues.Upload.Wait(h.taken); err != nil {
		return err
	}
	return h.upload(min(hostedSlots, h.pieces))
}

// Finish queues the rest: the vector has b's values on the domain in natural order, and gets h, as of Quotient. Errors:
// Internal where a or c was not taken; else the driver's.
func (h *Hosted) Finish() error {
	if err := h.follows("ntt.Finish", 2); err != nil {
		return err
	}
	h.held = 0
	if err := h.open(); err != nil {
		return err
	}
	for i := range h.pieces {
		if err := h.multiply(i); err != nil {
			return err
		}
	}
	compute := h.queues.Compute
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

// whole is the passes that go over the vector, inside those within a piece.
func (h *Hosted) whole() []pass {
	if h.pieces == 1 {
		return nil
	}
	return h.passes[:1]
}

func (h *Hosted) inside(piece int) []pass {
	list := append([]pass(nil), h.passes[len(h.whole()):]...)
	for i := range list {
		p := &list[i]
		p.log -= uint32(pieceLog(h.log))
		for _, coset := range []*uint32{&p.coset, &p.shiftCoset} {
			*coset = *coset / uint32(h.pieces) * uint32(h.pieces+piece) // group k of the piece's level is 2^level * (pieces + piece) + k
		}
	}
	return list
}

// open queues the way from rows to the coset, as far as it goes over the whole vector.
func (h *Hosted) open() error {
	if err := h.t.naturalPasses(h.queues.Compute, h.vector, h.log, &finish{}); err != nil {
		return err
	}
	return h.t.forwardPasses(h.queues.Compute, h.vector, h.whole(), true, 0)
}

// download queues copying the vector to the host, and that Compute waits for it.
func (h *Hosted) download(to unsafe.Pointer) error {
	q := h.queues
	if err := q.Compute.Record(h.ready); err != nil {
		return err
	}
	if err := q.Download.Wait(h.ready); err != nil {
		return err
	}
	if err := q.Download.CopyToHost(to, h.vector, elementBytes<<h.log); err != nil {
		return err
	}
	if err := q.Download.Record(h.taken); err != nil {
		return err
	}
	return q.Compute.Wait(h.taken)
}

// bytes is the size of a piece, part where one lies in the vector, and slot where the n-th upload goes.
func (h *Hosted) bytes() int64          { return elementBytes << h.log / int64(h.pieces) }
func (h *Hosted) part(i int) driver.Ptr { return h.vector.Add(int64(i) * h.bytes()) }
func (h *Hosted) slot(n int) driver.Ptr { return h.scratch.Add(int64(n%hostedSlots) * h.bytes()) }

// upload queues uploads up to the n-th, of all there are: the pieces of a, then those of c.
func (h *Hosted) upload(n int) error {
	up := h.queues.Upload
	for ; h.uploads < min(n, 2*h.pieces); h.uploads++ {
		from, i := h.a, h.uploads
		if i >= h.pieces {
			from, i = h.c, i-h.pieces
		}
		if h.uploads >= hostedSlots {
			if err := up.Wait(h.spent[h.uploads%hostedSlots]); err != nil {
				return err
			}
		}
		if err := up.CopyToDevice(h.slot(h.uploads), unsafe.Add(from, int64(i)*h.bytes()), h.bytes()); err != nil {
			return err
		}
		if err := up.Record(h.filled[h.uploads%hostedSlots]); err != nil {
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
	if err := h.queues.Compute.Wait(h.filled[n%hostedSlots]); err != nil {
		return err
	}
	if err := f(h.slot(n)); err != nil {
		return err
	}
	if err := h.queues.Compute.Record(h.spent[n%hostedSlots]); err != nil {
		return err
	}
	return h.upload(n + 1 + hostedSlots)
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
