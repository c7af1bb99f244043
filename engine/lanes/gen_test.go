package lanes

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Goal: the assembly is what its generator writes.
func TestGenerated(t *testing.T) {
	want, err := exec.Command("go", "run", "gen.go", "gen_points.go", "gen_rows.go", "gen_elements.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Fatal("kernels_amd64.s is not what gen.go writes: run go generate")
	}
}
