//go:build ignore

package main

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
