package params

import (
	"context"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// The generators' fixed bases.
type (
	fixedG1 = fixedBase[fp.Element, *fp.Element]
	fixedG2 = fixedBase[bls.E2, *bls.E2]
)

// newFixedG1 builds tables of the standard generator of G1 for the given windows.
func newFixedG1(ctx context.Context, widths []int, threads int) (*fixedG1, error) {
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
	return newFixedBase[fp.Element, *fp.Element](ctx, widths, bases, threads)
}

// newFixedG2 is newFixedG1 for G2.
func newFixedG2(ctx context.Context, widths []int, threads int) (*fixedG2, error) {
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
	return newFixedBase[bls.E2, *bls.E2](ctx, widths, bases, threads)
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
