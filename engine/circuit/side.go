package circuit

import (
	"math/bits"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/lanes"
)

// Instances of one level are independent, and most are hashes, of which there are few templates. So a tape that is nothing
// but words, or nothing but field arithmetic, is run for eight instances side by side, one in each lane: of words that
// saves reading the tape eight times, of field elements eight multiplications are one (lanes.Row).

// sideWidth is the number of lanes.
const sideWidth = lanes.Width

// sideTape is a tape for eight instances. Registers are used again once nobody needs what they hold, so that all of them
// stay in the first cache.
type sideTape struct {
	ops     []op // registers, also those in lists, are the side tape's; see newSideTape for what else differs
	lists   []uint32
	terms   []lanes.Term
	factors []uint64
	words   int // word registers
	rows    int // field registers
	gathers int // ops that gather bits of external wires
	least   int // with fewer instances each is quicker by itself
}

// sideWord is a word register of eight instances.
type sideWord [sideWidth]uint64

// registers gives each value a place for as long as somebody needs it.
type registers struct {
	lastUse []int    // by value: the op that reads it last
	place   []uint32 // by value
	free    []uint32
	count   int
}

func newRegisters(values int) *registers {
	return &registers{lastUse: make([]int, values), place: make([]uint32, values)}
}

// read gives the place of a value back where op i is the last that reads it.
func (r *registers) read(value uint32, i int) {
	if r.lastUse[value] == i {
		r.lastUse[value] = -1 // an op may read a value twice
		r.free = append(r.free, r.place[value])
	}
}

// write finds a place for a new value, which may be that of an operand: each op reads all of a lane before it writes.
func (r *registers) write(value uint32) uint32 {
	if len(r.free) == 0 {
		r.free = append(r.free, uint32(r.count))
		r.count++
	}
	r.place[value] = r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	return r.place[value]
}

// wordOperands and fieldOperands call each with the registers that an op reads.
func (t *Template) wordOperands(o *op, each func(register uint32)) {
	switch o.code {
	case opRotr, opShr, opNot, opStore:
		each(o.a)
	case opXor, opAnd:
		each(o.a)
		each(o.b)
	case opChoose, opMajority:
		each(o.a)
		each(o.b)
		each(o.c)
	case opAdd:
		for _, r := range t.lists[o.a : o.a+o.b] {
			each(r)
		}
	}
}

func (t *Template) fieldOperands(o *op, each func(register uint32)) {
	switch o.code {
	case opMul, opAddField:
		each(o.a)
		each(o.b)
	case opPutNum:
		each(o.b)
	case opLinear:
		for k := o.a; k < o.a+2*o.b; k += 2 {
			each(t.lists[k+1])
		}
	}
}

// newSideTape is the tape of t for eight instances; nil where it does other things, or too little to be worth it.
func newSideTape(t *Template) *sideTape {
	if s := newSideWords(t); s != nil {
		return s
	}
	if lanes.HasRows() {
		return newSideFields(t)
	}
	return nil
}

// newSideWords is newSideTape for words. A gather has its number in imm; where it is of constants alone it becomes one.
func newSideWords(t *Template) *sideTape {
	const (
		fewest = 64 // ops, below which it is not worth it
		least  = 3  // instances
	)
	s := &sideTape{least: least}
	values := newRegisters(t.wordReg)
	for i := range t.tape {
		t.wordOperands(&t.tape[i], func(r uint32) { values.lastUse[r] = i })
	}
	for i := range t.tape {
		o := t.tape[i]
		read := func() { t.wordOperands(&t.tape[i], func(r uint32) { values.read(r, i) }) }
		switch o.code {
		case opWordConst, opWordInput:
		case opWordGather:
			list := t.lists[o.a : o.a+o.b]
			if !slices.ContainsFunc(list, func(e uint32) bool { return e&gatherExternal != 0 }) {
				o = op{code: opWordConst, dst: o.dst, imm: gatherConstant(list)}
				break
			}
			o.imm = uint64(s.gathers)
			s.gathers++
		case opStore, opRotr, opShr, opNot:
			o.a = values.place[o.a]
			read()
		case opXor, opAnd:
			o.a, o.b = values.place[o.a], values.place[o.b]
			read()
		case opChoose, opMajority:
			o.a, o.b, o.c = values.place[o.a], values.place[o.b], values.place[o.c]
			read()
		case opAdd:
			at := uint32(len(s.lists))
			for _, r := range t.lists[o.a : o.a+o.b] {
				s.lists = append(s.lists, values.place[r])
			}
			o.a = at
			read()
		default:
			return nil
		}
		if o.code != opStore {
			o.dst = values.write(o.dst)
		}
		s.ops = append(s.ops, o)
	}
	if len(s.ops) < fewest {
		return nil
	}
	s.words = values.count
	return s
}

// newSideFields is newSideTape for field elements. opLinear has its operands in terms[a : b]. It is nil too where a row
// would leave its bound.
func newSideFields(t *Template) *sideTape {
	s := &sideTape{least: 1}
	values := newRegisters(t.fieldReg)
	for i := range t.tape {
		t.fieldOperands(&t.tape[i], func(r uint32) { values.lastUse[r] = i })
	}
	bound := make([]float64, t.fieldReg)
	factorOf := map[uint32]int{}
	for i := range t.tape {
		o := t.tape[i]
		limit := lanes.RowTight
		switch o.code {
		case opFieldConst, opFieldInput, opFieldGet:
		case opAddField:
			limit = bound[o.a] + bound[o.b]
			fallthrough
		case opMul:
			o.a, o.b = values.place[o.a], values.place[o.b]
		case opPutNum:
			o.b = values.place[o.b]
		case opLinear:
			at := len(s.terms)
			for k := o.a; k < o.a+2*o.b; k += 2 {
				c, r := t.lists[k], t.lists[k+1]
				factor, ok := factorOf[c]
				if !ok {
					factor = len(factorOf)
					factorOf[c] = factor
					s.factors = lanes.AppendFactor(s.factors, &t.coeff[c].value)
				}
				s.terms = append(s.terms, lanes.NewTerm(int(values.place[r]), factor))
				limit += bound[r] * lanes.TermShare
			}
			o.a, o.b = uint32(at), uint32(len(s.terms))
		default:
			return nil
		}
		if limit > lanes.RowLimit || o.code == opLinear && o.a == o.b {
			return nil
		}
		t.fieldOperands(&t.tape[i], func(r uint32) { values.read(r, i) })
		if o.code != opPutNum {
			bound[o.dst] = limit
			o.dst = values.write(o.dst)
		}
		s.ops = append(s.ops, o)
	}
	if len(s.terms) == 0 {
		return nil
	}
	s.rows = values.count
	return s
}

// gatherConstant is the value of a list of constant bits.
func gatherConstant(list []uint32) (v uint64) {
	for i, e := range list {
		v |= uint64(e) << i
	}
	return v
}

// run is how one gather of one instance finds its bits: as a run of neighbouring aux in one of four orders, which is all that
// rotating words, and bytes and bits in either order, make of one. It is the first aux, shifted by two, and the
// order; -1 where it is anything else.
type run int32

const noRun run = -1

// The orders: bit i is aux i^mask of the run. All but the first are for words of 32 bits.
const (
	runRising = iota
	runFalling
	runBytesFalling
	runBitsFalling // in each byte
)

var runMasks = [...]int32{runRising: 0, runFalling: 31, runBytesFalling: 24, runBitsFalling: 7}

// gatherRun finds the run behind a gather's list.
func gatherRun(list []uint32, bind []Key) run {
	index := make([]int32, len(list))
	for i, e := range list {
		if e&gatherExternal == 0 || e&4 != 0 || !bind[e>>3].IsAux() {
			return noRun
		}
		index[i] = int32(bind[e>>3].Index())
	}
	first := slices.Min(index)
	order := slices.Index(runMasks[:], index[0]-first)
	if order < 0 || order != runRising && len(list) != 32 {
		return noRun
	}
	for i := range index {
		if index[i] != first+(int32(i)^runMasks[order]) {
			return noRun
		}
	}
	return run(int(first)<<2 | order)
}

// side holds one thread's registers for side tapes.
type side struct {
	words []sideWord
	rows  []lanes.Row
	own   []sideWord // bits of the instances' own aux
	bits  []uint64   // those of one instance
}

// runSide computes up to eight instances of one template, at least one. Lanes that are left over repeat the last one.
func (m *machine) runSide(list []int32) {
	var inst [sideWidth]*instance
	var bind [sideWidth][]Key
	for l := range inst {
		inst[l] = &m.p.instances[list[min(l, len(list)-1)]]
		bind[l] = m.p.bindings[inst[l].binding:]
	}
	t := m.p.templates[inst[0].template]
	if t.side.rows > 0 {
		m.runFields(t, &inst, &bind)
		return
	}
	m.runWords(t, &inst, &bind)
	own := m.side.own[:BitWords(len(t.auxKind))]
	one := m.side.bits[:len(own)]
	if len(own) == 0 {
		return
	}
	for l := range list {
		for i := range own {
			one[i] = own[i][l]
		}
		mergeBits(m.w.Bits.Words, one, int(inst[l].firstAux))
	}
}

func (m *machine) runFields(t *Template, inst *[sideWidth]*instance, bind *[sideWidth][]Key) {
	s := t.side
	rows := m.side.rows
	var in [sideWidth]fr.Element
	for i := range s.ops {
		o := &s.ops[i]
		switch o.code {
		case opFieldConst:
			rows[o.dst].Broadcast(&t.coeff[o.a].value)
		case opFieldInput:
			for l := range in {
				in[l] = m.in.Fields[int(inst[l].firstField)+int(o.a)]
			}
			rows[o.dst].Load(&in)
		case opFieldGet:
			for l := range in {
				in[l] = m.num(bind[l][o.a])
			}
			rows[o.dst].Load(&in)
		case opMul:
			rows[o.dst].Mul(&rows[o.a], &rows[o.b])
		case opAddField:
			rows[o.dst].Add(&rows[o.a], &rows[o.b])
		case opLinear:
			rows[o.dst].Linear(rows, s.terms[o.a:o.b], s.factors)
		case opPutNum:
			var at [sideWidth]int
			for l := range at {
				at[l] = int(inst[l].firstNum) + int(o.a)
			}
			rows[o.b].Store(m.w.Nums, &at)
		}
	}
}

func (m *machine) runWords(t *Template, inst *[sideWidth]*instance, bind *[sideWidth][]Key) {
	s := t.side
	w := m.side.words
	own := m.side.own
	clear(own[:BitWords(len(t.auxKind))])
	for i := range s.ops {
		o := &s.ops[i]
		if o.code == opStore {
			storeSide(own, o, &w[o.a])
			continue
		}
		d := &w[o.dst]
		switch o.code {
		case opWordConst:
			for l := range d {
				d[l] = o.imm
			}
		case opWordInput:
			for l := range d {
				d[l] = m.in.Words[int(inst[l].firstWord)+int(o.a)]
			}
		case opWordGather:
			list := t.lists[o.a : o.a+o.b]
			for l := range d {
				if r := m.p.runs[int(inst[l].firstRun)+int(o.imm)]; r != noRun {
					d[l] = m.neighbours(r, int(o.b))
				} else {
					d[l] = m.gather(list, bind[l])
				}
			}
		case opRotr:
			a, by := &w[o.a], -int(o.b)
			for l := range d {
				d[l] = uint64(bits.RotateLeft32(uint32(a[l]), by))
			}
		case opShr:
			a, by := &w[o.a], o.b
			for l := range d {
				d[l] = uint64(uint32(a[l]) >> by)
			}
		case opXor:
			a, b := &w[o.a], &w[o.b]
			for l := range d {
				d[l] = a[l] ^ b[l]
			}
		case opAnd:
			a, b := &w[o.a], &w[o.b]
			for l := range d {
				d[l] = a[l] & b[l]
			}
		case opNot:
			a := &w[o.a]
			for l := range d {
				d[l] = ^a[l] & o.imm
			}
		case opChoose:
			a, b, c := &w[o.a], &w[o.b], &w[o.c]
			for l := range d {
				d[l] = a[l]&(b[l]^c[l]) ^ c[l]
			}
		case opMajority:
			a, b, c := &w[o.a], &w[o.b], &w[o.c]
			for l := range d {
				d[l] = a[l]&(b[l]^c[l]) ^ b[l]&c[l]
			}
		case opAdd:
			var sum sideWord
			for _, r := range s.lists[o.a : o.a+o.b] {
				a := &w[r]
				for l := range sum {
					sum[l] += uint64(uint32(a[l]))
				}
			}
			*d = sum
		}
	}
}

// neighbours are n bits, up to 64, of a run.
func (m *machine) neighbours(r run, n int) uint64 {
	words := m.w.Bits.Words
	at := int(r >> 2)
	v := loadShared(&words[at>>6]) >> (at & 63)
	if at&63+n > 64 {
		v |= loadShared(&words[at>>6+1]) << (64 - at&63)
	}
	switch r & 3 {
	case runFalling:
		return uint64(bits.Reverse32(uint32(v)))
	case runBytesFalling:
		return uint64(bits.ReverseBytes32(uint32(v)))
	case runBitsFalling:
		return uint64(bits.Reverse32(bits.ReverseBytes32(uint32(v))))
	}
	return v & (^uint64(0) >> (64 - n))
}

// storeSide is storeBits for eight instances.
func storeSide(own []sideWord, o *op, value *sideWord) {
	at := int(o.b)
	if o.imm&(o.imm+1) == 0 && (o.stride == 1 || o.stride == 2 && o.imm <= 1<<32-1) {
		span := bits.Len64(o.imm)
		low, shift := &own[at>>6], at&63
		var v sideWord
		for l := range v {
			v[l] = (value[l] ^ o.neg) & o.imm
		}
		if o.stride == 2 {
			span *= 2
			for l := range v {
				v[l] = spread(v[l])
			}
		}
		for l := range v {
			low[l] |= v[l] << shift
		}
		if shift+span > 64 {
			high := &own[at>>6+1]
			for l := range v {
				high[l] |= v[l] >> (64 - shift)
			}
		}
		return
	}
	for mask := o.imm; mask != 0; mask &= mask - 1 {
		place, row := bits.TrailingZeros64(mask), &own[at>>6]
		for l := range row {
			row[l] |= (value[l] ^ o.neg) >> place & 1 << (at & 63)
		}
		at += int(o.stride)
	}
}

// unit is what a thread computes at a time: one instance, or up to eight of a template with a side tape.
type unit struct {
	instances []int32
	side      bool
}

// level holds independent units.
type level struct {
	units  []unit
	shared bool // by threads: they are worth it
}

// sharedOps is how many steps of tapes are worth waking threads for: some tens of microseconds.
const sharedOps = 20000

// schedule cuts levels of independent instances into units, of one instance each unless side is set.
func (p *Program) schedule(levels [][]int32, side bool) []level {
	out := make([]level, len(levels))
	for i, list := range levels {
		units, steps := []unit(nil), 0
		groups := map[int32][]int32{} // by template
		for _, index := range list {
			number := p.instances[index].template
			t := p.templates[number]
			steps += len(t.tape)
			if !side || t.side == nil {
				units = append(units, unit{instances: []int32{index}})
				continue
			}
			group := append(groups[number], index)
			if len(group) == sideWidth {
				units = append(units, unit{group, true})
				group = nil
			}
			groups[number] = group
		}
		for number := range p.templates { // in an order that is always the same
			group := groups[int32(number)]
			if len(group) == 0 {
				continue
			}
			if len(group) >= p.templates[number].side.least {
				units = append(units, unit{group, true})
				continue
			}
			for i := range group {
				units = append(units, unit{instances: group[i : i+1]})
			}
		}
		out[i] = level{units, len(units) > 1 && steps >= sharedOps}
	}
	return out
}
