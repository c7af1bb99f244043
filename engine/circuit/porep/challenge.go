package porep

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/chacha20"

	"github.com/sealc2/sealc2/engine/status"
)

// ChallengeKind says how the challenged nodes are drawn.
type ChallengeKind uint8

// The three kinds: from the interactive seed; from a pool fixed by the replica and chosen by the seed
// (FIP-0059); from replica id and comm_r alone (FIP-0090).
const (
	Interactive ChallengeKind = iota
	Synthetic
	NonInteractive
)

// String names the kind.
func (k ChallengeKind) String() string {
	switch k {
	case Interactive:
		return "interactive"
	case Synthetic:
		return "synthetic"
	case NonInteractive:
		return "non-interactive"
	}
	return fmt.Sprintf("challenge kind %d", uint8(k))
}

// Domain separation and sizes of FIP-0059 and FIP-0090.
const (
	syntheticPool          = 1 << 18 // or all nodes, where there are fewer
	syntheticGenerationKey = "filecoin.io|PoRep|1|Synthetic|1|Generation"
	syntheticSelectionKey  = "filecoin.io|PoRep|1|Synthetic|1|Selection"
	syntheticNonce         = "synth-porep\x00"
	nonInteractiveTag      = "filecoin.io|PoRep|1|NonInteractive|1"
)

// Challenges returns the challenged nodes of a partition, in order: Shape.ChallengesPerPartition numbers from
// 1 to nodes-1. Interactive ones depend on replica id and seed, synthetic ones also on comm_r, and
// non-interactive ones on replica id and comm_r. Fails with Caller for a partition that the proof does not have.
func (s *Statement) Challenges(partition int) ([]uint32, error) {
	if n := s.PartitionCount(); partition < 0 || partition >= n {
		return nil, status.New(status.Caller, "porep.Challenges", "partition", fmt.Sprintf("0 to %d", n-1), fmt.Sprint(partition))
	}
	nodes := s.Shape.Nodes()
	out := make([]uint32, s.Shape.ChallengesPerPartition)
	first := partition * len(out)
	switch s.Kind {
	case Interactive:
		hashedChallenges(out, nodes, first, s.ReplicaID[:], s.Seed[:])
	case NonInteractive:
		hashedChallenges(out, nodes, first, []byte(nonInteractiveTag), s.ReplicaID[:], s.CommR[:])
	case Synthetic:
		syntheticChallenges(out, nodes, first, s)
	default:
		return nil, status.New(status.Input, "porep.Challenges", "challenge kind", "a known one", s.Kind.String())
	}
	return out, nil
}

// hashedChallenges draws challenge number first+i as SHA-256 of the prefix and the number.
func hashedChallenges(out []uint32, nodes uint64, first int, prefix ...[]byte) {
	var block []byte
	for _, p := range prefix {
		block = append(block, p...)
	}
	for i := range out {
		digest := sha256.Sum256(binary.LittleEndian.AppendUint32(block, uint32(first+i)))
		out[i] = challengeOf(&digest, nodes)
	}
}

// syntheticChallenges chooses numbers first to first+len(out)-1 from the pool. The choice is a ChaCha20
// stream of 32-bit numbers keyed by replica id and seed, the pool one of 256-bit numbers keyed by replica id
// and comm_r.
func syntheticChallenges(out []uint32, nodes uint64, first int, s *Statement) {
	pool := min(nodes, syntheticPool)
	choice := make([]byte, 4*len(out))
	syntheticStream(choice, syntheticSelectionKey, 4*first, &s.ReplicaID, &s.Seed)
	for i := range out {
		index := uint64(binary.LittleEndian.Uint32(choice[4*i:])) % pool
		var number [32]byte
		syntheticStream(number[:], syntheticGenerationKey, 32*int(index), &s.ReplicaID, &s.CommR)
		out[i] = challengeOf(&number, nodes)
	}
}

// syntheticStream fills out (zeroed) with the stream from a byte offset on.
func syntheticStream(out []byte, hashKey string, offset int, a, b *Hash) {
	h, err := blake2b.New256([]byte(hashKey))
	status.Check(err == nil, "porep.syntheticStream", "a BLAKE2b key of at most 64 bytes")
	h.Write(a[:])
	h.Write(b[:])
	cipher, err := chacha20.NewUnauthenticatedCipher(h.Sum(nil), []byte(syntheticNonce))
	status.Check(err == nil, "porep.syntheticStream", "a ChaCha20 key of 32 bytes and a nonce of 12")
	const blockBytes = 64
	cipher.SetCounter(uint32(offset / blockBytes))
	var skipped [blockBytes]byte
	skip := skipped[:offset%blockBytes]
	cipher.XORKeyStream(skip, skip)
	cipher.XORKeyStream(out, out)
}

// challengeOf reduces a little-endian number to a node that is not 0: modulo nodes-1, plus 1.
func challengeOf(number *[32]byte, nodes uint64) uint32 {
	var remainder uint64
	for i := 24; i >= 0; i -= 8 {
		_, remainder = bits.Div64(remainder, binary.LittleEndian.Uint64(number[i:]), nodes-1)
	}
	return uint32(remainder + 1)
}
