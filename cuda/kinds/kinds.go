package kinds

import (
	"fmt"
	"math"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// StatusBytes is the size of the status word: the lowest number of a value that is not below the group order, as 32 bits, or
// None.
const StatusBytes = 4

// None is the status where every value is below the group order.
const None = math.MaxUint32

// MaxCount bounds a vector, so that a number is never None.
const MaxCount = 1 << 30

// Bitmaps are where the bits of a whole vector go, in device memory: 64-bit words, value i in word i/64 at place i%64.
type Bitmaps struct {
	Ones   driver.Ptr // values that are one
	Fields driver.Ptr // values other than zero and one
}

// Kinds queues the work. It is used by one goroutine at a time.
type Kinds struct {
	mark driver.Kernel
	args driver.Args
}

// New finds the kernel by its name. Errors: find's.
func New(find func(name string) (driver.Kernel, error)) (*Kinds, error) {
	mark, err := find("kinds_mark_fr")
	return &Kinds{mark: mark}, err
}

// Kernels lists all kernels, for warming.
func (k *Kinds) Kernels() []driver.Kernel { return []driver.Kernel{k.mark} }

// Clear queues the status None.
func (k *Kinds) Clear(s *driver.Stream, failed driver.Ptr) error { return s.Fill32(failed, None, 1) }

// A warp has markItems words of 32 values at a time; cuda/kernels/tuning/kinds.cuh has the same number.
const (
	markThreads = 256
	markItems   = 4
	markBlocks  = 1 << 14 // at most
)

// Mark queues the bits of values [first, first+count) of a vector, the first of which lies at `from`: 32 bytes each, Montgomery
// form, aligned to 16. first is a multiple of 64; a last word that is not full is filled with zeros, so only the vector's
// last range may have a count that is not. failed, a status word that Clear has set, becomes the lowest number of a value that
// is not below the group order; that value's bits say nothing. Errors: Internal for a range out of bounds or not at a word; else
// the driver's.
func (k *Kinds) Mark(s *driver.Stream, from driver.Ptr, first, count int64, to Bitmaps, failed driver.Ptr) error {
	if first < 0 || first%64 != 0 || count < 0 || first > MaxCount || count > MaxCount-first {
		return status.New(status.Internal, "kinds.Mark", "range", fmt.Sprintf("values up to %d from a multiple of 64 on", MaxCount), fmt.Sprintf("[%d, %d+%d)", first, first, count))
	}
	if count == 0 {
		return nil
	}
	words := (count + 63) / 64 * 2
	threads := (words + markItems - 1) / markItems * 32
	at := first / 8
	k.args.Reset().Ptr(from).U32(uint32(first)).U32(uint32(count)).U32(uint32(words)).Ptr(to.Ones.Add(at)).Ptr(to.Fields.Add(at)).Ptr(failed)
	return s.Launch(k.mark, driver.Dim{X: uint32(min((threads+markThreads-1)/markThreads, markBlocks))}, driver.Dim{X: markThreads}, 0, &k.args)
}
