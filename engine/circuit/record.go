package circuit

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// Bit is a boolean of a circuit: a constant, or a variable, or a variable's negation. Between gadgets it names
// a variable of the circuit, inside a gadget one of the template (and knows the register with its value).
type Bit struct {
	v     uint32
	state bitState
	reg   int32 // inside a gadget: word register, -1 where none holds it yet
	pos   uint8 // place in the register
}

type bitState uint8

const (
	bitFalse bitState = iota
	bitTrue
	bitIs
	bitNot
)

// Constant is the constant bit b.
func Constant(b bool) Bit {
	if b {
		return Bit{state: bitTrue, reg: -1}
	}
	return Bit{state: bitFalse, reg: -1}
}

// IsConstant says whether the bit is no variable.
func (b Bit) IsConstant() bool { return b.state <= bitTrue }

// Not is the negation of the bit, which costs nothing.
func (b Bit) Not() Bit {
	switch b.state {
	case bitFalse:
		return Constant(true)
	case bitTrue:
		return Constant(false)
	case bitIs:
		b.state = bitNot
	case bitNot:
		b.state = bitIs
	}
	b.reg = -1 // the register holds the opposite
	return b
}

// Num is a field element of a circuit: one variable. Like Bit it is meant between gadgets or inside one.
type Num struct {
	v   uint32
	reg int32
}

// Recorder records a circuit gadget by gadget. It is used from one goroutine; broken rules (a gadget that uses
// wires of another one) are defects and panic by status.Check.
type Recorder struct {
	p      *Program
	known  map[string]int32 // signature -> template
	path   []string
	levels []int32 // of each instance

	signature []byte
	slots     map[Key]uint32
}

// NewRecorder starts a circuit; input 0 is the constant one.
func NewRecorder(name string) *Recorder {
	return &Recorder{
		p:     &Program{name: name, inputs: 1},
		known: map[string]int32{},
		slots: map[Key]uint32{},
	}
}

// In runs body inside a namespace, as the reference does for its paths.
func (r *Recorder) In(name string, body func()) {
	r.path = append(r.path, name)
	body()
	r.path = r.path[:len(r.path)-1]
}

// Gadget places an instance of a gadget. The signature is its name, parameters (whatever else its rows depend
// on), the values of constant bits, negations, and which wires are the same; the first time it is seen,
// record makes the template from it. record gets the wires in the template's own terms and returns results
// in them; Gadget returns those results as variables of the circuit.
func (r *Recorder) Gadget(name, parameters string, bits []Bit, nums []Num, record func(b *Builder, bits []Bit, nums []Num) ([]Bit, []Num)) ([]Bit, []Num) {
	p := r.p
	binding := len(p.bindings)
	sig := append(r.signature[:0], name...)
	sig = append(sig, 0)
	sig = append(sig, parameters...)
	sig = append(sig, 0)
	clear(r.slots)
	slot := func(v uint32) uint32 {
		s, ok := r.slots[Key(v)]
		if !ok {
			s = uint32(len(r.slots))
			r.slots[Key(v)] = s
			p.bindings = append(p.bindings, Key(v))
		}
		return s
	}
	for _, b := range bits {
		code := uint32(b.state)
		if !b.IsConstant() {
			code |= slot(b.v) << 2
		}
		sig = binary.AppendUvarint(sig, uint64(code))
	}
	sig = append(sig, 0xff, 0xff)
	for _, n := range nums {
		sig = binary.AppendUvarint(sig, uint64(slot(n.v)))
	}
	r.signature = sig

	index, ok := r.known[string(sig)]
	if !ok {
		index = int32(len(p.templates))
		p.templates = append(p.templates, r.template(name, bits, nums, record))
		r.known[string(sig)] = index
	}
	t := p.templates[index]
	inst := instance{
		template: index, binding: int32(binding),
		firstAux: int32(p.aux), firstNum: int32(p.nums), firstInput: int32(p.inputs), firstRow: int32(p.rows),
		firstField: int32(p.fields), firstWord: int32(p.words),
	}
	level := int32(0)
	for _, k := range p.bindings[binding:] {
		if owner := r.owner(k); owner >= 0 && r.levels[owner] >= level {
			level = r.levels[owner] + 1
		}
	}
	p.instances = append(p.instances, inst)
	p.paths = append(p.paths, strings.Join(r.path, "/"))
	r.levels = append(r.levels, level)
	p.aux += len(t.auxKind)
	p.nums += len(t.numAux)
	p.inputs += t.inputs
	p.rows += len(t.rows)
	p.fields += t.fields
	p.words += t.words

	global := func(v uint32) uint32 {
		switch v >> classShift {
		case classOwn:
			return uint32(AuxKey(int(inst.firstAux) + int(v&indexMask)))
		case classOwnInput:
			return uint32(InputKey(int(inst.firstInput) + int(v&indexMask)))
		default:
			return uint32(p.bindings[binding+int(v&indexMask)])
		}
	}
	outBits := make([]Bit, len(t.outBits))
	for i, b := range t.outBits {
		outBits[i] = Bit{state: b.state, reg: -1}
		if !b.IsConstant() {
			outBits[i].v = global(b.v)
		}
	}
	outNums := make([]Num, len(t.outNums))
	for i, n := range t.outNums {
		outNums[i] = Num{v: global(n.v), reg: -1}
	}
	return outBits, outNums
}

// owner is the instance that allocated a variable, -1 for the constant one.
func (r *Recorder) owner(k Key) int {
	index := int32(k.Index())
	first := func(i instance) int32 { return i.firstAux }
	if !k.IsAux() {
		if index == 0 {
			return -1
		}
		first = func(i instance) int32 { return i.firstInput }
	}
	// The last instance that starts at or before the variable; instances without variables of the sort start
	// where the next one does, so the last is the owner.
	at, _ := slices.BinarySearchFunc(r.p.instances, index, func(i instance, want int32) int {
		if first(i) <= want {
			return -1
		}
		return 1
	})
	return at - 1
}

// template records a gadget with its wires in template terms: external wires numbered in order of first use.
func (r *Recorder) template(name string, bits []Bit, nums []Num, record func(b *Builder, bits []Bit, nums []Num) ([]Bit, []Num)) *Template {
	t := &Template{name: name, external: make([]wireKind, len(r.slots))}
	b := &Builder{t: t, coeff: map[coeffKey]uint32{}}
	ownBits := make([]Bit, len(bits))
	for i, bit := range bits {
		ownBits[i] = Bit{state: bit.state, reg: -1}
		if !bit.IsConstant() {
			ownBits[i].v = classExternal<<classShift | r.slots[Key(bit.v)]
		}
	}
	ownNums := make([]Num, len(nums))
	for i, n := range nums {
		s := r.slots[Key(n.v)]
		t.external[s] = wireNum
		ownNums[i] = Num{v: classExternal<<classShift | s, reg: -1}
	}
	for _, bit := range bits {
		if !bit.IsConstant() {
			status.Check(t.external[r.slots[Key(bit.v)]] == wireBit, "circuit.Gadget", "a wire to be a bit or a number, not both")
		}
	}
	t.outBits, t.outNums = record(b, ownBits, ownNums)
	for i := range t.outBits {
		t.outBits[i].reg = -1
	}
	for i := range t.outNums {
		t.outNums[i].reg = -1
	}
	b.finish()
	return t
}

// Finish computes what follows from the whole circuit and returns the program. The recorder must not be used
// afterwards.
func (r *Recorder) Finish() *Program {
	p := r.p
	p.kind = NewBits(p.aux)
	for _, inst := range p.instances {
		for _, j := range p.templates[inst.template].numAux {
			p.kind.Set(int(inst.firstAux + j))
		}
	}
	p.rank = rankDirectory(p.kind)
	p.density = p.computeDensity()
	top := int32(-1)
	for _, l := range r.levels {
		top = max(top, l)
	}
	levels := make([][]int32, top+1)
	for i, l := range r.levels {
		levels[l] = append(levels[l], int32(i))
	}
	for _, t := range p.templates {
		t.side = newSideTape(t)
	}
	for i := range p.instances {
		inst := &p.instances[i]
		t := p.templates[inst.template]
		inst.firstRun = int32(len(p.runs))
		if t.side == nil {
			continue
		}
		for j := range t.side.ops {
			if o := &t.side.ops[j]; o.code == opWordGather {
				p.runs = append(p.runs, gatherRun(t.lists[o.a:o.a+o.b], p.bindings[inst.binding:]))
			}
		}
	}
	p.levels = p.schedule(levels, true)
	return p
}
