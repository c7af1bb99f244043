package cpu

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// given is an assignment of full vectors; compact turns its aux into bits and field elements.
type given struct {
	*tiny
	compact bool
}

func (g given) expand(context.Context, *host.Arena) error { return nil }
func (g given) evaluate(_ context.Context, a, b, c []fr.Element) error {
	copy(a, g.a)
	copy(b, g.b)
	copy(c, g.c)
	return nil
}
func (g given) publicInputs() []fr.Element { return g.inputs }
func (g given) values(b groth16.Block) []section {
	aux := section{count: len(g.aux), full: g.aux}
	if g.compact {
		aux = section{count: len(g.aux), bits: circuit.NewBits(len(g.aux)), kind: circuit.NewBits(len(g.aux))}
		for i := range g.aux {
			switch {
			case g.aux[i].IsOne():
				aux.bits.Set(i)
			case !g.aux[i].IsZero():
				aux.kind.Set(i)
				aux.nums = append(aux.nums, g.aux[i])
			}
		}
	}
	return blockSections(b, &g.density, section{count: len(g.inputs), full: g.inputs}, aux)
}

func (v *tiny) shape() *shape {
	s := &shape{domain: v.Domain, inputs: len(v.inputs), aux: len(v.aux)}
	for b := range groth16.BlockCount {
		s.points[b] = v.srs.Len(b)
		s.scalars[b] = v.srs.Len(b)
	}
	return s
}

func startTiny(t *testing.T, v *tiny, compact bool, threads int) *partition {
	t.Helper()
	s := v.shape()
	arena := newTestArena(t, s.bytes(threads))
	p, err := begin(s, 1, given{v, compact}, v.srs, arena, threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func hexG1(j *bls.G1Jac) string {
	var p bls.G1Affine
	p.FromJacobian(j)
	b := p.RawBytes()
	return hex.EncodeToString(b[:])
}

// Goal: from the reference's a, b, c and assignment, every partial sum and both proofs are the reference's,
// for full and compact values and any number of threads.
func TestPartition_Tiny(t *testing.T) {
	for _, name := range tinyNames {
		v := readTiny(t, name)
		for _, threads := range []int{1, 3} {
			for _, compact := range []bool{false, true} {
				p := startTiny(t, v, compact, threads)
				if _, err := p.Sums(0); status.KindOf(err) != status.Internal {
					t.Fatalf("sums before the end: %v", err)
				}
				for _, stage := range p.Stages() {
					if err := stage.Run(context.Background()); err != nil {
						t.Fatalf("%s: %s: %v", name, stage.Name, err)
					}
				}
				sums, err := p.Sums(0)
				if err != nil {
					t.Fatal(err)
				}
				p.Close()
				p.Close()
				var b2 bls.G2Affine
				b2.FromJacobian(&sums.B2)
				raw := b2.RawBytes()
				for _, c := range []struct{ what, want, got string }{
					{"h", v.result.HSum, hexG1(&sums.H)}, {"l", v.result.LSum, hexG1(&sums.L)}, {"a", v.result.ASum, hexG1(&sums.A)},
					{"b_g1", v.result.B1Sum, hexG1(&sums.B1)}, {"b_g2", v.result.B2Sum, hex.EncodeToString(raw[:])},
				} {
					if c.want != c.got {
						t.Fatalf("%s, %d threads, compact %v: %s: want %s, got %s", name, threads, compact, c.what, c.want, c.got)
					}
				}
				r, s := scalarOf(t, v.result.R), scalarOf(t, v.result.S)
				var zero fr.Element
				pvk, err := groth16.Prepare(v.srs.vk)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range []struct {
					r, s *fr.Element
					want string
				}{{&r, &s, v.result.Proof}, {&zero, &zero, v.result.ProofZero}} {
					proof := groth16.Assemble(v.srs.vk, sums, c.r, c.s)
					b := proof.Bytes()
					if got := hex.EncodeToString(b[:]); got != c.want {
						t.Fatalf("%s: proof: want %s, got %s", name, c.want, got)
					}
					if ok, err := groth16.Verify(pvk, &proof, p.Inputs(0)[1:]); !ok || err != nil {
						t.Fatalf("%s: not verified: %v", name, err)
					}
				}
			}
		}
	}
}

// Goal: stages run in order, each once, and not after Close.
func TestPartition_Order(t *testing.T) {
	v := readTiny(t, "tiny-16")
	p := startTiny(t, v, false, 1)
	stages := p.Stages()
	ctx := context.Background()
	if len(stages) != stageCount {
		t.Fatalf("%d stages", len(stages))
	}
	if err := stages[1].Run(ctx); status.KindOf(err) != status.Internal {
		t.Fatalf("evaluate before expand: %v", err)
	}
	if err := stages[0].Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := stages[0].Run(ctx); status.KindOf(err) != status.Internal {
		t.Fatalf("expand twice: %v", err)
	}
	p.Close()
	if err := stages[1].Run(ctx); status.KindOf(err) != status.Internal {
		t.Fatalf("after Close: %v", err)
	}
	if p := startTiny(t, v, false, 1); p.arena.Used() != 0 {
		t.Fatal("memory in use at the start")
	}
}

// Goal: parameters of another circuit and a small arena are refused with both numbers.
func TestBegin_Refused(t *testing.T) {
	v := readTiny(t, "tiny-16")
	s := v.shape()
	arena := newTestArena(t, s.bytes(1))
	for b := range groth16.BlockCount {
		other := *s
		other.points[b]++
		_, err := begin(&other, 1, given{v, false}, v.srs, arena, 1)
		var e *status.Error
		if !errors.As(err, &e) || e.Kind != status.Params || e.Where != b.String() {
			t.Errorf("%s: %v", b, err)
		}
	}
	other := *s
	other.inputs++
	if _, err := begin(&other, 1, given{v, false}, v.srs, arena, 1); status.KindOf(err) != status.Params {
		t.Errorf("ic: %v", err)
	}
	if _, err := begin(s, 1, given{v, false}, v.srs, newTestArena(t, s.bytes(1)-1), 1); status.KindOf(err) != status.NoMemory {
		t.Errorf("small arena: %v", err)
	}
}

// failing is an SRS whose reads fail from the nth on.
type failing struct {
	*memorySRS
	left int
}

func (f *failing) ReadG1(ctx context.Context, b groth16.Block, from int, dst []bls.G1Affine) error {
	if f.left--; f.left < 0 {
		return status.New(status.Params, "test", b.String(), "", "damaged")
	}
	return f.memorySRS.ReadG1(ctx, b, from, dst)
}

// Goal: a read that fails, at any point, ends the stage with its own error, and the arena is empty after Close.
func TestPartition_ReadFails(t *testing.T) {
	v := readTiny(t, "tiny-64")
	for n := range 20 {
		arena := newTestArena(t, v.shape().bytes(1))
		p, err := begin(v.shape(), 1, given{v, false}, &failing{v.srs, n}, arena, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range p.Stages() {
			if err = stage.Run(context.Background()); err != nil {
				break
			}
		}
		if status.KindOf(err) != status.Params {
			t.Fatalf("read %d: %v", n, err)
		}
		p.Close()
		if arena.Used() != 0 {
			t.Fatalf("%d bytes in use after Close", arena.Used())
		}
	}
}

// Goal: a sum whose context ends is over within a fraction of its time.
func TestSum_Cancel(t *testing.T) {
	const n = 1 << 17
	some := somePoints(1 << 10)
	points, scalars := make([]bls.G1Affine, n), make([]fr.Element, n)
	x := minusOne()
	for i := range points {
		points[i] = some[i%len(some)]
		x.Double(&x)
		scalars[i] = x
	}
	src := newSource(section{count: n, full: scalars})
	k := lanes.G1()[0]
	w := cut(n, k.SlotBytes)
	const chunk = 1 << 14
	arena := newTestArena(t, sumBlockBytes[bls.G1Affine](k, w, chunk, 1))
	ctx, cancel := context.WithCancel(context.Background())
	reads := 0
	_, err := sumBlock[bls.G1Affine, bls.G1Jac](ctx, arena, k, w, chunk, 1, src, func(ctx context.Context, from int, dst []bls.G1Affine) error {
		if reads++; reads == readSlices+1 {
			cancel() // in the first chunk, when the second is read
		}
		return readFrom(points)(ctx, from, dst)
	})
	if status.KindOf(err) != status.Cancelled || reads > readSlices+1 {
		t.Fatalf("%d reads, %v", reads, err)
	}
}

// program records the tiny circuit with the aux that are 0 or 1 in its witness kept as bits, and gives its
// inputs.
func (v *tiny) program(t *testing.T, name string) (*circuit.Program, *circuit.Inputs) {
	t.Helper()
	var listed struct {
		Rows []map[string][][3]any `json:"as_written"`
	}
	v.read(t, name, "r1cs.json", &listed)
	rows := make([]circuit.Constraint, len(listed.Rows))
	for i := range rows {
		for m, into := range map[string]*[]circuit.Term{"a": &rows[i].A, "b": &rows[i].B, "c": &rows[i].C} {
			for _, x := range listed.Rows[i][m] {
				key := circuit.InputKey(int(x[1].(float64)))
				if x[0] == "aux" {
					key = circuit.AuxKey(int(x[1].(float64)))
				}
				*into = append(*into, circuit.Term{Key: key, Coeff: scalarOf(t, x[2].(string))})
			}
		}
	}
	in := &circuit.Inputs{Fields: clone(v.inputs[1:])}
	isBit := make([]bool, len(v.aux))
	for i := range v.aux {
		if isBit[i] = v.aux[i].IsZero() || v.aux[i].IsOne(); isBit[i] {
			in.Words = append(in.Words, v.aux[i].Uint64())
		} else {
			in.Fields = append(in.Fields, v.aux[i])
		}
	}
	p, err := circuit.FromR1CS(name, len(v.inputs), isBit, rows)
	if err != nil {
		t.Fatal(err)
	}
	return p, in
}

// Goal: the whole way through the Backend interface, from a program and its inputs to the reference's proof, in
// exactly the memory that the plan says.
func TestBackend_Tiny(t *testing.T) {
	for _, name := range tinyNames {
		v := readTiny(t, name)
		p, in := v.program(t, name)
		var b groth16.Backend = New(2)
		plan, err := b.Plan(p, 1)
		if err != nil || plan.Threads != 2 || plan.DeviceBytes != 0 {
			t.Fatalf("%s: %+v, %v", name, plan, err)
		}
		part, err := b.Begin(p, plan, 1, fixed(in), v.srs, newTestArena(t, plan.HostBytes))
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range part.Stages() {
			if err := stage.Run(context.Background()); err != nil {
				t.Fatalf("%s: %s: %v", name, stage.Name, err)
			}
		}
		sums, err := part.Sums(0)
		if err != nil {
			t.Fatal(err)
		}
		part.Close()
		r, s := scalarOf(t, v.result.R), scalarOf(t, v.result.S)
		proof := groth16.Assemble(v.srs.vk, sums, &r, &s)
		got := proof.Bytes()
		if hex.EncodeToString(got[:]) != v.result.Proof {
			t.Fatalf("%s: another proof", name)
		}
	}
}

// Goal: a witness that does not satisfy the circuit ends in evaluate, as Unsatisfied.
func TestBackend_Unsatisfied(t *testing.T) {
	v := readTiny(t, "tiny-64")
	p, in := v.program(t, "tiny-64")
	one := fr.One()
	in.Fields[len(in.Fields)-1].Add(&in.Fields[len(in.Fields)-1], &one)
	plan, err := New(1).Plan(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	part, err := New(1).Begin(p, plan, 1, fixed(in), v.srs, newTestArena(t, plan.HostBytes))
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	stages := part.Stages()
	if err := stages[0].Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := stages[1].Run(context.Background()); status.KindOf(err) != status.Unsatisfied {
		t.Fatalf("evaluate: %v", err)
	}
}

// fixed hands out the same inputs each time.
func fixed(in *circuit.Inputs) func(int) (*circuit.Inputs, error) {
	return func(int) (*circuit.Inputs, error) { return in, nil }
}
