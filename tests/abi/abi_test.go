// Package abi tests libsealc2.so from outside: the built file, as programs in C, Go and Python meet it.
//
// Goal: each hazard of a Go library in a foreign process (doc of include/sealc2.h) is refused or cured.
// Method: a C host per case, compiled with warnings as errors, in a process of its own.
package abi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

var (
	root    string // of the project
	library string // libsealc2.so
	host    string // compiled host.c
)

func TestMain(m *testing.M) {
	support.Run(m, func(scratch, found string) error {
		root, library, host = support.Root(), found, filepath.Join(scratch, "host")
		return compile("gcc", "-std=gnu11", "-O1", "-g", "testdata/host.c", "-o", host, "-lpthread", "-ldl", "-lrt")
	})
}

// compile runs a compiler with the public headers and warnings as errors.
func compile(compiler string, args ...string) error {
	args = append([]string{"-Wall", "-Wextra", "-Werror", "-I", filepath.Join(root, "include")}, args...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, strings.Join(args, " "), err, out)
	}
	return nil
}

// run runs a program within a time limit and returns its output; a failure is fatal.
func run(t *testing.T, limit time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	if err := support.Watch(library); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), env...)
	command.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v (limit %v)\n%s%s", filepath.Base(name), strings.Join(args, " "), err, limit, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// caseC1 is a 2 KiB sector of miner 1000 with id 1.
func caseC1() string { return filepath.Join(root, "tests/vectors/c1/porep-2k-a/c1.json") }

func TestHost(t *testing.T) {
	for _, name := range []string{"version", "null", "sizes", "error-text", "jobs-null"} {
		t.Run(name, func(t *testing.T) { run(t, 30*time.Second, nil, host, library, name) })
	}
	for _, name := range []string{"garbage", "small-stack", "threads", "fork", "setenv", "freed-inputs", "signals", "unload", "jobs"} {
		t.Run(name, func(t *testing.T) { run(t, time.Minute, nil, host, library, name, caseC1()) })
	}
}

func TestHost_NonInteractive(t *testing.T) {
	run(t, time.Minute, nil, host, library, "non-interactive", filepath.Join(root, "tests/vectors/c1/porep-2k-ni/c1.json"))
}

func TestHost_Cancel(t *testing.T) {
	run(t, 10*time.Minute, nil, host, library, "cancel", caseC1(), support.Params(t))
}

func TestHost_Jobs(t *testing.T) {
	var want struct {
		R, S, Proofs []string
	}
	read(t, filepath.Join(root, "tests/vectors/c1/porep-2k-a/proof.json"), &want)
	run(t, 20*time.Minute, nil, host, library, "jobs-prove", caseC1(), support.Params(t), want.R[0], want.S[0], want.Proofs[0])
}

func TestHost_Prove(t *testing.T) {
	var want struct {
		R, S, Proofs []string
	}
	read(t, filepath.Join(root, "tests/vectors/c1/porep-2k-a/proof.json"), &want)
	run(t, 20*time.Minute, nil, host, library, "prove", caseC1(), support.Params(t), want.R[0], want.S[0], want.Proofs[0])
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// destructors compiles the program of mixed frees.
func destructors(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "destructors")
	capi := filepath.Join(root, "capi")
	args := append([]string{"-std=gnu11", "-g", "-I", capi, "testdata/destructors.c", filepath.Join(capi, "result.c"), "-o", program}, flags...)
	if err := compile("gcc", args...); err != nil {
		t.Fatal(err)
	}
	return program
}

// Results of either side must be releasable by the other's destructors.
func TestDestructors_MixedUnderAddressSanitizer(t *testing.T) {
	run(t, time.Minute, []string{"ASAN_OPTIONS=detect_leaks=1:exitcode=1"}, destructors(t, "-fsanitize=address,undefined"))
}

// The same with the C library's own malloc and free, as hosts have them.
func TestDestructors_MixedUnderValgrind(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skipf("this machine has no valgrind: %v", err)
	}
	run(t, 2*time.Minute, nil, "valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all",
		"--errors-for-leak-kinds=all", "--error-exitcode=9", destructors(t))
}

// A host written in Go must keep its own preemption: without the chained SIGURG handler its garbage
// collections wait for a tight loop to end, seconds instead of milliseconds.
func TestGoHost_KeepsPreemption(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gohost")
	run(t, 5*time.Minute, nil, "go", "build", "-o", program, "./testdata/gohost")
	out := run(t, 2*time.Minute, nil, program, library)
	fields := strings.Fields(out)
	if len(fields) != 2 {
		t.Fatalf("gohost printed %q", out)
	}
	before, err1 := strconv.Atoi(fields[0])
	after, err2 := strconv.Atoi(fields[1])
	if err1 != nil || err2 != nil {
		t.Fatalf("gohost printed %q", out)
	}
	t.Logf("longest collection: %d ms before loading, %d ms after", before, after)
	if after > 10*before+500 {
		t.Errorf("a collection of the host took %d ms after loading, %d ms before", after, before)
	}
}
