package circuit

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Evaluate writes A·w, B·w, C·w for rows [0, RowCount) to a, b, c, in natural order and Montgomery form, the
// appended input rows included (a = the input, b = c = 0), and zeros up to the vectors' end. Every row is
// checked: the first one with a·b ≠ c is returned as Unsatisfied with its template, path and row. The vectors
// must have at least RowCount elements. It runs on up to threads threads, see host.Do.
func (p *Program) Evaluate(ctx context.Context, w *Witness, a, b, c []fr.Element, threads int) error {
	const opName = "circuit.Evaluate"
	n := p.RowCount()
	status.Check(len(a) >= n && len(b) >= n && len(c) >= n, opName, "vectors that hold all rows")
	err := host.Do(ctx, opName, p.rows, chunkSize, threads, func(_, from, to int) error {
		e := evaluator{p: p, w: w}
		return e.rows(from, to, func(row int, va, vb, vc *fr.Element) {
			a[row], b[row], c[row] = *va, *vb, *vc
		})
	})
	if err != nil {
		return err
	}
	copy(a[p.rows:n], w.Inputs)
	clear(a[n:])
	clear(b[p.rows:])
	clear(c[p.rows:])
	return nil
}

// Check evaluates every row as Evaluate does without keeping the values.
func (p *Program) Check(ctx context.Context, w *Witness, threads int) error {
	return host.Do(ctx, "circuit.Check", p.rows, chunkSize, threads, func(_, from, to int) error {
		e := evaluator{p: p, w: w}
		return e.rows(from, to, func(int, *fr.Element, *fr.Element, *fr.Element) {})
	})
}

// chunkSize is how many rows or variables a goroutine takes at a time: enough that handing out costs nothing, few
// enough that cancelling is quick. It is also the chunk of the digests.
const chunkSize = 1 << 16

// evaluator computes rows for one goroutine.
type evaluator struct {
	p *Program
	w *Witness

	t    *Template
	inst instance
	bind []Key
}

// rows evaluates constraints [from, to), in order, and hands them out once checked.
func (e *evaluator) rows(from, to int, out func(row int, a, b, c *fr.Element)) error {
	var va, vb, vc, product fr.Element
	for i := e.p.instanceOfRow(from); from < to; i++ {
		e.inst = e.p.instances[i]
		t := e.p.templates[e.inst.template]
		e.t, e.bind = t, e.p.bindings[e.inst.binding:]
		first := int(e.inst.firstRow)
		for r := from - first; r < min(len(t.rows), to-first); r++ {
			row := &t.rows[r]
			if row.small {
				sa, sb, sc := e.small(t.terms[row.a:row.b]), e.small(t.terms[row.b:row.c]), e.small(t.terms[row.c:row.end])
				if sa*sb != sc {
					return e.unsatisfied(i, r)
				}
				setSmall(&va, sa)
				setSmall(&vb, sb)
				setSmall(&vc, sc)
			} else {
				e.full(&va, t.terms[row.a:row.b])
				e.full(&vb, t.terms[row.b:row.c])
				e.full(&vc, t.terms[row.c:row.end])
				product.Mul(&va, &vb)
				if !product.Equal(&vc) {
					return e.unsatisfied(i, r)
				}
			}
			out(from, &va, &vb, &vc)
			from++
		}
	}
	return nil
}

// bit is the value of a term's wire, which is a bit.
func (e *evaluator) bit(wire uint32) bool {
	index := int(wire & indexMask)
	switch wire >> classShift {
	case classOwnBit:
		index += int(e.inst.firstAux)
	case classExternalBit:
		index = e.bind[index].Index()
	default:
		return true
	}
	return e.w.Bits.Words[index>>6]>>(index&63)&1 == 1
}

// small sums terms over bits with small coefficients.
func (e *evaluator) small(terms []term) int64 {
	var sum int64
	for _, x := range terms {
		if e.bit(x.wire) {
			sum += int64(e.t.coeff[x.coeff].small)
		}
	}
	return sum
}

// full sums any terms. Coefficients of bits are added as integers of five limbs, reduced once at the end.
func (e *evaluator) full(out *fr.Element, terms []term) {
	var sum [5]uint64
	var nums, x fr.Element
	for _, y := range terms {
		c := &e.t.coeff[y.coeff]
		var v *fr.Element
		switch y.wire >> classShift {
		case classOwnNum:
			v = &e.w.Nums[int(e.inst.firstNum)+int(y.wire&indexMask)]
		case classOwnInput:
			v = &e.w.Inputs[int(e.inst.firstInput)+int(y.wire&indexMask)]
		case classExternalNum:
			k := e.bind[y.wire&indexMask]
			if k.IsAux() {
				v = &e.w.Nums[e.p.NumRank(k.Index())]
			} else {
				v = &e.w.Inputs[k.Index()]
			}
		default:
			if e.bit(y.wire) {
				var carry uint64
				sum[0], carry = bits.Add64(sum[0], c.value[0], 0)
				sum[1], carry = bits.Add64(sum[1], c.value[1], carry)
				sum[2], carry = bits.Add64(sum[2], c.value[2], carry)
				sum[3], carry = bits.Add64(sum[3], c.value[3], carry)
				sum[4] += carry
			}
			continue
		}
		switch c.kind {
		case coeffOne:
			nums.Add(&nums, v)
		case coeffMinusOne:
			nums.Sub(&nums, v)
		default:
			x.Mul(v, &c.value)
			nums.Add(&nums, &x)
		}
	}
	reduce(out, sum)
	out.Add(out, &nums)
}

// reduce is a sum of raw Montgomery forms modulo r: the fifth limb is folded by a multiplication, the rest is
// below 2^256 < 3r and takes two subtractions.
func reduce(out *fr.Element, sum [5]uint64) {
	low := fr.Element{sum[0], sum[1], sum[2], sum[3]}
	for range 2 {
		var d fr.Element
		var borrow uint64
		d[0], borrow = bits.Sub64(low[0], modulus[0], 0)
		d[1], borrow = bits.Sub64(low[1], modulus[1], borrow)
		d[2], borrow = bits.Sub64(low[2], modulus[2], borrow)
		d[3], borrow = bits.Sub64(low[3], modulus[3], borrow)
		if borrow == 0 {
			low = d
		}
	}
	if sum[4] != 0 {
		high := fr.Element{sum[4]}
		high.Mul(&high, &rSquare)
		low.Add(&low, &high)
	}
	*out = low
}

var modulus = func() (m [4]uint64) {
	for i, w := range fr.Modulus().Bits() {
		m[i] = uint64(w)
	}
	return m
}()

// smallTable holds the Montgomery forms of the values that rows over bits mostly have.
var smallTable = func() (t [64]fr.Element) {
	for i := range t {
		t[i].SetInt64(int64(i - len(t)/2))
	}
	return t
}()

func setSmall(out *fr.Element, v int64) {
	if i := v + int64(len(smallTable)/2); i >= 0 && i < int64(len(smallTable)) {
		*out = smallTable[i]
		return
	}
	out.SetInt64(v)
}

// unsatisfied names a row that does not hold.
func (e *evaluator) unsatisfied(instance, row int) error {
	span := e.t.rows[row]
	var v [3]fr.Element
	e.full(&v[0], e.t.terms[span.a:span.b])
	e.full(&v[1], e.t.terms[span.b:span.c])
	e.full(&v[2], e.t.terms[span.c:span.end])
	v[0].Mul(&v[0], &v[1])
	where := fmt.Sprintf("%s: %s: template %s, its row %d, row %d of the circuit", e.p.name, e.p.paths[instance], e.t.name, row, int(e.inst.firstRow)+row)
	return status.New(status.Unsatisfied, "circuit.Evaluate", where, "a·b = c, a·b being "+scalarHex(v[0]), "c "+scalarHex(v[2]))
}

func scalarHex(x fr.Element) string {
	b := x.Bytes()
	return "0x" + hex.EncodeToString(b[:])
}
