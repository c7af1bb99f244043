package poseidon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

const vectors = "../../../tests/vectors/vectors/"

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func hexOf(e fr.Element) string {
	var b [32]byte
	fr.LittleEndian.PutElement(&b, e)
	return hex.EncodeToString(b[:])
}

func hexAll(list []fr.Element) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = hexOf(e)
	}
	return out
}

func elements(t testing.TB, list []string) []fr.Element {
	t.Helper()
	out := make([]fr.Element, len(list))
	for i, s := range list {
		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != 32 {
			t.Fatalf("scalar %q", s)
		}
		if out[i], err = fr.LittleEndian.Element((*[32]byte)(raw)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func flat(m [][]fr.Element) []fr.Element { return slices.Concat(m...) }

func digest(list []fr.Element) string {
	h := sha256.New()
	var b [32]byte
	for _, e := range list {
		fr.LittleEndian.PutElement(&b, e)
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Goal: every constant that the circuit and the hash use equals neptune's.
func TestParametersOf_Vectors(t *testing.T) {
	for _, arity := range []int{2, 4, 8, 11} {
		t.Run(fmt.Sprint(arity), func(t *testing.T) {
			var want struct {
				RoundConstants []string `json:"round_constants"`
				MDS            []string `json:"mds"`
				Compressed     []string `json:"compressed_round_constants"`
				PreSparse      []string `json:"pre_sparse"`
				Sparse         []struct {
					WHat  []string `json:"w_hat"`
					VRest []string `json:"v_rest"`
				} `json:"sparse"`
			}
			readJSON(t, fmt.Sprintf("%sposeidon_constants_%d.json", vectors, arity), &want)
			p := ParametersOf(arity)
			compare := func(what string, got []fr.Element, want []string) {
				t.Helper()
				if !slices.Equal(hexAll(got), want) {
					t.Errorf("%s differ", what)
				}
			}
			compare("round constants", p.RoundConstants, want.RoundConstants)
			compare("mds", flat(p.MDS), want.MDS)
			compare("compressed round constants", p.CompressedRoundConstants, want.Compressed)
			compare("pre-sparse", flat(p.PreSparse), want.PreSparse)
			if len(p.Sparse) != len(want.Sparse) {
				t.Fatalf("sparse matrices: want %d, got %d", len(want.Sparse), len(p.Sparse))
			}
			for i, s := range p.Sparse {
				compare(fmt.Sprintf("sparse %d w_hat", i), s.WHat, want.Sparse[i].WHat)
				compare(fmt.Sprintf("sparse %d v_rest", i), s.VRest, want.Sparse[i].VRest)
			}
		})
	}
}

// Goal: hashes, round numbers, tags and digests equal the reference's, by the fast and by the plain path.
func TestHash_Vectors(t *testing.T) {
	type counted struct {
		Count    int    `json:"count"`
		Matrices int    `json:"matrices"`
		SHA256   string `json:"sha256"`
	}
	var want map[string]struct {
		Arity          int     `json:"arity"`
		Width          int     `json:"width"`
		FullRounds     int     `json:"full_rounds"`
		PartialRounds  int     `json:"partial_rounds"`
		DomainTag      string  `json:"domain_tag"`
		RoundConstants counted `json:"round_constants"`
		MDS            counted `json:"mds_row_major"`
		Compressed     counted `json:"compressed_round_constants"`
		PreSparse      counted `json:"pre_sparse_row_major"`
		Sparse         counted `json:"sparse"`
		Vectors        []struct {
			Inputs []string `json:"inputs"`
			Hash   string   `json:"hash"`
		} `json:"vectors"`
	}
	readJSON(t, vectors+"poseidon.json", &want)
	if len(want) != 4 {
		t.Fatalf("want 4 arities, got %d", len(want))
	}
	for _, w := range want {
		t.Run(fmt.Sprint(w.Arity), func(t *testing.T) {
			p := ParametersOf(w.Arity)
			if p.Width != w.Width || p.FullRounds != w.FullRounds || p.PartialRounds != w.PartialRounds || hexOf(p.DomainTag) != w.DomainTag {
				t.Errorf("want %d %d %d %s, got %d %d %d %s", w.Width, w.FullRounds, w.PartialRounds, w.DomainTag,
					p.Width, p.FullRounds, p.PartialRounds, hexOf(p.DomainTag))
			}
			var sparse []fr.Element
			for _, s := range p.Sparse {
				sparse = append(append(sparse, s.WHat...), s.VRest...)
			}
			if len(p.Sparse) != w.Sparse.Matrices {
				t.Errorf("sparse matrices: want %d, got %d", w.Sparse.Matrices, len(p.Sparse))
			}
			for what, pair := range map[string]struct {
				got  []fr.Element
				want counted
			}{
				"round constants": {p.RoundConstants, w.RoundConstants}, "mds": {flat(p.MDS), w.MDS},
				"compressed": {p.CompressedRoundConstants, w.Compressed}, "pre-sparse": {flat(p.PreSparse), w.PreSparse},
				"sparse": {sparse, w.Sparse},
			} {
				if len(pair.got) != pair.want.Count || digest(pair.got) != pair.want.SHA256 {
					t.Errorf("%s: want %d %s, got %d %s", what, pair.want.Count, pair.want.SHA256, len(pair.got), digest(pair.got))
				}
			}
			if len(w.Vectors) == 0 {
				t.Fatal("no vectors")
			}
			for i, v := range w.Vectors {
				in := elements(t, v.Inputs)
				if got := hexOf(Hash(in)); got != v.Hash {
					t.Errorf("vector %d: want %s, got %s", i, v.Hash, got)
				}
				if got := hexOf(plain(in)); got != v.Hash {
					t.Errorf("vector %d, plain: want %s, got %s", i, v.Hash, got)
				}
			}
		})
	}
}

// plain is Poseidon as the paper states it: constants, S-box, mixing, round by round.
func plain(in []fr.Element) fr.Element {
	p := ParametersOf(len(in))
	state := append([]fr.Element{p.DomainTag}, in...)
	for r := range p.FullRounds + p.PartialRounds {
		for i := range state {
			state[i].Add(&state[i], &p.RoundConstants[r*p.Width+i])
		}
		boxed := len(state)
		if r >= p.FullRounds/2 && r < p.FullRounds/2+p.PartialRounds {
			boxed = 1
		}
		for i := range boxed {
			x := state[i]
			for range 4 {
				state[i].Mul(&state[i], &x)
			}
		}
		state = matrix(p.MDS).applyRow(state)
	}
	return state[1]
}

// Goal: the fast path is the plain permutation for every arity, also at the edges of the field.
func TestHash_EqualsPlain(t *testing.T) {
	for arity := 1; arity <= MaxArity; arity++ {
		if arity > 11 && arity != 15 && arity != 16 && arity != 24 { // both kinds of mixing are among them
			continue
		}
		var one, minusOne fr.Element
		one.SetOne()
		minusOne.Neg(&one)
		cases := [][]fr.Element{make([]fr.Element, arity), make([]fr.Element, arity), make([]fr.Element, arity), make([]fr.Element, arity)}
		for i := range arity {
			cases[1][i] = minusOne
			cases[2][i].SetUint64(uint64(i))
			cases[3][i].MustSetRandom()
		}
		for i, in := range cases {
			if got, want := Hash(in), plain(in); got != want {
				t.Errorf("arity %d, case %d: want %s, got %s", arity, i, hexOf(want), hexOf(got))
			}
		}
	}
}

// Source: neptune's own table of partial rounds by width (always 8 full rounds).
func TestRoundNumbers(t *testing.T) {
	for width, want := range map[int]int{2: 55, 3: 55, 4: 56, 5: 56, 6: 56, 7: 56, 8: 57, 9: 57, 10: 57, 11: 57, 12: 57,
		13: 57, 14: 57, 15: 57, 16: 59, 17: 59, 25: 59, 37: 60, 65: 61} {
		if full, partial := roundNumbers(width); full != 8 || partial != want {
			t.Errorf("width %d: want 8 and %d, got %d and %d", width, want, full, partial)
		}
	}
}

func TestHash_NoAllocation(t *testing.T) {
	in := make([]fr.Element, 8)
	Hash(in)
	if n := testing.AllocsPerRun(10, func() { Hash(in) }); n != 0 {
		t.Errorf("want no allocation, got %v", n)
	}
}

func TestParametersOf_BadArity(t *testing.T) {
	for _, arity := range []int{-1, 0, MaxArity + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("arity %d: want a panic", arity)
				}
			}()
			ParametersOf(arity)
		}()
	}
}

func BenchmarkHash(b *testing.B) {
	for _, arity := range []int{2, 8, 11} {
		b.Run(fmt.Sprint(arity), func(b *testing.B) {
			in := make([]fr.Element, arity)
			for i := range in {
				in[i].MustSetRandom()
			}
			Hash(in)
			b.ReportAllocs()
			for b.Loop() {
				in[0] = Hash(in)
			}
		})
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, arity := range []int{2, 8, 11} {
		b.Run(fmt.Sprint(arity), func(b *testing.B) {
			for b.Loop() {
				generate(arity)
			}
		})
	}
}

// TestHashAll: many hashes at once are each by itself, whatever their number and arity.
func TestHashAll(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	minusOne := fr.One()
	minusOne.Neg(&minusOne)
	for _, arity := range []int{1, 2, 4, 8, 11, 16, 17, 18, 24} {
		for _, count := range []int{0, 1, 3, 8, 9, 20} {
			in := make([][]fr.Element, count)
			for i := range in {
				in[i] = make([]fr.Element, arity)
				for j := range in[i] {
					switch random.IntN(8) {
					case 0: // zero
					case 1:
						in[i][j] = minusOne
					default:
						in[i][j].SetUint64(random.Uint64())
						in[i][j].Mul(&in[i][j], &minusOne).Inverse(&in[i][j])
					}
				}
			}
			got := make([]fr.Element, count)
			HashAll(got, in)
			for i := range in {
				if want := Hash(in[i]); got[i] != want {
					t.Fatalf("arity %d, hash %d of %d: want %v, got %v", arity, i, count, want, got[i])
				}
			}
		}
	}
}
