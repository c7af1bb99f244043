package circuit

import (
	"context"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// twoGadgets records a gadget with every class of wire, placed twice: bits, field elements and inputs, its own and
// others', small coefficients and large ones.
func twoGadgets(t *testing.T) (*Program, *Witness) {
	t.Helper()
	r := NewRecorder("two")
	bits, nums := r.Gadget("source", "", nil, nil, func(b *Builder, _ []Bit, _ []Num) ([]Bit, []Num) {
		return b.AllocBits(b.TakeWord(), 3), []Num{b.AllocNum(b.TakeField()), b.AllocInput(b.TakeField())}
	})
	for range 2 {
		out, _ := r.Gadget("use", "", bits, nums, func(b *Builder, bits []Bit, nums []Num) ([]Bit, []Num) {
			x := b.AndOf(bits[0], bits[1].Not())
			product := b.AllocNum(b.Mul(b.Value(nums[0]), b.Value(nums[1])))
			b.Enforce(nums[0].LC(), nums[1].LC(), product.LC())
			own := b.AllocInput(b.Value(nums[0]))
			var big fr.Element
			big.SetUint64(1 << 40)
			left := own.LC().Plus(bits[2].LC().Times(big)).Plus(x.LC())
			b.Enforce(left, One(), nums[0].LC().Plus(bits[2].LC().Times(big)).Plus(x.LC()))
			return []Bit{x, bits[0], bits[2]}, nil
		})
		bits = out
	}
	p := r.Finish()
	in := &Inputs{Fields: make([]fr.Element, p.FieldCount()), Words: []uint64{5}}
	in.Fields[0].SetUint64(1 << 50)
	in.Fields[1].SetInt64(-3)
	w := newWitness(p)
	if err := p.Expand(context.Background(), in, w, 1); err != nil {
		t.Fatal(err)
	}
	return p, w
}

// Goal: a layout's rows are those of Rows: same variables, same coefficients, for every instance.
func TestLayout_EqualsRows(t *testing.T) {
	p, _ := twoGadgets(t)
	l := p.Layout()
	row := 0
	next := func() (out [3]map[Key]fr.Element) {
		for _, inst := range l.Instances {
			tl := &l.Templates[inst.Template]
			if row < inst.FirstRow || row >= inst.FirstRow+len(tl.Rows) {
				continue
			}
			r := tl.Rows[row-inst.FirstRow]
			for m, terms := range [3][]TermLayout{tl.Terms[r.A:r.B], tl.Terms[r.B:r.C], tl.Terms[r.C:r.End]} {
				out[m] = map[Key]fr.Element{}
				for _, x := range terms {
					out[m][layoutKey(t, p, l, &inst, x)] = tl.Coeffs[x.Coeff]
					if small := tl.Small[x.Coeff]; small != 0 {
						var want fr.Element
						if want.SetInt64(int64(small)); want != tl.Coeffs[x.Coeff] {
							t.Fatalf("row %d: small %d", row, small)
						}
					} else if r.Small {
						t.Fatalf("row %d is small with a coefficient that is not", row)
					}
				}
			}
		}
		return out
	}
	p.Rows(0, p.ConstraintCount(), func(at int, a, b, c []Term) {
		got := next()
		for m, want := range [3][]Term{a, b, c} {
			if len(got[m]) != len(want) {
				t.Fatalf("row %d, matrix %c: want %d terms, got %d", at, 'A'+m, len(want), len(got[m]))
			}
			for _, x := range want {
				if got[m][x.Key] != x.Coeff {
					t.Fatalf("row %d, matrix %c, variable %d: another coefficient", at, 'A'+m, x.Key)
				}
			}
		}
		row++
	})
	if row != p.ConstraintCount() || row == 0 {
		t.Fatalf("%d rows", row)
	}
}

// layoutKey is the variable that a term of an instance means.
func layoutKey(t *testing.T, p *Program, l *Layout, inst *InstanceLayout, x TermLayout) Key {
	t.Helper()
	index := int(x.Index)
	switch x.Class {
	case WireOne:
		return 0
	case WireOwnBit:
		return AuxKey(inst.FirstAux + index)
	case WireOwnInput:
		return InputKey(inst.FirstInput + index)
	case WireOwnNum:
		for i := range p.AuxCount() {
			if p.IsNum(i) && p.NumRank(i) == inst.FirstNum+index {
				return AuxKey(i)
			}
		}
		t.Fatalf("no field element %d", inst.FirstNum+index)
	}
	if num := l.Templates[inst.Template].External[index]; num != (x.Class == WireExternalNum) {
		t.Fatalf("external wire %d: class %d", index, x.Class)
	}
	return l.Bindings[inst.Binding+index]
}

// Goal: RowError says of each row what Evaluate would.
func TestRowError(t *testing.T) {
	p, w := twoGadgets(t)
	for row := range p.ConstraintCount() {
		if err := p.RowError(w, row); err != nil {
			t.Fatal(err)
		}
	}
	w.Nums[len(w.Nums)-1].SetUint64(9)
	a, b, c := make([]fr.Element, p.Domain()), make([]fr.Element, p.Domain()), make([]fr.Element, p.Domain())
	want := p.Evaluate(context.Background(), w, a, b, c, 1)
	for row := range p.ConstraintCount() {
		if err := p.RowError(w, row); err != nil {
			if want == nil || err.Error() != want.Error() {
				t.Fatalf("want %v, got %v", want, err)
			}
			if status.KindOf(p.RowError(w, -1)) != status.Internal {
				t.Fatal("a row that does not exist")
			}
			return
		}
	}
	t.Fatal("no row fails")
}
