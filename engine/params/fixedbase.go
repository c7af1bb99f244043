package params

import (
	"context"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/errgroup"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// scalarBits is what the windows of a fixed base cover together. Scalars are taken to the half of the
// field that is nearer to zero, 254 bits; one bit more lets the top digit be unsigned.
const scalarBits = fr.Bits

// fixedBatch is the number of points that share an inversion. Larger batches save little of it and
// leave the second-level cache; see BenchmarkAddBatch and lanes.BenchmarkAdder.
const fixedBatch = 2048

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
// point times the window's place value, so a product is one table entry a window, added up. It is
// immutable and may be used by several goroutines until Close.
type fixedTable interface {
	windows() []int
	// newWorker returns the work of one goroutine: it writes the encoded products of up to fixedBatch
	// scalars to dst, one after the other.
	newWorker() func(dst []byte, scalars []fr.Element)
	Close()
}

// fixedBase is a fixedTable in gnark-crypto's arithmetic.
type fixedBase[E any, PE coordinate[E]] struct {
	widths     []int
	table      [][]point[E] // table[w][k-1] is k times the window's base
	arena      *host.Arena
	pointBytes int
	encode     func(dst []byte, p *point[E])
}

// newFixedBase builds the tables; bases[w] is the point times 2^(widths[0]+...+widths[w-1]). Fails with
// NoMemory and Cancelled. encode writes a product as pointBytes bytes.
func newFixedBase[E any, PE coordinate[E]](
	ctx context.Context, widths []int, bases []point[E], threads, pointBytes int, encode func(dst []byte, p *point[E]),
) (*fixedBase[E, PE], error) {
	const op = "params.newFixedBase"
	status.Check(len(widths) == len(bases), op, "one base a window")
	size := int64(0)
	for _, width := range widths {
		size += host.SliceBytes[point[E]](1 << (width - 1))
	}
	arena, err := host.NewArena(size)
	if err != nil {
		return nil, err
	}
	f := &fixedBase[E, PE]{widths: widths, arena: arena, pointBytes: pointBytes, encode: encode}
	for _, width := range widths {
		f.table = append(f.table, host.Alloc[point[E]](arena, 1<<(width-1)))
	}
	err = eachWindow(ctx, threads, len(widths), func(ctx context.Context, w int) error {
		return fillMultiples[E, PE](ctx, f.table[w], &bases[w])
	})
	if err != nil {
		arena.Close()
		return nil, err
	}
	return f, nil
}

// eachWindow fills the windows of a table on so many goroutines.
func eachWindow(ctx context.Context, threads, windows int, fill func(ctx context.Context, w int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(threads)
	for w := range windows {
		group.Go(func() (err error) {
			defer status.Recover("params.newFixedBase", &err)
			return fill(ctx, w)
		})
	}
	return group.Wait()
}

// fillMultiples writes 1, 2, ... len(row) times base: each round adds the last multiple to all before it.
func fillMultiples[E any, PE coordinate[E]](ctx context.Context, row []point[E], base *point[E]) error {
	adder := newAdder[E, PE](fixedBatch)
	step := make([]point[E], fixedBatch)
	row[0] = *base
	for have := 1; have < len(row); {
		for i := range step {
			step[i] = row[have-1]
		}
		grow := min(have, len(row)-have)
		for from := 0; from < grow; from += fixedBatch {
			if err := ctx.Err(); err != nil {
				return status.Wrap(status.Cancelled, "params.newFixedBase", "tables", err)
			}
			n := min(fixedBatch, grow-from)
			part := row[have+from : have+from+n]
			copy(part, row[from:from+n])
			adder.add(part, step[:n])
		}
		have += grow
	}
	return nil
}

func (f *fixedBase[E, PE]) windows() []int { return f.widths }

// Close gives the tables back.
func (f *fixedBase[E, PE]) Close() {
	f.arena.Close()
	f.table = nil
}

// multiplier is the scratch of one goroutine.
type multiplier[E any, PE coordinate[E]] struct {
	base   *fixedBase[E, PE]
	adder  *adder[E, PE]
	digits [][]int32
	out    []point[E]
	step   []point[E]
}

func newDigits(windows int) [][]int32 {
	digits := make([][]int32, windows)
	for w := range digits {
		digits[w] = make([]int32, fixedBatch)
	}
	return digits
}

func (f *fixedBase[E, PE]) newWorker() func(dst []byte, scalars []fr.Element) {
	m := &multiplier[E, PE]{
		base:   f,
		adder:  newAdder[E, PE](fixedBatch),
		digits: newDigits(len(f.widths)),
		out:    make([]point[E], fixedBatch),
		step:   make([]point[E], fixedBatch),
	}
	return m.mul
}

func (m *multiplier[E, PE]) mul(dst []byte, scalars []fr.Element) {
	n := len(scalars)
	out, step := m.out[:n], m.step[:n]
	recode(scalars, m.base.widths, m.digits)
	m.gather(out, 0)
	for w := 1; w < len(m.base.table); w++ {
		m.gather(step, w)
		m.adder.add(out, step)
	}
	for i := range out {
		m.base.encode(dst[i*m.base.pointBytes:], &out[i])
	}
}

// gather copies the entries of window w out of its table. It does nothing else, so that many of its
// cache misses are under way at once.
func (m *multiplier[E, PE]) gather(dst []point[E], w int) {
	row, digits := m.base.table[w], m.digits[w]
	for i := range dst {
		switch d := digits[i]; {
		case d > 0:
			dst[i] = row[d-1]
		case d < 0:
			dst[i] = row[-d-1]
		default:
			dst[i] = point[E]{}
		}
	}
	for i := range dst {
		if digits[i] < 0 {
			PE(&dst[i].Y).Neg(&dst[i].Y)
		}
	}
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
	for range min(threads, pieces) {
		group.Go(func() (err error) {
			defer status.Recover(op, &err)
			multiply := table.newWorker()
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
