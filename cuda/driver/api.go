package driver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// Table carries out calls: the driver's own, or a fake one. args follow the C signature, integers widened,
// pointers as addresses; they and what they point to stay in place during the call. Safe for concurrent use.
type Table interface {
	// Call returns what the function returned.
	Call(e Entry, args []uintptr) Result
	// Has says whether the entry is there at all.
	Has(e Entry) bool
	// Name says what the table is, for error text: "libcuda.so.1".
	Name() string
}

// API is an opened driver. All methods may be called from several goroutines at once.
type API struct {
	table   Table
	version int // as 13000

	calls   atomic.Int64 // made so far, the failed ones included
	counts  [EntryCount]atomic.Int64
	stalls  [2]atomic.Int64 // first launches of kernels that no Warm has seen; stalling calls beside queued work
	failAt  atomic.Int64    // number of the call that fails, from 1; 0: none
	failure atomic.Int32
	strict  atomic.Bool

	mu      sync.Mutex
	streams map[*Stream]struct{}
}

// Counts are numbers of calls since Load, or between two of them by Sub.
type Counts struct {
	Total    int64
	Class    [ClassCount]int64
	Entry    [EntryCount]int64
	Unwarmed int64 // launches of a kernel that was not loaded on the device yet, which stall it
	Beside   int64 // stalling calls, and such launches, while something was queued
}

// Sub is what happened after earlier.
func (c Counts) Sub(earlier Counts) Counts {
	c.Total -= earlier.Total
	for i := range c.Class {
		c.Class[i] -= earlier.Class[i]
	}
	for i := range c.Entry {
		c.Entry[i] -= earlier.Entry[i]
	}
	c.Unwarmed -= earlier.Unwarmed
	c.Beside -= earlier.Beside
	return c
}

// Load opens the driver of this machine. Errors: NoDevice, where there is none, where it lacks a function, or where
// it does not start.
func Load() (*API, error) {
	table, err := openLibrary("libcuda.so.1")
	if err != nil {
		return nil, err
	}
	return New(table)
}

// New starts a driver over a table. Errors: as Load.
func New(table Table) (*API, error) {
	const op = "driver.Load"
	a := &API{table: table, streams: map[*Stream]struct{}{}}
	c := newCell()
	defer c.free()
	if a.table.Has(DriverGetVersion) {
		// Works before Init, and tells an operator whose driver lacks functions how old it is.
		if a.call(DriverGetVersion, c.out(0)) == Success {
			a.version = int(int32(c.word[0]))
		}
	}
	for e := range EntryCount {
		if !table.Has(e) {
			return nil, status.New(status.NoDevice, op, table.Name(), fmt.Sprintf("a driver with %s (CUDA %s)", e, versionText(floorVersion)),
				"one without it, for CUDA "+versionText(a.version))
		}
	}
	if err := a.do(op, table.Name(), Init, 0); err != nil {
		return nil, err
	}
	return a, nil
}

// floorVersion is the first CUDA version with every entry of the table (cuFuncLoad came last).
const floorVersion = 12040

func versionText(v int) string {
	if v == 0 {
		return "of unknown version"
	}
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10)
}

// Version is the CUDA version of the driver, as 13000 for 13.0.
func (a *API) Version() int { return a.version }

// FailCall makes the n-th call from now fail with a result without reaching the driver; 0 takes that back.
func (a *API) FailCall(n int64, result Result) {
	a.failure.Store(int32(result))
	if n > 0 {
		n += a.calls.Load()
	}
	a.failAt.Store(n)
}

// SetStrict makes a call that would stall the device while something is queued on it an error (Internal). For tests.
func (a *API) SetStrict(on bool) { a.strict.Store(on) }

// Counts tells how many calls were made.
func (a *API) Counts() (c Counts) {
	for e := range a.counts {
		n := a.counts[e].Load()
		c.Entry[e] = n
		c.Class[entries[e].class] += n
	}
	c.Total = a.calls.Load()
	c.Unwarmed, c.Beside = a.stalls[0].Load(), a.stalls[1].Load()
	return c
}

// call is the one way to the driver.
func (a *API) call(e Entry, args ...uintptr) Result { return a.callArgs(e, args) }

func (a *API) callArgs(e Entry, args []uintptr) Result {
	a.counts[e].Add(1)
	if n := a.calls.Add(1); n == a.failAt.Load() {
		return Result(a.failure.Load())
	}
	return a.table.Call(e, args)
}

// do calls and turns a result other than success into an error of op about where.
func (a *API) do(op, where string, e Entry, args ...uintptr) error {
	if entries[e].class == Stalling {
		if err := a.stalling(op, where, e.String()); err != nil {
			return err
		}
	}
	return a.check(op, where, e, a.call(e, args...))
}

// stalling notes a call that stops the device and, in strict mode, refuses it while something is queued.
func (a *API) stalling(op, where, what string) error {
	s := a.queued()
	if s == nil {
		return nil
	}
	a.stalls[1].Add(1)
	if !a.strict.Load() {
		return nil
	}
	return status.New(status.Internal, op, where, "nothing queued during "+what+", which stalls the device",
		fmt.Sprintf("%d operations on stream %q not known to be over", s.tail.Load()-s.done.Load(), s.name))
}

// queued is a stream with work that is not known to be over.
func (a *API) queued() *Stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.streams {
		if s.done.Load() < s.tail.Load() {
			return s
		}
	}
	return nil
}

func (a *API) check(op, where string, e Entry, r Result) error {
	if r == Success {
		return nil
	}
	return status.Wrap(r.kind(), op, where, a.failureOf(e, r))
}

// failureOf asks the driver what a result means. Neither call touches a device, and what they themselves return
// is not an error of anyone.
func (a *API) failureOf(e Entry, r Result) *Failure {
	f := &Failure{Entry: e, Result: r}
	c := newCell()
	defer c.free()
	for _, ask := range []struct {
		entry Entry
		into  *string
	}{{GetErrorName, &f.Name}, {GetErrorString, &f.Text}} {
		c.word[0] = 0
		if a.table.Has(ask.entry) && a.table.Call(ask.entry, []uintptr{uintptr(uint32(r)), c.out(0)}) == Success && c.word[0] != 0 {
			*ask.into = textAt(uintptr(c.word[0]))
		}
	}
	return f
}

// cell is memory for results of calls. It comes from a pool and therefore lies on the heap, whose objects do not move,
// so that its address can be handed out as a number.
type cell struct {
	word [16]uint64
	text [256]byte
}

var cells = sync.Pool{New: func() any { return new(cell) }}

func newCell() *cell {
	c := cells.Get().(*cell)
	*c = cell{}
	return c
}

func (c *cell) free() { cells.Put(c) }

// out is the address of a word.
func (c *cell) out(i int) uintptr { return uintptr(unsafe.Pointer(&c.word[i])) }

// string is the NUL-terminated text.
func (c *cell) string() string { return textAt(uintptr(unsafe.Pointer(&c.text))) }

// pointerAt is an address from outside the Go heap, or of a cell, as a pointer.
func pointerAt(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// textLimit bounds texts from the driver.
const textLimit = 1024

func textAt(address uintptr) string {
	p := (*byte)(pointerAt(address))
	n := 0
	for n < textLimit && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// cText copies a text into the cell, NUL-terminated, and gives its address. Errors: Internal for one too long.
func (c *cell) cText(op, text string) (uintptr, error) {
	if len(text) >= len(c.text) {
		return 0, status.New(status.Internal, op, "name", fmt.Sprintf("at most %d bytes", len(c.text)-1), fmt.Sprint(len(text)))
	}
	copy(c.text[:], text)
	c.text[len(text)] = 0
	return uintptr(unsafe.Pointer(&c.text)), nil
}
