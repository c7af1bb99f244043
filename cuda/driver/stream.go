package driver

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// Priority orders streams: blocks of a more urgent stream start before those of others.
type Priority int

// The priorities.
const (
	Normal Priority = iota
	Urgent
)

// Stream is a queue of work on a device, done in order. It is used by one goroutine at a time.
type Stream struct {
	device *Device
	name   string
	handle uintptr
	frame  *frame

	tail, done atomic.Int64 // operations queued, and known to be over
	last       *Event       // for Synchronize
	hosts      []hostUse    // in the order of their operations
}

// hostUse is host memory that an operation reads or writes. The stream refers to it until the operation is known to be
// over, since memory of the Go heap to which nobody else does could be used for something else.
type hostUse struct {
	position int64
	memory   unsafe.Pointer
}

// NewStream makes a stream that does not wait for the device's default stream. name is for error text.
func (d *Device) NewStream(name string, priority Priority) (*Stream, error) {
	const op, nonBlocking = "driver.NewStream", 1
	level := d.least
	if priority == Urgent {
		level = d.greatest
	}
	c := newCell()
	defer c.free()
	if err := d.api.do(op, name, StreamCreateWithPriority, c.out(0), nonBlocking, uintptr(uint32(int32(level)))); err != nil {
		return nil, err
	}
	s := &Stream{device: d, name: name, handle: uintptr(c.word[0]), frame: new(frame)}
	last, err := d.NewEvent(false)
	if err != nil {
		_ = d.api.do(op, name, StreamDestroy, s.handle)
		return nil, err
	}
	s.last = last
	d.api.mu.Lock()
	d.api.streams[s] = struct{}{}
	d.api.mu.Unlock()
	return s, nil
}

// Device is the stream's.
func (s *Stream) Device() *Device { return s.device }

// Close gives the stream up. What is queued on it still runs. Closing twice is legal.
func (s *Stream) Close() error {
	if s.handle == 0 {
		return nil
	}
	s.device.api.mu.Lock()
	delete(s.device.api.streams, s)
	s.device.api.mu.Unlock()
	handle := s.handle
	s.handle = 0
	err := s.last.Close()
	if failed := s.device.api.do("driver.CloseStream", s.name, StreamDestroy, handle); failed != nil {
		return failed
	}
	return err
}

// queue makes a call that puts work on the stream, with the n arguments that lie in the frame.
func (s *Stream) queue(op, where string, e Entry, n int) error {
	// Counted before the call: what failed may still have been queued.
	s.tail.Add(1)
	if r := s.device.api.callArgs(e, s.frame.args[:n]); r != Success {
		return s.device.api.check(op, s.name+": "+where, e, r)
	}
	return nil
}

// Launch queues a kernel. a may be used for the next launch at once. Errors: what the driver said of this launch, or of
// work that failed before it: see IsLost.
func (s *Stream) Launch(k Kernel, grid, block Dim, sharedBytes uint32, a *Args) error {
	const op = "driver.Launch"
	if k.kernel == nil {
		return status.New(status.Internal, op, s.name, "a kernel", "none")
	}
	f, api := s.frame, s.device.api
	if err := f.fill(op, k.name, a); err != nil {
		return err
	}
	if !k.warm.Load() {
		api.stalls[0].Add(1)
		if err := api.stalling(op, k.name, "the first launch of a kernel"); err != nil {
			return err
		}
	}
	g, b := grid.full(), block.full()
	f.args = [...]uintptr{
		k.function, uintptr(g.X), uintptr(g.Y), uintptr(g.Z), uintptr(b.X), uintptr(b.Y), uintptr(b.Z),
		uintptr(sharedBytes), s.handle, uintptr(unsafe.Pointer(&f.pointers)), 0, 0, 0, 0, 0, 0,
	}
	if err := s.queue(op, k.name, LaunchKernel, 11); err != nil {
		return err
	}
	k.warm.Store(true)
	return nil
}

// CopyToDevice queues a copy of host memory, which stays as it is until the stream has passed it; only from pinned
// memory does the copy run beside other work. No bytes are no work.
func (s *Stream) CopyToDevice(dst Ptr, src unsafe.Pointer, bytes int64) error {
	s.hosts = append(s.hosts, hostUse{s.tail.Load() + 1, src})
	return s.copy("driver.CopyToDevice", MemcpyHtoDAsync, uintptr(dst), uintptr(src), bytes)
}

// CopyToHost queues a copy into host memory, which belongs to the stream until it has passed it.
func (s *Stream) CopyToHost(dst unsafe.Pointer, src Ptr, bytes int64) error {
	s.hosts = append(s.hosts, hostUse{s.tail.Load() + 1, dst})
	return s.copy("driver.CopyToHost", MemcpyDtoHAsync, uintptr(dst), uintptr(src), bytes)
}

// CopyDevice queues a copy on the device. The places do not overlap.
func (s *Stream) CopyDevice(dst, src Ptr, bytes int64) error {
	return s.copy("driver.CopyDevice", MemcpyDtoDAsync, uintptr(dst), uintptr(src), bytes)
}

func (s *Stream) copy(op string, e Entry, dst, src uintptr, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if bytes < 0 {
		return status.New(status.Internal, op, s.name, "0 bytes or more", fmt.Sprint(bytes))
	}
	s.frame.args[0], s.frame.args[1], s.frame.args[2], s.frame.args[3] = dst, src, uintptr(bytes), s.handle
	return s.queue(op, "", e, 4)
}

// Fill8 queues writing a byte count times.
func (s *Stream) Fill8(dst Ptr, value uint8, count int64) error {
	return s.fill(MemsetD8Async, dst, uintptr(value), count)
}

// Fill32 queues writing a 32-bit number count times.
func (s *Stream) Fill32(dst Ptr, value uint32, count int64) error {
	return s.fill(MemsetD32Async, dst, uintptr(value), count)
}

func (s *Stream) fill(e Entry, dst Ptr, value uintptr, count int64) error {
	const op = "driver.Fill"
	if count == 0 {
		return nil
	}
	if count < 0 {
		return status.New(status.Internal, op, s.name, "a count of 0 or more", fmt.Sprint(count))
	}
	s.frame.args[0], s.frame.args[1], s.frame.args[2], s.frame.args[3] = uintptr(dst), value, uintptr(count), s.handle
	return s.queue(op, "", e, 4)
}

// over notes that everything up to a position has run.
func (s *Stream) over(position int64) {
	if s.done.Load() >= position {
		return
	}
	s.done.Store(position)
	n := 0
	for n < len(s.hosts) && s.hosts[n].position <= position {
		n++
	}
	s.hosts = slices.Delete(s.hosts, 0, n)
}

// Record queues a mark: e is over once everything before it is.
func (s *Stream) Record(e *Event) error {
	s.frame.args[0], s.frame.args[1] = e.handle, s.handle
	if err := s.queue("driver.Record", "", EventRecord, 2); err != nil {
		return err
	}
	e.stream, e.position = s, s.tail.Load()
	return nil
}

// Wait makes what is queued from now on wait for a recorded event, of this or another stream. One that was never
// recorded is not waited for.
func (s *Stream) Wait(e *Event) error {
	s.frame.args[0], s.frame.args[1], s.frame.args[2] = s.handle, e.handle, 0
	return s.queue("driver.Wait", "", StreamWaitEvent, 3)
}

// Synchronize returns once all that was queued is over. Errors: Cancelled when ctx ends, and Timeout after the device's
// Limit, both with the work still running; else what failed on the device.
func (s *Stream) Synchronize(ctx context.Context) error {
	if s.done.Load() == s.tail.Load() {
		return nil
	}
	if err := s.Record(s.last); err != nil {
		return err
	}
	return s.last.Synchronize(ctx)
}

// Event is a mark in a stream. It is used by one goroutine at a time.
type Event struct {
	device   *Device
	handle   uintptr
	timed    bool
	stream   *Stream // where it was recorded last
	position int64   // and after which operation
	args     [1]uintptr
}

// NewEvent makes an event; a timed one can be measured with Since, and costs a little more.
func (d *Device) NewEvent(timed bool) (*Event, error) {
	const disableTiming = 2
	flags := uintptr(disableTiming)
	if timed {
		flags = 0
	}
	c := newCell()
	defer c.free()
	if err := d.api.do("driver.NewEvent", d.Name, EventCreate, c.out(0), flags); err != nil {
		return nil, err
	}
	return &Event{device: d, handle: uintptr(c.word[0]), timed: timed}, nil
}

// Close gives the event up. Closing twice is legal.
func (e *Event) Close() error {
	if e.handle == 0 {
		return nil
	}
	handle := e.handle
	e.handle = 0
	return e.device.api.do("driver.CloseEvent", e.device.Name, EventDestroy, handle)
}

// Done says, without waiting, whether everything before the mark is over. An event that was never recorded is.
func (e *Event) Done() (bool, error) {
	e.args[0] = e.handle
	switch r := e.device.api.callArgs(EventQuery, e.args[:]); r {
	case Success:
		if e.stream != nil {
			e.stream.over(e.position)
		}
		return true, nil
	case NotReady:
		return false, nil
	default:
		return false, e.device.api.check("driver.Synchronize", e.where(), EventQuery, r)
	}
}

// Synchronize returns once everything before the mark is over. It asks again and again: without a pause at first, since
// most waits of small proofs are shorter than the shortest sleep. Errors: as Stream.Synchronize.
func (e *Event) Synchronize(ctx context.Context) error {
	const op = "driver.Synchronize"
	const spin, nap, longNap = 200 * time.Microsecond, 20 * time.Microsecond, 500 * time.Microsecond
	begin := time.Now()
	for {
		if over, err := e.Done(); over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return status.Wrap(status.Cancelled, op, e.where(), context.Cause(ctx))
		}
		switch waited := time.Since(begin); {
		case waited > e.device.Limit:
			return status.New(status.Timeout, op, e.where(), "an end within "+e.device.Limit.String(), "none")
		case waited < spin:
			runtime.Gosched()
		case waited < 100*spin:
			sleep(nap)
		default:
			sleep(longNap)
		}
	}
}

// sleep is precise, where time.Sleep of less than a millisecond takes one: it costs the thread meanwhile.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early, and whoever waits looks again
}

// where names the stream for error text.
func (e *Event) where() string {
	if e.stream != nil {
		return e.device.Name + ": stream " + e.stream.name
	}
	return e.device.Name
}

// Since is the device's time from an earlier event to this one, in milliseconds. Both are timed and over.
func (e *Event) Since(earlier *Event) (float32, error) {
	c := newCell()
	defer c.free()
	if err := e.device.api.do("driver.Since", e.device.Name, EventElapsedTime, c.out(0), earlier.handle, e.handle); err != nil {
		return 0, err
	}
	return *(*float32)(unsafe.Pointer(&c.word[0])), nil
}
