package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

func fileBytes(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Goal: parameters made on a GPU are the reference's, byte for byte, with the report of the CPU's; they pass the check on the GPU, and a
// bad point is named there as it is by the CPU.
func TestSetup_OnGPU(t *testing.T) {
	api, images, _ := kerneltest.Machine(t, 5)
	api.SetStrict(true)
	for _, name := range []string{"tiny-16", "tiny-128"} {
		c := loadTiny(t, name)
		var log logBook
		config := Config{Device: "auto", HostBytes: 256 << 20, Threads: 2, gpus: onMachine(api, images), Log: log.add}
		request := &SetupRequest{Text: params.DefaultSetupText, Dir: t.TempDir(), BaseName: "x"}
		got, err := setupProgram(t.Context(), &config, c.program, name, request)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.Device, "cuda:0 ") || !log.has("info: device "+got.Device+" (the GPU with most memory): ") {
			t.Errorf("made on %q, log %q", got.Device, log.lines)
		}
		for path, want := range map[string]string{got.ParamsPath: "params.bin", got.VKPath: "vk.bin"} {
			if !bytes.Equal(fileBytes(t, path), fileBytes(t, vectors+"tiny/"+name+"/"+want)) {
				t.Errorf("%s: %s differs from the reference's", name, want)
			}
		}
		var want params.Digests
		readJSON(t, "tiny/"+name+"/setup.json", &want)
		if got.ParamsFile != want.ParamsFile || got.VKFile != want.VKFile || got.Blocks["b_g2"] != want.Blocks["b_g2"] {
			t.Errorf("%s: digests: want %+v, got %+v", name, want, got.SetupResult)
		}
		f, err := params.Open(got.ParamsPath)
		if err != nil {
			t.Fatal(err)
		}
		check := func(device string) error {
			t.Helper()
			config := config
			config.Device = device
			checker := NewPointChecker(config)
			defer checker.Close()
			if checker.Device() != "" {
				t.Error("a device was opened for nothing")
			}
			report, err := checker.Check(t.Context(), f, params.CheckOptions{Threads: 2})
			if checker.Device() != map[string]string{"cpu": "cpu", "cuda": got.Device}[device] || err == nil && (!report.Exact || report.Points == 0) {
				t.Errorf("checked on %q: %+v", checker.Device(), report)
			}
			return err
		}
		if err := check("cuda"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		bad := fileBytes(t, got.ParamsPath)
		bad[f.Counts().Offset(groth16.BlockB1)+params.G1Bytes*2-1] ^= 1
		if err := os.WriteFile(got.ParamsPath, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if f, err = params.Open(got.ParamsPath); err != nil {
			t.Fatal(err)
		}
		onGPU, onCPU := check("cuda"), check("cpu")
		if status.KindOf(onGPU) != status.Params || onGPU.Error() != onCPU.Error() || !strings.Contains(onGPU.Error(), "b_g1[1]") {
			t.Errorf("%s: want %v\ngot %v", name, onCPU, onGPU)
		}
		f.Close()
	}
}

// Goal: a block of several batches, each of several pieces, has the CPU's bytes. Method: a device with one multiprocessor, whose
// batches are small.
func TestSetup_Batches(t *testing.T) {
	var rows []circuit.Constraint
	one := []circuit.Term{{Key: circuit.AuxKey(0), Coeff: fr.One()}}
	for range 1<<14 + 5 {
		rows = append(rows, circuit.Constraint{A: one, B: one, C: one})
	}
	p, err := circuit.FromR1CS("squares", 1, []bool{true}, rows)
	if err != nil {
		t.Fatal(err)
	}
	request := func() *SetupRequest {
		return &SetupRequest{Text: "batches", Dir: t.TempDir(), BaseName: "x", WithoutDigests: true}
	}
	onCPU, err := setupProgram(t.Context(), &Config{Device: "cpu", Threads: 2}, p, "squares", request())
	if err != nil {
		t.Fatal(err)
	}
	double := sim.New(sim.Config{Version: 13000, Kernels: kerneltest.Emulator(t), Devices: []sim.GPU{
		{Name: "One", MemoryBytes: 8 << 30, Capability: 90, SMCount: 1, L2Bytes: 4 << 20},
	}})
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	got, err := setupProgram(t.Context(), &Config{Device: "cuda", HostBytes: 64 << 20, Threads: 2, gpus: onMachine(api, [][]byte{{1}})}, p, "squares", request())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fileBytes(t, got.ParamsPath), fileBytes(t, onCPU.ParamsPath)) {
		t.Error("the files differ")
	}
}

// Goal: whatever driver call fails, the error comes by value, no file has its name, and nothing is left on the device. Method:
// fail each call of a setup and of a check in turn, with results after which a context is dead and others, with kernels that do nothing.
func TestSetup_Faults(t *testing.T) {
	// What these do not give back is not tried again.
	once := []driver.Entry{driver.StreamDestroy, driver.EventDestroy, driver.PrimaryCtxRelease}
	c := loadTiny(t, "tiny-16")
	for what, work := range map[string]func(config *Config, dir string) error{
		"setup": func(config *Config, dir string) error {
			_, err := setupProgram(t.Context(), config, c.program, "tiny-16", &SetupRequest{Text: "x", Dir: dir, BaseName: "x"})
			return err
		},
		"check": func(config *Config, _ string) error {
			checker := NewPointChecker(*config)
			_, err := checker.Check(t.Context(), c.srs, params.CheckOptions{})
			checker.Close()
			return err
		},
	} {
		double := sim.New(sim.Small(idle{}, 1))
		defer func() { double.Close() }()
		calls := int64(0)
		step := int64(1)
		if testing.Short() {
			step = 4 // which has none of the results' period
		}
		for n := int64(1); ; n += step {
			api, err := driver.New(double)
			if err != nil {
				t.Fatal(err)
			}
			var warned logBook
			config := &Config{Device: "cuda:0", HostBytes: 64 << 20, Threads: 1, gpus: onMachine(api, [][]byte{{1}}), Log: warned.add}
			dir, before := t.TempDir(), api.Counts().Total
			api.FailCall(n, []driver.Result{driver.OutOfMemory, driver.InvalidValue, driver.LaunchFailed}[n%3])
			err = work(config, dir)
			made := api.Counts().Total - before
			if made < n {
				if err != nil {
					t.Errorf("%s, without a fault: %v", what, err)
				}
				break
			}
			calls = n
			var f *driver.Failure
			if err != nil && !errors.As(err, &f) {
				t.Errorf("%s, call %d: %v", what, n, err)
			}
			if _, failed := os.Stat(filepath.Join(dir, "x.params")); what == "setup" && (err == nil) != (failed == nil) {
				t.Errorf("%s, call %d: %v, and for the file %v", what, n, err, failed)
			}
			if names, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names) > 0 {
				t.Errorf("%s, call %d: left %v", what, n, names)
			}
			if live := double.Live(); live != (sim.Live{}) {
				told := fmt.Sprint(err, warned.lines)
				if !slices.ContainsFunc(once, func(e driver.Entry) bool { return strings.Contains(told, e.String()+":") }) {
					t.Errorf("%s, call %d: %s: left on the device: %+v", what, n, told, live)
				}
				double.Close()
				double = sim.New(sim.Small(idle{}, 1))
			}
		}
		if calls < 100 {
			t.Errorf("%s: only %d calls", what, calls)
		}
	}
}

// Goal: a device that does not hold the work is refused with both numbers, whoever cannot be used is named, a setup that is
// cancelled leaves nothing, and without a GPU the CPU does it.
func TestSetup_Refuses(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	double := sim.New(sim.Small(idle{}, 1))
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	small := onMachine(api, [][]byte{{1}})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, x := range []struct {
		what   string
		ctx    context.Context
		config Config
		kind   status.Kind
		texts  []string
	}{
		{"small", t.Context(), Config{Device: "cuda", DeviceBytes: 64 << 10, gpus: small}, status.NoMemory, []string{"64 KiB", "Simulated GPU", "tiny-16"}},
		{"little host memory", t.Context(), Config{Device: "cuda", HostBytes: 1 << 20, gpus: small}, status.NoMemory, []string{"host memory"}},
		{"two devices", t.Context(), Config{Device: "cuda:0,1", gpus: small}, status.NoDevice, []string{`"cuda:0,1"`, "one number"}},
		{"none of that number", t.Context(), Config{Device: "cuda:7", gpus: small}, status.NoDevice, []string{"device 7"}},
		{"another name", t.Context(), Config{Device: "abacus", gpus: small}, status.NoDevice, []string{"abacus"}},
		{"no driver", t.Context(), Config{Device: "cuda", gpus: noGPU}, status.NoDevice, []string{"an NVIDIA driver"}},
		{"cancelled", cancelled, Config{Device: "cuda", gpus: small}, status.Cancelled, nil},
	} {
		dir := t.TempDir()
		x.config.Threads = 1
		if x.config.HostBytes == 0 {
			x.config.HostBytes = 64 << 20
		}
		_, err := setupProgram(x.ctx, &x.config, c.program, "tiny-16", &SetupRequest{Text: "x", Dir: dir, BaseName: "x"})
		if status.KindOf(err) != x.kind {
			t.Errorf("%s: %v", x.what, err)
			continue
		}
		for _, text := range x.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in %v", x.what, text, err)
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("%s: left behind %v, %v", x.what, files, err)
		}
	}
	if live := double.Live(); live != (sim.Live{}) {
		t.Errorf("left on the device: %+v", live)
	}
	var log logBook
	config := &Config{Device: "auto", Threads: 1, gpus: noGPU, Log: log.add}
	got, err := setupProgram(t.Context(), config, c.program, "tiny-16", &SetupRequest{Text: params.DefaultSetupText, Dir: t.TempDir(), BaseName: "x"})
	if err != nil || got.Device != "cpu" || !log.has("device cpu (no GPU: ") {
		t.Fatalf("%+v, %v, log %q", got, err, log.lines)
	}
	if !bytes.Equal(fileBytes(t, got.ParamsPath), fileBytes(t, vectors+"tiny/tiny-16/params.bin")) {
		t.Error("the CPU's parameters differ")
	}
}

// Goal: a setup and a check on a GPU wait for the programs that have their turn on it, hold the lock while they use it and let go of it at their end,
// also where the device is refused.
func TestSetup_GPULock(t *testing.T) {
	api, images, _ := kerneltest.Machine(t, 5)
	c := loadTiny(t, "tiny-16")
	lock := filepath.Join(t.TempDir(), gpuLockName)
	config := Config{Device: "cuda", HostBytes: 256 << 20, Threads: 2, gpus: onMachine(api, images), GPULock: lock}
	held := 0
	request := &SetupRequest{Text: params.DefaultSetupText, Dir: t.TempDir(), BaseName: "x", Progress: func(float64, string) {
		if !isFree(t, lock) {
			held++
		}
	}}
	give := otherProgram(t, lock)
	ctx, cancel := context.WithTimeout(t.Context(), 5*gpuPoll)
	defer cancel()
	if _, err := setupProgram(ctx, &config, c.program, "tiny-16", request); status.KindOf(err) != status.Cancelled {
		t.Errorf("beside another program: %v", err)
	}
	give()
	made, err := setupProgram(t.Context(), &config, c.program, "tiny-16", request)
	if err != nil {
		t.Fatal(err)
	}
	if held == 0 {
		t.Error("the lock is not held")
	}
	f, err := params.Open(made.ParamsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checker := NewPointChecker(config)
	if _, err := checker.Check(t.Context(), f, params.CheckOptions{Threads: 2}); err != nil {
		t.Error(err)
	}
	if isFree(t, lock) {
		t.Error("the checker does not hold the lock")
	}
	checker.Close()
	small := config
	small.DeviceBytes = 64 << 10
	if _, err := setupProgram(t.Context(), &small, c.program, "tiny-16", request); status.KindOf(err) != status.NoMemory {
		t.Errorf("a device that is too small: %v", err)
	}
	if !isFree(t, lock) {
		t.Error("the lock is kept")
	}
}

// Goal: parameters of real circuits made on a card are the reference's, and pass the check there. Method: digests; the check by
// buckets on the card.
func TestSetup_GPUEqualsReference(t *testing.T) {
	kerneltest.NeedCard(t)
	api, images, _ := kerneltest.Machine(t, 1)
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k"} {
		var shape *porep.Shape
		for _, s := range porep.Shapes() {
			if s.OracleName == name {
				shape = s
			}
		}
		config := Config{Device: "cuda", gpus: onMachine(api, images)}
		begun := time.Now()
		got, err := Setup(t.Context(), config, &SetupRequest{Shape: shape, Text: params.DefaultSetupText, Dir: t.TempDir(), BaseName: "x"})
		if err != nil {
			t.Fatal(err)
		}
		made := time.Since(begun)
		var want params.Digests
		support.ReadJSON(t, vectors+"setup/"+name+".json", &want)
		if got.ParamsFile != want.ParamsFile || got.VKFile != want.VKFile {
			t.Errorf("%s: want %+v, got %+v", name, want.ParamsFile, got.ParamsFile)
		}
		f, err := params.Open(got.ParamsPath)
		if err != nil {
			t.Fatal(err)
		}
		checker := NewPointChecker(config)
		begun = time.Now()
		report, err := checker.Check(t.Context(), f, params.CheckOptions{Threads: 8})
		checker.Close()
		if err = errors.Join(err, f.Close()); err != nil || report.Exact {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		t.Logf("%s: made in %v, checked in %v, device opened each time", name, made, time.Since(begun))
	}
}
