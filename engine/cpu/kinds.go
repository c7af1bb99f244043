package cpu

import (
	"context"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
)

// sumBlockBytes is what sumBlock takes from its arena.
func sumBlockBytes[A any](k lanes.StoreKind[A], w windows, chunk, threads int) int64 {
	return k.Bytes(sumSlots(w, chunk, threads), threads) + sumBytes[A](w, chunk, threads)
}

// sumBlock is one multi-scalar multiplication: the source's values times the points that read gives, in
// chunks. The result does not depend on how the work is divided.
func sumBlock[A, J any, PA point[A], PJ jacobian[A, J]](ctx context.Context, arena *host.Arena, k lanes.StoreKind[A], w windows, chunk, threads int,
	src *source, read func(ctx context.Context, from int, dst []A) error) (J, error) {
	points := k.New(arena, sumSlots(w, chunk, threads), threads)
	return newMultiSum[A, J, PA, PJ](arena, w, chunk, threads, points).run(ctx, src, read)
}
