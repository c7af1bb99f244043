package groth16

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// PreparedKey is a verifying key with what does not change between proofs worked out: e(alpha, beta) and
// the Miller-loop lines of gamma and delta. It is immutable and may be shared.
type PreparedKey struct {
	alphaBeta bls.GT
	lines     []preparedLines // of gamma, then of delta
	ic        []bls.G1Affine
}

type preparedLines = [2][len(bls.LoopCounter) - 1]bls.LineEvaluationAff

// Prepare works out a key once for any number of verifications. Errors: Params for a key that no reader of
// this package lets through.
func Prepare(vk *VerifyingKey) (*PreparedKey, error) {
	const op = "groth16.Prepare"
	if len(vk.IC) == 0 {
		return nil, status.New(status.Params, op, "ic", "at least one point", "0")
	}
	if vk.GammaG2.IsInfinity() || vk.DeltaG2.IsInfinity() {
		return nil, status.New(status.Params, op, "gamma_g2, delta_g2", "points that are not infinity", "infinity")
	}
	alphaBeta, err := bls.Pair([]bls.G1Affine{vk.AlphaG1}, []bls.G2Affine{vk.BetaG2})
	if err != nil {
		return nil, status.Wrap(status.Internal, op, "", err)
	}
	return &PreparedKey{
		alphaBeta: alphaBeta,
		lines:     []preparedLines{bls.PrecomputeLines(vk.GammaG2), bls.PrecomputeLines(vk.DeltaG2)},
		ic:        append([]bls.G1Affine(nil), vk.IC...),
	}, nil
}

// InputCount is the number of public inputs that the key expects, without the constant one.
func (k *PreparedKey) InputCount() int { return len(k.ic) - 1 }

// Verify tells whether proof holds for the public inputs, given without the leading one:
// e(A, B) = e(alpha, beta) e(IC·(1, inputs), gamma) e(C, delta). Points that are infinity or outside the
// group make it false, wherever they came from. Errors: Input when the number of inputs is not the key's.
func Verify(key *PreparedKey, proof *Proof, inputs []fr.Element) (bool, error) {
	if err := key.checkInputs("inputs", inputs); err != nil {
		return false, err
	}
	if !proof.wellFormed() {
		return false, nil
	}
	one := fr.One()
	return key.check([]*Proof{proof}, [][]fr.Element{inputs}, []fr.Element{one})
}

// VerifyBatch verifies proofs, each with its public inputs (without the leading one), together: a random
// linear combination with coefficients of 128 bits from crypto/rand, so a wrong proof passes with
// probability 2^-128. A batch that fails is halved until each wrong proof is known: failed lists their
// indexes in rising order, and is empty when all hold. Errors: Input when the numbers of proofs and input
// vectors differ, or an input vector's length is not the key's.
func VerifyBatch(key *PreparedKey, proofs []Proof, inputs [][]fr.Element) (failed []int, err error) {
	if len(proofs) != len(inputs) {
		return nil, status.New(status.Input, "groth16.VerifyBatch", "inputs", fmt.Sprintf("%d vectors, one a proof", len(proofs)), fmt.Sprint(len(inputs)))
	}
	for i := range inputs {
		if err := key.checkInputs(fmt.Sprintf("inputs[%d]", i), inputs[i]); err != nil {
			return nil, err
		}
	}
	good := make([]bool, len(proofs))
	candidates := make([]int, 0, len(proofs))
	for i := range proofs {
		if proofs[i].wellFormed() {
			candidates = append(candidates, i)
		}
	}
	if err := key.bisect(proofs, inputs, candidates, good); err != nil {
		return nil, err
	}
	for i, ok := range good {
		if !ok {
			failed = append(failed, i)
		}
	}
	return failed, nil
}

// bisect marks the proofs among the candidates that hold.
func (k *PreparedKey) bisect(proofs []Proof, inputs [][]fr.Element, candidates []int, good []bool) error {
	if len(candidates) == 0 {
		return nil
	}
	some := make([]*Proof, len(candidates))
	vectors := make([][]fr.Element, len(candidates))
	weights := make([]fr.Element, len(candidates))
	for i, c := range candidates {
		some[i], vectors[i] = &proofs[c], inputs[c]
		if err := randomWeight(&weights[i]); err != nil {
			return err
		}
	}
	ok, err := k.check(some, vectors, weights)
	switch {
	case err != nil:
		return err
	case ok:
		for _, c := range candidates {
			good[c] = true
		}
		return nil
	case len(candidates) == 1:
		return nil
	}
	half := len(candidates) / 2
	if err := k.bisect(proofs, inputs, candidates[:half], good); err != nil {
		return err
	}
	return k.bisect(proofs, inputs, candidates[half:], good)
}

// check tests the combination of the proofs with the given weights, none of which is zero:
// prod e(w A, B) = e(alpha, beta)^(sum w) e(sum w IC·(1, inputs), gamma) e(sum w C, delta).
func (k *PreparedKey) check(proofs []*Proof, inputs [][]fr.Element, weights []fr.Element) (bool, error) {
	const op = "groth16.Verify"
	as := make([]bls.G1Affine, len(proofs))
	bs := make([]bls.G2Affine, len(proofs))
	cs := make([]bls.G1Affine, len(proofs))
	scalars := make([]fr.Element, len(k.ic)) // of the IC points, over all proofs
	var t fr.Element
	for i, p := range proofs {
		as[i].ScalarMultiplication(&p.A, weights[i].BigInt(new(big.Int)))
		bs[i], cs[i] = p.B, p.C
		scalars[0].Add(&scalars[0], &weights[i])
		for j := range inputs[i] {
			scalars[j+1].Add(&scalars[j+1], t.Mul(&weights[i], &inputs[i][j]))
		}
	}
	total := scalars[0]
	for i := range scalars {
		scalars[i].Neg(&scalars[i])
	}
	minus := make([]fr.Element, len(weights))
	for i := range weights {
		minus[i].Neg(&weights[i])
	}
	var sums [2]bls.G1Affine
	if _, err := sums[0].MultiExp(k.ic, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return false, status.Wrap(status.Internal, op, "ic", err)
	}
	if _, err := sums[1].MultiExp(cs, minus, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return false, status.Wrap(status.Internal, op, "C", err)
	}
	left, err := bls.MillerLoop(as, bs)
	if err != nil {
		return false, status.Wrap(status.Internal, op, "A, B", err)
	}
	// The call scales the lines in place, so it gets a copy: the key is shared.
	right, err := bls.MillerLoopFixedQ(sums[:], slices.Clone(k.lines))
	if err != nil {
		return false, status.Wrap(status.Internal, op, "gamma, delta", err)
	}
	got := bls.FinalExponentiation(&left, &right)
	var want bls.GT
	want.Exp(k.alphaBeta, total.BigInt(new(big.Int)))
	return got.Equal(&want), nil
}

func (k *PreparedKey) checkInputs(where string, inputs []fr.Element) error {
	if len(inputs) != k.InputCount() {
		return status.New(status.Input, "groth16.Verify", where, fmt.Sprintf("%d public inputs", k.InputCount()), fmt.Sprint(len(inputs)))
	}
	return nil
}

// wellFormed tells whether all points are of order r. A decoded proof is; one that faulty hardware made
// may not be, and pairings of other points mean nothing.
func (p *Proof) wellFormed() bool {
	for _, q := range []point{&p.A, &p.B, &p.C} {
		if q.IsInfinity() || !q.IsOnCurve() || !q.IsInSubGroup() {
			return false
		}
	}
	return true
}

// randomWeight draws a coefficient from 1 to 2^128 - 1.
func randomWeight(w *fr.Element) error {
	for {
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return status.Wrap(status.Internal, "groth16.VerifyBatch", "crypto/rand", err)
		}
		w.SetBytes(b[:])
		if !w.IsZero() {
			return nil
		}
	}
}
