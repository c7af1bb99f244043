package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sealc2/sealc2/cuda"
	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kernels"
	"github.com/sealc2/sealc2/cuda/nvml"
	"github.com/sealc2/sealc2/engine/cpu"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// device is the place where a backend's stages run, as the scheduler sees it. A stage takes all of it that it can
// use, so one runs at a time.
type device struct {
	name    string
	backend groth16.Backend
	close   io.Closer   // nil where there is nothing to close
	why     string      // why this device and no other
	level   string      // of the log line that says so
	memory  int         // its number in the budget
	node    int         // that it stands on, -1 where it is none
	api     *driver.API // of a GPU; nil of the CPU
	bus     string      // where NVML finds it; empty of the CPU
	urgent  *device     // a part of the same device for urgent proofs, with streams that go first; nil where none is kept

	sizing sync.Mutex
	bytes  int64 // of its memory that proofs may take, as the budget has it
}

// regainWait is how long a plan waits for a busy device to say what others have given back of its memory.
const regainWait = 100 * time.Millisecond

// regain looks whether others have given memory back, before a plan is made that counts on it.
func (e *Engine) regain(d *device) {
	if b, ok := d.backend.(groth16.Shrinker); ok {
		ctx, cancel := context.WithTimeout(context.Background(), regainWait)
		defer cancel()
		b.Regain(ctx)
	}
	e.resize(d)
}

// resize tells the budget how much of a device's memory proofs may take now.
func (e *Engine) resize(d *device) {
	if _, ok := d.backend.(groth16.Shrinker); !ok {
		return
	}
	d.sizing.Lock()
	defer d.sizing.Unlock()
	if bytes := d.planBytes(); bytes != d.bytes {
		e.budget.Resize(d.memory, bytes-d.bytes)
		d.bytes = bytes
	}
}

// planBytes is what plans are made for now; 0 where nobody takes memory away.
func (d *device) planBytes() int64 {
	if b, ok := d.backend.(groth16.Shrinker); ok {
		return b.MemoryBytes()
	}
	return 0
}

// memoryBytes is what proofs may take, as the budget has it.
func (d *device) memoryBytes() int64 {
	d.sizing.Lock()
	defer d.sizing.Unlock()
	return d.bytes
}

func (d *device) Name() string { return d.name }
func (d *device) Slots() int   { return 1 }

// gpus is where GPUs come from: this machine's driver and the kernels that are built in. Tests have others.
type gpus struct {
	driver  func() (*driver.API, error)
	kernels func() ([][]byte, error)
}

// thisMachine has one driver for the whole process: it cannot be loaded twice.
var thisMachine = gpus{
	driver:  sync.OnceValues(driver.Load),
	kernels: func() ([][]byte, error) { return kernels.Split(kernels.File()) },
}

// choose looks for a device, the kernels first: without them no driver is loaded.
func (g *gpus) choose(index int) (api *driver.API, images [][]byte, choice cuda.Choice) {
	images, err := g.kernels()
	if err == nil {
		api, err = g.driver()
	}
	return api, images, cuda.Choose(api, err, index)
}

// wish is what a Config's Device asks for.
type wish struct {
	cpu, automatic, all bool
	indices             []int // of GPUs; nil: the one with most memory
}

// readWish reads a Device. Errors: NoDevice.
func readWish(text string) (w wish, err error) {
	list, listed := strings.CutPrefix(text, "cuda:")
	switch {
	case text == "cpu":
		w.cpu = true
	case text == "" || text == "auto":
		w.automatic = true
	case text == "cuda":
	case list == "all" && listed:
		w.all = true
	case listed:
		for part := range strings.SplitSeq(list, ",") {
			index, err := strconv.Atoi(part)
			if err != nil || index < 0 || slices.Contains(w.indices, index) {
				return w, badWish(text)
			}
			w.indices = append(w.indices, index)
		}
	default:
		return w, badWish(text)
	}
	return w, nil
}

func badWish(text string) error {
	return status.New(status.NoDevice, "engine.Open", fmt.Sprintf("device %q", text),
		`"cpu", "auto", "cuda", "cuda:" and a number, numbers with commas between them, or "cuda:all"`, "another name")
}

// chooseDevices makes the backends that a Config asks for, at least one. Errors: NoDevice, with each device and why it is not used; the
// backend's, for a GPU that was asked for and does not open.
func chooseDevices(config *Config, limits host.Limits) (devices []*device, err error) {
	const op = "engine.Open"
	w, err := readWish(config.Device)
	if err != nil {
		return nil, err
	}
	onCPU := func(level, why string) []*device {
		backend := cpu.New(limits.Threads)
		return []*device{{name: backend.Name(), backend: backend, why: why, level: level, node: -1}}
	}
	if w.cpu {
		return onCPU("info", "as configured"), nil
	}
	g := config.gpus
	if g == nil {
		g = &thisMachine
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeDevices(devices))
			devices = nil
		}
	}()
	if w.indices == nil && !w.all {
		one, level, err := g.openLargest(config, limits)
		switch {
		case err == nil:
			one.why = "as configured, the GPU with most memory" + one.why
			if w.automatic {
				one.why = strings.TrimPrefix(one.why, "as configured, ")
			}
			return []*device{one}, nil
		case w.automatic:
			return onCPU(level, "no GPU: "+err.Error()), nil
		}
		return nil, status.Wrap(status.NoDevice, op, fmt.Sprintf("device %q", config.Device), err)
	}
	indices := w.indices
	if w.all {
		_, _, choice := g.choose(cuda.Any)
		if choice.Err != nil {
			return nil, status.Wrap(status.NoDevice, op, fmt.Sprintf("device %q", config.Device), choice.Err)
		}
		for i := range choice.Devices {
			if choice.Devices[i].Reason == nil {
				indices = append(indices, i)
			}
		}
	}
	for _, index := range indices {
		api, images, choice := g.choose(index)
		err := choice.Err
		var one *device
		if err == nil {
			one, err = openGPU(config, limits, len(indices), api, images, &choice)
		}
		if err != nil {
			return devices, status.Wrap(status.KindOf(err), op, fmt.Sprintf("device %q", config.Device), err)
		}
		one.why = "as configured" + one.why
		devices = append(devices, one)
	}
	return devices, nil
}

// openLargest opens the GPU with most memory that opens; level is that of the log line about one that should have.
func (g *gpus) openLargest(config *Config, limits host.Limits) (one *device, level string, err error) {
	api, images, choice := g.choose(cuda.Any)
	level = "info"
	for choice.Err == nil {
		one, err := openGPU(config, limits, 1, api, images, &choice)
		if err == nil {
			one.level = level
			return one, level, nil
		}
		level = "warn"
		choice.Next(err)
	}
	return nil, level, choice.Err
}

// leastForJobs is the host memory that jobs keep beside what GPUs may pin.
const leastForJobs = 2 << 30

// pinnedBytes is the host memory that each of several GPUs may pin, for what does not fit it: it is asked for only where a plan wants it, and counts in the
// budget from then on. A quarter stays for witnesses and what is parsed.
func pinnedBytes(config *Config, limits host.Limits, gpus int) int64 {
	bytes := limits.HostBytes
	if queue, err := queueOf(config.QueueBytes, bytes); err == nil { // else nothing opens
		bytes -= queue
	}
	return max(0, bytes-max(bytes/4, leastForJobs)) / int64(gpus)
}

// openGPU opens the device of a choice, one of several GPUs.
func openGPU(config *Config, limits host.Limits, gpus int, api *driver.API, images [][]byte, choice *cuda.Choice) (d *device, err error) {
	info := choice.Devices[choice.Index]
	c := cuda.Config{
		API: api, Images: images, Index: choice.Index, MemoryBytes: config.DeviceBytes, HostBytes: pinnedBytes(config, limits, gpus),
		UrgentBytes: config.UrgentBytes, Threads: limits.Threads, Log: config.Log,
	}
	backend, err := cuda.Open(c)
	if err != nil {
		return nil, err
	}
	d = &device{name: backend.Name(), backend: backend, close: backend, bytes: backend.MemoryBytes(), level: "info", api: api, bus: info.PCIBusID}
	d.node = host.ThisMachine().DeviceNode(info.PCIBusID)
	if bytes := backend.UrgentBytes(); bytes > 0 {
		c.MemoryBytes, c.UrgentBytes, c.HostBytes, c.Urgent = bytes, -1, 0, true
		beside, err := cuda.Open(c)
		if err != nil {
			return nil, errors.Join(err, backend.Close())
		}
		d.urgent = &device{name: beside.Name(), backend: beside, close: beside, bytes: beside.MemoryBytes(), api: api, bus: d.bus, node: d.node}
	}
	if release := driverRelease(); release != "" {
		d.why += ", driver " + release
	}
	if others := choice.Reasons(); others != "" {
		d.why += "; " + others
	}
	d.why += "; " + info.String()
	return d, nil
}

// urgentOf are the parts of devices that are kept for urgent proofs.
func urgentOf(devices []*device) (all []*device) {
	for _, d := range devices {
		if d.urgent != nil {
			all = append(all, d.urgent)
		}
	}
	return all
}

// withUrgent are devices behind those parts of them.
func withUrgent(devices []*device) []*device { return append(urgentOf(devices), devices...) }

// closeDevices gives devices back.
func closeDevices(devices []*device) (err error) {
	for _, d := range withUrgent(devices) {
		if d.close != nil {
			err = errors.Join(err, d.close.Close())
		}
	}
	return err
}

// driverRelease is the driver's release as NVIDIA counts them; empty where nobody says, which does no harm.
func driverRelease() string {
	session, err := nvml.Open()
	if err != nil {
		return ""
	}
	release, err := session.Release()
	if err != nil {
		release = ""
	}
	if session.Close() != nil {
		return ""
	}
	return release
}

// GPUs names the GPUs that an Engine of this process could prove on, in the driver's order. None are no error, nor is a
// driver that cannot say.
func GPUs() (names []string) {
	_, _, choice := thisMachine.choose(cuda.Any)
	for i := range choice.Devices {
		if choice.Devices[i].Reason == nil {
			names = append(names, choice.Devices[i].Name)
		}
	}
	return names
}
