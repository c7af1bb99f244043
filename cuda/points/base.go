package points

import (
	"fmt"
	"math/big"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// The widths of a window. A scalar of up to (r-1)/2 and its bias, 2^(bits-1) a window, stay below 2^(bits * windows):
// with 255 bits together the bias is 2^254 * 2^bits / (2^bits - 1), which 4 bits or more leave enough room. They
// fill at most 9 words.
const (
	minWindowBits = 4
	maxWindowBits = 24
)

// perThread is how many products a thread has under way at most: they share an inversion, which costs about as much
// as 20 products of coordinates.
const perThread = 32

// threadsPerSM is how many threads a multiprocessor works on; more find no registers.
const threadsPerSM = 512

// Base multiplies one point by many scalars.
type Base struct {
	points  *Points
	group   Group
	bits    int
	windows int
	table   driver.Ptr
	bias    [10]uint32
	places  []byte // the windows' first entries, until the stream has taken them
	threads int
}

// windowsOf is how many windows cover a scalar in the half of the field nearer to zero, and a bit for the sign of the top digit.
func windowsOf(bits int) int { return (fr.Bits + bits - 1) / bits }

// BaseBits is the width of windows that needs the fewest additions for count products, the table's included, among
// those whose table is at most maxBytes.
func BaseBits(g Group, count, maxBytes int64) int {
	best, bestCost := minWindowBits, int64(-1)
	for bits := minWindowBits; bits <= maxWindowBits; bits++ {
		if bits > minWindowBits && TableBytes(g, bits) > maxBytes {
			break
		}
		if cost := int64(windowsOf(bits)-1)*count + int64(windowsOf(bits))<<(bits-1); bestCost < 0 || cost < bestCost {
			best, bestCost = bits, cost
		}
	}
	return best
}

// TableBytes is the size of a Base's table.
func TableBytes(g Group, bits int) int64 {
	return int64(windowsOf(bits)) * (g.PointBytes() << (bits - 1))
}

// BatchCount is how many products a Multiply of a device does at a time.
func BatchCount(d *driver.Device) int { return d.SMCount * threadsPerSM * perThread }

// BaseScratchBytes is the scratch memory for making a Base, and for products, batch at a time.
func BaseScratchBytes(g Group, bits, batch int) int64 {
	making := int64(windowsOf(bits)) * max(1, (g.fieldBytes()<<(bits-1))/2)
	return max(making, batchBytes(g, bits, batch))
}

// batchBytes holds digits, then prefixes.
func batchBytes(g Group, bits, batch int) int64 {
	return digitBytes(bits, batch) + int64(batch)*g.fieldBytes()
}

func digitBytes(bits, batch int) int64 {
	return (4*int64(windowsOf(bits))*int64(batch) + 15) &^ 15
}

// NewBaseG1 queues the making of a table at table (TableBytes, aligned to 16 bytes); scratch is of BaseScratchBytes. The
// Base must be kept until the stream has passed. Errors: Internal for bits outside 4 to 24; those of a launch.
func (p *Points) NewBaseG1(s *driver.Stream, base *bls.G1Affine, bits int, table, scratch driver.Ptr) (*Base, error) {
	var at bls.G1Jac
	at.FromAffine(base)
	return p.newBase(s, G1, bits, table, scratch, func() []byte {
		place := new(bls.G1Affine).FromJacobian(&at)
		for range bits {
			at.DoubleAssign()
		}
		return unsafe.Slice((*byte)(unsafe.Pointer(place)), unsafe.Sizeof(*place))
	})
}

// NewBaseG2 is NewBaseG1 for G2.
func (p *Points) NewBaseG2(s *driver.Stream, base *bls.G2Affine, bits int, table, scratch driver.Ptr) (*Base, error) {
	var at bls.G2Jac
	at.FromAffine(base)
	return p.newBase(s, G2, bits, table, scratch, func() []byte {
		place := new(bls.G2Affine).FromJacobian(&at)
		for range bits {
			at.DoubleAssign()
		}
		return unsafe.Slice((*byte)(unsafe.Pointer(place)), unsafe.Sizeof(*place))
	})
}

// newBase makes the tables; next gives the windows' places one after the other.
func (p *Points) newBase(s *driver.Stream, g Group, bits int, table, scratch driver.Ptr, next func() []byte) (*Base, error) {
	if bits < minWindowBits || bits > maxWindowBits {
		return nil, status.New(status.Internal, "points.NewBase", "bits of a window", fmt.Sprintf("%d to %d", minWindowBits, maxWindowBits), fmt.Sprint(bits))
	}
	b := &Base{points: p, group: g, bits: bits, windows: windowsOf(bits), table: table, threads: s.Device().SMCount * threadsPerSM}
	bias := new(big.Int)
	for range b.windows {
		bias.Lsh(bias, uint(bits)).Or(bias, new(big.Int).Lsh(big.NewInt(1), uint(bits-1)))
	}
	for i := range b.bias {
		b.bias[i] = uint32(new(big.Int).Rsh(bias, uint(32*i)).Uint64())
	}
	for range b.windows {
		b.places = append(b.places, next()...)
	}
	entries := 1 << (bits - 1)
	for w := range b.windows {
		at := table.Add(int64(w*entries) * g.PointBytes())
		if err := s.CopyToDevice(at, unsafe.Pointer(&b.places[int64(w)*g.PointBytes()]), g.PointBytes()); err != nil {
			return nil, err
		}
	}
	for have := 1; have < entries; have *= 2 {
		threads := min(have, max(b.threads/b.windows, (have+perThread-1)/perThread))
		grid := driver.Dim{X: uint32((threads + blockThreads - 1) / blockThreads), Y: uint32(b.windows)}
		a := p.args.Reset().Ptr(table).U32(uint32(entries)).U32(uint32(have)).Ptr(scratch)
		if err := s.Launch(p.group[g].extend, grid, driver.Dim{X: blockThreads}, 0, a); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Multiply writes the products of the base by count scalars (Montgomery form) to affine points at to, batch at a time.
// scratch is of BaseScratchBytes for that batch, aligned to 16 bytes.
func (b *Base) Multiply(s *driver.Stream, scalars driver.Ptr, count int, to, scratch driver.Ptr, batch int) error {
	const op = "points.Multiply"
	if err := checkCount(op, count); err != nil {
		return err
	}
	if batch <= 0 {
		return status.New(status.Internal, op, "batch", "1 product at least", fmt.Sprint(batch))
	}
	p := b.points
	prefixes := scratch.Add(digitBytes(b.bits, batch))
	for done := 0; done < count; done += batch {
		n := min(batch, count-done)
		a := p.args.Reset().Ptr(scalars.Add(int64(done)*fr.Bytes)).U32(uint32(n)).Struct(unsafe.Pointer(&b.bias), len(b.bias)*4).
			U32(uint32(b.bits)).U32(uint32(b.windows)).Ptr(scratch)
		if err := p.launch(s, p.recode, n, a); err != nil {
			return err
		}
		a = p.args.Reset().Ptr(b.table).U32(1 << (b.bits - 1)).Ptr(scratch).U32(uint32(b.windows)).U32(uint32(n)).
			Ptr(to.Add(int64(done) * b.group.PointBytes())).Ptr(prefixes)
		if err := p.launch(s, p.group[b.group].multiply, min(n, max(b.threads, (n+perThread-1)/perThread)), a); err != nil {
			return err
		}
	}
	return nil
}
