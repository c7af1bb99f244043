package porep

import (
	"encoding/binary"
	"fmt"

	"github.com/sealc2/sealc2/engine/status"
)

// RegisteredProof is a registered seal proof type. Number is its value in the C enum, the Go ABI and porep_id.
type RegisteredProof struct {
	Number  int32
	Name    string // Rust variant name, "StackedDrg32GiBV1_1"
	Tag     string // key below vanilla_proofs: the plain V1 name of the size
	Shape   *Shape
	Version APIVersion
	Kind    ChallengeKind
}

// registered lists the proofs by number: five sizes in each of four families. The families' names are the
// reference's; the synthetic one is called V1_1 and is of version 1.2.
var registered = func() []*RegisteredProof {
	var list []*RegisteredProof
	for _, family := range []struct {
		suffix  string
		version APIVersion
		kind    ChallengeKind
	}{
		{"V1", V1_0, Interactive},
		{"V1_1", V1_1, Interactive},
		{"V1_1_Feat_SyntheticPoRep", V1_2, Synthetic},
		{"V1_2_Feat_NonInteractivePoRep", V1_2, NonInteractive},
	} {
		for _, shape := range []*Shape{shape2KiB, shape8MiB, shape512MiB, shape32GiB, shape64GiB} {
			list = append(list, &RegisteredProof{
				Number:  int32(len(list)),
				Name:    "StackedDrg" + shape.Name + family.suffix,
				Tag:     "StackedDrg" + shape.Name + "V1",
				Shape:   shape,
				Version: family.version,
				Kind:    family.kind,
			})
		}
	}
	return list
}()

// RegisteredProofs returns all registered seal proofs in order of their number.
func RegisteredProofs() []*RegisteredProof { return append([]*RegisteredProof(nil), registered...) }

// RegisteredByNumber finds a proof by its number. Fails with Input.
func RegisteredByNumber(number int32) (*RegisteredProof, error) {
	if number < 0 || int(number) >= len(registered) {
		return nil, status.New(status.Input, "porep.RegisteredByNumber", "registered seal proof",
			fmt.Sprintf("a number from 0 to %d", len(registered)-1), fmt.Sprint(number))
	}
	return registered[number], nil
}

// RegisteredByName finds a proof by its Rust variant name. Fails with Input.
func RegisteredByName(name string) (*RegisteredProof, error) {
	for _, r := range registered {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, status.New(status.Input, "porep.RegisteredByName", "registered seal proof",
		"a name as "+registered[0].Name, fmt.Sprintf("%q", name))
}

// PorepID is the domain of the proof, which enters replica_id and the graph: its number in the first eight
// bytes, then a nonce that is zero for all registered proofs.
func (r *RegisteredProof) PorepID() Hash {
	var id Hash
	binary.LittleEndian.PutUint64(id[:], uint64(r.Number))
	return id
}
