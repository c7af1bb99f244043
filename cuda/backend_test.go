package cuda

import (
	"testing"
)

// Goal: the proofs of the reference's small circuits, byte for byte, from programs and from vectors, with and without
// bits, in any order of the device's streams and threads; parameters are read once.
func TestProve_EqualsReference(t *testing.T) {
	for seed, name := range []string{"tiny-16", "tiny-64", "tiny-128"} {
		b, _ := openBackend(t, uint64(seed))
		for _, bits := range []bool{false, true} {
			v := loadTiny(t, name, bits)
			for _, explicit := range []bool{false, true} {
				got, err := prove(t.Context(), b, v, explicit)
				if err != nil {
					t.Fatalf("%s, bits %v, vectors %v: %v", name, bits, explicit, err)
				}
				if got != v.proof {
					t.Errorf("%s, bits %v, vectors %v: want %s\ngot %s", name, bits, explicit, v.proof, got)
				}
			}
		}
	}
}
