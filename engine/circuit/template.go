package circuit

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Template is a gadget recorded once: R1CS rows over its own variables and its external wires, and the tape
// that computes its own variables from the external ones. Immutable after recording.
type Template struct {
	name string

	external []wireKind // kind of each external wire
	auxKind  []wireKind // kind of each own aux
	numAux   []int32    // own aux that are field elements, in order
	inputs   int        // own public inputs
	fields   int        // values taken from Inputs.Fields
	words    int        // values taken from Inputs.Words

	rows  []rowSpan
	terms []term
	coeff []coefficient

	tape     []op
	lists    []uint32 // operands of ops with many: see tape.go
	fieldReg int
	wordReg  int
	side     *sideTape // nil where it is run for one instance at a time

	outBits []Bit // results that a later gadget may bind, in own variables
	outNums []Num
}

// wireKind says how a variable is kept in the compact witness.
type wireKind uint8

const (
	wireBit wireKind = iota
	wireNum
)

// term is a coefficient times a wire. The wire's class is in the high bits, so that evaluation needs no
// look-up: own bits and numbers are offsets from the instance's first, external wires go by the bindings.
type term struct {
	wire  uint32
	coeff uint32 // in Template.coeff
}

const (
	classShift = 29
	indexMask  = 1<<classShift - 1

	classOne         = 0
	classOwnBit      = 1 // index: own aux
	classOwnNum      = 2 // index: among own field elements
	classOwnInput    = 3
	classExternalBit = 4 // index: external wire
	classExternalNum = 5
)

// coefficient is kept in every form that a consumer wants.
type coefficient struct {
	value fr.Element
	small int32 // the integer itself where isSmall
	kind  coeffKind
	bytes [32]byte // canonical, little-endian
}

type coeffKind uint8

const (
	coeffOne coeffKind = iota
	coeffMinusOne
	coeffOther
)

// smallLimit bounds coefficients that evaluation treats as machine integers: rows of at most smallTerms
// such terms over bits cannot overflow.
const (
	smallLimit = 1 << 15
	smallTerms = 64
)

// rowSpan is one constraint: terms [a, b) are A's, [b, c) B's, [c, end) C's. small: all wires are bits or the
// constant one and all coefficients small.
type rowSpan struct {
	a, b, c, end uint32
	small        bool
}

// Name says which gadget and signature class the template is, as "sha256_compress".
func (t *Template) Name() string { return t.name }
