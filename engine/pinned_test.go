package engine

import (
	"bytes"
	"context"
	"testing"

	"github.com/sealc2/sealc2/engine/host"
)

// Goal: what a small GPU pins of the host's memory is counted in the budget for as long as it is pinned, and given back when a job lacks
// it. Method: a device that does not hold the points beside a partition, then a reservation of everything.
func TestPinned_Budget(t *testing.T) {
	from, double := idleGPUs(t, 8<<30)
	c := loadTiny(t, "tiny-16")
	config := Config{Device: "cuda", DeviceBytes: 18 << 20, HostBytes: 3 << 30, gpus: from}
	e := open(t, config, nil)
	giveSums(t, e, c)
	opened := double.Live().Pinned
	result, err := e.ProveProgram(context.Background(), c.request(1))
	if err != nil || !bytes.Equal(result.Proof, c.proof) {
		t.Fatalf("%v, a proof that is right: %v", err, err == nil)
	}
	points := double.Live().Pinned - opened
	usage := e.budget.Usage()
	want := host.Needs{HostBytes: pinnedBytes(&config, e.limits, 1)}
	if points <= 0 || points > want.HostBytes || usage.Used != want {
		t.Errorf("%d bytes pinned, %+v of %+v used, want %+v", points, usage.Used, usage.Ceiling, want)
	}
	all, err := e.budget.Reserve(t.Context(), host.Needs{HostBytes: usage.Ceiling.HostBytes})
	if err != nil {
		t.Fatal(err)
	}
	if still := double.Live().Pinned - opened; still != 0 {
		t.Errorf("%d bytes still pinned", still)
	}
	all.Release()
	if used := e.budget.Usage().Used; used != (host.Needs{}) {
		t.Errorf("%+v used at the end", used)
	}
}
