package engine

import (
	"bytes"
	"context"
	"testing"

	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: under each interlock rule, with any number of workers, the proofs are the same; a rule that there is not is refused with the names of
// those that there are.
func TestOpen_Policies(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	for _, policy := range sched.Policies() {
		for workers := range 3 {
			e := open(t, Config{Device: "cpu", Policy: policy.Name(), DeviceWorkers: workers, PartitionWorkers: workers}, nil)
			result, err := e.ProveProgram(context.Background(), c.request(3))
			if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 3)) {
				t.Errorf("%s, %d workers: %v", policy.Name(), workers, err)
			}
		}
	}
	for _, config := range []Config{{Policy: "none"}, {DeviceWorkers: -1}, {PartitionWorkers: -1}} {
		config.Device = "cpu"
		if _, err := Open(config); status.KindOf(err) != status.Caller {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
