package setup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
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
	if want := "setup.Begin: aux[0]: want a variable that a constraint binds, got one that none does"; status.KindOf(err) != status.Caller || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}

// Goal: points are the same however they are asked for: blocks in any order, in pieces, again, and through an SRS that fetches
// them. Method: against the blocks of Make, over one Making.
func TestPoints_AnyOrder(t *testing.T) {
	p := randomProgram(rand.New(rand.NewPCG(3, 5)), 4)
	secrets := &setup.Secrets{Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11)}
	r := newRig(t, p)
	key := r.make(t, secrets)
	spec, err := setup.NewSpec(p, secrets)
	if err != nil {
		t.Fatal(err)
	}
	scratch := kerneltest.Memory(t, spec.ScratchBytes(r.s.Device()))
	making, err := spec.Begin(t.Context(), r.maker, r.s, scratch)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(groth16.AppendVK(nil, making.Key()), groth16.AppendVK(nil, key)) {
		t.Error("another key")
	}
	whole := [...]driver.Ptr{r.blocks.H, r.blocks.L, r.blocks.A, r.blocks.B1, r.blocks.B2}
	srs := spec.SRS(making.Key(), func(ctx context.Context, b groth16.Block, offset int64, into []byte) error {
		size := setup.GroupOf(b).PointBytes()
		to := kerneltest.Memory(t, int64(len(into)))
		if err := making.Points(b, int(offset/size), int(int64(len(into))/size), to); err != nil {
			return err
		}
		if err := r.s.CopyToHost(unsafe.Pointer(&into[0]), to, int64(len(into))); err != nil {
			return err
		}
		return r.s.Synchronize(ctx)
	})
	for _, b := range []groth16.Block{groth16.BlockB2, groth16.BlockA, groth16.BlockH, groth16.BlockB2, groth16.BlockB1, groth16.BlockL, groth16.BlockH} {
		n := srs.Len(b)
		from := n / 3
		if b == groth16.BlockB2 {
			got := make([]bls.G2Affine, n-from)
			if err := srs.ReadG2(t.Context(), from, got); err != nil {
				t.Fatal(err)
			}
			if want := kerneltest.Get[bls.G2Affine](t, whole[b], n)[from:]; !slices.Equal(got, want) {
				t.Errorf("%s: other points", b)
			}
			continue
		}
		got := make([]bls.G1Affine, n-from)
		if err := srs.ReadG1(t.Context(), b, from, got); err != nil {
			t.Fatal(err)
		}
		if want := kerneltest.Get[bls.G1Affine](t, whole[b], n)[from:]; !slices.Equal(got, want) {
			t.Errorf("%s: other points", b)
		}
	}
	for _, bad := range []struct{ from, count int }{{-1, 1}, {0, srs.Len(groth16.BlockL) + 1}, {srs.Len(groth16.BlockL) + 1, 0}} {
		if err := srs.ReadG1(t.Context(), groth16.BlockL, bad.from, make([]bls.G1Affine, bad.count)); status.KindOf(err) != status.Caller {
			t.Errorf("%+v: %v", bad, err)
		}
		if err := making.Points(groth16.BlockL, bad.from, bad.count, whole[0]); status.KindOf(err) != status.Internal {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := srs.ReadG1(t.Context(), groth16.BlockB2, 0, nil); status.KindOf(err) != status.Caller {
		t.Errorf("b_g2 as G1: %v", err)
	}
}

// Goal: an ID names its content: the same for the same program and secrets, another for any other.
func TestSpec_ID(t *testing.T) {
	one := setup.Secrets{Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11)}
	seen := map[string]string{}
	for seed, instances := range []int{0, 1} {
		for name, change := range map[string]func(*setup.Secrets){
			"same": func(*setup.Secrets) {}, "alpha": func(s *setup.Secrets) { s.Alpha.SetOne() }, "beta": func(s *setup.Secrets) { s.Beta.SetOne() },
			"gamma": func(s *setup.Secrets) { s.Gamma.SetOne() }, "delta": func(s *setup.Secrets) { s.Delta.SetOne() }, "tau": func(s *setup.Secrets) { s.Tau.SetOne() },
		} {
			s := one
			change(&s)
			var ids [2]string
			for i := range ids {
				spec, err := setup.NewSpec(randomProgram(rand.New(rand.NewPCG(uint64(seed), 5)), instances), &s)
				if err != nil {
					t.Fatal(err)
				}
				ids[i] = spec.ID()
			}
			name = fmt.Sprintf("%d instances, %s", instances, name)
			if ids[0] != ids[1] || seen[ids[0]] != "" {
				t.Errorf("%s: %q, then %q; seen for %q", name, ids[0], ids[1], seen[ids[0]])
			}
			seen[ids[0]] = name
		}
	}
}
