package cuda

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kinds"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// assignmentHostBytes is what a partition of an assignment takes from its arena: which aux are field elements.
func assignmentHostBytes(a *groth16.Assignment) int64 {
	return host.SliceBytes[uint64](circuit.BitWords(len(a.Aux)))
}

// assignmentValues are vectors that a caller has made. They go to the device as they are, which marks which aux are one and
// which are field elements, so that the sums skip zeros and only add ones.
type assignmentValues struct {
	from   *groth16.Assignment
	nums   circuit.Bits // of aux: field elements other than zero and one
	places places
}

// unreduced is a number that no caller's field has.
func unreduced(op, name string, i int, x *fr.Element) error {
	return status.New(status.Input, op, fmt.Sprintf("%s[%d]", name, i), "a number below the group order", fmt.Sprintf("limbs %#x", [4]uint64(*x)))
}

func (v *assignmentValues) expand(_ context.Context, p *partition) error {
	inputs := v.from.Inputs
	for i := range inputs {
		if !groth16.Reduced(&inputs[i]) {
			return unreduced("cuda.expand", "input", i, &inputs[i])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v.nums = circuit.Bits{Words: host.Alloc[uint64](p.arena, circuit.BitWords(len(v.from.Aux))), Len: len(v.from.Aux)}
	return nil
}

func (v *assignmentValues) upload(ctx context.Context, p *partition) error {
	const op = "cuda.upload"
	o, d := &p.plan.own, &v.from.Density
	v.places = places{kinds: p.at(o.kinds), aAux: p.at(o.aAux), bAux: p.at(o.bAux), bInput: p.at(o.bInput), bInputs: d.BInput.Count()}
	for _, m := range []struct {
		at   int64
		from circuit.Bits
	}{{o.aAux, d.AAux}, {o.bAux, d.BAux}, {o.bInput, d.BInput}} {
		if err := sendSlice(ctx, p.batch, op, p.at(m.at), m.from.Words[:circuit.BitWords(m.from.Len)]); err != nil {
			return err
		}
	}
	scalars := p.at(o.scalars)
	if err := sendSlice(ctx, p.batch, op, scalars, v.from.Inputs); err != nil {
		return err
	}
	if err := sendSlice(ctx, p.batch, op, scalars.Add(elementBytes*int64(p.plan.shape.inputs)), v.from.Aux); err != nil {
		return err
	}
	if err := v.mark(ctx, p); err != nil {
		return err
	}
	if p.plan.vectors == 0 {
		for i, vector := range [][]fr.Element{v.from.A, v.from.B, v.from.C} {
			if err := sendSlice(ctx, p.batch, op, p.at(o.rows[i]), vector); err != nil {
				return err
			}
		}
	}
	return v.count(p)
}

// mark finds out on the device what kind each aux is of.
func (v *assignmentValues) mark(ctx context.Context, p *partition) error {
	const op = "cuda.kinds"
	o := &p.plan.own
	failed := [1]uint32{}
	err := p.do(ctx, copying, op, func(ctx context.Context, s *session) error {
		word := s.word.Base()
		if err := s.kinds.Clear(s.up, word); err != nil {
			return err
		}
		aux := p.at(o.scalars).Add(elementBytes * int64(p.plan.shape.inputs))
		if err := s.kinds.Mark(s.up, aux, 0, int64(len(v.from.Aux)), kinds.Bitmaps{Ones: p.at(o.bits), Fields: p.at(o.kinds)}, word); err != nil {
			return err
		}
		return fetch(ctx, s.up, s.arrived, word, failed[:])
	})
	if err != nil {
		return err
	}
	if i := failed[0]; i != kinds.None {
		if int(i) < len(v.from.Aux) && !groth16.Reduced(&v.from.Aux[i]) {
			return unreduced(op, "aux", int(i), &v.from.Aux[i])
		}
		return status.New(status.SelfCheck, op, fmt.Sprintf("aux[%d]", i), "what the CPU says, that it is below the group order", "the opposite, from the device: failing hardware")
	}
	const run = downBytes / 8 // words
	for from := 0; from < len(v.nums.Words); from += run {
		part := v.nums.Words[from:min(from+run, len(v.nums.Words))]
		err := p.do(ctx, copying, op, func(ctx context.Context, s *session) error {
			return fetch(ctx, s.up, s.arrived, p.at(o.kinds+int64(from)*8), part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count plans the sums anew now that the number of field elements is known, with better windows, in the scratch memory there is.
func (v *assignmentValues) count(p *partition) error {
	known := new([groth16.BlockCount]msm.Plan)
	for b := range groth16.BlockCount {
		plan := &p.plan.blocks[b]
		known[b] = plan.sum
		if b == groth16.BlockH {
			continue
		}
		block, err := assignmentBlock(v.from, b, v.nums)
		if err != nil {
			return err
		}
		// Cuts follow from the densities: the pieces are those of the plan.
		most := block.Points()
		if !plan.resident {
			most = p.plan.pieceLimit(b)
		}
		pieces, err := block.Pieces(max(most, msm.LeastPiece))
		if err != nil {
			return err
		}
		if len(pieces) == 0 {
			continue
		}
		shape := msm.ShapeOf(curve(b), pieces)
		shape.Pieces = plan.sum.Pieces
		if known[b], err = p.backend.sumPlan(shape, plan.sum.Bytes); err != nil {
			return err
		}
	}
	p.known = known
	return nil
}

// assignmentBlock is a block's variables: nums says which aux are field elements, and without words that nobody knows yet.
func assignmentBlock(a *groth16.Assignment, b groth16.Block, nums circuit.Bits) (*msm.Block, error) {
	if b == groth16.BlockH {
		return msm.PlainBlock(a.Points()[b]), nil
	}
	aux := msm.Known{Count: len(a.Aux), Kind: nums, Unknown: nums.Words == nil}
	return msm.NewBlock(knownSections(b, &a.Density, msm.Known{Count: len(a.Inputs)}, aux))
}

// check has the device check each row: where they lie, or, where that is not on the device, a part of them at a time on their way up.
func (v *assignmentValues) check(ctx context.Context, p *partition) error {
	to := p.checked()
	failed := [1]uint32{}
	word := p.in(p.plan.work.status)
	err := p.do(ctx, computing, "cuda.evaluate", func(_ context.Context, s *session) error { return s.rows.Clear(s.compute, word) })
	if err == nil {
		err = v.take(ctx, p, rows.Vectors{A: 1, B: 1, C: 1}, to, word)
	}
	if err == nil {
		err = p.do(ctx, computing, "cuda.evaluate", func(ctx context.Context, s *session) error { return fetch(ctx, s.compute, s.down, word, failed[:]) })
	}
	if err != nil {
		return err
	}
	switch row := failed[0]; {
	case row == rows.None:
		return nil
	case int(row) < len(v.from.A) && v.from.BadRow(int(row), int(row)+1) >= 0:
		return v.from.RowError(int(row))
	default:
		return wrongRow("cuda.evaluate", row)
	}
}

func (v *assignmentValues) fill(ctx context.Context, p *partition, to rows.Vectors) error {
	return v.take(ctx, p, to, to, 0)
}

// take brings the rows of the vectors that are wanted to their places, with zeros behind them, and has them checked where word is not 0.
func (v *assignmentValues) take(ctx context.Context, p *partition, wanted, to rows.Vectors, word driver.Ptr) error {
	const op = "cuda.evaluate"
	count, log := len(v.from.A), p.plan.shape.log
	if to != (rows.Vectors{}) {
		if err := p.do(ctx, computing, op, func(_ context.Context, s *session) error { return s.rows.Zeros(s.compute, int64(count), to, log) }); err != nil {
			return err
		}
	}
	if p.plan.vectors == 0 { // they lie where they belong
		return p.do(ctx, computing, op, func(_ context.Context, s *session) error {
			return s.rows.Take(s.compute, to, 0, int64(count), to, log, word)
		})
	}
	w := &p.plan.work
	var from rows.Vectors
	for first := 0; first < count; first += takeRows {
		n := min(takeRows, count-first)
		for i, vector := range []struct {
			wanted driver.Ptr
			rows   []fr.Element
			at     *driver.Ptr
		}{{wanted.A, v.from.A, &from.A}, {wanted.B, v.from.B, &from.B}, {wanted.C, v.from.C, &from.C}} {
			if vector.wanted == 0 {
				continue
			}
			*vector.at = p.in(w.given[i])
			if err := sendSlice(ctx, p.batch, op, *vector.at, vector.rows[first:first+n]); err != nil {
				return err
			}
		}
		err := p.do(ctx, computing, op, func(ctx context.Context, s *session) error {
			if err := s.rows.Take(s.compute, from, int64(first), int64(n), to, log, word); err != nil {
				return err
			}
			return s.compute.Synchronize(ctx) // the next part takes the place of this one
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wrongRow is for a row that the device takes for wrong and the CPU does not.
func wrongRow(op string, row uint32) error {
	return status.New(status.SelfCheck, op, fmt.Sprintf("row %d", row), "what the CPU says, that it holds", "the opposite, from the device: failing hardware")
}

func (v *assignmentValues) publicInputs() []fr.Element { return v.from.Inputs }

func (v *assignmentValues) sections(p *partition, b groth16.Block) []msm.Section {
	s, scalars := p.plan.shape, p.at(p.plan.own.scalars)
	inputs := msm.Section{Count: s.inputs, Points: s.inputs, Scalars: scalars, Full: true}
	aux := msm.Section{
		Count: s.aux, Points: s.aux, Kind: v.places.kinds, Bits: p.at(p.plan.own.bits),
		Scalars: scalars.Add(elementBytes * int64(s.inputs)), Full: true,
	}
	return blockSections(b, s, &v.places, inputs, aux)
}
