package circuit

import (
	"cmp"
	"slices"
	"sort"
)

// Rows calls visit for constraints [from, to) in order, with the terms of A, B and C: merged, none zero, sorted
// by key. The slices are reused. The appended input rows are not among them.
func (p *Program) Rows(from, to int, visit func(row int, a, b, c []Term)) {
	var keys [3][]Term
	p.eachRow(from, to, func(row int, inst *instance, t *Template, span *rowSpan, order *keyOrder) {
		for m, terms := range [3][]term{t.terms[span.a:span.b], t.terms[span.b:span.c], t.terms[span.c:span.end]} {
			out := keys[m][:0]
			for _, x := range order.sort(p, inst, t, terms) {
				out = append(out, Term{Key: x.key, Coeff: t.coeff[x.coeff].value})
			}
			keys[m] = out
		}
		visit(row, keys[0], keys[1], keys[2])
	})
}

// eachRow finds the instances that own rows [from, to).
func (p *Program) eachRow(from, to int, visit func(row int, inst *instance, t *Template, span *rowSpan, order *keyOrder)) {
	var order keyOrder
	for i, row := p.instanceOfRow(from), from; row < to; i++ {
		inst := &p.instances[i]
		t := p.templates[inst.template]
		for local := row - int(inst.firstRow); local < len(t.rows) && row < to; local++ {
			visit(row, inst, t, &t.rows[local], &order)
			row++
		}
	}
}

// instanceOfRow is the instance that enforces a constraint: the last one that starts at or before it.
func (p *Program) instanceOfRow(row int) int {
	return sort.Search(len(p.instances), func(i int) bool { return int(p.instances[i].firstRow) > row }) - 1
}

// keyed is a term by the variable of the circuit.
type keyed struct {
	key   Key
	coeff uint32
}

// keyOrder sorts the terms of a row by key.
type keyOrder struct{ scratch []keyed }

func (o *keyOrder) sort(p *Program, inst *instance, t *Template, terms []term) []keyed {
	out := o.scratch[:0]
	sorted := true
	for _, x := range terms {
		k := keyed{key: p.key(inst, t, x.wire), coeff: x.coeff}
		sorted = sorted && (len(out) == 0 || out[len(out)-1].key < k.key)
		out = append(out, k)
	}
	if !sorted {
		slices.SortFunc(out, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	}
	o.scratch = out
	return out
}

// key is the variable of the circuit that a template's wire stands for.
func (p *Program) key(inst *instance, t *Template, wire uint32) Key {
	index := int(wire & indexMask)
	switch wire >> classShift {
	case classOne:
		return 0
	case classOwnBit:
		return AuxKey(int(inst.firstAux) + index)
	case classOwnNum:
		return AuxKey(int(inst.firstAux + t.numAux[index]))
	case classOwnInput:
		return InputKey(int(inst.firstInput) + index)
	}
	return p.bindings[int(inst.binding)+index]
}
