// Package porep is the StackedDRG proof of replication: its shapes and registered proofs, the graph, the
// challenges, the statement and the public inputs that follow from it, and the circuit.
//
// Public inputs are derived from the statement alone; vanilla proofs are only ever what the circuit is fed
// with. The package refuses statements whose commitments are not canonical scalars. Sources: FIP-0059
// (synthetic), FIP-0090 (non-interactive), the crates storage-proofs-porep and storage-proofs-core 19.1.0 and
// filecoin-proofs 19.1.0 (for facts), and the reference vectors in tests/vectors.
package porep
