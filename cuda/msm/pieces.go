package msm

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/status"
)

// Known is what is known of a section before it has values. Bitmaps without words are those that Section has none of, and
// bits behind Count may be anything.
type Known struct {
	Count   int          // variables
	Density circuit.Bits // one: the variable has a point; no words: all have
	Kind    circuit.Bits // one: the variable is a field element; no words: all are, or nobody knows yet
	Unknown bool         // nobody knows yet which are field elements; their scalars lie by variable
}

// Block is a block of points that can be cut into pieces: the host's view of an Input. It is made once for a program, is
// then only read, and shares the bitmaps with the caller, who must leave them as they are.
type Block struct {
	points   int
	plain    bool
	sections []countedSection
}

// countedSection is a section and what of it lies before every countRun-th word: 50 bytes for 8192 variables.
type countedSection struct {
	Known
	before []counts
	all    counts
}

// counts are of the variables before some word.
type counts struct{ points, numbers, fields int } // with points; field elements; both

// countRun is how many words share an entry, which is how many a look-up may have to count.
const countRun = 128

// LeastPiece is the smallest bound on a piece's points, a word of the bitmaps.
const LeastPiece = 64

// PlainBlock is a block without sections: scalar i belongs to point i.
func PlainBlock(points int) *Block { return &Block{points: points, plain: true} }

// NewBlock is a block whose points belong to the variables of sections, in order. It counts the bitmaps: some 10 ms for 130 M
// variables. Errors: Internal for a bitmap that is shorter than its section.
func NewBlock(sections []Known) (*Block, error) {
	const op = "msm.NewBlock"
	b := &Block{}
	for i, k := range sections {
		words := circuit.BitWords(k.Count)
		for _, m := range []circuit.Bits{k.Density, k.Kind} {
			if k.Count < 0 || m.Words != nil && len(m.Words) < words {
				return nil, status.New(status.Internal, op, fmt.Sprintf("section %d", i), fmt.Sprintf("bitmaps of %d bits", k.Count), fmt.Sprintf("%d words", len(m.Words)))
			}
		}
		s := countedSection{Known: k, before: make([]counts, words/countRun+1)}
		for run := range s.before {
			s.before[run] = s.all
			s.all.add(&k, run*countRun, min(run*countRun+countRun, words))
		}
		b.points += s.all.points
		b.sections = append(b.sections, s)
	}
	return b, nil
}

// Points of the whole block.
func (b *Block) Points() int { return b.points }

// word is what Density, and Kind, have of word w; all ones where there is no bitmap.
func (k *Known) word(w int) (density, kind uint64) {
	valid := ^uint64(0)
	if rest := k.Count - w*64; rest < 64 {
		valid = 1<<rest - 1
	}
	density, kind = valid, valid
	if k.Density.Words != nil {
		density &= k.Density.Words[w]
	}
	if k.Kind.Words != nil {
		kind &= k.Kind.Words[w]
	}
	return density, kind
}

// add counts words [from, to).
func (c *counts) add(k *Known, from, to int) {
	if k.Density.Words == nil && k.Kind.Words == nil {
		n := max(0, min(to*64, k.Count)-from*64)
		c.points, c.numbers, c.fields = c.points+n, c.numbers+n, c.fields+n
		return
	}
	for w := from; w < to; w++ {
		density, kind := k.word(w)
		c.points += bits.OnesCount64(density)
		c.numbers += bits.OnesCount64(kind)
		c.fields += bits.OnesCount64(density & kind)
	}
}

// at counts what lies before word w.
func (s *countedSection) at(w int) counts {
	c := s.before[w/countRun]
	c.add(&s.Known, w/countRun*countRun, w)
	return c
}

// reach is the last word up to which, from word `from` on, there are at most so many points.
func (s *countedSection) reach(from, most int) int {
	words, limit := circuit.BitWords(s.Count), s.at(from).points+most
	if s.all.points <= limit {
		return words
	}
	// The first entry with more than limit lies behind the place; the words before it decide.
	run := sort.Search(len(s.before), func(i int) bool { return s.before[i].points > limit }) - 1
	w := max(from, run*countRun)
	for c := s.at(w); w < words; w++ {
		c.add(&s.Known, w, w+1)
		if c.points > limit {
			break
		}
	}
	return w
}

// Piece is points [From, From+Points) of a block. Its sum is one of its own: the block's is the sum of the pieces'.
type Piece struct {
	From, Points int
	Scalars      int // bound on those other than zero and one
	Ones         int // bound on points with a one
	Variables    int // of the largest section; 0 in a block without sections
	ranges       []pieceRange
	sections     []int // variables of the block's sections
}

// pieceRange is variables [first, first+count) of a section, first being a multiple of 64.
type pieceRange struct{ section, first, count, points, numbers int }

// Pieces cuts the block into pieces of at most so many points, as few as there can be and of nearly one size. Cuts lie at
// whole words of the bitmaps. A block without points has no pieces. It takes microseconds, so sizes can be tried. Errors:
// Internal for less than LeastPiece.
func (b *Block) Pieces(most int) ([]Piece, error) {
	if most < LeastPiece {
		return nil, status.New(status.Internal, "msm.Pieces", "points of a piece", fmt.Sprintf("at least %d, a word of the bitmaps", LeastPiece), fmt.Sprint(most))
	}
	if b.plain {
		count := (b.points + most - 1) / most
		all := make([]Piece, count)
		for i := range all {
			from, to := i*b.points/count, (i+1)*b.points/count
			all[i] = Piece{From: from, Points: to - from, Scalars: to - from}
		}
		return all, nil
	}
	all := b.cut(most)
	if len(all) < 2 {
		return all, nil
	}
	// Every piece but the last has more than the bound less a word, so this bound cuts into no more pieces.
	if even := (b.points+len(all)-1)/len(all) + 63; even < most {
		all = b.cut(even)
	}
	return all, nil
}

// cut fills each piece up to the bound before it begins another.
func (b *Block) cut(most int) (all []Piece) {
	sections := make([]int, len(b.sections))
	for i := range b.sections {
		sections[i] = b.sections[i].Count
	}
	p := Piece{sections: sections}
	for i := range b.sections {
		s := &b.sections[i]
		words := circuit.BitWords(s.Count)
		for from := 0; from < words; {
			to := s.reach(from, most-p.Points)
			p.add(s, i, from, to)
			if from = to; from < words {
				all = append(all, p)
				p = Piece{From: p.From + p.Points, sections: sections}
			}
		}
	}
	if p.Points > 0 {
		all = append(all, p)
	}
	return all
}

// add adds the words [from, to) of section i, unless they have no points.
func (p *Piece) add(s *countedSection, i, from, to int) {
	a, b := s.at(from), s.at(to)
	points, fields := b.points-a.points, b.fields-a.fields
	if points == 0 {
		return
	}
	r := pieceRange{section: i, first: from * 64, points: points, numbers: a.numbers}
	r.count = min(to*64, s.Count) - r.first
	p.ranges = append(p.ranges, r)
	p.Points += points
	p.Variables = max(p.Variables, r.count)
	if s.Unknown {
		p.Scalars += points
		p.Ones += points
	} else {
		p.Scalars += fields
		p.Ones += points - fields
	}
}

// Input is the sum over the piece: the part of the whole block's Input that belongs to points [From, From+Points), which lie at
// points. Bitmaps and scalars stay where they are; nothing else of the whole's points is read. The whole must have the
// sections that the block was made with; that it has is checked as an invariant.
func (p *Piece) Input(whole Input, points driver.Ptr) Input {
	const op = "msm.Piece"
	in := Input{Points: points}
	status.Check(len(whole.Sections) == len(p.sections), op, "the block's sections")
	if len(p.sections) == 0 {
		status.Check(whole.Count >= p.From+p.Points, op, "a scalar for each point")
		in.Scalars, in.Count = whole.Scalars.Add(32*int64(p.From)), p.Points
		return in
	}
	bitmap := func(at driver.Ptr, first int) driver.Ptr {
		if at == 0 {
			return 0
		}
		return at.Add(int64(first / 8))
	}
	for _, r := range p.ranges {
		s := whole.Sections[r.section]
		status.Check(s.Count == p.sections[r.section], op, "the block's variables")
		s.Count, s.Points = r.count, r.points
		s.Density, s.Kind, s.Bits = bitmap(s.Density, r.first), bitmap(s.Kind, r.first), bitmap(s.Bits, r.first)
		if s.Scalars != 0 {
			place := r.numbers
			if s.Full {
				place = r.first
			}
			s.Scalars = s.Scalars.Add(32 * int64(place))
		}
		in.Sections = append(in.Sections, s)
	}
	return in
}

// ShapeOf is what a plan must be for to serve each of the pieces.
func ShapeOf(curve Curve, pieces []Piece) Shape {
	s := Shape{Curve: curve}
	for i := range pieces {
		p := &pieces[i]
		s.Points, s.Scalars, s.Ones = max(s.Points, p.Points), max(s.Scalars, p.Scalars), max(s.Ones, p.Ones)
		s.Variables = max(s.Variables, p.Variables)
	}
	return s
}
