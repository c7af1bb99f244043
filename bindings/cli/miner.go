package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
)

// minerForms is what --miner takes, for error text and help.
const minerForms = "an id address (t01000, f01000), an actor number (1000), or a prover id of 64 hex digits"

// parseMiner turns a miner's name into the prover id that enters the replica id: the actor number as
// unsigned LEB128, filled with zeros to 32 bytes. 64 hex digits are the prover id itself.
func parseMiner(text string) ([32]byte, error) {
	var id [32]byte
	if len(text) == 2*len(id) {
		if _, err := hex.Decode(id[:], []byte(text)); err != nil {
			return [32]byte{}, errors.New(minerForms)
		}
		return id, nil
	}
	digits := text
	if rest, ok := strings.CutPrefix(text, "t0"); ok {
		digits = rest
	} else if rest, ok := strings.CutPrefix(text, "f0"); ok {
		digits = rest
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return id, errors.New(minerForms)
	}
	actor, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || actor > math.MaxInt64 {
		return id, errors.New("an actor number below 2^63")
	}
	binary.PutUvarint(id[:], actor) // unsigned LEB128, at most 9 bytes for 63 bits
	return id, nil
}
