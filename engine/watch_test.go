package engine

import (
	"strings"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: without a GPU, or where nobody tells what it does, the error is a value; with one, it is told by its number.
func TestOpenWatch(t *testing.T) {
	if w, err := noGPU.watch(); w != nil || status.KindOf(err) != status.NoDevice {
		t.Errorf("%v", err)
	}
	w, err := OpenWatch()
	if err != nil {
		if w != nil || status.KindOf(err) != status.NoDevice {
			t.Errorf("%v: %v", status.KindOf(err), err)
		}
		return
	}
	all, err := w.Read()
	if err != nil || len(all) != len(GPUs()) {
		t.Fatalf("%d GPUs of %d: %v", len(all), len(GPUs()), err)
	}
	for _, g := range all {
		if !strings.HasPrefix(g.Name, "cuda:") || g.UsedBytes <= 0 || g.UsedBytes > g.TotalBytes {
			t.Errorf("%+v", g)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Goal: every call of the driver is counted in one class.
func TestDriverCalls(t *testing.T) {
	if _, ok := noGPU.driverCalls(); ok {
		t.Error("calls without a driver")
	}
	double := sim.New(sim.Config{Version: 13000, Kernels: idle{}, Devices: []sim.GPU{{Name: "One", MemoryBytes: 8 << 30, Capability: 90, SMCount: 1}}})
	defer double.Close()
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	machine := onMachine(api, [][]byte{{1}})
	before, ok := machine.driverCalls()
	if !ok {
		t.Fatal("no driver")
	}
	e, err := Open(Config{Device: "cuda", gpus: machine})
	if err != nil {
		t.Fatal(err)
	}
	opened, _ := machine.driverCalls()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	closed, _ := machine.driverCalls()
	for _, c := range []DriverCalls{before, opened.Sub(before), closed.Sub(opened)} {
		if c.Total <= 0 || c.Total != c.Plain+c.Queue+c.Wait+c.Stalling {
			t.Errorf("%+v", c)
		}
	}
	if d := opened.Sub(before); d.Stalling == 0 || d.Beside != 0 {
		t.Errorf("an engine that opens stalls its own device: %+v", d)
	}
}
