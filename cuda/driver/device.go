package driver

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sealc2/sealc2/engine/status"
)

// Attribute is a number of cuDeviceGetAttribute.
type Attribute int32

// The attributes that sealc2 asks for. Numbers: cuda.h.
const (
	MultiprocessorCount     Attribute = 16
	ComputeMode             Attribute = 20
	L2Bytes                 Attribute = 38
	CapabilityMajor         Attribute = 75
	CapabilityMinor         Attribute = 76
	SharedPerBlockOptin     Attribute = 97
	VirtualMemoryManagement Attribute = 102
)

// Compute modes of a device, which its administrator sets.
const (
	ModeDefault          = 0
	ModeProhibited       = 2
	ModeExclusiveProcess = 3
)

// Capability is a device's compute capability: 90 for 9.0.
type Capability int

// String is the capability as NVIDIA writes it.
func (c Capability) String() string { return fmt.Sprintf("%d.%d", c/10, c%10) }

// Requirements are what a device and its driver must have.
type Requirements struct {
	Version     int        // of the driver, as 13000
	Release     string     // the driver release that has it, for error text: "580"
	Capability  Capability // at least
	MemoryBytes int64      // at least, of the device
}

// Info describes a device.
type Info struct {
	Index       int
	Name        string
	UUID        [16]byte
	PCIBusID    string // "0000:3b:00.0"
	MemoryBytes int64
	Capability  Capability
	SMCount     int
	SharedBytes int // of a multiprocessor's memory, that a block may have
	L2Bytes     int64
	Mode        int // a compute mode
}

// String names the device as operators know it.
func (i Info) String() string {
	return fmt.Sprintf("%d: %s (%s, compute capability %s, %d SMs, %.1f GiB)", i.Index, i.Name, i.PCIBusID, i.Capability, i.SMCount, float64(i.MemoryBytes)/(1<<30))
}

// Candidate is a device and whether it can be used.
type Candidate struct {
	Info
	Reason error // nil: usable, as far as can be told without opening it
}

// Candidates looks at every device. An error says why there is none to look at (NoDevice): a driver that is too
// old, one that sees no device. What is wrong with one device is its Reason.
func (a *API) Candidates(want Requirements) ([]Candidate, error) {
	const op = "driver.Candidates"
	if a.version < want.Version {
		return nil, status.New(status.NoDevice, op, a.table.Name(),
			fmt.Sprintf("a driver for CUDA %s (release %s or newer)", versionText(want.Version), want.Release), "one for CUDA "+versionText(a.version))
	}
	c := newCell()
	defer c.free()
	if err := a.do(op, a.table.Name(), DeviceGetCount, c.out(0)); err != nil {
		return nil, err
	}
	count := int(int32(c.word[0]))
	if count <= 0 {
		return nil, status.New(status.NoDevice, op, a.table.Name(), "a device", "none")
	}
	all := make([]Candidate, count)
	for i := range all {
		all[i].Info, all[i].Reason = a.info(i)
		if all[i].Reason == nil {
			all[i].Reason = all[i].refusal(want)
		}
	}
	return all, nil
}

// info asks for everything about a device; an error leaves the rest as it was.
func (a *API) info(index int) (i Info, err error) {
	const op = "driver.Candidates"
	where := fmt.Sprintf("device %d", index)
	i = Info{Index: index, Name: "unknown"}
	c := newCell()
	defer c.free()
	if err = a.do(op, where, DeviceGet, c.out(0), uintptr(index)); err != nil {
		return i, err
	}
	device := uintptr(uint32(c.word[0]))
	if err = a.do(op, where, DeviceGetName, c.textOut(), uintptr(len(c.text)), device); err != nil {
		return i, err
	}
	i.Name = c.string()
	*c = cell{}
	if err = a.do(op, where, DeviceGetPCIBusID, c.textOut(), uintptr(len(c.text)), device); err != nil {
		return i, err
	}
	i.PCIBusID = strings.ToLower(c.string())
	*c = cell{}
	if err = a.do(op, where, DeviceGetUUID, c.textOut(), device); err != nil {
		return i, err
	}
	copy(i.UUID[:], c.text[:])
	if err = a.do(op, where, DeviceTotalMem, c.out(0), device); err != nil {
		return i, err
	}
	i.MemoryBytes = int64(c.word[0])
	var major, minor, managed int
	for _, ask := range []struct {
		attribute Attribute
		into      func(int)
	}{
		{CapabilityMajor, func(v int) { major = v }},
		{CapabilityMinor, func(v int) { minor = v }},
		{MultiprocessorCount, func(v int) { i.SMCount = v }},
		{L2Bytes, func(v int) { i.L2Bytes = int64(v) }},
		{SharedPerBlockOptin, func(v int) { i.SharedBytes = v }},
		{ComputeMode, func(v int) { i.Mode = v }},
		{VirtualMemoryManagement, func(v int) { managed = v }},
	} {
		c.word[0] = 0
		if err = a.do(op, where, DeviceGetAttribute, c.out(0), uintptr(ask.attribute), device); err != nil {
			return i, err
		}
		ask.into(int(int32(c.word[0])))
	}
	i.Capability = Capability(10*major + minor)
	if managed == 0 {
		return i, status.New(status.NoDevice, op, i.String(), "virtual memory management", "a device without it")
	}
	return i, nil
}

// refusal says what a device lacks.
func (i Info) refusal(want Requirements) error {
	const op = "driver.Candidates"
	refuse := func(want, got string) error { return status.New(status.NoDevice, op, i.String(), want, got) }
	switch {
	case i.Capability < want.Capability:
		return refuse("compute capability "+want.Capability.String()+" or newer", i.Capability.String())
	case i.Mode == ModeProhibited:
		return refuse("a compute mode that lets programs in", "prohibited, by the administrator")
	case i.MemoryBytes < want.MemoryBytes:
		return refuse(fmt.Sprintf("%d bytes of memory", want.MemoryBytes), fmt.Sprint(i.MemoryBytes))
	}
	return nil
}

// textOut is the address of the cell's text.
func (c *cell) textOut() uintptr { address, _ := c.cText("", ""); return address }

// Device is an opened device: its primary context, which a process shares with other users of CUDA in it. Its
// methods, and those of what it makes, are called between Enter and leave, unless they say otherwise.
type Device struct {
	Info
	api     *API
	handle  uintptr
	context uintptr
	closed  atomic.Bool

	// Limit ends every wait that no context ends sooner. Set before use; Open sets DefaultLimit.
	Limit time.Duration
	// priorities of streams, from least to greatest urgency; a smaller number is more urgent.
	least, greatest int
}

// DefaultLimit is longer than any stage takes on the slowest device that is admitted.
const DefaultLimit = 2 * time.Minute

// Open retains a device's primary context, some 0.12 s. Errors: NoDevice, for a device in exclusive mode that another
// process has; NoMemory; else what the driver said.
func (a *API) Open(index int) (*Device, error) {
	const op = "driver.Open"
	info, err := a.info(index)
	if err != nil {
		return nil, err
	}
	c := newCell()
	defer c.free()
	where := info.String()
	if err := a.do(op, where, DeviceGet, c.out(0), uintptr(index)); err != nil {
		return nil, err
	}
	d := &Device{Info: info, api: a, handle: uintptr(uint32(c.word[0])), Limit: DefaultLimit}
	if err := a.do(op, where, PrimaryCtxRetain, c.out(1), d.handle); err != nil {
		if info.Mode == ModeExclusiveProcess {
			return nil, status.Wrap(status.NoDevice, op, where+": it is in exclusive mode, and another process may have it", err)
		}
		return nil, err
	}
	d.context = uintptr(c.word[1])
	err = d.In(func() error {
		c.word[2], c.word[3] = 0, 0
		if err := a.do(op, where, CtxGetStreamPriorityRange, c.out(2), c.out(3)); err != nil {
			return err
		}
		d.least, d.greatest = int(int32(c.word[2])), int(int32(c.word[3]))
		return nil
	})
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// API is the driver that the device belongs to.
func (d *Device) API() *API { return d.api }

// Enter binds the goroutine to its thread and makes the device's context current there. leave, called once on
// the same goroutine, restores what was current before and unbinds. Calls may nest.
func (d *Device) Enter() (leave func(), err error) {
	const op = "driver.Enter"
	runtime.LockOSThread()
	c := newCell()
	defer c.free()
	if err := d.api.do(op, d.Name, CtxGetCurrent, c.out(0)); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	before := uintptr(c.word[0])
	if before == d.context {
		return runtime.UnlockOSThread, nil
	}
	if err := d.api.do(op, d.Name, CtxSetCurrent, d.context); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		// Fails only where the caller's context is gone, and then there is nothing to restore.
		_ = d.api.call(CtxSetCurrent, before)
		runtime.UnlockOSThread()
	}, nil
}

// In runs f between Enter and leave.
func (d *Device) In(f func() error) error {
	leave, err := d.Enter()
	if err != nil {
		return err
	}
	defer leave()
	return f()
}

// Close gives the primary context up. The last to do so destroys it, and with it all that was made in it. Closing
// twice is legal. Called outside Enter, once nothing of the device is used any more.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.api.mu.Lock()
	for s := range d.api.streams {
		if s.device == d {
			delete(d.api.streams, s)
		}
	}
	d.api.mu.Unlock()
	return d.api.do("driver.Close", d.Name, PrimaryCtxRelease, d.handle)
}

// Attribute asks for one number. Works outside Enter.
func (d *Device) Attribute(attribute Attribute) (int, error) {
	c := newCell()
	defer c.free()
	if err := d.api.do("driver.Attribute", fmt.Sprintf("%s: attribute %d", d.Name, attribute), DeviceGetAttribute, c.out(0), uintptr(attribute), d.handle); err != nil {
		return 0, err
	}
	return int(int32(c.word[0])), nil
}

// Memory is how many bytes of the device are free, and how many there are. Other programs share them.
func (d *Device) Memory() (free, total int64, err error) {
	c := newCell()
	defer c.free()
	if err := d.api.do("driver.Memory", d.Name, MemGetInfo, c.out(0), c.out(1)); err != nil {
		return 0, 0, err
	}
	return int64(c.word[0]), int64(c.word[1]), nil
}
