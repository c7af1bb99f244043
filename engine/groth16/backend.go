package groth16

import (
	"context"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/host"
)

// Block names one of the five point vectors of an SRS, in the order of a .params file.
type Block uint8

// The blocks: H, L, A and B1 hold G1 points, B2 holds G2 points.
const (
	BlockH Block = iota
	BlockL
	BlockA
	BlockB1
	BlockB2
	BlockCount
)

// String returns the block's name as bellperson's parameter file calls it.
func (b Block) String() string { return [...]string{"h", "l", "a", "b_g1", "b_g2"}[b] }

// SRS hands out the points of one parameter set. Implementations read a file in chunks or hold points in
// memory; all methods may be called by several goroutines at once.
type SRS interface {
	// ID is stable for the same content: backends key what they keep resident by it.
	ID() string
	// VerifyingKey is the key at the head of the parameter set.
	VerifyingKey() *VerifyingKey
	// Len is the number of points of a block.
	Len(b Block) int
	// ReadG1 decodes points [from, from+len(dst)) of a G1 block into dst.
	ReadG1(ctx context.Context, b Block, from int, dst []bls.G1Affine) error
	// ReadG2 decodes points [from, from+len(dst)) of BlockB2 into dst.
	ReadG2(ctx context.Context, from int, dst []bls.G2Affine) error
}

// EncodedSRS is an SRS whose points a backend may decode itself.
type EncodedSRS interface {
	SRS
	// ReadEncoded reads points [from, from+n) of a block as bellperson writes them, n times G1's 96 or G2's 192 bytes:
	// uncompressed, big-endian, unchecked. What a backend then refuses, ReadG1 or ReadG2 of that point must name.
	ReadEncoded(ctx context.Context, b Block, from int, dst []byte) error
}

// Sums are the five multi-scalar multiplications of a proof.
type Sums struct {
	H, L, A, B1 bls.G1Jac
	B2          bls.G2Jac
}

// Batch is some partitions of one circuit under way on a backend, which may prove them together.
type Batch interface {
	// Stages lists the steps, by name "expand", "upload", "evaluate", "quotient", "msm_h", "msm_l", "msm_a", "msm_b1", "msm_b2" and others of a
	// backend's own. Their order is one in which they may run one by one; each is run once. Until the stage
	// that is last for a partition has ended, what Begin was given is in use.
	Stages() []host.Stage
	// Inputs are partition k's public inputs with the leading one, once its stage "expand" has ended.
	Inputs(k int) []fr.Element
	// Sums returns the result of partition k after the last of its stages.
	Sums(k int) (*Sums, error)
	// Close gives back all memory, whatever has run. It may be called twice.
	Close()
}

// Plan is what a job's partitions need on a backend, known before they are admitted.
type Plan struct {
	Batch       int   // partitions that are proved together, at least 1
	Ahead       int   // batches that may be under way at once, at least 1
	HostBytes   int64 // reserved from the host budget for each batch
	DeviceBytes int64 // for each batch; 0 on the CPU
	// Shared is what all batches by this plan have together: on the device, parameters and the memory that one at a time computes in.
	Shared  []host.Shared
	Threads int // that a stage keeps busy
	// Streams says that points come up from the host again for each batch.
	Streams bool
	// CheckFirst says that a proof takes so much longer than evaluating its rows that all partitions are evaluated before the
	// first is proved.
	CheckFirst bool
	// By is what the backend itself goes by when it begins a batch of the plan; nobody else looks at it.
	By any
}

// Backend carries out the stages of proofs. It knows no Filecoin: it sees a program, inputs, an SRS.
type Backend interface {
	// Name is "cpu" or the device's name, for logs and timelines.
	Name() string
	// Plan is a pure function of the program, the number of partitions that a job has, and the machine, of which others may have a part (Shrinker).
	Plan(p *circuit.Program, partitions int) (Plan, error)
	// Begin starts a batch of count partitions by a Plan of the same program, at most its Batch; inputs is called
	// once for each, by its stage "expand". arena is a block of at least the plan's HostBytes, owned by the batch until Close.
	Begin(p *circuit.Program, plan Plan, count int, inputs func(k int) (*circuit.Inputs, error), srs SRS, arena *host.Arena) (Batch, error)
	// PlanAssignment and BeginAssignment are the same for values made elsewhere, all of one shape. The plan is the same for all
	// of the same lengths and densities, and holds for any values; its times may be estimated by some of the first one's. A, B and C of an assignment are read until its stage "evaluate" has ended, which
	// checks every row, and until those have that say they read it again (host.Stage); the rest of it until Close.
	PlanAssignment(a *Assignment, partitions int) (Plan, error)
	// BeginAssignment: see PlanAssignment.
	BeginAssignment(list []*Assignment, plan Plan, srs SRS, arena *host.Arena) (Batch, error)
}
