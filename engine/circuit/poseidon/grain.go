package poseidon

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Fields of the Grain LFSR's first state (eprint 2019/458, appendix E). The instance is a prime field with
// the S-box x^5; neptune names the S-box 1.
const (
	grainPrimeField = 1
	grainSBox       = 1
	grainWarmUp     = 160
)

// grain is the 80-bit LFSR in self-shrinking mode. Its oldest bit is bit 0 of low.
type grain struct {
	low  uint64
	high uint16
}

// newGrain seeds the LFSR for an instance and discards the first 160 bits.
func newGrain(width, fullRounds, partialRounds int) *grain {
	g := &grain{}
	put := func(count, value int) {
		for i := count - 1; i >= 0; i-- {
			g.push(uint64(value >> i & 1))
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

// push drops the oldest bit and appends one.
func (g *grain) push(bit uint64) {
	g.low = g.low>>1 | uint64(g.high)<<63
	g.high = g.high>>1 | uint16(bit)<<15
}

// step advances the LFSR by one bit and returns it.
func (g *grain) step() uint64 {
	bit := (g.low>>62 ^ g.low>>51 ^ g.low>>38 ^ g.low>>23 ^ g.low>>13 ^ g.low) & 1
	g.push(bit)
	return bit
}

// next returns the next output bit: of each pair the second counts, and only where the first is one.
func (g *grain) next() uint64 {
	for g.step() == 0 {
		g.step()
	}
	return g.step()
}

// element draws fr.Bits bits, first bit most significant, until they make a number below the modulus.
func (g *grain) element() fr.Element {
	for {
		var number [fr.Bytes]byte // big-endian
		for i := fr.Bits - 1; i >= 0; i-- {
			number[len(number)-1-i/8] |= byte(g.next()) << (i % 8)
		}
		var e fr.Element
		if e.SetBytesCanonical(number[:]) == nil {
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
