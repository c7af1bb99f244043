// Package msm computes sums of scalars times points of G1 and G2 on a device.
//
// A Summer takes points and scalars that lie in device memory and returns one point. Scalars come in one of two ways:
// one for each point (the H query), or chosen by bitmaps, where variables are zeros, ones and field elements and only those
// with a density have points (the queries L, A, B1 and B2). Zeros cost nothing, ones an addition, and the rest goes through
// Pippenger's method: windows of signed digits, points sorted by bucket, all buckets summed at once by rounds of affine
// additions that share inversions, and the buckets' sums by rows and columns. The kernels' files say how, in
// cuda/kernels/msm. Any values work, in about the same time whatever their distribution.
//
// Nothing is allocated on the device: PlanFor says how many bytes of scratch a sum takes, and fits it to a limit by
// taking fewer windows at once, or the points in parts. It refuses what cannot be made to fit, with both numbers. Points that
// a device cannot hold come up in pieces (Block, Piece), which are summed each for itself or as one sum (Running). Points
// must be of order r or infinity (x = y = 0); others give a wrong sum, not a fault.
package msm
