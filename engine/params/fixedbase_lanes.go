package params

import (
	"context"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// laneRowBytes is the size of a base-field element in a table of lanes.
const laneRowBytes = int64(unsafe.Sizeof(lanes.Row{}))

// laneCoordinate is a block of eight coordinates E.
type laneCoordinate[E, B any] interface {
	lanes.Coordinate[B]
	Import(e *[lanes.Width]E)
	Export(e *[lanes.Width]E)
}

// laneBase is a fixedTable that adds eight points at a time. What lanes do not cover (a digit that is zero,
// so no entry; equal or opposite points) goes through the plain adder, one batch of stragglers at a time.
type laneBase[E any, PE coordinate[E], B any, PB laneCoordinate[E, B]] struct {
	widths     []int
	table      [][]lanes.Row // the point k is pointRows rows from (k-1)*pointRows: x, then y
	pointRows  int
	arena      *host.Arena
	pointBytes int
	encode     func(dst []byte, p *point[E])
}

// newLaneBase is newFixedBase for lanes; windows have at least 4 bits.
func newLaneBase[E any, PE coordinate[E], B any, PB laneCoordinate[E, B]](
	ctx context.Context, widths []int, bases []point[E], threads, pointBytes int, encode func(dst []byte, p *point[E]),
) (*laneBase[E, PE, B, PB], error) {
	const op = "params.newLaneBase"
	status.Check(len(widths) == len(bases), op, "one base a window")
	var b B
	f := &laneBase[E, PE, B, PB]{
		widths:     widths,
		pointRows:  2 * int(unsafe.Sizeof(b)/unsafe.Sizeof(lanes.Block{})),
		pointBytes: pointBytes,
		encode:     encode,
	}
	size := int64(0)
	for _, width := range widths {
		status.Check(width >= 4, op, "windows of at least eight multiples")
		size += host.SliceBytes[lanes.Row](f.pointRows << (width - 1))
	}
	arena, err := host.NewArena(size)
	if err != nil {
		return nil, err
	}
	f.arena = arena
	for _, width := range widths {
		f.table = append(f.table, host.Alloc[lanes.Row](arena, f.pointRows<<(width-1)))
	}
	err = eachWindow(ctx, threads, len(widths), func(ctx context.Context, w int) error {
		return f.fill(ctx, f.table[w], &bases[w])
	})
	if err != nil {
		arena.Close()
		return nil, err
	}
	return f, nil
}

func (f *laneBase[E, PE, B, PB]) windows() []int { return f.widths }

// Close gives the tables back.
func (f *laneBase[E, PE, B, PB]) Close() {
	f.arena.Close()
	f.table = nil
}

// load and store move eight points between a table and blocks, from the first rows of each.
func (f *laneBase[E, PE, B, PB]) load(x, y *B, rows *[lanes.Width]*lanes.Row) {
	PB(x).Load(rows, 0)
	PB(y).Load(rows, f.pointRows/2)
}

func (f *laneBase[E, PE, B, PB]) store(x, y *B, rows *[lanes.Width]*lanes.Row) {
	PB(x).Store(rows, 0)
	PB(y).Store(rows, f.pointRows/2)
}

// fill writes the multiples of base to a table, as fillMultiples does: the first batch in the plain way, then
// doubling what is there by adding the last multiple to all.
func (f *laneBase[E, PE, B, PB]) fill(ctx context.Context, table []lanes.Row, base *point[E]) error {
	total := len(table) / f.pointRows
	first := make([]point[E], min(fixedBatch, total))
	if err := fillMultiples[E, PE](ctx, first, base); err != nil {
		return err
	}
	at := func(k int) *lanes.Row { return &table[(k-1)*f.pointRows] } // the row of multiple k
	var rows [lanes.Width]*lanes.Row
	var x, y B
	for k := 1; k <= len(first); k += lanes.Width {
		for lane := range rows {
			rows[lane] = at(k + lane)
		}
		importPoints[E, B, PB](&x, &y, first[k-1:])
		f.store(&x, &y, &rows)
	}
	const groups = fixedBatch / lanes.Width
	ax, ay, bx, by := make([]B, groups), make([]B, groups), make([]B, groups), make([]B, groups)
	adder := lanes.NewAdder[B, PB](groups)
	plain := newAdder[E, PE](1)
	for have := len(first); have < total; have *= 2 {
		for lane := range rows {
			rows[lane] = at(have)
		}
		f.load(&x, &y, &rows)
		last := exportPoints[E, B, PB](&x, &y)[0]
		for from := 0; from < have; from += fixedBatch {
			if err := ctx.Err(); err != nil {
				return status.Wrap(status.Cancelled, "params.newLaneBase", "tables", err)
			}
			for g := range groups {
				for lane := range rows {
					rows[lane] = at(from + g*lanes.Width + lane + 1)
				}
				f.load(&ax[g], &ay[g], &rows)
				bx[g], by[g] = x, y
			}
			if from+fixedBatch == have {
				// The last multiple meets itself: it gets some other partner here and is doubled below.
				for lane := range rows {
					rows[lane] = at(have)
				}
				rows[lanes.Width-1] = at(1)
				f.load(&bx[groups-1], &by[groups-1], &rows)
			}
			status.Check(adder.Add(ax, ay, bx, by), "params.newLaneBase", "multiples below the order to differ")
			for g := range groups {
				for lane := range rows {
					rows[lane] = at(have + from + g*lanes.Width + lane + 1)
				}
				f.store(&ax[g], &ay[g], &rows)
			}
		}
		twice := []point[E]{last}
		plain.add(twice, []point[E]{last})
		for lane := range rows {
			rows[lane] = at(2 * have)
		}
		importPoints[E, B, PB](&x, &y, []point[E]{twice[0], twice[0], twice[0], twice[0], twice[0], twice[0], twice[0], twice[0]})
		f.store(&x, &y, &rows)
	}
	return nil
}

// importPoints brings the first eight points into lanes; exportPoints is the way back.
func importPoints[E, B any, PB laneCoordinate[E, B]](x, y *B, points []point[E]) {
	var ex, ey [lanes.Width]E
	for lane := range ex {
		ex[lane], ey[lane] = points[lane].X, points[lane].Y
	}
	PB(x).Import(&ex)
	PB(y).Import(&ey)
}

func exportPoints[E, B any, PB laneCoordinate[E, B]](x, y *B) (points [lanes.Width]point[E]) {
	var ex, ey [lanes.Width]E
	PB(x).Export(&ex)
	PB(y).Export(&ey)
	for lane := range points {
		points[lane] = point[E]{X: ex[lane], Y: ey[lane]}
	}
	return points
}

// laneMultiplier is the scratch of one goroutine.
type laneMultiplier[E any, PE coordinate[E], B any, PB laneCoordinate[E, B]] struct {
	base           *laneBase[E, PE, B, PB]
	digits         [][]int32
	adder          *lanes.Adder[B, PB]
	ax, ay, bx, by []B

	straggles  []bool // scalars for the plain way
	stragglers []fr.Element
	plain      *adder[E, PE]
	out, step  []point[E]
}

func (f *laneBase[E, PE, B, PB]) newWorker() func(dst []byte, scalars []fr.Element) {
	const groups = fixedBatch / lanes.Width
	m := &laneMultiplier[E, PE, B, PB]{
		base:   f,
		digits: newDigits(len(f.widths)),
		adder:  lanes.NewAdder[B, PB](groups),
		ax:     make([]B, groups), ay: make([]B, groups), bx: make([]B, groups), by: make([]B, groups),
		straggles: make([]bool, fixedBatch),
		plain:     newAdder[E, PE](fixedBatch),
		out:       make([]point[E], fixedBatch),
		step:      make([]point[E], fixedBatch),
	}
	return m.mul
}

func (m *laneMultiplier[E, PE, B, PB]) mul(dst []byte, scalars []fr.Element) {
	n := len(scalars)
	groups := (n + lanes.Width - 1) / lanes.Width
	recode(scalars, m.base.widths, m.digits)
	m.sortOut(n, groups*lanes.Width)
	ax, ay, bx, by := m.ax[:groups], m.ay[:groups], m.bx[:groups], m.by[:groups]
	m.gather(ax, ay, 0)
	for w := 1; w < len(m.base.table); w++ {
		m.gather(bx, by, w)
		if !m.adder.Add(ax, ay, bx, by) {
			for i := range n {
				m.straggles[i] = true
			}
			break
		}
	}
	for g := range groups {
		points := exportPoints[E, B, PB](&ax[g], &ay[g])
		for lane := range min(lanes.Width, n-g*lanes.Width) {
			m.base.encode(dst[(g*lanes.Width+lane)*m.base.pointBytes:], &points[lane])
		}
	}
	m.mulStragglers(dst, scalars)
}

// sortOut finds the scalars with a digit that is zero, and gives these, and the lanes up to `padded` that
// have no scalar, digits that lanes can add: all ones.
func (m *laneMultiplier[E, PE, B, PB]) sortOut(n, padded int) {
	for i := range padded {
		m.straggles[i] = i >= n
	}
	for _, digits := range m.digits {
		for i, d := range digits[:n] {
			if d == 0 {
				m.straggles[i] = true
			}
		}
	}
	for i := range padded {
		if m.straggles[i] {
			for _, digits := range m.digits {
				digits[i] = 1
			}
		}
	}
}

// gather copies the entries of window w into lanes, with the digits' signs.
func (m *laneMultiplier[E, PE, B, PB]) gather(x, y []B, w int) {
	table, digits, size := m.base.table[w], m.digits[w], m.base.pointRows
	var rows [lanes.Width]*lanes.Row
	for g := range x {
		negative := uint8(0)
		for lane, d := range digits[g*lanes.Width : (g+1)*lanes.Width] {
			sign := d >> 31
			rows[lane] = &table[int((d^sign)-sign-1)*size]
			negative |= uint8(sign&1) << lane
		}
		m.base.load(&x[g], &y[g], &rows)
		PB(&y[g]).Negate(negative)
	}
}

// mulStragglers does the scalars that were sorted out, exactly in every case.
func (m *laneMultiplier[E, PE, B, PB]) mulStragglers(dst []byte, scalars []fr.Element) {
	m.stragglers = m.stragglers[:0]
	for i := range scalars {
		if m.straggles[i] {
			m.stragglers = append(m.stragglers, scalars[i])
		}
	}
	n := len(m.stragglers)
	if n == 0 {
		return
	}
	recode(m.stragglers, m.base.widths, m.digits)
	clear(m.out[:n])
	for w := range m.base.table {
		for i, d := range m.digits[w][:n] {
			m.step[i] = m.entry(w, d)
		}
		m.plain.add(m.out[:n], m.step[:n])
	}
	next := 0
	for i := range scalars {
		if m.straggles[i] {
			m.base.encode(dst[i*m.base.pointBytes:], &m.out[next])
			next++
		}
	}
}

// entry is d times the base of window w.
func (m *laneMultiplier[E, PE, B, PB]) entry(w int, d int32) (p point[E]) {
	if d == 0 {
		return p
	}
	k := d
	if d < 0 {
		k = -d
	}
	var rows [lanes.Width]*lanes.Row
	for lane := range rows {
		rows[lane] = &m.base.table[w][int(k-1)*m.base.pointRows]
	}
	var x, y B
	m.base.load(&x, &y, &rows)
	p = exportPoints[E, B, PB](&x, &y)[0]
	if d < 0 {
		PE(&p.Y).Neg(&p.Y)
	}
	return p
}
