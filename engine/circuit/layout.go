package circuit

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// Layout is how a program evaluates its rows, for a device that evaluates them itself: rows of an instance are its
// template's, over the instance's own variables and its external wires. It is a copy, made once for a program.
type Layout struct {
	Templates []TemplateLayout
	Instances []InstanceLayout // in the order of their rows, which follow each other without gaps
	Bindings  []Key            // external wires of all instances, one after the other
}

// TemplateLayout is one template's rows.
type TemplateLayout struct {
	Name     string
	Rows     []RowLayout
	Terms    []TermLayout
	Coeffs   []fr.Element // Montgomery form
	Small    []int32      // Small[i] is Coeffs[i] where that is an integer below 2^15 by amount, else 0
	External []bool       // of each external wire: whether it is a field element
}

// RowLayout is one constraint: Terms[A:B] are A's, Terms[B:C] B's, Terms[C:End] C's. Small: all wires are bits or the
// constant one, all coefficients small, and each side has at most 64 terms, so that sums are small integers.
type RowLayout struct {
	A, B, C, End uint32
	Small        bool
}

// TermLayout is a coefficient times a wire.
type TermLayout struct {
	Class WireClass
	Index uint32 // among the class's variables
	Coeff uint32 // in Coeffs
}

// WireClass says what a term's Index counts.
type WireClass uint8

// The classes. Own variables are counted from the instance's first of their sort.
const (
	WireOne         WireClass = classOne
	WireOwnBit      WireClass = classOwnBit // among own aux
	WireOwnNum      WireClass = classOwnNum // among own field elements
	WireOwnInput    WireClass = classOwnInput
	WireExternalBit WireClass = classExternalBit // among external wires
	WireExternalNum WireClass = classExternalNum
)

// InstanceLayout places a template.
type InstanceLayout struct {
	Template   int
	Binding    int // first external wire in Bindings
	FirstAux   int
	FirstNum   int // in Witness.Nums
	FirstInput int
	FirstRow   int
}

// Layout returns the program's layout.
func (p *Program) Layout() *Layout {
	l := &Layout{
		Templates: make([]TemplateLayout, len(p.templates)),
		Instances: make([]InstanceLayout, len(p.instances)),
		Bindings:  append([]Key(nil), p.bindings...),
	}
	for i, t := range p.templates {
		out := &l.Templates[i]
		*out = TemplateLayout{
			Name: t.name, Rows: make([]RowLayout, len(t.rows)), Terms: make([]TermLayout, len(t.terms)),
			Coeffs: make([]fr.Element, len(t.coeff)), Small: make([]int32, len(t.coeff)), External: make([]bool, len(t.external)),
		}
		for j, r := range t.rows {
			out.Rows[j] = RowLayout{A: r.a, B: r.b, C: r.c, End: r.end, Small: r.small}
		}
		for j, x := range t.terms {
			out.Terms[j] = TermLayout{Class: WireClass(x.wire >> classShift), Index: x.wire & indexMask, Coeff: x.coeff}
		}
		for j := range t.coeff {
			out.Coeffs[j], out.Small[j] = t.coeff[j].value, t.coeff[j].small
		}
		for j, k := range t.external {
			out.External[j] = k == wireNum
		}
	}
	for i, inst := range p.instances {
		l.Instances[i] = InstanceLayout{
			Template: int(inst.template), Binding: int(inst.binding), FirstAux: int(inst.firstAux), FirstNum: int(inst.firstNum),
			FirstInput: int(inst.firstInput), FirstRow: int(inst.firstRow),
		}
	}
	return l
}

// RowError evaluates one constraint (below ConstraintCount) and returns what Evaluate returns where it does not hold:
// Unsatisfied, with template, path and row. It returns nil where it holds.
func (p *Program) RowError(w *Witness, row int) (err error) {
	const opName = "circuit.Evaluate"
	defer status.Recover(opName, &err)
	status.Check(row >= 0 && row < p.rows, opName, "a row of the circuit")
	e := evaluator{p: p, w: w}
	return e.rows(row, row+1, func(int, *fr.Element, *fr.Element, *fr.Element) {})
}
