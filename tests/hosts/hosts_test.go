// Package hosts tests libsealc2.so as a guest: C, Python, Rust and Go programs load it and go on being
// what they were. Cases that tests/abi holds already (one thread with 64 KiB of stack, fork, setenv after
// load, NULL arguments, the SIGURG chain, cancelling, a whole proof from C) are not repeated here.
//
// The library is never given points, only a verifying key: a sector's good proof is verified, and proofs are
// refused at every stage that comes before the first point is read.
package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/tests/support"
)

var (
	root    string // of the project
	library string // libsealc2.so
	scratch string // removed after the tests
	sector  []string
)

func TestMain(m *testing.M) {
	support.Run(m, func(folder, found string) (err error) {
		root, library, scratch = support.Root(), found, folder
		sector, err = sectorArguments()
		return err
	})
}

// sectorArguments are the arguments by which each host gets to know a sector: its C1 output, a folder that
// holds the verifying key of its development parameters and nothing else, and its proof in hex.
func sectorArguments() ([]string, error) {
	shape, err := porep.ShapeByName("2KiB")
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(root, "tests/vectors/setup/porep-2k.vk"))
	if err != nil {
		return nil, err
	}
	keys := filepath.Join(scratch, "keys")
	if err := os.Mkdir(keys, 0o755); err != nil {
		return nil, err
	}
	stem := params.DevStem(shape.Name, shape.ParamsBaseName())
	if err := os.WriteFile(filepath.Join(keys, stem+params.VKExt), key, 0o644); err != nil {
		return nil, err
	}
	c1 := filepath.Join(root, "tests/vectors/c1/porep-2k-a/c1.json")
	data, err := os.ReadFile(filepath.Join(filepath.Dir(c1), "proof.json"))
	if err != nil {
		return nil, err
	}
	var made struct{ Proofs []string }
	if err := json.Unmarshal(data, &made); err != nil {
		return nil, err
	}
	if len(made.Proofs) != 1 {
		return nil, fmt.Errorf("%s: %d proofs", c1, len(made.Proofs))
	}
	return []string{c1, keys, made.Proofs[0]}, nil
}

// compile builds a C program of testdata with the public headers and warnings as errors.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append([]string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", filepath.Join(root, "include"),
		filepath.Join("testdata", source), "-o", program}, flags...)
	args = append(args, "-lpthread", "-ldl", "-lrt")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return program
}

// start runs a program within a time limit and returns its output and how it ended.
func start(limit time.Duration, env []string, name string, args ...string) (stdout, stderr string, err error) {
	if err := support.Watch(library); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), env...)
	command.WaitDelay = time.Second
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

// run is start where any failure is fatal.
func run(t *testing.T, limit time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	stdout, stderr, err := start(limit, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v (limit %v)\n%s%s", filepath.Base(name), strings.Join(args[:min(len(args), 2)], " "), err, limit, stdout, last(stderr))
	}
	return stdout
}

// last is the end of a long text.
func last(text string) string { return text[max(0, len(text)-16<<10):] }

// hosted runs one case of a host program.
func hosted(t *testing.T, env []string, program, name string) {
	t.Helper()
	out := run(t, 3*time.Minute, env, program, append([]string{library, name}, sector...)...)
	if !strings.HasSuffix(out, "ok\n") {
		t.Errorf("%s ended without its last word: %q", name, out)
	}
	if note := strings.TrimSuffix(out, "ok\n"); note != "" {
		t.Log(note)
	}
}

// Goal: a C host can have any number of threads, handlers of its own and habits of loading.
// Method: host.c, a process for each case; the case's comment there says what must hold.
func TestC(t *testing.T) {
	host := compile(t, "host.c")
	for _, name := range []string{"crowd", "together", "dispositions", "faults", "pipe-ignored", "pipe-handled", "unread-ignored", "unread-default",
		"storm", "late", "closed", "flat", "descriptors", "descriptors-late"} {
		t.Run(name, func(t *testing.T) { hosted(t, nil, host, name) })
	}
	// A host that lets SIGPIPE end it is ended by it, as before.
	t.Run("pipe-default", func(t *testing.T) {
		_, stderr, err := start(time.Minute, nil, host, append([]string{library, "pipe-default"}, sector...)...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("want the host ended by SIGPIPE, got %v\n%s", err, last(stderr))
		}
		if state := exit.Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != syscall.SIGPIPE {
			t.Errorf("want the host ended by SIGPIPE, got %v\n%s", err, last(stderr))
		}
	})
}

// Goal: nothing is left for the loader to look up later, as hardened distributions link.
// Method: a host that is linked against the library with -z now, and one with LD_BIND_NOW.
func TestLinked_BindNow(t *testing.T) {
	t.Parallel()
	at := []string{"-L", filepath.Dir(library), "-l:" + filepath.Base(library), "-Wl,-rpath," + filepath.Dir(library)}
	for name, flags := range map[string][]string{"now": {"-Wl,-z,now"}, "lazy": {"-Wl,-z,lazy"}} {
		t.Run(name, func(t *testing.T) {
			program := compile(t, "linked.c", append(at, flags...)...)
			hosted(t, nil, program, "linked")
			hosted(t, []string{"LD_BIND_NOW=1"}, program, "linked")
		})
	}
}

// Goal: a host under AddressSanitizer sees no fault of the library's C part and keeps its interceptors.
// Method: the cases that move most memory, in a host that is compiled with it.
func TestC_AddressSanitizer(t *testing.T) {
	t.Parallel()
	host := compile(t, "host.c", "-fsanitize=address,undefined", "-fno-omit-frame-pointer")
	env := []string{"ASAN_OPTIONS=exitcode=99:detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS=halt_on_error=1"}
	for _, name := range []string{"together", "late"} {
		t.Run(name, func(t *testing.T) { hosted(t, env, host, name) })
	}
}
