package kinds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

var _ = kerneltest.Only("kinds")

// order is the group order's limbs, the least number that no value may have, and less and more are its neighbours.
func order() (r, less, more fr.Element) {
	words := fr.Modulus().Bits()
	for i := range r {
		r[i] = uint64(words[i])
	}
	less, more = r, r
	less[0]--
	more[0]++
	return r, less, more
}

// nearly are field elements that differ little from zero, one and the order.
func nearly() (all []fr.Element) {
	_, less, _ := order()
	one := fr.One()
	for i := range 4 {
		for _, x := range []fr.Element{{}, one} {
			x[i] ^= 1 << 33
			if i < 3 || x[3] < less[3] {
				all = append(all, x)
			}
		}
	}
	return append(all, less, fr.NewElement(2), fr.Element{1}, fr.Element{0, 0, 0, 1}, fr.Element{^uint64(0), ^uint64(0), ^uint64(0), less[3] - 1})
}

// vector draws values with bits among them, and the words that it must become.
func vector(rng *rand.Rand, n int) (values []fr.Element, ones, fields []uint64) {
	values = make([]fr.Element, n)
	ones, fields = make([]uint64, (n+63)/64), make([]uint64, (n+63)/64)
	special := nearly()
	for i := range values {
		switch k := rng.IntN(4); k {
		case 0:
		case 1:
			values[i].SetOne()
			ones[i/64] |= 1 << (i % 64)
		default:
			values[i] = special[rng.IntN(len(special))]
			if k == 3 {
				values[i] = fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
			}
			fields[i/64] |= 1 << (i % 64)
		}
	}
	return values, ones, fields
}

// rig is room for the bitmaps of n values on the device, with a word more, and a status.
type rig struct {
	k      *Kinds
	s      *driver.Stream
	words  int
	to     Bitmaps
	failed driver.Ptr
}

func newRig(tb testing.TB, n int) *rig {
	tb.Helper()
	k, err := New(kerneltest.Find)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{k: k, s: kerneltest.Stream(tb), words: (n + 63) / 64, failed: kerneltest.Put(tb, []uint32{5})}
	dirty := make([]uint64, r.words+1)
	for i := range dirty {
		dirty[i] = 0xdeadbeefdeadbeef
	}
	r.to = Bitmaps{Ones: kerneltest.Put(tb, dirty), Fields: kerneltest.Put(tb, dirty)}
	return r
}

// mark marks ranges of values of at most `most`, the last first, and returns the status.
func (r *rig) mark(tb testing.TB, values []fr.Element, most int) uint32 {
	tb.Helper()
	err := r.k.Clear(r.s, r.failed)
	for first := (len(values) - 1) / most * most; first >= 0 && err == nil; first -= most {
		part := values[first:min(first+most, len(values))]
		err = r.k.Mark(r.s, kerneltest.Put(tb, part), int64(first), int64(len(part)), r.to, r.failed)
	}
	if err = errors.Join(err, r.s.Synchronize(context.Background())); err != nil {
		tb.Fatal(err)
	}
	return kerneltest.Get[uint32](tb, r.failed, 1)[0]
}

// Goal: every value has its kind, whole or by ranges, and nothing is written behind the last word. Method: all kinds and their
// nearest neighbours, against the test's own bits.
func TestMark(t *testing.T) {
	sizes := []int{1, 31, 32, 63, 64, 65, 127, 128, 129, 1000, 5000}
	if kerneltest.Large() {
		sizes = append(sizes, 1<<20-1, 1<<24+1)
	}
	for _, n := range sizes {
		values, ones, fields := vector(rand.New(rand.NewPCG(uint64(n), 0)), n)
		for _, most := range []int{n, max(64, n/192*64)} {
			r := newRig(t, n)
			if failed := r.mark(t, values, most); failed != None {
				t.Fatalf("%d by %d: value %d fails: %v", n, most, failed, values[failed])
			}
			for name, m := range map[string]struct {
				at   driver.Ptr
				want []uint64
			}{"ones": {r.to.Ones, ones}, "fields": {r.to.Fields, fields}} {
				got := kerneltest.Get[uint64](t, m.at, r.words+1)
				for w := range m.want {
					if got[w] != m.want[w] {
						t.Fatalf("%d by %d: %s: word %d: want %#x, got %#x", n, most, name, w, m.want[w], got[w])
					}
				}
				if got[r.words] != 0xdeadbeefdeadbeef {
					t.Fatalf("%d by %d: %s: want nothing behind the last word, got %#x", n, most, name, got[r.words])
				}
			}
		}
	}
}

// Goal: the first value that is not below the order is reported, in whatever range. Method: values from the order up, some in
// other words and ranges.
func TestMark_Unreduced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	r0, _, more := order()
	above := []fr.Element{r0, more, {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, {0, 0, 0, r0[3] + 1}, {0, 0, r0[2] + 1, r0[3]}, {0, r0[1] + 1, r0[2], r0[3]}}
	const n = 700
	for i, x := range above {
		values, _, _ := vector(rng, n)
		lowest := rng.IntN(n)
		values[lowest] = x
		for range i {
			values[lowest+rng.IntN(n-lowest)] = above[rng.IntN(len(above))]
		}
		values[lowest] = x
		r := newRig(t, n)
		for _, most := range []int{n, 64, 256} {
			if failed := r.mark(t, values, most); failed != uint32(lowest) {
				t.Errorf("%x in ranges of %d: want value %d, got %d", x, most, lowest, failed)
			}
		}
	}
}

// Goal: ranges that cannot be are refused by value.
func TestMark_Refuses(t *testing.T) {
	r := newRig(t, 64)
	for _, c := range [][2]int64{{-64, 64}, {32, 32}, {0, -1}, {64, MaxCount}, {MaxCount + 64, 0}} {
		var e *status.Error
		if err := r.k.Mark(r.s, r.to.Ones, c[0], c[1], r.to, r.failed); !errors.As(err, &e) || e.Kind != status.Internal || e.Want == "" || e.Got == "" {
			t.Errorf("%v: want an error with what was wanted and got, got %v", c, err)
		}
	}
	if err := r.k.Mark(r.s, 0, 0, 0, Bitmaps{}, 0); err != nil {
		t.Errorf("no values: %v", err)
	}
}

// Goal: the kernel and the host use the same number. Method: the source.
func TestTuning(t *testing.T) {
	source, err := os.ReadFile("../kernels/tuning/kinds.cuh")
	if err != nil {
		t.Skip("without the kernels' source: ", err)
	}
	m := regexp.MustCompile(`\bkinds_items = (\d+)`).FindSubmatch(source)
	if m == nil {
		t.Fatal("kinds_items: not found")
	}
	if got, err := strconv.Atoi(string(m[1])); err != nil || got != markItems {
		t.Errorf("kinds_items: want %d, got %d", markItems, got)
	}
}

// BenchmarkMark times vectors of 2^27 values of mostly bits, and of field elements alone; whole, and in ranges of 2^20.
func BenchmarkMark(b *testing.B) {
	kerneltest.NeedCard(b)
	const n, piece = 1 << 27, 1 << 20
	for _, bits := range []bool{true, false} {
		values := make([]fr.Element, piece)
		rng := rand.New(rand.NewPCG(2, 2))
		for i := range values {
			values[i] = fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
			if bits && i%77 != 0 {
				values[i] = fr.Element{}
				if rng.IntN(2) == 0 {
					values[i].SetOne()
				}
			}
		}
		r := newRig(b, n)
		all := kerneltest.Memory(b, n*fr.Bytes)
		for at := int64(0); at < n; at += piece {
			kerneltest.Copy(b, all.Add(at*fr.Bytes), values)
		}
		if err := r.k.Clear(r.s, r.failed); err != nil {
			b.Fatal(err)
		}
		for _, each := range []int64{n, piece} {
			b.Run(fmt.Sprintf("bits=%t/ranges=%d", bits, n/each), func(b *testing.B) {
				kerneltest.Timed(b, r.s, kerneltest.Work{Bytes: n * (fr.Bytes + 0.25)}, func() error {
					for at := int64(0); at < n; at += each {
						if err := r.k.Mark(r.s, all.Add(at*fr.Bytes), at, each, r.to, r.failed); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
		if failed := kerneltest.Get[uint32](b, r.failed, 1)[0]; failed != None {
			b.Errorf("want every value below the order, got %d", failed)
		}
	}
}
