//go:build cgo

package nvml

import (
	"os"
	"os/exec"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Goal: the bits are those of go-nvml.
func TestThrottles(t *testing.T) {
	for i, want := range []uint64{
		nvml.ClocksEventReasonSwPowerCap, nvml.ClocksThrottleReasonHwSlowdown, nvml.ClocksEventReasonSwThermalSlowdown,
		nvml.ClocksThrottleReasonHwThermalSlowdown, nvml.ClocksThrottleReasonHwPowerBrakeSlowdown,
	} {
		if throttles[i].bit != want {
			t.Errorf("%s: %#x, want %#x", throttles[i].name, throttles[i].bit, want)
		}
	}
}

// Goal: the tests of a build without cgo run with the others.
func TestWithoutCgo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	run := exec.Command("go", "test", "-count=1", "-run", "Plain|Open", ".")
	run.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
