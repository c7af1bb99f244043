package params

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// synthetic writes a parameter file with the counts and points of order r that mean nothing; the key is
// that of tiny-16.
func synthetic(t testing.TB, c Counts) string {
	t.Helper()
	const distinct = 1000
	scalars := make([]fr.Element, distinct)
	for i := range scalars {
		scalars[i].SetUint64(uint64(i)*0x9e3779b97f4a7c15 + 1)
	}
	_, _, g1, g2 := bls.Generators()
	var pool1 [distinct * G1Bytes]byte
	var pool2 [distinct * G2Bytes]byte
	for i, p := range bls.BatchScalarMultiplicationG1(&g1, scalars) {
		EncodeG1Uncompressed(pool1[i*G1Bytes:], &p)
	}
	for i, p := range bls.BatchScalarMultiplicationG2(&g2, scalars) {
		EncodeG2Uncompressed(pool2[i*G2Bytes:], &p)
	}
	path := filepath.Join(t.TempDir(), "x.params")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	w.Write(tinyParams(t, "tiny-16")[:VKBytes(3)])
	for b, n := range c.Blocks {
		binary.Write(w, binary.BigEndian, uint32(n))
		pool, size := pool1[:], G1Bytes
		if groth16.Block(b) == groth16.BlockB2 {
			pool, size = pool2[:], G2Bytes
		}
		for i := 0; i < n; i += distinct {
			w.Write(pool[:min(distinct, n-i)*size])
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallChecker checks by buckets what Check would check point by point.
func smallChecker(f *File, threads, bits, exactPoints int) *checker {
	return &checker{file: f, threads: threads, bucketBits: bits, rounds: bucketRounds, exactPoints: exactPoints}
}

// both runs the exact check and the bucket check, with one thread and with three.
func both(f *File) map[string]error {
	ctx := context.Background()
	_, exact := Check(ctx, f, CheckOptions{Exact: true, Threads: 3})
	return map[string]error{
		"exact":               exact,
		"buckets, 1 thread":   smallChecker(f, 1, 6, 0).run(ctx),
		"buckets, 3 threads":  smallChecker(f, 3, 8, 0).run(ctx),
		"one bucket for all":  smallChecker(f, 2, 0, 0).run(ctx),
		"b_g2 point by point": smallChecker(f, 2, 6, 100).run(ctx),
	}
}

// Goal: good files pass every way of checking.
func TestCheck_Good(t *testing.T) {
	for _, name := range tinyNames {
		for how, err := range both(mustOpen(t, vectors+"tiny/"+name+"/params.bin")) {
			if err != nil {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
}

// Goal: a point off the curve, on it but of another order, or at infinity is found and named, in each block, first,
// middle and last, by each way of checking.
func TestCheck_BadPoints(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	three, twist := orderThree(), twistPoint(t)
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		size := PointBytes(b)
		outside, offCurve, infinity := make([]byte, size), make([]byte, size), make([]byte, size)
		if b == groth16.BlockB2 {
			EncodeG2Uncompressed(outside, &twist)
		} else {
			EncodeG1Uncompressed(outside, &three)
		}
		offCurve[size-1] = 1 // (0, 1)
		infinity[0] = flagInfinity
		for _, i := range []int{0, counts.Blocks[b] / 2, counts.Blocks[b] - 1} {
			for part, point := range map[string][]byte{
				"want a point of order r, got one outside the subgroup": outside,
				"want a point on the curve, got one off the curve":      offCurve,
				"got the point at infinity":                             infinity,
			} {
				bad := bytes.Clone(data)
				copy(bad[int(counts.Offset(b))+i*size:], point)
				f := mustOpen(t, place(t, bad))
				for how, err := range both(f) {
					if err == nil {
						t.Fatalf("%s[%d], %s: passed with %s", b, i, how, part)
					}
					refused(t, err, fmt.Sprintf("%s: %s[%d] at byte", f.Path(), b, i), part)
				}
				f.Close()
			}
		}
	}
}

// Goal: of several bad points the first is named, whatever the threads do.
func TestCheck_First(t *testing.T) {
	f := mustOpen(t, synthetic(t, Counts{IC: 3, Blocks: [5]int{65535, 3, 3, 1, 1}}))
	file, err := os.OpenFile(f.Path(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	three := orderThree()
	var raw [G1Bytes]byte
	EncodeG1Uncompressed(raw[:], &three)
	for _, i := range []int{20001, 20002, 40000, 65534} {
		if _, err := file.WriteAt(raw[:], f.counts.Offset(groth16.BlockH)+int64(i)*G1Bytes); err != nil {
			t.Fatal(err)
		}
	}
	f = mustOpen(t, f.Path())
	for range 3 {
		// More bad points than a round may let cancel: 4 of order 3 in 256 buckets.
		refused(t, smallChecker(f, 4, 8, 0).run(context.Background()), "h[20001]")
	}
}

// Goal: bad points that cancel pass where they meet in one bucket, which is why buckets are many and random:
// the test that the bucket check would fail if it were not random.
func TestCheck_Cancelling(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	three := orderThree()
	at := counts.Offset(groth16.BlockL)
	EncodeG1Uncompressed(data[at:], &three)
	three.Y.Neg(&three.Y)
	EncodeG1Uncompressed(data[at+G1Bytes:], &three)
	f := mustOpen(t, place(t, data))
	if err := smallChecker(f, 1, 0, 0).run(context.Background()); err != nil {
		t.Errorf("in one bucket they cancel, got %v", err)
	}
	refused(t, smallChecker(f, 2, bucketBits, 0).run(context.Background()), "l[0]") // misses once in 2^32 runs
}

// Goal: bucket sums are the sums of their points, also where points meet in a batch, repeat or cancel.
// Method: few buckets and points of all orders, against the library's addition.
func TestBuckets(t *testing.T) {
	const threads, rounds, bits, n = 2, 2, 3, 3000
	f := mustOpen(t, vectors+"tiny/tiny-1024/params.bin")
	g1, g2 := make([]bls.G1Affine, n), make([]bls.G2Affine, n)
	if err := f.ReadG1(context.Background(), groth16.BlockH, 0, g1[:f.Len(groth16.BlockH)]); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadG2(context.Background(), 0, g2[:f.Len(groth16.BlockB2)]); err != nil {
		t.Fatal(err)
	}
	three, twist := orderThree(), twistPoint(t)
	choice := make([]uint16, n)
	c := smallChecker(f, 1, bits, 0)
	c.choose(0, chunk{}, choice)
	for i := range n {
		if i >= f.Len(groth16.BlockH) {
			g1[i] = g1[i%50]
			if i%3 == 0 {
				g1[i].Neg(&g1[i])
			}
		}
		if i >= f.Len(groth16.BlockB2) {
			g2[i] = g2[i%50]
			if i%3 == 0 {
				g2[i].Neg(&g2[i])
			}
		}
		if i%100 == 7 {
			g1[i], g2[i] = three, twist
		}
	}
	kind1, kind2 := lanes.G1()[0], lanes.G2()[0]
	arena, err := host.NewArena(bucketBytes(kind1, threads, rounds, bits) + bucketBytes(kind2, threads, rounds, bits))
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	b1, b2 := newBuckets(arena, kind1, threads, rounds, bits)[1], newBuckets(arena, kind2, threads, rounds, bits)[1]
	for from := 0; from < n; from += 700 {
		to := min(from+700, n)
		b1.load(g1[from:to])
		b2.load(g2[from:to])
		b1.add(1, choice[from:to])
		b2.add(1, choice[from:to])
	}
	for j := range 1 << bits {
		var want1 bls.G1Jac
		var want2 bls.G2Jac
		for i := range n {
			if int(choice[i]) == j {
				want1.AddMixed(&g1[i])
				want2.AddMixed(&g2[i])
			}
		}
		var a1 bls.G1Affine
		var a2 bls.G2Affine
		a1.FromJacobian(&want1)
		a2.FromJacobian(&want2)
		if a1 != b1.sum(1, j) || a2 != b2.sum(1, j) {
			t.Errorf("bucket %d: another sum", j)
		}
	}
	// Opposite and equal points one by one.
	p := g1[0]
	var minus bls.G1Affine
	minus.Neg(&p)
	for _, c := range []struct {
		points []bls.G1Affine
		want   bls.G1Affine
	}{{[]bls.G1Affine{p, minus}, bls.G1Affine{}}, {[]bls.G1Affine{p, minus, p}, p}, {[]bls.G1Affine{p, p, minus}, p}} {
		b1.store.Clear(b1.first+5, b1.first+6)
		for i := range c.points {
			b1.load(c.points[i : i+1])
			b1.add(0, []uint16{5})
		}
		if b1.sum(0, 5) != c.want {
			t.Errorf("%d points: another sum", len(c.points))
		}
	}
}

// Goal: the buckets cannot be foreseen, differ by round and place, and fill evenly.
func TestChoose(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-16/params.bin")
	draw := func(c *checker, round int, at chunk) []uint16 {
		out := make([]uint16, readChunk)
		c.choose(round, at, out)
		return out
	}
	a, b := smallChecker(f, 1, 16, 0), smallChecker(f, 1, 16, 0)
	if err := a.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := b.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	first := draw(a, 0, chunk{})
	same := func(other []uint16) (n int) {
		for i := range first {
			if first[i] == other[i] {
				n++
			}
		}
		return n
	}
	if n := same(draw(a, 0, chunk{})); n != readChunk {
		t.Errorf("asked twice, %d of %d are equal", n, readChunk)
	}
	for name, other := range map[string][]uint16{
		"another run": draw(b, 0, chunk{}), "another round": draw(a, 1, chunk{}),
		"another block": draw(a, 0, chunk{block: 1}), "another place": draw(a, 0, chunk{from: readChunk}),
	} {
		if n := same(other); n > 10 { // 1/16 expected
			t.Errorf("%s: %d of %d are equal", name, n, readChunk)
		}
	}
	var low, high int
	for _, j := range first {
		if j < 1<<15 {
			low++
		} else {
			high++
		}
	}
	if low < 1800 || high < 1800 { // 2048 expected, 32 the deviation
		t.Errorf("uneven: %d below the middle, %d above", low, high)
	}
}

// Goal: progress never falls and ends at 1; a cancelled check stops; the report says what was done.
func TestCheck_Options(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-1024/params.bin")
	var last float64
	progress := func(done float64) {
		if done < last {
			t.Errorf("progress falls from %v to %v", last, done)
		}
		last = done
	}
	report, err := Check(context.Background(), f, CheckOptions{Threads: 3, Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	points := int64(0)
	for _, n := range f.Counts().Blocks {
		points += int64(n)
	}
	if last != 1 || report.Points != points || !report.Exact || report.Rounds != 0 || report.Cached {
		t.Errorf("progress ends at %v, report %+v", last, *report)
	}
	last = 0
	c := smallChecker(f, 2, 8, 0)
	c.progress = progress
	if err := c.run(context.Background()); err != nil || last != 1 {
		t.Errorf("%v, progress ends at %v", err, last)
	}
	for _, exactPoints := range []int{0, 1 << 20} {
		ctx, cancel := context.WithCancel(context.Background())
		c := smallChecker(f, 2, 8, exactPoints)
		c.progress = func(float64) { cancel() }
		if err := c.run(ctx); status.KindOf(err) != status.Cancelled {
			t.Errorf("want cancelled, got %v", err)
		}
	}
}

// Goal: a good verdict stands for the same state of the same file and the same question, across processes
// where the directory can be written, and for nothing else.
func TestVerdicts(t *testing.T) {
	ctx := context.Background()
	path := place(t, tinyParams(t, "tiny-16"))
	dir := t.TempDir()
	check := func(v *Verdicts, exact bool) bool {
		t.Helper()
		report, err := Check(ctx, mustOpen(t, path), CheckOptions{Verdicts: v, Exact: exact})
		if err != nil {
			t.Fatal(err)
		}
		return report.Cached
	}
	settled := func(dir string) *Verdicts {
		v := NewVerdicts(dir)
		v.now = func() time.Time { return time.Now().Add(time.Hour) }
		return v
	}
	v := settled(dir)
	if check(v, false) || !check(v, false) {
		t.Error("want a check, then its verdict")
	}
	if check(v, true) {
		t.Error("a check by buckets stands for an exact one")
	}
	if !check(settled(dir), false) || !check(settled(dir), true) {
		t.Error("another process finds no verdict")
	}
	if check(settled(t.TempDir()), false) || check(nil, false) {
		t.Error("a verdict out of nowhere")
	}
	// Changed content, changed times.
	if err := os.Chtimes(path, time.Now(), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if check(settled(dir), false) {
		t.Error("the verdict of another state of the file")
	}
	// Damaged verdicts count as none.
	entries, err := os.ReadDir(filepath.Join(dir, "params-checks"))
	if err != nil || len(entries) != 3 {
		t.Fatalf("want 3 verdicts, got %v, %v", entries, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("a temporary file is left: %s", e.Name())
		}
		if err := os.WriteFile(filepath.Join(dir, "params-checks", e.Name()), []byte(`{"version":1,"key":"x"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if check(settled(dir), false) {
		t.Error("a verdict with another key is believed")
	}
	// Nor is anything else waited for or believed that lies in a verdict's place.
	for i, e := range entries {
		at := filepath.Join(dir, "params-checks", e.Name())
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		err := [...]func() error{
			func() error { return syscall.Mkfifo(at, 0o600) },
			func() error { return os.Symlink("/dev/zero", at) },
			func() error { return os.Mkdir(at, 0o700) },
		}[i]()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what can be replaced is replaced; the names are hashes, so which is which is not known here
		check(settled(dir), false)
		check(settled(dir), true)
	}
	// A directory that cannot be made: in memory.
	v = settled(filepath.Join(path, "below a file"))
	if check(v, false) || !check(v, false) || check(settled(v.dir), false) {
		t.Error("want the verdict in memory only")
	}
	// A file that was changed just now may change again unseen.
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	v = NewVerdicts("")
	if check(v, false) || check(v, false) {
		t.Error("a verdict on a file that was changed just now is kept")
	}
	// A failed check leaves none.
	bad := tinyParams(t, "tiny-16")
	bad[len(bad)-1] ^= 1
	path = place(t, bad)
	v = settled("")
	for range 2 {
		if _, err := Check(ctx, mustOpen(t, path), CheckOptions{Verdicts: v}); err == nil {
			t.Error("a bad file passes")
		}
	}
}

// FuzzVerdict: only a file that states the very question and state is believed.
func FuzzVerdict(f *testing.F) {
	const key = "order\nino=4711"
	f.Add([]byte(`{"version":1,"key":"order\nino=4711"}`))
	f.Add([]byte(`{"version":2,"key":"order\nino=4711"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if goodVerdict(data, key) && !bytes.Contains(data, []byte("4711")) && !bytes.Contains(data, []byte(`\u003`)) {
			t.Fatalf("believed: %q", data)
		}
	})
}

var benchPoints = flag.Int("params.points", 1<<15-1, "points of h (2^k - 1) in benchmarks of parameter files; the other blocks have the proportions of the 2 KiB circuit")

// benchFile has the proportions of porep-2k: h 4 194 303, l 2 685 673, a 2 674 948, b 685 522.
func benchFile(b *testing.B) *File {
	part := func(n int) int { return max(3, n*(*benchPoints+1)/(1<<22)) }
	f := mustOpen(b, synthetic(b, Counts{IC: 3, Blocks: [5]int{*benchPoints, part(2685673), part(2674948), part(685522), part(685522)}}))
	return f
}

// mulNs measures one multiplication in fp, the unit of the floors below: the best of many short runs, since
// other work on the machine only adds.
func mulNs() float64 {
	var x fp.Element
	x.SetUint64(3)
	const n = 1 << 12
	best := time.Hour
	for range 500 {
		start := time.Now()
		for range n {
			x.Mul(&x, &toMontgomery)
		}
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / n
}

// cpuMeter measures CPU time of the process: it bears other work on the machine better than wall time.
type cpuMeter int64

func cpuNs() cpuMeter {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return cpuMeter(u.Utime.Nano() + u.Stime.Nano())
}

// report compares the CPU time since start with a floor in multiplications.
func (start cpuMeter) report(b *testing.B, units int, unit string, floor float64) {
	ns := float64(cpuNs()-start) / float64(b.N*units)
	b.ReportMetric(ns, "cpu-ns/"+unit)
	if floor > 0 {
		b.ReportMetric(floor, "floor-ns/"+unit)
		b.ReportMetric(ns/floor, "x-floor")
	}
}

// BenchmarkRead: floor 5 multiplications a point on G1 (2 conversions, x^3, y^2), 11 on G2 (4 conversions, a
// square is 2 and a product 3).
func BenchmarkRead(b *testing.B) {
	f := benchFile(b)
	ctx := context.Background()
	mul := mulNs()
	b.Run("g1", func(b *testing.B) {
		dst := make([]bls.G1Affine, f.Len(groth16.BlockH))
		b.SetBytes(int64(len(dst)) * G1Bytes)
		start := cpuNs()
		for b.Loop() {
			if err := f.ReadG1(ctx, groth16.BlockH, 0, dst); err != nil {
				b.Fatal(err)
			}
		}
		start.report(b, len(dst), "point", 5*mul)
	})
	b.Run("g2", func(b *testing.B) {
		dst := make([]bls.G2Affine, f.Len(groth16.BlockB2))
		b.SetBytes(int64(len(dst)) * G2Bytes)
		start := cpuNs()
		for b.Loop() {
			if err := f.ReadG2(ctx, 0, dst); err != nil {
				b.Fatal(err)
			}
		}
		start.report(b, len(dst), "point", 11*mul)
	})
}

// BenchmarkBuckets is one addition of one round. Floor: 6 multiplications on G1, 17 on G2 (5 products of
// 3, one square of 2; 3 of the products are the share in the inversion).
func BenchmarkBuckets(b *testing.B) {
	f := benchFile(b)
	ctx := context.Background()
	mul := mulNs()
	c := smallChecker(f, 1, bucketBits, 0)
	var choice [readChunk]uint16
	kind1, kind2 := lanes.G1()[0], lanes.G2()[0]
	arena, err := host.NewArena(bucketBytes(kind1, 1, 1, bucketBits) + bucketBytes(kind2, 1, 1, bucketBits))
	if err != nil {
		b.Fatal(err)
	}
	defer arena.Close()
	b.Run("g1", func(b *testing.B) {
		points := make([]bls.G1Affine, min(readChunk, f.Len(groth16.BlockL)))
		if err := f.ReadG1(ctx, groth16.BlockL, 0, points); err != nil {
			b.Fatal(err)
		}
		buckets := newBuckets(arena, kind1, 1, 1, bucketBits)[0]
		n, start := 0, cpuNs()
		for b.Loop() {
			c.choose(0, chunk{from: n}, choice[:len(points)])
			buckets.load(points)
			buckets.add(0, choice[:len(points)])
			n++
		}
		start.report(b, len(points), "addition", 6*mul)
	})
	b.Run("g2", func(b *testing.B) {
		points := make([]bls.G2Affine, min(readChunk, f.Len(groth16.BlockB2)))
		if err := f.ReadG2(ctx, 0, points); err != nil {
			b.Fatal(err)
		}
		buckets := newBuckets(arena, kind2, 1, 1, bucketBits)[0]
		n, start := 0, cpuNs()
		for b.Loop() {
			c.choose(0, chunk{from: n}, choice[:len(points)])
			buckets.load(points)
			buckets.add(0, choice[:len(points)])
			n++
		}
		start.report(b, len(points), "addition", 17*mul)
	})
}

// BenchmarkCheck checks a whole file by buckets with two threads. -params.points=4194303 is the 2 KiB file.
func BenchmarkCheck(b *testing.B) {
	f := benchFile(b)
	points := 0
	for _, n := range f.Counts().Blocks {
		points += n
	}
	b.SetBytes(f.Identity().Size)
	start := cpuNs()
	for b.Loop() {
		if err := smallChecker(f, 2, bucketBits, 0).run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	start.report(b, points, "point", 0)
}

// BenchmarkDigest hashes a whole file three times over, side by side.
func BenchmarkDigest(b *testing.B) {
	f := benchFile(b)
	b.SetBytes(f.Identity().Size)
	for b.Loop() {
		if _, err := f.Digest(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
