package engine

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// rereader is a backend whose stage of some name says that it reads rows again; told notes the stages that ended.
type rereader struct {
	groth16.Backend
	name string
	fail func(name string) error // before a stage
	mu   sync.Mutex
	told []string
}

type rereaderBatch struct {
	groth16.Batch
	by *rereader
}

func (r *rereader) BeginAssignment(list []*groth16.Assignment, plan groth16.Plan, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	b, err := r.Backend.BeginAssignment(list, plan, srs, arena)
	return rereaderBatch{b, r}, err
}

// Shrink says that there is always a smaller plan.
func (r *rereader) Shrink(context.Context, error) bool { return true }

func (r *rereader) Regain(context.Context) {}

func (r *rereader) MemoryBytes() int64 { return 0 }

func (b rereaderBatch) Stages() []host.Stage {
	all := b.Batch.Stages()
	for i := range all {
		name, run := all[i].Name, all[i].Run
		all[i].Rereads = name == b.by.name
		all[i].Run = func(ctx context.Context) error {
			if b.by.fail != nil {
				if err := b.by.fail(name); err != nil {
					return err
				}
			}
			err := run(ctx)
			b.by.note(name)
			return err
		}
	}
	return all
}

func (r *rereader) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, name)
}

// Goal: whoever made rows elsewhere hears that they may go once, behind the stage that reads them last, and a partition that lacks memory begins once
// more while they are there, and not any more afterwards.
func TestProveAssignments_Evaluated(t *testing.T) {
	c, a := loadTiny(t, "tiny-16"), loadAssignment(t, "tiny-16")
	for _, k := range []struct {
		name    string
		rereads string
		fails   string // the stage that lacks memory, once
		again   bool
	}{
		{"once", "", "", true},
		{"again", "quotient", "", true},
		{"lacks memory before", "", "evaluate", true},
		{"lacks memory between", "quotient", "quotient", true},
		{"lacks memory afterwards", "", "msm_l", false},
	} {
		var by *rereader
		var once atomic.Bool
		e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend {
			by = &rereader{Backend: b, name: k.rereads, fail: func(name string) error {
				if name == k.fails && once.CompareAndSwap(false, true) {
					return status.New(status.NoMemory, "test", "", "some", "none")
				}
				return nil
			}}
			return by
		})
		const count = 2
		request := assignments(openSRS(t, e, vectors+"tiny/tiny-16/params.bin"), c, a, count)
		request.Evaluated = func() { by.note("told") }
		result, err := e.ProveAssignments(t.Context(), request)
		if !k.again {
			if status.KindOf(err) != status.NoMemory {
				t.Errorf("%s: %v", k.name, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, count)) {
			t.Fatalf("%s: %v", k.name, err)
		}
		reads := 0 // partitions whose rows were read for the last time, when that was told
		for _, name := range by.told {
			if name == "told" {
				break
			}
			if name == "evaluate" && k.rereads == "" || name == k.rereads {
				reads++
			}
		}
		told := len(by.told) - len(slices.DeleteFunc(slices.Clone(by.told), func(name string) bool { return name == "told" }))
		if told != 1 || reads != count {
			t.Errorf("%s: told %d times, of %d partitions: %q", k.name, told, reads, by.told)
		}
	}
}

// shrinking is a device from which others take memory again and again: there is always a smaller plan.
type shrinking struct{ *faulty }

func (shrinking) MemoryBytes() int64 { return 0 }

func (shrinking) Shrink(context.Context, error) bool { return true }

func (shrinking) Regain(context.Context) {}

// Goal: a partition that lacks memory however small its plan becomes ends its job after some attempts, with what it lacked.
func TestProveProgram_ShrinksToNothing(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	begun := 0
	e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend {
		return shrinking{&faulty{Backend: b, begin: func() error { begun++; return nil }, stage: func(_ context.Context, name string) error {
			if name == "msm_a" {
				return status.New(status.NoMemory, "test", name, "some", "none")
			}
			return nil
		}}}
	})
	if _, err := e.ProveProgram(t.Context(), c.request(1)); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "msm_a") || begun != 1+shrinkLimit {
		t.Errorf("%v, begun %d times", err, begun)
	}
}

// losing is a backend that plans for three partitions at once until a job is admitted, and has memory for one from then on.
type losing struct {
	*faulty
	planned bool
}

func (l *losing) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	plan, err := l.faulty.Plan(p, partitions)
	if !l.planned {
		l.planned = true
		plan.Batch, plan.HostBytes = 3, 3*plan.HostBytes
	}
	return plan, err
}

func (l *losing) MemoryBytes() int64 {
	if l.planned {
		return 1 << 20
	}
	return 3 << 20
}

func (l *losing) Shrink(context.Context, error) bool { return false }

func (l *losing) Regain(context.Context) {}

// Goal: partitions that were to be proved together and do not fit a device together any more, since other programs have taken memory, are
// proved one by one.
func TestProveProgram_Scattered(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend { return &losing{faulty: &faulty{Backend: b}} })
	result, err := e.ProveProgram(t.Context(), c.request(4))
	if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 4)) {
		t.Fatal(err)
	}
	together := 0
	for _, entry := range e.Timeline() {
		if entry.Stage == "plan" {
			together++
		}
	}
	if together != 3 {
		t.Errorf("%d partitions were to be proved together", together)
	}
}

// idleGPUs is a machine of GPUs with kernels that do nothing.
func idleGPUs(t *testing.T, memory ...int64) (*gpus, *sim.Driver) {
	t.Helper()
	config := sim.Config{Version: 13000, Kernels: idle{}}
	for range memory {
		config.Devices = append(config.Devices, sim.GPU{Name: "Idle", MemoryBytes: 8 << 30, Capability: 90, SMCount: 1})
	}
	for i, bytes := range memory {
		config.Devices[i].MemoryBytes = bytes
	}
	double := sim.New(config)
	t.Cleanup(double.Close)
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	return onMachine(api, [][]byte{{1}}), double
}

// plannedFor is a job's plan on an engine, and the devices that it is for.
func plannedFor(t *testing.T, e *Engine, c *tinyCase, class Class, srs groth16.SRS, partitions int) (sched.Plan, []*device) {
	t.Helper()
	p := &proof{Engine: e, work: &work{values: &programValues{program: c.program, memory: circuitMemory(c.program)}, srs: srs, partitions: partitions}}
	p.tallied.class = class
	plan, err := p.plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan, p.on
}

// Goal: a job of the highest class goes to the part of a device that is kept for it where all its points stay there, and to the rest where they
// would come from the file each time, or do not fit.
func TestPlan_Urgent(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	from, _ := idleGPUs(t, 8<<30)
	for _, k := range []struct {
		kept   int64
		urgent bool
	}{{64 << 20, true}, {18 << 20, false}, {4 << 20, false}} {
		e := open(t, Config{Device: "cuda", gpus: from, UrgentBytes: k.kept}, nil)
		part := e.devices[0].urgent
		if k.kept == 18<<20 {
			if plan, err := part.backend.Plan(c.program, 1); err != nil || !plan.Streams {
				t.Fatalf("points are to come up in pieces: %+v, %v", plan, err)
			}
		}
		for class, urgent := range map[Class]bool{ClassWinning: k.urgent, ClassPoRep: false} {
			if _, on := plannedFor(t, e, c, class, c.srs, 1); (on[0] == part) != urgent {
				t.Errorf("%d bytes kept, class %v: on %s", k.kept, class, on[0].name)
			}
		}
	}
}

// Goal: what jobs reserve is booked on the devices that have it, once for those of one circuit and one set of parameters, and not where they differ.
func TestPlan_Shares(t *testing.T) {
	small, large := loadTiny(t, "tiny-16"), loadTiny(t, "tiny-128")
	from, _ := idleGPUs(t, 8<<30, 4<<30)
	e := open(t, Config{Device: "cuda:all", gpus: from, UrgentBytes: 64 << 20}, nil)
	ceiling := e.budget.Usage().Ceiling
	var sum int64
	for _, d := range withUrgent(e.devices) {
		if ceiling.Memory[d.memory] != d.bytes {
			t.Errorf("%s: %d bytes in the budget, %d in all", d.name, ceiling.Memory[d.memory], d.bytes)
		}
		sum += d.bytes
	}
	if ceiling.DeviceBytes != sum {
		t.Errorf("%d bytes in the budget, %d in all", ceiling.DeviceBytes, sum)
	}
	plan, _ := plannedFor(t, e, small, ClassPoRep, small.srs, 1)
	onDevices := func(plan sched.Plan) []host.Shared { return plan.Shared[:len(plan.Shared)-1] }
	if last := plan.Shared[len(plan.Shared)-1]; last.Key != small.program || last.Needs != (host.Needs{HostBytes: heapGrowth * small.program.Bytes()}) {
		t.Errorf("the program is shared as %+v", last)
	}
	for i, s := range onDevices(plan) { // points, and the rest
		if d := e.devices[i/2]; s.Needs.Memory[d.memory] != s.Needs.DeviceBytes || s.Needs.DeviceBytes <= 0 {
			t.Errorf("%+v is shared on %s", s, d.name)
		}
	}
	keys := func(c *tinyCase, srs groth16.SRS, partitions int) (all []any) {
		plan, _ := plannedFor(t, e, c, ClassPoRep, srs, partitions)
		for _, s := range onDevices(plan) {
			all = append(all, s.Key)
		}
		return all
	}
	first := keys(small, small.srs, 1)
	if len(first) != 4 || first[0] == first[2] || first[1] == first[3] {
		t.Error("two devices share memory")
	}
	if again := keys(small, small.srs, 7); !slices.Equal(first, again) {
		t.Error("jobs of different lengths do not share what is resident")
	}
	if other := keys(small, large.srs, 1); first[0] == other[0] || first[1] == other[1] {
		t.Error("two sets of parameters are counted once")
	}
}

// Goal: stages of several partitions count for those that have begun, and no partition for more than it is worth.
func TestProgress_Batches(t *testing.T) {
	m := &meter{partitions: 4}
	tell := func(partition int, stage string) float64 {
		return m.done(sched.Entry{Partition: partition, Device: "gpu", Stage: stage})
	}
	tell(0, "inputs")
	tell(1, "inputs")
	before := tell(1, "evaluate")
	after := tell(sched.WholeJob, "msm_l")
	whole := jobWork + 4*(checkWork+partitionWork)
	if got, want := after-before, 2*stageWork["msm_l"]/whole; got < want*0.999 || got > want*1.001 {
		t.Errorf("a stage of two partitions of four moved it by %g, want %g", got, want)
	}
	for k := range 4 {
		after = tell(k, "verify")
	}
	if after < 0.999 || after > 1.001 {
		t.Errorf("%g at the end", after)
	}
}
