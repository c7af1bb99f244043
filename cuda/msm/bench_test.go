package msm

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: time at full size, with the answer checked. Method: distinct points (k0 + i k1) G made on the card, random scalars, and
// the exponent of the sum computed on the host. Each line has the additions, the floor by the multiplier (4.6 G additions/s
// in G1 on an H200, counted for 132 multiprocessors), and the share of each phase.

const (
	k0, k1   = 0x1f3a5c7e9b2d4f61, 0x2b7e151628aed2a7
	benchRun = 16 // points of a thread
)

// makePoints fills device memory with count points.
func makePoints[A any](tb testing.TB, g *group[A], to driver.Ptr, count int) {
	exponents := make([]fr.Element, 33)
	exponents[0].SetUint64(k1)
	for i := 1; i < 32; i++ {
		exponents[i].Double(&exponents[i-1])
	}
	exponents[32].SetUint64(k0)
	table := kerneltest.Put(tb, g.multiply(exponents))
	var a driver.Args
	a.Ptr(table).U32(uint32(count)).Ptr(to)
	kerneltest.Run(tb, "unit_msm_points_"+g.curve.String(), driver.Dim{X: uint32((count + 128*benchRun - 1) / (128 * benchRun))}, driver.Dim{X: 128}, 0, &a)
}

func makeScalars(tb testing.TB, to driver.Ptr, count int, seed uint64) {
	var a driver.Args
	a.Ptr(to).U32(uint32(count)).U64(seed)
	kerneltest.Run(tb, "unit_msm_scalars", driver.Dim{X: uint32(min((count+255)/256, 4096))}, driver.Dim{X: 256}, 0, &a)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// exponent gathers sum of w_i and sum of i w_i of scalars' words, without reductions.
type exponent struct{ plain, weighted [4][3]uint64 }

func add3(to *[3]uint64, hi, lo uint64) {
	var c uint64
	to[0], c = bits.Add64(to[0], lo, 0)
	to[1], c = bits.Add64(to[1], hi, c)
	to[2] += c
}

// take adds scalar i of a seed at point p.
func (e *exponent) take(i, p, seed uint64) {
	for k := range uint64(4) {
		w := mix(4*i + k + seed)
		if k == 3 {
			w &= 1<<63 - 1
		}
		add3(&e.plain[k], 0, w)
		hi, lo := bits.Mul64(w, p)
		add3(&e.weighted[k], hi, lo)
	}
}

// onesSum counts points with a one and adds up their numbers.
type onesSum struct{ count, weighted uint64 }

// value is the exponent of the sum: the scalars are in Montgomery form.
func value(e []exponent, ones onesSum) fr.Element {
	sum := new(big.Int)
	word := func(w *[3]uint64, k int) *big.Int {
		v := new(big.Int)
		for j := 2; j >= 0; j-- {
			v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(w[j]))
		}
		return v.Lsh(v, uint(64*k))
	}
	for i := range e {
		for k := range 4 {
			sum.Add(sum, new(big.Int).Mul(word(&e[i].plain[k], k), big.NewInt(k0)))
			sum.Add(sum, new(big.Int).Mul(word(&e[i].weighted[k], k), big.NewInt(k1)))
		}
	}
	sum.Mul(sum, new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 256), fr.Modulus()))
	sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(ones.count), big.NewInt(k0)))
	sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(ones.weighted), big.NewInt(k1)))
	var x fr.Element
	x.SetBigInt(sum)
	return x
}

// spread runs f over pieces of [0, n) on all processors.
func spread(tb testing.TB, n int, f func(part, from, to int)) int {
	parts := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	failed := make([]error, parts)
	for p := range parts {
		wg.Go(func() {
			defer status.Recover("msm.spread", &failed[p])
			f(p, n*p/parts, n*(p+1)/parts)
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return parts
}

// phases measures what lies between marks.
type phases struct {
	tb     testing.TB
	device *driver.Device
	names  []string
	events []*driver.Event
}

func (p *phases) mark(s *driver.Stream, name string) {
	e, err := p.device.NewEvent(true)
	if err == nil {
		err = s.Record(e)
	}
	if err != nil {
		p.tb.Fatal(err)
	}
	p.names, p.events = append(p.names, name), append(p.events, e)
}

// total is the time from the first mark to the last.
func (p *phases) total() float64 {
	ms, err := p.events[len(p.events)-1].Since(p.events[0])
	if err != nil {
		p.tb.Fatal(err)
	}
	return float64(ms)
}

// table sums up by name.
func (p *phases) table() string {
	sum, count := map[string]float64{}, map[string]int{}
	var order []string
	for i := 1; i < len(p.events); i++ {
		ms, err := p.events[i].Since(p.events[i-1])
		if err != nil {
			p.tb.Fatal(err)
		}
		if _, ok := sum[p.names[i]]; !ok {
			order = append(order, p.names[i])
		}
		sum[p.names[i]] += float64(ms)
		count[p.names[i]]++
	}
	var b strings.Builder
	for _, name := range order {
		fmt.Fprintf(&b, " %s %.2f (%d);", name, sum[name], count[name])
	}
	return b.String()
}

func (p *phases) close() {
	for _, e := range p.events {
		_ = e.Close()
	}
}

// timed runs a sum a few times, checks each answer, and prints the median of the device's times.
func timed[A comparable](b *testing.B, g *group[A], m *Summer, p *Plan, in Input, scratch driver.Ptr, want fr.Element, what string) float64 {
	device, s := kerneltest.Open(b), kerneltest.Stream(b)
	expected := g.multiply([]fr.Element{want})[0]
	runs := max(b.N, 7) // the first warms up, the last has marks
	var times []float64
	var additions int64
	var last *phases
	for i := range runs {
		ph := &phases{tb: b, device: device}
		ph.mark(s, "start")
		m.mark, m.additions = nil, 0
		if i == runs-1 {
			m.mark = ph.mark
		}
		got, err := g.sum(m, s, p, in, scratch)
		if err != nil {
			b.Fatal(err)
		}
		m.mark = nil
		ph.mark(s, "end")
		if err := s.Synchronize(background()); err != nil {
			b.Fatal(err)
		}
		if got != expected {
			b.Fatalf("%s: a wrong sum, plan %s", what, p)
		}
		additions = m.additions
		if i == runs-1 {
			last = ph
			break
		}
		if i > 0 {
			times = append(times, ph.total())
		}
		ph.close()
	}
	slices.Sort(times)
	median := times[len(times)/2]
	floor := float64(additions) / (4.6e6 / 132 * float64(device.SMCount)) // ms
	if g.curve == G2 {
		floor *= 2.5
	}
	b.ReportMetric(median, "device-ms")
	fmt.Printf("RESULT %s %s: median %.2f ms [%.2f, %.2f] of %d; %.1f M additions, %.2f G/s; floor by the multiplier %.1f ms, ratio %.2f; plan: %s\n  phases:%s\n",
		g.curve, what, median, times[0], times[len(times)-1], len(times), float64(additions)/1e6, float64(additions)/median/1e6, floor, median/floor, p, last.table())
	last.close()
	return median
}

func memory(b *testing.B, bytes int64) driver.Ptr {
	return kerneltest.Memory(b, roundUp(bytes, int64(alignment)))
}

// benchSum times n random scalars.
func benchSum[A comparable](b *testing.B, g *group[A], n int, limit int64) {
	kerneltest.NeedCard(b)
	m := newSummer(b)
	p, err := PlanFor(Shape{Curve: g.curve, Points: n, Scalars: n}, m.Card(), limit)
	if err != nil {
		b.Fatal(err)
	}
	in := Input{Points: memory(b, int64(n)*g.curve.PointBytes()), Scalars: memory(b, int64(n)*32), Count: n}
	makePoints(b, g, in.Points, n)
	makeScalars(b, in.Scalars, n, 77)
	sums := make([]exponent, runtime.GOMAXPROCS(0))
	spread(b, n, func(part, from, to int) {
		for i := from; i < to; i++ {
			sums[part].take(uint64(i), uint64(i), 77)
		}
	})
	timed(b, g, m, &p, in, memory(b, p.Bytes), value(sums, onesSum{}), fmt.Sprintf("%d scalars", n))
}

const (
	cardLimit = 60 << 30
	domain    = 1<<27 - 1
)

func BenchmarkSum_H(b *testing.B)        { benchSum(b, &groupG1, domain, cardLimit) }
func BenchmarkSum_H24GiB(b *testing.B)   { benchSum(b, &groupG1, domain, 24<<30) }
func BenchmarkSum_H8GiB(b *testing.B)    { benchSum(b, &groupG1, domain, 8<<30) }
func BenchmarkSum_G1Size26(b *testing.B) { benchSum(b, &groupG1, 1<<26, cardLimit) }
func BenchmarkSum_G1Size24(b *testing.B) { benchSum(b, &groupG1, 1<<24, cardLimit) }
func BenchmarkSum_G1Size22(b *testing.B) { benchSum(b, &groupG1, 1<<22, cardLimit) }
func BenchmarkSum_G1Size20(b *testing.B) { benchSum(b, &groupG1, 1<<20, cardLimit) }
func BenchmarkSum_G1Size16(b *testing.B) { benchSum(b, &groupG1, 1<<16, cardLimit) }
func BenchmarkSum_G2Size24(b *testing.B) { benchSum(b, &groupG2, 1<<24, cardLimit) }
func BenchmarkSum_G2Size20(b *testing.B) { benchSum(b, &groupG2, 1<<20, cardLimit) }

// Goal: the time of H in pieces, where scratch is small: each piece's sum for itself, and all of one Running, with the quickest
// plan of each size of parts, so that the estimates by which plans are chosen can be compared with what they take. Method: points
// are resident, so that only the sums are timed; results are checked as those of the whole.
func BenchmarkSum_Pieces(b *testing.B) {
	kerneltest.NeedCard(b)
	m := newSummer(b)
	whole := Input{Points: memory(b, domain*G1.PointBytes()), Scalars: memory(b, domain*32), Count: domain}
	makePoints(b, &groupG1, whole.Points, domain)
	makeScalars(b, whole.Scalars, domain, 77)
	sums := make([]exponent, runtime.GOMAXPROCS(0))
	spread(b, domain, func(part, from, to int) {
		for i := from; i < to; i++ {
			sums[part].take(uint64(i), uint64(i), 77)
		}
	})
	want := groupG1.multiply([]fr.Element{value(sums, onesSum{})})[0]
	const most = 8 << 30
	scratch := memory(b, most)
	device, s := kerneltest.Open(b), kerneltest.Stream(b)
	measure := func(what string, pieces []Piece, p *Plan, running bool) {
		estimate := 0.0
		for i := range pieces {
			estimate += p.Seconds(pieces[i].Scalars, 0)
		}
		var best float64
		for run := range 2 {
			ph := &phases{tb: b, device: device}
			ph.mark(s, "start")
			if m.mark = nil; run > 0 {
				m.mark = ph.mark
			}
			var total bls.G1Jac
			r, err := m.Begin(p, scratch)
			for i := range pieces {
				in := pieces[i].Input(whole, whole.Points.Add(int64(pieces[i].From)*G1.PointBytes()))
				if running && err == nil {
					err = r.Add(background(), s, in)
				} else if err == nil {
					var one bls.G1Jac
					one, err = m.SumG1(background(), s, p, in, scratch)
					total.AddAssign(&one)
				}
			}
			if running && err == nil {
				total, err = r.G1(background(), s)
			}
			m.mark = nil
			ph.mark(s, "end")
			if err = errors.Join(err, s.Synchronize(background())); err != nil {
				b.Fatal(err)
			}
			var got bls.G1Affine
			if got.FromJacobian(&total); got != want {
				b.Fatalf("%s: a wrong sum, plan %s", what, p)
			}
			if ms := ph.total(); best == 0 || ms < best {
				best = ms
			}
			if run > 0 {
				fmt.Printf("RESULT H in %d pieces, %s: %.1f ms, estimate %.1f; plan: %s\n  phases:%s\n", len(pieces), what, best, estimate*1e3, p, ph.table())
			}
			ph.close()
		}
	}
	for _, size := range []int{1 << 24, 1 << 25, 1 << 26} {
		pieces, err := PlainBlock(domain).Pieces(size)
		if err != nil {
			b.Fatal(err)
		}
		for _, limit := range []int64{1 << 30, 2 << 30, 4 << 30, most} {
			shape := ShapeOf(G1, pieces)
			p, err := PlanFor(shape, m.Card(), limit)
			if err != nil {
				b.Fatal(err)
			}
			measure(fmt.Sprintf("each for itself, %d GiB", limit>>30), pieces, &p, false)
			if shape.Pieces = len(pieces); size > 1<<24 {
				continue
			}
			best := -1.0
			for part := shape.Scalars; part >= 1<<20; part = (part + 1) / 2 {
				w := search{shape: shape, card: m.Card(), limit: limit}
				if w.try(part); !w.found || best > 0 && w.cost > 1.25*best {
					continue
				}
				best = w.cost
				measure(fmt.Sprintf("one Running, %d GiB", limit>>30), pieces, &w.best, true)
			}
		}
	}
}

// Goal: skewed scalars take no longer than even ones. Method: all the same, and all of a few neighbouring values.
func BenchmarkSum_Skewed(b *testing.B) {
	kerneltest.NeedCard(b)
	m := newSummer(b)
	const n = 1 << 24
	p, err := PlanFor(Shape{Curve: G1, Points: n, Scalars: n}, m.Card(), cardLimit)
	if err != nil {
		b.Fatal(err)
	}
	in := Input{Points: memory(b, n*96), Scalars: memory(b, n*32), Count: n}
	makePoints(b, &groupG1, in.Points, n)
	scratch := memory(b, p.Bytes)
	for _, different := range []int{1, 5, 1000} {
		scalars := make([]fr.Element, n)
		var want, total fr.Element
		for i := range scalars {
			k := uint64(i % different)
			scalars[i].SetUint64(0x123456789abcdef1 - k)
		}
		for k := range min(different, n) {
			// sum over i = k mod different of (k0 + i k1)
			count := uint64((n - k + different - 1) / different)
			var t, x, y fr.Element
			x.SetUint64(count).Mul(&x, t.SetUint64(k0))
			y.SetUint64(count*uint64(k)+uint64(different)*(count*(count-1)/2)).Mul(&y, t.SetUint64(k1))
			total.Add(&x, &y).Mul(&total, &scalars[k])
			want.Add(&want, &total)
		}
		kerneltest.Copy(b, in.Scalars, scalars)
		timed(b, &groupG1, m, &p, in, scratch, want, fmt.Sprintf("%d scalars of %d values", n, different))
	}
}

// density is what a block of parameters has of the variables.
type density struct {
	name      string
	variables int
	points    float64 // share of the variables with a point
	fields    float64 // share of field elements
}

// benchSections times the sum of a block.
func benchSections[A comparable](b *testing.B, g *group[A], d density) float64 {
	m := newSummer(b)
	words := (d.variables + 63) / 64
	density, kind, ones := make([]uint64, words), make([]uint64, words), make([]uint64, words)
	// A word's bits have one with a probability in 256ths, from 8 random words.
	draw := func(w, salt uint64, share float64) (r uint64) {
		t := uint64(share*65536 + 0.5)
		for k := range uint64(16) {
			x := mix(w*32 + k + salt<<40)
			if t>>k&1 == 1 {
				r |= x
			} else {
				r &= x
			}
		}
		if t>>16 == 1 {
			return ^uint64(0)
		}
		return r
	}
	parts := runtime.GOMAXPROCS(0)
	points, fields := make([]int, parts+1), make([]int, parts+1)
	spread(b, words, func(part, from, to int) {
		for w := from; w < to; w++ {
			density[w], kind[w] = draw(uint64(w), 1, d.points), draw(uint64(w), 2, d.fields)
			ones[w] = mix(uint64(w)^3<<50) &^ kind[w]
			if rest := d.variables - w*64; rest < 64 {
				density[w] &= 1<<rest - 1
				kind[w] &= 1<<rest - 1
			}
			points[part+1] += bits.OnesCount64(density[w])
			fields[part+1] += bits.OnesCount64(kind[w])
		}
	})
	for i := range parts {
		points[i+1] += points[i]
		fields[i+1] += fields[i]
	}
	sums, found := make([]exponent, parts), make([]onesSum, parts)
	chosen := make([]int, parts)
	spread(b, words, func(part, from, to int) {
		point, field := uint64(points[part]), uint64(fields[part])
		for w := from; w < to; w++ {
			for m := ones[w] & density[w]; m != 0; m &= m - 1 {
				found[part].count++
				found[part].weighted += point + uint64(bits.OnesCount64(density[w]&(m&-m-1)))
			}
			for m := kind[w]; m != 0; m &= m - 1 {
				if bit := m & -m; density[w]&bit != 0 {
					sums[part].take(field, point+uint64(bits.OnesCount64(density[w]&(bit-1))), 99)
					chosen[part]++
				}
				field++
			}
			point += uint64(bits.OnesCount64(density[w]))
		}
	})
	var total onesSum
	scalars := 0
	for i := range parts {
		total.count += found[i].count
		total.weighted += found[i].weighted
		scalars += chosen[i]
	}
	n := points[parts]
	in := Input{Points: memory(b, int64(n)*g.curve.PointBytes()), Sections: []Section{{
		Count: d.variables, Density: kerneltest.Put(b, density), Kind: kerneltest.Put(b, kind), Bits: kerneltest.Put(b, ones),
		Scalars: memory(b, int64(fields[parts])*32), Points: n}}}
	if d.points == 1 {
		in.Sections[0].Density = 0
	}
	makePoints(b, g, in.Points, n)
	makeScalars(b, in.Sections[0].Scalars, fields[parts], 99)
	p, err := PlanFor(Shape{Curve: g.curve, Points: n, Scalars: scalars, Ones: int(total.count), Variables: d.variables}, m.Card(), cardLimit)
	if err != nil {
		b.Fatal(err)
	}
	return timed(b, g, m, &p, in, memory(b, p.Bytes), value(sums, total), fmt.Sprintf("%s, %d points, %d ones, %d field elements", d.name, n, total.count, scalars))
}

// The densities of a 32 GiB sector's partition, and such as those of WindowPoSt's 99% of field elements.
func BenchmarkSum_PoRep(b *testing.B) {
	kerneltest.NeedCard(b)
	const variables, fields = 130169893, 0.01305
	all := map[string]float64{} // a benchmark may run twice
	for _, d := range []density{{"PoRep l", variables, 1, fields}, {"PoRep a", variables, 0.9968, fields}, {"PoRep b_g1", variables, 0.25438, fields}} {
		b.Run(d.name[6:], func(b *testing.B) { all[d.name] = benchSections(b, &groupG1, d) })
	}
	b.Run("b_g2", func(b *testing.B) {
		all["b_g2"] = benchSections(b, &groupG2, density{"PoRep b_g2", variables, 0.25438, fields})
	})
	fmt.Printf("RESULT PoRep l + a + b_g1 + b_g2: %.2f ms\n", all["PoRep l"]+all["PoRep a"]+all["PoRep b_g1"]+all["b_g2"])
}

func BenchmarkSum_PoSt(b *testing.B) {
	kerneltest.NeedCard(b)
	const variables, fields = 1<<27 - 1, 0.99
	all := map[string]float64{}
	for _, d := range []density{{"PoSt l", variables, 1, fields}, {"PoSt a", variables, 0.99, fields}, {"PoSt b_g1", variables, 0.4, fields}} {
		b.Run(d.name[5:], func(b *testing.B) { all[d.name] = benchSections(b, &groupG1, d) })
	}
	b.Run("b_g2", func(b *testing.B) {
		all["b_g2"] = benchSections(b, &groupG2, density{"PoSt b_g2", variables, 0.4, fields})
	})
	fmt.Printf("RESULT PoSt l + a + b_g1 + b_g2: %.2f ms\n", all["PoSt l"]+all["PoSt a"]+all["PoSt b_g1"]+all["b_g2"])
}
