package porep

import (
	"encoding/hex"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// APIVersion is the version of the proofs API; it decides how DRG parents are drawn.
type APIVersion uint8

// The versions. 1.0 graphs differ from the two others; 1.1 and 1.2 graphs are equal.
const (
	V1_0 APIVersion = iota
	V1_1
	V1_2
)

// String is the version as the reference writes it, "1.1.0".
func (v APIVersion) String() string { return fmt.Sprintf("1.%d.0", uint8(v)) }

// Public inputs without the constant one.
const (
	fixedInputs        = 3                      // replica_id, comm_d, comm_r
	inputsPerChallenge = 1 + Degree + 1 + 1 + 1 // comm_d path, parents, challenge, comm_r_last path, comm_c path
)

// Statement is the public part of a sector's proof: what is claimed, and all that public inputs are derived
// from. Nothing in it is taken from a vanilla proof.
type Statement struct {
	Shape      *Shape
	Registered *RegisteredProof // nil for the unregistered test sizes
	Version    APIVersion
	Kind       ChallengeKind
	PorepID    Hash
	CommD      Hash
	CommR      Hash
	ReplicaID  Hash // recomputed from the ids where they are known, else from the C1
	Ticket     Hash
	Seed       Hash
}

// Validate refuses what the reference refuses before it verifies: commitments that are zero or not
// canonical scalars; and a statement that contradicts its registered proof. Seed and ticket may be anything.
// Fails with Input; the error names the field.
func (s *Statement) Validate() error {
	const op = "porep.Validate"
	if s.Shape == nil {
		return status.New(status.Input, op, "shape", "a known sector size", "none")
	}
	if s.Version > V1_2 {
		return status.New(status.Input, op, "api_version", "1.0.0, 1.1.0 or 1.2.0", s.Version.String())
	}
	if s.Kind > NonInteractive {
		return status.New(status.Input, op, "challenge kind", "a known one", s.Kind.String())
	}
	if s.Kind != Interactive && s.Version < V1_2 {
		return status.New(status.Input, op, "api_version", "1.2.0 for "+s.Kind.String()+" challenges", s.Version.String())
	}
	if r := s.Registered; r != nil {
		switch {
		case s.Shape != r.Shape:
			return status.New(status.Input, op, "sector size", r.Shape.Name+" for "+r.Name, s.Shape.Name)
		case s.Version != r.Version:
			return status.New(status.Input, op, "api_version", r.Version.String()+" for "+r.Name, s.Version.String())
		case s.Kind != r.Kind:
			return status.New(status.Input, op, "challenge kind", r.Kind.String()+" for "+r.Name, s.Kind.String())
		case s.PorepID != r.PorepID():
			id := r.PorepID()
			return status.New(status.Input, op, "porep_id", hexText(&id)+" for "+r.Name, hexText(&s.PorepID))
		}
	}
	for _, c := range []struct {
		name    string
		value   *Hash
		nonzero bool
	}{{"comm_d", &s.CommD, true}, {"comm_r", &s.CommR, true}, {"replica_id", &s.ReplicaID, false}} {
		if c.nonzero && *c.value == (Hash{}) {
			return status.New(status.Input, op, c.name, "a commitment that is not zero", "32 zero bytes")
		}
		if _, err := scalar(op, c.name, c.value); err != nil {
			return err
		}
	}
	return nil
}

// RecomputeReplicaID is the replica id that follows from the ids and the statement's ticket, comm_d and
// porep_id. It does not look at, and does not change, ReplicaID.
func (s *Statement) RecomputeReplicaID(sectorID uint64, proverID Hash) Hash {
	return ReplicaID(proverID, sectorID, s.Ticket, s.CommD, s.PorepID)
}

// MatchReplicaID refuses ids from which another replica id follows than the statement has. Fails with Input.
func (s *Statement) MatchReplicaID(sectorID uint64, proverID Hash) error {
	if want := s.RecomputeReplicaID(sectorID, proverID); want != s.ReplicaID {
		return status.New(status.Input, "porep.MatchReplicaID", "replica_id",
			fmt.Sprintf("%s for sector %d of prover %s", hexText(&want), sectorID, hexText(&proverID)), hexText(&s.ReplicaID))
	}
	return nil
}

// PartitionCount is the number of partitions, each with a Groth16 proof of its own.
func (s *Statement) PartitionCount() int { return s.Shape.PartitionsOf(s.Kind) }

// Graph is the graph that the statement's parents are drawn from.
func (s *Statement) Graph() *Graph { return NewGraph(s.Shape, s.PorepID, s.Version) }

// PublicInputs derives the public inputs of a partition, without the constant one: replica_id, comm_d,
// comm_r, then for each challenge 18 node numbers, as the positions that Merkle paths prove: the challenge
// (comm_d), 6 DRG and 8 expander parents (comm_c), the challenge itself, and the challenge twice (comm_r_last,
// comm_c). Fails with Caller for a partition that the proof does not have, with Input for a commitment that is
// not canonical.
func (s *Statement) PublicInputs(partition int) ([]fr.Element, error) {
	const op = "porep.PublicInputs"
	challenges, err := s.Challenges(partition)
	if err != nil {
		return nil, err
	}
	out := make([]fr.Element, 0, fixedInputs+inputsPerChallenge*len(challenges))
	for _, c := range []struct {
		name  string
		value *Hash
	}{{"replica_id", &s.ReplicaID}, {"comm_d", &s.CommD}, {"comm_r", &s.CommR}} {
		e, err := scalar(op, c.name, c.value)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	graph := s.Graph()
	node := func(n uint32) { out = append(out, fr.NewElement(uint64(n))) }
	for _, c := range challenges {
		node(c)
		for _, p := range graph.Parents(c) {
			node(p)
		}
		node(c)
		node(c)
		node(c)
	}
	return out, nil
}

func hexText(h *Hash) string { return hex.EncodeToString(h[:]) }
