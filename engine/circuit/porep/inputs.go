package porep

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/status"
)

// CircuitInputs lays out one partition's vanilla proofs as the program of the statement's shape takes them. It
// fails with Input where the proofs do not have the shape (numbers of challenges, parents, layers, levels,
// siblings), where a hash is not a canonical field element, and where challenges disagree on comm_c or
// comm_r_last. Whether they prove anything is the circuit's to say.
func CircuitInputs(st *Statement, challenges []Challenge) (*circuit.Inputs, error) {
	s := st.Shape
	p := Program(s)
	f := &filler{shape: s, out: circuit.Inputs{
		Fields: make([]fr.Element, 0, p.FieldCount()),
		Words:  make([]uint64, 0, p.WordCount()),
	}}
	f.count("challenges", len(challenges), s.ChallengesPerPartition)
	if f.err != nil {
		return nil, f.err
	}
	commRLast, commC := challenges[0].CommRLast.Root, challenges[0].Column.Inclusion.Root
	f.field(&st.ReplicaID, func() string { return "replica_id" })
	f.field(&st.CommD, func() string { return "comm_d" })
	f.field(&st.CommR, func() string { return "comm_r" })
	f.field(&commRLast, func() string { return "comm_r_last" })
	f.field(&commC, func() string { return "comm_c" })
	for i := range challenges {
		f.where = fmt.Sprintf("challenge %d", i)
		f.challenge(&challenges[i], commRLast, commC)
	}
	f.compareLeaves()
	if f.err != nil {
		return nil, f.err
	}
	status.Check(len(f.out.Fields) == p.FieldCount() && len(f.out.Words) == p.WordCount(), "porep.CircuitInputs", "the walk of the proofs to match the recording")
	return &f.out, nil
}

// filler collects values; the first failure stays in err and stops the rest. Columns wait in leaves, since eight are hashed in
// the time of one or two; a failure that comes later looks at them first.
type filler struct {
	shape  *Shape
	out    circuit.Inputs
	where  string
	err    error
	leaves []columnLeaf
}

// columnLeaf is a column to be hashed.
type columnLeaf struct {
	where string // its place in the proofs
	rows  []fr.Element
	leaf  *Hash
}

func (f *filler) fail(what, want, got string) {
	if f.compareLeaves(); f.err == nil {
		f.err = status.New(status.Input, "porep.CircuitInputs", f.place(what), want, got)
	}
}

// place is where something lies in the proofs.
func (f *filler) place(what string) string {
	if f.where == "" {
		return what
	}
	return f.where + ": " + what
}

func (f *filler) count(what string, got, want int) bool {
	if got != want {
		f.fail(what, fmt.Sprintf("%d", want), fmt.Sprintf("%d", got))
	}
	return got == want && f.err == nil
}

// field takes a value; what names it, which only failures need.
func (f *filler) field(h *Hash, what func() string) {
	x, err := fr.LittleEndian.Element(h)
	if err != nil {
		f.fail(what(), "a canonical scalar (below r, little-endian)", hexText(h))
	}
	f.out.Fields = append(f.out.Fields, x)
}

func (f *filler) challenge(c *Challenge, commRLast, commC Hash) {
	s := f.shape
	if !f.count("labeling proofs", len(c.Labeling), s.Layers) || !f.count("drg_parents", len(c.DRG), DRGDegree) || !f.count("exp_parents", len(c.Expander), ExpanderDegree) {
		return
	}
	if c.CommRLast.Root != commRLast {
		f.fail("comm_r_last", fmt.Sprintf("that of challenge 0, %x", commRLast), fmt.Sprintf("%x", c.CommRLast.Root))
	}
	if c.Column.Inclusion.Root != commC {
		f.fail("comm_c", fmt.Sprintf("that of challenge 0, %x", commC), fmt.Sprintf("%x", c.Column.Inclusion.Root))
	}
	f.field(&c.CommD.Leaf, func() string { return "comm_d_proofs: leaf" })
	f.path("comm_d_proofs: base", c.CommD.Base, 2, s.DataDepth())
	for i := range c.DRG {
		f.column(fmt.Sprintf("drg_parents[%d]", i), &c.DRG[i])
	}
	for i := range c.Expander {
		f.column(fmt.Sprintf("exp_parents[%d]", i), &c.Expander[i])
	}
	f.out.Words = append(f.out.Words, c.Labeling[0].Node)
	f.opening(&c.Column)
	f.tree("comm_r_last_proof", &c.CommRLast)
	f.tree("c_x", &c.Column.Inclusion)
}

// opening checks the challenged column, of which the circuit takes the path alone: it computes the labels.
func (f *filler) opening(c *ColumnProof) {
	if !f.count("c_x: rows", len(c.Rows), f.shape.Layers) {
		return
	}
	rows := make([]fr.Element, len(c.Rows))
	for i := range rows {
		var err error
		if rows[i], err = fr.LittleEndian.Element(&c.Rows[i]); err != nil {
			f.fail(fmt.Sprintf("c_x: rows[%d]", i), "a canonical scalar (below r, little-endian)", hexText(&c.Rows[i]))
			return
		}
	}
	f.leaf("c_x", c, rows)
}

func (f *filler) column(what string, c *ColumnProof) {
	if !f.count(what+": rows", len(c.Rows), f.shape.Layers) {
		return
	}
	first := len(f.out.Fields)
	for i := range c.Rows {
		f.field(&c.Rows[i], func() string { return fmt.Sprintf("%s: rows[%d]", what, i) })
	}
	f.leaf(what, c, f.out.Fields[first:])
	f.tree(what+": inclusion_proof", &c.Inclusion)
}

// leaf has the leaf that a column's path starts from compared with the column's hash: the circuit computes the hash
// and never reads the leaf, so a damaged one would go unnoticed. rows must not change until then.
func (f *filler) leaf(what string, c *ColumnProof, rows []fr.Element) {
	if f.err != nil {
		return
	}
	f.leaves = append(f.leaves, columnLeaf{f.place(what + ": inclusion_proof: leaf"), rows, &c.Inclusion.Leaf})
	if len(f.leaves) == leavesAtOnce {
		f.compareLeaves()
	}
}

// leavesAtOnce is how many columns are hashed together.
const leavesAtOnce = 8

// compareLeaves compares the leaves that wait.
func (f *filler) compareLeaves() {
	leaves := f.leaves
	f.leaves = f.leaves[:0]
	var in [leavesAtOnce][]fr.Element
	var out [leavesAtOnce]fr.Element
	for i := range leaves {
		in[i] = leaves[i].rows
	}
	poseidon.HashAll(out[:len(leaves)], in[:len(leaves)])
	for i := range leaves {
		var hash Hash
		fr.LittleEndian.PutElement(&hash, out[i])
		if f.err == nil && hash != *leaves[i].leaf {
			f.err = status.New(status.Input, "porep.CircuitInputs", leaves[i].where, "the hash of the column, "+hexText(&hash), hexText(leaves[i].leaf))
		}
	}
}

func (f *filler) tree(what string, m *MerkleProof) {
	f.path(what+": base", m.Base, f.shape.BaseArity, f.shape.BaseDepth())
	f.path(what+": sub", m.Sub, f.shape.SubArity, f.shape.SubDepth())
	f.path(what+": top", m.Top, f.shape.TopArity, f.shape.TopDepth())
}

func (f *filler) path(what string, path []PathElement, arity, depth int) {
	if !f.count(what+": levels", len(path), depth) {
		return
	}
	for i := range path {
		e := &path[i]
		if len(e.Hashes) != arity-1 {
			f.count(fmt.Sprintf("%s: path[%d]: hashes", what, i), len(e.Hashes), arity-1)
			return
		}
		if e.Index < 0 || e.Index >= arity {
			f.fail(fmt.Sprintf("%s: path[%d]: index", what, i), fmt.Sprintf("0 to %d", arity-1), fmt.Sprintf("%d", e.Index))
		}
		f.out.Words = append(f.out.Words, uint64(e.Index))
		for j := range e.Hashes {
			f.field(&e.Hashes[j], func() string { return fmt.Sprintf("%s: path[%d]: hashes[%d]", what, i, j) })
		}
	}
}
