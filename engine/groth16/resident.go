package groth16

import (
	"context"

	"github.com/sealc2/sealc2/engine/circuit"
)

// Resident is what a Backend offers besides where it keeps parameters near what computes, beyond the proof that brought them. A
// backend without it (that of the CPU, which reads points from the file) has nothing to bring up and nothing to give back. All
// methods may be called while proofs run, and never disturb them: what a proof uses stays.
type Resident interface {
	// Preload brings up what proofs of so many partitions of a program find where they need it: points, tables, roots. It takes its
	// turn behind what is under way. Errors: NoMemory, Cancelled, those of the SRS and of the device.
	Preload(ctx context.Context, p *circuit.Program, partitions int, srs SRS) error
	// Evict gives back the device memory of the points of an SRS, by its ID, which no proof uses. One that is not there is no error.
	Evict(ctx context.Context, id string) error
	// Forget gives back what is kept of a program which no proof uses, on the device and on the host; the program itself too.
	Forget(ctx context.Context, p *circuit.Program) error
	// Release gives back all device memory that no proof uses, for other programs.
	Release(ctx context.Context) error
}

// Shrinker is what a Backend offers besides where other programs can take memory from it that plans count on.
type Shrinker interface {
	// MemoryBytes is what plans are made for now.
	MemoryBytes() int64
	// Shrink says whether err, which a stage failed with, is due to that, and plans made from now on are smaller: then the partition may
	// begin once more.
	Shrink(ctx context.Context, err error) bool
	// Regain makes plans larger again where others have given back what Shrink did without. Where they have not, or ctx ends before the device
	// could be asked, all stays as it is.
	Regain(ctx context.Context)
}
