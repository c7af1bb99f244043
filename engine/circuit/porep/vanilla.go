package porep

// Hash is 32 bytes as they stand in a C1 output: little-endian, canonical.
type Hash = [32]byte

// PathElement is one level of a Merkle path: the siblings in order without our own node, whose position
// among the arity is Index.
type PathElement struct {
	Hashes []Hash
	Index  int
}

// MerkleProof is an inclusion path from Leaf to Root. Sub and Top are nil where the tree has no such level
// ("Single" has Base only, "Sub" Base and Sub, "Top" all three).
type MerkleProof struct {
	Root, Leaf     Hash
	Base, Sub, Top []PathElement
}

// ColumnProof holds the labels of one node in every layer, with the inclusion of their hash in comm_c.
type ColumnProof struct {
	Index     uint32
	Rows      []Hash // one a layer
	Inclusion MerkleProof
}

// LabelingProof is the preimage of one label. The circuit takes the labels from the columns; the parents
// are kept because a C1 must be complete.
type LabelingProof struct {
	Parents []Hash // 37, in hashing order
	Layer   uint32 // from 1
	Node    uint64
}

// Challenge is the vanilla proof of one challenged node.
type Challenge struct {
	CommD     MerkleProof // binary SHA-256 tree of the data
	CommRLast MerkleProof // Poseidon tree of the replica
	Column    ColumnProof // c_x
	DRG       []ColumnProof
	Expander  []ColumnProof
	Labeling  []LabelingProof // one a layer
	Encoding  LabelingProof
}
