// Package points works on arrays of curve points in device memory: from the encoding of parameter files and back,
// whether they have order r, and products of one base point by many scalars, as a development setup needs them.
//
// Points on the device lie as gnark-crypto's G1Affine and G2Affine: affine, Montgomery form, infinity all zeros. All
// calls queue work on a stream and allocate nothing there: sizes of scratch memory are pure functions, and one Points
// is used by one goroutine at a time. Facts: cuda/kernels/points.
package points
