package params

import (
	"context"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/lanes"
)

// laneMinimum is the number of products from which lanes pay: below, windows are so narrow that digits are
// often zero, which lanes leave to the plain way.
const laneMinimum = 1 << 15

// newTableG1 makes tables of the standard generator of G1, of at most maxBytes, for about count products.
func newTableG1(ctx context.Context, count, threads int, maxBytes int64) (fixedTable, error) {
	if lanes.Fast() && count >= laneMinimum {
		return newLanesG1(ctx, windowWidths(count, 2*laneRowBytes, maxBytes), threads)
	}
	return newFixedG1(ctx, windowWidths(count, G1Bytes, maxBytes), threads)
}

// newTableG2 is newTableG1 for G2.
func newTableG2(ctx context.Context, count, threads int, maxBytes int64) (fixedTable, error) {
	if lanes.Fast() && count >= laneMinimum {
		return newLanesG2(ctx, windowWidths(count, 4*laneRowBytes, maxBytes), threads)
	}
	return newFixedG2(ctx, windowWidths(count, G2Bytes, maxBytes), threads)
}

func newFixedG1(ctx context.Context, widths []int, threads int) (fixedTable, error) {
	return newFixedBase[fp.Element, *fp.Element](ctx, widths, basesG1(widths), threads, G1Bytes, encodePointG1)
}

func newFixedG2(ctx context.Context, widths []int, threads int) (fixedTable, error) {
	return newFixedBase[bls.E2, *bls.E2](ctx, widths, basesG2(widths), threads, G2Bytes, encodePointG2)
}

func newLanesG1(ctx context.Context, widths []int, threads int) (fixedTable, error) {
	return newLaneBase[fp.Element, *fp.Element, lanes.Block, *lanes.Block](ctx, widths, basesG1(widths), threads, G1Bytes, encodePointG1)
}

func newLanesG2(ctx context.Context, widths []int, threads int) (fixedTable, error) {
	return newLaneBase[bls.E2, *bls.E2, lanes.E2, *lanes.E2](ctx, widths, basesG2(widths), threads, G2Bytes, encodePointG2)
}

// basesG1 are the generator times the place values of the windows.
func basesG1(widths []int) []point[fp.Element] {
	jac, _, _, _ := bls.Generators()
	bases := make([]point[fp.Element], len(widths))
	for w := range widths {
		var affine bls.G1Affine
		affine.FromJacobian(&jac)
		bases[w] = point[fp.Element](affine)
		for range widths[w] {
			jac.DoubleAssign()
		}
	}
	return bases
}

// basesG2 is basesG1 for G2.
func basesG2(widths []int) []point[bls.E2] {
	_, jac, _, _ := bls.Generators()
	bases := make([]point[bls.E2], len(widths))
	for w := range widths {
		var affine bls.G2Affine
		affine.FromJacobian(&jac)
		bases[w] = point[bls.E2](affine)
		for range widths[w] {
			jac.DoubleAssign()
		}
	}
	return bases
}

// encodePointG1 and encodePointG2 write the form of parameter files.
func encodePointG1(dst []byte, p *point[fp.Element]) {
	affine := bls.G1Affine(*p)
	EncodeG1Uncompressed(dst, &affine)
}

func encodePointG2(dst []byte, p *point[bls.E2]) {
	affine := bls.G2Affine(*p)
	EncodeG2Uncompressed(dst, &affine)
}
