package driver

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// Pinned is host memory outside the Go heap that a device copies from and to at full speed, beside other work.
type Pinned struct {
	device     *Device
	block      []byte
	registered bool
	closed     bool
}

// NewPinned maps memory, asks for huge pages, touches it by up to threads goroutines and registers it: some 50 ms a GiB,
// a seventh of what the driver's own allocation takes. Registering stalls the device: it is for the time before
// the device is used. bytes is more than 0 and is rounded up to pages. Errors: NoMemory; else what the driver said.
func (d *Device) NewPinned(bytes int64, threads int) (*Pinned, error) {
	const op, page = "driver.NewPinned", 1 << 12
	if bytes <= 0 {
		return nil, status.New(status.Internal, op, d.Name, "more than 0 bytes", fmt.Sprint(bytes))
	}
	size := (bytes + page - 1) &^ (page - 1)
	block, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, status.Wrap(status.NoMemory, op, fmt.Sprintf("%d bytes of host memory", size), err)
	}
	p := &Pinned{device: d, block: block}
	// A hint: without huge pages registering takes longer, and nothing else changes.
	_ = unix.Madvise(block, unix.MADV_HUGEPAGE)
	if err := touch(block, threads); err != nil {
		_ = p.Close()
		return nil, err
	}
	if err := d.api.do(op, fmt.Sprintf("%s: %d bytes of host memory", d.Name, size), MemHostRegister, uintptr(p.Pointer()), uintptr(size), 0); err != nil {
		_ = p.Close()
		return nil, err
	}
	p.registered = true
	return p, nil
}

// touch writes to each page, so that registering need not fault them in, which no thread could help with.
func touch(block []byte, threads int) error {
	const page = 1 << 12
	threads = max(1, min(threads, len(block)>>21))
	failed := make([]error, threads)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer status.Recover("driver.NewPinned", &failed[t])
			pages := len(block) / page
			for i := t * pages / threads; i < (t+1)*pages/threads; i++ {
				block[i*page] = 0
			}
		}()
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// Pointer is the first byte, also after Close.
func (p *Pinned) Pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p.block)) }

// Bytes is the whole of it, also after Close.
func (p *Pinned) Bytes() []byte { return p.block }

// Close gives the memory back, once no copy from or to it is queued; it stalls the device. Memory that the driver does
// not let go of stays as it is, since a device may still write to it. Closing twice is legal.
//
// A device can be lost while goroutines fill memory for it. So the addresses stay mapped as long as anything refers to the Pinned:
// what is written after Close goes nowhere, and never to memory of others.
func (p *Pinned) Close() error {
	const op = "driver.ClosePinned"
	if p.registered {
		if err := p.device.api.do(op, p.device.Name, MemHostUnregister, uintptr(p.Pointer())); err != nil {
			return err
		}
		p.registered = false
	}
	if p.closed {
		return nil
	}
	p.closed = true
	runtime.AddCleanup(p, func(block []byte) { _ = unix.Munmap(block) }, p.block)
	if err := unix.Madvise(p.block, unix.MADV_DONTNEED); err != nil {
		return status.Wrap(status.Internal, op, p.device.Name, err)
	}
	return nil
}
