package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// sized is a circuit of some size: counts of tests/vectors/shapes or of its kind, with bitmaps of the same shares.
type sized struct {
	name        string
	log         int
	inputs, aux int
	a, b        int // aux with points
	fields      int // aux that are field elements
	rows        int
}

var (
	porep2k  = sized{"porep-2k", 22, 40, 2685673, 2674908, 685521, 80000, 2687921}
	porep512 = sized{"porep-512m", 23, 40, 4420837, 4385040, 1174173, 150000, 4423433}
	porep32  = sized{"porep-32g", 27, 328, 130169893, 129753292, 33112281, 1699102, 130278541}
	porep64  = sized{"porep-64g", 27, 328, 131076643, 130637542, 33386943, 1820000, 131185849}
	// Poseidon alone: nearly all are field elements.
	window32 = sized{"window-post-32g", 27, 2350, 125400000, 125400000, 63000000, 124100000, 125600000}
)

// some is a bitmap of count ones among n, in every word as many as in the next.
func some(n, count int) circuit.Bits {
	words := make([]uint64, circuit.BitWords(n))
	for w := range words {
		from, to := 64*w, min(64*w+64, n)
		ones := to*count/n - from*count/n
		words[w] = 1<<ones - 1
	}
	return circuit.Bits{Words: words, Len: n}
}

// program is the shape of a partition of a program, and vectors that of one whose values are made elsewhere.
func (c *sized) program(t testing.TB) (*shape, *pointBlocks) { return c.shape(t, true) }
func (c *sized) vectors(t testing.TB) (*shape, *pointBlocks) { return c.shape(t, false) }

func (c *sized) shape(t testing.TB, known bool) (*shape, *pointBlocks) {
	t.Helper()
	d := &circuit.Density{AAux: some(c.aux, c.a), BAux: some(c.aux, c.b), BInput: some(c.inputs, 1)}
	aux := msm.Known{Count: c.aux, Unknown: !known}
	s := &shape{name: c.name, log: c.log, inputs: c.inputs, aux: c.aux, scalars: c.inputs + c.aux, rows: c.rows}
	s.share = c.fields * shareUnit / c.aux
	if known {
		aux.Kind = some(c.aux, c.fields)
		s.resident, s.scalars, s.rows = 100<<20, c.inputs+c.fields, 0
	}
	var blocks pointBlocks
	for b := range groth16.BlockCount {
		if b == groth16.BlockH {
			blocks[b] = msm.PlainBlock(1<<c.log - 1)
		} else {
			var err error
			if blocks[b], err = msm.NewBlock(knownSections(b, d, msm.Known{Count: c.inputs}, aux)); err != nil {
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
	return s, &blocks
}

// h200 is a card with so much memory for proofs, of a machine with so much pinned memory.
func h200(limit, hostBytes int64) card {
	return card{Card: msm.Card{SMs: 132, SharedBytes: 227 << 10}, limit: limit, unit: 2 << 20, held: 2 << 20, hostBytes: hostBytes}
}

// Goal: what each size of card gets, for partitions of a program and for vectors: docs/operating.md has the table.
func TestPlan_Cards(t *testing.T) {
	program, blocks := porep32.program(t)
	vectors, unknown := porep32.vectors(t)
	for _, c := range []struct {
		gib      float64 // for proofs: a card's, less contexts and headroom
		host     int64
		resident int // blocks of a program's partition
		vectors  int // of its rows
		batch    int
		slowest  float64 // seconds a partition; 0: refused
		given    int     // vectors of one that was made elsewhere; -1: refused
	}{
		{136, 100, 5, 3, 1, 0.76, 0},
		{77, 100, 5, 3, 1, 0.8, 3},
		{45, 100, 1, 3, 10, 0.85, 3},
		{22, 100, 0, 3, 10, 0.9, 3},
		{15, 100, 0, 2, 10, 0.95, 2},
		{11, 100, 0, 2, 10, 1.2, 1},
		{7.3, 100, 0, 1, 10, 1.9, -1},
		{7.3, 6, 0, 0, 0, 0, -1},
		{4, 100, 0, 0, 0, 0, -1},
	} {
		on := h200(int64(c.gib*(1<<30)), c.host<<30)
		p, err := planFor(program, blocks, 10, on)
		if c.slowest == 0 {
			if status.KindOf(err) != status.NoMemory {
				t.Errorf("%g GiB: want a refusal, got %v, %v", c.gib, p, err)
			}
		} else if err != nil {
			t.Errorf("%g GiB: %v", c.gib, err)
		} else {
			t.Logf("%g GiB: %s", c.gib, p)
			honest(t, p, on.limit)
			count := 0
			for b := range p.blocks {
				if p.blocks[b].resident {
					count++
				}
			}
			if count != c.resident || p.vectors != c.vectors || p.batch > c.batch || p.batch < (c.batch+1)/2 || p.seconds > c.slowest {
				t.Errorf("%g GiB: want %+v, got %s", c.gib, c, p)
			}
		}
		p, err = planFor(vectors, unknown, 10, on)
		switch {
		case c.given < 0:
			if status.KindOf(err) != status.NoMemory {
				t.Errorf("%g GiB: want a refusal of vectors, got %v, %v", c.gib, p, err)
			}
		case err != nil || p.vectors != c.given:
			t.Errorf("%g GiB: vectors: %v, %v", c.gib, p, err)
		default:
			t.Logf("%g GiB: vectors: %s", c.gib, p)
			honest(t, p, on.limit)
		}
	}
}

// reads are what each moment of a proof reads of the workspace, besides what it writes itself.
var reads = map[moment][]string{
	momentCheck:  {"status"},
	momentB:      {"b", "scratch of the quotient"},
	momentH:      {"b", "scratch of h"},
	momentOthers: {"scratch of l", "scratch of a", "scratch of b1", "scratch of b2"},
}

// honest checks what every plan keeps to: it is within the limit; what lies in the workspace at one moment lies apart, so that nothing is overwritten
// before its last use; what a moment reads is there; pieces fit their slots and make up their blocks.
func honest(t *testing.T, p *plan, limit int64) {
	t.Helper()
	s, w := p.shape, &p.work
	if p.needs()+2<<20 > limit || p.shared < w.bytes || p.batch < 1 || p.ahead < 1 || p.sums != nil {
		t.Errorf("%s: %d bytes of %d", p, p.needs(), limit)
	}
	names := map[string]region{}
	for i, x := range w.regions {
		names[x.name] = x
		if x.at < 0 || x.at%align != 0 || x.bytes < 0 || x.at+x.bytes > w.bytes || x.from > x.to || x.to >= momentCount {
			t.Errorf("%s: %+v of %d bytes", p, x, w.bytes)
		}
		for _, y := range w.regions[:i] {
			if x.from <= y.to && y.from <= x.to && x.at < y.at+y.bytes && y.at < x.at+x.bytes {
				// The blocks' sums come one after the other.
				if x.from == momentOthers && y.from == momentOthers {
					continue
				}
				t.Errorf("%s: %+v lies where %+v does", p, x, y)
			}
		}
	}
	for when, list := range reads {
		for _, name := range list {
			x, ok := names[name]
			there := ok && x.from <= when && when <= x.to
			if name == "b" && p.vectors == 0 || name == "scratch of the quotient" && p.vectors != 1 {
				there = !ok
			}
			if !there {
				t.Errorf("%s: at moment %d: %s is %+v", p, when, name, x)
			}
		}
	}
	vectors := [...][]int64{nil, {w.b}, {w.b, w.a}, {w.b, w.a, w.c}}[p.vectors]
	for i, name := range []string{"b", "a", "c"}[:len(vectors)] {
		if x := names[name]; x.at != vectors[i] || x.bytes != s.vector() || x.to < momentB {
			t.Errorf("%s: %s lies at %d: %+v", p, name, vectors[i], x)
		}
	}
	for b := range groth16.BlockCount {
		block := &p.blocks[b]
		if x := names["scratch of "+blockNames[b]]; x.at != w.sumAt[min(1, b)] || x.bytes != block.sum.Bytes {
			t.Errorf("%s: %v: %+v", p, b, x)
		}
		points := 0
		for _, piece := range block.pieces {
			if piece.From != points {
				t.Errorf("%s: %v: a piece from %d, behind %d", p, b, piece.From, points)
			}
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

// Goal: a plan for any card is honest, or refused with both numbers; and more memory never makes a proof slower by more than what estimates are
// off by. Method: limits from 2 to 200 GiB, circuits of many sizes and kinds, programs and vectors, with and without host memory, cards with many
// multiprocessors and few.
func TestPlan_Limits(t *testing.T) {
	for i, c := range []sized{porep2k, porep512, porep64, window32} {
		for j, known := range []bool{true, false} {
			s, blocks := c.shape(t, known)
			on := h200(2<<30, int64((i+j)%2)*60<<30)
			if i%2 == 1 {
				on.Card = msm.Card{SMs: 28, SharedBytes: 99 << 10}
			}
			before := 0.0
			for ; on.limit < 200<<30; on.limit = on.limit * 8 / 5 {
				p, err := planFor(s, blocks, 1+9*(i%3), on)
				if err != nil {
					text := err.Error()
					if status.KindOf(err) != status.NoMemory || !strings.Contains(text, "want more than ") || !strings.Contains(text, fmt.Sprint(on.limit)) || before > 0 {
						t.Errorf("%s, known %t, %d bytes: %v", c.name, known, on.limit, err)
					}
					continue
				}
				honest(t, p, on.limit)
				if before > 0 && p.seconds > 1.03*before {
					t.Errorf("%s, known %t, %d bytes: %.3f s a partition, %.3f with less memory: %s", c.name, known, on.limit, p.seconds, before, p)
				}
				before = p.seconds
			}
			if before == 0 {
				t.Errorf("%s, known %t: no card is large enough", c.name, known)
			}
		}
	}
}

// Goal: a job's partitions are dealt out evenly where points come up for batches, 11 as 6 and 5, unless another way is estimated to be quicker; those that fill
// batches stay as they are. Method: jobs of 1 to 23 partitions on cards that stream, and the estimate of batches that are filled.
func TestPlan_Evenly(t *testing.T) {
	for _, c := range []struct{ partitions, most, batch int }{{10, 10, 10}, {11, 10, 6}, {20, 10, 10}, {21, 10, 7}, {23, 10, 8}, {7, 5, 4}, {1, 1, 1}, {0, 1, 1}, {3, 1, 1}} {
		if got := evenly(c.partitions, c.most); got != c.batch {
			t.Errorf("%d partitions, at most %d together: want %d, got %d", c.partitions, c.most, c.batch, got)
		}
	}
	s, blocks := porep32.program(t)
	for _, on := range []card{h200(22<<30, 100<<30), h200(11<<30, 100<<30)} {
		for _, partitions := range []int{1, 7, 10, 11, 13, 20, 23} {
			p, err := planFor(s, blocks, partitions, on)
			if err != nil {
				t.Fatal(err)
			}
			honest(t, p, on.limit)
			batches := (partitions + p.batch - 1) / p.batch
			if rest := partitions - (batches-1)*p.batch; p.batch > rest+batches-1 {
				t.Errorf("%d partitions: the last batch has %d: %s", partitions, rest, p)
			}
			filled := newPlan(s, [groth16.BlockCount]bool{}, p.roots, p.vectors, min(partitions, batchLimit), 1)
			filled.job, filled.slotBytes = partitions, p.slotBytes
			if err := filled.lay(blocks, on); err == nil && filled.seconds < p.seconds*pays {
				t.Errorf("%d partitions: %s; better: %s", partitions, p, filled)
			}
			if partitions == 11 {
				t.Logf("%s; filled: %.3f s", p, filled.seconds)
			}
			if partitions%10 == 0 && p.batch != 10 || partitions == 11 && (p.batch != 6 || p.seconds > 0.97*filled.seconds) {
				t.Errorf("%d partitions: %s; filled, %.2f s", partitions, p, filled.seconds)
			}
		}
	}
}

// Goal: vectors made elsewhere are estimated by what their values are, so that no worse plan is picked for taking all of them for field elements, and
// what an H200 was measured at, 0.78 s a partition, is what is estimated. Method: estimates of the plans that either assumption leads to, on cards from all resident to
// none; for values that are all field elements both are the same.
func TestPlan_Share(t *testing.T) {
	s, blocks := porep32.vectors(t)
	all := *s
	all.share = shareUnit
	better, before := 0, 0.0
	for _, gib := range []int64{136, 120, 110, 77, 70, 45, 32, 11} {
		on := h200(gib<<30, 100<<30)
		p, err := planFor(s, blocks, 10, on)
		if err != nil {
			t.Fatal(err)
		}
		q, err := planFor(&all, blocks, 10, on)
		if err != nil {
			t.Fatal(err)
		}
		if q.seconds < p.seconds {
			t.Errorf("%d GiB: field elements take less time than bits: %s; %s", gib, p, q)
		}
		again := newPlan(s, [groth16.BlockCount]bool{}, q.roots, q.vectors, q.batch, q.ahead)
		for b := range q.blocks {
			again.blocks[b].resident = q.blocks[b].resident
		}
		again.slotBytes = q.slotBytes
		if err := again.lay(blocks, on); err != nil {
			t.Fatal(err)
		}
		if p.seconds*pays > again.seconds {
			t.Errorf("%d GiB: %s; better: %s", gib, p, again)
		}
		if p.seconds < 0.8*again.seconds {
			better++
		}
		if p.seconds < before*pays {
			t.Errorf("%d GiB: %s; with more memory %.2f s", gib, p, before)
		}
		before = p.seconds
		if gib == 136 && (p.seconds < 0.69 || p.seconds > 0.87) {
			t.Errorf("%d GiB: want about 0.78 s, got %s", gib, p)
		}
	}
	if better == 0 {
		t.Error("nowhere does it matter: other cards are wanted here")
	}
}

// Goal: some of an assignment's values say how many are field elements, those of the first assignment for all that have its shape. Method: vectors of one
// share after the other, with a period as circuits have them.
func TestShapeOf_Sample(t *testing.T) {
	const n = 1 << 17
	b := &Backend{}
	a := &groth16.Assignment{Inputs: make([]fr.Element, 1), Aux: make([]fr.Element, n), A: make([]fr.Element, n), Density: circuit.Density{
		AAux: some(n, n), BAux: some(n, n/4), BInput: some(1, 1)}}
	for _, every := range []int{0, 1, 2, 32, 100} {
		fields := 0
		for i := range a.Aux {
			a.Aux[i].SetUint64(uint64(i % 2))
			if every > 0 && i%every == 0 {
				a.Aux[i].SetUint64(2)
				fields++
			}
		}
		want, got := float64(fields)/n, float64(sampleShare(a))/shareUnit
		if got < 0.9*want-0.002 || got > 1.1*want+0.002 {
			t.Errorf("one of %d: want %.4f, got %.4f", every, want, got)
		}
		if share := b.shapeOf(a).share; share != 0 {
			t.Errorf("one of %d: a share of %d, and 0 before", every, share)
		}
	}
	a.Aux = a.Aux[:n-1]
	if b.shapeOf(a).share == 0 {
		t.Error("another shape has the same share")
	}
	a.Aux = nil
	if got := sampleShare(a); got != 0 {
		t.Errorf("%d of nothing", got)
	}
}

// Goal: the plan of a 32 GiB PoRep on a card that has room for all of it stays byte for byte what was measured on an H200, whatever is done for
// smaller ones; that of vectors too. Method: where each region lies, and a digest of all places, sums included.
func TestPlan_H200(t *testing.T) {
	program, blocks := porep32.program(t)
	vectors, unknown := porep32.vectors(t)
	for _, c := range []struct {
		shape   *shape
		blocks  *pointBlocks
		vectors int
		needs   int64
		digest  string
	}{
		{program, blocks, 3, 88571117568, "08f247db3695d845"},
		{vectors, unknown, 0, 135874478080, "b380c8e7cfb62db1"},
	} {
		p, err := planFor(c.shape, c.blocks, 10, h200(136<<30, 100<<30))
		if err != nil {
			t.Fatal(err)
		}
		all := sha256.New()
		fmt.Fprintf(all, "%+v %+v", p.own, p.work)
		for b := range p.blocks {
			if !p.blocks[b].resident {
				t.Errorf("%s: points of %s do not stay", p, blockNames[b])
			}
			fmt.Fprintf(all, " %+v", p.blocks[b].sum)
		}
		digest := hex.EncodeToString(all.Sum(nil)[:8])
		if p.batch != 1 || p.ahead != 2 || p.roots != fullRoots || p.vectors != c.vectors || p.streams() || p.needs() != c.needs || digest != c.digest {
			t.Errorf("another plan: %s, %d bytes, digest %s: %+v", p, p.needs(), digest, p.work.regions)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []sized{porep32, window32} {
		for _, known := range []bool{true, false} {
			s, blocks := c.shape(b, known)
			for _, gib := range []int64{136, 77, 45, 22, 11, 7} {
				b.Run(fmt.Sprintf("%s/known=%t/%dGiB", c.name, known, gib), func(b *testing.B) {
					for b.Loop() {
						_, _ = planFor(s, blocks, 10, h200(gib<<30, 100<<30)) // a refusal takes as long
					}
				})
			}
		}
	}
}
