package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// Goal: what is told of a C1 is what its statement says and what the circuit of the reference was given.
func TestReadC1_EqualsReference(t *testing.T) {
	e, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, name := range []string{"porep-2k-a", "porep-2k-ni", "porep-2k-v1", "porep-32k"} {
		s := loadSector(t, name)
		var witness struct {
			Partitions []struct {
				Public []string `json:"public_inputs_synthesised"`
			}
		}
		readJSON(t, "c1/"+name+"/witness.json", &witness)
		request := &ReadC1Request{C1: s.c1, Statement: s.statement}
		request.IDs = &SectorIDs{SectorID: s.facts.SectorID, ProverID: [32]byte(support.Hex(t, s.facts.ProverID))}
		got, err := e.ReadC1(context.Background(), request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if [32]byte(support.Hex(t, s.facts.CommR)) != got.CommR || [32]byte(support.Hex(t, s.facts.CommD)) != got.CommD ||
			[32]byte(support.Hex(t, s.facts.Ticket)) != got.Ticket || [32]byte(support.Hex(t, s.facts.Seed)) != got.Seed {
			t.Errorf("%s: other values than the statement has: %+v", name, got)
		}
		if name == "porep-32k" != (got.RegisteredProof == -1) {
			t.Errorf("%s: registered proof %d", name, got.RegisteredProof)
		}
		if len(got.Inputs) != len(witness.Partitions) {
			t.Errorf("%s: want %d partitions, got %d", name, len(witness.Partitions), len(got.Inputs))
			continue
		}
		for k, p := range witness.Partitions {
			if !slices.Equal(got.Inputs[k], support.Scalars(t, p.Public)) {
				t.Errorf("%s: public inputs of partition %d differ", name, k)
			}
		}
		request.IDs.SectorID++
		if _, err := e.ReadC1(context.Background(), request); status.KindOf(err) != status.Caller {
			t.Errorf("%s: want ids that contradict the statement file refused, got %v", name, err)
		}
	}
}

// Goal: looking fails by value. Method: no request, no bytes, an unknown size, an ended context, a closed engine.
func TestLook_Refusals(t *testing.T) {
	e, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := loadSector(t, "porep-2k-a")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	refused := func(what string, want status.Kind, err error) {
		t.Helper()
		if status.KindOf(err) != want {
			t.Errorf("%s: want %v, got %v", what, want, err)
		}
	}
	look := func(ctx context.Context, request *ReadC1Request) error {
		_, err := e.ReadC1(ctx, request)
		return err
	}
	digest := func(ctx context.Context, shape string) error {
		_, err := e.CircuitDigest(ctx, shape)
		return err
	}
	refused("no request", status.Caller, look(context.Background(), nil))
	refused("no bytes", status.Caller, look(context.Background(), &ReadC1Request{}))
	refused("half a C1", status.Input, look(context.Background(), &ReadC1Request{C1: s.c1[:len(s.c1)/2]}))
	refused("an ended context", status.Cancelled, look(ended, &ReadC1Request{C1: s.c1}))
	refused("an unknown size", status.Caller, digest(context.Background(), "3KiB"))
	refused("an ended context", status.Cancelled, digest(ended, "2KiB"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	refused("a closed engine", status.Caller, look(context.Background(), &ReadC1Request{C1: s.c1}))
	refused("a closed engine", status.Caller, digest(context.Background(), "2KiB"))
}
