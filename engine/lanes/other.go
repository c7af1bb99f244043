//go:build !amd64

package lanes

import bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

// G1 lists the stores of G1 that this machine can run, the fastest first.
func G1() []StoreKind[bls.G1Affine] { return []StoreKind[bls.G1Affine]{PlainG1()} }

// G2 is G1 for G2.
func G2() []StoreKind[bls.G2Affine] { return []StoreKind[bls.G2Affine]{PlainG2()} }

// Kernels lists the kernels that this machine can run on a domain of n points, the fastest first.
func Kernels(int) []Kernel { return []Kernel{plainRows{}} }
