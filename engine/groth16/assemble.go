package groth16

import (
	"math/big"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// Blinding draws the two scalars that hide the witness in a proof, from crypto/rand.
func Blinding() (r, s fr.Element, err error) {
	if _, err = r.SetRandom(); err == nil {
		_, err = s.SetRandom()
	}
	if err != nil {
		err = status.Wrap(status.Internal, "groth16.Blinding", "", err)
	}
	return r, s, err
}

// Assemble puts a proof together from a partition's sums:
//
//	A = alpha + a + r delta            (G1)
//	B = beta + b2 + s delta            (G2)
//	C = h + l + s A + r B' - r s delta (G1), where B' = beta + b1 + s delta in G1
//
// Zero is legal for r and s (the proof then hides nothing). The result is a function of its arguments alone.
// Source: Groth16 section 3.2, in the form of bellperson's prover.
func Assemble(vk *VerifyingKey, sums *Sums, r, s *fr.Element) Proof {
	var rInt, sInt, rsInt big.Int
	var rs fr.Element
	rs.Mul(r, s).Neg(&rs)
	r.BigInt(&rInt)
	s.BigInt(&sInt)
	rs.BigInt(&rsInt)

	var delta, t, a, b1, c bls.G1Jac
	delta.FromAffine(&vk.DeltaG1)

	a.FromAffine(&vk.AlphaG1)
	a.AddAssign(&sums.A)
	a.AddAssign(t.ScalarMultiplication(&delta, &rInt))

	b1.FromAffine(&vk.BetaG1)
	b1.AddAssign(&sums.B1)
	b1.AddAssign(t.ScalarMultiplication(&delta, &sInt))

	var delta2, t2, b2 bls.G2Jac
	delta2.FromAffine(&vk.DeltaG2)
	b2.FromAffine(&vk.BetaG2)
	b2.AddAssign(&sums.B2)
	b2.AddAssign(t2.ScalarMultiplication(&delta2, &sInt))

	c.Set(&sums.H)
	c.AddAssign(&sums.L)
	c.AddAssign(t.ScalarMultiplication(&a, &sInt))
	c.AddAssign(t.ScalarMultiplication(&b1, &rInt))
	c.AddAssign(t.ScalarMultiplication(&delta, &rsInt))

	var p Proof
	p.A.FromJacobian(&a)
	p.B.FromJacobian(&b2)
	p.C.FromJacobian(&c)
	return p
}
