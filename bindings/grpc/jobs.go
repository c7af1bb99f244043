package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	rpcstatus "google.golang.org/grpc/status"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// Why a job was cancelled, as its error then says.
const (
	asked    = "cancelled by CancelProof"
	deserted = "nobody waits for it any more"
	ending   = "the server is ending"
)

var errEnding = rpcstatus.Error(codes.Unavailable, ending)

// roomTime is how long a submission may look for memory in the engine's queue: no wait, but time enough to take what is there.
const roomTime = 250 * time.Millisecond

// enqueue hands a submission to the engine, which copies it, or joins the job that is already there. waits: the caller waits and must call
// leave; else the job runs though nobody does.
func (s *Server) enqueue(ctx context.Context, in *input, waits bool) (*engine.Job, error) {
	request := &engine.ProveRequest{C1: in.vanilla, Params: s.config.Params, OnChain: true}
	if actor := in.fields.GetMinerId(); actor != 0 {
		request.IDs = &engine.SectorIDs{SectorID: in.fields.GetSectorNumber()}
		binary.PutUvarint(request.IDs.ProverID[:], actor) // unsigned LEB128, at most 10 bytes
	}
	options := engine.SubmitOptions{
		ID: engine.JobID(in.fields.GetRequestId()), Class: classOf(in.fields.GetPriority()), Room: roomTime, QueueLimit: s.config.Waiting,
		JudgeLater: true, Replace: true,
	}
	// Nobody leaves a job between its being joined and counted, so the mutex is held while the engine copies: some hundredths of a second.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errEnding
	}
	before, _ := s.config.Engine.Job(options.ID) // nil where there is none
	j, err := s.config.Engine.Submit(ctx, request, options)
	switch kind := status.KindOf(err); {
	case err == nil:
	case kind == status.Caller && before != nil:
		return nil, rpcstatus.Errorf(codes.AlreadyExists, "request_id %q: want the content of the job that is under way, got another", options.ID)
	case kind == status.Caller:
		return nil, rpcstatus.Error(codes.InvalidArgument, err.Error())
	case kind == status.Timeout || kind == status.NoMemory:
		return nil, rpcstatus.Errorf(codes.ResourceExhausted, "no room: %v", err)
	case kind == status.Cancelled:
		return nil, rpcstatus.Error(codes.Canceled, err.Error())
	default:
		return nil, err
	}
	// A job without a number of waiters ends by itself.
	if n, counted := s.waiters[j]; !waits {
		delete(s.waiters, j)
	} else if counted || j != before {
		s.waiters[j] = n + 1
	}
	return j, nil
}

// classOf makes cuzk's priorities the engine's classes, which are as many. Unspecified is NORMAL: PoRep is never more urgent by itself.
func classOf(p pb.Priority) engine.Class {
	if p < pb.Priority_LOW || p > pb.Priority_CRITICAL {
		p = pb.Priority_NORMAL
	}
	return engine.Class(p - pb.Priority_LOW)
}

// leave ends a wait that enqueue began. A job for which nobody waits any more is cancelled.
func (s *Server) leave(j *engine.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, counted := s.waiters[j]
	switch {
	case !counted:
	case n > 1:
		s.waiters[j] = n - 1
	default:
		delete(s.waiters, j)
		j.CancelFor(deserted)
	}
}

// shut refuses jobs from now on, and cancels those that are here and gives their list.
func (s *Server) shut() (left []*engine.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, at := range s.config.Engine.Jobs() {
		if j, err := s.config.Engine.Job(at.ID); err == nil && !at.State.Ended() {
			j.CancelFor(ending)
			left = append(left, j)
		}
	}
	return left
}

// answer waits for a job and says how it ended; nil where ctx ended first.
func answer(ctx context.Context, j *engine.Job) (*pb.AwaitProofResponse, error) {
	_, _ = j.Wait(ctx) // the job itself says whether it has ended
	at := j.Brief()
	if !at.State.Ended() {
		return nil, nil
	}
	result, err := j.Wait(context.Background())
	r := &pb.AwaitProofResponse{JobId: string(at.ID), TotalMs: millis(at.Ended.Sub(at.Submitted))}
	if r.QueueWaitMs = r.TotalMs; !at.Began.IsZero() {
		r.QueueWaitMs = millis(at.Began.Sub(at.Submitted))
	}
	var own *status.Error
	switch byUs := errors.As(err, &own) && own.Kind == status.Cancelled && own.Op == "engine.Cancel"; {
	case err == nil:
		r.Status, r.Proof = pb.AwaitProofResponse_COMPLETED, result.Proof
		r.SrsLoadMs, r.SynthesisMs, r.GpuComputeMs = stageTimes(result.Stages)
	case byUs && own.Got == ending:
		return nil, errEnding
	case byUs:
		r.Status, r.ErrorMessage = pb.AwaitProofResponse_CANCELLED, own.Got
	default:
		r.Status, r.ErrorMessage = pb.AwaitProofResponse_FAILED, strings.ToValidUTF8(err.Error(), "\uFFFD")
		if status.KindOf(err) == status.SelfCheck {
			r.ErrorMessage = "PoRep proof self-check failed: " + r.ErrorMessage // the words that cuzk's users look for
		}
	}
	return r, nil
}

// stageTimes sums the engine's stages up to the three times of cuzk. Only verification is in none of them.
func stageTimes(stages []engine.StageTime) (load, synthesis, compute uint64) {
	var l, s, c time.Duration
	for _, t := range stages {
		switch name := t.Stage; {
		case name == "params" || strings.HasPrefix(name, "load_") || strings.HasPrefix(name, "pin_"): // parameters on their way to a GPU
			l += t.Elapsed
		case slices.Contains([]string{"parse", "check", "inputs", "expand", "evaluate"}, name):
			s += t.Elapsed
		case name == "verify":
		default:
			c += t.Elapsed
		}
	}
	return millis(l), millis(s), millis(c)
}

func millis(d time.Duration) uint64 { return uint64(max(0, d.Milliseconds())) }
