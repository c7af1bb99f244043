// Package lanes is the arithmetic that works on thousands of independent points or scalars at once: eight at a
// time with AVX-512 IFMA where the machine has it, and in plain Go over gnark-crypto elsewhere, with equal
// results. It has three things:
//
// A Store holds points of G1 or G2 in numbered slots and adds pairs of them in affine form, thousands sharing
// one inversion (Montgomery's trick): 5 multiplications and a square an addition.
//
// A Kernel does the passes of number-theoretic transforms over the scalar field, on eight columns or rows of
// a matrix together.
//
// A Row is eight elements of the scalar field, for formulas that run over eight sets of values together: products,
// sums, and sums of products with constants that are reduced once. It has no plain form: see HasRows.
//
// It knows no file, no circuit and no order of work: those are its callers' (params for fixed-base tables, cpu for
// multi-scalar multiplications and quotients, circuit for hashes). Stores and kernels list the implementations that the machine can run, the
// fastest first: G1, G2, Kernels.
//
// Sources: Montgomery 1987 for the shared inversion; Gueron and Krasnov 2016 for products by IFMA.
package lanes

// Width is the number of elements that go together.
const Width = 8
