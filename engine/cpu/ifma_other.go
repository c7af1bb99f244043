//go:build !amd64

package cpu

import bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

// ifmaG1 exists on amd64 only.
func ifmaG1() (storeKind[bls.G1Affine], bool) { return storeKind[bls.G1Affine]{}, false }

// ifmaKernel exists on amd64 only.
func ifmaKernel(int) (laneKernel, bool) { return nil, false }
