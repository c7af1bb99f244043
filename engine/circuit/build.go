package circuit

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// While a template is recorded, a variable's class is one of these; finish turns them into the classes of
// term, which also tell bits from numbers.
const (
	classOwn      = 1
	classExternal = 4
)

// Builder records one template: typed operations that allocate variables, enforce rows and write the tape, in
// the order of bellpepper's gadgets.
type Builder struct {
	t     *Template
	rows  [][3]LC
	coeff map[coeffKey]uint32
}

type coeffKey = [4]uint64

// LC is a linear combination in template terms. Terms may repeat; Enforce merges them.
type LC []lcTerm

type lcTerm struct {
	v uint32
	c fr.Element
}

var frOne = fr.One()

// One is the constant one.
func One() LC { return Scalar(frOne) }

// Scalar is a constant.
func Scalar(c fr.Element) LC { return LC{{0, c}} }

// LC is the number as a linear combination.
func (n Num) LC() LC { return LC{{n.v, frOne}} }

// LC is the bit as a linear combination, negation resolved.
func (b Bit) LC() LC {
	switch b.state {
	case bitTrue:
		return One()
	case bitIs:
		return LC{{b.v, frOne}}
	case bitNot:
		return One().Minus(LC{{b.v, frOne}})
	}
	return nil
}

// Plus is l + m.
func (l LC) Plus(m LC) LC { return append(slices.Clip(l), m...) }

// Minus is l - m.
func (l LC) Minus(m LC) LC {
	var minusOne fr.Element
	minusOne.Neg(&frOne)
	return l.Plus(m.Times(minusOne))
}

// Times is c·l.
func (l LC) Times(c fr.Element) LC {
	out := make(LC, len(l))
	for i, t := range l {
		out[i].v = t.v
		out[i].c.Mul(&t.c, &c)
	}
	return out
}

// merge adds the coefficients of equal variables and drops those that cancel, sorted by variable.
func (l LC) merge() LC {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b lcTerm) int { return cmp.Compare(a.v, b.v) })
	n := 0
	for _, t := range out {
		if n > 0 && out[n-1].v == t.v {
			out[n-1].c.Add(&out[n-1].c, &t.c)
			continue
		}
		out[n] = t
		n++
	}
	out = out[:n]
	return slices.DeleteFunc(out, func(t lcTerm) bool { return t.c.IsZero() })
}

// Enforce adds the row a·b = c.
func (b *Builder) Enforce(a, bb, c LC) {
	b.rows = append(b.rows, [3]LC{a.merge(), bb.merge(), c.merge()})
}

// ---- variables

func (b *Builder) allocAux(kind wireKind) uint32 {
	j := uint32(len(b.t.auxKind))
	b.t.auxKind = append(b.t.auxKind, kind)
	if kind == wireNum {
		b.t.numAux = append(b.t.numAux, int32(j))
	}
	return classOwn<<classShift | j
}

// allocBit allocates an unconstrained boolean variable; its value is stored by a later store.
func (b *Builder) allocBit() Bit { return Bit{v: b.allocAux(wireBit), state: bitIs, reg: -1} }

// boolean adds the row (1 - x)·x = 0.
func (b *Builder) boolean(x Bit) { b.Enforce(One().Minus(x.LC()), x.LC(), nil) }

// AllocNum allocates a field element with the value of a field register.
func (b *Builder) AllocNum(reg int32) Num {
	v := b.allocAux(wireNum)
	b.emit(op{code: opPutNum, a: uint32(len(b.t.numAux) - 1), b: uint32(reg)})
	return Num{v: v, reg: reg}
}

// AllocInput allocates a public input with the value of a field register.
func (b *Builder) AllocInput(reg int32) Num {
	j := uint32(b.t.inputs)
	b.t.inputs++
	b.emit(op{code: opPutInput, a: j, b: uint32(reg)})
	return Num{v: classOwnInput<<classShift | j, reg: reg}
}

// ---- tape

func (b *Builder) emit(o op) { b.t.tape = append(b.t.tape, o) }

func (b *Builder) word(o op) int32 {
	o.dst = uint32(b.t.wordReg)
	b.t.wordReg++
	b.emit(o)
	return int32(o.dst)
}

func (b *Builder) field(o op) int32 {
	o.dst = uint32(b.t.fieldReg)
	b.t.fieldReg++
	b.emit(o)
	return int32(o.dst)
}

// TakeField is the register with the next value of Inputs.Fields.
func (b *Builder) TakeField() int32 {
	b.t.fields++
	return b.field(op{code: opFieldInput, a: uint32(b.t.fields - 1)})
}

// TakeWord is the register with the next value of Inputs.Words.
func (b *Builder) TakeWord() int32 {
	b.t.words++
	return b.word(op{code: opWordInput, a: uint32(b.t.words - 1)})
}

// FieldConst is a register with a constant.
func (b *Builder) FieldConst(c fr.Element) int32 {
	return b.field(op{code: opFieldConst, a: b.coefficient(c)})
}

// Value is the register with a number's value.
func (b *Builder) Value(n Num) int32 {
	if n.reg >= 0 {
		return n.reg
	}
	status.Check(n.v>>classShift == classExternal, "circuit.Builder", "own numbers to have a register")
	return b.field(op{code: opFieldGet, a: n.v & indexMask})
}

// Mul is the register with the product of two.
func (b *Builder) Mul(x, y int32) int32 {
	return b.field(op{code: opMul, a: uint32(x), b: uint32(y)})
}

// Add is the register with the sum of two.
func (b *Builder) Add(x, y int32) int32 {
	return b.field(op{code: opAddField, a: uint32(x), b: uint32(y)})
}

// Linear is the register with the sum of coefficient times register.
func (b *Builder) Linear(coeffs []fr.Element, regs []int32) int32 {
	at := uint32(len(b.t.lists))
	for i, c := range coeffs {
		b.t.lists = append(b.t.lists, b.coefficient(c), uint32(regs[i]))
	}
	return b.field(op{code: opLinear, a: at, b: uint32(len(coeffs))})
}

// BitsOf gathers bits (constants or external wires, at most 64) into a word register, least significant first.
func (b *Builder) BitsOf(in []Bit) int32 {
	at := uint32(len(b.t.lists))
	for _, bit := range in {
		switch {
		case bit.state == bitFalse:
			b.t.lists = append(b.t.lists, gatherZero)
		case bit.state == bitTrue:
			b.t.lists = append(b.t.lists, gatherOne)
		default:
			status.Check(bit.v>>classShift == classExternal, "circuit.Builder", "gathered bits to be external")
			b.t.lists = append(b.t.lists, gatherEntry(bit.v&indexMask, bit.state == bitNot))
		}
	}
	return b.word(op{code: opWordGather, a: at, b: uint32(len(in))})
}

// BitValue is a register whose bit 0 is the bit's value.
func (b *Builder) BitValue(x Bit) int32 {
	switch {
	case x.reg >= 0 && x.pos == 0:
		return x.reg
	case x.reg >= 0:
		return b.word(op{code: opShr, a: uint32(x.reg), b: uint32(x.pos)})
	}
	return b.BitsOf([]Bit{x})
}

// Select is the register with x where the condition's bit 0 is set, else y.
func (b *Builder) Select(condition, x, y int32) int32 {
	return b.field(op{code: opSelect, a: uint32(condition), b: uint32(x), c: uint32(y)})
}

// ToWords is the first of four registers with a canonical field value, 64 bits each.
func (b *Builder) ToWords(x int32) int32 {
	first := b.word(op{code: opToWords, a: uint32(x)})
	b.t.wordReg += 3
	return first
}

// FromWords is the register with the number whose binary digits are in n consecutive word registers.
func (b *Builder) FromWords(first int32, n int) int32 {
	return b.field(op{code: opFromWords, a: uint32(first), b: uint32(n)})
}

// WordConst is a register with a constant.
func (b *Builder) WordConst(v uint64) int32 { return b.word(op{code: opWordConst, imm: v}) }

// And is the register with the conjunction of two.
func (b *Builder) And(x, y int32) int32 { return b.word(op{code: opAnd, a: uint32(x), b: uint32(y)}) }

// NotWord is the register with the negation of the low n bits of another.
func (b *Builder) NotWord(x int32, n int) int32 {
	return b.word(op{code: opNot, a: uint32(x), imm: ^uint64(0) >> (64 - n)})
}

// stored is a variable that a word operation allocated for one bit of its result.
type stored struct {
	bit int    // place in the register
	v   uint32 // the variable
	neg bool   // the variable is the negation of the register's bit
}

// store writes bits of a register to the variables allocated for them. Neighbours at one distance share an op:
// a word's variables are usually one bit field, or every second bit of one.
func (b *Builder) store(reg int32, vars []stored) {
	for len(vars) > 0 {
		n := 1
		var stride uint32
		for n < len(vars) {
			d := vars[n].v - vars[n-1].v
			if n > 1 && d != stride || d > 255 {
				break
			}
			stride = d
			n++
		}
		if n == 1 {
			stride = 1
		}
		o := op{code: opStore, a: uint32(reg), b: vars[0].v & indexMask, stride: uint8(stride)}
		for _, s := range vars[:n] {
			o.imm |= 1 << s.bit
			if s.neg {
				o.neg |= 1 << s.bit
			}
		}
		b.emit(o)
		vars = vars[n:]
	}
}

// AllocBits allocates n boolean variables with the low bits of a register, each followed by its row
// (1 - x)·x = 0.
func (b *Builder) AllocBits(reg int32, n int) []Bit {
	out := make([]Bit, n)
	vars := make([]stored, n)
	for i := range out {
		x := b.allocBit()
		b.boolean(x)
		vars[i] = stored{bit: i, v: x.v}
		x.reg, x.pos = reg, uint8(i)
		out[i] = x
	}
	b.store(reg, vars)
	return out
}

// ---- end of a template

func (b *Builder) coefficient(c fr.Element) uint32 {
	if i, ok := b.coeff[coeffKey(c)]; ok {
		return i
	}
	k := coefficient{value: c, kind: coeffOther}
	canonical := c.Bits()
	be := c.Bytes()
	for i := range be {
		k.bytes[i] = be[31-i]
	}
	var neg fr.Element
	neg.Neg(&c)
	negated := neg.Bits()
	switch {
	case c.IsOne():
		k.kind, k.small = coeffOne, 1
	case neg.IsOne():
		k.kind, k.small = coeffMinusOne, -1
	case fitsSmall(canonical):
		k.small = int32(canonical[0])
	case fitsSmall(negated):
		k.small = -int32(negated[0])
	}
	i := uint32(len(b.t.coeff))
	b.t.coeff = append(b.t.coeff, k)
	b.coeff[coeffKey(c)] = i
	return i
}

func fitsSmall(v [4]uint64) bool {
	return v[1]|v[2]|v[3] == 0 && bits.Len64(v[0]) < bits.Len64(smallLimit)
}

// dropDead removes the steps whose results nobody uses, such as most of a Poseidon hash's last mixing.
func (t *Template) dropDead() {
	fields, words := make([]bool, t.fieldReg), make([]bool, t.wordReg)
	use := func(set []bool, first, n uint32) {
		for i := range n {
			set[first+i] = true
		}
	}
	live := make([]bool, len(t.tape))
	for i := len(t.tape) - 1; i >= 0; i-- {
		o := &t.tape[i]
		switch o.code {
		case opStore, opPutNum, opPutInput:
			live[i] = true
		case opFieldConst, opFieldInput, opFieldGet, opMul, opAddField, opLinear, opSelect, opFromWords:
			live[i] = fields[o.dst]
		case opToWords:
			live[i] = slices.Contains(words[o.dst:o.dst+4], true)
		default:
			live[i] = words[o.dst]
		}
		if !live[i] {
			continue
		}
		switch o.code {
		case opRotr, opShr, opNot, opStore:
			use(words, o.a, 1)
		case opXor, opAnd:
			use(words, o.a, 1)
			use(words, o.b, 1)
		case opChoose, opMajority:
			use(words, o.a, 1)
			use(words, o.b, 1)
			use(words, o.c, 1)
		case opAdd:
			for _, r := range t.lists[o.a : o.a+o.b] {
				use(words, r, 1)
			}
		case opFromWords:
			use(words, o.a, o.b)
		case opToWords:
			use(fields, o.a, 1)
		case opMul, opAddField:
			use(fields, o.a, 1)
			use(fields, o.b, 1)
		case opPutNum, opPutInput:
			use(fields, o.b, 1)
		case opSelect:
			use(words, o.a, 1)
			use(fields, o.b, 1)
			use(fields, o.c, 1)
		case opLinear:
			for k := o.a; k < o.a+2*o.b; k += 2 {
				use(fields, t.lists[k+1], 1)
			}
		}
	}
	kept := t.tape[:0]
	for i, o := range t.tape {
		if live[i] {
			kept = append(kept, o)
		}
	}
	t.tape = slices.Clip(kept)
}

// finish turns the recorded rows into spans of terms.
func (b *Builder) finish() {
	t := b.t
	t.dropDead()
	rank := make([]uint32, len(t.auxKind))
	for i, j := range t.numAux {
		rank[j] = uint32(i)
	}
	for _, row := range b.rows {
		span := rowSpan{a: uint32(len(t.terms)), small: true}
		for m, l := range row {
			for _, lt := range l {
				wire := b.wire(lt.v, rank)
				c := b.coefficient(lt.c)
				class := wire >> classShift
				isBit := class == classOne || class == classOwnBit || class == classExternalBit
				span.small = span.small && isBit && (t.coeff[c].small != 0)
				t.terms = append(t.terms, term{wire: wire, coeff: c})
			}
			span.small = span.small && len(l) <= smallTerms
			switch end := uint32(len(t.terms)); m {
			case 0:
				span.b = end
			case 1:
				span.c = end
			case 2:
				span.end = end
			}
		}
		t.rows = append(t.rows, span)
	}
	t.terms = slices.Clip(t.terms)
}

// wire is a recorded variable in the terms of evaluation.
func (b *Builder) wire(v uint32, rank []uint32) uint32 {
	index := v & indexMask
	switch v >> classShift {
	case classOwn:
		if b.t.auxKind[index] == wireNum {
			return classOwnNum<<classShift | rank[index]
		}
		return classOwnBit<<classShift | index
	case classExternal:
		if b.t.external[index] == wireNum {
			return classExternalNum<<classShift | index
		}
		return classExternalBit<<classShift | index
	}
	return v
}
