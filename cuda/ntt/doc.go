// Package ntt transforms vectors of scalars on a GPU: between coefficients and values, and from the rows of a partition to
// its quotient polynomial. Sizes are powers of two up to 2^28.
//
// Coefficients are in natural order, values in bit-reversed order or, where rows were evaluated, in natural order too; no
// pass over memory is spent on reordering. The package allocates nothing on the device and queues work without waiting for it; vectors, the table
// of roots and scratch are the caller's. It refuses sizes beyond its table. Package cuda calls it.
//
// Memory comes in steps, each of which gives the same quotient, here for 2^27 elements of 4 GiB: three vectors and a table
// of 8 GiB (New, Quotient); a table of 4 MiB (NewCompact); two vectors, filled one after the other (CosetValues, Divide); one
// vector, a quarter of it and 7 GiB on the host (Hosted).
//
// The algorithm is cuda/kernels/ntt/ntt.cuh; docs/kernels.md has its cost and floor. Values agree with gnark-crypto's
// package fft and with engine/cpu.
package ntt
