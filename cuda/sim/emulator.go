package sim

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// Kernels runs kernels on the CPU.
type Kernels interface {
	// Has says whether there is a kernel of that name.
	Has(name string) bool
	// Launch runs a grid to its end. args points to a pointer for each parameter. seed decides the order of the threads.
	Launch(name string, grid, block driver.Dim, sharedBytes uint32, args []unsafe.Pointer, seed uint64) error
}

// Functions are kernels in Go: each is called once for a launch.
type Functions map[string]func(grid, block driver.Dim, args []unsafe.Pointer) error

// Has says whether there is a kernel of that name.
func (f Functions) Has(name string) bool { return f[name] != nil }

// Launch calls the function.
func (f Functions) Launch(name string, grid, block driver.Dim, _ uint32, args []unsafe.Pointer, _ uint64) error {
	return f[name](grid, block, args)
}

// Emulator is a library of kernels compiled for the CPU.
type Emulator struct {
	mu     sync.Mutex // the library runs one grid at a time
	launch uintptr    // int emu_launch(const char *name, uint32_t grid[3], uint32_t block[3], uint32_t shared, void **args, uint64_t seed)
	failed uintptr    // const char *emu_error(void)
	names  map[string][]byte
}

// OpenEmulator loads such a library. Errors: NoDevice.
func OpenEmulator(path string) (*Emulator, error) {
	const op = "sim.OpenEmulator"
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, status.New(status.NoDevice, op, path, "a library of emulated kernels", err.Error())
	}
	e := &Emulator{names: map[string][]byte{}}
	var list uintptr // const char *const *emu_kernels(void), ended by NULL
	for symbol, into := range map[string]*uintptr{"emu_kernels": &list, "emu_launch": &e.launch, "emu_error": &e.failed} {
		if *into, err = purego.Dlsym(handle, symbol); err != nil {
			return nil, status.New(status.NoDevice, op, path, symbol, err.Error())
		}
	}
	at, _, _ := purego.SyscallN(list)
	for p := (*uintptr)(pointerAt(at)); *p != 0; p = (*uintptr)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) {
		name := textAt(*p)
		e.names[name] = append([]byte(name), 0)
	}
	return e, nil
}

// Has says whether the library has a kernel of that name.
func (e *Emulator) Has(name string) bool { return e.names[name] != nil }

// Names lists the kernels.
func (e *Emulator) Names() (names []string) {
	for name := range e.names {
		names = append(names, name)
	}
	return names
}

// launchBlock is what a launch hands to the library by address.
type launchBlock struct {
	grid, block [3]uint32
	args        [driver.ArgCount + 1]unsafe.Pointer
}

var launchBlocks = sync.Pool{New: func() any { return new(launchBlock) }}

// Launch runs a grid to its end.
func (e *Emulator) Launch(name string, grid, block driver.Dim, sharedBytes uint32, args []unsafe.Pointer, seed uint64) error {
	b := launchBlocks.Get().(*launchBlock) // on the heap, where it stays in place
	defer launchBlocks.Put(b)
	b.grid, b.block = [3]uint32{grid.X, grid.Y, grid.Z}, [3]uint32{block.X, block.Y, block.Z}
	clear(b.args[:])
	copy(b.args[:], args)
	text := e.names[name]
	e.mu.Lock()
	defer e.mu.Unlock()
	r, _, _ := purego.SyscallN(e.launch, uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&b.grid)), uintptr(unsafe.Pointer(&b.block)),
		uintptr(sharedBytes), uintptr(unsafe.Pointer(&b.args)), uintptr(seed))
	if int32(r) != 0 {
		text, _, _ := purego.SyscallN(e.failed)
		return fmt.Errorf("%s: %s", name, textAt(text))
	}
	return nil
}

func pointerAt(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func textAt(address uintptr) string {
	if address == 0 {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(pointerAt(address), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointerAt(address)), n))
}
