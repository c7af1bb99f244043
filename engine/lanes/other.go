//go:build !amd64

package lanes

import (
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// G1 lists the stores of G1 that this machine can run, the fastest first.
func G1() []StoreKind[bls.G1Affine] { return []StoreKind[bls.G1Affine]{PlainG1()} }

// G2 is G1 for G2.
func G2() []StoreKind[bls.G2Affine] { return []StoreKind[bls.G2Affine]{PlainG2()} }

// Kernels lists the kernels that this machine can run on a domain of n points, the fastest first.
func Kernels(int) []Kernel { return []Kernel{plainRows{}} }

// HasRows tells whether this machine has the instructions for Row, which has no other implementation.
func HasRows() bool { return false }

// noRows is what the callers of Row have broken.
func noRows() { status.Check(false, "lanes.Row", "HasRows to be asked first") }

// Load, like the rest of Row, is only called where HasRows says so.
func (r *Row) Load(*[Width]fr.Element) { noRows() }

// Store is only called where HasRows says so.
func (r *Row) Store([]fr.Element, *[Width]int) { noRows() }

// Mul is only called where HasRows says so.
func (r *Row) Mul(_, _ *Row) { noRows() }

// Add is only called where HasRows says so.
func (r *Row) Add(_, _ *Row) { noRows() }

// Linear is only called where HasRows says so.
func (r *Row) Linear([]Row, []Term, []uint64) { noRows() }

// AppendFactor is only called where HasRows says so.
func AppendFactor(dst []uint64, _ *fr.Element) []uint64 {
	noRows()
	return dst
}
