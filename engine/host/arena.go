package host

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// Arena is one anonymous mapping outside the Go heap, cut into slices from its start. Big buffers live
// here so that the garbage collector neither scans nor copies them and memory returns to the system at
// Close. Not safe for concurrent use.
type Arena struct {
	block []byte
	used  int64
	node  int   // that the memory shall lie near, or -1
	far   error // why it need not
}

// arenaAlign keeps every slice on a cache line of its own.
const arenaAlign = 64

// NewArena maps size bytes (0 is legal). Fails with NoMemory.
func NewArena(size int64) (*Arena, error) { return NewArenaNear(size, -1) }

// NewArenaNear is NewArena with memory of a node where it has some free; a node below 0 stands for none. Where the
// kernel does not let us say so, memory lies near the threads that touch it first, as without a node: Node tells.
func NewArenaNear(size int64, node int) (*Arena, error) {
	const op = "host.NewArena"
	a := &Arena{node: max(node, -1)}
	if size == 0 {
		return a, nil
	}
	if size < 0 {
		return nil, status.New(status.Internal, op, "size", "0 bytes or more", FormatBytes(size))
	}
	block, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, status.Wrap(status.NoMemory, op, FormatBytes(size), err)
	}
	// Fewer TLB misses where the system allows it; harmless where not.
	_ = unix.Madvise(block, unix.MADV_HUGEPAGE)
	if a.node >= 0 {
		a.far = preferNode(block, a.node)
	}
	a.block = block
	return a, nil
}

// Node is the node that the memory shall lie near, -1 for none, and why the kernel did not take the wish.
func (a *Arena) Node() (node int, refused error) { return a.node, a.far }

// SliceBytes is what Alloc takes from an arena for n elements of T, alignment included.
func SliceBytes[T any](n int) int64 {
	var zero T
	return (int64(n)*int64(unsafe.Sizeof(zero)) + arenaAlign - 1) &^ (arenaAlign - 1)
}

// Alloc cuts n elements of T from the arena; the memory is zero the first time it is handed out. T must
// hold no Go pointers. An arena that is too small is a defect of the plan: Internal, by panic.
func Alloc[T any](a *Arena, n int) []T {
	var zero T
	room := int64(len(a.block)) - a.used
	// Divided first: a length so large that its size in bytes overflows must not look small.
	status.Check(n >= 0 && int64(n) <= room/max(1, int64(unsafe.Sizeof(zero))), "host.Alloc", "the plan to cover every slice")
	size := SliceBytes[T](n)
	status.Check(size <= room, "host.Alloc", "the plan to cover every slice's alignment")
	if n == 0 {
		return nil
	}
	p := unsafe.Pointer(&a.block[a.used])
	a.used += size
	return unsafe.Slice((*T)(p), n)
}

// Used is the number of bytes handed out.
func (a *Arena) Used() int64 { return a.used }

// Mark and Release give the slices cut since Mark back, last in first out. Their content stays.
func (a *Arena) Mark() int64 { return a.used }

// Release returns the arena to an earlier Mark.
func (a *Arena) Release(mark int64) {
	status.Check(0 <= mark && mark <= a.used, "host.Release", "a mark taken earlier")
	a.used = mark
}

// Size is the number of bytes mapped.
func (a *Arena) Size() int64 { return int64(len(a.block)) }

// Close unmaps the block. The arena's slices must not be used any more; closing twice is legal.
func (a *Arena) Close() {
	if a.block != nil {
		_ = unix.Munmap(a.block)
		a.block, a.used = nil, 0
	}
}
