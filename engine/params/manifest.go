package params

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"sync"

	"golang.org/x/crypto/blake2b"

	"github.com/sealc2/sealc2/engine/status"
)

// manifest.json is what the network's public parameters.json says (storage-proofs-core 19.1, version 28):
// the 20 circuits of PoRep, the PoSts and SnapDeals, and two more that it lists without any caller
// (empty-sector-update-poseidon).
//
//go:embed manifest.json
var manifestJSON []byte

// Entry is one parameter set of the public manifest. Digests are KeyDigest's form.
type Entry struct {
	Base         string `json:"base"` // file name without "v28-" and ending
	SectorBytes  uint64 `json:"sector_bytes"`
	ParamsDigest string `json:"params_digest"`
	VKDigest     string `json:"vk_digest"`
}

var manifest = sync.OnceValue(func() []Entry {
	var entries []Entry
	err := json.Unmarshal(manifestJSON, &entries)
	status.Check(err == nil, "params.Manifest", "an embedded manifest that parses")
	return entries
})

// Manifest returns the public parameter sets, ordered by name. The slice must not be written.
func Manifest() []Entry { return manifest() }

// KeyDigest is the digest that the manifest holds: the first 16 bytes of BLAKE2b-512, in hex.
func KeyDigest(data []byte) string {
	sum := blake2b.Sum512(data)
	return hex.EncodeToString(sum[:digestBytes])
}

const digestBytes = 16

// LookUpKey finds the production entry of a verifying key by its content, given as the bytes of its file.
func LookUpKey(vkBytes []byte) (Entry, bool) {
	digest := KeyDigest(vkBytes)
	for _, e := range Manifest() {
		if e.VKDigest == digest {
			return e, true
		}
	}
	return Entry{}, false
}
