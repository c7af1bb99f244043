package porep

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/aead/chacha20/chacha"
	"golang.org/x/crypto/blake2b"

	"github.com/sealc2/sealc2/engine/status"
)

// Parents of a node: in its own layer (depth-robust graph) and in the layer before (expander).
const (
	DRGDegree      = 6
	ExpanderDegree = 8
	Degree         = DRGDegree + ExpanderDegree
)

// Domain separation of the seeds that follow from a porep_id.
const (
	drgSeedTag     = "Filecoin_DRSample"
	feistelSeedTag = "Filecoin_Feistel"
)

const (
	drgSeedBytes  = 28 // the node number fills the rest of the ChaCha key
	feistelRounds = 3
)

// Graph draws the parents of nodes. It holds no table, so it costs nothing to make; safe for concurrent use.
type Graph struct {
	nodes   uint64
	version APIVersion
	drgSeed [drgSeedBytes]byte

	feistelKeys [feistelRounds]uint64
	half        uint   // bits of one Feistel half
	halfMask    uint64 // 1<<half - 1
}

// NewGraph is the graph of a shape under a porep_id. Source: BucketGraph and StackedGraph of the reference.
func NewGraph(shape *Shape, porepID Hash, version APIVersion) *Graph {
	g := &Graph{nodes: shape.Nodes(), version: version}
	seed := domainSeed(drgSeedTag, porepID)
	copy(g.drgSeed[:], seed[:])
	seed = domainSeed(feistelSeedTag, porepID)
	for i := range g.feistelKeys {
		g.feistelKeys[i] = binary.LittleEndian.Uint64(seed[8*i:])
	}
	// The fewest even bits that number all expander edges, but at least two.
	for g.half = 1; 1<<(2*g.half) < g.edges(); g.half++ {
	}
	g.halfMask = 1<<g.half - 1
	return g
}

// edges is the number of expander edges, the domain of the Feistel permutation.
func (g *Graph) edges() uint64 { return g.nodes * ExpanderDegree }

func domainSeed(tag string, porepID Hash) [32]byte {
	return sha256.Sum256(append([]byte(tag), porepID[:]...))
}

// Parents is DRGParents, then ExpanderParents: the order in which labels are hashed.
func (g *Graph) Parents(node uint32) [Degree]uint32 {
	var out [Degree]uint32
	drg, expander := g.DRGParents(node), g.ExpanderParents(node)
	copy(out[:], drg[:])
	copy(out[DRGDegree:], expander[:])
	return out
}

// DRGParents are the parents of a node in its own layer. Nodes 0 and 1 have node 0 six times. The direct
// predecessor is the last parent in graphs of version 1.0 and the first one in later graphs; the others are
// sampled by distance: first a bucket (a power of two), then a distance in it, both from a ChaCha8 stream
// that is keyed with seed and node. They live in a metagraph with five nodes for each of ours.
func (g *Graph) DRGParents(node uint32) [DRGDegree]uint32 {
	status.Check(uint64(node) < g.nodes, "porep.DRGParents", "a node of the graph")
	var parents [DRGDegree]uint32
	if node < 2 {
		return parents
	}
	const sampled = DRGDegree - 1
	others, predecessor := parents[1:], 0
	if g.version == V1_0 {
		others, predecessor = parents[:sampled], sampled
	}
	parents[predecessor] = node - 1

	var key [32]byte
	copy(key[:], g.drgSeed[:])
	binary.LittleEndian.PutUint32(key[drgSeedBytes:], node)
	var nonce [chacha.NonceSize]byte
	var stream [2 * 8 * sampled]byte
	chacha.XORKeyStream(stream[:], stream[:], nonce[:], key[:], 8)

	meta := uint64(node) * sampled
	buckets := uint64(bits.Len64(meta - 1)) // log2, rounded up
	for i := range others {
		bucket := binary.LittleEndian.Uint64(stream[16*i:])%buckets + 1
		longest := min(meta, 1<<bucket)
		shortest := max(2, longest>>1)
		distance := shortest + binary.LittleEndian.Uint64(stream[16*i+8:])%(longest-shortest+1)
		parent := uint32((meta - distance) / sampled)
		if parent == node {
			parent = node - 1
		}
		others[i] = parent
	}
	return parents
}

// ExpanderParents are the parents of a node in the layer before: its edges are permuted among those of all
// nodes. Graphs of version 1.0 cut the permuted edge to 32 bits before they take its node.
func (g *Graph) ExpanderParents(node uint32) [ExpanderDegree]uint32 {
	status.Check(uint64(node) < g.nodes, "porep.ExpanderParents", "a node of the graph")
	var parents [ExpanderDegree]uint32
	for i := range parents {
		edge := g.permute(uint64(node)*ExpanderDegree + uint64(i))
		if g.version == V1_0 {
			edge = uint64(uint32(edge))
		}
		parents[i] = uint32(edge / ExpanderDegree)
	}
	return parents
}

// permute maps an edge to an edge. The network permutes a power of four of numbers; those outside the domain
// are permuted again.
func (g *Graph) permute(edge uint64) uint64 {
	for {
		edge = g.feistel(edge)
		if edge < g.edges() {
			return edge
		}
	}
}

// feistel is three rounds of an unkeyed BLAKE2b over (right half, round key), both big-endian.
func (g *Graph) feistel(x uint64) uint64 {
	left, right := x>>g.half&g.halfMask, x&g.halfMask
	for _, key := range g.feistelKeys {
		var block [16]byte
		binary.BigEndian.PutUint64(block[:], right)
		binary.BigEndian.PutUint64(block[8:], key)
		digest := blake2b.Sum512(block[:])
		left, right = right, left^binary.BigEndian.Uint64(digest[:])&g.halfMask
	}
	return left<<g.half | right
}
