package driver

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// Library is loaded kernels, from one image or several.
type Library struct {
	device  *Device
	handles []uintptr

	mu      sync.Mutex
	kernels map[string]Kernel
}

// Kernel is a function of a library that can be launched. Copies name the same function.
type Kernel struct{ *kernel }

type kernel struct {
	name     string
	device   *Device
	function uintptr
	warm     atomic.Bool // known to be on the device
}

// Load loads fatbins or cubins, of which copies are made. Kernels are looked up later; only then does a missing image
// for this device show. Errors: NoDevice where there is no image, or an empty one; else what the driver said.
func (d *Device) Load(images ...[]byte) (l *Library, err error) {
	const op = "driver.Load"
	l = &Library{device: d, kernels: map[string]Kernel{}}
	for _, image := range images {
		if len(image) == 0 {
			images = nil
			break
		}
	}
	if len(images) == 0 {
		return nil, status.New(status.NoDevice, op, d.Name, "an image of the kernels", "none: this build has no CUDA code")
	}
	for _, image := range images {
		if err := l.add(op, image); err != nil {
			_ = l.Close()
			return nil, err
		}
	}
	return l, nil
}

// add loads one image.
func (l *Library) add(op string, image []byte) error {
	// The driver wants it aligned; an embedded one may lie anywhere.
	aligned := make([]uint64, (len(image)+7)/8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), len(image)), image)
	defer runtime.KeepAlive(aligned)
	c := newCell()
	defer c.free()
	if err := l.device.api.do(op, l.device.Name, LibraryLoadData, c.out(0), uintptr(unsafe.Pointer(&aligned[0])), 0, 0, 0, 0, 0, 0); err != nil {
		return err
	}
	l.handles = append(l.handles, uintptr(c.word[0]))
	return nil
}

// Kernel finds a kernel by its name. Errors: NoDevice, where the image has none for this device's architecture;
// Internal where it has none of that name.
func (l *Library) Kernel(name string) (Kernel, error) {
	const op = "driver.Kernel"
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.kernels[name]; ok {
		return k, nil
	}
	d := l.device
	c := newCell()
	defer c.free()
	text, err := c.cText(op, name)
	if err != nil {
		return Kernel{}, err
	}
	where := fmt.Sprintf("%s: kernel %q for compute capability %s", d.Name, name, d.Capability)
	result := NotFound
	for _, handle := range l.handles {
		if result = d.api.call(LibraryGetKernel, c.out(0), handle, text); result != NotFound {
			break
		}
	}
	if err := d.api.check(op, where, LibraryGetKernel, result); err != nil {
		return Kernel{}, err
	}
	if err := d.api.do(op, where, KernelGetFunction, c.out(1), uintptr(c.word[0])); err != nil {
		return Kernel{}, err
	}
	k := Kernel{&kernel{name: name, device: d, function: uintptr(c.word[1])}}
	l.kernels[name] = k
	return k, nil
}

// Warm makes sure that kernels are on the device; otherwise their first launch might put them there, stopping everything.
// Looking them up already does so with the drivers that were tried. It is for the time before the device is used.
func (l *Library) Warm(kernels ...Kernel) error {
	for _, k := range kernels {
		if k.warm.Load() {
			continue
		}
		if err := l.device.api.do("driver.Warm", k.name, FuncLoad, k.function); err != nil {
			return err
		}
		k.warm.Store(true)
	}
	return nil
}

// Close unloads the images. No kernel of them may be running or be launched again. It gives back what it can, and
// returns the first error. Closing twice is legal, and tries again what failed.
func (l *Library) Close() (err error) {
	var left []uintptr
	for _, handle := range l.handles {
		if failed := l.device.api.do("driver.Unload", l.device.Name, LibraryUnload, handle); failed != nil {
			left = append(left, handle)
			if err == nil {
				err = failed
			}
		}
	}
	l.handles = left
	return err
}

// Name is the kernel's name in the image.
func (k Kernel) Name() string { return k.name }

// Function attributes. Numbers: cuda.h.
const (
	functionMaxThreads       = 0
	functionSharedBytes      = 1
	functionLocalBytes       = 3
	functionRegisters        = 4
	functionMaxDynamicShared = 8
)

func (k Kernel) attribute(attribute uintptr) (int, error) {
	c := newCell()
	defer c.free()
	if err := k.device.api.do("driver.Kernel", k.name, FuncGetAttribute, c.out(0), attribute, k.function); err != nil {
		return 0, err
	}
	return int(int32(c.word[0])), nil
}

// Resources are what a kernel takes, as it was compiled for the device.
type Resources struct {
	Registers   int // a thread
	LocalBytes  int // a thread: spills and stack
	SharedBytes int // a block, static
	MaxThreads  int // a block
}

// Resources asks for them.
func (k Kernel) Resources() (r Resources, err error) {
	for _, ask := range []struct {
		attribute uintptr
		into      *int
	}{{functionRegisters, &r.Registers}, {functionLocalBytes, &r.LocalBytes}, {functionSharedBytes, &r.SharedBytes}, {functionMaxThreads, &r.MaxThreads}} {
		if *ask.into, err = k.attribute(ask.attribute); err != nil {
			return r, err
		}
	}
	return r, nil
}

// AllowShared lets launches have up to so many bytes of dynamic shared memory, which above 48 KiB must be said first.
func (k Kernel) AllowShared(bytes uint32) error {
	return k.device.api.do("driver.AllowShared", fmt.Sprintf("%s: %d bytes", k.name, bytes), FuncSetAttribute, k.function, functionMaxDynamicShared, uintptr(bytes))
}

// BlocksPerSM is how many blocks of so many threads, with so much dynamic shared memory, run on a multiprocessor at
// once.
func (k Kernel) BlocksPerSM(threads int, sharedBytes uint32) (int, error) {
	c := newCell()
	defer c.free()
	if err := k.device.api.do("driver.BlocksPerSM", k.name, OccupancyMaxActiveBlocks, c.out(0), k.function, uintptr(threads), uintptr(sharedBytes)); err != nil {
		return 0, err
	}
	return int(int32(c.word[0])), nil
}
