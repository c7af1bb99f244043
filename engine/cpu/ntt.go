package cpu

import (
	"math/big"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// A transform of n = rows x cols points is done in two passes over memory: one down the columns, one along
// the rows, each on eight columns or rows (lanes) at a time in a buffer that fits the cache. In between, the
// element of column j that became output k of its column is multiplied by w^(jk). Columns hold outputs in
// bit-reversed order, and rows too, so that the whole is in bit-reversed order:
//
//	inverse, decimation in frequency: natural order in, bit-reversed out: columns, powers, rows
//	forward, decimation in time: bit-reversed in, natural order out: rows, powers, columns

// constantTable makes room for n constants and fills it.
func constantTable(k lanes.Kernel, x []fr.Element) []uint64 {
	t := make([]uint64, len(x)*k.ConstantWords())
	k.Constants(t, x)
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
func newGeometry(k lanes.Kernel, n int) *geometry {
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

// columnBlocks and rowBlocks are the numbers of tasks of a pass.
func (g *geometry) columnBlocks() int { return (g.cols + lanes.Width - 1) / lanes.Width }
func (g *geometry) rowBlocks() int    { return (g.rows + lanes.Width - 1) / lanes.Width }

// columns places block t of the columns.
func (g *geometry) columns(t int) (p lanes.Place) {
	p.Stride, p.Size, p.Count = g.cols, g.rows, min(lanes.Width, g.cols-t*lanes.Width)
	for l := range p.Count {
		p.At[l] = t*lanes.Width + l
	}
	return p
}

// outputRows places the rows that hold outputs 8t to 8t+7 of the columns' transforms.
func (g *geometry) outputRows(t int) (p lanes.Place) {
	p.Stride, p.Size, p.Count = 1, g.cols, min(lanes.Width, g.rows-t*lanes.Width)
	for l := range p.Count {
		p.At[l] = int(g.rowOrder[t*lanes.Width+l]) * g.cols
	}
	return p
}

// natural places what outputRows gives in natural order: output k of the columns and j of the rows is
// element k + rows j.
func (g *geometry) natural(t int) (p lanes.Place) {
	p.Stride, p.Size, p.Count, p.Order = g.rows, g.cols, min(lanes.Width, g.rows-t*lanes.Width), g.colOrder
	for l := range p.Count {
		p.At[l] = t*lanes.Width + l
	}
	return p
}

// columnPowers multiplies column block t, transformed, by first * w^(jk) * step^k for column j and output k.
func (g *geometry) columnPowers(k lanes.Kernel, buf []uint64, t int, w, step, first *fr.Element) {
	var f, ratio [lanes.Width]fr.Element
	ratio[0] = power(*w, t*lanes.Width)
	ratio[0].Mul(&ratio[0], step)
	f[0] = *first
	for l := 1; l < lanes.Width; l++ {
		f[l] = *first
		ratio[l].Mul(&ratio[l-1], w)
	}
	k.Powers(buf, g.rowOrder, &f, &ratio)
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
