//go:build !amd64

package c1

import "github.com/sealc2/sealc2/engine/circuit/porep"

// Without instructions for whole vectors none is called.
var wideHashes, wideBlocks, wideText = false, false, false

func readNumbers(*porep.Hash, *byte) int { return 0 }

func passBlocks(_ *byte, _, depth, _ int, quoted uint64) (int, int, uint64) { return 0, depth, quoted }

func unpackBlocks(_, _ *byte, _ int) int { return 0 }
