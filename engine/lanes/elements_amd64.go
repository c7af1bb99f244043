package lanes

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

//go:noescape
func rowTimes(c, dst, a, b *uint64)

//go:noescape
func rowPlus(c, dst, a, b *uint64)

//go:noescape
func rowLinear(c, dst, rows *uint64, terms *uint32, count int, factors *uint64)

// HasRows tells whether this machine has the instructions for Row, which has no other implementation.
func HasRows() bool { return hasIFMA }

// inOrder are the offsets of elements that lie one behind the other.
var inOrder = [Width]uint64{0, fr.Bytes, 2 * fr.Bytes, 3 * fr.Bytes, 4 * fr.Bytes, 5 * fr.Bytes, 6 * fr.Bytes, 7 * fr.Bytes}

// Load takes one element a lane.
func (r *Row) Load(x *[Width]fr.Element) {
	rowsLoad(&frConstants[0], &r[0], &x[0][0], &inOrder[0], 0, 1, nil)
}

// Store gives lane l, canonical, to dst[at[l]].
func (r *Row) Store(dst []fr.Element, at *[Width]int) {
	var offsets [Width]uint64
	for l, i := range at {
		_ = dst[i]
		offsets[l] = uint64(i) * fr.Bytes
	}
	rowsStore(&frConstants[0], &r[0], &dst[0][0], &offsets[0], 0, 1, nil)
}

// Mul sets r to a b, tight. r may be one of them.
func (r *Row) Mul(a, b *Row) { rowTimes(&frConstants[0], &r[0], &a[0], &b[0]) }

// Add sets r to a + b, whose bounds add up.
func (r *Row) Add(a, b *Row) { rowPlus(&frConstants[0], &r[0], &a[0], &b[0]) }

// Linear sets r to the sum of rows times factors, which must have room for what the terms (one or more) name. r may be one of rows.
func (r *Row) Linear(rows []Row, terms []Term, factors []uint64) {
	rowLinear(&frConstants[0], &r[0], &rows[0][0], &terms[0].row, len(terms), &factors[0])
}

// AppendFactor appends a factor for Linear, of FactorWords words.
func AppendFactor(dst []uint64, x *fr.Element) []uint64 {
	l := constantLimbs(x)
	return append(dst, l[:]...)
}
