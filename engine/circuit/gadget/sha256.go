package gadget

import (
	"github.com/sealc2/sealc2/engine/circuit"
)

var sha256Rounds = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

var sha256Initial = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

// Sha256 hashes a whole number of bytes, bits in the order of the message (most significant of each byte
// first), and returns the 256 bits of the digest in that order. Each compression is a template of its own;
// the first differs by its constant chaining value. Source: FIPS 180-4; bellpepper 0.2 sha256.rs.
func Sha256(r *circuit.Recorder, message []circuit.Bit) []circuit.Bit {
	padded := append([]circuit.Bit(nil), message...)
	padded = append(padded, circuit.Constant(true))
	for (len(padded)+64)%512 != 0 {
		padded = append(padded, circuit.Constant(false))
	}
	for i := 63; i >= 0; i-- {
		padded = append(padded, circuit.Constant(len(message)>>i&1 == 1))
	}
	chain := make([]circuit.Bit, 0, 256)
	for _, v := range sha256Initial {
		for i := 31; i >= 0; i-- {
			chain = append(chain, circuit.Constant(v>>i&1 == 1))
		}
	}
	for block := 0; block < len(padded); block += 512 {
		in := append(append([]circuit.Bit(nil), chain...), padded[block:block+512]...)
		chain, _ = r.Gadget(circuit.NameSha256, "", in, nil, func(b *circuit.Builder, in []circuit.Bit, _ []circuit.Num) ([]circuit.Bit, []circuit.Num) {
			return compress(b, in[:256], in[256:]), nil
		})
	}
	return chain
}

// compress records one compression: chain and the result are 8 words, block 16, each most significant bit first.
func compress(b *circuit.Builder, chain, block []circuit.Bit) []circuit.Bit {
	words := func(bits []circuit.Bit) []circuit.Word {
		out := make([]circuit.Word, 0, len(bits)/32)
		for i := 0; i < len(bits); i += 32 {
			out = append(out, b.WordOf(reversed(bits[i:i+32])))
		}
		return out
	}
	eq := b.NewMultiEq()
	w := words(block)
	for i := 16; i < 64; i++ {
		s0 := b.XorWord(b.RotateRight(w[i-15], 7), b.RotateRight(w[i-15], 18))
		s0 = b.XorWord(s0, b.ShiftRight(w[i-15], 3))
		s1 := b.XorWord(b.RotateRight(w[i-2], 17), b.RotateRight(w[i-2], 19))
		s1 = b.XorWord(s1, b.ShiftRight(w[i-2], 10))
		w = append(w, b.AddWords(eq, w[i-16], s0, w[i-7], s1))
	}
	in := words(chain)
	// The sums for a and e are deferred: the reference allocates them at the start of the next round, and folds
	// the last ones into the final addition.
	sumA, sumE := []circuit.Word{in[0]}, []circuit.Word{in[4]}
	bb, c, d, f, g, h := in[1], in[2], in[3], in[5], in[6], in[7]
	settle := func(sum []circuit.Word) circuit.Word {
		if len(sum) == 1 {
			return sum[0]
		}
		return b.AddWords(eq, sum...)
	}
	for i := range 64 {
		e := settle(sumE)
		s1 := b.XorWord(b.RotateRight(e, 6), b.RotateRight(e, 11))
		s1 = b.XorWord(s1, b.RotateRight(e, 25))
		ch := b.ChooseWord(e, f, g)
		temp1 := []circuit.Word{h, s1, ch, b.WordConstant(sha256Rounds[i]), w[i]}
		a := settle(sumA)
		s0 := b.XorWord(b.RotateRight(a, 2), b.RotateRight(a, 13))
		s0 = b.XorWord(s0, b.RotateRight(a, 22))
		maj := b.MajorityWord(a, bb, c)
		sumE = append(append([]circuit.Word(nil), temp1...), d)
		sumA = append(temp1, s0, maj)
		h, g, f, d, c, bb = g, f, e, c, bb, a
	}
	out := []circuit.Word{
		b.AddWords(eq, append(sumA, in[0])...),
		b.AddWords(eq, in[1], bb),
		b.AddWords(eq, in[2], c),
		b.AddWords(eq, in[3], d),
		b.AddWords(eq, append(sumE, in[4])...),
		b.AddWords(eq, in[5], f),
		b.AddWords(eq, in[6], g),
		b.AddWords(eq, in[7], h),
	}
	eq.Flush()
	bits := make([]circuit.Bit, 0, 256)
	for _, x := range out {
		bits = append(bits, reversed(x.Bits[:])...)
	}
	return bits
}

func reversed(bits []circuit.Bit) []circuit.Bit {
	out := make([]circuit.Bit, len(bits))
	for i, b := range bits {
		out[len(bits)-1-i] = b
	}
	return out
}
