package c1

import (
	"fmt"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// level is one part of a Merkle path: depth elements of the same arity.
type level struct {
	key          string // of its path in a proof
	depth, arity int
}

// tree says how a Merkle proof of a certain tree is written.
type tree struct {
	tag    string  // variant of ProofData in storage-proofs-core
	reason string  // why it is this variant
	levels []level // from the leaf upwards
}

// hashes is the number of siblings in a proof.
func (t *tree) hashes() (n int) {
	for _, l := range t.levels {
		n += l.depth * (l.arity - 1)
	}
	return n
}

// elements is the number of path elements in a proof.
func (t *tree) elements() (n int) {
	for _, l := range t.levels {
		n += l.depth
	}
	return n
}

// layout is all that a shape fixes about its vanilla proofs.
type layout struct {
	shape                  *porep.Shape
	nodes                  uint64
	partitions, challenges int
	dataTree               tree // of comm_d
	replicaTree            tree // of comm_r_last and comm_c
}

// newLayout derives the layout of a shape.
func newLayout(shape *porep.Shape, kind porep.ChallengeKind) *layout {
	l := &layout{
		shape:      shape,
		nodes:      shape.Nodes(),
		partitions: shape.PartitionsOf(kind),
		challenges: shape.ChallengesPerPartition,
		dataTree:   tree{tag: "Single", reason: "binary data tree", levels: []level{{"path", shape.DataDepth(), 2}}},
		replicaTree: tree{
			tag:    "Single",
			reason: fmt.Sprintf("tree shape %s of %s", shape.TreeName(), shape.Name),
			levels: []level{{"path", shape.BaseDepth(), shape.BaseArity}},
		},
	}
	if shape.SubArity > 0 {
		l.replicaTree.tag = "Sub"
		l.replicaTree.levels[0].key = "base_proof"
		l.replicaTree.levels = append(l.replicaTree.levels, level{"sub_proof", shape.SubDepth(), shape.SubArity})
	}
	if shape.TopArity > 0 {
		l.replicaTree.tag = "Top"
		l.replicaTree.levels = append(l.replicaTree.levels, level{"top_proof", shape.TopDepth(), shape.TopArity})
	}
	return l
}

// slab holds the variable parts of one partition's challenges in a few blocks, so that half a million
// hashes are not half a million allocations, and a partition can be dropped as a whole.
type slab struct {
	hashes   []porep.Hash
	elements []porep.PathElement
	columns  []porep.ColumnProof
	labels   []porep.LabelingProof
}

// slabHashes is how many hashes a partition's slab holds.
func (l *layout) slabHashes() int {
	columns := 1 + porep.Degree
	return l.challenges * (l.dataTree.hashes() + l.replicaTree.hashes() + columns*(l.replicaTree.hashes()+l.shape.Layers) +
		(l.shape.Layers+1)*porep.LabelParents)
}

// newSlab has exactly the room that a partition needs.
func (l *layout) newSlab() *slab {
	elements := l.dataTree.elements() + (2+porep.Degree)*l.replicaTree.elements()
	return &slab{
		hashes:   make([]porep.Hash, l.slabHashes()),
		elements: make([]porep.PathElement, l.challenges*elements),
		columns:  make([]porep.ColumnProof, l.challenges*(porep.Degree)),
		labels:   make([]porep.LabelingProof, l.challenges*l.shape.Layers),
	}
}

// cut takes n items from the start of a block.
func cut[T any](block *[]T, n int) []T {
	items := (*block)[:n:n]
	*block = (*block)[n:]
	return items
}

// Known keys of the structs. Those of a Merkle proof depend on the tree.
var (
	challengeMembers = &members{[]string{"comm_d_proofs", "comm_r_last_proof", "replica_column_proofs", "labeling_proofs", "encoding_proof"}, 5}
	columnsMembers   = &members{[]string{"c_x", "drg_parents", "exp_parents"}, 3}
	columnMembers    = &members{[]string{"column", "inclusion_proof"}, 2}
	rowsMembers      = &members{[]string{"index", "rows", "_h"}, 2} // serde wants _h: null; nothing depends on it
	labelingMembers  = &members{[]string{"parents", "layer_index", "node"}, 3}
	dataMembers      = &members{[]string{"data"}, 1}
	pathMembers      = &members{[]string{"path"}, 1}
	elementMembers   = &members{[]string{"hashes", "index"}, 2}
	proofMembers     = map[string]*members{
		"Single": {[]string{"root", "leaf", "path"}, 3},
		"Sub":    {[]string{"base_proof", "sub_proof", "root", "leaf"}, 4},
		"Top":    {[]string{"base_proof", "sub_proof", "top_proof", "root", "leaf"}, 5},
	}
)

// decoder reads vanilla proofs of one layout, one partition at a time.
type decoder struct {
	*reader
	*layout
	slab *slab
}

// partition takes the array of a partition's challenges.
func (d *decoder) partition() (challenges []porep.Challenge, f *fault) {
	if d.peek() == '[' {
		d.slab = d.newSlab()
		challenges = make([]porep.Challenge, d.challenges)
	}
	f = d.array(d.challenges, "challenges", func(i int) *fault { return d.challenge(&challenges[i]) })
	return challenges, f
}

func (d *decoder) challenge(c *porep.Challenge) *fault {
	// Cut before reading, so that the order of keys in the document does not matter.
	c.DRG = cut(&d.slab.columns, porep.DRGDegree)
	c.Expander = cut(&d.slab.columns, porep.ExpanderDegree)
	c.Labeling = cut(&d.slab.labels, d.shape.Layers)
	return d.object(challengeMembers, func(place int) *fault {
		switch place {
		case 0:
			return d.merkle(&d.dataTree, &c.CommD)
		case 1:
			return d.merkle(&d.replicaTree, &c.CommRLast)
		case 2:
			return d.object(columnsMembers, func(place int) *fault {
				switch place {
				case 0:
					return d.column(&c.Column)
				case 1:
					return d.array(porep.DRGDegree, "columns", func(i int) *fault { return d.column(&c.DRG[i]) })
				}
				return d.array(porep.ExpanderDegree, "columns", func(i int) *fault { return d.column(&c.Expander[i]) })
			})
		case 3:
			return d.array(d.shape.Layers, "layers", func(i int) *fault { return d.labeling(&c.Labeling[i]) })
		}
		return d.labeling(&c.Encoding)
	})
}

func (d *decoder) column(c *porep.ColumnProof) *fault {
	return d.object(columnMembers, func(place int) *fault {
		if place == 1 {
			return d.merkle(&d.replicaTree, &c.Inclusion)
		}
		return d.object(rowsMembers, func(place int) *fault {
			switch place {
			case 0:
				index, f := d.uint(d.nodes - 1)
				c.Index = uint32(index)
				return f
			case 1:
				c.Rows = cut(&d.slab.hashes, d.shape.Layers)
				return d.array(len(c.Rows), "labels", func(i int) *fault { return d.element(&c.Rows[i]) })
			}
			return d.literal("null")
		})
	})
}

func (d *decoder) labeling(p *porep.LabelingProof) *fault {
	return d.object(labelingMembers, func(place int) *fault {
		switch place {
		case 0:
			p.Parents = cut(&d.slab.hashes, porep.LabelParents)
			return d.array(len(p.Parents), "parents", func(i int) *fault { return d.element(&p.Parents[i]) })
		case 1:
			layer, f := d.uint(uint64(d.shape.Layers))
			p.Layer = uint32(layer)
			return f
		}
		node, f := d.uint(d.nodes - 1)
		p.Node = node
		return f
	})
}

// merkle takes a Merkle proof of tree t.
func (d *decoder) merkle(t *tree, p *porep.MerkleProof) *fault {
	return d.object(dataMembers, func(int) *fault {
		return d.variant(t.tag, t.reason, func() *fault {
			known := proofMembers[t.tag]
			return d.object(known, func(place int) *fault {
				switch known.keys[place] {
				case "root":
					return d.element(&p.Root)
				case "leaf":
					return d.element(&p.Leaf)
				case "sub_proof":
					return d.path(&t.levels[1], &p.Sub)
				case "top_proof":
					return d.path(&t.levels[2], &p.Top)
				}
				return d.path(&t.levels[0], &p.Base)
			})
		})
	})
}

// path takes one level of a Merkle proof, leaf to root.
func (d *decoder) path(l *level, dst *[]porep.PathElement) *fault {
	return d.object(pathMembers, func(int) *fault {
		*dst = cut(&d.slab.elements, l.depth)
		return d.array(l.depth, "path elements", func(i int) *fault {
			e := &(*dst)[i]
			return d.object(elementMembers, func(place int) *fault {
				if place == 1 {
					index, f := d.uint(uint64(l.arity - 1))
					e.Index = int(index)
					return f
				}
				e.Hashes = cut(&d.slab.hashes, l.arity-1)
				return d.array(l.arity-1, "siblings", func(i int) *fault { return d.element(&e.Hashes[i]) })
			})
		})
	})
}
