package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// work is all that the prover needs to know of a job, whatever its circuit is.
type work struct {
	name       string // of the circuit, for the timeline
	values     values
	srs        groth16.SRS
	key        *groth16.PreparedKey
	keyName    string // where the key comes from, for error text
	partitions int
	// attempts is how often a partition is proved before its failing verification is believed: that all rows
	// held says that a memory or arithmetic fault is to blame, which a second run does not repeat, or parameters
	// of another circuit, which it does.
	attempts int
	// evaluated is called, once a partition, when its rows will not be read again; may be nil.
	evaluated func()
	// public derives a partition's public inputs, without the constant one, from what is claimed.
	public func(partition int) ([]fr.Element, error)
	// finished is called after a partition's proof was delivered; may be nil.
	finished func(partition int)
	// r and s are one a partition, or nil for random ones.
	r, s []fr.Element
}

// values is where the values of a job's partitions come from.
type values interface {
	// plan is what partitions of the job take on a backend.
	plan(backend groth16.Backend, partitions int) (groth16.Plan, error)
	// hostBytes is what stands beside a partition of the backend, and what check takes before the first one.
	hostBytes() (beside, check int64)
	// shared is what all jobs of the kind have together in host memory.
	shared() []host.Shared
	// inputs lays out what the circuit of a partition is fed with, where that is not there yet; it may be called several times.
	inputs(partition int) (*circuit.Inputs, error)
	// begin starts a batch's partitions on its backend.
	begin(b *batch) (groth16.Batch, error)
	// check looks at all partitions before the first is proved.
	check(ctx context.Context, p *proof) error
}

// checkScalars refuses blinding scalars that do not match the partitions.
func checkScalars(op string, partitions int, r, s []fr.Element) error {
	for _, v := range []struct {
		name string
		list []fr.Element
	}{{"r", r}, {"s", s}} {
		if (r != nil || s != nil) && len(v.list) != partitions {
			return status.New(status.Caller, op, v.name, fmt.Sprintf("a scalar a partition, %d", partitions), fmt.Sprint(len(v.list)))
		}
	}
	return nil
}

// proof is a job under way. Its functions are called from one goroutine, that of the scheduler's Run; those of its batches' stages
// from others.
type proof struct {
	*Engine
	op       string
	job      *Job      // that was submitted; nil for a call
	drop     func()    // lets go of what the prepare stages made, to begin again; nil where that is nothing but work
	work     *work     // nil until the last prepare stage has made it
	on       []*device // that the plan is for
	planned  map[*device]planned
	out      []byte
	points   []groth16.Proof
	progress func(Progress)
	deliver  func(index int, proof [groth16.ProofBytes]byte)
	meter    meter
	tallied  tallied

	results  sync.Mutex
	attempts map[int]int           // by partition
	shrinks  map[int]int           // by partition: attempts that lacked memory
	proofs   map[int]groth16.Proof // that were verified and not delivered yet
}

// attempt counts an attempt at a partition that has ended, and says which it was.
func (p *proof) attempt(index int) int {
	return p.count(&p.attempts, index)
}

// shrink counts the times that a partition lacked memory.
func (p *proof) shrink(index int) int {
	return p.count(&p.shrinks, index)
}

// count adds one to a partition's number.
func (p *proof) count(of *map[int]int, index int) int {
	p.results.Lock()
	defer p.results.Unlock()
	if *of == nil {
		*of = map[int]int{}
	}
	(*of)[index]++
	return (*of)[index]
}

// finish keeps a proof until its turn to be delivered has come.
func (p *proof) finish(index int, proof *groth16.Proof) {
	p.results.Lock()
	defer p.results.Unlock()
	if p.proofs == nil {
		p.proofs = map[int]groth16.Proof{}
	}
	p.proofs[index] = *proof
}

// run takes a job through the scheduler: prepare must have set p.work when its last stage ends.
func (p *proof) run(ctx context.Context, name string, prepare []host.Stage) (_ *ProveResult, err error) {
	name = p.enter(name)
	defer func() { p.leave(err) }()
	if p.job != nil {
		first := prepare[0].Run
		prepare[0].Run = func(ctx context.Context) error { p.job.begins(); return first(ctx) }
	}
	var gpus gpuUse
	defer gpus.end()
	if p.gpuLock != nil {
		prepare = append([]host.Stage{{Name: "gpu_lock", Run: func(ctx context.Context) error { return gpus.begin(ctx, p.gpuLock, p.tallied.class) }}}, prepare...)
	}
	err = p.sched.Run(host.WithPool(ctx, p.pool()), &sched.Job{
		Name:     name,
		Op:       p.op,
		Class:    p.tallied.class,
		Deadline: p.tallied.deadline,
		Queued:   p.job.enters,
		Came:     p.tallied.came,
		Prepare:  prepare,
		Drop: func() {
			gpus.end()
			if p.drop != nil {
				p.drop()
			}
		},
		Plan: p.plan,
		Begin: func(share, first, count int) (sched.Batch, error) {
			p.admitted()
			return p.begin(p.on[share], first, count)
		},
		Deliver: func(index int) error {
			p.results.Lock()
			proof := p.proofs[index]
			delete(p.proofs, index)
			p.results.Unlock()
			one := proof.Bytes()
			p.out = append(p.out, one[:]...)
			p.points = append(p.points, proof)
			if p.work.finished != nil {
				p.work.finished(index)
			}
			p.job.delivers()
			if p.deliver != nil {
				p.deliver(index, one)
			}
			return nil
		},
		Observe: p.observe,
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.stages = p.meter.stages
	p.mu.Unlock()
	return &ProveResult{Proof: p.out, Points: p.points, Stages: p.meter.stages, Device: p.Device()}, nil
}

// plan asks each device's backend what partitions take. Beside them stand the circuit's inputs, and before the first
// partition whatever the check takes, which is smaller than any backend's plan but need not be.
// A job of the highest class goes to the memory that is kept for it, where its points stay there: where they would come up from the file each time,
// the rest of the device is quicker, whatever runs there.
func (p *proof) plan() (sched.Plan, error) {
	if urgent := urgentOf(p.devices); p.tallied.class == ClassWinning && len(urgent) > 0 && !slices.ContainsFunc(urgent, func(d *device) bool { return !p.staysOn(d, p.work.values, p.work.partitions) }) {
		if plan, err := p.planOn(urgent); err == nil {
			p.on = urgent
			return plan, nil
		}
	}
	p.on = p.devices
	return p.planOn(p.on)
}

// staysOn says whether all points stay on a device, between proofs of so many partitions.
func (e *Engine) staysOn(d *device, v values, partitions int) bool {
	e.regain(d)
	plan, err := v.plan(d.backend, partitions)
	return err == nil && !plan.Streams
}

// sharedOf is what batches by a plan have together of one set of parameters: jobs of two sets have two of each block of points.
type sharedOf struct {
	plan any
	srs  string
}

// shared is what a plan's batches have together on the device; srs is nil where it is not known yet.
func (d *device) shared(plan *groth16.Plan, srs groth16.SRS) (all []host.Shared) {
	id := ""
	if srs != nil {
		id = srs.ID()
	}
	for _, s := range plan.Shared {
		all = append(all, d.booked(s, id))
	}
	return all
}

// booked is what is shared on the device, for one set of parameters by its ID; empty: of any.
func (d *device) booked(s host.Shared, srs string) host.Shared {
	s.Needs.Memory[d.memory] = s.Needs.DeviceBytes
	if s.Needs.DeviceBytes > 0 && srs != "" {
		s.Key = sharedOf{s.Key, srs}
	}
	return s
}

// planned is what a job was admitted with on a device whose plans were for so many bytes.
type planned struct {
	plan  groth16.Plan
	bytes int64
}

// planOn is plan for some of the devices.
func (p *proof) planOn(devices []*device) (plan sched.Plan, err error) {
	w := p.work
	beside, check := w.values.hostBytes()
	plan.Partitions = w.partitions
	p.planned = map[*device]planned{}
	checks := false
	for _, d := range devices {
		p.regain(d)
		bytes := d.planBytes()
		one, err := w.values.plan(d.backend, w.partitions)
		if err != nil {
			return sched.Plan{}, err
		}
		p.planned[d] = planned{one, bytes}
		ahead := min(p.ahead(d, &one), (w.partitions+one.Batch-1)/max(one.Batch, 1))
		p.log("debug", "%s: %d partitions, batches of %d, %d at once, each %s of host memory and %d threads on %s", w.name, w.partitions,
			one.Batch, ahead, host.FormatBytes(one.HostBytes+beside), one.Threads, d.name)
		plan.Shares = append(plan.Shares, sched.Share{Device: d, Batch: one.Batch, Ahead: ahead})
		needs := host.Needs{HostBytes: one.HostBytes + beside*int64(one.Batch), DeviceBytes: one.DeviceBytes}
		needs.Memory[d.memory] = one.DeviceBytes
		for range max(1, ahead) {
			plan.Needs = plan.Needs.Plus(needs)
		}
		plan.Shared = append(plan.Shared, d.shared(&one, w.srs)...)
		plan.Stage.Threads = max(plan.Stage.Threads, one.Threads, 1)
		checks = checks || one.CheckFirst
	}
	plan.Shared = append(plan.Shared, w.values.shared()...)
	if checks {
		plan.Needs.HostBytes = max(plan.Needs.HostBytes, check+beside)
		plan.First = []host.Stage{{Name: "check", Partition: host.WholeBatch, Lane: host.LaneDevice, Needs: host.Needs{Threads: plan.Stage.Threads},
			Run: func(ctx context.Context) error { p.admitted(); return w.values.check(ctx, p) }}}
	}
	return plan, nil
}

// ahead is how many batches of a job a device has at once: as planned, or as many as it has workers, where their memory fits.
func (p *proof) ahead(d *device, plan *groth16.Plan) int {
	ahead := max(plan.Ahead, 1)
	if p.config.DeviceWorkers <= ahead || plan.DeviceBytes == 0 {
		return ahead
	}
	room := d.memoryBytes()
	for _, s := range plan.Shared {
		room -= s.Needs.DeviceBytes
	}
	return max(ahead, min(p.config.DeviceWorkers, int(room/plan.DeviceBytes)))
}

// programValues are those of partitions of a program. layOut makes what the circuit of a partition is fed
// with; it may be called several times.
type programValues struct {
	program *circuit.Program
	memory  host.Shared // that the program takes
	layOut  func(partition int) (*circuit.Inputs, error)
}

func (v *programValues) plan(backend groth16.Backend, partitions int) (groth16.Plan, error) {
	return backend.Plan(v.program, partitions)
}

func (v *programValues) hostBytes() (beside, check int64) {
	return int64(v.program.FieldCount())*fr.Bytes + int64(v.program.WordCount())*8, witnessBytes(v.program)
}

func (v *programValues) shared() []host.Shared { return []host.Shared{v.memory} }

// heapGrowth is how many times what lives in Go's heap the heap takes: the collector begins anew when it has doubled.
const heapGrowth = 2

// circuitMemory is what a program takes of the budget while jobs use it.
func circuitMemory(p *circuit.Program) host.Shared {
	return host.Shared{Key: p, Needs: host.Needs{HostBytes: heapGrowth * p.Bytes()}}
}

// circuit is what a sector's program takes, which stays for the next job until somebody lacks the memory.
func (e *Engine) circuit(p *circuit.Program) host.Shared {
	s := circuitMemory(p)
	s.Free = func() { e.forgetCircuit(p) }
	return s
}

// forgetCircuit lets go of a recorded program, and gives its memory back to the system.
func (e *Engine) forgetCircuit(p *circuit.Program) {
	porep.Forget(p)
	err := eachResident(withUrgent(e.devices), func(r groth16.Resident) error { return r.Forget(context.WithoutCancel(e.ctx), p) })
	if err != nil {
		e.log("warn", "memory of a circuit is not given back: %v", err)
	}
	debug.FreeOSMemory()
}

func (v *programValues) inputs(partition int) (*circuit.Inputs, error) { return v.layOut(partition) }

func (v *programValues) begin(b *batch) (groth16.Batch, error) {
	return b.device.backend.Begin(v.program, b.plan, len(b.parts), func(k int) (*circuit.Inputs, error) { return b.parts[k].inputs, nil }, b.work.srs, b.arena)
}

// witnessBytes is what newWitness takes from an arena.
func witnessBytes(program *circuit.Program) int64 {
	return host.SliceBytes[fr.Element](program.InputCount()) + host.SliceBytes[uint64](circuit.BitWords(program.AuxCount())) +
		host.SliceBytes[fr.Element](program.NumCount())
}

// newWitness cuts an empty compact witness from an arena.
func newWitness(program *circuit.Program, arena *host.Arena) *circuit.Witness {
	return &circuit.Witness{
		Inputs: host.Alloc[fr.Element](arena, program.InputCount()),
		Bits:   circuit.Bits{Words: host.Alloc[uint64](arena, circuit.BitWords(program.AuxCount())), Len: program.AuxCount()},
		Nums:   host.Alloc[fr.Element](arena, program.NumCount()),
	}
}

// check goes through all partitions before any of them is proved, so that a sector which cannot be proved
// is refused in seconds and not after its good partitions: the public inputs must be those that follow from
// the statement, and every row must hold. The rows of partition 0 are left to its own evaluate stage, which
// comes next.
func (v *programValues) check(ctx context.Context, p *proof) error {
	w := p.work
	arena, err := host.NewArena(witnessBytes(v.program))
	if err != nil {
		return err
	}
	defer arena.Close()
	witness := newWitness(v.program, arena)
	for k := range w.partitions {
		fail := func(err error) error {
			return status.Wrap(status.KindOf(err), checkOp, "", status.Place(err, fmt.Sprintf("partition %d", k)))
		}
		in, err := v.layOut(k)
		if err != nil {
			return fail(err)
		}
		public, err := w.public(k)
		if err != nil {
			return fail(err)
		}
		if err := v.program.Expand(ctx, in, witness, p.limits.Threads); err != nil {
			return fail(err)
		}
		if err := samePublic(checkOp, public, witness.Inputs); err != nil {
			return fail(err)
		}
		if k == 0 {
			continue
		}
		if err := v.program.Check(ctx, witness, p.limits.Threads); err != nil {
			return fail(err)
		}
	}
	return nil
}

// checkOp is the operation that errors of the check name.
const checkOp = "engine.Check"

// samePublic compares derived public inputs with those that the circuit computed (with the leading one).
func samePublic(op string, derived, computed []fr.Element) error {
	if len(computed) != len(derived)+1 {
		return status.New(status.Input, op, "public inputs", fmt.Sprintf("%d, from the statement", len(derived)), fmt.Sprintf("%d in the circuit", len(computed)-1))
	}
	for i := range derived {
		if !derived[i].Equal(&computed[i+1]) {
			return status.New(status.Input, op, fmt.Sprintf("public input %d", i),
				derived[i].String()+", which follows from the statement", computed[i+1].String()+" from the vanilla proof")
		}
	}
	return nil
}
