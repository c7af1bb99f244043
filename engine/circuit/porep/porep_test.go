package porep

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../../tests/vectors/"

func readVectors(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(vectors + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// hexHash is a Hash as the vectors write it.
type hexHash Hash

func (h *hexHash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("%q: want 64 hex digits", text)
	}
	_, err := hex.Decode(h[:], text)
	return err
}

func versionOf(t testing.TB, text string) APIVersion {
	t.Helper()
	for v := V1_0; v <= V1_2; v++ {
		if v.String() == text {
			return v
		}
	}
	t.Fatalf("api version %q", text)
	return 0
}

func kindOf(t testing.TB, features []string) ChallengeKind {
	t.Helper()
	switch strings.Join(features, " ") {
	case "":
		return Interactive
	case "SyntheticPoRep":
		return Synthetic
	case "NonInteractivePoRep":
		return NonInteractive
	}
	t.Fatalf("api features %q", features)
	return 0
}

func scalarText(e *fr.Element) string {
	var h Hash
	fr.LittleEndian.PutElement(&h, *e)
	return hexText(&h)
}

func TestRegistered_Vectors(t *testing.T) {
	var want []struct {
		Features   []string `json:"api_features"`
		Version    string   `json:"api_version"`
		Circuit    string   `json:"circuit_identifier"`
		Minimum    int      `json:"minimum_challenges"`
		Name       string   `json:"name"`
		Partitions int      `json:"partitions"`
		PorepID    hexHash  `json:"porep_id"`
		SectorSize uint64   `json:"sector_size"`
	}
	readVectors(t, "vectors/registered_seal_proofs.json", &want)
	if len(want) != 20 || len(RegisteredProofs()) != 20 {
		t.Fatalf("want 20 proofs, got %d in the vectors, %d here", len(want), len(RegisteredProofs()))
	}
	for i, w := range want {
		r, err := RegisteredByNumber(int32(i))
		if err != nil {
			t.Fatal(err)
		}
		byName, err := RegisteredByName(w.Name)
		if err != nil || byName != r || r.Number != int32(i) {
			t.Errorf("%s: want number %d, got %v, %v", w.Name, i, byName, err)
		}
		s := r.Shape
		if s.SectorBytes != w.SectorSize || r.Version != versionOf(t, w.Version) || r.Kind != kindOf(t, w.Features) || r.PorepID() != Hash(w.PorepID) {
			t.Errorf("%s: got %+v", w.Name, r)
		}
		if s.ParamsBaseName() != w.Circuit || s.PartitionsOf(r.Kind) != w.Partitions || s.MinChallengesOf(r.Kind) != w.Minimum {
			t.Errorf("%s: got %s, %d partitions, at least %d challenges", w.Name, s.ParamsBaseName(), s.PartitionsOf(r.Kind), s.MinChallengesOf(r.Kind))
		}
		if s.PartitionsOf(r.Kind)*s.ChallengesPerPartition < w.Minimum {
			t.Errorf("%s: fewer challenges than the minimum", w.Name)
		}
		if want := "StackedDrg" + s.Name + "V1"; r.Tag != want {
			t.Errorf("%s: want tag %s, got %s", w.Name, want, r.Tag)
		}
	}
	for _, n := range []int32{-1, 20} {
		if _, err := RegisteredByNumber(n); status.KindOf(err) != status.Input {
			t.Errorf("number %d: got %v", n, err)
		}
	}
	if _, err := RegisteredByName("StackedDrg4KiBV1"); status.KindOf(err) != status.Input {
		t.Errorf("unknown name: got %v", err)
	}
}

func TestShapes_Vectors(t *testing.T) {
	files, err := filepath.Glob(vectors + "shapes/*.json")
	if err != nil || len(files) < len(Shapes()) {
		t.Fatalf("want a file for each of %d shapes, got %d, %v", len(Shapes()), len(files), err)
	}
	for _, s := range Shapes() {
		var want struct {
			Circuit struct {
				Challenges int    `json:"challenges_per_partition"`
				Layers     int    `json:"layers"`
				Identifier string `json:"params_cache_identifier"`
				Partitions int    `json:"partitions"`
				SectorSize uint64 `json:"sector_size"`
				Tree       string `json:"tree_shape"`
			} `json:"circuit"`
			Inputs int `json:"inputs"`
		}
		readVectors(t, "shapes/"+s.OracleName+".json", &want)
		c := want.Circuit
		if s.ChallengesPerPartition != c.Challenges || s.Layers != c.Layers || s.ParamsBaseName() != c.Identifier ||
			s.Partitions != c.Partitions || s.SectorBytes != c.SectorSize || "merkletree-poseidon_hasher-"+s.TreeName() != c.Tree {
			t.Errorf("%s: want %+v, got %+v %s", s.Name, c, s, s.ParamsBaseName())
		}
		if n := 1 + fixedInputs + inputsPerChallenge*s.ChallengesPerPartition; n != want.Inputs {
			t.Errorf("%s: want %d inputs, got %d", s.Name, want.Inputs, n)
		}
		leaves := uint64(1) << (3 * s.BaseDepth())
		leaves *= uint64(max(1, s.SubArity) * max(1, s.TopArity))
		if leaves != s.Nodes() || uint64(1)<<s.DataDepth() != s.Nodes() {
			t.Errorf("%s: %d nodes, but trees of depth %d and %d", s.Name, s.Nodes(), s.BaseDepth(), s.DataDepth())
		}
		byName, err1 := ShapeByName(s.Name)
		bySize, err2 := ShapeBySize(s.SectorBytes)
		if byName != s || bySize != s || err1 != nil || err2 != nil {
			t.Errorf("%s: not found again", s.Name)
		}
	}
	if _, err := ShapeByName("2kib"); status.KindOf(err) != status.Caller {
		t.Errorf("unknown name: got %v", err)
	}
	if _, err := ShapeBySize(1 << 30); status.KindOf(err) != status.Unsupported {
		t.Errorf("unknown size: got %v", err)
	}
}

func TestGraph_Vectors(t *testing.T) {
	var want []struct {
		Name     string      `json:"registered_seal_proof"`
		Seed     string      `json:"drg_seed"`
		Elements string      `json:"feistel_elements"`
		Keys     []string    `json:"feistel_keys"`
		Permute  [][2]uint64 `json:"feistel_permute"`
		Parents  []struct {
			Node uint32                 `json:"node"`
			DRG  [DRGDegree]uint32      `json:"drg"`
			Exp  [ExpanderDegree]uint32 `json:"exp"`
		} `json:"parents"`
	}
	readVectors(t, "vectors/parents.json", &want)
	if len(want) != 6 {
		t.Fatalf("want 6 graphs, got %d", len(want))
	}
	for _, w := range want {
		r, err := RegisteredByName(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGraph(r.Shape, r.PorepID(), r.Version)
		if got := hex.EncodeToString(g.drgSeed[:]); got != w.Seed {
			t.Errorf("%s: want seed %s, got %s", w.Name, w.Seed, got)
		}
		if got := strconv.FormatUint(g.edges(), 10); got != w.Elements {
			t.Errorf("%s: want %s edges, got %s", w.Name, w.Elements, got)
		}
		for i, k := range g.feistelKeys {
			if got := strconv.FormatUint(k, 10); got != w.Keys[i] {
				t.Errorf("%s: key %d: want %s, got %s", w.Name, i, w.Keys[i], got)
			}
		}
		for _, pair := range w.Permute {
			if got := g.permute(pair[0]); got != pair[1] {
				t.Errorf("%s: edge %d: want %d, got %d", w.Name, pair[0], pair[1], got)
			}
		}
		if len(w.Parents) < 20 || len(w.Permute) == 0 {
			t.Fatalf("%s: too few vectors", w.Name)
		}
		for _, p := range w.Parents {
			if got := g.DRGParents(p.Node); got != p.DRG {
				t.Errorf("%s: node %d: want drg %d, got %d", w.Name, p.Node, p.DRG, got)
			}
			if got := g.ExpanderParents(p.Node); got != p.Exp {
				t.Errorf("%s: node %d: want expander %d, got %d", w.Name, p.Node, p.Exp, got)
			}
			if got := g.Parents(p.Node); !slices.Equal(got[:DRGDegree], p.DRG[:]) || !slices.Equal(got[DRGDegree:], p.Exp[:]) {
				t.Errorf("%s: node %d: parents in another order", w.Name, p.Node)
			}
		}
	}
}

// Goal: for every shape, DRG parents come before their node with the predecessor in its place, and the edges
// of the small graphs are a permutation.
func TestGraph_Properties(t *testing.T) {
	for _, s := range Shapes() {
		for _, version := range []APIVersion{V1_0, V1_1, V1_2} {
			g := NewGraph(s, Hash{1, 2, 3}, version)
			place := 0
			if version == V1_0 {
				place = DRGDegree - 1
			}
			nodes := []uint32{1, 2, 3, uint32(s.Nodes() - 1), uint32(s.Nodes() / 2)}
			for range 200 {
				nodes = append(nodes, uint32(1+rand.Uint64N(s.Nodes()-1)))
			}
			for _, n := range nodes {
				for i, p := range g.DRGParents(n) {
					if p >= n || n > 1 && i == place && p != n-1 {
						t.Fatalf("%s %s: node %d has parent %d at %d", s.Name, version, n, p, i)
					}
				}
			}
			if s.Nodes() > 1<<10 {
				continue
			}
			seen := make([]bool, g.edges())
			for e := range g.edges() {
				p := g.permute(e)
				if seen[p] {
					t.Fatalf("%s: edge %d twice", s.Name, p)
				}
				seen[p] = true
			}
		}
	}
}

func TestChallenges_Vectors(t *testing.T) {
	var want []struct {
		Kind       string   `json:"kind"`
		Size       uint64   `json:"sector_size"`
		Partition  int      `json:"partition"`
		Replica    hexHash  `json:"replica_id"`
		CommR      hexHash  `json:"comm_r"`
		Seed       hexHash  `json:"seed"`
		Challenges []uint32 `json:"challenges"`
	}
	readVectors(t, "vectors/challenges.json", &want)
	kinds := map[string]ChallengeKind{"interactive": Interactive, "synthetic": Synthetic, "non_interactive": NonInteractive}
	seen := map[string]int{}
	for i, w := range want {
		shape, err := ShapeBySize(w.Size)
		if err != nil {
			t.Fatal(err)
		}
		kind, ok := kinds[w.Kind]
		if !ok {
			t.Fatalf("kind %q", w.Kind)
		}
		seen[w.Kind]++
		s := Statement{Shape: shape, Kind: kind, ReplicaID: Hash(w.Replica), CommR: Hash(w.CommR), Seed: Hash(w.Seed)}
		got, err := s.Challenges(w.Partition)
		if err != nil || !slices.Equal(got, w.Challenges) {
			t.Errorf("case %d, %s %s partition %d: want %d, got %d, %v", i, shape.Name, w.Kind, w.Partition, w.Challenges, got, err)
		}
	}
	if len(seen) != 3 || len(want) < 30 {
		t.Errorf("want at least 30 cases of 3 kinds, got %d, %v", len(want), seen)
	}
}

func TestChallengeOf(t *testing.T) {
	for range 1000 {
		var number [32]byte
		for i := range number {
			number[i] = byte(rand.Uint32())
		}
		nodes := 2 + rand.Uint64N(1<<32-2)
		bigEndian := slices.Clone(number[:])
		slices.Reverse(bigEndian)
		want := new(big.Int).Mod(new(big.Int).SetBytes(bigEndian), new(big.Int).SetUint64(nodes-1)).Uint64() + 1
		if got := challengeOf(&number, nodes); uint64(got) != want {
			t.Fatalf("%x of %d nodes: want %d, got %d", number, nodes, want, got)
		}
	}
}

func TestHashes_Vectors(t *testing.T) {
	var want struct {
		ReplicaID []struct {
			Prover  hexHash `json:"prover_id"`
			Sector  string  `json:"sector_id"`
			Ticket  hexHash `json:"ticket"`
			CommD   hexHash `json:"comm_d"`
			PorepID hexHash `json:"porep_id"`
			Replica hexHash `json:"replica_id"`
		} `json:"replica_id"`
		CommR []struct {
			CommC     hexHash `json:"comm_c"`
			CommRLast hexHash `json:"comm_r_last"`
			CommR     hexHash `json:"comm_r"`
		} `json:"comm_r"`
		Nodes []struct {
			Left  hexHash `json:"left"`
			Right hexHash `json:"right"`
			Node  hexHash `json:"node"`
		} `json:"comm_d_tree_node"`
		Labels []struct {
			Name    string    `json:"registered_seal_proof"`
			Replica hexHash   `json:"replica_id"`
			Layer1  []hexHash `json:"layer_1"`
			Layer2  []hexHash `json:"layer_2"`
		} `json:"labels_2k"`
	}
	readVectors(t, "vectors/hashes.json", &want)
	if len(want.ReplicaID) == 0 || len(want.CommR) == 0 || len(want.Nodes) == 0 || len(want.Labels) != 2 {
		t.Fatal("vectors are missing")
	}
	for i, w := range want.ReplicaID {
		sector, err := strconv.ParseUint(w.Sector, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := ReplicaID(Hash(w.Prover), sector, Hash(w.Ticket), Hash(w.CommD), Hash(w.PorepID)); got != Hash(w.Replica) {
			t.Errorf("replica id %d: want %x, got %x", i, w.Replica, got)
		}
	}
	for i, w := range want.CommR {
		if got, err := CommR(Hash(w.CommC), Hash(w.CommRLast)); err != nil || got != Hash(w.CommR) {
			t.Errorf("comm_r %d: want %x, got %x, %v", i, w.CommR, got, err)
		}
	}
	for i, w := range want.Nodes {
		if got := DataNode(Hash(w.Left), Hash(w.Right)); got != Hash(w.Node) {
			t.Errorf("node %d: want %x, got %x", i, w.Node, got)
		}
	}
	for _, w := range want.Labels {
		r, err := RegisteredByName(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGraph(r.Shape, r.PorepID(), r.Version)
		layers := [2][]Hash{make([]Hash, 64), make([]Hash, 64)}
		if len(w.Layer1) != 64 || len(w.Layer2) != 64 {
			t.Fatalf("%s: labels are missing", w.Name)
		}
		for layer, vector := range [][]hexHash{w.Layer1, w.Layer2} {
			for node := range uint32(64) {
				var parents []Hash
				if node > 0 {
					for _, p := range g.DRGParents(node) {
						parents = append(parents, layers[layer][p])
					}
					if layer > 0 {
						for _, p := range g.ExpanderParents(node) {
							parents = append(parents, layers[layer-1][p])
						}
					}
				}
				label := Label(Hash(w.Replica), uint32(layer+1), uint64(node), parents)
				layers[layer][node] = label
				if label != Hash(vector[node]) {
					t.Fatalf("%s: layer %d, node %d: want %x, got %x", w.Name, layer+1, node, vector[node], label)
				}
				if len(parents) > 0 {
					var all []Hash
					for i := range LabelParents {
						all = append(all, parents[i%len(parents)])
					}
					if Label(Hash(w.Replica), uint32(layer+1), uint64(node), all) != label {
						t.Fatalf("layer %d, node %d: the whole preimage gives another label", layer+1, node)
					}
				}
			}
		}
	}
}

// sealed is a statement.json beside a C1.
type sealed struct {
	Registered *string    `json:"registered_seal_proof"`
	Features   []string   `json:"api_features"`
	Version    string     `json:"api_version"`
	SectorSize uint64     `json:"sector_size"`
	SectorID   uint64     `json:"sector_id"`
	Prover     hexHash    `json:"prover_id"`
	PorepID    hexHash    `json:"porep_id"`
	CommC      hexHash    `json:"comm_c"`
	CommRLast  hexHash    `json:"comm_r_last"`
	CommD      hexHash    `json:"comm_d"`
	CommR      hexHash    `json:"comm_r"`
	Replica    hexHash    `json:"replica_id"`
	Ticket     hexHash    `json:"ticket"`
	Seed       hexHash    `json:"seed"`
	Identifier string     `json:"params_cache_identifier"`
	Challenges [][]uint32 `json:"challenges"`
}

// statement builds the Statement of a sealed sector.
func (w *sealed) statement(t testing.TB) *Statement {
	t.Helper()
	shape, err := ShapeBySize(w.SectorSize)
	if err != nil {
		t.Fatal(err)
	}
	s := &Statement{
		Shape: shape, Version: versionOf(t, w.Version), Kind: kindOf(t, w.Features), PorepID: Hash(w.PorepID),
		CommD: Hash(w.CommD), CommR: Hash(w.CommR), ReplicaID: Hash(w.Replica), Ticket: Hash(w.Ticket), Seed: Hash(w.Seed),
	}
	if w.Registered != nil {
		if s.Registered, err = RegisteredByName(*w.Registered); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func sealedCase(t testing.TB, name string) (*sealed, *Statement) {
	t.Helper()
	var w sealed
	readVectors(t, "c1/"+name+"/statement.json", &w)
	return &w, w.statement(t)
}

// Goal: everything public about a sector follows from its statement as in the reference, for each sealed
// sector: kinds V1, V1_1, synthetic and non-interactive, and all four tree shapes.
func TestStatement_SealedSectors(t *testing.T) {
	dirs, err := filepath.Glob(vectors + "c1/*/statement.json")
	if err != nil || len(dirs) < 9 {
		t.Fatalf("want 9 sectors, got %d, %v", len(dirs), err)
	}
	kinds, trees := map[ChallengeKind]bool{}, map[string]bool{}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			w, s := sealedCase(t, name)
			kinds[s.Kind], trees[s.Shape.TreeName()] = true, true
			if err := s.Validate(); err != nil {
				t.Error(err)
			}
			if err := s.MatchReplicaID(w.SectorID, Hash(w.Prover)); err != nil {
				t.Error(err)
			}
			if got := s.Shape.ParamsBaseName(); got != w.Identifier {
				t.Errorf("want %s, got %s", w.Identifier, got)
			}
			if got, err := CommR(Hash(w.CommC), Hash(w.CommRLast)); err != nil || got != s.CommR {
				t.Errorf("comm_r: want %x, got %x, %v", s.CommR, got, err)
			}
			var witness struct {
				Partitions []struct {
					Generated   []string `json:"public_inputs_generated"`
					Synthesised []string `json:"public_inputs_synthesised"`
				} `json:"partitions"`
			}
			readVectors(t, "c1/"+name+"/witness.json", &witness)
			if n := s.PartitionCount(); n != len(w.Challenges) || n != len(witness.Partitions) {
				t.Fatalf("want %d and %d partitions, got %d", len(w.Challenges), len(witness.Partitions), n)
			}
			for k, p := range witness.Partitions {
				challenges, err := s.Challenges(k)
				if err != nil || !slices.Equal(challenges, w.Challenges[k]) {
					t.Errorf("partition %d: want challenges %d, got %d, %v", k, w.Challenges[k], challenges, err)
				}
				inputs, err := s.PublicInputs(k)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]string, len(inputs))
				for i := range inputs {
					got[i] = scalarText(&inputs[i])
				}
				if !slices.Equal(got, p.Generated) || !slices.Equal(got, p.Synthesised) {
					t.Errorf("partition %d: want %v, got %v", k, p.Generated, got)
				}
			}
		})
	}
	if len(kinds) != 3 || len(trees) != 4 {
		t.Errorf("want 3 kinds and 4 tree shapes, got %v, %v", kinds, trees)
	}
}

// Goal: what the reference refuses is refused, with the field's name.
func TestStatement_Refused(t *testing.T) {
	modulus := Hash{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53,
		0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73}
	below := modulus
	below[0] = 0
	for name, change := range map[string]func(*Statement){
		"shape":          func(s *Statement) { s.Shape = nil },
		"sector size":    func(s *Statement) { s.Shape = shape8MiB },
		"api_version":    func(s *Statement) { s.Version = V1_0 },
		"challenge kind": func(s *Statement) { s.Version, s.Kind = V1_2, 7 },
		"porep_id":       func(s *Statement) { s.PorepID[9] = 1 },
		"comm_d":         func(s *Statement) { s.CommD = Hash{} },
		"comm_r":         func(s *Statement) { s.CommR = Hash{} },
		"comm_d ":        func(s *Statement) { s.CommD = modulus },
		"comm_r ":        func(s *Statement) { s.CommR = modulus },
		"replica_id":     func(s *Statement) { s.ReplicaID = modulus },
		"api_version ":   func(s *Statement) { s.Registered, s.Kind = nil, Synthetic },
		"api_version  ":  func(s *Statement) { s.Registered, s.Version = nil, 3 },
	} {
		_, s := sealedCase(t, "porep-2k-a")
		change(s)
		err := s.Validate()
		if status.KindOf(err) != status.Input || !strings.Contains(err.Error(), ": "+strings.TrimSpace(name)+":") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, s := sealedCase(t, "porep-2k-a")
	s.CommD, s.ReplicaID, s.Seed, s.Ticket = below, Hash{}, Hash{}, Hash{}
	if err := s.Validate(); err != nil {
		t.Errorf("edge values: %v", err)
	}

	w, s := sealedCase(t, "porep-2k-a")
	if err := s.MatchReplicaID(w.SectorID+1, Hash(w.Prover)); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "replica_id") {
		t.Errorf("other sector: got %v", err)
	}
	for _, k := range []int{-1, 1} {
		if _, err := s.PublicInputs(k); status.KindOf(err) != status.Caller {
			t.Errorf("partition %d: got %v", k, err)
		}
	}
	s.CommR = modulus
	if _, err := s.PublicInputs(0); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "comm_r") {
		t.Errorf("comm_r = r: got %v", err)
	}
	if _, err := CommR(modulus, Hash{}); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "comm_c") {
		t.Errorf("comm_c = r: got %v", err)
	}
	if _, err := CommR(Hash{}, modulus); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "comm_r_last") {
		t.Errorf("comm_r_last = r: got %v", err)
	}
}

func BenchmarkPublicInputs(b *testing.B) {
	for _, kind := range []ChallengeKind{Interactive, Synthetic, NonInteractive} {
		b.Run(kind.String(), func(b *testing.B) {
			s := Statement{Shape: shape32GiB, Version: V1_2, Kind: kind, CommD: Hash{1}, CommR: Hash{2}}
			for b.Loop() {
				if _, err := s.PublicInputs(9); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
