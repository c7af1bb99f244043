package circuit

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Word is 32 bits, least significant first, with the register that holds their value (bits above the 32nd of
// the register are unspecified). Sources of the operations: bellpepper 0.2 uint32.rs and bellpepper-core 0.2
// boolean.rs: which forms the rows take, and the order of allocations, is theirs.
type Word struct {
	Bits [32]Bit
	reg  int32
}

// WordConstant is a constant word.
func (b *Builder) WordConstant(v uint32) Word {
	w := Word{reg: b.WordConst(uint64(v))}
	for i := range w.Bits {
		w.Bits[i] = Constant(v>>i&1 == 1)
	}
	return w
}

// WordOf gathers 32 bits, least significant first.
func (b *Builder) WordOf(in []Bit) Word {
	w := Word{reg: b.BitsOf(in[:32])}
	copy(w.Bits[:], in)
	return w
}

// RotateRight and ShiftRight rename bits; they allocate nothing.
func (b *Builder) RotateRight(x Word, by int) Word {
	w := Word{reg: b.word(op{code: opRotr, a: uint32(x.reg), b: uint32(by)})}
	for i := range w.Bits {
		w.Bits[i] = x.Bits[(i+by)%32]
	}
	return w
}

// ShiftRight shifts zeros in.
func (b *Builder) ShiftRight(x Word, by int) Word {
	w := Word{reg: b.word(op{code: opShr, a: uint32(x.reg), b: uint32(by)})}
	for i := range w.Bits {
		if i+by < 32 {
			w.Bits[i] = x.Bits[i+by]
		}
	}
	return w
}

// bitwise makes a word bit by bit; each function call may allocate variables for the bit and says so in vars.
func (b *Builder) bitwise(reg int32, each func(i int) (Bit, bool)) Word {
	w := Word{reg: reg}
	var vars []stored
	for i := range w.Bits {
		bit, fresh := each(i)
		bit.reg, bit.pos = reg, uint8(i)
		w.Bits[i] = bit
		if fresh {
			vars = append(vars, stored{bit: i, v: bit.v, neg: bit.state == bitNot})
		}
	}
	b.store(reg, vars)
	return w
}

// XorWord is x ^ y.
func (b *Builder) XorWord(x, y Word) Word {
	reg := b.word(op{code: opXor, a: uint32(x.reg), b: uint32(y.reg)})
	return b.bitwise(reg, func(i int) (Bit, bool) { return b.xorBit(x.Bits[i], y.Bits[i]) })
}

// ChooseWord is (x & y) ^ (^x & z), SHA-256's Ch.
func (b *Builder) ChooseWord(x, y, z Word) Word {
	reg := b.word(op{code: opChoose, a: uint32(x.reg), b: uint32(y.reg), c: uint32(z.reg)})
	return b.bitwise(reg, func(i int) (Bit, bool) { return b.chooseBit(x.Bits[i], y.Bits[i], z.Bits[i]) })
}

// MajorityWord is the majority of three, SHA-256's Maj. Its helper bits y & z alternate with its own.
func (b *Builder) MajorityWord(x, y, z Word) Word {
	reg := b.word(op{code: opMajority, a: uint32(x.reg), b: uint32(y.reg), c: uint32(z.reg)})
	var helpers []stored
	w := b.bitwise(reg, func(i int) (Bit, bool) {
		m, helper, fresh := b.majorityBit(x.Bits[i], y.Bits[i], z.Bits[i])
		if helper.state == bitIs {
			helpers = append(helpers, stored{bit: i, v: helper.v})
		}
		return m, fresh
	})
	if len(helpers) > 0 {
		b.store(b.And(y.reg, z.reg), helpers)
	}
	return w
}

// xorBit is AllocatedBit::xor with the cases of Boolean::xor; the second result says whether it allocated.
func (b *Builder) xorBit(x, y Bit) (Bit, bool) {
	switch {
	case x.state == bitFalse:
		return y, false
	case y.state == bitFalse:
		return x, false
	case x.state == bitTrue:
		return y.Not(), false
	case y.state == bitTrue:
		return x.Not(), false
	}
	// Negations cancel in pairs: the row is over the variables themselves.
	out := b.allocBit()
	xv, yv := LC{{x.v, frOne}}, LC{{y.v, frOne}}
	b.Enforce(xv.Plus(xv), yv, xv.Plus(yv).Minus(out.LC()))
	if x.state != y.state {
		out = out.Not()
	}
	return out, true
}

// andBit is Boolean::and: and, and-not or nor by the negations.
func (b *Builder) andBit(x, y Bit) (Bit, bool) {
	switch {
	case x.state == bitFalse || y.state == bitFalse:
		return Constant(false), false
	case x.state == bitTrue:
		return y, false
	case y.state == bitTrue:
		return x, false
	}
	// and-not puts the plain operand first, whichever it was.
	if x.state == bitNot && y.state == bitIs {
		x, y = y, x
	}
	out := b.allocBit()
	b.Enforce(x.LC(), y.LC(), out.LC())
	return out, true
}

// AndOf allocates x & y as a single bit.
func (b *Builder) AndOf(x, y Bit) Bit {
	vx, vy := b.BitValue(x), b.BitValue(y)
	out, fresh := b.andBit(x, y)
	reg := b.And(vx, vy)
	if fresh {
		b.store(reg, []stored{{bit: 0, v: out.v}})
		out.reg = reg
	}
	return out
}

// NegatedBit is the negation of an own or external bit together with a register that holds its value.
func (b *Builder) NegatedBit(x Bit) Bit {
	reg := b.NotWord(b.BitValue(x), 1)
	x = x.Not()
	x.reg, x.pos = reg, 0
	return x
}

// chooseBit is Boolean::sha256_ch with its special forms for constants.
func (b *Builder) chooseBit(x, y, z Bit) (Bit, bool) {
	not := func(v Bit, fresh bool) (Bit, bool) { return v.Not(), fresh }
	switch {
	case x.IsConstant() && y.IsConstant() && z.IsConstant():
		if x.state == bitTrue {
			return y, false
		}
		return z, false
	case x.state == bitFalse:
		return z, false
	case y.state == bitFalse:
		return b.andBit(x.Not(), z)
	case z.state == bitFalse:
		return b.andBit(x, y)
	case z.state == bitTrue:
		return not(b.andBit(x, y.Not()))
	case y.state == bitTrue:
		return not(b.andBit(x.Not(), z.Not()))
	}
	out := b.allocBit()
	b.Enforce(y.LC().Minus(z.LC()), x.LC(), out.LC().Minus(z.LC()))
	return out, true
}

// majorityBit is Boolean::sha256_maj; the second result is the helper y & z where one was allocated.
func (b *Builder) majorityBit(x, y, z Bit) (m, helper Bit, fresh bool) {
	plain := func(v Bit, fresh bool) (Bit, Bit, bool) { return v, Bit{}, fresh }
	not := func(v Bit, fresh bool) (Bit, Bit, bool) { return v.Not(), Bit{}, fresh }
	switch {
	case x.IsConstant() && y.IsConstant() && z.IsConstant():
		if x.state == y.state || x.state == z.state {
			return x, Bit{}, false
		}
		return y, Bit{}, false
	case x.state == bitFalse:
		return plain(b.andBit(y, z))
	case y.state == bitFalse:
		return plain(b.andBit(x, z))
	case z.state == bitFalse:
		return plain(b.andBit(x, y))
	case z.state == bitTrue:
		return not(b.andBit(x.Not(), y.Not()))
	case y.state == bitTrue:
		return not(b.andBit(x.Not(), z.Not()))
	case x.state == bitTrue:
		return not(b.andBit(y.Not(), z.Not()))
	}
	m = b.allocBit()
	helper, _ = b.andBit(y, z)
	b.Enforce(helper.LC().Plus(helper.LC()).Minus(y.LC()).Minus(z.LC()), x.LC(), helper.LC().Minus(m.LC()))
	return m, helper, true
}

// MultiEq gathers equations over small integers into rows, as many as fit a field element. Source: bellpepper
// 0.2 multieq.rs. Flush must be called at the end of the gadget.
type MultiEq struct {
	b        *Builder
	bitsUsed int
	lhs, rhs LC
}

// NewMultiEq starts without equations.
func (b *Builder) NewMultiEq() *MultiEq { return &MultiEq{b: b} }

// Flush enforces what has been gathered.
func (m *MultiEq) Flush() {
	if m.bitsUsed > 0 {
		m.b.Enforce(m.lhs, One(), m.rhs)
		m.lhs, m.rhs, m.bitsUsed = nil, nil, 0
	}
}

// capacityBits is how many bits a field element holds whatever their values.
const capacityBits = fr.Bits - 1

func (m *MultiEq) equal(bits int, lhs, rhs LC) {
	if capacityBits <= m.bitsUsed+bits {
		m.Flush()
	}
	shift := powerOfTwo(m.bitsUsed)
	m.lhs = append(m.lhs, lhs.Times(shift)...)
	m.rhs = append(m.rhs, rhs.Times(shift)...)
	m.bitsUsed += bits
}

func powerOfTwo(n int) fr.Element {
	out := frOne
	for range n {
		out.Double(&out)
	}
	return out
}

// AddWords is the sum of 2 to 10 words modulo 2^32. All bits of the full sum are allocated, without rows of
// their own; the equation goes to eq. Bits and constants alike enter the sum.
func (b *Builder) AddWords(eq *MultiEq, operands ...Word) Word {
	at := uint32(len(b.t.lists))
	for _, w := range operands {
		b.t.lists = append(b.t.lists, uint32(w.reg))
	}
	reg := b.word(op{code: opAdd, a: at, b: uint32(len(operands))})
	constant := true
	var lhs LC
	for _, w := range operands {
		coeff := frOne
		for _, bit := range w.Bits {
			lhs = append(lhs, bit.LC().Times(coeff)...)
			constant = constant && bit.IsConstant()
			coeff.Double(&coeff)
		}
	}
	if constant {
		var sum uint32
		for _, w := range operands {
			for i, bit := range w.Bits {
				if bit.state == bitTrue {
					sum += 1 << i
				}
			}
		}
		return b.WordConstant(sum)
	}
	out := Word{reg: reg}
	var rhs LC
	var vars []stored
	coeff := frOne
	n := 0
	for bound := uint64(len(operands)) * (1<<32 - 1); bound != 0; bound >>= 1 {
		bit := b.allocBit()
		b.boolean(bit)
		vars = append(vars, stored{bit: n, v: bit.v})
		rhs = append(rhs, lcTerm{bit.v, coeff})
		coeff.Double(&coeff)
		if n < 32 {
			bit.reg, bit.pos = reg, uint8(n)
			out.Bits[n] = bit
		}
		n++
	}
	b.store(reg, vars)
	eq.equal(n, lhs, rhs)
	return out
}
