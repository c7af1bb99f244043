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

// hashText is how many bytes readHash looks at: the opening bracket, 3 digits and a delimiter for each number, and what a load
// of 4 bytes takes more.
const hashText = 1 + 4*len(porep.Hash{}) + 3

// readHash takes [n,n,...,n] with 32 numbers from 0 to 255, without whitespace, from the start of s and returns its
// length; 0 where s is anything else, or within a few bytes of the document's end. Then the general way decides what it
// is. Nearly all of a C1 is such arrays.
func readHash(dst *porep.Hash, s []byte) int {
	if len(s) < hashText || s[0] != '[' {
		return 0
	}
	n := 0
	if wideHashes {
		n = readNumbers(dst, &s[1])
	} else {
		n = readNumbersPlain(dst, (*[hashText - 1]byte)(s[1:]))
	}
	if n > 0 {
		n++
	}
	return n
}

// readNumbersPlain is readNumbers for any CPU. It finds all delimiters first, so that the place of a number does not wait for
// the length of the one before, and reads each by arithmetic on a 32-bit word: branches on the number of digits would
// be guessed wrong every third time.
func readNumbersPlain(dst *porep.Hash, s *[hashText - 1]byte) int {
	low, high := noDigits((*[64]byte)(s[:])), noDigits((*[64]byte)(s[64:]))
	n := min(bits.OnesCount64(low), len(dst)) // numbers that end in the first 64 bytes
	if n+bits.OnesCount64(high) < len(dst) {
		return 0
	}
	at, base, bad, delimiter := uint32(0), uint32(0), uint32(0), byte(',')
	for i, ends := 0, low; ; n, ends, base = len(dst), high, 64 {
		for ; i < n; i++ {
			end := base + uint32(bits.TrailingZeros64(ends))
			ends &= ends - 1
			if i == len(dst)-1 {
				delimiter = ']'
			}
			shift := 8 * (3 - (end - at))                                                // wraps around for more than three digits
			three := (binary.LittleEndian.Uint32(s[at&127:]) ^ 0x303030) << (shift & 31) // hundreds, tens, ones; the rest on top
			value := three&0xff*100 + three>>8&0xff*10 + three>>16&0xff
			dst[i] = byte(value)
			bad |= shift / 24                             // no digit, or more than three
			bad |= value >> 8                             // more than 255
			bad |= (value - 0x0a64>>(shift&31)&0xff) >> 8 // a leading zero: less than 100, 10 or 0
			bad |= uint32(s[end&127] ^ delimiter)         // ends otherwise
			at = end + 1
		}
		if n == len(dst) {
			break
		}
	}
	if bad != 0 {
		return 0
	}
	return int(at)
}

// noDigits has bit i set where s[i] is no digit.
func noDigits(s *[64]byte) (mask uint64) {
	for i := 0; i < len(s); i += 8 {
		digits := binary.LittleEndian.Uint64(s[i:]) ^ 0x3030303030303030                              // digits become 0 to 9, other bytes more
		others := (digits&0x7f7f7f7f7f7f7f7f + 0x7676767676767676 | digits) >> 7 & 0x0101010101010101 // a bit a byte
		mask = mask>>8 | others*0x0102040810204080&(0xff<<56)                                         // gathered in the top byte
	}
	return mask
}
