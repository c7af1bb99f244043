package porep_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

const cases = "../../../tests/vectors/c1/"

func parse(t testing.TB, name string) *c1.Output {
	t.Helper()
	data, err := os.ReadFile(cases + name + "/c1.json")
	if err != nil {
		t.Fatal(err)
	}
	statement, err := os.ReadFile(cases + name + "/statement.json")
	if err != nil {
		t.Fatal(err)
	}
	out, err := c1.Parse(data, c1.Options{Statement: statement})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func expand(t testing.TB, st *porep.Statement, challenges []porep.Challenge, threads int) (*circuit.Program, *circuit.Witness) {
	t.Helper()
	p := porep.Program(st.Shape)
	in, err := porep.CircuitInputs(st, challenges)
	if err != nil {
		t.Fatal(err)
	}
	w := &circuit.Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
	if err := p.Expand(context.Background(), in, w, threads); err != nil {
		t.Fatal(err)
	}
	return p, w
}

// Goal: the witness is bellperson's, bit for bit, for every sector that the reference sealed.
// Method: digests of assignments, rows and densities of each partition; the public inputs against the statement.
func TestWitness_EqualsReference(t *testing.T) {
	files, err := filepath.Glob(cases + "*/witness.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("want the witness digests of at least 4 sectors in %s, got %v %v", cases, files, err)
	}
	totals := map[string]string{}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			var want struct{ Partitions []circuit.WitnessDigest }
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			out := parse(t, name)
			if len(out.Partitions) < len(want.Partitions) {
				t.Fatalf("%d partitions, want at least the %d that the reference digested", len(out.Partitions), len(want.Partitions))
			}
			for k := range want.Partitions {
				p, w := expand(t, &out.Statement, out.Partitions[k], 2)
				if totals[p.Name()] == "" {
					d, err := p.Digest(context.Background(), 2)
					if err != nil {
						t.Fatal(err)
					}
					totals[p.Name()] = d.Total
				}
				got, err := p.DigestWitness(context.Background(), w, totals[p.Name()], 2)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(*got, want.Partitions[k]) {
					t.Errorf("partition %d:\n got %.1500v\nwant %.1500v", k, *got, want.Partitions[k])
				}
				public, err := out.Statement.PublicInputs(k)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(public, w.Inputs[1:]) {
					t.Errorf("partition %d: public inputs of the statement are not those of the circuit", k)
				}
			}
		})
	}
}

// Goal: a wrong vanilla proof is refused, with the gadget's path and row.
// Method: one hash changed at a time in each place that the circuit reads.
func TestEvaluate_RefusesChangedProofs(t *testing.T) {
	changes := map[string]struct {
		change func(*porep.Challenge)
		path   string
	}{
		"data leaf":      {func(c *porep.Challenge) { c.CommD.Leaf[3] ^= 1 }, "challenge_1/comm_d_inclusion"},
		"data sibling":   {func(c *porep.Challenge) { c.CommD.Base[0].Hashes[0][3] ^= 1 }, "challenge_1/comm_d_inclusion"},
		"data position":  {func(c *porep.Challenge) { c.CommD.Base[0].Index ^= 1 }, "challenge_1/comm_d_inclusion"},
		"drg path":       {func(c *porep.Challenge) { c.DRG[2].Inclusion.Base[0].Hashes[0][5] ^= 1 }, "challenge_1/drg_parent_2_inclusion"},
		"expander path":  {func(c *porep.Challenge) { c.Expander[7].Inclusion.Base[1].Hashes[6][0] ^= 1 }, "challenge_1/exp_parent_7_inclusion"},
		"replica path":   {func(c *porep.Challenge) { c.CommRLast.Base[0].Hashes[0][9] ^= 1 }, "challenge_1/comm_r_last_data_inclusion"},
		"column path":    {func(c *porep.Challenge) { c.Column.Inclusion.Base[1].Index ^= 1 }, "challenge_1/c_x_inclusion"},
		"challenge node": {func(c *porep.Challenge) { c.Labeling[0].Node ^= 1 }, "challenge_1/"},
	}
	for what, test := range changes {
		t.Run(what, func(t *testing.T) {
			out := parse(t, "porep-2k-b") // its leaves differ, so that positions matter
			test.change(&out.Partitions[0][1])
			p, w := expand(t, &out.Statement, out.Partitions[0], 1)
			err := p.Check(context.Background(), w, 2)
			if status.KindOf(err) != status.Unsatisfied {
				t.Fatalf("got %v, want an unsatisfied row", err)
			}
			for _, part := range []string{test.path, "template ", "row "} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
		})
	}
}

func TestCircuitInputs_NamesWhatDoesNotFit(t *testing.T) {
	changes := map[string]func(*porep.Challenge){
		"drg_parents":                           func(c *porep.Challenge) { c.DRG = c.DRG[1:] },
		"labeling proofs":                       func(c *porep.Challenge) { c.Labeling = nil },
		"drg_parents[1]: rows":                  func(c *porep.Challenge) { c.DRG[1].Rows = c.DRG[1].Rows[1:] },
		"drg_parents[2]: inclusion_proof":       func(c *porep.Challenge) { c.DRG[2].Rows[0][5] ^= 1 },
		"drg_parents[1]: rows[0]":               func(c *porep.Challenge) { c.DRG[1].Rows[0] = [32]byte{31: 0xff} },
		"comm_d_proofs: base: levels":           func(c *porep.Challenge) { c.CommD.Base = c.CommD.Base[1:] },
		"c_x: base: path[1]: hashes":            func(c *porep.Challenge) { c.Column.Inclusion.Base[1].Hashes = nil },
		"c_x: base: path[1]: index":             func(c *porep.Challenge) { c.Column.Inclusion.Base[1].Index = 8 },
		"comm_r_last_proof: sub: levels":        func(c *porep.Challenge) { c.CommRLast.Sub = c.CommRLast.Base[:1] },
		"drg_parents[3]: inclusion_proof: leaf": func(c *porep.Challenge) { c.DRG[3].Inclusion.Leaf[0] ^= 1 },
		// Columns are hashed several at a time, and still the first failure counts.
		"exp_parents[2]: inclusion_proof: leaf": func(c *porep.Challenge) {
			c.Expander[2].Inclusion.Leaf[0] ^= 1
			c.Expander[3].Inclusion.Leaf[0] ^= 1
			c.Column.Inclusion.Base[1].Hashes = nil
		},
		"exp_parents[4]: rows[1]": func(c *porep.Challenge) {
			c.Expander[4].Rows[1] = [32]byte{31: 0xff}
			c.Expander[4].Inclusion.Leaf[0] ^= 1
			c.Expander[5].Inclusion.Leaf[0] ^= 1
		},
		"c_x: inclusion_proof: leaf": func(c *porep.Challenge) { c.Column.Rows[0][0] ^= 1 },
		"comm_c":                     func(c *porep.Challenge) { c.Column.Inclusion.Root[0] ^= 1 },
		"comm_r_last":                func(c *porep.Challenge) { c.CommRLast.Root[0] ^= 1 },
	}
	for part, change := range changes {
		out := parse(t, "porep-2k-b")
		change(&out.Partitions[0][1])
		_, err := porep.CircuitInputs(&out.Statement, out.Partitions[0])
		if status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "challenge 1: "+part) {
			t.Errorf("got %v, want a refusal that names %q", err, part)
		}
	}
	out := parse(t, "porep-2k-b")
	if _, err := porep.CircuitInputs(&out.Statement, out.Partitions[0][:1]); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "challenges") {
		t.Errorf("got %v, want a refusal of one challenge", err)
	}
}

// onThreads runs a benchmark on one and two goroutines, and on two threads of a pool.
func onThreads(b *testing.B, count int, unit string, f func(ctx context.Context, threads int) error) {
	topology, err := host.ThisMachine().Topology()
	if err != nil {
		b.Fatal(err)
	}
	pool := host.NewPool(topology, 2, -1)
	defer pool.Close()
	for _, c := range []struct {
		name    string
		pool    *host.Pool
		threads int
	}{{"one", nil, 1}, {"two", nil, 2}, {"pool", pool, 2}} {
		b.Run(c.name, func(b *testing.B) {
			ctx := host.WithPool(context.Background(), c.pool)
			before := host.CPUTime()
			for b.Loop() {
				if err := f(ctx, c.threads); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds()/1e6, "M"+unit+"/s")
			b.ReportMetric((host.CPUTime()-before).Seconds()/float64(b.N)*1e3, "cpu-ms/op")
		})
	}
}

func BenchmarkExpand(b *testing.B) {
	out := parse(b, "porep-2k-a")
	p, w := expand(b, &out.Statement, out.Partitions[0], 1)
	in, err := porep.CircuitInputs(&out.Statement, out.Partitions[0])
	if err != nil {
		b.Fatal(err)
	}
	onThreads(b, p.AuxCount(), "aux", func(ctx context.Context, threads int) error { return p.Expand(ctx, in, w, threads) })
}

func BenchmarkEvaluate(b *testing.B) {
	out := parse(b, "porep-2k-a")
	p, w := expand(b, &out.Statement, out.Partitions[0], 1)
	onThreads(b, p.ConstraintCount(), "rows", func(ctx context.Context, threads int) error { return p.Check(ctx, w, threads) })
}
