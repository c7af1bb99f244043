package cuda

import (
	"fmt"
	"testing"

	"github.com/sealc2/sealc2/cuda/kerneltest"
)

// Goal: the proofs of the reference's small circuits, byte for byte, from programs and from vectors, with and without
// bits, in any order of the device's streams and threads; parameters are read once.
func TestProve_EqualsReference(t *testing.T) {
	names := []string{"tiny-16", "tiny-64"}
	if kerneltest.OnCard() {
		names = append(names, "tiny-128", "tiny-1024")
	}
	for seed, name := range names {
		t.Run(name, func(t *testing.T) {
			b, _ := openBackend(t, uint64(seed))
			for _, bits := range []bool{false, true} {
				v := loadTiny(t, name, bits)
				for _, explicit := range []bool{false, true} {
					// Emulated, each circuit takes the ways that the other does not.
					if !kerneltest.OnCard() && explicit == (bits == (seed == 0)) {
						continue
					}
					t.Run(fmt.Sprintf("bits=%v,vectors=%v", bits, explicit), func(t *testing.T) {
						got, err := prove(t.Context(), b, v, explicit)
						if err != nil || got != v.proof {
							t.Fatalf("want %s\ngot %s, %v", v.proof, got, err)
						}
					})
				}
			}
		})
	}
}
