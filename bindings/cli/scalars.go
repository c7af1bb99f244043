package main

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// maxScalars bounds the lists of --r and --s; the largest job has 126 partitions.
const maxScalars = 1024

// parseScalars reads scalars as the reference vectors write them: 64 hex digits, which are 32 bytes,
// little-endian, canonical (below the group order); commas between.
func parseScalars(text string) ([]fr.Element, error) {
	if n := strings.Count(text, ",") + 1; n > maxScalars {
		return nil, fmt.Errorf("at most %d scalars, not %d", maxScalars, n)
	}
	parts := strings.Split(text, ",")
	out := make([]fr.Element, len(parts))
	for i, part := range parts {
		var b [fr.Bytes]byte
		if len(part) != 2*len(b) {
			return nil, fmt.Errorf("%d hex digits in scalar %d, not %d characters", 2*len(b), i, len(part))
		}
		if _, err := hex.Decode(b[:], []byte(part)); err != nil {
			return nil, fmt.Errorf("hex digits in scalar %d", i)
		}
		e, err := fr.LittleEndian.Element(&b)
		if err != nil {
			return nil, fmt.Errorf("a little-endian number below the group order in scalar %d", i)
		}
		out[i] = e
	}
	return out, nil
}
