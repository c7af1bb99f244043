package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: a damaged point that the device finds is named as the file's reader names it, and the next proof, from a good file,
// is right. Method: one byte of a point is another, in G1 and in G2, on one backend.
func TestLoad_DamagedPoint(t *testing.T) {
	b, _ := openBackend(t, 3)
	v := loadTiny(t, "tiny-16", true)
	good := v.srs
	data, err := os.ReadFile(vectors + "tiny-16/params.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []groth16.Block{groth16.BlockL, groth16.BlockB2} {
		index := good.Len(block) - 1
		at := int(good.Counts().Offset(block)) + index*params.PointBytes(block)
		bad := append([]byte(nil), data...)
		bad[at+params.PointBytes(block)-1] ^= 1 // of y: off the curve
		path := filepath.Join(t.TempDir(), "damaged.params")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if v.srs, err = params.Open(path); err != nil {
			t.Fatal(err)
		}
		_, err = prove(t.Context(), b, v, false)
		if closing := v.srs.Close(); closing != nil {
			t.Fatal(closing)
		}
		want := block.String() + "["
		if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want a point on the curve, got one off the curve") {
			t.Errorf("%s[%d]: got %v", block, index, err)
		}
	}
	v.srs = good
	if proof, err := prove(t.Context(), b, v, false); err != nil || proof != v.proof {
		t.Fatalf("afterwards: want the reference's proof, got %q, %v", proof, err)
	}
}
