package poseidon

import (
	"math/big"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// fast holds what Hash multiplies with. Entry (i, j) of the MDS matrix is 1/(width+i+j), so a common multiple
// L of the denominators makes it a matrix of small integers: their products need no Montgomery reduction, and
// a sum of them one word of it. The state then carries a known factor (L/2^64 after the first mixing, then
// what S-boxes and mixings make of it), which the constants and the next full matrix absorb.
type fast struct {
	weights   []uint64       // L/(width+k) for k = i+j; nil where L is too large: then the factor is 1
	constants []fr.Element   // compressed round constants, times the factor at their place
	preSparse [][]fr.Element // divided by the factor that it meets
	last      []fr.Element   // column 1 of the MDS matrix, likewise
}

func newFast(p *Parameters) *fast {
	f := &fast{constants: append([]fr.Element(nil), p.CompressedRoundConstants...)}
	var mixing, factor fr.Element
	mixing.SetOne()
	if weights, multiple := integerMDS(p.Width); weights != nil {
		f.weights = weights
		var word fr.Element
		word.SetBigInt(new(big.Int).Lsh(big.NewInt(1), 64))
		mixing.SetBigInt(multiple)
		mixing.Div(&mixing, &word)
	}
	next := f.constants[p.Width:] // the first ones are added before any factor
	// round follows the factor through an S-box and the constants behind it.
	round := func() {
		sBox(&factor)
		for i := range p.Width {
			next[i].Mul(&next[i], &factor)
		}
		next = next[p.Width:]
	}
	half := p.FullRounds / 2
	factor.SetOne()
	for range half - 1 {
		round()
		factor.Mul(&factor, &mixing)
	}
	round()
	factor.Inverse(&factor)
	pre := newMatrix(p.Width)
	for i := range pre {
		for j := range pre[i] {
			pre[i][j].Mul(&p.PreSparse[i][j], &factor)
		}
	}
	f.preSparse = pre

	next = next[p.PartialRounds:]
	factor.SetOne()
	for range half - 1 {
		round()
		factor.Mul(&factor, &mixing)
	}
	sBox(&factor)
	factor.Inverse(&factor)
	f.last = make([]fr.Element, p.Width)
	for i := range f.last {
		f.last[i].Mul(&p.MDS[i][1], &factor)
	}
	return f
}

// integerMDS returns the least common multiple of the MDS matrix's denominators and the matrix times it, or
// nil where a sum of weights would not fit in a word.
func integerMDS(width int) (weights []uint64, multiple *big.Int) {
	multiple = big.NewInt(1)
	for d := width; d <= 3*width-2; d++ {
		denominator := big.NewInt(int64(d))
		multiple.Mul(multiple, new(big.Int).Div(denominator, new(big.Int).GCD(nil, nil, multiple, denominator)))
	}
	// Row 0 has the largest weights; width of them are at most the multiple itself, since each denominator
	// is at least width.
	if !multiple.IsUint64() {
		return nil, nil
	}
	for d := width; d <= 3*width-2; d++ {
		weights = append(weights, multiple.Uint64()/uint64(d))
	}
	return weights, multiple
}

// The modulus r of the field and -1/r modulo 2^64.
const (
	modulus0      = 0xffffffff00000001
	modulus1      = 0x53bda402fffe5bfe
	modulus2      = 0x3339d80809a1d805
	modulus3      = 0x73eda753299d7d48
	negInvModulus = 0xfffffffeffffffff
)

// mixIntegers sets out to state times the integer MDS matrix, divided by 2^64 modulo r. Sums are below 2^64 r
// (integerMDS), so after the reduction by one word one subtraction is enough.
func mixIntegers(out, state []fr.Element, weights []uint64) {
	for j := range out {
		var t0, t1, t2, t3, t4, c uint64
		row := weights[j : j+len(state)]
		for i := range state {
			x, w := &state[i], row[i]
			h0, l0 := bits.Mul64(x[0], w)
			h1, l1 := bits.Mul64(x[1], w)
			h2, l2 := bits.Mul64(x[2], w)
			h3, l3 := bits.Mul64(x[3], w)
			l1, c = bits.Add64(l1, h0, 0)
			l2, c = bits.Add64(l2, h1, c)
			l3, c = bits.Add64(l3, h2, c)
			h3 += c
			t0, c = bits.Add64(t0, l0, 0)
			t1, c = bits.Add64(t1, l1, c)
			t2, c = bits.Add64(t2, l2, c)
			t3, c = bits.Add64(t3, l3, c)
			t4, _ = bits.Add64(t4, h3, c)
		}
		m := t0 * negInvModulus
		h0, l0 := bits.Mul64(m, modulus0)
		h1, l1 := bits.Mul64(m, modulus1)
		h2, l2 := bits.Mul64(m, modulus2)
		h3, l3 := bits.Mul64(m, modulus3)
		l1, c = bits.Add64(l1, h0, 0)
		l2, c = bits.Add64(l2, h1, c)
		l3, c = bits.Add64(l3, h2, c)
		h3 += c
		_, c = bits.Add64(t0, l0, 0)
		t1, c = bits.Add64(t1, l1, c)
		t2, c = bits.Add64(t2, l2, c)
		t3, c = bits.Add64(t3, l3, c)
		t4, _ = bits.Add64(t4, h3, c)

		r0, b := bits.Sub64(t1, modulus0, 0)
		r1, b := bits.Sub64(t2, modulus1, b)
		r2, b := bits.Sub64(t3, modulus2, b)
		r3, b := bits.Sub64(t4, modulus3, b)
		if b == 0 {
			t1, t2, t3, t4 = r0, r1, r2, r3
		}
		out[j] = fr.Element{t1, t2, t3, t4}
	}
}
