package cpu

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// ifmaLanes is the laneKernel for AVX-512 IFMA: a row is eight elements in limbs of 52 bits. Values stay in
// gnark-crypto's form (x 2^256); constants are x 2^260, so that a product of a value and a constant, which
// divides by 2^260, is a value again. A product of two values is short of a factor 2^4.
// Values in a buffer are below 36 r, see the bounds at ifmaDIF and ifmaDIT in gen_ifma.go.
type ifmaLanes struct{}

const (
	frLimbs    = 5
	frRowWords = lanes * frLimbs
)

var (
	frConstants = ifmaConstants(fr.Modulus(), frLimbs, new(big.Int), 46)
	frShift     = new(fr.Element).SetUint64(16) // 2^260 / 2^256
)

//go:noescape
func ifmaDIF(c *uint64, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)

//go:noescape
func ifmaDIT(c *uint64, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)

//go:noescape
func ifmaScale(c *uint64, buf *uint64, size int, factors *uint64)

//go:noescape
func ifmaMul(c *uint64, a, b *uint64, size int)

//go:noescape
func ifmaPowers(c *uint64, buf *uint64, size int, order *uint32, at *uint64)

//go:noescape
func ifmaSub(c *uint64, a, b *uint64, size int)

//go:noescape
func ifmaLoadLanes(c *uint64, buf *uint64, mem *uint64, at *uint64, stride, size int, order *uint32)

//go:noescape
func ifmaStoreLanes(c *uint64, buf *uint64, mem *uint64, at *uint64, stride, size int, order *uint32)

func (ifmaLanes) words() int            { return frRowWords }
func (ifmaLanes) constantWords() int    { return frLimbs }
func (ifmaLanes) mulFactor() fr.Element { return *frShift }

func (ifmaLanes) constants(dst []uint64, x []fr.Element) {
	for i := range x {
		l := constantLimbs(&x[i])
		copy(dst[i*frLimbs:], l[:])
	}
}

// constantLimbs brings an element into the form of constants: words of x 2^260 in limbs.
func constantLimbs(x *fr.Element) [frLimbs]uint64 {
	var w fr.Element
	w.Mul(x, frShift)
	return [frLimbs]uint64{
		w[0] & limbMask,
		(w[0]>>52 | w[1]<<12) & limbMask,
		(w[1]>>40 | w[2]<<24) & limbMask,
		(w[2]>>28 | w[3]<<36) & limbMask,
		w[3] >> 16,
	}
}

func (ifmaLanes) load(buf []uint64, src []fr.Element, p *place) {
	at, order := p.addresses()
	ifmaLoadLanes(&frConstants[0], &buf[0], &src[0][0], &at[0], p.stride*fr.Bytes, p.size, order)
}

func (ifmaLanes) store(dst []fr.Element, p *place, buf []uint64) {
	at, order := p.addresses()
	ifmaStoreLanes(&frConstants[0], &buf[0], &dst[0][0], &at[0], p.stride*fr.Bytes, p.size, order)
}

// addresses gives the lanes' offsets in bytes, all of them: see ifmaKernel.
func (p *place) addresses() (at [lanes]uint64, order *uint32) {
	for l := range at {
		at[l] = uint64(p.at[l]) * fr.Bytes
	}
	if p.order != nil {
		order = &p.order[0]
	}
	return at, order
}

// cacheRows is how many rows of a buffer the first cache holds: 40 KiB.
const cacheRows = 128

func (ifmaLanes) dif(buf []uint64, size int, twiddles []uint64) {
	difRows(buf, size, twiddles, 1, 0)
}

// difRows transforms a run of rows from a layer on: big runs layer by layer, halves that fit the cache one
// after the other. Every fourth layer brings the sums down.
func difRows(buf []uint64, size int, twiddles []uint64, step, layer int) {
	for m := size / 2; m > 0; m, step, layer = m/2, step*2, layer+1 {
		ifmaDIF(&frConstants[0], &buf[0], size, m, &twiddles[0], step, layer&3 == 3)
		if size > cacheRows {
			half := size / 2 * frRowWords
			difRows(buf[:half], size/2, twiddles, 2*step, layer+1)
			difRows(buf[half:], size/2, twiddles, 2*step, layer+1)
			return
		}
	}
}

func (ifmaLanes) dit(buf []uint64, size int, twiddles []uint64) {
	ditRows(buf, size, twiddles, 1)
}

func ditRows(buf []uint64, size int, twiddles []uint64, step int) {
	first := 1
	if size > cacheRows {
		half := size / 2 * frRowWords
		ditRows(buf[:half], size/2, twiddles, 2*step)
		ditRows(buf[half:], size/2, twiddles, 2*step)
		first = size / 2
	}
	for m := first; m < size; m *= 2 {
		ifmaDIT(&frConstants[0], &buf[0], size, m, &twiddles[0], step*(size/2/m), false)
	}
}

func (ifmaLanes) scale(buf []uint64, size int, factors []uint64) {
	ifmaScale(&frConstants[0], &buf[0], size, &factors[0])
}

func (ifmaLanes) powers(buf []uint64, order []uint32, first, ratio *[lanes]fr.Element) {
	var at [2 * frRowWords]uint64
	for l := range lanes {
		f, r := constantLimbs(&first[l]), constantLimbs(&ratio[l])
		for j := range frLimbs {
			at[j*lanes+l] = f[j]
			at[frRowWords+j*lanes+l] = r[j]
		}
	}
	ifmaPowers(&frConstants[0], &buf[0], len(order), &order[0], &at[0])
}

func (ifmaLanes) mul(a, b []uint64, size int) {
	ifmaMul(&frConstants[0], &a[0], &b[0], size)
}

func (ifmaLanes) sub(a, b []uint64, size int) {
	ifmaSub(&frConstants[0], &a[0], &b[0], size)
}

// ifmaKernel returns ifmaLanes where the machine has it and the domain suits it: at least eight rows and
// columns, so that all lanes are used, and at most 2^14 of them, for the bounds of ifmaDIT.
func ifmaKernel(n int) (laneKernel, bool) {
	return ifmaLanes{}, hasIFMA && n >= lanes*lanes && n <= 1<<28
}
