//go:build ignore

package main

// Single rows, for formulas over elements: limbs below 2^52, values below 2.1 r unless said otherwise.

// rowTimes: 16 a b, which makes up for the factor that a product of two values lacks. The result is below r + r/2^30.
func rowTimes(f field) {
	text("func rowTimes(c, dst, a, b *uint64)", "32", "AX", "DI", "SI", "BX")
	f.constants()
	a := seq(0, f.limbs)
	load("SI", 0, a)
	for _, r := range a {
		emit("VPSLLQ $4, Z%d, Z%d", r, r)
	}
	f.carry(a)
	r := f.montmul(memory("BX", 0))
	f.reduceWide(r)
	store("DI", 0, r)
	emit("VZEROUPPER")
	emit("RET")
}

// rowPlus: a + b.
func rowPlus(f field) {
	text("func rowPlus(c, dst, a, b *uint64)", "32", "AX", "DI", "SI", "BX")
	emit("VPBROADCASTQ %d(AX), Z%d", f.mask(), regMask)
	a := seq(0, f.limbs)
	load("SI", 0, a)
	addMemory("BX", 0, a)
	f.carry(a)
	store("DI", 0, a)
	emit("VZEROUPPER")
	emit("RET")
}

// rowLinear: the sum of rows times constants, reduced once: products gather in ten columns of 52 bits, which have room for
// hundreds of terms. A term is two offsets in bytes, of the row and of the constant.
func rowLinear(f field) {
	text("func rowLinear(c, dst, rows *uint64, terms *uint32, count int, factors *uint64)", "48", "AX", "DI", "SI", "BX", "CX", "DX")
	f.constants()
	const factor = 15
	n := f.limbs
	columns, a := seq(0, 2*n), seq(2*n, n)
	for _, r := range columns {
		emit("VPXORQ Z%d, Z%d, Z%d", r, r, r)
	}
	label("term")
	emit("MOVL (BX), R8")
	emit("MOVL 4(BX), R9")
	emit("ADDQ SI, R8")
	load("R8", 0, a)
	for i := range n {
		emit("VPBROADCASTQ %d(DX)(R9*1), Z%d", 8*i, factor)
		for j := range n {
			emit("VPMADD52LUQ Z%d, Z%d, Z%d", factor, a[j], columns[i+j])
		}
		for j := range n {
			emit("VPMADD52HUQ Z%d, Z%d, Z%d", factor, a[j], columns[i+j+1])
		}
	}
	emit("ADDQ $8, BX")
	emit("DECQ CX")
	emit("JNZ term")
	note("Add multiples of r that clear the low columns; what a column's low bits carry is one where they are not zero.")
	for i := range n {
		emit("VPXORQ Z%d, Z%d, Z%d", regQ, regQ, regQ)
		emit("VPMADD52LUQ Z%d, Z%d, Z%d", regInv, columns[i], regQ)
		emit("VPADDQ Z%d, Z%d, Z%d", regMask, columns[i], columns[i])
		emit("VPSRLQ $52, Z%d, Z%d", columns[i], columns[i])
		emit("VPADDQ Z%d, Z%d, Z%d", columns[i], columns[i+1], columns[i+1])
		for j := 1; j < n; j++ {
			emit("VPMADD52LUQ Z%d, Z%d, Z%d", regQ, regP+j, columns[i+j])
		}
		for j := range n {
			emit("VPMADD52HUQ Z%d, Z%d, Z%d", regQ, regP+j, columns[i+j+1])
		}
	}
	f.carry(columns[n:])
	store("DI", 0, columns[n:])
	emit("VZEROUPPER")
	emit("RET")
}
