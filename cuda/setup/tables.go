package setup

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// The encodings of qap.cuh.
const (
	blockThreads = 128
	classShift   = 29

	wireOne      = 0
	wireOwn      = 1
	wireOwnInput = 2
	wireExternal = 3

	coefficientOther    = 0
	coefficientOne      = 1
	coefficientMinusOne = 2
)

// instancesPerTask is how many instances a block goes through: enough that a thread's sum of the constant one is
// added to rarely, few enough that all multiprocessors have work.
const instancesPerTask = 16

// The structs of qap.cuh.
type (
	term     struct{ wire, coefficient uint32 }
	span     struct{ of [4]uint32 }
	instance struct{ variable, input, row, binding uint32 }
	task     struct{ span, row, count, instance, instances uint32 }
)

// Tables are a program as the kernels read it. Immutable.
type Tables struct {
	name              string
	rows, inputs, aux int
	domain            int
	tasks             []task
	spans             []span
	terms             []term
	instances         []instance
	bindings          []uint32
	coefficients      []fr.Element
	inA, inB          bitmap
	countA, countB    int
}

// bitmap says which variables, inputs first, are taken; ranks are the ones before each word.
type bitmap struct{ words, ranks []uint32 }

// Build makes the tables of a program. Errors: Unsupported for a program beyond the encoding's bounds.
func Build(p *circuit.Program) (*Tables, error) {
	const op = "setup.Build"
	l := p.Layout()
	inputs, variables := p.InputCount(), p.InputCount()+p.AuxCount()
	t := &Tables{name: p.Name(), rows: p.ConstraintCount(), inputs: inputs, aux: p.AuxCount(), domain: p.Domain()}
	for _, bound := range []struct {
		what       string
		got, limit int
	}{{"rows", p.RowCount(), 1 << 28}, {"variables", variables, 1 << classShift}, {"bindings", len(l.Bindings), 1 << classShift}} {
		if bound.got > bound.limit {
			return nil, status.New(status.Unsupported, op, p.Name()+": "+bound.what, fmt.Sprintf("at most %d", bound.limit), fmt.Sprint(bound.got))
		}
	}
	for _, key := range l.Bindings {
		v := key.Index()
		if key.IsAux() {
			v += inputs
		}
		t.bindings = append(t.bindings, uint32(v))
	}
	of := make([][]circuit.InstanceLayout, len(l.Templates))
	for _, i := range l.Instances {
		of[i.Template] = append(of[i.Template], i)
	}
	nums := numbers(p)
	for i := range l.Templates {
		if len(of[i]) > 0 {
			t.template(&l.Templates[i], of[i], nums)
		}
	}
	if n := max(len(t.terms), 4*len(t.coefficients)); n > math.MaxInt32 {
		return nil, status.New(status.Unsupported, op, p.Name()+": terms", fmt.Sprintf("at most %d", math.MaxInt32), fmt.Sprint(n))
	}
	d := p.Density()
	all := circuit.NewBits(inputs)
	for i := range inputs {
		all.Set(i)
	}
	t.inA, t.countA = variablesOf(all, d.AAux, variables)
	t.inB, t.countB = variablesOf(d.BInput, d.BAux, variables)
	return t, nil
}

// numbers lists the aux that are field elements.
func numbers(p *circuit.Program) []uint32 {
	all := make([]uint32, 0, p.NumCount())
	for w, word := range p.Kinds().Words {
		for ; word != 0; word &= word - 1 {
			all = append(all, uint32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return all
}

// template adds a template's rows and the tasks of its instances.
func (t *Tables) template(l *circuit.TemplateLayout, of []circuit.InstanceLayout, nums []uint32) {
	firstInstance, firstSpan, firstTerm, firstCoefficient := len(t.instances), len(t.spans), len(t.terms), len(t.coefficients)
	for _, i := range of {
		t.instances = append(t.instances, instance{
			variable: uint32(t.inputs + i.FirstAux), input: uint32(i.FirstInput), row: uint32(i.FirstRow), binding: uint32(i.Binding),
		})
	}
	t.coefficients = append(t.coefficients, l.Coeffs...)
	for _, x := range l.Terms {
		var wire uint32
		switch x.Class {
		case circuit.WireOne:
			wire = wireOne << classShift
		case circuit.WireOwnBit:
			wire = wireOwn<<classShift | x.Index
		case circuit.WireOwnNum: // where the template's k-th field element lies is the same in all instances
			wire = wireOwn<<classShift | (nums[of[0].FirstNum+int(x.Index)] - uint32(of[0].FirstAux))
		case circuit.WireOwnInput:
			wire = wireOwnInput<<classShift | x.Index
		case circuit.WireExternalBit, circuit.WireExternalNum:
			wire = wireExternal<<classShift | x.Index
		}
		sign := uint32(coefficientOther)
		switch l.Small[x.Coeff] {
		case 1:
			sign = coefficientOne
		case -1:
			sign = coefficientMinusOne
		}
		t.terms = append(t.terms, term{wire: wire, coefficient: uint32(firstCoefficient+int(x.Coeff))<<2 | sign})
	}
	at := uint32(firstTerm)
	for _, r := range l.Rows {
		t.spans = append(t.spans, span{[4]uint32{at + r.A, at + r.B, at + r.C, at + r.End}})
	}
	for i := 0; i < len(of); i += instancesPerTask {
		for r := 0; r < len(l.Rows); r += blockThreads {
			t.tasks = append(t.tasks, task{
				span: uint32(firstSpan + r), row: uint32(r), count: uint32(min(blockThreads, len(l.Rows)-r)),
				instance: uint32(firstInstance + i), instances: uint32(min(instancesPerTask, len(of)-i)),
			})
		}
	}
}

// variablesOf joins a bitmap of inputs and one of aux.
func variablesOf(inputs, aux circuit.Bits, count int) (b bitmap, ones int) {
	b.words = make([]uint32, (count+31)/32)
	b.ranks = make([]uint32, len(b.words))
	set := func(from circuit.Bits, offset int) {
		for w, word := range from.Words {
			for ; word != 0; word &= word - 1 {
				if i := w<<6 + bits.TrailingZeros64(word); i < from.Len {
					v := i + offset
					b.words[v>>5] |= 1 << (v & 31)
				}
			}
		}
	}
	set(inputs, 0)
	set(aux, inputs.Len)
	for w, word := range b.words {
		b.ranks[w] = uint32(ones)
		ones += bits.OnesCount32(word)
	}
	return b, ones
}

// Counts are the numbers of points of a parameter file's blocks.
type Counts struct{ IC, H, L, A, B int }

// Counts tells them.
func (t *Tables) Counts() Counts {
	return Counts{IC: t.inputs, H: t.domain - 1, L: t.aux, A: t.countA, B: t.countB}
}

// Of is the number of points of a block.
func (c Counts) Of(b groth16.Block) int { return [...]int{c.H, c.L, c.A, c.B, c.B}[b] }

// GroupOf is the group of a block's points.
func GroupOf(b groth16.Block) points.Group {
	if b == groth16.BlockB2 {
		return points.G2
	}
	return points.G1
}

// bytesOf is the size of a slice's elements.
func bytesOf[T any](values []T) int64 { return int64(len(values)) * int64(unsafe.Sizeof(*new(T))) }
