package c1

import (
	"fmt"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// partitionConsistent checks that the values which stand in several places of a partition agree, and that the
// challenged nodes and their parents are those that follow from the statement. The reference refuses
// differing comm_c and comm_r_last when it makes the circuit ("inconsistent comm_cs"); the rest it checks
// when it makes the C1, and a prover never looks at again: so without these checks a damaged value would go
// unnoticed where the circuit does not read it, and would come out as a failing row where it does. The paths
// of the faults begin below the array of partitions. s and first, the first challenge of all, are read only.
func (l *layout) partitionConsistent(k int, challenges []porep.Challenge, first *porep.Challenge, s *porep.Statement) *fault {
	nodes, err := s.Challenges(k)
	if err != nil {
		return &fault{want: "a statement with challenges", got: err.Error(), offset: -1}
	}
	graph := s.Graph()
	for i := range challenges {
		c := &challenges[i]
		f := l.challengeConsistent(c, &s.CommD)
		if f == nil && c.CommRLast.Root != first.CommRLast.Root {
			f = differs(&first.CommRLast.Root, &c.CommRLast.Root, "comm_r_last of the first challenge").
				key("root").key(l.replicaTree.tag).key("data").key("comm_r_last_proof")
		}
		if f == nil && c.Column.Inclusion.Root != first.Column.Inclusion.Root {
			f = differs(&first.Column.Inclusion.Root, &c.Column.Inclusion.Root, "comm_c of the first challenge").
				key("root").key(l.replicaTree.tag).key("data").key("inclusion_proof").key("c_x").key("replica_column_proofs")
		}
		if f == nil {
			f = challengeFollows(c, nodes[i], graph, s)
		}
		if f != nil {
			return f.index(i).index(k)
		}
	}
	return nil
}

// challengeFollows checks that a challenge is of the node that the statement draws and of its parents.
func challengeFollows(c *porep.Challenge, node uint32, graph *porep.Graph, s *porep.Statement) *fault {
	if got := c.Labeling[0].Node; got != uint64(node) {
		from := "replica_id and seed"
		switch s.Kind {
		case porep.Synthetic:
			from = "replica_id, comm_r and seed"
		case porep.NonInteractive:
			from = "replica_id and comm_r"
		}
		return unequal(uint64(node), got, "the node that "+from+" challenge").key("node").index(0).key("labeling_proofs")
	}
	for i, parent := range graph.Parents(node) {
		if i < porep.DRGDegree && c.DRG[i].Index != parent {
			return unequal(uint64(parent), uint64(c.DRG[i].Index), "the parent in the graph of porep_id and API version "+s.Version.String()).
				key("index").key("column").index(i).key("drg_parents").key("replica_column_proofs")
		}
		if j := i - porep.DRGDegree; j >= 0 && c.Expander[j].Index != parent {
			return unequal(uint64(parent), uint64(c.Expander[j].Index), "the parent in the graph of porep_id and API version "+s.Version.String()).
				key("index").key("column").index(j).key("exp_parents").key("replica_column_proofs")
		}
	}
	return nil
}

// differs is the fault of two hashes that must be equal.
func differs(want, got *porep.Hash, what string) *fault {
	return &fault{want: hexElement(want) + ", " + what, got: hexElement(got), offset: -1}
}

// unequal is the fault of two numbers that must be equal.
func unequal(want, got uint64, what string) *fault {
	return &fault{want: fmt.Sprintf("%d, %s", want, what), got: fmt.Sprint(got), offset: -1}
}

// challengeConsistent checks one challenge by itself. Its node is that of the first labeling proof, which
// is where the reference takes it from.
func (l *layout) challengeConsistent(c *porep.Challenge, commD *porep.Hash) *fault {
	const challengeNode = "the challenged node (labeling_proofs[0].node)"
	node := c.Labeling[0].Node
	if node == 0 {
		return (&fault{want: "a node that can be challenged, from 1", got: "0", offset: -1}).
			key("node").index(0).key("labeling_proofs")
	}
	for i := range c.Labeling {
		f := l.labelingConsistent(c, &c.Labeling[i], uint32(i+1))
		if f != nil {
			return f.index(i).key("labeling_proofs")
		}
	}
	if f := l.labelingConsistent(c, &c.Encoding, uint32(l.shape.Layers)); f != nil {
		return f.key("encoding_proof")
	}

	if f := l.dataTree.leadsTo(&c.CommD, node, challengeNode); f != nil {
		return f.key("comm_d_proofs")
	}
	if c.CommD.Root != *commD {
		return differs(commD, &c.CommD.Root, "comm_d").key("root").key(l.dataTree.tag).key("data").key("comm_d_proofs")
	}
	if f := l.replicaTree.leadsTo(&c.CommRLast, node, challengeNode); f != nil {
		return f.key("comm_r_last_proof")
	}
	// A node of the replica is the label of the last layer plus the node of the data.
	encoded := addElements(&c.Column.Rows[l.shape.Layers-1], &c.CommD.Leaf)
	if c.CommRLast.Leaf != encoded {
		return differs(&encoded, &c.CommRLast.Leaf, "the last row of c_x plus the leaf of comm_d_proofs").
			key("leaf").key(l.replicaTree.tag).key("data").key("comm_r_last_proof")
	}

	if uint64(c.Column.Index) != node {
		return unequal(node, uint64(c.Column.Index), challengeNode).
			key("index").key("column").key("c_x").key("replica_column_proofs")
	}
	commC := &c.Column.Inclusion.Root
	if f := l.columnConsistent(&c.Column, commC); f != nil {
		return f.key("c_x").key("replica_column_proofs")
	}
	for i := range c.DRG {
		if f := l.columnConsistent(&c.DRG[i], commC); f != nil {
			return f.index(i).key("drg_parents").key("replica_column_proofs")
		}
	}
	for i := range c.Expander {
		if f := l.columnConsistent(&c.Expander[i], commC); f != nil {
			return f.index(i).key("exp_parents").key("replica_column_proofs")
		}
	}
	return nil
}

// columnConsistent checks that a column's path leads to its node and to comm_c.
func (l *layout) columnConsistent(c *porep.ColumnProof, commC *porep.Hash) *fault {
	f := l.replicaTree.leadsTo(&c.Inclusion, uint64(c.Index), "column.index")
	if f == nil && c.Inclusion.Root != *commC {
		f = differs(commC, &c.Inclusion.Root, "comm_c (the root of c_x)").key("root").key(l.replicaTree.tag).key("data")
	}
	return f.key("inclusion_proof")
}

// labelingConsistent checks a label's preimage for a layer against the columns: the labels of the DRG
// parents in the same layer and, from the second layer, of the expander parents in the layer before,
// repeated until there are 37.
func (l *layout) labelingConsistent(c *porep.Challenge, p *porep.LabelingProof, layer uint32) *fault {
	if p.Layer != layer {
		return unequal(uint64(layer), uint64(p.Layer), "the layer").key("layer_index")
	}
	if p.Node != c.Labeling[0].Node {
		return unequal(c.Labeling[0].Node, p.Node, "the node of the first layer").key("node")
	}
	distinct := porep.DRGDegree
	if layer > 1 {
		distinct += porep.ExpanderDegree
	}
	for i := range p.Parents {
		place := i % distinct
		var want *porep.Hash
		var column string
		if place < porep.DRGDegree {
			want = &c.DRG[place].Rows[layer-1]
		} else {
			want = &c.Expander[place-porep.DRGDegree].Rows[layer-2]
		}
		if p.Parents[i] != *want {
			if place < porep.DRGDegree {
				column = fmt.Sprintf("drg_parents[%d].column.rows[%d]", place, layer-1)
			} else {
				column = fmt.Sprintf("exp_parents[%d].column.rows[%d]", place-porep.DRGDegree, layer-2)
			}
			return differs(want, &p.Parents[i], "replica_column_proofs."+column).index(i).key("parents")
		}
	}
	return nil
}

// leadsTo checks that the positions on a path spell node; what names it.
func (t *tree) leadsTo(p *porep.MerkleProof, node uint64, what string) *fault {
	var got uint64
	scale := uint64(1)
	for i, path := range [][]porep.PathElement{p.Base, p.Sub, p.Top} {
		for _, e := range path {
			got += scale * uint64(e.Index)
			scale *= uint64(t.levels[i].arity)
		}
	}
	if got != node {
		return unequal(node, got, what+", from the indexes of the path").key(t.tag).key("data")
	}
	return nil
}
