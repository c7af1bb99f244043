package synthetic

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// source derives the free values of one sector, as the package comment says.
type source struct{ key porep.Hash }

func newSource(shape *porep.Shape, version porep.APIVersion, seed uint64) *source {
	return &source{sha256.Sum256(fmt.Appendf(nil, "sealc2-synthetic-v1|%s|%s|%d", shape.Name, version, seed))}
}

// hash is value name at some numbers, all 32 bytes of it.
func (s *source) hash(name string, numbers ...uint64) porep.Hash {
	block := make([]byte, 0, 96)
	block = append(block, s.key[:]...)
	block = append(block, name...)
	block = append(block, '|')
	for _, n := range numbers {
		block = binary.LittleEndian.AppendUint64(block, n)
	}
	return sha256.Sum256(block)
}

// element is hash cut to a canonical field element.
func (s *source) element(name string, numbers ...uint64) porep.Hash {
	h := s.hash(name, numbers...)
	h[31] &= 0x3f
	return h
}

// number is the first 5 bytes of hash: small enough for every reader of JSON.
func (s *source) number(name string) uint64 {
	h := s.hash(name)
	return binary.LittleEndian.Uint64(h[:]) & (1<<40 - 1)
}

// testPorepID is the porep_id that the reference vectors give sizes without a registered proof.
func testPorepID(shape *porep.Shape, version porep.APIVersion) porep.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "sealc2-oracle-v1|raw-%d-%s|porep_id", shape.SectorBytes, version))
}
