package points

import (
	"fmt"
	"math"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// Group is the group that points are of.
type Group int

// The two groups.
const (
	G1 Group = iota
	G2
	groupCount
)

func (g Group) String() string { return [...]string{"g1", "g2"}[g] }

// PointBytes is the size of an affine point, on the device and encoded.
func (g Group) PointBytes() int64 {
	return [...]int64{int64(unsafe.Sizeof(bls.G1Affine{})), int64(unsafe.Sizeof(bls.G2Affine{}))}[g]
}

// xyzzBytes and fieldBytes are the sizes of a sum under way and of a coordinate.
func (g Group) xyzzBytes() int64  { return 2 * g.PointBytes() }
func (g Group) fieldBytes() int64 { return g.PointBytes() / 2 }

// Fault is what is wrong with a point.
type Fault uint8

// The faults, as codec.cuh of the kernels numbers them.
const (
	NoFault        Fault = iota
	FlagsSet             // a flag of the first byte that no finite point has
	Infinity             // the point at infinity
	OutOfRange           // a coordinate of p or more
	ZeroBytes            // zero bytes only: a hole in the file
	OffCurve             // not on the curve
	OutsideOfGroup       // on the curve, but not of order r
)

// FaultBytes is the size of a fault word on the device. Before first use its bytes are 0xff; kernels keep in it the
// fault of the lowest index.
const FaultBytes = 8

// FaultOf reads a fault word.
func FaultOf(word uint64) (index uint64, f Fault, found bool) {
	if word == math.MaxUint64 {
		return 0, NoFault, false
	}
	return word >> 8, Fault(word), true
}

// maxCount bounds what one launch works on.
const maxCount = math.MaxInt32

// blockThreads is block_threads of cuda/kernels/tuning/points.cuh.
const blockThreads = 128

// groupKernels are the kernels of one group.
type groupKernels struct{ decode, encode, order, sum, sumsOrder, extend, multiply driver.Kernel }

// Points has the kernels.
type Points struct {
	group          [groupCount]groupKernels
	recode, powers driver.Kernel
	all            []driver.Kernel
	args           driver.Args
}

// New finds the kernels by their names. Errors: NoDevice where one is missing.
func New(find func(name string) (driver.Kernel, error)) (*Points, error) {
	p := &Points{}
	get := func(into *driver.Kernel, name string) error {
		k, err := find(name)
		if err != nil {
			return err
		}
		*into = k
		p.all = append(p.all, k)
		return nil
	}
	for g := range groupCount {
		k := &p.group[g]
		for _, e := range []struct {
			name string
			into *driver.Kernel
		}{
			{"decode", &k.decode}, {"encode", &k.encode}, {"order", &k.order}, {"sum", &k.sum},
			{"sums_order", &k.sumsOrder}, {"extend", &k.extend}, {"multiply", &k.multiply},
		} {
			if err := get(e.into, "points_"+e.name+"_"+g.String()); err != nil {
				return nil, err
			}
		}
	}
	if err := get(&p.recode, "points_recode"); err != nil {
		return nil, err
	}
	if err := get(&p.powers, "points_powers"); err != nil {
		return nil, err
	}
	return p, nil
}

// Kernels lists all kernels, for warming.
func (p *Points) Kernels() []driver.Kernel { return p.all }

// launch runs a kernel with a thread for each of count.
func (p *Points) launch(s *driver.Stream, k driver.Kernel, count int, a *driver.Args) error {
	return s.Launch(k, driver.Dim{X: uint32((count + blockThreads - 1) / blockThreads)}, driver.Dim{X: blockThreads}, 0, a)
}

func checkCount(op string, count int) error {
	if count < 0 || count > maxCount {
		return status.New(status.Internal, op, "count", fmt.Sprintf("0 to %d", maxCount), fmt.Sprint(count))
	}
	return nil
}

// Decode turns count encoded points at from into affine ones at to, which may be from; both are aligned to 16 bytes.
// The first thing wrong goes to the fault word, with first as the index of the first point. It refuses what
// params.DecodeG1Uncompressed and DecodeG2Uncompressed refuse; the order is not checked. Errors: those of a launch.
func (p *Points) Decode(s *driver.Stream, g Group, from, to driver.Ptr, first uint64, count int, fault driver.Ptr) error {
	if err := checkCount("points.Decode", count); err != nil || count == 0 {
		return err
	}
	return p.launch(s, p.group[g].decode, count, p.args.Reset().Ptr(from).Ptr(to).U64(first).U32(uint32(count)).Ptr(fault))
}

// Encode turns count affine points at from into encoded ones at to, which may be from; both are aligned to 16 bytes.
func (p *Points) Encode(s *driver.Stream, g Group, from, to driver.Ptr, count int) error {
	if err := checkCount("points.Encode", count); err != nil || count == 0 {
		return err
	}
	return p.launch(s, p.group[g].encode, count, p.args.Reset().Ptr(from).Ptr(to).U32(uint32(count)))
}

// Order checks the order of every point on its own: some 1300 products each. Points are on the curve; infinity passes.
// Faults as in Decode.
func (p *Points) Order(s *driver.Stream, g Group, points driver.Ptr, first uint64, count int, fault driver.Ptr) error {
	if err := checkCount("points.Order", count); err != nil || count == 0 {
		return err
	}
	return p.launch(s, p.group[g].order, count, p.args.Reset().Ptr(points).U64(first).U32(uint32(count)).Ptr(fault))
}

// SquaresBytes is the size of the table that Powers takes.
const SquaresBytes = 32 * fr.Bytes

// Squares are base^(2^k) for k from 0 to 31: the table of Powers, to be copied to the device.
func Squares(base fr.Element) (table [32]fr.Element) {
	table[0] = base
	for k := 1; k < len(table); k++ {
		table[k].Square(&table[k-1])
	}
	return table
}

// powersRun is how many neighbours a thread of Powers makes.
const powersRun = 32

// Powers writes scale * base^first, scale * base^(first+1), ... to count scalars at to; squares holds Squares(base).
func (p *Points) Powers(s *driver.Stream, squares driver.Ptr, scale fr.Element, first uint32, count int, to driver.Ptr) error {
	const op = "points.Powers"
	if err := checkCount(op, count); err != nil || count == 0 {
		return err
	}
	if uint64(first)+uint64(count) > 1<<32 {
		return status.New(status.Internal, op, "exponents", "below 2^32", fmt.Sprintf("%d and %d behind it", first, count))
	}
	a := p.args.Reset().Ptr(squares).Struct(unsafe.Pointer(&scale), fr.Bytes).U32(first).U32(uint32(count)).U32(powersRun).Ptr(to)
	return p.launch(s, p.powers, (count+powersRun-1)/powersRun, a)
}
