package poseidon

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Hash is Poseidon of len(in) elements, with the domain tag of a Merkle tree. It allocates nothing on the
// heap once the parameters of the arity exist. Zero or more than MaxArity elements are a defect of the
// caller: Internal, by panic.
func Hash(in []fr.Element) fr.Element { return ParametersOf(len(in)).Hash(in) }

// Hash is the package's Hash for a caller that holds the parameters; len(in) must be Arity.
func (p *Parameters) Hash(in []fr.Element) fr.Element {
	var block, scratch [MaxArity + 1]fr.Element
	state, next := block[:p.Width], scratch[:p.Width]
	state[0] = p.DomainTag
	copy(state[1:], in[:p.Arity])
	constants := p.fast.constants
	for i := range state {
		state[i].Add(&state[i], &constants[i])
	}
	constants = constants[p.Width:]

	half := p.FullRounds / 2
	for range half - 1 {
		fullSBox(state, constants)
		constants = constants[p.Width:]
		p.mixMDS(next, state)
		state, next = next, state
	}
	fullSBox(state, constants)
	constants = constants[p.Width:]
	mix(next, state, p.fast.preSparse)
	state, next = next, state

	var term, first fr.Element
	for r := range p.Sparse {
		s := &p.Sparse[r]
		sBox(&state[0])
		state[0].Add(&state[0], &constants[r])
		head := state[0]
		first.Mul(&head, &s.WHat[0])
		for j := 1; j < len(state); j++ {
			term.Mul(&state[j], &s.WHat[j])
			first.Add(&first, &term)
			term.Mul(&head, &s.VRest[j-1])
			state[j].Add(&state[j], &term)
		}
		state[0] = first
	}
	constants = constants[p.PartialRounds:]

	for range half - 1 {
		fullSBox(state, constants)
		constants = constants[p.Width:]
		p.mixMDS(next, state)
		state, next = next, state
	}
	// Only element 1 of the last mixing is wanted.
	var out fr.Element
	for i := range state {
		sBox(&state[i])
		term.Mul(&state[i], &p.fast.last[i])
		out.Add(&out, &term)
	}
	return out
}

// mixMDS sets out to state times the MDS matrix, with the factor that the fast constants expect.
func (p *Parameters) mixMDS(out, state []fr.Element) {
	if p.fast.weights == nil {
		mix(out, state, p.MDS)
		return
	}
	mixIntegers(out, state, p.fast.weights)
}

// fullSBox is the S-box on every element, then the round's constants.
func fullSBox(state, constants []fr.Element) {
	for i := range state {
		sBox(&state[i])
		state[i].Add(&state[i], &constants[i])
	}
}

// mix sets out to the row vector state times m; out and state must not overlap.
func mix(out, state []fr.Element, m [][]fr.Element) {
	var term fr.Element
	clear(out)
	for i := range state {
		row := m[i]
		for j := range out {
			term.Mul(&state[i], &row[j])
			out[j].Add(&out[j], &term)
		}
	}
}

// sBox is x^5.
func sBox(x *fr.Element) {
	var t fr.Element
	t.Square(x)
	t.Square(&t)
	x.Mul(x, &t)
}
