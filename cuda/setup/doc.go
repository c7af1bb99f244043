// Package setup makes development parameters on a GPU: the points of a parameter file, from a program and five secrets.
//
// The points are those of engine/params, byte for byte once encoded; here they end in device memory, where proofs want
// them. Spec says what is to be made, Maker.Begin makes the key and what all points come from, Making the points, any range of
// a block at a time, and SRS is the set as a backend takes it. A 32 GiB partition takes 25 GB of scratch memory beside its 47 GB of
// points. The package allocates nothing on the device. It is called by packages cuda and cuda/parameters and by tests.
// Facts: cuda/kernels/qap and cuda/kernels/points, engine/params.
package setup
