package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: a job that is cancelled at any of a thousand instants ends as cancelled or with its proof; nothing of it is left in the budget or on
// the device; and the next proof is right. Method: kernels that do nothing, on a device that holds everything and on one to which points
// come up in pieces; a proof of its own length behind each instant.
func TestCancel_Instants(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	for _, k := range []struct {
		name     string
		bytes    int64
		instants int
	}{{"resident", 48 << 20, 500}, {"streaming", 18 << 20, 500}} {
		t.Run(k.name, func(t *testing.T) {
			if testing.Short() {
				k.instants /= 10
			}
			from, double := idleGPUs(t, 8<<30)
			e := open(t, Config{Device: "cuda", gpus: from, DeviceBytes: k.bytes, UrgentBytes: -1, HostBytes: 3 << 30, QueueBytes: 1 << 20}, nil)
			giveSums(t, e, c)
			right := func(after string) time.Duration {
				t.Helper()
				begin := time.Now()
				result, err := e.ProveProgram(t.Context(), c.request(2))
				if err != nil || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, 2)) {
					t.Fatalf("after %s: %v", after, err)
				}
				return time.Since(begin)
			}
			release := func() {
				t.Helper()
				if err := e.devices[0].backend.(groth16.Resident).Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			right("nothing")
			right("nothing")
			release()
			before, used := double.Live(), e.budget.Usage().Used
			random := rand.New(rand.NewPCG(11, 12))
			took, cancelled := right("nothing"), 0
			var waits []time.Duration
			for n := range k.instants {
				at := time.Duration(random.Float64() * float64(took) * 1.1)
				job, err := submitTiny(t.Context(), e, c.request(2), 1000, SubmitOptions{ID: JobID(fmt.Sprint("instant ", n))})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(at)
				begin := time.Now()
				job.Cancel()
				result, err := job.Wait(context.Background())
				ended := time.Since(begin)
				switch {
				case err == nil && bytes.Equal(result.Proof, bytes.Repeat(c.proof, 2)):
				case err != nil && status.KindOf(err) == status.Cancelled && job.Progress().State == JobCancelled:
					cancelled++
				default:
					t.Errorf("cancelled after %s of %s: %v", at, took, err)
				}
				waits = append(waits, ended)
				took = (3*took + right(fmt.Sprintf("a cancel at %s", at))) / 4
			}
			release()
			if now := double.Live(); now != before {
				t.Errorf("%+v on the device, %+v before", now, before)
			}
			if now := e.budget.Usage().Used; now != used {
				t.Errorf("%+v in use, %+v before", now, used)
			}
			slices.Sort(waits)
			t.Logf("%d of %d ended as cancelled; from cancel to end %s in 99 of 100, %s at most", cancelled, k.instants, waits[len(waits)*99/100], waits[len(waits)-1])
			if cancelled < k.instants/4 {
				t.Errorf("only %d of %d ended as cancelled", cancelled, k.instants)
			}
		})
	}
}
