package ntt

import (
	"fmt"
	"math"
	"math/big"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// MaxLog is the largest transform, 2^MaxLog elements: roots of twice that order exist, and indices have 32 bits.
const MaxLog = 28

// elementBytes is the size of a scalar on host and device.
const elementBytes = fr.Bytes

// tileLog is ntt_tile_log of cuda/kernels/tuning/ntt.cuh: a block works on 2^tileLog elements. minColumnLog bounds the
// rows of a tile from below, in elements.
const (
	tileLog      = 10
	minColumnLog = 2
	tileThreads  = 1 << tileLog / 8
	sharedBytes  = elementBytes << tileLog
)

// Transforms queues transforms of up to 2^Log elements. It is used by one goroutine at a time.
type Transforms struct {
	log, rootsLog                               int // the table has 2^rootsLog roots
	fillRoots, forward, inverse, inverseNatural driver.Kernel
	forwardShifted, inverseShifted, subtract    driver.Kernel
	roots                                       driver.Ptr   // the table
	seeds                                       []fr.Element // what Prepare uploads
	args                                        driver.Args
	passes                                      [MaxLog + 1][]pass
	natural                                     [MaxLog + 1][]pass // of inverse transforms of values in natural order
}

// pass is some neighbouring levels of a transform.
type pass struct {
	geometry
	// Where rest is not 0 the pass is the first below the cut (see below): rest levels are left from it on, and shiftCoset is the
	// number of the tree's coset.
	rest, shiftCoset uint32
}

// geometry, shift and finish are NttPass, NttShift and NttFinish of the kernels.
type geometry struct{ log, stride, columns, coset, natural, inside uint32 }

type shift struct {
	low                        driver.Ptr
	log, rootsLog, rest, coset uint32
}

type finish struct {
	other      driver.Ptr
	_          uint64
	scale      fr.Element
	otherScale fr.Element
	kind       uint32
	_, _, _    uint32
}

// Kinds of finish.
const (
	plain = iota
	scaled
	subtracted
)

// rootBytes is the size of a root in the table, where it is kept in two forms.
const rootBytes = 2 * elementBytes

// TableBytes is the device memory that the roots for transforms of up to 2^log elements take: twice as much as a vector, and
// what they are made from.
func TableBytes(log int) int64 { return tableBytes(log, log) }

// CompactBytes is the same for NewCompact: 4 MiB and little more for 2^27 and 2^28.
func CompactBytes(log int) int64 { return tableBytes(log, compactLog(log)) }

func tableBytes(log, rootsLog int) int64 {
	low := lowLog(rootsLog)
	return rootBytes<<rootsLog + elementBytes<<low + elementBytes<<(rootsLog-low) + elementBytes<<(log-rootsLog)
}

// lowLog splits the digits of a root's number in two halves.
func lowLog(log int) int { return log / 2 }

// New finds the kernels by their names and places the table of roots at a device address that is aligned to 256 bytes and has
// TableBytes(log) bytes. Errors: Internal for a log above MaxLog; NoDevice where a kernel is missing.
func New(find func(name string) (driver.Kernel, error), log int, at driver.Ptr) (*Transforms, error) {
	return assemble("ntt.New", find, log, log, at)
}

// NewCompact is New with few roots, in CompactBytes(log) bytes: the same values, for two more products an element and transform. Errors: as New.
func NewCompact(find func(name string) (driver.Kernel, error), log int, at driver.Ptr) (*Transforms, error) {
	return assemble("ntt.NewCompact", find, log, compactLog(log), at)
}

func assemble(op string, find func(name string) (driver.Kernel, error), log, rootsLog int, at driver.Ptr) (*Transforms, error) {
	if log < 0 || log > MaxLog {
		return nil, status.New(status.Internal, op, "log", fmt.Sprintf("0 to %d", MaxLog), fmt.Sprint(log))
	}
	t := &Transforms{log: log, rootsLog: rootsLog, roots: at}
	for _, k := range []struct {
		name string
		into *driver.Kernel
	}{
		{"ntt_fill_roots", &t.fillRoots}, {"ntt_forward", &t.forward}, {"ntt_inverse", &t.inverse}, {"ntt_inverse_natural", &t.inverseNatural},
		{"ntt_forward_shifted", &t.forwardShifted}, {"ntt_inverse_shifted", &t.inverseShifted}, {"ntt_subtract", &t.subtract},
	} {
		var err error
		if *k.into, err = find(k.name); err != nil {
			return nil, err
		}
	}
	if err := t.inverseNatural.AllowShared(2 * sharedBytes); err != nil {
		return nil, err
	}
	for l := range t.passes[:log+1] {
		t.passes[l], t.natural[l] = cut(passesOf(l), l, rootsLog), cut(naturalPassesOf(l), l, rootsLog)
	}
	return t, nil
}

// Kernels lists all kernels, for warming.
func (t *Transforms) Kernels() []driver.Kernel {
	return []driver.Kernel{t.fillRoots, t.forward, t.inverse, t.inverseNatural, t.forwardShifted, t.inverseShifted, t.subtract}
}

// every counts all digits of a group's number.
const every = math.MaxUint32

// passesOf cuts the levels of a transform into passes, from the first level on: the last ten are done on one piece of
// memory, those before on rows.
func passesOf(log int) []pass {
	if log <= tileLog {
		return []pass{{geometry: geometry{log: uint32(log), columns: uint32(tileLog - log), coset: 1 << tileLog, inside: every}}}
	}
	return append(rowPasses(log, log-tileLog), pass{geometry: geometry{log: uint32(log), coset: 1 << log, inside: every}})
}

// naturalLevels is how many levels ntt_inverse_natural does.
const naturalLevels = tileLog / 2

// naturalPassesOf is passesOf for inverse transforms of values in natural order, whose first pass, the last of the list,
// is ntt_inverse_natural, but for those smaller than a tile.
func naturalPassesOf(log int) []pass {
	if log < tileLog {
		p := passesOf(log)
		p[0].natural = 1
		return p
	}
	return append(rowPasses(log, log-naturalLevels), pass{geometry: geometry{log: uint32(log), stride: uint32(log - naturalLevels), columns: naturalLevels, inside: every}})
}

// rowPasses cuts the first levels of a transform evenly into passes on rows, the larger ones last, where rows are closest.
func rowPasses(log, levels int) (list []pass) {
	const most = tileLog - minColumnLog
	for above := 0; above < levels; {
		left := levels - above
		n := left / ((left + most - 1) / most)
		list = append(list, pass{geometry: geometry{
			log: uint32(log), stride: uint32(log - above - n), columns: uint32(tileLog - n), coset: 1 << (above + tileLog), inside: every,
		}})
		above += n
	}
	return list
}

// levels is how many levels the pass does. That of ntt_inverse_natural does as many as it has columns, which is half a tile.
func (p *pass) levels() int { return tileLog - int(p.columns) }

// bestCut is the cut of a list for which the fewest roots do, 2^rootsLog: the levels above it, 0 where there is none. Levels above take
// as many roots as they have groups on the coset; levels below, as a transform of what is left on the domain.
// There is no cut before the pass of ntt_inverse_natural, which does not shift.
func bestCut(list []pass, log int) (above, rootsLog int) {
	rootsLog = log
	if last := &list[len(list)-1]; last.coset == 0 { // on the domain alone
		rootsLog = max(0, log-1)
		list = list[:len(list)-1]
	}
	at := 0
	for i := range list[:max(0, len(list)-1)] {
		at += list[i].levels()
		if need := max(at, log-at-1); need < rootsLog {
			above, rootsLog = at, need
		}
	}
	return above, rootsLog
}

// compactLog is the size of the smallest table that serves all transforms of up to 2^log elements.
func compactLog(log int) (most int) {
	for l := range log + 1 {
		for _, list := range [][]pass{passesOf(l), naturalPassesOf(l)} {
			_, need := bestCut(list, l)
			most = max(most, need)
		}
	}
	return most
}

// cut prepares a list for a table of 2^rootsLog roots: as it is where they do, else for the best cut.
func cut(list []pass, log, rootsLog int) []pass {
	above, _ := bestCut(list, log)
	if above == 0 || log <= rootsLog {
		return list
	}
	at := 0
	for i := range list {
		p := &list[i]
		if at == above {
			p.rest, p.shiftCoset = uint32(log-above), p.coset
		}
		if at >= above {
			p.inside = 1<<(at-above+tileLog) - 1
			if p.coset == 0 { // ntt_inverse_natural goes by the places of elements
				p.inside = 1<<(log-above) - 1
			}
			p.coset = 0
		}
		at += p.levels()
	}
	return list
}

// Prepare queues the making of the table. t must live until the stream has passed it. It is about the work of a pass, so where
// memory is short the table may be made for each quotient anew, in memory that others have between.
func (t *Transforms) Prepare(s *driver.Stream) error {
	low := lowLog(t.rootsLog)
	lows, highs, rest := 1<<low, 1<<(t.rootsLog-low), 1<<(t.log-t.rootsLog)
	t.seeds = make([]fr.Element, lows+highs+rest)
	for _, part := range []struct {
		out   []fr.Element
		shift int
	}{{t.seeds[:lows], 0}, {t.seeds[lows : lows+highs], low}, {t.seeds[lows+highs:], t.rootsLog}} {
		if err := fillRoots(part.out, part.shift); err != nil {
			return err
		}
	}
	seeds := t.roots.Add(rootBytes << t.rootsLog)
	if err := s.CopyToDevice(seeds, unsafe.Pointer(&t.seeds[0]), int64(len(t.seeds))*elementBytes); err != nil {
		return err
	}
	modulus, two256 := fr.Modulus(), new(big.Int).Lsh(big.NewInt(1), 8*elementBytes)
	inverse := new(big.Int).ModInverse(modulus, two256)
	var minusInverse fr.Element // as raw words
	for i, w := range inverse.Sub(two256, inverse).Bits() {
		minusInverse[i] = uint64(w)
	}
	count := uint32(1) << t.rootsLog
	t.args.Reset().Ptr(t.roots).Ptr(seeds).Ptr(seeds.Add(int64(lows)*elementBytes)).U32(uint32(low)).U32(count).Struct(unsafe.Pointer(&minusInverse), elementBytes)
	return s.Launch(t.fillRoots, driver.Dim{X: max(1, min(count/256, 1<<14))}, driver.Dim{X: 256}, 0, &t.args)
}

// fillRoots writes roots[k << shift] of the kernels' table to out[k]: the digits of k, lowest first, are those of the
// root's part of a full turn from the second binary place on.
func fillRoots(out []fr.Element, shift int) error {
	out[0] = fr.One()
	for j := 0; 1<<j < len(out); j++ {
		w, err := fft.Generator(1 << (j + shift + 2))
		if err != nil {
			return status.Wrap(status.Internal, "ntt.Prepare", fmt.Sprintf("root of order 2^%d", j+shift+2), err)
		}
		for k := range 1 << j {
			out[1<<j+k].Mul(&out[k], &w)
		}
	}
	return nil
}

// Forward queues the transform of 2^log coefficients at v, in natural order, into the values on the domain, or on the coset
// of a root of unity of order 2^(log+1), in bit-reversed order, in place.
func (t *Transforms) Forward(s *driver.Stream, v driver.Ptr, log int, coset bool) error {
	list, err := t.list("ntt.Forward", log)
	if err != nil {
		return err
	}
	return t.forwardPasses(s, v, list, coset, 0)
}

// Inverse queues the way back: from values in bit-reversed order to coefficients in natural order.
func (t *Transforms) Inverse(s *driver.Stream, v driver.Ptr, log int, coset bool) error {
	list, err := t.list("ntt.Inverse", log)
	if err != nil {
		return err
	}
	f := finish{kind: scaled}
	f.scale.SetUint64(1 << log).Inverse(&f.scale)
	return t.inversePasses(s, v, list, coset, &f)
}

// Interpolate is Inverse for values on the domain in natural order.
func (t *Transforms) Interpolate(s *driver.Stream, v driver.Ptr, log int) error {
	if _, err := t.list("ntt.Interpolate", log); err != nil {
		return err
	}
	f := finish{kind: scaled}
	f.scale.SetUint64(1 << log).Inverse(&f.scale)
	return t.naturalPasses(s, v, log, &f)
}

// Quotient queues h = (a b - c)/(X^n - 1), n = 2^log, from the values of a, b and c on the domain (n of each, in
// natural order). h goes to b: n coefficients in Montgomery form and natural order, the last of them zero where every
// row is satisfied. a and c are scratch. It is CosetValues of a, CosetValues of b times a, and Divide.
//
// Six transforms: on the coset where X^n = -1 a b = c - 2 h, so with d of that interpolation h = (c - d)/2.
func (t *Transforms) Quotient(s *driver.Stream, a, b, c driver.Ptr, log int) error {
	if err := t.CosetValues(s, a, 0, log); err != nil {
		return err
	}
	if err := t.CosetValues(s, b, a, log); err != nil {
		return err
	}
	return t.Divide(s, b, c, log)
}

// CosetValues is the first part of a quotient, and the second: it replaces the values of a polynomial on the domain, in natural
// order, by 2^log times those on the coset, in bit-reversed order, and multiplies them by the elements of times where that is not 0. So with
// two vectors x and y a quotient is: a to x, CosetValues(x, 0); b to y, CosetValues(y, x); c to x, Divide(y, x).
func (t *Transforms) CosetValues(s *driver.Stream, v, times driver.Ptr, log int) error {
	list, err := t.list("ntt.CosetValues", log)
	if err != nil {
		return err
	}
	if err := t.naturalPasses(s, v, log, &finish{}); err != nil {
		return err
	}
	return t.forwardPasses(s, v, list, true, times)
}

// Divide is the last part of a quotient: product has the values of a and b on the coset, multiplied, as CosetValues leaves them, and becomes h.
// c has its values on the domain in natural order, and is scratch.
func (t *Transforms) Divide(s *driver.Stream, product, c driver.Ptr, log int) error {
	list, err := t.list("ntt.Divide", log)
	if err != nil {
		return err
	}
	if err := t.naturalPasses(s, c, log, &finish{}); err != nil {
		return err
	}
	f := quotientFinish(c, log)
	return t.inversePasses(s, product, list, true, &f)
}

// quotientFinish makes h of the coefficients of the product on the coset and of c. The ways back leave out 1/n: a, b and c are n
// times too large, and d, of their product, n^3 times.
func quotientFinish(c driver.Ptr, log int) finish {
	f := finish{other: c, kind: subtracted}
	f.otherScale.SetUint64(1 << (log + 1)).Inverse(&f.otherScale)
	f.scale.SetUint64(1<<log).Square(&f.scale).Inverse(&f.scale).Mul(&f.scale, &f.otherScale)
	return f
}

// list is the passes of a size.
func (t *Transforms) list(op string, log int) ([]pass, error) {
	if log < 0 || log > t.log {
		return nil, status.New(status.Internal, op, "log", fmt.Sprintf("0 to %d, the table's", t.log), fmt.Sprint(log))
	}
	return t.passes[log], nil
}

// forwardPasses queues passes from the first to the last, which multiplies by the values of other where it is not 0.
func (t *Transforms) forwardPasses(s *driver.Stream, v driver.Ptr, list []pass, coset bool, other driver.Ptr) error {
	for i, p := range list {
		a := t.begin(v, p, coset)
		if i < len(list)-1 {
			a.Ptr(0)
		} else {
			a.Ptr(other)
		}
		k := t.forward
		if p.rest > 0 {
			k = t.forwardShifted
			t.shift(p, coset)
		}
		if err := t.launch(s, k, p); err != nil {
			return err
		}
	}
	return nil
}

// inversePasses queues passes from the last to the first, which f finishes.
func (t *Transforms) inversePasses(s *driver.Stream, v driver.Ptr, list []pass, coset bool, f *finish) error {
	for i := len(list) - 1; i >= 0; i-- {
		end := f
		if i > 0 {
			end = &finish{}
		}
		a, k := t.begin(v, list[i], coset), t.inverse
		if list[i].rest > 0 { // plain: the pass above the cut is finished, not this one
			k = t.inverseShifted
			t.shift(list[i], coset)
		} else {
			a.Struct(unsafe.Pointer(end), int(unsafe.Sizeof(*end)))
		}
		if err := t.launch(s, k, list[i]); err != nil {
			return err
		}
	}
	return nil
}

// naturalPasses is inversePasses for values on the domain in natural order.
func (t *Transforms) naturalPasses(s *driver.Stream, v driver.Ptr, log int, f *finish) error {
	if err := t.naturalFirst(s, v, log); err != nil {
		return err
	}
	return t.inversePasses(s, v, t.naturalRest(log), false, f)
}

// naturalRest is the passes of those that follow naturalFirst.
func (t *Transforms) naturalRest(log int) []pass {
	list := t.natural[log]
	if log < tileLog {
		return list
	}
	return list[:len(list)-1]
}

// naturalFirst queues the first of those passes, which transforms smaller than a tile do not have.
func (t *Transforms) naturalFirst(s *driver.Stream, v driver.Ptr, log int) error {
	if log < tileLog {
		return nil
	}
	list := t.natural[log]
	t.begin(v, list[len(list)-1], false)
	return s.Launch(t.inverseNatural, driver.Dim{X: 1 << (log - tileLog)}, driver.Dim{X: 2 * tileThreads}, 2*sharedBytes, &t.args)
}

// begin starts the arguments of a pass with those that all have.
func (t *Transforms) begin(v driver.Ptr, p pass, coset bool) *driver.Args {
	g := p.geometry
	if !coset {
		g.coset = 0
	}
	return t.args.Reset().Ptr(v).Struct(unsafe.Pointer(&g), int(unsafe.Sizeof(g))).Ptr(t.roots)
}

// shift adds the argument of a pass below the cut.
func (t *Transforms) shift(p pass, coset bool) {
	low := lowLog(t.rootsLog)
	seeds := int64(1)<<low + int64(1)<<(t.rootsLog-low)
	x := shift{low: t.roots.Add(rootBytes<<t.rootsLog + seeds*elementBytes), log: uint32(t.log), rootsLog: uint32(t.rootsLog), rest: p.rest}
	if coset {
		x.coset = p.shiftCoset
	}
	t.args.Struct(unsafe.Pointer(&x), int(unsafe.Sizeof(x)))
}

// launch queues a kernel with the arguments of a pass.
func (t *Transforms) launch(s *driver.Stream, k driver.Kernel, p pass) error {
	tiles := uint32(1) << max(0, int(p.log)-tileLog)
	return s.Launch(k, driver.Dim{X: tiles}, driver.Dim{X: tileThreads}, sharedBytes, &t.args)
}
