#include "textflag.h"

// Offsets in tables.
#define MODULUS   0
#define MULTIPLES 512
#define BIAS      1024
#define TWICE     1536
#define NEGINV    2048
#define MASK      2112
#define QUOTIENT  2176

// Registers of the multiplication: Z0-Z7 a, Z8-Z15 p, Z16-Z24 the accumulators, which move down by one
// each step, Z25 a limb of b, Z26 the Montgomery quotient, Z27 -1/p, Z28 the mask.

// STEP adds a times the limb of b at OFF, and the multiple of p that clears the lowest limb; what is left
// of that limb goes up, and R0 becomes the new, empty top. Limbs grow by less than 2^54 a step, so eight
// steps stay in 64 bits without carries.
#define STEP(OFF, R0, R1, R2, R3, R4, R5, R6, R7, R8) \
	VMOVDQU64   OFF(BX), Z25    \
	VPXORQ      Z26, Z26, Z26   \
	VPMADD52LUQ Z0, Z25, R0     \
	VPMADD52LUQ Z27, R0, Z26    \
	VPMADD52LUQ Z1, Z25, R1     \
	VPMADD52LUQ Z2, Z25, R2     \
	VPMADD52LUQ Z3, Z25, R3     \
	VPMADD52LUQ Z4, Z25, R4     \
	VPMADD52LUQ Z5, Z25, R5     \
	VPMADD52LUQ Z6, Z25, R6     \
	VPMADD52LUQ Z7, Z25, R7     \
	VPMADD52HUQ Z0, Z25, R1     \
	VPMADD52HUQ Z1, Z25, R2     \
	VPMADD52HUQ Z2, Z25, R3     \
	VPMADD52HUQ Z3, Z25, R4     \
	VPMADD52HUQ Z4, Z25, R5     \
	VPMADD52HUQ Z5, Z25, R6     \
	VPMADD52HUQ Z6, Z25, R7     \
	VPMADD52HUQ Z7, Z25, R8     \
	VPMADD52LUQ Z8, Z26, R0     \
	VPSRLQ      $52, R0, R0     \
	VPADDQ      R0, R1, R1      \
	VPMADD52LUQ Z9, Z26, R1     \
	VPMADD52LUQ Z10, Z26, R2    \
	VPMADD52LUQ Z11, Z26, R3    \
	VPMADD52LUQ Z12, Z26, R4    \
	VPMADD52LUQ Z13, Z26, R5    \
	VPMADD52LUQ Z14, Z26, R6    \
	VPMADD52LUQ Z15, Z26, R7    \
	VPMADD52HUQ Z8, Z26, R1     \
	VPMADD52HUQ Z9, Z26, R2     \
	VPMADD52HUQ Z10, Z26, R3    \
	VPMADD52HUQ Z11, Z26, R4    \
	VPMADD52HUQ Z12, Z26, R5    \
	VPMADD52HUQ Z13, Z26, R6    \
	VPMADD52HUQ Z14, Z26, R7    \
	VPMADD52HUQ Z15, Z26, R8    \
	VPXORQ      R0, R0, R0

// CARRY brings limb FROM into range, the rest goes to TO. Arithmetic shift: limbs may be negative.
#define CARRY(FROM, TO) \
	VPSRAQ $52, FROM, Z25   \
	VPANDQ Z28, FROM, FROM  \
	VPADDQ Z25, TO, TO

#define CARRYALL(R0, R1, R2, R3, R4, R5, R6, R7) \
	CARRY(R0, R1) \
	CARRY(R1, R2) \
	CARRY(R2, R3) \
	CARRY(R3, R4) \
	CARRY(R4, R5) \
	CARRY(R5, R6) \
	CARRY(R6, R7)

#define LOADALL(BASE, OFF, R0, R1, R2, R3, R4, R5, R6, R7) \
	VMOVDQU64 OFF+0(BASE), R0    \
	VMOVDQU64 OFF+64(BASE), R1   \
	VMOVDQU64 OFF+128(BASE), R2  \
	VMOVDQU64 OFF+192(BASE), R3  \
	VMOVDQU64 OFF+256(BASE), R4  \
	VMOVDQU64 OFF+320(BASE), R5  \
	VMOVDQU64 OFF+384(BASE), R6  \
	VMOVDQU64 OFF+448(BASE), R7

#define STOREALL(BASE, R0, R1, R2, R3, R4, R5, R6, R7) \
	VMOVDQU64 R0, 0(BASE)    \
	VMOVDQU64 R1, 64(BASE)   \
	VMOVDQU64 R2, 128(BASE)  \
	VMOVDQU64 R3, 192(BASE)  \
	VMOVDQU64 R4, 256(BASE)  \
	VMOVDQU64 R5, 320(BASE)  \
	VMOVDQU64 R6, 384(BASE)  \
	VMOVDQU64 R7, 448(BASE)

// OPALL combines Z0-Z7 with a block in memory, limb by limb.
#define OPALL(OP, BASE, OFF) \
	OP OFF+0(BASE), Z0, Z0    \
	OP OFF+64(BASE), Z1, Z1   \
	OP OFF+128(BASE), Z2, Z2  \
	OP OFF+192(BASE), Z3, Z3  \
	OP OFF+256(BASE), Z4, Z4  \
	OP OFF+320(BASE), Z5, Z5  \
	OP OFF+384(BASE), Z6, Z6  \
	OP OFF+448(BASE), Z7, Z7

// func mulIFMA(dst, a, b *Block, t *tables)
TEXT ·mulIFMA(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ t+24(FP), DX
	LOADALL(SI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	LOADALL(DX, MODULUS, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	VMOVDQU64 NEGINV(DX), Z27
	VMOVDQU64 MASK(DX), Z28
	VPXORQ Z16, Z16, Z16
	VPXORQ Z17, Z17, Z17
	VPXORQ Z18, Z18, Z18
	VPXORQ Z19, Z19, Z19
	VPXORQ Z20, Z20, Z20
	VPXORQ Z21, Z21, Z21
	VPXORQ Z22, Z22, Z22
	VPXORQ Z23, Z23, Z23
	VPXORQ Z24, Z24, Z24
	STEP(0, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24)
	STEP(64, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z16)
	STEP(128, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z16, Z17)
	STEP(192, Z19, Z20, Z21, Z22, Z23, Z24, Z16, Z17, Z18)
	STEP(256, Z20, Z21, Z22, Z23, Z24, Z16, Z17, Z18, Z19)
	STEP(320, Z21, Z22, Z23, Z24, Z16, Z17, Z18, Z19, Z20)
	STEP(384, Z22, Z23, Z24, Z16, Z17, Z18, Z19, Z20, Z21)
	STEP(448, Z23, Z24, Z16, Z17, Z18, Z19, Z20, Z21, Z22)
	CARRYALL(Z24, Z16, Z17, Z18, Z19, Z20, Z21, Z22)
	STOREALL(DI, Z24, Z16, Z17, Z18, Z19, Z20, Z21, Z22)
	VZEROUPPER
	RET

// func addIFMA(dst, a, b *Block, t *tables)
TEXT ·addIFMA(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ t+24(FP), DX
	VMOVDQU64 MASK(DX), Z28
	LOADALL(SI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	OPALL(VPADDQ, BX, 0)
	CARRYALL(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	STOREALL(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func subIFMA(dst, a, b *Block, t *tables)
TEXT ·subIFMA(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ t+24(FP), DX
	VMOVDQU64 MASK(DX), Z28
	LOADALL(SI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	OPALL(VPSUBQ, BX, 0)
	OPALL(VPADDQ, DX, BIAS)
	CARRYALL(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	STOREALL(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// LESS takes limb OFF of the multiple of p that Z26 counts from REG.
#define LESS(OFF, REG) \
	VMOVDQU64 MULTIPLES+OFF(DX), Z27  \
	VPERMQ    Z27, Z26, Z27           \
	VPSUBQ    Z27, REG, REG

// func foldIFMA(dst, a, b, c *Block, t *tables)
TEXT ·foldIFMA(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ c+24(FP), CX
	MOVQ t+32(FP), DX
	VMOVDQU64 MASK(DX), Z28
	LOADALL(SI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	OPALL(VPSUBQ, BX, 0)
	OPALL(VPSUBQ, CX, 0)
	OPALL(VPADDQ, DX, BIAS)
	CARRYALL(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	// The top limb tells how often p is contained, or one less; below 8, as VPERMQ wants it.
	VMOVDQU64 QUOTIENT(DX), Z27
	VPXORQ Z26, Z26, Z26
	VPMADD52HUQ Z27, Z7, Z26
	LESS(0, Z0)
	LESS(64, Z1)
	LESS(128, Z2)
	LESS(192, Z3)
	LESS(256, Z4)
	LESS(320, Z5)
	LESS(384, Z6)
	LESS(448, Z7)
	CARRYALL(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	STOREALL(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func negateIFMA(b *Block, mask uint64, t *tables)
TEXT ·negateIFMA(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), DI
	MOVQ mask+8(FP), AX
	MOVQ t+16(FP), DX
	KMOVW AX, K1
	VMOVDQU64 MASK(DX), Z28
	LOADALL(DI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	LOADALL(DX, TWICE, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	VPSUBQ Z0, Z8, K1, Z0
	VPSUBQ Z1, Z9, K1, Z1
	VPSUBQ Z2, Z10, K1, Z2
	VPSUBQ Z3, Z11, K1, Z3
	VPSUBQ Z4, Z12, K1, Z4
	VPSUBQ Z5, Z13, K1, Z5
	VPSUBQ Z6, Z14, K1, Z6
	VPSUBQ Z7, Z15, K1, Z7
	CARRYALL(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	STOREALL(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// TRANSPOSE turns the rows Z0-Z7 into the columns Z16, Z20, Z18, Z22, Z17, Z21, Z19, Z23, in this order of
// columns 0, 1, 2, 3, 4, 5, 6, 7: pairs of rows first, then quarters.
#define TRANSPOSE \
	VPUNPCKLQDQ Z1, Z0, Z8            \
	VPUNPCKHQDQ Z1, Z0, Z12           \
	VPUNPCKLQDQ Z3, Z2, Z9            \
	VPUNPCKHQDQ Z3, Z2, Z13           \
	VPUNPCKLQDQ Z5, Z4, Z10           \
	VPUNPCKHQDQ Z5, Z4, Z14           \
	VPUNPCKLQDQ Z7, Z6, Z11           \
	VPUNPCKHQDQ Z7, Z6, Z15           \
	VSHUFI64X2  $0x88, Z9, Z8, Z0     \
	VSHUFI64X2  $0xdd, Z9, Z8, Z1     \
	VSHUFI64X2  $0x88, Z11, Z10, Z2   \
	VSHUFI64X2  $0xdd, Z11, Z10, Z3   \
	VSHUFI64X2  $0x88, Z13, Z12, Z4   \
	VSHUFI64X2  $0xdd, Z13, Z12, Z5   \
	VSHUFI64X2  $0x88, Z15, Z14, Z6   \
	VSHUFI64X2  $0xdd, Z15, Z14, Z7   \
	VSHUFI64X2  $0x88, Z2, Z0, Z16    \
	VSHUFI64X2  $0xdd, Z2, Z0, Z17    \
	VSHUFI64X2  $0x88, Z3, Z1, Z18    \
	VSHUFI64X2  $0xdd, Z3, Z1, Z19    \
	VSHUFI64X2  $0x88, Z6, Z4, Z20    \
	VSHUFI64X2  $0xdd, Z6, Z4, Z21    \
	VSHUFI64X2  $0x88, Z7, Z5, Z22    \
	VSHUFI64X2  $0xdd, Z7, Z5, Z23

#define ROWIN(K, REG) \
	MOVQ      8*K(SI), AX      \
	VMOVDQU64 (AX)(CX*1), REG

#define ROWOUT(K, REG) \
	MOVQ      8*K(SI), AX      \
	VMOVDQU64 REG, (AX)(CX*1)

// func loadIFMA(dst *Block, rows *[8]*Row, offset uintptr)
TEXT ·loadIFMA(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ offset+16(FP), CX
	SHLQ $6, CX
	ROWIN(0, Z0)
	ROWIN(1, Z1)
	ROWIN(2, Z2)
	ROWIN(3, Z3)
	ROWIN(4, Z4)
	ROWIN(5, Z5)
	ROWIN(6, Z6)
	ROWIN(7, Z7)
	TRANSPOSE
	STOREALL(DI, Z16, Z20, Z18, Z22, Z17, Z21, Z19, Z23)
	VZEROUPPER
	RET

// func storeIFMA(src *Block, rows *[8]*Row, offset uintptr)
TEXT ·storeIFMA(SB), NOSPLIT, $0-24
	MOVQ src+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ offset+16(FP), CX
	SHLQ $6, CX
	LOADALL(DI, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	TRANSPOSE
	ROWOUT(0, Z16)
	ROWOUT(1, Z20)
	ROWOUT(2, Z18)
	ROWOUT(3, Z22)
	ROWOUT(4, Z17)
	ROWOUT(5, Z21)
	ROWOUT(6, Z19)
	ROWOUT(7, Z23)
	VZEROUPPER
	RET
