package params

import (
	"context"
	"fmt"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// runOn is run on a device. What the device finds is looked at again here, so that the error is the same as run's: that of
// the lowest chunk with a fault, in which the encoding comes before the order.
func (c *checker) runOn(ctx context.Context, device PointDevice) (err error) {
	defer status.Recover("params.Check", &err)
	for _, n := range groupSizes(c.file) {
		c.total += float64(n)
	}
	for i, blocks := range [][]groth16.Block{g1Blocks, g2Blocks} {
		points := groupSizes(c.file)[i]
		if points == 0 {
			continue
		}
		order := groth16.OrderCheck{Exact: points <= c.exactPoints, BucketBits: c.bucketBits, Rounds: c.rounds}
		found, err := device.CheckPoints(ctx, c.file, blocks, order, func(points int) { c.advance(float64(points)) })
		if err != nil {
			return err
		}
		switch {
		case found.Encoding.Known && !(found.Order.Known && chunkBefore(found.Order, found.Encoding)):
			return c.badEncoding(ctx, found.Encoding)
		case found.Order.Known:
			return c.badOrder(ctx, found.Order)
		case found.Unnamed:
			return c.changed()
		}
	}
	return nil
}

// chunkBefore tells whether p's chunk is before the other's.
func chunkBefore(p, other groth16.PointAt) bool {
	if p.Block != other.Block {
		return p.Block < other.Block
	}
	return p.Index/readChunk < other.Index/readChunk
}

// badEncoding is the error of a point that a device does not take for one of the curve.
func (c *checker) badEncoding(ctx context.Context, at groth16.PointAt) error {
	if _, err := c.inGroup(ctx, at); err != nil {
		return err
	}
	return c.disagree(at)
}

// badOrder is the error of a point that a device finds outside the group.
func (c *checker) badOrder(ctx context.Context, at groth16.PointAt) error {
	good, err := c.inGroup(ctx, at)
	switch {
	case err != nil:
		return err
	case good:
		return c.disagree(at)
	}
	return c.file.pointError("params.Check", at.Block, at.Index, faultSubgroup)
}

// inGroup reads one point and tells whether its order is r.
func (c *checker) inGroup(ctx context.Context, at groth16.PointAt) (bool, error) {
	if at.Block == groth16.BlockB2 {
		var p [1]bls.G2Affine
		err := c.file.ReadG2(ctx, at.Index, p[:])
		return err == nil && p[0].IsInSubGroup(), err
	}
	var p [1]bls.G1Affine
	err := c.file.ReadG1(ctx, at.Block, at.Index, p[:])
	return err == nil && p[0].IsInSubGroup(), err
}

func (c *checker) disagree(at groth16.PointAt) error {
	return status.New(status.SelfCheck, "params.Check", fmt.Sprintf("%s: %s[%d]", c.file.path, at.Block, at.Index), "the same answer of device and CPU", "a point that is good on the CPU alone")
}

// changed is the error of bucket sums that no point accounts for.
func (c *checker) changed() error {
	return status.New(status.Params, "params.Check", c.file.path, "every bucket sum of order r",
		"a bad sum of good points: the file or the memory changed between two reads")
}
