// Package groth16 is the proof system: the interface of backends, assembly of a proof from five sums, its
// encoding, and verification. It knows no Filecoin.
//
// It refuses encodings that are not canonical, points off the curve or outside the group of order r, and the
// point at infinity wherever a proof or key cannot hold it. It is called by the engine, by the parameter
// reader (for the key's encoding) and, through Backend, by the scheduler.
//
// Sources: Groth16 (eprint 2016/260); bellperson 0.27 for the file and proof encodings.
package groth16

import (
	"encoding/binary"
	"fmt"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/sealc2/sealc2/engine/status"
)

// VerifyingKey is the head of a .params file and the whole of a .vk file.
type VerifyingKey struct {
	AlphaG1, BetaG1 bls.G1Affine
	BetaG2, GammaG2 bls.G2Affine
	DeltaG1         bls.G1Affine
	DeltaG2         bls.G2Affine
	IC              []bls.G1Affine // one for each input, the constant one included
}

// The encoding of a verifying key: the six points, then the u32 big-endian number of IC points, then those.
const (
	g1Bytes = bls.SizeOfG1AffineUncompressed
	g2Bytes = bls.SizeOfG2AffineUncompressed

	// VKHeadBytes is the size of what comes before the IC points; enough for VKSize.
	VKHeadBytes = 3*g1Bytes + 3*g2Bytes + 4
	// MaxInputs bounds the number of IC points that a reader believes: the largest public circuit
	// (WindowPoSt 64 GiB) has 25,840 inputs.
	MaxInputs = 1 << 20
)

// VKSize returns the size in bytes of the encoded key that starts with head, which must hold at least
// VKHeadBytes. It looks at the count of IC points only. Errors: Params.
func VKSize(head []byte) (int, error) {
	const op = "groth16.VKSize"
	if len(head) < VKHeadBytes {
		return 0, status.New(status.Params, op, "", fmt.Sprintf("at least %d bytes", VKHeadBytes), fmt.Sprint(len(head)))
	}
	count := binary.BigEndian.Uint32(head[VKHeadBytes-4:])
	if count == 0 || count > MaxInputs {
		return 0, status.New(status.Params, op, "ic", fmt.Sprintf("1 to %d points", MaxInputs), fmt.Sprint(count))
	}
	return VKHeadBytes + int(count)*g1Bytes, nil
}

// AppendVK appends the key's encoding to dst and returns it: exactly the bytes of a .vk file.
func AppendVK(dst []byte, vk *VerifyingKey) []byte {
	dst = appendG1(dst, &vk.AlphaG1)
	dst = appendG1(dst, &vk.BetaG1)
	dst = appendG2(dst, &vk.BetaG2)
	dst = appendG2(dst, &vk.GammaG2)
	dst = appendG1(dst, &vk.DeltaG1)
	dst = appendG2(dst, &vk.DeltaG2)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(vk.IC)))
	for i := range vk.IC {
		dst = appendG1(dst, &vk.IC[i])
	}
	return dst
}

// DecodeVK decodes an encoded key, which must fill data exactly. Every point is checked to be canonical, on
// the curve, of order r and not infinity. Errors: Params, naming the element.
func DecodeVK(data []byte) (*VerifyingKey, error) {
	const op = "groth16.DecodeVK"
	size, err := VKSize(data)
	if err != nil {
		return nil, err
	}
	if size != len(data) {
		return nil, status.New(status.Params, op, "ic", fmt.Sprintf("%d bytes for the count of points that it states", size), fmt.Sprint(len(data)))
	}
	vk := &VerifyingKey{IC: make([]bls.G1Affine, (size-VKHeadBytes)/g1Bytes)}
	at := 0
	g1 := func(p *bls.G1Affine, name string) {
		if err == nil {
			err = decodePoint(status.Params, op, name, data[at:at+g1Bytes], p)
		}
		at += g1Bytes
	}
	g2 := func(p *bls.G2Affine, name string) {
		if err == nil {
			err = decodePoint(status.Params, op, name, data[at:at+g2Bytes], p)
		}
		at += g2Bytes
	}
	g1(&vk.AlphaG1, "alpha_g1")
	g1(&vk.BetaG1, "beta_g1")
	g2(&vk.BetaG2, "beta_g2")
	g2(&vk.GammaG2, "gamma_g2")
	g1(&vk.DeltaG1, "delta_g1")
	g2(&vk.DeltaG2, "delta_g2")
	at += 4
	for i := range vk.IC {
		if err != nil {
			break
		}
		g1(&vk.IC[i], fmt.Sprintf("ic[%d]", i))
	}
	if err != nil {
		return nil, err
	}
	return vk, nil
}

func appendG1(dst []byte, p *bls.G1Affine) []byte {
	b := p.RawBytes()
	return append(dst, b[:]...)
}

func appendG2(dst []byte, p *bls.G2Affine) []byte {
	b := p.RawBytes()
	return append(dst, b[:]...)
}

// point is what the two affine groups have in common.
type point interface {
	SetBytes([]byte) (int, error)
	IsInfinity() bool
	IsOnCurve() bool
	IsInSubGroup() bool
}

// decodePoint decodes one point that fills data exactly, compressed or not as its size tells, and refuses
// infinity. gnark-crypto's SetBytes checks canonicity, curve and order, but takes either form by the flag bits,
// hence the check of what it consumed.
func decodePoint(kind status.Kind, op, name string, data []byte, p point) error {
	n, err := p.SetBytes(data)
	switch {
	case err != nil:
		e := status.Wrap(kind, op, name, err)
		e.Want = "a canonical point of order r"
		return e
	case n != len(data):
		return status.New(kind, op, name, fmt.Sprintf("an encoding of %d bytes", len(data)), fmt.Sprintf("one of %d", n))
	case p.IsInfinity():
		return status.New(kind, op, name, "a point that is not infinity", "infinity")
	}
	return nil
}
