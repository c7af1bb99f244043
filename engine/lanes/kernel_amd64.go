package lanes

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// ifmaRows is the Kernel for AVX-512 IFMA: a row is eight elements in limbs of 52 bits. Values stay in
// gnark-crypto's form (x 2^256); constants are x 2^260, so that a product of a value and a constant, which
// divides by 2^260, is a value again. A product of two values is short of a factor 2^4.
// Values in a buffer are below 36 r, see the bounds at rowsDIF and rowsDIT in gen_rows.go.
type ifmaRows struct{}

// frRowWords is the size of a row.
const frRowWords = Width * frLimbs

// frShift is 2^260 / 2^256.
var frShift = new(fr.Element).SetUint64(16)

//go:noescape
func rowsDIF(c, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)

//go:noescape
func rowsDIT(c, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)

//go:noescape
func rowsScale(c, buf *uint64, size int, factors *uint64)

//go:noescape
func rowsMul(c, a, b *uint64, size int)

//go:noescape
func rowsPowers(c, buf *uint64, size int, order *uint32, at *uint64)

//go:noescape
func rowsSub(c, a, b *uint64, size int)

//go:noescape
func rowsLoad(c, buf, mem *uint64, at *uint64, stride, size int, order *uint32)

//go:noescape
func rowsStore(c, buf, mem *uint64, at *uint64, stride, size int, order *uint32)

func (ifmaRows) Words() int            { return frRowWords }
func (ifmaRows) ConstantWords() int    { return frLimbs }
func (ifmaRows) MulFactor() fr.Element { return *frShift }

func (ifmaRows) Constants(dst []uint64, x []fr.Element) {
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

func (ifmaRows) Load(buf []uint64, src []fr.Element, p *Place) {
	at, order := p.addresses()
	rowsLoad(&frConstants[0], &buf[0], &src[0][0], &at[0], p.Stride*fr.Bytes, p.Size, order)
}

func (ifmaRows) Store(dst []fr.Element, p *Place, buf []uint64) {
	at, order := p.addresses()
	rowsStore(&frConstants[0], &buf[0], &dst[0][0], &at[0], p.Stride*fr.Bytes, p.Size, order)
}

// addresses gives the lanes' offsets in bytes, all of them: see Kernels.
func (p *Place) addresses() (at [Width]uint64, order *uint32) {
	for l := range at {
		at[l] = uint64(p.At[l]) * fr.Bytes
	}
	if p.Order != nil {
		order = &p.Order[0]
	}
	return at, order
}

// cacheRows is how many rows of a buffer the first cache holds: 40 KiB.
const cacheRows = 128

func (ifmaRows) DIF(buf []uint64, size int, twiddles []uint64) {
	difRows(buf, size, twiddles, 1, 0)
}

// difRows transforms a run of rows from a layer on: big runs layer by layer, halves that fit the cache one
// after the other. Every fourth layer brings the sums down.
func difRows(buf []uint64, size int, twiddles []uint64, step, layer int) {
	for m := size / 2; m > 0; m, step, layer = m/2, step*2, layer+1 {
		rowsDIF(&frConstants[0], &buf[0], size, m, &twiddles[0], step, layer&3 == 3)
		if size > cacheRows {
			half := size / 2 * frRowWords
			difRows(buf[:half], size/2, twiddles, 2*step, layer+1)
			difRows(buf[half:], size/2, twiddles, 2*step, layer+1)
			return
		}
	}
}

func (ifmaRows) DIT(buf []uint64, size int, twiddles []uint64) {
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
		rowsDIT(&frConstants[0], &buf[0], size, m, &twiddles[0], step*(size/2/m), false)
	}
}

func (ifmaRows) Scale(buf []uint64, size int, factors []uint64) {
	rowsScale(&frConstants[0], &buf[0], size, &factors[0])
}

func (ifmaRows) Powers(buf []uint64, order []uint32, first, ratio *[Width]fr.Element) {
	var at [2 * frRowWords]uint64
	for l := range Width {
		f, r := constantLimbs(&first[l]), constantLimbs(&ratio[l])
		for j := range frLimbs {
			at[j*Width+l] = f[j]
			at[frRowWords+j*Width+l] = r[j]
		}
	}
	rowsPowers(&frConstants[0], &buf[0], len(order), &order[0], &at[0])
}

func (ifmaRows) Mul(a, b []uint64, size int) {
	rowsMul(&frConstants[0], &a[0], &b[0], size)
}

func (ifmaRows) Sub(a, b []uint64, size int) {
	rowsSub(&frConstants[0], &a[0], &b[0], size)
}

// Kernels lists the kernels that this machine can run on a domain of n points, the fastest first. The lanes of
// IFMA want at least eight rows and columns, and at most 2^14 of them for the bounds of rowsDIT.
func Kernels(n int) []Kernel {
	if hasIFMA && n >= Width*Width && n <= 1<<28 {
		return []Kernel{ifmaRows{}, plainRows{}}
	}
	return []Kernel{plainRows{}}
}
