package params

import (
	"context"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/engine/lanes"
)

// newTableG1 makes tables of the standard generator of G1, of at most maxBytes, for about count products.
func newTableG1(ctx context.Context, count, threads int, maxBytes int64) (fixedTable, error) {
	kind := lanes.G1()[0]
	return newFixedG1(ctx, kind, windowWidths(count, kind.SlotBytes, maxBytes), threads)
}

// newTableG2 is newTableG1 for G2.
func newTableG2(ctx context.Context, count, threads int, maxBytes int64) (fixedTable, error) {
	kind := lanes.G2()[0]
	return newFixedG2(ctx, kind, windowWidths(count, kind.SlotBytes, maxBytes), threads)
}

func newFixedG1(ctx context.Context, kind lanes.StoreKind[bls.G1Affine], widths []int, threads int) (fixedTable, error) {
	return newFixedBase(ctx, kind, widths, basesG1(widths), threads, G1Bytes, EncodeG1Uncompressed)
}

func newFixedG2(ctx context.Context, kind lanes.StoreKind[bls.G2Affine], widths []int, threads int) (fixedTable, error) {
	return newFixedBase(ctx, kind, widths, basesG2(widths), threads, G2Bytes, EncodeG2Uncompressed)
}

// basesG1 are the generator times the place values of the windows.
func basesG1(widths []int) []bls.G1Affine {
	jac, _, _, _ := bls.Generators()
	bases := make([]bls.G1Affine, len(widths))
	for w := range widths {
		bases[w].FromJacobian(&jac)
		for range widths[w] {
			jac.DoubleAssign()
		}
	}
	return bases
}

// basesG2 is basesG1 for G2.
func basesG2(widths []int) []bls.G2Affine {
	_, jac, _, _ := bls.Generators()
	bases := make([]bls.G2Affine, len(widths))
	for w := range widths {
		bases[w].FromJacobian(&jac)
		for range widths[w] {
			jac.DoubleAssign()
		}
	}
	return bases
}
