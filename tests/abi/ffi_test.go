package abi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

// Goal: filecoin-ffi's Go code works on our results, and frees them by the destructors that it has.
// Method: a program with its types and its choice of destructors, linked against the library.
func TestFFIHost(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ffihost")
	folder := filepath.Dir(library)
	run(t, 5*time.Minute, []string{"CGO_CFLAGS=-O1 -g -Werror -I" + filepath.Join(root, "include"), "CGO_LDFLAGS=-L" + folder + " -lsealc2 -Wl,-rpath," + folder},
		"go", "build", "-o", program, "./testdata/ffihost")
	log := filepath.Join(t.TempDir(), "log")
	run(t, time.Minute, []string{"RUST_LOG=debug"}, program, log, t.TempDir(), caseC1())
	t.Run("prove", func(t *testing.T) {
		dir := support.Params(t)
		var st struct {
			CommR  string `json:"comm_r"`
			CommD  string `json:"comm_d"`
			Ticket string `json:"ticket"`
			Seed   string `json:"seed"`
		}
		read(t, filepath.Join(root, "tests/vectors/c1/porep-2k-a/statement.json"), &st)
		out := run(t, 20*time.Minute, []string{"RUST_LOG=debug", "FIL_PROOFS_PARAMETER_CACHE=" + dir, "SEALC2_ALLOW_DEV_PARAMS=1"},
			program, log, t.TempDir(), caseC1(), "prove", st.CommR, st.CommD, st.Ticket, st.Seed)
		if len(strings.TrimSpace(out)) != 2*192 {
			t.Errorf("printed %q", out)
		}
		if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "development parameters") {
			t.Errorf("log %q, %v", text, err)
		}
	})
}

// Goal: the way to put sealc2 under a program that links libfilcrypto.a statically: rename the symbol in the
// archive, then link the library. Without renaming, the archive wins without a word.
// Method: the recipe of docs/abi.md against an archive whose exports lie in one object, as Rust's do.
func TestObjcopyRecipe(t *testing.T) {
	if _, err := exec.LookPath("objcopy"); err != nil {
		t.Skipf("this machine has no objcopy: %v", err)
	}
	dir := t.TempDir()
	object, archive := filepath.Join(dir, "filcrypto.o"), filepath.Join(dir, "libfilcrypto.a")
	if err := compile("gcc", "-c", "testdata/filcrypto.c", "-o", object); err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, nil, "ar", "rcs", archive, object)
	folder := filepath.Dir(library)
	link := func(name string, flags ...string) string {
		program := filepath.Join(dir, name)
		args := append([]string{"testdata/interposed.c", "-o", program}, flags...)
		args = append(args, archive, "-L"+folder, "-lsealc2", "-Wl,-rpath,"+folder)
		if err := compile("gcc", args...); err != nil {
			t.Fatal(err)
		}
		return run(t, time.Minute, nil, program)
	}
	if got, want := link("before"), "0 filcrypto's\n42 1\n"; got != want {
		t.Errorf("before renaming: want %q, got %q", want, got)
	}
	run(t, time.Minute, nil, "objcopy", "--redefine-sym", "seal_commit_phase2=filcrypto_seal_commit_phase2", archive)
	got := strings.Split(link("after", "-DORIGINAL"), "\n")
	if len(got) != 4 || !strings.HasPrefix(got[0], "1 engine.Prove") || got[1] != "0 filcrypto's" || got[2] != "42 2" {
		t.Errorf("after renaming: %q", got)
	}
}
