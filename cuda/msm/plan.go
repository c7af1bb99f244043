package msm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// Curve is the group that points are of.
type Curve uint8

// The curves.
const (
	G1 Curve = iota
	G2
	curveCount
)

// String is "g1" or "g2", as in kernels' names.
func (c Curve) String() string { return [...]string{"g1", "g2"}[c] }

// elementBytes is the size of a coordinate.
func (c Curve) elementBytes() int64 { return [...]int64{48, 96}[c] }

// PointBytes is the size of an affine point in device memory, laid out as gnark-crypto's.
func (c Curve) PointBytes() int64 { return 2 * c.elementBytes() }

// Geometry of the tree's kernels; cuda/kernels/tuning/msm.cuh has the same numbers.
var backwardBlocks = [curveCount]int{4, 4} // a multiprocessor

// treeThreads is a block of the tree's kernels: for G2 half as large where shared memory is small.
func (c Card) treeThreads(curve Curve) int {
	switch {
	case curve == G1:
		return 128
	case c.SharedBytes < 96<<10:
		return 32
	default:
		return 64
	}
}

const (
	digitItems        = 4
	scatterItems      = 16
	evenItems         = 32
	mostEvenThreads   = 1024
	pairBuckets       = 1024
	pairThreads       = 256
	pairLimit         = 4096
	invertThreads     = 32
	invertRoom        = 128 // threads that invert, a multiprocessor, above which they share: a warp for each quarter
	totalThreads      = 128
	leastWindows      = 11
	maxWindows        = 48
	maxLowBits        = 11
	maxPartitions     = 8192 // of a window
	maxSteps          = 64   // pairs of a thread
	maxShare          = 16   // totals of a thread that inverts
	maxWindowBits     = 25
	maxEntries        = 1 << 27 // of a group of windows, and points of a part
	sectionBlock      = 256 * 32
	listPoints        = 512
	controlWords      = 64
	controlStatus     = 0
	faultRoom         = 8
	evenScalars       = 1 << 20 // from here on scalars are first taken to be spread evenly
	controlPairs      = 1
	controlPartitions = 3
	controlOnes       = 4
	controlFields     = 5
	controlRounds     = 32
	maxRounds         = 31
	leastFolded       = 1 << 16 // buckets that are folded at once, where there are so many
	maxNumber         = 1<<31 - 2
	alignment         = 256
	entryBytes        = 8
	pairBytes         = 8
	largeBytes        = 16
	foldBytes         = 16
	listBytes         = 12
	sortSpareBytes    = 2048 // of a block's shared memory, for what kernels declare themselves
)

// Card is what a plan depends on of a device.
type Card struct {
	SMs         int
	SharedBytes int // that a block may have
}

// Shape is what a sum is of. The counts are bounds: a sum may turn out to have less.
type Shape struct {
	Curve     Curve
	Points    int // that lie in device memory, up to 2^28
	Scalars   int // other than those that are known to be zero or one
	Ones      int // points with a one
	Variables int // of the largest section, 0 where scalar i belongs to point i
	Pieces    int // sums by the plan that make one Running; 0 and 1: none but Sum
}

// listed tells whether sections choose the scalars.
func (s *Shape) listed() bool { return s.Variables > 0 }

type window struct {
	offset, bits int
	buckets      int // digits' absolute values from 1 on
	padded       int // a power of two
}

// columns and rows are how the window's buckets are folded.
func (w *window) columns() int { return 1 << (bits.TrailingZeros(uint(w.padded)) / 2) }
func (w *window) rows() int    { return w.padded / w.columns() }

// slots of the area that the window's buckets take.
func (w *window) slots() int { return roundUp(w.padded, 32) }

// Plan is how a sum is done, and where in the scratch memory everything lies.
type Plan struct {
	Shape
	// Bytes of scratch memory, which is aligned to 256.
	Bytes int64

	target   Card
	part     int // scalars at once
	windows  []window
	bias     [8]uint32
	group    int  // windows sorted and summed at once
	together bool // all windows' buckets are kept to the end, and folded then; else group by group, in each part
	ahead    bool // all windows' digits are written at once; else group by group
	even     bool // digits are first sorted as if they were spread evenly
	capacity int  // entries that sort_partition takes

	entries int // of a group
	pairs   int // at most, of a round
	slots   int // of the pool, before the area of buckets' sums
	area    int // slots for buckets' sums, that of the ones, and infinity
	folded  int // buckets' slots that are folded at once, at least one window's
	threads int // of forward and backward, at most

	at regions
}

// regions are offsets into the scratch memory.
type regions struct {
	control, counts, places, lists, fieldPoints, fieldScalars, digits, entries, prefixes,
	first, count, odd, size, next, large, partitions, pairs, totals, kept, pool, folds, sums int64
}

var halfOrder = new(big.Int).Rsh(fr.Modulus(), 1)

// cut cuts the 255 bits of biased scalars into windows of nearly the same size. The windows are not to be written.
func cut(count int) (windows []window, bias [8]uint32) {
	c := &cuts()[count]
	return c.windows, c.bias
}

// cuts are those for all numbers of windows.
var cuts = sync.OnceValue(func() *[maxWindows + 1]windowCut {
	all := new([maxWindows + 1]windowCut)
	for count := leastWindows; count <= maxWindows; count++ {
		all[count].windows, all[count].bias = newCut(count)
	}
	return all
})

type windowCut struct {
	windows []window
	bias    [8]uint32
}

func newCut(count int) (windows []window, bias [8]uint32) {
	const total = 255
	offset := 0
	for w := range count {
		width := (total - offset) / (count - w)
		buckets := 1 << (width - 1)
		if w == count-1 {
			// The top digit is at most that of r/2, with a carry from the windows below.
			buckets = int(new(big.Int).Rsh(halfOrder, uint(offset)).Int64()) + 1
		}
		padded := 1
		for padded < buckets {
			padded *= 2
		}
		windows = append(windows, window{offset: offset, bits: width, buckets: buckets, padded: padded})
		top := offset + width - 1
		bias[top>>5] |= 1 << (top & 31)
		offset += width
	}
	return windows, bias
}

// windowGroup is windows that are sorted and summed at once.
type windowGroup struct {
	windows    []window
	first      int // place of the first among all
	low        int // bits of a bucket's number that a block sorts by
	partitions int // of all windows
	widest     int // partitions of the widest window
	buckets    int // of all windows, each filled up to whole partitions
}

// groups cuts the windows into groups. low is as large as it may be for partitions of a part's digits, spread evenly, to fit
// a block's memory.
func (p *Plan) groups() []windowGroup {
	all := make([]windowGroup, 0, (len(p.windows)+p.group-1)/p.group)
	for at := 0; at < len(p.windows); at += p.group {
		g := windowGroup{windows: p.windows[at:min(at+p.group, len(p.windows))], first: at, low: maxLowBits}
		for _, w := range g.windows {
			for g.low > 0 && w.each(p.part, g.low) > 0.9*float64(p.capacity) && w.buckets>>(g.low-1) < maxPartitions {
				g.low--
			}
		}
		for i := range g.windows {
			k := g.windows[i].partitions(g.low)
			g.partitions += k
			g.widest = max(g.widest, k)
			g.buckets += k << g.low
		}
		all = append(all, g)
	}
	return all
}

// rounds is how many there are until each bucket of n digits, of which so many have points, has one.
func (w *window) rounds(n, full float64) int { return bits.Len(uint(n/max(1, full))) + 1 }

// partitions is how many the window is cut into, of 2^low buckets each, and each is how many of n digits spread evenly one has.
func (w *window) partitions(low int) int { return (w.buckets + 1<<low - 1) >> low }
func (w *window) each(n, low int) float64 {
	return float64(n) / float64(w.buckets) * float64(int(1)<<low)
}

// full is how many buckets have points, of n digits spread evenly.
func (w *window) full(n float64) float64 {
	return float64(w.buckets) * -math.Expm1(-n/float64(w.buckets))
}

// wave is the number of threads of backward that run at once.
func (p *Plan) wave() int {
	return p.target.SMs * backwardBlocks[p.Curve] * p.target.treeThreads(p.Curve)
}

func roundUp[T int | int64](x, to T) T { return (x + to - 1) / to * to }

// evenThreads is the size of a block of scatter_even: the largest that its memory allows, unless tiles would be too few; 0 where
// none fits.
func (p *Plan) evenThreads(g *windowGroup, n int) int {
	for threads := mostEvenThreads; ; threads /= 2 {
		fits := evenShared(threads, g.widest) <= p.target.SharedBytes-sortSpareBytes
		switch few := n*len(g.windows)/(threads*evenItems) < 4*p.target.SMs; {
		case fits && (!few || threads <= mostEvenThreads/4):
			return threads
		case threads <= mostEvenThreads/4:
			return 0
		}
	}
}

// evenShared is what scatter_even takes of a block's shared memory.
func evenShared(threads, widest int) int { return 4*threads*evenItems + 10*widest + 2 }

// room is how many of n entries a partition has room for: the number for even digits and eight deviations more.
func (g *windowGroup) room(n int) int {
	most := 0.0
	for i := range g.windows {
		mean := g.windows[i].each(n, g.low)
		most = max(most, mean+8*math.Sqrt(mean))
	}
	return roundUp(int(most)+16, 4)
}

// lay places the regions.
func (p *Plan) lay() {
	n, element := int64(p.part), p.Curve.elementBytes()
	p.entries, p.pairs, p.slots, p.area, p.folded = 0, 0, 0, 0, 0
	largestBuckets, largestPartitions, largestGroup, all := 0, 0, 0, 0
	entries := int64(0)
	for _, g := range p.groups() {
		padded := 0
		for i := range g.windows {
			padded += g.windows[i].slots()
			p.folded = max(p.folded, g.windows[i].slots())
		}
		if p.even && p.evenThreads(&g, p.part) > 0 {
			entries = max(entries, int64(g.partitions)*int64(g.room(p.part)))
		}
		p.entries = max(p.entries, len(g.windows)*p.part)
		largestBuckets = max(largestBuckets, g.buckets+1)
		largestPartitions = max(largestPartitions, g.partitions+1)
		all += padded
		largestGroup = max(largestGroup, padded)
	}
	// Folding takes as many pairs as there are buckets, and two slots each: as many of them at once as sums have room for anyway.
	p.pairs = (p.entries + p.Ones) / 2
	p.area = largestGroup
	if p.together {
		p.folded = max(p.folded, min(all, max(p.pairs, leastFolded)))
		p.area = all
	} else {
		p.folded = largestGroup
	}
	if p.merges() {
		p.pairs = max(p.pairs, largestGroup)
	}
	p.pairs = max(p.pairs, p.folded) + 1
	p.slots = roundUp(max(p.entries+p.Ones, 2*p.folded), 32) + 32*(maxRounds+1)
	p.area += 64
	block := p.target.treeThreads(p.Curve)
	p.threads = p.pairs/maxSteps + p.wave() + 2*block

	at := int64(0)
	place := func(bytes int64) int64 {
		here := at
		at = roundUp(at+bytes, alignment)
		return here
	}
	r := &p.at
	r.control = place(controlWords * 4)
	blocks := int64(p.Variables+sectionBlock-1) / sectionBlock
	r.lists = place(4 * 4 * blocks)
	if p.listed() {
		r.fieldPoints = place(4 * int64(p.Scalars))
		r.fieldScalars = place(4 * int64(p.Scalars))
	}
	digitWindows := p.group
	if p.ahead {
		digitWindows = len(p.windows)
	}
	r.digits = place(4 * n * int64(digitWindows))
	r.counts = place(4 * int64(largestPartitions))
	r.places = place(4 * int64(largestPartitions))
	r.partitions = place(4 * int64(largestPartitions))
	r.first = place(4 * int64(largestBuckets))
	r.count = place(4 * int64(largestBuckets))
	r.odd = place(4 * int64(largestBuckets))
	r.size = place(4 * int64(largestBuckets))
	r.next = place(4 * int64(largestBuckets))
	r.large = place(largeBytes * int64(p.pairs/pairLimit+2))
	r.pairs = place(pairBytes * int64(p.pairs))
	// The entries are gone when the first round begins.
	r.prefixes = place(max(entryBytes*max(entries, int64(p.entries)), element*int64(p.pairs+maxSteps*block)))
	r.entries = r.prefixes
	r.totals = place(element * int64(p.threads))
	r.kept = place(element * int64(p.threads))
	r.pool = place(2 * element * int64(roundUp(p.slots+p.area, 32)))
	lists := 1
	for i := range p.windows {
		w := &p.windows[i]
		lists += (w.rows()+listPoints-1)/listPoints + (w.columns()+listPoints-1)/listPoints
	}
	r.folds = place(int64(max(foldBytes*2*len(p.windows)*maxWindowBits, listBytes*lists)))
	r.sums = place(2 * 4 * element * int64(lists))
	p.Bytes = at
}

// Rates that plans are compared by, in nanoseconds, as measured on an H200: an addition of the tree, an entry of the
// sort, the collecting of a bucket, a round of few pairs. Other cards differ by a factor, and little in the choice.
var addNs = [curveCount]float64{0.27, 0.75}

const (
	entryNs   = 0.012
	bucketNs  = 0.06
	roundNs   = 85e3
	groupNs   = 80e3
	rescanNs  = 0.02 // reading a scalar again for the digits of another group
	emptyAdds = 4    // additions that the merging of an empty bucket is worth, since nearby threads wait for it
	inverseNs = 1.1  // share of a round's time that small rounds take, of wave additions
)

// Seconds estimates the time of a sum by the plan with so many scalars and points with ones, both within what was planned,
// or of one of the sums of a Running; on an H200, and on another card as if it were one with so many multiprocessors. It is for
// comparing plans.
func (p *Plan) Seconds(scalars, ones int) float64 {
	ns := float64(ones)*addNs[p.Curve] + float64(bits.Len(uint(ones)))*roundNs
	if scalars > 0 {
		parts := (scalars + p.part - 1) / max(p.part, 1)
		ns += float64(parts)*p.partCost((scalars+parts-1)/parts, p.merges()) + p.foldCost()/float64(max(1, p.Pieces))
	}
	return ns * 1e-9 * 132 / float64(p.target.SMs)
}

// cost is the time by which plans for one shape are compared, in nanoseconds, without that of the ones.
func (p *Plan) cost() float64 {
	return float64(p.parts()*max(1, p.Pieces)-1)*p.partCost(p.part, p.merges()) + p.partCost(p.part, false) + p.foldCost()
}

// parts of a sum.
func (p *Plan) parts() int { return max(1, (p.Scalars+p.part-1)/max(p.part, 1)) }

// merges tells whether buckets' sums are added to those of earlier parts.
func (p *Plan) merges() bool { return p.together && (p.parts() > 1 || p.Pieces > 1) }

// partCost estimates the time that a part of so many scalars takes, in nanoseconds.
func (p *Plan) partCost(scalars int, merged bool) float64 {
	add := addNs[p.Curve]
	n := float64(scalars)
	sum := 0.0
	for _, g := range p.groups() {
		rounds := 0.0
		for i := range g.windows {
			w := &g.windows[i]
			full := w.full(n)
			sum += max(0, n-full)*add + n*entryNs + float64(w.padded)*bucketNs
			if merged {
				sum += (full + (float64(w.padded)-full)*emptyAdds) * add
			}
			if !p.together {
				sum += 2 * float64(w.padded) * add
			}
			rounds = max(rounds, float64(w.rounds(n, full)))
		}
		if merged {
			rounds++
		}
		sum += groupNs + rounds*roundNs*inverseNs
		if !p.ahead {
			sum += n * rescanNs
		}
		if !p.together {
			sum += float64(maxWindowBits/2) * roundNs
		}
	}
	return sum
}

// foldCost estimates the time of what ends a sum.
func (p *Plan) foldCost() float64 {
	if !p.together {
		return 0
	}
	buckets := float64(p.area)
	return 2*buckets*addNs[p.Curve] + math.Ceil(buckets/float64(p.folded))*float64(maxWindowBits/2)*roundNs
}

// PlanFor chooses the quickest way that takes at most limit bytes of scratch memory. It is a pure function. Errors:
// Caller for counts out of bounds; NoMemory, with the bytes that the smallest way takes.
func PlanFor(shape Shape, card Card, limit int64) (Plan, error) {
	const op = "msm.PlanFor"
	if shape.Points < 0 || shape.Points > 1<<28 || shape.Scalars < 0 || shape.Ones < 0 || shape.Variables < 0 || shape.Variables > 1<<30 || shape.Pieces < 0 {
		return Plan{}, status.New(status.Caller, op, "shape", "0 to 2^28 points, up to 2^30 variables", fmt.Sprintf("%+v", shape))
	}
	if shape.Scalars > shape.Points || shape.Ones > shape.Points {
		return Plan{}, status.New(status.Caller, op, "shape", "no more scalars and ones than points", fmt.Sprintf("%+v", shape))
	}
	if card.SMs < 1 || card.SharedBytes < 48<<10 {
		return Plan{}, status.New(status.NoDevice, op, "card", "a multiprocessor, and 48 KiB of shared memory for a block", fmt.Sprintf("%+v", card))
	}
	w := search{shape: shape, card: card, limit: limit}
	shape.eachPart(w.try)
	if w.found {
		return w.best, nil
	}
	return Plan{}, status.New(status.NoMemory, op, shape.Curve.String(), fmt.Sprintf("%d bytes of device memory", w.smallest()), fmt.Sprintf("%d", limit))
}

// eachPart calls f with all sizes of parts that are tried: of 1, 2, 3, 4, 6, 8, 12, ... equal ones, down to leastPart.
func (s *Shape) eachPart(f func(part int)) {
	for parts, next := 1, 2; ; {
		part := (s.Scalars + parts - 1) / parts
		if part <= maxEntries {
			f(part)
		}
		if part <= leastPart {
			return
		}
		parts, next = next, max(3, 2*parts)
	}
}

const leastPart = 1 << 16

// search looks through all ways to do a sum, whose number does not depend on the limit: so the best one of a higher limit is never worse.
type search struct {
	shape Shape
	card  Card
	limit int64

	best  Plan
	cost  float64
	found bool
}

// forms are whether windows are folded together, and whether digits are written ahead.
const forms = 4

func (w *search) way(part, form, group, count int) Plan {
	p := Plan{Shape: w.shape, target: w.card, part: part, together: form&1 == 0, ahead: form&2 == 0, group: min(group, count)}
	p.prepare(count)
	return p
}

// try looks through the ways with parts of so many scalars, but for those of which it is known that they do not fit or are no better.
func (w *search) try(part int) {
	most := min(maxWindows, maxEntries/max(part, 1))
	for count := leastWindows; count <= maxWindows; count++ {
		all, each := w.leastCost(part, count)
		for group := min(most, count); group > 0; group-- {
			for form := range forms {
				if w.found && all+float64((count+group-1)/group)*each[form] >= w.cost || w.leastBytes(part, form, group, count) > w.limit {
					continue
				}
				p := w.way(part, form, group, count)
				if p.Bytes > w.limit || p.Points+p.slots+p.area > maxNumber {
					continue
				}
				c := p.cost()
				if !w.found || c < w.cost || c == w.cost && p.Bytes < w.best.Bytes {
					w.best, w.cost, w.found = p, c, true
				}
			}
		}
	}
}

// leastCost is below the cost of every way with so many windows and parts of so many scalars: of all, and of each group of windows by form.
func (w *search) leastCost(part, count int) (all float64, each [forms]float64) {
	parts := float64(max(1, (w.shape.Scalars+part-1)/max(part, 1)) * max(1, w.shape.Pieces))
	windows, _ := cut(count)
	n, add, rounds := float64(part), addNs[w.shape.Curve], maxRounds
	for i := range windows {
		v := &windows[i]
		full := v.full(n)
		all += parts*(max(0, n-full)*add+n*entryNs+float64(v.padded)*bucketNs) + (parts-1)*float64(v.padded)*add
		rounds = min(rounds, v.rounds(n, full))
	}
	for form := range each {
		each[form] = groupNs + float64(rounds)*roundNs*inverseNs
		if form&1 != 0 {
			each[form] += float64(maxWindowBits/2) * roundNs
		}
		if form&2 != 0 {
			each[form] += n * rescanNs
		}
		each[form] *= parts
	}
	// A sum is rounded otherwise.
	return all * (1 - 1e-9), each
}

// leastBytes is below what every such way takes: of what grows with the scalars, and with the buckets.
func (w *search) leastBytes(part, form, group, count int) int64 {
	windows, _ := cut(count)
	if form&1 != 0 {
		windows = windows[:group]
	}
	point := 2 * w.shape.Curve.elementBytes()
	area := int64(0)
	for i := range windows {
		area += int64(windows[i].padded)
	}
	return int64(group)*int64(part)*(point+entryBytes+4+pairBytes/2) + int64(w.shape.Ones)*(point+pairBytes/2) + area*point
}

// smallest is the memory that the smallest way takes: with the smallest parts, a window at a time.
func (w *search) smallest() int64 {
	part, least := 0, int64(math.MaxInt64)
	w.shape.eachPart(func(p int) { part = p })
	for count := leastWindows; count <= maxWindows; count++ {
		for form := range forms {
			p := w.way(part, form, 1, count)
			least = min(least, p.Bytes)
		}
	}
	return least
}

// prepare fills the plan for a number of windows.
func (p *Plan) prepare(count int) {
	p.windows, p.bias = cut(count)
	shared := p.target.SharedBytes - sortSpareBytes - 8<<maxLowBits
	p.capacity = min(shared/4, 48<<10)
	p.even = p.part >= evenScalars
	p.lay()
}

// String tells how the work is cut.
func (p *Plan) String() string {
	return fmt.Sprintf("%d windows, %d at once, %d scalars at once, digits ahead %t, folded together %t, %d bytes", len(p.windows), p.group, p.part, p.ahead, p.together, p.Bytes)
}
