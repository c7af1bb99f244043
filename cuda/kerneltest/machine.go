package kerneltest

import (
	"slices"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
)

// Machine is a driver with every kernel, for tests of what opens devices itself: with images for driver.Device.Load. Where it is
// simulated, double is what it is made of, of the test's own, and the test fails where something is left in it; on a card
// double is nil.
func Machine(tb testing.TB, seed uint64) (api *driver.API, images [][]byte, double *sim.Driver) {
	tb.Helper()
	return MachineOf(tb, seed, 1)
}

// MachineOf is Machine with several devices where they are simulated.
func MachineOf(tb testing.TB, seed uint64, devices int) (api *driver.API, images [][]byte, double *sim.Driver) {
	tb.Helper()
	if OnCard() {
		images, err := cardImages()
		if err != nil {
			tb.Fatal(err)
		}
		api, err := driver.Load()
		if err != nil {
			tb.Fatal(err)
		}
		return api, images, nil
	}
	e, err := emulator()
	if err != nil {
		tb.Fatal(err)
	}
	if e.left != "" {
		tb.Fatal(e.left)
	}
	config := sim.Small(e, seed)
	config.Devices = slices.Repeat(config.Devices, devices)
	double = sim.New(config)
	tb.Cleanup(func() {
		if live := double.Live(); live != (sim.Live{}) {
			tb.Errorf("left on the device: %+v", live)
		}
		double.Close()
	})
	if api, err = driver.New(double); err != nil {
		tb.Fatal(err)
	}
	return api, [][]byte{make([]byte, 8)}, double
}
