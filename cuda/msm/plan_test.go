package msm

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strconv"
	"strings"
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

// searched are sums of all kinds: whole blocks and pieces, random scalars and bits.
var searched = []Shape{
	{Points: 1<<27 - 1, Scalars: 1<<27 - 1},
	{Points: 1 << 24, Scalars: 1 << 24, Pieces: 8},
	{Curve: G2, Points: 11e6, Scalars: 11e6},
	{Points: 130169893, Scalars: 1699102, Ones: 130169893, Variables: 130169893},
	{Points: 1 << 24, Scalars: 200000, Ones: 1 << 24, Variables: 1 << 25, Pieces: 8},
	{Curve: G2, Points: 1 << 23, Scalars: 1 << 23, Ones: 1 << 23, Variables: 1 << 25},
	{Points: 1000, Scalars: 1000},
}

// Goal: more memory never makes a sum slower, by the estimate. Method: budgets from too small to ample, a quarter apart.
func TestPlanFor_MoreMemory(t *testing.T) {
	for _, shape := range searched {
		before, planned := 0.0, 0
		for limit := int64(4 << 20); limit < 80<<30; limit += limit / 4 {
			p, err := PlanFor(shape, h200, limit)
			switch {
			case err != nil && planned > 0:
				t.Errorf("%+v: %d bytes: refused, and not with less: %v", shape, limit, err)
			case err != nil:
				continue
			case planned > 0 && p.cost() > before:
				t.Errorf("%+v: %d bytes: %.3f ms, with less %.3f: %s", shape, limit, p.cost()/1e6, before/1e6, &p)
			}
			before = p.cost()
			planned++
		}
		if planned < 7 {
			t.Errorf("%+v: %d plans", shape, planned)
		}
	}
}

// Goal: what the search leaves out is no better than what it finds. Method: all ways, one by one.
func TestPlanFor_Quickest(t *testing.T) {
	for i, shape := range searched[1:] {
		for _, limit := range []int64{300 << 20, 5 << 30}[i%2:] {
			best, least := -1.0, int64(0)
			shape.eachPart(func(part int) {
				for count := leastWindows; count <= maxWindows; count++ {
					for form := range forms {
						for group := 1; group <= min(count, maxEntries/max(part, 1)); group += 1 + group/8 {
							w := search{shape: shape, card: h200}
							p := w.way(part, form, group, count)
							if p.Bytes <= limit && p.Points+p.slots+p.area <= maxNumber && (best < 0 || p.cost() < best) {
								best = p.cost()
							}
							if least == 0 || p.Bytes < least {
								least = p.Bytes
							}
						}
					}
				}
			})
			p, err := PlanFor(shape, h200, limit)
			switch {
			case best < 0:
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes of device memory", least)) {
					t.Errorf("%+v in %d bytes: want a refusal that says %d bytes, got %v", shape, limit, least, err)
				}
			case err != nil || p.cost() > best || p.Bytes > limit:
				t.Errorf("%+v in %d bytes: want %.3f ms, got %.3f: %s, %v", shape, limit, best/1e6, p.cost()/1e6, &p, err)
			}
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
// medians of an H200, docs/kernels.md, each by the way that was measured.
func TestSeconds(t *testing.T) {
	const domain, porep = 1<<27 - 1, 130169893
	h := PlainBlock(domain)
	for _, c := range []struct {
		what     string
		shape    Shape
		limit    int64
		ones     int
		measured float64
		way      [3]int // windows, at once, scalars at once; none: what is planned
	}{
		{"h", Shape{Points: domain, Scalars: domain}, 28 << 30, 0, 0.442, [3]int{}},
		{"h in 8 GiB", Shape{Points: domain, Scalars: domain}, 8 << 30, 0, 0.502, [3]int{12, 1, 1 << 25}},
		{"h by 2^24 in 8 GiB", Shape{Pieces: 8}, 8 << 30, 0, 0.497, [3]int{12, 2, 1 << 24}},
		{"h by 2^24 in 4 GiB", Shape{Pieces: 8}, 4 << 30, 0, 0.546, [3]int{}},
		{"h by 2^24 in 2 GiB", Shape{Pieces: 8}, 2 << 30, 0, 0.656, [3]int{13, 2, 1 << 22}},
		{"h by 2^24 in 1 GiB", Shape{Pieces: 8}, 1 << 30, 0, 0.850, [3]int{14, 2, 1 << 21}},
		{"g1 2^24", Shape{Points: 1 << 24, Scalars: 1 << 24}, 60 << 30, 0, 0.066, [3]int{}},
		{"g2 2^24", Shape{Curve: G2, Points: 1 << 24, Scalars: 1 << 24}, 60 << 30, 0, 0.183, [3]int{}},
		{"l", Shape{Points: porep, Scalars: 1696676, Ones: porep, Variables: porep}, 60 << 30, 64239227, 0.0294, [3]int{}},
		{"b_g2", Shape{Curve: G2, Points: 33123280, Scalars: 430922, Ones: 33123280, Variables: porep}, 60 << 30, 16343864, 0.0254, [3]int{}},
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
		if c.way != [3]int{} {
			planned := p.cost()
			p.group, p.part, p.ahead, p.together = c.way[1], c.way[2], true, true
			if p.prepare(c.way[0]); p.Bytes > c.limit || p.cost() < planned {
				t.Errorf("%s: %.1f ms are planned, and as measured it takes %.1f: %s", c.what, planned/1e6, p.cost()/1e6, &p)
			}
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
