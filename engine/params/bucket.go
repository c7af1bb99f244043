package params

import (
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/host"
)

// bucketBatch additions share one inversion, which then costs each a fiftieth of its own work. Larger
// batches meet more busy buckets.
const bucketBatch = 1024

// g1Buckets adds points to buckets in affine form: 6 multiplications an addition, the inversion shared. The
// law holds for every point of the curve, whatever its order. An empty bucket is the point at infinity.
type g1Buckets struct {
	sums []bls.G1Affine
	busy []uint64 // bit j: bucket j waits in the batch

	n      int
	at     [bucketBatch]uint16
	points [bucketBatch]*bls.G1Affine
	den    [bucketBatch]fp.Element // x of the point minus x of the sum
	prefix [bucketBatch]fp.Element // product of den up to here

	late, spare []latePoint[bls.G1Affine]
}

// latePoint waits for its bucket to leave the batch.
type latePoint[P any] struct {
	at    uint16
	point P
}

// newG1Buckets cuts 2^bits empty buckets from an arena whose memory is still zero.
func newG1Buckets(arena *host.Arena, bits int) *g1Buckets {
	n := 1 << bits
	return &g1Buckets{sums: host.Alloc[bls.G1Affine](arena, n), busy: make([]uint64, (n+63)/64)}
}

// add adds points[i] to bucket at[i], for all i, before it returns.
func (b *g1Buckets) add(points []bls.G1Affine, at []uint16) {
	for i := range points {
		b.put(at[i], &points[i])
	}
	b.flush()
	for len(b.late) > 0 {
		work := b.late
		b.late = b.spare[:0]
		for i := range work {
			b.put(work[i].at, &work[i].point)
		}
		b.flush()
		b.spare = work
	}
}

func (b *g1Buckets) put(j uint16, p *bls.G1Affine) {
	if b.busy[j>>6]>>(j&63)&1 == 1 {
		b.late = append(b.late, latePoint[bls.G1Affine]{j, *p})
		return
	}
	s := &b.sums[j]
	if s.IsInfinity() {
		*s = *p
		return
	}
	den := &b.den[b.n]
	den.Sub(&p.X, &s.X)
	if den.IsZero() {
		s.Add(s, p) // twice the same point, or opposite ones
		return
	}
	if b.n == 0 {
		b.prefix[0] = *den
	} else {
		b.prefix[b.n].Mul(&b.prefix[b.n-1], den)
	}
	b.at[b.n], b.points[b.n] = j, p
	b.busy[j>>6] |= 1 << (j & 63)
	if b.n++; b.n == bucketBatch {
		b.flush()
	}
}

func (b *g1Buckets) flush() {
	if b.n == 0 {
		return
	}
	var rest, slope, x, y fp.Element
	rest.Inverse(&b.prefix[b.n-1])
	for i := b.n - 1; i >= 0; i-- {
		if i > 0 {
			slope.Mul(&rest, &b.prefix[i-1])
			rest.Mul(&rest, &b.den[i])
		} else {
			slope = rest
		}
		j, p := b.at[i], b.points[i]
		s := &b.sums[j]
		slope.Mul(&slope, y.Sub(&p.Y, &s.Y))
		x.Square(&slope)
		x.Sub(&x, &s.X)
		x.Sub(&x, &p.X)
		y.Sub(&s.X, &x)
		y.Mul(&y, &slope)
		s.Y.Sub(&y, &s.Y)
		s.X = x
		b.busy[j>>6] &^= 1 << (j & 63)
	}
	b.n = 0
}

func (b *g1Buckets) sum(j int) *bls.G1Affine { return &b.sums[j] }

// g2Buckets is g1Buckets over the quadratic extension.
type g2Buckets struct {
	sums []bls.G2Affine
	busy []uint64

	n      int
	at     [bucketBatch]uint16
	points [bucketBatch]*bls.G2Affine
	den    [bucketBatch]bls.E2
	prefix [bucketBatch]bls.E2

	late, spare []latePoint[bls.G2Affine]
}

func newG2Buckets(arena *host.Arena, bits int) *g2Buckets {
	n := 1 << bits
	return &g2Buckets{sums: host.Alloc[bls.G2Affine](arena, n), busy: make([]uint64, (n+63)/64)}
}

func (b *g2Buckets) add(points []bls.G2Affine, at []uint16) {
	for i := range points {
		b.put(at[i], &points[i])
	}
	b.flush()
	for len(b.late) > 0 {
		work := b.late
		b.late = b.spare[:0]
		for i := range work {
			b.put(work[i].at, &work[i].point)
		}
		b.flush()
		b.spare = work
	}
}

func (b *g2Buckets) put(j uint16, p *bls.G2Affine) {
	if b.busy[j>>6]>>(j&63)&1 == 1 {
		b.late = append(b.late, latePoint[bls.G2Affine]{j, *p})
		return
	}
	s := &b.sums[j]
	if s.IsInfinity() {
		*s = *p
		return
	}
	den := &b.den[b.n]
	den.Sub(&p.X, &s.X)
	if den.IsZero() {
		s.Add(s, p)
		return
	}
	if b.n == 0 {
		b.prefix[0] = *den
	} else {
		b.prefix[b.n].Mul(&b.prefix[b.n-1], den)
	}
	b.at[b.n], b.points[b.n] = j, p
	b.busy[j>>6] |= 1 << (j & 63)
	if b.n++; b.n == bucketBatch {
		b.flush()
	}
}

func (b *g2Buckets) flush() {
	if b.n == 0 {
		return
	}
	var rest, slope, x, y bls.E2
	rest.Inverse(&b.prefix[b.n-1])
	for i := b.n - 1; i >= 0; i-- {
		if i > 0 {
			slope.Mul(&rest, &b.prefix[i-1])
			rest.Mul(&rest, &b.den[i])
		} else {
			slope = rest
		}
		j, p := b.at[i], b.points[i]
		s := &b.sums[j]
		slope.Mul(&slope, y.Sub(&p.Y, &s.Y))
		x.Square(&slope)
		x.Sub(&x, &s.X)
		x.Sub(&x, &p.X)
		y.Sub(&s.X, &x)
		y.Mul(&y, &slope)
		s.Y.Sub(&y, &s.Y)
		s.X = x
		b.busy[j>>6] &^= 1 << (j & 63)
	}
	b.n = 0
}

func (b *g2Buckets) sum(j int) *bls.G2Affine { return &b.sums[j] }
