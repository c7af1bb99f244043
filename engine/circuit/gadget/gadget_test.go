package gadget

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/poseidon"
	"github.com/sealc2/sealc2/engine/status"
)

// run records a circuit, expands it and checks its rows; what the circuit makes public is in the result's Inputs
// after the one.
func run(t testing.TB, in circuit.Inputs, record func(r *circuit.Recorder)) (*circuit.Program, *circuit.Witness) {
	t.Helper()
	r := circuit.NewRecorder("test")
	record(r)
	p := r.Finish()
	w := &circuit.Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
	if err := p.Expand(context.Background(), &in, w, 2); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(context.Background(), w, 2); err != nil {
		t.Fatal(err)
	}
	return p, w
}

func random(n int, seed uint64) []fr.Element {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]fr.Element, n)
	for i := range out {
		var b [64]byte
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		out[i].SetBytes(b[:])
	}
	return out
}

// publicBits makes the bits public, packed into as few numbers as hold them.
func publicBits(r *circuit.Recorder, bits []circuit.Bit) {
	for i := 0; i < len(bits); i += 64 {
		PackInput(r, bits[i:min(i+64, len(bits))])
	}
}

func TestSha256_EqualsNative(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, length := range []int{0, 1, 8, 55, 56, 63, 64, 65, 119, 200} {
		// Every third byte is a constant of the circuit, so that words mix constants and variables.
		message := make([]byte, length)
		var in circuit.Inputs
		for i := range message {
			message[i] = byte(rng.Uint32())
			if i%3 != 0 {
				in.Words = append(in.Words, uint64(message[i]))
			}
		}
		_, w := run(t, in, func(r *circuit.Recorder) {
			var bits []circuit.Bit
			for i, b := range message {
				if i%3 != 0 {
					bits = append(bits, reversed(AllocBits(r, 8))...)
					continue
				}
				for k := 7; k >= 0; k-- {
					bits = append(bits, circuit.Constant(b>>k&1 == 1))
				}
			}
			publicBits(r, ByteOrder(Sha256(r, bits)))
		})
		want := sha256.Sum256(message)
		for i := range 4 {
			limb := w.Inputs[1+i].Uint64()
			for k := range 8 {
				if byte(limb>>(8*k)) != want[8*i+k] {
					t.Fatalf("length %d: limb %d of the digest is %x, want %x", length, i, limb, want)
				}
			}
		}
	}
}

// Rows of a hash, as neptune's own tests state them for the legacy circuit.
var poseidonRows = map[int]int{2: 311, 4: 377, 8: 505}

func TestPoseidon_EqualsNative(t *testing.T) {
	for _, arity := range []int{1, 2, 3, 4, 8, 11} {
		in := random(arity, uint64(arity))
		p, w := run(t, circuit.Inputs{Fields: in}, func(r *circuit.Recorder) {
			Inputize(r, Poseidon(r, AllocNums(r, arity)))
		})
		if want := poseidon.Hash(in); w.Inputs[1] != want {
			t.Errorf("arity %d: got %v, want %v", arity, w.Inputs[1], want)
		}
		if want, ok := poseidonRows[arity]; ok && p.ConstraintCount()-1 != want {
			t.Errorf("arity %d: %d rows, want %d", arity, p.ConstraintCount()-1, want)
		}
	}
}

func TestPathLevel_InsertsAtEachPosition(t *testing.T) {
	rows := map[int]int{2: 2, 4: 8, 8: 22}
	for _, arity := range []int{2, 4, 8} {
		values := random(arity, 7)
		for index := range arity {
			in := circuit.Inputs{Fields: values, Words: []uint64{uint64(index)}}
			p, w := run(t, in, func(r *circuit.Recorder) {
				bits, nodes := PathLevel(r, arity, AllocNums(r, 1)[0])
				PackInput(r, bits)
				for _, n := range nodes {
					Inputize(r, n)
				}
			})
			want := append([]fr.Element(nil), values[1:index+1]...)
			want = append(append(want, values[0]), values[index+1:]...)
			if w.Inputs[1].Uint64() != uint64(index) {
				t.Errorf("arity %d: position %v, want %d", arity, w.Inputs[1], index)
			}
			for i := range want {
				if w.Inputs[2+i] != want[i] {
					t.Errorf("arity %d, position %d: node %d differs", arity, index, i)
				}
			}
			bits := map[int]int{2: 1, 4: 2, 8: 3}[arity]
			if got := p.ConstraintCount() - bits - 1 - arity; got != rows[arity] {
				t.Errorf("arity %d: %d rows to insert, want %d", arity, got, rows[arity])
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	var minusOne fr.Element
	minusOne.SetOne().Neg(&minusOne)
	for _, x := range append(random(4, 3), fr.Element{}, fr.One(), minusOne) {
		y := random(1, 9)[0]
		_, w := run(t, circuit.Inputs{Fields: []fr.Element{x, y}}, func(r *circuit.Recorder) {
			a := AllocNums(r, 2)
			bits := ToBits(r, a[0])
			publicBits(r, bits)
			low := Pack(r, bits[:CapacityBits])
			Inputize(r, low)
			Inputize(r, Add(r, a[0], a[1]))
			Equal(r, a[0], a[0])
		})
		for i, limb := range x.Bits() {
			if got := w.Inputs[1+i].Uint64(); got != limb {
				t.Errorf("%v: limb %d is %x, want %x", x, i, got, limb)
			}
		}
		limbs := x.Bits()
		limbs[3] &= 1<<62 - 1
		if got := w.Inputs[5].Bits(); got != limbs {
			t.Errorf("%v: packed %x, want %x", x, got, limbs)
		}
		var sum fr.Element
		if sum.Add(&x, &y); w.Inputs[6] != sum {
			t.Errorf("%v: sum %v, want %v", x, w.Inputs[6], sum)
		}
	}
}

func TestEqual_RefusesDifferentNumbers(t *testing.T) {
	r := circuit.NewRecorder("test")
	a := AllocNums(r, 2)
	r.In("here", func() { Equal(r, a[0], a[1]) })
	p := r.Finish()
	w := &circuit.Witness{Inputs: make([]fr.Element, 1), Bits: circuit.NewBits(2), Nums: make([]fr.Element, 2)}
	if err := p.Expand(context.Background(), &circuit.Inputs{Fields: random(2, 1)}, w, 1); err != nil {
		t.Fatal(err)
	}
	err := p.Check(context.Background(), w, 1)
	if status.KindOf(err) != status.Unsatisfied {
		t.Fatalf("got %v, want an unsatisfied row", err)
	}
	if want := "test: here: template equal, its row 0, row 0 of the circuit"; !contains(err, want) {
		t.Errorf("%q does not say %q", err, want)
	}
}

func contains(err error, part string) bool {
	e, ok := err.(*status.Error)
	return ok && e.Where == part
}

// Goal: no variable of a hash is free. Method: each sampled bit flipped, each number changed, must fail a row.
func TestHashes_EveryVariableIsBound(t *testing.T) {
	in := circuit.Inputs{Fields: random(2, 4)}
	p, w := run(t, in, func(r *circuit.Recorder) {
		a := AllocNums(r, 2)
		h := Poseidon(r, a)
		Pack(r, ByteOrder(Sha256(r, ByteOrder(append(ToBits(r, h), circuit.Constant(false)))))[:CapacityBits])
	})
	rng := rand.New(rand.NewPCG(5, 5))
	for range 60 {
		i := rng.IntN(p.AuxCount())
		what := fmt.Sprintf("bit %d", i)
		undo := func() {}
		if p.IsNum(i) {
			k := p.NumRank(i)
			old := w.Nums[k]
			w.Nums[k].Double(&old)
			what, undo = fmt.Sprintf("number %d", i), func() { w.Nums[k] = old }
		} else {
			flip := func() { w.Bits.Words[i>>6] ^= 1 << (i & 63) }
			flip()
			undo = flip
		}
		if err := p.Check(context.Background(), w, 1); status.KindOf(err) != status.Unsatisfied {
			t.Errorf("%s changed: got %v, want an unsatisfied row", what, err)
		}
		undo()
	}
	if err := p.Check(context.Background(), w, 1); err != nil {
		t.Fatal(err)
	}
}
