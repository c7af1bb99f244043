package cuda

import (
	"fmt"
	"math/bits"

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

	own  ownPlaces
	work workPlaces

	roots   roots
	vectors int // that rows take in the workspace: three, two, or none where they lie in the partition's own block
	blocks  [groth16.BlockCount]blockPlan
	// slots of slotBytes are what points come up to that are not resident.
	slots     int
	slotBytes int64

	shared  int64 // mapped bytes of all that batches share: points, tables, slots, workspace
	seconds float64
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
	given  [3]int64
	sumAt  [2]int64 // scratch of the sums: of H, which leaves h alone, and of the others
	bytes  int64
}

// takeRows is how many rows of an assignment go up at once where its rows do not fit the partition's own block.
const takeRows = 1 << 20

// points is how a block is cut: blocks that are known are, others are summed whole.
type pointBlocks [groth16.BlockCount]*msm.Block

// card is what plans depend on of a device.
type card struct {
	msm.Card
	limit, unit int64 // of its memory: what may be taken, and what is mapped at once
}

// Rates that plans are compared by.
const (
	transferRate = 25e9   // bytes a second, of a PCIe 4 card
	quotientRate = 1.4e-9 // seconds an element, on an H200, with the full table
	compactCost  = 1.15   // times as long with the compact one
)

// planFor finds the quickest way that fits: with what is known of the blocks, where points may come up in pieces. A pure function.
// Errors: NoMemory, with both numbers.
func planFor(s *shape, blocks *pointBlocks, partitions int, on card) (*plan, error) {
	var best *plan
	all := [groth16.BlockCount]bool{true, true, true, true, true}
	for _, ownRows := range []bool{true, false} {
		if ownRows && s.rows == 0 {
			continue
		}
		vectors := 3
		if ownRows {
			vectors = 0
		}
		for _, ahead := range []int{2, 1} {
			if p := newPlan(s, all, fullRoots, vectors, 1, ahead); p.lay(blocks, on) == nil {
				return p, nil
			}
		}
	}
	// Something has to give way: roots, one vector, points. H's sum, which takes most time and scratch, decides between them.
	slot := int64(512 << 20)
	for slot > leastSlot && slot > on.limit/32 {
		slot /= 2
	}
	for ; slot >= leastSlot && best == nil; slot /= 4 {
		for _, resident := range [][groth16.BlockCount]bool{all, {true}, {}} {
			for _, vectors := range []int{3, 2} {
				for _, roots := range []roots{fullRoots, compactRoots} {
					batch := 1 // what vectors take of their own is not for many
					if !resident[groth16.BlockL] && s.rows == 0 {
						batch = min(partitions, batchLimit) // points that all share come up once for all
					}
					p := newPlan(s, resident, roots, vectors, batch, 1)
					p.slotBytes = slot
					if p.weigh(blocks, on) == nil && (best == nil || p.seconds < best.seconds) {
						best = p
					}
				}
			}
		}
		if best != nil {
			if best.lay(blocks, on) != nil {
				best = nil
			}
		}
	}
	if best != nil {
		return best, nil
	}
	least := s.least(on.unit)
	return nil, &status.Error{
		Kind: status.NoMemory, Op: "cuda.Plan", Where: s.name + ": device memory",
		Want: fmt.Sprintf("more than %d bytes (%s)", least, host.FormatBytes(least)),
		Got:  fmt.Sprintf("%d bytes (%s)", on.limit, host.FormatBytes(on.limit)),
	}
}

// least bounds from below what a partition takes: two vectors, what is its own, and its tables.
func (s *shape) least(unit int64) int64 {
	p := newPlan(s, [groth16.BlockCount]bool{}, compactRoots, 2, 1, 1)
	p.layOwn(unit)
	return p.needs() + p.roots.bytes(s.log) + s.resident + 2*s.vector() + slotCount*leastSlot
}

const (
	batchLimit = 10
	slotCount  = 3
	leastSlot  = 1 << 20
)

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
	streamed, once := 0.0, 0.0 // bytes a partition, and a batch
	for b := range p.blocks {
		bytes := s.blockBytes(groth16.Block(b))
		switch {
		case p.blocks[b].resident:
			p.shared += roundUp(bytes, on.unit)
		case b == int(groth16.BlockH):
			streamed += float64(bytes)
		default:
			once += float64(bytes)
		}
	}
	if streamed+once > 0 {
		p.slots = slotCount
		p.shared += roundUp(int64(p.slots)*p.slotBytes, on.unit)
	}
	room := (on.limit - p.shared - p.each()*int64(p.ahead)) / on.unit * on.unit
	seconds, err := p.layWork(blocks, on, room, end)
	if err != nil {
		p.shared += roundUp(p.work.bytes, on.unit)
		return err
	}
	p.shared += roundUp(p.work.bytes, on.unit)
	seconds += quotientRate * float64(s.domain()) * 132 / float64(on.SMs)
	if p.roots == compactRoots {
		seconds += (compactCost - 1) * quotientRate * float64(s.domain()) * 132 / float64(on.SMs)
	}
	p.seconds = max(seconds, (streamed+once/float64(p.batch))/transferRate)
	return nil
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

// layWork places the workspace in at most room bytes, and estimates the time of the sums, for the blocks before end.
func (p *plan) layWork(blocks *pointBlocks, on card, room int64, end groth16.Block) (seconds float64, err error) {
	s, w := p.shape, &p.work
	var c cut
	w.status = c.take(rows.StatusBytes)
	w.sumAt = [2]int64{c.at, c.at}
	if p.vectors > 0 {
		w.b = c.take(s.vector())
		w.sumAt[0] = c.at
		w.a = c.take(s.vector())
		if p.vectors > 2 {
			w.c = c.take(s.vector())
		}
		if s.rows > 0 {
			for i := range w.given {
				w.given[i] = c.take(elementBytes * int64(min(takeRows, s.domain())))
			}
		}
	}
	w.bytes = c.at
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
			if block.pieces, err = blocks[b].Pieces(int(max(p.slotBytes/curve(b).PointBytes(), msm.LeastPiece))); err != nil {
				return 0, err
			}
			shape = msm.ShapeOf(curve(b), block.pieces)
			if p.batch == 1 || b == groth16.BlockH {
				shape.Pieces = len(block.pieces)
			}
		}
		if block.sum, err = msm.PlanFor(shape, on.Card, room-at); err != nil {
			w.bytes = max(w.bytes, at)
			return 0, err
		}
		w.bytes = max(w.bytes, at+block.sum.Bytes)
		if block.resident {
			seconds += block.sum.Seconds(s.fields[b], s.ones[b]/2)
		}
		for _, piece := range block.pieces {
			seconds += block.sum.Seconds(piece.Scalars, piece.Ones/2)
		}
	}
	return seconds, nil
}

// sum is the shape of a whole block's multiplication.
func (s *shape) sum(b groth16.Block) msm.Shape {
	m := msm.Shape{Curve: curve(b), Points: s.points[b], Scalars: s.fields[b], Ones: s.ones[b]}
	if b != groth16.BlockH {
		m.Variables = max(s.inputs, s.aux)
	}
	return m
}

// streams says whether points come up while they are used.
func (p *plan) streams() bool { return p.slots > 0 }

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
	return fmt.Sprintf("%s: %s in all, points of %v stay, %d slots of %s, batches of %d, %d at once, %d vectors, about %.2f s a partition",
		p.shape.name, host.FormatBytes(p.needs()), resident, p.slots, host.FormatBytes(p.slotBytes), p.batch, p.ahead, p.vectors, p.seconds)
}
