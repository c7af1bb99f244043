package synthetic

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
)

// statementJSON is a statement file in the form of tests/vectors/c1, keys in order.
type statementJSON struct {
	APIFeatures   []string   `json:"api_features"`
	APIVersion    string     `json:"api_version"`
	C1Bytes       int        `json:"c1_bytes"`
	C1SHA256      string     `json:"c1_sha256"`
	C1Type        string     `json:"c1_type"`
	Challenges    [][]uint32 `json:"challenges"`
	PerPartition  int        `json:"challenges_per_partition"`
	CommC         string     `json:"comm_c"`
	CommD         string     `json:"comm_d"`
	CommR         string     `json:"comm_r"`
	CommRLast     string     `json:"comm_r_last"`
	Data          string     `json:"data"`
	Layers        int        `json:"layers"`
	Name          string     `json:"name"`
	Nodes         uint64     `json:"nodes"`
	ParamsName    string     `json:"params_cache_identifier"`
	Partitions    int        `json:"partitions"`
	PieceCommD    string     `json:"piece_commitment"`
	PieceUnpadded uint64     `json:"piece_unpadded_bytes"`
	PorepID       string     `json:"porep_id"`
	ProverID      string     `json:"prover_id"`
	PorepNumber   *int32     `json:"registered_proof_porep_number"` // null for the unregistered sizes
	Registered    *string    `json:"registered_seal_proof"`         // the same
	ReplicaID     string     `json:"replica_id"`
	SectorID      uint64     `json:"sector_id"`
	SectorSize    uint64     `json:"sector_size"`
	Seed          string     `json:"seed"`
	Ticket        string     `json:"ticket"`
	TreeShape     string     `json:"tree_shape"`
}

// StatementJSON is the statement file of a sector, as the reference writes it and c1.ParseStatement reads it:
// what was put in, and the commitments. document is the sector's C1 output as JSON.
func (s *Sector) StatementJSON(document []byte) ([]byte, error) {
	st := &s.Output.Statement
	shape := st.Shape
	digest := sha256.Sum256(document)
	out := statementJSON{
		APIFeatures:  []string{},
		APIVersion:   st.Version.String(),
		C1Bytes:      len(document),
		C1SHA256:     hex.EncodeToString(digest[:]),
		C1Type:       "filecoin_proofs::SealCommitPhase1Output<Tree>",
		Challenges:   s.Challenges,
		PerPartition: shape.ChallengesPerPartition,
		CommC:        hexText(s.CommC),
		CommD:        hexText(st.CommD),
		CommR:        hexText(st.CommR),
		CommRLast:    hexText(s.CommRLast),
		Data:         "zeros",
		Layers:       shape.Layers,
		Name:         s.Name,
		Nodes:        shape.Nodes(),
		ParamsName:   shape.ParamsBaseName(),
		Partitions:   len(s.Challenges),
		// One piece fills the sector; a node holds 254 of 256 bits.
		PieceCommD:    hexText(st.CommD),
		PieceUnpadded: shape.SectorBytes / 128 * 127,
		PorepID:       hexText(st.PorepID),
		ProverID:      hexText(s.IDs.ProverID),
		ReplicaID:     hexText(st.ReplicaID),
		SectorID:      s.IDs.SectorID,
		SectorSize:    shape.SectorBytes,
		Seed:          hexText(st.Seed),
		Ticket:        hexText(st.Ticket),
		TreeShape:     "merkletree-poseidon_hasher-" + shape.TreeName(),
	}
	if r := st.Registered; r != nil {
		out.PorepNumber, out.Registered = &r.Number, &r.Name
		out.C1Type = "filecoin_proofs_api::seal::SealCommitPhase1Output"
	}
	text, err := json.Marshal(&out, jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, status.Wrap(status.Internal, "synthetic.StatementJSON", s.Name, err)
	}
	return append(text, '\n'), nil
}

func hexText(h porep.Hash) string { return hex.EncodeToString(h[:]) }

// MaxDocumentBytes bounds the length of the C1 output as JSON, so that a caller can make room for it.
func (s *Sector) MaxDocumentBytes() int {
	const (
		hash   = 32*len("255,") + len("[],")
		struc  = 200 // keys, brackets and numbers of any of the structs
		levels = 40  // the same of a path element
	)
	proof := func(p *porep.MerkleProof) int {
		n := struc + 2*hash
		for _, path := range [][]porep.PathElement{p.Base, p.Sub, p.Top} {
			for i := range path {
				n += levels + len(path[i].Hashes)*hash
			}
		}
		return n
	}
	columns := func(list []porep.ColumnProof) (n int) {
		for i := range list {
			n += struc + len(list[i].Rows)*hash + proof(&list[i].Inclusion)
		}
		return n
	}
	total := 2*struc + 5*hash
	for _, challenges := range s.Output.Partitions {
		for i := range challenges {
			c := &challenges[i]
			total += 2*struc + proof(&c.CommD) + proof(&c.CommRLast) + columns([]porep.ColumnProof{c.Column}) + columns(c.DRG) + columns(c.Expander)
			total += (len(c.Labeling) + 1) * (struc + porep.LabelParents*hash)
		}
	}
	return total
}
