package lanes

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Kernel is the arithmetic of a transform's pass. A buffer holds size rows of eight lanes, in a form of the
// kernel's own; values are in Montgomery form as fr.Element outside. Sizes are powers of two.
type Kernel interface {
	// Words is the size of a buffer for one row of lanes, in 64-bit words.
	Words() int
	// Constants brings factors into the kernel's form: ConstantWords words each.
	Constants(dst []uint64, x []fr.Element)
	ConstantWords() int
	// Load takes a buffer from its place in memory; lanes that the place does not have are zero. Store is
	// its opposite.
	Load(buf []uint64, src []fr.Element, p *Place)
	Store(dst []fr.Element, p *Place, buf []uint64)
	// DIF and DIT transform the size rows of a buffer, for all lanes: natural order in and bit-reversed out,
	// and the other way round. twiddles are powers 0 to size/2-1 of the root, as constants.
	DIF(buf []uint64, size int, twiddles []uint64)
	DIT(buf []uint64, size int, twiddles []uint64)
	// Scale multiplies row i by factors[i].
	Scale(buf []uint64, size int, factors []uint64)
	// Powers multiplies lane l of row order[k] by first[l] * ratio[l]^k.
	Powers(buf []uint64, order []uint32, first, ratio *[Width]fr.Element)
	// Mul multiplies buffers row by row and lane by lane, where b is as Load left it; the product is short of
	// the factor MulFactor. Sub subtracts b from a.
	Mul(a, b []uint64, size int)
	MulFactor() fr.Element
	Sub(a, b []uint64, size int)
}

// A Place says where a buffer is in a vector: lane l of row i is element At[l] + i*Stride, or Order[i]*Stride.
type Place struct {
	At     [Width]int
	Stride int
	Count  int // lanes that there are
	Size   int // rows of the buffer
	Order  []uint32
}

// row is where row i of the buffer is, in strides.
func (p *Place) row(i int) int {
	if p.Order != nil {
		return int(p.Order[i])
	}
	return i
}
