package circuit

import "math/bits"

// rankRun is how many aux share an entry of the rank directory.
const rankRun = 512

// rankDirectory counts the ones before each run of a bit vector.
func rankDirectory(b Bits) []int32 {
	out := make([]int32, b.Len/rankRun+1)
	n := int32(0)
	for i, w := range b.Words {
		if i*64%rankRun == 0 {
			out[i*64/rankRun] = n
		}
		n += int32(bits.OnesCount64(w))
	}
	if b.Len%rankRun == 0 {
		out[b.Len/rankRun] = n
	}
	return out
}

// IsNum says whether aux i is a field element; otherwise it is a bit.
func (p *Program) IsNum(i int) bool { return p.kind.Get(i) }

// Kinds is the bitmap of aux that are field elements; it must not be written.
func (p *Program) Kinds() Bits { return p.kind }

// NumRank is the position in Witness.Nums of aux i, which must be a field element.
func (p *Program) NumRank(i int) int {
	n := p.rank[i/rankRun]
	for w := i / rankRun * (rankRun / 64); w < i>>6; w++ {
		n += int32(bits.OnesCount64(p.kind.Words[w]))
	}
	return int(n) + bits.OnesCount64(p.kind.Words[i>>6]&(1<<(i&63)-1))
}

// computeDensity marks the variables that occur in A and B, template by template.
func (p *Program) computeDensity() Density {
	type marks struct {
		own           [2]Bits
		external      [2][]bool
		ownInputs     [2][]bool
		constantInOne bool
	}
	all := make([]marks, len(p.templates))
	for i, t := range p.templates {
		m := &all[i]
		for k := range m.own {
			m.own[k] = NewBits(len(t.auxKind))
			m.external[k] = make([]bool, len(t.external))
			m.ownInputs[k] = make([]bool, t.inputs)
		}
		for _, row := range t.rows {
			for k, span := range [2][]term{t.terms[row.a:row.b], t.terms[row.b:row.c]} {
				for _, x := range span {
					index := x.wire & indexMask
					switch x.wire >> classShift {
					case classOne:
						m.constantInOne = m.constantInOne || k == 1
					case classOwnBit:
						m.own[k].Set(int(index))
					case classOwnNum:
						m.own[k].Set(int(t.numAux[index]))
					case classOwnInput:
						m.ownInputs[k][index] = true
					default:
						m.external[k][index] = true
					}
				}
			}
		}
	}
	d := Density{AAux: NewBits(p.aux), BAux: NewBits(p.aux), BInput: NewBits(p.inputs)}
	aux := [2]Bits{d.AAux, d.BAux}
	for _, inst := range p.instances {
		m, t := &all[inst.template], p.templates[inst.template]
		if m.constantInOne {
			d.BInput.Set(0)
		}
		for k := range aux {
			orShifted(aux[k], m.own[k], int(inst.firstAux))
			for s, used := range m.external[k] {
				if !used {
					continue
				}
				if key := p.bindings[int(inst.binding)+s]; key.IsAux() {
					aux[k].Set(key.Index())
				} else if k == 1 {
					d.BInput.Set(key.Index())
				}
			}
		}
		for j := range t.inputs {
			if m.ownInputs[1][j] {
				d.BInput.Set(int(inst.firstInput) + j)
			}
		}
	}
	return d
}

// orShifted sets dst[at+i] for each set bit i of src.
func orShifted(dst, src Bits, at int) {
	shift := at & 63
	w := at >> 6
	for i, v := range src.Words {
		dst.Words[w+i] |= v << shift
		if shift != 0 && v>>(64-shift) != 0 {
			dst.Words[w+i+1] |= v >> (64 - shift)
		}
	}
}
