package lanes

import "github.com/sealc2/sealc2/engine/host"

// An Op is one addition between slots of a Store: slot Dst = ±slot(A) ± slot(B). A and B are references.
// Within one batch no op writes a slot that another op reads or writes; Dst may be the op's own source.
type Op struct{ Dst, A, B uint32 }

// Ref refers to a slot (below 2^31): slot<<1, with 1 added to it for the negated point.
func Ref(slot int) uint32 { return uint32(slot) << 1 }

// Store is a pool of points ("slots") of one group, in whatever form its additions like best. A is an affine
// point of gnark-crypto, infinity being (0, 0). Slots are numbered from 0; all are infinity at first. Distinct slots
// may be used from several goroutines; each goroutine has its own worker number.
type Store[A any] interface {
	// Load puts src[offsets[i]>>1] into slot at+i.
	Load(at int, src []A, offsets []uint32)
	// Move copies a referenced point into a slot.
	Move(dst int, from uint32)
	// Get returns the point of a slot.
	Get(slot int) A
	// Empty tells whether a slot is infinity.
	Empty(slot int) bool
	// Clear makes the slots [from, to) infinity.
	Clear(from, to int)
	// Add carries out a batch of any length: exact for all inputs (infinity, equal, opposite points).
	Add(worker int, ops []Op)
}

// StoreKind is an implementation of Store.
type StoreKind[A any] struct {
	Name      string
	SlotBytes int64
	// New makes a store for so many slots and workers; Bytes is what it takes from the arena, whose memory must
	// be as the system gave it or as an earlier store left it.
	New   func(arena *host.Arena, slots, workers int) Store[A]
	Bytes func(slots, workers int) int64
}

// BatchSize is how many additions share one inversion, which costs some 50 to 80 multiplications. More of them
// would leave the second-level cache.
const BatchSize = 2048
