// Package machine tests how the command and the library meet the machine that they run on: CPUs without the
// instructions that ours has, affinity masks, control groups, budgets, and the age of its C library.
//
// Goal: what the machine allows is found out and kept, and a machine that allows too little is told so with
// numbers. Method: real processes, on machines that are put in their place: a mask set by the kernel, control
// groups recorded in files and mounted over the real ones, an emulated plain CPU.
package machine

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/tests/support"
)

const root = "../.."

var (
	command string // the sealc2 command
	library string // libsealc2.so
	host    string // compiled testdata/host.c, which loads it
)

// TestMain builds the command and the host.
func TestMain(m *testing.M) {
	support.Run(m, func(scratch, found string) error {
		library, command, host = found, filepath.Join(scratch, "sealc2"), filepath.Join(scratch, "host")
		return errors.Join(build("go", "build", "-o", command, root+"/bindings/cli"),
			build("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"+root+"/include", "testdata/host.c", "-o", host, "-ldl"))
	})
}

// build runs a builder; go builds without cgo, so that the result is whole in itself.
func build(name string, args ...string) error {
	c := exec.Command(name, args...)
	if name == "go" {
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// outcome is what a process left.
type outcome struct {
	code           int
	stdout, stderr string
	elapsed        time.Duration
}

// run runs a program within a time limit. An exit code is an outcome; a program that cannot run, or does not end,
// is fatal.
func run(t *testing.T, limit time.Duration, env []string, name string, args ...string) outcome {
	t.Helper()
	if err := support.Watch(library); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	begun := time.Now()
	err := c.Run()
	o := outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(begun)}
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v (limit %v)\n%s%s", filepath.Base(name), strings.Join(args, " "), err, limit, o.stdout, o.stderr)
	}
	return o
}

// limits is what a process says that it may use.
type limits struct{ threads, threadsFrom, memory, memoryFrom string }

var limitsLine = regexp.MustCompile(`(\d+) threads \(([^)]*)\), (\S+ \S+) of host memory \(([^)]*)\)`)

// faces are the two ways to a process that opens an engine and says its limits: the command, and a C host of the
// library. before, where it is not nil, wraps the command line.
func faces(t *testing.T, env []string, before ...string) map[string]limits {
	t.Helper()
	found := map[string]limits{}
	for name, args := range map[string][]string{
		// It ends with a proof that is none, after the engine was opened.
		"command": {command, "verify", "--log", "info", "--c1", c1File("porep-2k-a"), "--proof", os.DevNull, "--params", "/nowhere"},
		"library": {host, library, "open"},
	} {
		args = append(append([]string(nil), before...), args...)
		o := run(t, time.Minute, append([]string{"RUST_LOG=info"}, env...), args[0], args[1:]...)
		m := limitsLine.FindStringSubmatch(o.stderr)
		if m == nil {
			t.Fatalf("%s does not say its limits:\n%s%s", name, o.stdout, o.stderr)
		}
		found[name] = limits{m[1], m[2], m[3], m[4]}
	}
	return found
}

func c1File(name string) string {
	path, err := filepath.Abs(root + "/tests/vectors/c1/" + name + "/c1.json")
	if err != nil {
		panic(err)
	}
	return path
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// referenceSector puts the reference's proof of a 2 KiB sector, and its key, into files.
func referenceSector(t *testing.T) (proofFile, keyDir string) {
	t.Helper()
	var v struct{ Proofs []string }
	if err := json.Unmarshal(readFile(t, root+"/tests/vectors/c1/porep-2k-a/proof.json"), &v); err != nil {
		t.Fatal(err)
	}
	proof, err := hex.DecodeString(strings.Join(v.Proofs, ""))
	if err != nil {
		t.Fatal(err)
	}
	shape := support.Shape(t, "porep-2k")
	keyDir = t.TempDir()
	writeFile(t, filepath.Join(keyDir, params.ReferenceStem(shape.ParamsBaseName())+params.VKExt), readFile(t, root+"/tests/vectors/setup/porep-2k.vk"))
	return writeFile(t, filepath.Join(t.TempDir(), "proof"), proof), keyDir
}
