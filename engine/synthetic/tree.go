package synthetic

import (
	"context"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/status"
)

// tree is a Poseidon tree of which only some leaves, and the nodes above them, are known. The root of every
// other subtree is a free value, drawn when it is asked for.
type tree struct {
	arities []int // of the level above height h, from the leaves to the root
	base    int   // how many of them belong to the base trees
	known   []row // by height; the last one holds the root alone
	free    *source
	name    string // of its free values
}

// row holds the known nodes of a height, by position.
type row struct {
	at    []uint64 // ascending
	value []porep.Hash
}

// buildTree hashes everything above the leaves, which must be distinct, ascending and canonical.
func buildTree(ctx context.Context, shape *porep.Shape, name string, free *source, leaves row, threads int) (*tree, error) {
	t := &tree{base: shape.BaseDepth(), known: []row{leaves}, free: free, name: name}
	for range t.base {
		t.arities = append(t.arities, shape.BaseArity)
	}
	for _, arity := range []int{shape.SubArity, shape.TopArity} {
		if arity > 0 {
			t.arities = append(t.arities, arity)
		}
	}
	for height, arity := range t.arities {
		var up row
		for _, at := range t.known[height].at {
			if parent := at / uint64(arity); len(up.at) == 0 || up.at[len(up.at)-1] != parent {
				up.at = append(up.at, parent)
			}
		}
		up.value = make([]porep.Hash, len(up.at))
		parameters := poseidon.ParametersOf(arity)
		err := parallel(ctx, len(up.at), threads, func(i int) {
			children := make([]porep.Hash, arity)
			for j := range children {
				children[j] = t.node(height, up.at[i]*uint64(arity)+uint64(j))
			}
			up.value[i] = hash(parameters, children)
		})
		if err != nil {
			return nil, err
		}
		t.known = append(t.known, up)
	}
	status.Check(slices.Equal(t.known[len(t.arities)].at, []uint64{0}), op, "a tree that ends in one root")
	return t, nil
}

// node is the value at a height and position.
func (t *tree) node(height int, at uint64) porep.Hash {
	if i, ok := slices.BinarySearch(t.known[height].at, at); ok {
		return t.known[height].value[i]
	}
	return t.free.element(t.name, uint64(height), at)
}

func (t *tree) root() porep.Hash { return t.known[len(t.arities)].value[0] }

// path opens a leaf.
func (t *tree) path(leaf uint32) porep.MerkleProof {
	p := porep.MerkleProof{Root: t.root(), Leaf: t.node(0, uint64(leaf))}
	path := make([]porep.PathElement, len(t.arities))
	at := uint64(leaf)
	for height, arity := range t.arities {
		own := at % uint64(arity)
		e := porep.PathElement{Index: int(own), Hashes: make([]porep.Hash, 0, arity-1)}
		for j := range uint64(arity) {
			if j != own {
				e.Hashes = append(e.Hashes, t.node(height, at-own+j))
			}
		}
		path[height] = e
		at /= uint64(arity)
	}
	p.Base = path[:t.base:t.base]
	if len(path) > t.base {
		p.Sub = path[t.base : t.base+1 : t.base+1]
	}
	if len(path) > t.base+1 {
		p.Top = path[t.base+1:]
	}
	return p
}

// hash is Poseidon of canonical elements, as many as the parameters' arity.
func hash(parameters *poseidon.Parameters, in []porep.Hash) (out porep.Hash) {
	elements := make([]fr.Element, len(in))
	for i := range in {
		var err error
		elements[i], err = fr.LittleEndian.Element(&in[i])
		status.Check(err == nil, op, "canonical field elements")
	}
	fr.LittleEndian.PutElement(&out, parameters.Hash(elements))
	return out
}

// zeroData is the data tree of a sector full of zeros: one value a height.
type zeroData []porep.Hash

func newZeroData(shape *porep.Shape) zeroData {
	z := make(zeroData, 1, shape.DataDepth()+1)
	for range shape.DataDepth() {
		last := z[len(z)-1]
		z = append(z, porep.DataNode(last, last))
	}
	return z
}

func (z zeroData) root() porep.Hash { return z[len(z)-1] }

// path opens a leaf.
func (z zeroData) path(leaf uint32) porep.MerkleProof {
	p := porep.MerkleProof{Root: z.root(), Leaf: z[0], Base: make([]porep.PathElement, len(z)-1)}
	for height := range p.Base {
		p.Base[height] = porep.PathElement{Hashes: []porep.Hash{z[height]}, Index: int(leaf >> height & 1)}
	}
	return p
}
