package support

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
)

// ReadJSON decodes a file or ends the test.
func ReadJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Hex decodes hexadecimal text or ends the test.
func Hex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Scalar decodes a field element as the vectors write it: 32 bytes in hexadecimal, low first.
func Scalar(t testing.TB, text string) (x fr.Element) {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) == 32 {
		x, err = fr.LittleEndian.Element((*[32]byte)(raw))
	}
	if err != nil || len(raw) != 32 {
		t.Fatalf("scalar %q: %v", text, err)
	}
	return x
}

// Scalars decodes several.
func Scalars(t testing.TB, texts []string) []fr.Element {
	t.Helper()
	out := make([]fr.Element, len(texts))
	for i := range texts {
		out[i] = Scalar(t, texts[i])
	}
	return out
}

// bitmap reads a bitmap written as text of 0 and 1.
func bitmap(text string) circuit.Bits {
	b := circuit.NewBits(len(text))
	for i, c := range text {
		if c == '1' {
			b.Set(i)
		}
	}
	return b
}

// Tiny is a small circuit of the reference with its values and proofs, from a folder of tests/vectors/tiny.
type Tiny struct {
	InputCount, AuxCount int
	Rows                 []circuit.Constraint
	Assignment           *groth16.Assignment
	Public               []fr.Element
	R, S                 fr.Element
	Proof                []byte // with R and S
	Bare                 []byte // with zeros
}

// LoadTiny reads the files of a folder or ends the test.
func LoadTiny(t testing.TB, folder string) *Tiny {
	t.Helper()
	var r1cs struct {
		Inputs, Aux, Constraints int
		Canonical                []map[string][][2]any
	}
	var w struct {
		A, B, C []string
		Inputs  []string `json:"input_assignment"`
		Aux     []string `json:"aux_assignment"`
		AAux    string   `json:"a_aux_density"`
		BInput  string   `json:"b_input_density"`
		BAux    string   `json:"b_aux_density"`
	}
	var proof struct {
		Public []string `json:"public_inputs"`
		R, S   string
		Proof  string
		Bare   string `json:"proof_with_r_and_s_zero"`
	}
	ReadJSON(t, folder+"/r1cs.json", &r1cs)
	ReadJSON(t, folder+"/witness.json", &w)
	ReadJSON(t, folder+"/proof.json", &proof)
	rows := make([]circuit.Constraint, r1cs.Constraints)
	for i := range rows {
		for m, into := range map[string]*[]circuit.Term{"a": &rows[i].A, "b": &rows[i].B, "c": &rows[i].C} {
			for _, x := range r1cs.Canonical[i][m] {
				*into = append(*into, circuit.Term{Key: circuit.Key(x[0].(float64)), Coeff: Scalar(t, x[1].(string))})
			}
		}
	}
	return &Tiny{
		InputCount: r1cs.Inputs, AuxCount: r1cs.Aux, Rows: rows,
		Assignment: &groth16.Assignment{
			Inputs: Scalars(t, w.Inputs), Aux: Scalars(t, w.Aux), A: Scalars(t, w.A), B: Scalars(t, w.B), C: Scalars(t, w.C),
			Density: circuit.Density{AAux: bitmap(w.AAux), BInput: bitmap(w.BInput), BAux: bitmap(w.BAux)},
		},
		Public: Scalars(t, proof.Public), R: Scalar(t, proof.R), S: Scalar(t, proof.S),
		Proof: Hex(t, proof.Proof), Bare: Hex(t, proof.Bare),
	}
}
