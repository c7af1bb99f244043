package grpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	rpcstatus "google.golang.org/grpc/status"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// limit is how long a test waits for what must happen.
const limit = 20 * time.Second

// stand is an engine whose jobs are real and whose proofs are none, and end when a test says so.
type stand struct {
	*engine.Engine
	devices   []string // nil: one GPU
	kept      []string // calls about parameters
	keepErr   error
	submitted atomic.Int64 // calls of Submit that have begun

	mu    sync.Mutex
	calls []*engine.ProveRequest
	seen  []string // the C1 of each call, as it began

	begun  chan string // the C1 of each call, as it begins; may be nil
	finish chan error  // each call takes one; nil: calls end at once
	stuck  time.Duration
}

// open gives a stand its engine, with a queue of so many bytes.
func (p *stand) open(t testing.TB, queueBytes int64) {
	t.Helper()
	e, err := engine.Open(engine.Config{Device: "cpu", QueueBytes: queueBytes, Log: func(level, text string) { t.Logf("%s: %s", level, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	p.Engine = e
}

func (p *stand) Submit(ctx context.Context, request *engine.ProveRequest, options engine.SubmitOptions) (*engine.Job, error) {
	p.submitted.Add(1)
	return p.SubmitFunc(ctx, request, options, p.Prove)
}

func (p *stand) Devices() []string {
	if p.devices != nil {
		return p.devices
	}
	return []string{"cuda:1 NVIDIA H200"}
}

func (p *stand) Preload(_ context.Context, _ engine.ParamSource, shape string) error {
	p.kept = append(p.kept, "load "+shape)
	return p.keepErr
}

func (p *stand) Evict(_ context.Context, _ engine.ParamSource, shape string) error {
	p.kept = append(p.kept, "evict "+shape)
	return p.keepErr
}

func (p *stand) Prove(ctx context.Context, request *engine.ProveRequest) (*engine.ProveResult, error) {
	c1 := string(request.C1)
	p.mu.Lock()
	p.calls = append(p.calls, request)
	p.seen = append(p.seen, c1)
	p.mu.Unlock()
	if p.begun != nil {
		p.begun <- c1
	}
	if p.finish != nil {
		select {
		case err := <-p.finish:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			time.Sleep(p.stuck) // the rest of a stage, in which the input is still read
			if string(request.C1) != c1 {
				panic("the input changed under the prover")
			}
			return nil, status.Wrap(status.Cancelled, "stand", "", context.Cause(ctx))
		}
	}
	if c1 == "panic" {
		panic("on purpose")
	}
	return &engine.ProveResult{Proof: proofOf(c1), Device: "cpu", Stages: []engine.StageTime{
		{Stage: "params", Elapsed: 2 * time.Millisecond}, {Stage: "expand", Elapsed: 3 * time.Millisecond},
		{Stage: "evaluate", Elapsed: 4 * time.Millisecond}, {Stage: "msm_h", Elapsed: 5 * time.Millisecond},
		{Stage: "quotient", Elapsed: 6 * time.Millisecond}, {Stage: "verify", Elapsed: 7 * time.Millisecond},
	}}, nil
}

func (p *stand) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// proofOf is the proof that a stand makes of a C1.
func proofOf(c1 string) []byte { return fmt.Appendf(nil, "proof of %d bytes %.20s", len(c1), c1) }

// rig is a server in this process and a client of it.
type rig struct {
	t       testing.TB
	server  *Server
	address string
	client  pb.ProvingEngineClient
	stop    context.CancelFunc
	ended   chan error
}

// newRig serves on a socket. The client has the limits of Curio's.
func newRig(t testing.TB, e Engine, change func(*Config)) *rig {
	t.Helper()
	if p, ok := e.(*stand); ok && p.Engine == nil {
		p.open(t, 256<<20)
	}
	config := Config{Engine: e, Waiting: 20, Messages: 2, Log: func(level, text string) { t.Logf("%s: %s", level, text) }}
	if change != nil {
		change(&config)
	}
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, server: server, address: "unix://" + filepath.Join(t.TempDir(), "run", "cuzk.sock"), ended: make(chan error, 1)}
	listener, err := Listen(r.address)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { r.ended <- server.Serve(ctx, listener) }()
	r.client = dial(t, r.address)
	t.Cleanup(func() {
		r.end()
		until(t, "the engine holds no input", func() bool { return e.JobCounts().QueueBytes == 0 })
		if len(server.waiters) != 0 {
			t.Errorf("waiters are left: %v", server.waiters)
		}
	})
	return r
}

// waiters is how many callers wait for a job that would end without them.
func (r *rig) waiters(id engine.JobID) int {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	j, err := r.server.config.Engine.Job(id)
	if err != nil {
		return 0
	}
	return r.server.waiters[j]
}

// end stops the server and wants that to succeed; twice is legal.
func (r *rig) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("Serve: %v", err)
		}
		r.ended <- nil
	case <-time.After(limit):
		r.t.Fatal("Serve does not end")
	}
}

// dial makes a client of a server as Curio does.
func dial(t testing.TB, address string) pb.ProvingEngineClient {
	t.Helper()
	target := address
	if !strings.Contains(target, "://") && !strings.HasPrefix(target, "unix:") {
		target = "dns:///" + target
	}
	conn, err := rpc.NewClient(target, rpc.WithTransportCredentials(insecure.NewCredentials()),
		rpc.WithDefaultCallOptions(rpc.MaxCallRecvMsgSize(256<<20), rpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewProvingEngineClient(conn)
}

// porep is a request as Curio makes it.
func porep(id, c1 string) *pb.SubmitProofRequest {
	return &pb.SubmitProofRequest{
		RequestId: id, ProofKind: pb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 2048, RegisteredProof: 5, Priority: pb.Priority_NORMAL,
		VanillaProof: []byte(c1), SectorNumber: 7, MinerId: 1000,
	}
}

// prove calls Prove and gives what it answers.
func (r *rig) prove(request *pb.SubmitProofRequest) (*pb.AwaitProofResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	response, err := r.client.Prove(ctx, &pb.ProveRequest{Submit: request})
	return response.GetResult(), err
}

// status calls GetStatus.
func (r *rig) status() *pb.GetStatusResponse {
	r.t.Helper()
	s, err := r.client.GetStatus(r.t.Context(), &pb.GetStatusRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// counts is what GetStatus says of PoRep jobs.
func (r *rig) counts() *pb.QueueStatus {
	r.t.Helper()
	if queues := r.status().Queues; len(queues) > 0 {
		return queues[0]
	}
	return &pb.QueueStatus{}
}

// outcome is what a call gave.
type outcome struct {
	result *pb.AwaitProofResponse
	err    error
}

// start calls Prove in the background.
func (r *rig) start(ctx context.Context, request *pb.SubmitProofRequest) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		response, err := r.client.Prove(ctx, &pb.ProveRequest{Submit: request})
		got <- outcome{response.GetResult(), err}
	}()
	return got
}

// next receives from a channel, within the limit.
func next[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func wantCode(t testing.TB, what string, err error, code codes.Code, text string) {
	t.Helper()
	if got := rpcstatus.Code(err); got != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: want %v with %q, got %v", what, code, text, err)
	}
}

func wantProof(t testing.TB, got outcome, c1 string) {
	t.Helper()
	if got.err != nil || got.result.GetStatus() != pb.AwaitProofResponse_COMPLETED || !bytes.Equal(got.result.GetProof(), proofOf(c1)) {
		t.Errorf("want the proof of %.20q, got %v, %v", c1, got.result, got.err)
	}
}

// Goal: a request of Curio's gets its proof, times and the ids that the engine is asked to check.
func TestProve(t *testing.T) {
	p := &stand{}
	r := newRig(t, p, nil)
	result, err := r.prove(porep("porep-1000-7", "abc"))
	wantProof(t, outcome{result, err}, "abc")
	if result.JobId != "porep-1000-7" || result.SrsLoadMs != 2 || result.SynthesisMs != 7 || result.GpuComputeMs != 11 || result.ErrorMessage != "" {
		t.Errorf("%v", result)
	}
	call := p.calls[0]
	var id [32]byte
	copy(id[:], []byte{0xe8, 0x07})
	if call.IDs == nil || call.IDs.SectorID != 7 || call.IDs.ProverID != id || !call.OnChain {
		t.Errorf("the engine got %+v", call)
	}
	nobody := porep("", "x")
	nobody.MinerId, nobody.Priority = 0, 0
	result, err = r.prove(nobody)
	wantProof(t, outcome{result, err}, "x")
	if p.calls[1].IDs != nil || len(result.JobId) != 36 {
		t.Errorf("without ids: %+v, job %q", p.calls[1].IDs, result.JobId)
	}
	binary.PutUvarint(id[:], 1<<64-1)
	far := porep("far", "x")
	far.MinerId = 1<<64 - 1
	if _, err := r.prove(far); err != nil || p.calls[2].IDs.ProverID != id {
		t.Errorf("the largest miner: %v", err)
	}
}

// Goal: a 51 MB C1 in the wrapper in which Curio sends it goes through, whole; a message above the limit is refused and
// the server lives on; the limit of memory refuses by name.
func TestProve_Large(t *testing.T) {
	p := &stand{}
	p.open(t, MaxMessageBytes)
	r := newRig(t, p, func(c *Config) { c.Messages = 1 })
	c1 := make([]byte, 51<<20)
	for i := range c1 {
		c1[i] = byte(i * 7)
	}
	wrapped := `{"SectorNum":7,"Phase1Out":"` + base64.StdEncoding.EncodeToString(c1) + `","SectorSize":34359738368}`
	result, err := r.prove(porep("large", wrapped))
	wantProof(t, outcome{result, err}, wrapped)
	if p.seen[0] != wrapped {
		t.Error("the prover got other bytes than were sent")
	}
	_, err = r.prove(porep("too large", strings.Repeat("x", MaxMessageBytes)))
	wantCode(t, "too large", err, codes.ResourceExhausted, "")
	// More than half of the room is taken by a job that has not been admitted: the next large one finds none.
	p.finish, p.begun = make(chan error), make(chan string, 9)
	first := r.start(t.Context(), porep("holds", wrapped))
	next(t, p.begun)
	_, err = r.prove(porep("no room", wrapped))
	wantCode(t, "no room", err, codes.ResourceExhausted, "in the queue")
	small := r.start(t.Context(), porep("small", "small"))
	until(t, "the small one has room", func() bool { return r.counts().Pending == 1 })
	p.finish <- nil
	wantProof(t, next(t, first), wrapped)
	p.finish <- nil
	wantProof(t, next(t, small), "small")
}

// Goal: what is wrong is refused with a code and words, and the next call works.
func TestRefused(t *testing.T) {
	r := newRig(t, &stand{}, nil)
	kind := func(k pb.ProofKind) *pb.SubmitProofRequest {
		q := porep("kind", "abc")
		q.ProofKind = k
		return q
	}
	for _, c := range []struct {
		name    string
		request *pb.SubmitProofRequest
		code    codes.Code
		text    string
	}{
		{"no submission", nil, codes.InvalidArgument, "submit"},
		{"empty submission", &pb.SubmitProofRequest{}, codes.InvalidArgument, "proof_kind"},
		{"no kind", kind(0), codes.InvalidArgument, "proof_kind"},
		{"a kind of no name", kind(9), codes.InvalidArgument, "proof_kind"},
		{"a negative kind", kind(-1), codes.InvalidArgument, "proof_kind"},
		{"snap", kind(pb.ProofKind_SNAP_DEALS_UPDATE), codes.Unimplemented, "SNAP_DEALS_UPDATE"},
		{"window", kind(pb.ProofKind_WINDOW_POST_PARTITION), codes.Unimplemented, "WINDOW_POST_PARTITION"},
		{"winning", kind(pb.ProofKind_WINNING_POST), codes.Unimplemented, "WINNING_POST"},
		{"no C1", porep("empty", ""), codes.InvalidArgument, "vanilla_proof"},
		{"a long name", porep(strings.Repeat("x", engine.MaxJobID+1), "abc"), codes.InvalidArgument, "request_id"},
		{"a name that is no text", porep("a\nb", "abc"), codes.InvalidArgument, "job id"},
		{"a very long name", porep(strings.Repeat("x", 2*maxFieldBytes), "abc"), codes.InvalidArgument, "submit"},
	} {
		_, err := r.prove(c.request)
		wantCode(t, c.name, err, c.code, c.text)
		if c.request != nil {
			_, err = r.client.SubmitProof(t.Context(), c.request)
			wantCode(t, c.name+", submitted", err, c.code, c.text)
		}
	}
	_, err := r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: "nobody"})
	wantCode(t, "unknown job", err, codes.NotFound, `"nobody"`)
	_, err = r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: strings.Repeat("x", 2*maxFieldBytes)})
	wantCode(t, "a large question", err, codes.Internal, "want at most")
	_, err = r.client.PreloadSRS(t.Context(), &pb.PreloadSrsRequest{CircuitId: "porep-1g"})
	wantCode(t, "unknown circuit", err, codes.Internal, "unknown circuit ID: porep-1g")
	if e, err := r.client.EvictSRS(t.Context(), &pb.EvictSrsRequest{CircuitId: "porep-32g"}); err != nil || e.WasLoaded {
		t.Errorf("EvictSRS: %v, %v", e, err)
	}
	if c, err := r.client.CancelProof(t.Context(), &pb.CancelProofRequest{JobId: "nobody"}); err != nil || c.WasRunning {
		t.Errorf("CancelProof of nobody: %v, %v", c, err)
	}
	result, err := r.prove(porep("after", "abc"))
	wantProof(t, outcome{result, err}, "abc")
}

// Goal: what fails is an answer with the error's words, whatever it is, and is run again when asked again.
func TestFailed(t *testing.T) {
	p := &stand{finish: make(chan error, 1)}
	r := newRig(t, p, nil)
	for _, c := range []struct {
		err  error
		text string
	}{
		{status.New(status.Unsatisfied, "engine.Prove", "partition 3", "a row that holds", "row 5"), "partition 3: want a row that holds, got row 5"},
		{status.New(status.SelfCheck, "engine.Prove", "", "", "wrong twice"), "PoRep proof self-check failed: engine.Prove: wrong twice"},
		{errors.New("bytes \xff that are no text"), "bytes \uFFFD that are no text"},
		{status.New(status.Cancelled, "engine.Prove", "", "", "closed"), "closed"},
	} {
		p.finish <- c.err
		result, err := r.prove(porep("same", "abc"))
		if err != nil || result.Status != pb.AwaitProofResponse_FAILED || !strings.Contains(result.ErrorMessage, c.text) || len(result.Proof) != 0 {
			t.Errorf("want FAILED with %q, got %v, %v", c.text, result, err)
		}
	}
	p.finish <- nil
	result, err := r.prove(porep("panic", "panic"))
	if err != nil || result.Status != pb.AwaitProofResponse_FAILED || !strings.Contains(result.ErrorMessage, "on purpose") {
		t.Errorf("a panic of the prover: %v, %v", result, err)
	}
	p.finish <- nil
	result, err = r.prove(porep("same", "abc"))
	wantProof(t, outcome{result, err}, "abc")
	// What ended as cancelled is not counted as failed, though nobody here cancelled it.
	if s := r.status(); s.TotalProofsCompleted != 1 || s.TotalProofsFailed != 4 || len(s.Queues) != 0 {
		t.Errorf("status %v", s)
	}
}

// Goal: a retry under the same id joins the job, or gets the proof that is there; other content is refused while the job is
// under way, and is a new job when it has ended.
func TestProve_SameID(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error)}
	r := newRig(t, p, nil)
	first := r.start(t.Context(), porep("id", "abc"))
	next(t, p.begun)
	second := r.start(t.Context(), porep("id", "abc"))
	until(t, "the second one waits", func() bool { return r.waiters("id") == 2 })
	_, err := r.prove(porep("id", "abd"))
	wantCode(t, "other content", err, codes.AlreadyExists, `"id"`)
	other := porep("id", "abc")
	other.MinerId++
	_, err = r.prove(other)
	wantCode(t, "another miner", err, codes.AlreadyExists, `"id"`)
	p.finish <- nil
	wantProof(t, next(t, first), "abc")
	wantProof(t, next(t, second), "abc")
	result, err := r.prove(porep("id", "abc"))
	wantProof(t, outcome{result, err}, "abc")
	if p.count() != 1 {
		t.Errorf("proved %d times", p.count())
	}
	again := r.start(t.Context(), porep("id", "abd"))
	next(t, p.begun)
	p.finish <- nil
	wantProof(t, next(t, again), "abd")
}

// Goal: a client that is gone in the middle of a proof ends it, unless another one waits; the same id may come again at once,
// while the engine is still at it.
func TestProve_ClientGone(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error), stuck: 50 * time.Millisecond}
	r := newRig(t, p, nil)
	ctx, gone := context.WithCancel(t.Context())
	first := r.start(ctx, porep("id", "abc"))
	next(t, p.begun)
	waiting := r.start(ctx, porep("pending", "never"))
	until(t, "one waits", func() bool { return r.counts().Pending == 1 })
	gone()
	if got := next(t, first); rpcstatus.Code(got.err) != codes.Canceled {
		t.Errorf("%v", got)
	}
	next(t, waiting)
	until(t, "both are cancelled", func() bool { return r.waiters("id")+r.waiters("pending") == 0 })
	retry := r.start(t.Context(), porep("id", "other content"))
	if c1 := next(t, p.begun); c1 != "other content" {
		t.Errorf("began %q", c1)
	}
	p.finish <- nil
	wantProof(t, next(t, retry), "other content")

	// Of two, one goes; the other one gets its proof.
	ctx, gone = context.WithCancel(t.Context())
	one := r.start(ctx, porep("two", "abc"))
	next(t, p.begun)
	two := r.start(t.Context(), porep("two", "abc"))
	until(t, "both wait", func() bool { return r.waiters("two") == 2 })
	gone()
	next(t, one)
	until(t, "one waits", func() bool { return r.waiters("two") == 1 })
	p.finish <- nil
	wantProof(t, next(t, two), "abc")
	result, err := r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: "pending"})
	if err != nil || result.Status != pb.AwaitProofResponse_CANCELLED || result.ErrorMessage == "" {
		t.Errorf("the job that never ran: %v, %v", result, err)
	}
}

// Goal: a job that was submitted runs to its end, whoever joins it and goes, and so does one that somebody submits who does not wait.
func TestProve_Submitted(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error)}
	r := newRig(t, p, nil)
	submit := func(id string) {
		t.Helper()
		if _, err := r.client.SubmitProof(t.Context(), porep(id, "abc")); err != nil {
			t.Fatal(err)
		}
	}
	for i, submittedFirst := range []bool{true, false} {
		id := fmt.Sprint("submitted first ", submittedFirst)
		if submittedFirst {
			submit(id)
		}
		ctx, gone := context.WithCancel(t.Context())
		defer gone()
		waits := r.start(ctx, porep(id, "abc"))
		next(t, p.begun)
		if !submittedFirst {
			until(t, "it waits", func() bool { return r.waiters(engine.JobID(id)) == 1 })
			submit(id)
		}
		until(t, "both calls are in", func() bool { return p.submitted.Load() == int64(2*i+2) })
		if r.waiters(engine.JobID(id)) != 0 { // asked behind the latest call
			t.Errorf("%s: it would end with who waits", id)
		}
		gone()
		if got := next(t, waits); rpcstatus.Code(got.err) != codes.Canceled {
			t.Errorf("%s: %v", id, got)
		}
		p.finish <- nil
		result, err := r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: id})
		wantProof(t, outcome{result, err}, "abc")
	}
	if p.count() != 2 {
		t.Errorf("proved %d times", p.count())
	}
}

// Goal: each GPU has its entry, with the job that began first of those that they share.
func TestStatus_GPUs(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error), devices: []string{"cpu", "cuda:0 NVIDIA H200", "cuda:3 NVIDIA L4, 24 GB", "cuda:x"}}
	r := newRig(t, p, nil)
	if g := r.status().Gpus; len(g) != 2 || g[0].Ordinal != 0 || g[1].Ordinal != 3 || g[1].Name != "NVIDIA L4, 24 GB" || g[0].CurrentJobId != "" || g[0].CurrentProofKind != "" {
		t.Errorf("%v", g)
	}
	first := r.start(t.Context(), porep("first", "abc"))
	next(t, p.begun)
	urgent := porep("urgent", "abc")
	urgent.Priority = pb.Priority_CRITICAL
	second := r.start(t.Context(), urgent)
	next(t, p.begun)
	for _, g := range r.status().Gpus {
		if g.CurrentJobId != "first" || g.CurrentProofKind != "porep-c2" {
			t.Errorf("%v", g)
		}
	}
	p.finish <- nil
	p.finish <- nil
	wantProof(t, next(t, first), "abc")
	wantProof(t, next(t, second), "abc")
}

// Goal: a connection that breaks off within a message, or in the middle of a proof without a word, leaves nothing behind.
func TestProve_ConnectionCut(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error)}
	r := newRig(t, p, nil)
	var conns []net.Conn
	conn, err := rpc.NewClient("passthrough:///x", rpc.WithTransportCredentials(insecure.NewCredentials()),
		rpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			c, err := net.Dial("unix", strings.TrimPrefix(r.address, "unix://"))
			conns = append(conns, c)
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	done := make(chan error, 1)
	go func() {
		_, err := pb.NewProvingEngineClient(conn).Prove(t.Context(), &pb.ProveRequest{Submit: porep("cut", "abc")})
		done <- err
	}()
	next(t, p.begun)
	conns[0].Close()
	if err := next(t, done); err == nil {
		t.Error("an answer over a connection that is closed")
	}
	until(t, "the job is gone", func() bool { return len(r.status().Queues) == 0 })
}

// Goal: submitted jobs run though nobody waits, are fetched by name, time out and are cancelled as asked.
func TestSubmitAwaitCancel(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error)}
	r := newRig(t, p, nil)
	ctx := t.Context()
	for i, id := range []string{"a", "b", "c"} {
		s, err := r.client.SubmitProof(ctx, porep(id, id))
		if err != nil || s.JobId != id {
			t.Fatal(s, err)
		}
		if i == 0 {
			next(t, p.begun)
		} else if int(s.QueuePosition) != i-1 {
			t.Errorf("%s: position %d", id, s.QueuePosition)
		}
	}
	await := func(id string, ms uint64) outcome {
		result, err := r.client.AwaitProof(ctx, &pb.AwaitProofRequest{JobId: id, TimeoutMs: ms})
		return outcome{result, err}
	}
	if got := await("a", 1); got.err != nil || got.result.Status != pb.AwaitProofResponse_TIMEOUT {
		t.Errorf("%v", got)
	}
	leaving, leave := context.WithTimeout(ctx, 20*time.Millisecond)
	defer leave()
	if _, err := r.client.AwaitProof(leaving, &pb.AwaitProofRequest{JobId: "a"}); rpcstatus.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	s := r.status()
	if len(s.Queues) != 1 || s.Queues[0].ProofKind != "porep-c2" || s.Queues[0].Pending != 2 || s.Queues[0].InProgress != 1 {
		t.Errorf("queues %v", s.Queues)
	}
	if len(s.Gpus) != 1 || s.Gpus[0].Ordinal != 1 || s.Gpus[0].Name != "NVIDIA H200" || s.Gpus[0].CurrentJobId != "a" || s.Gpus[0].CurrentProofKind != "porep-c2" {
		t.Errorf("gpus %v", s.Gpus)
	}
	for _, id := range []string{"a", "b"} { // one that runs and one that waits
		if c, err := r.client.CancelProof(ctx, &pb.CancelProofRequest{JobId: id}); err != nil || !c.WasRunning {
			t.Errorf("%v, %v", c, err)
		}
		if got := await(id, 0); got.err != nil || got.result.Status != pb.AwaitProofResponse_CANCELLED || !strings.Contains(got.result.ErrorMessage, "CancelProof") {
			t.Errorf("%v", got)
		}
		if c, err := r.client.CancelProof(ctx, &pb.CancelProofRequest{JobId: id}); err != nil || c.WasRunning {
			t.Errorf("cancelled twice: %v, %v", c, err)
		}
	}
	next(t, p.begun)
	p.finish <- nil
	wantProof(t, await("c", 1<<63), "c")
	m, err := r.client.GetMetrics(ctx, &pb.GetMetricsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cuzk_proofs_completed_total 1\n", "cuzk_proofs_failed_total 0\n", `cuzk_proofs_completed{proof_kind="porep_c2"} 1` + "\n",
		`cuzk_proofs_failed{proof_kind="porep_c2"} 0` + "\n", `cuzk_proof_duration_seconds_count{proof_kind="porep_c2"} 1` + "\n",
		"\ncuzk_uptime_seconds ", "cuzk_queue_depth 0\n", "cuzk_running_jobs 0\n", "cuzk_gpu_workers 1\n", "sealc2_queue_bytes 0\n",
	} {
		if !strings.Contains(m.PrometheusText, line) {
			t.Errorf("metrics lack %q:\n%s", line, m.PrometheusText)
		}
	}
}

// samples reads text in Prometheus's format: each family begins once, with help and type, and its values follow; each value is there once.
func samples(t *testing.T, text string) map[string]string {
	t.Helper()
	line := regexp.MustCompile(`^([a-z0-9_]+)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? ([0-9.e+-]+)$`)
	values, families := map[string]string{}, map[string]bool{}
	var family, kind string
	for i, one := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		word := strings.Fields(one)
		switch {
		case len(word) > 3 && one[:7] == "# HELP ":
			if family, kind = word[2], ""; families[family] {
				t.Errorf("line %d: %s begins again", i, family)
			}
			families[family] = true
		case len(word) == 4 && one[:7] == "# TYPE " && word[2] == family && kind == "":
			kind = word[3]
		default:
			m := line.FindStringSubmatch(one)
			if m == nil {
				t.Fatalf("line %d is none of the format: %q", i, one)
			}
			name := m[1]
			if kind == "summary" {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
			}
			if _, twice := values[m[1]+m[2]]; twice || name != family || kind == "" {
				t.Errorf("line %d: %q in the family %s, a %s; twice %t", i, one, family, kind, twice)
			}
			values[m[1]+m[2]] = m[3]
		}
	}
	return values
}

// Goal: an operator sees cuzk's names and all that the engine tells of itself in one text, which Prometheus reads.
func TestMetrics(t *testing.T) {
	r, e, c1 := sectorRig(t, engine.ParamSource{Dir: t.TempDir(), AllowDev: true})
	if _, err := r.prove(sectorRequest("no parameters", string(c1), 1)); err != nil {
		t.Fatal(err)
	}
	m, err := r.client.GetMetrics(t.Context(), &pb.GetMetricsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, own := samples(t, m.PrometheusText), samples(t, e.Metrics())
	for name := range own {
		if _, there := got[name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
	if len(got) != len(own)+11 {
		t.Errorf("%d values, of which the engine tells %d", len(got), len(own))
	}
	for name, want := range map[string]string{
		"cuzk_proofs_failed_total": "1", `sealc2_proofs_total{result="failed",class="snap-deals"}`: "1", `sealc2_stages_total{device="",lane="host",stage="parse"}`: "1",
		`sealc2_device_busy_share{device="cpu"}`: "0", `sealc2_budget_bytes{memory="queue",state="used"}`: "0", "sealc2_queue_bytes": "0",
	} {
		if got[name] != want {
			t.Errorf("%s: want %s, got %q of\n%s", name, want, got[name], m.PrometheusText)
		}
	}
}

// Goal: priorities are classes, which wait for none of a lower one, and then jobs go in order; a full queue refuses, and 16 clients at once are served.
func TestManyClients(t *testing.T) {
	p := &stand{begun: make(chan string, 40), finish: make(chan error)}
	r := newRig(t, p, func(c *Config) { c.Waiting = 5 })
	ctx := t.Context()
	submit := func(id string, priority pb.Priority) (position uint32, err error) {
		q := porep(id, id)
		q.Priority = priority
		s, err := r.client.SubmitProof(ctx, q)
		return s.GetQueuePosition(), err
	}
	for _, first := range []pb.Priority{pb.Priority_LOW, pb.Priority_NORMAL, pb.Priority_HIGH, pb.Priority_CRITICAL} {
		if _, err := submit(first.String(), first); err != nil {
			t.Fatal(err)
		}
		next(t, p.begun)
		if j, err := p.Job(engine.JobID(first.String())); err != nil || j.Progress().Class != engine.Class(first-pb.Priority_LOW) {
			t.Errorf("%v: %+v, %v", first, j.Progress(), err)
		}
	}
	for i, c := range []struct {
		priority pb.Priority
		position uint32
	}{{pb.Priority_LOW, 0}, {0, 0}, {pb.Priority_CRITICAL, 0}, {pb.Priority_NORMAL, 2}, {pb.Priority_HIGH, 1}} {
		if position, err := submit(fmt.Sprint(i), c.priority); err != nil || position != c.position {
			t.Errorf("job %d: want position %d, got %d, %v", i, c.position, position, err)
		}
	}
	_, err := submit("5", pb.Priority_LOW)
	wantCode(t, "full", err, codes.ResourceExhausted, "at most 5 jobs")
	if position, err := submit("6", pb.Priority_CRITICAL); err != nil || position != 1 { // those of lower priority take no place of its
		t.Errorf("an urgent job beside a full queue: position %d, %v", position, err)
	}
	if _, err := submit("0", pb.Priority_LOW); err != nil { // joins: takes no place
		t.Error(err)
	}
	var order []string
	for range 10 {
		p.finish <- nil
	}
	for range 6 {
		order = append(order, next(t, p.begun))
	}
	if slices.Index(order, "1") > slices.Index(order, "3") {
		t.Errorf("they began in the order %q", order)
	}

	q := &stand{}
	many := newRig(t, q, func(c *Config) { c.Waiting = 16 })
	var clients sync.WaitGroup
	for i := range 16 {
		client := dial(t, many.address)
		clients.Go(func() {
			for round := range 4 {
				c1 := strings.Repeat(fmt.Sprintf("client %d round %d ", i, round), 20_000)
				response, err := client.Prove(ctx, &pb.ProveRequest{Submit: porep(fmt.Sprint(i, round), c1)})
				wantProof(t, outcome{response.GetResult(), err}, c1)
			}
		})
	}
	clients.Wait()
	if q.count() != 64 || many.status().TotalProofsCompleted != 64 {
		t.Errorf("%d proofs", q.count())
	}
}

// Goal: the end of the server reaches who waits, and waits for the engine; its socket is gone, and a new server takes its
// place.
func TestServe_End(t *testing.T) {
	p := &stand{begun: make(chan string, 9), finish: make(chan error), stuck: 100 * time.Millisecond}
	r := newRig(t, p, nil)
	running := r.start(t.Context(), porep("running", "abc"))
	next(t, p.begun)
	pending := r.start(t.Context(), porep("pending", "abc"))
	until(t, "one waits", func() bool { return r.counts().Pending == 1 })
	r.end()
	wantCode(t, "running", next(t, running).err, codes.Unavailable, "ending")
	wantCode(t, "pending", next(t, pending).err, codes.Unavailable, "ending")
	if _, err := os.Stat(strings.TrimPrefix(r.address, "unix://")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Goal: every form of address, an old socket, and what must not be removed.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made", "s.sock")
	old, err := net.Listen("unix", filepath.Join(dir, "old.sock"))
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close() // leaves its socket behind, as a process that was killed does
	for _, address := range []string{"unix://" + path, "unix:" + filepath.Join(dir, "t.sock"), "unix://" + filepath.Join(dir, "old.sock"), "127.0.0.1:0", "tcp://127.0.0.1:0"} {
		l, err := Listen(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		defer l.Close()
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, kind := range map[string]status.Kind{
		"": status.Caller, "unix://": status.Caller, "host": status.Caller, "http://127.0.0.1:9820": status.Caller, "/run/x.sock": status.Caller,
		"127.0.0.1:99999": status.Input, "unix://" + path: status.Input, "unix://" + file: status.Input, "unix://" + file + "/s": status.Input,
	} {
		if l, err := Listen(address); err == nil || status.KindOf(err) != kind {
			t.Errorf("%q: want kind %v, got %v, %v", address, kind, l, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file: %q, %v", text, err)
	}
	// Over TCP, as Curio dials it.
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Config{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	server, err := New(Config{Engine: e, Waiting: 1, Messages: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	s, err := dial(t, l.Addr().String()).GetStatus(t.Context(), &pb.GetStatusRequest{})
	if err != nil || len(s.Gpus) != 0 {
		t.Errorf("%v, %v", s, err)
	}
	stop()
	if err := next(t, ended); err != nil {
		t.Error(err)
	}
	for _, bad := range []Config{{Waiting: 1}, {Messages: 1}, {Waiting: -1, Messages: 1}} {
		if _, err := New(bad); status.KindOf(err) != status.Caller {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Goal: ended jobs are remembered up to a number.
func TestResultsAreBounded(t *testing.T) {
	const kept = 1024 // docs/abi.md
	p := &stand{}
	r := newRig(t, p, func(c *Config) { c.Log = nil })
	for i := range kept + 5 {
		if result, err := r.prove(porep(fmt.Sprint(i), "abc")); err != nil || result.Status != pb.AwaitProofResponse_COMPLETED {
			t.Fatal(result, err)
		}
	}
	_, err := r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: "4"})
	wantCode(t, "the oldest", err, codes.NotFound, "")
	if _, err := r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: "5"}); err != nil {
		t.Error(err)
	}
	if n := len(p.Jobs()); n != kept {
		t.Errorf("%d jobs", n)
	}
}

// Goal: who asks for parameters before the first proof has them loaded, and let go, by the names that cuzk has for circuits; what is not proved here is not
// loaded, and a failure is the caller's to read.
func TestPreload(t *testing.T) {
	k := &stand{}
	r := newRig(t, k, nil)
	if _, err := r.client.PreloadSRS(t.Context(), &pb.PreloadSrsRequest{CircuitId: "porep-32g"}); err != nil {
		t.Error(err)
	}
	if _, err := r.client.EvictSRS(t.Context(), &pb.EvictSrsRequest{CircuitId: "porep-64g"}); err != nil {
		t.Error(err)
	}
	_, err := r.client.PreloadSRS(t.Context(), &pb.PreloadSrsRequest{CircuitId: "winning-32g"})
	wantCode(t, "a circuit that is not proved", err, codes.Unimplemented, "first proof")
	if _, err := r.client.EvictSRS(t.Context(), &pb.EvictSrsRequest{CircuitId: "winning-32g"}); err != nil {
		t.Error(err)
	}
	if !slices.Equal(k.kept, []string{"load 32GiB", "evict 64GiB"}) {
		t.Errorf("calls %q", k.kept)
	}
	k.keepErr = status.New(status.Params, "engine.Preload", "dir", "a file", "none")
	_, err = r.client.PreloadSRS(t.Context(), &pb.PreloadSrsRequest{CircuitId: "porep-32g"})
	wantCode(t, "no file", err, codes.Internal, "want a file")
}
