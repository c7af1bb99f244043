package engine

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// TestProve_RefusedEarly: what is wrong with a request is said before parameters are looked for.
func TestProve_RefusedEarly(t *testing.T) {
	e := open(t, Config{}, nil)
	a, bare, ni := loadSector(t, "porep-2k-a"), loadSector(t, "porep-16k"), loadSector(t, "porep-2k-ni")
	nowhere := ParamSource{Dir: t.TempDir(), AllowDev: true}
	foreign := a.ids(t)
	foreign.SectorID++
	for _, c := range []struct {
		name    string
		request *ProveRequest
		kind    status.Kind
		text    string
	}{
		{"nil", nil, status.Caller, "C1"},
		{"no C1", &ProveRequest{}, status.Caller, "C1"},
		{"nonsense", &ProveRequest{C1: []byte("{]")}, status.Input, "stage parse"},
		{"cut", &ProveRequest{C1: a.c1[:len(a.c1)/2]}, status.Input, "stage parse"},
		{"another sector's ids", &ProveRequest{C1: a.c1, IDs: foreign}, status.Input, "replica_id"},
		{"bare without a statement", &ProveRequest{C1: bare.c1}, status.Input, "stage parse"},
		{"one of r and s", &ProveRequest{C1: a.c1, R: make([]fr.Element, 1)}, status.Caller, "s: want a scalar a partition, 1"},
		{"too many r and s", &ProveRequest{C1: a.c1, R: make([]fr.Element, 2), S: make([]fr.Element, 2)}, status.Caller, "r: want a scalar a partition, 1"},
		{"aggregate", &ProveRequest{C1: ni.c1, OnChain: true}, status.Unsupported, "aggregation is not supported yet"},
		{"nothing but parameters missing", &ProveRequest{C1: a.c1, IDs: a.ids(t)}, status.Params, "stage params"},
		{"so for non-interactive circuit proofs", &ProveRequest{C1: ni.c1}, status.Params, "stage params"},
	} {
		if c.request != nil {
			c.request.Params = nowhere
		}
		_, err := e.Prove(context.Background(), c.request)
		if status.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := e.Prove(context.Background(), &ProveRequest{C1: a.c1})
	if status.KindOf(err) != status.Caller {
		t.Errorf("no directory: %v", err)
	}
	small := open(t, Config{HostBytes: 1000}, nil)
	if _, err := small.Prove(context.Background(), &ProveRequest{C1: a.c1, Params: nowhere}); status.KindOf(err) != status.NoMemory {
		t.Errorf("a C1 larger than the budget: %v", err)
	}
}

// checkSector runs the check stage over the first partitions of a sector.
func checkSector(t *testing.T, e *Engine, s *c1.Output, partitions int) error {
	t.Helper()
	p := &proof{Engine: e, op: "test", work: &work{
		values: &programValues{porep.Program(s.Statement.Shape), host.Shared{}, func(k int) (*circuit.Inputs, error) {
			return porep.CircuitInputs(&s.Statement, s.Partitions[k])
		}},
		partitions: partitions, public: s.Statement.PublicInputs,
	}}
	return p.work.values.check(context.Background(), p)
}

// TestCheck_EveryPartition: a hash changed in a late partition is found before the first one is proved, and
// the error leads to the gadget.
func TestCheck_EveryPartition(t *testing.T) {
	if testing.Short() {
		t.Skip("records and checks millions of rows; the short run is for races")
	}
	e := open(t, Config{}, nil)
	s, err := c1.Parse(loadSector(t, "porep-2k-ni").c1, c1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hash := &s.Partitions[1][1].Column.Inclusion.Base[0].Hashes[3]
	hash[0] ^= 1
	err = checkSector(t, e, s, 2)
	if status.KindOf(err) != status.Unsatisfied {
		t.Fatalf("changed hash: %v", err)
	}
	for _, part := range []string{"circuit.Evaluate: partition 1, ", "row ", "challenge_1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	hash[0] ^= 1
	// Another statement: the vanilla proofs then belong to other challenges.
	s.Statement.CommR[0] ^= 1
	if err := checkSector(t, e, s, 1); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "engine.Check: partition 0, public input") {
		t.Errorf("another comm_r: %v", err)
	}
}

// paramDir is the directory with development parameters that the Makefile's test target makes and names.
func paramDir(t testing.TB, oracleName string) string {
	t.Helper()
	dir := os.Getenv("SEALC2_PARAMS")
	if dir == "" {
		t.Skip("SEALC2_PARAMS names no directory of development parameters; make test makes them and sets it")
	}
	shape := support.Shape(t, oracleName)
	if _, err := findSet(ParamSource{Dir: dir}, shape, true); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestProve_EqualsReference: sectors sealed by the reference give its proofs, byte for byte.
func TestProve_EqualsReference(t *testing.T) {
	for _, c := range []struct{ name, shape string }{
		{"porep-2k-a", "porep-2k"}, {"porep-2k-b", "porep-2k"}, {"porep-16k", "porep-16k"}, {"porep-32k", "porep-32k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := paramDir(t, c.shape)
			e := open(t, Config{}, nil)
			s := loadSector(t, c.name)
			request := &ProveRequest{
				C1: s.c1, IDs: s.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, OnChain: true,
				R: support.Scalars(t, s.proof.R), S: support.Scalars(t, s.proof.S),
			}
			if s.facts.Number == 0 {
				request.Statement = s.statement
			}
			streamed := 0
			request.Partition = func(int, [192]byte) { streamed++ }
			result, err := e.Prove(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			if want := s.proofBytes(t); !bytes.Equal(result.Proof, want) || streamed != len(s.proof.Proofs) {
				t.Errorf("want %x\ngot %x (%d partitions streamed)", want, result.Proof, streamed)
			}
			for _, st := range result.Stages {
				t.Logf("partition %2d %-9s %8.3f s", st.Partition, st.Stage, st.Elapsed.Seconds())
			}
			t.Logf("peak of reservations %s, resident %s", host.FormatBytes(e.budget.Usage().Peak.HostBytes), host.FormatBytes(host.PeakRSS()))
		})
	}
}

// TestProve_RefusesChangedSector: with parameters there, a C1 output with one changed hash ends before any
// transform, and the engine goes on.
func TestProve_RefusesChangedSector(t *testing.T) {
	dir := paramDir(t, "porep-2k")
	e := open(t, Config{}, nil)
	s, err := c1.Parse(loadSector(t, "porep-2k-a").c1, c1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Partitions[0][1].DRG[2].Inclusion.Base[1].Hashes[0][7] ^= 1
	request := &ProveRequest{C1: s.AppendJSON(nil), Params: ParamSource{Dir: dir, AllowDev: true}}
	var stages []string
	request.Progress = func(p Progress) { stages = append(stages, p.Stage) }
	for range 2 {
		stages = nil
		_, err = e.Prove(context.Background(), request)
		if status.KindOf(err) != status.Unsatisfied {
			t.Fatalf("changed hash: %v", err)
		}
		if stages[len(stages)-1] != "expand" {
			t.Errorf("stages that succeeded: %q", stages)
		}
		for _, part := range []string{"partition 0, stage evaluate: circuit.Evaluate: partition 0, ", "row ", "challenge_1"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
	if len(e.resident.sets) != 1 || e.resident.sets[0].users != 0 {
		t.Errorf("sets kept: %d", len(e.resident.sets))
	}
	request.Params.AllowDev = false
	if _, err := e.Prove(context.Background(), request); status.KindOf(err) != status.Params {
		t.Errorf("no leave for development parameters: %v", err)
	}
}
