package engine

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

func TestOpen_Device(t *testing.T) {
	for _, device := range []string{"", "auto", "cpu"} {
		var log logBook
		e := open(t, Config{Device: device, gpus: noGPU, Log: log.add}, nil)
		if e.Device() != "cpu" || len(log.lines) != 1 || !log.has("info: device cpu (") || strings.Contains(log.lines[0], "\n") {
			t.Errorf("%q: device %q, log %q", device, e.Device(), log.lines)
		}
	}
	for _, device := range []string{"cuda", "cuda:0", "cuda:", "cuda:-1", "gpu:0", "CPU"} {
		if _, err := Open(Config{Device: device, gpus: noGPU}); status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), device) {
			t.Errorf("%q: %v", device, err)
		}
	}
	if _, err := Open(Config{Threads: -1}); status.KindOf(err) != status.Caller {
		t.Errorf("negative threads: %v", err)
	}
	e := open(t, Config{Threads: 1, HostBytes: 1 << 20}, nil)
	if l := e.Limits(); l.Threads != 1 || l.HostBytes != 1<<20 {
		t.Errorf("limits %v", l)
	}
}

// TestProveProgram_EqualsReference: the tiny circuits give the reference's proofs, byte for byte.
func TestProveProgram_EqualsReference(t *testing.T) {
	e := open(t, Config{}, nil)
	for _, name := range []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"} {
		c := loadTiny(t, name)
		result, err := e.ProveProgram(context.Background(), c.request(1))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(result.Proof, c.proof) {
			t.Errorf("%s: want %x\ngot %x", name, c.proof, result.Proof)
		}
		request := c.request(1)
		request.R, request.S = make([]fr.Element, 1), make([]fr.Element, 1)
		if result, err = e.ProveProgram(context.Background(), request); err != nil || !bytes.Equal(result.Proof, c.bare) {
			t.Errorf("%s with zeros: %v", name, err)
		}
		request.R, request.S = nil, nil
		first, err := e.ProveProgram(context.Background(), request)
		if err != nil {
			t.Fatalf("%s at random: %v", name, err)
		}
		second, err := e.ProveProgram(context.Background(), request)
		if err != nil || bytes.Equal(first.Proof, second.Proof) {
			t.Errorf("%s at random: two equal proofs (%v)", name, err)
		}
	}
}

func TestProveProgram_Progress(t *testing.T) {
	e := open(t, Config{}, nil)
	c := loadTiny(t, "tiny-64")
	request := c.request(3)
	var told []Progress
	var delivered []int
	request.Progress = func(p Progress) { told = append(told, p) }
	request.Partition = func(k int, proof [192]byte) {
		delivered = append(delivered, k)
		if !bytes.Equal(proof[:], c.proof) {
			t.Errorf("partition %d: another proof", k)
		}
	}
	result, err := e.ProveProgram(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(delivered, []int{0, 1, 2}) || len(result.Proof) != 3*192 || result.Device != "cpu" {
		t.Errorf("delivered %v, %d bytes, device %q", delivered, len(result.Proof), result.Device)
	}
	if len(told) != len(result.Stages) || len(told) == 0 || !slices.Equal(e.LastStages(), result.Stages) || len(e.Timeline()) != len(told) {
		t.Fatalf("told %d stages, result has %d, engine %d, timeline %d", len(told), len(result.Stages), len(e.LastStages()), len(e.Timeline()))
	}
	var names []string
	last := 0.0
	for i, p := range told {
		s := result.Stages[i]
		if p.Partitions != 3 || p.Partition != s.Partition || p.Stage != s.Stage || p.Elapsed != s.Elapsed {
			t.Errorf("told %+v, stage %+v", p, s)
		}
		if p.Done < last || p.Done > 1 {
			t.Errorf("%s of partition %d: done %v after %v", p.Stage, p.Partition, p.Done, last)
		}
		last = p.Done
		if p.Partition <= 0 {
			names = append(names, p.Stage)
		}
	}
	if last != 1 {
		t.Errorf("done %v at the end", last)
	}
	if names[0] != "params" || names[1] != "check" || names[2] != "inputs" || names[len(names)-2] != "assemble" || names[len(names)-1] != "verify" {
		t.Errorf("stages %q", names)
	}
	for name := range stageWork {
		if !slices.Contains(names, name) {
			t.Errorf("stage %q has expected work but does not run: %q", name, names)
		}
	}
}

func TestProveProgram_BadRequests(t *testing.T) {
	e := open(t, Config{}, nil)
	c := loadTiny(t, "tiny-16")
	ctx := context.Background()
	if _, err := e.ProveProgram(ctx, nil); status.KindOf(err) != status.Caller {
		t.Errorf("nil: %v", err)
	}
	request := c.request(1)
	request.S = nil
	if _, err := e.ProveProgram(ctx, request); status.KindOf(err) != status.Caller {
		t.Errorf("r without s: %v", err)
	}
	request = c.request(2)
	request.R = request.R[:1]
	if _, err := e.ProveProgram(ctx, request); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "want a scalar a partition, 2") {
		t.Errorf("one r for two partitions: %v", err)
	}
	request = c.request(1)
	request.SRS = loadTiny(t, "tiny-64").srs
	if _, err := e.ProveProgram(ctx, request); status.KindOf(err) != status.Params {
		t.Errorf("key of another circuit: %v", err)
	}
}

// TestProveProgram_BadInput: a partition that cannot be proved is found before any partition is proved.
func TestProveProgram_BadInput(t *testing.T) {
	e := open(t, Config{}, nil)
	c := loadTiny(t, "tiny-64")
	for _, bad := range []int{0, 2} {
		delivered := 0
		request := c.request(3)
		request.Partition = func(int, [192]byte) { delivered++ }
		request.Inputs[bad] = c.spoiled()
		_, err := e.ProveProgram(context.Background(), request)
		if status.KindOf(err) != status.Unsatisfied || delivered > 0 {
			t.Errorf("partition %d unsatisfied: %d proved, %v", bad, delivered, err)
		}
		for _, part := range []string{"partition " + string(rune('0'+bad)), "row"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %v", part, err)
			}
		}
		request = c.request(3)
		request.Partition = func(int, [192]byte) { delivered++ }
		request.Public[bad] = slices.Clone(c.public)
		request.Public[bad][1].SetUint64(7)
		_, err = e.ProveProgram(context.Background(), request)
		if status.KindOf(err) != status.Input || delivered > 0 || !strings.Contains(err.Error(), "public input 1") {
			t.Errorf("partition %d claims something else: %d proved, %v", bad, delivered, err)
		}
	}
	if result, err := e.ProveProgram(context.Background(), c.request(1)); err != nil || !bytes.Equal(result.Proof, c.proof) {
		t.Errorf("the next proof: %v", err)
	}
}

// TestProveProgram_Retry: a proof that does not verify is made again once; then the fault has a name.
func TestProveProgram_Retry(t *testing.T) {
	spoil := map[string]func(*groth16.Sums){
		"sum":          func(s *groth16.Sums) { s.H.Double(&s.H) },
		"infinity":     func(s *groth16.Sums) { s.B2 = groth16.Sums{}.B2 },
		"public input": nil, // the inputs change between expand and assemble
	}
	for name, fault := range spoil {
		for times := 1; times <= 2; times++ {
			left, begun := times, 0
			var log logBook
			e := open(t, Config{Log: log.add}, func(b groth16.Backend) groth16.Backend {
				f := &faulty{Backend: b, open: &begun}
				f.sums = func(s *groth16.Sums) {
					switch {
					case left == 0:
					case fault == nil:
						f.inputs = func(inputs []fr.Element) { inputs[1].SetUint64(7); f.inputs = nil }
						left--
					default:
						left--
						fault(s)
					}
				}
				return f
			})
			c := loadTiny(t, "tiny-16")
			result, err := e.ProveProgram(context.Background(), c.request(1))
			if times == 1 && (err != nil || !bytes.Equal(result.Proof, c.proof)) {
				t.Errorf("%s once: %v", name, err)
			}
			if times == 2 && (status.KindOf(err) != status.SelfCheck || !strings.Contains(err.Error(), "partition 0")) {
				t.Errorf("%s twice: %v", name, err)
			}
			if !log.has("warn: partition 0") || left != 0 || begun != 0 {
				t.Errorf("%s %d times: log %q, %d faults left, %d partitions open", name, times, log.lines, left, begun)
			}
			if result, err := e.ProveProgram(context.Background(), c.request(1)); err != nil || !bytes.Equal(result.Proof, c.proof) {
				t.Errorf("%s %d times: the next proof: %v", name, times, err)
			}
		}
	}
}

// TestProveProgram_Faults: whatever a backend does, its fault is a value, all is given back, and the next
// proof works.
func TestProveProgram_Faults(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	for _, f := range []struct {
		name string
		make func(*faulty)
		want status.Kind
		text string
	}{
		{"too large", func(f *faulty) { f.plan = func(p *groth16.Plan) { p.HostBytes = 1 << 60 } }, status.NoMemory, "the budget"},
		{"device memory", func(f *faulty) { f.plan = func(p *groth16.Plan) { p.DeviceBytes = 1 } }, status.NoMemory, "device memory"},
		{"plan too small", func(f *faulty) { f.plan = func(p *groth16.Plan) { p.HostBytes = 64 } }, status.NoMemory, "partition 0"},
		{"no start", func(f *faulty) { f.begin = func() error { return status.New(status.NoDevice, "x", "", "", "gone") } }, status.NoDevice, "partition 0: x: gone"},
		{"panic at start", func(f *faulty) { f.begin = func() error { panic("boom") } }, status.Internal, "boom"},
		{"panic in a stage", func(f *faulty) {
			f.stage = func(_ context.Context, name string) error {
				if name == "quotient" {
					panic("boom")
				}
				return nil
			}
		}, status.Internal, "partition 0, stage quotient"},
		{"panic in sums", func(f *faulty) { f.sums = func(*groth16.Sums) { panic("boom") } }, status.Internal, "stage assemble"},
	} {
		begun := 0
		bad := &faulty{open: &begun}
		e := open(t, Config{}, func(b groth16.Backend) groth16.Backend {
			bad.Backend = b
			f.make(bad)
			return bad
		})
		_, err := e.ProveProgram(context.Background(), c.request(1))
		if status.KindOf(err) != f.want || !strings.Contains(err.Error(), f.text) {
			t.Errorf("%s: %v", f.name, err)
		}
		if begun != 0 {
			t.Errorf("%s: %d partitions open", f.name, begun)
		}
		e.devices[0].backend = bad.Backend
		if result, err := e.ProveProgram(context.Background(), c.request(1)); err != nil || !bytes.Equal(result.Proof, c.proof) {
			t.Errorf("%s: the next proof: %v", f.name, err)
		}
	}
}

// TestProveProgram_CancelAtEveryStage: a caller that cancels when told of a stage hears of no later one.
func TestProveProgram_CancelAtEveryStage(t *testing.T) {
	e := open(t, Config{}, nil)
	c := loadTiny(t, "tiny-16")
	result, err := e.ProveProgram(context.Background(), c.request(2))
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop <= len(result.Stages); stop++ {
		ctx, cancel := context.WithCancel(context.Background())
		told := 0
		request := c.request(2)
		request.Progress = func(Progress) {
			if told++; told == stop {
				cancel()
			}
		}
		_, err := e.ProveProgram(ctx, request)
		if status.KindOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) || told != stop {
			t.Errorf("cancelled at stage %d: told of %d, %v", stop, told, err)
		}
		cancel()
	}
	request := c.request(1)
	request.Progress = func(Progress) { panic("boom") }
	if _, err := e.ProveProgram(context.Background(), request); status.KindOf(err) != status.Internal {
		t.Errorf("panic in a callback: %v", err)
	}
	if _, err := e.ProveProgram(context.Background(), c.request(1)); err != nil {
		t.Errorf("the next proof: %v", err)
	}
}

// TestProveProgram_ManyCallers: jobs under a budget that holds one at a time, and no goroutine stays.
func TestProveProgram_ManyCallers(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	probe := open(t, Config{}, nil)
	plan, err := (&proof{Engine: probe, op: "test", work: &work{values: &programValues{program: c.program, memory: circuitMemory(c.program)}, partitions: 1}}).plan()
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Config{HostBytes: plan.Needs.HostBytes * 3 / 2}, nil)
	e.pool() // its threads stay
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			result, err := e.ProveProgram(context.Background(), c.request(2))
			if err != nil || !bytes.Equal(result.Proof[192:], c.proof) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if u := e.budget.Usage(); u.Peak.HostBytes > u.Ceiling.HostBytes || u.Peak.HostBytes < plan.Needs.HostBytes {
		t.Errorf("usage %+v", u)
	}
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })

	small := open(t, Config{HostBytes: plan.Needs.HostBytes - 1}, nil)
	if _, err := small.ProveProgram(context.Background(), c.request(1)); status.KindOf(err) != status.NoMemory {
		t.Errorf("a byte too little: %v", err)
	}
}

func TestClose(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	inside := make(chan struct{})
	e := open(t, Config{}, func(b groth16.Backend) groth16.Backend {
		return &faulty{Backend: b, stage: func(ctx context.Context, name string) error {
			if name == "evaluate" {
				close(inside)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
	})
	failed := make(chan error)
	go func() {
		_, err := e.ProveProgram(context.Background(), c.request(1))
		failed <- err
	}()
	<-inside
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	if err := <-failed; status.KindOf(err) != status.Cancelled {
		t.Errorf("a running proof: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := e.ProveProgram(context.Background(), c.request(1)); status.KindOf(err) != status.Caller {
		t.Errorf("proof after Close: %v", err)
	}
	if _, err := e.Verify(context.Background(), &VerifyRequest{}); status.KindOf(err) != status.Caller {
		t.Errorf("verify after Close: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
