package driver_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/status"
)

// kernels are a few in Go: add1 adds one to each of n bytes, fail fails.
var kernels = sim.Functions{
	"add1": func(_, _ driver.Dim, args []unsafe.Pointer) error {
		at, n := *(*uint64)(args[0]), *(*uint32)(args[1])
		for i := range n {
			*(*byte)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&at)), i))++
		}
		return nil
	},
	"fail": func(_, _ driver.Dim, _ []unsafe.Pointer) error { return errors.New("a status word that says so") },
}

// machine opens a driver over a simulated machine, and looks at the end that nothing is left.
func machine(t testing.TB, config sim.Config) (*driver.API, *sim.Driver) {
	t.Helper()
	s := sim.New(config)
	t.Cleanup(func() {
		if live := s.Live(); live != (sim.Live{}) {
			t.Errorf("left behind: %+v", live)
		}
		s.Close()
	})
	api, err := driver.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return api, s
}

// opened is device 0, entered for the test's goroutine.
func opened(t testing.TB, api *driver.API) *driver.Device {
	t.Helper()
	d, err := api.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	leave, err := d.Enter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leave()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails unless err has the kind and all of the texts.
func wantError(t testing.TB, err error, kind status.Kind, texts ...string) {
	t.Helper()
	if status.KindOf(err) != kind {
		t.Errorf("want kind %v, got %v: %v", kind, status.KindOf(err), err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// work is a round trip through everything: arena, copies, fill, kernel, two streams, events. It gives back what it
// makes whatever fails, and returns the first error.
func work(ctx context.Context, d *driver.Device) (err error) {
	keep := func(failed error) {
		if err == nil {
			err = failed
		}
	}
	l, err := d.Load([]byte("an image"))
	if err != nil {
		return err
	}
	defer func() { keep(l.Close()) }()
	k, err := l.Kernel("add1")
	if err != nil {
		return err
	}
	if err := l.Warm(k); err != nil {
		return err
	}
	a, err := d.MapArena(1 << 20)
	if err != nil {
		return err
	}
	defer func() { keep(a.Close()) }()
	pinned, err := d.NewPinned(1<<12, 2)
	if err != nil {
		return err
	}
	defer func() { keep(pinned.Close()) }()
	up, err := d.NewStream("upload", driver.Normal)
	if err != nil {
		return err
	}
	defer func() { keep(up.Close()) }()
	run, err := d.NewStream("compute", driver.Urgent)
	if err != nil {
		return err
	}
	defer func() { keep(run.Close()) }()
	e, err := d.NewEvent(true)
	if err != nil {
		return err
	}
	defer func() { keep(e.Close()) }()
	// Before anything is given back, nothing runs any more, whatever failed.
	defer func() {
		for _, s := range []*driver.Stream{up, run} {
			keep(s.Synchronize(context.Background()))
		}
	}()
	copy(pinned.Bytes(), "abcdefgh")
	var args driver.Args
	p := a.Base().Add(256)
	for _, step := range []func() error{
		func() error { return up.CopyToDevice(p, pinned.Pointer(), 8) },
		func() error { return up.Record(e) },
		func() error { return run.Wait(e) },
		func() error {
			return run.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 32}, 0, args.Reset().Ptr(p).U32(8))
		},
		func() error { return run.Fill8(p.Add(8), 'x', 4) },
		func() error { return run.Fill32(p.Add(12), 0x79797979, 1) },
		func() error { return run.CopyDevice(p.Add(16), p, 16) },
		func() error { return run.CopyToHost(pinned.Pointer(), p.Add(16), 16) },
		func() error { return run.Synchronize(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if got := string(pinned.Bytes()[:16]); got != "bcdefghixxxxyyyy" {
		return errors.New("got " + got)
	}
	return nil
}

func TestWork(t *testing.T) {
	for seed := range uint64(20) {
		api, _ := machine(t, sim.Small(kernels, seed))
		d := opened(t, api)
		before := api.Counts()
		check(t, work(t.Context(), d))
		c := api.Counts().Sub(before)
		if c.Unwarmed != 0 || c.Beside != 0 || c.Entry[driver.LaunchKernel] != 1 || c.Class[driver.Queue] < 9 || c.Class[driver.Wait] == 0 {
			t.Errorf("counts: %+v", c)
		}
		if total := c.Class[0] + c.Class[1] + c.Class[2] + c.Class[3]; total != c.Total {
			t.Errorf("classes have %d calls of %d", total, c.Total)
		}
	}
}

// Goal: any driver call that fails is an error with the driver's name and text, and leaves nothing behind but what
// that very call was to give back. Method: fail call n of the round trip, for each n, then do it again.
func TestFaults_EveryCall(t *testing.T) {
	giveBack := map[driver.Entry]bool{
		driver.LibraryUnload: true, driver.MemUnmap: true, driver.MemRelease: true, driver.MemAddressFree: true, driver.MemHostUnregister: true,
		driver.StreamDestroy: true, driver.EventDestroy: true, driver.PrimaryCtxRelease: true,
	}
	whole := func(api *driver.API) error {
		if _, err := api.Candidates(driver.Requirements{Version: 13000}); err != nil {
			return err
		}
		d, err := api.Open(0)
		if err != nil {
			return err
		}
		err = d.In(func() error { return work(context.Background(), d) })
		if closed := d.Close(); err == nil {
			err = closed
		}
		return err
	}
	faults := 0
	for n := int64(1); ; n++ {
		s := sim.New(sim.Small(kernels, 7))
		api := must[*driver.API](t)(driver.New(s))
		before := api.Counts().Total
		api.FailCall(n, driver.IllegalAddress)
		err := whole(api)
		if api.Counts().Total-before < n {
			check(t, err)
			s.Close()
			break
		}
		faults++
		var f *driver.Failure
		if err != nil {
			if !errors.As(err, &f) || f.Name != "CUDA_ERROR_ILLEGAL_ADDRESS" || f.Text == "" || !driver.IsLost(err) {
				// A device that cannot be asked about is a candidate with a reason, and Open says so.
				t.Errorf("call %d: %v", n, err)
			}
		}
		live := s.Live()
		if live != (sim.Live{}) && (f == nil || !giveBack[f.Entry]) {
			t.Errorf("call %d (%v): left behind: %+v", n, err, live)
		}
		api.FailCall(0, 0)
		if f == nil || f.Entry != driver.PrimaryCtxRelease {
			if err := whole(api); err != nil {
				t.Errorf("after call %d failed: %v", n, err)
			}
		}
		s.Close()
	}
	if faults < 60 {
		t.Errorf("only %d calls", faults)
	}
}

func TestCandidates_Reasons(t *testing.T) {
	good := sim.GPU{Name: "Good", MemoryBytes: 16 << 30, Capability: 80, SMCount: 8}
	change := func(f func(*sim.GPU)) sim.GPU { g := good; f(&g); return g }
	api, _ := machine(t, sim.Config{Version: 13000, Kernels: kernels, Devices: []sim.GPU{
		good,
		change(func(g *sim.GPU) { g.Capability = 61 }),
		change(func(g *sim.GPU) { g.Mode = driver.ModeProhibited }),
		change(func(g *sim.GPU) { g.MemoryBytes = 2 << 30 }),
		change(func(g *sim.GPU) { g.Unmanaged = true }),
		change(func(g *sim.GPU) { g.Mode, g.Taken = driver.ModeExclusiveProcess, true }),
		change(func(g *sim.GPU) { g.NoImage = true }),
	}})
	all := must[[]driver.Candidate](t)(api.Candidates(driver.Requirements{Version: 13000, Release: "580", Capability: 75, MemoryBytes: 4 << 30}))
	for i, want := range []string{"", "want compute capability 7.5 or newer, got 6.1", "prohibited", "want 4294967296 bytes of memory, got 2147483648", "virtual memory management", "", ""} {
		switch got := all[i].Reason; {
		case want == "" && got != nil:
			t.Errorf("device %d: %v", i, got)
		case want != "":
			wantError(t, got, status.NoDevice, want, "Good")
		}
	}
	_, err := api.Open(5)
	wantError(t, err, status.NoDevice, "another process", "CUDA_ERROR_DEVICE_UNAVAILABLE", "busy or unavailable")
	d := must[*driver.Device](t)(api.Open(6))
	err = d.In(func() error {
		l, err := d.Load([]byte("an image"))
		check(t, err)
		_, err = l.Kernel("add1")
		return err
	})
	wantError(t, err, status.NoDevice, "CUDA_ERROR_NO_BINARY_FOR_GPU", "compute capability 8.0")
	err = d.In(func() error { _, err := d.Load(nil); return err })
	wantError(t, err, status.NoDevice, "no CUDA code")
	check(t, d.Close())
	_, err = api.Open(7)
	wantError(t, err, status.NoDevice, "CUDA_ERROR_INVALID_DEVICE")
}

func TestNew_DriverTooOld(t *testing.T) {
	config := sim.Small(kernels, 0)
	config.Version = 12020
	api, _ := machine(t, config)
	_, err := api.Candidates(driver.Requirements{Version: 13000, Release: "580"})
	wantError(t, err, status.NoDevice, "CUDA 13.0 (release 580 or newer)", "CUDA 12.2")

	config.Missing = []driver.Entry{driver.FuncLoad}
	s := sim.New(config)
	defer s.Close()
	_, err = driver.New(s)
	wantError(t, err, status.NoDevice, "cuFuncLoad (CUDA 12.4)", "CUDA 12.2")

	s = sim.New(sim.Config{Version: 13000})
	defer s.Close()
	_, err = driver.New(s)
	wantError(t, err, status.NoDevice, "CUDA_ERROR_NO_DEVICE")
}

// Goal: each stalling call is an error while anything is queued, and none when nothing is.
func TestStrict_Stalling(t *testing.T) {
	api, _ := machine(t, sim.Small(kernels, 1))
	api.SetStrict(true)
	d := opened(t, api)
	l := must[*driver.Library](t)(d.Load([]byte("an image")))
	k := must[driver.Kernel](t)(l.Kernel("add1"))
	a := must[*driver.Arena](t)(d.MapArena(1))
	s := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
	var args driver.Args
	args.Ptr(a.Base()).U32(1)
	pinned := must[*driver.Pinned](t)(d.NewPinned(1, 1))
	stalling := map[string]func() error{
		"cuLibraryUnload":     func() error { return l.Close() },
		"cuMemHostUnregister": func() error { return pinned.Close() },
		"cuMemHostRegister":   func() error { _, err := d.NewPinned(1, 1); return err },
		"cuFuncLoad":          func() error { return l.Warm(k) },
		"first launch": func() error {
			return s.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, &args)
		},
	}
	for name, call := range stalling {
		check(t, s.Fill8(a.Base(), 1, 1))
		wantError(t, call(), status.Internal, name, `stream "compute"`)
		check(t, s.Synchronize(t.Context()))
	}
	if c := api.Counts(); c.Beside != int64(len(stalling)) || c.Unwarmed != 1 {
		t.Errorf("counts: %+v", c)
	}
	check(t, l.Warm(k))
	check(t, s.Fill8(a.Base(), 1, 1))
	check(t, s.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, &args)) // warm: no error
	check(t, s.Synchronize(t.Context()))
	check(t, l.Close())
	check(t, a.Close())
	check(t, pinned.Close())
	check(t, s.Close())
}

// Goal: the classes are those that were measured. The table is written down here a second time, from the measurements.
func TestEntries_Classes(t *testing.T) {
	stalling := []string{"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuLibraryUnload", "cuKernelGetFunction", "cuFuncLoad", "cuMemHostRegister_v2", "cuMemHostUnregister"}
	for e := range driver.EntryCount {
		if got, want := e.Class() == driver.Stalling, slices.Contains(stalling, e.String()); got != want {
			t.Errorf("%s: class %v", e, e.Class())
		}
		if queued := strings.HasSuffix(strings.TrimSuffix(e.String(), "_v2"), "Async"); queued && e.Class() != driver.Queue {
			t.Errorf("%s: class %v", e, e.Class())
		}
	}
}

func TestLoad_NoDriver(t *testing.T) {
	api, err := driver.Load()
	if err == nil {
		t.Skipf("a driver for CUDA %d is installed", api.Version())
	}
	wantError(t, err, status.NoDevice)
}

func TestSynchronize_Ends(t *testing.T) {
	api, _ := machine(t, sim.Small(kernels, 1))
	d := opened(t, api)
	never := must[*driver.Stream](t)(d.NewStream("never", driver.Normal))
	s := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
	a := must[*driver.Arena](t)(d.MapArena(1))
	// A stream that waits for a mark behind an operation that waits for this stream never ends.
	first, second := must[*driver.Event](t)(d.NewEvent(false)), must[*driver.Event](t)(d.NewEvent(false))
	check(t, never.Fill8(a.Base(), 1, 1))
	check(t, never.Record(first))
	check(t, s.Wait(first))
	check(t, s.Record(second))
	check(t, s.Synchronize(t.Context())) // this does

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for range 200 {
		check(t, s.Fill8(a.Base(), 2, 1))
	}
	wantError(t, s.Synchronize(ctx), status.Cancelled, "enough")
	d.Limit = time.Nanosecond
	wantError(t, s.Synchronize(t.Context()), status.Timeout, "1ns", "compute")
	d.Limit = driver.DefaultLimit
	check(t, s.Synchronize(t.Context()))
	for _, c := range []interface{ Close() error }{first, second, s, never, a} {
		check(t, c.Close())
		check(t, c.Close())
	}
}

// Goal: a kernel that fails loses the context by value: every call says so, and that there is no new one.
func TestLost(t *testing.T) {
	api, s := machine(t, sim.Small(kernels, 1))
	d := must[*driver.Device](t)(api.Open(0))
	err := d.In(func() error {
		l := must[*driver.Library](t)(d.Load([]byte("an image")))
		k := must[driver.Kernel](t)(l.Kernel("fail"))
		stream := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
		check(t, stream.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, new(driver.Args)))
		err := stream.Synchronize(t.Context())
		wantError(t, stream.Fill8(0, 0, 1), status.NoDevice, "CUDA_ERROR_LAUNCH_FAILED")
		return err
	})
	wantError(t, err, status.NoDevice, "cuEventQuery: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure")
	if !driver.IsLost(err) || !strings.Contains(s.Fault(), "a status word that says so") {
		t.Errorf("%v; fault %q", err, s.Fault())
	}
	check(t, d.Close())
	_, err = api.Open(0)
	wantError(t, err, status.NoDevice, "cuDevicePrimaryCtxRetain: CUDA_ERROR_LAUNCH_FAILED")
}

// Goal: a device that is lost in another way can be opened again.
func TestLost_NewContext(t *testing.T) {
	api, s := machine(t, sim.Small(kernels, 1))
	d := must[*driver.Device](t)(api.Open(0))
	s.Lose(0, driver.ECCUncorrectable)
	if err := d.In(func() error { return work(t.Context(), d) }); !driver.IsLost(err) {
		t.Errorf("%v", err)
	}
	check(t, d.Close())
	d = must[*driver.Device](t)(api.Open(0))
	check(t, d.In(func() error { return work(t.Context(), d) }))
	check(t, d.Close())
}

// Goal: whoever still fills pinned memory when its device is lost hurts nobody. Method: written to after Close, and it has been
// given back.
func TestPinned_WrittenAfterClose(t *testing.T) {
	api, s := machine(t, sim.Small(kernels, 1))
	d := opened(t, api)
	pinned := must[*driver.Pinned](t)(d.NewPinned(1<<20, 1))
	pinned.Bytes()[1<<19] = 7
	at := pinned.Pointer()
	check(t, pinned.Close())
	if s.Live().Pinned != 0 {
		t.Errorf("registered: %+v", s.Live())
	}
	runtime.GC()
	if pinned.Pointer() != at || pinned.Bytes()[1<<19] != 0 {
		t.Error("want the same addresses, and memory that was given back")
	}
	pinned.Bytes()[1<<19] = 8
	check(t, pinned.Close())
}

// Goal: a host's own context on its thread is as before, and a goroutine that has not entered is told so.
func TestEnter_RestoresContext(t *testing.T) {
	s := sim.New(sim.Config{Version: 13000, Kernels: kernels, Devices: []sim.GPU{{Name: "a", MemoryBytes: 1 << 30, Capability: 90}, {Name: "b", MemoryBytes: 1 << 30, Capability: 90}}})
	defer s.Close()
	api := must[*driver.API](t)(driver.New(s))
	d, other := must[*driver.Device](t)(api.Open(0)), must[*driver.Device](t)(api.Open(1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	memory := func(d *driver.Device) error { _, _, err := d.Memory(); return err }
	wantError(t, memory(d), status.Internal, "CUDA_ERROR_INVALID_CONTEXT")
	check(t, other.In(func() error {
		return d.In(func() error {
			check(t, d.In(func() error { return memory(d) }))
			return memory(d)
		})
	}))
	wantError(t, memory(d), status.Internal, "CUDA_ERROR_INVALID_CONTEXT")
	check(t, errors.Join(d.Close(), other.Close(), d.Close()))
	if live := s.Live(); live.Contexts != 0 {
		t.Errorf("left behind: %+v", live)
	}
}

func TestLaunch_Refused(t *testing.T) {
	api, _ := machine(t, sim.Small(kernels, 1))
	d := opened(t, api)
	l := must[*driver.Library](t)(d.Load([]byte("an image")))
	k := must[driver.Kernel](t)(l.Kernel("add1"))
	s := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
	var many, large driver.Args
	for range driver.ArgCount + 1 {
		many.U32(1)
	}
	block := [driver.ArgBytes + 1]byte{}
	large.Struct(unsafe.Pointer(&block), len(block))
	one := driver.Dim{X: 1}
	wantError(t, s.Launch(k, one, one, 0, &many), status.Internal, "at most 48 arguments")
	wantError(t, s.Launch(k, one, one, 0, &large), status.Internal, "1024 bytes")
	wantError(t, s.Launch(driver.Kernel{}, one, one, 0, &driver.Args{}), status.Internal, "a kernel")
	wantError(t, s.Launch(k, driver.Dim{}, one, 0, &driver.Args{}), status.Internal, "CUDA_ERROR_INVALID_VALUE")
	wantError(t, s.Launch(k, one, driver.Dim{X: 2048}, 0, &driver.Args{}), status.Internal, "CUDA_ERROR_INVALID_VALUE")
	wantError(t, s.Launch(k, one, one, 100<<10, &driver.Args{}), status.Internal, "CUDA_ERROR_INVALID_VALUE")
	wantError(t, s.CopyDevice(0, 0, -1), status.Internal, "0 bytes or more")
	_, err := l.Kernel("no such kernel")
	wantError(t, err, status.Internal, "no such kernel", "CUDA_ERROR_NOT_FOUND")
	_, err = d.MapArena(9 << 30)
	wantError(t, err, status.NoMemory, "9663676416 bytes", "CUDA_ERROR_OUT_OF_MEMORY")
	_, err = d.MapArena(0)
	wantError(t, err, status.Internal, "more than 0 bytes")
	check(t, s.Synchronize(t.Context()))
	check(t, errors.Join(s.Close(), l.Close()))
}

// Goal: hot calls allocate nothing of their own.
func TestLaunch_Allocations(t *testing.T) {
	d := opened(t, must[*driver.API](t)(driver.New(quiet{})))
	l := must[*driver.Library](t)(d.Load([]byte("an image")))
	k := must[driver.Kernel](t)(l.Kernel("k"))
	s := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
	e := must[*driver.Event](t)(d.NewEvent(false))
	var args driver.Args
	host := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		check(t, s.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, args.Reset().Ptr(1).U32(2).U64(3)))
		check(t, s.CopyToDevice(1, unsafe.Pointer(&host[0]), 64))
		check(t, s.Fill32(1, 0, 1))
		check(t, s.Record(e))
		check(t, s.Wait(e))
		check(t, s.Synchronize(t.Context()))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// quiet is a table that answers success and nothing else.
type quiet struct{}

func (quiet) Call(e driver.Entry, args []uintptr) driver.Result {
	if e == driver.DeviceGetAttribute {
		*(*int32)(*(*unsafe.Pointer)(unsafe.Pointer(&args[0]))) = 1
	}
	return driver.Success
}
func (quiet) Has(driver.Entry) bool { return true }
func (quiet) Name() string          { return "quiet" }
