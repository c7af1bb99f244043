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
	"sync"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/params"
)

const root = "../.."

var (
	command string // the sealc2 command, which needs no C library
	library string // libsealc2.so
	host    string // compiled testdata/host.c, which loads it
)

// TestMain builds the command and the host, and takes the library that SEALC2_LIB names, or builds it.
func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	temp, err := os.MkdirTemp("", "sealc2-machine-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return 0, err
	}
	command = filepath.Join(temp, "sealc2")
	if err := build("go", "build", "-o", command, root+"/bindings/cli"); err != nil {
		return 0, err
	}
	if library = os.Getenv("SEALC2_LIB"); library == "" {
		if err := build("make", "-C", root, "lib"); err != nil {
			return 0, err
		}
		if library, err = filepath.Abs(root + "/build/libsealc2.so"); err != nil {
			return 0, err
		}
	}
	host = filepath.Join(temp, "host")
	if err := build("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"+root+"/include", "testdata/host.c", "-o", host, "-ldl"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// watch looks at what the programs under test are made of: Go keeps a test's result until something changes that the
// test itself has looked at, and counts from the start of the first test.
var watch = sync.OnceValue(func() error {
	for _, path := range []string{library, root + "/bindings/cli", root + "/engine", root + "/include", "testdata"} {
		if err := filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(p)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
})

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
	if err := watch(); err != nil {
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
	shape, err := porep.ShapeByOracleName("porep-2k")
	if err != nil {
		t.Fatal(err)
	}
	keyDir = t.TempDir()
	writeFile(t, filepath.Join(keyDir, params.ReferenceStem(shape.ParamsBaseName())+params.VKExt), readFile(t, root+"/tests/vectors/setup/porep-2k.vk"))
	return writeFile(t, filepath.Join(t.TempDir(), "proof"), proof), keyDir
}

// paramDir is the folder with 2 KiB development parameters.
func paramDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SEALC2_PARAMS")
	if dir == "" {
		t.Skip("needs 2 KiB development parameters (1.1 GB, minutes to make): make test makes them and names their folder in SEALC2_PARAMS")
	}
	return dir
}

// long is for tests of minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("SEALC2_LONG") != "1" {
		t.Skip("takes minutes: make test-long sets SEALC2_LONG=1")
	}
}
