package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/cuda/driver"
)

// GPU is a device that the driver pretends to have.
type GPU struct {
	Name        string
	MemoryBytes int64
	Capability  driver.Capability
	SMCount     int
	L2Bytes     int64
	Mode        int  // a compute mode
	Unmanaged   bool // no virtual memory management
	Taken       bool // in exclusive mode, and another process has it
	NoImage     bool // kernels have no image for it
}

// Config is a machine.
type Config struct {
	Version int            // of the driver: 13000
	Missing []driver.Entry // functions that it lacks
	Devices []GPU
	Kernels Kernels // nil: none
	Seed    uint64
}

// Small is a machine with one small device of a recent kind and the newest driver.
func Small(kernels Kernels, seed uint64) Config {
	return Config{Version: 13000, Kernels: kernels, Seed: seed, Devices: []GPU{
		{Name: "Simulated GPU", MemoryBytes: 8 << 30, Capability: 90, SMCount: 4, L2Bytes: 4 << 20},
	}}
}

// Driver is the table. It implements driver.Table; all methods may be called by several goroutines at once.
type Driver struct {
	config Config

	mu       sync.Mutex
	random   *rand.Rand
	last     uintptr // handle
	clock    int64   // operations done
	devices  []*device
	current  map[int]uintptr // context by thread
	contexts map[uintptr]*device
	streams  map[uintptr]*stream
	order    []*stream // in the order of their making, so that a seed decides everything
	events   map[uintptr]*event
	objects  map[uintptr]*object
	memory   map[uintptr]int64  // created, by handle: bytes
	ranges   map[uintptr]*space // reserved, by first address
	pinned   map[uintptr]int64  // registered host memory
	texts    map[string][]byte
	ran      map[string]int64
}

type device struct {
	GPU
	index   int
	context uintptr
	users   int
	used    int64
	hogged  int64
	lost    driver.Result
	broken  driver.Result // no new context either
	hangs   bool
}

// object is a library, kernel or function.
type object struct {
	device *device
	name   string // empty for libraries
	shared uint32 // dynamic, allowed
}

// space is a reserved range of addresses.
type space struct {
	block  []byte // with a guard page before and behind
	size   int64
	handle uintptr
	device *device
	mapped bool
	usable bool
}

// Live is what has been made and not given back.
type Live struct {
	Contexts, Streams, Events, Libraries int
	Created, Mapped, Reserved            int64 // device memory, bytes
	Pinned                               int64 // host memory, bytes
}

// New makes a driver. Close gives its memory back.
func New(config Config) *Driver {
	d := &Driver{
		config: config, random: rand.New(rand.NewPCG(config.Seed, 0)), last: 0x1000,
		current: map[int]uintptr{}, contexts: map[uintptr]*device{}, streams: map[uintptr]*stream{}, events: map[uintptr]*event{},
		objects: map[uintptr]*object{}, memory: map[uintptr]int64{}, ranges: map[uintptr]*space{}, pinned: map[uintptr]int64{},
		texts: map[string][]byte{}, ran: map[string]int64{},
	}
	for i, g := range config.Devices {
		d.devices = append(d.devices, &device{GPU: g, index: i})
	}
	return d
}

// Close gives all memory back; no call may follow.
func (d *Driver) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for base, s := range d.ranges {
		_ = unix.Munmap(s.block)
		delete(d.ranges, base)
	}
}

// Name says what it is.
func (d *Driver) Name() string { return "simulated driver" }

// Has says whether the machine's driver has the entry.
func (d *Driver) Has(e driver.Entry) bool { return !slices.Contains(d.config.Missing, e) }

// Live counts what has not been given back.
func (d *Driver) Live() (l Live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.Contexts, l.Streams, l.Events = len(d.contexts), len(d.streams), len(d.events)
	for _, o := range d.objects {
		if o.name == "" {
			l.Libraries++
		}
	}
	for _, bytes := range d.memory {
		l.Created += bytes
	}
	for _, s := range d.ranges {
		l.Reserved += s.size
		if s.mapped {
			l.Mapped += s.size
		}
	}
	for _, bytes := range d.pinned {
		l.Pinned += bytes
	}
	return l
}

// Lose makes a device's context answer nothing but result from now on.
func (d *Driver) Lose(index int, result driver.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices[index].lost = result
}

// Hang makes what is queued on a device never run.
func (d *Driver) Hang(index int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices[index].hangs = true
}

// Hog takes memory of a device away, as another program would; negative gives it back.
func (d *Driver) Hog(index int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices[index].hogged += bytes
}

// Launches is how many grids of each kernel have run.
func (d *Driver) Launches() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]int64{}
	for name, n := range d.ran {
		all[name] = n
	}
	return all
}

func (d *Driver) handle() uintptr {
	d.last += 0x10
	return d.last
}

// text is a NUL-terminated copy that stays in place.
func (d *Driver) text(s string) []byte {
	if d.texts[s] == nil {
		d.texts[s] = append([]byte(s), 0)
	}
	return d.texts[s]
}

var names = map[driver.Result][2]string{
	driver.Success:             {"CUDA_SUCCESS", "no error"},
	driver.InvalidValue:        {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	driver.OutOfMemory:         {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	driver.NotInitialized:      {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	driver.DeviceUnavailable:   {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	driver.NoDevice:            {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	driver.InvalidDevice:       {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	driver.InvalidContext:      {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	driver.MapFailed:           {"CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
	driver.NoBinaryForGPU:      {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	driver.ECCUncorrectable:    {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	driver.NVLinkUncorrectable: {"CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"},
	driver.NotFound:            {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	driver.NotReady:            {"CUDA_ERROR_NOT_READY", "device not ready"},
	driver.IllegalAddress:      {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	driver.LaunchTimeout:       {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	driver.LaunchFailed:        {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	driver.Unknown:             {"CUDA_ERROR_UNKNOWN", "unknown error"},
}

// fault is a failure on the device, kept for tests to read. It ends the context, and as with the real driver (seen with 580 after an
// illegal instruction) the process gets no other.
func (d *Driver) fault(dev *device, result driver.Result, format string, args ...any) driver.Result {
	dev.lost, dev.broken = result, result
	d.texts["fault"] = append([]byte(fmt.Sprintf(format, args...)), 0)
	return result
}

// Fault is what the last failed operation did wrong, which a real driver does not tell.
func (d *Driver) Fault() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.texts["fault"]; t != nil {
		return string(t[:len(t)-1])
	}
	return ""
}
