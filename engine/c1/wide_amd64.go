package c1

import (
	"golang.org/x/sys/cpu"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// readNumbers takes n,n,...,n] with 32 numbers from 0 to 255, without whitespace, and returns its length, 0 where text is
// anything else; then dst may be written too. It reads up to 128 bytes.
//
//go:noescape
func readNumbers(dst *porep.Hash, text *byte) (n int)

// passBlocks counts brackets over whole blocks of 64 bytes and stops before one that has a backslash, or closing brackets
// enough to take the depth to level or below. quoted is all ones where text starts inside a string, else zero, and so
// is newQuoted for what is behind the blocks that were passed.
//
//go:noescape
func passBlocks(text *byte, blocks, depth, level int, quoted uint64) (passed, newDepth int, newQuoted uint64)

// unpackBlocks decodes whole blocks of 64 characters of base64 to 48 bytes each and stops before one with any other character.
//
//go:noescape
func unpackBlocks(dst, text *byte, blocks int) (passed int)

// These tell whether the CPU and the system have the instructions of the three. Tests change them.
var (
	wideHashes = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT
	wideText   = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI
	wideBlocks = cpu.X86.HasAVX2 && cpu.X86.HasPCLMULQDQ && cpu.X86.HasPOPCNT
)
