package setup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

var _ = kerneltest.Only("points", "qap")

// randomProgram has a gadget of its own inputs, bits and numbers, instances of a second one bound to what the first
// gives, and rows with several terms of one variable, coefficients of every kind, and empty sides.
func randomProgram(rng *rand.Rand, instances int) *circuit.Program {
	r := circuit.NewRecorder("random")
	coefficient := func() (c fr.Element) {
		switch rng.IntN(4) {
		case 0:
			c.SetOne()
		case 1:
			c.SetInt64(-1)
		case 2:
			c.SetInt64(rng.Int64N(2000) - 1000)
		default:
			c = fr.Element{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64() >> 2}
		}
		return c
	}
	// All instances of a gadget have its rows, so these are drawn once.
	const wires = 8
	var draw [3][40][12]struct {
		wire int
		by   fr.Element
	}
	for m := range draw {
		for row := range draw[m] {
			for k := range draw[m][row] {
				draw[m][row][k].wire, draw[m][row][k].by = rng.IntN(wires+1), coefficient()
			}
		}
	}
	gadget := func(name string, nums []circuit.Num, inputs int) []circuit.Num {
		_, out := r.Gadget(name, "", nil, nums, func(b *circuit.Builder, _ []circuit.Bit, nums []circuit.Num) ([]circuit.Bit, []circuit.Num) {
			all := []circuit.LC{circuit.One()}
			var own []circuit.Num
			for _, x := range nums {
				all = append(all, x.LC())
			}
			for range inputs {
				all = append(all, b.AllocInput(b.TakeField()).LC())
			}
			for len(all) < wires+1 {
				x := b.AllocNum(b.TakeField())
				own = append(own, x)
				all = append(all, x.LC())
			}
			for row := range draw[0] {
				var side [3]circuit.LC
				for m := range side {
					for _, t := range draw[m][row][:row%len(draw[m][row])] {
						side[m] = append(side[m], all[t.wire].Times(t.by)...)
					}
				}
				b.Enforce(side[0], side[1], side[2])
			}
			for _, x := range all[1:] { // so that every variable is bound
				b.Enforce(x, circuit.One(), x)
			}
			return nil, own
		})
		return out
	}
	wire := gadget("first", nil, 3)
	for range instances {
		wire = gadget("again", wire[:2], 0)
	}
	return r.Finish()
}

// Goal: the points made on the card are those of engine/params, byte for byte. Method: both for the same program and
// secrets; the file's blocks against the encoded points, the key too.
func TestMake_EqualsParams(t *testing.T) {
	for seed, instances := range []int{0, 1, 40} {
		p := randomProgram(rand.New(rand.NewPCG(uint64(seed), 5)), instances)
		secrets := params.SetupScalars(params.DefaultSetupText, "tiny")
		dir := t.TempDir()
		if _, err := params.Setup(t.Context(), p, secrets, params.SetupOptions{Dir: dir, BaseName: "x", Threads: 2}); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "x.params"))
		if err != nil {
			t.Fatal(err)
		}
		got := bytes.NewBuffer(nil)
		r := newRig(t, p)
		vk := r.make(t, &setup.Secrets{Alpha: secrets.Alpha, Beta: secrets.Beta, Gamma: secrets.Gamma, Delta: secrets.Delta, Tau: secrets.Tau})
		got.Write(groth16.AppendVK(nil, vk))
		for _, b := range r.encoded(t) {
			got.Write(binary.BigEndian.AppendUint32(nil, uint32(b.count)))
			got.Write(b.bytes)
		}
		if !bytes.Equal(got.Bytes(), want) {
			at := 0
			for at < min(got.Len(), len(want)) && got.Bytes()[at] == want[at] {
				at++
			}
			t.Fatalf("%d instances: want %d bytes, got %d; they differ at byte %d", instances, len(want), got.Len(), at)
		}
	}
}

// rig is a program's setup on the test's device.
type rig struct {
	s      *driver.Stream
	maker  *setup.Maker
	points *points.Points
	tables *setup.Tables
	blocks setup.Blocks
	memory driver.Ptr
}

func newRig(tb testing.TB, p *circuit.Program) *rig {
	tb.Helper()
	r := &rig{s: kerneltest.Stream(tb)}
	var err error
	if r.maker, err = setup.New(kerneltest.Find); err != nil {
		tb.Fatal(err)
	}
	if r.points, err = points.New(kerneltest.Find); err != nil {
		tb.Fatal(err)
	}
	if r.tables, err = setup.Build(p); err != nil {
		tb.Fatal(err)
	}
	c := r.tables.Counts()
	g1, g2 := points.G1.PointBytes(), points.G2.PointBytes()
	r.blocks = setup.Blocks{
		H: kerneltest.Memory(tb, g1*int64(c.H)), L: kerneltest.Memory(tb, g1*int64(c.L)), A: kerneltest.Memory(tb, g1*int64(c.A)),
		B1: kerneltest.Memory(tb, g1*int64(c.B)), B2: kerneltest.Memory(tb, g2*int64(c.B)),
	}
	r.memory = kerneltest.Memory(tb, setup.ScratchBytes(r.tables, r.s.Device()))
	return r
}

func (r *rig) make(tb testing.TB, secrets *setup.Secrets) *groth16.VerifyingKey {
	tb.Helper()
	vk, err := r.maker.Make(context.Background(), r.s, r.tables, secrets, r.memory, r.blocks)
	if err != nil {
		tb.Fatal(err)
	}
	return vk
}

// block is a block as it stands in a file, without its count.
type block struct {
	name  string
	count int
	bytes []byte
}

// encoded encodes the blocks in place.
func (r *rig) encoded(tb testing.TB) (all []block) {
	tb.Helper()
	c := r.tables.Counts()
	for _, b := range []struct {
		name  string
		group points.Group
		at    driver.Ptr
		count int
	}{{"h", points.G1, r.blocks.H, c.H}, {"l", points.G1, r.blocks.L, c.L}, {"a", points.G1, r.blocks.A, c.A}, {"b_g1", points.G1, r.blocks.B1, c.B}, {"b_g2", points.G2, r.blocks.B2, c.B}} {
		if err := r.points.Encode(r.s, b.group, b.at, b.at, b.count); err != nil {
			tb.Fatal(err)
		}
		if err := r.s.Synchronize(context.Background()); err != nil {
			tb.Fatal(err)
		}
		all = append(all, block{b.name, b.count, kerneltest.Get[byte](tb, b.at, b.count*int(b.group.PointBytes()))})
	}
	return all
}

// Goal: what no setup may have is refused, and the next setup works. Method: each secret zero, tau in the domain, an aux
// that stands in no row.
func TestMake_Refuses(t *testing.T) {
	p := randomProgram(rand.New(rand.NewPCG(9, 9)), 1)
	r := newRig(t, p)
	good := setup.Secrets{Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11)}
	root, err := fr.Generator(uint64(p.Domain()))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*setup.Secrets){
		"alpha": func(s *setup.Secrets) { s.Alpha.SetZero() }, "beta": func(s *setup.Secrets) { s.Beta.SetZero() },
		"gamma": func(s *setup.Secrets) { s.Gamma.SetZero() }, "delta": func(s *setup.Secrets) { s.Delta.SetZero() },
		"tau": func(s *setup.Secrets) { s.Tau.SetZero() }, "a root": func(s *setup.Secrets) { s.Tau = root },
	} {
		bad := good
		change(&bad)
		if _, err := r.maker.Make(t.Context(), r.s, r.tables, &bad, r.memory, r.blocks); status.KindOf(err) != status.Caller {
			t.Errorf("%s: want a refusal, got %v", name, err)
		}
	}
	r.make(t, &good)

	loose, err := circuit.FromR1CS("loose", 1, []bool{false, false}, []circuit.Constraint{{A: []circuit.Term{{Key: circuit.AuxKey(1), Coeff: fr.One()}}}})
	if err != nil {
		t.Fatal(err)
	}
	r = newRig(t, loose)
	_, err = r.maker.Make(t.Context(), r.s, r.tables, &good, r.memory, r.blocks)
	if want := "setup.Make: aux[0]: want a variable that a constraint binds, got one that none does"; status.KindOf(err) != status.Caller || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}
