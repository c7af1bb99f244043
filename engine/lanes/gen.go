//go:build ignore

// gen writes kernels_amd64.s: arithmetic on eight field elements at once with AVX-512 IFMA, whose multiply adds
// the low or high 52 bits of eight products of 52-bit limbs. An element has one limb in a 64-bit lane of each
// of its registers ("lane form").
//
//	go run gen.go gen_points.go gen_rows.go gen_elements.go > kernels_amd64.s
//
// Fields are here, additions of points in gen_points.go, transforms in gen_rows.go, formulas in gen_elements.go.
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
	rowTimes(fr)
	rowPlus(fr)
	rowLinear(fr)
	fmt.Print(out.String())
}
