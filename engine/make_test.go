package engine

import (
	"bytes"
	"context"
	"testing"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: under parameters made in a GPU's memory, proofs are the reference's, made with its parameters of the same secrets.
func TestMakeSRS_ProveProgram(t *testing.T) {
	api, images, _ := kerneltest.MachineOf(t, 5, 2)
	var log logBook
	e := open(t, Config{Device: "cuda:all", gpus: onMachine(api, images), Log: log.add}, nil)
	names := []string{"tiny-16", "tiny-128"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		c := loadTiny(t, name)
		before := e.budget.Usage()
		srs, err := e.makeSRS(t.Context(), "engine.MakeSRS", c.program, name, params.DefaultSetupText)
		if err != nil {
			t.Fatal(err)
		}
		made := e.budget.Usage()
		if made.Ceiling.DeviceBytes >= before.Ceiling.DeviceBytes || made.Ceiling.Memory[0] >= before.Ceiling.Memory[0] || made.Ceiling.Memory[1] >= before.Ceiling.Memory[1] || made.Used != before.Used {
			t.Errorf("%s: the points are not out of the budget: %+v, before %+v", name, made, before)
		}
		if again, err := e.makeSRS(t.Context(), "engine.MakeSRS", c.program, name, params.DefaultSetupText); err != nil || again != srs || e.budget.Usage().Ceiling != made.Ceiling {
			t.Errorf("%s: made again: %v", name, err)
		}
		rounds := []int{2, 1} // each device; and what is there once more
		if testing.Short() {
			rounds = rounds[:1]
		}
		for _, partitions := range rounds {
			request := c.request(partitions)
			request.SRS = srs
			got, err := e.ProveProgram(t.Context(), request)
			if err != nil || !bytes.Equal(got.Proof, bytes.Repeat(c.proof, partitions)) {
				t.Fatalf("%s: another proof: %v", name, err)
			}
		}
		if !log.has("warn: " + name + ": development parameters") {
			t.Errorf("%s: no warning in %q", name, log.lines)
		}
	}
}

func TestMakeSRS_Refuses(t *testing.T) {
	e := open(t, Config{Device: "cpu"}, nil)
	if _, err := e.MakeSRS(context.Background(), "3KiB", "x"); status.KindOf(err) != status.Caller {
		t.Errorf("an unknown size: %v", err)
	}
	if _, err := e.MakeSRS(context.Background(), "2KiB", "x"); status.KindOf(err) != status.Unsupported {
		t.Errorf("on the CPU: %v", err)
	}
}
