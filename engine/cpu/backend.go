// Package cpu is the proof backend on the CPU, over gnark-crypto's fields and curve: the reference that other
// backends are compared with. It carries out a partition's stages: expand and evaluate (by the program),
// quotient, and the five multi-scalar multiplications, in memory that one arena holds from the beginning.
//
// It refuses SRS blocks whose lengths do not fit the program. It knows no Filecoin. The engine calls it.
//
// Sources: Groth16 (eprint 2016/260); bellperson 0.27 for which points a query uses; Pippenger's bucket method
// with Montgomery's shared inversion.
package cpu

import (
	"context"
	"fmt"
	"math/bits"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// Backend runs proofs on CPU threads. It is immutable and may be shared.
type Backend struct {
	threads int
}

// New makes a backend whose stages each keep up to threads threads busy (at least one).
func New(threads int) *Backend { return &Backend{threads: max(1, threads)} }

// Name is "cpu".
func (b *Backend) Name() string { return "cpu" }

// Plan returns what a partition of the program needs; partitions are proved one by one. HostBytes covers everything that grows with the
// program; it is touched as the stages get to it.
func (b *Backend) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	return b.plan(programShape(p)), nil
}

func (b *Backend) plan(s *shape) groth16.Plan {
	return groth16.Plan{Batch: 1, Ahead: 1, HostBytes: s.bytes(b.threads), Threads: b.threads, CheckFirst: true}
}

// Begin starts a batch of one partition. arena must have at least Plan's HostBytes left; the partition alone uses it until
// Close, which releases it to where it was. Errors: Params when a block of the SRS has another length than the program's queries;
// NoMemory when the arena is too small.
func (b *Backend) Begin(p *circuit.Program, _ groth16.Plan, count int, inputs func(k int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	w := &programWitness{program: p, inputs: inputs, threads: b.threads}
	return batch(begin(programShape(p), count, w, srs, arena, b.threads))
}

// batch makes a failed beginning an empty interface.
func batch(p *partition, err error) (groth16.Batch, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// shape is what memory and point counts follow from.
type shape struct {
	domain       int
	inputs, aux  int
	witnessBytes int64                   // what the assignment takes from the arena
	points       [groth16.BlockCount]int // by block
	scalars      [groth16.BlockCount]int // bound on the values other than zero and one
}

// assignment is where a partition's values come from: a program and its inputs, or vectors made elsewhere.
type assignment interface {
	// expand makes the witness, in memory from the arena.
	expand(ctx context.Context, arena *host.Arena) error
	// evaluate fills a, b, c, domain elements each, and checks every row.
	evaluate(ctx context.Context, a, b, c []fr.Element) error
	// publicInputs are the inputs with the leading one.
	publicInputs() []fr.Element
	// values lists the values of the points of blocks L, A, B1 and B2.
	values(b groth16.Block) []section
}

func programShape(p *circuit.Program) *shape {
	d := p.Density()
	a := p.InputCount() + d.AAux.Count()
	b := d.BInput.Count() + d.BAux.Count()
	bNums := d.BInput.Count() + both(d.BAux, p.Kinds())
	s := &shape{
		domain: p.Domain(), inputs: p.InputCount(), aux: p.AuxCount(),
		witnessBytes: host.SliceBytes[fr.Element](p.InputCount()) + host.SliceBytes[uint64](circuit.BitWords(p.AuxCount())) + host.SliceBytes[fr.Element](p.NumCount()),
	}
	s.points = [...]int{s.domain - 1, s.aux, a, b, b}
	s.scalars = [...]int{s.domain - 1, p.NumCount(), p.InputCount() + both(d.AAux, p.Kinds()), bNums, bNums}
	return s
}

// both counts the places where x and y are one.
func both(x, y circuit.Bits) (n int) {
	for i, w := range x.Words {
		n += bits.OnesCount64(w & y.Words[i])
	}
	return n
}

// planSum is how the multiplication of a block is done, and what it takes from the arena.
func planSum[A any](s *shape, block groth16.Block, k lanes.StoreKind[A], threads int) (w windows, chunk int, bytes int64) {
	w, chunk = cut(s.scalars[block], k.SlotBytes), chunkPoints(s.points[block], k.SlotBytes)
	return w, chunk, sumBlockBytes(k, w, chunk, threads)
}

// bytes is the peak over the stages: the witness stays; h is held from evaluate until its sum is there, a and
// c until h is there.
func (s *shape) bytes(threads int) int64 {
	vector := host.SliceBytes[fr.Element](s.domain)
	_, _, h := planSum(s, groth16.BlockH, lanes.G1()[0], threads)
	peak := vector + max(h, 2*vector+quotientBytes(lanes.Kernels(s.domain)[0], s.domain, threads))
	for _, block := range []groth16.Block{groth16.BlockL, groth16.BlockA, groth16.BlockB1} {
		_, _, n := planSum(s, block, lanes.G1()[0], threads)
		peak = max(peak, n)
	}
	_, _, n := planSum(s, groth16.BlockB2, lanes.G2()[0], threads)
	return s.witnessBytes + max(peak, n)
}

// partition is one proof under way.
type partition struct {
	shape   *shape
	values  assignment
	srs     groth16.SRS
	arena   *host.Arena
	threads int

	next    int   // stage that must run next
	start   int64 // arena mark at Begin
	witness int64 // and behind the witness
	h       []fr.Element
	a, c    []fr.Element
	inputs  []fr.Element
	sums    groth16.Sums
}

func begin(s *shape, count int, values assignment, srs groth16.SRS, arena *host.Arena, threads int) (*partition, error) {
	const op = "cpu.Begin"
	status.Check(count == 1, op, "a batch of one partition")
	for b := groth16.BlockH; b < groth16.BlockCount; b++ {
		if got := srs.Len(b); got != s.points[b] {
			return nil, status.New(status.Params, op, b.String(), fmt.Sprintf("%d points", s.points[b]), fmt.Sprint(got))
		}
	}
	if got := len(srs.VerifyingKey().IC); got != s.inputs {
		return nil, status.New(status.Params, op, "ic", fmt.Sprintf("%d points", s.inputs), fmt.Sprint(got))
	}
	if want, got := s.bytes(threads), arena.Size()-arena.Used(); got < want {
		return nil, status.New(status.NoMemory, op, "arena", fmt.Sprintf("%d bytes", want), fmt.Sprint(got))
	}
	return &partition{shape: s, values: values, srs: srs, arena: arena, start: arena.Mark(), threads: threads}, nil
}

// Stages lists the steps; each is run once, in order.
func (p *partition) Stages() []host.Stage {
	stages := []host.Stage{
		{Name: "expand", Run: p.expand},
		{Name: "evaluate", Run: p.evaluate},
		{Name: "quotient", Run: p.quotient},
		{Name: "msm_h", Run: func(ctx context.Context) error { return p.sumG1(ctx, groth16.BlockH, &p.sums.H) }},
		{Name: "msm_l", Run: func(ctx context.Context) error { return p.sumG1(ctx, groth16.BlockL, &p.sums.L) }},
		{Name: "msm_a", Run: func(ctx context.Context) error { return p.sumG1(ctx, groth16.BlockA, &p.sums.A) }},
		{Name: "msm_b1", Run: func(ctx context.Context) error { return p.sumG1(ctx, groth16.BlockB1, &p.sums.B1) }},
		{Name: "msm_b2", Run: p.sumG2},
	}
	for i := range stages {
		run := stages[i].Run
		stages[i].Lane, stages[i].Needs = host.LaneDevice, host.Needs{Threads: p.threads}
		stages[i].Run = func(ctx context.Context) (err error) {
			defer status.Recover("cpu."+stages[i].Name, &err)
			status.Check(p.next == i && p.arena != nil, "cpu."+stages[i].Name, "stages in order, each once, before Close")
			p.next = len(stages) + 1 // a stage that failed is not run again
			if err = run(ctx); err == nil {
				p.next = i + 1
			}
			return err
		}
	}
	return stages
}

// stageCount is len(Stages()).
const stageCount = 8

// Inputs are the public inputs with the leading one, once expand has run.
func (p *partition) Inputs(int) []fr.Element { return p.inputs }

// Sums returns the result after the last stage. Errors: Internal before that.
func (p *partition) Sums(int) (*groth16.Sums, error) {
	if p.next != stageCount {
		return nil, status.New(status.Internal, "cpu.Sums", "", "all stages done", fmt.Sprintf("stage %d next", p.next))
	}
	return &p.sums, nil
}

// Close gives the arena back to the caller, empty. The sums stay valid.
func (p *partition) Close() {
	if p.arena != nil {
		p.arena.Release(p.start)
		p.arena, p.values, p.h, p.a, p.c = nil, nil, nil, nil, nil
	}
}

func (p *partition) expand(ctx context.Context) error {
	if err := p.values.expand(ctx, p.arena); err != nil {
		return err
	}
	p.inputs = append([]fr.Element(nil), p.values.publicInputs()...)
	p.witness = p.arena.Mark()
	return nil
}

func (p *partition) evaluate(ctx context.Context) error {
	// h takes the place of b, so b comes first and the memory behind it is free once h is there.
	p.h = host.Alloc[fr.Element](p.arena, p.shape.domain)
	p.a = host.Alloc[fr.Element](p.arena, p.shape.domain)
	p.c = host.Alloc[fr.Element](p.arena, p.shape.domain)
	return p.values.evaluate(ctx, p.a, p.h, p.c)
}

func (p *partition) quotient(ctx context.Context) error {
	return quotient(ctx, p.arena, lanes.Kernels(p.shape.domain)[0], p.a, p.h, p.c, p.threads)
}

func (p *partition) sumG1(ctx context.Context, block groth16.Block, sum *bls.G1Jac) error {
	src := p.source(block)
	k := lanes.G1()[0]
	w, chunk, _ := planSum(p.shape, block, k, p.threads)
	var err error
	*sum, err = sumBlock[bls.G1Affine, bls.G1Jac](ctx, p.arena, k, w, chunk, p.threads, src, func(ctx context.Context, from int, dst []bls.G1Affine) error {
		return p.srs.ReadG1(ctx, block, from, dst)
	})
	return err
}

func (p *partition) sumG2(ctx context.Context) error {
	src := p.source(groth16.BlockB2)
	k := lanes.G2()[0]
	w, chunk, _ := planSum(p.shape, groth16.BlockB2, k, p.threads)
	var err error
	p.sums.B2, err = sumBlock[bls.G2Affine, bls.G2Jac](ctx, p.arena, k, w, chunk, p.threads, src, p.srs.ReadG2)
	return err
}

// source gives a block's values and releases the arena to what the block leaves free.
func (p *partition) source(block groth16.Block) *source {
	p.arena.Release(p.witness)
	if block != groth16.BlockH {
		p.h = nil
		return newSource(p.values.values(block)...)
	}
	p.h = host.Alloc[fr.Element](p.arena, p.shape.domain) // the same memory: evaluate cut it first
	p.a, p.c = nil, nil
	return newSource(section{count: p.shape.points[block], full: p.h[:p.shape.points[block]]})
}

// programWitness is the assignment of a program: a compact witness.
type programWitness struct {
	program *circuit.Program
	inputs  func(k int) (*circuit.Inputs, error)
	threads int
	witness circuit.Witness
}

func (w *programWitness) expand(ctx context.Context, arena *host.Arena) error {
	p := w.program
	in, err := w.inputs(0)
	if err != nil {
		return err
	}
	w.witness = circuit.Witness{
		Inputs: host.Alloc[fr.Element](arena, p.InputCount()),
		Bits:   circuit.Bits{Words: host.Alloc[uint64](arena, circuit.BitWords(p.AuxCount())), Len: p.AuxCount()},
		Nums:   host.Alloc[fr.Element](arena, p.NumCount()),
	}
	return p.Expand(ctx, in, &w.witness, w.threads)
}

func (w *programWitness) evaluate(ctx context.Context, a, b, c []fr.Element) error {
	return w.program.Evaluate(ctx, &w.witness, a, b, c, w.threads)
}

func (w *programWitness) publicInputs() []fr.Element { return w.witness.Inputs }

func (w *programWitness) values(b groth16.Block) []section {
	d := w.program.Density()
	inputs := section{count: len(w.witness.Inputs), full: w.witness.Inputs}
	aux := section{count: w.program.AuxCount(), bits: w.witness.Bits, kind: w.program.Kinds(), nums: w.witness.Nums}
	return blockSections(b, d, inputs, aux)
}

// blockSections chooses the variables that have points in a block, as bellperson's prover does: L all aux; A
// all inputs, then aux by density; B inputs and aux by density.
func blockSections(b groth16.Block, d *circuit.Density, inputs, aux section) []section {
	switch b {
	case groth16.BlockA:
		aux.density = &d.AAux
	case groth16.BlockB1, groth16.BlockB2:
		inputs.density, aux.density = &d.BInput, &d.BAux
	default:
		return []section{aux}
	}
	return []section{inputs, aux}
}
