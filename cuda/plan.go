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

// shape is what memory and point counts follow from.
type shape struct {
	name        string
	log         int // of the domain
	inputs, aux int
	scalars     int                     // inputs, and aux that lie on the device as field elements
	resident    int64                   // bytes of a program's tables; 0 for an assignment
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
		scalars: len(a.Inputs) + len(a.Aux), points: a.Points(),
	}
	// Which aux are bits is not known before they have been looked at.
	s.fields = s.points
	s.ones = s.points
	s.ones[groth16.BlockH] = 0
	return s
}

// takeRows is how many rows of an assignment go up at once.
const takeRows = 1 << 20

// curve is the group of a block's points.
func curve(b groth16.Block) msm.Curve {
	if b == groth16.BlockB2 {
		return msm.G2
	}
	return msm.G1
}

// sum is the shape of a block's multiplication.
func (s *shape) sum(b groth16.Block) msm.Shape {
	m := msm.Shape{Curve: curve(b), Points: s.points[b], Scalars: s.fields[b], Ones: s.ones[b]}
	if b != groth16.BlockH {
		m.Variables = max(s.inputs, s.aux)
	}
	return m
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

// layout is where everything of a partition lies in its block of device memory.
type layout struct {
	densities          // of an assignment; a program's are resident
	failed    int64    // status word of the rows
	bits      int64    // of aux: ones
	scalars   int64    // inputs, then aux that are field elements
	b, a, c   int64    // rows; h takes the place of b
	given     [3]int64 // an assignment's a, b and c in their own order, takeRows at a time
	sumAt     [2]int64 // scratch of the sums: of H, which leaves h alone, and of the others
	sums      [groth16.BlockCount]msm.Plan
	bytes     int64
	needs     int64 // all that the card must hold for a partition, mapped
}

// blockBytes is what a block of points takes.
func (s *shape) blockBytes(b groth16.Block) int64 {
	return max(1, int64(s.points[b])*curve(b).PointBytes())
}

// plan lays a partition out for a card of so much memory, of which unit is what is mapped at once. The card must hold all
// blocks of points where that fits, else the largest one, the blocks then taking turns. A pure function. Errors: NoMemory,
// with both numbers.
func (s *shape) plan(card msm.Card, limit, unit int64) (*layout, error) {
	const op = "cuda.Plan"
	var all, largest int64
	for b := range groth16.BlockCount {
		bytes := roundUp(s.blockBytes(b), unit)
		all += bytes
		largest = max(largest, bytes)
	}
	beside := roundUp(ntt.TableBytes(s.log), unit) + roundUp(s.resident, unit)
	var cause error
	for _, points := range []int64{all, largest} {
		room := limit - beside - points
		if room <= 0 {
			continue
		}
		l, err := s.lay(card, room/unit*unit)
		if err == nil {
			l.needs = beside + points + roundUp(l.bytes, unit)
			return l, nil
		}
		cause = err
	}
	smallest := beside + largest + 3*s.vector()
	return nil, &status.Error{
		Kind: status.NoMemory, Op: op, Where: s.name + ": device memory",
		Want: fmt.Sprintf("more than %d bytes (%s)", smallest, host.FormatBytes(smallest)),
		Got:  fmt.Sprintf("%d bytes (%s)", limit, host.FormatBytes(limit)), Cause: cause,
	}
}

// lay places a partition's parts in at most room bytes.
func (s *shape) lay(card msm.Card, room int64) (*layout, error) {
	var l layout
	var c cut
	if s.resident == 0 {
		l.densities.place(&c, s.inputs, s.aux)
	}
	l.failed = c.take(rows.StatusBytes)
	l.bits = c.take(bitmapBytes(s.aux))
	l.scalars = c.take(elementBytes * int64(s.scalars))
	l.sumAt[1] = c.at
	l.b = c.take(s.vector())
	l.sumAt[0] = c.at
	l.a = c.take(s.vector())
	l.c = c.take(s.vector())
	if s.resident == 0 {
		for i := range l.given {
			l.given[i] = c.take(elementBytes * int64(min(takeRows, s.domain())))
		}
	}
	l.bytes = c.at
	if l.bytes > room {
		return nil, status.New(status.NoMemory, "cuda.Plan", s.name, fmt.Sprintf("%d bytes for rows and witness", l.bytes), fmt.Sprint(room))
	}
	for b := range groth16.BlockCount {
		at := l.sumAt[min(1, b)]
		plan, err := msm.PlanFor(s.sum(b), card, room-at)
		if err != nil {
			return nil, err
		}
		l.sums[b] = plan
		l.bytes = max(l.bytes, at+plan.Bytes)
	}
	return &l, nil
}

// cardOf is what plans depend on of a device.
func cardOf(i driver.Info) msm.Card { return msm.Card{SMs: i.SMCount, SharedBytes: i.SharedBytes} }
