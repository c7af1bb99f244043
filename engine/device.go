package engine

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

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
type device struct{ name string }

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

// chosen is the outcome of the choice of a device.
type chosen struct {
	backend     groth16.Backend
	close       io.Closer // nil where there is nothing to close
	deviceBytes int64     // that proofs may take
	why         string    // why this device and no other
	level       string    // of the log line that says so
}

// chooseDevice makes the backend that a Config asks for. Errors: NoDevice, with each device and why it is not used; the
// backend's, for a GPU that was asked for and does not open.
func chooseDevice(config *Config, limits host.Limits) (*chosen, error) {
	const op = "engine.Open"
	onCPU := func(why string) *chosen { return &chosen{backend: cpu.New(limits.Threads), why: why, level: "info"} }
	index, automatic := cuda.Any, false
	switch number, numbered := strings.CutPrefix(config.Device, "cuda:"); {
	case config.Device == "cpu":
		return onCPU("as configured"), nil
	case config.Device == "" || config.Device == "auto":
		automatic = true
	case config.Device == "cuda":
	case numbered:
		var err error
		if index, err = strconv.Atoi(number); err == nil && index >= 0 {
			break
		}
		fallthrough
	default:
		return nil, status.New(status.NoDevice, op, fmt.Sprintf("device %q", config.Device), `"cpu", "auto", "cuda", or "cuda:" and a number`, "another name")
	}
	g := config.gpus
	if g == nil {
		g = &thisMachine
	}
	api, images, choice := g.choose(index)
	var backend *cuda.Backend
	level := "info"
	for choice.Err == nil && backend == nil {
		var err error
		backend, err = cuda.Open(cuda.Config{
			API: api, Images: images, Index: choice.Index, MemoryBytes: config.DeviceBytes, Threads: limits.Threads, Log: config.Log,
		})
		if err == nil {
			break
		}
		if index != cuda.Any {
			return nil, status.Wrap(status.KindOf(err), op, fmt.Sprintf("device %q", config.Device), err)
		}
		backend, level = nil, "warn" // a device that should have done it
		choice.Next(err)
	}
	if choice.Err != nil {
		if automatic {
			c := onCPU("no GPU: " + choice.Err.Error())
			c.level = level
			return c, nil
		}
		return nil, status.Wrap(status.NoDevice, op, fmt.Sprintf("device %q", config.Device), choice.Err)
	}
	why := "as configured"
	switch {
	case automatic:
		why = "the GPU with most memory"
	case index == cuda.Any:
		why = "as configured, the GPU with most memory"
	}
	if release := driverRelease(); release != "" {
		why += ", driver " + release
	}
	if others := choice.Reasons(); others != "" {
		why += "; " + others
	}
	return &chosen{backend, backend, backend.MemoryBytes(), choice.Devices[choice.Index].String() + ", " + why, level}, nil
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
