package params

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/errgroup"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// scalarBits is what the windows of a fixed base cover together. Scalars are taken to the half of the
// field that is nearer to zero, 254 bits; one bit more lets the top digit be unsigned.
const scalarBits = fr.Bits

// fixedBatch is the number of products that are made together.
const fixedBatch = lanes.BatchSize

// maxWindowBits keeps digits far inside an int32.
const maxWindowBits = 26

// windowWidths splits scalarBits into the signed windows, lowest first, that need the fewest additions
// for count multiplications, building the tables included, among those whose tables of points of
// pointBytes stay within maxBytes.
func windowWidths(count int, pointBytes, maxBytes int64) []int {
	var best []int
	bestCost := int64(-1)
	for n := (scalarBits + maxWindowBits - 1) / maxWindowBits; n <= scalarBits; n++ {
		widths := make([]int, n)
		entries := int64(0)
		for i := range widths {
			widths[i] = scalarBits / n
			if i < scalarBits%n {
				widths[i]++
			}
			entries += 1 << (widths[i] - 1)
		}
		if entries*pointBytes > maxBytes && n < scalarBits {
			continue
		}
		cost := int64(count)*int64(n-1) + entries
		if bestCost < 0 || cost < bestCost {
			best, bestCost = widths, cost
		}
	}
	return best
}

// halfOrder is (r-1)/2, canonical, low word first.
var halfOrder = func() [4]uint64 {
	var e, two fr.Element
	two.SetUint64(2)
	e.SetOne()
	e.Neg(&e)
	e.Div(&e, &two)
	return e.Bits()
}()

// recode writes the signed digits of scalars: scalar i is the sum over windows w of
// digits[w][i] · 2^(widths[0]+...+widths[w-1]), with |digits[w][i]| ≤ 2^(widths[w]-1).
func recode(scalars []fr.Element, widths []int, digits [][]int32) {
	for i := range scalars {
		s := scalars[i].Bits()
		sign := int32(1)
		if above(&s, &halfOrder) {
			var n fr.Element
			n.Neg(&scalars[i])
			s = n.Bits()
			sign = -1
		}
		carry, offset := uint64(0), 0
		for w, width := range widths {
			word, place := offset>>6, offset&63
			v := s[word] >> place
			if place+width > 64 && word < 3 {
				v |= s[word+1] << (64 - place)
			}
			v = v&(1<<width-1) + carry
			carry = 0
			d := int32(v)
			if v > 1<<(width-1) {
				d -= 1 << width
				carry = 1
			}
			digits[w][i] = sign * d
			offset += width
		}
		// The top window holds at most (r-1)/2 >> (offset of the window) + 1, half its range.
		status.Check(carry == 0, "params.recode", "the top window to take the last carry")
	}
}

// above says whether a > b.
func above(a, b *[4]uint64) bool {
	_, borrow := bits.Sub64(b[0], a[0], 0)
	_, borrow = bits.Sub64(b[1], a[1], borrow)
	_, borrow = bits.Sub64(b[2], a[2], borrow)
	_, borrow = bits.Sub64(b[3], a[3], borrow)
	return borrow != 0
}

// fixedTable multiplies one point by many scalars. Window w has the multiples 1 .. 2^(widths[w]-1) of the
// point times the window's place value, so a product is one table entry a window, added up. It may be used by
// several goroutines until Close, each with its own worker number.
type fixedTable interface {
	windows() []int
	// newWorker returns the work of one goroutine, whose number is below the threads that the table was made
	// for: it writes the encoded products of up to fixedBatch scalars to dst, one after the other.
	newWorker(worker int) func(dst []byte, scalars []fr.Element)
	Close()
}

// fixedBase is a fixedTable for affine points A.
type fixedBase[A any] struct {
	widths     []int
	arena      *host.Arena
	points     lanes.Store[A]
	first      []int // first[w]+k-1 is the slot of k times the window's base
	sums       int   // first slot of the products under way: fixedBatch a worker
	pointBytes int
	encode     func(dst []byte, p *A)
}

// newFixedBase builds the tables; bases[w] is the point times 2^(widths[0]+...+widths[w-1]). Fails with
// NoMemory and Cancelled. encode writes a product as pointBytes bytes.
func newFixedBase[A any](
	ctx context.Context, kind lanes.StoreKind[A], widths []int, bases []A, threads, pointBytes int, encode func(dst []byte, p *A),
) (fixedTable, error) {
	const op = "params.newFixedBase"
	status.Check(len(widths) == len(bases) && len(widths) > 1, op, "one base a window, and two at least")
	f := &fixedBase[A]{widths: widths, pointBytes: pointBytes, encode: encode}
	slots := 0
	for _, width := range widths {
		f.first = append(f.first, slots)
		slots += 1 << (width - 1)
	}
	f.sums = slots
	slots += threads * fixedBatch
	arena, err := host.NewArena(kind.Bytes(slots, threads))
	if err != nil {
		return nil, err
	}
	f.arena = arena
	f.points = kind.New(arena, slots, threads)
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for worker := range min(threads, len(widths)) {
		group.Go(func() (err error) {
			defer status.Recover(op, &err)
			for w := int(next.Add(1)) - 1; w < len(widths); w = int(next.Add(1)) - 1 {
				if err := f.fill(ctx, worker, w, &bases[w]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		arena.Close()
		return nil, err
	}
	return f, nil
}

// fill writes the multiples of window w: each round adds the last multiple to all before it.
func (f *fixedBase[A]) fill(ctx context.Context, worker, w int, base *A) error {
	first, total := f.first[w], 1<<(f.widths[w]-1)
	f.points.Load(first, unsafe.Slice(base, 1), []uint32{0})
	ops := make([]lanes.Op, 0, fixedBatch)
	for have := 1; have < total; have *= 2 {
		last := lanes.Ref(first + have - 1)
		for from := 0; from < have; from += fixedBatch {
			if err := ctx.Err(); err != nil {
				return status.Wrap(status.Cancelled, "params.newFixedBase", "tables", err)
			}
			ops = ops[:0]
			for i := from; i < min(have, from+fixedBatch); i++ {
				ops = append(ops, lanes.Op{Dst: uint32(first + have + i), A: lanes.Ref(first + i), B: last})
			}
			f.points.Add(worker, ops)
		}
	}
	return nil
}

func (f *fixedBase[A]) windows() []int { return f.widths }

// Close gives the tables back.
func (f *fixedBase[A]) Close() {
	f.arena.Close()
	f.points = nil
}

// multiplier is one goroutine's work.
type multiplier[A any] struct {
	base   *fixedBase[A]
	worker int
	digits [][]int32
	ops    []lanes.Op
}

func (f *fixedBase[A]) newWorker(worker int) func(dst []byte, scalars []fr.Element) {
	m := &multiplier[A]{base: f, worker: worker, digits: make([][]int32, len(f.widths)), ops: make([]lanes.Op, 0, fixedBatch)}
	for w := range m.digits {
		m.digits[w] = make([]int32, fixedBatch)
	}
	return m.mul
}

func (m *multiplier[A]) mul(dst []byte, scalars []fr.Element) {
	f, n := m.base, len(scalars)
	sums := f.sums + m.worker*fixedBatch
	recode(scalars, f.widths, m.digits)
	m.begin(sums, n)
	for w := 2; w < len(f.widths); w++ {
		m.ops = m.ops[:0]
		for i, d := range m.digits[w][:n] {
			if d != 0 {
				m.ops = append(m.ops, lanes.Op{Dst: uint32(sums + i), A: lanes.Ref(sums + i), B: m.entry(w, d)})
			}
		}
		f.points.Add(m.worker, m.ops)
	}
	for i := range n {
		p := f.points.Get(sums + i)
		f.encode(dst[i*f.pointBytes:], &p)
	}
}

// begin makes sums of the entries of the first two windows.
func (m *multiplier[A]) begin(sums, n int) {
	points := m.base.points
	m.ops = m.ops[:0]
	for i := range n {
		switch low, high := m.digits[0][i], m.digits[1][i]; {
		case low != 0 && high != 0:
			m.ops = append(m.ops, lanes.Op{Dst: uint32(sums + i), A: m.entry(0, low), B: m.entry(1, high)})
		case low != 0:
			points.Move(sums+i, m.entry(0, low))
		case high != 0:
			points.Move(sums+i, m.entry(1, high))
		default:
			points.Clear(sums+i, sums+i+1)
		}
	}
	points.Add(m.worker, m.ops)
}

// entry refers to the table entry of a digit other than zero.
func (m *multiplier[A]) entry(w int, d int32) uint32 {
	sign := d >> 31
	return lanes.Ref(m.base.first[w]+int((d^sign)-sign)-1) | uint32(sign&1)
}

// stream multiplies count scalars and hands the encoded products, in order and in pieces of whole
// points, to sink, which runs in the caller's goroutine and must not keep the bytes. scalars fills
// dst with the scalars from `from` on and is called by several goroutines at once. Memory is a few
// batches a thread. Fails with Cancelled or sink's error.
func stream(
	ctx context.Context, table fixedTable, threads, count, pointBytes int,
	scalars func(from int, dst []fr.Element), sink func(piece []byte) error,
) error {
	const op = "params.stream"
	pieces := (count + fixedBatch - 1) / fixedBatch
	slots := 4 * threads
	free := make(chan []byte, slots)
	ready := make([]chan []byte, slots) // piece i waits for its turn in ready[i % slots]
	for i := range ready {
		free <- make([]byte, fixedBatch*pointBytes)
		ready[i] = make(chan []byte, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var turn sync.Mutex
	next := 0
	// take gives the next piece and a buffer for it. Buffers are given in the order of the pieces, so
	// the piece that sink waits for always has one.
	take := func() (piece int, buffer []byte) {
		turn.Lock()
		defer turn.Unlock()
		if next == pieces {
			return pieces, nil
		}
		select {
		case buffer = <-free:
			next++
			return next - 1, buffer
		case <-ctx.Done():
			return pieces, nil
		}
	}
	for worker := range min(threads, pieces) {
		group.Go(func() (err error) {
			defer status.Recover(op, &err)
			multiply := table.newWorker(worker)
			values := make([]fr.Element, fixedBatch)
			for {
				piece, buffer := take()
				if piece == pieces {
					return nil
				}
				from := piece * fixedBatch
				n := min(fixedBatch, count-from)
				scalars(from, values[:n])
				multiply(buffer, values[:n])
				ready[piece%slots] <- buffer[:n*pointBytes]
			}
		})
	}
	var sinkErr error
	for piece := 0; piece < pieces && sinkErr == nil; piece++ {
		select {
		case buffer := <-ready[piece%slots]:
			sinkErr = sink(buffer)
			free <- buffer[:cap(buffer)]
		case <-ctx.Done():
			sinkErr = status.Wrap(status.Cancelled, op, "", ctx.Err())
		}
	}
	cancel()
	if err := group.Wait(); err != nil {
		return err
	}
	return sinkErr
}
