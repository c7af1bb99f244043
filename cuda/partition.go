package cuda

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// values is where a partition's values come from: a program and its inputs, or vectors made elsewhere.
type values interface {
	// expand makes the witness, in memory from the arena.
	expand(ctx context.Context, p *partition) error
	// residents makes what stays on the device between partitions.
	residents(ctx context.Context, p *partition) error
	// upload copies the witness to the partition's block.
	upload(ctx context.Context, p *partition) error
	// evaluate fills the rows on the device and has checked every row when it returns.
	evaluate(ctx context.Context, p *partition) error
	// publicInputs are the inputs with the leading one.
	publicInputs() []fr.Element
	// sections are the variables of a block other than H.
	sections(p *partition, b groth16.Block) []msm.Section
}

// partition is one proof under way on the device.
type partition struct {
	backend *Backend
	shape   *shape
	layout  *layout // shared: not written
	values  values
	srs     groth16.SRS
	arena   *host.Arena
	mark    int64
	next    int // stage
	inputs  []fr.Element
	sums    groth16.Sums

	transforms *ntt.Transforms

	session *session // that its block lies in; nil before expand
	block   *driver.Arena
	pins    []*resident
}

// stageCount is how many stages a partition has.
const stageCount = 8

// Stages lists the steps; each is run once, in order.
func (p *partition) Stages() []host.Stage {
	sum := func(b groth16.Block) func(context.Context) error {
		return func(ctx context.Context) error { return p.sum(ctx, b) }
	}
	stages := []host.Stage{
		{Name: "expand", Run: p.expand},
		{Name: "evaluate", Run: func(ctx context.Context) error { return p.values.evaluate(ctx, p) }},
		{Name: "quotient", Run: p.quotient},
		{Name: "msm_h", Run: sum(groth16.BlockH)},
		{Name: "msm_l", Run: sum(groth16.BlockL)},
		{Name: "msm_a", Run: sum(groth16.BlockA)},
		{Name: "msm_b1", Run: sum(groth16.BlockB1)},
		{Name: "msm_b2", Run: sum(groth16.BlockB2)},
	}
	for i := range stages {
		run, op := stages[i].Run, "cuda."+stages[i].Name
		stages[i].Lane, stages[i].Needs = host.LaneDevice, host.Needs{Threads: p.backend.threads}
		stages[i].Run = func(ctx context.Context) (err error) {
			defer status.Recover(op, &err)
			status.Check(p.next == i && p.arena != nil, op, "stages in order, each once, before Close")
			p.next = len(stages) + 1 // a stage that failed is not run again
			if err = run(ctx); err == nil {
				p.next = i + 1
			}
			return err
		}
	}
	return stages
}

// Sums returns the result after the last stage. Errors: Internal before that.
func (p *partition) Inputs(int) []fr.Element { return p.inputs }

func (p *partition) Sums(int) (*groth16.Sums, error) {
	if p.next != stageCount {
		return nil, status.New(status.Internal, "cuda.Sums", "", "all stages done", fmt.Sprintf("stage %d next", p.next))
	}
	return &p.sums, nil
}

// Close gives the device's block and the arena back. The sums stay valid.
func (p *partition) Close() {
	if p.arena == nil {
		return
	}
	if p.session != nil {
		// Where the session is gone, so is what it held.
		_ = p.backend.owner.do(context.Background(), "cuda.Close", func(_ context.Context, s *session) error {
			if s == p.session {
				for _, r := range p.pins {
					s.memory.unpin(r)
				}
				if p.block != nil {
					s.memory.release(p.block)
				}
			}
			return nil
		})
	}
	p.arena.Release(p.mark)
	p.arena, p.values, p.block, p.pins = nil, nil, nil, nil
}

// do lets the owner run something in the partition's session.
func (p *partition) do(ctx context.Context, op string, run func(ctx context.Context, s *session) error) error {
	return p.backend.owner.do(ctx, op, func(ctx context.Context, s *session) error {
		if p.session == nil {
			p.session = s
		}
		if err := s.same(p.session); err != nil {
			return err
		}
		return run(ctx, s)
	})
}

// at is an address in the partition's block.
func (p *partition) at(offset int64) driver.Ptr { return p.block.Base().Add(offset) }

// rows are the partition's vectors.
func (p *partition) rows() rows.Vectors {
	return rows.Vectors{A: p.at(p.layout.a), B: p.at(p.layout.b), C: p.at(p.layout.c)}
}

func (p *partition) expand(ctx context.Context) error {
	if err := p.values.expand(ctx, p); err != nil {
		return err
	}
	p.inputs = append([]fr.Element(nil), p.values.publicInputs()...)
	if err := p.values.residents(ctx, p); err != nil {
		return err
	}
	err := p.do(ctx, "cuda.expand", func(ctx context.Context, s *session) (err error) {
		if err = s.transforms(ctx, p); err != nil {
			return err
		}
		p.block, err = s.memory.hold(p.layout.bytes)
		return err
	})
	if err != nil {
		return err
	}
	return p.values.upload(ctx, p)
}

func (p *partition) quotient(ctx context.Context) error {
	return p.do(ctx, "cuda.quotient", func(ctx context.Context, s *session) error {
		l := p.layout
		if err := p.transforms.Quotient(s.compute, p.at(l.a), p.at(l.b), p.at(l.c), p.shape.log); err != nil {
			return err
		}
		return s.compute.Synchronize(ctx)
	})
}

// blockKey names resident points.
type blockKey struct {
	id    string
	block groth16.Block
}

// points makes a block of the parameters resident, and pins it until the partition unpins it.
func (p *partition) points(ctx context.Context, b groth16.Block) (*resident, error) {
	const op = "cuda.load"
	key, count := blockKey{p.srs.ID(), b}, p.shape.points[b]
	var r *resident
	err := p.do(ctx, op, func(_ context.Context, s *session) (err error) {
		if r = s.memory.find(key); r == nil {
			if r, err = s.memory.keep(key, p.shape.blockBytes(b)); err != nil {
				return err
			}
		}
		p.pins = append(p.pins, r)
		return nil
	})
	if err != nil || r.ready {
		return r, err
	}
	if srs, ok := p.srs.(groth16.EncodedSRS); ok {
		return r, p.filled(ctx, r, p.loadEncoded(ctx, op, srs, b, r))
	}
	err = p.backend.owner.upload(ctx, op, p.session, r.arena.Base(), count, curve(b).PointBytes(), p.backend.threads, func(ctx context.Context, to unsafe.Pointer, from, n int) error {
		if b == groth16.BlockB2 {
			return p.srs.ReadG2(ctx, from, unsafe.Slice((*bls.G2Affine)(to), n))
		}
		return p.srs.ReadG1(ctx, b, from, unsafe.Slice((*bls.G1Affine)(to), n))
	})
	return r, p.filled(ctx, r, err)
}

// filled ends the filling of what is to become resident: it is, or after an error it is unmapped. That it cannot be is said in
// the log: the error that led there goes first.
func (p *partition) filled(ctx context.Context, r *resident, err error) error {
	done := p.do(context.WithoutCancel(ctx), "cuda.resident", func(_ context.Context, s *session) error {
		if err == nil {
			r.ready = true
			return nil
		}
		p.unpin(s, r)
		return s.memory.drop(r)
	})
	if err == nil {
		return done
	}
	if done != nil {
		p.backend.owner.config.log("warn", "device %s: %v", p.backend.name, done)
	}
	return err
}

// unpin lets go of a resident that the partition has pinned.
func (p *partition) unpin(s *session, r *resident) {
	if i := slices.Index(p.pins, r); i >= 0 {
		p.pins = slices.Delete(p.pins, i, i+1)
		s.memory.unpin(r)
	}
}

func (p *partition) sum(ctx context.Context, b groth16.Block) error {
	points, err := p.points(ctx, b)
	if err != nil {
		return err
	}
	return p.do(ctx, "cuda.msm_"+[...]string{"h", "l", "a", "b1", "b2"}[b], func(ctx context.Context, s *session) (err error) {
		defer p.unpin(s, points)
		in := msm.Input{Points: points.arena.Base()}
		scratch := p.at(p.layout.sumAt[min(1, b)])
		if b == groth16.BlockH {
			in.Scalars, in.Count = p.at(p.layout.b), p.shape.points[b]
		} else {
			in.Sections = p.values.sections(p, b)
		}
		plan := &p.layout.sums[b]
		if b == groth16.BlockB2 {
			if p.sums.B2, err = s.msm.SumG2(ctx, s.compute, plan, in, scratch); err == nil {
				p.backend.owner.losses = 0 // a whole partition went through
			}
			return err
		}
		to := [...]*bls.G1Jac{&p.sums.H, &p.sums.L, &p.sums.A, &p.sums.B1}[b]
		*to, err = s.msm.SumG1(ctx, s.compute, plan, in, scratch)
		return err
	})
}

// blockSections chooses the variables that have points in a block, as bellperson's prover does: L all aux; A all inputs,
// then aux by density; B inputs and aux by density.
func blockSections(b groth16.Block, s *shape, d *places, inputs, aux msm.Section) []msm.Section {
	switch b {
	case groth16.BlockA:
		aux.Density, aux.Points = d.aAux, s.points[b]-s.inputs
	case groth16.BlockB1, groth16.BlockB2:
		inputs.Density, inputs.Points = d.bInput, d.bInputs
		aux.Density, aux.Points = d.bAux, s.points[b]-d.bInputs
	default:
		return []msm.Section{aux}
	}
	return []msm.Section{inputs, aux}
}

// places are the addresses of the bitmaps that say which variables have points, and how many inputs have one in B.
type places struct {
	kinds, aAux, bAux, bInput driver.Ptr
	bInputs                   int
}
