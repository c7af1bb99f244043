package porep

// ChallengeKind says how the challenged nodes are drawn.
type ChallengeKind uint8

// The three kinds: from the interactive seed; from a pool fixed by the replica and chosen by the seed
// (FIP-0059); from replica id and comm_r alone (FIP-0090).
const (
	Interactive ChallengeKind = iota
	Synthetic
	NonInteractive
)

// APIVersion is the version of the proofs API; it decides how DRG parents are drawn.
type APIVersion uint8

// The versions. 1.0 graphs differ from the two others; 1.1 and 1.2 graphs are equal.
const (
	V1_0 APIVersion = iota
	V1_1
	V1_2
)

// Shape is everything about a sector size that the circuit and its parameters depend on.
type Shape struct {
	Name                   string // command-line name, "32GiB"
	OracleName             string // "porep-32g"
	SectorBytes            uint64
	BaseArity              int // 8
	SubArity               int // 0: no such level
	TopArity               int // 0: no such level
	Layers                 int
	ChallengesPerPartition int
	Partitions             int // interactive and synthetic
	PartitionsNI           int // non-interactive
	MinChallenges          int // over all partitions, interactive and synthetic
	MinChallengesNI        int
}

// RegisteredProof is a registered seal proof type. Number is its value in the C enum, the Go ABI and porep_id.
type RegisteredProof struct {
	Number  int32
	Name    string // Rust variant name, "StackedDrg32GiBV1_1"
	Tag     string // key below vanilla_proofs: the plain V1 name of the size
	Shape   *Shape
	Version APIVersion
	Kind    ChallengeKind
}

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
