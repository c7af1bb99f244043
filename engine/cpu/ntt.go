package cpu

import (
	"math/big"
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/engine/status"
)

// A transform of n = rows x cols points is done in two passes over memory: one down the columns, one along
// the rows, each on eight columns or rows (lanes) at a time in a buffer that fits the cache. In between, the
// element of column j that became output k of its column is multiplied by w^(jk). Columns hold outputs in
// bit-reversed order, and rows too, so that the whole is in bit-reversed order:
//
//	inverse, decimation in frequency: natural order in, bit-reversed out: columns, powers, rows
//	forward, decimation in time: bit-reversed in, natural order out: rows, powers, columns

// lanes is the number of columns or rows that go through a pass together.
const lanes = 8

// laneKernel is the arithmetic of a pass. A buffer holds size rows of eight lanes, in a form of the kernel's
// own; values are in Montgomery form as fr.Element outside.
type laneKernel interface {
	// words is the size of a buffer for one row of lanes, in 64-bit words.
	words() int
	// constants brings factors into the kernel's form: constantWords words each.
	constants(dst []uint64, x []fr.Element)
	constantWords() int
	// load takes a buffer from its place in memory; lanes that the place does not have are zero. store is
	// its opposite.
	load(buf []uint64, src []fr.Element, p *place)
	store(dst []fr.Element, p *place, buf []uint64)
	// dif and dit transform the size rows of a buffer, for all lanes: natural order in and bit-reversed out,
	// and the other way round. twiddles are powers 0 to size/2-1 of the root, as constants.
	dif(buf []uint64, size int, twiddles []uint64)
	dit(buf []uint64, size int, twiddles []uint64)
	// scale multiplies row i by factors[i].
	scale(buf []uint64, size int, factors []uint64)
	// powers multiplies lane l of row order[k] by first[l] * ratio[l]^k.
	powers(buf []uint64, order []uint32, first, ratio *[lanes]fr.Element)
	// mul multiplies buffers row by row and lane by lane, where b is as load left it; the product is short of
	// the factor mulFactor. sub subtracts b from a.
	mul(a, b []uint64, size int)
	mulFactor() fr.Element
	sub(a, b []uint64, size int)
}

// constantTable makes room for n constants and fills it.
func constantTable(k laneKernel, x []fr.Element) []uint64 {
	t := make([]uint64, len(x)*k.constantWords())
	k.constants(t, x)
	return t
}

// geometry is what the transforms of one domain share. Tables take some 200 bytes times rows + cols.
type geometry struct {
	n, rows, cols        int // powers of two; rows is cols or twice that
	logRows, logCols     int
	root, inverse        fr.Element // w of order n, and 1/w
	zeta, zetaInverse    fr.Element // zeta^2 = w, of order 2n: the coset zeta w^i
	rowTable, rowInverse []uint64   // twiddles of transforms of rows points, w and 1/w
	colTable, colInverse []uint64   // of cols points
	rowOrder, colOrder   []uint32   // bit-reversed numbers below rows and cols
	coset, cosetInverse  []uint64   // zeta^(rows k) and its inverse at the bit-reversed place k of a row
}

// newGeometry works out the domain of n points, a power of two up to 2^31.
func newGeometry(k laneKernel, n int) *geometry {
	status.Check(n > 0 && n&(n-1) == 0, "cpu.newGeometry", "a power of two")
	log := bits.TrailingZeros(uint(n))
	g := &geometry{n: n, logRows: (log + 1) / 2, logCols: log / 2}
	g.rows, g.cols = 1<<g.logRows, 1<<g.logCols
	zeta, err := fft.Generator(2 * uint64(n))
	status.Check(err == nil, "cpu.newGeometry", "a root of unity of order 2n")
	g.zeta = zeta
	g.zetaInverse.Inverse(&g.zeta)
	g.root.Square(&g.zeta)
	g.inverse.Square(&g.zetaInverse)
	g.rowOrder, g.colOrder = reversals(g.logRows), reversals(g.logCols)
	table := func(w fr.Element, stride, size int) []uint64 {
		return constantTable(k, powersOf(power(w, stride), size/2))
	}
	g.rowTable, g.rowInverse = table(g.root, g.cols, g.rows), table(g.inverse, g.cols, g.rows)
	g.colTable, g.colInverse = table(g.root, g.rows, g.cols), table(g.inverse, g.rows, g.cols)
	reversed := func(x fr.Element) []uint64 {
		p := powersOf(power(x, g.rows), g.cols)
		for i := range p {
			if j := int(g.colOrder[i]); j > i {
				p[i], p[j] = p[j], p[i]
			}
		}
		return constantTable(k, p)
	}
	g.coset, g.cosetInverse = reversed(g.zeta), reversed(g.zetaInverse)
	return g
}

// bufferWords is the size of a buffer for either pass.
func (g *geometry) bufferWords(k laneKernel) int { return k.words() * g.rows }

// columnBlocks and rowBlocks are the numbers of tasks of a pass.
func (g *geometry) columnBlocks() int { return (g.cols + lanes - 1) / lanes }
func (g *geometry) rowBlocks() int    { return (g.rows + lanes - 1) / lanes }

// A place says where a buffer is in a vector: lane l of row i is element at[l] + i*stride, or order[i]*stride.
type place struct {
	at     [lanes]int
	stride int
	count  int // lanes that there are
	size   int // rows of the buffer
	order  []uint32
}

// row is where row i of the buffer is, in strides.
func (p *place) row(i int) int {
	if p.order != nil {
		return int(p.order[i])
	}
	return i
}

// columns places block t of the columns.
func (g *geometry) columns(t int) (p place) {
	p.stride, p.size, p.count = g.cols, g.rows, min(lanes, g.cols-t*lanes)
	for l := range p.count {
		p.at[l] = t*lanes + l
	}
	return p
}

// outputRows places the rows that hold outputs 8t to 8t+7 of the columns' transforms.
func (g *geometry) outputRows(t int) (p place) {
	p.stride, p.size, p.count = 1, g.cols, min(lanes, g.rows-t*lanes)
	for l := range p.count {
		p.at[l] = int(g.rowOrder[t*lanes+l]) * g.cols
	}
	return p
}

// natural places what outputRows gives in natural order: output k of the columns and j of the rows is
// element k + rows j.
func (g *geometry) natural(t int) (p place) {
	p.stride, p.size, p.count, p.order = g.rows, g.cols, min(lanes, g.rows-t*lanes), g.colOrder
	for l := range p.count {
		p.at[l] = t*lanes + l
	}
	return p
}

// columnPowers multiplies column block t, transformed, by first * w^(jk) * step^k for column j and output k.
func (g *geometry) columnPowers(k laneKernel, buf []uint64, t int, w, step, first *fr.Element) {
	var f, ratio [lanes]fr.Element
	ratio[0] = power(*w, t*lanes)
	ratio[0].Mul(&ratio[0], step)
	f[0] = *first
	for l := 1; l < lanes; l++ {
		f[l] = *first
		ratio[l].Mul(&ratio[l-1], w)
	}
	k.powers(buf, g.rowOrder, &f, &ratio)
}

// reversals lists the numbers below 2^log with their bits reversed.
func reversals(log int) []uint32 {
	r := make([]uint32, 1<<log)
	for i := range r {
		r[i] = uint32(bits.Reverse64(uint64(i)<<1) >> (63 - log))
	}
	return r
}

func power(x fr.Element, e int) (y fr.Element) {
	return *y.Exp(x, big.NewInt(int64(e)))
}

// powersOf lists x^0 to x^(n-1).
func powersOf(x fr.Element, n int) []fr.Element {
	p := make([]fr.Element, n)
	at := fr.One()
	for i := range p {
		p[i] = at
		at.Mul(&at, &x)
	}
	return p
}

// scalarLanes is the laneKernel on gnark-crypto's field: any machine, any size.
type scalarLanes struct{}

func (scalarLanes) words() int         { return lanes * fr.Limbs }
func (scalarLanes) constantWords() int { return fr.Limbs }

// elements views a buffer or table as field elements.
func elements(words []uint64) []fr.Element {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*fr.Element)(unsafe.Pointer(&words[0])), len(words)/fr.Limbs)
}

func (scalarLanes) constants(dst []uint64, x []fr.Element) { copy(elements(dst), x) }

func (scalarLanes) load(buf []uint64, src []fr.Element, p *place) {
	b := elements(buf)
	for i := range p.size {
		row := b[i*lanes:][:lanes]
		for l := range p.count {
			row[l] = src[p.at[l]+p.row(i)*p.stride]
		}
		clear(row[p.count:])
	}
}

func (scalarLanes) store(dst []fr.Element, p *place, buf []uint64) {
	b := elements(buf)
	for i := range p.size {
		row := b[i*lanes:][:lanes]
		for l := range p.count {
			dst[p.at[l]+p.row(i)*p.stride] = row[l]
		}
	}
}

func (scalarLanes) dif(buf []uint64, size int, twiddles []uint64) {
	b, w := elements(buf), elements(twiddles)
	for m, step := size/2, 1; m > 0; m, step = m/2, step*2 {
		for base := 0; base < size; base += 2 * m {
			for j := range m {
				x, y := b[(base+j)*lanes:][:lanes], b[(base+j+m)*lanes:][:lanes]
				f := &w[j*step]
				for l := range lanes {
					fr.Butterfly(&x[l], &y[l])
					y[l].Mul(&y[l], f)
				}
			}
		}
	}
}

func (scalarLanes) dit(buf []uint64, size int, twiddles []uint64) {
	b, w := elements(buf), elements(twiddles)
	for m, step := 1, size/2; m < size; m, step = m*2, step/2 {
		for base := 0; base < size; base += 2 * m {
			for j := range m {
				x, y := b[(base+j)*lanes:][:lanes], b[(base+j+m)*lanes:][:lanes]
				f := &w[j*step]
				for l := range lanes {
					y[l].Mul(&y[l], f)
					fr.Butterfly(&x[l], &y[l])
				}
			}
		}
	}
}

func (scalarLanes) scale(buf []uint64, size int, factors []uint64) {
	b, f := elements(buf), elements(factors)
	for i := range size {
		for l := range lanes {
			b[i*lanes+l].Mul(&b[i*lanes+l], &f[i])
		}
	}
}

func (scalarLanes) powers(buf []uint64, order []uint32, first, ratio *[lanes]fr.Element) {
	b, at := elements(buf), *first
	for _, k := range order {
		row := b[int(k)*lanes:][:lanes]
		for l := range lanes {
			row[l].Mul(&row[l], &at[l])
			at[l].Mul(&at[l], &ratio[l])
		}
	}
}

func (scalarLanes) mulFactor() fr.Element { return fr.One() }

func (scalarLanes) mul(a, b []uint64, size int) {
	x, y := elements(a), elements(b)
	for i := range size * lanes {
		x[i].Mul(&x[i], &y[i])
	}
}

func (scalarLanes) sub(a, b []uint64, size int) {
	x, y := elements(a), elements(b)
	for i := range size * lanes {
		x[i].Sub(&x[i], &y[i])
	}
}
