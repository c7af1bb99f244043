package circuit

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Term is one entry of a row of A, B or C: a variable of the whole circuit and its coefficient, in
// Montgomery form. In a merged row keys are distinct and no coefficient is zero.
type Term struct {
	Key   Key
	Coeff fr.Element
}
