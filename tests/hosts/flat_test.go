package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Goal: memory, threads and files are flat over 200 proofs, parameter checks, setups and refused documents.
// Method: the command tinywork on a tiny circuit; what the process holds after 50, 150 and 250 rounds, or a fifth
// of them without SEALC2_LONG. (Over the C interface: TestC, case flat.)
func TestFlat(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "tinywork")
	run(t, 5*time.Minute, nil, "go", "build", "-o", program, "./testdata/tinywork")
	rounds := "20"
	if os.Getenv("SEALC2_LONG") != "" {
		rounds = "100"
	}
	for _, work := range []string{"prove", "check", "setup", "parse"} {
		t.Run(work, func(t *testing.T) {
			out := run(t, 5*time.Minute, nil, program, "flat", work, root, t.TempDir(), "tiny-16", rounds)
			if !strings.HasSuffix(out, "ok\n") {
				t.Errorf("ended without its last word: %q", out)
			}
			t.Log(strings.TrimSuffix(out, "ok\n"))
		})
	}
}
