package lanes

import (
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// plainRows is the Kernel on gnark-crypto's field: any machine, any size.
type plainRows struct{}

func (plainRows) Words() int         { return Width * fr.Limbs }
func (plainRows) ConstantWords() int { return fr.Limbs }

// elements views a buffer or table as field elements.
func elements(words []uint64) []fr.Element {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*fr.Element)(unsafe.Pointer(&words[0])), len(words)/fr.Limbs)
}

func (plainRows) Constants(dst []uint64, x []fr.Element) { copy(elements(dst), x) }

func (plainRows) Load(buf []uint64, src []fr.Element, p *Place) {
	b := elements(buf)
	for i := range p.Size {
		row := b[i*Width:][:Width]
		for l := range p.Count {
			row[l] = src[p.At[l]+p.row(i)*p.Stride]
		}
		clear(row[p.Count:])
	}
}

func (plainRows) Store(dst []fr.Element, p *Place, buf []uint64) {
	b := elements(buf)
	for i := range p.Size {
		row := b[i*Width:][:Width]
		for l := range p.Count {
			dst[p.At[l]+p.row(i)*p.Stride] = row[l]
		}
	}
}

func (plainRows) DIF(buf []uint64, size int, twiddles []uint64) {
	b, w := elements(buf), elements(twiddles)
	for m, step := size/2, 1; m > 0; m, step = m/2, step*2 {
		for base := 0; base < size; base += 2 * m {
			for j := range m {
				x, y := butterflyRows(b, base+j, m)
				for l := range Width {
					fr.Butterfly(&x[l], &y[l])
				}
				if j == 0 { // a factor of one: two layers' worth of them in all
					continue
				}
				f := &w[j*step]
				for l := range Width {
					y[l].Mul(&y[l], f)
				}
			}
		}
	}
}

func (plainRows) DIT(buf []uint64, size int, twiddles []uint64) {
	b, w := elements(buf), elements(twiddles)
	for m, step := 1, size/2; m < size; m, step = m*2, step/2 {
		for base := 0; base < size; base += 2 * m {
			for j := range m {
				x, y := butterflyRows(b, base+j, m)
				if j > 0 {
					f := &w[j*step]
					for l := range Width {
						y[l].Mul(&y[l], f)
					}
				}
				for l := range Width {
					fr.Butterfly(&x[l], &y[l])
				}
			}
		}
	}
}

// butterflyRows are row i and the row m behind it.
func butterflyRows(b []fr.Element, i, m int) (x, y *[Width]fr.Element) {
	return (*[Width]fr.Element)(b[i*Width:]), (*[Width]fr.Element)(b[(i+m)*Width:])
}

func (plainRows) Scale(buf []uint64, size int, factors []uint64) {
	b, f := elements(buf), elements(factors)
	for i := range size {
		for l := range Width {
			b[i*Width+l].Mul(&b[i*Width+l], &f[i])
		}
	}
}

func (plainRows) Powers(buf []uint64, order []uint32, first, ratio *[Width]fr.Element) {
	b, at := elements(buf), *first
	for _, k := range order {
		row := b[int(k)*Width:][:Width]
		for l := range Width {
			row[l].Mul(&row[l], &at[l])
			at[l].Mul(&at[l], &ratio[l])
		}
	}
}

func (plainRows) MulFactor() fr.Element { return fr.One() }

func (plainRows) Mul(a, b []uint64, size int) {
	x, y := elements(a), elements(b)
	for i := range size * Width {
		x[i].Mul(&x[i], &y[i])
	}
}

func (plainRows) Sub(a, b []uint64, size int) {
	x, y := elements(a), elements(b)
	for i := range size * Width {
		x[i].Sub(&x[i], &y[i])
	}
}
