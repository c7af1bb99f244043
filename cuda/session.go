package cuda

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/status"
)

// session is the life of one context: all that is made in it. Used by the owner alone, but for the ring's slots.
type session struct {
	device  *driver.Device
	leave   func()
	library *driver.Library
	up      *driver.Stream // copies to the device
	compute *driver.Stream
	events  []*driver.Event
	ring    ring
	down    *driver.Pinned // results
	memory  *memory
	msm     *msm.Summer
	rows    *rows.Rows
	points  *points.Points
}

// openSession makes a context and everything that must not be made while it works: pinned memory, and every kernel
// put on the device.
func openSession(config Config) (s *session, err error) {
	s = &session{}
	if s.device, err = config.API.Open(config.Index); err != nil {
		return nil, err
	}
	if err := s.fill(config); err != nil {
		if left := s.close(); left != nil {
			config.log("warn", "device %s: %v", config.name(), left)
		}
		return nil, err
	}
	return s, nil
}

func (s *session) fill(config Config) (err error) {
	d := s.device
	if s.leave, err = d.Enter(); err != nil {
		return err
	}
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
	if s.down, err = d.NewPinned(downBytes, 1); err != nil {
		return err
	}
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
	// Roots of unity are resident, and their table is made with the first partition; the kernels are put on the device now.
	transforms, err := ntt.New(s.library.Kernel, 0, 0)
	if err != nil {
		return err
	}
	if err := s.library.Warm(slices.Concat(s.rows.Kernels(), transforms.Kernels(), s.msm.Kernels(), s.points.Kernels())...); err != nil {
		return err
	}
	s.memory = &memory{device: d, limit: config.MemoryBytes, unit: unit, held: map[*driver.Arena]struct{}{}}
	return nil
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
type rootsKey struct{ log int }

// transforms pins a table of roots that serves the partition, and makes it where there is none.
func (s *session) transforms(ctx context.Context, p *partition) error {
	for log := p.shape.log; log <= ntt.MaxLog; log++ {
		if r := s.memory.find(rootsKey{log}); r != nil {
			p.pins = append(p.pins, r)
			p.transforms = r.value.(*ntt.Transforms)
			return nil
		}
	}
	log := p.shape.log
	r, err := s.memory.keep(rootsKey{log}, ntt.TableBytes(log))
	if err != nil {
		return err
	}
	t, err := ntt.New(s.library.Kernel, log, r.arena.Base())
	if err == nil {
		err = t.Prepare(s.compute)
	}
	if waited := s.compute.Synchronize(ctx); err == nil {
		err = waited
	}
	if err != nil {
		if s.drain() == nil { // else the table stays where it is, and the owner sees to the device
			_ = s.memory.drop(r) // what cannot be unmapped is tried again at the end
		}
		return err
	}
	r.value, r.ready = t, true
	p.pins = append(p.pins, r)
	p.transforms = t
	return nil
}

// same says whether what was made in another session still is there.
func (s *session) same(other *session) error {
	if s == other {
		return nil
	}
	return status.New(status.NoDevice, "cuda.session", s.device.Name, "the context that the partition began in", "a new one, since that died")
}

// drain waits until nothing is queued.
func (s *session) drain() error {
	var all []error
	for _, stream := range []*driver.Stream{s.up, s.compute} {
		if stream != nil {
			all = append(all, stream.Synchronize(context.Background()))
		}
	}
	return errors.Join(all...)
}

// close gives everything back, in an order that leaves nothing in use. It goes on after errors and returns them all.
func (s *session) close() error {
	var all []error
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
	for _, p := range []*driver.Pinned{s.ring.pinned, s.down} {
		if p != nil {
			all = append(all, p.Close())
		}
	}
	if s.library != nil {
		all = append(all, s.library.Close())
	}
	if s.leave != nil {
		s.leave()
	}
	all = append(all, s.device.Close())
	return errors.Join(all...)
}

// abandon leaves a device that hangs as it is.
func (s *session) abandon() {
	if s.leave != nil {
		s.leave()
	}
}

// fetch copies a result from the device, behind what is queued on the compute stream, and waits for it. It has at most
// downBytes.
func fetch[T any](ctx context.Context, s *session, from driver.Ptr, into []T) error {
	bytes := int64(len(into)) * int64(unsafe.Sizeof(*new(T)))
	status.Check(bytes <= downBytes, "cuda.fetch", "a result that fits its memory")
	if err := s.compute.CopyToHost(s.down.Pointer(), from, bytes); err != nil {
		return err
	}
	if err := s.compute.Synchronize(ctx); err != nil {
		return err
	}
	copy(into, unsafe.Slice((*T)(s.down.Pointer()), len(into)))
	return nil
}
