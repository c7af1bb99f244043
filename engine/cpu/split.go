package cpu

import (
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
)

// section is a run of variables whose values belong, in order, to the points of a block. Values come in
// one of three forms: a full vector; the compact form of bits and field elements; or a full vector with
// bitmaps that sort it, of which only the field elements are then looked at.
type section struct {
	count   int
	density *circuit.Bits // only variables with a one have a point; nil: all have

	full []fr.Element // the full vector, Montgomery form; nil: the compact form

	bits circuit.Bits // value of a variable that is a bit; 0 where it is a field element; empty for an unsorted vector
	kind circuit.Bits // one: the variable is a field element, in full or the next of nums
	nums []fr.Element
}

// points is the number of points that the section takes.
func (s *section) points() int {
	if s.density == nil {
		return s.count
	}
	return s.density.Count()
}

// source hands out the values of a block's points in order, sorted by kind. It is a cursor, used by one
// goroutine at a time.
type source struct {
	sections []section
	at       int // section
	variable int // next variable of that section
	num      int // field elements of the compact form before it
}

func newSource(sections ...section) *source { return &source{sections: sections} }

func (s *source) points() (n int) {
	for i := range s.sections {
		n += s.sections[i].points()
	}
	return n
}

// values are those of a chunk of points: which have a one, and which have another value than zero and one.
// Offsets are from the start of the chunk, times two (the low bit is the sign, see msm.go).
type values struct {
	ones    []uint32
	offsets []uint32
	scalars []fr.Element // one for each of offsets
}

// fill replaces v by the values of the next n points; v's slices have capacity for n. It stops early at
// the end of the last section and returns the number of points.
func (s *source) fill(v *values, n int) int {
	v.ones, v.offsets, v.scalars = v.ones[:0], v.offsets[:0], v.scalars[:0]
	done := 0
	for done < n && s.at < len(s.sections) {
		done += s.sections[s.at].fill(s, v, done, n-done)
		if s.variable == s.sections[s.at].count {
			s.at, s.variable, s.num = s.at+1, 0, 0
		}
	}
	return done
}

// fill takes up to n points of the section, of which the first has the given offset. It goes word by word
// of the bitmaps.
func (c *section) fill(s *source, v *values, offset, n int) int {
	done := 0
	for done < n && s.variable < c.count {
		word, low := s.variable>>6, s.variable&63
		// The variables of this word from the cursor on, and those of them that have points.
		chosen := ^uint64(0) << low
		if rest := c.count - word<<6; rest < 64 {
			chosen &= 1<<rest - 1
		}
		end := min(c.count, word<<6+64)
		present := chosen
		if c.density != nil {
			present &= c.density.Words[word]
		}
		if k := bits.OnesCount64(present); done+k > n {
			// Cut after the last point that still fits.
			kept := present
			for kept != 0 && done+bits.OnesCount64(kept) > n {
				kept &^= 1 << (63 - bits.LeadingZeros64(kept))
			}
			end = word<<6 + 64 - bits.LeadingZeros64(kept)
			chosen &= 1<<(end&63) - 1 // end is not a multiple of 64: a chosen point lies behind it
			present = kept
		}
		switch at := offset + done; {
		case c.full == nil:
			nums := c.kind.Words[word]
			v.takeOnes(present, c.bits.Words[word]&present&^nums, at)
			for m := nums & chosen; m != 0; m &= m - 1 {
				if bit := m & -m; present&bit != 0 {
					v.take(&c.nums[s.num], at+bits.OnesCount64(present&(bit-1)))
				}
				s.num++
			}
		default:
			rest := present
			if c.kind.Len > 0 {
				v.takeOnes(present, c.bits.Words[word]&present, at)
				rest &= c.kind.Words[word]
			}
			for m := rest; m != 0; m &= m - 1 {
				bit := m & -m
				v.take(&c.full[word<<6+bits.TrailingZeros64(bit)], at+bits.OnesCount64(present&(bit-1)))
			}
		}
		done += bits.OnesCount64(present)
		s.variable = end
	}
	return done
}

func (v *values) takeOnes(present, ones uint64, offset int) {
	for m := ones; m != 0; m &= m - 1 {
		bit := m & -m
		v.ones = append(v.ones, uint32(offset+bits.OnesCount64(present&(bit-1)))<<1)
	}
}

// take sorts one value by kind.
func (v *values) take(x *fr.Element, offset int) {
	switch {
	case x.IsZero():
	case x.IsOne():
		v.ones = append(v.ones, uint32(offset)<<1)
	default:
		v.offsets = append(v.offsets, uint32(offset)<<1)
		v.scalars = append(v.scalars, *x)
	}
}
