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

// The examples are what a C user starts from: they must build from an installed tree with pkg-config and no
// warning, say why they fail, prove and verify, and cancel.
func TestExamples_FromInstalledTree(t *testing.T) {
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
	programs := t.TempDir()
	build := func(name string) string {
		args := append([]string{"-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", filepath.Join(root, "bindings/c", name+".c"),
			"-o", filepath.Join(programs, name)}, flags...)
		run(t, time.Minute, nil, "gcc", args...)
		return filepath.Join(programs, name)
	}
	program, jobs := build("prove_verify"), build("jobs")
	path := "LD_LIBRARY_PATH=" + filepath.Join(prefix, "lib")
	refused := func(t *testing.T, program string, arguments []string, words ...string) {
		t.Helper()
		command := exec.Command(program, arguments...)
		command.Env = append(os.Environ(), path)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		err := command.Run()
		if command.ProcessState.ExitCode() != 1 {
			t.Errorf("%v: %v\n%s", arguments, err, stderr.String())
		}
		for _, word := range words {
			if !strings.Contains(stderr.String(), word) {
				t.Errorf("%v: no %q in\n%s", arguments, word, stderr.String())
			}
		}
	}
	refused(t, program, []string{caseC1(), "2", "1000", "/nowhere"}, "prove: input: ", "replica_id")
	refused(t, jobs, []string{caseC1(), "2", "1000", "/nowhere"}, "submit: input: ", "replica_id")
	refused(t, jobs, []string{caseC1(), "1", "1000", "/nowhere"}, "wait: params: ", "/nowhere")
	t.Run("cancel", func(t *testing.T) {
		refused(t, jobs, []string{caseC1(), "1", "1000", support.Params(t), "0"}, "porep-1000-1: ", `wait: cancelled: engine.Cancel: job "porep-1000-1": cancelled`)
	})
	t.Run("jobs", func(t *testing.T) {
		out := run(t, 20*time.Minute, []string{path}, jobs, caseC1(), "1", "1000", support.Params(t))
		proof, err := hex.DecodeString(strings.TrimSuffix(out, "\n"))
		if err != nil || len(proof) != 192 {
			t.Fatalf("%d bytes, %v", len(proof), err)
		}
		proofFile := filepath.Join(t.TempDir(), "proof")
		if err := os.WriteFile(proofFile, proof, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, 5*time.Minute, nil, filepath.Join(prefix, "bin/sealc2"), "verify", "--c1", caseC1(), "--proof", proofFile, "--params", support.Params(t))
	})
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
