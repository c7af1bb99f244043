package sim

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
)

// stream is a queue of operations that have not run yet.
type stream struct {
	device *device
	queue  []operation
}

// operation is one of: a wait for a mark, a mark to set, or something to do.
type operation struct {
	wait *mark
	set  *mark
	run  func() driver.Result
}

// mark is one recording of an event.
type mark struct {
	over bool
	time int64
}

type event struct {
	device *device
	last   *mark // nil: never recorded
	timed  bool
}

// queue handles streams, events and what is put on streams.
func (d *Driver) queue(dev *device, e driver.Entry, args []uintptr) driver.Result {
	switch e {
	case driver.StreamCreateWithPriority:
		h, s := d.handle(), &stream{device: dev}
		d.streams[h] = s
		d.order = append(d.order, s)
		put64(args[0], uint64(h))
	case driver.StreamDestroy:
		if d.streams[args[0]] == nil {
			return driver.InvalidValue
		}
		d.finish(d.streams[args[0]])
		d.dropStream(args[0])
	case driver.EventCreate:
		h := d.handle()
		d.events[h] = &event{device: dev, timed: args[1]&2 == 0}
		put64(args[0], uint64(h))
	case driver.EventDestroy:
		if d.events[args[0]] == nil {
			return driver.InvalidValue
		}
		delete(d.events, args[0])
	case driver.EventRecord:
		ev := d.events[args[0]]
		if ev == nil {
			return driver.InvalidValue
		}
		m := &mark{}
		ev.last = m
		return d.put(args[1], operation{set: m})
	case driver.StreamWaitEvent:
		ev := d.events[args[1]]
		if ev == nil {
			return driver.InvalidValue
		}
		if ev.last == nil {
			return driver.Success
		}
		return d.put(args[0], operation{wait: ev.last})
	case driver.EventQuery:
		ev := d.events[args[0]]
		if ev == nil {
			return driver.InvalidValue
		}
		if ev.last == nil || ev.last.over {
			return driver.Success
		}
		for range 1 + d.random.IntN(16) {
			d.step()
		}
		if dev.lost != driver.Success {
			return dev.lost
		}
		if !ev.last.over {
			return driver.NotReady
		}
	case driver.EventElapsedTime:
		from, to := d.events[args[1]], d.events[args[2]]
		if from == nil || to == nil || !from.timed || !to.timed || from.last == nil || to.last == nil {
			return driver.InvalidValue
		}
		if !from.last.over || !to.last.over {
			return driver.NotReady
		}
		*(*float32)(pointerAt(args[0])) = float32(to.last.time-from.last.time) / 1000
	case driver.MemcpyHtoDAsync:
		return d.copy(dev, args, 3, args[0], 0)
	case driver.MemcpyDtoHAsync:
		return d.copy(dev, args, 3, 0, args[1])
	case driver.MemcpyDtoDAsync:
		return d.copy(dev, args, 3, args[0], args[1])
	case driver.MemsetD8Async:
		at, value, count := args[0], byte(args[1]), int64(args[2])
		return d.put(args[3], operation{run: func() driver.Result {
			if !d.usable(dev, at, count) {
				return d.fault(dev, driver.IllegalAddress, "set of %d bytes at %#x", count, at)
			}
			block := unsafe.Slice((*byte)(pointerAt(at)), count)
			for i := range block {
				block[i] = value
			}
			return driver.Success
		}})
	case driver.MemsetD32Async:
		at, value, count := args[0], uint32(args[1]), int64(args[2])
		if at%4 != 0 {
			return driver.InvalidValue
		}
		return d.put(args[3], operation{run: func() driver.Result {
			if !d.usable(dev, at, 4*count) {
				return d.fault(dev, driver.IllegalAddress, "set of %d words at %#x", count, at)
			}
			block := unsafe.Slice((*uint32)(pointerAt(at)), count)
			for i := range block {
				block[i] = value
			}
			return driver.Success
		}})
	case driver.LaunchKernel:
		return d.launch(dev, args)
	default:
		return driver.NotFound
	}
	return driver.Success
}

// put queues an operation on the stream of that handle.
func (d *Driver) put(h uintptr, o operation) driver.Result {
	s := d.streams[h]
	if s == nil {
		return driver.InvalidValue
	}
	s.queue = append(s.queue, o)
	return driver.Success
}

// copy queues a copy of args[2] bytes from args[1] to args[0]; dst and src are those that lie on the device.
func (d *Driver) copy(dev *device, args []uintptr, stream int, dst, src uintptr) driver.Result {
	to, from, bytes := args[0], args[1], int64(args[2])
	return d.put(args[stream], operation{run: func() driver.Result {
		for _, at := range []uintptr{dst, src} {
			if at != 0 && !d.usable(dev, at, bytes) {
				return d.fault(dev, driver.IllegalAddress, "copy of %d bytes, %#x to %#x", bytes, from, to)
			}
		}
		copy(unsafe.Slice((*byte)(pointerAt(to)), bytes), unsafe.Slice((*byte)(pointerAt(from)), bytes))
		return driver.Success
	}})
}

// launch queues a grid. The arguments are copied, as a driver does: package driver hands out pointers into one
// block of ArgBytes, ended by nil.
func (d *Driver) launch(dev *device, args []uintptr) driver.Result {
	o := d.objects[args[0]]
	grid := driver.Dim{X: uint32(args[1]), Y: uint32(args[2]), Z: uint32(args[3])}
	block := driver.Dim{X: uint32(args[4]), Y: uint32(args[5]), Z: uint32(args[6])}
	shared := uint32(args[7])
	threads := uint64(block.X) * uint64(block.Y) * uint64(block.Z)
	switch {
	case o == nil || o.name == "" || o.device != dev:
		return driver.InvalidValue
	case threads == 0 || threads > 1024 || block.Z > 64 || shared > o.shared:
		return driver.InvalidValue
	case grid.X == 0 || grid.Y == 0 || grid.Z == 0 || grid.X > 1<<31-1 || grid.Y > 65535 || grid.Z > 65535:
		return driver.InvalidValue
	}
	given := unsafe.Slice((*unsafe.Pointer)(pointerAt(args[9])), driver.ArgCount+1)
	count := slices.Index(given, nil)
	copied, pointers := new([driver.ArgBytes / 8]uint64), make([]unsafe.Pointer, count)
	if count > 0 {
		*copied = *(*[driver.ArgBytes / 8]uint64)(given[0])
	}
	for i := range pointers {
		pointers[i] = unsafe.Add(unsafe.Pointer(copied), uintptr(given[i])-uintptr(given[0]))
	}
	seed := d.random.Uint64()
	return d.put(args[8], operation{run: func() driver.Result {
		d.ran[o.name]++
		if err := d.config.Kernels.Launch(o.name, grid, block, shared, pointers, seed); err != nil {
			return d.fault(dev, driver.LaunchFailed, "%s: grid %v, block %v: %v", o.name, grid, block, err)
		}
		return driver.Success
	}})
}

// step runs the head of one stream that can go on; false where none can.
func (d *Driver) step() bool {
	var ready []*stream
	for _, s := range d.order {
		if len(s.queue) > 0 && (s.queue[0].wait == nil || s.queue[0].wait.over) && s.device.lost == driver.Success && !s.device.hangs {
			ready = append(ready, s)
		}
	}
	if len(ready) == 0 {
		return false
	}
	s := ready[d.random.IntN(len(ready))]
	o := s.queue[0]
	s.queue = s.queue[1:]
	d.clock++
	if o.set != nil {
		o.set.over, o.set.time = true, d.clock
	}
	if o.run != nil {
		return o.run() == driver.Success
	}
	return true
}

// finish runs until the stream is empty, which a real device does with a stream that is given up.
func (d *Driver) finish(s *stream) {
	for len(s.queue) > 0 && d.step() {
	}
}

func (d *Driver) dropStream(h uintptr) {
	s := d.streams[h]
	delete(d.streams, h)
	if i := slices.Index(d.order, s); i >= 0 {
		d.order = slices.Delete(d.order, i, i+1)
	}
}

// Queued is how many operations have not run yet, for error text of tests.
func (d *Driver) Queued() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := ""
	for i, s := range d.order {
		text += fmt.Sprintf("stream %d: %d; ", i, len(s.queue))
	}
	return text
}
