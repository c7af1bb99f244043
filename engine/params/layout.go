package params

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Sizes of a parameter file, in bytes. A file is the verifying key (six points, a count, the ic points),
// then the blocks h, l, a, b_g1, b_g2 in the order of groth16.Block. A block is its count and its points.
const (
	CountBytes = 4   // u32, big-endian
	G1Bytes    = 96  // x, y: 48 bytes each, big-endian; flags in the three top bits of the first byte
	G2Bytes    = 192 // x.c1, x.c0, y.c1, y.c0
)

// maxLogDomain is the two-adicity of the scalar field: no larger domain exists.
const maxLogDomain = 32

// PointBytes is the size of one point of a block.
func PointBytes(b groth16.Block) int {
	if b == groth16.BlockB2 {
		return G2Bytes
	}
	return G1Bytes
}

// VKBytes is the size of a verifying key with ic points for inputs public variables, the constant one
// included.
func VKBytes(inputs int) int64 { return groth16.VKHeadBytes + int64(inputs)*G1Bytes }

// Counts are the numbers of points of a parameter set.
type Counts struct {
	IC     int
	Blocks [groth16.BlockCount]int
}

// CountsOf returns the counts that a circuit's parameter set has: h = domain - 1; one l for each aux; in a
// every input (by the appended rows) and the aux that occur in A; in both b the variables that occur in B.
func CountsOf(p *circuit.Program) Counts {
	d := p.Density()
	b := d.BInput.Count() + d.BAux.Count()
	return Counts{
		IC:     p.InputCount(),
		Blocks: [groth16.BlockCount]int{p.Domain() - 1, p.AuxCount(), p.InputCount() + d.AAux.Count(), b, b},
	}
}

// Offset is the position in the file of the first point of a block; its count stands just before it.
func (c Counts) Offset(b groth16.Block) int64 {
	offset := VKBytes(c.IC) + CountBytes
	for i := groth16.Block(0); i < b; i++ {
		offset += int64(c.Blocks[i])*int64(PointBytes(i)) + CountBytes
	}
	return offset
}

// Bytes is the size of the whole file.
func (c Counts) Bytes() int64 { return c.Offset(groth16.BlockCount) - CountBytes }

// check tells whether the count of a block fits to the counts before it, by what all circuits have in
// common: bellperson's domain is a power of two that holds a row for each input, each input occurs in A, no
// variable occurs twice, and b_g1 and b_g2 select the same variables.
func (c Counts) check(b groth16.Block) (want string, ok bool) {
	n := uint64(c.Blocks[b])
	inputs := uint64(c.IC)
	variables := inputs + uint64(c.Blocks[groth16.BlockL])
	switch b {
	case groth16.BlockH:
		if n == 0 || n&(n+1) != 0 || bits.Len64(n) > maxLogDomain {
			return fmt.Sprintf("2^k - 1 points, k from 1 to %d", maxLogDomain), false
		}
		return fmt.Sprintf("at least %d points, a row for each of %d inputs", inputs-1, inputs), n+1 >= inputs
	case groth16.BlockA:
		return fmt.Sprintf("%d to %d points, as ic = %d and l = %d", inputs, variables, inputs, c.Blocks[groth16.BlockL]), n >= inputs && n <= variables
	case groth16.BlockB1:
		return fmt.Sprintf("at most %d points, as ic = %d and l = %d", variables, inputs, c.Blocks[groth16.BlockL]), n <= variables
	case groth16.BlockB2:
		return fmt.Sprintf("%d points, as many as b_g1", c.Blocks[groth16.BlockB1]), n == uint64(c.Blocks[groth16.BlockB1])
	}
	return "", true
}

// fault is what is wrong with an encoded point. A code, so that decoding builds no text while all is well.
type fault uint8

const (
	faultNone fault = iota
	faultFlags
	faultInfinity
	faultRange
	faultZero
	faultCurve
	faultSubgroup
)

func (f fault) want() string {
	switch f {
	case faultFlags, faultRange:
		return "an uncompressed point in canonical form"
	case faultSubgroup:
		return "a point of order r"
	default:
		return "a point on the curve"
	}
}

func (f fault) got() string {
	return [...]string{
		"a good point", "a flag of the first byte set", "the point at infinity", "a coordinate of p or more",
		"zero bytes only (a hole in the file?)", "one off the curve", "one outside the subgroup",
	}[f]
}

// EncodeG1Uncompressed writes p to the first G1Bytes of dst. The point at infinity takes flag 0x40.
func EncodeG1Uncompressed(dst []byte, p *bls.G1Affine) {
	if p.IsInfinity() {
		encodeInfinity(dst[:G1Bytes])
		return
	}
	putCoordinate(dst, &p.X)
	putCoordinate(dst[fp.Bytes:], &p.Y)
}

// EncodeG2Uncompressed writes p to the first G2Bytes of dst. The point at infinity takes flag 0x40.
func EncodeG2Uncompressed(dst []byte, p *bls.G2Affine) {
	if p.IsInfinity() {
		encodeInfinity(dst[:G2Bytes])
		return
	}
	putCoordinate(dst, &p.X.A1)
	putCoordinate(dst[fp.Bytes:], &p.X.A0)
	putCoordinate(dst[2*fp.Bytes:], &p.Y.A1)
	putCoordinate(dst[3*fp.Bytes:], &p.Y.A0)
}

func encodeInfinity(dst []byte) {
	clear(dst)
	dst[0] = flagInfinity
}

func putCoordinate(dst []byte, e *fp.Element) {
	fp.BigEndian.PutElement((*[fp.Bytes]byte)(dst), *e)
}

// DecodeG1Uncompressed reads the first G1Bytes of src. It refuses flags, coordinates of p or more, the
// point at infinity and points off the curve; it does not check the order. src may be p's own memory.
// Errors are of kind Params and name neither file nor index, which only the caller knows.
func DecodeG1Uncompressed(src []byte, p *bls.G1Affine) error {
	f := decodeG1(p, (*[G1Bytes]byte)(src))
	if f == faultNone {
		return nil
	}
	return status.New(status.Params, "params.Decode", "", f.want(), f.got())
}

// The three flag bits of the first byte.
const (
	flagMask     = 0xe0
	flagInfinity = 0x40
)

// Constants of decoding, in the form that Mul wants them.
var (
	toMontgomery fp.Element // limbs of R^2 mod p, which is the Montgomery form of R = 2^384
	curveB       fp.Element // y^2 = x^3 + 4; on the twist 4(1 + u)
	modulus      [fp.Limbs]uint64
)

func init() {
	toMontgomery.SetBigInt(new(big.Int).Lsh(big.NewInt(1), 64*fp.Limbs))
	curveB.SetUint64(4)
	var bytes [fp.Bytes]byte
	fp.Modulus().FillBytes(bytes[:])
	for i := range modulus {
		modulus[i] = binary.BigEndian.Uint64(bytes[8*(fp.Limbs-1-i):])
	}
}

// loadCoordinate reads a canonical big-endian coordinate into e, not yet in Montgomery form, and says
// whether it is below p.
func loadCoordinate(e *fp.Element, src *[fp.Bytes]byte) bool {
	e[5] = binary.BigEndian.Uint64(src[0:8])
	e[4] = binary.BigEndian.Uint64(src[8:16])
	e[3] = binary.BigEndian.Uint64(src[16:24])
	e[2] = binary.BigEndian.Uint64(src[24:32])
	e[1] = binary.BigEndian.Uint64(src[32:40])
	e[0] = binary.BigEndian.Uint64(src[40:48])
	if e[5] != modulus[5] { // all but one in 2^60
		return e[5] < modulus[5]
	}
	var borrow uint64
	for i := range modulus {
		_, borrow = bits.Sub64(e[i], modulus[i], borrow)
	}
	return borrow == 1
}

func flagFault(first byte) fault {
	switch first & flagMask {
	case 0:
		return faultNone
	case flagInfinity:
		return faultInfinity
	default:
		return faultFlags
	}
}

// decodeG1 reads all of src before it writes p, so src may be p's own memory.
func decodeG1(p *bls.G1Affine, src *[G1Bytes]byte) fault {
	if src[0]&flagMask != 0 {
		return flagFault(src[0])
	}
	var x, y fp.Element
	okX := loadCoordinate(&x, (*[fp.Bytes]byte)(src[:fp.Bytes]))
	okY := loadCoordinate(&y, (*[fp.Bytes]byte)(src[fp.Bytes:]))
	if !okX || !okY {
		return faultRange
	}
	p.X.Mul(&x, &toMontgomery)
	p.Y.Mul(&y, &toMontgomery)
	x.Square(&p.X)
	x.Mul(&x, &p.X)
	x.Add(&x, &curveB)
	y.Square(&p.Y)
	if !x.Equal(&y) {
		if p.X.IsZero() && p.Y.IsZero() {
			return faultZero
		}
		return faultCurve
	}
	return faultNone
}

// decodeG2 reads all of src before it writes p, so src may be p's own memory.
func decodeG2(p *bls.G2Affine, src *[G2Bytes]byte) fault {
	if src[0]&flagMask != 0 {
		return flagFault(src[0])
	}
	var x, y bls.E2
	ok := loadCoordinate(&x.A1, (*[fp.Bytes]byte)(src[0:48]))
	ok = loadCoordinate(&x.A0, (*[fp.Bytes]byte)(src[48:96])) && ok
	ok = loadCoordinate(&y.A1, (*[fp.Bytes]byte)(src[96:144])) && ok
	ok = loadCoordinate(&y.A0, (*[fp.Bytes]byte)(src[144:192])) && ok
	if !ok {
		return faultRange
	}
	p.X.A0.Mul(&x.A0, &toMontgomery)
	p.X.A1.Mul(&x.A1, &toMontgomery)
	p.Y.A0.Mul(&y.A0, &toMontgomery)
	p.Y.A1.Mul(&y.A1, &toMontgomery)
	x.Square(&p.X)
	x.Mul(&x, &p.X)
	x.A0.Add(&x.A0, &curveB)
	x.A1.Add(&x.A1, &curveB)
	y.Square(&p.Y)
	if !x.Equal(&y) {
		if p.X.IsZero() && p.Y.IsZero() {
			return faultZero
		}
		return faultCurve
	}
	return faultNone
}

// g1Memory and g2Memory are the bytes of a slice of points. An encoded point takes exactly the memory of a
// decoded one, so files are read into the destination and decoded in place, without a second buffer.
func g1Memory(points []bls.G1Affine) []byte {
	if len(points) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&points[0])), len(points)*G1Bytes)
}

func g2Memory(points []bls.G2Affine) []byte {
	if len(points) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&points[0])), len(points)*G2Bytes)
}

// The two sizes that reading in place rests on: a difference does not compile.
var (
	_ [G1Bytes]byte = [unsafe.Sizeof(bls.G1Affine{})]byte{}
	_ [G2Bytes]byte = [unsafe.Sizeof(bls.G2Affine{})]byte{}
)

// readVKBytes reads the bytes of one key from r and nothing beyond it; its points are not looked at. Memory grows
// with what r really delivers, not with the count that it claims.
func readVKBytes(r io.Reader) ([]byte, error) {
	const op = "params.ReadVK"
	head := make([]byte, groth16.VKHeadBytes)
	if n, err := io.ReadFull(r, head); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, status.New(status.Params, op, "vk", fmt.Sprintf("%d bytes before the ic points", len(head)), fmt.Sprintf("%d (truncated)", n))
		}
		return nil, status.Wrap(status.Params, op, "vk", err)
	}
	size, err := groth16.VKSize(head)
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(r, int64(size-len(head))))
	if err != nil {
		return nil, status.Wrap(status.Params, op, "vk.ic", err)
	}
	if got := len(head) + len(rest); got != size {
		return nil, status.New(status.Params, op, "vk.ic", fmt.Sprintf("%d bytes for %d points", size, (size-len(head))/G1Bytes), fmt.Sprintf("%d bytes (truncated)", got))
	}
	return append(head, rest...), nil
}
