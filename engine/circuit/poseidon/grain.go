package poseidon

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Fields of the Grain LFSR's first state (eprint 2019/458, appendix E). The instance is a prime field with
// the S-box x^5; neptune names the S-box 1.
const (
	grainPrimeField = 1
	grainSBox       = 1
	grainStateBits  = 80
	grainWarmUp     = 160
)

// grain is the 80-bit LFSR in self-shrinking mode. bits is a ring: the oldest bit stands at head.
type grain struct {
	bits [grainStateBits]byte
	head int
}

// newGrain seeds the LFSR for an instance and discards the first 160 bits.
func newGrain(width, fullRounds, partialRounds int) *grain {
	g := &grain{}
	n := 0
	put := func(count, value int) {
		for i := count - 1; i >= 0; i-- {
			g.bits[n] = byte(value >> i & 1)
			n++
		}
	}
	put(2, grainPrimeField)
	put(4, grainSBox)
	put(12, fr.Bits)
	put(12, width)
	put(10, fullRounds)
	put(10, partialRounds)
	put(30, 1<<30-1)
	for range grainWarmUp {
		g.step()
	}
	return g
}

// step advances the LFSR by one bit and returns it.
func (g *grain) step() byte {
	at := func(i int) byte { return g.bits[(g.head+i)%grainStateBits] }
	bit := at(62) ^ at(51) ^ at(38) ^ at(23) ^ at(13) ^ at(0)
	g.bits[g.head] = bit
	g.head = (g.head + 1) % grainStateBits
	return bit
}

// next returns the next output bit: of each pair the second counts, and only where the first is one.
func (g *grain) next() byte {
	for g.step() == 0 {
		g.step()
	}
	return g.step()
}

// element draws fr.Bits bits, first bit most significant, until they make a number below the modulus.
func (g *grain) element() fr.Element {
	modulus := fr.Modulus()
	for {
		v := new(big.Int)
		for range fr.Bits {
			v.Lsh(v, 1)
			v.SetBit(v, 0, uint(g.next()))
		}
		if v.Cmp(modulus) < 0 {
			var e fr.Element
			e.SetBigInt(v)
			return e
		}
	}
}

// roundConstants draws width constants for each round.
func roundConstants(width, fullRounds, partialRounds int) []fr.Element {
	g := newGrain(width, fullRounds, partialRounds)
	out := make([]fr.Element, width*(fullRounds+partialRounds))
	for i := range out {
		out[i] = g.element()
	}
	return out
}
