// Package c1 reads the output of Commit phase 1: the JSON document that a sealing node hands over for
// proving. It turns the bytes into a porep.Statement and one vanilla proof a challenge, and refuses
// everything else with the JSON path, what was wanted and what was found.
//
// Three forms are read: the tagged form of the registered PoRep seal proofs, as filecoin-ffi writes it;
// the bare form of the unregistered test sizes, whose missing facts come from a statement file; and
// either of them inside the wrapper of lotus-bench (base64). Keys may stand in any order, unknown keys
// are ignored, a known key that stands twice is refused, and so are bytes after the document. Structs
// written as positional arrays, which serde would read too, are refused: nobody writes them.
//
// Beyond syntax the package checks all that can be checked without hashing: counts and path lengths
// against the shape of the sector size, indexes, canonical field elements, and that values which stand in
// several places agree (roots, nodes, labels of parents, the encoding of the node). What is hashed (Merkle
// paths, columns, labels, comm_r) is checked by the circuit.
//
// The facts on the format come from the serde types of filecoin-proofs-api 19.1.0, filecoin-proofs 19.1.0,
// storage-proofs-core 19.1.0 and storage-proofs-porep 19.1.0. The caller is package engine.
package c1
