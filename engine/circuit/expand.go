package circuit

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// Expand runs the tapes: it fills w, whose slices the caller made (InputCount, AuxCount bits, NumCount), from
// in. Instances of one dependency level are independent and run on up to threads threads, see host.Do. It fails with
// Input where in has other lengths than the program takes, and Cancelled.
func (p *Program) Expand(ctx context.Context, in *Inputs, w *Witness, threads int) error {
	const opName = "circuit.Expand"
	if len(in.Fields) != p.fields || len(in.Words) != p.words {
		return status.New(status.Input, opName, p.name, fmt.Sprintf("%d fields and %d words", p.fields, p.words), fmt.Sprintf("%d and %d", len(in.Fields), len(in.Words)))
	}
	status.Check(len(w.Inputs) == p.inputs && w.Bits.Len == p.aux && len(w.Nums) == p.nums, opName, "a witness of the program's size")
	clear(w.Bits.Words)
	w.Inputs[0].SetOne()
	machines := make([]*machine, max(threads, 1))
	for i := range machines {
		machines[i] = p.newMachine(in, w)
	}
	for i := range p.levels {
		units := p.levels[i].units
		if !p.levels[i].shared {
			if err := ctx.Err(); err != nil {
				return status.Wrap(status.Cancelled, opName, "", context.Cause(ctx))
			}
			for i := range units {
				machines[0].runUnit(&units[i])
			}
			continue
		}
		err := host.Do(ctx, opName, len(units), 1, threads, func(worker, from, to int) error {
			for i := from; i < to; i++ {
				machines[worker].runUnit(&units[i])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// machine runs tapes for one thread.
type machine struct {
	p      *Program
	in     *Inputs
	w      *Witness
	words  []uint64
	fields []fr.Element
	own    []uint64 // bits of the instance's own aux
	side   side
}

func (p *Program) newMachine(in *Inputs, w *Witness) *machine {
	m := &machine{p: p, in: in, w: w}
	var words, fields, aux, sideWords, sideRows, sideAux int
	for _, t := range p.templates {
		words, fields, aux = max(words, t.wordReg), max(fields, t.fieldReg), max(aux, len(t.auxKind))
		if s := t.side; s != nil {
			sideWords, sideRows = max(sideWords, s.words), max(sideRows, s.rows)
			if s.words > 0 {
				sideAux = max(sideAux, len(t.auxKind))
			}
		}
	}
	m.words, m.fields, m.own = make([]uint64, words), make([]fr.Element, fields), make([]uint64, BitWords(aux)+1)
	m.side = side{make([]sideWord, sideWords), make([]lanes.Row, sideRows), make([]sideWord, BitWords(sideAux)+1), make([]uint64, BitWords(sideAux))}
	return m
}

func (m *machine) runUnit(u *unit) {
	if u.side {
		m.runSide(u.instances)
		return
	}
	for _, i := range u.instances {
		m.run(int(i))
	}
}

// run computes one instance. Its bits go through a buffer of its own, since neighbours share words.
func (m *machine) run(index int) {
	p := m.p
	inst := p.instances[index]
	t := p.templates[inst.template]
	bind := p.bindings[inst.binding:]
	w, f := m.words, m.fields
	own := m.own[:BitWords(len(t.auxKind))]
	clear(own)
	for i := range t.tape {
		o := &t.tape[i]
		switch o.code {
		case opWordConst:
			w[o.dst] = o.imm
		case opWordInput:
			w[o.dst] = m.in.Words[int(inst.firstWord)+int(o.a)]
		case opWordGather:
			w[o.dst] = m.gather(t.lists[o.a:o.a+o.b], bind)
		case opRotr:
			w[o.dst] = uint64(bits.RotateLeft32(uint32(w[o.a]), -int(o.b)))
		case opShr:
			w[o.dst] = uint64(uint32(w[o.a]) >> o.b)
		case opXor:
			w[o.dst] = w[o.a] ^ w[o.b]
		case opAnd:
			w[o.dst] = w[o.a] & w[o.b]
		case opNot:
			w[o.dst] = ^w[o.a] & o.imm
		case opChoose:
			w[o.dst] = w[o.a]&w[o.b] ^ ^w[o.a]&w[o.c]
		case opMajority:
			w[o.dst] = w[o.a]&w[o.b] ^ w[o.a]&w[o.c] ^ w[o.b]&w[o.c]
		case opAdd:
			var sum uint64
			for _, r := range t.lists[o.a : o.a+o.b] {
				sum += uint64(uint32(w[r]))
			}
			w[o.dst] = sum
		case opStore:
			storeBits(own, o, w[o.a])
		case opFieldConst:
			f[o.dst] = t.coeff[o.a].value
		case opFieldInput:
			f[o.dst] = m.in.Fields[int(inst.firstField)+int(o.a)]
		case opFieldGet:
			f[o.dst] = m.num(bind[o.a])
		case opMul:
			f[o.dst].Mul(&f[o.a], &f[o.b])
		case opAddField:
			f[o.dst].Add(&f[o.a], &f[o.b])
		case opLinear:
			var sum, x fr.Element
			list := t.lists[o.a : o.a+2*o.b]
			for k := 0; k < len(list); k += 2 {
				c := &t.coeff[list[k]]
				if c.kind == coeffOne {
					sum.Add(&sum, &f[list[k+1]])
					continue
				}
				x.Mul(&c.value, &f[list[k+1]])
				sum.Add(&sum, &x)
			}
			f[o.dst] = sum
		case opSelect:
			if w[o.a]&1 == 1 {
				f[o.dst] = f[o.b]
			} else {
				f[o.dst] = f[o.c]
			}
		case opToWords:
			canonical := f[o.a].Bits()
			copy(w[o.dst:o.dst+4], canonical[:])
		case opFromWords:
			var limbs [4]uint64
			copy(limbs[:], w[o.a:o.a+o.b])
			f[o.dst] = fromCanonical(limbs)
		case opPutNum:
			m.w.Nums[int(inst.firstNum)+int(o.a)] = f[o.b]
		case opPutInput:
			m.w.Inputs[int(inst.firstInput)+int(o.a)] = f[o.b]
		}
	}
	if len(own) > 0 {
		mergeBits(m.w.Bits.Words, own, int(inst.firstAux))
	}
}

// num is the value of a wire that is a field element.
func (m *machine) num(k Key) fr.Element {
	if !k.IsAux() {
		return m.w.Inputs[k.Index()]
	}
	return m.w.Nums[m.p.NumRank(k.Index())]
}

// loadShared reads a word of the bitmap, of which others may be writing other bits.
func loadShared(word *uint64) uint64 { return atomic.LoadUint64(word) }

func (m *machine) gather(list []uint32, bind []Key) uint64 {
	var out uint64
	words := m.w.Bits.Words
	for i, e := range list {
		var bit uint64
		if e&gatherExternal != 0 {
			at := bind[e>>3].Index()
			bit = loadShared(&words[at>>6]) >> (at & 63) & 1
			bit ^= uint64(e>>2) & 1
		} else {
			bit = uint64(e)
		}
		out |= bit << i
	}
	return out
}

// storeBits writes the masked bits of value to own aux o.b, o.b + stride, ... The usual masks are the low bits of
// the register, in one bit field or in every second bit of one.
func storeBits(own []uint64, o *op, value uint64) {
	value ^= o.neg
	at := int(o.b)
	if o.imm&(o.imm+1) == 0 && (o.stride == 1 || o.stride == 2 && o.imm <= 1<<32-1) {
		value &= o.imm
		if o.stride == 2 {
			value = spread(value)
		}
		own[at>>6] |= value << (at & 63)
		if spill := at & 63; spill != 0 && value>>(64-spill) != 0 {
			own[at>>6+1] |= value >> (64 - spill)
		}
		return
	}
	for mask := o.imm; mask != 0; mask &= mask - 1 {
		own[at>>6] |= value >> bits.TrailingZeros64(mask) & 1 << (at & 63)
		at += int(o.stride)
	}
}

// spread moves bit i of a 32-bit value to bit 2i.
func spread(x uint64) uint64 {
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// mergeBits ors src into dst from bit at on. The first and last words may be shared with instances that run at
// the same time.
func mergeBits(dst, src []uint64, at int) {
	shift := at & 63
	w := at >> 6
	carry := uint64(0)
	for i, v := range src {
		out := v<<shift | carry
		if shift != 0 {
			carry = v >> (64 - shift)
		}
		if i == 0 || i == len(src)-1 {
			atomic.OrUint64(&dst[w+i], out)
		} else {
			dst[w+i] = out
		}
	}
	if carry != 0 {
		atomic.OrUint64(&dst[w+len(src)], carry)
	}
}

// fromCanonical is the field element of a canonical value (below r). A tape packs at most 254 bits, which always
// is one.
func fromCanonical(limbs [4]uint64) fr.Element {
	x := fr.Element(limbs)
	return *x.Mul(&x, &rSquare)
}

// rSquare is R^2 mod r as raw limbs, the Montgomery form of R: a raw value times it is the value's Montgomery form.
var rSquare = powerOfTwo(64 * fr.Limbs)
