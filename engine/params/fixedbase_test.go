package params

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// edgeScalars has, besides random ones, everything at which a digit, a carry or a sign may go wrong
// for the given windows.
func edgeScalars(widths []int) []fr.Element {
	var all []fr.Element
	add := func(v *big.Int) {
		var e fr.Element
		e.SetBigInt(v)
		var n fr.Element
		n.Neg(&e)
		all = append(all, e, n)
	}
	one := big.NewInt(1)
	r := fr.Modulus()
	half := new(big.Int).Rsh(r, 1)
	for d := int64(-2); d <= 2; d++ {
		add(big.NewInt(d))
		add(new(big.Int).Add(half, big.NewInt(d)))
	}
	offset := uint(0)
	pattern := new(big.Int)
	for _, width := range widths {
		for _, v := range []*big.Int{new(big.Int).Lsh(one, uint(width-1)), new(big.Int).Lsh(one, uint(width))} {
			for d := int64(-1); d <= 1; d++ {
				add(new(big.Int).Lsh(new(big.Int).Add(v, big.NewInt(d)), offset))
				add(new(big.Int).Add(new(big.Int).Lsh(v, offset), big.NewInt(d)))
			}
		}
		pattern.Add(pattern, new(big.Int).Lsh(new(big.Int).Lsh(one, uint(width-1)), offset))
		add(pattern)                                              // every digit so far at its bound
		add(new(big.Int).Sub(new(big.Int).Lsh(one, offset), one)) // a carry through all windows so far
		offset += uint(width)
	}
	all = append(all, all[:10]...) // repeats
	for range 50 {
		var e fr.Element
		e.MustSetRandom()
		all = append(all, e)
	}
	return all
}

func TestWindowWidths(t *testing.T) {
	for _, c := range []struct {
		count int
		bytes int64
	}{{0, 1 << 30}, {1, 1 << 30}, {100, 1 << 30}, {10_000_000, 1 << 30}, {10_000_000, 1 << 20}, {1 << 40, 1 << 40}, {1000, 0}} {
		widths := windowWidths(c.count, G1Bytes, c.bytes)
		sum, bytes := 0, int64(0)
		for _, w := range widths {
			sum += w
			bytes += G1Bytes << (w - 1)
			if w < 1 || w > maxWindowBits {
				t.Errorf("count %d, %d bytes: window of %d bits", c.count, c.bytes, w)
			}
		}
		if sum != scalarBits {
			t.Errorf("count %d, %d bytes: windows %v cover %d bits, want %d", c.count, c.bytes, widths, sum, scalarBits)
		}
		if bytes > c.bytes && len(widths) < scalarBits {
			t.Errorf("count %d: tables of %d bytes, want at most %d", c.count, bytes, c.bytes)
		}
	}
}

// Goal: digits are in range and add up to the scalar.
func TestRecode(t *testing.T) {
	for _, widths := range [][]int{windowWidths(3, G1Bytes, 1<<30), windowWidths(1<<40, G1Bytes, 1<<22), windowWidths(1<<40, G1Bytes, 1<<40)} {
		scalars := edgeScalars(widths)
		digits := make([][]int32, len(widths))
		for w := range digits {
			digits[w] = make([]int32, len(scalars))
		}
		recode(scalars, widths, digits)
		for i := range scalars {
			sum, offset := new(big.Int), uint(0)
			for w, width := range widths {
				d := int64(digits[w][i])
				if d > 1<<(width-1) || d < -1<<(width-1) {
					t.Fatalf("windows %v, scalar %v: digit %d is %d", widths, &scalars[i], w, d)
				}
				sum.Add(sum, new(big.Int).Lsh(big.NewInt(d), offset))
				offset += uint(width)
			}
			var got fr.Element
			got.SetBigInt(sum)
			if !got.Equal(&scalars[i]) {
				t.Fatalf("windows %v, scalar %v: digits add up to %v", widths, &scalars[i], &got)
			}
		}
	}
}

// ways are the implementations of a fixed base, by group: the fastest first, G1 and G2 in turn.
var ways = func() (all []way) {
	g1, g2 := lanes.G1(), lanes.G2()
	for i := range g1 {
		all = append(all,
			way{"G1 " + g1[i].Name, G1Bytes, func(ctx context.Context, widths []int, threads int) (fixedTable, error) {
				return newFixedG1(ctx, g1[i], widths, threads)
			}},
			way{"G2 " + g2[i].Name, G2Bytes, func(ctx context.Context, widths []int, threads int) (fixedTable, error) {
				return newFixedG2(ctx, g2[i], widths, threads)
			}})
	}
	return all
}()

type way struct {
	name       string
	pointBytes int
	make       func(ctx context.Context, widths []int, threads int) (fixedTable, error)
}

// Goal: products equal gnark-crypto's, in order, for edge scalars, any windows, any way and any number of
// threads.
func TestFixedBase(t *testing.T) {
	ctx := context.Background()
	for _, widths := range [][]int{windowWidths(2, G1Bytes, 1<<30), windowWidths(20_000, G1Bytes, 1<<30), windowWidths(1<<40, G1Bytes, 1<<21)} {
		scalars := edgeScalars(widths)
		var want [2][]byte
		for i := range scalars {
			var p1 bls.G1Affine
			var p2 bls.G2Affine
			k := scalars[i].BigInt(new(big.Int))
			p1.ScalarMultiplicationBase(k)
			p2.ScalarMultiplicationBase(k)
			raw1, raw2 := p1.RawBytes(), p2.RawBytes()
			want[0], want[1] = append(want[0], raw1[:]...), append(want[1], raw2[:]...)
		}
		for i, way := range ways {
			table, err := way.make(ctx, widths, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, threads := range []int{1, 3} {
				var got []byte
				err := stream(ctx, table, threads, len(scalars), way.pointBytes, inMemory(scalars), func(b []byte) error { got = append(got, b...); return nil })
				if err != nil {
					t.Fatal(err)
				}
				compare(t, fmt.Sprintf("%s, windows %v, %d threads", way.name, widths, threads), got, want[i%2], way.pointBytes)
			}
			table.Close()
		}
	}
}

func compare(t *testing.T, what string, got, want []byte, size int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: want %d bytes, got %d", what, len(want), len(got))
		return
	}
	for i := 0; i < len(want); i += size {
		if !bytes.Equal(got[i:i+size], want[i:i+size]) {
			t.Errorf("%s: point %d: want %x, got %x", what, i/size, want[i:i+size], got[i:i+size])
			return
		}
	}
}

// Goal: order holds over many batches; batch sizes one below, at and above the border; both ways give what
// adding up one by one gives, tables of several rounds included.
func TestFixedBase_Stream(t *testing.T) {
	ctx := context.Background()
	step, _, _, _ := bls.Generators()
	step.ScalarMultiplication(&step, big.NewInt(0x7e57_1234_5678))
	for way := 0; way < len(ways); way += 2 {
		table, err := ways[way].make(ctx, windowWidths(200_000, G1Bytes, 1<<30), 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, count := range []int{0, 1, fixedBatch - 1, fixedBatch, fixedBatch + 1, 9*fixedBatch + 7} {
			acc := step
			n := 0
			err := stream(ctx, table, 3, count, G1Bytes, func(from int, dst []fr.Element) {
				var k fr.Element
				k.SetUint64(0x7e57_1234_5678)
				for i := range dst {
					dst[i].SetUint64(uint64(from + i + 1))
					dst[i].Mul(&dst[i], &k)
				}
			}, func(b []byte) error {
				for ; len(b) > 0; b = b[G1Bytes:] {
					var p, q bls.G1Affine
					if err := DecodeG1Uncompressed(b, &q); err != nil {
						return err
					}
					if n%97 == 0 || n == count-1 {
						if p.FromJacobian(&acc); p != q {
							return fmt.Errorf("point %d of %d is wrong", n, count)
						}
					}
					acc.AddAssign(&step)
					n++
				}
				return nil
			})
			if err != nil || n != count {
				t.Errorf("%s: want %d points and no error, got %d and %v", ways[way].name, count, n, err)
			}
		}
		table.Close()
	}
}

// Goal: an error of the sink, a panic of a source and a cancelled context all end the stream as values.
func TestFixedBase_StreamStops(t *testing.T) {
	f, err := newFixedG1(context.Background(), lanes.G1()[0], windowWidths(2, G1Bytes, 1<<20), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	full := errors.New("disk full")
	ones := func(from int, dst []fr.Element) {
		for i := range dst {
			dst[i].SetOne()
		}
	}
	const many = 40 * fixedBatch
	if err := stream(context.Background(), f, 2, many, G1Bytes, ones, func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("want the sink's error, got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = stream(ctx, f, 2, many, G1Bytes, ones, func([]byte) error { cancel(); return nil })
	if status.KindOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("want Cancelled, got %v", err)
	}
	err = stream(context.Background(), f, 2, many, G1Bytes, func(from int, dst []fr.Element) { panic("source") }, func([]byte) error { return nil })
	if status.KindOf(err) != status.Internal {
		t.Errorf("want Internal, got %v", err)
	}
	for _, way := range ways {
		if _, err := way.make(ctx, windowWidths(1<<30, G1Bytes, 1<<30), 2); status.KindOf(err) != status.Cancelled {
			t.Errorf("%s, tables: want Cancelled, got %v", way.name, err)
		}
	}
}

// cpuTime is the time that the process has computed, which other processes disturb less than the clock.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFixedBase streams points for tables of several sizes, in all ways, on one thread.
func BenchmarkFixedBase(b *testing.B) {
	const count = 32 * fixedBatch
	ctx := context.Background()
	scalars := make([]fr.Element, count)
	for i := range scalars {
		scalars[i].MustSetRandom()
	}
	for _, way := range ways {
		for _, windows := range []int{18, 16, 15, 14, 13} {
			widths := make([]int, windows)
			for i := range widths {
				widths[i] = (scalarBits + i) / windows
			}
			b.Run(fmt.Sprintf("%s/windows=%d", way.name, windows), func(b *testing.B) {
				table, err := way.make(ctx, widths, 2)
				if err != nil {
					b.Fatal(err)
				}
				defer table.Close()
				start := cpuTime()
				for b.Loop() {
					if err := stream(ctx, table, 1, count, way.pointBytes, inMemory(scalars), func([]byte) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				reportPoints(b, cpuTime()-start, count, windows)
			})
		}
	}
}

func reportPoints(b *testing.B, spent time.Duration, count, windows int) {
	perPoint := float64(spent.Nanoseconds()) / float64(b.N*count)
	b.ReportMetric(perPoint, "cpu-ns/point")
	b.ReportMetric(perPoint/float64(windows-1), "cpu-ns/addition")
}
