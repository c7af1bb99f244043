package points_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

var _ = kerneltest.Only("points")

func open(t testing.TB) (*points.Points, *driver.Stream) {
	t.Helper()
	s := kerneltest.Stream(t)
	p, err := points.New(kerneltest.Find)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// family is what differs between the groups in the tests.
type family[P comparable] struct {
	group     points.Group
	generator P
	mul       func(p *P, k *big.Int) P
	encode    func(dst []byte, p *P)
	decode    func(src []byte, p *P) error // the reference's; may be nil
	outside   func(from uint64) P          // on the curve, of another order: the first with x of `from` or more
	bytes     int
}

func g1() *family[bls.G1Affine] {
	_, _, g, _ := bls.Generators()
	return &family[bls.G1Affine]{
		points.G1, g, func(p *bls.G1Affine, k *big.Int) (r bls.G1Affine) { return *r.ScalarMultiplication(p, k) },
		params.EncodeG1Uncompressed, params.DecodeG1Uncompressed, outsideG1, params.G1Bytes,
	}
}

func g2() *family[bls.G2Affine] {
	_, _, _, g := bls.Generators()
	return &family[bls.G2Affine]{
		points.G2, g, func(p *bls.G2Affine, k *big.Int) (r bls.G2Affine) { return *r.ScalarMultiplication(p, k) },
		params.EncodeG2Uncompressed, nil, outsideG2, params.G2Bytes,
	}
}

// outsideG1 is the first point that is outside the group of order r. That with x = 0 has order 3, the smallest there is.
func outsideG1(from uint64) (p bls.G1Affine) {
	var b, y2 fp.Element
	b.SetUint64(4)
	for x := from; ; x++ {
		p.X.SetUint64(x)
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &b)
		if p.Y.Sqrt(&y2) != nil && !p.IsInSubGroup() {
			return p
		}
	}
}

func outsideG2(from uint64) (p bls.G2Affine) {
	var b, y2 bls.E2
	b.A0.SetUint64(4)
	b.A1.SetUint64(4)
	for x := from; ; x++ {
		p.X.A0.SetUint64(x)
		p.X.A1.SetOne()
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &b)
		if y2.Legendre() != 1 {
			continue
		}
		if p.Y.Sqrt(&y2); !p.IsInSubGroup() {
			return p
		}
	}
}

// points of order r: small multiples of the generator and large ones.
func (f *family[P]) some(n int, seed uint64) []P {
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	all := make([]P, n)
	for i := range all {
		k := new(big.Int).SetUint64(rng.Uint64())
		if i%2 == 0 {
			k.SetInt64(int64(i%16 + 1))
		}
		all[i] = f.mul(&f.generator, k)
	}
	return all
}

func fault(t testing.TB) driver.Ptr {
	return kerneltest.Put(t, bytes.Repeat([]byte{0xff}, points.FaultBytes))
}

func wantFault(t *testing.T, what string, word driver.Ptr, index uint64, want points.Fault) {
	t.Helper()
	gotIndex, got, found := points.FaultOf(kerneltest.Get[uint64](t, word, 1)[0])
	if got != want || found != (want != points.NoFault) || found && gotIndex != index {
		t.Errorf("%s: want fault %d at %d, got %d at %d", what, want, index, got, gotIndex)
	}
}

// Goal: points are decoded and encoded as engine/params does it, and refused for the same reasons with their index.
// Method: sizes around a block, in place and not, then one bad point of each kind.
func TestCodec(t *testing.T) {
	t.Run("g1", func(t *testing.T) { testCodec(t, g1()) })
	t.Run("g2", func(t *testing.T) { testCodec(t, g2()) })
}

func testCodec[P comparable](t *testing.T, f *family[P]) {
	p, s := open(t)
	for _, n := range []int{0, 1, 127, 128, 129} {
		all := f.some(n, 1)
		encoded := make([]byte, n*f.bytes)
		for i := range all {
			f.encode(encoded[i*f.bytes:], &all[i])
		}
		file, word := kerneltest.Put(t, encoded), fault(t)
		to := kerneltest.Memory(t, int64(n*f.bytes))
		check(t, p.Decode(s, f.group, file, to, 5, n, word), p.Decode(s, f.group, file, file, 5, n, word), s.Synchronize(t.Context()))
		wantFault(t, "good points", word, 0, points.NoFault)
		for _, at := range []driver.Ptr{to, file} {
			for i, got := range kerneltest.Get[P](t, at, n) {
				if got != all[i] {
					t.Fatalf("%d points: decoded %d: want %v, got %v", n, i, all[i], got)
				}
			}
		}
		if n > 0 { // infinity is encoded, though never decoded
			all[n-1] = *new(P)
			f.encode(encoded[(n-1)*f.bytes:], &all[n-1])
			kerneltest.Copy(t, to, all)
		}
		check(t, p.Encode(s, f.group, to, to, n), s.Synchronize(t.Context()))
		if got := kerneltest.Get[byte](t, to, n*f.bytes); !bytes.Equal(got, encoded) {
			t.Fatalf("%d points: encoded differently", n)
		}
	}

	good := f.some(1, 2)[0]
	raw := func(change func(b []byte)) []byte {
		b := make([]byte, f.bytes)
		f.encode(b, &good)
		change(b)
		return b
	}
	modulus := fp.Modulus().FillBytes(make([]byte, fp.Bytes))
	for _, c := range []struct {
		name string
		bad  []byte
		want points.Fault
	}{
		{"compressed", raw(func(b []byte) { b[0] |= 0x80 }), points.FlagsSet},
		{"sign", raw(func(b []byte) { b[0] |= 0x20 }), points.FlagsSet},
		{"infinity", raw(func(b []byte) { clear(b); b[0] = 0x40 }), points.Infinity},
		{"x = p", raw(func(b []byte) { copy(b, modulus) }), points.OutOfRange},
		{"y's last half = p", raw(func(b []byte) { copy(b[len(b)-fp.Bytes:], modulus) }), points.OutOfRange},
		{"x's last half = p", raw(func(b []byte) { copy(b[len(b)/2-fp.Bytes:], modulus) }), points.OutOfRange},
		{"y's first half = p + 1", raw(func(b []byte) { copy(b[len(b)/2:], modulus); b[len(b)/2+fp.Bytes-1]++ }), points.OutOfRange},
		{"zeros", raw(func(b []byte) { clear(b) }), points.ZeroBytes},
		{"another y", raw(func(b []byte) { b[len(b)-1] ^= 1 }), points.OffCurve},
		{"another order", raw(func(b []byte) { q := f.outside(0); f.encode(b, &q) }), points.NoFault},
	} {
		// The reference refuses it too, and the lowest index is the one that is told.
		if f.decode != nil {
			if err := f.decode(c.bad, new(P)); (err == nil) != (c.want == points.NoFault) {
				t.Errorf("%s: the reference says %v", c.name, err)
			}
		}
		file := make([]byte, 0, 200*f.bytes)
		for i := range 200 {
			if i == 77 || i == 150 {
				file = append(file, c.bad...)
			} else {
				file = append(file, raw(func([]byte) {})...)
			}
		}
		at, word := kerneltest.Put(t, file), fault(t)
		check(t, p.Decode(s, f.group, at, at, 1000, 200, word), s.Synchronize(t.Context()))
		wantFault(t, c.name, word, 1077, c.want)
	}
}

// Goal: a point of another order is found wherever it stands, infinity and good points pass. Method: each on its own,
// and by buckets with several sizes, where two bad points that cancel must show unless they meet in every round.
func TestOrder(t *testing.T) {
	for from := range uint64(2) {
		t.Run(fmt.Sprint("g1, x from ", from), func(t *testing.T) { testOrder(t, g1(), from) })
		t.Run(fmt.Sprint("g2, x from ", from), func(t *testing.T) { testOrder(t, g2(), from) })
	}
}

func testOrder[P comparable](t *testing.T, f *family[P], from uint64) {
	p, s := open(t)
	bad := f.outside(from)
	minus := f.mul(&bad, big.NewInt(-1))
	many := 70
	if kerneltest.Large() {
		many = 100_000
	}
	base := f.some(min(many, 64), 3)
	all := make([]P, many)
	for i := range all {
		all[i] = base[i%len(base)]
	}
	all[3] = *new(P)
	at := func(changes map[int]P) driver.Ptr {
		copied := append([]P(nil), all...)
		for i, q := range changes {
			copied[i] = q
		}
		return kerneltest.Put(t, copied)
	}
	for _, c := range []struct {
		name  string
		at    driver.Ptr
		index uint64
		want  points.Fault
		free  bool // may pass the buckets by luck
	}{
		{"good", at(nil), 0, points.NoFault, false},
		{"first", at(map[int]P{0: bad}), 0, points.OutsideOfGroup, false},
		{"last", at(map[int]P{many - 1: bad}), uint64(many - 1), points.OutsideOfGroup, false},
		{"two that cancel", at(map[int]P{20: bad, 41: minus}), 20, points.OutsideOfGroup, true},
	} {
		word := fault(t)
		check(t, p.Order(s, f.group, c.at, 50, many, word), s.Synchronize(t.Context()))
		wantFault(t, c.name, word, 50+c.index, c.want)

		const log, rounds = 4, 3
		scratch := kerneltest.Memory(t, points.CheckBytes(f.group, log, rounds))
		k, err := p.NewCheck(s, f.group, log, rounds, scratch, rand.Reader)
		check(t, err)
		half := many / 2
		check(t, k.Add(s, c.at, half), k.Add(s, c.at.Add(int64(half*f.bytes)), many-half), k.Add(s, c.at, 0))
		good, err := k.End(t.Context(), s)
		check(t, err)
		if want := c.want == points.NoFault; good != want && !(c.free && good) {
			t.Errorf("%s: by buckets: want %v, got %v", c.name, want, good)
		}
	}
}

// Goal: every point is dealt to exactly one bucket. Method: the sum of all buckets is the sum of all points, for sizes
// around powers of two, and it is another split each time.
func TestCheck_DealsEachOnce(t *testing.T) {
	f := g1()
	p, s := open(t)
	splits := map[string]bool{}
	for _, n := range []int{1, 2, 3, 15, 16, 17, 40} {
		all := f.some(n, uint64(n))
		var want bls.G1Jac
		for i := range all {
			want.AddMixed(&all[i])
		}
		const log = 3
		at := kerneltest.Put(t, all)
		for range 2 {
			scratch := kerneltest.Memory(t, points.CheckBytes(f.group, log, 1))
			k, err := p.NewCheck(s, f.group, log, 1, scratch, rand.Reader)
			check(t, err, k.Add(s, at, n), s.Synchronize(t.Context()))
			var got bls.G1Jac
			sums := kerneltest.Get[[4]fp.Element](t, scratch.Add(16), 1<<log)
			for _, q := range sums {
				if q[2].IsZero() {
					continue
				}
				var a bls.G1Affine
				a.X.Div(&q[0], &q[2])
				a.Y.Div(&q[1], &q[3])
				got.AddMixed(&a)
			}
			if !got.Equal(&want) {
				t.Fatalf("%d points: the buckets' sum is not the points'", n)
			}
			if n == 40 {
				splits[fmt.Sprint(sums)] = true
			}
		}
	}
	if len(splits) != 2 {
		t.Error("two checks deal 40 points alike")
	}
}

// scalars are the edges and random ones.
func scalars(n int) []fr.Element {
	rng := mathrand.New(mathrand.NewPCG(7, 7))
	all := make([]fr.Element, n)
	half := new(big.Int).Rsh(fr.Modulus(), 1)
	for i := range all {
		switch i % 16 {
		case 0, 1, 2:
			all[i].SetInt64(int64(i % 16))
		case 3, 4:
			all[i].SetInt64(-int64(i%16 - 2))
		case 5, 6, 7: // around half of the field, where the sign of a scalar turns
			all[i].SetBigInt(new(big.Int).Add(half, big.NewInt(int64(i%16-6))))
		case 8:
			all[i].SetBigInt(new(big.Int).Lsh(big.NewInt(1), uint(rng.IntN(255))))
		case 9:
			all[i].SetBigInt(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(rng.IntN(255))), big.NewInt(1)))
		default:
			for w := range 4 {
				all[i][w] = rng.Uint64()
			}
			all[i][3] >>= 2
		}
	}
	return all
}

// Goal: products of a fixed base are gnark-crypto's for several widths of a window, some of which divide 255. Method: edge scalars and random ones, counts
// around a batch and around a block, in both groups.
func TestBase(t *testing.T) {
	p, s := open(t)
	_, _, gen1, gen2 := bls.Generators()
	for _, c := range []struct {
		group            points.Group
		bits, batch, num int
	}{
		{points.G1, 4, 64, 65}, {points.G1, 5, 7, 16}, {points.G1, 6, 300, 300}, {points.G1, 8, 128, 257}, {points.G1, 15, 1, 1}, {points.G1, 4, 4, 0},
		{points.G2, 4, 20, 33}, {points.G2, 7, 64, 64},
	} {
		values := scalars(c.num)
		table := kerneltest.Memory(t, points.TableBytes(c.group, c.bits))
		scratch := kerneltest.Memory(t, points.BaseScratchBytes(c.group, c.bits, c.batch))
		at := kerneltest.Put(t, values)
		to := kerneltest.Memory(t, int64(c.num)*c.group.PointBytes())
		var b *points.Base
		var err error
		if c.group == points.G1 {
			b, err = p.NewBaseG1(s, &gen1, c.bits, table, scratch)
		} else {
			b, err = p.NewBaseG2(s, &gen2, c.bits, table, scratch)
		}
		check(t, err, b.Multiply(s, at, c.num, to, scratch, c.batch), s.Synchronize(t.Context()))
		name := fmt.Sprintf("%v, %d bits, %d scalars", c.group, c.bits, c.num)
		if c.group == points.G1 {
			wantProducts(t, name, values, kerneltest.Get[bls.G1Affine](t, to, c.num), g1())
		} else {
			wantProducts(t, name, values, kerneltest.Get[bls.G2Affine](t, to, c.num), g2())
		}
	}
}

func wantProducts[P comparable](t testing.TB, name string, values []fr.Element, got []P, f *family[P]) {
	t.Helper()
	for i := range values {
		if want := f.mul(&f.generator, values[i].BigInt(new(big.Int))); got[i] != want {
			t.Fatalf("%s: %d times %s: want %v, got %v", name, i, values[i].String(), want, got[i])
		}
	}
}

// Goal: powers of a scalar from any exponent on.
func TestPowers(t *testing.T) {
	p, s := open(t)
	var base, scale fr.Element
	base.SetUint64(12345)
	scale.SetInt64(-3)
	table := points.Squares(base)
	squares := kerneltest.Put(t, table[:])
	for _, c := range []struct {
		first uint32
		count int
	}{{0, 0}, {0, 1}, {0, 100}, {31, 33}, {1<<32 - 40, 40}} {
		to := kerneltest.Memory(t, int64(c.count)*fr.Bytes)
		check(t, p.Powers(s, squares, scale, c.first, c.count, to), s.Synchronize(t.Context()))
		for i, got := range kerneltest.Get[fr.Element](t, to, c.count) {
			var want fr.Element
			want.Exp(base, new(big.Int).SetUint64(uint64(c.first)+uint64(i))).Mul(&want, &scale)
			if got != want {
				t.Fatalf("exponent %d + %d: want %v, got %v", c.first, i, want.String(), got.String())
			}
		}
	}
}

// Goal: sizes that no launch can have are refused before anything is queued.
func TestRefuse(t *testing.T) {
	p, s := open(t)
	_, _, gen, _ := bls.Generators()
	_, short := p.NewBaseG1(s, &gen, 3, 0, 0)
	_, long := p.NewBaseG1(s, &gen, 25, 0, 0)
	_, none := p.NewCheck(s, points.G1, 0, 1, 0, rand.Reader)
	for name, err := range map[string]error{
		"a negative count": p.Decode(s, points.G1, 0, 0, 0, -1, 0), "too many": p.Encode(s, points.G2, 0, 0, 1<<31),
		"exponents": p.Powers(s, 0, fr.Element{}, 1<<32-5, 6, 0), "3 bits": short, "25 bits": long, "no buckets": none,
	} {
		if status.KindOf(err) != status.Internal {
			t.Errorf("%s: want a refusal, got %v", name, err)
		}
	}
}

// Goal: a plan grows with what it has and never passes it. Method: tables of all widths.
func TestBaseBits(t *testing.T) {
	for _, g := range []points.Group{points.G1, points.G2} {
		last := 0
		for shift := range 34 {
			bits := points.BaseBits(g, 1<<30, 1<<shift)
			if bits > 4 && points.TableBytes(g, bits) > 1<<shift {
				t.Errorf("%v: %d bits take %d bytes of 2^%d", g, bits, points.TableBytes(g, bits), shift)
			}
			if bits < last {
				t.Errorf("%v: %d bits for 2^%d bytes, %d for half", g, bits, shift, last)
			}
			last = bits
		}
		if few := points.BaseBits(g, 1, 1<<34); few > 5 {
			t.Errorf("%v: %d bits for one product", g, few)
		}
	}
}

// Goal: rates at full size. Method: 2^24 points; products, then their order by buckets and each, then encoded and decoded.
func BenchmarkPoints(b *testing.B) {
	kerneltest.NeedCard(b)
	for _, g := range []points.Group{points.G1, points.G2} {
		b.Run(g.String(), func(b *testing.B) { benchPoints(b, g) })
	}
}

func benchPoints(b *testing.B, g points.Group) {
	d := kerneltest.Open(b)
	p, s := open(b)
	count := 1 << 24
	batch, bits := points.BatchCount(d), points.BaseBits(g, 1<<29, 4<<30)
	const log, rounds = 17, 2
	table := kerneltest.Memory(b, points.TableBytes(g, bits))
	scratch := kerneltest.Memory(b, max(points.BaseScratchBytes(g, bits, batch), points.CheckBytes(g, log, rounds)))
	at, to := kerneltest.Memory(b, int64(count)*fr.Bytes), kerneltest.Memory(b, int64(count)*g.PointBytes())
	var tau, one fr.Element
	tau.SetUint64(1<<63 + 12345)
	one.SetOne()
	squares := points.Squares(tau)
	squaresAt, word := kerneltest.Put(b, squares[:]), fault(b)
	_, _, gen1, gen2 := bls.Generators()
	var base *points.Base
	var k *points.Check
	times := map[string]float32{}
	step := func(name string, f func() error) {
		begin, err := d.NewEvent(true)
		check(b, err)
		end, err := d.NewEvent(true)
		check(b, err, s.Record(begin), f(), s.Record(end), s.Synchronize(b.Context()))
		ms, err := end.Since(begin)
		check(b, err)
		if old, seen := times[name]; !seen || ms < old {
			times[name] = ms
		}
	}
	for range 3 {
		step("table", func() (err error) {
			if g == points.G1 {
				base, err = p.NewBaseG1(s, &gen1, bits, table, scratch)
			} else {
				base, err = p.NewBaseG2(s, &gen2, bits, table, scratch)
			}
			return err
		})
		step("powers", func() error { return p.Powers(s, squaresAt, one, 1, count, at) })
		step("multiply", func() error { return base.Multiply(s, at, count, to, scratch, batch) })
		step("buckets", func() (err error) {
			if k, err = p.NewCheck(s, g, log, rounds, scratch, rand.Reader); err != nil {
				return err
			}
			return k.Add(s, to, count)
		})
		step("sums", func() error {
			good, err := k.End(context.Background(), s)
			if err == nil && !good {
				return status.New(status.Internal, "bench", "", "good points", "bad ones")
			}
			return err
		})
		step("order", func() error { return p.Order(s, g, to, 0, count/4, word) })
		step("encode", func() error { return p.Encode(s, g, to, to, count) })
		step("decode", func() error { return p.Decode(s, g, to, to, 0, count, word) })
	}
	if index, f, found := points.FaultOf(kerneltest.Get[uint64](b, word, 1)[0]); found {
		b.Fatalf("fault %d at %d", f, index)
	}
	// The last product by exponents.
	exponent := new(fr.Element).Exp(tau, big.NewInt(int64(count)))
	last := to.Add(int64(count-1) * g.PointBytes())
	if g == points.G1 {
		wantProducts(b, "last", []fr.Element{*exponent}, kerneltest.Get[bls.G1Affine](b, last, 1), g1())
	} else {
		wantProducts(b, "last", []fr.Element{*exponent}, kerneltest.Get[bls.G2Affine](b, last, 1), g2())
	}
	additions := float64(count) * float64((255+bits-1)/bits-1)
	b.Logf("%v: %d bits, batch %d: %v ms", g, bits, batch, times)
	b.ReportMetric(additions/float64(times["multiply"])/1e6, "G-additions/s")
	b.ReportMetric(float64(rounds*count)/float64(times["buckets"])/1e6, "G-bucket-additions/s")
	b.ReportMetric(float64(count/4)/float64(times["order"])/1e3, "M-orders/s")
}
