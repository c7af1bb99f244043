package cpu

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// PlanAssignment returns what a partition of an assignment of this shape needs. How many of its values are
// bits is not known before they have been looked at, so the plan takes them all for field elements.
func (b *Backend) PlanAssignment(a *groth16.Assignment, partitions int) (groth16.Plan, error) {
	return b.plan(assignmentShape(a)), nil
}

// BeginAssignment starts a batch of one assignment, whose vectors are not copied but A, B and C by evaluate. Errors:
// as Begin.
func (b *Backend) BeginAssignment(list []*groth16.Assignment, _ groth16.Plan, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	s := assignmentShape(list[0])
	return batch(begin(s, len(list), &vectors{from: list[0], shape: s, threads: b.threads}, srs, arena, b.threads))
}

func assignmentShape(a *groth16.Assignment) *shape {
	s := &shape{
		domain: a.Domain(), inputs: len(a.Inputs), aux: len(a.Aux),
		witnessBytes: 2 * host.SliceBytes[uint64](circuit.BitWords(len(a.Aux))),
		points:       a.Points(),
	}
	s.scalars = s.points
	return s
}

// vectors is the assignment of a caller who synthesises on his own. Its aux stay where they are; expand marks
// which of them are one and which a field element, so that the sums skip zeros, add ones and fetch the rest.
type vectors struct {
	from    *groth16.Assignment
	shape   *shape
	threads int

	ones, nums circuit.Bits // of aux
}

// classifyRun is the number of bitmap words that a task fills: 2^14 values, 512 KiB.
const classifyRun = 256

func (v *vectors) expand(ctx context.Context, arena *host.Arena) error {
	const op = "cpu.expand"
	aux, inputs := v.from.Aux, v.from.Inputs
	words := circuit.BitWords(len(aux))
	v.ones = circuit.Bits{Words: host.Alloc[uint64](arena, words), Len: len(aux)}
	v.nums = circuit.Bits{Words: host.Alloc[uint64](arena, words), Len: len(aux)}
	unreduced := func(name string, i int, x *fr.Element) error {
		return status.New(status.Input, op, fmt.Sprintf("%s[%d]", name, i), "a number below the group order", fmt.Sprintf("limbs %#x", [4]uint64(*x)))
	}
	for i := range inputs {
		if !groth16.Reduced(&inputs[i]) {
			return unreduced("input", i, &inputs[i])
		}
	}
	one := fr.One()
	err := parallel(ctx, v.threads, (words+classifyRun-1)/classifyRun, func(_, task int) error {
		for w := task * classifyRun; w < min((task+1)*classifyRun, words); w++ {
			// Zeros and ones come in no order that a branch could learn.
			var ones, nums uint64
			for i, last := w<<6, min(w<<6+64, len(aux)); i < last; i++ {
				x := &aux[i]
				notZero := x[0] | x[1] | x[2] | x[3]
				notOne := x[0] ^ one[0] | x[1] ^ one[1] | x[2] ^ one[2] | x[3] ^ one[3]
				notZero, notOne = (notZero|-notZero)>>63, (notOne|-notOne)>>63
				ones |= (1 ^ notOne) << (i & 63)
				nums |= (notZero & notOne) << (i & 63)
				if !groth16.Reduced(x) {
					return unreduced("aux", i, x)
				}
			}
			v.ones.Words[w], v.nums.Words[w] = ones, nums
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Now the number of scalars is known, and with it better windows, where they fit what was planned.
	d, known := &v.from.Density, *v.shape
	a, b := len(inputs)+both(v.nums, d.AAux), d.BInput.Count()+both(v.nums, d.BAux)
	known.scalars = [...]int{known.points[groth16.BlockH], v.nums.Count(), a, b, b}
	if known.bytes(v.threads) <= v.shape.bytes(v.threads) {
		*v.shape = known
	}
	return nil
}

// evaluateRun is the number of rows that a task copies and checks: 768 KiB.
const evaluateRun = 1 << 13

// evaluate copies the rows, zeros behind them, and checks each.
func (v *vectors) evaluate(ctx context.Context, a, b, c []fr.Element) error {
	rows := len(v.from.A)
	var bad atomic.Int64 // the first row that is known to be wrong
	bad.Store(math.MaxInt64)
	err := parallel(ctx, v.threads, (len(a)+evaluateRun-1)/evaluateRun, func(_, task int) error {
		lo, hi := task*evaluateRun, min((task+1)*evaluateRun, len(a))
		if int64(lo) > bad.Load() {
			return nil
		}
		last := max(lo, min(hi, rows)) // lo where the vectors end before this run
		if lo < last {
			if row := v.from.BadRow(lo, last); row >= 0 {
				for old := bad.Load(); int64(row) < old && !bad.CompareAndSwap(old, int64(row)); old = bad.Load() {
				}
				return nil
			}
			copy(a[lo:last], v.from.A[lo:last])
			copy(b[lo:last], v.from.B[lo:last])
			copy(c[lo:last], v.from.C[lo:last])
		}
		for _, x := range [...][]fr.Element{a, b, c} {
			clear(x[last:hi])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if row := bad.Load(); row != math.MaxInt64 {
		return v.from.RowError(int(row))
	}
	return nil
}

func (v *vectors) publicInputs() []fr.Element { return v.from.Inputs }

func (v *vectors) values(b groth16.Block) []section {
	inputs := section{count: len(v.from.Inputs), full: v.from.Inputs}
	aux := section{count: len(v.from.Aux), full: v.from.Aux, bits: v.ones, kind: v.nums}
	return blockSections(b, &v.from.Density, inputs, aux)
}
