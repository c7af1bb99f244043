package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Requirements are what a job takes, by the plans of the devices that share it.
type Requirements struct {
	Shape      string // "32GiB"
	Partitions int
	// Host bytes, device bytes and threads that are reserved for the whole job: for all batches that are under way at once, and for
	// what it shares with jobs of the same plan. The C1 output comes on top, by its own size.
	HostBytes, DeviceBytes int64
	Threads                int
	Devices                []DevicePlan
	Ceiling                host.Needs // the engine's budget, into which all this must fit
}

// DevicePlan is a device's part in a job.
type DevicePlan struct {
	Device      string
	Batch       int   // partitions that it proves together
	Ahead       int   // batches that it has under way at once
	HostBytes   int64 // of all those batches
	DeviceBytes int64
	SharedBytes int64 // device memory that all jobs of the plan have together, parameters among it
	Threads     int
}

// Requirements tells what a proof of a sector size, "32GiB", takes on a device of the engine, by its name or the part of it before the
// first space ("cpu", "cuda:0"); empty: on all of them. The first call for a size records its circuit: a second or two for the largest.
//
// Errors: Caller for an unknown size, a device that the engine does not have, or a closed engine; NoMemory, with both numbers, where it
// can never fit: the requirements are there all the same if the device had a plan; Internal.
func (e *Engine) Requirements(shapeName, device string) (r *Requirements, err error) {
	const op = "engine.Requirements"
	defer status.Recover(op, &err)
	_, leave, err := e.begin(context.Background(), op)
	if err != nil {
		return nil, err
	}
	defer leave()
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return nil, err
	}
	devices, err := e.named(op, device)
	if err != nil {
		return nil, err
	}
	defer e.answered(shape, false)
	return e.requirements(op, shape, shape.Partitions, 0, devices, ClassPoRep)
}

// named are the engine's devices of a name; all of them for none.
func (e *Engine) named(op, name string) ([]*device, error) {
	if name == "" {
		return e.devices, nil
	}
	for _, d := range e.devices {
		if d.name == name || len(d.name) > len(name) && d.name[:len(name)+1] == name+" " {
			return []*device{d}, nil
		}
	}
	return nil, status.New(status.Caller, op, "device", "one of "+e.Device(), fmt.Sprintf("%q", name))
}

// answered books the circuit that was recorded for requirements. Where there is no room for it, it is let go of, unless a job that wants it follows: that books it when it is
// admitted, and the next one need not record it again.
func (e *Engine) answered(shape *porep.Shape, wanted bool) {
	program := porep.Program(shape)
	if !e.budget.Offer(e.circuit(program)) && !wanted {
		e.forgetCircuit(program)
	}
}

// requirements asks the devices for their plans, and the budget whether what they take can ever fit beside the bytes of a C1 for a job of a class.
func (e *Engine) requirements(op string, shape *porep.Shape, partitions int, beside int64, devices []*device, class Class) (*Requirements, error) {
	program := porep.Program(shape)
	p := &proof{Engine: e, op: op, work: &work{name: shape.OracleName, values: &programValues{program: program, memory: e.circuit(program)}, partitions: partitions}}
	plan, err := p.planOn(devices)
	if err != nil {
		return nil, err
	}
	needs := plan.Needs.Plus(plan.Stage)
	for _, s := range plan.Shared {
		needs = needs.Plus(s.Needs)
	}
	r := &Requirements{Shape: shape.Name, Partitions: partitions, Ceiling: e.budget.Usage().Ceiling}
	for i, share := range plan.Shares {
		one := p.planned[devices[i]].plan
		part := DevicePlan{Device: devices[i].name, Batch: share.Batch, Ahead: share.Ahead, Threads: one.Threads,
			HostBytes: one.HostBytes * int64(share.Ahead), DeviceBytes: one.DeviceBytes * int64(share.Ahead)}
		for _, s := range one.Shared {
			part.SharedBytes += s.Needs.DeviceBytes
		}
		r.Devices = append(r.Devices, part)
	}
	r.HostBytes, r.DeviceBytes, r.Threads = needs.HostBytes, needs.DeviceBytes, needs.Threads
	return r, e.budget.FitsFor(op, host.Priority{Class: uint8(class)}, needs.Plus(host.Needs{HostBytes: beside}))
}

// Preload loads what proofs of a sector size need before the first of them: circuit, key, and on devices that keep them (see
// groth16.Resident) the points, in the part that is kept for urgent proofs too where all stay there, but for one that takes turns with other programs (Config.GPULock). Errors: as Prove's for parameters and devices; Cancelled.
func (e *Engine) Preload(ctx context.Context, source ParamSource, shapeName string) (err error) {
	const op = "engine.Preload"
	defer status.Recover(op, &err)
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return err
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return err
	}
	defer leave()
	set, done, err := e.useSet(ctx, source, shape)
	if err != nil {
		return err
	}
	defer done()
	program := porep.Program(shape)
	if err := set.file.Fits(program); err != nil {
		return err
	}
	if e.gpuLock != nil { // between proofs the GPUs are others'
		return nil
	}
	// What comes up counts as a proof's would.
	shared := []host.Shared{e.circuit(program)}
	values := &programValues{program: program}
	devices := slices.DeleteFunc(urgentOf(e.devices), func(d *device) bool { return !e.staysOn(d, values, shape.Partitions) })
	devices = append(devices, e.devices...)
	for _, d := range devices {
		e.regain(d)
		plan, err := values.plan(d.backend, shape.Partitions)
		if err != nil {
			return err
		}
		shared = append(shared, d.shared(&plan, set.file)...)
	}
	held := e.budget.Open(host.Priority{})
	defer held.Release()
	if err := held.Grow(ctx, host.Needs{}, shared...); err != nil {
		return err
	}
	return eachResident(devices, func(r groth16.Resident) error { return r.Preload(ctx, program, shape.Partitions, set.file) })
}

// Evict gives back what is kept of a sector size's parameters, here and on devices, and is not in use: the next proof loads it
// again. Errors: as Preload's for finding the files; Cancelled.
func (e *Engine) Evict(ctx context.Context, source ParamSource, shapeName string) (err error) {
	const op = "engine.Evict"
	defer status.Recover(op, &err)
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return err
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return err
	}
	defer leave()
	set, err := findSet(source, shape, true)
	if err != nil {
		return err
	}
	s := e.resident.takeSet(set)
	if s == nil {
		return nil
	}
	defer e.resident.putSet(s)
	e.resident.forgetSet(s)
	return eachResident(withUrgent(e.devices), func(r groth16.Resident) error { return r.Evict(ctx, s.file.ID()) })
}

// IdleRelease gives back all device memory, and all files and keys, that no proof uses, for other programs. The next proofs load them
// again. Errors: Caller for a closed engine, Cancelled, those of the devices.
func (e *Engine) IdleRelease(ctx context.Context) (err error) {
	const op = "engine.IdleRelease"
	defer status.Recover(op, &err)
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return err
	}
	defer leave()
	e.resident.forgetIdle()
	return e.releaseDevices(ctx)
}

// releaseDevices gives back the devices' memory, but for what proofs use.
func (e *Engine) releaseDevices(ctx context.Context) error {
	devices := withUrgent(e.devices)
	err := eachResident(devices, func(r groth16.Resident) error { return r.Release(ctx) })
	for _, d := range devices {
		e.resize(d)
	}
	return err
}

// eachResident does something on every device that keeps parameters; one that fails does not stop the others.
func eachResident(devices []*device, do func(groth16.Resident) error) (err error) {
	for _, d := range devices {
		if r, ok := d.backend.(groth16.Resident); ok {
			err = errors.Join(err, do(r))
		}
	}
	return err
}

// forgetSet lets a set go when its last user does.
func (r *residency) forgetSet(s *residentSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.sets, s); i >= 0 {
		r.forget(i)
	}
}

// forgetIdle lets go of all sets that nobody uses, and of all keys.
func (r *residency) forgetIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.sets) - 1; i >= 0; i-- {
		if r.sets[i].users == 0 {
			r.forget(i)
		}
	}
	r.keys = nil
}
