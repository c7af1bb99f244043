package cuda

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// elementBytes is the size of a scalar on host and device.
const elementBytes = fr.Bytes

// shape is what a plan is made for: all that memory and times follow from. Shapes of partitions that are proved alike are equal.
type shape struct {
	name        string
	log         int // of the domain
	inputs, aux int
	scalars     int                     // inputs, and aux that lie on the device as field elements
	rows        int                     // of an assignment, whose rows go up; 0 for a program's
	resident    int64                   // bytes of a program's tables and bitmaps; 0 for an assignment
	points      [groth16.BlockCount]int // by block
	fields      [groth16.BlockCount]int // bound on the values other than zero and one
	ones        [groth16.BlockCount]int // bound on the ones
	share       int                     // of shareUnit: aux of an assignment that are field elements, which its times are estimated by; memory holds for any
}

func (s *shape) domain() int   { return 1 << s.log }
func (s *shape) vector() int64 { return elementBytes << s.log }

func programShape(p *circuit.Program, t *rows.Tables) *shape {
	d, kinds := p.Density(), p.Kinds()
	var c cut
	programPlaces(&c, p, t)
	s := &shape{
		resident: c.at,
		name:     p.Name(), log: bits.TrailingZeros(uint(p.Domain())), inputs: p.InputCount(), aux: p.AuxCount(),
		scalars: p.InputCount() + p.NumCount(),
	}
	aNums, bNums := both(d.AAux, kinds), both(d.BAux, kinds)
	a, b := d.AAux.Count(), d.BAux.Count()
	bInputs := d.BInput.Count()
	s.points = [...]int{s.domain() - 1, s.aux, s.inputs + a, bInputs + b, bInputs + b}
	s.fields = [...]int{s.domain() - 1, p.NumCount(), s.inputs + aNums, bInputs + bNums, bInputs + bNums}
	s.ones = [...]int{0, s.aux - p.NumCount(), a - aNums, b - bNums, b - bNums}
	return s
}

// both counts the places where x and y are one.
func both(x, y circuit.Bits) (n int) {
	for i, w := range x.Words {
		n += bits.OnesCount64(w & y.Words[i])
	}
	return n
}

func assignmentShape(a *groth16.Assignment) *shape {
	s := &shape{
		name: "assignment", log: bits.TrailingZeros(uint(a.Domain())), inputs: len(a.Inputs), aux: len(a.Aux),
		scalars: len(a.Inputs) + len(a.Aux), rows: len(a.A), points: a.Points(),
	}
	// Which aux are bits is not known before they have been looked at.
	s.fields = s.points
	s.ones = s.points
	s.ones[groth16.BlockH] = 0
	return s
}

// shareUnit is how many aux of an assignment are looked at.
const shareUnit = 1 << 12

// sampleShare looks at some of an assignment's aux, spread over all by the golden ratio, which no circuit's period is near: less than a
// millisecond for 4 GB.
func sampleShare(a *groth16.Assignment) (fields int) {
	for k := range uint64(shareUnit) {
		if i, _ := bits.Mul64(k*0x9e3779b97f4a7c15, uint64(len(a.Aux))); len(a.Aux) > 0 && !a.Aux[i].IsZero() && !a.Aux[i].IsOne() {
			fields++
		}
	}
	return fields
}

// expected is a sum as it is planned once its values are known (assignmentValues.count): of an assignment's aux all may be field elements, or ones.
func (s *shape) expected(m msm.Shape) msm.Shape {
	m.Scalars, m.Ones = s.expect(m.Scalars, m.Ones)
	return m
}

// expect is how many field elements, and how many ones at most, there are among values that may all be either.
func (s *shape) expect(fields, ones int) (int, int) {
	if s.rows > 0 { // the others are inputs
		bits := ones - ones*s.share/shareUnit
		fields, ones = fields-bits, bits
	}
	return fields, ones
}

// curve is the group of a block's points.
func curve(b groth16.Block) msm.Curve {
	if b == groth16.BlockB2 {
		return msm.G2
	}
	return msm.G1
}

// blockBytes is what a block of points takes.
func (s *shape) blockBytes(b groth16.Block) int64 {
	return max(1, int64(s.points[b])*curve(b).PointBytes())
}

// bitmapBytes is what a bitmap of n bits takes on the device.
func bitmapBytes(n int) int64 { return int64(circuit.BitWords(n)) * 8 }

// densities are the places of a program's or assignment's bitmaps that do not change with the witness.
type densities struct{ kinds, aAux, bAux, bInput int64 }

// place deals them out.
func (d *densities) place(c *cut, inputs, aux int) {
	for _, at := range []*int64{&d.kinds, &d.aAux, &d.bAux} {
		*at = c.take(bitmapBytes(aux))
	}
	d.bInput = c.take(bitmapBytes(inputs))
}

// programPlaces deals out what is resident of a program: the tables, then the bitmaps.
func programPlaces(c *cut, p *circuit.Program, t *rows.Tables) (tables int64, d densities) {
	tables = c.take(t.Bytes())
	d.place(c, p.InputCount(), p.AuxCount())
	return tables, d
}

// roots is how roots of unity are kept.
type roots uint8

const (
	fullRoots    roots = iota // one for each element and more, quickest
	compactRoots              // few
)

// String names the form.
func (r roots) String() string { return [...]string{"full", "compact"}[r] }

func (r roots) bytes(log int) int64 {
	if r == compactRoots {
		return ntt.CompactBytes(log)
	}
	return ntt.TableBytes(log)
}

// plan is how partitions of a shape are proved on a device: where everything lies, and which blocks of points go up how often.
type plan struct {
	shape *shape
	batch int // partitions proved together
	ahead int // batches under way at once
	job   int // partitions of the job that the times are of; 0: of whole batches

	own  ownPlaces
	work workPlaces

	roots   roots
	vectors int // that rows take in the workspace: three, two, one beside host memory, or none where they lie in the partition's own block
	blocks  [groth16.BlockCount]blockPlan
	// slots of slotBytes are what points come up to that are not resident.
	slots     int
	slotBytes int64

	shared   int64 // mapped bytes of all that batches share: points, tables, slots, workspace
	seconds  float64
	computes bool    // the device is what takes these seconds, not the bus
	roomy    bool    // more memory would change nothing
	sums     sumMemo // while plans are compared
}

// blockPlan is how a block is summed up.
type blockPlan struct {
	resident bool
	pieces   []msm.Piece // where it is not
	sum      msm.Plan    // of the whole, of a Running over the pieces, or of one piece at a time
}

// ownPlaces are in a partition's own block of device memory, which it has from its upload on.
type ownPlaces struct {
	densities          // of an assignment; a program's are resident
	bits      int64    // of aux: ones
	scalars   int64    // inputs, then aux that are field elements
	rows      [3]int64 // an assignment's a, b and c, where they fit
	bytes     int64
}

// workPlaces are in the workspace, which the partition has that computes.
type workPlaces struct {
	status int64
	b, a   int64 // rows; h takes the place of b
	c      int64 // where there are three vectors
	hosted int64 // scratch of a hosted quotient, where there is one vector
	given  [3]int64
	sumAt  [2]int64 // scratch of the sums: of H, which leaves h alone, and of the others
	bytes  int64

	regions []region // all of these
}

// moment is a time in a partition's proof at which what lies in the workspace changes.
type moment uint8

// The moments: rows checked; c, a and b taken, which is one where all lie there at once; the sum of H; those of the other blocks, behind the sums
// of H of all the batch.
const (
	momentCheck moment = iota
	momentC
	momentA
	momentB
	momentH
	momentOthers
	momentCount
)

// region is a part of the workspace that is written first, and read last, at these moments.
type region struct {
	name      string
	at, bytes int64
	from, to  moment
}

// take deals a region out.
func (w *workPlaces) take(c *cut, name string, bytes int64, from, to moment) int64 {
	at := c.take(bytes)
	w.keep(name, at, bytes, from, to)
	return at
}

// keep notes a region at a place where others are at other times.
func (w *workPlaces) keep(name string, at, bytes int64, from, to moment) {
	w.regions = append(w.regions, region{name, at, bytes, from, to})
	w.bytes = max(w.bytes, at+bytes)
}

// takeRows is how many rows of an assignment go up at once where its rows do not fit the partition's own block.
const takeRows = 1 << 20

// points is how a block is cut: blocks that are known are, others are summed whole.
type pointBlocks [groth16.BlockCount]*msm.Block

// card is what plans depend on of a machine.
type card struct {
	msm.Card
	limit, unit int64 // of the device's memory: what may be taken, and what is mapped at once
	held        int64 // of that, by the session, and by points that are made there (Backend.MakeSRS), of another circuit
	made        bool  // this circuit's points are there
	hostBytes   int64 // of pinned host memory
}

// Rates that plans are compared by: of an H200 with 132 multiprocessors, docs/kernels.md, of the bus of a PCIe 4 card, and of a file in the page cache.
const (
	transferRate = 25e9    // bytes a second
	fileRate     = 4e9     // bytes a second
	quotientRate = 1.37e-9 // seconds an element, with the full table
	compactCost  = 1.092   // times as long with the compact one
	hostedRate   = 0.83e-9 // seconds an element that a hosted quotient computes beside no copy
	rowsRate     = 4.4e-11 // seconds a row, for all three vectors at once
	fillCost     = 1.46    // times as long for a check, and each vector by itself
	pays         = 0.98    // less of the time than this is worth another way: estimates are not better
)

// planFor finds the quickest way that fits: with what is known of the blocks, where points may come up in pieces. A pure function.
// Errors: NoMemory, with both numbers.
func planFor(s *shape, blocks *pointBlocks, partitions int, on card) (*plan, error) {
	sums := sumMemo{}
	best := s.allResident(blocks, on, sums)
	if best != nil && best.roomy {
		return best, nil
	}
	// Something has to give way: roots, vectors, points, the size of slots.
	worse := 0 // sizes of slots in a row that did not pay
	for slot := mostSlot(on.limit); slot >= leastSlot && worse < 2; slot /= 2 {
		p := s.quickest(blocks, partitions, on, slot, sums)
		switch {
		case p != nil && (best == nil || p.seconds < best.seconds*pays):
			best, worse = p, 0
		case best != nil:
			worse++
		}
	}
	if best == nil {
		return nil, s.refuse(on)
	}
	return best, nil
}

// allResident is the quickest plan with everything on the device; nil where none fits.
func (s *shape) allResident(blocks *pointBlocks, on card, sums sumMemo) (best *plan) {
	for _, vectors := range []int{0, 3} {
		if vectors == 0 && s.rows == 0 {
			continue
		}
		for _, ahead := range []int{2, 1} {
			p := newPlan(s, [groth16.BlockCount]bool{true, true, true, true, true}, fullRoots, vectors, 1, ahead)
			p.sums = sums
			if p.lay(blocks, on) != nil {
				continue
			}
			p.sums = nil
			if best == nil || p.seconds < best.seconds {
				best = p
			}
			if p.roomy {
				return p
			}
		}
	}
	return best
}

// mostSlot is the largest slot that is tried.
func mostSlot(limit int64) int64 {
	slot := int64(2 << 30)
	for slot > leastSlot && slot > limit/8 {
		slot /= 2
	}
	return slot
}

// quickest is the quickest plan with slots of a size, of the three that are best by H's sum, which takes most time and scratch; nil where none fits.
func (s *shape) quickest(blocks *pointBlocks, partitions int, on card, slot int64, sums sumMemo) *plan {
	var fit []*plan
	for _, resident := range [][groth16.BlockCount]bool{{true, true, true, true, true}, {true}, {}} {
		if on.made && !resident[groth16.BlockL] {
			continue
		}
		for _, vectors := range []int{3, 2, 1} {
			for _, roots := range []roots{fullRoots, compactRoots} {
				if vectors == 1 && (roots == fullRoots || ntt.HostedBytes(s.log) > on.hostBytes) {
					continue // it is for the smallest cards
				}
				together := func(batch int) *plan {
					p := newPlan(s, resident, roots, vectors, batch, 1)
					p.job, p.slotBytes, p.sums = partitions, slot, sums
					if p.weigh(blocks, on) != nil {
						return nil
					}
					return p
				}
				for batch := s.mostTogether(partitions, resident, on.hostBytes); batch > 0; batch /= 2 {
					p := together(evenly(partitions, batch))
					if whole := together(batch); p == nil || whole != nil && whole.seconds < p.seconds {
						p = whole
					}
					if p == nil {
						continue
					}
					fit = append(fit, p)
					if p.computes {
						break // less together sends more, and wins nothing but scratch
					}
				}
			}
		}
	}
	slices.SortStableFunc(fit, func(a, b *plan) int { return cmp.Compare(a.seconds, b.seconds) })
	var best *plan
	for tried, i := 0, 0; i < len(fit) && tried < 3; i++ {
		p := fit[i]
		if p.lay(blocks, on) != nil {
			continue
		}
		p.sums = nil
		tried++
		if best == nil || p.seconds < best.seconds {
			best = p
		}
	}
	return best
}

// evenly is how many partitions batches have, of at most so many, that are as few as can be and of nearly one size.
func evenly(partitions, most int) int {
	batches := max(1, (partitions+most-1)/most)
	return max(1, (partitions+batches-1)/batches)
}

// mostTogether is how many partitions share points that come up: vectors that take memory of their own are not many, and witnesses wait in
// what host memory is left beside that which is pinned.
func (s *shape) mostTogether(partitions int, resident [groth16.BlockCount]bool, hostBytes int64) int {
	if resident[groth16.BlockL] || s.rows > 0 {
		return 1
	}
	waiting := max(hostBytes/4, 1<<30) / (elementBytes*int64(s.scalars) + bitmapBytes(s.aux) + 1)
	return max(1, min(partitions, batchLimit, int(waiting)))
}

// refuse says what a partition takes at least: vectors, what is its own, and its tables.
func (s *shape) refuse(on card) error {
	least := func(vectors int) int64 {
		m := on.made
		p := newPlan(s, [groth16.BlockCount]bool{m, m, m, m, m}, compactRoots, vectors, 1, 1)
		if !m {
			p.slots, p.slotBytes = slotCount, leastSlot
		}
		p.layOwn(on.unit)
		p.layVectors()
		return on.held + p.pointBytes(on.unit) + p.each() + p.roots.bytes(s.log) + s.resident + p.slotsBytes() + p.work.bytes
	}
	two, one := least(2), least(1)
	want := fmt.Sprintf("more than %d bytes (%s)", two, host.FormatBytes(two))
	if one < two {
		pinned := ntt.HostedBytes(s.log)
		less := fmt.Sprintf("more than %d bytes (%s) and %s of host memory", one, host.FormatBytes(one), host.FormatBytes(pinned))
		if on.hostBytes >= pinned {
			want = less
		} else {
			want += ", or " + less
		}
	}
	got := fmt.Sprintf("%d bytes (%s)", on.limit, host.FormatBytes(on.limit))
	if one < two {
		got += fmt.Sprintf(" and %s of host memory", host.FormatBytes(on.hostBytes))
	}
	return status.New(status.NoMemory, "cuda.Plan", s.name+": device memory", want, got)
}

const (
	batchLimit = 10
	slotCount  = 3
	leastSlot  = 1 << 20
	mostBounce = 32 << 20
)

// sumMemo remembers sums by their shape and memory.
type sumMemo map[sumKey]sumOf

type sumOf struct {
	plan msm.Plan
	err  error
}

// planSum is msm.PlanFor, asked once for each way.
func (p *plan) planSum(s msm.Shape, on msm.Card, limit int64) (msm.Plan, error) {
	key := sumKey{s, limit}
	known, ok := p.sums[key]
	if !ok {
		known.plan, known.err = msm.PlanFor(s, on, limit)
		if p.sums != nil {
			p.sums[key] = known
		}
	}
	return known.plan, known.err
}

// bounceBytes is a place behind the slots, where points that go to pinned host memory are decoded.
func (p *plan) bounceBytes() int64 { return min(p.slotBytes, mostBounce) }

// slotsBytes is what slots take.
func (p *plan) slotsBytes() int64 { return int64(p.slots)*p.slotBytes + p.bounceBytes() }

func newPlan(s *shape, resident [groth16.BlockCount]bool, roots roots, vectors, batch, ahead int) *plan {
	p := &plan{shape: s, roots: roots, vectors: vectors, batch: max(1, batch), ahead: ahead}
	for b := range p.blocks {
		p.blocks[b].resident = resident[b]
	}
	return p
}

// needs is what a device must hold for a job.
func (p *plan) needs() int64 { return p.shared + p.each()*int64(p.ahead) }

// each is what a batch's own blocks take.
func (p *plan) each() int64 { return p.own.bytes * int64(p.batch) }

// weigh is lay as far as it takes to compare plans: with the sum of H alone.
func (p *plan) weigh(blocks *pointBlocks, on card) error {
	return p.place(blocks, on, groth16.BlockL)
}

// lay places everything in at most the card's memory, for the choices made, and estimates the time a partition. Errors: NoMemory.
func (p *plan) lay(blocks *pointBlocks, on card) error {
	return p.place(blocks, on, groth16.BlockCount)
}

// place is lay for the blocks before end.
func (p *plan) place(blocks *pointBlocks, on card, end groth16.Block) error {
	s := p.shape
	p.layOwn(on.unit)
	p.slots = 0
	p.shared = roundUp(p.roots.bytes(s.log), on.unit) + roundUp(s.resident, on.unit)
	own := float64(elementBytes) * float64(s.scalars) / transferRate // seconds in which a partition's values go up
	up := own                                                        // all that goes up for each
	once := 0.0                                                      // and for all of a batch
	pinned := on.hostBytes
	if p.vectors == 1 {
		pinned -= ntt.HostedBytes(s.log)
	}
	for b := range p.blocks {
		bytes := s.blockBytes(groth16.Block(b))
		if p.blocks[b].resident {
			p.shared += roundUp(bytes, on.unit)
			continue
		}
		seconds := float64(bytes) / fileRate
		if bytes <= pinned {
			pinned -= bytes
			seconds = float64(bytes) / transferRate
		}
		if b == int(groth16.BlockH) {
			up += seconds
		} else {
			once += seconds
		}
		p.slots = slotCount
	}
	if p.slots > 0 {
		p.shared += roundUp(p.slotsBytes(), on.unit)
	}
	room := (on.limit - on.held - p.shared - p.each()*int64(p.ahead)) / on.unit * on.unit
	seconds, err := p.layWork(blocks, on, room, end)
	p.shared += roundUp(p.work.bytes, on.unit)
	if err != nil {
		return err
	}
	// What the device computes beside the sums, and what comes up while it waits for it.
	n, one := float64(s.domain()), 132/float64(on.SMs)
	rowsUp := 3 * elementBytes * float64(s.rows) / transferRate
	switch p.vectors {
	case 0:
		up += rowsUp
		own += rowsUp
		seconds += quotientRate * n * one
	case 1:
		hosted := float64(ntt.HostedBytes(s.log)) / transferRate
		up += hosted
		seconds += hostedRate*n*one + 2*hosted
	default:
		seconds += quotientRate * n * one
		if p.roots == compactRoots {
			seconds += (compactCost - 1) * quotientRate * n * one
		}
	}
	evaluate := rowsRate * n * one
	if p.vectors == 1 || p.vectors == 2 {
		evaluate *= fillCost
		rowsUp *= 2
	}
	seconds += evaluate
	if p.vectors > 0 {
		up += rowsUp
		seconds += rowsUp
	}
	if p.batch == 1 && p.ahead == 1 { // nobody computes meanwhile
		seconds += own
	}
	p.roomy = p.work.bytes < room*9/10 && p.ahead > 1
	p.computes = seconds >= up+once/float64(p.batch)
	p.seconds = p.average(seconds, up, once)
	return nil
}

// average is the time a partition takes of its job, whose last batch may have fewer than the others: of what each computes and sends up, and what a batch
// sends once.
func (p *plan) average(seconds, up, once float64) float64 {
	batch := func(n int) float64 { return max(float64(n)*seconds, float64(n)*up+once) }
	if p.job <= p.batch {
		return batch(p.batch) / float64(p.batch)
	}
	all := float64(p.job/p.batch) * batch(p.batch)
	if rest := p.job % p.batch; rest > 0 {
		all += batch(rest)
	}
	return all / float64(p.job)
}

// layOwn places what a partition has of its own.
func (p *plan) layOwn(unit int64) {
	s, o := p.shape, &p.own
	var c cut
	if s.rows > 0 {
		o.densities.place(&c, s.inputs, s.aux)
	}
	o.bits = c.take(bitmapBytes(s.aux))
	o.scalars = c.take(elementBytes * int64(s.scalars))
	if p.vectors == 0 {
		for i := range o.rows {
			o.rows[i] = c.take(s.vector())
		}
	}
	o.bytes = roundUp(c.at, unit)
}

// layVectors places what is in the workspace beside the sums' scratch.
func (p *plan) layVectors() {
	s, w := p.shape, &p.work
	*w = workPlaces{}
	var c cut
	w.status = w.take(&c, "status", rows.StatusBytes, momentCheck, momentCheck)
	w.sumAt = [2]int64{c.at, c.at}
	if p.vectors == 0 {
		return
	}
	// Where rows do not lie there at once they are checked before, and filled one vector after the other.
	first := [...]moment{1: momentC, 2: momentC, 3: momentCheck}[p.vectors]
	w.b = w.take(&c, "b", s.vector(), first, momentH)
	w.sumAt[0] = c.at
	if p.vectors > 1 {
		w.a = w.take(&c, "a", s.vector(), first, momentB)
	}
	if p.vectors > 2 {
		w.c = w.take(&c, "c", s.vector(), first, momentB)
	}
	if s.rows > 0 {
		last := momentB
		if p.vectors > 2 {
			last = momentCheck
		}
		for i := range w.given {
			w.given[i] = w.take(&c, "rows on their way", elementBytes*int64(min(takeRows, s.domain())), momentCheck, last)
		}
	}
	if p.vectors == 1 {
		w.hosted = w.take(&c, "scratch of the quotient", ntt.HostedScratchBytes(s.log), momentA, momentB)
	}
}

// layWork places the workspace in at most room bytes, and estimates the time of the sums, for the blocks before end.
func (p *plan) layWork(blocks *pointBlocks, on card, room int64, end groth16.Block) (seconds float64, err error) {
	s, w := p.shape, &p.work
	p.layVectors()
	if w.bytes > room {
		return 0, status.New(status.NoMemory, "cuda.Plan", s.name, fmt.Sprintf("%d bytes for the workspace", w.bytes), fmt.Sprint(room))
	}
	for b := range end {
		block, at := &p.blocks[b], w.sumAt[min(1, b)]
		shape := s.sum(b)
		if !block.resident {
			if blocks == nil || blocks[b] == nil {
				return 0, status.New(status.NoMemory, "cuda.Plan", s.name, "points that stay on the device", "too little memory for them")
			}
			if block.pieces, err = blocks[b].Pieces(p.pieceLimit(b)); err != nil {
				return 0, err
			}
			shape = msm.ShapeOf(curve(b), block.pieces)
			if p.batch == 1 || b == groth16.BlockH {
				shape.Pieces = len(block.pieces)
			}
		}
		if block.sum, err = p.planSum(shape, on.Card, room-at); err != nil {
			return 0, err
		}
		when := [...]moment{momentH, momentOthers}[min(1, b)]
		w.keep("scratch of "+blockNames[b], at, block.sum.Bytes, when, when)
		sum := block.sum
		if known := s.expected(shape); known != shape {
			if sum, err = p.planSum(known, on.Card, sum.Bytes); err != nil {
				return 0, err
			}
		}
		if block.resident {
			fields, ones := s.expect(s.fields[b], s.ones[b])
			seconds += sum.Seconds(fields, ones/2)
		}
		for _, piece := range block.pieces {
			fields, ones := s.expect(piece.Scalars, piece.Ones)
			seconds += sum.Seconds(fields, ones/2)
		}
	}
	return seconds, nil
}

// pieceLimit is how many points of a block come up at once.
func (p *plan) pieceLimit(b groth16.Block) int {
	return int(max(p.slotBytes/curve(b).PointBytes(), msm.LeastPiece))
}

// sum is the shape of a whole block's multiplication.
func (s *shape) sum(b groth16.Block) msm.Shape {
	m := msm.Shape{Curve: curve(b), Points: s.points[b], Scalars: s.fields[b], Ones: s.ones[b]}
	if b != groth16.BlockH {
		m.Variables = max(s.inputs, s.aux)
	}
	return m
}

// pointBytes is what resident points take.
func (p *plan) pointBytes(unit int64) (bytes int64) {
	for b := range p.blocks {
		if p.blocks[b].resident {
			bytes += roundUp(p.shape.blockBytes(groth16.Block(b)), unit)
		}
	}
	return bytes
}

// streams says whether points come up while they are used.
func (p *plan) streams() bool { return p.slots > 0 }

// rereads says whether the rows of an assignment come up again to make h of them, after they were checked.
func (p *plan) rereads() bool { return p.shape.rows > 0 && (p.vectors == 1 || p.vectors == 2) }

// pins says whether batches take pinned host memory, for points or vectors.
func (p *plan) pins() bool { return p.streams() || p.vectors == 1 }

// cardOf is what plans depend on of a device.
func cardOf(i driver.Info) msm.Card { return msm.Card{SMs: i.SMCount, SharedBytes: i.SharedBytes} }

// String is the plan for people.
func (p *plan) String() string {
	var resident []string
	for b := range p.blocks {
		if p.blocks[b].resident {
			resident = append(resident, blockNames[b])
		}
	}
	return fmt.Sprintf("%s: %s in all, points of %v stay, %d slots of %s, batches of %d, %d at once, %d vectors, %s roots, %s for h's sum, about %.2f s a partition",
		p.shape.name, host.FormatBytes(p.needs()), resident, p.slots, host.FormatBytes(p.slotBytes), p.batch, p.ahead, p.vectors,
		p.roots, host.FormatBytes(p.blocks[groth16.BlockH].sum.Bytes), p.seconds)
}
