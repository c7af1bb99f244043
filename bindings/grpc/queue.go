package grpc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// keptResults is how many ended jobs are remembered, for AwaitProof and for retries. 32 GiB: 2 KiB each.
const keptResults = 1024

// Why a job was cancelled.
var (
	errAsked    = errors.New("cancelled by CancelProof")
	errDeserted = errors.New("nobody waits for it any more")
	errEnding   = rpcstatus.Error(codes.Unavailable, "the server is ending")
)

// job is one proof. All but the constant part is guarded by its queue's mutex until done is closed; then it is fixed.
type job struct {
	id        string
	kind      pb.ProofKind
	priority  pb.Priority
	digest    [32]byte
	submitted time.Time
	done      chan struct{}
	ctx       context.Context
	cancel    context.CancelCauseFunc

	in       *input // nil once it ended
	begun    time.Time
	waiters  int
	detached bool // runs though nobody waits
	ended    bool

	result *pb.AwaitProofResponse // set when done is closed, unless err is
	err    error                  // a gRPC error in place of a result
}

// live says that a retry of it may join.
func (j *job) live() bool { return !j.ended && j.ctx.Err() == nil }

// totals count what ended.
type totals struct {
	completed, failed uint64
	seconds           float64 // of the completed ones, from submission
}

// queue orders jobs by priority, then by submission, and remembers those that ended. Safe for concurrent use.
type queue struct {
	prover Prover
	params engine.ParamSource
	limit  int // of pending jobs
	log    func(level, format string, args ...any)

	mu      sync.Mutex
	work    sync.Cond // a job is pending, or the queue is closed
	closed  bool
	jobs    map[string]*job
	pending []*job // in the order in which they run
	running []*job // in the order in which they began
	ended   []*job // oldest first; a job of which a later one has the name may still be here
	totals  totals
	workers sync.WaitGroup
}

// newQueue makes a queue with so many workers, each of which has one job in the engine. limit is how many may wait.
func newQueue(prover Prover, params engine.ParamSource, workers, limit int, log func(level, format string, args ...any)) *queue {
	q := &queue{prover: prover, params: params, limit: limit, log: log, jobs: map[string]*job{}}
	q.work.L = &q.mu
	for range workers {
		q.workers.Go(q.run)
	}
	return q
}

// submit queues an input, or joins the job that is already there, and owns the input from then on. detached: it runs
// though nobody waits; else the caller waits and must call leave. position is how many jobs go first.
func (q *queue) submit(in *input, detached bool) (j *job, position int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer func() {
		if j == nil || j.in != in {
			in.release()
		}
	}()
	if q.closed {
		return nil, 0, errEnding
	}
	id := in.fields.GetRequestId()
	j = q.jobs[id]
	switch {
	case j != nil && j.live() && j.digest != in.digest:
		return nil, 0, rpcstatus.Errorf(codes.AlreadyExists, "request_id %q: want the content of the job that is under way, got another", id)
	case j != nil && j.digest == in.digest && (j.live() || j.result.GetStatus() == pb.AwaitProofResponse_COMPLETED):
		q.log("info", "job %q: joined", j.id)
	default:
		if len(q.pending) >= q.limit {
			j = nil
			return nil, 0, rpcstatus.Errorf(codes.ResourceExhausted, "queue: want at most %d jobs that wait, got one more", q.limit)
		}
		if id == "" {
			id = newID()
		}
		j = q.add(id, in)
	}
	if detached {
		j.detached = true
	} else {
		j.waiters++
	}
	return j, max(0, slices.Index(q.pending, j)), nil
}

// add makes a job and puts it behind the last one of its priority or a higher one.
func (q *queue) add(id string, in *input) *job {
	j := &job{
		id: id, kind: in.fields.GetProofKind(), priority: priority(in.fields.GetPriority()), digest: in.digest,
		submitted: time.Now(), done: make(chan struct{}), in: in,
	}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	at := slices.IndexFunc(q.pending, func(other *job) bool { return other.priority < j.priority })
	if at < 0 {
		at = len(q.pending)
	}
	q.pending = slices.Insert(q.pending, at, j)
	q.jobs[id] = j
	q.log("info", "job %q: %s, miner %d, sector %d, %d bytes, priority %v, %d before it", id, kindName(j.kind), in.fields.GetMinerId(),
		in.fields.GetSectorNumber(), len(in.vanilla), j.priority, at)
	q.work.Signal()
	return j
}

// priority is what a request asks for, or else NORMAL: PoRep is never more urgent by itself.
func priority(p pb.Priority) pb.Priority {
	if p < pb.Priority_LOW || p > pb.Priority_CRITICAL {
		return pb.Priority_NORMAL
	}
	return p
}

// newID names a job that its caller did not: a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// leave ends one wait that submit began. A job for which nobody waits any more is cancelled.
func (q *queue) leave(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.waiters--
	if j.waiters == 0 && !j.detached && j.live() {
		q.cancel(j, errDeserted)
	}
}

// find is the latest job of a name; nil where there is none.
func (q *queue) find(id string) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs[id]
}

// abort cancels the job of a name and tells whether it waited or ran.
func (q *queue) abort(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.jobs[id]
	if j == nil || !j.live() {
		return false
	}
	q.cancel(j, errAsked)
	return true
}

// cancel ends a pending job now; one that runs ends when the engine has let go of it. The mutex is held.
func (q *queue) cancel(j *job, why error) {
	j.cancel(why)
	if at := slices.Index(q.pending, j); at >= 0 {
		q.pending = slices.Delete(q.pending, at, at+1)
		q.end(j, nil, status.Wrap(status.Cancelled, "grpc.Queue", "", why))
	}
}

// run is a worker.
func (q *queue) run() {
	var err error
	defer func() {
		if err != nil {
			q.log("error", "%v", err)
		}
	}()
	defer status.Recover("grpc.Queue", &err)
	for {
		j := q.take()
		if j == nil {
			return
		}
		result, err := q.prove(j)
		q.mu.Lock()
		q.running = slices.DeleteFunc(q.running, func(other *job) bool { return other == j })
		q.end(j, result, err)
		q.mu.Unlock()
	}
}

// take waits for a job to run; nil when the queue is closed.
func (q *queue) take() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) == 0 && !q.closed {
		q.work.Wait()
	}
	if q.closed {
		return nil
	}
	j := q.pending[0]
	q.pending = slices.Delete(q.pending, 0, 1)
	q.running = append(q.running, j)
	j.begun = time.Now()
	return j
}

// prove runs a job that take gave out.
func (q *queue) prove(j *job) (result *engine.ProveResult, err error) {
	defer status.Recover("grpc.Prove", &err)
	request := &engine.ProveRequest{C1: j.in.vanilla, Params: q.params, OnChain: true}
	if actor := j.in.fields.GetMinerId(); actor != 0 {
		request.IDs = &engine.SectorIDs{SectorID: j.in.fields.GetSectorNumber()}
		binary.PutUvarint(request.IDs.ProverID[:], actor) // unsigned LEB128, at most 10 bytes
	}
	result, err = q.prover.Prove(j.ctx, request)
	status.Check(err != nil || result != nil, "grpc.Prove", "a result or an error")
	return result, err
}

// end fixes the outcome of a job that neither waits nor runs, and wakes who waits for it. The mutex is held.
func (q *queue) end(j *job, proved *engine.ProveResult, err error) {
	now := time.Now()
	why := context.Cause(j.ctx)
	j.cancel(nil) // frees what the context holds
	j.in.release()
	j.in = nil
	j.ended = true
	r := &pb.AwaitProofResponse{JobId: j.id, TotalMs: millis(now.Sub(j.submitted))}
	if !j.begun.IsZero() {
		r.QueueWaitMs = millis(j.begun.Sub(j.submitted))
	} else {
		r.QueueWaitMs = r.TotalMs
	}
	switch {
	case err == nil:
		r.Status, r.Proof = pb.AwaitProofResponse_COMPLETED, proved.Proof
		r.SrsLoadMs, r.SynthesisMs, r.GpuComputeMs = stageTimes(proved.Stages)
		q.totals.completed++
		q.totals.seconds += now.Sub(j.submitted).Seconds()
		q.log("info", "job %q: completed, %d bytes, %d ms, of which it waited %d", j.id, len(r.Proof), r.TotalMs, r.QueueWaitMs)
	case why == errEnding:
		j.err = errEnding
	case why != nil:
		r.Status, r.ErrorMessage = pb.AwaitProofResponse_CANCELLED, why.Error()
		q.log("info", "job %q: %v", j.id, why)
	default:
		r.Status, r.ErrorMessage = pb.AwaitProofResponse_FAILED, strings.ToValidUTF8(err.Error(), "\uFFFD")
		if status.KindOf(err) == status.SelfCheck {
			r.ErrorMessage = "PoRep proof self-check failed: " + r.ErrorMessage // the words that cuzk's users look for
		}
		q.totals.failed++
		q.log("error", "job %q: %s", j.id, r.ErrorMessage)
	}
	j.result = r
	close(j.done)
	q.ended = append(q.ended, j)
	if len(q.ended) > keptResults {
		oldest := q.ended[0]
		q.ended = slices.Delete(q.ended, 0, 1)
		if q.jobs[oldest.id] == oldest {
			delete(q.jobs, oldest.id)
		}
	}
}

// answer is what a waiter of an ended job gets. The messages of several waiters are sent at once: each gets its own.
func (j *job) answer() (*pb.AwaitProofResponse, error) {
	if j.err != nil {
		return nil, j.err
	}
	return proto.CloneOf(j.result), nil
}

// shut refuses jobs from now on and cancels those that are here.
func (q *queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, j := range slices.Clone(q.pending) {
		q.cancel(j, errEnding)
	}
	for _, j := range q.running {
		q.cancel(j, errEnding)
	}
	q.work.Broadcast()
}

// join waits for the workers after shut; the engine has then let go of all jobs.
func (q *queue) join() { q.workers.Wait() }

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
