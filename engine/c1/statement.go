package c1

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
)

// IDs are the parts of a replica id that a C1 output does not hold.
type IDs struct {
	SectorID uint64
	ProverID [32]byte // unsigned LEB128 of the miner's actor number, zero-filled
}

// StatementFile is what a statement file tells about a sector: the facts that the bare form of a C1
// output lacks.
type StatementFile struct {
	Shape      *porep.Shape
	Registered *porep.RegisteredProof // nil for the unregistered test sizes
	Version    porep.APIVersion
	Kind       porep.ChallengeKind
	PorepID    porep.Hash
	IDs        *IDs // nil where the file has none
	// Public are comm_r, comm_d, replica_id, seed and ticket, in this order; nil where the file has none.
	Public [len(publicKeys)]*porep.Hash
}

// publicKeys are the public parts of a sector, which a C1 output has too.
var publicKeys = [...]string{"comm_r", "comm_d", "replica_id", "seed", "ticket"}

// statementMembers are the keys that are read; a statement file has others, for people.
var statementMembers = &members{append([]string{
	"sector_size", "api_version", "porep_id", "api_features", "registered_seal_proof", "sector_id", "prover_id",
}, publicKeys[:]...), 3}

// ParseStatement reads a statement file: a JSON object with sector_size (bytes), api_version ("1.1.0"),
// porep_id (64 hex digits); optional are api_features (a list of "synthetic-porep" or
// "non-interactive-porep"), registered_seal_proof (a name or null, with which all before must agree), and
// sector_id (a number) with prover_id (64 hex digits), and comm_r, comm_d, replica_id, seed, ticket (64 hex
// digits), with which the C1 output must agree. Other keys are ignored. The format is that of the reference
// vectors. Errors are of kind Input, or Unsupported for a sector size that has no shape, and name
// the key.
func ParseStatement(data []byte) (*StatementFile, error) {
	const op, root = "c1.ParseStatement", "the statement file"
	r := &reader{data: data}
	s := &StatementFile{}
	var ids IDs
	var hasSector, hasProver bool
	var features []string
	var size uint64
	f := r.object(statementMembers, func(place int) (f *fault) {
		switch place {
		case 0:
			size, f = r.uint(math.MaxUint64)
		case 1:
			s.Version, f = r.version()
		case 2:
			f = r.hexHash(&s.PorepID)
		case 3:
			features, f = r.features()
		case 4:
			s.Registered, f = r.registeredOrNull()
		case 5:
			hasSector = true
			ids.SectorID, f = r.uint(math.MaxUint64)
		case 6:
			hasProver = true
			f = r.hexHash(&ids.ProverID)
		default:
			part := new(porep.Hash)
			s.Public[place-(len(statementMembers.keys)-len(publicKeys))] = part
			f = r.hexHash(part)
		}
		return f
	})
	if f == nil {
		f = r.end()
	}
	if f != nil {
		return nil, f.err(op, root)
	}

	var err error
	if s.Shape, err = porep.ShapeBySize(size); err != nil {
		return nil, status.Wrap(status.Unsupported, op, "sector_size", err)
	}
	if hasSector != hasProver {
		return nil, status.New(status.Input, op, "sector_id, prover_id", "both or none", "one")
	}
	if hasSector {
		s.IDs = &ids
	}
	switch {
	case len(features) == 0:
	case s.Version != porep.V1_2:
		return nil, status.New(status.Input, op, "api_features", `api_version "1.2.0" for `+features[0], "an older one")
	default:
		s.Kind = featureKinds[features[0]]
	}
	if p := s.Registered; p != nil {
		var key string
		switch {
		case p.Shape != s.Shape:
			key = "sector_size"
		case p.Version != s.Version:
			key = "api_version"
		case p.Kind != s.Kind:
			key = "api_features"
		case p.PorepID() != s.PorepID:
			key = "porep_id"
		}
		if key != "" {
			return nil, status.New(status.Input, op, key, "that of registered_seal_proof "+p.Name, "another")
		}
	}
	return s, nil
}

// version takes an API version.
func (r *reader) version() (porep.APIVersion, *fault) {
	const want = `"1.0.0", "1.1.0" or "1.2.0"`
	at := r.pos
	text, f := r.text(want)
	if f != nil {
		return 0, f
	}
	switch string(text) {
	case "1.0.0":
		return porep.V1_0, nil
	case "1.1.0":
		return porep.V1_1, nil
	case "1.2.0":
		return porep.V1_2, nil
	}
	return 0, &fault{want: want, got: quote(text), offset: at}
}

// featureKinds are the API features in the reference's two spellings, as it displays and as it debug-prints them
// (storage-proofs-core api_version.rs).
var featureKinds = map[string]porep.ChallengeKind{
	"synthetic-porep": porep.Synthetic, "SyntheticPoRep": porep.Synthetic,
	"non-interactive-porep": porep.NonInteractive, "NonInteractivePoRep": porep.NonInteractive,
}

// features takes the list of API features: none or one.
func (r *reader) features() (list []string, f *fault) {
	if f := r.take('[', "a list"); f != nil {
		return nil, f
	}
	if r.peek() == ']' {
		r.pos++
		return nil, nil
	}
	for more := true; more; {
		const want = `"synthetic-porep" or "non-interactive-porep"`
		r.peek()
		at := r.pos
		text, f := r.text(want)
		if _, known := featureKinds[string(text)]; f == nil && !known {
			f = &fault{want: want, got: quote(text), offset: at}
		}
		if f == nil && len(list) > 0 {
			f = &fault{want: "at most one", got: "another after " + list[0], offset: at}
		}
		if f == nil {
			list = append(list, string(text))
			more, f = r.more(']')
		}
		if f != nil {
			return nil, f.index(len(list))
		}
	}
	return list, nil
}

// registeredOrNull takes the name of a registered seal proof, or null.
func (r *reader) registeredOrNull() (*porep.RegisteredProof, *fault) {
	if r.peek() == 'n' {
		return nil, r.literal("null")
	}
	return r.registered()
}

// registered takes the name of a registered seal proof.
func (r *reader) registered() (*porep.RegisteredProof, *fault) {
	const want = "the name of a registered seal proof"
	r.peek()
	at := r.pos
	name, f := r.text(want)
	if f != nil {
		return nil, f
	}
	p, err := porep.RegisteredByName(string(name))
	if err != nil {
		return nil, &fault{want: want, got: quote(name), offset: at}
	}
	return p, nil
}

// hexHash takes a string of 64 hex digits.
func (r *reader) hexHash(dst *porep.Hash) *fault {
	const want = "64 hex digits"
	r.peek()
	at := r.pos
	text, f := r.text(want)
	if f != nil {
		return f
	}
	if len(text) != hex.EncodedLen(len(dst)) {
		return &fault{want: want, got: fmt.Sprintf("%d characters", len(text)), offset: at}
	}
	if _, err := hex.Decode(dst[:], text); err != nil {
		return &fault{want: want, got: quote(text), offset: at}
	}
	return nil
}
