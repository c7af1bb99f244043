package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// idle are kernels that do nothing: a proof takes the same way, quickly, and comes to nothing.
type idle struct{}

func (idle) Has(string) bool { return true }
func (idle) Launch(string, driver.Dim, driver.Dim, uint32, []unsafe.Pointer, uint64) error {
	return nil
}

// faultCase is a machine on which calls fail, and what a proof on it gives.
type faultCase struct {
	api    *driver.API
	images [][]byte
	double *sim.Driver // nil on a card
	v      *tiny
	want   string // empty: anything
}

func (c *faultCase) open() (*Backend, error) {
	return Open(Config{API: c.api, Images: c.images, Threads: 2, MemoryBytes: 1 << 30, PinnedBytes: minPinnedBytes})
}

// right proves on a backend and compares.
func (c *faultCase) right(t *testing.T, b *Backend, after string) {
	t.Helper()
	got, err := prove(t.Context(), b, c.v, false)
	if err != nil || c.want != "" && got != c.want {
		t.Fatalf("after %s: %v, proof right: %v", after, err, got == c.want)
	}
}

// failing does work whose n-th driver call fails, and says whether there were so many calls. The error has the driver's
// name and text.
func (c *faultCase) failing(t *testing.T, n int64, result driver.Result, work func() error) (err error, more bool) {
	t.Helper()
	before := c.api.Counts().Total
	c.api.FailCall(n, result)
	err = work()
	c.api.FailCall(0, 0)
	if c.api.Counts().Total-before < n {
		if err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		return nil, false
	}
	var f *driver.Failure
	switch {
	case err == nil:
	case errors.As(err, &f):
		if f.Name == "" || f.Text == "" || f.Result != result {
			t.Errorf("call %d: %v", n, err)
		}
	default:
		t.Errorf("call %d: %v", n, err)
	}
	return err, true
}

// proofs fails calls first, first+step, ... of a proof on an open device, at most limit of them: each an error by value, and the
// next proof on the same Backend is right.
func (c *faultCase) proofs(t *testing.T, results []driver.Result, first, step int64, limit int) (count int) {
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n := first; count < limit; n += step {
		result := results[count%len(results)]
		err, more := c.failing(t, n, result, func() error {
			// Parameters and tables are loaded anew, so that those calls fail too.
			if err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
				for {
					if freed, err := s.memory.makeRoom(); err != nil || !freed {
						return err
					}
				}
			}); err != nil {
				return err
			}
			_, err := prove(t.Context(), b, c.v, false)
			return err
		})
		if !more {
			return count
		}
		count++
		after := "no error"
		if err != nil {
			after = err.Error()
		}
		c.right(t, b, after)
		settled(t, b)
	}
	return count
}

// settled wants nothing of a proof to be left on an idle device: no block in use, nothing pinned.
func settled(t *testing.T, b *Backend) {
	t.Helper()
	err := b.owner.do(t.Context(), computing, "test", func(_ context.Context, s *session) error {
		for _, r := range s.memory.kept.all {
			if r.users != 0 {
				t.Errorf("%v has %d pins", r.key, r.users)
			}
		}
		if len(s.memory.held) != 0 {
			t.Errorf("%d blocks in use", len(s.memory.held))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// opens fails calls of opening and closing a device.
func (c *faultCase) opens(t *testing.T, first, step int64, limit int) (count int) {
	for n := first; count < limit; n += step {
		err, more := c.failing(t, n, driver.OutOfMemory, func() error {
			b, err := c.open()
			if err != nil {
				return err
			}
			return b.Close()
		})
		if !more {
			return count
		}
		count++
		if c.double == nil {
			continue
		}
		var f *driver.Failure
		if live := c.double.Live(); live != (sim.Live{}) && (!errors.As(err, &f) || !givesBack[f.Entry]) {
			t.Fatalf("opening, call %d (%v): left behind %+v", n, err, live)
		} else if live != (sim.Live{}) {
			// What the failed call itself was to give back: begin on a clean machine.
			c.renew(t)
		}
	}
	return count
}

// givesBack are the calls that leave something behind where they fail.
var givesBack = map[driver.Entry]bool{
	driver.LibraryUnload: true, driver.MemUnmap: true, driver.MemRelease: true, driver.MemAddressFree: true, driver.MemHostUnregister: true,
	driver.StreamDestroy: true, driver.EventDestroy: true, driver.PrimaryCtxRelease: true,
}

func (c *faultCase) renew(t *testing.T) {
	c.double = sim.New(sim.Small(idle{}, 1))
	t.Cleanup(c.double.Close)
	var err error
	if c.api, err = driver.New(c.double); err != nil {
		t.Fatal(err)
	}
}

// lostAndNot are results after which a context is dead, and after which it is not.
var lostAndNot = []driver.Result{driver.OutOfMemory, driver.InvalidValue, driver.LaunchFailed}

// Goal: whatever driver call fails, in opening a device, loading, proving or closing, the proof ends in an error by value, nothing is
// left, and the next one goes through. Method: fail each call in turn, with kernels that do nothing.
func TestFaults_EveryCall(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	if n := c.opens(t, 1, 1, 1<<20); n < 100 {
		t.Errorf("only %d calls to open and close", n)
	}
	c.renew(t)
	if n := c.proofs(t, lostAndNot, 1, 1, 1<<20); n < 200 {
		t.Errorf("only %d calls to prove", n)
	}
	if live := c.double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}

// Goal: the same where several goroutines copy at once: a context that dies under one takes nothing from under the others. Method: some
// calls of a circuit whose parameters go up in many pieces, most of them fatal to the context.
func TestFaults_Copies(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-1024", true)}
	c.renew(t)
	if n := c.proofs(t, []driver.Result{driver.LaunchFailed, driver.LaunchFailed, driver.InvalidValue}, 3, 11, 1<<20); n < 50 {
		t.Errorf("only %d calls to prove", n)
	}
	if live := c.double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}

// Goal: the next proof after a fault is right, byte for byte, and nothing is left. Method: fail some calls; on a card all, of a larger
// circuit, with the real kernels, of which SEALC2_TEST_PART="2/4" takes the second of four parts: a context that dies takes a
// third of a second to replace, so there one fault of eight is of that kind, and processes work side by side.
func TestFaults_NextProofRight(t *testing.T) {
	name, results, first, step, limit, opens := "tiny-16", lostAndNot, int64(150), int64(340), 2, 0
	if kerneltest.Large() {
		name, first, step, limit, opens = "tiny-1024", 1, 1, 1<<20, 20
		results = []driver.Result{driver.OutOfMemory, driver.InvalidValue, driver.OutOfMemory, driver.LaunchFailed,
			driver.InvalidValue, driver.OutOfMemory, driver.InvalidValue, driver.OutOfMemory}
		if part := os.Getenv("SEALC2_TEST_PART"); part != "" {
			if _, err := fmt.Sscanf(part, "%d/%d", &first, &step); err != nil || first < 1 || first > step {
				t.Fatalf("SEALC2_TEST_PART: want \"1/4\", got %q", part)
			}
		}
	}
	c := &faultCase{v: loadTiny(t, name, true)}
	c.want = c.v.proof
	c.api, c.images, c.double = kerneltest.Machine(t, 1)
	t.Logf("%d calls of a proof, %d of opening", c.proofs(t, results, first, step, limit), c.opens(t, first, 7*step, opens))
}

// Goal: a device whose context dies again and again is given up, and each later call says so at once.
func TestLost_Twice(t *testing.T) {
	double := sim.New(sim.Small(idle{}, 1))
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	c := &faultCase{api: api, images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", false)}
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	for range lossLimit {
		c.right(t, b, "a loss")
		b.owner.losses.Store(0)
	}
	for i := range lossLimit {
		double.Lose(0, driver.ECCUncorrectable)
		_, err = prove(t.Context(), b, c.v, false)
		if status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "CUDA_ERROR_ECC_UNCORRECTABLE") {
			t.Fatalf("loss %d: %v", i, err)
		}
	}
	before := api.Counts().Total
	_, err = prove(t.Context(), b, c.v, false)
	if status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "cuda:0 is lost to this process") || api.Counts().Total != before {
		t.Errorf("after the last loss: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if live := double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}

// broken are kernels that do nothing, but for one that fails.
type broken struct{ idle }

func (broken) Launch(name string, _, _ driver.Dim, _ uint32, _ []unsafe.Pointer, _ uint64) error {
	if name == "rows_tail" {
		return errors.New("as if it had left its memory")
	}
	return nil
}

// Goal: a kernel that fails ends its proof by value, and the device is given up where the driver gives no new context.
func TestLost_Kernel(t *testing.T) {
	double := sim.New(sim.Small(broken{}, 1))
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	c := &faultCase{api: api, images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	_, err = prove(t.Context(), b, c.v, false)
	if status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "cuEventQuery: CUDA_ERROR_LAUNCH_FAILED") {
		t.Errorf("%v", err)
	}
	_, err = prove(t.Context(), b, c.v, false)
	if status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "cuda:0 is lost to this process") || !strings.Contains(err.Error(), "cuDevicePrimaryCtxRetain") {
		t.Errorf("afterwards: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if live := double.Live(); live != (sim.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}

// Goal: a proof ends soon after its context, with the memory given back, and the next one goes through.
func TestCancel(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	plan, err := b.Plan(c.v.program, 1)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	for last := 0; ; last++ {
		p, err := b.Begin(c.v.program, plan, 1, c.v.fixed, c.v.srs, arena)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stages := p.Stages()
		if last == len(stages) {
			cancel(nil)
			p.Close()
			break
		}
		for i, stage := range stages {
			if i == last {
				cancel(errors.New("enough"))
			}
			if err = stage.Run(ctx); err != nil {
				break
			}
		}
		if status.KindOf(err) != status.Cancelled {
			t.Errorf("cancelled before %s: %v", stages[last].Name, err)
		}
		cancel(nil)
		p.Close()
		if arena.Used() != 0 {
			t.Errorf("stage %d: %d bytes of the arena in use", last, arena.Used())
		}
		c.right(t, b, "a cancelled proof")
	}
	settled(t, b)
}

// Goal: a device that hangs costs a wait of known length, and is given up without another call that could hang.
func TestTimeout(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	b, err := Open(Config{API: c.api, Images: c.images, Threads: 1, WaitLimit: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.right(t, b, "nothing")
	c.double.Hang(0)
	_, err = prove(t.Context(), b, c.v, false)
	if status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "an end within 20ms") {
		t.Errorf("%v", err)
	}
	// That a thread has another context than the device's asks no device.
	calls := func() int64 { n := c.api.Counts(); return n.Total - n.Entry[driver.CtxSetCurrent] }
	before := calls()
	if _, err = prove(t.Context(), b, c.v, false); status.KindOf(err) != status.NoDevice || !strings.Contains(err.Error(), "is lost") {
		t.Errorf("afterwards: %v", err)
	}
	if err := b.Close(); err != nil || calls() != before {
		t.Errorf("closing: %v, %d calls", err, calls()-before)
	}
}

// Goal: what does not fit is refused with both numbers, and what does not fit at once goes by turns.
func TestPlan_Memory(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	for _, m := range []struct {
		bytes int64
		fits  bool
	}{{6 << 20, false}, {24 << 20, true}, {1 << 30, true}} {
		b, err := Open(Config{API: c.api, Images: c.images, Threads: 1, MemoryBytes: m.bytes})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := b.Plan(c.v.program, 1)
		switch {
		case m.fits && (err != nil || plan.DeviceBytes > m.bytes || plan.DeviceBytes <= 0):
			t.Errorf("%d: %+v, %v", m.bytes, plan, err)
		case m.fits:
			for range 2 {
				c.right(t, b, "a plan that fits")
			}
		case status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "6291456 bytes"):
			t.Errorf("%d: %v", m.bytes, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	// Another program takes what the limit allows.
	b, err := Open(Config{API: c.api, Images: c.images, Threads: 1, MemoryBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c.double.Hog(0, 8<<30)
	if _, err := prove(t.Context(), b, c.v, false); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("no memory left: %v", err)
	}
	c.double.Hog(0, -8<<30)
	c.right(t, b, "a lack of memory")
}

// Goal: parameters of another circuit are refused before anything runs.
func TestBegin_Refuses(t *testing.T) {
	c := &faultCase{images: [][]byte{{1}}, v: loadTiny(t, "tiny-16", true)}
	c.renew(t)
	b, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	other := loadTiny(t, "tiny-64", true)
	arena, err := host.NewArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	small, err := host.NewArena(64)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	plan, err := b.Plan(c.v.program, 1)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := b.PlanAssignment(c.v.assignment, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name  string
		begin func() (groth16.Batch, error)
		kind  status.Kind
	}{
		{"other parameters", func() (groth16.Batch, error) { return b.Begin(c.v.program, plan, 1, c.v.fixed, other.srs, arena) }, status.Params},
		{"other parameters for vectors", func() (groth16.Batch, error) {
			return b.BeginAssignment([]*groth16.Assignment{c.v.assignment}, vectors, other.srs, arena)
		}, status.Params},
		{"a small arena", func() (groth16.Batch, error) { return b.Begin(c.v.program, plan, 1, c.v.fixed, c.v.srs, small) }, status.NoMemory},
	} {
		if p, err := r.begin(); p != nil || status.KindOf(err) != r.kind {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}
