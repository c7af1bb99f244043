package cpu

import (
	"math/big"
	"math/bits"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"golang.org/x/sys/cpu"

	"github.com/sealc2/sealc2/engine/host"
)

//go:generate sh -c "go run gen_ifma.go > ifma_amd64.s"

// hasIFMA tells whether the CPU and the system have the instructions of ifma_amd64.s.
var hasIFMA = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512IFMA

// Fields in limbs of 52 bits. A value x is held as x 2^416 mod p (Montgomery form of 8 limbs), below 1.002 p
// and so not always canonical; infinity is exactly zero.
const (
	fpLimbs   = 8
	limbBits  = 52
	limbMask  = 1<<limbBits - 1
	slotWords = 2 * fpLimbs // limbs of x, then of y: two cache lines
)

// ifmaConstants lays out the constants of a field with n limbs as gen_ifma.go reads them: multiples 1 to 6 of
// the modulus; -1/p mod 2^52, the limb mask, the quotient's factor and slack; the factor that load multiplies
// by; for each limb, its values in 0 to 7 times the modulus; two indexes for the way from lanes to memory; the
// modulus' complement to all limbs, and 16 times the modulus. The quotient's factor is scaled by 2^scale.
func ifmaConstants(modulus *big.Int, n int, factor *big.Int, scale uint) []uint64 {
	var c []uint64
	multiple := func(k int64) []uint64 { return limbsOf(new(big.Int).Mul(modulus, big.NewInt(k)), n) }
	for k := int64(1); k <= 6; k++ {
		c = append(c, multiple(k)...)
	}
	radix := new(big.Int).Lsh(big.NewInt(1), limbBits)
	inverse := new(big.Int).ModInverse(modulus, radix)
	inverse.Sub(radix, inverse)
	top := multiple(1)[n-1]
	quotient := new(big.Int).Lsh(big.NewInt(1), limbBits+scale)
	quotient.Div(quotient, new(big.Int).SetUint64(top+1))
	c = append(c, inverse.Uint64(), limbMask, quotient.Uint64(), 64)
	c = append(c, limbsOf(factor, n)...)
	for j := range n {
		for k := range int64(8) {
			c = append(c, multiple(k)[j])
		}
	}
	c = append(c, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
	all := new(big.Int).Lsh(big.NewInt(1), uint(n)*limbBits)
	c = append(c, limbsOf(all.Sub(all, modulus), n)...)
	return append(c, multiple(16)...)
}

// limbsOf cuts x into n limbs; the last takes what is left.
func limbsOf(x *big.Int, n int) []uint64 {
	l := make([]uint64, n)
	rest := new(big.Int).Set(x)
	mask := big.NewInt(limbMask)
	for i := range n - 1 {
		l[i] = new(big.Int).And(rest, mask).Uint64()
		rest.Rsh(rest, limbBits)
	}
	l[n-1] = rest.Uint64()
	return l
}

// pow2 is 2^e mod p as a raw element (the four or six words themselves).
func pow2fp(e uint) fp.Element {
	x := new(big.Int).Lsh(big.NewInt(1), e)
	x.Mod(x, fp.Modulus())
	var r fp.Element
	for i := range r {
		r[i] = x.Uint64()
		x.Rsh(x, 64)
	}
	return r
}

var (
	fpConstants = ifmaConstants(fp.Modulus(), fpLimbs, new(big.Int).Mod(new(big.Int).Lsh(big.NewInt(1), 448), fp.Modulus()), 0)
	// With raw words x 2^384 (gnark-crypto's form) and x 2^416 (ours), a product of raw words divides by
	// 2^384: these factors go from theirs to ours, from ours to theirs, and from the inverse of ours, read as
	// theirs, to ours.
	fpToLimbs, fpFromLimbs, fpInverse = pow2fp(416), pow2fp(352), pow2fp(448)
)

//go:noescape
func ifmaForward(c *uint64, slots *uint64, a, b *uint32, groups int, d, prefix *uint64, flags *uint8)

//go:noescape
func ifmaBackward(c *uint64, slots *uint64, a, b, dst *uint32, groups int, d, prefix, scratch *uint64)

//go:noescape
func ifmaLoad(c *uint64, dst *uint64, src *byte, offsets *uint32, groups int, scratch *uint64)

// slot is a point of an ifmaStore.
type slot [slotWords]uint64

// ifmaGroups is how many groups of eight additions share an inversion.
const ifmaGroups = addBatchSize / lanes

// ifmaStore is a store of G1 points for AVX-512 IFMA: eight additions at a time.
type ifmaStore struct {
	slots   []slot // the last one takes what is thrown away
	workers []ifmaWorker
}

type ifmaWorker struct {
	d, prefix []uint64 // of each group, in lane form; prefix has one group more
	scratch   []uint64
	flags     []uint8 // of each group: lanes that are left to special
	a, b, dst []uint32
	special   []op
	few       *portable[bls.G1Affine, fp.Element, *fp.Element]
}

// fewOps is how many additions outside the kernel share an inversion.
const fewOps = 64

const (
	groupWords   = lanes * fpLimbs
	scratchWords = 6 * groupWords
	// opMargin is how far the kernel reads ahead of the ops.
	opMargin = 4 * lanes
)

func ifmaBytes(slots, workers int) int64 {
	perWorker := host.SliceBytes[uint64](ifmaGroups*groupWords) + host.SliceBytes[uint64]((ifmaGroups+1)*groupWords) +
		host.SliceBytes[uint64](scratchWords) + 3*host.SliceBytes[uint32](addBatchSize+opMargin) + host.SliceBytes[uint8](ifmaGroups) + portableBytes[fp.Element](2*fewOps, 1)
	return host.SliceBytes[slot](slots+1) + int64(workers)*perWorker
}

func newIFMAStore(arena *host.Arena, slots, workers int) store[bls.G1Affine] {
	s := &ifmaStore{slots: host.Alloc[slot](arena, slots+1), workers: make([]ifmaWorker, workers)}
	for i := range s.workers {
		w := &s.workers[i]
		w.d = host.Alloc[uint64](arena, ifmaGroups*groupWords)
		w.prefix = host.Alloc[uint64](arena, (ifmaGroups+1)*groupWords)
		w.scratch = host.Alloc[uint64](arena, scratchWords)
		w.a = host.Alloc[uint32](arena, addBatchSize+opMargin)
		w.b = host.Alloc[uint32](arena, addBatchSize+opMargin)
		w.dst = host.Alloc[uint32](arena, addBatchSize+opMargin)
		w.flags = host.Alloc[uint8](arena, ifmaGroups)
		w.few = newPortable[bls.G1Affine, fp.Element](arena, 2*fewOps, 1)
		// The margin must name slots that exist.
		clear(w.a)
		clear(w.b)
	}
	clear(s.slots)
	return s
}

func (s *ifmaStore) load(at int, src []bls.G1Affine, offsets []uint32) {
	groups := len(offsets) / lanes
	if groups > 0 {
		var scratch [groupWords]uint64
		ifmaLoad(&fpConstants[0], &s.slots[at][0], (*byte)(unsafe.Pointer(&src[0])), &offsets[0], groups, &scratch[0])
	}
	for i := groups * lanes; i < len(offsets); i++ {
		s.set(at+i, &src[offsets[i]>>1])
	}
}

func (s *ifmaStore) set(at int, p *bls.G1Affine) {
	var x, y fp.Element
	x.Mul(&p.X, &fpToLimbs)
	y.Mul(&p.Y, &fpToLimbs)
	toLimbs((*[fpLimbs]uint64)(s.slots[at][:fpLimbs]), &x)
	toLimbs((*[fpLimbs]uint64)(s.slots[at][fpLimbs:]), &y)
}

func (s *ifmaStore) get(at int) (p bls.G1Affine) {
	x := fromLimbs((*[fpLimbs]uint64)(s.slots[at][:fpLimbs]))
	y := fromLimbs((*[fpLimbs]uint64)(s.slots[at][fpLimbs:]))
	p.X.Mul(&x, &fpFromLimbs)
	p.Y.Mul(&y, &fpFromLimbs)
	return p
}

func (s *ifmaStore) move(dst int, from uint32) {
	s.slots[dst] = s.slots[from>>1]
	if from&1 == 1 {
		y := (*[fpLimbs]uint64)(s.slots[dst][fpLimbs:])
		raw := fromLimbs(y)
		raw.Neg(&raw)
		toLimbs(y, &raw)
	}
}

func (s *ifmaStore) empty(at int) bool {
	return s.slots[at][0] == 0 && s.slots[at] == slot{}
}

func (s *ifmaStore) clear(from, to int) { clear(s.slots[from:to]) }

// toLimbs cuts a raw element into limbs; fromLimbs puts them together and makes the value canonical.
func toLimbs(l *[fpLimbs]uint64, x *fp.Element) {
	l[0] = x[0] & limbMask
	l[1] = (x[0]>>52 | x[1]<<12) & limbMask
	l[2] = (x[1]>>40 | x[2]<<24) & limbMask
	l[3] = (x[2]>>28 | x[3]<<36) & limbMask
	l[4] = (x[3]>>16 | x[4]<<48) & limbMask
	l[5] = x[4] >> 4 & limbMask
	l[6] = (x[4]>>56 | x[5]<<8) & limbMask
	l[7] = x[5] >> 44
}

func fromLimbs(l *[fpLimbs]uint64) (x fp.Element) {
	x[0] = l[0] | l[1]<<52
	x[1] = l[1]>>12 | l[2]<<40
	x[2] = l[2]>>24 | l[3]<<28
	x[3] = l[3]>>36 | l[4]<<16
	x[4] = l[4]>>48 | l[5]<<4 | l[6]<<56
	x[5] = l[6]>>8 | l[7]<<44
	return canonical(x)
}

var fpModulus = pow2Modulus()

func pow2Modulus() (m [fp.Limbs]uint64) {
	x := fp.Modulus()
	for i := range m {
		m[i] = x.Uint64()
		x.Rsh(x, 64)
	}
	return m
}

// canonical subtracts the modulus once from raw words that are not below it.
func canonical(x fp.Element) fp.Element {
	var y fp.Element
	var borrow uint64
	for i := range x {
		y[i], borrow = bits.Sub64(x[i], fpModulus[i], borrow)
	}
	if borrow == 1 {
		return x
	}
	return y
}

func (s *ifmaStore) add(worker int, ops []op) {
	for len(ops) > 0 {
		n := min(len(ops), addBatchSize)
		if n < lanes {
			s.addFew(&s.workers[worker], ops[:n])
		} else {
			s.addBatch(&s.workers[worker], ops[:n])
		}
		ops = ops[n:]
	}
}

func (s *ifmaStore) addBatch(w *ifmaWorker, ops []op) {
	trash := uint32(len(s.slots) - 1)
	for i, o := range ops {
		w.a[i], w.b[i], w.dst[i] = o.a, o.b, o.dst
	}
	groups := (len(ops) + lanes - 1) / lanes
	for i := len(ops); i < groups*lanes; i++ {
		// Equal operands: the kernel leaves such lanes out, and the loop below too.
		w.a[i], w.b[i], w.dst[i] = 0, 0, trash
	}
	one := w.prefix[:groupWords]
	for j := range one {
		one[j] = fpOne[j/lanes]
	}
	ifmaForward(&fpConstants[0], &s.slots[0][0], &w.a[0], &w.b[0], groups, &w.d[0], &w.prefix[0], &w.flags[0])
	w.special = w.special[:0]
	for g, flags := range w.flags[:groups] {
		for ; flags != 0; flags &= flags - 1 {
			if i := g*lanes + bits.TrailingZeros8(flags); i < len(ops) {
				w.special = append(w.special, ops[i])
				w.dst[i] = trash
			}
		}
	}
	invertLanes(w.prefix[groups*groupWords:][:groupWords], w.scratch)
	ifmaBackward(&fpConstants[0], &s.slots[0][0], &w.a[0], &w.b[0], &w.dst[0], groups, &w.d[0], &w.prefix[0], &w.scratch[0])
	s.addFew(w, w.special)
}

// fpOne is the one in limbs: 2^416 mod p.
var fpOne = limbsOf(new(big.Int).Mod(new(big.Int).Lsh(big.NewInt(1), fpLimbs*limbBits), fp.Modulus()), fpLimbs)

// addFew adds in gnark-crypto's form, for all inputs.
func (s *ifmaStore) addFew(w *ifmaWorker, ops []op) {
	var pairs [fewOps]op
	for len(ops) > 0 {
		n := min(len(ops), fewOps)
		for i, o := range ops[:n] {
			w.few.slots[2*i] = affine[fp.Element](s.get(int(o.a >> 1)))
			w.few.slots[2*i+1] = affine[fp.Element](s.get(int(o.b >> 1)))
			pairs[i] = op{uint32(2 * i), ref(2*i) | o.a&1, ref(2*i+1) | o.b&1}
		}
		w.few.add(0, pairs[:n])
		for i, o := range ops[:n] {
			p := w.few.get(2 * i)
			s.set(int(o.dst), &p)
		}
		ops = ops[n:]
	}
}

// invertLanes inverts the eight elements of a group, none of them zero, with one inversion.
func invertLanes(src, dst []uint64) {
	var x, before [lanes]fp.Element
	var product fp.Element
	product.SetOne()
	for l := range lanes {
		var limbs [fpLimbs]uint64
		for j := range limbs {
			limbs[j] = src[j*lanes+l]
		}
		x[l] = fromLimbs(&limbs)
		before[l] = product
		product.Mul(&product, &x[l])
	}
	product.Inverse(&product)
	for l := lanes - 1; l >= 0; l-- {
		var inverse fp.Element
		inverse.Mul(&product, &before[l])
		product.Mul(&product, &x[l])
		inverse.Mul(&inverse, &fpInverse)
		var limbs [fpLimbs]uint64
		toLimbs(&limbs, &inverse)
		for j := range limbs {
			dst[j*lanes+l] = limbs[j]
		}
	}
}

// ifmaG1 returns the kind of ifmaStore, where the machine has it.
func ifmaG1() (storeKind[bls.G1Affine], bool) {
	return storeKind[bls.G1Affine]{name: "avx512ifma", slotBytes: slotWords * 8, bytes: ifmaBytes, make: newIFMAStore}, hasIFMA
}
