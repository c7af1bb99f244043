package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// JobID names a submitted job within its Engine: up to MaxJobID bytes of UTF-8 without control characters.
type JobID string

// MaxJobID is the most bytes that a JobID may have.
const MaxJobID = 127

// keptJobs is how many jobs that ended are remembered, each with its proof: 2 KiB at 32 GiB. Those whose result was fetched go first.
const keptJobs = 1024

// leastRequest is what the smallest request counts for in the queue, so that its length is bounded too.
const leastRequest = 16 << 10

// Class says how soon a proof is needed. A job of a higher class goes before those of lower ones.
type Class = sched.Class

// The classes, the least urgent first.
const (
	ClassPoRep   = sched.PoRep       // a sector's seal: days
	ClassSnap    = sched.SnapDeals   // an update of a sector's data
	ClassWindow  = sched.WindowPoSt  // half an hour
	ClassWinning = sched.WinningPoSt // seconds
	ClassCount   = ClassWinning + 1
)

// SubmitOptions say how a job is to be treated. They are no part of its content.
type SubmitOptions struct {
	ID    JobID // empty: one is made
	Class Class
	// Deadline is when the proof is of no use any more: the job is cancelled then. In its class the earlier one goes first. Zero: none.
	Deadline time.Time
	// Room is how long Submit waits for room in the queue; 0: until its ctx ends.
	Room time.Duration
	// QueueLimit refuses a new job (kind Timeout, at once) where so many of its class and higher ones are queued already; 0: any number. One that
	// joins adds none.
	QueueLimit int
	// JudgeLater lets the job fail by what would else be told beforehand: to whoever submits, nothing is wrong then with any C1 output.
	JudgeLater bool
	// Replace lets other content have the name of a job that is done, whose result is forgotten then.
	Replace bool
}

// JobState is how far a job is.
type JobState uint8

// The states. A job goes from the first ones to one of the last three.
const (
	JobQueued    JobState = iota // nothing of it has run
	JobRunning                   // being parsed, admitted or proved
	JobDone                      // its proof is there
	JobFailed                    // its error says why
	JobCancelled                 // by Cancel, its deadline or Close
)

// String is the state's name in logs and text.
func (s JobState) String() string {
	return [...]string{"queued", "running", "done", "failed", "cancelled"}[s]
}

// Ended says that the state is a last one.
func (s JobState) Ended() bool { return s >= JobDone }

// JobProgress is a job at one moment.
type JobProgress struct {
	ID         JobID
	Class      Class
	State      JobState
	Submitted  time.Time
	Began      time.Time // of its first stage; zero while it waits
	Ended      time.Time // zero until then
	Deadline   time.Time // zero: none
	Partitions int       // 0 where not known yet
	Delivered  int       // partitions whose proofs are there
	Ahead      int       // while it is queued: the queued jobs that go first, of all classes
	Last       Progress  // the stage that ended last; Stage is empty before the first
	Err        error     // why it failed or was cancelled
}

// Job is a submitted proof. All methods may be called from any number of goroutines, also after Close.
type Job struct {
	id       JobID
	digest   [sha256.Size]byte
	class    Class
	deadline time.Time
	priority host.Priority // the place that the scheduler gives the job, but for those that came in the same instant
	jobs     *jobs
	ctx      context.Context
	cancel   context.CancelCauseFunc
	placed   chan struct{} // closed when its request has room in the queue
	entered  chan struct{} // closed when it has its place with the scheduler
	done     chan struct{}

	// Under jobs.mu.
	at      JobProgress
	fetched bool
	c1      *host.Arena       // copy of the request's, until the job is admitted
	queued  *host.Reservation // of the queue, as long as c1
	result  *ProveResult      // fixed when done is closed, as at is
}

// jobs are those of an engine: under way, and the latest that ended.
type jobs struct {
	queue *host.Budget // for copies of requests

	mu    sync.Mutex
	byID  map[JobID]*Job
	ended []*Job // oldest first; one of which a later one has the name may still be here

	totals JobCounts // of those that ended
}

// urgentQueueFrom is from what size on an eighth of the queue is kept for the highest class.
const urgentQueueFrom = 64 << 20

func newJobs(queueBytes int64) *jobs {
	s := &jobs{queue: host.NewBudget(host.Needs{HostBytes: queueBytes}), byID: map[JobID]*Job{}}
	if queueBytes >= urgentQueueFrom {
		s.queue.SetAside(uint8(ClassWinning), queueBytes/8)
	}
	return s
}

// Submit queues a sector to be proved, and returns when its request is copied: nothing of it is borrowed any longer, but for its
// callbacks, which come from a goroutine of the job's. What can be told beforehand is told now: a C1 output whose statement is malformed
// or of another sector, and a proof that the budget can never hold, with both numbers. For that the first job of a shape records its
// circuit, a second or two at 32 GiB. Where Config.QueueBytes are taken it waits until jobs ahead are admitted, as long as the options say, or until ctx ends.
//
// A job that is under way, or done, under the same ID: with the same content it is that one which is returned, whatever the other
// options are; with other content it is an error. The name of one that failed or was cancelled can be used again.
//
// Errors: Caller (no C1, a bad ID, an ID of other content, a closed engine, one without a queue), Input, Unsupported, NoMemory, Timeout
// (the queue had no room in time, or its limit of jobs), Cancelled.
func (e *Engine) Submit(ctx context.Context, request *ProveRequest, options SubmitOptions) (j *Job, err error) {
	const op = "engine.Submit"
	defer status.Recover(op, &err)
	if request == nil || len(request.C1) == 0 {
		return nil, status.New(status.Caller, op, "C1", "the output of Commit phase 1", "nothing")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	// One that was submitted before need not be judged again.
	digest := contentOf(request)
	known, err := e.jobs.known(op, digest, options)
	if known == nil && err == nil && !options.JudgeLater {
		err = e.judge(op, request, options.Class)
	}
	if err != nil {
		return nil, err
	}
	return e.submit(ctx, op, int64(len(request.C1)), digest, options, func(j *Job) (func(context.Context) (*ProveResult, error), error) {
		own := j.copyOf(request)
		return func(ctx context.Context) (*ProveResult, error) { return e.Prove(ctx, own) }, nil
	})
}

// copyOf makes a request the job's own.
func (j *Job) copyOf(request *ProveRequest) *ProveRequest {
	own := *request
	own.C1, own.Statement, own.R, own.S = host.Alloc[byte](j.c1, len(request.C1)), slices.Clone(request.Statement), slices.Clone(request.R), slices.Clone(request.S)
	copy(own.C1, request.C1)
	if request.IDs != nil {
		ids := *request.IDs
		own.IDs = &ids
	}
	own.job = j
	return &own
}

// judge refuses what Prove would refuse later.
func (e *Engine) judge(op string, request *ProveRequest, class Class) error {
	sector, err := c1.Parse(request.C1, c1.Options{Statement: request.Statement, IDs: (*c1.IDs)(request.IDs), StatementOnly: true})
	if err != nil {
		return err
	}
	st := &sector.Statement
	if request.OnChain && st.Kind == porep.NonInteractive {
		return aggregation(op)
	}
	if err := checkScalars(op, st.PartitionCount(), request.R, request.S); err != nil {
		return err
	}
	_, err = e.requirements(op, st.Shape, st.PartitionCount(), parseBytes(len(request.C1)), e.devices, class)
	e.answered(st.Shape, err == nil)
	return err
}

// submit books a job and starts it. prepare copies what it needs, into j.c1 the large part, of bytes bytes, and returns what proves.
func (e *Engine) submit(ctx context.Context, op string, bytes int64, digest [sha256.Size]byte, options SubmitOptions,
	prepare func(*Job) (func(context.Context) (*ProveResult, error), error)) (*Job, error) {
	if err := options.check(op); err != nil {
		return nil, err
	}
	size := max(leastRequest, host.SliceBytes[byte](int(bytes)))
	if q := e.jobs.queue.Usage().Ceiling.HostBytes; q == 0 {
		return nil, status.New(status.Caller, op, "engine", "one with a queue for jobs (QueueBytes)", "one without")
	}
	if err := e.jobs.queue.FitsFor(op, host.Priority{Class: uint8(options.Class)}, host.Needs{HostBytes: size}); err != nil {
		return nil, status.Wrap(status.NoMemory, op, "queue", err)
	}
	waiting, cancel := context.WithCancel(ctx)
	if options.Room > 0 {
		waiting, cancel = context.WithTimeout(ctx, e.jobs.patience(options.Room, size))
	}
	defer cancel()
	j, joined, err := e.jobs.add(op, digest, options)
	for ; joined && err == nil; j, joined, err = e.jobs.add(op, digest, options) {
		placed, err := j.awaitPlace(op, waiting)
		if placed {
			e.log("info", "job %q: joined", j.id)
			return j, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	start := func() (run func(context.Context) (*ProveResult, error), err error) {
		defer status.Recover(op, &err)
		defer context.AfterFunc(j.ctx, cancel)() // also a Cancel of the job ends the wait
		queued := e.jobs.queue.Open(j.priority)
		if err := queued.Grow(waiting, host.Needs{HostBytes: size}); err != nil {
			return nil, noRoom(op, e.jobs.roomFor(size), waiting, err)
		}
		e.jobs.mu.Lock()
		j.queued = queued
		e.jobs.mu.Unlock()
		close(j.placed)
		arena, err := host.NewArena(size)
		if err != nil {
			return nil, err
		}
		e.jobs.mu.Lock()
		j.c1 = arena
		e.jobs.mu.Unlock()
		return prepare(j)
	}
	run, err := start()
	if err != nil {
		return nil, e.jobs.turnAway(j, err)
	}
	e.log("info", "job %q: %s, %d bytes", j.id, j.class, bytes)
	e.calls.Add(1) // the caller is in a call, so that Close waits for this one too
	go func() {
		var err error // of what comes behind the job's end, when nobody waits any more
		defer status.Recover("engine.Submit", &err)
		e.carry(j, run)
	}()
	select { // so that jobs submitted one after the other stand in that order
	case <-j.entered:
	case <-j.done:
	}
	return j, nil
}

// carry does a job's work, and sees that the job ends, whatever happens.
func (e *Engine) carry(j *Job, run func(context.Context) (*ProveResult, error)) {
	var err error
	defer e.calls.Done()
	defer e.jobs.conclude(j, &err)
	defer status.Recover("engine.Submit", &err)
	e.work(j, run)
}

// work proves, and ends the job.
func (e *Engine) work(j *Job, run func(context.Context) (*ProveResult, error)) {
	var result *ProveResult
	var err error
	func() {
		defer status.Recover("engine.Submit", &err)
		result, err = run(j.ctx)
	}()
	if e.ctx.Err() != nil && err != nil && j.ctx.Err() == nil { // refused or cancelled by Close
		err = status.Wrap(status.Cancelled, "engine.Close", "the engine was closed", err)
	}
	e.jobs.end(j, result, err)
	switch at := j.Brief(); at.State {
	case JobDone:
		e.log("info", "job %q: done, %d bytes of proof", j.id, len(result.Proof))
	case JobCancelled:
		e.log("info", "job %q: %v", j.id, at.Err)
	default:
		e.log("error", "job %q: %v", j.id, at.Err)
	}
}

// patience is how long a request of size bytes waits for room. Where there is some now, a short time must not be over before the
// request has asked for it, as on a machine with more to do than CPUs it would be.
func (s *jobs) patience(wish time.Duration, size int64) time.Duration {
	if u := s.queue.Usage(); u.Waiting == 0 && u.Used.HostBytes+size <= u.Ceiling.HostBytes {
		return max(wish, time.Second)
	}
	return wish
}

// awaitPlace waits until the job's request has room in the queue. False without an error: who submitted it was turned away.
func (j *Job) awaitPlace(op string, waiting context.Context) (bool, error) {
	select {
	case <-j.placed: // however late it is
		return true, nil
	default:
	}
	select {
	case <-j.placed:
		return true, nil
	case <-j.done:
		return false, nil
	case <-waiting.Done():
		return false, noRoom(op, fmt.Sprintf("job %q, which waits for room in the queue", string(j.id)), waiting, waiting.Err())
	}
}

// roomFor says what a request of so many bytes waits for, with what there is.
func (s *jobs) roomFor(size int64) string {
	u := s.queue.Usage()
	return fmt.Sprintf("room for %d bytes in the queue, where %d of %d are taken", size, u.Used.HostBytes, u.Ceiling.HostBytes)
}

// noRoom is the end of a wait for room in the queue.
func noRoom(op, what string, waiting context.Context, err error) error {
	if errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return status.Wrap(status.Timeout, op, what, err)
	}
	if who := (*status.Error)(nil); errors.As(context.Cause(waiting), &who) {
		err = who
	}
	return status.Wrap(status.Cancelled, op, "", err)
}

func (o *SubmitOptions) check(op string) error {
	if err := o.ID.check(op); err != nil {
		return err
	}
	if o.Class >= ClassCount {
		return status.New(status.Caller, op, "class", fmt.Sprintf("at most %d", ClassCount-1), fmt.Sprint(uint8(o.Class)))
	}
	return nil
}

func (id JobID) check(op string) error {
	const want = "up to 127 bytes of text without control characters"
	switch {
	case len(id) > MaxJobID:
		return status.New(status.Caller, op, "job id", want, fmt.Sprintf("%d bytes", len(id)))
	case !utf8.ValidString(string(id)) || strings.ContainsFunc(string(id), unicode.IsControl):
		return status.New(status.Caller, op, "job id", want, fmt.Sprintf("%q", string(id)))
	}
	return nil
}

// contentOf is a digest of what a request asks for.
func contentOf(request *ProveRequest) (digest [sha256.Size]byte) {
	h := sha256.New()
	hashBytes(h, request.C1)
	hashBytes(h, request.Statement)
	if ids := request.IDs; ids != nil {
		hashBytes(h, binary.LittleEndian.AppendUint64(ids.ProverID[:], ids.SectorID))
	} else {
		hashBytes(h, nil)
	}
	p := &request.Params
	hashBytes(h, []byte(p.Dir))
	hashBytes(h, fmt.Appendf(nil, "%t %t %t", p.AllowDev, p.VerifyProduction, request.OnChain))
	for _, list := range [][]byte{elements(len(request.R), func(i int) [32]byte { return request.R[i].Bytes() }), elements(len(request.S), func(i int) [32]byte { return request.S[i].Bytes() })} {
		hashBytes(h, list)
	}
	h.Sum(digest[:0])
	return digest
}

func elements(n int, at func(int) [32]byte) (all []byte) {
	for i := range n {
		one := at(i)
		all = append(all, one[:]...)
	}
	return all
}

// hashBytes hashes a part with its length, so that no part can pass for the end of another.
func hashBytes(h hash.Hash, part []byte) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}

// newJobID names a job that its caller did not: a random UUID.
func newJobID() JobID {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return JobID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// known is the job of a name if it is one that a request of this content joins; an error if it is another.
func (s *jobs) known(op string, digest [sha256.Size]byte, options SubmitOptions) (*Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(op, digest, options)
}

// find: see known; the caller holds mu.
func (s *jobs) find(op string, digest [sha256.Size]byte, options SubmitOptions) (*Job, error) {
	j := s.byID[options.ID]
	switch {
	case j == nil || options.ID == "" || j.at.State == JobFailed || j.at.State == JobCancelled || !j.at.State.Ended() && j.ctx.Err() != nil:
		return nil, nil
	case j.digest != digest && options.Replace && j.at.State.Ended():
		return nil, nil
	case j.digest != digest:
		return nil, status.New(status.Caller, op, fmt.Sprintf("job %q", string(options.ID)), "the content that it was submitted with", "another")
	}
	return j, nil
}

// add books a new job, or joins one.
func (s *jobs) add(op string, digest [sha256.Size]byte, options SubmitOptions) (j *Job, joined bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j, err := s.find(op, digest, options); j != nil || err != nil {
		return j, j != nil, err
	}
	if options.QueueLimit > 0 {
		queued, _ := s.waiting()
		queued = slices.DeleteFunc(queued, func(j *Job) bool { return j.class < options.Class })
		if len(queued) >= options.QueueLimit {
			return nil, false, status.New(status.Timeout, op, "queue", fmt.Sprintf("at most %d jobs that wait", options.QueueLimit), "one more")
		}
	}
	j = &Job{id: options.ID, digest: digest, class: options.Class, deadline: options.Deadline, jobs: s, placed: make(chan struct{}), entered: make(chan struct{}), done: make(chan struct{})}
	if j.id == "" {
		j.id = newJobID()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	j.ctx, j.cancel = ctx, cancel
	if !j.deadline.IsZero() {
		var stop context.CancelFunc
		j.ctx, stop = context.WithDeadlineCause(ctx, j.deadline,
			status.New(status.Cancelled, "engine.Job", fmt.Sprintf("job %q", string(j.id)), "", "its deadline is over"))
		j.cancel = func(cause error) { cancel(cause); stop() }
	}
	j.at = JobProgress{ID: j.id, Class: j.class, Submitted: time.Now(), Deadline: j.deadline}
	j.priority = sched.PriorityOf(j.class, j.deadline, j.at.Submitted, 0)
	s.byID[j.id] = j
	return j, false, nil
}

// waiting are the queued jobs, and the number of those that run; the caller holds mu.
func (s *jobs) waiting() (queued []*Job, running int) {
	for _, j := range s.byID {
		switch j.at.State {
		case JobQueued:
			queued = append(queued, j)
		case JobRunning:
			running++
		}
	}
	return queued, running
}

// end fixes a job's outcome, and forgets the oldest where too many are remembered.
func (s *jobs) end(j *Job, result *ProveResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.settle(result, err)
	switch j.at.State {
	case JobDone:
		s.totals.Done++
		s.totals.DoneTime += j.at.Ended.Sub(j.at.Submitted)
	case JobFailed:
		s.totals.Failed++
	case JobCancelled:
		s.totals.Cancelled++
	}
	s.ended = append(s.ended, j)
	if len(s.ended) > keptJobs {
		s.drop(max(0, slices.IndexFunc(s.ended, func(j *Job) bool { return j.fetched })))
	}
}

// conclude ends a job that a panic on the way to its end has left open: whoever waits for it would wait for ever.
func (s *jobs) conclude(j *Job, broken *error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.at.State >= JobDone { // no call, which might panic as well
		return
	}
	j.at.State, j.at.Err, j.at.Ended = JobFailed, *broken, time.Now()
	s.totals.Failed++
	s.ended = append(s.ended, j)
	close(j.done)
	j.cancel(nil)
	j.release()
}

// turnAway ends a job that was never accepted. It is not remembered: who is refused again and again must not drive out results that
// nobody has fetched yet. It returns what its submitter is to know: err, or who cancelled it.
func (s *jobs) turnAway(j *Job, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcome := err
	if status.KindOf(err) == status.Timeout {
		outcome = status.Wrap(status.Cancelled, "engine.Submit", "a submission that was turned away", err)
	}
	j.settle(nil, outcome)
	if s.byID[j.id] == j {
		delete(s.byID, j.id)
	}
	if status.KindOf(err) == status.Cancelled {
		return j.at.Err
	}
	return err
}

// settle fixes the outcome; the caller holds mu.
func (j *Job) settle(result *ProveResult, err error) {
	cause := context.Cause(j.ctx)
	j.cancel(nil) // frees what the context holds
	j.release()
	j.at.Ended = time.Now()
	switch kind := status.KindOf(err); {
	case err == nil:
		j.result, j.at.State = result, JobDone
	case kind == status.Cancelled:
		j.at.State = JobCancelled
		if own := (*status.Error)(nil); errors.As(cause, &own) { // says who cancelled it, and err where it was
			said := *own
			said.Cause = err
			err = &said
		}
	case kind == status.Timeout: // which to those who wait for it would mean that it goes on
		j.at.State, err = JobFailed, status.Wrap(status.NoDevice, "engine.Job", "a device that answers too late", err)
	default:
		j.at.State = JobFailed
	}
	j.at.Err = err
	close(j.done)
}

// drop forgets an ended job; the caller holds mu.
func (s *jobs) drop(i int) {
	j := s.ended[i]
	s.ended = slices.Delete(s.ended, i, i+1)
	if s.byID[j.id] == j {
		delete(s.byID, j.id)
	}
}

// release gives back the copy of the request; the caller holds mu.
func (j *Job) release() {
	if j.c1 != nil {
		j.c1.Close()
		j.c1 = nil
	}
	j.queued.Release()
	j.queued = nil
}

// Job is the latest job of a name. Errors: Caller where there is none, or none any more.
func (e *Engine) Job(id JobID) (*Job, error) {
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	if j := e.jobs.byID[id]; j != nil {
		return j, nil
	}
	return nil, status.New(status.Caller, "engine.Job", "job id", "one that was submitted and is remembered", fmt.Sprintf("%q", string(id)))
}

// Jobs are all jobs that are remembered, in the order of submission.
func (e *Engine) Jobs() (all []JobProgress) {
	e.jobs.mu.Lock()
	queued, _ := e.jobs.waiting()
	for _, j := range e.jobs.byID {
		all = append(all, j.progress(queued))
	}
	e.jobs.mu.Unlock()
	slices.SortFunc(all, func(a, b JobProgress) int { return a.Submitted.Compare(b.Submitted) })
	return all
}

// JobCounts are an engine's submitted jobs in numbers.
type JobCounts struct {
	Queued, Running         int           // now
	Done, Failed, Cancelled uint64        // ended since Open
	DoneTime                time.Duration // of the done ones together, from Submit to their end
	QueueBytes              int64         // that the queue holds of requests
}

// JobCounts counts the submitted jobs.
func (e *Engine) JobCounts() JobCounts {
	held := e.jobs.queue.Usage().Used.HostBytes
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	c := e.jobs.totals
	queued, running := e.jobs.waiting()
	c.Queued, c.Running, c.QueueBytes = len(queued), running, held
	return c
}

// ID is the job's name.
func (j *Job) ID() JobID { return j.id }

// Wait returns the job's proof, or the error that it ended with; any number of times. The result must not be written. Timeout and
// Cancelled, with engine.Wait as their operation, are about the wait itself, when ctx ends before the job: it goes on.
func (j *Job) Wait(ctx context.Context) (*ProveResult, error) {
	const op = "engine.Wait"
	select {
	case <-j.done:
	default:
		select {
		case <-j.done:
		case <-ctx.Done():
			kind := status.Cancelled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				kind = status.Timeout
			}
			return nil, status.Wrap(kind, op, fmt.Sprintf("job %q, which is %s", string(j.id), j.Brief().State), ctx.Err())
		}
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.fetched = true
	return j.result, j.at.Err
}

// Progress tells how far the job is.
func (j *Job) Progress() JobProgress {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	queued, _ := j.jobs.waiting()
	return j.progress(queued)
}

// Brief is Progress without Ahead, for who asks for many jobs again and again: it takes no longer with a long queue.
func (j *Job) Brief() JobProgress {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	return j.at
}

// progress is at, with its place among the queued jobs; the caller holds mu.
func (j *Job) progress(queued []*Job) JobProgress {
	at := j.at
	if at.State == JobQueued {
		for _, other := range queued {
			if other.priority.Compare(j.priority) < 0 {
				at.Ahead++
			}
		}
	}
	return at
}

// Cancel ends the job at its next stage border, or inside a long stage; it does not wait for that. One that has ended stays as it
// is.
func (j *Job) Cancel() { j.CancelFor("cancelled") }

// CancelFor is Cancel with a reason in words: what the job's error says it got, with engine.Cancel as its operation. It tells whether it is
// this call that ends the job, which had neither ended nor been cancelled.
func (j *Job) CancelFor(why string) bool {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	if j.at.State.Ended() || j.ctx.Err() != nil {
		return false
	}
	j.cancel(status.New(status.Cancelled, "engine.Cancel", fmt.Sprintf("job %q", string(j.id)), "", why))
	return true
}

// Forget lets go of the job's name and result. One that has not ended is cancelled first.
func (j *Job) Forget() {
	j.Cancel()
	s := j.jobs
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.ended, j); i >= 0 {
		s.drop(i)
	} else if s.byID[j.id] == j {
		delete(s.byID, j.id)
		j.fetched = true
	}
}

// admitted is told that the request's C1 is not read any more; j may be nil. Before, a job of a higher class may send it back to the start.
func (j *Job) admitted() {
	if j == nil {
		return
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.release()
}

// enters says that the scheduler has the job; j may be nil. It may be called several times.
func (j *Job) enters() {
	if j == nil {
		return
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	select {
	case <-j.entered:
	default:
		close(j.entered)
	}
}

// begins is told that the first stage does; j may be nil.
func (j *Job) begins() {
	if j == nil {
		return
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.at.State = JobRunning
	if j.at.Began.IsZero() { // else it was sent back to the start
		j.at.Began = time.Now()
	}
}

// hears is told of a stage that ended; j may be nil.
func (j *Job) hears(p Progress) {
	if j == nil {
		return
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.at.Last, j.at.Partitions = p, max(j.at.Partitions, p.Partitions)
}

// delivers is told of a partition's proof; j may be nil.
func (j *Job) delivers() {
	if j == nil {
		return
	}
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.at.Delivered++
}
