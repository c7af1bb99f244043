package c1

import (
	"strconv"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// AppendJSON appends the C1 output as serde_json writes it: compact, keys in the order of the Rust types.
// A document in that form comes out of Parse and AppendJSON with the same bytes. The wrapper is not written.
// The output must be complete: Parse made it, or all that a shape asks for is set.
func (o *Output) AppendJSON(dst []byte) []byte {
	s := &o.Statement
	w := &writer{out: dst, layout: newLayout(s.Shape, s.Kind)}
	w.raw("{")
	if !o.Bare {
		w.raw(`"registered_proof":"`)
		w.raw(s.Registered.Name)
		w.raw(`","vanilla_proofs":{"`)
		w.raw(s.Registered.Tag)
		w.raw(`":`)
	} else {
		w.raw(`"vanilla_proofs":`)
	}
	list(w, o.Partitions, func(challenges *[]porep.Challenge) { list(w, *challenges, w.challenge) })
	if !o.Bare {
		w.raw("}")
	}
	for _, part := range []struct {
		key   string
		value *porep.Hash
	}{
		{"comm_r", &s.CommR}, {"comm_d", &s.CommD}, {"replica_id", &s.ReplicaID}, {"seed", &s.Seed}, {"ticket", &s.Ticket},
	} {
		w.raw(`,"`)
		w.raw(part.key)
		w.raw(`":`)
		w.hash(part.value)
	}
	w.raw("}")
	return w.out
}

// writer appends JSON of one layout.
type writer struct {
	out    []byte
	layout *layout
}

func (w *writer) raw(s string)    { w.out = append(w.out, s...) }
func (w *writer) number(n uint64) { w.out = strconv.AppendUint(w.out, n, 10) }

func (w *writer) hash(h *porep.Hash) {
	for i, b := range h {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		w.out = append(w.out, separator)
		w.out = strconv.AppendUint(w.out, uint64(b), 10)
	}
	w.raw("]")
}

// list writes an array.
func list[T any](w *writer, items []T, one func(*T)) {
	w.raw("[")
	for i := range items {
		if i > 0 {
			w.raw(",")
		}
		one(&items[i])
	}
	w.raw("]")
}

func (w *writer) challenge(c *porep.Challenge) {
	w.raw(`{"comm_d_proofs":`)
	w.merkle(&w.layout.dataTree, &c.CommD)
	w.raw(`,"comm_r_last_proof":`)
	w.merkle(&w.layout.replicaTree, &c.CommRLast)
	w.raw(`,"replica_column_proofs":{"c_x":`)
	w.column(&c.Column)
	w.raw(`,"drg_parents":`)
	list(w, c.DRG, w.column)
	w.raw(`,"exp_parents":`)
	list(w, c.Expander, w.column)
	w.raw(`},"labeling_proofs":`)
	list(w, c.Labeling, w.labeling)
	w.raw(`,"encoding_proof":`)
	w.labeling(&c.Encoding)
	w.raw("}")
}

func (w *writer) column(c *porep.ColumnProof) {
	w.raw(`{"column":{"index":`)
	w.number(uint64(c.Index))
	w.raw(`,"rows":`)
	list(w, c.Rows, w.hash)
	w.raw(`,"_h":null},"inclusion_proof":`)
	w.merkle(&w.layout.replicaTree, &c.Inclusion)
	w.raw("}")
}

func (w *writer) labeling(p *porep.LabelingProof) {
	w.raw(`{"parents":`)
	list(w, p.Parents, w.hash)
	w.raw(`,"layer_index":`)
	w.number(uint64(p.Layer))
	w.raw(`,"node":`)
	w.number(p.Node)
	w.raw("}")
}

// merkle writes a Merkle proof. Single has its path last, the others have theirs first.
func (w *writer) merkle(t *tree, p *porep.MerkleProof) {
	w.raw(`{"data":{"`)
	w.raw(t.tag)
	w.raw(`":{`)
	for i, key := range proofMembers[t.tag].keys {
		if i > 0 {
			w.raw(",")
		}
		w.raw(`"`)
		w.raw(key)
		w.raw(`":`)
		switch key {
		case "root":
			w.hash(&p.Root)
		case "leaf":
			w.hash(&p.Leaf)
		case "sub_proof":
			w.path(p.Sub)
		case "top_proof":
			w.path(p.Top)
		default:
			w.path(p.Base)
		}
	}
	w.raw("}}}")
}

func (w *writer) path(path []porep.PathElement) {
	w.raw(`{"path":`)
	list(w, path, func(e *porep.PathElement) {
		w.raw(`{"hashes":`)
		list(w, e.Hashes, w.hash)
		w.raw(`,"index":`)
		w.number(uint64(e.Index))
		w.raw("}")
	})
	w.raw("}")
}
