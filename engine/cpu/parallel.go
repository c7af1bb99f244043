package cpu

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sealc2/sealc2/engine/status"
)

// parallel runs f(worker, task) for each task below tasks, on at most threads goroutines; worker numbers
// them from 0. Tasks start in rising order, so put long ones first. It looks at ctx before each task: a
// task should take some 10 ms. The first error (or recovered panic) is returned after all have stopped.
func parallel(ctx context.Context, threads, tasks int, f func(worker, task int) error) error {
	var next atomic.Int64
	var once sync.Once
	var first error
	fail := func(err error) {
		once.Do(func() { first = err })
		next.Store(int64(tasks))
	}
	work := func(worker int) {
		var err error
		defer func() {
			if err != nil {
				fail(err)
			}
		}()
		defer status.Recover("cpu.parallel", &err)
		for {
			task := int(next.Add(1)) - 1
			if task >= tasks {
				return
			}
			if err = cancelled(ctx); err != nil {
				return
			}
			if err = f(worker, task); err != nil {
				return
			}
		}
	}
	threads = max(1, min(threads, tasks))
	var wg sync.WaitGroup
	for worker := 1; worker < threads; worker++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			work(worker)
		}()
	}
	work(0)
	wg.Wait()
	return first
}

// cancelled turns the end of a context into an Error.
func cancelled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, "cpu", "", context.Cause(ctx))
	}
	return nil
}
