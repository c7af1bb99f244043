package cuda

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// assignmentHostBytes is what a partition of an assignment takes from its arena: which aux are one, and which field
// elements.
func assignmentHostBytes(a *groth16.Assignment) int64 {
	return 2 * host.SliceBytes[uint64](circuit.BitWords(len(a.Aux)))
}

// assignmentValues are vectors that a caller has made. Aux go to the device as they are; expand marks which are one and
// which a field element, so that the sums skip zeros and only add ones.
type assignmentValues struct {
	from       *groth16.Assignment
	ones, nums circuit.Bits // of aux
	places     places
}

// classifyRun is how many words of the bitmaps are filled between two looks at the context.
const classifyRun = 256

func (v *assignmentValues) expand(ctx context.Context, p *partition) error {
	const op = "cuda.expand"
	unreduced := func(name string, i int, x *fr.Element) error {
		return status.New(status.Input, op, fmt.Sprintf("%s[%d]", name, i), "a number below the group order", fmt.Sprintf("limbs %#x", [4]uint64(*x)))
	}
	aux, inputs := v.from.Aux, v.from.Inputs
	words := circuit.BitWords(len(aux))
	v.ones = circuit.Bits{Words: host.Alloc[uint64](p.arena, words), Len: len(aux)}
	v.nums = circuit.Bits{Words: host.Alloc[uint64](p.arena, words), Len: len(aux)}
	for i := range inputs {
		if !groth16.Reduced(&inputs[i]) {
			return unreduced("input", i, &inputs[i])
		}
	}
	one := fr.One()
	return eachRun(ctx, op, words, classifyRun, p.backend.threads, func(from, to int) error {
		for w := from; w < to; w++ {
			var ones, nums uint64
			for i := w << 6; i < min(w<<6+64, len(aux)); i++ {
				switch x := &aux[i]; {
				case x.IsZero():
				case *x == one:
					ones |= 1 << (i & 63)
				case groth16.Reduced(x):
					nums |= 1 << (i & 63)
				default:
					return unreduced("aux", i, x)
				}
			}
			v.ones.Words[w], v.nums.Words[w] = ones, nums
		}
		return nil
	})
}

// eachRun calls work for the runs [from, to) of n items on up to threads goroutines. Runs are handed out in order, and
// the error is that of the first run that failed. Errors besides: Cancelled.
func eachRun(ctx context.Context, op string, n, run, threads int, work func(from, to int) error) error {
	runs := (n + run - 1) / run
	failed := make([]error, max(1, min(threads, runs)))
	at := make([]int, len(failed))
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range failed {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				if failed[w] != nil {
					next.Store(int64(runs))
				}
			}()
			defer status.Recover(op, &failed[w])
			for failed[w] == nil {
				at[w] = int(next.Add(1)) - 1
				if at[w] >= runs {
					return
				}
				if ctx.Err() != nil {
					failed[w] = status.Wrap(status.Cancelled, op, "", context.Cause(ctx))
					return
				}
				failed[w] = work(at[w]*run, min(at[w]*run+run, n))
			}
		}()
	}
	wg.Wait()
	first := -1
	for w, err := range failed {
		if err != nil && (first < 0 || at[w] < at[first]) {
			first = w
		}
	}
	if first >= 0 {
		return failed[first]
	}
	return nil
}

// residents: nothing, since each assignment brings its own densities.
func (v *assignmentValues) residents(context.Context, *partition) error { return nil }

func (v *assignmentValues) upload(ctx context.Context, p *partition) error {
	const op = "cuda.upload"
	l, d := p.layout, &v.from.Density
	v.places = places{kinds: p.at(l.kinds), aAux: p.at(l.aAux), bAux: p.at(l.bAux), bInput: p.at(l.bInput), bInputs: d.BInput.Count()}
	for _, m := range []struct {
		at   int64
		from circuit.Bits
	}{{l.kinds, v.nums}, {l.aAux, d.AAux}, {l.bAux, d.BAux}, {l.bInput, d.BInput}, {l.bits, v.ones}} {
		words := m.from.Words[:circuit.BitWords(m.from.Len)]
		if err := uploadSlice(ctx, p.backend.owner, op, p.session, p.at(m.at), words, p.backend.threads); err != nil {
			return err
		}
	}
	scalars := p.at(l.scalars)
	if err := uploadSlice(ctx, p.backend.owner, op, p.session, scalars, v.from.Inputs, p.backend.threads); err != nil {
		return err
	}
	return uploadSlice(ctx, p.backend.owner, op, p.session, scalars.Add(elementBytes*int64(p.shape.inputs)), v.from.Aux, p.backend.threads)
}

// evaluate copies the rows up, a part of them at a time, and has the device check each and put it in its place.
func (v *assignmentValues) evaluate(ctx context.Context, p *partition) error {
	const op = "cuda.evaluate"
	l := p.layout
	from := rows.Vectors{A: p.at(l.given[0]), B: p.at(l.given[1]), C: p.at(l.given[2])}
	count := len(v.from.A)
	failed := [1]uint32{}
	err := p.do(ctx, op, func(_ context.Context, s *session) error {
		if err := s.rows.Clear(s.compute, p.at(l.failed)); err != nil {
			return err
		}
		return s.rows.Zeros(s.compute, int64(count), p.rows(), p.shape.log)
	})
	for first := 0; first < count && err == nil; first += takeRows {
		n := min(takeRows, count-first)
		for i, vector := range [][]fr.Element{v.from.A, v.from.B, v.from.C} {
			if err = uploadSlice(ctx, p.backend.owner, op, p.session, p.at(l.given[i]), vector[first:first+n], p.backend.threads); err != nil {
				return err
			}
		}
		err = p.do(ctx, op, func(ctx context.Context, s *session) error {
			if err := s.rows.Take(s.compute, from, int64(first), int64(n), p.rows(), p.shape.log, p.at(l.failed)); err != nil {
				return err
			}
			return s.compute.Synchronize(ctx) // the next part takes the place of this one
		})
	}
	if err != nil {
		return err
	}
	if err := p.do(ctx, op, func(ctx context.Context, s *session) error { return fetch(ctx, s, p.at(l.failed), failed[:]) }); err != nil {
		return err
	}
	switch row := failed[0]; {
	case row == rows.None:
		return nil
	case int64(row) < int64(count) && v.from.BadRow(int(row), int(row)+1) >= 0:
		return v.from.RowError(int(row))
	default:
		return wrongRow(op, row)
	}
}

// wrongRow is for a row that the device takes for wrong and the CPU does not.
func wrongRow(op string, row uint32) error {
	return status.New(status.SelfCheck, op, fmt.Sprintf("row %d", row), "what the CPU says, that it holds", "the opposite, from the device: failing hardware")
}

func (v *assignmentValues) publicInputs() []fr.Element { return v.from.Inputs }

func (v *assignmentValues) sections(p *partition, b groth16.Block) []msm.Section {
	scalars := p.at(p.layout.scalars)
	inputs := msm.Section{Count: p.shape.inputs, Points: p.shape.inputs, Scalars: scalars, Full: true}
	aux := msm.Section{
		Count: p.shape.aux, Points: p.shape.aux, Kind: v.places.kinds, Bits: p.at(p.layout.bits),
		Scalars: scalars.Add(elementBytes * int64(p.shape.inputs)), Full: true,
	}
	return blockSections(b, p.shape, &v.places, inputs, aux)
}
