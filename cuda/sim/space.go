package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/cuda/driver"
)

const (
	granularity = 2 << 20
	guard       = 1 << 16
	// poison fills memory that is mapped, so that nobody takes it for zeros; the first poisonBytes of it, since
	// filling costs time.
	poison      = 0xa5
	poisonBytes = 256 << 20
)

// space handles memory: virtual addresses, and host memory that is registered.
func (d *Driver) space(e driver.Entry, args []uintptr) driver.Result {
	switch e {
	case driver.MemGetAllocationGranularity:
		put64(args[0], granularity)
	case driver.MemAddressReserve:
		size := int64(args[1])
		if size <= 0 || size%granularity != 0 {
			return driver.InvalidValue
		}
		block, err := unix.Mmap(-1, 0, int(size)+2*guard, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return driver.OutOfMemory
		}
		base := uintptr(unsafe.Pointer(&block[0])) + guard
		d.ranges[base] = &space{block: block, size: size}
		put64(args[0], uint64(base))
	case driver.MemAddressFree:
		s := d.ranges[args[0]]
		if s == nil || s.size != int64(args[1]) || s.mapped {
			return driver.InvalidValue
		}
		delete(d.ranges, args[0])
		if unix.Munmap(s.block) != nil {
			return driver.Unknown
		}
	case driver.MemCreate:
		size, prop := int64(args[1]), unsafe.Slice((*int32)(pointerAt(args[2])), 4)
		if size <= 0 || size%granularity != 0 || prop[0] != 1 || prop[2] != 1 || int(prop[3]) >= len(d.devices) {
			return driver.InvalidValue
		}
		v := d.devices[prop[3]]
		if size > v.free() {
			return driver.OutOfMemory
		}
		v.used += size
		h := d.handle() | uintptr(v.index)
		d.memory[h] = size
		put64(args[0], uint64(h))
	case driver.MemRelease:
		size, ok := d.memory[args[0]]
		if !ok {
			return driver.InvalidValue
		}
		delete(d.memory, args[0])
		d.devices[args[0]&0xf].used -= size
	case driver.MemMap:
		s := d.ranges[args[0]]
		if s == nil || s.mapped || s.size != int64(args[1]) || d.memory[args[3]] != s.size {
			return driver.InvalidValue
		}
		s.mapped, s.handle, s.device = true, args[3], d.devices[args[3]&0xf]
	case driver.MemSetAccess:
		s := d.ranges[args[0]]
		if s == nil || !s.mapped || s.size != int64(args[1]) {
			return driver.InvalidValue
		}
		usable := s.block[guard : guard+s.size]
		if unix.Mprotect(usable, unix.PROT_READ|unix.PROT_WRITE) != nil {
			return driver.Unknown
		}
		s.usable = true
		fill(usable[:min(s.size, poisonBytes)])
	case driver.MemUnmap:
		s := d.ranges[args[0]]
		if s == nil || !s.mapped || s.size != int64(args[1]) {
			return driver.InvalidValue
		}
		block := s.block[guard : guard+s.size]
		if unix.Madvise(block, unix.MADV_DONTNEED) != nil || unix.Mprotect(block, unix.PROT_NONE) != nil {
			return driver.Unknown
		}
		s.mapped, s.usable = false, false
	case driver.MemHostRegister:
		if args[1] == 0 || d.pinned[args[0]] != 0 {
			return driver.InvalidValue
		}
		d.pinned[args[0]] = int64(args[1])
	case driver.MemHostUnregister:
		if d.pinned[args[0]] == 0 {
			return driver.InvalidValue
		}
		delete(d.pinned, args[0])
	}
	return driver.Success
}

func fill(block []byte) {
	if len(block) == 0 {
		return
	}
	block[0] = poison
	for n := 1; n < len(block); n *= 2 {
		copy(block[n:], block[:n])
	}
}

// usable says whether [at, at+bytes) is memory of the device.
func (d *Driver) usable(v *device, at uintptr, bytes int64) bool {
	for base, s := range d.ranges {
		if at >= base && int64(at-base) <= s.size && bytes <= s.size-int64(at-base) {
			return s.usable && s.device == v
		}
	}
	return false
}
