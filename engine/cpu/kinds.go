package cpu

import (
	"context"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/host"
)

// storeKind is a way to hold and add the points of a group.
type storeKind[A any] struct {
	name      string
	slotBytes int64
	bytes     func(slots, workers int) int64 // what make takes from an arena
	make      func(arena *host.Arena, slots, workers int) store[A]
}

func portableG1() storeKind[bls.G1Affine] {
	return storeKind[bls.G1Affine]{
		name: "portable", slotBytes: bls.SizeOfG1AffineUncompressed, bytes: portableBytes[fp.Element],
		make: func(arena *host.Arena, slots, workers int) store[bls.G1Affine] {
			return newPortable[bls.G1Affine, fp.Element](arena, slots, workers)
		},
	}
}

// g1Stores lists the kinds that this machine can run, the fastest first.
func g1Stores() []storeKind[bls.G1Affine] {
	if k, ok := ifmaG1(); ok {
		return []storeKind[bls.G1Affine]{k, portableG1()}
	}
	return []storeKind[bls.G1Affine]{portableG1()}
}

func g2Store() storeKind[bls.G2Affine] {
	return storeKind[bls.G2Affine]{
		name: "portable", slotBytes: bls.SizeOfG2AffineUncompressed, bytes: portableBytes[bls.E2],
		make: func(arena *host.Arena, slots, workers int) store[bls.G2Affine] {
			return newPortable[bls.G2Affine, bls.E2](arena, slots, workers)
		},
	}
}

// sumBlockBytes is what sumBlock takes from its arena.
func sumBlockBytes[A any](k storeKind[A], w windows, chunk, threads int) int64 {
	return k.bytes(sumSlots(w, chunk, threads), threads) + sumBytes[A](w, chunk, threads)
}

// sumBlock is one multi-scalar multiplication: the source's values times the points that read gives, in
// chunks. The result does not depend on how the work is divided.
func sumBlock[A, J any, PA point[A], PJ jacobian[A, J]](ctx context.Context, arena *host.Arena, k storeKind[A], w windows, chunk, threads int,
	src *source, read func(ctx context.Context, from int, dst []A) error) (J, error) {
	points := k.make(arena, sumSlots(w, chunk, threads), threads)
	return newMultiSum[A, J, PA, PJ](arena, w, chunk, threads, points).run(ctx, src, read)
}

// laneKernels lists the transforms' kernels that this machine can run on a domain of n points, the fastest
// first.
func laneKernels(n int) []laneKernel {
	if k, ok := ifmaKernel(n); ok {
		return []laneKernel{k, scalarLanes{}}
	}
	return []laneKernel{scalarLanes{}}
}
