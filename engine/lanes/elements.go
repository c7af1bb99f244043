package lanes

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Row is eight elements of the scalar field, one a lane, for formulas that run over eight sets of values at once. It has
// limbs of 52 bits and values modulo r that need not be canonical: how far above r they may lie is a row's bound, in
// units of r, which whoever writes the formula keeps track of. Source: ifmaRows.
type Row [Width * 5]uint64

// Bounds of rows: what Load and Mul leave, what all operands must keep to, and what a term of Linear adds to its result, for
// each unit of its row's bound, on top of RowTight.
const (
	RowTight  = 1.001
	RowLimit  = 2.1
	TermShare = 1 / 35.0 // r / 2^260, rounded up
)

// FactorWords is the size of a constant factor.
const FactorWords = 5

// Term is a row times a constant: offsets in bytes.
type Term struct{ row, factor uint32 }

// NewTerm is the term of a row and a factor by their numbers.
func NewTerm(row, factor int) Term {
	return Term{uint32(row) * Width * FactorWords * 8, uint32(factor) * FactorWords * 8}
}

// Broadcast sets all lanes to x.
func (r *Row) Broadcast(x *fr.Element) {
	var all [Width]fr.Element
	for l := range all {
		all[l] = *x
	}
	r.Load(&all)
}
