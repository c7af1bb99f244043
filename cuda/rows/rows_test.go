package rows

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
)

var _ = kerneltest.Only("rows")

// rig is a program's tables and its witness on the test's device.
type rig struct {
	s       *driver.Stream
	rows    *Rows
	program *circuit.Program
	witness *circuit.Witness
	tables  *Tables
	image   driver.Ptr
	on      Witness
	to      Vectors
	failed  driver.Ptr
	log     int
}

func newRig(tb testing.TB, p *circuit.Program, w *circuit.Witness) *rig {
	tb.Helper()
	r := &rig{s: kerneltest.Stream(tb), program: p, witness: w, log: bits.TrailingZeros(uint(p.Domain()))}
	var err error
	if r.rows, err = New(kerneltest.Find); err != nil {
		tb.Fatal(err)
	}
	var image []byte
	if r.tables, image, err = Build(p); err != nil {
		tb.Fatal(err)
	}
	r.image, r.failed = kerneltest.Put(tb, image), kerneltest.Put(tb, []uint32{0})
	r.on = Witness{Bits: kerneltest.Put(tb, w.Bits.Words), Nums: kerneltest.Put(tb, w.Nums), Inputs: kerneltest.Put(tb, w.Inputs)}
	size := int64(p.Domain()) * fr.Bytes
	r.to = Vectors{kerneltest.Memory(tb, size), kerneltest.Memory(tb, size), kerneltest.Memory(tb, size)}
	r.spoil(tb)
	return r
}

// spoil overwrites the vectors, so that a place that is not written shows.
func (r *rig) spoil(tb testing.TB) {
	tb.Helper()
	for _, v := range []driver.Ptr{r.to.A, r.to.B, r.to.C} {
		if err := r.s.Fill32(v, 0xdeadbeef, int64(r.program.Domain())*fr.Bytes/4); err != nil {
			tb.Fatal(err)
		}
	}
	if err := r.s.Synchronize(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// evaluate runs the kernels into to and returns the status.
func (r *rig) evaluate(tb testing.TB, to Vectors) uint32 {
	tb.Helper()
	err := errors.Join(r.rows.Clear(r.s, r.failed), r.rows.Evaluate(r.s, r.tables, r.image, r.on, to, r.log, r.failed), r.s.Synchronize(context.Background()))
	if err != nil {
		tb.Fatal(err)
	}
	return kerneltest.Get[uint32](tb, r.failed, 1)[0]
}

// compare wants the vectors on the device to be what the CPU evaluates.
func (r *rig) compare(tb testing.TB) {
	tb.Helper()
	n := r.program.Domain()
	var want [3][]fr.Element
	for i := range want {
		want[i] = make([]fr.Element, n)
	}
	if err := r.program.Evaluate(context.Background(), r.witness, want[0], want[1], want[2], runtime.NumCPU()); err != nil {
		tb.Fatal(err)
	}
	r.compareWith(tb, want)
}

func (r *rig) compareWith(tb testing.TB, want [3][]fr.Element) {
	tb.Helper()
	got := make([]fr.Element, len(want[0]))
	for i, v := range []driver.Ptr{r.to.A, r.to.B, r.to.C} {
		kerneltest.GetInto(tb, v, got)
		for row := range want[i] {
			if got[row] != want[i][row] {
				tb.Fatalf("%c[%d]: want %s, got %s", 'a'+i, row, want[i][row].String(), got[row].String())
			}
		}
	}
}

// randomProgram makes rows of every sort over random variables, all satisfied: a sum s of bits and constants with small
// coefficients as s * 1 = s; sums of anything as a * b = c, c an own variable; with few terms, many, and none.
func randomProgram(tb testing.TB, rng *rand.Rand, rows int) (*circuit.Program, *circuit.Witness) {
	tb.Helper()
	const inputs = 5
	w := &circuit.Witness{Inputs: make([]fr.Element, inputs)}
	w.Inputs[0] = fr.One()
	for i := 1; i < inputs; i++ {
		w.Inputs[i] = randomElement(rng)
	}
	isBit := make([]bool, 200, 200+rows)
	values := make([]fr.Element, 200, 200+rows)
	for i := range isBit {
		if isBit[i] = i%4 != 3; isBit[i] {
			values[i].SetUint64(rng.Uint64N(2))
		} else {
			values[i] = randomElement(rng)
		}
	}
	free := len(isBit)
	var constraints []circuit.Constraint
	value := func(terms []circuit.Term) (sum fr.Element) {
		for _, t := range terms {
			v := w.Inputs
			if t.Key.IsAux() {
				v = values
			}
			var x fr.Element
			x.Mul(&v[t.Key.Index()], &t.Coeff)
			sum.Add(&sum, &x)
		}
		return sum
	}
	bitSum := func(count, limit int) (terms []circuit.Term) {
		for range count {
			t := circuit.Term{Key: circuit.InputKey(0)}
			if i := rng.IntN(free); isBit[i] {
				t.Key = circuit.AuxKey(i)
			}
			t.Coeff.SetInt64(rng.Int64N(int64(2*limit)) - int64(limit))
			terms = append(terms, t)
		}
		return terms
	}
	anySum := func(count int) (terms []circuit.Term) {
		for range count {
			t := circuit.Term{Key: circuit.AuxKey(rng.IntN(free)), Coeff: randomElement(rng)}
			switch rng.IntN(8) {
			case 0:
				t.Key = circuit.InputKey(rng.IntN(inputs))
			case 1:
				t.Coeff.SetOne()
			case 2:
				t.Coeff.SetInt64(-1)
			case 3:
				t.Coeff = minusOne() // of Montgomery form r - 1
			}
			terms = append(terms, t)
		}
		return terms
	}
	constant := []circuit.Term{{Key: circuit.InputKey(0), Coeff: fr.One()}}
	for i := range rows {
		switch i % 5 {
		case 0:
			s := bitSum(rng.IntN(7), 3)
			constraints = append(constraints, circuit.Constraint{A: s, B: constant, C: s})
		case 1: // sums beyond the table of small values
			s := bitSum(64, 1<<15)
			constraints = append(constraints, circuit.Constraint{A: s, B: constant, C: s})
		case 2: // a bit is 0 or 1
			x := circuit.Term{Key: circuit.AuxKey(rng.IntN(free/4) * 4), Coeff: fr.One()}
			not := append([]circuit.Term{{Key: x.Key}}, constant...)
			not[0].Coeff.SetInt64(-1)
			constraints = append(constraints, circuit.Constraint{A: not, B: []circuit.Term{x}})
		default:
			a, b := anySum(rng.IntN(4)), anySum(rng.IntN(4))
			if i%5 == 4 {
				a = anySum(rng.IntN(200))
			}
			va, vb := value(a), value(b)
			va.Mul(&va, &vb)
			isBit, values = append(isBit, false), append(values, va)
			constraints = append(constraints, circuit.Constraint{A: a, B: b, C: []circuit.Term{{Key: circuit.AuxKey(len(isBit) - 1), Coeff: fr.One()}}})
		}
	}
	p, err := circuit.FromR1CS("random", inputs, isBit, constraints)
	if err != nil {
		tb.Fatal(err)
	}
	w.Bits = circuit.NewBits(len(isBit))
	for i := range isBit {
		if !isBit[i] {
			w.Nums = append(w.Nums, values[i])
		} else if values[i].IsOne() {
			w.Bits.Set(i)
		}
	}
	return p, w
}

func randomElement(rng *rand.Rand) fr.Element {
	return fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
}

// minusOne is the element whose Montgomery form is r - 1, the largest.
func minusOne() (x fr.Element) {
	m := fr.Modulus().Bits()
	for i := range x {
		x[i] = uint64(m[i])
	}
	x[0]--
	return x
}

// Goal: rows of every sort have the CPU's values, at their places, and the domain's rest is written.
func TestEvaluate_Random(t *testing.T) {
	for seed, rows := range []int{0, 1, 3, 60, 500, 1019, 1020} {
		p, w := randomProgram(t, rand.New(rand.NewPCG(uint64(seed), 1)), rows)
		r := newRig(t, p, w)
		if failed := r.evaluate(t, r.to); failed != None {
			t.Fatalf("%d rows: row %d fails", rows, failed)
		}
		r.compare(t)
		r.separately(t)
		r.compare(t)
	}
}

// separately evaluates each vector on its own, two of them without a check.
func (r *rig) separately(tb testing.TB) {
	tb.Helper()
	r.spoil(tb)
	err := r.rows.Clear(r.s, r.failed)
	for _, part := range []struct {
		to     Vectors
		failed driver.Ptr
	}{{Vectors{A: r.to.A}, 0}, {Vectors{B: r.to.B}, r.failed}, {Vectors{C: r.to.C}, 0}} {
		err = errors.Join(err, r.rows.Evaluate(r.s, r.tables, r.image, r.on, part.to, r.log, part.failed))
	}
	if err = errors.Join(err, r.s.Synchronize(context.Background())); err != nil {
		tb.Fatal(err)
	}
	if failed := kerneltest.Get[uint32](tb, r.failed, 1)[0]; failed != None {
		tb.Fatalf("row %d fails", failed)
	}
}

// Goal: the lowest row that does not hold is found, whichever kernel has it, with and without values.
func TestEvaluate_Fails(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	p, w := randomProgram(t, rng, 300)
	for range 12 {
		broken := *w
		broken.Nums = append([]fr.Element(nil), w.Nums...)
		broken.Nums[50+rng.IntN(len(w.Nums)-50)].SetUint64(77) // the first 50 stand in many rows
		if rng.IntN(2) == 0 {
			broken.Nums[len(w.Nums)-1-rng.IntN(4)].SetUint64(77)
		}
		want := uint32(None)
		for row := p.ConstraintCount() - 1; row >= 0; row-- {
			if err := p.RowError(&broken, row); err != nil {
				want = uint32(row)
			}
		}
		if want == None {
			t.Fatal("the test changes nothing")
		}
		r := newRig(t, p, &broken)
		if got := r.evaluate(t, Vectors{}); got != want {
			t.Fatalf("check: want row %d, got %d", want, got)
		}
		for _, to := range []Vectors{r.to, {B: r.to.B}} {
			if got := r.evaluate(t, to); got != want {
				t.Fatalf("evaluate %+v: want row %d, got %d", to, want, got)
			}
		}
	}
}

// sector is a program and the witness of the first partition of a synthetic sector.
func sector(tb testing.TB, size string) (*circuit.Program, *circuit.Witness) {
	tb.Helper()
	shape, err := porep.ShapeByName(size)
	if err != nil {
		tb.Fatal(err)
	}
	threads := runtime.NumCPU()
	made, err := synthetic.Make(context.Background(), synthetic.Options{Shape: shape, Version: porep.V1_1, Seed: 1, Partitions: 1, Threads: threads})
	if err != nil {
		tb.Fatal(err)
	}
	in, err := porep.CircuitInputs(&made.Output.Statement, made.Output.Partitions[0])
	if err != nil {
		tb.Fatal(err)
	}
	p := porep.Program(shape)
	w := &circuit.Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
	if err := p.Expand(context.Background(), in, w, threads); err != nil {
		tb.Fatal(err)
	}
	return p, w
}

// Goal: a real circuit, with external wires and many instances, has the CPU's values, also vector by vector; a bit that is wrong is found.
func TestEvaluate_Sector(t *testing.T) {
	p, w := sector(t, "2KiB")
	r := newRig(t, p, w)
	if failed := r.evaluate(t, r.to); failed != None {
		t.Fatalf("row %d fails: %v", failed, p.RowError(w, int(failed)))
	}
	r.compare(t)
	r.separately(t)
	r.compare(t)
	const wrong = 1 << 20
	word := w.Bits.Words[wrong/64] ^ 1<<(wrong%64)
	kerneltest.Copy(t, r.on.Bits.Add(wrong/8), []uint64{word})
	w.Bits.Words[wrong/64] = word
	failed := r.evaluate(t, Vectors{})
	if failed == None || status.KindOf(p.RowError(w, int(failed))) != status.Unsatisfied {
		t.Fatalf("want a row that does not hold, got %d", failed)
	}
}

// Goal: rows made elsewhere are checked, all of them, and put at their places, whatever the chunks.
func TestTake(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	s := kerneltest.Stream(t)
	rows, err := New(kerneltest.Find)
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 2, 100, 512, 700} {
		r := &rig{s: s, rows: rows, log: bits.Len(uint(count - 1))}
		n := 1 << r.log
		var v, want [3][]fr.Element
		for i := range v {
			v[i], want[i] = make([]fr.Element, count), make([]fr.Element, n)
		}
		for i := range count {
			v[0][i], v[1][i] = randomElement(rng), randomElement(rng)
			v[2][i].Mul(&v[0][i], &v[1][i])
		}
		for i := range v {
			copy(want[i], v[i])
		}
		r.failed = kerneltest.Put(t, []uint32{0})
		r.to = Vectors{kerneltest.Memory(t, int64(n)*fr.Bytes), kerneltest.Memory(t, int64(n)*fr.Bytes), kerneltest.Memory(t, int64(n)*fr.Bytes)}
		run := func(to Vectors) uint32 {
			t.Helper()
			from := Vectors{kerneltest.Put(t, v[0]), kerneltest.Put(t, v[1]), kerneltest.Put(t, v[2])}
			err := rows.Clear(s, r.failed)
			for first := 0; first < count && err == nil; first += 300 {
				at := Vectors{from.A.Add(int64(first) * fr.Bytes), from.B.Add(int64(first) * fr.Bytes), from.C.Add(int64(first) * fr.Bytes)}
				err = rows.Take(s, at, int64(first), int64(min(300, count-first)), to, r.log, r.failed)
			}
			if to.A != 0 {
				err = errors.Join(err, rows.Zeros(s, int64(count), to, r.log))
			}
			if err = errors.Join(err, s.Synchronize(context.Background())); err != nil {
				t.Fatal(err)
			}
			return kerneltest.Get[uint32](t, r.failed, 1)[0]
		}
		if failed := run(r.to); failed != None {
			t.Fatalf("%d rows: row %d fails", count, failed)
		}
		r.compareWith(t, want)
		for i, at := range []driver.Ptr{r.to.A, r.to.B, r.to.C} { // each on its own, the others not there
			var from, to Vectors
			*[]*driver.Ptr{&from.A, &from.B, &from.C}[i] = kerneltest.Put(t, v[i])
			*[]*driver.Ptr{&to.A, &to.B, &to.C}[i] = at
			if err := errors.Join(s.Fill32(at, 0xdeadbeef, int64(n)*fr.Bytes/4), rows.Take(s, from, 0, int64(count), to, r.log, 0),
				rows.Zeros(s, int64(count), to, r.log), s.Synchronize(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
		r.compareWith(t, want)
		wrong, other := rng.IntN(count), rng.IntN(count)
		v[2][wrong] = randomElement(rng)
		for i := range v { // a number that is right but for being r too large
			v[i][other] = fr.Element{}
		}
		v[0][other] = minusOne()
		v[0][other][0]++
		if failed := run(Vectors{}); failed != uint32(min(wrong, other)) {
			t.Fatalf("%d rows: want row %d to fail, got %d", count, min(wrong, other), failed)
		}
	}
}

// Goal: domains that do not hold the rows are refused by value.
func TestRows_Refused(t *testing.T) {
	p, w := randomProgram(t, rand.New(rand.NewPCG(1, 1)), 100)
	r := newRig(t, p, w)
	for _, err := range []error{
		r.rows.Evaluate(r.s, r.tables, r.image, r.on, r.to, r.log-1, r.failed),
		r.rows.Take(r.s, r.to, 10, 7, r.to, 4, r.failed),
		r.rows.Zeros(r.s, 17, r.to, 4),
		r.rows.Zeros(r.s, 0, r.to, MaxLog+1),
	} {
		if status.KindOf(err) != status.Internal {
			t.Fatalf("want an internal error, got %v", err)
		}
	}
}

// Goal: this package's numbers are the kernels'.
func TestTuning(t *testing.T) {
	text, err := os.ReadFile("../kernels/tuning/rows.cuh")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"rows_block": blockThreads, "rows_lanes": longLanes, "rows_values": smallValues} {
		m := regexp.MustCompile(name + ` = (\d+);`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s: not in the file", name)
		}
		if got, err := strconv.Atoi(string(m[1])); err != nil || got != want {
			t.Fatalf("%s: want %d, got %s", name, want, m[1])
		}
	}
}
