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
	blocks, barrier := uint32(1), uint32(1)
	values := kerneltest.Put(t, make([]uint32, threads))
	switch tool {
	case "memcheck": // reads 64 MiB beyond
		blocks = 64 << 20 / (4 * threads)
	case "racecheck": // sums that one warp reads and others may not have written yet
		barrier = 0
	case "initcheck": // values that nobody has written
		values = kerneltest.Memory(t, 4*threads)
	case "synccheck": // a vote of lanes that the mask does not have
		var args driver.Args
		kerneltest.Run(t, "emu_bad_mask", driver.Dim{X: 1}, driver.Dim{X: 32}, 0, args.Ptr(values))
		return
	default:
		t.Fatalf("SEALC2_TEST_CANARY: want memcheck, racecheck, initcheck or synccheck, got %q", tool)
	}
	var args driver.Args
	sums := kerneltest.Memory(t, int64(blocks)*4)
	kerneltest.Run(t, "emu_block_sum", driver.Dim{X: blocks}, driver.Dim{X: threads}, 0, args.Ptr(values).Ptr(sums).U32(barrier))
}
