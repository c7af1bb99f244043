package cpu

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
)

var tinyNames = []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"}

// tiny is a tiny circuit of the vectors: full vectors, parameters and results.
type tiny struct {
	Domain  int
	a, b, c []fr.Element // padded to the domain
	inputs  []fr.Element
	aux     []fr.Element
	density circuit.Density
	h       []fr.Element
	result  tinyProof
	srs     *memorySRS
}

type tinyProof struct {
	ASum      string `json:"a_sum"`
	B1Sum     string `json:"b_g1_sum"`
	B2Sum     string `json:"b_g2_sum"`
	HSum      string `json:"h_sum"`
	LSum      string `json:"l_sum"`
	R, S      string
	H         []string `json:"h_coefficients"`
	Proof     string
	ProofZero string   `json:"proof_with_r_and_s_zero"`
	Inputs    []string `json:"public_inputs"`
}

func scalarOf(t testing.TB, s string) (e fr.Element) {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(b)
	if err := e.SetBytesCanonical(b); err != nil {
		t.Fatal(err)
	}
	return e
}

func scalarsOf(t testing.TB, ss []string) []fr.Element {
	out := make([]fr.Element, len(ss))
	for i := range ss {
		out[i] = scalarOf(t, ss[i])
	}
	return out
}

func bitsOf(s string) circuit.Bits {
	b := circuit.NewBits(len(s))
	for i := range s {
		if s[i] == '1' {
			b.Set(i)
		}
	}
	return b
}

const tinyDir = "../../tests/vectors/tiny"

func (*tiny) read(t testing.TB, name, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tinyDir, name, file))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readTiny(t testing.TB, name string) *tiny {
	t.Helper()
	v := new(tiny)
	var w struct {
		A, B, C []string
		Inputs  []string `json:"input_assignment"`
		Aux     []string `json:"aux_assignment"`
		AAux    string   `json:"a_aux_density"`
		BInput  string   `json:"b_input_density"`
		BAux    string   `json:"b_aux_density"`
		Digests struct {
			Domain int `json:"domain_size"`
		}
	}
	v.read(t, name, "witness.json", &w)
	v.Domain, v.inputs, v.aux = w.Digests.Domain, scalarsOf(t, w.Inputs), scalarsOf(t, w.Aux)
	pad := func(s []string) []fr.Element { return append(scalarsOf(t, s), make([]fr.Element, v.Domain-len(s))...) }
	v.a, v.b, v.c = pad(w.A), pad(w.B), pad(w.C)
	v.density = circuit.Density{AAux: bitsOf(w.AAux), BInput: bitsOf(w.BInput), BAux: bitsOf(w.BAux)}
	v.read(t, name, "proof.json", &v.result)
	v.h = scalarsOf(t, v.result.H)
	data, err := os.ReadFile(filepath.Join(tinyDir, name, "params.bin"))
	if err != nil {
		t.Fatal(err)
	}
	v.srs = readParams(t, data)
	return v
}

// memorySRS is a small parameter file in memory.
type memorySRS struct {
	vk *groth16.VerifyingKey
	g1 [4][]bls.G1Affine
	g2 []bls.G2Affine
}

func (s *memorySRS) ID() string                          { return "memory" }
func (s *memorySRS) VerifyingKey() *groth16.VerifyingKey { return s.vk }
func (s *memorySRS) Len(b groth16.Block) int {
	if b == groth16.BlockB2 {
		return len(s.g2)
	}
	return len(s.g1[b])
}
func (s *memorySRS) ReadG1(_ context.Context, b groth16.Block, from int, dst []bls.G1Affine) error {
	copy(dst, s.g1[b][from:from+len(dst)])
	return nil
}
func (s *memorySRS) ReadG2(_ context.Context, from int, dst []bls.G2Affine) error {
	copy(dst, s.g2[from:from+len(dst)])
	return nil
}

func readParams(t testing.TB, data []byte) *memorySRS {
	t.Helper()
	n, err := groth16.VKSize(data)
	if err != nil {
		t.Fatal(err)
	}
	s := new(memorySRS)
	if s.vk, err = groth16.DecodeVK(data[:n]); err != nil {
		t.Fatal(err)
	}
	data = data[n:]
	count := func() int {
		n := int(data[0])<<24 | int(data[1])<<16 | int(data[2])<<8 | int(data[3])
		data = data[4:]
		return n
	}
	for b := range s.g1 {
		s.g1[b] = make([]bls.G1Affine, count())
		for i := range s.g1[b] {
			if _, err := s.g1[b][i].SetBytes(data[:96]); err != nil {
				t.Fatal(err)
			}
			data = data[96:]
		}
	}
	s.g2 = make([]bls.G2Affine, count())
	for i := range s.g2 {
		if _, err := s.g2[i].SetBytes(data[:192]); err != nil {
			t.Fatal(err)
		}
		data = data[192:]
	}
	if len(data) != 0 {
		t.Fatalf("%d bytes left", len(data))
	}
	return s
}
