package grpc

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// maxIDBytes bounds a job's name.
const maxIDBytes = 256

// gate lets a few messages in at a time, and few more wait for it.
type gate struct {
	free   chan struct{} // holds one token for each message that may be received now
	inside atomic.Int64  // those that receive or wait
	limit  int64
}

func newGate(width, limit int) *gate {
	return &gate{free: make(chan struct{}, width), limit: int64(limit)}
}

// receive reads the call's message when it is its turn. Until then it stays with the sender, but for a flow-control
// window.
func (g *gate) receive(stream rpc.ServerStream, message any) error {
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
	return stream.RecvMsg(message)
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
		if err := s.asks.receive(stream, request); err != nil {
			return nil, err
		}
		return f(stream.Context(), request)
	}
}

// receive reads a submission and queues it. The context is that of the call.
func (s *Server) receive(stream rpc.ServerStream, wrapped bool) (*job, int, error) {
	message := inputMessage{input: &input{room: &s.room}, wrapped: wrapped}
	if err := s.submissions.receive(stream, &message); err != nil {
		message.input.release() // it came, and then the call ended
		return nil, 0, err
	}
	if message.err != nil {
		return nil, 0, message.err
	}
	if err := check(message.input); err != nil {
		message.input.release()
		return nil, 0, err
	}
	return s.queue.submit(message.input, !wrapped)
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
	case len(in.fields.GetRequestId()) > maxIDBytes:
		return refuse(codes.InvalidArgument, "request_id", fmt.Sprintf("at most %d bytes", maxIDBytes), len(in.fields.GetRequestId()))
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
	j, _, err := s.receive(stream, true)
	if err != nil {
		return nil, err
	}
	defer s.queue.leave(j)
	select {
	case <-j.done:
	case <-stream.Context().Done():
		return nil, rpcstatus.FromContextError(stream.Context().Err()).Err()
	}
	result, err := j.answer()
	if err != nil {
		return nil, err
	}
	return &pb.ProveResponse{Result: result}, nil
}

func (s *Server) submit(stream rpc.ServerStream) (proto.Message, error) {
	j, position, err := s.receive(stream, false)
	if err != nil {
		return nil, err
	}
	return &pb.SubmitProofResponse{JobId: j.id, QueuePosition: uint32(position)}, nil
}

func (s *Server) await(ctx context.Context, request *pb.AwaitProofRequest) (proto.Message, error) {
	j := s.queue.find(request.GetJobId())
	if j == nil {
		return nil, rpcstatus.Errorf(codes.NotFound, "job_id: want a job, got %q, which is unknown or long gone", request.GetJobId())
	}
	var late <-chan time.Time // never, without a limit
	if ms := request.GetTimeoutMs(); ms != 0 {
		late = time.After(time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond)
	}
	select {
	case <-j.done:
		return j.answer()
	case <-late:
		return &pb.AwaitProofResponse{JobId: j.id, Status: pb.AwaitProofResponse_TIMEOUT, TotalMs: millis(time.Since(j.submitted))}, nil
	case <-ctx.Done():
		return nil, rpcstatus.FromContextError(ctx.Err()).Err()
	}
}

func (s *Server) cancel(_ context.Context, request *pb.CancelProofRequest) (proto.Message, error) {
	return &pb.CancelProofResponse{WasRunning: s.queue.abort(request.GetJobId())}, nil
}

// circuits are the names that cuzk gives to circuits, with the sector sizes of those that are proved here.
var circuits = map[string]string{"porep-32g": "32GiB", "porep-64g": "64GiB", "wpost-32g": "", "winning-32g": "", "snap-32g": "", "snap-64g": ""}

// keeper is what a Prover offers that loads parameters before the first proof and lets them go after the last.
type keeper interface {
	Preload(ctx context.Context, source engine.ParamSource, shapeName string) error
	Evict(ctx context.Context, source engine.ParamSource, shapeName string) error
}

// sizeOf is the sector size of a circuit, and who keeps its parameters; nil where nobody does, for what is not proved here either.
func (s *Server) sizeOf(circuit string) (shape string, by keeper, err error) {
	shape, known := circuits[circuit]
	if !known {
		return "", nil, rpcstatus.Errorf(codes.Internal, "unknown circuit ID: %s", circuit)
	}
	if shape != "" {
		by, _ = s.config.Prover.(keeper)
	}
	return shape, by, nil
}

func (s *Server) preload(ctx context.Context, request *pb.PreloadSrsRequest) (proto.Message, error) {
	shape, by, err := s.sizeOf(request.GetCircuitId())
	switch {
	case err != nil:
		return nil, err
	case by == nil:
		return nil, rpcstatus.Errorf(codes.Unimplemented, "%s: parameters are loaded by the first proof that needs them", request.GetCircuitId())
	}
	begin := time.Now()
	if err := by.Preload(ctx, s.config.Params, shape); err != nil {
		return nil, rpcstatus.Error(codes.Internal, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	return &pb.PreloadSrsResponse{LoadTimeMs: millis(time.Since(begin))}, nil
}

// evict lets parameters go that no proof uses; whether there were any is not told.
func (s *Server) evict(ctx context.Context, request *pb.EvictSrsRequest) (proto.Message, error) {
	shape, by, err := s.sizeOf(request.GetCircuitId())
	if err != nil || by == nil {
		return &pb.EvictSrsResponse{}, nil // as in cuzk
	}
	if err := by.Evict(ctx, s.config.Params, shape); err != nil {
		return nil, rpcstatus.Error(codes.Internal, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	return &pb.EvictSrsResponse{}, nil
}

func (s *Server) status(context.Context, *pb.GetStatusRequest) (proto.Message, error) {
	v := s.queue.look()
	r := &pb.GetStatusResponse{
		TotalProofsCompleted: v.totals.completed, TotalProofsFailed: v.totals.failed,
		UptimeSeconds: uint64(time.Since(s.start).Seconds()),
	}
	if v.pending+v.running > 0 {
		r.Queues = []*pb.QueueStatus{{ProofKind: kindName(pb.ProofKind_POREP_SEAL_COMMIT), Pending: uint32(v.pending), InProgress: uint32(v.running)}}
	}
	if gpu := gpuOf(s.config.Device); gpu != nil {
		if gpu.CurrentJobId = v.oldest; v.running > 0 {
			gpu.CurrentProofKind = kindName(pb.ProofKind_POREP_SEAL_COMMIT)
		}
		r.Gpus = []*pb.GPUStatus{gpu}
	}
	return r, nil
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
	v := s.queue.look()
	var b strings.Builder
	metric := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	value := func(name string, v any) { fmt.Fprintf(&b, "%s %v\n", name, v) }
	label := `{proof_kind="` + strings.ReplaceAll(kindName(pb.ProofKind_POREP_SEAL_COMMIT), "-", "_") + `"}`
	metric("cuzk_proofs_completed_total", "counter", "Proofs made and verified.")
	value("cuzk_proofs_completed_total", v.totals.completed)
	metric("cuzk_proofs_failed_total", "counter", "Jobs that ended in an error.")
	value("cuzk_proofs_failed_total", v.totals.failed)
	metric("cuzk_proofs_completed", "counter", "Proofs made and verified, by kind.")
	value("cuzk_proofs_completed"+label, v.totals.completed)
	metric("cuzk_proofs_failed", "counter", "Jobs that ended in an error, by kind.")
	value("cuzk_proofs_failed"+label, v.totals.failed)
	metric("cuzk_proof_duration_seconds", "summary", "Time from submission to proof.")
	value("cuzk_proof_duration_seconds_count"+label, v.totals.completed)
	value("cuzk_proof_duration_seconds_sum"+label, v.totals.seconds)
	metric("cuzk_uptime_seconds", "gauge", "Time since the server began.")
	value("cuzk_uptime_seconds", uint64(time.Since(s.start).Seconds()))
	metric("cuzk_queue_depth", "gauge", "Jobs that wait.")
	value("cuzk_queue_depth", v.pending)
	metric("cuzk_running_jobs", "gauge", "Jobs in the engine.")
	value("cuzk_running_jobs", v.running)
	metric("cuzk_gpu_workers", "gauge", "Jobs that may be in the engine at a time.")
	value("cuzk_gpu_workers", s.config.Jobs)
	metric("sealc2_queue_bytes", "gauge", "Memory that submissions hold.")
	value("sealc2_queue_bytes", s.room.held.Load())
	return &pb.GetMetricsResponse{PrometheusText: b.String()}, nil
}

// view is a queue at one moment.
type view struct {
	totals           totals
	pending, running int
	oldest           string // of those that run, the id of the one that began first
}

func (q *queue) look() view {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := view{totals: q.totals, pending: len(q.pending), running: len(q.running)}
	if len(q.running) > 0 {
		v.oldest = q.running[0].id
	}
	return v
}
