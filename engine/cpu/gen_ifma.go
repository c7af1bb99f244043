//go:build ignore

// gen_ifma writes ifma_amd64.s: arithmetic on eight field elements at once with AVX-512 IFMA, whose multiply
// adds the low or high 52 bits of eight products of 52-bit limbs. An element has one limb in a 64-bit lane of
// each of its registers ("lane form").
//
//	go run gen_ifma.go > ifma_amd64.s
package main

import (
	"fmt"
	"strings"
)

var out strings.Builder

func emit(format string, args ...any) { fmt.Fprintf(&out, "\t"+format+"\n", args...) }
func label(name string)               { fmt.Fprintf(&out, "%s:\n", name) }
func note(format string, args ...any) { fmt.Fprintf(&out, "\t// "+format+"\n", args...) }

func text(name, doc, args string) {
	fmt.Fprintf(&out, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%s\n", doc, name, args)
}

// A prime field in limbs of 52 bits: its constants' place in a table of 64-bit words (see ifmaConstants in
// ifma_amd64.go), whose address is in AX.
type field struct {
	limbs int
}

// Byte offsets into the constants.
func (f field) p() int             { return 0 }                     // p, and below it multiples
func (f field) multiple(k int) int { return (k - 1) * 8 * f.limbs } // k p, k from 1 to 6
func (f field) special() int       { return 6 * 8 * f.limbs }       // -1/p, mask, quotient factor, slack, then the factor of load
func (f field) factor() int        { return f.special() + 32 }
func (f field) table() int         { return f.factor() + 8*f.limbs } // limb j of 0 p .. 7 p

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
		emit("VPBROADCASTQ %d(AX), Z%d", f.p()+8*j, regP+j)
	}
	emit("VPBROADCASTQ %d(AX), Z%d", f.special(), regInv)
	emit("VPBROADCASTQ %d(AX), Z%d", f.special()+8, regMask)
	emit("VPBROADCASTQ %d(AX), Z%d", f.special()+16, regM)
	emit("VPXORQ Z%d, Z%d, Z%d", regZero, regZero, regZero)
}

// montmul multiplies Z0.. by the operand whose limb i the callback loads into a register, and returns the
// product's registers, limbs not yet below 2^52. Each row adds a limb's products, then a multiple of p that
// clears the lowest limb; that limb's carry needs no product: it rounds up.
func (f field) montmul(b func(i, reg int)) []int {
	n := f.limbs
	t := func(i, j int) int { return 8 + (i+j)%(n+1) }
	note("Montgomery product.")
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
	r := make([]int, n)
	for j := range r {
		r[j] = t(n, j)
	}
	return r
}

// carry makes limbs (signed) canonical: each below 2^52 but the top one, which must not be negative.
func (f field) carry(r []int) {
	for j := 0; j+1 < len(r); j++ {
		emit("VPSRAQ $52, Z%d, Z%d", r[j], regQ)
		emit("VPANDQ Z%d, Z%d, Z%d", regMask, r[j], r[j])
		emit("VPADDQ Z%d, Z%d, Z%d", regQ, r[j+1], r[j+1])
	}
}

// reduce subtracts the multiple of p that the top limb tells, then carries. It takes values from p to 7 p, and
// leaves less than 1.002 p. The slack makes up for carries that have not reached the top limb.
func (f field) reduce(r []int) {
	note("Subtract q p, q from the top limb.")
	emit("VPSUBQ.BCST %d(AX), Z%d, Z%d", f.special()+24, r[f.limbs-1], regB)
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

// vectors at base register + offset, 64 bytes a limb.
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

// transpose turns eight rows of eight words in Z0..Z7 into Z8..Z15 with the words of one place each, lanes in
// order, and back.
func transpose() {
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
}

// The point store's slots are 128 bytes: eight limbs of x, eight of y.

// rows loads 64 bytes at an offset of the slots that eight references name.
func rows(refs string, slotOffset int) {
	for l := range 8 {
		emit("MOVL %d(%s), R11", 4*l, refs)
		emit("SHRL $1, R11")
		emit("SHLQ $7, R11")
		emit("VMOVDQU64 %d(BX)(R11*1), Z%d", slotOffset, l)
	}
}

// prefetch asks for both lines of the slots of another group.
func prefetch(refs string, group int) {
	for l := range 8 {
		emit("MOVL %d(%s), R11", 32*group+4*l, refs)
		emit("SHRL $1, R11")
		emit("SHLQ $7, R11")
		emit("PREFETCHT0 (BX)(R11*1)")
		emit("PREFETCHT0 64(BX)(R11*1)")
	}
}

const group = 8 * 64 // bytes of eight elements of fp in lane form

func forward(f field) {
	text("ifmaForward", "func ifmaForward(c *uint64, slots *uint64, a, b *uint32, groups int, d, prefix *uint64, flags *uint8)", "64")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ slots+8(FP), BX")
	emit("MOVQ a+16(FP), CX")
	emit("MOVQ b+24(FP), DX")
	emit("MOVQ groups+32(FP), DI")
	emit("MOVQ d+40(FP), SI")
	emit("MOVQ prefix+48(FP), R8")
	emit("MOVQ flags+56(FP), R10")
	f.constants()
	label("forward")
	prefetch("CX", 2)
	prefetch("DX", 2)
	r := seq(8, 8)
	rows("CX", 0)
	transpose()
	emit("VPTESTNMQ Z8, Z8, K1")
	store("SI", 0, r)
	rows("DX", 0)
	transpose()
	emit("VPTESTNMQ Z8, Z8, K2")
	note("d = xb - xa + 2 p")
	subMemory("SI", 0, r)
	f.addMultiple(2, r)
	f.carry(r)
	note("Lanes where d is a multiple of p, or a lowest limb is zero (as infinity's), are left to the caller.")
	emit("KORB K1, K2, K1")
	for k := 1; k <= 3; k++ {
		emit("VPCMPEQQ.BCST %d(AX), Z8, K2", f.multiple(k))
		emit("KORB K1, K2, K1")
	}
	emit("KMOVB K1, R11")
	emit("MOVB R11, (R10)")
	emit("TESTB R11, R11")
	emit("JZ regular")
	for j := range 8 {
		emit("VMOVDQA64 Z%d, K1, Z%d", regP+j, 8+j)
	}
	note("d = 1 (any unit will do): p with its lowest limb changed by one.")
	emit("VPSRLQ $51, Z%d, Z%d", regMask, regQ)
	emit("VPADDQ Z%d, Z8, K1, Z8", regQ)
	label("regular")
	store("SI", 0, r)
	load("R8", 0, seq(0, 8))
	r = f.montmul(memory("SI", 0))
	f.carry(r)
	store("R8", group, r)
	emit("ADDQ $32, CX")
	emit("ADDQ $32, DX")
	emit("ADDQ $%d, SI", group)
	emit("ADDQ $%d, R8", group)
	emit("INCQ R10")
	emit("DECQ DI")
	emit("JNZ forward")
	emit("VZEROUPPER")
	emit("RET")
}

func backward(f field) {
	// Scratch, in groups.
	const inverse, slope, ya, xa, u, x3, size = 0, group, 2 * group, 3 * group, 4 * group, 5 * group, 6 * group
	text("ifmaBackward", "func ifmaBackward(c *uint64, slots *uint64, a, b, dst *uint32, groups int, d, prefix, scratch *uint64)", "72")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ slots+8(FP), BX")
	emit("MOVQ a+16(FP), CX")
	emit("MOVQ b+24(FP), DX")
	emit("MOVQ dst+32(FP), R12")
	emit("MOVQ groups+40(FP), DI")
	emit("MOVQ d+48(FP), SI")
	emit("MOVQ prefix+56(FP), R8")
	emit("MOVQ scratch+64(FP), R9")
	f.constants()
	note("Start behind the last group.")
	emit("MOVQ DI, R11")
	emit("SHLQ $5, R11")
	emit("ADDQ R11, CX")
	emit("ADDQ R11, DX")
	emit("ADDQ R11, R12")
	emit("SHLQ $4, R11")
	emit("ADDQ R11, SI")
	emit("ADDQ R11, R8")
	label("backward")
	emit("SUBQ $32, CX")
	emit("SUBQ $32, DX")
	emit("SUBQ $32, R12")
	emit("SUBQ $%d, SI", group)
	emit("SUBQ $%d, R8", group)
	t := seq(8, 8)
	note("1/d into slope, and the inverse of what is left.")
	load("R9", inverse, seq(0, 8))
	r := f.montmul(memory("R8", 0))
	f.carry(r)
	store("R9", slope, r)
	r = f.montmul(memory("SI", 0))
	f.carry(r)
	store("R9", inverse, r)
	note("ya, yb with their signs; the numerator.")
	emit("VMOVDQU (CX), Y0")
	emit("VPSLLD $31, Y0, Y0")
	emit("VPMOVD2M Y0, K1")
	emit("VMOVDQU (DX), Y0")
	emit("VPSLLD $31, Y0, Y0")
	emit("VPMOVD2M Y0, K2")
	rows("CX", 64)
	transpose()
	for _, j := range t {
		emit("VPSUBQ Z%d, Z%d, K1, Z%d", j, regZero, j)
	}
	store("R9", ya, t)
	rows("DX", 64)
	transpose()
	for _, j := range t {
		emit("VPSUBQ Z%d, Z%d, K2, Z%d", j, regZero, j)
	}
	subMemory("R9", ya, t)
	f.addMultiple(4, t)
	f.carry(t)
	store("R9", u, t)
	rows("CX", 0)
	transpose()
	store("R9", xa, t)
	note("The slope.")
	load("R9", slope, seq(0, 8))
	r = f.montmul(memory("R9", u))
	f.carry(r)
	store("R9", slope, r)
	note("x3 = slope^2 - xa - xb, where xb = d + xa - 2 p.")
	load("R9", slope, seq(0, 8))
	r = f.montmul(memory("R9", slope))
	subMemory("R9", xa, r)
	subMemory("R9", xa, r)
	subMemory("SI", 0, r)
	f.addMultiple(6, r)
	f.reduce(r)
	store("R9", x3, r)
	note("y3 = slope (xa - x3) - ya.")
	load("R9", xa, t)
	subMemory("R9", x3, t)
	f.addMultiple(2, t)
	f.carry(t)
	store("R9", u, t)
	r = f.montmul(memory("R9", u))
	subMemory("R9", ya, r)
	f.addMultiple(2, r)
	f.reduce(r)
	note("Back to rows.")
	store("R9", u, r)
	for i, at := range []int{x3, u} {
		load("R9", at, seq(0, 8))
		transpose()
		for l := range 8 {
			emit("MOVL %d(R12), R11", 4*l)
			emit("SHLQ $7, R11")
			emit("VMOVDQU64 Z%d, %d(BX)(R11*1)", 8+l, 64*i)
		}
	}
	emit("DECQ DI")
	emit("JNZ backward")
	emit("VZEROUPPER")
	emit("RET")
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

func loadPoints(f field) {
	text("ifmaLoad", "func ifmaLoad(c *uint64, dst *uint64, src *byte, offsets *uint32, groups int, scratch *uint64)", "48")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ dst+8(FP), BX")
	emit("MOVQ src+16(FP), SI")
	emit("MOVQ offsets+24(FP), CX")
	emit("MOVQ groups+32(FP), DI")
	emit("MOVQ scratch+40(FP), R9")
	f.constants()
	label("points")
	for i := range 2 {
		note([]string{"x: words 0 to 5 of the point.", "y: words 6 to 11, as words 2 to 7 behind the fourth."}[i])
		for l := range 8 {
			emit("MOVL %d(CX), R11", 4*l)
			emit("SHRL $1, R11")
			emit("IMUL3Q $96, R11, R11")
			emit("VMOVDQU64 %d(SI)(R11*1), Z%d", 32*i, l)
		}
		transpose()
		words := seq(8+2*i, 6)
		limbs(words, 8)
		r := f.montmul(func(i, reg int) { emit("VPBROADCASTQ %d(AX), Z%d", f.factor()+8*i, reg) })
		f.carry(r)
		store("R9", 0, r)
		load("R9", 0, seq(0, 8))
		transpose()
		for l := range 8 {
			emit("VMOVDQU64 Z%d, %d(BX)", 8+l, 128*l+64*i)
		}
	}
	emit("ADDQ $32, CX")
	emit("ADDQ $1024, BX")
	emit("DECQ DI")
	emit("JNZ points")
	emit("VZEROUPPER")
	emit("RET")
}

// Transforms: a buffer's row is eight elements of fr in lane form, 320 bytes; values are below 36 r = 2^260.
// Limbs in a buffer may be signed and above 2^52 until they are carried.

const row = 5 * 64

// Bytes behind the constants that fields share: indexes for the way back to memory; 2^260 - r; 2 r is a multiple
// as for fp, 16 r is here.
func (f field) index() int      { return f.table() + 64*f.limbs }
func (f field) complement() int { return f.index() + 128 }
func (f field) sixteen() int    { return f.complement() + 8*f.limbs }

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
	text(name, "func "+name+"(c *uint64, buf *uint64, size, m int, twiddles *uint64, step int, reduce bool)", "49")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ buf+8(FP), SI")
	emit("MOVQ size+16(FP), CX")
	emit("MOVQ m+24(FP), DX")
	emit("MOVQ step+40(FP), R9")
	emit("MOVBQZX reduce+48(FP), R13")
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
	layer(f, "ifmaDIF", func(x, y string) {
		a, b := seq(0, 5), seq(8, 5)
		load(x, 0, a)
		load(x, 0, b)
		for j := range b {
			emit("VPADDQ %d(%s), Z%d, Z%d", 64*j, y, b[j], b[j])
		}
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
	layer(f, "ifmaDIT", func(x, y string) {
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
	text("ifmaScale", "func ifmaScale(c *uint64, buf *uint64, size int, factors *uint64)", "32")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ buf+8(FP), SI")
	emit("MOVQ size+16(FP), CX")
	emit("MOVQ factors+24(FP), BX")
	f.constants()
	label("row")
	load("SI", 0, seq(0, 5))
	f.carry(seq(0, 5))
	store("SI", 0, f.montmul(twiddle))
	emit("ADDQ $40, BX")
	emit("ADDQ $%d, SI", row)
	emit("DECQ CX")
	emit("JNZ row")
	emit("VZEROUPPER")
	emit("RET")
}

func transformMul(f field) {
	text("ifmaMul", "func ifmaMul(c *uint64, a, b *uint64, size int)", "32")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ a+8(FP), SI")
	emit("MOVQ b+16(FP), DI")
	emit("MOVQ size+24(FP), CX")
	f.constants()
	label("row")
	load("SI", 0, seq(0, 5))
	f.carry(seq(0, 5))
	store("SI", 0, f.montmul(memory("DI", 0)))
	emit("ADDQ $%d, SI", row)
	emit("ADDQ $%d, DI", row)
	emit("DECQ CX")
	emit("JNZ row")
	emit("VZEROUPPER")
	emit("RET")
}

// The running factor of each lane is at at, its ratio behind it.
func transformPowers(f field) {
	text("ifmaPowers", "func ifmaPowers(c *uint64, buf *uint64, size int, order *uint32, at *uint64)", "40")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ buf+8(FP), SI")
	emit("MOVQ size+16(FP), CX")
	emit("MOVQ order+24(FP), BX")
	emit("MOVQ at+32(FP), DI")
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
	emit("DECQ CX")
	emit("JNZ row")
	emit("VZEROUPPER")
	emit("RET")
}

func transformSub(f field) {
	text("ifmaSub", "func ifmaSub(c *uint64, a, b *uint64, size int)", "32")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ a+8(FP), SI")
	emit("MOVQ b+16(FP), DI")
	emit("MOVQ size+24(FP), CX")
	label("row")
	r := seq(0, 5)
	load("SI", 0, r)
	subMemory("DI", 0, r)
	f.addMultiple(2, r)
	store("SI", 0, r)
	emit("ADDQ $%d, SI", row)
	emit("ADDQ $%d, DI", row)
	emit("DECQ CX")
	emit("JNZ row")
	emit("VZEROUPPER")
	emit("RET")
}

// The lanes that lie together in a register of two elements while they are transposed.
var pairs = [4][2]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}}

// place loads what a place's functions have in common: rows in memory at SI, lane offsets at BX, R9 bytes from
// row to row, order at R10 or zero.
func place(name, doc string) {
	text(name, doc, "56")
	emit("MOVQ c+0(FP), AX")
	emit("MOVQ buf+8(FP), DI")
	emit("MOVQ mem+16(FP), SI")
	emit("MOVQ at+24(FP), BX")
	emit("MOVQ stride+32(FP), R9")
	emit("MOVQ size+40(FP), CX")
	emit("MOVQ order+48(FP), R10")
	emit("XORQ R11, R11")
}

// lane puts the address of a lane's element into R12.
func lane(l int) {
	emit("MOVQ %d(BX), R12", 8*l)
	emit("ADDQ R11, R12")
}

func nextRow() {
	emit("ADDQ R9, R11")
	emit("ADDQ $%d, DI", row)
	emit("DECQ CX")
	emit("JNZ row")
	emit("VZEROUPPER")
	emit("RET")
}

func ordered() {
	emit("TESTQ R10, R10")
	emit("JZ inorder")
	emit("MOVL (R10), R11")
	emit("IMULQ R9, R11")
	emit("ADDQ $4, R10")
	label("inorder")
}

func loadLanes(f field) {
	place("ifmaLoadLanes", "func ifmaLoadLanes(c *uint64, buf *uint64, mem *uint64, at *uint64, stride, size int, order *uint32)")
	f.constants()
	label("row")
	ordered()
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
	nextRow()
}

func storeLanes(f field) {
	place("ifmaStoreLanes", "func ifmaStoreLanes(c *uint64, buf *uint64, mem *uint64, at *uint64, stride, size int, order *uint32)")
	f.constants()
	emit("VPBROADCASTQ %d(AX), Z%d", f.special()+16, regM)
	label("row")
	ordered()
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
	nextRow()
}

func main() {
	out.WriteString("// Code generated by gen_ifma.go. DO NOT EDIT.\n\n#include \"textflag.h\"\n")
	fp := field{limbs: 8}
	forward(fp)
	backward(fp)
	loadPoints(fp)
	fr := field{limbs: 5}
	transformDIF(fr)
	transformDIT(fr)
	transformScale(fr)
	transformMul(fr)
	transformPowers(fr)
	transformSub(fr)
	loadLanes(fr)
	storeLanes(fr)
	fmt.Print(out.String())
}
