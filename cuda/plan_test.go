package cuda

import (
	"strings"
	"testing"

	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// bigShape is a partition of a 32 GiB sector, and its blocks: counts of tests/vectors/shapes, with densities of the same shares.
func bigShape(t testing.TB) (*shape, *pointBlocks) {
	t.Helper()
	const inputs, aux = 46, 130169893
	bitmap := func(share func(w int) uint64) circuit.Bits {
		words := make([]uint64, circuit.BitWords(aux))
		for w := range words {
			words[w] = share(w)
		}
		return circuit.Bits{Words: words, Len: aux}
	}
	d := &circuit.Density{
		AAux:   bitmap(func(int) uint64 { return ^uint64(0) }),
		BAux:   bitmap(func(int) uint64 { return 0x1111111111111111 }),
		BInput: circuit.Bits{Words: []uint64{1}, Len: inputs},
	}
	kinds := bitmap(func(w int) uint64 { return 1 << 7 & (uint64(w%3) << 7) })
	s := &shape{name: "porep-32g", log: 27, inputs: inputs, aux: aux, resident: 100 << 20}
	var blocks pointBlocks
	for b := range groth16.BlockCount {
		if b == groth16.BlockH {
			blocks[b] = msm.PlainBlock(1<<27 - 1)
		} else {
			var err error
			if blocks[b], err = msm.NewBlock(knownSections(b, d, msm.Known{Count: inputs}, msm.Known{Count: aux, Kind: kinds})); err != nil {
				t.Fatal(err)
			}
		}
		pieces, err := blocks[b].Pieces(1 << 28)
		if err != nil {
			t.Fatal(err)
		}
		whole := msm.ShapeOf(curve(b), pieces)
		s.points[b], s.fields[b], s.ones[b] = whole.Points, whole.Scalars, whole.Ones
	}
	s.scalars = s.fields[groth16.BlockL] + inputs
	return s, &blocks
}

// Goal: plans are honest for cards of every size: within the limit, regions apart, as much resident as fits, and a refusal with
// both numbers below that. Both for partitions of a program and for vectors.
func TestPlan_Cards(t *testing.T) {
	program, blocks := bigShape(t)
	vectors := *program
	vectors.name, vectors.resident, vectors.rows, vectors.scalars = "assignment", 0, 130278869, program.inputs+program.aux
	for b := groth16.BlockL; b < groth16.BlockCount; b++ {
		vectors.fields[b], vectors.ones[b] = vectors.points[b], vectors.points[b]
	}
	const unit = 2 << 20
	for _, c := range []struct {
		gib             int64
		resident        int // blocks of a program's partition
		programs, rows  bool
		ownRows, twoAt  bool
		slowest, minute float64
	}{
		{gib: 136, resident: 5, programs: true, rows: true, ownRows: true, slowest: 1},
		{gib: 77, resident: 5, programs: true, rows: true, slowest: 1},
		{gib: 45, resident: 1, programs: true, rows: true, slowest: 1.2},
		{gib: 22, resident: 0, programs: true, rows: true, slowest: 1.5},
		{gib: 15, resident: 0, programs: true, rows: true, slowest: 1.6},
		{gib: 11, resident: 0, programs: true, rows: false, slowest: 2},
		{gib: 4, programs: false, rows: false},
	} {
		limit := c.gib << 30
		for _, s := range []*shape{program, &vectors} {
			fits := c.programs
			if s.rows > 0 {
				fits = c.rows
			}
			p, err := planFor(s, blocks, 10, card{Card: msm.Card{SMs: 132, SharedBytes: 227 << 10}, limit: limit, unit: unit, hostBytes: 8 << 30})
			if err != nil {
				if status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "got ") || fits {
					t.Errorf("%d GiB: %v", c.gib, err)
				}
				continue
			}
			t.Logf("%d GiB: %s", c.gib, p)
			if !fits {
				t.Logf("%d GiB: a plan where none was expected", c.gib)
			}
			honest(t, p, limit)
			if s == program && c.resident > 0 {
				count := 0
				for b := range p.blocks {
					if p.blocks[b].resident {
						count++
					}
				}
				if count < c.resident || p.seconds > c.slowest {
					t.Errorf("%d GiB: %d blocks resident, %.2f s", c.gib, count, p.seconds)
				}
			}
			if s == &vectors && c.ownRows && (p.vectors != 0 || p.ahead != 2) {
				t.Errorf("%d GiB: vectors do not go up ahead", c.gib)
			}
		}
	}
}

// honest checks what every plan keeps to.
func honest(t *testing.T, p *plan, limit int64) {
	t.Helper()
	s, w := p.shape, &p.work
	if p.needs() > limit || p.shared < w.bytes || p.batch < 1 || p.ahead < 1 {
		t.Errorf("%s: %d bytes of %d", p, p.needs(), limit)
	}
	if p.vectors > 0 {
	}
	for b := range groth16.BlockCount {
		block := &p.blocks[b]
		if end := w.sumAt[min(1, b)] + block.sum.Bytes; end > w.bytes {
			t.Errorf("%s: %v ends at %d of %d", p, b, end, w.bytes)
		}
		points := 0
		for _, piece := range block.pieces {
			points += piece.Points
			if int64(piece.Points)*curve(b).PointBytes() > p.slotBytes {
				t.Errorf("%s: %v: a piece of %d points", p, b, piece.Points)
			}
		}
		if block.resident != (points == 0) || !block.resident && points != s.points[b] {
			t.Errorf("%s: %v: %d points in pieces of %d", p, b, points, s.points[b])
		}
	}
}

// Goal: a plan for any card is honest, or refused. Method: limits between nothing and plenty, for large and small shapes.
func TestPlan_Limits(t *testing.T) {
	big, blocks := bigShape(t)
	for _, sms := range []int{20, 170} {
		for limit := int64(5 << 30); limit < 160<<30; limit = limit * 13 / 7 {
			for _, partitions := range []int{1, 10} {
				p, err := planFor(big, blocks, partitions, card{Card: msm.Card{SMs: sms, SharedBytes: 99 << 10}, limit: limit, unit: 2 << 20, hostBytes: 8 << 30})
				if err != nil {
					if status.KindOf(err) != status.NoMemory {
						t.Fatalf("%d bytes: %v", limit, err)
					}
					continue
				}
				honest(t, p, limit)
			}
		}
	}
}
