package lanes

import (
	"math/bits"
	"unsafe"
)

// The functions in plain Go: what runs without IFMA, and what the assembly is tested against.

func mulGeneric(dst, a, b *Block) {
	var out Block
	for k := range Width {
		var acc [limbCount + 1]uint64
		for i := range limbCount {
			// acc += a · b[i], then += q · p with q such that the lowest limb vanishes, then a limb down.
			step := func(x *Block, factor uint64) {
				for j := range limbCount {
					hi, lo := bits.Mul64(x[j][k]&limbMask, factor&limbMask)
					acc[j] += lo & limbMask
					acc[j+1] += hi<<(64-limbBits) | lo>>limbBits
				}
			}
			step(a, b[i][k])
			step(&constants.modulus, acc[0]*constants.negInv[k])
			carry := acc[0] >> limbBits
			copy(acc[:], acc[1:])
			acc[0] += carry
			acc[limbCount] = 0
		}
		for j := range limbCount - 1 {
			acc[j+1] += acc[j] >> limbBits
			acc[j] &= limbMask
		}
		for j := range limbCount {
			out[j][k] = acc[j]
		}
	}
	*dst = out
}

// carry brings limbs into range; the top one takes the rest, and limbs may be negative on the way.
func carry(b *Block) {
	for i := range limbCount - 1 {
		for k := range Width {
			b[i+1][k] += uint64(int64(b[i][k]) >> limbBits)
			b[i][k] &= limbMask
		}
	}
}

func addGeneric(dst, a, b *Block) {
	for i := range dst {
		for k := range dst[i] {
			dst[i][k] = a[i][k] + b[i][k]
		}
	}
	carry(dst)
}

func subGeneric(dst, a, b *Block) {
	for i := range dst {
		for k := range dst[i] {
			dst[i][k] = a[i][k] - b[i][k] + constants.bias[i][k]
		}
	}
	carry(dst)
}

func foldGeneric(dst, a, b, c *Block) {
	for i := range dst {
		for k := range dst[i] {
			dst[i][k] = a[i][k] - b[i][k] - c[i][k] + constants.bias[i][k]
		}
	}
	carry(dst)
	for k := range Width {
		hi, lo := bits.Mul64(dst[limbCount-1][k], constants.quotient[k])
		times := (hi<<(64-limbBits) | lo>>limbBits) & (Width - 1)
		for i := range dst {
			dst[i][k] -= constants.multiples[i][times]
		}
	}
	carry(dst)
}

func negateGeneric(b *Block, mask uint8) {
	for i := range b {
		for k := range b[i] {
			if mask>>k&1 == 1 {
				b[i][k] = constants.twice[i][k] - b[i][k]
			}
		}
	}
	carry(b)
}

// rowAt is the row `offset` rows after r.
func rowAt(r *Row, offset uintptr) *Row {
	return (*Row)(unsafe.Add(unsafe.Pointer(r), offset*unsafe.Sizeof(Row{})))
}

func loadGeneric(dst *Block, rows *[Width]*Row, offset uintptr) {
	for k := range rows {
		r := rowAt(rows[k], offset)
		for i := range r {
			dst[i][k] = r[i]
		}
	}
}

func storeGeneric(src *Block, rows *[Width]*Row, offset uintptr) {
	for k := range rows {
		r := rowAt(rows[k], offset)
		for i := range r {
			r[i] = src[i][k]
		}
	}
}
