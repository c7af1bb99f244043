package lanes

import "github.com/sealc2/sealc2/engine/status"

// Coordinate is what Block and E2 have in common.
type Coordinate[B any] interface {
	*B
	Mul(x, y *B)
	Square(x *B)
	Sub(x, y *B)
	Fold(x, y, z *B)
	Negate(mask uint8)
	Load(rows *[Width]*Row, offset int)
	Store(rows *[Width]*Row, offset int)
	SetOne()
	Invert() bool
}

// Adder adds affine points pairwise, with one inversion a batch (Montgomery's trick): 5M + 1S a pair.
// Scratch of one goroutine.
type Adder[B any, PB Coordinate[B]] struct {
	denominator   []B // x2 - x1
	before        []B // product of the denominators before this one, lane by lane
	run, slope, t B
	x, zero       B
}

// NewAdder makes scratch for batches of up to groups blocks of eight points.
func NewAdder[B any, PB Coordinate[B]](groups int) *Adder[B, PB] {
	return &Adder[B, PB]{denominator: make([]B, groups), before: make([]B, groups)}
}

// Add adds point (bx, by) to (ax, ay), for all points of a batch; the four slices are equally long. Only
// the general case is covered: where two x are the same (equal or opposite points) Add says false and
// changes nothing. Infinity has no form here. Each x is below 1.01p, each y at most 2p; sums are below 1.01p.
func (s *Adder[B, PB]) Add(ax, ay, bx, by []B) bool {
	n := len(ax)
	status.Check(n == len(ay) && n == len(bx) && n == len(by) && n <= len(s.before), "lanes.Add", "four slices that fit the batch")
	run, slope, t, x := PB(&s.run), PB(&s.slope), PB(&s.t), PB(&s.x)
	run.SetOne()
	for i := range n {
		PB(&s.denominator[i]).Sub(&bx[i], &ax[i])
		s.before[i] = s.run
		run.Mul(&s.run, &s.denominator[i])
	}
	if !run.Invert() {
		return false
	}
	for i := n - 1; i >= 0; i-- {
		t.Mul(&s.run, &s.before[i])
		run.Mul(&s.run, &s.denominator[i])
		slope.Sub(&by[i], &ay[i])
		slope.Mul(&s.slope, &s.t)
		t.Square(&s.slope)
		x.Fold(&s.t, &ax[i], &bx[i])
		t.Sub(&ax[i], &s.x)
		ax[i] = s.x
		t.Mul(&s.t, &s.slope)
		PB(&ay[i]).Fold(&s.t, &ay[i], &s.zero)
	}
	return true
}
