// Package kinds finds out on a GPU which values of a vector are zero, one or neither.
//
// It is for vectors that a caller made, where no program says which variables are bits: two bitmaps come out, as the sums
// of cuda/msm take them, and the first value that is not below the group order, if there is one. It works in ranges, so that it
// can follow an upload, allocates nothing and queues work without waiting. Package cuda calls it. The algorithm is
// cuda/kernels/kinds/kinds.cuh; docs/kernels.md has its cost.
package kinds
