// Package setup makes development parameters on a GPU: the points of a parameter file, from a program and five secrets.
//
// The points are those of engine/params, byte for byte once encoded; here they end in device memory, where proofs want
// them. A 32 GiB partition takes 25 GB of scratch memory beside its 47 GB of points. The package allocates nothing on
// the device. It is called by package cuda and by tests. Facts: cuda/kernels/qap and cuda/kernels/points, engine/params.
package setup
