//go:build ignore

// gen writes kernels_amd64.s: arithmetic on eight field elements at once with AVX-512 IFMA, whose multiply adds
// the low or high 52 bits of eight products of 52-bit limbs. An element has one limb in a 64-bit lane of each
// of its registers ("lane form").
//
//	go run gen.go > kernels_amd64.s
package main

import (
	"fmt"
	"strings"
)

var out strings.Builder

func emit(format string, args ...any) { fmt.Fprintf(&out, "\t"+format+"\n", args...) }
func label(name string)               { fmt.Fprintf(&out, "%s:\n", name) }
func note(format string, args ...any) { fmt.Fprintf(&out, "\t// "+format+"\n", args...) }

// text begins a function; its arguments, eight bytes each but a last bool, go to the registers named.
func text(doc, size string, registers ...string) {
	name := strings.TrimPrefix(doc[:strings.Index(doc, "(")], "func ")
	fmt.Fprintf(&out, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%s\n", doc, name, size)
	at := 0
	for _, arg := range strings.Split(strings.TrimSuffix(doc[strings.Index(doc, "(")+1:], ")"), ", ") {
		arg = strings.Fields(arg)[0]
		if r := registers[at]; r != "" {
			mov := "MOVQ"
			if arg == "reduce" {
				mov = "MOVBQZX"
			}
			emit("%s %s+%d(FP), %s", mov, arg, 8*at, r)
		}
		at++
	}
}

// end closes a loop over the count in a register and the function.
func end(loop, count string) {
	emit("DECQ %s", count)
	emit("JNZ %s", loop)
	emit("VZEROUPPER")
	emit("RET")
}

// A field is a prime field in limbs of 52 bits. Its constants (see fieldConstants in constants_amd64.go) are
// 64-bit words whose address is in AX.
type field struct{ limbs int }

// Byte offsets into the constants.
func (f field) multiple(k int) int { return (k - 1) * 8 * f.limbs }      // k p, k from 1 to 7
func (f field) negInv() int        { return 7 * 8 * f.limbs }            // -1/p mod 2^52
func (f field) mask() int          { return f.negInv() + 8 }             // 2^52 - 1
func (f field) quotient() int      { return f.mask() + 8 }               // finds how often p is contained
func (f field) slack() int         { return f.quotient() + 8 }           // carries that have not reached the top limb
func (f field) table() int         { return f.slack() + 8 }              // limb j of 0 p .. 7 p
func (f field) index() int         { return f.table() + 64*f.limbs }     // two of eight words, for VPERMT2Q
func (f field) complement() int    { return f.index() + 128 }            // all limbs ones, plus one, minus p
func (f field) sixteen() int       { return f.complement() + 8*f.limbs } // 16 p
func (f field) enter() int         { return f.sixteen() + 8*f.limbs }    // in lane form, the factor of load

// Registers: A operand Z0.., product in accumulators from Z8 (limbs+1 of them), p from Z17.
const (
	regP    = 17
	regInv  = 25 // -1/p mod 2^52
	regMask = 26 // 2^52 - 1
	regQ    = 27
	regB    = 28
	regZero = 29
	regM    = 30 // quotient factor
)

func (f field) constants() {
	note("p, -1/p, 2^52-1, 0 and the quotient's factor stay in registers.")
	for j := range f.limbs {
		emit("VPBROADCASTQ %d(AX), Z%d", f.multiple(1)+8*j, regP+j)
	}
	emit("VPBROADCASTQ %d(AX), Z%d", f.negInv(), regInv)
	emit("VPBROADCASTQ %d(AX), Z%d", f.mask(), regMask)
	emit("VPBROADCASTQ %d(AX), Z%d", f.quotient(), regM)
	emit("VPXORQ Z%d, Z%d, Z%d", regZero, regZero, regZero)
}

// product lists the registers that montmul leaves its result in.
func (f field) product() []int {
	r := make([]int, f.limbs)
	for j := range r {
		r[j] = 8 + (f.limbs+j)%(f.limbs+1)
	}
	return r
}

// montmul multiplies Z0.. by the operand whose limb i the callback loads into a register. The product's limbs
// are not yet below 2^52. Each row adds a limb's products, then a multiple of p that clears the lowest limb;
// that limb's carry needs no product: it rounds up. Operands may be hundreds of p, the product is below 1.001 p.
func (f field) montmul(b func(i, reg int)) []int {
	n := f.limbs
	t := func(i, j int) int { return 8 + (i+j)%(n+1) }
	for j := range n + 1 {
		emit("VPXORQ Z%d, Z%d, Z%d", t(0, j), t(0, j), t(0, j))
	}
	for i := range n {
		b(i, regB)
		for j := range n {
			emit("VPMADD52LUQ Z%d, Z%d, Z%d", regB, j, t(i, j))
		}
		emit("VPXORQ Z%d, Z%d, Z%d", regQ, regQ, regQ)
		emit("VPMADD52LUQ Z%d, Z%d, Z%d", regInv, t(i, 0), regQ)
		for j := range n {
			emit("VPMADD52HUQ Z%d, Z%d, Z%d", regB, j, t(i, j+1))
		}
		emit("VPADDQ Z%d, Z%d, Z%d", regMask, t(i, 0), t(i, 0))
		for j := 1; j < n; j++ {
			emit("VPMADD52LUQ Z%d, Z%d, Z%d", regQ, regP+j, t(i, j))
		}
		emit("VPSRLQ $52, Z%d, Z%d", t(i, 0), t(i, 0))
		for j := range n {
			emit("VPMADD52HUQ Z%d, Z%d, Z%d", regQ, regP+j, t(i, j+1))
		}
		emit("VPADDQ Z%d, Z%d, Z%d", t(i, 0), t(i, 1), t(i, 1))
		if i+1 < n {
			emit("VPXORQ Z%d, Z%d, Z%d", t(i, 0), t(i, 0), t(i, 0))
		}
	}
	return f.product()
}

// carry makes limbs (signed) canonical: each below 2^52 but the top one, which must not be negative.
func (f field) carry(r []int) {
	for j := 0; j+1 < len(r); j++ {
		emit("VPSRAQ $52, Z%d, Z%d", r[j], regQ)
		emit("VPANDQ Z%d, Z%d, Z%d", regMask, r[j], r[j])
		emit("VPADDQ Z%d, Z%d, Z%d", regQ, r[j+1], r[j+1])
	}
}

// reduce subtracts the multiple of p that the top limb tells, then carries. It takes values from 0.1 p to 7.9 p,
// and leaves less than 1.01 p. The slack makes up for borrows that have not reached the top limb.
func (f field) reduce(r []int) {
	note("Subtract q p, q from the top limb.")
	emit("VPSUBQ.BCST %d(AX), Z%d, Z%d", f.slack(), r[f.limbs-1], regB)
	emit("VPXORQ Z%d, Z%d, Z%d", regQ, regQ, regQ)
	emit("VPMADD52HUQ Z%d, Z%d, Z%d", regM, regB, regQ)
	for j := range r {
		emit("VPERMQ %d(AX), Z%d, Z%d", f.table()+64*j, regQ, regB)
		emit("VPSUBQ Z%d, Z%d, Z%d", regB, r[j], r[j])
	}
	f.carry(r)
}

func (f field) addMultiple(k int, r []int) {
	for j := range r {
		emit("VPADDQ.BCST %d(AX), Z%d, Z%d", f.multiple(k)+8*j, r[j], r[j])
	}
}

// Elements in memory: in lane form, 64 bytes a limb, at base register + offset.

func load(base string, off int, r []int) {
	for j := range r {
		emit("VMOVDQU64 %d(%s), Z%d", off+64*j, base, r[j])
	}
}

func store(base string, off int, r []int) {
	for j := range r {
		emit("VMOVDQU64 Z%d, %d(%s)", r[j], off+64*j, base)
	}
}

func addMemory(base string, off int, r []int) {
	for j := range r {
		emit("VPADDQ %d(%s), Z%d, Z%d", off+64*j, base, r[j], r[j])
	}
}

func subMemory(base string, off int, r []int) {
	for j := range r {
		emit("VPSUBQ %d(%s), Z%d, Z%d", off+64*j, base, r[j], r[j])
	}
}

func memory(base string, off int) func(i, reg int) {
	return func(i, reg int) { emit("VMOVDQU64 %d(%s), Z%d", off+64*i, base, reg) }
}

func seq(from, n int) []int {
	r := make([]int, n)
	for i := range r {
		r[i] = from + i
	}
	return r
}

func move(from, to []int) {
	for j := range from {
		emit("VMOVDQA64 Z%d, Z%d", from[j], to[j])
	}
}

// transpose turns eight rows of eight words in Z0..Z7 into Z8..Z15 with the words of one place each, lanes in
// order, and back.
func transpose() []int {
	note("Transpose 8 x 8.")
	for i := 0; i < 8; i += 2 {
		emit("VPUNPCKLQDQ Z%d, Z%d, Z%d", i+1, i, 8+i)
		emit("VPUNPCKHQDQ Z%d, Z%d, Z%d", i+1, i, 9+i)
	}
	for _, s := range [][4]int{{8, 10, 0, 1}, {9, 11, 2, 3}, {12, 14, 4, 5}, {13, 15, 6, 7}} {
		emit("VSHUFI64X2 $0x88, Z%d, Z%d, Z%d", s[1], s[0], s[2])
		emit("VSHUFI64X2 $0xdd, Z%d, Z%d, Z%d", s[1], s[0], s[3])
	}
	for _, s := range [][4]int{{0, 4, 8, 12}, {1, 5, 10, 14}, {2, 6, 9, 13}, {3, 7, 11, 15}} {
		emit("VSHUFI64X2 $0x88, Z%d, Z%d, Z%d", s[1], s[0], s[2])
		emit("VSHUFI64X2 $0xdd, Z%d, Z%d, Z%d", s[1], s[0], s[3])
	}
	return seq(8, 8)
}

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

// limbs converts words in lane form (64 bits) at the registers into limbs of 52 bits in Z0...
func limbs(words []int, n int) {
	note("Words to limbs.")
	for j := range n {
		word, shift := 52*j/64, 52*j%64
		switch {
		case shift == 0:
			emit("VMOVDQA64 Z%d, Z%d", words[word], j)
		default:
			emit("VPSRLQ $%d, Z%d, Z%d", shift, words[word], j)
		}
		if shift > 12 && word+1 < len(words) {
			emit("VPSLLQ $%d, Z%d, Z%d", 64-shift, words[word+1], regB)
			emit("VPORQ Z%d, Z%d, Z%d", regB, j, j)
		}
		if j+1 < n {
			emit("VPANDQ Z%d, Z%d, Z%d", regMask, j, j)
		}
	}
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

// Transforms: a buffer's row is eight elements of fr in lane form, 320 bytes; values are below 36 r = 2^260.
// Limbs in a buffer may be signed and above 2^52 until they are carried.

const row = 5 * 64

// reduceWide brings values below 36 r to less than r + r/2^30, by adding q (2^260 - r) modulo 2^260.
func (f field) reduceWide(r []int) {
	note("Subtract q r, q from the top limb.")
	f.carry(r)
	top := r[f.limbs-1]
	emit("VPXORQ Z%d, Z%d, Z%d", regQ, regQ, regQ)
	emit("VPMADD52HUQ Z%d, Z%d, Z%d", regM, top, regQ)
	emit("VPSRLQ $46, Z%d, Z%d", regQ, regQ)
	for j := range f.limbs {
		emit("VPBROADCASTQ %d(AX), Z%d", f.complement()+8*j, regB)
		emit("VPMADD52LUQ Z%d, Z%d, Z%d", regQ, regB, r[j])
		if j+1 < f.limbs {
			emit("VPMADD52HUQ Z%d, Z%d, Z%d", regQ, regB, r[j+1])
		}
	}
	f.carry(r)
	emit("VPANDQ Z%d, Z%d, Z%d", regMask, top, top)
}

// layer writes one layer of a transform over size rows: blocks of 2 m rows.
func layer(f field, name string, body func(x, y string)) {
	text("func "+name+"(c, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)", "49", "AX", "SI", "CX", "DX", "", "R9", "R13")
	f.constants()
	emit("IMUL3Q $40, R9, R9")
	note("SI, DI: rows x and y; R10: blocks left.")
	emit("MOVQ CX, R10")
	emit("MOVQ DX, R11")
	emit("SHLQ $1, R11")
	emit("IMUL3Q $%d, DX, R12", row)
	label("block")
	emit("MOVQ twiddles+32(FP), BX")
	emit("MOVQ DX, R8")
	emit("LEAQ (SI)(R12*1), DI")
	label("butterfly")
	body("SI", "DI")
	emit("ADDQ R9, BX")
	emit("ADDQ $%d, SI", row)
	emit("ADDQ $%d, DI", row)
	emit("DECQ R8")
	emit("JNZ butterfly")
	emit("MOVQ DI, SI")
	emit("SUBQ R11, R10")
	emit("JNZ block")
	emit("VZEROUPPER")
	emit("RET")
}

func twiddle(i, reg int) { emit("VPBROADCASTQ %d(BX), Z%d", 8*i, reg) }

// differences: x + y and (x - y + 16 r) w. Sums double; where reduce is set they are brought down.
func transformDIF(f field) {
	layer(f, "rowsDIF", func(x, y string) {
		a, b := seq(0, 5), seq(8, 5)
		load(x, 0, a)
		load(x, 0, b)
		addMemory(y, 0, b)
		subMemory(y, 0, a)
		for j := range a {
			emit("VPADDQ.BCST %d(AX), Z%d, Z%d", f.sixteen()+8*j, a[j], a[j])
		}
		emit("TESTB R13, R13")
		emit("JZ sum")
		f.reduceWide(b)
		label("sum")
		store(x, 0, b)
		f.carry(a)
		r := f.montmul(twiddle)
		store(y, 0, r)
	})
}

// times: x + y w and x - y w + 2 r. Values grow by 2 r a layer.
func transformDIT(f field) {
	layer(f, "rowsDIT", func(x, y string) {
		a := seq(0, 5)
		load(y, 0, a)
		f.carry(a)
		r := f.montmul(twiddle)
		load(x, 0, a)
		for j := range a {
			emit("VPADDQ Z%d, Z%d, Z%d", r[j], a[j], regB)
			emit("VMOVDQU64 Z%d, %d(%s)", regB, 64*j, x)
			emit("VPSUBQ Z%d, Z%d, Z%d", r[j], a[j], a[j])
			emit("VPADDQ.BCST %d(AX), Z%d, Z%d", f.multiple(2)+8*j, a[j], a[j])
			emit("VMOVDQU64 Z%d, %d(%s)", a[j], 64*j, y)
		}
	})
}

func transformScale(f field) {
	text("func rowsScale(c, buf *uint64, size int, factors *uint64)", "32", "AX", "SI", "CX", "BX")
	f.constants()
	label("row")
	load("SI", 0, seq(0, 5))
	f.carry(seq(0, 5))
	store("SI", 0, f.montmul(twiddle))
	emit("ADDQ $40, BX")
	emit("ADDQ $%d, SI", row)
	end("row", "CX")
}

func transformMul(f field) {
	text("func rowsMul(c, a, b *uint64, size int)", "32", "AX", "SI", "DI", "CX")
	f.constants()
	label("row")
	load("SI", 0, seq(0, 5))
	f.carry(seq(0, 5))
	store("SI", 0, f.montmul(memory("DI", 0)))
	emit("ADDQ $%d, SI", row)
	emit("ADDQ $%d, DI", row)
	end("row", "CX")
}

// The running factor of each lane is at at, its ratio behind it.
func transformPowers(f field) {
	text("func rowsPowers(c, buf *uint64, size int, order *uint32, at *uint64)", "40", "AX", "SI", "CX", "BX", "DI")
	f.constants()
	label("row")
	emit("MOVL (BX), R8")
	emit("IMUL3Q $%d, R8, R8", row)
	emit("ADDQ SI, R8")
	load("R8", 0, seq(0, 5))
	f.carry(seq(0, 5))
	store("R8", 0, f.montmul(memory("DI", 0)))
	load("DI", 0, seq(0, 5))
	r := f.montmul(memory("DI", row))
	f.carry(r)
	store("DI", 0, r)
	emit("ADDQ $4, BX")
	end("row", "CX")
}

func transformSub(f field) {
	text("func rowsSub(c, a, b *uint64, size int)", "32", "AX", "SI", "DI", "CX")
	label("row")
	r := seq(0, 5)
	load("SI", 0, r)
	subMemory("DI", 0, r)
	f.addMultiple(2, r)
	store("SI", 0, r)
	emit("ADDQ $%d, SI", row)
	emit("ADDQ $%d, DI", row)
	end("row", "CX")
}

// The lanes that lie together in a register of two elements while they are transposed.
var pairs = [4][2]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}}

// place begins a function over the rows of a place: elements in memory at SI, lane offsets at BX, R9 bytes from
// row to row, order at R10 or zero. each does one row.
func place(f field, name string, each func()) {
	text("func "+name+"(c, buf, mem *uint64, at *uint64, stride, size int, order *uint32)", "56", "AX", "DI", "SI", "BX", "R9", "CX", "R10")
	emit("XORQ R11, R11")
	f.constants()
	label("row")
	emit("TESTQ R10, R10")
	emit("JZ inorder")
	emit("MOVL (R10), R11")
	emit("IMULQ R9, R11")
	emit("ADDQ $4, R10")
	label("inorder")
	each()
	emit("ADDQ R9, R11")
	emit("ADDQ $%d, DI", row)
	end("row", "CX")
}

// lane puts the address of a lane's element into R12.
func lane(l int) {
	emit("MOVQ %d(BX), R12", 8*l)
	emit("ADDQ R11, R12")
}

func loadRows(f field) {
	place(f, "rowsLoad", func() {
		for i, p := range pairs {
			lane(p[0])
			emit("VMOVDQU (SI)(R12*1), Y%d", i)
			lane(p[1])
			emit("VINSERTI64X4 $1, (SI)(R12*1), Z%d, Z%d", i, i)
		}
		for i := 0; i < 4; i += 2 {
			emit("VPUNPCKLQDQ Z%d, Z%d, Z%d", i+1, i, 4+i)
			emit("VPUNPCKHQDQ Z%d, Z%d, Z%d", i+1, i, 5+i)
		}
		for i := range 2 {
			emit("VSHUFI64X2 $0x88, Z%d, Z%d, Z%d", 6+i, 4+i, 8+i)
			emit("VSHUFI64X2 $0xdd, Z%d, Z%d, Z%d", 6+i, 4+i, 10+i)
		}
		limbs(seq(8, 4), 5)
		store("DI", 0, seq(0, 5))
	})
}

func storeRows(f field) {
	place(f, "rowsStore", func() {
		r, s := seq(0, 5), seq(8, 5)
		load("DI", 0, r)
		f.reduceWide(r)
		note("Subtract r where that is not negative.")
		for j := range r {
			emit("VPSUBQ Z%d, Z%d, Z%d", regP+j, r[j], s[j])
		}
		f.carry(s)
		emit("VPMOVQ2M Z%d, K1", s[4])
		emit("KNOTB K1, K1")
		for j := range r {
			emit("VMOVDQA64 Z%d, K1, Z%d", s[j], r[j])
		}
		note("Limbs to words.")
		for w := range 4 {
			emit("VPSLLQ $%d, Z%d, Z%d", 52-12*w, w+1, 8+w)
			if w > 0 {
				emit("VPSRLQ $%d, Z%d, Z%d", 12*w, w, regB)
				emit("VPORQ Z%d, Z%d, Z%d", regB, 8+w, 8+w)
			} else {
				emit("VPORQ Z0, Z8, Z8")
			}
		}
		note("To elements, two a register.")
		emit("VPUNPCKLQDQ Z9, Z8, Z0")
		emit("VPUNPCKHQDQ Z9, Z8, Z1")
		emit("VPUNPCKLQDQ Z11, Z10, Z4")
		emit("VPUNPCKHQDQ Z11, Z10, Z5")
		emit("VMOVDQA64 Z0, Z2")
		emit("VMOVDQA64 Z1, Z3")
		for half := range 2 {
			emit("VMOVDQU64 %d(AX), Z8", f.index()+64*half)
			emit("VPERMT2Q Z4, Z8, Z%d", 2*half)
			emit("VPERMT2Q Z5, Z8, Z%d", 2*half+1)
		}
		for i, p := range pairs {
			lane(p[0])
			emit("VMOVDQU Y%d, (SI)(R12*1)", i)
			lane(p[1])
			emit("VEXTRACTI64X4 $1, Z%d, (SI)(R12*1)", i)
		}
	})
}

func main() {
	out.WriteString("// Code generated by gen.go. DO NOT EDIT.\n\n#include \"textflag.h\"\n")
	fmt.Fprintf(&out, "\n// fpMul multiplies Z0-Z7 by the elements at R13.\nTEXT fpMul<>(SB), NOSPLIT, $0-0\n")
	fp.montmul(memory("R13", 0))
	emit("RET")
	for _, g := range []group{{"G1", 1}, {"G2", 2}} {
		g.forward()
		g.backward()
		g.loadPoints()
	}
	fr := field{limbs: 5}
	transformDIF(fr)
	transformDIT(fr)
	transformScale(fr)
	transformMul(fr)
	transformPowers(fr)
	transformSub(fr)
	loadRows(fr)
	storeRows(fr)
	fmt.Print(out.String())
}
