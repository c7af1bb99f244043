package gadget

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
)

// Poseidon hashes 2, 4, 8 or 11 numbers (any arity). It is the legacy circuit of neptune 11 (circuit.rs), which
// the public parameters were made for: every S-box input and the result are allocated, the state between is
// linear.
func Poseidon(r *circuit.Recorder, in []circuit.Num) circuit.Num {
	_, out := r.Gadget(circuit.NamePoseidon, "", nil, in, func(b *circuit.Builder, _ []circuit.Bit, in []circuit.Num) ([]circuit.Bit, []circuit.Num) {
		h := hasher{b: b, p: poseidon.ParametersOf(len(in))}
		return nil, []circuit.Num{h.hash(in)}
	})
	return out[0]
}

// element is one element of the state: a linear combination with its value, or a variable already allocated.
type element struct {
	lc        circuit.LC
	reg       int32
	num       circuit.Num
	allocated bool
}

type hasher struct {
	b     *circuit.Builder
	p     *poseidon.Parameters
	state []element
	keys  []fr.Element // compressed round constants not used yet
}

func (h *hasher) hash(in []circuit.Num) circuit.Num {
	p := h.p
	h.keys = p.CompressedRoundConstants
	pre := h.take(p.Width)
	post := h.take(p.Width)

	// The first S-box of the domain tag is a constant.
	tag := p.DomainTag
	tag.Add(&tag, &pre[0])
	tag = quintic(tag)
	tag.Add(&tag, &post[0])
	h.state = append(h.state, element{lc: circuit.Scalar(tag), reg: h.b.FieldConst(tag)})
	for i, x := range in {
		h.state = append(h.state, h.allocatedElement(h.sboxPreAdd(x, pre[i+1], post[i+1])))
	}
	half := p.FullRounds / 2
	for round := 0; ; round++ {
		switch {
		case round == half-1:
			h.mix(p.PreSparse)
		case round >= half && round < half+p.PartialRounds:
			h.mixSparse(p.Sparse[round-half])
		default:
			h.mix(p.MDS)
		}
		next := round + 1
		if next == p.FullRounds+p.PartialRounds {
			break
		}
		boxes := len(h.state)
		if next >= half && next < half+p.PartialRounds {
			boxes = 1
		}
		var keys []fr.Element
		if next < p.FullRounds+p.PartialRounds-1 {
			keys = h.take(boxes)
		}
		for i := range boxes {
			var key *fr.Element
			if keys != nil {
				key = &keys[i]
			}
			h.state[i] = h.allocatedElement(h.sbox(h.allocate(h.state[i]), key))
		}
	}
	return h.allocate(h.state[1])
}

func (h *hasher) take(n int) []fr.Element {
	k := h.keys[:n]
	h.keys = h.keys[n:]
	return k
}

func (h *hasher) allocatedElement(x circuit.Num) element {
	return element{lc: x.LC(), reg: h.b.Value(x), num: x, allocated: true}
}

// allocate gives an element a variable of its own (Elt::ensure_allocated).
func (h *hasher) allocate(e element) circuit.Num {
	if e.allocated {
		return e.num
	}
	x := h.b.AllocNum(e.reg)
	h.b.Enforce(e.lc, circuit.One(), x.LC())
	return x
}

// sboxPreAdd allocates (x + pre)^5 + post.
func (h *hasher) sboxPreAdd(x circuit.Num, pre, post fr.Element) circuit.Num {
	b := h.b
	sum := b.Add(b.Value(x), b.FieldConst(pre))
	sumLC := x.LC().Plus(circuit.Scalar(pre))
	l2 := b.AllocNum(b.Mul(sum, sum))
	b.Enforce(sumLC, sumLC, l2.LC())
	l4 := b.AllocNum(b.Mul(b.Value(l2), b.Value(l2)))
	b.Enforce(l2.LC(), l2.LC(), l4.LC())
	l5 := b.AllocNum(b.Add(b.Mul(b.Value(l4), sum), b.FieldConst(post)))
	b.Enforce(sumLC, l4.LC(), l5.LC().Minus(circuit.Scalar(post)))
	return l5
}

// sbox allocates x^5 + key; a nil key is left out.
func (h *hasher) sbox(x circuit.Num, key *fr.Element) circuit.Num {
	b := h.b
	l2 := b.AllocNum(b.Mul(b.Value(x), b.Value(x)))
	b.Enforce(x.LC(), x.LC(), l2.LC())
	l4 := b.AllocNum(b.Mul(b.Value(l2), b.Value(l2)))
	b.Enforce(l2.LC(), l2.LC(), l4.LC())
	product := b.Mul(b.Value(l4), b.Value(x))
	if key == nil {
		l5 := b.AllocNum(product)
		b.Enforce(x.LC(), l4.LC(), l5.LC())
		return l5
	}
	l5 := b.AllocNum(b.Add(product, b.FieldConst(*key)))
	b.Enforce(x.LC(), l4.LC(), l5.LC().Minus(circuit.Scalar(*key)))
	return l5
}

// combine is the sum of coefficient times element.
func (h *hasher) combine(coeffs []fr.Element) element {
	regs := make([]int32, len(h.state))
	var lc circuit.LC
	for i, e := range h.state {
		regs[i] = e.reg
		lc = append(lc, e.lc.Times(coeffs[i])...)
	}
	return element{lc: lc, reg: h.b.Linear(coeffs, regs)}
}

// mix multiplies the state, as a row, by a matrix.
func (h *hasher) mix(m [][]fr.Element) {
	next := make([]element, len(h.state))
	column := make([]fr.Element, len(h.state))
	for j := range next {
		for i := range column {
			column[i] = m[i][j]
		}
		next[j] = h.combine(column)
	}
	h.state = next
}

// mixSparse multiplies by a matrix that is dense in its first row and column only.
func (h *hasher) mixSparse(m poseidon.SparseMatrix) {
	next := make([]element, len(h.state))
	next[0] = h.combine(m.WHat)
	first := h.state[0]
	for j := 1; j < len(next); j++ {
		e := h.state[j]
		next[j] = element{
			lc:  e.lc.Plus(first.lc.Times(m.VRest[j-1])),
			reg: h.b.Linear([]fr.Element{fr.One(), m.VRest[j-1]}, []int32{e.reg, first.reg}),
		}
	}
	h.state = next
}

func quintic(x fr.Element) fr.Element {
	var x4 fr.Element
	x4.Square(&x).Square(&x4)
	x4.Mul(&x4, &x)
	return x4
}
