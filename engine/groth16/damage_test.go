package groth16

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

// Goal: no single changed byte of a key passes: it is refused, or it is another key, under which the reference's proof
// does not verify. Its element is named.
func TestVK_FlippedBytes(t *testing.T) {
	data := readFile(t, "tiny/tiny-16/vk.bin")
	var v tinyProof
	readJSON(t, &v, "tiny", "tiny-16", "proof.json")
	proof, err := decodeProof(unhex(t, v.Proof), "")
	if err != nil {
		t.Fatal(err)
	}
	inputs := scalars(t, v.Inputs)
	mustVerifyWith := func(data []byte) (bool, error) {
		vk, err := DecodeVK(data)
		if err != nil {
			return false, err
		}
		pvk, err := Prepare(vk)
		if err != nil {
			return false, err
		}
		return Verify(pvk, proof, inputs)
	}
	if ok, err := mustVerifyWith(data); !ok || err != nil {
		t.Fatalf("the key itself: %v, %v", ok, err)
	}
	for i := range data {
		for _, mask := range []byte{0x01, 0x80} {
			b := slices.Clone(data)
			b[i] ^= mask
			ok, err := mustVerifyWith(b)
			if ok {
				t.Errorf("byte %d, mask %#x: the proof verifies", i, mask)
			}
			if kind := status.KindOf(err); err != nil && kind != status.Params && kind != status.Input {
				t.Errorf("byte %d, mask %#x: %v", i, mask, err)
			}
		}
	}
}

// Goal: a key cut at any byte, or with anything after it, is refused.
func TestVK_Lengths(t *testing.T) {
	data := readFile(t, "tiny/tiny-16/vk.bin")
	for n := range data {
		if _, err := DecodeVK(data[:n]); status.KindOf(err) != status.Params {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	for _, n := range []int{1, 95, g1Bytes, 4096} {
		if _, err := DecodeVK(append(slices.Clone(data), make([]byte, n)...)); status.KindOf(err) != status.Params {
			t.Errorf("%d bytes more: %v", n, err)
		}
	}
}

// alias returns the other encoding of a coordinate in 48 bytes, p more, where the three bits beside the flags leave
// room for it.
func alias(t *testing.T, coordinate []byte, flags byte) []byte {
	t.Helper()
	b := slices.Clone(coordinate)
	b[0] &^= flags
	x := new(big.Int).SetBytes(b)
	x.Add(x, fp.Modulus())
	if x.BitLen() > 381 {
		return nil
	}
	x.FillBytes(b)
	b[0] |= coordinate[0] & flags
	return b
}

// Goal: one point has one encoding: a coordinate with p added to it is refused, though it stands for the same point.
func TestDecode_Aliases(t *testing.T) {
	tried := map[string]int{}
	try := func(what string, data []byte, at int, flags byte, decode func([]byte) error) {
		t.Helper()
		other := alias(t, data[at:at+fp.Bytes], flags)
		if other == nil {
			return
		}
		bad := slices.Clone(data)
		copy(bad[at:], other)
		if bytes.Equal(bad, data) {
			t.Fatalf("%s at %d: nothing changed", what, at)
		}
		tried[what]++
		if kind := status.KindOf(decode(bad)); kind != status.Input && kind != status.Params {
			t.Errorf("%s at %d: accepted, or %v", what, at, kind)
		}
	}
	// Compressed coordinates of many proofs: made from the tiny circuits' sums under other r and s.
	for _, name := range tinyNames {
		vk, _ := key(t, "tiny", name, "vk.bin")
		var v tinyProof
		readJSON(t, &v, "tiny", name, "proof.json")
		sums := &Sums{H: g1(t, v.HSum), L: g1(t, v.LSum), A: g1(t, v.ASum), B1: g1(t, v.B1Sum), B2: g2(t, v.B2Sum)}
		for k := range 16 {
			var r, s fr.Element
			r.SetUint64(uint64(k) + 1)
			s.SetUint64(uint64(k) + 101)
			p := Assemble(vk, sums, &r, &s)
			b := p.Bytes()
			decode := func(data []byte) error { _, err := decodeProof(data, ""); return err }
			if err := decode(b[:]); err != nil {
				t.Fatal(err)
			}
			try("A.x", b[:], 0, 0xe0, decode)
			try("B.x.c1", b[:], proofB, 0xe0, decode)
			try("B.x.c0", b[:], proofB+fp.Bytes, 0, decode)
			try("C.x", b[:], proofC, 0xe0, decode)
		}
	}
	for _, path := range []string{"setup/porep-2k.vk", "setup/porep-16k.vk"} {
		data := readFile(t, path)
		for at := 0; at < len(data); at += fp.Bytes {
			if at == VKHeadBytes-4 {
				at += 4
			}
			try("vk", data, at, 0, func(data []byte) error { _, err := DecodeVK(data); return err })
		}
	}
	for _, what := range []string{"A.x", "B.x.c1", "B.x.c0", "C.x", "vk"} {
		if tried[what] == 0 {
			t.Errorf("%s: no coordinate with an alias", what)
		}
	}
}
