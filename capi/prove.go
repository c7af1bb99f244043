package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// proofBytes is SEALC2_PROOF_BYTES.
const proofBytes = 192

// listener is what a caller wants to hear during a proof; nil functions are not called. true means stop.
type listener struct {
	progress  func(engine.Progress) bool
	partition func(index int, proof [proofBytes]byte) bool
	// capacity is how many bytes of proof the caller has room for; needed learns how many there will be.
	// A job that would not fit ends when its number of partitions is known, before it proves anything.
	capacity uint64
	needed   func(bytes uint64)
}

// run proves on s, under the caller's job if there is one, and keeps the stage times. Callbacks come one at
// a time.
func (s *session) run(op string, request *engine.ProveRequest, j *job, hear listener) ([]byte, error) {
	return s.listen(op, j, hear, func(ctx context.Context, progress func(engine.Progress), partition func(int, [proofBytes]byte)) (*engine.ProveResult, error) {
		request.Progress, request.Partition = progress, partition
		return s.engine.Prove(ctx, request)
	})
}

// listen runs prove as run does; partition is nil where nobody listens.
func (s *session) listen(op string, j *job, hear listener,
	prove func(ctx context.Context, progress func(engine.Progress), partition func(int, [proofBytes]byte)) (*engine.ProveResult, error)) ([]byte, error) {
	if j != nil {
		if err := context.Cause(j.ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := s.under(j)
	defer cancel(nil)
	var turn sync.Mutex
	partitions := 0
	progress := func(p engine.Progress) {
		turn.Lock()
		defer turn.Unlock()
		if partitions == 0 && p.Partitions > 0 {
			partitions = p.Partitions
			need := uint64(partitions) * proofBytes
			hear.needed(need)
			if need > hear.capacity {
				cancel(tooSmall(op, need, hear.capacity))
				return
			}
		}
		if hear.progress != nil && ctx.Err() == nil && hear.progress(p) {
			cancel(status.New(status.Cancelled, op, "", "", "cancelled by the progress callback"))
		}
	}
	var partition func(int, [proofBytes]byte)
	if hear.partition != nil {
		partition = func(index int, proof [proofBytes]byte) {
			turn.Lock()
			defer turn.Unlock()
			if ctx.Err() == nil && hear.partition(index, proof) {
				cancel(status.New(status.Cancelled, op, "", "", "cancelled by the partition callback"))
			}
		}
	}
	result, err := prove(ctx, progress, partition)
	if err != nil {
		return nil, ended(ctx, err)
	}
	need := uint64(len(result.Proof))
	hear.needed(need)
	if need > hear.capacity {
		return nil, tooSmall(op, need, hear.capacity)
	}
	s.mu.Lock()
	s.stages = slices.Clone(result.Stages)
	s.mu.Unlock()
	return result.Proof, nil
}

// ended is the error of a call under ctx: where it was cancelled, who did it.
func ended(ctx context.Context, err error) error {
	var own *status.Error
	if ctx.Err() != nil && status.KindOf(err) == status.Cancelled && errors.As(context.Cause(ctx), &own) {
		return own
	}
	return err
}

func tooSmall(op string, need, capacity uint64) error {
	return status.New(status.Caller, op, "proof_cap", fmt.Sprintf("room for %d bytes", need), fmt.Sprint(capacity))
}

// lastStages returns the stage times of the proof that finished last.
func (s *session) lastStages() []engine.StageTime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stages
}

// scalars reads a caller's scalars: 32 bytes each, little-endian, below the group order.
func scalars(op, name string, data []byte) ([]fr.Element, error) {
	out := make([]fr.Element, len(data)/fr.Bytes)
	for i := range out {
		canonical := [fr.Bytes]byte(data[i*fr.Bytes:])
		slices.Reverse(canonical[:])
		if err := out[i].SetBytesCanonical(canonical[:]); err != nil {
			return nil, status.New(status.Caller, op, fmt.Sprintf("%s[%d]", name, i), "a scalar below the group order",
				fmt.Sprintf("%x", canonical))
		}
	}
	return out, nil
}
