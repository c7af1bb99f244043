package lanes

import (
	"math/bits"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/host"
)

//go:noescape
func forwardG1(c, slots *uint64, a, b *uint32, groups int, d, prefix *uint64, flags *uint8, scratch *uint64)

//go:noescape
func backwardG1(c, slots *uint64, a, b, dst *uint32, groups int, d, prefix, scratch *uint64)

//go:noescape
func loadG1(c, slots *uint64, src *byte, offsets *uint32, groups int)

//go:noescape
func forwardG2(c, slots *uint64, a, b *uint32, groups int, d, prefix *uint64, flags *uint8, scratch *uint64)

//go:noescape
func backwardG2(c, slots *uint64, a, b, dst *uint32, groups int, d, prefix, scratch *uint64)

//go:noescape
func loadG2(c, slots *uint64, src *byte, offsets *uint32, groups int)

// G1 lists the stores of G1 that this machine can run, the fastest first.
func G1() []StoreKind[bls.G1Affine] {
	if hasIFMA {
		return []StoreKind[bls.G1Affine]{ifmaKind[bls.G1Affine, fp.Element](), PlainG1()}
	}
	return []StoreKind[bls.G1Affine]{PlainG1()}
}

// G2 is G1 for G2.
func G2() []StoreKind[bls.G2Affine] {
	if hasIFMA {
		return []StoreKind[bls.G2Affine]{ifmaKind[bls.G2Affine, bls.E2](), PlainG2()}
	}
	return []StoreKind[bls.G2Affine]{PlainG2()}
}

func ifmaKind[A, F any, PF coordinate[F]]() StoreKind[A] {
	return StoreKind[A]{
		Name: "avx512ifma", SlotBytes: int64(2 * degree[F]() * fpLimbs * 8), Bytes: ifmaBytes[F],
		New: func(arena *host.Arena, slots, workers int) Store[A] { return newIFMA[A, F, PF](arena, slots, workers) },
	}
}

// degree is the number of base-field elements of a coordinate: 1 or 2.
func degree[F any]() int {
	var f F
	return int(unsafe.Sizeof(f)) / fp.Bytes
}

// parts are the base-field elements of a coordinate or a point.
func parts[T any](x *T) []fp.Element {
	return unsafe.Slice((*fp.Element)(unsafe.Pointer(x)), int(unsafe.Sizeof(*x))/fp.Bytes)
}

// ifmaStore is a store for AVX-512 IFMA: eight additions at a time. A slot has the limbs of x's parts, then of y's;
// infinity is exactly zero, other values are not always canonical.
type ifmaStore[A, F any, PF coordinate[F]] struct {
	slots   []fpLimbForm // rows of them; the last slot takes what is thrown away
	rows    int          // of a slot: 2 or 4
	workers []ifmaWorker[A, F, PF]
}

type ifmaWorker[A, F any, PF coordinate[F]] struct {
	d, prefix []uint64 // of each group, in lane form; prefix has one group more
	scratch   []uint64
	flags     []uint8 // of each group: lanes that are left to addFew
	a, b, dst []uint32
	special   []Op
	few       *plain[A, F, PF]
}

const (
	// batchGroups is how many groups of eight additions share an inversion.
	batchGroups = BatchSize / Width
	// fewOps is how many additions outside the kernel share an inversion.
	fewOps = 64
	// partWords are the limbs of eight base-field elements.
	partWords = Width * fpLimbs
	// scratchCoordinates and scratchParts are what the kernels use.
	scratchCoordinates, scratchParts = 6, 3
	// opMargin is how far the kernel reads ahead of the ops.
	opMargin = 4 * Width
)

func ifmaBytes[F any](slots, workers int) int64 {
	k := degree[F]()
	perWorker := host.SliceBytes[uint64](batchGroups*k*partWords) + host.SliceBytes[uint64]((batchGroups+1)*k*partWords) +
		host.SliceBytes[uint64]((scratchCoordinates*k+scratchParts)*partWords) + 3*host.SliceBytes[uint32](BatchSize+opMargin) +
		host.SliceBytes[uint8](batchGroups) + plainBytes[F](2*fewOps, 1)
	return host.SliceBytes[fpLimbForm](2*k*(slots+1)) + int64(workers)*perWorker
}

func newIFMA[A, F any, PF coordinate[F]](arena *host.Arena, slots, workers int) *ifmaStore[A, F, PF] {
	k := degree[F]()
	s := &ifmaStore[A, F, PF]{slots: host.Alloc[fpLimbForm](arena, 2*k*(slots+1)), rows: 2 * k, workers: make([]ifmaWorker[A, F, PF], workers)}
	for i := range s.workers {
		w := &s.workers[i]
		w.d = host.Alloc[uint64](arena, batchGroups*k*partWords)
		w.prefix = host.Alloc[uint64](arena, (batchGroups+1)*k*partWords)
		w.scratch = host.Alloc[uint64](arena, (scratchCoordinates*k+scratchParts)*partWords)
		w.a = host.Alloc[uint32](arena, BatchSize+opMargin)
		w.b = host.Alloc[uint32](arena, BatchSize+opMargin)
		w.dst = host.Alloc[uint32](arena, BatchSize+opMargin)
		w.flags = host.Alloc[uint8](arena, batchGroups)
		w.few = newPlain[A, F, PF](arena, 2*fewOps, 1)
		// The margin must name slots that exist.
		clear(w.a)
		clear(w.b)
	}
	clear(s.slots)
	return s
}

func (s *ifmaStore[A, F, PF]) slot(at int) []fpLimbForm { return s.slots[at*s.rows:][:s.rows] }

func (s *ifmaStore[A, F, PF]) Load(at int, src []A, offsets []uint32) {
	groups := len(offsets) / Width
	if groups > 0 {
		from := (*byte)(unsafe.Pointer(&src[0]))
		if s.rows == 2 {
			loadG1(&fpConstants[0], &s.slot(at)[0][0], from, &offsets[0], groups)
		} else {
			loadG2(&fpConstants[0], &s.slot(at)[0][0], from, &offsets[0], groups)
		}
	}
	for i := groups * Width; i < len(offsets); i++ {
		s.set(at+i, &src[offsets[i]>>1])
	}
}

func (s *ifmaStore[A, F, PF]) set(at int, p *A) {
	to := s.slot(at)
	for i, x := range parts(p) {
		x.Mul(&x, &fpToLimbs)
		toLimbs(&to[i], &x)
	}
}

func (s *ifmaStore[A, F, PF]) Get(at int) (p A) {
	from, to := s.slot(at), parts(&p)
	for i := range to {
		x := fromLimbs(&from[i])
		to[i].Mul(&x, &fpFromLimbs)
	}
	return p
}

func (s *ifmaStore[A, F, PF]) Move(dst int, from uint32) {
	to := s.slot(dst)
	copy(to, s.slot(int(from>>1)))
	if from&1 == 1 {
		for i := s.rows / 2; i < s.rows; i++ {
			raw := fromLimbs(&to[i])
			raw.Neg(&raw)
			toLimbs(&to[i], &raw)
		}
	}
}

func (s *ifmaStore[A, F, PF]) Empty(at int) bool {
	slot := s.slot(at)
	if slot[0][0] != 0 {
		return false
	}
	for i := range slot {
		if slot[i] != (fpLimbForm{}) {
			return false
		}
	}
	return true
}

func (s *ifmaStore[A, F, PF]) Clear(from, to int) { clear(s.slots[from*s.rows : to*s.rows]) }

func (s *ifmaStore[A, F, PF]) Add(worker int, ops []Op) {
	for len(ops) > 0 {
		n := min(len(ops), BatchSize)
		if n < Width {
			s.addFew(&s.workers[worker], ops[:n])
		} else {
			s.addBatch(&s.workers[worker], ops[:n])
		}
		ops = ops[n:]
	}
}

func (s *ifmaStore[A, F, PF]) addBatch(w *ifmaWorker[A, F, PF], ops []Op) {
	trash := uint32(len(s.slots)/s.rows - 1)
	for i, o := range ops {
		w.a[i], w.b[i], w.dst[i] = o.A, o.B, o.Dst
	}
	groups := (len(ops) + Width - 1) / Width
	for i := len(ops); i < groups*Width; i++ {
		// Equal operands: the kernel leaves such lanes out, and the loop below too.
		w.a[i], w.b[i], w.dst[i] = 0, 0, trash
	}
	groupWords := s.rows / 2 * partWords
	clear(w.prefix[:groupWords])
	for j, limb := range fpOne {
		for l := range Width {
			w.prefix[j*Width+l] = limb
		}
	}
	c, slots, a, b, dst := &fpConstants[0], &s.slots[0][0], &w.a[0], &w.b[0], &w.dst[0]
	if s.rows == 2 {
		forwardG1(c, slots, a, b, groups, &w.d[0], &w.prefix[0], &w.flags[0], &w.scratch[0])
	} else {
		forwardG2(c, slots, a, b, groups, &w.d[0], &w.prefix[0], &w.flags[0], &w.scratch[0])
	}
	w.special = w.special[:0]
	for g, flags := range w.flags[:groups] {
		for ; flags != 0; flags &= flags - 1 {
			if i := g*Width + bits.TrailingZeros8(flags); i < len(ops) {
				w.special = append(w.special, ops[i])
				w.dst[i] = trash
			}
		}
	}
	invertLanes[F, PF](w.prefix[groups*groupWords:], w.scratch)
	if s.rows == 2 {
		backwardG1(c, slots, a, b, dst, groups, &w.d[0], &w.prefix[0], &w.scratch[0])
	} else {
		backwardG2(c, slots, a, b, dst, groups, &w.d[0], &w.prefix[0], &w.scratch[0])
	}
	s.addFew(w, w.special)
}

// addFew adds in gnark-crypto's form, for all inputs.
func (s *ifmaStore[A, F, PF]) addFew(w *ifmaWorker[A, F, PF], ops []Op) {
	var pairs [fewOps]Op
	for len(ops) > 0 {
		n := min(len(ops), fewOps)
		for i, o := range ops[:n] {
			a, b := s.Get(int(o.A>>1)), s.Get(int(o.B>>1))
			w.few.set(2*i, &a)
			w.few.set(2*i+1, &b)
			pairs[i] = Op{uint32(2 * i), Ref(2*i) | o.A&1, Ref(2*i+1) | o.B&1}
		}
		w.few.Add(0, pairs[:n])
		for i, o := range ops[:n] {
			p := w.few.Get(2 * i)
			s.set(int(o.Dst), &p)
		}
		ops = ops[n:]
	}
}

// invertLanes inverts the eight coordinates of a group, none of them zero, with one inversion.
func invertLanes[F any, PF coordinate[F]](src, dst []uint64) {
	var x, before [Width]F
	var product F
	PF(&product).SetOne()
	for l := range Width {
		p := parts(&x[l])
		for i := range p {
			var limbs fpLimbForm
			for j := range limbs {
				limbs[j] = src[i*partWords+j*Width+l]
			}
			p[i] = fromLimbs(&limbs)
		}
		before[l] = product
		PF(&product).Mul(&product, &x[l])
	}
	PF(&product).Inverse(&product)
	for l := Width - 1; l >= 0; l-- {
		var inverse F
		PF(&inverse).Mul(&product, &before[l])
		PF(&product).Mul(&product, &x[l])
		for i, p := range parts(&inverse) {
			p.Mul(&p, &fpInverse)
			var limbs fpLimbForm
			toLimbs(&limbs, &p)
			for j := range limbs {
				dst[i*partWords+j*Width+l] = limbs[j]
			}
		}
	}
}
