package cpu

import (
	"context"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// The multi-scalar multiplication is Pippenger's over chunks of points. Of each chunk, points with a scalar
// go to the buckets of their digits (signed digits: the bucket of |digit|, the point negated below zero);
// points with the value one go straight into a few buckets of weight one. Buckets persist over the chunks.
// The additions of a chunk are sorted by bucket and carried out as trees of affine additions, thousands
// sharing one inversion.

const (
	scalarBits    = 255 // of r
	maxWindow     = 17
	minWindow     = 4
	oneBuckets    = 256         // buckets of weight one, for each worker
	treeEntries   = 4096        // points gathered before a tree is carried out
	treeTemps     = treeEntries // temporary slots of a worker
	maxChunk      = 1 << 17     // points
	maxSegments   = treeTemps / 4
	segmentLength = 64 // buckets that one running sum goes through, at least
	readSlices    = 16 // tasks in which a chunk is read
	bucketBytes   = 144 << 20
)

// windows is how scalars are cut: digits w < count-1 are signed, of width bits; the last is what remains.
type windows struct {
	width, count int
	bias         [4]uint64 // sum of 2^(width-1) 2^(width w) over the signed digits
}

// cut chooses the width with the fewest additions for n scalars: count x n into buckets, two a bucket to
// sum them up, and some for each running sum; within the memory for buckets of slotBytes.
func cut(n int, slotBytes int64) windows {
	best, bestCost := 0, int64(-1)
	for width := minWindow; width <= maxWindow; width++ {
		count := (scalarBits + width - 1) / width
		buckets := int64(count) << (width - 1)
		cost := int64(count)*int64(n) + 2*buckets + int64(count*segments(width))*20
		if width > minWindow && buckets*slotBytes > bucketBytes {
			break
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost = width, cost
		}
	}
	return cutWidth(best)
}

func cutWidth(width int) windows {
	w := windows{width: width, count: (scalarBits + width - 1) / width}
	for i := range w.count - 1 {
		bit := width*i + width - 1
		w.bias[bit>>6] |= 1 << (bit & 63)
	}
	return w
}

func (w *windows) buckets() int { return 1 << (w.width - 1) }

// segments is the number of running sums of a window.
func segments(width int) int { return max(1, min(maxSegments, 1<<(width-1)/segmentLength)) }

// The order r and r/2, canonical; scalars above half are replaced by their negatives, so that the top digit
// needs no carry.
var order, halfOrder = func() (r, h [4]uint64) {
	m := fr.Modulus()
	for i := range r {
		r[i] = m.Uint64()
		m.Rsh(m, 64)
	}
	h = [4]uint64{r[0]>>1 | r[1]<<63, r[1]>>1 | r[2]<<63, r[2]>>1 | r[3]<<63, r[3] >> 1}
	return r, h
}()

// prepare makes a scalar ready for digit: |k| + bias with |k| <= r/2, and whether the point is negated.
func (w *windows) prepare(x *fr.Element) (k [4]uint64, negative uint32) {
	k = x.Bits()
	var borrow uint64
	var n [4]uint64
	_, borrow = bits.Sub64(halfOrder[0], k[0], 0)
	_, borrow = bits.Sub64(halfOrder[1], k[1], borrow)
	_, borrow = bits.Sub64(halfOrder[2], k[2], borrow)
	_, borrow = bits.Sub64(halfOrder[3], k[3], borrow)
	if borrow == 1 {
		n[0], borrow = bits.Sub64(order[0], k[0], 0)
		n[1], borrow = bits.Sub64(order[1], k[1], borrow)
		n[2], borrow = bits.Sub64(order[2], k[2], borrow)
		n[3], _ = bits.Sub64(order[3], k[3], borrow)
		k, negative = n, 1
	}
	var carry uint64
	k[0], carry = bits.Add64(k[0], w.bias[0], 0)
	k[1], carry = bits.Add64(k[1], w.bias[1], carry)
	k[2], carry = bits.Add64(k[2], w.bias[2], carry)
	k[3], _ = bits.Add64(k[3], w.bias[3], carry)
	return k, negative
}

// jacobian is what the end of a multiplication needs of a group.
type jacobian[A, J any] interface {
	*J
	AddAssign(*J) *J
	AddMixed(*A) *J
	DoubleAssign() *J
}

// point tells infinity among the points read.
type point[A any] interface {
	*A
	IsInfinity() bool
}

// multiSum is one multi-scalar multiplication under way.
type multiSum[A, J any, PA point[A], PJ jacobian[A, J]] struct {
	threads int
	w       windows
	points  lanes.Store[A]

	// Slots of the store: temporary ones of each worker, the chunk's points, buckets of each window,
	// buckets of weight one of each worker.
	chunkAt, bucketAt, oneAt int

	raw  []A    // the chunk as it is read
	v    values // of the chunk
	work []sumWorker
}

// sumWorker is a goroutine's scratch space.
type sumWorker struct {
	starts []uint32 // by bucket: end of its run of refs
	digits []uint32
	refs   []uint32

	tree tree
}

// chunkPoints is the number of points handled at once.
func chunkPoints(points int, slotBytes int64) int {
	limit := maxChunk
	if slotBytes > 128 { // G2: keep a task near 10 ms
		limit /= 4
	}
	return max(1, min(points, limit))
}

func sumSlots(w windows, chunk, threads int) int {
	return threads*(treeTemps+oneBuckets) + chunk + w.count*w.buckets()
}

// sumBytes is what newMultiSum takes from an arena, without the store.
func sumBytes[A any](w windows, chunk, threads int) int64 {
	perWorker := host.SliceBytes[uint32](w.buckets()+1) + 2*host.SliceBytes[uint32](chunk) + treeBytes()
	return host.SliceBytes[A](chunk) + host.SliceBytes[fr.Element](chunk) + 2*host.SliceBytes[uint32](chunk) + int64(threads)*perWorker
}

func newMultiSum[A, J any, PA point[A], PJ jacobian[A, J]](arena *host.Arena, w windows, chunk, threads int, points lanes.Store[A]) *multiSum[A, J, PA, PJ] {
	m := &multiSum[A, J, PA, PJ]{threads: threads, w: w, points: points}
	m.chunkAt = threads * treeTemps
	m.bucketAt = m.chunkAt + chunk
	m.oneAt = m.bucketAt + w.count*w.buckets()
	m.raw = host.Alloc[A](arena, chunk)
	m.v = values{
		scalars: host.Alloc[fr.Element](arena, chunk),
		offsets: host.Alloc[uint32](arena, chunk),
		ones:    host.Alloc[uint32](arena, chunk),
	}
	m.work = make([]sumWorker, threads)
	for i := range m.work {
		m.work[i] = sumWorker{
			starts: host.Alloc[uint32](arena, w.buckets()+1),
			digits: host.Alloc[uint32](arena, chunk),
			refs:   host.Alloc[uint32](arena, chunk),
			tree:   newTree(arena, i*treeTemps),
		}
	}
	return m
}

// run returns the sum over all points of the source's values times the points that read gives.
func (m *multiSum[A, J, PA, PJ]) run(ctx context.Context, src *source, read func(ctx context.Context, from int, dst []A) error) (J, error) {
	const op = "cpu.multiSum"
	var sum J
	total, chunk := src.points(), len(m.raw)
	readSlice := func(from, n, slice int) error {
		lo, hi := n*slice/readSlices, n*(slice+1)/readSlices
		if lo == hi {
			return nil
		}
		return read(ctx, from+lo, m.raw[lo:hi])
	}
	n := min(chunk, total)
	if err := parallel(ctx, m.threads, readSlices, func(_, task int) error { return readSlice(0, n, task) }); err != nil {
		return sum, err
	}
	// Parts of a window's buckets, so that there are tasks enough for the threads.
	parts := (2*m.threads + m.w.count - 1) / m.w.count
	hasScalars := false
	for from := 0; from < total; from += n {
		n = min(chunk, total-from)
		got := src.fill(&m.v, n)
		status.Check(got == n, op, "as many values as points")
		if err := m.loadChunk(ctx); err != nil {
			return sum, err
		}
		windowTasks := m.w.count * parts
		if len(m.v.offsets) == 0 {
			windowTasks = 0
		} else {
			hasScalars = true
		}
		// The next chunk is read behind this one's additions.
		after := min(chunk, total-from-n)
		err := parallel(ctx, m.threads, windowTasks+m.threads+readSlices, func(worker, task int) error {
			switch {
			case task < windowTasks:
				m.addWindow(&m.work[worker], worker, task/parts, task%parts, parts)
			case task < windowTasks+m.threads:
				m.addOnes(&m.work[worker], worker, task-windowTasks)
			default:
				return readSlice(from+n, after, task-windowTasks-m.threads)
			}
			return nil
		})
		if err != nil {
			return sum, err
		}
	}
	return m.finish(ctx, hasScalars)
}

// loadChunk moves the chunk's points that have a value into the store (those with a scalar first) and
// prepares the scalars.
func (m *multiSum[A, J, PA, PJ]) loadChunk(ctx context.Context) error {
	const slice = 4096
	nums := (len(m.v.offsets) + slice - 1) / slice
	ones := (len(m.v.ones) + slice - 1) / slice
	return parallel(ctx, m.threads, nums+ones, func(_, task int) error {
		if task >= nums {
			lo := (task - nums) * slice
			hi := min(lo+slice, len(m.v.ones))
			m.points.Load(m.chunkAt+len(m.v.offsets)+lo, m.raw, m.v.ones[lo:hi])
			return nil
		}
		lo := task * slice
		hi := min(lo+slice, len(m.v.offsets))
		m.points.Load(m.chunkAt+lo, m.raw, m.v.offsets[lo:hi])
		for i := lo; i < hi; i++ {
			// The prepared scalar takes the place of the field element.
			scalar := (*[4]uint64)(&m.v.scalars[i])
			if PA(&m.raw[m.v.offsets[i]>>1]).IsInfinity() {
				*scalar = m.w.bias // all digits zero
				continue
			}
			k, negative := m.w.prepare(&m.v.scalars[i])
			*scalar = k
			m.v.offsets[i] |= negative
		}
		return nil
	})
}

// addWindow adds the chunk's points to one part of the buckets of a window.
func (m *multiSum[A, J, PA, PJ]) addWindow(s *sumWorker, worker, window, part, parts int) {
	buckets := m.w.buckets()
	lo, hi := buckets*part/parts, buckets*(part+1)/parts
	width := m.w.width
	word, shift := window*width>>6, uint(window*width&63)
	mask := uint64(1)<<width - 1
	middle := uint64(buckets)
	top := window == m.w.count-1
	if top {
		mask, middle = ^uint64(0), 0
	}
	starts := s.starts[:hi-lo+1]
	clear(starts)
	// Counting sort by bucket. A digit is kept as bucket<<1 | negated; none is the mark of zero.
	const none = ^uint32(0)
	digits := s.digits[:len(m.v.offsets)]
	for i := range digits {
		k := (*[4]uint64)(&m.v.scalars[i])
		v := k[word] >> shift
		if word < 3 {
			v |= k[word+1] << (64 - shift)
		}
		d := int64(v&mask) - int64(middle)
		negative := uint32(m.v.offsets[i]) & 1
		if d < 0 {
			d, negative = -d, negative^1
		}
		bucket := int(d) - 1
		if bucket < lo || bucket >= hi {
			digits[i] = none
			continue
		}
		digits[i] = uint32(bucket-lo)<<1 | negative
		starts[bucket-lo+1]++
	}
	for b := range hi - lo {
		starts[b+1] += starts[b]
	}
	refs := s.refs[:starts[hi-lo]]
	for i, d := range digits {
		if d == none {
			continue
		}
		b := d >> 1
		refs[starts[b]] = lanes.Ref(m.chunkAt+i) | d&1
		starts[b]++
	}
	at := m.bucketAt + window*buckets + lo
	begin := uint32(0)
	for b := range hi - lo {
		end := starts[b]
		for begin < end {
			begin += uint32(addRun(&s.tree, m.points, worker, at+b, refs[begin:end]))
		}
	}
	flush(&s.tree, m.points, worker)
}

// addOnes adds a share of the chunk's points with the value one to buckets of weight one.
func (m *multiSum[A, J, PA, PJ]) addOnes(s *sumWorker, worker, share int) {
	n := len(m.v.ones)
	lo, hi := n*share/m.threads, n*(share+1)/m.threads
	refs := s.refs[:hi-lo]
	for i := range refs {
		refs[i] = lanes.Ref(m.chunkAt + len(m.v.offsets) + lo + i)
	}
	const run = treeEntries / oneBuckets
	for b := 0; len(refs) > 0; b = (b + 1) % oneBuckets {
		k := min(run, len(refs))
		for begin := 0; begin < k; {
			begin += addRun(&s.tree, m.points, worker, m.oneAt+share*oneBuckets+b, refs[begin:k])
		}
		refs = refs[k:]
		if b == oneBuckets-1 {
			flush(&s.tree, m.points, worker)
		}
	}
	flush(&s.tree, m.points, worker)
}

// finish sums up the buckets.
func (m *multiSum[A, J, PA, PJ]) finish(ctx context.Context, hasScalars bool) (J, error) {
	var sum J
	ones := m.threads * oneBuckets
	sums := make([]J, m.w.count)
	tasks := 1
	if hasScalars {
		tasks += m.w.count
	}
	err := parallel(ctx, m.threads, tasks, func(worker, task int) error {
		if task > 0 {
			sums[task-1] = m.sumWindow(ctx, worker, task-1)
			return nil
		}
		for b := range ones {
			p := m.points.Get(m.oneAt + b)
			PJ(&sum).AddMixed(&p)
		}
		return nil
	})
	if err != nil || !hasScalars {
		return sum, err
	}
	if err := cancelled(ctx); err != nil {
		return sum, err
	}
	total := sums[m.w.count-1]
	for w := m.w.count - 2; w >= 0; w-- {
		for range m.w.width {
			PJ(&total).DoubleAssign()
		}
		PJ(&total).AddAssign(&sums[w])
	}
	PJ(&sum).AddAssign(&total)
	return sum, nil
}

// sumWindow returns the sum of b+1 times bucket b. The buckets are cut into segments; running sums go
// through all segments at once, so that their additions share inversions: for segment s with length buckets,
// run = sum of bucket, acc = sum of (offset in the segment + 1) bucket; the result is
// sum of acc + length (sum of s run).
func (m *multiSum[A, J, PA, PJ]) sumWindow(ctx context.Context, worker, window int) J {
	count := segments(m.w.width)
	length := m.w.buckets() / count
	at := m.bucketAt + window*m.w.buckets()
	temps := worker * treeTemps
	p := m.points
	p.Clear(temps, temps+3*count)
	// run sums alternate between two slots, so that acc can read the old one in the batch that makes the new.
	acc := temps + 2*count
	flip := make([]int, count)
	ops := m.work[worker].tree.ops[:0]
	for k := length - 1; k >= -1; k-- {
		if ctx.Err() != nil {
			break // finish asks again
		}
		ops = ops[:0]
		for s := range count {
			run := temps + 2*s + flip[s]
			if !p.Empty(run) {
				if p.Empty(acc + s) {
					p.Move(acc+s, lanes.Ref(run))
				} else {
					ops = append(ops, lanes.Op{Dst: uint32(acc + s), A: lanes.Ref(acc + s), B: lanes.Ref(run)})
				}
			}
			if k < 0 {
				continue
			}
			bucket := at + s*length + k
			if p.Empty(bucket) {
				continue
			}
			flip[s] ^= 1
			other := temps + 2*s + flip[s]
			if p.Empty(run) {
				p.Move(other, lanes.Ref(bucket))
			} else {
				ops = append(ops, lanes.Op{Dst: uint32(other), A: lanes.Ref(run), B: lanes.Ref(bucket)})
			}
		}
		p.Add(worker, ops)
	}
	var sum, run, weighted J
	for s := count - 1; s >= 0; s-- {
		a, r := p.Get(acc+s), p.Get(temps+2*s+flip[s])
		PJ(&sum).AddMixed(&a)
		if s > 0 {
			PJ(&run).AddMixed(&r)
			PJ(&weighted).AddAssign(&run)
		}
	}
	for range bits.TrailingZeros(uint(length)) {
		PJ(&weighted).DoubleAssign()
	}
	PJ(&sum).AddAssign(&weighted)
	return sum
}

// tree gathers runs of points with their buckets and adds each run to its bucket, all runs level by level.
type tree struct {
	temps   int // first of the worker's treeTemps temporary slots
	taken   int // points gathered
	entries int // references in level
	runs    int
	bucket  []uint32 // of each run
	length  []uint32 // of each run
	level   []uint32 // references of all runs, one after the other
	ops     []lanes.Op
}

// A level holds the entries and, for each of at most as many runs, the bucket's own point.
const treeLevel = 2 * treeEntries

func treeBytes() int64 {
	return 2*host.SliceBytes[uint32](treeEntries) + host.SliceBytes[uint32](treeLevel) + host.SliceBytes[lanes.Op](treeLevel)
}

func newTree(arena *host.Arena, temps int) tree {
	return tree{
		temps:  temps,
		bucket: host.Alloc[uint32](arena, treeEntries),
		length: host.Alloc[uint32](arena, treeEntries),
		level:  host.Alloc[uint32](arena, treeLevel),
		ops:    host.Alloc[lanes.Op](arena, treeLevel),
	}
}

// addRun gathers references that belong to one bucket, as many as fit, and returns how many it took (at least
// one). When the tree is full it is carried out first; a bucket may so appear in several trees.
func addRun[A any](t *tree, points lanes.Store[A], worker, bucket int, refs []uint32) int {
	if t.taken == treeEntries || t.runs > 0 && t.bucket[t.runs-1] == uint32(bucket) {
		flush(t, points, worker)
	}
	n := min(len(refs), treeEntries-t.taken)
	start := t.entries
	if !points.Empty(bucket) {
		t.level[t.entries] = lanes.Ref(bucket)
		t.entries++
	}
	t.entries += copy(t.level[t.entries:], refs[:n])
	t.bucket[t.runs] = uint32(bucket)
	t.length[t.runs] = uint32(t.entries - start)
	t.runs++
	t.taken += n
	return n
}

// flush carries out the tree: in each level, neighbours of a run are added; the last addition of a run goes
// to its bucket. All levels together need fewer temporary slots than points were gathered: each addition
// makes one point of two, and a run's last one needs none.
func flush[A any](t *tree, points lanes.Store[A], worker int) {
	temp := t.temps
	for t.runs > 0 {
		ops := t.ops[:0]
		in, out, runs := 0, 0, 0
		for r := range t.runs {
			bucket, length := t.bucket[r], int(t.length[r])
			level := t.level[in : in+length]
			in += length
			switch length {
			case 1:
				points.Move(int(bucket), level[0])
				continue
			case 2:
				ops = append(ops, lanes.Op{Dst: bucket, A: level[0], B: level[1]})
				continue
			}
			for i := 0; i+1 < length; i += 2 {
				ops = append(ops, lanes.Op{Dst: uint32(temp), A: level[i], B: level[i+1]})
				t.level[out] = lanes.Ref(temp)
				out++
				temp++
			}
			if length&1 == 1 {
				t.level[out] = level[length-1]
				out++
			}
			t.bucket[runs], t.length[runs] = bucket, uint32(length+1)/2
			runs++
		}
		status.Check(temp <= t.temps+treeTemps, "cpu.flush", "temporary slots enough for a tree")
		points.Add(worker, ops)
		t.runs = runs
	}
	t.taken, t.entries = 0, 0
}
