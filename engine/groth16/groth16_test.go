package groth16

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors"

var tinyNames = []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"}

// tinyProof is a tiny circuit's proof.json.
type tinyProof struct {
	ASum      string `json:"a_sum"`
	B1Sum     string `json:"b_g1_sum"`
	B2Sum     string `json:"b_g2_sum"`
	HSum      string `json:"h_sum"`
	LSum      string `json:"l_sum"`
	R, S      string
	Proof     string
	ProofZero string   `json:"proof_with_r_and_s_zero"`
	Inputs    []string `json:"public_inputs"`
}

func readJSON(t testing.TB, v any, path ...string) {
	t.Helper()
	data := readFile(t, path...)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{vectors}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scalar reads the vectors' form: 32 bytes, little-endian, canonical.
func scalar(t testing.TB, s string) (e fr.Element) {
	t.Helper()
	b := unhex(t, s)
	slices.Reverse(b)
	if err := e.SetBytesCanonical(b); err != nil {
		t.Fatal(err)
	}
	return e
}

func scalars(t testing.TB, ss []string) []fr.Element {
	out := make([]fr.Element, len(ss))
	for i := range ss {
		out[i] = scalar(t, ss[i])
	}
	return out
}

func g1(t testing.TB, s string) (j bls.G1Jac) {
	t.Helper()
	var p bls.G1Affine
	if _, err := p.SetBytes(unhex(t, s)); err != nil {
		t.Fatal(err)
	}
	j.FromAffine(&p)
	return j
}

func g2(t testing.TB, s string) (j bls.G2Jac) {
	t.Helper()
	var p bls.G2Affine
	if _, err := p.SetBytes(unhex(t, s)); err != nil {
		t.Fatal(err)
	}
	j.FromAffine(&p)
	return j
}

func key(t testing.TB, path ...string) (*VerifyingKey, *PreparedKey) {
	t.Helper()
	vk, err := DecodeVK(readFile(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	pvk, err := Prepare(vk)
	if err != nil {
		t.Fatal(err)
	}
	return vk, pvk
}

func mustVerify(t *testing.T, want bool, pvk *PreparedKey, p *Proof, inputs []fr.Element, what string) {
	t.Helper()
	ok, err := Verify(pvk, p, inputs)
	if err != nil || ok != want {
		t.Fatalf("%s: want %v, got %v, %v", what, want, ok, err)
	}
}

// Goal: Assemble makes the reference's bytes from the reference's sums; Verify accepts them, and only for
// their own public inputs.
func TestTiny(t *testing.T) {
	for _, name := range tinyNames {
		t.Run(name, func(t *testing.T) {
			vk, pvk := key(t, "tiny", name, "vk.bin")
			var v tinyProof
			readJSON(t, &v, "tiny", name, "proof.json")
			sums := &Sums{H: g1(t, v.HSum), L: g1(t, v.LSum), A: g1(t, v.ASum), B1: g1(t, v.B1Sum), B2: g2(t, v.B2Sum)}
			r, s := scalar(t, v.R), scalar(t, v.S)
			var zero fr.Element
			inputs := scalars(t, v.Inputs)
			var made []Proof
			for _, c := range []struct {
				r, s *fr.Element
				want string
			}{{&r, &s, v.Proof}, {&zero, &zero, v.ProofZero}} {
				p := Assemble(vk, sums, c.r, c.s)
				b := p.Bytes()
				if got := hex.EncodeToString(b[:]); got != c.want {
					t.Fatalf("want %s, got %s", c.want, got)
				}
				mustVerify(t, true, pvk, &p, inputs, "own inputs")
				for i := range inputs {
					other := slices.Clone(inputs)
					one := fr.One()
					other[i].Add(&other[i], &one)
					mustVerify(t, false, pvk, &p, other, "changed input")
				}
				made = append(made, p)
			}
			mixed := Proof{A: made[0].A, B: made[1].B, C: made[0].C}
			mustVerify(t, false, pvk, &mixed, inputs, "parts of two proofs")
			if _, err := Verify(pvk, &made[0], inputs[1:]); len(inputs) > 0 && status.KindOf(err) != status.Input {
				t.Fatalf("too few inputs: %v", err)
			}
			if _, err := Verify(pvk, &made[0], append(slices.Clone(inputs), r)); status.KindOf(err) != status.Input {
				t.Fatalf("too many inputs: %v", err)
			}
		})
	}
}

type c1Case struct {
	name, key string
	proofs    []Proof
	bytes     []byte
	inputs    [][]fr.Element
}

func c1Cases(t testing.TB) (cases []c1Case) {
	for _, n := range [][2]string{{"porep-2k-a", "porep-2k"}, {"porep-2k-b", "porep-2k"}, {"porep-16k", "porep-16k"}, {"porep-32k", "porep-32k"}} {
		var p struct{ Proofs []string }
		readJSON(t, &p, "c1", n[0], "proof.json")
		var w struct {
			Partitions []struct {
				Inputs []string `json:"public_inputs_generated"`
			}
		}
		readJSON(t, &w, "c1", n[0], "witness.json")
		c := c1Case{name: n[0], key: n[1]}
		for i := range p.Proofs {
			c.bytes = append(c.bytes, unhex(t, p.Proofs[i])...)
			c.inputs = append(c.inputs, scalars(t, w.Partitions[i].Inputs))
		}
		var err error
		if c.proofs, err = DecodeProofs(c.bytes, len(p.Proofs)); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// Goal: the reference's proofs of real sectors verify under the reference's keys, alone and in a batch, and
// a failed batch names the wrong ones.
func TestSectors(t *testing.T) {
	cases := c1Cases(t)
	for _, c := range cases {
		_, pvk := key(t, "setup", c.key+".vk")
		for i := range c.proofs {
			mustVerify(t, true, pvk, &c.proofs[i], c.inputs[i], c.name)
			b := c.proofs[i].Bytes()
			if !bytes.Equal(b[:], c.bytes[i*ProofBytes:(i+1)*ProofBytes]) {
				t.Fatalf("%s: encodes to other bytes", c.name)
			}
		}
	}
	// Two sectors of one key: a and b, then swapped ones among good ones.
	_, pvk := key(t, "setup", "porep-2k.vk")
	pa, pb := cases[0].proofs[0], cases[1].proofs[0]
	ia, ib := cases[0].inputs[0], cases[1].inputs[0]
	broken := pa
	broken.C.X.SetOne() // not on the curve
	for _, c := range []struct {
		proofs []Proof
		inputs [][]fr.Element
		failed []int
	}{
		{nil, nil, nil},
		{[]Proof{pa, pb, pa, pa, pb}, [][]fr.Element{ia, ib, ia, ia, ib}, nil},
		{[]Proof{pa, pb, pb, pa, pb}, [][]fr.Element{ia, ib, ia, ia, ia}, []int{2, 4}},
		{[]Proof{pb, pa}, [][]fr.Element{ia, ib}, []int{0, 1}}, // swapped: the errors must not cancel
		{[]Proof{pa, broken, pb}, [][]fr.Element{ia, ia, ib}, []int{1}},
		{[]Proof{pa, {}, pb}, [][]fr.Element{ia, ia, ib}, []int{1}},
	} {
		failed, err := VerifyBatch(pvk, c.proofs, c.inputs)
		if err != nil || !slices.Equal(failed, c.failed) {
			t.Fatalf("want %v, got %v, %v", c.failed, failed, err)
		}
	}
	if _, err := VerifyBatch(pvk, []Proof{pa}, nil); status.KindOf(err) != status.Input {
		t.Fatalf("missing input vector: %v", err)
	}
	if _, err := VerifyBatch(pvk, []Proof{pa, pb}, [][]fr.Element{ia, ib[1:]}); status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "inputs[1]") {
		t.Fatalf("short input vector: %v", err)
	}
	mustVerify(t, false, pvk, &broken, ia, "a point off the curve")
	mustVerify(t, false, pvk, &Proof{}, ia, "infinity")
}

// Goal: no single changed byte of a proof passes.
func TestProof_FlippedBytes(t *testing.T) {
	c := c1Cases(t)[0]
	_, pvk := key(t, "setup", "porep-2k.vk")
	for i := range c.bytes {
		for _, mask := range []byte{0x01, 0x80} {
			b := slices.Clone(c.bytes)
			b[i] ^= mask
			p, err := decodeProof(b, "")
			if err != nil {
				if status.KindOf(err) != status.Input {
					t.Fatalf("byte %d: %v", i, err)
				}
				continue
			}
			mustVerify(t, false, pvk, p, c.inputs[0], "flipped byte")
		}
	}
}

// Goal: each malformed element is refused and named.
func TestDecode_Refused(t *testing.T) {
	c := c1Cases(t)[0]
	offsets := map[string]int{"A": 0, "B": proofB, "C": proofC}
	infinity := func(b []byte, at, size int) {
		clear(b[at : at+size])
		b[at] = 0xc0
	}
	nonCanonical := func(b []byte, at int) { // x + p, where that fits: force by the largest x
		for i := range 48 {
			b[at+i] = 0xff
		}
		b[at] = 0x9f
	}
	for name, at := range offsets {
		size := 48
		if name == "B" {
			size = 96
		}
		for what, change := range map[string]func(b []byte){
			"infinity":      func(b []byte) { infinity(b, at, size) },
			"non-canonical": func(b []byte) { nonCanonical(b, at) },
			"uncompressed":  func(b []byte) { b[at] &^= 0x80 },
			"flag bits":     func(b []byte) { b[at] |= 0xe0 },
		} {
			b := slices.Clone(c.bytes)
			change(b)
			_, err := DecodeProofs(append(slices.Clone(c.bytes), b...), 2)
			var e *status.Error
			if !errors.As(err, &e) || e.Kind != status.Input || e.Where != "partition 1: "+name {
				t.Errorf("%s of %s: %v", what, name, err)
			}
		}
	}
	// A point on the curve outside the group of order r.
	outside := bls.GeneratePointNotInG1(fp.NewElement(5))
	var p bls.G1Affine
	p.FromJacobian(&outside)
	b := slices.Clone(c.bytes)
	x := p.Bytes()
	copy(b, x[:])
	if _, err := decodeProof(b, ""); status.KindOf(err) != status.Input {
		t.Errorf("outside the subgroup: %v", err)
	}
	for _, n := range []int{0, 191, 193, 384} {
		if _, err := decodeProof(make([]byte, n), ""); status.KindOf(err) != status.Input {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := DecodeProofs(c.bytes, 2); status.KindOf(err) != status.Input {
		t.Errorf("one proof for two partitions: %v", err)
	}

	vk := readFile(t, "setup", "porep-2k.vk")
	points := []struct {
		name     string
		at, size int
	}{
		{"alpha_g1", 0, 96}, {"beta_g1", 96, 96}, {"beta_g2", 192, 192}, {"gamma_g2", 384, 192},
		{"delta_g1", 576, 96}, {"delta_g2", 672, 192}, {"ic[0]", 868, 96}, {"ic[39]", 868 + 39*96, 96},
	}
	raw := p.RawBytes()
	for _, q := range points {
		for what, change := range map[string]func(b []byte){
			"infinity":      func(b []byte) { clear(b[q.at : q.at+q.size]); b[q.at] = 0x40 },
			"compressed":    func(b []byte) { b[q.at] |= 0x80 },
			"off the curve": func(b []byte) { b[q.at+q.size-1] ^= 1 },
			"outside the subgroup": func(b []byte) {
				if q.size == 96 {
					copy(b[q.at:], raw[:])
				} else {
					o := bls.GeneratePointNotInG2(bls.E2{A0: fp.NewElement(3)})
					var p2 bls.G2Affine
					p2.FromJacobian(&o)
					x := p2.RawBytes()
					copy(b[q.at:], x[:])
				}
			},
		} {
			b := slices.Clone(vk)
			change(b)
			_, err := DecodeVK(b)
			var e *status.Error
			if !errors.As(err, &e) || e.Kind != status.Params || e.Where != q.name {
				t.Errorf("%s of %s: %v", what, q.name, err)
			}
		}
	}
	for _, n := range []int{0, VKHeadBytes - 1, VKHeadBytes, len(vk) - 1} {
		if _, err := DecodeVK(vk[:n]); status.KindOf(err) != status.Params {
			t.Errorf("key of %d bytes: %v", n, err)
		}
	}
	if _, err := DecodeVK(append(slices.Clone(vk), 0)); status.KindOf(err) != status.Params {
		t.Errorf("key with a byte too many: %v", err)
	}
	huge := slices.Clone(vk)
	huge[VKHeadBytes-4] = 0xff
	if _, err := DecodeVK(huge); status.KindOf(err) != status.Params {
		t.Errorf("count of 2^32 points: %v", err)
	}
}

func TestVK_RoundTrip(t *testing.T) {
	for _, path := range []string{"setup/porep-2k.vk", "setup/porep-16k.vk", "setup/porep-32k.vk", "tiny/tiny-16/vk.bin", "tiny/tiny-1024/vk.bin"} {
		data := readFile(t, path)
		vk, err := DecodeVK(data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(AppendVK(nil, vk), data) {
			t.Errorf("%s: encodes to other bytes", path)
		}
		if n, err := VKSize(data); err != nil || n != len(data) {
			t.Errorf("%s: size %d, %v", path, n, err)
		}
	}
}

// FuzzDecodeProof: decode, encode, same bytes, or refuse.
func FuzzDecodeProof(f *testing.F) {
	for _, c := range c1Cases(f) {
		f.Add(c.bytes)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodeProof(data, "")
		if err != nil {
			if status.KindOf(err) != status.Input {
				t.Fatal(err)
			}
			return
		}
		if b := p.Bytes(); !bytes.Equal(b[:], data) {
			t.Fatalf("encodes to other bytes")
		}
	})
}

// FuzzDecodeVK: decode, encode, same bytes, or refuse.
func FuzzDecodeVK(f *testing.F) {
	f.Add(readFile(f, "tiny/tiny-16/vk.bin"))
	f.Add(readFile(f, "tiny/tiny-128/vk.bin"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		vk, err := DecodeVK(data)
		if err != nil {
			if status.KindOf(err) != status.Params {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(AppendVK(nil, vk), data) {
			t.Fatalf("encodes to other bytes")
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	c := c1Cases(b)[0]
	_, pvk := key(b, "setup", "porep-2k.vk")
	for b.Loop() {
		if ok, err := Verify(pvk, &c.proofs[0], c.inputs[0]); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
