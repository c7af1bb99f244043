// Package parameters makes and checks parameter files on a GPU that does nothing else for its caller meanwhile.
//
// A Device is a context with the kernels of cuda/setup and cuda/points, two streams, and a ring of pinned memory through which
// all points go: up from a reader for Check, down to a writer for Setup. It takes device memory for one job and
// gives it back; host memory is the ring, whatever the size of the file. It refuses what the card's memory does not hold, with both
// numbers, and gives a device that hangs up without another call. Who calls it: engine, for the commands that make and
// check parameters; proofs go through package cuda. Facts: the packages named.
package parameters
