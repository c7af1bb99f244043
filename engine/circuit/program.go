// Package circuit holds circuits as programs: templates recorded once, and instances of them in order.
//
// A gadget that is recorded with a signature not seen before becomes a template (local R1CS rows and a
// witness tape); one seen before becomes an instance of it. expand runs the tapes and gives the compact
// witness; evaluate gives the rows A·w, B·w, C·w and checks a·b = c. The package knows no device and no
// proof system.
package circuit

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
)

// Key names a variable of the whole circuit as the digest "sealc2-r1cs-v1" does: index<<1 | is_aux.
// Key 0 is input 0, the constant one.
type Key uint32

// InputKey and AuxKey name a public and a private variable.
func InputKey(i int) Key { return Key(i) << 1 }

// AuxKey names a private variable.
func AuxKey(i int) Key { return Key(i)<<1 | 1 }

// IsAux tells private from public variables.
func (k Key) IsAux() bool { return k&1 == 1 }

// Index is the variable's position among the inputs or the aux.
func (k Key) Index() int { return int(k >> 1) }

// Program is a recorded circuit. It is immutable and may be shared by any number of provers.
type Program struct {
	name      string
	templates []*Template
	instances []instance
	bindings  []Key    // external wires of all instances, one after the other
	paths     []string // namespace of each instance

	inputs, aux, rows int // rows without the appended input constraints
	nums              int // aux that are field elements
	fields, words     int // length of Inputs.Fields and Inputs.Words

	kind    Bits    // bit i: aux i is a field element
	rank    []int32 // number of field elements before each run of rankRun aux
	levels  []level // of which each needs only what those before compute
	runs    []run   // of the gathers of instances with a side tape
	density Density
}

// instance places a template: the first variable and row of each sort that it owns.
type instance struct {
	template   int32
	binding    int32 // first external wire in bindings
	firstAux   int32
	firstNum   int32
	firstInput int32
	firstRow   int32
	firstField int32 // in Inputs.Fields
	firstWord  int32 // in Inputs.Words
	firstRun   int32 // in runs
}

// Name is the oracle name of the circuit, as "porep-2k".
func (p *Program) Name() string { return p.name }

// InputCount is the number of public variables with the constant one.
func (p *Program) InputCount() int { return p.inputs }

// AuxCount is the number of private variables.
func (p *Program) AuxCount() int { return p.aux }

// NumCount is the number of private variables that are not bits.
func (p *Program) NumCount() int { return p.nums }

// ConstraintCount is the number of constraints that the circuit enforces.
func (p *Program) ConstraintCount() int { return p.rows }

// RowCount counts, after the constraints, the rows that bellperson appends: one for each input,
// input · 0 = 0 (A = the input, B and C empty).
func (p *Program) RowCount() int { return p.rows + p.inputs }

// Domain is the power of two that holds all rows.
func (p *Program) Domain() int {
	n := 1
	for n < p.RowCount() {
		n <<= 1
	}
	return n
}

// FieldCount and WordCount are the lengths of the private Inputs that expand needs.
func (p *Program) FieldCount() int { return p.fields }

// WordCount is the length of Inputs.Words.
func (p *Program) WordCount() int { return p.words }

// Bytes is about what the program takes of the host's memory.
func (p *Program) Bytes() (n int64) {
	n = bytesOf(p.instances) + bytesOf(p.bindings) + bytesOf(p.paths) + bytesOf(p.rank) + bytesOf(p.runs) + bytesOf(p.levels)
	for _, bits := range []Bits{p.kind, p.density.AAux, p.density.BInput, p.density.BAux} {
		n += bytesOf(bits.Words)
	}
	for _, path := range p.paths {
		n += int64(len(path))
	}
	for _, l := range p.levels {
		n += bytesOf(l.units)
		for _, u := range l.units {
			n += bytesOf(u.instances)
		}
	}
	for _, t := range p.templates {
		n += bytesOf(t.external) + bytesOf(t.auxKind) + bytesOf(t.numAux) + bytesOf(t.rows) + bytesOf(t.terms) + bytesOf(t.coeff) +
			bytesOf(t.tape) + bytesOf(t.lists) + bytesOf(t.outBits) + bytesOf(t.outNums)
		if s := t.side; s != nil {
			n += bytesOf(s.ops) + bytesOf(s.lists) + bytesOf(s.terms) + bytesOf(s.factors)
		}
	}
	return n
}

func bytesOf[T any](list []T) int64 { return host.SliceBytes[T](cap(list)) }

// Density says which variables occur (with a coefficient that is not zero) in A and in B. Inputs occur
// in A always, by the appended rows. A property of the program, never recomputed in a proof.
type Density struct {
	AAux   Bits
	BInput Bits
	BAux   Bits
}

// Density returns the program's densities; the bitmaps must not be written.
func (p *Program) Density() *Density { return &p.density }

// Inputs are the values that a circuit takes from outside: what the gadgets allocate from the vanilla
// proofs, in the order of their recording.
type Inputs struct {
	Fields []fr.Element // Montgomery form
	Words  []uint64     // small integers whose bits are allocated
}

// Witness is the compact witness of one partition. Variable aux i is bit i of Bits where the program says
// that it is a bit, else Nums[rank of i].
type Witness struct {
	Inputs []fr.Element // public, with the leading one
	Bits   Bits         // AuxCount bits; 0 where the variable is a field element
	Nums   []fr.Element // NumCount field elements in order of their index
}
