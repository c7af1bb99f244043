// Package synthetic makes C1 outputs of sectors that nobody sealed, so that the circuits of 32 and 64 GiB
// can be tried on a machine that could never hold such a sector. Only tests and benchmarks want them: a
// sector is made from a small public number.
//
// The output is genuine: ids, labels, columns, trees, encodings and commitments fit together, and parsers,
// witness, public inputs, provers and verifiers take it as any other, without a sign in it. It works because
// interactive challenges depend on replica id and seed alone. So, in this order:
//
//  1. Ids, ticket and seed are fixed. comm_d is that of zero data, a committed-capacity sector's. The replica id
//     follows, and from it and the seed all challenges of all partitions.
//  2. Labels of nodes that are not challenged are free: nobody opens their parents. Labels of challenged nodes
//     are computed from their parents', layer by layer, in the order of nodes, since a parent may be challenged
//     itself.
//  3. comm_c and comm_r_last are roots of sparse trees: only the nodes above opened leaves are hashed. The root
//     of a subtree without an opened leaf is free. comm_r comes last.
//
// Free values are pseudo-random and all different, so that a prover which mixes up siblings is found out:
// with K = SHA-256("sealc2-synthetic-v1|SHAPE|VERSION|N"), as "sealc2-synthetic-v1|32GiB|1.1.0|7", value NAME
// at numbers a, b, ... is SHA-256(K | NAME | "|" | a | b | ...), numbers as 8 bytes little-endian. Those that
// are field elements have the two top bits of the last byte cleared. The names are "sector_id" (its first 5
// bytes, little-endian), "actor" (its first 5 bytes plus 1000), "ticket", "seed", "label" (layer, node),
// "comm_c" and "comm_r_last" (height of the subtree, its position at that height). The prover id is the actor
// number in unsigned LEB128, filled with zeros; the porep_id of a size without a registered proof is that of
// the reference vectors, SHA-256("sealc2-oracle-v1|raw-BYTES-VERSION|porep_id").
//
// Synthetic PoRep (FIP-0059) and non-interactive PoRep (FIP-0090) are refused: their challenges depend on
// comm_r, which depends on the columns that are challenged. The callers are the command line and tests. Facts
// on the parts of a vanilla proof come from stacked/vanilla of storage-proofs-porep 19.1.0.
package synthetic
