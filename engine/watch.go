package engine

import (
	"errors"
	"fmt"

	"github.com/sealc2/sealc2/cuda"
	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/nvml"
	"github.com/sealc2/sealc2/engine/status"
)

// GPU is what a GPU of this machine does at one moment, whoever uses it. What it does not tell is 0.
type GPU struct {
	Name                  string // as the name of an Engine's device begins: "cuda:0"
	UsedBytes, TotalBytes int64  // of its memory
	PowerMilliwatts       uint32
	ClockMHz              uint32 // of the multiprocessors
	Throttle              []string
}

// Watch asks the GPUs of this machine what they do: for measurements and displays, never on the way of a proof. All methods may
// be called from several goroutines at once.
type Watch struct {
	session *nvml.Session
	names   []string
	buses   []string
}

// OpenWatch loads driver and management library, where neither is loaded yet. Errors: NoDevice, where there is no GPU that an Engine
// could use or where nobody tells what it does.
func OpenWatch() (w *Watch, err error) { return thisMachine.watch() }

func (g *gpus) watch() (w *Watch, err error) {
	const op = "engine.OpenWatch"
	defer status.Recover(op, &err)
	_, _, choice := g.choose(cuda.Any)
	if choice.Err != nil {
		return nil, status.Wrap(status.NoDevice, op, "", choice.Err)
	}
	session, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	w = &Watch{session: session}
	for i := range choice.Devices {
		if choice.Devices[i].Reason == nil {
			w.names, w.buses = append(w.names, fmt.Sprintf("cuda:%d", i)), append(w.buses, choice.Devices[i].PCIBusID)
		}
	}
	return w, nil
}

// Read looks at all GPUs, in the driver's order. Errors: NoDevice, beside what the others say.
func (w *Watch) Read() (all []GPU, err error) {
	for i, bus := range w.buses {
		h, failed := w.session.Health(bus)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		all = append(all, GPU{w.names[i], h.TotalBytes - h.FreeBytes, h.TotalBytes, h.PowerMilliwatts, h.ClockMHz, h.Throttle})
	}
	return all, err
}

// Close gives the management library back.
func (w *Watch) Close() error { return w.session.Close() }

// DriverCalls are numbers of calls of the GPUs' driver since the process began.
type DriverCalls struct {
	Total    int64
	Plain    int64 // that disturb no device
	Queue    int64 // that queue work up
	Wait     int64
	Stalling int64 // that stop a device
	Unwarmed int64 // launches of a kernel that was not on the device yet, which stop it too
	Beside   int64 // of both, those while something was queued
}

// Sub is what happened after earlier.
func (c DriverCalls) Sub(earlier DriverCalls) DriverCalls {
	return DriverCalls{
		c.Total - earlier.Total, c.Plain - earlier.Plain, c.Queue - earlier.Queue, c.Wait - earlier.Wait,
		c.Stalling - earlier.Stalling, c.Unwarmed - earlier.Unwarmed, c.Beside - earlier.Beside,
	}
}

// CountDriverCalls tells how many calls this process has made; false where it has no driver.
func CountDriverCalls() (DriverCalls, bool) { return thisMachine.driverCalls() }

func (g *gpus) driverCalls() (DriverCalls, bool) {
	// Without kernels no driver is loaded.
	if _, err := g.kernels(); err != nil {
		return DriverCalls{}, false
	}
	api, err := g.driver()
	if err != nil {
		return DriverCalls{}, false
	}
	c := api.Counts()
	return DriverCalls{
		c.Total, c.Class[driver.Plain], c.Class[driver.Queue], c.Class[driver.Wait], c.Class[driver.Stalling], c.Unwarmed, c.Beside,
	}, true
}
