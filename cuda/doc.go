// Package cuda is the proof backend on NVIDIA GPUs.
//
// A device has one owner, a goroutine bound to a thread, which alone talks to it; stages of partitions send it messages. Every
// wait there has an end. What a partition takes on the device is known before it begins (plan.go, pure functions) and
// mapped as one block; parameters, programs' tables and roots of unity stay resident between partitions, the least
// recently used going first when others need their place. A context that dies takes the partition under way with it; the
// owner makes a new one, once, and then reports the device as lost.
//
// Expand runs on the CPU, thousandths of a proof: the compact witness (a bitmap and the field elements) goes up, and the five
// sums come down. The algorithms are in the packages below: rows, ntt, msm. It knows no Filecoin. The engine calls it.
//
// It refuses parameters whose blocks have other lengths than the program's queries, and what can never fit, with both
// numbers. Sources: Groth16 (eprint 2016/260); bellperson 0.27 for which points a query uses.
package cuda
