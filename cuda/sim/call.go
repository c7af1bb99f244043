package sim

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/cuda/driver"
)

// noContext are the entries that work without a current context; all others want one that is alive.
var noContext = map[driver.Entry]bool{
	driver.Init: true, driver.DriverGetVersion: true, driver.GetErrorName: true, driver.GetErrorString: true,
	driver.DeviceGet: true, driver.DeviceGetCount: true, driver.DeviceGetName: true, driver.DeviceGetUUID: true,
	driver.DeviceGetPCIBusID: true, driver.DeviceTotalMem: true, driver.DeviceGetAttribute: true, driver.PrimaryCtxRetain: true,
	driver.PrimaryCtxRelease: true, driver.CtxSetCurrent: true, driver.CtxGetCurrent: true,
	driver.MemGetAllocationGranularity: true, driver.MemAddressReserve: true, driver.MemAddressFree: true, driver.MemCreate: true,
	driver.MemRelease: true, driver.MemMap: true, driver.MemUnmap: true, driver.MemSetAccess: true,
}

// onDead are the entries that give things back and work on a context that is lost.
var onDead = map[driver.Entry]bool{
	driver.LibraryUnload: true, driver.StreamDestroy: true, driver.EventDestroy: true, driver.MemHostUnregister: true,
}

func put32(at uintptr, v int) { *(*int32)(pointerAt(at)) = int32(v) }
func put64(at uintptr, v uint64) {
	*(*uint64)(pointerAt(at)) = v
}

// putText writes a NUL-terminated text into size bytes.
func putText(at uintptr, size int, s string) {
	to := unsafe.Slice((*byte)(pointerAt(at)), size)
	n := copy(to[:size-1], s)
	to[n] = 0
}

// Call does what the driver's function would.
func (d *Driver) Call(e driver.Entry, args []uintptr) driver.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	var dev *device
	if !noContext[e] {
		if dev = d.contexts[d.current[unix.Gettid()]]; dev == nil {
			return driver.InvalidContext
		}
		if dev.lost != driver.Success && !onDead[e] {
			return dev.lost
		}
	}
	switch e {
	case driver.Init:
		if len(d.devices) == 0 {
			return driver.NoDevice
		}
	case driver.DriverGetVersion:
		put32(args[0], d.config.Version)
	case driver.GetErrorName, driver.GetErrorString:
		text, ok := names[driver.Result(int32(args[0]))]
		if !ok {
			put64(args[1], 0)
			return driver.InvalidValue
		}
		put64(args[1], uint64(uintptr(unsafe.Pointer(&d.text(text[e-driver.GetErrorName])[0]))))
	case driver.DeviceGetCount:
		put32(args[0], len(d.devices))
	case driver.DeviceGet:
		if int(args[1]) >= len(d.devices) {
			return driver.InvalidDevice
		}
		put32(args[0], int(args[1]))
	case driver.DeviceGetName:
		putText(args[0], int(args[1]), d.devices[args[2]].Name)
	case driver.DeviceGetPCIBusID:
		putText(args[0], int(args[1]), fmt.Sprintf("0000:%02X:00.0", 0x3a+args[2]))
	case driver.DeviceGetUUID:
		id := unsafe.Slice((*byte)(pointerAt(args[0])), 16)
		clear(id)
		id[15] = byte(args[1] + 1)
	case driver.DeviceTotalMem:
		put64(args[0], uint64(d.devices[args[1]].MemoryBytes))
	case driver.DeviceGetAttribute:
		v, ok := d.devices[args[2]].attribute(driver.Attribute(args[1]))
		if !ok {
			return driver.InvalidValue
		}
		put32(args[0], v)
	case driver.PrimaryCtxRetain:
		return d.retain(args[0], d.devices[args[1]])
	case driver.PrimaryCtxRelease:
		return d.release(d.devices[args[0]])
	case driver.CtxGetCurrent:
		put64(args[0], uint64(d.current[unix.Gettid()]))
	case driver.CtxSetCurrent:
		if args[0] != 0 && d.contexts[args[0]] == nil {
			return driver.InvalidContext
		}
		d.current[unix.Gettid()] = args[0]
	case driver.CtxGetStreamPriorityRange:
		put32(args[0], 0)
		put32(args[1], -5)
	case driver.LibraryLoadData, driver.LibraryUnload, driver.LibraryGetKernel, driver.KernelGetFunction, driver.FuncLoad,
		driver.FuncGetAttribute, driver.FuncSetAttribute, driver.OccupancyMaxActiveBlocks:
		return d.code(dev, e, args)
	case driver.MemGetInfo:
		put64(args[0], uint64(dev.free()))
		put64(args[1], uint64(dev.MemoryBytes))
	case driver.MemGetAllocationGranularity, driver.MemAddressReserve, driver.MemAddressFree, driver.MemCreate, driver.MemRelease,
		driver.MemMap, driver.MemUnmap, driver.MemSetAccess, driver.MemHostRegister, driver.MemHostUnregister:
		return d.space(e, args)
	default:
		return d.queue(dev, e, args)
	}
	return driver.Success
}

func (v *device) free() int64 { return max(0, v.MemoryBytes-v.used-v.hogged) }

func (v *device) attribute(a driver.Attribute) (int, bool) {
	switch a {
	case driver.MultiprocessorCount:
		return v.SMCount, true
	case driver.ComputeMode:
		return v.Mode, true
	case driver.L2Bytes:
		return int(v.L2Bytes), true
	case driver.CapabilityMajor:
		return int(v.Capability / 10), true
	case driver.CapabilityMinor:
		return int(v.Capability % 10), true
	case driver.SharedPerBlockOptin:
		return 227 << 10, true
	case driver.VirtualMemoryManagement:
		if v.Unmanaged {
			return 0, true
		}
		return 1, true
	}
	return 0, false
}

func (d *Driver) retain(out uintptr, v *device) driver.Result {
	switch {
	case v.Taken:
		return driver.DeviceUnavailable
	case v.broken != driver.Success:
		return v.broken
	}
	if v.users++; v.users == 1 {
		v.context, v.lost = d.handle(), driver.Success
		d.contexts[v.context] = v
	}
	put64(out, uint64(v.context))
	return driver.Success
}

// release destroys, with the last user's context, all that was made in it and belongs to it alone.
func (d *Driver) release(v *device) driver.Result {
	if v.users == 0 {
		return driver.InvalidContext
	}
	if v.users--; v.users > 0 {
		return driver.Success
	}
	delete(d.contexts, v.context)
	for thread, context := range d.current {
		if context == v.context {
			delete(d.current, thread)
		}
	}
	for h, s := range d.streams {
		if s.device == v {
			d.dropStream(h)
		}
	}
	for h, ev := range d.events {
		if ev.device == v {
			delete(d.events, h)
		}
	}
	for h, o := range d.objects {
		if o.device == v {
			delete(d.objects, h)
		}
	}
	return driver.Success
}

// code handles libraries and kernels.
func (d *Driver) code(dev *device, e driver.Entry, args []uintptr) driver.Result {
	find := func(h uintptr, library bool) *object {
		if o := d.objects[h]; o != nil && o.device == dev && (o.name == "") == library {
			return o
		}
		return nil
	}
	switch e {
	case driver.LibraryLoadData:
		if args[1] == 0 {
			return driver.InvalidValue
		}
		h := d.handle()
		d.objects[h] = &object{device: dev}
		put64(args[0], uint64(h))
	case driver.LibraryUnload:
		if find(args[0], true) == nil {
			return driver.InvalidValue
		}
		delete(d.objects, args[0])
	case driver.LibraryGetKernel:
		name := textAt(args[2])
		switch {
		case find(args[1], true) == nil:
			return driver.InvalidValue
		case d.config.Kernels == nil || !d.config.Kernels.Has(name):
			return driver.NotFound
		case dev.NoImage:
			return driver.NoBinaryForGPU
		}
		h := d.handle()
		d.objects[h] = &object{device: dev, name: name, shared: 48 << 10}
		put64(args[0], uint64(h))
	case driver.KernelGetFunction:
		if find(args[1], false) == nil {
			return driver.InvalidValue
		}
		put64(args[0], uint64(args[1]))
	case driver.FuncLoad:
		if find(args[0], false) == nil {
			return driver.InvalidValue
		}
	case driver.FuncGetAttribute:
		if find(args[2], false) == nil {
			return driver.InvalidValue
		}
		// Max threads, shared, constant, local bytes; registers.
		put32(args[0], [...]int{1024, 0, 0, 0, 64, 90, 90, 0, 48 << 10}[min(args[1], 8)])
	case driver.FuncSetAttribute:
		o := find(args[0], false)
		if o == nil || args[2] > 227<<10 {
			return driver.InvalidValue
		}
		o.shared = uint32(args[2])
	case driver.OccupancyMaxActiveBlocks:
		if find(args[1], false) == nil || args[2] == 0 || args[2] > 1024 {
			return driver.InvalidValue
		}
		put32(args[0], int(1024/args[2]))
	}
	return driver.Success
}
