package host

import (
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// maxCPUs bounds CPU numbers: the largest NR_CPUS that Linux can be built with on x86-64. A set has room for all,
// so that no file can make one grow.
const maxCPUs = 1 << 13

// CPUSet is a set of CPU or node numbers below 8192, in the kernel's form of a mask: bit i of word i/64. The zero
// value is empty, and == compares.
type CPUSet [maxCPUs / 64]uint64

// firstCPUs is the set of 0 to n-1.
func firstCPUs(n int) (s CPUSet) {
	for i := range min(n, maxCPUs) {
		s.Add(i)
	}
	return s
}

// Add puts a number in; one out of range is left out.
func (s *CPUSet) Add(i int) {
	if 0 <= i && i < maxCPUs {
		s[i>>6] |= 1 << (i & 63)
	}
}

// Has tells whether a number is in the set; any number may be asked for.
func (s *CPUSet) Has(i int) bool { return 0 <= i && i < maxCPUs && s[i>>6]>>(i&63)&1 == 1 }

// Count is how many numbers are in the set.
func (s *CPUSet) Count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty tells whether none is.
func (s *CPUSet) Empty() bool { return *s == CPUSet{} }

// And is what is in both.
func (s *CPUSet) And(t *CPUSet) (both CPUSet) {
	for i := range s {
		both[i] = s[i] & t[i]
	}
	return both
}

// First is the lowest number, -1 in the empty set.
func (s *CPUSet) First() int {
	for i, w := range s {
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// All goes through the numbers in rising order.
func (s *CPUSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// String writes the set as the kernel does: "0-3,8,10-12"; empty for none.
func (s *CPUSet) String() string {
	var text []byte
	from, last := -1, -2
	end := func() {
		if from >= 0 && last > from {
			text = strconv.AppendInt(append(text, '-'), int64(last), 10)
		}
	}
	for i := range s.All() {
		if i != last+1 {
			end()
			if len(text) > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(text, int64(i), 10)
			from = i
		}
		last = i
	}
	end()
	return string(text)
}

// parseCPUs reads the kernel's list form, as String writes it; empty text is the empty set. It refuses everything else:
// numbers that do not rise, and such that no set holds. Source: cpuset(7), "List format".
func parseCPUs(text string) (s CPUSet, ok bool) {
	if text == "" {
		return s, true
	}
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, ok := cpuNumber(low)
		if !ok || from < next {
			return CPUSet{}, false
		}
		to := from
		if isRange {
			if to, ok = cpuNumber(high); !ok || to < from {
				return CPUSet{}, false
			}
		}
		for i := from; i <= to; i++ {
			s.Add(i)
		}
		next = to + 1
	}
	return s, true
}

// cpuNumber reads a number that a set holds: digits alone.
func cpuNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 13)
	return int(n), err == nil
}
