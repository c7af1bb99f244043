package engine

import (
	"context"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// SubmitFunc is Submit with prove in the place of this engine's proof, for tests of what lies in front of an engine: all but the proof is as
// with any job. prove is called with the job's copy of the request when it is the job's turn at the desk of its class, which it keeps until
// it returns; its result or error is the job's. Nothing is judged beforehand.
func (e *Engine) SubmitFunc(ctx context.Context, request *ProveRequest, options SubmitOptions,
	prove func(context.Context, *ProveRequest) (*ProveResult, error)) (j *Job, err error) {
	const op = "engine.Submit"
	defer status.Recover(op, &err)
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	return e.submit(ctx, op, int64(len(request.C1)), contentOf(request), options, func(j *Job) (func(context.Context) (*ProveResult, error), error) {
		own := j.copyOf(request)
		return func(ctx context.Context) (*ProveResult, error) {
			return e.atDesk(ctx, op, j, func(ctx context.Context) (*ProveResult, error) { return prove(ctx, own) })
		}, nil
	})
}

// atDesk takes a job through the scheduler that is over before any device is asked.
func (e *Engine) atDesk(ctx context.Context, op string, j *Job, prove func(context.Context) (*ProveResult, error)) (result *ProveResult, err error) {
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := &proof{Engine: e, op: op, job: j}
	name := p.enter("func")
	defer func() { p.leave(err) }()
	var own error // as prove gave it
	err = e.sched.Run(ctx, &sched.Job{
		Name: name, Op: op, Class: p.tallied.class, Deadline: p.tallied.deadline, Came: p.tallied.came, Queued: j.enters,
		Prepare: []host.Stage{{Name: "prove", Run: func(ctx context.Context) error {
			j.begins()
			result, own = prove(ctx)
			return own
		}}},
		Plan: func() (sched.Plan, error) { return sched.Plan{Shares: []sched.Share{{Device: e.devices[0]}}}, nil },
	})
	if own != nil {
		return nil, own
	}
	return result, err
}
