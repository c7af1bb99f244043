package engine

import (
	"context"
	"fmt"

	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// maker is a backend that makes development parameters where it needs them.
type maker interface {
	// SRSNeeds is what MakeSRS takes: points, which stay, as plans share them, and memory to make them in.
	SRSNeeds(ctx context.Context, spec *setup.Spec) (points host.Shared, scratch int64, err error)
	MakeSRS(ctx context.Context, spec *setup.Spec) (groth16.SRS, error)
}

// MakeSRS makes a sector size's development parameters straight in the memory of each of the Engine's GPUs, where they stay until Close: those that
// Setup makes of the same text, without the file, for ProveProgram on this Engine alone. They are insecure by definition, which a
// warning says. Errors: Caller for an unknown size or a closed engine; Unsupported on the CPU; NoMemory, with both numbers; Cancelled; those of the device.
func (e *Engine) MakeSRS(ctx context.Context, shapeName, text string) (srs groth16.SRS, err error) {
	const op = "engine.MakeSRS"
	defer status.Recover(op, &err)
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return nil, err
	}
	return e.makeSRS(ctx, op, porep.Program(shape), shape.OracleName, text)
}

// makeSRS is MakeSRS for a program of a name.
func (e *Engine) makeSRS(ctx context.Context, op string, p *circuit.Program, name, text string) (groth16.SRS, error) {
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, d := range e.devices {
		if _, ok := d.backend.(maker); !ok {
			return nil, status.New(status.Unsupported, op, "device", "a GPU, in whose memory parameters are made", d.name)
		}
	}
	secrets := params.SetupScalars(text, name)
	spec, err := newSpec(p, &secrets)
	if err != nil {
		return nil, err
	}
	e.log("warn", "%s: development parameters made in the memory of %s: proofs under their key prove nothing", name, e.Device())
	var srs groth16.SRS // the first device's; each finds its own points by the same ID
	for _, d := range e.devices {
		made, err := e.makeOn(ctx, d, spec)
		if err != nil {
			return nil, status.Wrap(status.KindOf(err), op, fmt.Sprintf("%s on %s", name, d.name), err)
		}
		if srs == nil {
			srs = made
		}
	}
	return srs, nil
}

// makeOn makes parameters on a device, once the budget has room for them, which they are taken out of.
func (e *Engine) makeOn(ctx context.Context, d *device, spec *setup.Spec) (groth16.SRS, error) {
	m := d.backend.(maker)
	points, scratch, err := m.SRSNeeds(ctx, spec)
	if err != nil {
		return nil, err
	}
	points = d.booked(points, spec.ID())
	needs := host.Needs{DeviceBytes: scratch}
	needs.Memory[d.memory] = scratch
	held := e.budget.Open(host.Priority{})
	defer held.Release()
	if err := held.Grow(ctx, needs, points); err != nil {
		return nil, err
	}
	srs, err := m.MakeSRS(ctx, spec)
	if err == nil {
		e.budget.Keep(points)
	}
	return srs, err
}

// newSpec says which parameters to make of a program.
func newSpec(p *circuit.Program, x *params.Scalars) (*setup.Spec, error) {
	return setup.NewSpec(p, &setup.Secrets{Alpha: x.Alpha, Beta: x.Beta, Gamma: x.Gamma, Delta: x.Delta, Tau: x.Tau})
}
