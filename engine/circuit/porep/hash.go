package porep

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/status"
)

// LabelParents is the number of parents, with repetitions, that a label hashes.
const LabelParents = 37

// trim clears the two top bits, which makes any digest a canonical scalar.
func trim(h Hash) Hash {
	h[31] &= 0x3f
	return h
}

// ReplicaID binds a replica to its miner, sector, ticket, data and proof type.
func ReplicaID(proverID Hash, sectorID uint64, ticket, commD, porepID Hash) Hash {
	var block [4*32 + 8]byte
	copy(block[:], proverID[:])
	binary.BigEndian.PutUint64(block[32:], sectorID)
	copy(block[40:], ticket[:])
	copy(block[72:], commD[:])
	copy(block[104:], porepID[:])
	return trim(sha256.Sum256(block[:]))
}

// DataNode is a node of the data tree, whose root is comm_d.
func DataNode(left, right Hash) Hash {
	var block [64]byte
	copy(block[:], left[:])
	copy(block[32:], right[:])
	return trim(sha256.Sum256(block[:]))
}

// Label is the label of a node in a layer (from 1). parents are labels in the order of Graph.Parents: none
// for node 0, else the 6 of the own layer in layer 1 and all 14 in later layers. They are repeated in turn
// up to LabelParents, so LabelParents of them are taken as they are.
func Label(replicaID Hash, layer uint32, node uint64, parents []Hash) Hash {
	var block [64 + LabelParents*32]byte
	copy(block[:], replicaID[:])
	binary.BigEndian.PutUint32(block[32:], layer)
	binary.BigEndian.PutUint64(block[36:], node)
	if len(parents) == 0 {
		return trim(sha256.Sum256(block[:64]))
	}
	for i := range LabelParents {
		copy(block[64+32*i:], parents[i%len(parents)][:])
	}
	return trim(sha256.Sum256(block[:]))
}

// CommR is the commitment to a replica: Poseidon of the roots of the column tree and the replica tree.
// Fails with Input where one of them is not canonical.
func CommR(commC, commRLast Hash) (Hash, error) {
	var in [2]fr.Element
	var err error
	if in[0], err = scalar("porep.CommR", "comm_c", &commC); err != nil {
		return Hash{}, err
	}
	if in[1], err = scalar("porep.CommR", "comm_r_last", &commRLast); err != nil {
		return Hash{}, err
	}
	var out Hash
	fr.LittleEndian.PutElement(&out, poseidon.Hash(in[:]))
	return out, nil
}

// scalar reads a canonical scalar; what names it in the error.
func scalar(op, what string, h *Hash) (fr.Element, error) {
	e, err := fr.LittleEndian.Element(h)
	if err != nil {
		return e, status.New(status.Input, op, what, "a canonical scalar (below r, little-endian)", hexText(h))
	}
	return e, nil
}
