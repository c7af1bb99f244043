package params

import "github.com/sealc2/sealc2/engine/status"

// point is an affine point of G1 or G2; (0, 0) is infinity, as in gnark-crypto, whose affine points
// convert to it.
type point[E any] struct{ X, Y E }

// coordinate is what gnark-crypto's fp.Element and E2 have in common.
type coordinate[E any] interface {
	*E
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Mul(x, y *E) *E
	Square(x *E) *E
	Double(x *E) *E
	Neg(x *E) *E
	Inverse(x *E) *E
	SetOne() *E
	IsZero() bool
}

// How an addition of a batch is carried out.
const (
	addSettled = iota // the result stands: one side was infinity, or the two were opposite
	addChord          // two different points
	addTangent        // the same point twice
)

// adder adds points pairwise in affine form, with one inversion a batch (Montgomery's trick): 5M + 1S
// and six additions or subtractions a pair. Exact in every case. Scratch of one goroutine.
type adder[E any, PE coordinate[E]] struct {
	kind           []uint8
	denominator    []E // x2 - x1, or 2y
	before         []E // product of the denominators before this one
	run, inv, l, t E
}

func newAdder[E any, PE coordinate[E]](batch int) *adder[E, PE] {
	return &adder[E, PE]{kind: make([]uint8, batch), denominator: make([]E, batch), before: make([]E, batch)}
}

// add sets acc[i] to acc[i] + q[i]; len(acc) = len(q), at most the batch of newAdder.
func (s *adder[E, PE]) add(acc, q []point[E]) {
	status.Check(len(acc) == len(q) && len(acc) <= len(s.kind), "params.add", "both sides to fit the batch")
	run, inv, l, t := PE(&s.run), PE(&s.inv), PE(&s.l), PE(&s.t)
	run.SetOne()
	for i := range acc {
		a, b, d := &acc[i], &q[i], PE(&s.denominator[i])
		d.Sub(&b.X, &a.X)
		s.kind[i] = addChord
		if d.IsZero() || PE(&a.X).IsZero() || PE(&b.X).IsZero() {
			s.kind[i] = s.special(a, b, d)
			if s.kind[i] == addSettled {
				continue
			}
		}
		s.before[i] = s.run
		run.Mul(&s.run, &s.denominator[i])
	}
	inv.Inverse(&s.run)
	for i := len(acc) - 1; i >= 0; i-- {
		a, b := &acc[i], &q[i]
		switch s.kind[i] {
		case addSettled:
			continue
		case addChord:
			l.Sub(&b.Y, &a.Y)
		case addTangent:
			t.Square(&a.X)
			l.Double(&s.t)
			l.Add(&s.l, &s.t)
		}
		t.Mul(&s.inv, &s.before[i])
		l.Mul(&s.l, &s.t)
		inv.Mul(&s.inv, &s.denominator[i])
		t.Square(&s.l)
		t.Sub(&s.t, &a.X)
		t.Sub(&s.t, &b.X)
		PE(&a.X).Sub(&a.X, &s.t)
		l.Mul(&s.l, &a.X)
		PE(&a.Y).Sub(&s.l, &a.Y)
		a.X = s.t
	}
}

// special sorts out the additions that the chord formula does not cover. x is zero at infinity, and at
// some finite points too.
func (s *adder[E, PE]) special(a, b *point[E], d PE) uint8 {
	switch {
	case PE(&b.X).IsZero() && PE(&b.Y).IsZero():
		return addSettled
	case PE(&a.X).IsZero() && PE(&a.Y).IsZero():
		*a = *b
		return addSettled
	case !d.IsZero():
		return addChord
	}
	d.Sub(&b.Y, &a.Y)
	if !d.IsZero() {
		*a = point[E]{}
		return addSettled
	}
	d.Double(&a.Y)
	if d.IsZero() { // a point of order two; neither group has one
		*a = point[E]{}
		return addSettled
	}
	return addTangent
}
