package lanes

import (
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/host"
)

// PlainG1 is the Store of G1 for any machine.
func PlainG1() StoreKind[bls.G1Affine] { return plainKind[bls.G1Affine, fp.Element]() }

// PlainG2 is PlainG1 for G2.
func PlainG2() StoreKind[bls.G2Affine] { return plainKind[bls.G2Affine, bls.E2]() }

func plainKind[A, F any, PF coordinate[F]]() StoreKind[A] {
	return StoreKind[A]{
		Name: "plain", SlotBytes: int64(unsafe.Sizeof(affine[F]{})), Bytes: plainBytes[F],
		New: func(arena *host.Arena, slots, workers int) Store[A] { return newPlain[A, F, PF](arena, slots, workers) },
	}
}

// coordinate is the arithmetic that affine additions need: fp.Element or E2.
type coordinate[F any] interface {
	*F
	Add(a, b *F) *F
	Sub(a, b *F) *F
	Neg(a *F) *F
	Double(a *F) *F
	Mul(a, b *F) *F
	Square(a *F) *F
	Inverse(a *F) *F
	SetOne() *F
	IsZero() bool
	Equal(*F) bool
}

// affine has the layout of gnark-crypto's affine points: infinity is (0, 0), which is not on the curve.
type affine[F any] struct{ X, Y F }

// plain is a store in gnark-crypto's own form.
type plain[A, F any, PF coordinate[F]] struct {
	slots   []affine[F]
	workers []plainWorker[F]
}

type plainWorker[F any] struct {
	d       []F    // of each op: what its slope is divided by
	prefix  []F    // product of all d before it
	done    []bool // ops that were carried out without the batch
	touched uint64 // what touch read, so that it is not optimised away
}

func plainBytes[F any](slots, workers int) int64 {
	return host.SliceBytes[affine[F]](slots) + int64(workers)*2*host.SliceBytes[F](BatchSize)
}

func newPlain[A, F any, PF coordinate[F]](arena *host.Arena, slots, workers int) *plain[A, F, PF] {
	s := &plain[A, F, PF]{slots: host.Alloc[affine[F]](arena, slots), workers: make([]plainWorker[F], workers)}
	for i := range s.workers {
		s.workers[i] = plainWorker[F]{host.Alloc[F](arena, BatchSize), host.Alloc[F](arena, BatchSize), make([]bool, BatchSize), 0}
	}
	clear(s.slots)
	return s
}

func (s *plain[A, F, PF]) Load(at int, src []A, offsets []uint32) {
	for i, o := range offsets {
		s.set(at+i, &src[o>>1])
	}
}

func (s *plain[A, F, PF]) set(at int, p *A) { s.slots[at] = *(*affine[F])(unsafe.Pointer(p)) }

func (s *plain[A, F, PF]) Move(dst int, from uint32) {
	s.slots[dst] = s.slots[from>>1]
	if from&1 == 1 {
		PF(&s.slots[dst].Y).Neg(&s.slots[dst].Y)
	}
}

func (s *plain[A, F, PF]) Get(slot int) A { return *(*A)(unsafe.Pointer(&s.slots[slot])) }

func (s *plain[A, F, PF]) Empty(slot int) bool {
	return PF(&s.slots[slot].X).IsZero() && PF(&s.slots[slot].Y).IsZero()
}

func (s *plain[A, F, PF]) Clear(from, to int) { clear(s.slots[from:to]) }

func (s *plain[A, F, PF]) Add(worker int, ops []Op) {
	for len(ops) > 0 {
		n := min(len(ops), BatchSize)
		s.addBatch(&s.workers[worker], ops[:n])
		ops = ops[n:]
	}
}

// addBatch adds in two passes around one inversion: 1 multiplication an addition on the way there, 4 and a
// square on the way back.
func (s *plain[A, F, PF]) addBatch(w *plainWorker[F], ops []Op) {
	w.touched += s.touch(ops)
	var product, inverse F
	PF(&product).SetOne()
	for i, o := range ops {
		a, b, d := &s.slots[o.A>>1], &s.slots[o.B>>1], &w.d[i]
		PF(d).Sub(&b.X, &a.X)
		if w.done[i] = false; PF(d).IsZero() || s.Empty(int(o.A>>1)) || s.Empty(int(o.B>>1)) {
			if w.done[i] = s.special(o, d); w.done[i] {
				continue
			}
		}
		w.prefix[i] = product
		PF(&product).Mul(&product, d)
	}
	PF(&inverse).Inverse(&product)
	var t, slope, x, y, ya, yb F
	for i := len(ops) - 1; i >= 0; i-- {
		if w.done[i] {
			continue
		}
		o := ops[i]
		a, b := &s.slots[o.A>>1], &s.slots[o.B>>1]
		PF(&t).Mul(&inverse, &w.prefix[i]) // 1/d
		PF(&inverse).Mul(&inverse, &w.d[i])
		ya = signed[F, PF](&a.Y, o.A)
		if PF(&a.X).Equal(&b.X) { // a doubling: slope 3 x^2 / 2 y
			PF(&x).Square(&a.X)
			PF(&slope).Double(&x)
			PF(&slope).Add(&slope, &x)
		} else {
			yb = signed[F, PF](&b.Y, o.B)
			PF(&slope).Sub(&yb, &ya)
		}
		PF(&slope).Mul(&slope, &t)
		PF(&x).Square(&slope)
		PF(&x).Sub(&x, &a.X)
		PF(&x).Sub(&x, &b.X)
		PF(&y).Sub(&a.X, &x)
		PF(&y).Mul(&y, &slope)
		PF(&y).Sub(&y, &ya)
		s.slots[o.Dst] = affine[F]{x, y}
	}
}

// touch reads from both ends of the operands of a batch. Nothing waits for these loads, so that many run at
// once and the passes find their operands in the cache; there, each load would have to wait for arithmetic.
func (s *plain[A, F, PF]) touch(ops []Op) (sum uint64) {
	for _, o := range ops {
		for _, r := range [2]uint32{o.A, o.B} {
			p := unsafe.Pointer(&s.slots[r>>1])
			sum += *(*uint64)(p) + *(*uint64)(unsafe.Add(p, unsafe.Sizeof(affine[F]{})-8))
		}
	}
	return sum
}

// special deals with an op that has infinity or equal x among its operands. It carries it out and returns
// true, or, for a doubling, sets d to the slope's divisor 2 y and leaves the rest to the batch.
func (s *plain[A, F, PF]) special(o Op, d *F) (done bool) {
	switch {
	case s.Empty(int(o.A >> 1)):
		s.Move(int(o.Dst), o.B)
		return true
	case s.Empty(int(o.B >> 1)):
		s.Move(int(o.Dst), o.A)
		return true
	}
	ya, yb := signed[F, PF](&s.slots[o.A>>1].Y, o.A), signed[F, PF](&s.slots[o.B>>1].Y, o.B)
	if !PF(&ya).Equal(&yb) || PF(&ya).IsZero() {
		s.slots[o.Dst] = affine[F]{}
		return true
	}
	PF(d).Double(&ya)
	return false
}

func signed[F any, PF coordinate[F]](y *F, r uint32) F {
	if r&1 == 0 {
		return *y
	}
	var n F
	PF(&n).Neg(y)
	return n
}
