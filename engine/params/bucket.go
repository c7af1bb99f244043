package params

import (
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
)

// buckets adds points to one thread's buckets, of several rounds, in a store that threads share. The law of
// addition holds for every point of the curve, whatever its order. An empty bucket is the point at infinity.
type buckets[A any] struct {
	store  lanes.Store[A]
	thread int
	bits   int
	first  int      // slot of the first round's first bucket
	points int      // slots of the points under way
	all    []uint32 // 0, 2, 4, ...: what Load takes for all points in order

	busy        []uint64 // bit j: bucket j waits in ops
	ops         []lanes.Op
	late, spare []lanes.Op // wait for their bucket to leave ops
}

// bucketSlots is the number of slots of one thread.
func bucketSlots(rounds, bits int) int { return rounds<<bits + readChunk }

// bucketBytes is what newBuckets takes from an arena.
func bucketBytes[A any](kind lanes.StoreKind[A], threads, rounds, bits int) int64 {
	return kind.Bytes(threads*bucketSlots(rounds, bits), threads)
}

// newBuckets makes the buckets of each thread, 2^bits a round, all empty.
func newBuckets[A any](arena *host.Arena, kind lanes.StoreKind[A], threads, rounds, bits int) []*buckets[A] {
	store := kind.New(arena, threads*bucketSlots(rounds, bits), threads)
	sets := make([]*buckets[A], threads)
	for t := range sets {
		b := &buckets[A]{store: store, thread: t, bits: bits, first: t * bucketSlots(rounds, bits)}
		b.points = b.first + rounds<<bits
		b.busy = make([]uint64, (rounds<<bits+63)/64)
		b.ops = make([]lanes.Op, 0, lanes.BatchSize)
		for i := range readChunk {
			b.all = append(b.all, uint32(i)<<1)
		}
		sets[t] = b
	}
	return sets
}

// load takes up to readChunk points, in the place of those before.
func (b *buckets[A]) load(points []A) { b.store.Load(b.points, points, b.all[:len(points)]) }

// add adds the i-th of the points to bucket at[i] of a round, for all i, before it returns.
func (b *buckets[A]) add(round int, at []uint16) {
	for i, j := range at {
		bucket := b.first + round<<b.bits + int(j)
		b.put(lanes.Op{Dst: uint32(bucket), A: lanes.Ref(bucket), B: lanes.Ref(b.points + i)})
	}
	b.flush()
	for len(b.late) > 0 {
		work := b.late
		b.late = b.spare[:0]
		for _, o := range work {
			b.put(o)
		}
		b.flush()
		b.spare = work
	}
}

func (b *buckets[A]) put(o lanes.Op) {
	word, bit := b.place(o)
	switch {
	case *word&bit != 0:
		b.late = append(b.late, o)
	case b.store.Empty(int(o.Dst)):
		b.store.Move(int(o.Dst), o.B)
	default:
		*word |= bit
		if b.ops = append(b.ops, o); len(b.ops) == lanes.BatchSize {
			b.flush()
		}
	}
}

// place is where busy has an op's bucket.
func (b *buckets[A]) place(o lanes.Op) (word *uint64, bit uint64) {
	j := int(o.Dst) - b.first
	return &b.busy[j>>6], 1 << (j & 63)
}

func (b *buckets[A]) flush() {
	b.store.Add(b.thread, b.ops)
	for _, o := range b.ops {
		word, bit := b.place(o)
		*word &^= bit
	}
	b.ops = b.ops[:0]
}

// sum is bucket j of a round.
func (b *buckets[A]) sum(round, j int) A { return b.store.Get(b.first + round<<b.bits + j) }
