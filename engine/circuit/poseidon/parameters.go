package poseidon

import (
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// MaxArity is the largest arity that neptune defines.
const MaxArity = 36

// Parameters are the constants of one arity. They are shared: nobody may write them.
//
// An optimised hash starts from (DomainTag, inputs) plus the first Width compressed constants. Each of the
// FullRounds-1 first full rounds is S-box on every element, plus the next Width constants, then a mixing;
// each of the PartialRounds between the two halves is S-box on element 0, plus the next constant, then the
// mixing by the next sparse matrix; the last full round adds nothing. The mixing of the last full round
// before the partial ones is PreSparse, that of the others MDS; state rows times matrix. The result is
// element 1.
type Parameters struct {
	Arity         int
	Width         int // Arity + 1
	FullRounds    int
	PartialRounds int
	DomainTag     fr.Element // 2^Arity - 1: the tag of a Merkle tree hash with all leaves present

	RoundConstants           []fr.Element   // Width * (FullRounds + PartialRounds)
	CompressedRoundConstants []fr.Element   // Width * FullRounds + PartialRounds
	MDS                      [][]fr.Element // Width x Width, symmetric
	PreSparse                [][]fr.Element // Width x Width
	Sparse                   []SparseMatrix // one a partial round, in order of use

	fast *fast
}

// kept is made on first use. What panics on the way is not kept (sync.Once would).
type kept[T any] struct {
	making sync.Mutex
	made   atomic.Pointer[T]
}

func (k *kept[T]) get(make func() *T) *T {
	if made := k.made.Load(); made != nil {
		return made
	}
	k.making.Lock()
	defer k.making.Unlock()
	made := k.made.Load()
	if made == nil {
		made = make()
		k.made.Store(made)
	}
	return made
}

// generated caches the parameters by arity.
var generated [MaxArity + 1]kept[Parameters]

// ParametersOf returns the parameters of an arity, generating them on first use (some milliseconds). An
// arity outside 1 to MaxArity is a defect of the caller: Internal, by panic.
func ParametersOf(arity int) *Parameters {
	status.Check(arity >= 1 && arity <= MaxArity, "poseidon.ParametersOf", "an arity from 1 to MaxArity")
	return generated[arity].get(func() *Parameters { return generate(arity) })
}

func generate(arity int) *Parameters {
	p := &Parameters{Arity: arity, Width: arity + 1}
	p.FullRounds, p.PartialRounds = roundNumbers(p.Width)
	p.DomainTag.SetUint64(1<<arity - 1)
	mds := cauchy(p.Width)
	p.MDS = mds
	p.RoundConstants = roundConstants(p.Width, p.FullRounds, p.PartialRounds)
	p.CompressedRoundConstants = compress(p.RoundConstants, mds, p.FullRounds, p.PartialRounds)
	pre, sparse := factor(mds, p.PartialRounds)
	p.PreSparse, p.Sparse = pre, sparse
	p.fast = newFast(p)
	return p
}
