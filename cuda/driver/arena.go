package driver

import (
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// Arena is a mapped range of device memory. Mapping and unmapping disturbs no other work on the device.
type Arena struct {
	device                   *Device
	base                     Ptr
	size                     int64
	handle                   uint64
	reserved, created, wired bool
}

// Layouts of cuda.h, 64-bit: CUmemLocation, CUmemAllocationProp, CUmemAccessDesc.
type memLocation struct{ kind, id int32 }

type allocationProp struct {
	kind, handleTypes int32
	location          memLocation
	_                 uintptr
	compression, rdma uint8
	usage             uint16
	_                 [4]byte
}

type accessDesc struct {
	location memLocation
	flags    int32
}

const (
	allocationPinned   = 1 // CU_MEM_ALLOCATION_TYPE_PINNED: memory of the device, despite the name
	locationDevice     = 1
	granularityMinimum = 0
	accessReadWrite    = 3
)

// Granularity is the unit in which memory is mapped, in bytes.
func (d *Device) Granularity() (int64, error) {
	c := newCell()
	defer c.free()
	c.device(d)
	if err := d.api.do("driver.Granularity", d.Name, MemGetAllocationGranularity, c.out(0), c.out(propWord), granularityMinimum); err != nil {
		return 0, err
	}
	if g := int64(c.word[0]); g > 0 && g&(g-1) == 0 {
		return g, nil
	}
	return 0, status.New(status.Internal, "driver.Granularity", d.Name, "a power of two", fmt.Sprint(c.word[0]))
}

// propWord is where a cell holds a CUmemAllocationProp, accessWord a CUmemAccessDesc.
const propWord, accessWord = 4, 12

// device writes both descriptions of the device's memory.
func (c *cell) device(d *Device) {
	*(*allocationProp)(unsafe.Pointer(&c.word[propWord])) = allocationProp{kind: allocationPinned, location: memLocation{locationDevice, int32(d.handle)}}
	*(*accessDesc)(unsafe.Pointer(&c.word[accessWord])) = accessDesc{memLocation{locationDevice, int32(d.handle)}, accessReadWrite}
}

// MapArena maps at least so many bytes (more than 0) of device memory, of which the content is anything. Errors: NoMemory;
// else what the driver said. After an error nothing is left.
func (d *Device) MapArena(bytes int64) (*Arena, error) {
	const op = "driver.MapArena"
	if bytes <= 0 {
		return nil, status.New(status.Internal, op, d.Name, "more than 0 bytes", fmt.Sprint(bytes))
	}
	granularity, err := d.Granularity()
	if err != nil {
		return nil, err
	}
	a := &Arena{device: d, size: (bytes + granularity - 1) &^ (granularity - 1)}
	size, where := uintptr(a.size), fmt.Sprintf("%s: %d bytes", d.Name, a.size)
	c := newCell()
	defer c.free()
	c.device(d)
	if err = d.api.do(op, where, MemAddressReserve, c.out(0), size, 0, 0, 0); err == nil {
		a.base, a.reserved = Ptr(c.word[0]), true
		err = d.api.do(op, where, MemCreate, c.out(1), size, c.out(propWord), 0)
	}
	if err == nil {
		a.handle, a.created = c.word[1], true
		err = d.api.do(op, where, MemMap, uintptr(a.base), size, 0, uintptr(a.handle), 0)
	}
	if err == nil {
		a.wired = true
		err = d.api.do(op, where, MemSetAccess, uintptr(a.base), size, c.out(accessWord), 1)
	}
	if err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// Base is the first address.
func (a *Arena) Base() Ptr { return a.base }

// Size is how many bytes are mapped: what was asked for, rounded up.
func (a *Arena) Size() int64 { return a.size }

// Close unmaps the arena, once no work that uses it is queued. Every part is given back even where another cannot; the
// first error is returned. Closing twice is legal, and tries again what failed.
func (a *Arena) Close() (err error) {
	const op = "driver.CloseArena"
	where := fmt.Sprintf("%s: %d bytes", a.device.Name, a.size)
	undo := func(held *bool, e Entry, args ...uintptr) {
		if !*held {
			return
		}
		failed := a.device.api.do(op, where, e, args...)
		*held = failed != nil
		if err == nil {
			err = failed
		}
	}
	undo(&a.wired, MemUnmap, uintptr(a.base), uintptr(a.size))
	undo(&a.created, MemRelease, uintptr(a.handle))
	if !a.wired {
		undo(&a.reserved, MemAddressFree, uintptr(a.base), uintptr(a.size))
	}
	return err
}
