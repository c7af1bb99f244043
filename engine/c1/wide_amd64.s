#include "textflag.h"

// Numbers have a slot of four bytes each: hundreds, tens, ones, delimiter.
DATA ·weights+0(SB)/4, $0x00010a64 // 100, 10, 1, 0
GLOBL ·weights(SB), RODATA|NOPTR, $4
DATA ·pairs+0(SB)/4, $0x00010001
GLOBL ·pairs(SB), RODATA|NOPTR, $4
DATA ·largest+0(SB)/4, $255
GLOBL ·largest(SB), RODATA|NOPTR, $4
DATA ·digitZero+0(SB)/4, $0x30303030
GLOBL ·digitZero(SB), RODATA|NOPTR, $4
DATA ·digitNine+0(SB)/4, $0x09090909
GLOBL ·digitNine(SB), RODATA|NOPTR, $4

// A comma is 0xfc and a closing bracket 0x2d above '0'.
DATA ·ends+0(SB)/8, $0x000000fc000000fc
DATA ·ends+8(SB)/8, $0x000000fc000000fc
DATA ·ends+16(SB)/8, $0x000000fc000000fc
DATA ·ends+24(SB)/8, $0x000000fc000000fc
DATA ·ends+32(SB)/8, $0x000000fc000000fc
DATA ·ends+40(SB)/8, $0x000000fc000000fc
DATA ·ends+48(SB)/8, $0x000000fc000000fc
DATA ·ends+56(SB)/8, $0x000000fc000000fc
DATA ·ends+64(SB)/8, $0x000000fc000000fc
DATA ·ends+72(SB)/8, $0x000000fc000000fc
DATA ·ends+80(SB)/8, $0x000000fc000000fc
DATA ·ends+88(SB)/8, $0x000000fc000000fc
DATA ·ends+96(SB)/8, $0x000000fc000000fc
DATA ·ends+104(SB)/8, $0x000000fc000000fc
DATA ·ends+112(SB)/8, $0x000000fc000000fc
DATA ·ends+120(SB)/8, $0x0000002d000000fc
GLOBL ·ends(SB), RODATA|NOPTR, $128

// SIXTEEN reads 16 numbers at SI, writes them to out(DI), moves SI behind the last one's delimiter and collects in BX
// what is wrong: bits of CX of the 64 bytes are those that are no digits, and of DX, R8, R9, R10 those delimiters
// that one, two, three, four digits stand before (PEXT leaves a bit a number). Then the numbers are spread to their
// slots: 0xcc.. are the places of ones and delimiters, 0x22.. of tens, 0x11.. of hundreds.
#define SIXTEEN(out, delimiters) \
	VMOVDQU8 (SI), Z0; \
	VPSUBB   Z8, Z0, Z0; \
	VPCMPUB  $6, Z9, Z0, K1; \
	KMOVQ    K1, CX; \
	MOVQ     CX, R11; \
	NOTQ     R11; \
	LEAQ     (R11)(R11*1), DX; \
	LEAQ     (R11*4), R8; \
	ANDQ     DX, R8; \
	LEAQ     (R11*8), R9; \
	ANDQ     R8, R9; \
	SHLQ     $4, R11; \
	ANDQ     R9, R11; \
	PEXTQ    CX, DX, DX; \
	PEXTQ    CX, R8, R8; \
	PEXTQ    CX, R9, R9; \
	PEXTQ    CX, R11, R10; \
	NOTQ     DX; \
	ORQ      R10, DX; \
	PDEPQ    R13, R8, R8; \
	PDEPQ    R14, R9, R9; \
	LEAQ     (R8)(R9*1), R10; \
	ADDQ     R12, R10; \
	KMOVQ    R10, K2; \
	POPCNTQ  R10, R10; \
	ADDQ     R10, SI; \
	VPEXPANDB.Z Z0, K2, Z1; \
	VPTESTNMB Z1, Z1, K3; \
	VPSRLD   $24, Z1, Z2; \
	VPCMPUD  $4, ·ends+delimiters(SB), Z2, K4; \
	VPMADDUBSW Z10, Z1, Z3; \
	VPMADDWD Z11, Z3, Z3; \
	VPCMPUD  $6, Z12, Z3, K5; \
	VPMOVDB  Z3, out(DI); \
	KORW     K4, K5, K4; \
	KMOVW    K4, R10; \
	ORL      R10, DX; \
	MOVWLZX  DX, DX; \
	LEAQ     (R9)(R9*1), R10; \
	NOTQ     R10; \
	ANDQ     R10, R8; \
	ORQ      R9, R8; \
	KMOVQ    K3, R10; \
	ANDQ     R10, R8; \
	ORQ      R8, BX; \
	ORQ      DX, BX

// func readNumbers(dst *[32]byte, text *byte) (n int)
TEXT ·readNumbers(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ text+8(FP), SI
	VPBROADCASTD ·digitZero(SB), Z8
	VPBROADCASTD ·digitNine(SB), Z9
	VPBROADCASTD ·weights(SB), Z10
	VPBROADCASTD ·pairs(SB), Z11
	VPBROADCASTD ·largest(SB), Z12
	MOVQ $0x2222222222222222, R13
	MOVQ $0x1111111111111111, R14
	MOVQ $0xcccccccccccccccc, R12
	XORL BX, BX
	SIXTEEN(0, 0)
	SIXTEEN(16, 64)
	VZEROUPPER
	XORL AX, AX
	SUBQ text+8(FP), SI
	TESTQ BX, BX
	CMOVQEQ SI, AX
	MOVQ AX, n+16(FP)
	RET

DATA ·lowerCase+0(SB)/1, $0x20
GLOBL ·lowerCase(SB), RODATA|NOPTR, $1
DATA ·opening+0(SB)/1, $0x7b
GLOBL ·opening(SB), RODATA|NOPTR, $1
DATA ·closing+0(SB)/1, $0x7d
GLOBL ·closing(SB), RODATA|NOPTR, $1
DATA ·quoting+0(SB)/1, $0x22
GLOBL ·quoting(SB), RODATA|NOPTR, $1
DATA ·escaping+0(SB)/1, $0x5c
GLOBL ·escaping(SB), RODATA|NOPTR, $1

// BYTES sets the bits of a register for the bytes of Y0, Y1 that are equal to one.
#define BYTES(low, high, byte, reg, scratch) \
	VPCMPEQB byte, low, Y2; \
	VPCMPEQB byte, high, Y3; \
	VPMOVMSKB Y2, reg; \
	VPMOVMSKB Y3, scratch; \
	SHLQ $32, scratch; \
	ORQ scratch, reg

// func passBlocks(text *byte, blocks, depth, level int, quoted uint64) (passed, newDepth int, newQuoted uint64)
TEXT ·passBlocks(SB), NOSPLIT, $0-64
	MOVQ text+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ depth+16(FP), DX
	MOVQ level+24(FP), R12
	MOVQ quoted+32(FP), BX
	XORL AX, AX
	VPBROADCASTB ·lowerCase(SB), Y8
	VPBROADCASTB ·opening(SB), Y9
	VPBROADCASTB ·closing(SB), Y10
	VPBROADCASTB ·quoting(SB), Y11
	VPBROADCASTB ·escaping(SB), Y12
	VPCMPEQB Y13, Y13, Y13 // ones: the product without carries is the parity of all bits below
block:
	CMPQ AX, CX
	JGE  done
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPCMPEQB Y12, Y0, Y2
	VPCMPEQB Y12, Y1, Y3
	VPOR Y2, Y3, Y2
	VPTEST Y2, Y2
	JNZ  done
	BYTES(Y0, Y1, Y11, R8, R9)
	VMOVQ R8, X4
	VPCLMULQDQ $0, X13, X4, X4
	VMOVQ X4, R8
	XORQ BX, R8 // bytes in strings, with the quote in front
	VPOR Y8, Y0, Y0
	VPOR Y8, Y1, Y1
	BYTES(Y0, Y1, Y9, R9, R10)
	BYTES(Y0, Y1, Y10, R10, R11)
	MOVQ R8, R11
	NOTQ R11
	ANDQ R11, R9
	ANDQ R11, R10
	POPCNTQ R9, R9
	POPCNTQ R10, R10
	MOVQ DX, R11
	SUBQ R10, R11
	CMPQ R11, R12
	JLE  done
	LEAQ (R11)(R9*1), DX
	SARQ $63, R8
	MOVQ R8, BX
	ADDQ $64, SI
	INCQ AX
	JMP  block
done:
	VZEROUPPER
	MOVQ AX, passed+40(FP)
	MOVQ DX, newDepth+48(FP)
	MOVQ BX, newQuoted+56(FP)
	RET

// Six bits of each character of base64, 0x80 for what is none.
DATA ·sextets+0(SB)/8, $0x8080808080808080
DATA ·sextets+8(SB)/8, $0x8080808080808080
DATA ·sextets+16(SB)/8, $0x8080808080808080
DATA ·sextets+24(SB)/8, $0x8080808080808080
DATA ·sextets+32(SB)/8, $0x8080808080808080
DATA ·sextets+40(SB)/8, $0x3f8080803e808080
DATA ·sextets+48(SB)/8, $0x3b3a393837363534
DATA ·sextets+56(SB)/8, $0x8080808080803d3c
DATA ·sextets+64(SB)/8, $0x0605040302010080
DATA ·sextets+72(SB)/8, $0x0e0d0c0b0a090807
DATA ·sextets+80(SB)/8, $0x161514131211100f
DATA ·sextets+88(SB)/8, $0x8080808080191817
DATA ·sextets+96(SB)/8, $0x201f1e1d1c1b1a80
DATA ·sextets+104(SB)/8, $0x2827262524232221
DATA ·sextets+112(SB)/8, $0x302f2e2d2c2b2a29
DATA ·sextets+120(SB)/8, $0x8080808080333231
GLOBL ·sextets(SB), RODATA|NOPTR, $128

// Three bytes of each four, the last first.
DATA ·thirds+0(SB)/8, $0x090a040506000102
DATA ·thirds+8(SB)/8, $0x161011120c0d0e08
DATA ·thirds+16(SB)/8, $0x1c1d1e18191a1415
DATA ·thirds+24(SB)/8, $0x292a242526202122
DATA ·thirds+32(SB)/8, $0x363031322c2d2e28
DATA ·thirds+40(SB)/8, $0x3c3d3e38393a3435
DATA ·thirds+48(SB)/8, $0x0000000000000000
DATA ·thirds+56(SB)/8, $0x0000000000000000
GLOBL ·thirds(SB), RODATA|NOPTR, $64

DATA ·sextetPairs+0(SB)/4, $0x01400140 // 64, 1
GLOBL ·sextetPairs(SB), RODATA|NOPTR, $4
DATA ·sextetFours+0(SB)/4, $0x00011000 // 4096, 1
GLOBL ·sextetFours(SB), RODATA|NOPTR, $4

// func unpackBlocks(dst, text *byte, blocks int) (passed int)
TEXT ·unpackBlocks(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ blocks+16(FP), CX
	XORL AX, AX
	VMOVDQU64 ·sextets+0(SB), Z8
	VMOVDQU64 ·sextets+64(SB), Z9
	VMOVDQU64 ·thirds(SB), Z10
	VPBROADCASTD ·sextetPairs(SB), Z11
	VPBROADCASTD ·sextetFours(SB), Z12
	MOVQ $0x0000ffffffffffff, DX
	KMOVQ DX, K2
unpack:
	CMPQ AX, CX
	JGE  unpacked
	VMOVDQU64 (SI), Z0
	VMOVDQA64 Z0, Z1
	VPERMI2B Z9, Z8, Z1
	VPORQ Z0, Z1, Z0
	VPMOVB2M Z0, K1
	KORTESTQ K1, K1
	JNZ  unpacked
	VPMADDUBSW Z11, Z1, Z1
	VPMADDWD Z12, Z1, Z1
	VPERMB Z1, Z10, Z1
	VMOVDQU8 Z1, K2, (DI)
	ADDQ $64, SI
	ADDQ $48, DI
	INCQ AX
	JMP  unpack
unpacked:
	VZEROUPPER
	MOVQ AX, passed+24(FP)
	RET
