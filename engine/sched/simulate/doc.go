// Package simulate runs the scheduler on hardware that is only described: cards with so much memory, hosts with so many cores and
// so much memory bandwidth, jobs whose stages take so long. The scheduler's own code runs, with its goroutines and locks; stages
// sleep. In the bubble of a test (testing/synctest) time is virtual, so that an hour of proofs takes some milliseconds, and a run that hangs
// is seen at once.
//
// It knows no prover. What stages take comes from measurements that the tests name, and nothing is fitted: a prediction that misses says
// so. Stages that want the same cores, memory bandwidth or card at once slow each other down in proportion.
//
// Only tests import it.
package simulate
