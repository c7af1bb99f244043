// Package gadget holds the building blocks of the Filecoin circuits, each recorded as templates: SHA-256,
// Poseidon, packing and unpacking of numbers, Merkle paths.
//
// Every gadget allocates the same variables and enforces the same rows, in the same order, as its namesake in
// bellpepper 0.2, bellpepper-core 0.2, neptune 11 or storage-proofs-core 19.1; the files name the sources.
package gadget

import (
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
)

// CapacityBits is how many bits a field element holds whatever their values.
const CapacityBits = fr.Bits - 1

// AllocNums allocates n private numbers from the circuit's inputs, without rows (AllocatedNum::alloc).
func AllocNums(r *circuit.Recorder, n int) []circuit.Num {
	_, out := r.Gadget("alloc_nums", strconv.Itoa(n), nil, nil, func(b *circuit.Builder, _ []circuit.Bit, _ []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		out := make([]circuit.Num, n)
		for i := range out {
			out[i] = b.AllocNum(b.TakeField())
		}
		return nil, out
	})
	return out
}

// AllocBits allocates the n low bits of a small integer from the circuit's inputs, least significant first
// (UInt64::alloc).
func AllocBits(r *circuit.Recorder, n int) []circuit.Bit {
	out, _ := r.Gadget("alloc_bits", strconv.Itoa(n), nil, nil, func(b *circuit.Builder, _ []circuit.Bit, _ []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		return b.AllocBits(b.TakeWord(), n), nil
	})
	return out
}

// Inputize makes a number a public input (AllocatedNum::inputize).
func Inputize(r *circuit.Recorder, x circuit.Num) {
	r.Gadget("inputize", "", nil, []circuit.Num{x}, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		input := b.AllocInput(b.Value(in[0]))
		b.Enforce(input.LC(), circuit.One(), in[0].LC())
		return nil, nil
	})
}

// Equal enforces x · 1 = y (constraint::equal).
func Equal(r *circuit.Recorder, x, y circuit.Num) {
	r.Gadget("equal", "", nil, []circuit.Num{x, y}, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		b.Enforce(in[0].LC(), circuit.One(), in[1].LC())
		return nil, nil
	})
}

// Add allocates x + y (constraint::add, and so encode).
func Add(r *circuit.Recorder, x, y circuit.Num) circuit.Num {
	_, out := r.Gadget("add", "", nil, []circuit.Num{x, y}, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		sum := b.AllocNum(b.Add(b.Value(in[0]), b.Value(in[1])))
		b.Enforce(in[0].LC().Plus(in[1].LC()), circuit.One(), sum.LC())
		return nil, []circuit.Num{sum}
	})
	return out[0]
}

// ToBits allocates the 255 bits of a number, least significant first (AllocatedNum::to_bits_le: the bits are of
// the canonical value, but the circuit does not enforce that).
func ToBits(r *circuit.Recorder, x circuit.Num) []circuit.Bit {
	out, _ := r.Gadget("to_bits", "", nil, []circuit.Num{x}, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		first := b.ToWords(b.Value(in[0]))
		bits := make([]circuit.Bit, 0, fr.Bits)
		for at := 0; at < fr.Bits; at += 64 {
			bits = append(bits, b.AllocBits(first+int32(at/64), min(64, fr.Bits-at))...)
		}
		b.Enforce(nil, nil, weighted(bits).Minus(in[0].LC()))
		return bits, nil
	})
	return out
}

// weighted is the sum of 2^i times bit i.
func weighted(bits []circuit.Bit) circuit.LC {
	var sum circuit.LC
	coeff := fr.One()
	for _, x := range bits {
		sum = append(sum, x.LC().Times(coeff)...)
		coeff.Double(&coeff)
	}
	return sum
}

// packed is a register with the number whose bits are given.
func packed(b *circuit.Builder, bits []circuit.Bit) int32 {
	first, n := int32(0), 0
	for at := 0; at < len(bits); at += 64 {
		reg := b.BitsOf(bits[at:min(at+64, len(bits))])
		if n == 0 {
			first = reg
		}
		n++
	}
	return b.FromWords(first, n)
}

// Pack allocates the number whose binary digits are given, at most CapacityBits (multipack::pack_bits).
func Pack(r *circuit.Recorder, bits []circuit.Bit) circuit.Num {
	_, out := r.Gadget("pack", "", bits, nil, func(b *circuit.Builder, in []circuit.Bit, _ []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		x := b.AllocNum(packed(b, in))
		b.Enforce(weighted(in), circuit.One(), x.LC())
		return nil, []circuit.Num{x}
	})
	return out[0]
}

// PackInput makes the number whose binary digits are given, at most CapacityBits, a public input
// (multipack::pack_into_inputs).
func PackInput(r *circuit.Recorder, bits []circuit.Bit) {
	r.Gadget("pack_input", "", bits, nil, func(b *circuit.Builder, in []circuit.Bit, _ []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		x := b.AllocInput(packed(b, in))
		b.Enforce(weighted(in), circuit.One(), x.LC())
		return nil, nil
	})
}

// ByteOrder pads bits to whole bytes and reverses the bits of each byte: numbers have their least significant
// bit first, messages of SHA-256 the most significant of each byte (util::reverse_bit_numbering).
func ByteOrder(bits []circuit.Bit) []circuit.Bit {
	out := append([]circuit.Bit(nil), bits...)
	for len(out)%8 != 0 {
		out = append(out, circuit.Constant(false))
	}
	for i := 0; i < len(out); i += 8 {
		copy(out[i:i+8], reversed(out[i:i+8]))
	}
	return out
}
