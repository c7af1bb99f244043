package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// session is an open engine and the calls that use it.
type session struct {
	engine *engine.Engine
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // grows only under handles.mu, while the session is listed

	mu     sync.Mutex
	stages []engine.StageTime // of the proof that finished last
}

// job is a name under which running work can be cancelled, or a submitted proof.
type job struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	submitted *engine.Job // nil for a name
}

// handles is the one global of the library: what its numbers stand for. Numbers are not used twice.
var handles = struct {
	mu       sync.Mutex
	last     uint64
	sessions map[uint64]*session
	jobs     map[uint64]*job

	opening  sync.Mutex // held while the shared session is found or opened
	shared   *session   // of sealc2_ffi.h; nil until the first call
	sharedAs sharedConfig
}{sessions: map[uint64]*session{}, jobs: map[uint64]*job{}}

// sharedConfig is what the environment says of the shared session; another answer opens another one.
type sharedConfig struct {
	threads int
	device  string
	gpuLock string
}

func newSession(config engine.Config) (*session, error) {
	opened, err := engine.Open(config)
	if err != nil {
		return nil, err
	}
	s := &session{engine: opened}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// close ends the calls of a session that is no longer listed, waits for them and closes the engine.
func (s *session) close(op string) error {
	s.cancel(status.New(status.Cancelled, op, "", "", "the engine was closed"))
	return s.drain()
}

// drain waits for the calls of a session that is no longer listed and closes the engine.
func (s *session) drain() error {
	s.calls.Wait()
	s.cancel(nil)
	return s.engine.Close()
}

func addSession(s *session) uint64 {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	handles.last++
	handles.sessions[handles.last] = s
	return handles.last
}

// useSession returns an open engine, which stays open until the caller's calls.Done.
func useSession(op string, handle uint64) (*session, error) {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	s, found := handles.sessions[handle]
	if !found {
		return nil, unknownHandle(op, "engine", handle)
	}
	s.calls.Add(1)
	return s, nil
}

// under is a context that ends with the session, and with the job where the call has one (else nil). cancel gives it back.
func (s *session) under(j *job) (ctx context.Context, cancel context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(s.ctx)
	if j == nil {
		return ctx, end
	}
	stop := context.AfterFunc(j.ctx, func() { end(context.Cause(j.ctx)) })
	return ctx, func(cause error) {
		stop()
		end(cause)
	}
}

func removeSession(op string, handle uint64) (*session, error) {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	s, found := handles.sessions[handle]
	if !found {
		return nil, unknownHandle(op, "engine", handle)
	}
	delete(handles.sessions, handle)
	return s, nil
}

// useShared returns the engine behind sealc2_ffi.h, opened at the first call and anew when the environment
// asks for another number of threads; the old one closes when its last call ends.
func useShared() (*session, error) {
	handles.opening.Lock()
	defer handles.opening.Unlock()
	as := sharedConfig{host.ThreadCap(environment(host.EnvThreads)), environment(deviceEnv), gpuLockFile()}
	handles.mu.Lock()
	s := handles.shared
	if s != nil && handles.sharedAs == as {
		s.calls.Add(1)
		handles.mu.Unlock()
		return s, nil
	}
	handles.shared = nil
	handles.mu.Unlock()
	if s != nil {
		go retire(s)
	}
	s, err := newSession(engine.Config{Threads: as.threads, Device: as.device, GPULock: as.gpuLock, Log: logLine})
	if err != nil {
		return nil, err
	}
	handles.mu.Lock()
	defer handles.mu.Unlock()
	handles.shared, handles.sharedAs = s, as
	s.calls.Add(1)
	return s, nil
}

func retire(s *session) {
	var err error
	defer func() {
		if err != nil {
			logLine("error", err.Error())
		}
	}()
	defer status.Recover("capi.retire", &err)
	err = s.drain()
}

// closeAll closes every session and forgets every job. It returns the first failure.
func closeAll(op string) error {
	handles.opening.Lock()
	defer handles.opening.Unlock()
	handles.mu.Lock()
	var open []*session
	for _, s := range handles.sessions {
		open = append(open, s)
	}
	clear(handles.sessions)
	if handles.shared != nil {
		open = append(open, handles.shared)
		handles.shared = nil
	}
	clear(handles.jobs)
	handles.mu.Unlock()
	var first error
	for _, s := range open {
		if err := s.close(op); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func addJob(submitted *engine.Job) uint64 {
	j := &job{submitted: submitted}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	handles.mu.Lock()
	defer handles.mu.Unlock()
	handles.last++
	handles.jobs[handles.last] = j
	return handles.last
}

func findJob(op string, handle uint64) (*job, error) {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	j, found := handles.jobs[handle]
	if !found {
		return nil, unknownHandle(op, "job", handle)
	}
	return j, nil
}

// jobOf is findJob for calls that need no job: their handle is 0, and the job nil. A submitted one has its own work.
func jobOf(op string, handle uint64) (*job, error) {
	if handle == 0 {
		return nil, nil
	}
	j, err := findJob(op, handle)
	if err == nil && j.submitted != nil {
		return nil, status.New(status.Caller, op, "job", "one from sealc2_job_open", "a submitted one")
	}
	return j, err
}

// submittedOf is findJob for calls about a submitted proof.
func submittedOf(op string, handle uint64) (*engine.Job, error) {
	j, err := findJob(op, handle)
	if err != nil {
		return nil, err
	}
	if j.submitted == nil {
		return nil, status.New(status.Caller, op, "job", "one from sealc2_submit", "one from sealc2_job_open")
	}
	return j.submitted, nil
}

func removeJob(op string, handle uint64) error {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	if _, found := handles.jobs[handle]; !found {
		return unknownHandle(op, "job", handle)
	}
	delete(handles.jobs, handle)
	return nil
}

func unknownHandle(op, what string, handle uint64) error {
	return status.New(status.Caller, op, what, "an open handle", fmt.Sprint(handle))
}
