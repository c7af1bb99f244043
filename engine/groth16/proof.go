package groth16

import (
	"fmt"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/engine/status"
)

// Proof is one partition's proof. Encoded: A (48) | B (96) | C (48), compressed as blst does.
type Proof struct {
	A bls.G1Affine
	B bls.G2Affine
	C bls.G1Affine
}

// ProofBytes is the size of an encoded proof.
const ProofBytes = 192

const (
	proofB = bls.SizeOfG1AffineCompressed
	proofC = proofB + bls.SizeOfG2AffineCompressed
)

// Bytes returns the proof's encoding.
func (p *Proof) Bytes() (out [ProofBytes]byte) {
	a, b, c := p.A.Bytes(), p.B.Bytes(), p.C.Bytes()
	copy(out[:proofB], a[:])
	copy(out[proofB:proofC], b[:])
	copy(out[proofC:], c[:])
	return out
}

// DecodeProofs decodes the proofs of all partitions, put one after the other. The number of proofs must be
// partitions. Each point must be compressed, canonical, on the curve, of order r and not infinity. Errors: Input, naming the partition and A, B or C.
func DecodeProofs(data []byte, partitions int) ([]Proof, error) {
	if partitions < 0 || len(data)%ProofBytes != 0 || len(data)/ProofBytes != partitions {
		return nil, status.New(status.Input, "groth16.DecodeProofs", "",
			fmt.Sprintf("%d bytes, %d a partition", partitions*ProofBytes, ProofBytes), fmt.Sprintf("%d bytes", len(data)))
	}
	proofs := make([]Proof, partitions)
	for i := range proofs {
		p, err := decodeProof(data[i*ProofBytes:(i+1)*ProofBytes], fmt.Sprintf("partition %d: ", i))
		if err != nil {
			return nil, err
		}
		proofs[i] = *p
	}
	return proofs, nil
}

func decodeProof(data []byte, where string) (*Proof, error) {
	const op = "groth16.DecodeProof"
	if len(data) != ProofBytes {
		return nil, status.New(status.Input, op, where+"proof", fmt.Sprintf("%d bytes", ProofBytes), fmt.Sprint(len(data)))
	}
	p := new(Proof)
	if err := decodePoint(status.Input, op, where+"A", data[:proofB], &p.A); err != nil {
		return nil, err
	}
	if err := decodePoint(status.Input, op, where+"B", data[proofB:proofC], &p.B); err != nil {
		return nil, err
	}
	if err := decodePoint(status.Input, op, where+"C", data[proofC:], &p.C); err != nil {
		return nil, err
	}
	return p, nil
}
