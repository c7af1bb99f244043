package c1

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// hash takes an array of 32 bytes.
func (r *reader) hash(dst *porep.Hash) *fault {
	r.peek()
	if n := readHash(dst, r.data[r.pos:]); n > 0 {
		r.pos += n
		return nil
	}
	return r.array(len(dst), "bytes", func(i int) *fault {
		v, f := r.uint(255)
		dst[i] = byte(v)
		return f
	})
}

// element takes a hash that must be a canonical element of the BLS12-381 scalar field.
func (r *reader) element(dst *porep.Hash) *fault {
	r.peek()
	at := r.pos
	if f := r.hash(dst); f != nil {
		return f
	}
	if !canonical(dst) {
		return &fault{want: "a canonical field element (< r)", got: hexElement(dst), offset: at}
	}
	return nil
}

// hexElement shows a little-endian element as the number that it is.
func hexElement(h *porep.Hash) string {
	var reversed porep.Hash
	for i, b := range h {
		reversed[31-i] = b
	}
	return fmt.Sprintf("0x%x", reversed[:])
}

// order is r, the order of the BLS12-381 scalar field, in 64-bit limbs, low first.
var order = [4]uint64{0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}

// limbs cuts a little-endian number in 64-bit limbs, low first.
func limbs(h *porep.Hash) (l [4]uint64) {
	for i := range l {
		l[i] = binary.LittleEndian.Uint64(h[8*i:])
	}
	return l
}

// minusOrder is v - r; under says that v < r.
func minusOrder(v [4]uint64) (d [4]uint64, under bool) {
	var borrow uint64
	for i := range v {
		d[i], borrow = bits.Sub64(v[i], order[i], borrow)
	}
	return d, borrow != 0
}

// canonical reports whether h < r.
func canonical(h *porep.Hash) bool {
	if top := binary.LittleEndian.Uint64(h[24:]); top != order[3] {
		return top < order[3]
	}
	_, under := minusOrder(limbs(h))
	return under
}

// addElements is a + b mod r, for canonical a and b.
func addElements(a, b *porep.Hash) (sum porep.Hash) {
	x, y := limbs(a), limbs(b)
	var carry uint64
	for i := range x {
		x[i], carry = bits.Add64(x[i], y[i], carry)
	}
	if reduced, under := minusOrder(x); !under { // 2r < 2^256: no carry out
		x = reduced
	}
	for i, limb := range x {
		binary.LittleEndian.PutUint64(sum[8*i:], limb)
	}
	return sum
}

// readHash takes [n,n,...,n] with 32 numbers from 0 to 255, without whitespace, from the start of s and
// returns its length; 0 where s is anything else, or within a few bytes of the document's end. Then the
// general way decides what it is. Nearly all of a C1 is such arrays, so each number is read by arithmetic
// on a 32-bit word: branches on the number of digits would be guessed wrong every third time.
func readHash(dst *porep.Hash, s []byte) int {
	const longest = 1 + len(dst)*4 // 3 digits and a delimiter each; a load of 4 bytes stays inside
	if len(s) < longest || s[0] != '[' {
		return 0
	}
	s = s[:longest]
	at, bad, delimiter := uint(1), uint32(0), uint32(',')
	for i := range dst {
		if i == len(dst)-1 {
			delimiter = ']'
		}
		word := binary.LittleEndian.Uint32(s[at:])
		digits := word ^ 0x30303030                                      // digits become 0 to 9, other bytes more
		others := (digits&0x7f7f7f7f + 0x76767676 | digits) & 0x80808080 // bit 7 of each byte that is no digit
		count := uint32(bits.TrailingZeros32(others|0x80000000)) / 8     // digits before it, at most 3
		three := digits << (8 * (3 - count))                             // hundreds, tens, ones; the rest on top
		value := three&0xff*100 + three>>8&0xff*10 + three>>16&0xff
		dst[i] = byte(value)
		bad |= word>>(8*count)&0xff ^ delimiter                // ends otherwise
		bad |= value >> 8                                      // more than 255
		bad |= (count - 1) >> 31                               // no digit
		bad |= ((digits&0xff - 1) >> 31) & ((1 - count) >> 31) // a leading zero
		at += uint(count) + 1
	}
	if bad != 0 {
		return 0
	}
	return int(at)
}
