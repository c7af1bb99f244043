package synthetic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors/"

// longTests says whether tests that take minutes run.
var longTests = os.Getenv("SEALC2_LONG") == "1"

func shape(t testing.TB, name string) *porep.Shape {
	t.Helper()
	s, err := porep.ShapeByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func makeSector(t testing.TB, o Options) *Sector {
	t.Helper()
	s, err := Make(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// documents are the C1 output and the statement file as bytes.
func documents(t testing.TB, s *Sector) (document, statement []byte) {
	t.Helper()
	document = s.Output.AppendJSON(nil)
	if limit := s.MaxDocumentBytes(); len(document) > limit {
		t.Errorf("the C1 output has %d bytes, more than the bound of %d", len(document), limit)
	}
	statement, err := s.StatementJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	return document, statement
}

// satisfies proves nothing but runs a partition through the circuit: all rows hold, and the circuit's inputs
// are those that follow from the statement.
func satisfies(t testing.TB, st *porep.Statement, k int, challenges []porep.Challenge) {
	t.Helper()
	p := porep.Program(st.Shape)
	in, err := porep.CircuitInputs(st, challenges)
	if err != nil {
		t.Fatal(err)
	}
	w := &circuit.Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
	begin := time.Now()
	if err := p.Expand(context.Background(), in, w, 2); err != nil {
		t.Fatal(err)
	}
	expanded := time.Since(begin)
	if err := p.Check(context.Background(), w, 2); err != nil {
		t.Error(err)
	}
	t.Logf("%s partition %d: expand %.2f s, all of %d rows checked %.2f s", st.Shape.Name, k, expanded.Seconds(), p.ConstraintCount(), (time.Since(begin) - expanded).Seconds())
	public, err := st.PublicInputs(k)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(public, w.Inputs[1:]) {
		t.Errorf("partition %d: public inputs of the statement are not those of the circuit", k)
	}
}

// Goal: a synthetic sector goes through everything that a sealed one goes through.
// Method: small shapes, both versions: parse with ids, then the circuit with every row checked.
func TestMake_ParsesAndSatisfiesTheCircuit(t *testing.T) {
	for _, test := range []struct {
		shape   string
		version porep.APIVersion
		seed    uint64
	}{
		{"2KiB", porep.V1_0, 1}, {"2KiB", porep.V1_1, 2}, {"4KiB", porep.V1_0, 3}, {"4KiB", porep.V1_1, 4},
		{"16KiB", porep.V1_1, 5}, {"32KiB", porep.V1_1, 1<<64 - 1}, {"8MiB", porep.V1_0, 6}, {"512MiB", porep.V1_1, 0},
	} {
		t.Run(fmt.Sprint(test.shape, " ", test.version), func(t *testing.T) {
			s := makeSector(t, Options{Shape: shape(t, test.shape), Version: test.version, Seed: test.seed, Threads: 2})
			document, statement := documents(t, s)
			out, err := c1.Parse(document, c1.Options{Statement: statement, IDs: &s.IDs})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(out, s.Output) {
				t.Error("the parsed C1 output is not the one that was made")
			}
			checkVanilla(t, s)
			for k, challenges := range out.Partitions {
				satisfies(t, &out.Statement, k, challenges)
			}
		})
	}
}

// checkVanilla recomputes every label, column hash and path, and comm_r.
func checkVanilla(t *testing.T, s *Sector) {
	t.Helper()
	st := &s.Output.Statement
	rise := func(p *porep.MerkleProof, node func(children []porep.Hash) porep.Hash) {
		t.Helper()
		at := p.Leaf
		for _, e := range slices.Concat(p.Base, p.Sub, p.Top) {
			at = node(slices.Insert(slices.Clone(e.Hashes), e.Index, at))
		}
		if at != p.Root {
			t.Errorf("a path does not lead to its root")
		}
	}
	poseidonOf := func(in []porep.Hash) (out porep.Hash) {
		elements := make([]fr.Element, len(in))
		for i := range in {
			var err error
			if elements[i], err = fr.LittleEndian.Element(&in[i]); err != nil {
				t.Error(err)
			}
		}
		fr.LittleEndian.PutElement(&out, poseidon.Hash(elements))
		return out
	}
	column := func(c *porep.ColumnProof) {
		t.Helper()
		if c.Inclusion.Leaf != poseidonOf(c.Rows) || c.Inclusion.Root != s.CommC {
			t.Errorf("column %d is not the leaf of comm_c that is opened", c.Index)
		}
		rise(&c.Inclusion, poseidonOf)
	}
	if want := poseidonOf([]porep.Hash{s.CommC, s.CommRLast}); st.CommR != want {
		t.Error("comm_r is not the hash of comm_c and comm_r_last")
	}
	for _, challenges := range s.Output.Partitions {
		for i := range challenges {
			c := &challenges[i]
			node := c.Labeling[0].Node
			column(&c.Column)
			for _, list := range [][]porep.ColumnProof{c.DRG, c.Expander} {
				for j := range list {
					column(&list[j])
				}
			}
			for l, p := range c.Labeling {
				if got := porep.Label(st.ReplicaID, uint32(l+1), node, p.Parents); got != c.Column.Rows[l] {
					t.Errorf("layer %d of node %d is not the label of its parents", l+1, node)
				}
			}
			if c.CommRLast.Leaf != c.Column.Rows[len(c.Labeling)-1] || c.CommRLast.Root != s.CommRLast {
				t.Errorf("node %d is not encoded", node)
			}
			rise(&c.CommRLast, poseidonOf)
			if c.CommD.Leaf != (porep.Hash{}) || c.CommD.Root != st.CommD {
				t.Errorf("node %d has data", node)
			}
			rise(&c.CommD, func(pair []porep.Hash) porep.Hash { return porep.DataNode(pair[0], pair[1]) })
		}
	}
}

// Goal: columns are right where challenged nodes are parents of challenged nodes, and where a node is
// challenged twice.
// Method: seeds of the smallest sector, where that is common, until each case was seen.
func TestMake_ChallengesThatMeet(t *testing.T) {
	s2 := shape(t, "2KiB")
	seen := map[string]bool{}
	for seed := uint64(0); len(seen) < 3; seed++ {
		if seed == 2000 {
			t.Fatalf("in %d sectors only %v", seed, seen)
		}
		s := makeSector(t, Options{Shape: s2, Version: porep.V1_1, Seed: seed})
		a, b := s.Challenges[0][0], s.Challenges[0][1]
		parents := s.Output.Statement.Graph().Parents(b)
		what := ""
		switch {
		case a == b:
			what = "twice"
		case slices.Contains(parents[:porep.DRGDegree], a):
			what = "drg parent"
		case slices.Contains(parents[porep.DRGDegree:], a):
			what = "expander parent"
		default:
			continue
		}
		if seen[what] {
			continue
		}
		seen[what] = true
		checkVanilla(t, s)
		document, _ := documents(t, s)
		if _, err := c1.Parse(document, c1.Options{}); err != nil {
			t.Error(err)
		}
		satisfies(t, &s.Output.Statement, 0, s.Output.Partitions[0])
	}
}

// Goal: the same seed makes the same bytes, whatever the threads; anything else makes another sector.
func TestMake_FollowsFromItsOptions(t *testing.T) {
	base := Options{Shape: shape(t, "32KiB"), Version: porep.V1_1, Seed: 7, Threads: 1}
	first, _ := documents(t, makeSector(t, base))
	again := base
	again.Threads = 5
	if second, _ := documents(t, makeSector(t, again)); !bytes.Equal(first, second) {
		t.Error("two runs differ")
	}
	changes := map[string]func(*Options){
		"seed":    func(o *Options) { o.Seed = 8 },
		"version": func(o *Options) { o.Version = porep.V1_0 },
		"shape":   func(o *Options) { o.Shape = shape(t, "16KiB") },
	}
	a := makeSector(t, base)
	for what, change := range changes {
		o := base
		change(&o)
		b := makeSector(t, o)
		x, y := &a.Output.Statement, &b.Output.Statement
		for name, same := range map[string]bool{
			"comm_c": a.CommC == b.CommC, "comm_r_last": a.CommRLast == b.CommRLast, "comm_r": x.CommR == y.CommR,
			"replica_id": x.ReplicaID == y.ReplicaID, "ticket": x.Ticket == y.Ticket, "seed": x.Seed == y.Seed,
			"sector_id": a.IDs.SectorID == b.IDs.SectorID, "prover_id": a.IDs.ProverID == b.IDs.ProverID,
		} {
			if same {
				t.Errorf("another %s, but the same %s", what, name)
			}
		}
	}
}

// Goal: free values differ, so that a prover that takes one sibling for another is found out.
func TestMake_SiblingsDiffer(t *testing.T) {
	s := makeSector(t, Options{Shape: shape(t, "32KiB"), Version: porep.V1_1, Seed: 7})
	for _, e := range slices.Concat(s.Output.Partitions[0][0].Column.Inclusion.Base, s.Output.Partitions[0][0].CommRLast.Base) {
		seen := map[porep.Hash]bool{}
		for _, h := range e.Hashes {
			if seen[h] {
				t.Errorf("sibling %x twice", h)
			}
			seen[h] = true
		}
	}
}

// Goal: large sectors are right, and fewer partitions are the first ones of the same sector.
// Method: 64 GiB, whose trees have all levels (32 GiB in the long tests): parts recomputed, the complete
// document parsed, comm_d against the well-known one of an empty sector of the size.
func TestMake_LargeSectors(t *testing.T) {
	commD := map[string]string{"64GiB": "e64005a6bfe3777953b8ad6ef93f0fca1049b2041654f2a411f7702799cece02"}
	if longTests {
		commD["32GiB"] = "077e5fde35c50a9303a55009e3498a4ebedff39c42b710b730d8ec7ac7afa63e"
	}
	for name := range commD {
		t.Run(name, func(t *testing.T) {
			o := Options{Shape: shape(t, name), Version: porep.V1_1, Seed: 9, Threads: 2}
			begin := time.Now()
			whole := makeSector(t, o)
			t.Logf("made in %.2f s", time.Since(begin).Seconds())
			o.Partitions = 2
			part := makeSector(t, o)
			if whole.Complete() != true || part.Complete() != false {
				t.Error("wrong about which is complete")
			}
			if !reflect.DeepEqual(part.Output.Partitions, whole.Output.Partitions[:2]) || part.Output.Statement != whole.Output.Statement {
				t.Error("two partitions are not the first two of all")
			}
			checkVanilla(t, part)
			if got := hexText(whole.Output.Statement.CommD); got != commD[name] {
				t.Errorf("comm_d %s, want %s", got, commD[name])
			}
			begin = time.Now()
			document, statement := documents(t, whole)
			t.Logf("%d bytes written in %.2f s", len(document), time.Since(begin).Seconds())
			out, err := c1.Parse(document, c1.Options{Statement: statement})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(out.Partitions, whole.Output.Partitions) {
				t.Error("the parsed partitions are not those that were made")
			}
			document, _ = documents(t, part)
			if _, err := c1.Parse(document, c1.Options{}); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "10 partitions") {
				t.Errorf("got %v for 2 of 10 partitions, want a refusal", err)
			}
		})
	}
}

// Goal: a synthetic partition of the large shapes satisfies the circuit, every row checked.
func TestMake_LargeSectorsSatisfyTheCircuit(t *testing.T) {
	if !longTests {
		t.Skip("takes minutes: set SEALC2_LONG=1")
	}
	for _, test := range []struct {
		shape     string
		version   porep.APIVersion
		partition int
	}{{"32GiB", porep.V1_1, 3}, {"64GiB", porep.V1_0, 9}} {
		t.Run(test.shape, func(t *testing.T) {
			begin := time.Now()
			s := makeSector(t, Options{Shape: shape(t, test.shape), Version: test.version, Seed: 1, Threads: 2})
			t.Logf("made in %.2f s", time.Since(begin).Seconds())
			satisfies(t, &s.Output.Statement, test.partition, s.Output.Partitions[test.partition])
			t.Logf("peak memory so far %s", host.FormatBytes(host.PeakRSS()))
		})
	}
}

// Goal: the statement file says what the reference's says. Method: the keys, and the values that depend on the
// shape alone, against those of a sealed sector with the same registered proof and zero data.
func TestStatementJSON_HasTheReferencesForm(t *testing.T) {
	_, text := documents(t, makeSector(t, Options{Shape: shape(t, "2KiB"), Version: porep.V1_1, Seed: 7}))
	reference, err := os.ReadFile(vectors + "c1/porep-2k-a/statement.json")
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	for text, v := range map[string]*map[string]any{string(text): &got, string(reference): &want} {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatal(err)
		}
	}
	own := map[string]bool{"c1_bytes": true, "c1_sha256": true, "challenges": true, "comm_c": true, "comm_r": true, "comm_r_last": true,
		"name": true, "prover_id": true, "replica_id": true, "sector_id": true, "seed": true, "ticket": true}
	for key, w := range want {
		g, ok := got[key]
		if !ok || reflect.TypeOf(g) != reflect.TypeOf(w) {
			t.Errorf("%s: got %T, want %T", key, g, w)
		} else if same := reflect.DeepEqual(g, w); same == own[key] {
			t.Errorf("%s: got %v, the sealed sector's is %v", key, g, w)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("keys that the reference does not write: %v", got)
	}
}

// Goal: test sizes get the porep_id of the reference vectors, so that the reference program takes them.
func TestMake_PorepIDOfTestSizes(t *testing.T) {
	for _, name := range []string{"porep-4k", "porep-16k", "porep-32k"} {
		text, err := os.ReadFile(vectors + "c1/" + name + "/statement.json")
		if err != nil {
			t.Fatal(err)
		}
		file, err := c1.ParseStatement(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := makeSector(t, Options{Shape: file.Shape, Version: file.Version}).Output.Statement.PorepID; got != file.PorepID {
			t.Errorf("%s: porep_id %x, want %x", name, got, file.PorepID)
		}
	}
}

func TestMake_Refuses(t *testing.T) {
	s2 := shape(t, "2KiB")
	for where, test := range map[string]struct {
		o    Options
		kind status.Kind
	}{
		"shape":      {Options{Version: porep.V1_1}, status.Caller},
		"version":    {Options{Shape: s2, Version: porep.V1_2}, status.Unsupported},
		"partitions": {Options{Shape: s2, Partitions: 2}, status.Caller},
	} {
		if _, err := Make(context.Background(), test.o); status.KindOf(err) != test.kind || !strings.Contains(err.Error(), where) {
			t.Errorf("got %v, want %s about %s", err, test.kind, where)
		}
	}
	if _, err := Make(context.Background(), Options{Shape: s2, Partitions: -1}); status.KindOf(err) != status.Caller {
		t.Errorf("got %v for -1 partitions", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Make(ended, Options{Shape: s2, Version: porep.V1_1}); status.KindOf(err) != status.Cancelled {
		t.Errorf("got %v, want cancelled", err)
	}
}

func TestParallel_ReturnsPanicsAsErrors(t *testing.T) {
	err := parallel(context.Background(), 100, 3, func(i int) {
		if i == 77 {
			panic("77")
		}
	})
	if status.KindOf(err) != status.Internal {
		t.Errorf("got %v, want an internal error", err)
	}
}

func BenchmarkMake32GiB(b *testing.B) {
	s32 := shape(b, "32GiB")
	for i := 0; b.Loop(); i++ {
		makeSector(b, Options{Shape: s32, Version: porep.V1_1, Seed: uint64(i), Threads: 2})
	}
}
