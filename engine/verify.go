package engine

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Verify tells whether a proof shows that a sector is sealed as claimed. A well-formed proof of something
// else is false; what cannot be looked at is an error: Input for commitments that are zero or not canonical,
// a proof of the wrong length or with points that are malformed, off the curve, outside the group or
// infinity, and for an unknown registered proof; Params; Unsupported for non-interactive PoRep, whose proofs
// are aggregates; Caller for a closed engine; Cancelled. The rules are those of the reference's verify_seal.
func (e *Engine) Verify(ctx context.Context, request *VerifyRequest) (ok bool, err error) {
	const op = "engine.Verify"
	defer status.Recover(op, &err)
	if request == nil {
		return false, status.New(status.Caller, op, "request", "one", "nothing")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return false, err
	}
	defer leave()
	registered, err := porep.RegisteredByNumber(request.RegisteredProof)
	if err != nil {
		return false, err
	}
	if registered.Kind == porep.NonInteractive {
		return false, aggregation(op)
	}
	st := &porep.Statement{
		Shape: registered.Shape, Registered: registered, Version: registered.Version, Kind: registered.Kind,
		PorepID: registered.PorepID(), CommD: request.CommD, CommR: request.CommR, Ticket: request.Ticket, Seed: request.Seed,
	}
	st.ReplicaID = st.RecomputeReplicaID(request.IDs.SectorID, request.IDs.ProverID)
	return e.verify(ctx, op, st, request.Proof, request.Params)
}

// VerifyC1Request is a proof of the sector that a C1 output is about.
type VerifyC1Request struct {
	C1        []byte     // only its statement is used
	Statement []byte     // as in ProveRequest
	IDs       *SectorIDs // as in ProveRequest
	Proof     []byte     // 192 bytes a partition, also for the non-interactive kinds
	Params    ParamSource
}

// VerifyC1 is Verify against the statement of a C1 output; it serves the unregistered sizes and the
// partitions' proofs of non-interactive sectors too. The C1 output must be one that Prove would parse.
func (e *Engine) VerifyC1(ctx context.Context, request *VerifyC1Request) (ok bool, err error) {
	const op = "engine.VerifyC1"
	defer status.Recover(op, &err)
	if request == nil || len(request.C1) == 0 {
		return false, status.New(status.Caller, op, "C1", "the output of Commit phase 1", "nothing")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return false, err
	}
	defer leave()
	sector, err := e.parse(host.WithPool(ctx, e.pool()), request.C1, request.Statement, request.IDs)
	if err != nil {
		return false, err
	}
	return e.verify(ctx, op, &sector.Statement, request.Proof, request.Params)
}

// verify checks the proofs of all partitions against inputs that follow from the statement alone.
func (e *Engine) verify(ctx context.Context, op string, st *porep.Statement, proof []byte, source ParamSource) (bool, error) {
	if err := st.Validate(); err != nil {
		return false, err
	}
	partitions := st.PartitionCount()
	if len(proof) == 0 {
		return false, status.New(status.Input, op, "proof", fmt.Sprintf("%d bytes", partitions*groth16.ProofBytes), "none")
	}
	proofs, err := groth16.DecodeProofs(proof, partitions)
	if err != nil {
		return false, err
	}
	if st.Shape.ChallengesPerPartition*partitions < st.Shape.MinChallengesOf(st.Kind) {
		return false, nil
	}
	key, path, err := e.useKey(source, st.Shape)
	if err != nil {
		return false, err
	}
	inputs := make([][]fr.Element, partitions)
	for k := range inputs {
		if err := ctx.Err(); err != nil {
			return false, status.Wrap(status.Cancelled, op, "", err)
		}
		if inputs[k], err = st.PublicInputs(k); err != nil {
			return false, err
		}
		if got := key.InputCount(); got != len(inputs[k]) {
			return false, status.New(status.Params, op, path+": ic", fmt.Sprintf("%d points for %s", len(inputs[k])+1, st.Shape.OracleName), fmt.Sprint(got+1))
		}
	}
	failed, err := groth16.VerifyBatch(key, proofs, inputs)
	if err != nil {
		return false, err
	}
	if len(failed) > 0 {
		e.log("info", "%s: not verified: partitions %v", op, failed)
	}
	return len(failed) == 0, nil
}
