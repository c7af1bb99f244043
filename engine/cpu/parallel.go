package cpu

import (
	"context"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// parallel runs f(worker, task) for each task below tasks, on at most threads threads, see host.Do. Tasks start in rising
// order, so put long ones first; one should take some 10 ms.
func parallel(ctx context.Context, threads, tasks int, f func(worker, task int) error) error {
	return host.Do(ctx, "cpu.parallel", tasks, 1, threads, func(worker, task, _ int) error { return f(worker, task) })
}

// cancelled turns the end of a context into an Error.
func cancelled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.Wrap(status.Cancelled, "cpu", "", context.Cause(ctx))
	}
	return nil
}
