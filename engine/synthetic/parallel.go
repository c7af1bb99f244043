package synthetic

import (
	"context"

	"github.com/sealc2/sealc2/engine/host"
)

const op = "synthetic.Make"

// batch is how many items a thread takes at a time; one costs some microseconds at least.
const batch = 16

// parallel calls each for 0 to n-1 on up to threads threads, see host.Do. Fails with Cancelled, or Internal where each
// panicked.
func parallel(ctx context.Context, n, threads int, each func(i int)) error {
	return host.Do(ctx, op, n, batch, threads, func(_, from, to int) error {
		for i := from; i < to; i++ {
			each(i)
		}
		return nil
	})
}
