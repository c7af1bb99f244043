package cuda

import (
	"fmt"
	"strings"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// Requirements are what the kernels as they are built need: the CUDA version whose drivers read them, and their oldest
// architecture. Less memory than this holds no parameters of any kind.
var Requirements = driver.Requirements{Version: 12040, Release: "550", Capability: 75, MemoryBytes: 2 << 30}

// Any is the index of no device in particular.
const Any = -1

// Choice is the outcome of looking for a device.
type Choice struct {
	Devices []driver.Candidate // all that there are
	Index   int                // of the one to use
	Err     error              // why there is none; Index is then Any
}

// Choose looks for a device: the one of that index, or the usable one with most memory for Any. api is nil where the
// driver did not load, for which loading is the reason.
func Choose(api *driver.API, loading error, index int) (c Choice) {
	const op = "cuda.Choose"
	c.Index = Any
	if api == nil {
		c.Err = loading
		return c
	}
	if c.Devices, c.Err = api.Candidates(Requirements); c.Err != nil {
		return c
	}
	if index != Any {
		if index < 0 || index >= len(c.Devices) {
			c.Err = status.New(status.NoDevice, op, fmt.Sprintf("device %d", index), fmt.Sprintf("one of %d, counted from 0", len(c.Devices)), "none of that number")
		} else if c.Err = c.Devices[index].Reason; c.Err == nil {
			c.Index = index
		}
		return c
	}
	c.pick()
	return c
}

// pick takes the usable device with most memory.
func (c *Choice) pick() {
	c.Index = Any
	for i := range c.Devices {
		if d := &c.Devices[i]; d.Reason == nil && (c.Index == Any || d.MemoryBytes > c.Devices[c.Index].MemoryBytes) {
			c.Index = i
		}
	}
	if c.Index == Any {
		c.Err = status.New(status.NoDevice, "cuda.Choose", "", "a device that can be used", c.Reasons())
	}
}

// Next is the choice after the device chosen has turned out not to open, for that reason.
func (c *Choice) Next(reason error) {
	c.Devices[c.Index].Reason = reason
	c.pick()
}

// Reasons says of every device but the chosen one why it is not used; empty where there is no other.
func (c Choice) Reasons() string {
	var all []string
	for i := range c.Devices {
		switch d := &c.Devices[i]; {
		case i == c.Index:
		case d.Reason != nil:
			all = append(all, d.Reason.Error())
		default:
			all = append(all, fmt.Sprintf("%s: not chosen", d.Info))
		}
	}
	return strings.Join(all, "; ")
}
