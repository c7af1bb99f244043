package c1

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// synthetic makes the C1 output of a sector that does not exist: everything that Parse can check is right,
// the hashes of trees and columns are random.
func synthetic(proof *porep.RegisteredProof, ids IDs) *Output {
	random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(proof.Name))))
	element := func() (h porep.Hash) {
		for i := 0; i < len(h); i += 8 {
			binary.LittleEndian.PutUint64(h[i:], random.Uint64())
		}
		h[31] &= 0x3f
		return h
	}
	out := &Output{}
	s := &out.Statement
	s.Shape, s.Registered, s.Version, s.Kind, s.PorepID = proof.Shape, proof, proof.Version, proof.Kind, proof.PorepID()
	s.CommD, s.CommR, s.Ticket, s.Seed = element(), element(), element(), element()
	s.ReplicaID = s.RecomputeReplicaID(ids.SectorID, ids.ProverID)
	l := newLayout(s.Shape, s.Kind)
	commC, commRLast := element(), element()
	graph := s.Graph()

	path := func(t *tree, node uint64, root porep.Hash) (p porep.MerkleProof) {
		p.Root, p.Leaf = root, element()
		for i, dst := range []*[]porep.PathElement{&p.Base, &p.Sub, &p.Top} {
			if i == len(t.levels) {
				break
			}
			arity := t.levels[i].arity
			for range t.levels[i].depth {
				e := porep.PathElement{Index: int(node % uint64(arity)), Hashes: make([]porep.Hash, arity-1)}
				for j := range e.Hashes {
					e.Hashes[j] = element()
				}
				node /= uint64(arity)
				*dst = append(*dst, e)
			}
		}
		return p
	}
	column := func(node uint32) (c porep.ColumnProof) {
		c.Index = node
		for range s.Shape.Layers {
			c.Rows = append(c.Rows, element())
		}
		c.Inclusion = path(&l.replicaTree, uint64(node), commC)
		return c
	}
	for k := range l.partitions {
		nodes, err := s.Challenges(k)
		if err != nil {
			panic(err)
		}
		var challenges []porep.Challenge
		for _, node := range nodes {
			c := porep.Challenge{
				CommD:     path(&l.dataTree, uint64(node), s.CommD),
				CommRLast: path(&l.replicaTree, uint64(node), commRLast),
				Column:    column(node),
			}
			for i, parent := range graph.Parents(node) {
				if i < porep.DRGDegree {
					c.DRG = append(c.DRG, column(parent))
				} else {
					c.Expander = append(c.Expander, column(parent))
				}
			}
			c.CommRLast.Leaf = addElements(&c.Column.Rows[s.Shape.Layers-1], &c.CommD.Leaf)
			for layer := range s.Shape.Layers {
				var parents []porep.Hash
				for i := range c.DRG {
					parents = append(parents, c.DRG[i].Rows[layer])
				}
				for i := range c.Expander {
					if layer > 0 {
						parents = append(parents, c.Expander[i].Rows[layer-1])
					}
				}
				for i := 0; len(parents) < porep.LabelParents; i++ {
					parents = append(parents, parents[i])
				}
				c.Labeling = append(c.Labeling, porep.LabelingProof{Parents: parents, Layer: uint32(layer + 1), Node: uint64(node)})
			}
			c.Encoding = c.Labeling[s.Shape.Layers-1]
			challenges = append(challenges, c)
		}
		out.Partitions = append(out.Partitions, challenges)
	}
	return out
}
