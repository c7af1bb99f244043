package kernels_test

import (
	"os"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
)

// Goal: a tool that finds nothing in the kernels would find something. Method: under the tool of compute-sanitizer that
// SEALC2_TEST_CANARY names, one fault of its kind; tests/device/run.sh wants the tool to report it.
func TestCanary(t *testing.T) {
	tool := os.Getenv("SEALC2_TEST_CANARY")
	if tool == "" || !kerneltest.OnCard() {
		t.Skip("for compute-sanitizer on a card, which must fail it: SEALC2_TEST_CANARY names the tool")
	}
	const threads = 256
	var args driver.Args
	to := kerneltest.Put(t, make([]uint32, threads))
	name := "canary_copy"
	switch tool {
	case "memcheck": // from where no test has memory
		args.Ptr(to.Add(1 << 40)).Ptr(to)
	case "initcheck":
		args.Ptr(kerneltest.Memory(t, 4*threads)).Ptr(to)
	case "racecheck":
		name = "canary_race"
		args.Ptr(to)
	case "synccheck":
		name = "canary_barrier"
		args.Ptr(to)
	default:
		t.Fatalf("SEALC2_TEST_CANARY: want memcheck, racecheck, initcheck or synccheck, got %q", tool)
	}
	kerneltest.Run(t, name, driver.Dim{X: 1}, driver.Dim{X: threads}, 0, &args)
}
