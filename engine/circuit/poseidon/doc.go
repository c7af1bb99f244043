// Package poseidon is the Poseidon hash over the scalar field of BLS12-381 as Filecoin uses it: the
// parameters, generated exactly as the crate neptune 11.0.0 does for Strength::Standard and
// HashType::MerkleTree, and a native hash.
//
// The circuit gadget takes the parameters from here, expand and the statement take the hash. The package
// refuses arities outside 1 to MaxArity; it reads no files and holds no tables: everything is generated on
// first use. Sources: the Poseidon paper (eprint 2019/458), neptune's round_constants, round_numbers, mds and
// preprocessing modules (for facts), and the reference vectors in tests/vectors.
package poseidon
