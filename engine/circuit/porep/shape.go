package porep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// NodeBytes is the size of a node: one scalar.
const NodeBytes = 32

// Shape is everything about a sector size that the circuit and its parameters depend on. Shapes are shared
// and compared by pointer: nobody may write them.
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

// testShape and productionShape fill in what filecoin-proofs' constants.rs gives by sector size. 4, 16 and
// 32 KiB have no registered proof; they are the small sectors with the trees of 16 MiB and 1 GiB, of 32 GiB
// and of 64 GiB.
func testShape(name, oracleName string, bytes uint64, sub, top int) *Shape {
	return &Shape{
		Name: name, OracleName: oracleName, SectorBytes: bytes, BaseArity: 8, SubArity: sub, TopArity: top,
		Layers: 2, ChallengesPerPartition: 2,
		Partitions: 1, MinChallenges: 2, PartitionsNI: 13, MinChallengesNI: 26,
	}
}

func productionShape(name, oracleName string, bytes uint64, sub, top int) *Shape {
	return &Shape{
		Name: name, OracleName: oracleName, SectorBytes: bytes, BaseArity: 8, SubArity: sub, TopArity: top,
		Layers: 11, ChallengesPerPartition: 18,
		Partitions: 10, MinChallenges: 176, PartitionsNI: 126, MinChallengesNI: 2253,
	}
}

// The shapes of the registered proofs, by name, and all shapes in order of size.
var (
	shape2KiB   = testShape("2KiB", "porep-2k", 2<<10, 0, 0)
	shape8MiB   = testShape("8MiB", "porep-8m", 8<<20, 0, 0)
	shape512MiB = testShape("512MiB", "porep-512m", 512<<20, 0, 0)
	shape32GiB  = productionShape("32GiB", "porep-32g", 32<<30, 8, 0)
	shape64GiB  = productionShape("64GiB", "porep-64g", 64<<30, 8, 2)

	shapes = []*Shape{
		shape2KiB,
		testShape("4KiB", "porep-4k", 4<<10, 2, 0),
		testShape("16KiB", "porep-16k", 16<<10, 8, 0),
		testShape("32KiB", "porep-32k", 32<<10, 8, 2),
		shape8MiB,
		shape512MiB,
		shape32GiB,
		shape64GiB,
	}
)

// Shapes returns all shapes in order of size.
func Shapes() []*Shape { return append([]*Shape(nil), shapes...) }

// ShapeByName finds a shape by its command-line name, "32GiB". Fails with Caller.
func ShapeByName(name string) (*Shape, error) {
	return findShape("porep.ShapeByName", status.Caller, name, func(s *Shape) string { return s.Name })
}

// ShapeBySize finds a shape by its sector size in bytes. Fails with Unsupported.
func ShapeBySize(sectorBytes uint64) (*Shape, error) {
	return findShape("porep.ShapeBySize", status.Unsupported, fmt.Sprint(sectorBytes), func(s *Shape) string { return fmt.Sprint(s.SectorBytes) })
}

// findShape compares want with what key says of each shape.
func findShape(op string, kind status.Kind, want string, key func(*Shape) string) (*Shape, error) {
	known := make([]string, len(shapes))
	for i, s := range shapes {
		if known[i] = key(s); known[i] == want {
			return s, nil
		}
	}
	return nil, status.New(kind, op, "sector size", "one of "+strings.Join(known, ", "), fmt.Sprintf("%q", want))
}

// Nodes is the number of nodes of a layer.
func (s *Shape) Nodes() uint64 { return s.SectorBytes / NodeBytes }

// DataDepth is the length of a path in the binary SHA-256 tree of the data.
func (s *Shape) DataDepth() int { return bits.Len64(s.Nodes()) - 1 }

// BaseDepth is the length of a path in one base tree of a Poseidon tree, from the leaf upwards.
func (s *Shape) BaseDepth() int {
	leaves := s.Nodes() / uint64(max(s.SubArity, 1)*max(s.TopArity, 1))
	return (bits.Len64(leaves) - 1) / (bits.Len(uint(s.BaseArity)) - 1)
}

// SubDepth is 1 where base trees are joined by a level of SubArity, else 0.
func (s *Shape) SubDepth() int { return min(s.SubArity, 1) }

// TopDepth is 1 where those are joined by a level of TopArity, else 0.
func (s *Shape) TopDepth() int { return min(s.TopArity, 1) }

// TreeName names the Poseidon tree as the reference does, "8-8-0".
func (s *Shape) TreeName() string {
	return fmt.Sprintf("%d-%d-%d", s.BaseArity, s.SubArity, s.TopArity)
}

// PartitionsOf is the number of partitions of a proof.
func (s *Shape) PartitionsOf(kind ChallengeKind) int {
	if kind == NonInteractive {
		return s.PartitionsNI
	}
	return s.Partitions
}

// MinChallengesOf is the fewest challenges, over all partitions, that a verifier accepts.
func (s *Shape) MinChallengesOf(kind ChallengeKind) int {
	if kind == NonInteractive {
		return s.MinChallengesNI
	}
	return s.MinChallenges
}

// CircuitIdentifier is the text that the reference hashes for the name of the parameter files (the
// ParameterSetMetadata of storage-proofs-core).
func (s *Shape) CircuitIdentifier() string {
	return fmt.Sprintf("layered_drgporep::PublicParams{ graph: stacked_graph::StackedGraph{expansion_degree: %d "+
		"base_graph: drgraph::BucketGraph{size: %d; degree: %d; hasher: poseidon_hasher} }, "+
		"challenges: LayerChallenges { layers: %d, max_count: %d }, tree: merkletree-poseidon_hasher-%s }",
		ExpanderDegree, s.Nodes(), DRGDegree, s.Layers, s.ChallengesPerPartition, s.TreeName())
}

// ParamsBaseName is the reference's name of the circuit's parameter files without version and extension:
// the files are v28-NAME.params and v28-NAME.vk.
func (s *Shape) ParamsBaseName() string {
	digest := sha256.Sum256([]byte(s.CircuitIdentifier()))
	return "stacked-proof-of-replication-merkletree-poseidon_hasher-" + s.TreeName() + "-sha256_hasher-" + hex.EncodeToString(digest[:])
}
