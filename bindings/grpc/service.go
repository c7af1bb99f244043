package grpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// gate lets a few messages in at a time, and few more wait for it.
type gate struct {
	free   chan struct{} // holds one token for each message that may be received now
	inside atomic.Int64  // those that receive or wait
	limit  int64
}

func newGate(width, limit int) *gate {
	return &gate{free: make(chan struct{}, width), limit: int64(limit)}
}

// receive reads the call's message when it is its turn, and has it used before it is the next one's. Until then it stays with the sender, but
// for a flow-control window.
func (g *gate) receive(stream rpc.ServerStream, message any, use func() error) error {
	defer g.inside.Add(-1)
	if g.inside.Add(1) > g.limit {
		return rpcstatus.Errorf(codes.ResourceExhausted, "want at most %d messages on their way, got one more", g.limit)
	}
	select {
	case g.free <- struct{}{}:
	case <-stream.Context().Done():
		return rpcstatus.FromContextError(stream.Context().Err()).Err()
	}
	defer func() { <-g.free }()
	if err := stream.RecvMsg(message); err != nil {
		return err
	}
	return use()
}

// desc describes the service to the gRPC server. All methods are unary on the wire; they are described as streams since
// gRPC reads the whole message of a unary method before it asks anybody, and as many of them as are sent.
func (s *Server) desc() *rpc.ServiceDesc {
	d := &rpc.ServiceDesc{ServiceName: pb.ProvingEngine_ServiceDesc.ServiceName, Metadata: pb.ProvingEngine_ServiceDesc.Metadata}
	add := func(path string, handle func(stream rpc.ServerStream) (proto.Message, error)) {
		d.Streams = append(d.Streams, rpc.StreamDesc{
			StreamName: strings.TrimPrefix(path, "/"+d.ServiceName+"/"), ServerStreams: true,
			Handler: func(_ any, stream rpc.ServerStream) error { return call(stream, handle) },
		})
	}
	add(pb.ProvingEngine_Prove_FullMethodName, s.prove)
	add(pb.ProvingEngine_SubmitProof_FullMethodName, s.submit)
	add(pb.ProvingEngine_AwaitProof_FullMethodName, small(s, s.await))
	add(pb.ProvingEngine_CancelProof_FullMethodName, small(s, s.cancel))
	add(pb.ProvingEngine_GetStatus_FullMethodName, small(s, s.status))
	add(pb.ProvingEngine_GetMetrics_FullMethodName, small(s, s.metrics))
	add(pb.ProvingEngine_PreloadSRS_FullMethodName, small(s, s.preload))
	add(pb.ProvingEngine_EvictSRS_FullMethodName, small(s, s.evict))
	return d
}

// call runs a handler and sends its answer. A panic ends the call and nothing else.
func call(stream rpc.ServerStream, handle func(stream rpc.ServerStream) (proto.Message, error)) (err error) {
	defer func() {
		var own *status.Error
		if errors.As(err, &own) {
			err = rpcstatus.Error(codes.Internal, strings.ToValidUTF8(own.Error(), "\uFFFD"))
		}
	}()
	defer status.Recover("grpc.Call", &err)
	answer, err := handle(stream)
	if err != nil {
		return err
	}
	return stream.SendMsg(answer)
}

// small makes a handler of a method without large messages.
func small[Request any, P interface {
	*Request
	proto.Message
}](s *Server, f func(context.Context, P) (proto.Message, error)) func(stream rpc.ServerStream) (proto.Message, error) {
	return func(stream rpc.ServerStream) (proto.Message, error) {
		request := P(new(Request))
		if err := s.asks.receive(stream, request, func() error { return nil }); err != nil {
			return nil, err
		}
		return f(stream.Context(), request)
	}
}

// receive reads a submission and has the engine take it. waits: it is that of a call which waits for the proof and must call leave.
func (s *Server) receive(stream rpc.ServerStream, waits bool) (j *engine.Job, err error) {
	message := inputMessage{input: &input{}, wrapped: waits}
	defer message.input.release()
	err = s.submissions.receive(stream, &message, func() (err error) {
		if err = message.err; err != nil {
			return err
		}
		if err = check(message.input); err != nil {
			return err
		}
		j, err = s.enqueue(stream.Context(), message.input, waits)
		return err
	})
	return j, err
}

// check refuses what can be seen to be wrong without proving.
func check(in *input) error {
	refuse := func(code codes.Code, where, want string, got any) error {
		return rpcstatus.Errorf(code, "submit.%s: want %s, got %v", where, want, got)
	}
	kind := in.fields.GetProofKind()
	switch {
	case !in.submitted:
		return rpcstatus.Error(codes.InvalidArgument, "submit: want a submission, got none")
	case len(in.fields.GetRequestId()) > engine.MaxJobID:
		return refuse(codes.InvalidArgument, "request_id", fmt.Sprintf("at most %d bytes", engine.MaxJobID), len(in.fields.GetRequestId()))
	case kind == pb.ProofKind_POREP_SEAL_COMMIT && len(in.vanilla) == 0:
		return refuse(codes.InvalidArgument, "vanilla_proof", "the output of Commit phase 1", "no bytes")
	case kind == pb.ProofKind_POREP_SEAL_COMMIT:
		return nil
	case kind == pb.ProofKind_PROOF_KIND_UNSPECIFIED || kindName(kind) == "":
		return refuse(codes.InvalidArgument, "proof_kind", "a kind of proof", kind)
	}
	return refuse(codes.Unimplemented, "proof_kind", "POREP_SEAL_COMMIT, the one kind that this version proves", kind)
}

// kindNames are the words for kinds in status texts; metrics have them with underscores.
var kindNames = map[pb.ProofKind]string{
	pb.ProofKind_POREP_SEAL_COMMIT: "porep-c2", pb.ProofKind_SNAP_DEALS_UPDATE: "snap-update",
	pb.ProofKind_WINDOW_POST_PARTITION: "window-post", pb.ProofKind_WINNING_POST: "winning-post",
}

func kindName(kind pb.ProofKind) string { return kindNames[kind] }

func (s *Server) prove(stream rpc.ServerStream) (proto.Message, error) {
	j, err := s.receive(stream, true)
	if err != nil {
		return nil, err
	}
	defer s.leave(j)
	result, err := answer(stream.Context(), j)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, rpcstatus.FromContextError(stream.Context().Err()).Err()
	}
	return &pb.ProveResponse{Result: result}, nil
}

func (s *Server) submit(stream rpc.ServerStream) (proto.Message, error) {
	j, err := s.receive(stream, false)
	if err != nil {
		return nil, err
	}
	return &pb.SubmitProofResponse{JobId: string(j.ID()), QueuePosition: uint32(j.Progress().Ahead)}, nil
}

func (s *Server) await(ctx context.Context, request *pb.AwaitProofRequest) (proto.Message, error) {
	j, err := s.config.Engine.Job(engine.JobID(request.GetJobId()))
	if err != nil {
		return nil, rpcstatus.Errorf(codes.NotFound, "job_id: want a job, got %q, which is unknown or long gone", request.GetJobId())
	}
	wait := ctx
	if ms := request.GetTimeoutMs(); ms != 0 {
		var stop context.CancelFunc
		wait, stop = context.WithTimeout(ctx, time.Duration(min(ms, maxWaitMs))*time.Millisecond)
		defer stop()
	}
	result, err := answer(wait, j)
	switch {
	case err != nil:
		return nil, err
	case result != nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, rpcstatus.FromContextError(ctx.Err()).Err()
	}
	return &pb.AwaitProofResponse{JobId: string(j.ID()), Status: pb.AwaitProofResponse_TIMEOUT, TotalMs: millis(time.Since(j.Brief().Submitted))}, nil
}

// maxWaitMs is what a longer limit of AwaitProof counts as: a year, since Go's clock ends with some three hundred.
const maxWaitMs = 365 * 24 * 3600 * 1000

func (s *Server) cancel(_ context.Context, request *pb.CancelProofRequest) (proto.Message, error) {
	j, err := s.config.Engine.Job(engine.JobID(request.GetJobId()))
	return &pb.CancelProofResponse{WasRunning: err == nil && j.CancelFor(asked)}, nil
}

// circuits are the names that cuzk gives to circuits, with the sector sizes of those that are proved here.
var circuits = map[string]string{"porep-32g": "32GiB", "porep-64g": "64GiB", "wpost-32g": "", "winning-32g": "", "snap-32g": "", "snap-64g": ""}

func (s *Server) preload(ctx context.Context, request *pb.PreloadSrsRequest) (proto.Message, error) {
	shape, known := circuits[request.GetCircuitId()]
	switch {
	case !known:
		return nil, rpcstatus.Errorf(codes.Internal, "unknown circuit ID: %s", request.GetCircuitId())
	case shape == "":
		return nil, rpcstatus.Errorf(codes.Unimplemented, "%s: parameters are loaded by the first proof that needs them", request.GetCircuitId())
	}
	begin := time.Now()
	if err := s.config.Engine.Preload(ctx, s.config.Params, shape); err != nil {
		return nil, rpcstatus.Error(codes.Internal, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	return &pb.PreloadSrsResponse{LoadTimeMs: millis(time.Since(begin))}, nil
}

// evict lets parameters go that no proof uses; whether there were any is not told.
func (s *Server) evict(ctx context.Context, request *pb.EvictSrsRequest) (proto.Message, error) {
	shape := circuits[request.GetCircuitId()]
	if shape == "" {
		return &pb.EvictSrsResponse{}, nil // as in cuzk
	}
	if err := s.config.Engine.Evict(ctx, s.config.Params, shape); err != nil {
		return nil, rpcstatus.Error(codes.Internal, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	return &pb.EvictSrsResponse{}, nil
}

func (s *Server) status(context.Context, *pb.GetStatusRequest) (proto.Message, error) {
	n := s.config.Engine.JobCounts()
	r := &pb.GetStatusResponse{TotalProofsCompleted: n.Done, TotalProofsFailed: n.Failed, UptimeSeconds: uint64(time.Since(s.start).Seconds()), Gpus: s.gpus()}
	if n.Queued+n.Running > 0 {
		r.Queues = []*pb.QueueStatus{{ProofKind: kindName(pb.ProofKind_POREP_SEAL_COMMIT), Pending: uint32(n.Queued), InProgress: uint32(n.Running)}}
	}
	var oldest engine.JobProgress
	for _, at := range s.config.Engine.Jobs() {
		if at.State == engine.JobRunning && (oldest.ID == "" || at.Began.Before(oldest.Began)) {
			oldest = at
		}
	}
	for _, gpu := range r.Gpus {
		if gpu.CurrentJobId = string(oldest.ID); oldest.ID != "" {
			gpu.CurrentProofKind = kindName(pb.ProofKind_POREP_SEAL_COMMIT)
		}
	}
	return r, nil
}

// gpus are the GPUs that prove, which share each job.
func (s *Server) gpus() (all []*pb.GPUStatus) {
	for _, device := range s.config.Engine.Devices() {
		if gpu := gpuOf(device); gpu != nil {
			all = append(all, gpu)
		}
	}
	return all
}

// gpuOf reads the engine's name of a device, "cuda:1 NVIDIA H200"; nil for the CPU.
func gpuOf(device string) *pb.GPUStatus {
	rest, ok := strings.CutPrefix(device, "cuda:")
	if !ok {
		return nil
	}
	digits, name, _ := strings.Cut(rest, " ")
	ordinal, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return nil
	}
	return &pb.GPUStatus{Ordinal: uint32(ordinal), Name: name}
}

func (s *Server) metrics(context.Context, *pb.GetMetricsRequest) (proto.Message, error) {
	n := s.config.Engine.JobCounts()
	var b strings.Builder
	metric := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	value := func(name string, v any) { fmt.Fprintf(&b, "%s %v\n", name, v) }
	label := `{proof_kind="` + strings.ReplaceAll(kindName(pb.ProofKind_POREP_SEAL_COMMIT), "-", "_") + `"}`
	metric("cuzk_proofs_completed_total", "counter", "Proofs made and verified.")
	value("cuzk_proofs_completed_total", n.Done)
	metric("cuzk_proofs_failed_total", "counter", "Jobs that ended in an error.")
	value("cuzk_proofs_failed_total", n.Failed)
	metric("cuzk_proofs_completed", "counter", "Proofs made and verified, by kind.")
	value("cuzk_proofs_completed"+label, n.Done)
	metric("cuzk_proofs_failed", "counter", "Jobs that ended in an error, by kind.")
	value("cuzk_proofs_failed"+label, n.Failed)
	metric("cuzk_proof_duration_seconds", "summary", "Time from submission to proof.")
	value("cuzk_proof_duration_seconds_count"+label, n.Done)
	value("cuzk_proof_duration_seconds_sum"+label, n.DoneTime.Seconds())
	metric("cuzk_uptime_seconds", "gauge", "Time since the server began.")
	value("cuzk_uptime_seconds", uint64(time.Since(s.start).Seconds()))
	metric("cuzk_queue_depth", "gauge", "Jobs that wait.")
	value("cuzk_queue_depth", n.Queued)
	metric("cuzk_running_jobs", "gauge", "Jobs in the engine.")
	value("cuzk_running_jobs", n.Running)
	metric("cuzk_gpu_workers", "gauge", "GPUs that prove.")
	value("cuzk_gpu_workers", len(s.gpus()))
	metric("sealc2_queue_bytes", "gauge", "Memory that submissions hold until they are admitted.")
	value("sealc2_queue_bytes", n.QueueBytes)
	b.WriteString(s.config.Engine.Metrics()) // families of other names: stages, devices, budget, GPUs
	return &pb.GetMetricsResponse{PrometheusText: b.String()}, nil
}
