package host

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sealc2/sealc2/engine/status"
)

// Do calls work for the runs [from, to) of n items, each of run items but the last, on at most threads threads, and
// returns when all have ended. worker numbers the callers of work, from 0 to threads-1: what a worker alone uses can be
// kept by it. Runs are handed out in rising order, and the error is that of the first run, in order, that failed; a
// panic of work is one too. ctx is looked at before each run: a run should take some milliseconds.
//
// The threads are those of ctx's Pool (see WithPool), else goroutines made for the call, of which the caller is one. work may
// call Do again. Errors besides work's: Cancelled.
func Do(ctx context.Context, op string, n, run, threads int, work func(worker, from, to int) error) error {
	status.Check(n >= 0 && run > 0, op, "a loop over runs of one item or more")
	runs := n / run
	if n%run > 0 {
		runs++
	}
	if runs == 0 {
		return nil
	}
	l := &loop{ctx: ctx, op: op, n: n, run: run, runs: int64(runs), limit: max(1, min(threads, runs)), work: work}
	if pool, ok := ctx.Value(poolKey{}).(*Pool); ok && l.runs > 1 {
		pool.do(l)
	} else {
		l.plain()
	}
	return l.err
}

// loop is one call of Do.
type loop struct {
	ctx  context.Context
	op   string
	n    int
	run  int
	runs int64
	work func(worker, from, to int) error

	limit   int // of workers
	workers int // that came; a pool's lock guards it
	active  int // that have not left
	ended   chan struct{}

	next  atomic.Int64
	mu    sync.Mutex
	err   error
	errAt int64
}

// plain runs the loop on goroutines of its own.
func (l *loop) plain() {
	var wg sync.WaitGroup
	for worker := 1; worker < l.limit; worker++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var err error // serve has made a value of all that can happen
			defer status.Recover(l.op, &err)
			l.serve(worker)
		}()
	}
	l.serve(0)
	wg.Wait()
}

// serve takes runs until there are no more or one fails. A panic of work becomes a value.
func (l *loop) serve(worker int) {
	var at int64
	var err error
	defer func() {
		if err != nil {
			l.fail(at, err)
		}
	}()
	defer status.Recover(l.op, &err)
	for err == nil {
		if at = l.next.Add(1) - 1; at >= l.runs {
			return
		}
		if l.ctx.Err() != nil {
			err = status.Wrap(status.Cancelled, l.op, "", context.Cause(l.ctx))
			return
		}
		from := int(at) * l.run
		err = l.work(worker, from, min(from+l.run, l.n))
	}
}

// fail ends the loop. All runs before this one have been handed out, so whichever is first is known in the end.
func (l *loop) fail(at int64, err error) {
	l.next.Store(l.runs)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || at < l.errAt {
		l.err, l.errAt = err, at
	}
}
