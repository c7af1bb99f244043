package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kernels"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// onMachine is a source of GPUs over a driver.
func onMachine(api *driver.API, images [][]byte) *gpus {
	return &gpus{
		driver:  func() (*driver.API, error) { return api, nil },
		kernels: func() ([][]byte, error) { return images, nil },
	}
}

// noGPU is a machine without a driver.
var noGPU = &gpus{
	driver: func() (*driver.API, error) {
		return nil, status.New(status.NoDevice, "driver.Load", "", "an NVIDIA driver", "none")
	},
	kernels: func() ([][]byte, error) { return [][]byte{{1}}, nil },
}

// Goal: whoever asks for a GPU that cannot be used is told, for each device, why; who leaves the choice gets the CPU and
// a log line with the same words. Nothing falls back in silence.
func TestOpen_GPUReasons(t *testing.T) {
	machine := func(config sim.Config) *gpus {
		double := sim.New(config)
		t.Cleanup(double.Close)
		api, err := driver.New(double)
		if err != nil {
			t.Fatal(err)
		}
		return onMachine(api, [][]byte{{1}})
	}
	old := sim.GPU{Name: "Old", MemoryBytes: 16 << 30, Capability: 61}
	taken := sim.GPU{Name: "Taken", MemoryBytes: 16 << 30, Capability: 90, Mode: driver.ModeExclusiveProcess, Taken: true}
	for _, c := range []struct {
		name   string
		from   *gpus
		device string // that is asked for
		texts  []string
	}{
		{"no driver", noGPU, "cuda", []string{"an NVIDIA driver"}},
		{"no kernels", &gpus{noGPU.driver, func() ([][]byte, error) { return kernels.Split(nil) }}, "cuda", []string{"no CUDA code"}},
		{"an old driver", machine(sim.Config{Version: 12020, Devices: []sim.GPU{old}}), "cuda", []string{"CUDA 12.4 (release 550 or newer)", "CUDA 12.2"}},
		{"an old card", machine(sim.Config{Version: 13000, Devices: []sim.GPU{old, old}}), "cuda", []string{"0: Old", "1: Old", "compute capability 7.5", "6.1"}},
		{"a taken card", machine(sim.Config{Version: 13000, Devices: []sim.GPU{old, taken}}), "cuda", []string{"Old", "compute capability 7.5", "Taken", "exclusive mode", "CUDA_ERROR_DEVICE_UNAVAILABLE"}},
		{"a missing kernel", machine(sim.Config{Version: 13000, Devices: []sim.GPU{{Name: "New", MemoryBytes: 16 << 30, Capability: 120, SMCount: 1}}}), "cuda:0", []string{"New", "kernel \"", "CUDA_ERROR_NOT_FOUND"}},
		{"a number too large", machine(sim.Config{Version: 13000, Devices: []sim.GPU{old}}), "cuda:3", []string{"device 3"}},
	} {
		_, err := Open(Config{Device: c.device, gpus: c.from})
		if status.KindOf(err) != status.NoDevice && status.KindOf(err) != status.Internal {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var log logBook
		e := open(t, Config{gpus: c.from, Log: log.add}, nil)
		if e.Device() != "cpu" || len(log.lines) != 1 || !log.has("device cpu (no GPU: ") {
			t.Errorf("%s, auto: device %q, log %q", c.name, e.Device(), log.lines)
		}
		for _, text := range append(c.texts, c.device) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in: %v", c.name, text, err)
			}
		}
		if c.device == "cuda" {
			for _, text := range c.texts {
				if !log.has(text) {
					t.Errorf("%s, auto: %q is not in %q", c.name, text, log.lines)
				}
			}
		}
	}
}

// idle are kernels that do nothing.
type idle struct{}

func (idle) Has(string) bool { return true }
func (idle) Launch(string, driver.Dim, driver.Dim, uint32, []unsafe.Pointer, uint64) error {
	return nil
}

// Goal: where the best GPU does not open, the next one is taken, and a warning says why; one asked for by its number is not
// replaced.
func TestOpen_NextGPU(t *testing.T) {
	double := sim.New(sim.Config{Version: 13000, Kernels: idle{}, Devices: []sim.GPU{
		{Name: "Small", MemoryBytes: 8 << 30, Capability: 90, SMCount: 1},
		{Name: "Taken", MemoryBytes: 32 << 30, Capability: 90, SMCount: 1, Mode: driver.ModeExclusiveProcess, Taken: true},
		{Name: "Free", MemoryBytes: 16 << 30, Capability: 90, SMCount: 1},
	}})
	t.Cleanup(double.Close) // behind the engines
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	from := onMachine(api, [][]byte{{1}})
	for _, device := range []string{"auto", "cuda"} {
		var log logBook
		e := open(t, Config{Device: device, gpus: from, Log: log.add}, nil)
		if e.Device() != "cuda:2 Free" || !log.has("warn: device cuda:2 Free (") || !log.has("another process may have it") || !log.has("0: Small") {
			t.Errorf("%s: %q, log %q", device, e.Device(), log.lines)
		}
	}
	if e := open(t, Config{Device: "cuda:0", gpus: from}, nil); e.Device() != "cuda:0 Small" {
		t.Errorf("device 0: %q", e.Device())
	}
	if _, err := Open(Config{Device: "cuda:1", gpus: from}); status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "another process may have it") {
		t.Errorf("device 1: %v", err)
	}
}

// Goal: a proof on a GPU has the reference's bytes, the log says which device and why, and closing leaves nothing.
func TestProveProgram_GPU(t *testing.T) {
	api, images, _ := kerneltest.Machine(t, 3)
	c := loadTiny(t, "tiny-16")
	var log logBook
	e := open(t, Config{Device: "auto", gpus: onMachine(api, images), Log: log.add}, nil)
	if e.Device() == "cpu" || !log.has("info: device "+e.Device()+" (") || !log.has("the GPU with most memory") {
		t.Fatalf("device %q, log %q", e.Device(), log.lines)
	}
	result, err := e.ProveProgram(context.Background(), c.request(1))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(result.Proof, c.proof) || result.Device != e.Device() {
		t.Errorf("%s: want %x\ngot %x", result.Device, c.proof, result.Proof)
	}
	// A row that does not hold is named as on the CPU.
	bad := c.request(1)
	bad.Inputs[0] = c.spoiled()
	_, err = e.ProveProgram(context.Background(), bad)
	onCPU := open(t, Config{Device: "cpu"}, nil)
	_, want := onCPU.ProveProgram(context.Background(), bad)
	if status.KindOf(err) != status.Unsatisfied || err.Error() != want.Error() {
		t.Errorf("want %v\ngot %v", want, err)
	}
}

// Goal: several GPUs share a job's partitions, each proof is the reference's, and the results come in order. With a sum that is wrong
// once, the partition is proved once more.
func TestProveProgram_SeveralGPUs(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	var from *gpus
	if kerneltest.OnCard() {
		api, images, _ := kerneltest.MachineOf(t, 5, 2)
		from = onMachine(api, images)
	} else {
		from, _ = idleGPUs(t, 8<<30, 8<<30)
	}
	const partitions = 3
	want := bytes.Repeat(c.proof, partitions)
	for _, device := range []string{"cuda:all"} {
		var spoil atomic.Bool
		var log logBook
		e := open(t, Config{Device: device, gpus: from, Log: log.add}, nil)
		if !kerneltest.OnCard() {
			giveSums(t, e, c)
		}
		e.devices[0].backend = &faulty{Backend: e.devices[0].backend, sums: func(s *groth16.Sums) {
			if spoil.Swap(false) {
				s.H.Double(&s.H)
			}
		}}
		if kerneltest.OnCard() && len(e.devices) < 2 {
			t.Skip("one card")
		}
		for _, wrong := range []bool{false, true} {
			spoil.Store(wrong)
			var order []int
			request := c.request(partitions)
			request.Partition = func(index int, _ [192]byte) { order = append(order, index) }
			result, err := e.ProveProgram(context.Background(), request)
			if err != nil {
				t.Fatalf("%s: %v", device, err)
			}
			if !bytes.Equal(result.Proof, want) || !slices.Equal(order, []int{0, 1, 2}) {
				t.Errorf("%s: other proofs, or in another order: %v", device, order)
			}
			if wrong != log.has("trying again") {
				t.Errorf("%s: log %q", device, log.lines)
			}
		}
		used := map[string]int{}
		for _, entry := range e.Timeline() {
			if entry.Stage == "msm_h" {
				used[entry.Device]++
			}
		}
		if len(used) != 2 {
			t.Errorf("%s: sums by device: %v", device, used)
		}
	}
}

// Goal: sectors sealed by the reference give its proofs on a card, byte for byte, again and again in the same memory, and quickly
// once the parameters are there.
func TestProve_GPUEqualsReference(t *testing.T) {
	kerneltest.NeedCard(t)
	api, images, _ := kerneltest.Machine(t, 1)
	e := open(t, Config{Device: "cuda", gpus: onMachine(api, images)}, nil)
	for _, c := range []struct{ name, shape string }{
		{"porep-2k-a", "porep-2k"}, {"porep-2k-b", "porep-2k"}, {"porep-16k", "porep-16k"}, {"porep-32k", "porep-32k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := paramDir(t, c.shape)
			s := loadSector(t, c.name)
			request := &ProveRequest{
				C1: s.c1, IDs: s.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, OnChain: true,
				R: support.Scalars(t, s.proof.R), S: support.Scalars(t, s.proof.S),
			}
			if s.facts.Number == 0 {
				request.Statement = s.statement
			}
			for round := range 3 {
				before, begin := api.Counts(), time.Now()
				result, err := e.Prove(context.Background(), request)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				if want := s.proofBytes(t); !bytes.Equal(result.Proof, want) {
					t.Errorf("want %x\ngot %x", want, result.Proof)
				}
				counts := api.Counts().Sub(before)
				if counts.Beside != 0 || counts.Unwarmed != 0 || counts.Class[driver.Stalling] != 0 {
					t.Errorf("round %d: stalling calls: %+v", round, counts)
				}
				t.Logf("round %d: %.3f s, %d driver calls", round, took.Seconds(), counts.Total)
				for _, st := range result.Stages {
					if round == 2 {
						t.Logf("partition %2d %-9s %8.4f s", st.Partition, st.Stage, st.Elapsed.Seconds())
					}
				}
			}
		})
	}
}

// Goal: the process's own driver answers by value, whatever the machine is.
func TestGPUs_ByValue(t *testing.T) {
	names := GPUs()
	_, err := Open(Config{Device: "cuda:4095"})
	if status.KindOf(err) != status.NoDevice {
		t.Errorf("%d GPUs: %v", len(names), err)
	}
	if e := (*status.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "cuda:4095") {
		t.Errorf("%v", err)
	}
}

// Goal: a proof of the highest class has a part of the GPU to itself, beside a job that holds the rest of it; others do not go there.
// TestPlan_Urgent has what does not fit there.
func TestSubmit_Urgent(t *testing.T) {
	api, images, _ := kerneltest.Machine(t, 7)
	c := loadTiny(t, "tiny-16")
	wrap, inside, letGo := held("quotient")
	e := open(t, Config{Device: "cuda", gpus: onMachine(api, images), QueueBytes: 1 << 20, UrgentBytes: 64 << 20}, wrap)
	if e.devices[0].urgent == nil {
		t.Fatal("no part of the device is kept")
	}
	low := mustSubmit(t, e, c.request(1), "low")
	<-inside
	high, err := submitTiny(t.Context(), e, c.request(1), 1000, SubmitOptions{ID: "high", Class: ClassWinning})
	if err != nil {
		t.Fatal(err)
	}
	result, err := waited(t, high)
	if err != nil || !bytes.Equal(result.Proof, c.proof) {
		t.Errorf("urgent: %v", err)
	}
	if low.Progress().State != JobRunning {
		t.Error("the other job did not hold the device meanwhile")
	}
	letGo()
	if result, err := waited(t, low); err != nil || !bytes.Equal(result.Proof, c.proof) {
		t.Errorf("beside it: %v", err)
	}
	for _, entry := range e.Timeline() {
		urgent := strings.HasSuffix(entry.Device, "(urgent)")
		if entry.Stage == "msm_h" && urgent != (entry.Name == "high" || entry.Job == 2) {
			t.Errorf("job %d (%s) ran on %q", entry.Job, entry.Name, entry.Device)
		}
	}
}

// Goal: memory that another program takes after the plans were made costs a proof nothing but time: it begins once more by a smaller plan; where no
// plan is small enough, the error has both numbers and the next proof works once there is memory again.
func TestProveProgram_OthersTakeMemory(t *testing.T) {
	from, double := idleGPUs(t, 8<<30)
	c := loadTiny(t, "tiny-16")
	var log logBook
	e := open(t, Config{Device: "cuda", gpus: from, Log: log.add}, nil)
	giveSums(t, e, c)
	e.devices[0].backend.(*summed).late = true
	right := func(when string, partitions int, again bool) {
		t.Helper()
		log.mu.Lock()
		log.lines = nil
		log.mu.Unlock()
		result, err := e.ProveProgram(context.Background(), c.request(partitions))
		if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, partitions)) {
			t.Fatalf("%s: %v", when, err)
		}
		if again != log.has("trying again with less") {
			t.Errorf("%s: log %q", when, log.lines)
		}
	}
	// All but so much is gone: too little for everything resident, enough for points in pieces.
	const whole, left = 8 << 30, 17 << 20
	double.Hog(0, whole-left)
	right("little memory", 2, true)
	right("little memory, known by now", 1, false)
	double.Hog(0, left-(1<<20))
	if err := e.devices[0].backend.(groth16.Resident).Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ProveProgram(context.Background(), c.request(2)); status.KindOf(err) != status.NoMemory {
		t.Errorf("no memory: %v", err)
	}
	double.Hog(0, -(whole - (1 << 20)))
	right("memory again", 1, false)
	if now := e.budget.Usage().Ceiling; now.DeviceBytes < whole/2 {
		t.Errorf("%d bytes of the device in the budget, once there is memory again", now.DeviceBytes)
	}
}

// Goal: once others have given memory back, jobs that come then have all of it without anything being released, and a job that was admitted with little ends
// with as much. Method: the first job stands still behind its first partition, with batches to come, while the memory comes back and another job runs.
func TestProveProgram_OthersGiveMemoryBack(t *testing.T) {
	from, double := idleGPUs(t, 8<<30)
	c := loadTiny(t, "tiny-16")
	var log logBook
	e := open(t, Config{Device: "cuda", gpus: from, Log: log.add}, nil)
	giveSums(t, e, c)
	var mu sync.Mutex
	var begun []int64 // bytes of each batch's plan, with what it shares
	backend := e.devices[0].backend.(*summed)
	backend.late = true
	backend.begun = func(plan groth16.Plan) {
		mu.Lock()
		defer mu.Unlock()
		bytes := plan.DeviceBytes
		for _, s := range plan.Shared {
			bytes += s.Needs.DeviceBytes
		}
		begun = append(begun, bytes)
	}
	const whole, left = 8 << 30, 17 << 20
	double.Hog(0, whole-left)
	if _, err := e.ProveProgram(t.Context(), c.request(1)); err != nil {
		t.Fatal(err)
	}
	begun = nil
	at, on := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 1)
	const partitions = 12
	go func() {
		var err error
		defer func() { errs <- err }()
		defer status.Recover("test", &err)
		request := c.request(partitions)
		request.Partition = func(k int, _ [192]byte) {
			if k == 0 {
				close(at)
				<-on
			}
		}
		_, err = e.ProveProgram(t.Context(), request)
	}()
	<-at
	mu.Lock()
	first := len(begun)
	mu.Unlock()
	double.Hog(0, left-whole)
	if _, err := e.ProveProgram(t.Context(), c.request(1)); err != nil {
		t.Error(err)
	}
	close(on)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	if !log.has("have given memory back") {
		t.Errorf("log %q", log.lines)
	}
	for i, bytes := range begun {
		if large := bytes > left; large != (i == first) {
			t.Errorf("batch %d, the other job's is %d: a plan for %d bytes", i, first, bytes)
		}
	}
	if len(begun) <= first+1 {
		t.Errorf("%d batches, %d before the memory came back", len(begun), first)
	}
}

// Goal: where other programs have taken a device's memory, jobs are admitted for what is left: the second one waits for the first and does not fail for what both were
// granted; and all is granted again once the memory has come back. Method: two circuits, each of which takes more than half of what is left; the first job stands
// still at its end.
func TestProveProgram_OthersTakeMemoryOfTwo(t *testing.T) {
	from, double := idleGPUs(t, 8<<30)
	first, second := loadTiny(t, "tiny-16"), loadTiny(t, "tiny-64")
	var log logBook
	e := open(t, Config{Device: "cuda", gpus: from, Log: log.add}, nil)
	giveSums(t, e, first, second)
	backend := e.devices[0].backend.(*summed)
	backend.late = true
	before := e.budget.Usage().Ceiling
	const whole, left = 8 << 30, 17 << 20
	double.Hog(0, whole-left)
	if _, err := e.ProveProgram(t.Context(), first.request(1)); err != nil {
		t.Fatal(err)
	}
	if now := e.budget.Usage().Ceiling; now.DeviceBytes > left || now.DeviceBytes != backend.MemoryBytes() || now.Memory[0] != now.DeviceBytes || now.HostBytes != before.HostBytes {
		t.Errorf("%d bytes of the device in the budget, of %d", now.DeviceBytes, backend.MemoryBytes())
	}
	log.mu.Lock()
	log.lines = nil
	log.mu.Unlock()
	at, on := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 2)
	prove := func(c *tinyCase, at, on chan struct{}) {
		var err error
		defer func() { errs <- err }()
		defer status.Recover("test", &err)
		request := c.request(1)
		request.Partition = func(int, [192]byte) {
			close(at)
			<-on
		}
		var result *ProveResult
		if result, err = e.ProveProgram(t.Context(), request); err == nil && !bytes.Equal(result.Proof, c.proof) {
			err = errors.New("another proof")
		}
	}
	go prove(first, at, on)
	<-at
	later := make(chan struct{})
	go prove(second, later, on)
	for end := time.Now().Add(10 * time.Second); e.budget.Usage().Waiting == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the second job does not wait")
			break
		}
	}
	close(on)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if log.has("trying again") {
		t.Errorf("log %q", log.lines)
	}
	double.Hog(0, left-whole)
	if err := e.IdleRelease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := e.budget.Usage(); now.Ceiling != before || now.Used.DeviceBytes != 0 {
		t.Errorf("once there is memory again: %d bytes of %d, %d used", now.Ceiling.DeviceBytes, before.DeviceBytes, now.Used.DeviceBytes)
	}
}
