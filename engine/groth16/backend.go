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

// Sums are the five multi-scalar multiplications of a proof, and the public inputs that expand computed
// (with the leading one).
type Sums struct {
	H, L, A, B1 bls.G1Jac
	B2          bls.G2Jac
	Inputs      []fr.Element
}

// Stage is one step of a partition on a backend. A scheduler runs the stages of a partition in order; it
// grants Needs before Run and takes them back after it.
type Stage struct {
	Name  string // "expand", "evaluate", "quotient", "msm_h", "msm_l", "msm_a", "msm_b1", "msm_b2"
	Needs host.Needs
	Run   func(ctx context.Context) error
}

// Partition is one proof under way on a backend.
type Partition interface {
	// Stages lists the steps in order; each is run once.
	Stages() []Stage
	// Sums returns the result after the last stage.
	Sums() (*Sums, error)
	// Close gives back all memory, whatever has run. It may be called twice.
	Close()
}

// Plan is what a partition needs on a backend, known before it is admitted.
type Plan struct {
	HostBytes   int64 // reserved from the host budget for the whole partition
	DeviceBytes int64 // 0 on the CPU
	Threads     int
}

// Backend carries out the stages of proofs. It knows no Filecoin: it sees a program, inputs, an SRS.
type Backend interface {
	// Name is "cpu" or the device's name, for logs and timelines.
	Name() string
	// Plan is a pure function of the program and the machine.
	Plan(p *circuit.Program) (Plan, error)
	// Begin starts a partition; arena is a block of at least Plan's HostBytes, owned by the partition until Close.
	Begin(p *circuit.Program, in *circuit.Inputs, srs SRS, arena *host.Arena) (Partition, error)
	// PlanAssignment and BeginAssignment are the same for values made elsewhere. The plan is a pure function of
	// the assignment's lengths and densities. A, B and C are read until the stage "evaluate" has ended, which
	// checks every row; the rest of the assignment until Close.
	PlanAssignment(a *Assignment) (Plan, error)
	// BeginAssignment: see PlanAssignment.
	BeginAssignment(a *Assignment, srs SRS, arena *host.Arena) (Partition, error)
}
