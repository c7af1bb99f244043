package poseidon

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/lanes"
)

// eight holds what HashAll multiplies and adds, as lanes take it. Nothing is rearranged as in fast: lanes reduce sums of
// products once, whatever the factors.
type eight struct {
	constants []lanes.Row // compressed round constants
	tag       lanes.Row
	factors   []uint64
	mds       [][]lanes.Term // by column, as are the others
	preSparse [][]lanes.Term
	sparse    [][][]lanes.Term // by partial round
	last      []lanes.Term     // column 1 of mds
}

// mostEight is the widest state whose sums stay within the bounds of rows: each term is an element plus a constant.
const mostEight = 18

// eights are those of parameters by arity.
var eights [MaxArity + 1]kept[eight]

func (p *Parameters) eight() *eight {
	return eights[p.Arity].get(func() *eight { return newEight(p) })
}

func newEight(p *Parameters) *eight {
	e := &eight{constants: make([]lanes.Row, len(p.CompressedRoundConstants))}
	for i := range e.constants {
		e.constants[i].Broadcast(&p.CompressedRoundConstants[i])
	}
	e.tag.Broadcast(&p.DomainTag)
	count := 0
	term := func(row int, factor *fr.Element) lanes.Term {
		e.factors = lanes.AppendFactor(e.factors, factor)
		count++
		return lanes.NewTerm(row, count-1)
	}
	dense := func(m [][]fr.Element) (columns [][]lanes.Term) {
		for j := range m {
			var column []lanes.Term
			for i := range m {
				column = append(column, term(i, &m[i][j]))
			}
			columns = append(columns, column)
		}
		return columns
	}
	e.mds, e.preSparse = dense(p.MDS), dense(p.PreSparse)
	e.last = e.mds[1]
	one := fr.One()
	for r := range p.Sparse {
		s := &p.Sparse[r]
		var first []lanes.Term
		for j := range s.WHat {
			first = append(first, term(j, &s.WHat[j]))
		}
		columns := [][]lanes.Term{first}
		for j := range s.VRest {
			columns = append(columns, []lanes.Term{term(j+1, &one), term(0, &s.VRest[j])})
		}
		e.sparse = append(e.sparse, columns)
	}
	return e
}

// HashAll is Hash of each of in, all of one length, as is dst. Where the CPU has the instructions eight are hashed at once.
func HashAll(dst []fr.Element, in [][]fr.Element) {
	if len(in) == 0 {
		return
	}
	p := ParametersOf(len(in[0]))
	if !lanes.HasRows() || p.Width > mostEight {
		for i := range in {
			dst[i] = p.Hash(in[i])
		}
		return
	}
	for from := 0; from < len(in); from += lanes.Width {
		p.hashEight(dst[from:min(from+lanes.Width, len(in))], in[from:])
	}
}

// hashEight hashes the first len(dst) of in, at most eight.
func (p *Parameters) hashEight(dst []fr.Element, in [][]fr.Element) {
	e := p.eight()
	var block, scratch [mostEight]lanes.Row
	state, next := block[:p.Width], scratch[:p.Width]
	var x [lanes.Width]fr.Element
	state[0] = e.tag
	for i := range p.Arity {
		for l := range x {
			x[l] = in[min(l, len(dst)-1)][i]
		}
		state[i+1].Load(&x)
	}
	constants := e.constants
	add := func(boxes int) {
		for i := range boxes {
			state[i].Add(&state[i], &constants[i])
		}
		constants = constants[boxes:]
	}
	box := func(boxes int) {
		var t lanes.Row
		for i := range boxes {
			t.Mul(&state[i], &state[i])
			t.Mul(&t, &t)
			state[i].Mul(&state[i], &t)
		}
	}
	mix := func(columns [][]lanes.Term) {
		for j := range next {
			next[j].Linear(state, columns[j], e.factors)
		}
		state, next = next, state
	}
	full := func(columns [][]lanes.Term) {
		box(p.Width)
		add(p.Width)
		mix(columns)
	}

	add(p.Width)
	half := p.FullRounds / 2
	for range half - 1 {
		full(e.mds)
	}
	full(e.preSparse)
	for _, columns := range e.sparse {
		box(1)
		add(1)
		mix(columns)
	}
	for range half - 1 {
		full(e.mds)
	}
	box(p.Width) // of the last mixing only element 1 is wanted
	next[0].Linear(state, e.last, e.factors)
	var at [lanes.Width]int
	for l := range at {
		at[l] = min(l, len(dst)-1)
	}
	next[0].Store(dst, &at)
}
