// Package groth16 is the proof system: the interface of backends, assembly of a proof from five sums, its
// encoding, and verification. It knows no Filecoin.
//
// Sources: Groth16 (eprint 2016/260); bellperson 0.27 for the file and proof encodings.
package groth16

import (
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// VerifyingKey is the head of a .params file and the whole of a .vk file.
type VerifyingKey struct {
	AlphaG1, BetaG1 bls.G1Affine
	BetaG2, GammaG2 bls.G2Affine
	DeltaG1         bls.G1Affine
	DeltaG2         bls.G2Affine
	IC              []bls.G1Affine // one for each input, the constant one included
}

// Proof is one partition's proof. Encoded: A (48) | B (96) | C (48), compressed as blst does.
type Proof struct {
	A bls.G1Affine
	B bls.G2Affine
	C bls.G1Affine
}

// ProofBytes is the size of an encoded proof.
const ProofBytes = 192
