package engine

import (
	"context"
	"fmt"

	"github.com/sealc2/sealc2/cuda"
	"github.com/sealc2/sealc2/cuda/parameters"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// SetupRequest asks for development parameters, which are insecure by definition.
type SetupRequest struct {
	Shape    *porep.Shape
	Text     string // that the secrets are made of
	Dir      string // for the files; must exist
	BaseName string // of both files
	// WithoutDigests leaves out the digests of the .params file and its blocks, which at large sizes take longer than making them on a
	// GPU.
	WithoutDigests bool
	// Progress comes from the goroutine of Setup, as params.SetupOptions says; may be nil.
	Progress func(done float64, what string)
}

// SetupResult is the report of a setup.
type SetupResult struct {
	*params.SetupResult
	Device string `json:"device"` // that made the points
}

// Setup makes development parameters, on the device that the Config asks for: the same bytes on each. Errors: as params.Setup; NoDevice for
// a GPU that was asked for and cannot be used; NoMemory, with both numbers, for a shape that the device's memory does not hold.
func Setup(ctx context.Context, config Config, r *SetupRequest) (*SetupResult, error) {
	return setupProgram(ctx, &config, porep.Program(r.Shape), r.Shape.OracleName, r)
}

// setupProgram is Setup for a program of a name.
func setupProgram(ctx context.Context, config *Config, p *circuit.Program, name string, r *SetupRequest) (result *SetupResult, err error) {
	const op = "engine.Setup"
	defer status.Recover(op, &err)
	d, limits, err := openParameterDevice(ctx, config)
	if err != nil {
		return nil, err
	}
	defer d.close(config)
	options := params.SetupOptions{
		Dir: r.Dir, BaseName: r.BaseName, Shape: name, Threads: limits.Threads, HostBytes: limits.HostBytes, Progress: r.Progress, WithoutDigests: r.WithoutDigests,
	}
	if d.gpu != nil {
		source := &setupSource{device: d.gpu, program: p}
		defer source.close(config)
		options.Source = source
	}
	made, err := params.Setup(ctx, p, params.SetupScalars(r.Text, name), options)
	if err != nil {
		return nil, err
	}
	return &SetupResult{made, d.name}, nil
}

// setupSource makes the points of a program on a GPU.
type setupSource struct {
	device  *parameters.Device
	program *circuit.Program
	setup   *parameters.Setup // from Begin on
}

// Begin implements params.SetupSource.
func (s *setupSource) Begin(ctx context.Context, x *params.Scalars) (vk *groth16.VerifyingKey, counts params.Counts, err error) {
	spec, err := newSpec(s.program, x)
	if err != nil {
		return nil, counts, err
	}
	if s.setup, err = s.device.Begin(ctx, spec); err != nil {
		return nil, counts, err
	}
	counts.IC = spec.Counts().IC
	for b := range groth16.BlockCount {
		counts.Blocks[b] = spec.Len(b)
	}
	return s.setup.Key(), counts, nil
}

// Block implements params.SetupSource.
func (s *setupSource) Block(ctx context.Context, b groth16.Block, put func(piece []byte, done func()) error) error {
	return s.setup.Block(ctx, b, put)
}

func (s *setupSource) close(config *Config) {
	if s.setup != nil {
		config.warn(s.setup.Close())
	}
}

// PointChecker checks the points of parameter files on one device, which is opened when there is something to check. It is used by
// one goroutine at a time.
type PointChecker struct {
	config Config
	device *parameterDevice // nil until then
}

// NewPointChecker makes a checker for the device that the Config asks for.
func NewPointChecker(config Config) *PointChecker { return &PointChecker{config: config} }

// Check is params.Check on the checker's device, with the same findings and errors on each. Besides: NoDevice for a GPU that was asked for
// and cannot be used.
func (c *PointChecker) Check(ctx context.Context, f *params.File, options params.CheckOptions) (*params.CheckReport, error) {
	options.Device = func() (params.PointDevice, error) {
		if c.device == nil {
			d, _, err := openParameterDevice(ctx, &c.config)
			if err != nil {
				return nil, err
			}
			c.device = d
		}
		if c.device.gpu == nil {
			return nil, nil
		}
		return c.device.gpu, nil
	}
	return params.Check(ctx, f, options)
}

// Device names the device that checked; empty where nothing was to be checked.
func (c *PointChecker) Device() string {
	if c.device == nil {
		return ""
	}
	return c.device.name
}

// Close gives the device back.
func (c *PointChecker) Close() {
	if c.device != nil {
		c.device.close(&c.config)
	}
}

// parameterDevice is where parameters are made and checked.
type parameterDevice struct {
	gpu   *parameters.Device // nil: the CPU
	name  string
	turns gpuUse // of a GPU that is shared with other programs
}

// close gives the device back. What fails there takes nothing from what was made or found.
func (d *parameterDevice) close(config *Config) {
	if d.gpu != nil {
		config.warn(d.gpu.Close())
	}
	d.turns.end()
}

// warn logs an error, where there is one.
func (c *Config) warn(err error) {
	if err != nil && c.Log != nil {
		c.Log("warn", oneLine(err.Error()))
	}
}

// openParameterDevice opens the one device that a Config asks for, and logs which and why. Errors: Caller; NoDevice, with each
// device and why it is not used; NoMemory; Cancelled while other programs have their turn (Config.GPULock).
func openParameterDevice(ctx context.Context, config *Config) (*parameterDevice, host.Limits, error) {
	limits, err := host.ThisMachine().Limits(config.Threads, config.HostBytes)
	if err != nil {
		return nil, limits, err
	}
	d, why, level, err := chooseParameterDevice(ctx, config, limits)
	if err != nil {
		return nil, limits, err
	}
	if config.Log != nil {
		config.Log(level, oneLine(fmt.Sprintf("device %s (%s): %s; %s", d.name, why, limits, host.CPU())))
	}
	return d, limits, nil
}

// chooseParameterDevice makes the device. A list of GPUs has no meaning here: one job runs on one.
func chooseParameterDevice(ctx context.Context, config *Config, limits host.Limits) (d *parameterDevice, why, level string, err error) {
	const op = "engine.Open"
	where := fmt.Sprintf("device %q", config.Device)
	w, err := readWish(config.Device)
	switch {
	case err != nil || w.all || len(w.indices) > 1:
		return nil, "", "", status.New(status.NoDevice, op, where, `"cpu", "auto", "cuda", or "cuda:" and one number`, "another name")
	case w.cpu:
		return &parameterDevice{name: "cpu"}, "as configured", "info", nil
	}
	index := cuda.Any
	if len(w.indices) == 1 {
		index = w.indices[0]
	}
	pinned := min(int64(parameters.MaxPinnedBytes), max(parameters.MinPinnedBytes, limits.HostBytes/4))
	g := config.gpus
	if g == nil {
		g = &thisMachine
	}
	level = "info"
	api, images, choice := g.choose(index)
	var turns gpuUse
	defer func() {
		if d != nil && d.gpu != nil {
			d.turns = turns
			return
		}
		turns.end()
	}()
	if config.GPULock != "" && choice.Err == nil { // before the device's memory is looked at
		lock, err := newGPULock(config.GPULock, func() {})
		if err != nil {
			return nil, "", "", err
		}
		if err := turns.begin(ctx, lock, ClassPoRep); err != nil {
			return nil, "", "", err
		}
	}
	for choice.Err == nil {
		if err := host.NewBudget(host.Needs{HostBytes: limits.HostBytes}).Fits(op, host.Needs{HostBytes: pinned}); err != nil {
			return nil, "", "", err
		}
		gpu, err := parameters.Open(parameters.Config{
			API: api, Images: images, Index: choice.Index, MemoryBytes: config.DeviceBytes, PinnedBytes: pinned, Threads: limits.Threads,
		})
		if err == nil {
			why = "as configured"
			if index == cuda.Any {
				why = "the GPU with most memory"
			}
			if others := choice.Reasons(); others != "" {
				why += "; " + others
			}
			return &parameterDevice{gpu: gpu, name: gpu.Name()}, why, level, nil
		}
		if index != cuda.Any {
			return nil, "", "", status.Wrap(status.KindOf(err), op, where, err)
		}
		level = "warn" // a device that should have done it
		choice.Next(err)
	}
	if !w.automatic {
		return nil, "", "", status.Wrap(status.NoDevice, op, where, choice.Err)
	}
	return &parameterDevice{name: "cpu"}, "no GPU: " + choice.Err.Error(), level, nil
}
