package porep

import (
	"fmt"
	"sync"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/gadget"
)

// Program returns the StackedDRG circuit of one partition of a shape: recorded on first use, then shared. The
// circuit depends on the shape alone, not on porep_id, API version or the kind of challenges. Source:
// storage-proofs-porep 19.1, stacked/circuit/{proof,params,create_label,column}.rs.
func Program(s *Shape) *circuit.Program {
	entry, _ := programs.LoadOrStore(s, &recorded{})
	return entry.(*recorded).get(s)
}

// Forget lets go of a program that Program returned: who asks next has it recorded anew, and it is gone when its last user is.
func Forget(p *circuit.Program) {
	programs.Range(func(shape, entry any) bool {
		if r := entry.(*recorded); r.is(p) {
			programs.CompareAndDelete(shape, entry)
		}
		return true
	})
}

// programs caches by *Shape; shapes are few and live for ever.
var programs sync.Map // of *recorded

// recorded is a program from its first use on. A recording that panics is not kept (sync.Once would keep it).
type recorded struct {
	making  sync.Mutex
	program *circuit.Program
}

func (r *recorded) get(s *Shape) *circuit.Program {
	r.making.Lock()
	defer r.making.Unlock()
	if r.program == nil {
		r.program = record(s)
	}
	return r.program
}

// is says whether it is this program that was recorded; one that is being recorded is another.
func (r *recorded) is(p *circuit.Program) bool {
	if !r.making.TryLock() {
		return false
	}
	defer r.making.Unlock()
	return r.program == p
}

// A circuit takes its private values from circuit.Inputs in the order of recording; fill in inputs.go walks a
// vanilla proof in the same order. Whoever changes one changes both.
func record(s *Shape) *circuit.Program {
	r := circuit.NewRecorder(s.OracleName)
	c := &synth{Recorder: r, shape: s}
	var replicaID circuit.Num
	r.In("replica_id", func() { replicaID = gadget.AllocNums(r, 1)[0] })
	r.In("replica_id_input", func() { gadget.Inputize(r, replicaID) })
	r.In("replica_id_bits", func() { c.replicaID = gadget.ByteOrder(gadget.ToBits(r, replicaID)) })
	r.In("comm_d", func() { c.commD = gadget.AllocNums(r, 1)[0] })
	r.In("comm_d_input", func() { gadget.Inputize(r, c.commD) })
	var commR circuit.Num
	r.In("comm_r", func() { commR = gadget.AllocNums(r, 1)[0] })
	r.In("comm_r_input", func() { gadget.Inputize(r, commR) })
	r.In("comm_r_last", func() { c.commRLast = gadget.AllocNums(r, 1)[0] })
	r.In("comm_c", func() { c.commC = gadget.AllocNums(r, 1)[0] })
	r.In("H_comm_c_comm_r_last", func() {
		hash := gadget.Poseidon(r, []circuit.Num{c.commC, c.commRLast})
		gadget.Equal(r, commR, hash)
	})
	for i := range s.ChallengesPerPartition {
		r.In(fmt.Sprintf("challenge_%d", i), c.challenge)
	}
	return r.Finish()
}

// synth is what all challenges of a partition share.
type synth struct {
	*circuit.Recorder
	shape     *Shape
	replicaID []circuit.Bit // in the order of a message's bits
	commD     circuit.Num
	commRLast circuit.Num
	commC     circuit.Num
}

func (c *synth) challenge() {
	r := c.Recorder
	var dataLeaf circuit.Num
	r.In("data_leaf", func() { dataLeaf = gadget.AllocNums(r, 1)[0] })
	r.In("comm_d_inclusion", func() { c.dataInclusion(dataLeaf) })

	drg := c.columns("drg_parent", DRGDegree)
	expander := c.columns("exp_parent", ExpanderDegree)

	var node []circuit.Bit
	r.In("challenge", func() {
		node = gadget.AllocBits(r, 64)
		gadget.PackInput(r, node)
	})

	labels := make([]circuit.Num, c.shape.Layers)
	for layer := 1; layer <= c.shape.Layers; layer++ {
		r.In(fmt.Sprintf("labeling_%d", layer), func() {
			var parents [][]circuit.Bit
			for i, column := range drg {
				r.In(fmt.Sprintf("drg_parent_%d_bits", i), func() {
					parents = append(parents, gadget.ByteOrder(gadget.ToBits(r, column[layer-1])))
				})
			}
			// Expander parents are labels of the layer before; the first layer has none.
			if layer > 1 {
				for i, column := range expander {
					r.In(fmt.Sprintf("exp_parent_%d_bits", len(drg)+i), func() {
						parents = append(parents, gadget.ByteOrder(gadget.ToBits(r, column[layer-2])))
					})
				}
			}
			r.In("create_label", func() { labels[layer-1] = c.label(uint32(layer), node, parents) })
		})
	}

	var encoded circuit.Num
	r.In("encode_node", func() { encoded = gadget.Add(r, labels[len(labels)-1], dataLeaf) })
	r.In("comm_r_last_data_inclusion", func() { c.treeInclusion(encoded, c.commRLast) })
	var hash circuit.Num
	r.In("c_x_column_hash", func() { hash = gadget.Poseidon(r, labels) })
	r.In("c_x_inclusion", func() { c.treeInclusion(hash, c.commC) })
}

// columns opens the columns of n parents in comm_c and returns their labels.
func (c *synth) columns(name string, n int) [][]circuit.Num {
	r := c.Recorder
	out := make([][]circuit.Num, n)
	for i := range out {
		r.In(fmt.Sprintf("%s_%d_num", name, i), func() { out[i] = gadget.AllocNums(r, c.shape.Layers) })
		var hash circuit.Num
		r.In(fmt.Sprintf("%s_%d_constraint", name, i), func() { hash = gadget.Poseidon(r, out[i]) })
		r.In(fmt.Sprintf("%s_%d_inclusion", name, i), func() { c.treeInclusion(hash, c.commC) })
	}
	return out
}

// label hashes replica id, layer, node and the parents, repeated to LabelParents (create_label.rs).
func (c *synth) label(layer uint32, node []circuit.Bit, parents [][]circuit.Bit) circuit.Num {
	r := c.Recorder
	message := append([]circuit.Bit(nil), c.replicaID...)
	for i := 31; i >= 0; i-- {
		message = append(message, circuit.Constant(layer>>i&1 == 1))
	}
	for i := len(node) - 1; i >= 0; i-- {
		message = append(message, node[i])
	}
	for len(message) < 512 {
		message = append(message, circuit.Constant(false))
	}
	for i := range LabelParents {
		message = append(message, parents[i%len(parents)]...)
	}
	var label circuit.Num
	var digest []circuit.Bit
	r.In("hash", func() { digest = gadget.Sha256(r, message) })
	r.In("result_num", func() { label = gadget.Pack(r, gadget.ByteOrder(digest)[:gadget.CapacityBits]) })
	return label
}

// dataInclusion proves a leaf of the binary SHA-256 tree of the data.
func (c *synth) dataInclusion(leaf circuit.Num) {
	r := c.Recorder
	node := leaf
	var path []circuit.Bit
	for i := range c.shape.DataDepth() {
		r.In(fmt.Sprintf("base/merkle tree hash %d", i), func() {
			index, nodes := gadget.PathLevel(r, 2, node)
			path = append(path, index...)
			var message []circuit.Bit
			for _, n := range nodes {
				message = append(message, gadget.ByteOrder(gadget.ToBits(r, n))...)
			}
			digest := gadget.Sha256(r, message)
			node = gadget.Pack(r, gadget.ByteOrder(digest)[:gadget.CapacityBits])
		})
	}
	c.close(path, node, c.commD)
}

// treeInclusion proves a leaf of a Poseidon tree of the shape: base, then sub and top where there are.
func (c *synth) treeInclusion(leaf, root circuit.Num) {
	r := c.Recorder
	node := leaf
	var path []circuit.Bit
	for _, part := range []struct {
		name         string
		arity, depth int
	}{
		{"base", c.shape.BaseArity, c.shape.BaseDepth()},
		{"sub", c.shape.SubArity, c.shape.SubDepth()},
		{"top", c.shape.TopArity, c.shape.TopDepth()},
	} {
		for i := range part.depth {
			r.In(fmt.Sprintf("%s/merkle tree hash %d", part.name, i), func() {
				index, nodes := gadget.PathLevel(r, part.arity, node)
				path = append(path, index...)
				node = gadget.Poseidon(r, nodes)
			})
		}
	}
	c.close(path, node, root)
}

// close makes the position of the leaf a public input and compares the roots (PoRCircuit).
func (c *synth) close(path []circuit.Bit, computed, root circuit.Num) {
	c.In("path", func() { gadget.PackInput(c.Recorder, path) })
	gadget.Equal(c.Recorder, computed, root)
}
