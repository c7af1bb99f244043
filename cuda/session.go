package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kinds"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// session is the life of one context: all that is made in it. Used by the owner's lanes alone, but for the ring's slots.
type session struct {
	device  *driver.Device
	library *driver.Library
	events  []*driver.Event
	memory  *memory
	died    error  // what the context died of
	closed  func() // tells whoever has to know that its memory is gone; nil: nobody

	// Of the lane that copies.
	up      *driver.Stream
	ring    ring
	kinds   *kinds.Kinds
	points  *points.Points
	arrived *driver.Pinned // results
	word    *driver.Arena  // status of the kernels that this lane runs
	host    hostMemory

	// Of the lane that computes.
	compute *driver.Stream
	aside   [2]*driver.Stream // copies up and down, of hosted quotients
	down    *driver.Pinned    // results
	msm     *msm.Summer
	rows    *rows.Rows

	mu     sync.Mutex
	hosted []*ntt.Hosted // of batches that are not closed
}

// openSession makes a context and everything that must not be made while it works: pinned memory, and every kernel
// put on the device.
func openSession(config Config, l *lane) (s *session, err error) {
	s = &session{}
	if s.device, err = config.API.Open(config.Index); err != nil {
		return nil, err
	}
	if err = l.enter(s); err == nil {
		err = s.fill(config)
	}
	if err != nil {
		if left := s.close(); left != nil {
			config.log("warn", "device %s: %v", config.name(), left)
		}
		return nil, err
	}
	return s, nil
}

func (s *session) fill(config Config) (err error) {
	d := s.device
	if config.WaitLimit > 0 {
		d.Limit = config.WaitLimit
	}
	if s.library, err = d.Load(config.Images...); err != nil {
		return err
	}
	if s.ring.pinned, err = d.NewPinned(config.PinnedBytes, config.Threads); err != nil {
		return err
	}
	s.ring.slotBytes = config.PinnedBytes / (2 * ringWorkers) &^ (align - 1)
	for _, results := range []**driver.Pinned{&s.down, &s.arrived} {
		if *results, err = d.NewPinned(downBytes, 1); err != nil {
			return err
		}
	}
	s.host.limit = config.HostBytes
	priority := driver.Normal
	if config.Urgent {
		priority = driver.Urgent
	}
	for _, stream := range []struct {
		name string
		into **driver.Stream
	}{{"upload", &s.up}, {"compute", &s.compute}, {"aside up", &s.aside[0]}, {"aside down", &s.aside[1]}} {
		if *stream.into, err = d.NewStream(stream.name, priority); err != nil {
			return err
		}
	}
	for i := range s.ring.events {
		if s.ring.events[i], err = s.event(); err != nil {
			return err
		}
	}
	unit, err := d.Granularity()
	if err != nil {
		return err
	}
	if s.msm, err = msm.New(d, s.library.Kernel); err != nil {
		return err
	}
	if s.rows, err = rows.New(s.library.Kernel); err != nil {
		return err
	}
	if s.points, err = points.New(s.library.Kernel); err != nil {
		return err
	}
	if s.kinds, err = kinds.New(s.library.Kernel); err != nil {
		return err
	}
	// Roots of unity are resident, and their table is made with the first partition; the kernels are put on the device now.
	transforms, err := ntt.New(s.library.Kernel, 0, 0)
	if err != nil {
		return err
	}
	if err := s.library.Warm(slices.Concat(s.rows.Kernels(), transforms.Kernels(), s.msm.Kernels(), s.points.Kernels(), s.kinds.Kernels())...); err != nil {
		return err
	}
	s.memory = &memory{device: d, limit: config.MemoryBytes, unit: unit, held: map[*driver.Arena]struct{}{}}
	if s.memory.limit == 0 {
		free, _, err := d.Memory()
		if err != nil {
			return err
		}
		if free <= headroom(free) {
			return status.New(status.NoMemory, "cuda.Open", d.Name, fmt.Sprintf("more than %s of free memory", host.FormatBytes(headroom(free))), host.FormatBytes(free))
		}
		s.memory.limit = free - headroom(free)
	}
	s.word, err = s.memory.take(max(kinds.StatusBytes, points.FaultBytes))
	return err
}

// event makes an event that lives as long as the session.
func (s *session) event() (*driver.Event, error) {
	e, err := s.device.NewEvent(false)
	if err == nil {
		s.events = append(s.events, e)
	}
	return e, err
}

// rootsKey names the resident table of roots of unity for transforms of up to 2^log elements.
type rootsKey struct {
	log  int
	form roots
}

// useRoots pins a table of roots that serves the batch, and makes it where there is none.
func (s *session) useRoots(ctx context.Context, b *batch) error {
	form := b.plan.roots
	for log := b.plan.shape.log; log <= ntt.MaxLog; log++ {
		if r, _ := s.memory.find(rootsKey{log, form}); r != nil {
			b.pin(r)
			b.transforms = r.value.(*ntt.Transforms)
			return nil
		}
	}
	log := b.plan.shape.log
	r, err := s.memory.keep(rootsKey{log, form}, form.bytes(log))
	if err != nil {
		return err
	}
	make := ntt.New
	if form == compactRoots {
		make = ntt.NewCompact
	}
	t, err := make(s.library.Kernel, log, r.block.Base())
	if err == nil {
		err = t.Prepare(s.compute)
	}
	if waited := s.compute.Synchronize(ctx); err == nil {
		err = waited
	}
	if err != nil {
		if s.drain(computing) == nil { // else the table stays where it is, and the owner sees to the device
			_ = s.memory.drop(r) // what cannot be unmapped is tried again at the end
		}
		return err
	}
	s.memory.fill(r, t)
	b.pin(r)
	b.transforms = t
	return nil
}

// newHosted makes a hosted quotient that lives until dropHosted, or as long as the session.
func (s *session) newHosted(t *ntt.Transforms, log int, vector, scratch driver.Ptr, memory unsafe.Pointer) (*ntt.Hosted, error) {
	h, err := t.NewHosted(ntt.Queues{Upload: s.aside[0], Compute: s.compute, Download: s.aside[1]}, log, vector, scratch, memory)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hosted = append(s.hosted, h)
	}
	return h, err
}

// dropHosted ends one of which nothing is queued.
func (s *session) dropHosted(h *ntt.Hosted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosted = slices.DeleteFunc(s.hosted, func(other *ntt.Hosted) bool { return other == h })
	return h.Close()
}

// gone is the error of work that was begun in a session which died since.
func (s *session) gone() error {
	err := status.New(status.NoDevice, "cuda.session", s.device.Name, "the context that the partition began in", "a new one, since that died")
	err.Cause = s.died
	return err
}

// drain waits until nothing of a lane is queued.
func (s *session) drain(lane laneID) error {
	streams := []*driver.Stream{s.up}
	if lane == computing {
		streams = []*driver.Stream{s.compute, s.aside[0], s.aside[1]}
	}
	for _, stream := range streams {
		if err := stream.Synchronize(context.Background()); err != nil {
			return err // a device that hangs is waited for once
		}
	}
	return nil
}

// close gives everything back, in an order that leaves nothing in use. It goes on after errors and returns them all.
func (s *session) close() error {
	if s.closed != nil {
		s.closed()
	}
	var all []error
	if s.word != nil {
		all = append(all, s.word.Close())
	}
	if s.memory != nil {
		all = append(all, s.memory.close())
	}
	for _, e := range s.events {
		all = append(all, e.Close())
	}
	for _, h := range s.hosted {
		all = append(all, h.Close())
	}
	for _, stream := range []*driver.Stream{s.up, s.compute, s.aside[0], s.aside[1]} {
		if stream != nil {
			all = append(all, stream.Close())
		}
	}
	if s.msm != nil {
		all = append(all, s.msm.Close())
	}
	all = append(all, s.host.close())
	for _, p := range []*driver.Pinned{s.ring.pinned, s.down, s.arrived} {
		if p != nil {
			all = append(all, p.Close())
		}
	}
	if s.library != nil {
		all = append(all, s.library.Close())
	}
	all = append(all, s.device.Close())
	return errors.Join(all...)
}

// fetch copies a result from the device into pinned memory and from there, behind what is queued on the stream, and waits for it. It has at most
// downBytes.
func fetch[T any](ctx context.Context, stream *driver.Stream, pinned *driver.Pinned, from driver.Ptr, into []T) error {
	bytes := int64(len(into)) * int64(unsafe.Sizeof(*new(T)))
	status.Check(bytes <= downBytes, "cuda.fetch", "a result that fits its memory")
	if err := stream.CopyToHost(pinned.Pointer(), from, bytes); err != nil {
		return err
	}
	if err := stream.Synchronize(ctx); err != nil {
		return err
	}
	copy(into, unsafe.Slice((*T)(pinned.Pointer()), len(into)))
	return nil
}
