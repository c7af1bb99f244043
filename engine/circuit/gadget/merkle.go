package gadget

import (
	"math/bits"
	"strconv"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/status"
)

// PathLevel is one level of a Merkle path: it takes our node's position and the siblings from the circuit's
// inputs (one word, arity-1 fields) and inserts the node among the siblings. It returns the bits of the
// position, least significant first, and all nodes in order. Arity is 2, 4 or 8. Sources: storage-proofs-core
// 19.1 gadgets/por.rs and gadgets/insertion.rs.
func PathLevel(r *circuit.Recorder, arity int, node circuit.Num) ([]circuit.Bit, []circuit.Num) {
	return r.Gadget("path_level", strconv.Itoa(arity), nil, []circuit.Num{node}, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		index := b.AllocBits(b.TakeWord(), bits.Len(uint(arity))-1)
		siblings := make([]circuit.Num, arity-1)
		for i := range siblings {
			siblings[i] = b.AllocNum(b.TakeField())
		}
		return index, insert(b, in[0], index, siblings)
	})
}

// pick allocates x where the condition holds, else y.
func pick(b *circuit.Builder, condition circuit.Bit, x, y circuit.Num) circuit.Num {
	out := b.AllocNum(b.Select(b.BitValue(condition), b.Value(x), b.Value(y)))
	b.Enforce(y.LC().Minus(x.LC()), condition.LC(), y.LC().Minus(out.LC()))
	return out
}

// insert puts a between its siblings s at the position given by index. Which candidates are compared, and in
// which order, is the reference's hand-made choice for each arity: outputs are named by position, helpers by
// what they assume of the bits.
func insert(b *circuit.Builder, a circuit.Num, index []circuit.Bit, s []circuit.Num) []circuit.Num {
	pick := func(condition circuit.Bit, x, y circuit.Num) circuit.Num { return pick(b, condition, x, y) }
	switch len(s) + 1 {
	case 2:
		return []circuit.Num{pick(index[0], s[0], a), pick(index[0], a, s[0])}
	case 4:
		b0, b1 := index[0], index[1]
		p0 := pick(b1, s[0], pick(b0, s[0], a))
		p1 := pick(b1, s[1], pick(b0, a, s[0]))
		p2 := pick(b1, pick(b0, s[2], a), s[1])
		p3 := pick(b1, pick(b0, a, s[2]), s[2])
		return []circuit.Num{p0, p1, p2, p3}
	case 8:
		b0, b1, b2 := index[0], index[1], index[2]
		nor := b.AndOf(b.NegatedBit(b0), b.NegatedBit(b1))
		and := b.AndOf(b0, b1)
		p0 := pick(b2, s[0], pick(nor, a, s[0]))
		p1 := pick(b2, s[1], pick(b1, s[1], pick(b0, a, s[0])))
		p2 := pick(b2, s[2], pick(b1, pick(b0, s[2], a), s[1]))
		p3 := pick(b2, s[3], pick(and, a, s[2]))
		p4 := pick(b2, pick(nor, a, s[4]), s[3])
		p5 := pick(b2, pick(b1, s[5], pick(b0, a, s[4])), s[4])
		p6 := pick(b2, pick(b1, pick(b0, s[6], a), s[5]), s[5])
		p7 := pick(b2, pick(and, a, s[6]), s[6])
		return []circuit.Num{p0, p1, p2, p3, p4, p5, p6, p7}
	}
	status.Check(false, "gadget.insert", "an arity of 2, 4 or 8")
	return nil
}
