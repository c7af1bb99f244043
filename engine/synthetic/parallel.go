package synthetic

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sealc2/sealc2/engine/status"
)

const op = "synthetic.Make"

// batch is how many items a goroutine takes at a time; one costs some microseconds at least.
const batch = 16

// parallel calls each for 0 to n-1 on up to threads goroutines. Fails with Cancelled, or Internal where each
// panicked.
func parallel(ctx context.Context, n, threads int, each func(i int)) error {
	errs := make([]error, max(min(threads, (n+batch-1)/batch), 1))
	var next atomic.Int64
	var wg sync.WaitGroup
	for k := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer status.Recover(op, &errs[k])
			for {
				from := int(next.Add(batch)) - batch
				if from >= n {
					return
				}
				if err := ctx.Err(); err != nil {
					errs[k] = status.Wrap(status.Cancelled, op, "", err)
					return
				}
				for i := from; i < min(from+batch, n); i++ {
					each(i)
				}
			}
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
