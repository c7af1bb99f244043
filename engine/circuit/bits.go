package circuit

import "math/bits"

// Bits is a bit vector: bit i is word i/64, place i%64, least significant first.
type Bits struct {
	Words []uint64
	Len   int
}

// NewBits makes n zero bits on the Go heap.
func NewBits(n int) Bits { return Bits{Words: make([]uint64, BitWords(n)), Len: n} }

// BitWords is the number of words that n bits take.
func BitWords(n int) int { return (n + 63) / 64 }

// Get returns bit i.
func (b Bits) Get(i int) bool { return b.Words[i>>6]>>(i&63)&1 == 1 }

// Set sets bit i to one.
func (b Bits) Set(i int) { b.Words[i>>6] |= 1 << (i & 63) }

// Count is the number of ones. What lies in the last word behind Len is not counted: it may be a caller's.
func (b Bits) Count() int {
	n := 0
	for _, w := range b.Words[:b.Len>>6] {
		n += bits.OnesCount64(w)
	}
	if rest := b.Len & 63; rest != 0 {
		n += bits.OnesCount64(b.Words[b.Len>>6] & (1<<rest - 1))
	}
	return n
}
