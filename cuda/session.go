package cuda

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kinds"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/status"
)

// session is the life of one context: all that is made in it. Used by the owner's lanes alone, but for the ring's slots.
type session struct {
	device  *driver.Device
	library *driver.Library
	events  []*driver.Event
	memory  *memory

	// Of the lane that copies.
	up      *driver.Stream
	ring    ring
	kinds   *kinds.Kinds
	points  *points.Points
	arrived *driver.Pinned // results
	word    *driver.Arena  // status of the kernels that this lane runs
	host    hostPoints

	// Of the lane that computes.
	compute *driver.Stream
	down    *driver.Pinned // results
	msm     *msm.Summer
	rows    *rows.Rows
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
	s.host = hostPoints{limit: config.HostBytes, blocks: map[blockKey]*driver.Pinned{}}
	for _, stream := range []struct {
		name string
		into **driver.Stream
	}{{"upload", &s.up}, {"compute", &s.compute}} {
		if *stream.into, err = d.NewStream(stream.name, driver.Normal); err != nil {
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
		if r := s.memory.find(rootsKey{log, form}); r != nil {
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
	t, err := make(s.library.Kernel, log, r.arena.Base())
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

// same says whether what was made in another session still is there.
func (s *session) same(other *session) error {
	if s == other {
		return nil
	}
	return status.New(status.NoDevice, "cuda.session", s.device.Name, "the context that the partition began in", "a new one, since that died")
}

// drain waits until nothing of a lane is queued.
func (s *session) drain(lane laneID) error {
	stream := s.compute
	if lane == copying {
		stream = s.up
	}
	return stream.Synchronize(context.Background())
}

// close gives everything back, in an order that leaves nothing in use. It goes on after errors and returns them all.
func (s *session) close() error {
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
	for _, stream := range []*driver.Stream{s.up, s.compute} {
		if stream != nil {
			all = append(all, stream.Close())
		}
	}
	if s.msm != nil {
		all = append(all, s.msm.Close())
	}
	pinned := []*driver.Pinned{s.ring.pinned, s.down, s.arrived}
	for _, p := range s.host.blocks {
		pinned = append(pinned, p)
	}
	for _, p := range pinned {
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
