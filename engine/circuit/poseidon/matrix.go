package poseidon

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// matrix is square, row by row.
type matrix [][]fr.Element

func newMatrix(n int) matrix {
	cells := make([]fr.Element, n*n)
	m := make(matrix, n)
	for i := range m {
		m[i] = cells[i*n : (i+1)*n : (i+1)*n]
	}
	return m
}

// cauchy is the MDS matrix: entry (i, j) is 1/(i + j + n). It is symmetric.
func cauchy(n int) matrix {
	m := newMatrix(n)
	for i := range m {
		for j := range m[i] {
			m[i][j].SetUint64(uint64(i + j + n))
			m[i][j].Inverse(&m[i][j])
		}
	}
	return m
}

// applyRow is the row vector v times m.
func (m matrix) applyRow(v []fr.Element) []fr.Element {
	out := make([]fr.Element, len(v))
	var term fr.Element
	for j := range out {
		for i := range v {
			term.Mul(&v[i], &m[i][j])
			out[j].Add(&out[j], &term)
		}
	}
	return out
}

// mul is m times b.
func (m matrix) mul(b matrix) matrix {
	out := make(matrix, len(m))
	for i := range m {
		out[i] = b.applyRow(m[i])
	}
	return out
}

// inner is m without its first row and column.
func (m matrix) inner() matrix {
	out := newMatrix(len(m) - 1)
	for i := range out {
		copy(out[i], m[i+1][1:])
	}
	return out
}

// inverse is by Gauss and Jordan. A singular matrix is a defect: those of Poseidon are invertible.
func (m matrix) inverse() matrix {
	n := len(m)
	a, out := newMatrix(n), newMatrix(n)
	for i := range m {
		copy(a[i], m[i])
		out[i][i].SetOne()
	}
	var term fr.Element
	for c := range n {
		pivot := c
		for pivot < n && a[pivot][c].IsZero() {
			pivot++
		}
		status.Check(pivot < n, "poseidon.inverse", "an invertible matrix")
		a[c], a[pivot] = a[pivot], a[c]
		out[c], out[pivot] = out[pivot], out[c]
		var scale fr.Element
		scale.Inverse(&a[c][c])
		for j := range n {
			a[c][j].Mul(&a[c][j], &scale)
			out[c][j].Mul(&out[c][j], &scale)
		}
		for i := range n {
			if i == c || a[i][c].IsZero() {
				continue
			}
			factor := a[i][c]
			for j := range n {
				term.Mul(&factor, &a[c][j])
				a[i][j].Sub(&a[i][j], &term)
				term.Mul(&factor, &out[c][j])
				out[i][j].Sub(&out[i][j], &term)
			}
		}
	}
	return out
}

// SparseMatrix is a mixing matrix whose inner part is the identity. In a partial round, element 0 of the
// next state is WHat · state, and element j is state[j] + VRest[j-1] * state[0].
type SparseMatrix struct {
	WHat  []fr.Element // first column, width elements
	VRest []fr.Element // first row without its first element
}

// factor splits the mixing of the partial rounds: a matrix is a dense one, which acts on all but element 0
// and so moves into the round before, times a sparse one. It returns the dense matrix that is left for the
// last full round of the first half, and one sparse matrix a partial round, in the order of use.
func factor(mds matrix, rounds int) (preSparse matrix, sparse []SparseMatrix) {
	n := len(mds)
	sparse = make([]SparseMatrix, rounds)
	current := mds
	for r := rounds - 1; r >= 0; r-- {
		column := make([]fr.Element, n-1)
		for i := range column {
			column[i] = current[i+1][0]
		}
		s := SparseMatrix{
			WHat:  append([]fr.Element{current[0][0]}, current.inner().inverse().applyRow(column)...),
			VRest: append([]fr.Element(nil), current[0][1:]...),
		}
		sparse[r] = s
		moved := newMatrix(n)
		moved[0][0].SetOne()
		for i := 1; i < n; i++ {
			copy(moved[i][1:], current[i][1:])
		}
		current = mds.mul(moved)
	}
	return current, sparse
}

// compress moves the round constants behind the S-boxes: constants that are added after a mixing equal
// their image under the inverse matrix added before it, and in partial rounds all but the first one move on
// to the round before.
func compress(constants []fr.Element, mds matrix, fullRounds, partialRounds int) []fr.Element {
	width, half := len(mds), fullRounds/2
	inverse := mds.inverse()
	keys := func(round int) []fr.Element { return constants[round*width : (round+1)*width] }

	out := append([]fr.Element(nil), keys(0)...)
	for r := 1; r < half; r++ {
		out = append(out, inverse.applyRow(keys(r))...)
	}
	partial := make([]fr.Element, partialRounds)
	carried := append([]fr.Element(nil), keys(half+partialRounds)...)
	for r := partialRounds - 1; r >= 0; r-- {
		moved := inverse.applyRow(carried)
		partial[r] = moved[0]
		moved[0].SetZero()
		for i, k := range keys(half + r) {
			moved[i].Add(&moved[i], &k)
		}
		carried = moved
	}
	out = append(out, inverse.applyRow(carried)...)
	out = append(out, partial...)
	for r := 1; r < half; r++ {
		out = append(out, inverse.applyRow(keys(half+partialRounds+r))...)
	}
	return out
}
