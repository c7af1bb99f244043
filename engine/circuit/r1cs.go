package circuit

import (
	"fmt"

	"github.com/sealc2/sealc2/engine/status"
)

// Constraint is one row of an explicit R1CS.
type Constraint struct{ A, B, C []Term }

// FromR1CS makes a program of one template from explicit constraints over inputCount public variables (with the
// constant one) and len(isBit) private ones. All its variables are taken from Inputs: Fields holds the public
// ones without the one, then the private ones that are not bits; Words one bit for each private one that is.
// isBit says which private variables are kept as bits: a variable that can have other values must not be. Fails
// with Input where a term names a variable that does not exist.
func FromR1CS(name string, inputCount int, isBit []bool, rows []Constraint) (*Program, error) {
	for i, row := range rows {
		for m, terms := range [3][]Term{row.A, row.B, row.C} {
			for _, t := range terms {
				limit := inputCount
				if t.Key.IsAux() {
					limit = len(isBit)
				}
				if t.Key.Index() >= limit {
					return nil, status.New(status.Input, "circuit.FromR1CS", fmt.Sprintf("%s: row %d, matrix %c", name, i, 'A'+m), fmt.Sprintf("a variable below %d", limit), fmt.Sprint(t.Key.Index()))
				}
			}
		}
	}
	r := NewRecorder(name)
	r.Gadget("r1cs", "", nil, nil, func(b *Builder, _ []Bit, _ []Num) ([]Bit, []Num) {
		inputs := make([]LC, inputCount)
		inputs[0] = One()
		for i := 1; i < inputCount; i++ {
			inputs[i] = b.AllocInput(b.TakeField()).LC()
		}
		aux := make([]LC, len(isBit))
		for i, bit := range isBit {
			if bit {
				x := b.allocBit()
				b.store(b.TakeWord(), []stored{{bit: 0, v: x.v}})
				aux[i] = x.LC()
			} else {
				aux[i] = b.AllocNum(b.TakeField()).LC()
			}
		}
		combine := func(terms []Term) LC {
			var out LC
			for _, t := range terms {
				of := inputs
				if t.Key.IsAux() {
					of = aux
				}
				out = append(out, of[t.Key.Index()].Times(t.Coeff)...)
			}
			return out
		}
		for _, row := range rows {
			b.Enforce(combine(row.A), combine(row.B), combine(row.C))
		}
		return nil, nil
	})
	return r.Finish(), nil
}
