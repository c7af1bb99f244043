package setup

import (
	"context"
	"crypto/sha256"
	"fmt"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Spec says which development parameters to make: known before any of them is. It touches no device. Immutable.
type Spec struct {
	tables  *Tables
	secrets Secrets
	id      string
}

// NewSpec makes the spec of a program's parameters. Errors: Build's.
func NewSpec(p *circuit.Program, secrets *Secrets) (*Spec, error) {
	t, err := Build(p)
	if err != nil {
		return nil, err
	}
	s := &Spec{tables: t, secrets: *secrets}
	sum := sha256.New()
	for _, e := range []*fr.Element{&secrets.Alpha, &secrets.Beta, &secrets.Gamma, &secrets.Delta, &secrets.Tau} {
		raw := e.Bytes()
		sum.Write(raw[:])
	}
	c := t.Counts()
	s.id = fmt.Sprintf("setup of %s: %d rows, ic=%d h=%d l=%d a=%d b=%d, secrets %x", t.name, t.rows, c.IC, c.H, c.L, c.A, c.B, sum.Sum(nil)[:16])
	return s, nil
}

// ID is the same for the same program and secrets, in every process: programs are told apart by name and counts.
func (s *Spec) ID() string { return s.id }

// Name is the program's.
func (s *Spec) Name() string { return s.tables.name }

// Counts are the numbers of points.
func (s *Spec) Counts() Counts { return s.tables.Counts() }

// Len is the number of points of a block.
func (s *Spec) Len(b groth16.Block) int { return s.tables.Counts().Of(b) }

// ScratchBytes is the scratch memory that Begin takes on a device.
func (s *Spec) ScratchBytes(d *driver.Device) int64 { return ScratchBytes(s.tables, d) }

// Begin is Maker.Begin for the spec.
func (s *Spec) Begin(ctx context.Context, m *Maker, stream *driver.Stream, scratch driver.Ptr) (*Making, error) {
	return m.Begin(ctx, stream, s.tables, &s.secrets, scratch)
}

// Fetch copies bytes [offset, offset+len(into)) of a block's points, affine and in Montgomery form, from wherever they are.
type Fetch func(ctx context.Context, b groth16.Block, offset int64, into []byte) error

// SRS is a set of development parameters whose points are made, not read from a file.
type SRS struct {
	*Spec
	key   *groth16.VerifyingKey
	fetch Fetch
}

var _ groth16.SRS = (*SRS)(nil)

// SRS joins the spec with its key, as Making has it, and a way to its points, which several goroutines may take at once.
func (s *Spec) SRS(key *groth16.VerifyingKey, fetch Fetch) *SRS { return &SRS{s, key, fetch} }

// VerifyingKey is the key. It must not be written.
func (s *SRS) VerifyingKey() *groth16.VerifyingKey { return s.key }

// ReadG1 copies points [from, from+len(dst)) of a G1 block. Errors: Caller for a range outside the block; those of the
// fetch.
func (s *SRS) ReadG1(ctx context.Context, b groth16.Block, from int, dst []bls.G1Affine) error {
	const op = "setup.ReadG1"
	if b >= groth16.BlockB2 {
		return status.New(status.Caller, op, s.id, "a block of G1 points", fmt.Sprintf("block %d", b))
	}
	return read(ctx, s, op, b, from, dst)
}

// ReadG2 is ReadG1 for the block b_g2.
func (s *SRS) ReadG2(ctx context.Context, from int, dst []bls.G2Affine) error {
	return read(ctx, s, "setup.ReadG2", groth16.BlockB2, from, dst)
}

func read[P any](ctx context.Context, s *SRS, op string, b groth16.Block, from int, dst []P) error {
	if n := s.Len(b); from < 0 || from > n || len(dst) > n-from {
		return status.New(status.Caller, op, fmt.Sprintf("%s: %s", s.id, b), fmt.Sprintf("a range of its %d points", n), fmt.Sprintf("%d points from %d", len(dst), from))
	}
	if len(dst) == 0 {
		return nil
	}
	size := int64(unsafe.Sizeof(dst[0]))
	return s.fetch(ctx, b, int64(from)*size, unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), bytesOf(dst)))
}
