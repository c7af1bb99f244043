package rows

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/status"
)

// Numbers of the kernels: cuda/kernels/tuning/rows.cuh.
const (
	blockThreads = 128
	longLanes    = 8
	smallValues  = 64
)

// How the work is cut into tasks, a block each.
const (
	// shortTerms is how many terms a row may have that one thread sums.
	shortTerms = 8
	// A block goes through so many instances with the same rows: enough that reading the terms is a small part, few
	// enough that all multiprocessors have work.
	smallInstances = 16
	fullInstances  = 4
)

// The encodings of rows.cuh.
const (
	classShift  = 29
	boundInput  = 1 << 31
	coeffOther  = 0
	coeffPlus   = 1
	coeffMinus  = 2
	ownBit      = 0
	externalBit = 1
	one         = 2
	ownNum      = 3
	ownInput    = 4
	externalNum = 5
)

// The structs of rows.cuh.
type (
	term     struct{ wire, coefficient uint32 }
	span     struct{ row, term, a, b, c uint32 }
	instance struct{ aux, num, input, row, binding uint32 }
	task     struct{ span, count, instance, instances uint32 }
)

// kind is a sort of rows, each with a kernel.
type kind int

const (
	small kind = iota
	short
	long
	kinds
)

// Tables says where in its image, which is on the device, a program's rows lie. Immutable.
type Tables struct {
	bytes                                                   int64
	tasks                                                   [kinds]section
	spans, terms, instances, bindings, coefficients, values section
	rows, inputs                                            uint32
}

// section is a part of the image.
type section struct {
	at    int64 // in bytes
	count int
}

// Bytes is the size of the image.
func (t *Tables) Bytes() int64 { return t.bytes }

// Build makes the tables of a program and their image, which the caller copies to the device, aligned to 256 bytes, and
// then drops: 35 MB for a 32 GiB partition. Errors: Unsupported for a program beyond the encoding's bounds.
func Build(p *circuit.Program) (*Tables, []byte, error) {
	const op = "rows.Build"
	l := p.Layout()
	b := builder{program: p, layout: l}
	b.bind()
	of := make([][]circuit.InstanceLayout, len(l.Templates))
	for _, i := range l.Instances {
		of[i.Template] = append(of[i.Template], i)
	}
	for i := range l.Templates {
		b.template(&l.Templates[i], of[i])
	}
	b.values = make([]fr.Element, smallValues)
	for i := range b.values {
		b.values[i].SetInt64(int64(i - smallValues/2))
	}
	t := &Tables{rows: uint32(p.ConstraintCount()), inputs: uint32(p.InputCount())}
	for k := range t.tasks {
		t.tasks[k] = place(t, b.tasks[k])
	}
	t.spans, t.terms, t.instances = place(t, b.spans), place(t, b.terms), place(t, b.instances)
	t.bindings, t.coefficients, t.values = place(t, b.bindings), place(t, b.coefficients), place(t, b.values)
	for _, bound := range []struct {
		what       string
		got, limit int
	}{{"rows", p.RowCount(), 1 << 28}, {"aux", p.AuxCount(), math.MaxInt32}, {"terms", len(b.terms), math.MaxInt32}, {"coefficients", len(b.coefficients), 1 << 29}} {
		if bound.got > bound.limit {
			return nil, nil, status.New(status.Unsupported, op, p.Name()+": "+bound.what, fmt.Sprintf("at most %d", bound.limit), fmt.Sprint(bound.got))
		}
	}
	image := make([]byte, t.bytes)
	for k := range t.tasks {
		write(image, t.tasks[k], b.tasks[k])
	}
	write(image, t.spans, b.spans)
	write(image, t.terms, b.terms)
	write(image, t.instances, b.instances)
	write(image, t.bindings, b.bindings)
	write(image, t.coefficients, b.coefficients)
	write(image, t.values, b.values)
	return t, image, nil
}

// alignment of sections: a line of the caches.
const alignment = 128

// place gives values room at the image's end.
func place[T any](t *Tables, values []T) section {
	s := section{at: t.bytes, count: len(values)}
	size := int64(len(values)) * int64(unsafe.Sizeof(*new(T)))
	t.bytes = (t.bytes + size + alignment - 1) &^ (alignment - 1)
	return s
}

// write copies values to their place.
func write[T any](image []byte, s section, values []T) {
	if len(values) == 0 {
		return
	}
	size := len(values) * int(unsafe.Sizeof(values[0]))
	copy(image[s.at:], unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), size))
}

// builder gathers the tables.
type builder struct {
	program *circuit.Program
	layout  *circuit.Layout

	tasks                [kinds][]task
	spans                []span
	terms                []term
	instances            []instance
	bindings             []uint32
	coefficients, values []fr.Element
}

// bind turns the external wires of all instances from variables into places in the witness.
func (b *builder) bind() {
	b.bindings = make([]uint32, len(b.layout.Bindings))
	for _, i := range b.layout.Instances {
		for slot, num := range b.layout.Templates[i.Template].External {
			key := b.layout.Bindings[i.Binding+slot]
			switch {
			case !num:
				b.bindings[i.Binding+slot] = uint32(key.Index())
			case key.IsAux():
				b.bindings[i.Binding+slot] = uint32(b.program.NumRank(key.Index()))
			default:
				b.bindings[i.Binding+slot] = uint32(key.Index()) | boundInput
			}
		}
	}
}

// template adds a template's rows and the tasks of its instances.
func (b *builder) template(t *circuit.TemplateLayout, of []circuit.InstanceLayout) {
	firstInstance := len(b.instances)
	for _, i := range of {
		b.instances = append(b.instances, instance{aux: uint32(i.FirstAux), num: uint32(i.FirstNum), input: uint32(i.FirstInput), row: uint32(i.FirstRow), binding: uint32(i.Binding)})
	}
	firstCoefficient := len(b.coefficients)
	b.coefficients = append(b.coefficients, t.Coeffs...)
	for k := range kinds {
		firstSpan := len(b.spans)
		for n, r := range t.Rows {
			if kindOf(&r) != k {
				continue
			}
			b.spans = append(b.spans, span{row: uint32(n), term: uint32(len(b.terms)), a: r.B - r.A, b: r.C - r.B, c: r.End - r.C})
			for _, x := range t.Terms[r.A:r.End] {
				coefficient := uint32(t.Small[x.Coeff])
				if k != small {
					coefficient = uint32(firstCoefficient+int(x.Coeff))<<2 | sign(t.Small[x.Coeff])
				}
				b.terms = append(b.terms, term{wire: classes[x.Class]<<classShift | x.Index, coefficient: coefficient})
			}
		}
		rowsPerBlock, instancesPerBlock := blockThreads, fullInstances
		switch k {
		case small:
			instancesPerBlock = smallInstances
		case long:
			rowsPerBlock /= longLanes
		}
		for i := 0; i < len(of); i += instancesPerBlock {
			for s := firstSpan; s < len(b.spans); s += rowsPerBlock {
				b.tasks[k] = append(b.tasks[k], task{
					span: uint32(s), count: uint32(min(rowsPerBlock, len(b.spans)-s)),
					instance: uint32(firstInstance + i), instances: uint32(min(instancesPerBlock, len(of)-i)),
				})
			}
		}
	}
}

func kindOf(r *circuit.RowLayout) kind {
	switch {
	case r.Small:
		return small
	case r.End-r.A <= shortTerms:
		return short
	}
	return long
}

// sign is how the kernels treat a coefficient, which is 1, -1 or something else.
func sign(smallValue int32) uint32 {
	switch smallValue {
	case 1:
		return coeffPlus
	case -1:
		return coeffMinus
	}
	return coeffOther
}

var classes = map[circuit.WireClass]uint32{
	circuit.WireOne: one, circuit.WireOwnBit: ownBit, circuit.WireOwnNum: ownNum, circuit.WireOwnInput: ownInput,
	circuit.WireExternalBit: externalBit, circuit.WireExternalNum: externalNum,
}
