// Package rows evaluates the rows of a program on a GPU, A·w, B·w and C·w over a compact witness, and checks a·b = c in each;
// or it takes rows that were evaluated elsewhere, and checks them.
//
// A program's templates become tables of some tens of megabytes, made once, which stay on the device. The package allocates
// nothing there and queues work without waiting for it. It knows no Filecoin. Package cuda calls it.
//
// The algorithm is cuda/kernels/rows/rows.cuh; docs/kernels.md has its cost and floor. Values are those of
// circuit.Program.Evaluate, to the bit.
package rows
