package engine

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// ReadC1Request is a C1 output to look at.
type ReadC1Request struct {
	C1        []byte     // borrowed until ReadC1 returns
	Statement []byte     // as in ProveRequest
	IDs       *SectorIDs // as in ProveRequest
}

// C1Info is what a C1 output claims.
type C1Info struct {
	Shape           string // "2KiB"
	RegisteredProof int32  // -1 for the unregistered test sizes
	Challenges      int    // of a partition
	PorepID         [32]byte
	ReplicaID       [32]byte
	CommR, CommD    [32]byte
	Ticket, Seed    [32]byte
	// Inputs are the public inputs of each partition, without the constant one; derived from the above alone.
	Inputs [][]fr.Element
}

// ReadC1 tells what a C1 output claims, without proving it. The output must be one that Prove would parse.
// Errors: Caller for no C1 or a closed engine, Input, Unsupported, Cancelled.
func (e *Engine) ReadC1(ctx context.Context, request *ReadC1Request) (info *C1Info, err error) {
	const op = "engine.ReadC1"
	defer status.Recover(op, &err)
	if request == nil || len(request.C1) == 0 {
		return nil, status.New(status.Caller, op, "C1", "the output of Commit phase 1", "nothing")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	sector, err := e.parse(host.WithPool(ctx, e.pool()), request.C1, request.Statement, request.IDs)
	if err != nil {
		return nil, err
	}
	st := &sector.Statement
	if err := st.Validate(); err != nil {
		return nil, err
	}
	info = &C1Info{
		Shape: st.Shape.Name, RegisteredProof: -1, Challenges: st.Shape.ChallengesPerPartition, PorepID: st.PorepID,
		ReplicaID: st.ReplicaID, CommR: st.CommR, CommD: st.CommD, Ticket: st.Ticket, Seed: st.Seed,
		Inputs: make([][]fr.Element, st.PartitionCount()),
	}
	if st.Registered != nil {
		info.RegisteredProof = st.Registered.Number
	}
	for k := range info.Inputs {
		if err := ctx.Err(); err != nil {
			return nil, status.Wrap(status.Cancelled, op, "", err)
		}
		if info.Inputs[k], err = st.PublicInputs(k); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// CircuitDigest counts and digests the circuit of a sector size, "2KiB". Errors: Caller for an unknown size or a
// closed engine, Cancelled.
func (e *Engine) CircuitDigest(ctx context.Context, shapeName string) (d *circuit.ProgramDigest, err error) {
	const op = "engine.CircuitDigest"
	defer status.Recover(op, &err)
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	return porep.Program(shape).Digest(ctx, e.limits.Threads)
}
