package lanes

import (
	"math/big"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/cpu"
)

//go:generate sh -c "go run gen.go gen_points.go gen_rows.go gen_elements.go > kernels_amd64.s"

// hasIFMA tells whether the CPU and the system have the instructions of kernels_amd64.s.
var hasIFMA = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512IFMA

// Fields in limbs of 52 bits.
const (
	fpLimbs  = 8
	frLimbs  = 5
	limbBits = 52
	limbMask = 1<<limbBits - 1
)

var (
	fpConstants = fieldConstants(fp.Modulus(), fpLimbs, 0, new(big.Int).Mod(pow2(448), fp.Modulus()))
	frConstants = fieldConstants(fr.Modulus(), frLimbs, 46, new(big.Int))
)

// fieldConstants lays out the constants of a field with n limbs as gen.go reads them: multiples 1 to 7 of the
// modulus; -1/p mod 2^52, the limb mask, the quotient's factor, scaled by 2^scale, and slack; for each limb, its
// values in 0 to 7 times the modulus; two indexes for the way from lanes to memory; the modulus' complement to
// all limbs, and 16 times the modulus; and a factor, eight times each limb.
func fieldConstants(modulus *big.Int, n int, scale uint, factor *big.Int) []uint64 {
	var c []uint64
	multiple := func(k int64) []uint64 { return limbsOf(new(big.Int).Mul(modulus, big.NewInt(k)), n) }
	for k := int64(1); k <= 7; k++ {
		c = append(c, multiple(k)...)
	}
	inverse := new(big.Int).ModInverse(modulus, pow2(limbBits))
	inverse.Sub(pow2(limbBits), inverse)
	quotient := pow2(limbBits + scale)
	quotient.Div(quotient, new(big.Int).SetUint64(multiple(1)[n-1]+1))
	c = append(c, inverse.Uint64(), limbMask, quotient.Uint64(), 64)
	for j := range n {
		for k := range int64(Width) {
			c = append(c, multiple(k)[j])
		}
	}
	c = append(c, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
	c = append(c, limbsOf(new(big.Int).Sub(pow2(uint(n)*limbBits), modulus), n)...)
	c = append(c, multiple(16)...)
	for _, limb := range limbsOf(factor, n) {
		for range Width {
			c = append(c, limb)
		}
	}
	return c
}

func pow2(e uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), e) }

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

// fpLimbForm is a base-field element as slots hold it: x 2^416 mod p (Montgomery form of 8 limbs), at most a few p.
type fpLimbForm = [fpLimbs]uint64

// With raw words x 2^384 (gnark-crypto's form) and x 2^416 (ours), a product of raw words divides by 2^384: these
// factors go from theirs to ours, from ours to theirs, and from the inverse of ours, read as theirs, to ours.
var (
	fpToLimbs, fpFromLimbs, fpInverse = rawElement(pow2(416)), rawElement(pow2(352)), rawElement(pow2(448))

	fpModulus = wordsOf(fp.Modulus())
	fpOne     = limbsOf(new(big.Int).Mod(pow2(416), fp.Modulus()), fpLimbs)
)

// rawElement is x mod p as the words themselves.
func rawElement(x *big.Int) fp.Element { return wordsOf(new(big.Int).Mod(x, fp.Modulus())) }

func wordsOf(x *big.Int) (w fp.Element) {
	rest := new(big.Int).Set(x)
	for i := range w {
		w[i] = rest.Uint64()
		rest.Rsh(rest, 64)
	}
	return w
}

// toLimbs cuts raw words into limbs; fromLimbs puts them together and makes the value canonical.
func toLimbs(l *fpLimbForm, x *fp.Element) {
	l[0] = x[0] & limbMask
	l[1] = (x[0]>>52 | x[1]<<12) & limbMask
	l[2] = (x[1]>>40 | x[2]<<24) & limbMask
	l[3] = (x[2]>>28 | x[3]<<36) & limbMask
	l[4] = (x[3]>>16 | x[4]<<48) & limbMask
	l[5] = x[4] >> 4 & limbMask
	l[6] = (x[4]>>56 | x[5]<<8) & limbMask
	l[7] = x[5] >> 44
}

func fromLimbs(l *fpLimbForm) (x fp.Element) {
	x[0] = l[0] | l[1]<<52
	x[1] = l[1]>>12 | l[2]<<40
	x[2] = l[2]>>24 | l[3]<<28
	x[3] = l[3]>>36 | l[4]<<16
	x[4] = l[4]>>48 | l[5]<<4 | l[6]<<56
	x[5] = l[6]>>8 | l[7]<<44
	for {
		var y fp.Element
		var borrow uint64
		for i := range x {
			y[i], borrow = bits.Sub64(x[i], fpModulus[i], borrow)
		}
		if borrow == 1 {
			return x
		}
		x = y
	}
}
