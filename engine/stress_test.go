package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// summed is a backend on a device whose kernels do nothing, with the sums that its batches would have: all of the way is that of a proof, but for the
// arithmetic.
type summed struct {
	*cuda.Backend
	right map[string]*groth16.Sums // by the ID of the parameters
	begun func(groth16.Plan)       // told before a batch of a program; may be nil
	late  bool                     // points are there before anything is computed, as where that takes longer than copies
}

// giveSums puts circuits' sums around all devices of an engine, which are simulated with kernels that do nothing.
func giveSums(t *testing.T, e *Engine, cases ...*tinyCase) map[string]*groth16.Sums {
	t.Helper()
	right := map[string]*groth16.Sums{}
	for _, c := range cases {
		right[c.srs.ID()] = sumsOf(t, c)
	}
	for _, d := range withUrgent(e.devices) {
		d.backend = &summed{Backend: d.backend.(*cuda.Backend), right: right}
	}
	return right
}

type summedBatch struct {
	groth16.Batch
	right *groth16.Sums
	late  bool
}

func (b summedBatch) Stages() []host.Stage {
	all, loaded := b.Batch.Stages(), make(chan struct{})
	last := slices.IndexFunc(all, func(s host.Stage) bool { return s.Name == "load_b2" })
	if !b.late || last < 0 {
		return all
	}
	done := sync.OnceFunc(func() { close(loaded) })
	for i := range all {
		run := all[i].Run
		switch {
		case strings.HasPrefix(all[i].Name, "load_"):
			all[i].Run = func(ctx context.Context) error {
				err := run(ctx)
				if err != nil || i == last {
					done()
				}
				return err
			}
		case all[i].Name == "evaluate":
			all[i].Run = func(ctx context.Context) error {
				select {
				case <-loaded:
				case <-ctx.Done():
				}
				return run(ctx)
			}
		}
	}
	return all
}

func (s *summed) Begin(p *circuit.Program, plan groth16.Plan, count int, inputs func(int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	if s.begun != nil {
		s.begun(plan)
	}
	b, err := s.Backend.Begin(p, plan, count, inputs, srs, arena)
	return summedBatch{b, s.right[srs.ID()], s.late}, err
}

func (s *summed) BeginAssignment(list []*groth16.Assignment, plan groth16.Plan, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	b, err := s.Backend.BeginAssignment(list, plan, srs, arena)
	return summedBatch{b, s.right[srs.ID()], s.late}, err
}

func (b summedBatch) Sums(k int) (*groth16.Sums, error) {
	if _, err := b.Batch.Sums(k); err != nil {
		return nil, err
	}
	own := *b.right
	return &own, nil
}

// sumsOf are a circuit's, of the CPU.
func sumsOf(t *testing.T, c *tinyCase) *groth16.Sums {
	t.Helper()
	var right groth16.Sums
	e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend {
		return &faulty{Backend: b, sums: func(s *groth16.Sums) { right = *s }}
	})
	if _, err := e.ProveProgram(t.Context(), c.request(1)); err != nil {
		t.Fatal(err)
	}
	return &right
}

// Goal: whatever jobs meet on one device and on two, of several circuits, programs and vectors, of several classes, cancelled anywhere and while
// device memory is given back: each ends, in its proofs or as cancelled; budget and devices are as before, and the next proof is right.
// Method: kernels that do nothing; devices that hold everything of one circuit, of which two do not fit at once, and devices to
// which all points come up in pieces. Seeds are the test's.
func TestProve_Storm(t *testing.T) {
	names := []string{"tiny-16", "tiny-64", "tiny-128"}
	var cases []*tinyCase
	for _, name := range names {
		cases = append(cases, loadTiny(t, name))
	}
	for _, k := range []struct {
		name    string
		devices int
		bytes   int64
		kept    int64
	}{
		{"resident, one device", 1, 48 << 20, 16 << 20}, {"resident, two devices", 2, 48 << 20, 20 << 20},
		{"streaming, one device", 1, 18 << 20, -1}, {"streaming, two devices", 2, 18 << 20, -1},
	} {
		t.Run(k.name, func(t *testing.T) {
			if testing.Short() && (k.devices == 2) == (k.kept > 0) {
				t.Skip("the others meet the same in fewer ways")
			}
			memory := make([]int64, k.devices)
			for i := range memory {
				memory[i] = 8 << 30
			}
			from, double := idleGPUs(t, memory...)
			e := open(t, Config{Device: "cuda:all", gpus: from, DeviceBytes: k.bytes, UrgentBytes: k.kept, HostBytes: 3 << 30, QueueBytes: 1 << 20}, nil)
			idle := double.Live()
			right := giveSums(t, e, cases...)
			var residents []groth16.Resident
			for _, d := range withUrgent(e.devices) {
				residents = append(residents, d.backend.(groth16.Resident))
			}
			var srs []*SRS
			for i, name := range names {
				srs = append(srs, openSRS(t, e, vectors+"tiny/"+name+"/params.bin"))
				right[srs[i].ID()] = right[cases[i].srs.ID()]
			}
			job := func(random *rand.Rand) (want []byte, got *ProveResult, err error) {
				i, partitions := random.IntN(len(cases)), []int{0, 1, 1, 2, 3, 11}[random.IntN(6)]
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if random.IntN(2) == 0 {
					time.AfterFunc(time.Duration(random.IntN(30_000))*time.Microsecond, cancel)
				}
				want = bytes.Repeat(cases[i].proof, partitions)
				if random.IntN(4) == 0 {
					request := assignments(srs[i], cases[i], loadAssignment(t, names[i]), partitions)
					for n, a := range request.Assignments {
						own := *a
						request.Assignments[n] = &own
					}
					request.Evaluated = func() {
						for _, a := range request.Assignments {
							a.A, a.B, a.C = nil, nil, nil // whoever reads on fails
						}
					}
					got, err = e.ProveAssignments(ctx, request)
					return want, got, err
				}
				request := cases[i].request(partitions)
				if random.IntN(3) == 0 {
					var j *Job
					if j, err = submitTiny(ctx, e, request, 1000, SubmitOptions{Class: ClassWinning}); err != nil {
						return want, nil, err
					}
					defer context.AfterFunc(ctx, j.Cancel)()
					got, err = j.Wait(t.Context())
					return want, got, err
				}
				got, err = e.ProveProgram(ctx, request)
				return want, got, err
			}
			var proved, cancelled atomic.Int64
			var wg sync.WaitGroup
			for w := range 6 {
				wg.Go(func() {
					var err error
					defer func() {
						if err != nil {
							t.Error(err)
						}
					}()
					defer status.Recover("test", &err)
					random := rand.New(rand.NewPCG(uint64(w), 7))
					for range 5 {
						want, got, err := job(random)
						switch {
						case status.KindOf(err) == status.Cancelled:
							cancelled.Add(1)
						case err != nil || !bytes.Equal(got.Proof, want):
							t.Errorf("worker %d: %v", w, err)
						default:
							proved.Add(1)
						}
						if random.IntN(4) == 0 {
							if err := residents[random.IntN(len(residents))].Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d jobs proved, %d cancelled", proved.Load(), cancelled.Load())
			for _, r := range residents {
				if err := r.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			// What is pinned on the host stays, and in the budget, until somebody lacks it.
			usage := e.budget.Usage()
			if hold, err := e.budget.Reserve(t.Context(), host.Needs{HostBytes: usage.Ceiling.HostBytes}); err != nil {
				t.Error(err)
			} else {
				hold.Release()
			}
			if used := e.budget.Usage().Used; used != (host.Needs{}) {
				t.Errorf("%+v used at the end", used)
			}
			if live := double.Live(); live != idle {
				t.Errorf("%+v on the devices, %+v before", live, idle)
			}
			for i, c := range cases {
				result, err := e.ProveProgram(t.Context(), c.request(2))
				if err != nil || !slices.Equal(result.Proof, bytes.Repeat(c.proof, 2)) {
					t.Errorf("%s afterwards: %v", names[i], err)
				}
			}
		})
	}
}

// Goal: what is wrong with one partition of a batch is said by the number that it has in the job; nothing of its batch is delivered, all before it is,
// and the next job goes through.
func TestProveProgram_BadInBatch(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	from, _ := idleGPUs(t, 8<<30)
	e := open(t, Config{Device: "cuda", gpus: from, DeviceBytes: 18 << 20}, nil)
	giveSums(t, e, c)
	const bad = 17
	request := c.request(25)
	if plan, err := e.devices[0].backend.Plan(c.program, 25); err != nil || plan.Batch != 2 {
		t.Fatalf("batches of two are wanted here: %+v, %v", plan, err)
	}
	request.Public[bad] = slices.Clone(request.Public[bad])
	request.Public[bad][0].SetUint64(4711)
	var delivered []int
	request.Partition = func(index int, _ [192]byte) { delivered = append(delivered, index) }
	_, err := e.ProveProgram(t.Context(), request)
	if status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "partition 17, stage expand") || strings.Contains(err.Error(), "partition 1,") {
		t.Errorf("%v", err)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; !slices.Equal(delivered, want) {
		t.Errorf("delivered %v, want %v", delivered, want)
	}
	result, err := e.ProveProgram(t.Context(), c.request(25))
	if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 25)) {
		t.Errorf("afterwards: %v", err)
	}
}

// Goal: a partition of a batch whose proof does not verify is proved once more by itself, by a plan for several.
func TestProveProgram_AgainInBatch(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	from, _ := idleGPUs(t, 8<<30)
	e := open(t, Config{Device: "cuda", gpus: from, DeviceBytes: 18 << 20}, nil)
	giveSums(t, e, c)
	wrong := 0
	e.devices[0].backend = &faulty{Backend: e.devices[0].backend, sums: func(s *groth16.Sums) {
		if wrong++; wrong == 3 || wrong == 7 {
			s.L.Double(&s.L)
		}
	}}
	var delivered []int
	request := c.request(10)
	request.Partition = func(index int, _ [192]byte) { delivered = append(delivered, index) }
	result, err := e.ProveProgram(t.Context(), request)
	if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 10)) || !slices.Equal(delivered, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || wrong != 12 {
		t.Errorf("%v: %d sums, delivered %v", err, wrong, delivered)
	}
}

// Goal: Close ends jobs wherever they are on a device, waits for them, and leaves nothing on it.
func TestClose_GPU(t *testing.T) {
	c := loadTiny(t, "tiny-64")
	for round, bytes := range []int64{18 << 20, 48 << 20, 18 << 20, 48 << 20} {
		from, double := idleGPUs(t, 8<<30, 8<<30)
		e := open(t, Config{Device: "cuda:all", gpus: from, DeviceBytes: bytes}, nil)
		giveSums(t, e, c)
		var jobs sync.WaitGroup
		for range 4 {
			jobs.Go(func() {
				var err error
				defer func() {
					if kind := status.KindOf(err); err != nil && kind != status.Cancelled && kind != status.Caller {
						t.Error(err)
					}
				}()
				defer status.Recover("test", &err)
				for err == nil {
					_, err = e.ProveProgram(context.Background(), c.request(11))
				}
			})
		}
		time.Sleep(time.Duration(3+4*round) * time.Millisecond)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		jobs.Wait()
		if live := double.Live(); live != (sim.Live{}) {
			t.Errorf("left behind: %+v", live)
		}
	}
}

// lacking is a device that fails once, in one stage of its next batch; where that is for lack of memory, it has smaller plans.
type lacking struct {
	*summed
	kind   status.Kind
	stage  int  // of the backend's; -1 afterwards
	failed bool // there is such a stage
}

type lackingBatch struct {
	groth16.Batch
	by *lacking
}

func (l *lacking) Shrink(context.Context, error) bool { return true }

func (l *lacking) Begin(p *circuit.Program, plan groth16.Plan, count int, inputs func(int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	b, err := l.summed.Begin(p, plan, count, inputs, srs, arena)
	return lackingBatch{b, l}, err
}

func (b lackingBatch) Stages() []host.Stage {
	all, at := b.Batch.Stages(), b.by.stage
	if b.by.stage = -1; at >= 0 && at < len(all) {
		b.by.failed = true
		all[at].Run = func(context.Context) error { return status.New(b.by.kind, "test", all[at].Name, "some", "none") }
	}
	return all
}

// Goal: whatever stage of a batch lacks memory that other programs have taken, or finds the device lost, its partitions are proved one by one, all of
// them. Method: each stage of a batch of two in turn.
func TestProveProgram_BatchFails(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	from, _ := idleGPUs(t, 8<<30)
	e := open(t, Config{Device: "cuda", gpus: from, DeviceBytes: 18 << 20}, nil)
	giveSums(t, e, c)
	l := &lacking{summed: e.devices[0].backend.(*summed)}
	e.devices[0].backend = l
	for _, l.kind = range []status.Kind{status.NoMemory, status.NoDevice} {
		for stage := 0; ; stage++ {
			l.stage = stage
			l.failed = false
			result, err := e.ProveProgram(t.Context(), c.request(3))
			if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 3)) {
				t.Fatalf("%v, stage %d: %v", l.kind, stage, err)
			}
			if !l.failed { // there is no such stage
				break
			}
		}
	}
}

// Goal: a device that is lost is one attempt, though two stages of a partition run on it then. Method: stages of two lanes that wait for each other.
func TestProveProgram_LostUnderTwoStages(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	from, _ := idleGPUs(t, 8<<30)
	e := open(t, Config{Device: "cuda", gpus: from}, nil)
	giveSums(t, e, c)
	var both sync.WaitGroup
	both.Add(2)
	var failed atomic.Int64
	e.devices[0].backend = &faulty{Backend: e.devices[0].backend, stage: func(_ context.Context, name string) error {
		if name != "load_h" && name != "evaluate" || failed.Load() == 2 {
			return nil
		}
		both.Done()
		both.Wait()
		failed.Add(1)
		return status.New(status.NoDevice, "test", name, "a device", "none")
	}}
	result, err := e.ProveProgram(t.Context(), c.request(1))
	if err != nil || !bytes.Equal(result.Proof, c.proof) || failed.Load() != 2 {
		t.Errorf("%v; %d stages failed", err, failed.Load())
	}
}

// Goal: a device that stays lost ends the job with its error after one more attempt, whichever stage finds it.
func TestProveProgram_StaysLost(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	begun := 0
	e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend {
		return &faulty{Backend: b, begin: func() error { begun++; return nil }, stage: func(_ context.Context, name string) error {
			if name == "msm_a" {
				return status.New(status.NoDevice, "test", name, "a device", "none")
			}
			return nil
		}}
	})
	if _, err := e.ProveProgram(t.Context(), c.request(1)); status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "msm_a") || begun != 2 {
		t.Errorf("%v, begun %d times", err, begun)
	}
}
