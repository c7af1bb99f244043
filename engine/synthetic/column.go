package synthetic

import (
	"context"
	"maps"
	"slices"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/status"
)

// columns holds the labels of all opened nodes: the challenged ones and their parents.
type columns struct {
	layers     int
	nodes      []uint32 // ascending
	challenged []uint32 // ascending, distinct
	parents    map[uint32][porep.Degree]uint32
	labels     []porep.Hash // layers of each of nodes
}

// newColumns finds the opened nodes of a sector and labels them. Challenges may repeat.
func newColumns(st *porep.Statement, challenges [][]uint32, free *source) *columns {
	c := &columns{layers: st.Shape.Layers, parents: map[uint32][porep.Degree]uint32{}}
	opened := map[uint32]bool{}
	graph := st.Graph()
	for _, node := range slices.Concat(challenges...) {
		if _, seen := c.parents[node]; seen {
			continue
		}
		parents := graph.Parents(node)
		c.parents[node] = parents
		opened[node] = true
		for _, p := range parents {
			opened[p] = true
		}
	}
	c.nodes = slices.Sorted(maps.Keys(opened))
	c.challenged = slices.Sorted(maps.Keys(c.parents))
	c.labels = make([]porep.Hash, len(c.nodes)*c.layers)
	for _, node := range c.nodes {
		if _, computed := c.parents[node]; computed {
			continue
		}
		rows := c.rows(node)
		for i := range rows {
			rows[i] = free.element("label", uint64(i+1), uint64(node))
		}
	}
	// Parents in the own layer have smaller numbers, the others are of the layer before: so all are there.
	for layer := 1; layer <= c.layers; layer++ {
		for _, node := range c.challenged {
			c.rows(node)[layer-1] = porep.Label(st.ReplicaID, uint32(layer), uint64(node), c.preimage(node, layer))
		}
	}
	return c
}

// rows is the column of a node, first layer first.
func (c *columns) rows(node uint32) []porep.Hash {
	i, ok := slices.BinarySearch(c.nodes, node)
	status.Check(ok, op, "a node whose column is opened")
	return c.labels[i*c.layers : (i+1)*c.layers : (i+1)*c.layers]
}

// preimage is the labels that a challenged node's label of a layer hashes, without repetition: those of the
// DRG parents, and after the first layer those of the expander parents in the layer before.
func (c *columns) preimage(node uint32, layer int) []porep.Hash {
	parents := c.parents[node]
	labels := make([]porep.Hash, 0, porep.Degree)
	for i, p := range parents {
		switch {
		case i < porep.DRGDegree:
			labels = append(labels, c.rows(p)[layer-1])
		case layer > 1:
			labels = append(labels, c.rows(p)[layer-2])
		}
	}
	return labels
}

// labeling is the proof of a challenged node's label.
func (c *columns) labeling(node uint32, layer int) porep.LabelingProof {
	labels := c.preimage(node, layer)
	for i := 0; len(labels) < porep.LabelParents; i++ {
		labels = append(labels, labels[i])
	}
	return porep.LabelingProof{Parents: labels, Layer: uint32(layer), Node: uint64(node)}
}

// leaves are the leaves of the column tree.
func (c *columns) leaves(ctx context.Context, threads int) (row, error) {
	leaves := row{make([]uint64, len(c.nodes)), make([]porep.Hash, len(c.nodes))}
	parameters := poseidon.ParametersOf(c.layers)
	err := parallel(ctx, len(c.nodes), threads, func(i int) {
		leaves.at[i] = uint64(c.nodes[i])
		leaves.value[i] = hash(parameters, c.rows(c.nodes[i]))
	})
	return leaves, err
}

// replica are the leaves of the replica tree. A node of the replica is its last label plus its data, which
// is zero.
func (c *columns) replica() (leaves row) {
	for _, node := range c.challenged {
		leaves.at = append(leaves.at, uint64(node))
		leaves.value = append(leaves.value, c.rows(node)[c.layers-1])
	}
	return leaves
}
