package groth16

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Assignment is a circuit's values made elsewhere, as whole vectors: the second way into a Backend, for callers
// who synthesise on their own. All numbers are in Montgomery form. Nothing is written, and nothing is kept
// longer than Backend.BeginAssignment says.
type Assignment struct {
	Inputs []fr.Element // public variables, with the leading one
	Aux    []fr.Element // private variables
	// A, B and C are the rows A·w, B·w, C·w, equally many, with the row that bellperson appends for each input.
	A, B, C []fr.Element
	// Density says which variables have points: AAux and BAux one bit for each of Aux, BInput one for each of
	// Inputs. What lies in the last word behind Len does not matter.
	Density circuit.Density
}

// order is the group order r, limbs from the lowest.
var order = func() (r [4]uint64) {
	for i, w := range fr.Modulus().Bits() {
		r[i] = uint64(w)
	}
	return r
}()

// Reduced says whether an element that came from outside is below the group order, as all arithmetic wants it.
func Reduced(x *fr.Element) bool {
	if x[3] != order[3] {
		return x[3] < order[3]
	}
	_, borrow := bits.Sub64(x[0], order[0], 0)
	_, borrow = bits.Sub64(x[1], order[1], borrow)
	_, borrow = bits.Sub64(x[2], order[2], borrow)
	_, borrow = bits.Sub64(x[3], order[3], borrow)
	return borrow == 1
}

// Domain is the power of two that holds all rows.
func (a *Assignment) Domain() int {
	n := 1
	for n < len(a.A) {
		n <<= 1
	}
	return n
}

// Points is how many points each block has for an assignment of this shape, as bellperson's prover uses them.
func (a *Assignment) Points() (n [BlockCount]int) {
	b := a.Density.BInput.Count() + a.Density.BAux.Count()
	return [BlockCount]int{a.Domain() - 1, len(a.Aux), len(a.Inputs) + a.Density.AAux.Count(), b, b}
}

// Fits checks that the vectors and densities agree with each other and with the parameter set. It does not
// look at values but for the leading one. Errors: Input, with what is wanted and what was found.
func (a *Assignment) Fits(srs SRS) error {
	const op = "groth16.Fits"
	refuse := func(where, want string, got int) error {
		return status.New(status.Input, op, where, want, fmt.Sprint(got))
	}
	if len(a.B) != len(a.A) || len(a.C) != len(a.A) {
		return status.New(status.Input, op, "a, b, c", "equally many rows", fmt.Sprintf("%d, %d, %d", len(a.A), len(a.B), len(a.C)))
	}
	if len(a.Inputs) == 0 || !a.Inputs[0].IsOne() {
		return status.New(status.Input, op, "input 0", "the constant one", "another value, or no inputs")
	}
	for _, d := range []struct {
		name, of string
		bits     circuit.Bits
		want     int
	}{
		{"density of aux in A", "aux", a.Density.AAux, len(a.Aux)},
		{"density of inputs in B", "input", a.Density.BInput, len(a.Inputs)},
		{"density of aux in B", "aux", a.Density.BAux, len(a.Aux)},
	} {
		if d.bits.Len != d.want {
			return refuse(d.name, fmt.Sprintf("%d bits, one for each %s", d.want, d.of), d.bits.Len)
		}
		if len(d.bits.Words) < circuit.BitWords(d.bits.Len) {
			return refuse(d.name, fmt.Sprintf("%d words", circuit.BitWords(d.bits.Len)), len(d.bits.Words))
		}
	}
	if got, want := len(a.Inputs), len(srs.VerifyingKey().IC); got != want {
		return refuse("inputs", fmt.Sprintf("%d with the constant one, as the parameters have in ic", want), got)
	}
	if domain := srs.Len(BlockH) + 1; a.Domain() != domain {
		return refuse("rows", fmt.Sprintf("more than %d and at most %d, as the parameters have %d points in h", domain/2, domain, domain-1), len(a.A))
	}
	for b, got := range a.Points() {
		if want := srs.Len(Block(b)); got != want {
			what := [...]string{"", "aux", "inputs + ones in the density of aux in A", "ones in the densities of inputs and aux in B", "ones in the densities of inputs and aux in B"}[b]
			return refuse(what, fmt.Sprintf("%d, as the parameters have points in %s", want, Block(b)), got)
		}
	}
	return nil
}

// BadRow is the first of rows [from, to) in which a number is not reduced or a·b = c does not hold, or -1.
func (a *Assignment) BadRow(from, to int) int {
	var t fr.Element
	for i := from; i < to; i++ {
		x, y, z := &a.A[i], &a.B[i], &a.C[i]
		if !Reduced(x) || !Reduced(y) || !Reduced(z) || !t.Mul(x, y).Equal(z) {
			return i
		}
	}
	return -1
}

// RowError says what is wrong with a row that BadRow found: Input for a number that is not reduced,
// Unsatisfied otherwise.
func (a *Assignment) RowError(row int) error {
	const op = "groth16.CheckRows"
	for i, x := range []*fr.Element{&a.A[row], &a.B[row], &a.C[row]} {
		if !Reduced(x) {
			return status.New(status.Input, op, fmt.Sprintf("%c[%d]", 'a'+i, row), "a number below the group order", fmt.Sprintf("limbs %#x", [4]uint64(*x)))
		}
	}
	return status.New(status.Unsatisfied, op, fmt.Sprintf("row %d of %d", row, len(a.A)), "a*b = c",
		fmt.Sprintf("a = %s, b = %s, c = %s", a.A[row].String(), a.B[row].String(), a.C[row].String()))
}

// rowRun is how many rows are looked at between two looks at the context: about 0.3 ms.
const rowRun = 1 << 13

// CheckRows checks every row on up to threads threads and names the first that is wrong. Errors: as
// RowError; Cancelled.
func (a *Assignment) CheckRows(ctx context.Context, threads int) error {
	return host.Do(ctx, "groth16.CheckRows", len(a.A), rowRun, threads, func(_, from, to int) error {
		if bad := a.BadRow(from, to); bad >= 0 {
			return a.RowError(bad)
		}
		return nil
	})
}
