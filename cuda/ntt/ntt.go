package ntt

import (
	"fmt"
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
	log                                                             int
	fillRoots, forward, inverse, inverseForward, multiply, subtract driver.Kernel
	roots                                                           driver.Ptr   // the table
	seeds                                                           []fr.Element // what Prepare uploads
	args                                                            driver.Args
	passes                                                          [MaxLog + 1][]pass
}

// pass and finish are NttPass and NttFinish of the kernels.
type pass struct{ log, stride, columns, coset uint32 }

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

// TableBytes is the device memory that the roots for transforms of up to 2^log elements take: as much as a vector, and
// what they are made from.
func TableBytes(log int) int64 { return elementBytes * (int64(1)<<log + int64(1)<<(log-lowLog(log))) }

// lowLog splits the digits of a root's number in two halves.
func lowLog(log int) int { return log / 2 }

// New finds the kernels by their names and places the table of roots at a device address that is aligned to 256 bytes and has
// TableBytes(log) bytes. Errors: Internal for a log above MaxLog; NoDevice where a kernel is missing.
func New(find func(name string) (driver.Kernel, error), log int, at driver.Ptr) (*Transforms, error) {
	if log < 0 || log > MaxLog {
		return nil, status.New(status.Internal, "ntt.New", "log", fmt.Sprintf("0 to %d", MaxLog), fmt.Sprint(log))
	}
	t := &Transforms{log: log, roots: at}
	for _, k := range []struct {
		name string
		into *driver.Kernel
	}{
		{"ntt_fill_roots", &t.fillRoots}, {"ntt_forward", &t.forward}, {"ntt_inverse", &t.inverse},
		{"ntt_inverse_forward", &t.inverseForward}, {"ntt_multiply", &t.multiply}, {"ntt_subtract", &t.subtract},
	} {
		var err error
		if *k.into, err = find(k.name); err != nil {
			return nil, err
		}
	}
	for l := range t.passes[:log+1] {
		t.passes[l] = passesOf(l)
	}
	return t, nil
}

// Kernels lists all kernels, for warming.
func (t *Transforms) Kernels() []driver.Kernel {
	return []driver.Kernel{t.fillRoots, t.forward, t.inverse, t.inverseForward, t.multiply, t.subtract}
}

// passesOf cuts the levels of a transform into passes, from the first level on: the last ten are done on one piece of
// memory, those before on rows.
func passesOf(log int) []pass {
	if log <= tileLog {
		return []pass{{log: uint32(log), columns: uint32(tileLog - log), coset: 1 << tileLog}}
	}
	rest := log - tileLog
	count := (rest + tileLog - minColumnLog - 1) / (tileLog - minColumnLog)
	var list []pass
	for above := 0; above < rest; {
		levels := (rest - above + count - len(list) - 1) / (count - len(list))
		list = append(list, pass{
			log: uint32(log), stride: uint32(log - above - levels), columns: uint32(tileLog - levels), coset: 1 << (above + tileLog),
		})
		above += levels
	}
	return append(list, pass{log: uint32(log), coset: 1 << log})
}

// Prepare queues the making of the table. t must live until the stream has passed it.
func (t *Transforms) Prepare(s *driver.Stream) error {
	low := lowLog(t.log)
	lows, highs := 1<<low, 1<<(t.log-low)
	t.seeds = make([]fr.Element, lows+highs)
	if err := fillRoots(t.seeds[:lows], 0); err != nil {
		return err
	}
	if err := fillRoots(t.seeds[lows:], low); err != nil {
		return err
	}
	if err := s.CopyToDevice(t.roots, unsafe.Pointer(&t.seeds[0]), int64(lows)*elementBytes); err != nil {
		return err
	}
	high := t.roots.Add(elementBytes << t.log)
	if err := s.CopyToDevice(high, unsafe.Pointer(&t.seeds[lows]), int64(highs)*elementBytes); err != nil {
		return err
	}
	count := uint32(1) << t.log
	t.args.Reset().Ptr(t.roots).Ptr(high).U32(uint32(low)).U32(count)
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
	return t.forwardPasses(s, v, list, coset)
}

// Inverse queues the way back.
func (t *Transforms) Inverse(s *driver.Stream, v driver.Ptr, log int, coset bool) error {
	list, err := t.list("ntt.Inverse", log)
	if err != nil {
		return err
	}
	f := finish{kind: scaled}
	f.scale.SetUint64(1 << log).Inverse(&f.scale)
	return t.inversePasses(s, v, list, coset, &f)
}

// Quotient queues h = (a b - c)/(X^n - 1), n = 2^log, from the values of a, b and c on the domain (n of each, in
// bit-reversed order). h goes to b: n coefficients in Montgomery form and natural order, the last of them zero where every
// row is satisfied. a and c are scratch.
//
// Six transforms: on the coset where X^n = -1 a b = c - 2 h, so with d of that interpolation h = (c - d)/2. The last pass of
// an inverse transform and the first of the forward one that follows are one, and so are the last pass of b's forward
// transform, the product and the first pass of d's.
func (t *Transforms) Quotient(s *driver.Stream, a, b, c driver.Ptr, log int) error {
	list, err := t.list("ntt.Quotient", log)
	if err != nil {
		return err
	}
	first, rest := list[0], list[1:]
	last := list[len(list)-1]
	if err := t.inversePasses(s, c, list, false, &finish{}); err != nil {
		return err
	}
	for _, v := range []driver.Ptr{a, b} {
		toCoset := rest
		if v == b {
			if len(rest) == 0 { // the only pass is the product's
				if err := t.inversePasses(s, b, list, false, &finish{}); err != nil {
					return err
				}
				break
			}
			toCoset = rest[:len(rest)-1]
		}
		if err := t.inversePasses(s, v, rest, false, &finish{}); err != nil {
			return err
		}
		if err := t.queue(s, t.inverseForward, first, true, nil, v); err != nil {
			return err
		}
		if err := t.forwardPasses(s, v, toCoset, true); err != nil {
			return err
		}
	}
	if err := t.queue(s, t.multiply, last, true, nil, b, a); err != nil {
		return err
	}
	// The ways back leave out 1/n: a, b and c are n times too large, and d, of their product, n^3 times.
	f := finish{other: c, kind: subtracted}
	f.otherScale.SetUint64(1 << (log + 1)).Inverse(&f.otherScale)
	f.scale.SetUint64(1<<log).Square(&f.scale).Inverse(&f.scale).Mul(&f.scale, &f.otherScale)
	if len(rest) > 0 {
		return t.inversePasses(s, b, list[:len(list)-1], true, &f)
	}
	count := uint32(1) << log
	t.args.Reset().Ptr(b).Struct(unsafe.Pointer(&f), int(unsafe.Sizeof(f))).U32(count)
	return s.Launch(t.subtract, driver.Dim{X: (count + 255) / 256}, driver.Dim{X: 256}, 0, &t.args)
}

// list is the passes of a size.
func (t *Transforms) list(op string, log int) ([]pass, error) {
	if log < 0 || log > t.log {
		return nil, status.New(status.Internal, op, "log", fmt.Sprintf("0 to %d, the table's", t.log), fmt.Sprint(log))
	}
	return t.passes[log], nil
}

func (t *Transforms) forwardPasses(s *driver.Stream, v driver.Ptr, list []pass, coset bool) error {
	for _, p := range list {
		if err := t.queue(s, t.forward, p, coset, nil, v); err != nil {
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
		if err := t.queue(s, t.inverse, list[i], coset, end, v); err != nil {
			return err
		}
	}
	return nil
}

// queue launches a kernel of a pass; f is for those that take one.
func (t *Transforms) queue(s *driver.Stream, k driver.Kernel, p pass, coset bool, f *finish, vectors ...driver.Ptr) error {
	if !coset {
		p.coset = 0
	}
	a := t.args.Reset()
	for _, v := range vectors {
		a.Ptr(v)
	}
	a.Struct(unsafe.Pointer(&p), int(unsafe.Sizeof(p))).Ptr(t.roots)
	if f != nil {
		a.Struct(unsafe.Pointer(f), int(unsafe.Sizeof(*f)))
	}
	tiles := uint32(1) << max(0, int(p.log)-tileLog)
	return s.Launch(k, driver.Dim{X: tiles}, driver.Dim{X: tileThreads}, sharedBytes, a)
}
