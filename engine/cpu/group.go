package cpu

import (
	"unsafe"

	"github.com/sealc2/sealc2/engine/host"
)

// An op is one addition between slots of a store: slot dst = ±slot(a) ± slot(b). a and b are references.
// Within one batch no op writes a slot that another op reads or writes; dst may be the op's own source.
type op struct{ dst, a, b uint32 }

// A reference names a slot and a sign: slot<<1 | 1 for the negated point.
func ref(slot int) uint32 { return uint32(slot) << 1 }

// store is a pool of points ("slots") of one group, in whatever form its additions like best. Slots are
// numbered from 0; all are infinity at first. Distinct slots may be used from several goroutines; each
// goroutine has its own worker number.
type store[A any] interface {
	// load puts src[offsets[i]>>1] into slot at+i.
	load(at int, src []A, offsets []uint32)
	// move copies a referenced point into a slot.
	move(dst int, from uint32)
	// get returns the point of a slot.
	get(slot int) A
	// empty tells whether a slot is infinity.
	empty(slot int) bool
	// clear makes the slots [from, to) infinity.
	clear(from, to int)
	// add carries out a batch: complete for all inputs (infinity, equal, opposite points).
	add(worker int, ops []op)
}

// field is the arithmetic that affine additions need, over *F.
type field[F any] interface {
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

// addBatchSize is how many additions share one inversion, which costs some 50 to 80 multiplications.
const addBatchSize = 2048

// portable is a store in gnark-crypto's own form, for any field.
type portable[A, F any, PF field[F]] struct {
	slots   []affine[F]
	workers []portableWorker[F]
}

type portableWorker[F any] struct {
	d       []F    // of each op: what its slope is divided by
	prefix  []F    // product of all d before it
	done    []bool // ops that were carried out without the batch
	touched uint64 // what touch read, so that it is not optimised away
}

// portableBytes is what newPortable takes from an arena.
func portableBytes[F any](slots, workers int) int64 {
	return host.SliceBytes[affine[F]](slots) + int64(workers)*2*host.SliceBytes[F](addBatchSize)
}

func newPortable[A, F any, PF field[F]](arena *host.Arena, slots, workers int) *portable[A, F, PF] {
	s := &portable[A, F, PF]{slots: host.Alloc[affine[F]](arena, slots), workers: make([]portableWorker[F], workers)}
	for i := range s.workers {
		s.workers[i] = portableWorker[F]{host.Alloc[F](arena, addBatchSize), host.Alloc[F](arena, addBatchSize), make([]bool, addBatchSize), 0}
	}
	clear(s.slots)
	return s
}

func (s *portable[A, F, PF]) load(at int, src []A, offsets []uint32) {
	for i, o := range offsets {
		s.slots[at+i] = *(*affine[F])(unsafe.Pointer(&src[o>>1]))
	}
}

func (s *portable[A, F, PF]) move(dst int, from uint32) {
	s.slots[dst] = s.slots[from>>1]
	if from&1 == 1 {
		PF(&s.slots[dst].Y).Neg(&s.slots[dst].Y)
	}
}

func (s *portable[A, F, PF]) get(slot int) A { return *(*A)(unsafe.Pointer(&s.slots[slot])) }

func (s *portable[A, F, PF]) empty(slot int) bool {
	return PF(&s.slots[slot].X).IsZero() && PF(&s.slots[slot].Y).IsZero()
}

func (s *portable[A, F, PF]) clear(from, to int) { clear(s.slots[from:to]) }

func (s *portable[A, F, PF]) add(worker int, ops []op) {
	for len(ops) > 0 {
		n := min(len(ops), addBatchSize)
		s.addBatch(&s.workers[worker], ops[:n])
		ops = ops[n:]
	}
}

// addBatch adds in two passes around one inversion: 1 multiplication an addition on the way there, 4 and a
// square on the way back.
func (s *portable[A, F, PF]) addBatch(w *portableWorker[F], ops []op) {
	w.touched += s.touch(ops)
	var product, inverse F
	PF(&product).SetOne()
	for i, o := range ops {
		a, b, d := &s.slots[o.a>>1], &s.slots[o.b>>1], &w.d[i]
		PF(d).Sub(&b.X, &a.X)
		if w.done[i] = false; PF(d).IsZero() || s.empty(int(o.a>>1)) || s.empty(int(o.b>>1)) {
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
		a, b := &s.slots[o.a>>1], &s.slots[o.b>>1]
		PF(&t).Mul(&inverse, &w.prefix[i]) // 1/d
		PF(&inverse).Mul(&inverse, &w.d[i])
		ya = signed[F, PF](&a.Y, o.a)
		if PF(&a.X).Equal(&b.X) { // a doubling: slope 3 x^2 / 2 y
			PF(&x).Square(&a.X)
			PF(&slope).Double(&x)
			PF(&slope).Add(&slope, &x)
		} else {
			yb = signed[F, PF](&b.Y, o.b)
			PF(&slope).Sub(&yb, &ya)
		}
		PF(&slope).Mul(&slope, &t)
		PF(&x).Square(&slope)
		PF(&x).Sub(&x, &a.X)
		PF(&x).Sub(&x, &b.X)
		PF(&y).Sub(&a.X, &x)
		PF(&y).Mul(&y, &slope)
		PF(&y).Sub(&y, &ya)
		s.slots[o.dst] = affine[F]{x, y}
	}
}

// touch reads from both ends of the operands of a batch. Nothing waits for these loads, so that many run at
// once and the passes find their operands in the cache; there, each load would have to wait for arithmetic.
func (s *portable[A, F, PF]) touch(ops []op) (sum uint64) {
	for _, o := range ops {
		for _, r := range [2]uint32{o.a, o.b} {
			p := unsafe.Pointer(&s.slots[r>>1])
			sum += *(*uint64)(p) + *(*uint64)(unsafe.Add(p, unsafe.Sizeof(affine[F]{})-8))
		}
	}
	return sum
}

// special deals with an op that has infinity or equal x among its operands. It carries it out and returns
// true, or, for a doubling, sets d to the slope's divisor 2 y and leaves the rest to the batch.
func (s *portable[A, F, PF]) special(o op, d *F) (done bool) {
	switch {
	case s.empty(int(o.a >> 1)):
		s.move(int(o.dst), o.b)
		return true
	case s.empty(int(o.b >> 1)):
		s.move(int(o.dst), o.a)
		return true
	}
	ya, yb := signed[F, PF](&s.slots[o.a>>1].Y, o.a), signed[F, PF](&s.slots[o.b>>1].Y, o.b)
	if !PF(&ya).Equal(&yb) || PF(&ya).IsZero() {
		s.slots[o.dst] = affine[F]{}
		return true
	}
	PF(d).Double(&ya)
	return false
}

func signed[F any, PF field[F]](y *F, r uint32) F {
	if r&1 == 0 {
		return *y
	}
	var n F
	PF(&n).Neg(y)
	return n
}
