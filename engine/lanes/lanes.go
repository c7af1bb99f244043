// Package lanes does the arithmetic of point coordinates eight at a time: the base field of BLS12-381
// in limbs of 52 bits for the AVX-512 IFMA instructions, its quadratic extension, and batches of affine
// additions over either. A multiplication takes about a quarter of the time of gnark-crypto's.
//
// It knows no circuit and no file. It works on every machine, but is of use only where Fast says so:
// elsewhere the same functions run in plain Go, slower than gnark-crypto. Callers are params (fixed-base
// tables) and whoever adds up many affine points.
//
// Numbers are in Montgomery form with factor 2^416 and not fully reduced. The bounds, in units of p: what
// Mul, Fold and Import give is below 1.01; factors may be as large as 16; the sums and differences in
// between are the caller's to bound. Export gives the one canonical form.
package lanes

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

const (
	// Width is the number of elements in a block.
	Width     = 8
	limbCount = 8
	limbBits  = 52
	limbMask  = 1<<limbBits - 1
)

// Block is eight elements of the base field: limb i of element k is Block[i][k], low limbs first.
type Block [limbCount][Width]uint64

// Row is one element in the same form, as it stands in tables: one cache line.
type Row [limbCount]uint64

// Mul sets b to x · y / 2^416. b may be x or y.
func (b *Block) Mul(x, y *Block) { mul(b, x, y) }

// Add sets b to x + y.
func (b *Block) Add(x, y *Block) { add(b, x, y) }

// Sub sets b to x - y + 4p, for y up to 4p.
func (b *Block) Sub(x, y *Block) { sub(b, x, y) }

// Fold sets b to x - y - z reduced, for x up to 3.9p and y + z up to 4p.
func (b *Block) Fold(x, y, z *Block) { fold(b, x, y, z) }

// Negate turns element k of b into 2p minus itself where bit k of mask is one; b is below 2p.
func (b *Block) Negate(mask uint8) { negate(b, mask) }

// Load sets element k of b to the row at rows[k][offset], for all eight. Store is the way back. The rows
// are parts of arrays that are long enough.
func (b *Block) Load(rows *[Width]*Row, offset int) { load(b, rows, uintptr(offset)) }

// Store writes element k of b to the row at rows[k][offset].
func (b *Block) Store(rows *[Width]*Row, offset int) { store(b, rows, uintptr(offset)) }

// Import brings eight elements into lane form.
func (b *Block) Import(e *[Width]fp.Element) {
	for k := range e {
		w := &e[k]
		for i := range limbCount {
			bit := limbBits * i
			v := w[bit>>6] >> (bit & 63)
			if bit&63 > 64-limbBits && bit>>6 < fp.Limbs-1 {
				v |= w[bit>>6+1] << (64 - bit&63)
			}
			b[i][k] = v & limbMask
		}
	}
	mul(b, b, &constants.enter)
}

// Export gives eight elements back to gnark-crypto.
func (b *Block) Export(e *[Width]fp.Element) {
	var t Block
	mul(&t, b, &constants.leave) // at most p, and p itself only for zero
	for k := range e {
		var w fp.Element
		for i := range limbCount {
			bit := limbBits * i
			w[bit>>6] |= t[i][k] << (bit & 63)
			if bit&63 > 64-limbBits && bit>>6 < fp.Limbs-1 {
				w[bit>>6+1] |= t[i][k] >> (64 - bit&63)
			}
		}
		if w == constants.p {
			w = fp.Element{}
		}
		e[k] = w
	}
}

// Invert replaces all elements of b by their inverses, or says that one is zero and leaves b.
func (b *Block) Invert() bool {
	var e, before [Width]fp.Element
	b.Export(&e)
	run := fp.One()
	for k := range e {
		if e[k].IsZero() {
			return false
		}
		before[k] = run
		run.Mul(&run, &e[k])
	}
	run.Inverse(&run)
	for k := Width - 1; k >= 0; k-- {
		before[k].Mul(&before[k], &run)
		run.Mul(&run, &e[k])
	}
	b.Import(&before)
	return true
}

// Square sets b to x² / 2^416.
func (b *Block) Square(x *Block) { mul(b, x, x) }

// SetOne sets all elements to one.
func (b *Block) SetOne() { *b = constants.one }

// tables are the constants, in the order that the assembly counts on. What differs by limb only stands
// once for each lane, so that it can be an operand.
type tables struct {
	modulus   Block         // p
	multiples Block         // multiples[i][k] is limb i of k·p: looked up by k
	bias      Block         // 4p
	twice     Block         // 2p
	negInv    [Width]uint64 // -1/p mod 2^52
	mask      [Width]uint64 // limbMask
	quotient  [Width]uint64 // 2^52 / (top limb of p + 1): estimates v / p from v's top limb

	enter, leave, one, zero Block      // 2^448, 2^384, 2^416, 0 modulo p
	p                       fp.Element // limbs of p
}

var constants = makeTables()

func makeTables() (t tables) {
	p := fp.Modulus()
	power := func(k uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), k) }
	fill := func(b *Block, v *big.Int) {
		for i := range b {
			l := limb(v, i)
			for k := range b[i] {
				b[i][k] = l
			}
		}
	}
	fill(&t.modulus, p)
	fill(&t.bias, new(big.Int).Lsh(p, 2))
	fill(&t.twice, new(big.Int).Lsh(p, 1))
	fill(&t.enter, new(big.Int).Mod(power(448), p))
	fill(&t.leave, new(big.Int).Mod(power(384), p))
	fill(&t.one, new(big.Int).Mod(power(416), p))
	inverse := new(big.Int).ModInverse(p, power(limbBits))
	negInv := new(big.Int).Sub(power(limbBits), inverse).Uint64()
	for k := range Width {
		multiple := new(big.Int).Mul(p, big.NewInt(int64(k)))
		for i := range limbCount {
			t.multiples[i][k] = limb(multiple, i)
		}
		t.negInv[k] = negInv
		t.mask[k] = limbMask
		t.quotient[k] = 1 << limbBits / (limb(p, limbCount-1) + 1)
	}
	for i := range t.p {
		t.p[i] = new(big.Int).And(new(big.Int).Rsh(p, uint(64*i)), new(big.Int).SetUint64(1<<64-1)).Uint64()
	}
	return t
}

// limb is limb i of v.
func limb(v *big.Int, i int) uint64 {
	return new(big.Int).And(new(big.Int).Rsh(v, uint(limbBits*i)), big.NewInt(limbMask)).Uint64()
}
