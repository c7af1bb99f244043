package driver

import (
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// Ptr is an address in a device's memory, 0 for none.
type Ptr uint64

// Add is the address some bytes further.
func (p Ptr) Add(bytes int64) Ptr { return p + Ptr(bytes) }

// Dim is the size of a grid in blocks, or of a block in threads. Y and Z of 0 stand for 1.
type Dim struct{ X, Y, Z uint32 }

// full is the size with the zeros filled in.
func (d Dim) full() Dim {
	return Dim{d.X, max(1, d.Y), max(1, d.Z)}
}

// The bounds of a kernel's parameters. ArgBytes is far below the driver's own bound of 4 KiB.
const (
	ArgCount = 48
	ArgBytes = 1024
)

// Args collects the arguments of a launch, in the order of the kernel's parameters. The zero value is empty; Reset makes
// it so again. Launch copies what is in it. No method allocates.
type Args struct {
	count  int
	used   int
	over   bool // more than fits: Launch says so
	offset [ArgCount]uint16
	block  [ArgBytes / 8]uint64
}

// Reset empties the list.
func (a *Args) Reset() *Args {
	a.count, a.used, a.over = 0, 0, false
	return a
}

// next makes room for an argument of some bytes, aligned as every type of CUDA may want.
func (a *Args) next(bytes int) unsafe.Pointer {
	at := (a.used + 15) &^ 15
	if a.count == ArgCount || at+bytes > ArgBytes {
		a.over = true
		return unsafe.Pointer(&a.block)
	}
	a.offset[a.count] = uint16(at)
	a.count++
	a.used = at + bytes
	return unsafe.Add(unsafe.Pointer(&a.block), at)
}

// Ptr adds a device address.
func (a *Args) Ptr(p Ptr) *Args {
	*(*uint64)(a.next(8)) = uint64(p)
	return a
}

// U32 adds a 32-bit number.
func (a *Args) U32(x uint32) *Args {
	*(*uint32)(a.next(4)) = x
	return a
}

// U64 adds a 64-bit number.
func (a *Args) U64(x uint64) *Args {
	*(*uint64)(a.next(8)) = x
	return a
}

// Struct adds a parameter that is passed by value: bytes at p, laid out as the kernel's type.
func (a *Args) Struct(p unsafe.Pointer, bytes int) *Args {
	to := a.next(bytes)
	if !a.over {
		copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(p), bytes))
	}
	return a
}

// frame is where the arguments of a launch lie during the call: on the heap, so that the driver may read them
// by address. pointers ends with nil, and the blocks it points to fill block and nothing else.
type frame struct {
	args     [16]uintptr
	pointers [ArgCount + 1]unsafe.Pointer
	block    [ArgBytes / 8]uint64
}

// fill copies the arguments in.
func (f *frame) fill(op, kernel string, a *Args) error {
	if a.over {
		return status.New(status.Internal, op, kernel, fmt.Sprintf("at most %d arguments and %d bytes", ArgCount, ArgBytes), "more")
	}
	copy(f.block[:(a.used+7)/8], a.block[:])
	for i := range a.count {
		f.pointers[i] = unsafe.Add(unsafe.Pointer(&f.block), a.offset[i])
	}
	f.pointers[a.count] = nil
	return nil
}
