package cuda

import (
	"context"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/tests/support"
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

// loadTiny reads a circuit. With bits, the program keeps as bits what is zero or one in the witness.
func loadTiny(t testing.TB, name string, bits bool) *tiny {
	t.Helper()
	from := support.LoadTiny(t, vectors+name)
	v := &tiny{name: name, r: from.R, s: from.S, proof: hex.EncodeToString(from.Proof), assignment: from.Assignment, inputs: &circuit.Inputs{}}
	isBit := make([]bool, from.AuxCount)
	v.inputs.Fields = append(v.inputs.Fields, v.assignment.Inputs[1:]...)
	for i, x := range v.assignment.Aux {
		if isBit[i] = bits && (x.IsZero() || x.IsOne()); isBit[i] {
			v.inputs.Words = append(v.inputs.Words, x.Bits()[0])
		} else {
			v.inputs.Fields = append(v.inputs.Fields, x)
		}
	}
	var err error
	if v.program, err = circuit.FromR1CS(name, from.InputCount, isBit, from.Rows); err != nil {
		t.Fatal(err)
	}
	if v.srs, err = params.Open(vectors + name + "/params.bin"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.srs.Close() })
	return v
}

// fixed hands out the inputs, which are the same for each partition.
func (v *tiny) fixed(int) (*circuit.Inputs, error) { return v.inputs, nil }

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

// prove proves one partition and returns the proof in hexadecimal.
func prove(ctx context.Context, b *Backend, v *tiny, explicit bool) (string, error) {
	proofs, err := proveBatch(ctx, b, v, explicit, 1)
	if err != nil {
		return "", err
	}
	return proofs[0], nil
}

// proveBatch proves equal partitions in one batch, stage by stage.
func proveBatch(ctx context.Context, b *Backend, v *tiny, explicit bool, count int) (proofs []string, err error) {
	plan, err := b.Plan(v.program, count)
	if explicit {
		plan, err = b.PlanAssignment(v.assignment, count)
	}
	if err != nil {
		return nil, err
	}
	arena, err := host.NewArena(plan.HostBytes)
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	var p groth16.Batch
	if explicit {
		p, err = b.BeginAssignment(slices.Repeat([]*groth16.Assignment{v.assignment}, count), plan, v.srs, arena)
	} else {
		p, err = b.Begin(v.program, plan, count, v.fixed, v.srs, arena)
	}
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for _, stage := range p.Stages() {
		if err := stage.Run(ctx); err != nil {
			return nil, err
		}
	}
	for k := range count {
		sums, err := p.Sums(k)
		if err != nil {
			return nil, err
		}
		proof := groth16.Assemble(v.srs.VerifyingKey(), sums, &v.r, &v.s)
		bytes := proof.Bytes()
		proofs = append(proofs, hex.EncodeToString(bytes[:]))
	}
	return proofs, nil
}
