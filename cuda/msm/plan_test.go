package msm

import (
	"errors"
	"math/big"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

var h200 = Card{SMs: 132, SharedBytes: 227 << 10}

// Goal: a plan fits its limit, and covers every scalar. Method: production shapes at limits from ample to too small.
func TestPlanFor(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		limit int64
		refer bool // refused
	}{
		{Shape{Curve: G1, Points: 1<<27 - 1, Scalars: 1<<27 - 1}, 60 << 30, false},
		{Shape{Curve: G1, Points: 1<<27 - 1, Scalars: 1<<27 - 1}, 30 << 30, false},
		{Shape{Curve: G1, Points: 1<<27 - 1, Scalars: 1<<27 - 1}, 10 << 30, false},
		{Shape{Curve: G1, Points: 1<<27 - 1, Scalars: 1<<27 - 1}, 3 << 30, false},
		{Shape{Curve: G1, Points: 1 << 28, Scalars: 1 << 28}, 60 << 30, false},
		{Shape{Curve: G1, Points: 1<<27 - 1, Scalars: 1<<27 - 1}, 1 << 20, true},
		{Shape{Curve: G1, Points: 130169893, Scalars: 1699102, Ones: 64e6, Variables: 130169893}, 60 << 30, false},
		{Shape{Curve: G2, Points: 33112282, Scalars: 432e3, Ones: 16e6, Variables: 130169893}, 20 << 30, false},
		{Shape{Curve: G1}, 1 << 30, false},
		{Shape{Curve: G2, Points: 1, Scalars: 1}, 1 << 30, false},
	} {
		p, err := PlanFor(c.shape, h200, c.limit)
		if c.refer {
			var e *status.Error
			if !errors.As(err, &e) || e.Kind != status.NoMemory || e.Want == "" || e.Got == "" {
				t.Errorf("%+v in %d bytes: want an error with both numbers, got %v", c.shape, c.limit, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v in %d bytes: %v", c.shape, c.limit, err)
			continue
		}
		t.Logf("%+v in %d bytes: %s; about %.1f ms", c.shape, c.limit, &p, p.cost()/1e6)
		if p.Bytes > c.limit {
			t.Errorf("%+v: want at most %d bytes, got %d", c.shape, c.limit, p.Bytes)
		}
	}
}

// Goal: windows cover all bits of a scalar's absolute value, and buckets all digits. Method: the largest and the smallest
// sums of scalar and bias, cut by big integers.
func TestCut(t *testing.T) {
	for count := 11; count <= maxWindows; count++ {
		windows, words := cut(count)
		bias := new(big.Int)
		for i, w := range words {
			bias.Add(bias, new(big.Int).Lsh(big.NewInt(int64(w)), uint(32*i)))
		}
		if bias.Cmp(new(big.Int).Lsh(big.NewInt(1), 255)) >= 0 {
			t.Fatalf("%d windows: want a bias below 2^255", count)
		}
		for _, s := range []*big.Int{big.NewInt(0), big.NewInt(1), halfOrder, new(big.Int).Sub(halfOrder, big.NewInt(1))} {
			k := new(big.Int).Add(s, bias)
			sum, offset := new(big.Int), 0
			for i, w := range windows {
				if w.offset != offset || w.bits > maxWindowBits || w.padded < w.buckets || w.rows()*w.columns() != w.padded {
					t.Fatalf("%d windows: window %d is %+v", count, i, w)
				}
				offset += w.bits
				digit := new(big.Int).Rsh(k, uint(w.offset))
				digit.And(digit, big.NewInt(1<<w.bits-1)).Sub(digit, big.NewInt(1<<(w.bits-1)))
				if digit.CmpAbs(big.NewInt(int64(w.buckets))) > 0 {
					t.Errorf("%d windows, scalar %v: want at most %d in window %d, got %v", count, s, w.buckets, i, digit)
				}
				sum.Add(sum, digit.Lsh(digit, uint(w.offset)))
			}
			if offset != 255 || sum.Cmp(s) != 0 {
				t.Errorf("%d windows to bit %d: want %v, got %v", count, offset, s, sum)
			}
		}
	}
	if r := fr.Modulus(); r.BitLen() != 255 {
		t.Errorf("want 255 bits, got %d", r.BitLen())
	}
}

// Goal: the kernels and the host use the same numbers. Method: those of tuning/msm.cuh, read from the source.
func TestTuning(t *testing.T) {
	source, err := os.ReadFile("../kernels/tuning/msm.cuh")
	if err != nil {
		t.Skip("without the kernels' source: ", err)
	}
	for name, want := range map[string]int{
		"digit_items": digitItems, "scatter_items": scatterItems, "even_items": evenItems, "even_threads": mostEvenThreads, "pair_threads": pairThreads,
		"pair_buckets": pairBuckets, "pair_limit": pairLimit, "invert_threads": invertThreads, "total_threads": totalThreads,
		"struct TreeG1 .* threads": h200.treeThreads(G1), "struct TreeG1 .* backward_blocks": backwardBlocks[G1],
		"struct TreeG2 .*#else.* threads": h200.treeThreads(G2), "struct TreeG2 .* backward_blocks": backwardBlocks[G2],
		"struct TreeG2 .*#if.*< 800[^#]* threads": Card{SharedBytes: 64 << 10}.treeThreads(G2),
	} {
		m := regexp.MustCompile(`(?sU)` + name + ` = (\d+)\b`).FindSubmatch(source)
		if m == nil {
			t.Errorf("%s: not in the source", name)
		} else if got, _ := strconv.Atoi(string(m[1])); got != want {
			t.Errorf("%s: want %d, got %d in the source", name, want, got)
		}
	}
}

// Goal: estimates are near what was measured, so that they can be compared with each other and with the time of an upload. Method:
// medians of an H200, docs/kernels.md.
func TestSeconds(t *testing.T) {
	const domain, porep = 1<<27 - 1, 130169893
	h := PlainBlock(domain)
	for _, c := range []struct {
		what     string
		shape    Shape
		limit    int64
		ones     int
		measured float64
	}{
		{"h", Shape{Points: domain, Scalars: domain}, 28 << 30, 0, 0.442},
		{"h in 8 GiB", Shape{Points: domain, Scalars: domain}, 8 << 30, 0, 0.502},
		{"h by 2^24 in 8 GiB", Shape{Pieces: 8}, 8 << 30, 0, 0.497},
		{"h by 2^24 in 4 GiB", Shape{Pieces: 8}, 4 << 30, 0, 0.546},
		{"h by 2^24 in 2 GiB", Shape{Pieces: 8}, 2 << 30, 0, 0.656},
		{"h by 2^24 in 1 GiB", Shape{Pieces: 8}, 1 << 30, 0, 0.850},
		{"g1 2^24", Shape{Points: 1 << 24, Scalars: 1 << 24}, 60 << 30, 0, 0.066},
		{"g2 2^24", Shape{Curve: G2, Points: 1 << 24, Scalars: 1 << 24}, 60 << 30, 0, 0.183},
		{"l", Shape{Points: porep, Scalars: 1696676, Ones: porep, Variables: porep}, 60 << 30, 64239227, 0.0294},
		{"b_g2", Shape{Curve: G2, Points: 33123280, Scalars: 430922, Ones: 33123280, Variables: porep}, 60 << 30, 16343864, 0.0254},
	} {
		pieces, err := h.Pieces((domain + max(1, c.shape.Pieces) - 1) / max(1, c.shape.Pieces))
		if err != nil {
			t.Fatal(err)
		}
		shape := c.shape
		if shape.Points == 0 {
			shape = ShapeOf(G1, pieces)
			shape.Pieces = len(pieces)
		}
		p, err := PlanFor(shape, h200, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := float64(max(1, shape.Pieces)) * p.Seconds(shape.Scalars, c.ones)
		if got < 0.8*c.measured || got > 1.2*c.measured {
			t.Errorf("%s: want about %.4f s, got %.4f; plan %s", c.what, c.measured, got, &p)
		}
		other := h200
		other.SMs /= 2
		if p.target = other; p.Seconds(shape.Scalars, c.ones) <= got/float64(max(1, shape.Pieces)) {
			t.Errorf("%s: want more on half a card", c.what)
		}
	}
}
