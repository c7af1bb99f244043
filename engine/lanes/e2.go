package lanes

import (
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// E2 is eight elements A0 + A1·u of the quadratic extension, u² = -1. Block's bounds hold for both parts,
// with 8 for factors, 4 for squares, and 2.1 for what Square gives.
type E2 [2]Block

// Mul sets z to x · y with three multiplications. z may be x or y.
func (z *E2) Mul(x, y *E2) {
	var s, u, t0, t1 Block
	s.Add(&x[0], &x[1])
	u.Add(&y[0], &y[1])
	t0.Mul(&x[0], &y[0])
	t1.Mul(&x[1], &y[1])
	s.Mul(&s, &u)
	z[0].Fold(&t0, &t1, &constants.zero)
	z[1].Fold(&s, &t0, &t1)
}

// Square sets z to x² with two multiplications.
func (z *E2) Square(x *E2) {
	var s, d Block
	s.Add(&x[0], &x[1])
	d.Sub(&x[0], &x[1])
	z[1].Mul(&x[0], &x[1])
	z[1].Add(&z[1], &z[1])
	z[0].Mul(&s, &d)
}

// Sub sets z to x - y + 4p, part by part.
func (z *E2) Sub(x, y *E2) {
	z[0].Sub(&x[0], &y[0])
	z[1].Sub(&x[1], &y[1])
}

// Fold sets z to x - y - w reduced.
func (z *E2) Fold(x, y, w *E2) {
	z[0].Fold(&x[0], &y[0], &w[0])
	z[1].Fold(&x[1], &y[1], &w[1])
}

// Negate turns element k into its negative where bit k of mask is one.
func (z *E2) Negate(mask uint8) {
	z[0].Negate(mask)
	z[1].Negate(mask)
}

// Load takes two rows an element.
func (z *E2) Load(rows *[Width]*Row, offset int) {
	z[0].Load(rows, offset)
	z[1].Load(rows, offset+1)
}

// Store writes two rows an element.
func (z *E2) Store(rows *[Width]*Row, offset int) {
	z[0].Store(rows, offset)
	z[1].Store(rows, offset+1)
}

// SetOne sets all elements to one.
func (z *E2) SetOne() { z[0], z[1] = constants.one, constants.zero }

// Invert replaces all elements by their inverses, or says that one is zero and leaves z.
func (z *E2) Invert() bool {
	var norm, t Block
	norm.Mul(&z[0], &z[0])
	t.Mul(&z[1], &z[1])
	norm.Add(&norm, &t)
	if !norm.Invert() {
		return false
	}
	z[0].Mul(&z[0], &norm)
	t.Mul(&z[1], &norm)
	z[1].Fold(&constants.zero, &t, &constants.zero)
	return true
}

// Import brings eight elements into lane form.
func (z *E2) Import(e *[Width]bls.E2) {
	var parts [2][Width]fp.Element
	for k := range e {
		parts[0][k], parts[1][k] = e[k].A0, e[k].A1
	}
	z[0].Import(&parts[0])
	z[1].Import(&parts[1])
}

// Export gives eight elements back to gnark-crypto.
func (z *E2) Export(e *[Width]bls.E2) {
	var parts [2][Width]fp.Element
	z[0].Export(&parts[0])
	z[1].Export(&parts[1])
	for k := range e {
		e[k] = bls.E2{A0: parts[0][k], A1: parts[1][k]}
	}
}
