//go:build ignore

package main

// Point additions. A group is a curve whose coordinates are base-field elements (degree 1) or pairs of them
// (degree 2: c0 + c1 u with u^2 = -1). A slot is a point in memory: limbs of x's parts, then of y's, 64 bytes each.
type group struct {
	name   string
	degree int
}

var fp = field{limbs: 8}

const part = 8 * 64 // bytes of eight base-field elements in lane form

// bytes of eight coordinates.
func (g group) bytes() int { return g.degree * part }

// shift is the binary logarithm of a slot's size.
func (g group) shift() int { return 6 + g.degree }

// An operand is eight coordinates in memory.
type operand struct {
	base string
	off  int
}

func (o operand) load(i int, r []int)  { load(o.base, o.off+i*part, r) }
func (o operand) store(i int, r []int) { store(o.base, o.off+i*part, r) }
func (o operand) add(i int, r []int)   { addMemory(o.base, o.off+i*part, r) }
func (o operand) sub(i int, r []int)   { subMemory(o.base, o.off+i*part, r) }

// scratch is a place in the scratch memory, behind R9, counted in coordinates.
func (g group) scratch(i int) operand { return operand{"R9", i * g.bytes()} }

const scratchCoordinates = 6 // before the scratch of mul and square

// temporary is a part's place in the scratch of mul and square.
func (g group) temporary(i int) operand {
	return operand{"R9", scratchCoordinates*g.bytes() + i*part}
}

// call multiplies part i of x by part k of y. The product is not carried.
func call(x operand, i int, y operand, k int) []int {
	x.load(i, seq(0, 8))
	return callLoaded(y, k)
}

func callLoaded(y operand, k int) []int {
	emit("LEAQ %d(%s), R13", y.off+k*part, y.base)
	emit("CALL fpMul<>(SB)")
	return fp.product()
}

// keep returns what mul and square do with a product that is just stored: parts are made positive and carried,
// and stay below 4.1 p.
func (g group) keep(dst operand) func(i int, r []int) {
	return func(i int, r []int) {
		if g.degree == 2 {
			fp.addMultiple(2+i, r)
		}
		fp.carry(r)
		dst.store(i, r)
	}
}

// mul hands the parts of x y to then, uncarried. They are, in p, from 0 to 1.01 for degree 1; from -1.01 to 1.01
// and from -2.02 to 1.01 for degree 2.
func (g group) mul(x, y operand, then func(i int, r []int)) {
	if g.degree == 1 {
		then(0, call(x, 0, y, 0))
		return
	}
	note("Three products: x0 y0, x1 y1, (x0 + x1) (y0 + y1).")
	t0, t1, s := g.temporary(0), g.temporary(1), g.temporary(2)
	r := call(x, 0, y, 0)
	fp.carry(r)
	t0.store(0, r)
	r = call(x, 1, y, 1)
	fp.carry(r)
	t1.store(0, r)
	a := seq(0, 8)
	y.load(0, a)
	y.add(1, a)
	fp.carry(a)
	s.store(0, a)
	x.load(0, a)
	x.add(1, a)
	fp.carry(a)
	r = callLoaded(s, 0)
	t0.sub(0, r)
	t1.sub(0, r)
	then(1, r)
	t0.load(0, r)
	t1.sub(0, r)
	then(0, r)
}

// square is mul for y = x, with x below 4.1 p; the parts for degree 2 are from 0 to 1.01 and from 0 to 2.02.
func (g group) square(x operand, then func(i int, r []int)) {
	if g.degree == 1 {
		then(0, call(x, 0, x, 0))
		return
	}
	note("(x0 + x1) (x0 - x1) and 2 x0 x1.")
	d, a := g.temporary(0), seq(0, 8)
	r := call(x, 0, x, 1)
	for _, j := range r {
		emit("VPADDQ Z%d, Z%d, Z%d", j, j, j)
	}
	then(1, r)
	x.load(0, a)
	x.sub(1, a)
	fp.addMultiple(5, a)
	fp.carry(a)
	d.store(0, a)
	x.load(0, a)
	x.add(1, a)
	fp.carry(a)
	then(0, callLoaded(d, 0))
}

// rows loads part i of a coordinate (0: x, 1: y) of the slots that eight references name, in lane form.
func (g group) rows(refs string, coordinate, i int) []int {
	for l := range 8 {
		emit("MOVL %d(%s), R11", 4*l, refs)
		emit("SHRL $1, R11")
		emit("SHLQ $%d, R11", g.shift())
		emit("VMOVDQU64 %d(BX)(R11*1), Z%d", 64*(coordinate*g.degree+i), l)
	}
	return transpose()
}

// writeRows is the way back, to the slots that R12 lists.
func (g group) writeRows(r []int, coordinate, i int) {
	move(r, seq(0, 8))
	for l, reg := range transpose() {
		emit("MOVL %d(R12), R11", 4*l)
		emit("SHLQ $%d, R11", g.shift())
		emit("VMOVDQU64 Z%d, %d(BX)(R11*1)", reg, 64*(coordinate*g.degree+i))
	}
}

// prefetch asks for all lines of the slots of another eight references.
func (g group) prefetch(refs string, ahead int) {
	for l := range 8 {
		emit("MOVL %d(%s), R11", 32*ahead+4*l, refs)
		emit("SHRL $1, R11")
		emit("SHLQ $%d, R11", g.shift())
		for line := range 2 * g.degree {
			emit("PREFETCHT0 %d(BX)(R11*1)", 64*line)
		}
	}
}

// forward writes d = xb - xa of each addition and the running products of all d, lane by lane.
func (g group) forward() {
	text("func forward"+g.name+"(c, slots *uint64, a, b *uint32, groups int, d, prefix *uint64, flags *uint8, scratch *uint64)", "72",
		"AX", "BX", "CX", "DX", "DI", "SI", "R8", "R10", "R9")
	fp.constants()
	d, prefix, next := operand{"SI", 0}, operand{"R8", 0}, operand{"R8", g.bytes()}
	label("forward")
	g.prefetch("CX", 2)
	g.prefetch("DX", 2)
	for i := range g.degree {
		r := g.rows("CX", 0, i)
		if i == 0 {
			emit("VPTESTNMQ Z%d, Z%d, K1", r[0], r[0])
		}
		d.store(i, r)
		r = g.rows("DX", 0, i)
		if i == 0 {
			emit("VPTESTNMQ Z%d, Z%d, K2", r[0], r[0])
		}
		note("d = xb - xa + 2 p")
		d.sub(i, r)
		fp.addMultiple(2, r)
		fp.carry(r)
		if i == 0 {
			note("Lanes where d may be zero, or a lowest limb is zero (as infinity's), are left to the caller; their d")
			note("becomes one: any unit will do.")
			emit("KORB K1, K2, K1")
			for k := 1; k <= 3; k++ {
				emit("VPCMPEQQ.BCST %d(AX), Z%d, K2", fp.multiple(k), r[0])
				emit("KORB K1, K2, K1")
			}
			emit("KMOVB K1, R11")
			emit("MOVB R11, (R10)")
		}
		for j := range r {
			emit("VMOVDQA64 Z%d, K1, Z%d", regP+j, r[j])
		}
		if i == 0 {
			emit("VPSRLQ $51, Z%d, Z%d", regMask, regQ)
			emit("VPADDQ Z%d, Z%d, K1, Z%d", regQ, r[0], r[0])
		}
		d.store(i, r)
	}
	g.mul(prefix, d, g.keep(next))
	emit("ADDQ $32, CX")
	emit("ADDQ $32, DX")
	emit("ADDQ $%d, SI", g.bytes())
	emit("ADDQ $%d, R8", g.bytes())
	emit("INCQ R10")
	end("forward", "DI")
}

// backward goes back from the inverse of the last product, in the first coordinate of scratch, and adds.
func (g group) backward() {
	text("func backward"+g.name+"(c, slots *uint64, a, b, dst *uint32, groups int, d, prefix, scratch *uint64)", "72",
		"AX", "BX", "CX", "DX", "R12", "DI", "SI", "R8", "R9")
	fp.constants()
	note("Start behind the last group.")
	emit("MOVQ DI, R11")
	emit("SHLQ $5, R11")
	emit("ADDQ R11, CX")
	emit("ADDQ R11, DX")
	emit("ADDQ R11, R12")
	emit("SHLQ $%d, R11", 3+g.degree)
	emit("ADDQ R11, SI")
	emit("ADDQ R11, R8")
	d, prefix := operand{"SI", 0}, operand{"R8", 0}
	inverse, slope, ya, xa, u, x3 := g.scratch(0), g.scratch(1), g.scratch(2), g.scratch(3), g.scratch(4), g.scratch(5)
	label("backward")
	emit("SUBQ $32, CX")
	emit("SUBQ $32, DX")
	emit("SUBQ $32, R12")
	emit("SUBQ $%d, SI", g.bytes())
	emit("SUBQ $%d, R8", g.bytes())
	note("1/d into slope, and the inverse of what is left.")
	g.mul(inverse, prefix, g.keep(slope))
	g.mul(inverse, d, g.keep(inverse))
	note("ya, yb with their signs; the numerator yb - ya + 4 p.")
	emit("VMOVDQU (CX), Y0")
	emit("VPSLLD $31, Y0, Y0")
	emit("VPMOVD2M Y0, K1")
	emit("VMOVDQU (DX), Y0")
	emit("VPSLLD $31, Y0, Y0")
	emit("VPMOVD2M Y0, K2")
	for i := range g.degree {
		r := g.rows("CX", 1, i)
		for _, j := range r {
			emit("VPSUBQ Z%d, Z%d, K1, Z%d", j, regZero, j)
		}
		ya.store(i, r)
		r = g.rows("DX", 1, i)
		for _, j := range r {
			emit("VPSUBQ Z%d, Z%d, K2, Z%d", j, regZero, j)
		}
		ya.sub(i, r)
		fp.addMultiple(4, r)
		fp.carry(r)
		u.store(i, r)
		xa.store(i, g.rows("CX", 0, i))
	}
	note("The slope.")
	g.mul(slope, u, g.keep(slope))
	note("x3 = slope^2 - xa - xb, where xb = d + xa - 2 p.")
	g.square(slope, func(i int, r []int) {
		xa.sub(i, r)
		xa.sub(i, r)
		d.sub(i, r)
		fp.addMultiple(6, r)
		fp.reduce(r)
		x3.store(i, r)
		g.writeRows(r, 0, i)
	})
	note("y3 = slope (xa - x3) - ya.")
	for i := range g.degree {
		r := seq(0, 8)
		xa.load(i, r)
		x3.sub(i, r)
		fp.addMultiple(2, r)
		fp.carry(r)
		u.store(i, r)
	}
	g.mul(slope, u, func(i int, r []int) {
		ya.sub(i, r)
		if g.degree == 1 {
			fp.addMultiple(2, r)
		} else {
			fp.addMultiple(3+i, r)
		}
		fp.reduce(r)
		g.writeRows(r, 1, i)
	})
	end("backward", "DI")
}

// loadPoints brings points of gnark-crypto, elements of six words each, into slots.
func (g group) loadPoints() {
	text("func load"+g.name+"(c, slots *uint64, src *byte, offsets *uint32, groups int)", "40", "AX", "BX", "SI", "CX", "DI")
	fp.constants()
	label("points")
	elements := 2 * g.degree
	for i := range elements {
		// The last element's eight words begin two before it, so that none lies behind the point.
		at, first := 48*i, 0
		if i == elements-1 {
			at, first = at-16, 2
		}
		for l := range 8 {
			emit("MOVL %d(CX), R11", 4*l)
			emit("SHRL $1, R11")
			emit("IMUL3Q $%d, R11, R11", 48*elements)
			emit("VMOVDQU64 %d(SI)(R11*1), Z%d", at, l)
		}
		limbs(transpose()[first:first+6], 8)
		r := callLoaded(operand{"AX", fp.enter()}, 0)
		fp.carry(r)
		move(r, seq(0, 8))
		for l, reg := range transpose() {
			emit("VMOVDQU64 Z%d, %d(BX)", reg, l<<g.shift()+64*i)
		}
	}
	emit("ADDQ $32, CX")
	emit("ADDQ $%d, BX", 8<<g.shift())
	end("points", "DI")
}
