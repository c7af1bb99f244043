package cuda

import (
	"context"
	"fmt"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// group is the group of a block's points.
func group(b groth16.Block) points.Group {
	if b == groth16.BlockB2 {
		return points.G2
	}
	return points.G1
}

// loadEncoded copies a block up as the file has it, and lets the device decode and check it in place: on the CPU that takes
// most of a microsecond a point. The partition's status word serves for the fault.
func (p *partition) loadEncoded(ctx context.Context, op string, srs groth16.EncodedSRS, b groth16.Block, r *resident) error {
	count, pointBytes := p.shape.points[b], group(b).PointBytes()
	err := p.backend.owner.upload(ctx, op, p.session, r.arena.Base(), count, pointBytes, p.backend.threads,
		func(ctx context.Context, to unsafe.Pointer, from, n int) error {
			return srs.ReadEncoded(ctx, b, from, unsafe.Slice((*byte)(to), int64(n)*pointBytes))
		})
	if err != nil {
		return err
	}
	var word [1]uint64
	err = p.do(ctx, op, func(ctx context.Context, s *session) error {
		fault := p.at(p.layout.failed)
		if err := s.compute.Fill8(fault, 0xff, points.FaultBytes); err != nil {
			return err
		}
		if err := s.points.Decode(s.compute, group(b), r.arena.Base(), r.arena.Base(), 0, count, fault); err != nil {
			return err
		}
		return fetch(ctx, s, fault, word[:])
	})
	if err != nil {
		return err
	}
	if index, fault, found := points.FaultOf(word[0]); found {
		return badPoint(ctx, op, srs, b, int(index), fault)
	}
	return nil
}

// badPoint is the error of the point that the device refuses, as the file's own reader words it.
func badPoint(ctx context.Context, op string, srs groth16.EncodedSRS, b groth16.Block, index int, fault points.Fault) (err error) {
	if b == groth16.BlockB2 {
		err = srs.ReadG2(ctx, index, make([]bls.G2Affine, 1))
	} else {
		err = srs.ReadG1(ctx, b, index, make([]bls.G1Affine, 1))
	}
	if err != nil {
		return err
	}
	return status.New(status.SelfCheck, op, fmt.Sprintf("%s[%d]", b, index), "a point that is good on the CPU to be good on the GPU", fmt.Sprintf("fault %d", fault))
}
