package cuda

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
)

const vectors = "../tests/vectors/tiny/"

// tiny is a small circuit of the reference with its parameters, values and proof.
type tiny struct {
	name       string
	program    *circuit.Program
	inputs     *circuit.Inputs
	assignment *groth16.Assignment
	srs        *params.File
	r, s       fr.Element
	proof      string
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(vectors + path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func scalarOf(t testing.TB, text string) (x fr.Element) {
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

func scalarsOf(t testing.TB, texts []string) []fr.Element {
	t.Helper()
	out := make([]fr.Element, len(texts))
	for i := range texts {
		out[i] = scalarOf(t, texts[i])
	}
	return out
}

func bitsOf(text string) circuit.Bits {
	b := circuit.NewBits(len(text))
	for i, c := range text {
		if c == '1' {
			b.Set(i)
		}
	}
	return b
}

// loadTiny reads a circuit. With bits, the program keeps as bits what is zero or one in the witness.
func loadTiny(t testing.TB, name string, bits bool) *tiny {
	t.Helper()
	var r1cs struct {
		Inputs, Aux, Constraints int
		Canonical                []map[string][][2]any
	}
	var witness struct {
		A, B, C []string
		Inputs  []string `json:"input_assignment"`
		Aux     []string `json:"aux_assignment"`
		AAux    string   `json:"a_aux_density"`
		BInput  string   `json:"b_input_density"`
		BAux    string   `json:"b_aux_density"`
	}
	var proof struct{ R, S, Proof string }
	readJSON(t, name+"/r1cs.json", &r1cs)
	readJSON(t, name+"/witness.json", &witness)
	readJSON(t, name+"/proof.json", &proof)
	rows := make([]circuit.Constraint, r1cs.Constraints)
	for i := range rows {
		for m, into := range map[string]*[]circuit.Term{"a": &rows[i].A, "b": &rows[i].B, "c": &rows[i].C} {
			for _, x := range r1cs.Canonical[i][m] {
				*into = append(*into, circuit.Term{Key: circuit.Key(x[0].(float64)), Coeff: scalarOf(t, x[1].(string))})
			}
		}
	}
	v := &tiny{name: name, r: scalarOf(t, proof.R), s: scalarOf(t, proof.S), proof: proof.Proof, inputs: &circuit.Inputs{}}
	v.assignment = &groth16.Assignment{
		Inputs: scalarsOf(t, witness.Inputs), Aux: scalarsOf(t, witness.Aux),
		A: scalarsOf(t, witness.A), B: scalarsOf(t, witness.B), C: scalarsOf(t, witness.C),
		Density: circuit.Density{AAux: bitsOf(witness.AAux), BInput: bitsOf(witness.BInput), BAux: bitsOf(witness.BAux)},
	}
	isBit := make([]bool, r1cs.Aux)
	v.inputs.Fields = append(v.inputs.Fields, v.assignment.Inputs[1:]...)
	for i, x := range v.assignment.Aux {
		if isBit[i] = bits && (x.IsZero() || x.IsOne()); isBit[i] {
			v.inputs.Words = append(v.inputs.Words, x.Bits()[0])
		} else {
			v.inputs.Fields = append(v.inputs.Fields, x)
		}
	}
	var err error
	if v.program, err = circuit.FromR1CS(name, r1cs.Inputs, isBit, rows); err != nil {
		t.Fatal(err)
	}
	if v.srs, err = params.Open(vectors + name + "/params.bin"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.srs.Close() })
	return v
}

// openBackend is a backend on a machine of the test's own, strict about stalling calls.
func openBackend(t testing.TB, seed uint64) (*Backend, *sim.Driver) {
	t.Helper()
	api, images, double := kerneltest.Machine(t, seed)
	api.SetStrict(true)
	b, err := Open(Config{API: api, Images: images, Threads: 2, Log: func(level, text string) { t.Log(level, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, double
}

// prove runs a partition's stages and returns the proof in hexadecimal.
func prove(ctx context.Context, b *Backend, v *tiny, explicit bool) (string, error) {
	plan, err := b.Plan(v.program)
	if explicit {
		plan, err = b.PlanAssignment(v.assignment)
	}
	if err != nil {
		return "", err
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		return "", err
	}
	defer arena.Close()
	var p groth16.Partition
	if explicit {
		p, err = b.BeginAssignment(v.assignment, v.srs, arena)
	} else {
		p, err = b.Begin(v.program, v.inputs, v.srs, arena)
	}
	if err != nil {
		return "", err
	}
	defer p.Close()
	for _, stage := range p.Stages() {
		if err := stage.Run(ctx); err != nil {
			return "", err
		}
	}
	sums, err := p.Sums()
	if err != nil {
		return "", err
	}
	proof := groth16.Assemble(v.srs.VerifyingKey(), sums, &v.r, &v.s)
	bytes := proof.Bytes()
	return hex.EncodeToString(bytes[:]), nil
}
