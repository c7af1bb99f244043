package abi

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

// The example is what a C user starts from: it must build from an installed tree with pkg-config and no
// warning, say why it fails, and prove and verify.
func TestExample_FromInstalledTree(t *testing.T) {
	prefix := t.TempDir()
	run(t, 10*time.Minute, nil, "make", "-C", root, "install", "PREFIX="+prefix)
	for _, name := range []string{"bin/sealc2", "lib/libsealc2.so", "lib/pkgconfig/sealc2.pc", "include/sealc2.h", "include/sealc2_ffi.h",
		"include/sealc2_s2.h", "lib/libsealc2-s2.so", "lib/libsealc2-s2cuzk.so"} {
		if info, err := os.Stat(filepath.Join(prefix, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	flags := []string{"-I" + filepath.Join(prefix, "include"), "-L" + filepath.Join(prefix, "lib"), "-lsealc2"}
	if _, err := exec.LookPath("pkg-config"); err == nil {
		flags = strings.Fields(run(t, time.Minute, []string{"PKG_CONFIG_PATH=" + filepath.Join(prefix, "lib/pkgconfig")},
			"pkg-config", "--cflags", "--libs", "sealc2"))
	} else {
		t.Log("no pkg-config on this machine: the flags are those that sealc2.pc should give")
	}
	program := filepath.Join(t.TempDir(), "prove_verify")
	args := append([]string{"-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", filepath.Join(root, "bindings/c/prove_verify.c"), "-o", program}, flags...)
	run(t, time.Minute, nil, "gcc", args...)

	path := "LD_LIBRARY_PATH=" + filepath.Join(prefix, "lib")
	command := exec.Command(program, caseC1(), "2", "1000", "/nowhere")
	command.Env = append(os.Environ(), path)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); command.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "prove: input: ") ||
		!strings.Contains(stderr.String(), "replica_id") {
		t.Errorf("wrong sector id: %v\n%s", err, stderr.String())
	}
	t.Run("prove", func(t *testing.T) {
		proofFile := filepath.Join(t.TempDir(), "proof")
		out := run(t, 20*time.Minute, []string{path}, program, caseC1(), "1", "1000", support.Params(t), proofFile)
		proof, err := os.ReadFile(proofFile)
		if err != nil {
			t.Fatal(err)
		}
		if want := hex.EncodeToString(proof) + "\n192 bytes, verified\n"; out != want {
			t.Errorf("want %q, got %q", want, out)
		}
	})
}
